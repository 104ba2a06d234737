/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When two frames, and two stacks, are the same to a reader: module, function and line decide, not addresses. */
#ifndef ANALYSIS_NAMES_H
#define ANALYSIS_NAMES_H

#include <mmtrace/report.h>

#include "base/map.h"
#include "base/vector.h"

/* The frame that the caller knows by this key, valid until the next call; NULL: out of memory. */
typedef const struct mmt_frame *names_look_up(void *context, uint64_t key);

struct names {
	bool anywhere;		/* set by the caller: addresses of what lies in no file tell nothing */
	names_look_up *look_up; /* set by the caller */
	void *context;		/* of it */
	struct id_table by_hash;
	VECTOR(uint64_t) keys; /* by number: of the first frame that had it */
	struct intern stacks;
};

#define NAMES_NONE INTERN_NONE

void names_deinit(struct names *names);

/* Number of a frame, which need not stay as long as `key` tells it; frames of equal names have equal numbers.
 * NAMES_NONE: out of memory. */
uint32_t names_frame(struct names *names, const struct mmt_frame *frame, uint64_t key);

/* Number of a sequence of frame numbers. */
uint32_t names_stack(struct names *names, const uint32_t *frames, size_t count);

#endif
