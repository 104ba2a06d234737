/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When two frames, and two stacks, are the same to a reader: module, function and line decide, not addresses. */
#ifndef ANALYSIS_NAMES_H
#define ANALYSIS_NAMES_H

#include <mmtrace/report.h>

#include "base/map.h"
#include "base/vector.h"

struct names {
	bool anywhere; /* set by the caller: addresses of what lies in no file tell nothing */
	struct id_table by_hash;
	VECTOR(const struct mmt_frame *) frames; /* by number */
	struct intern stacks;
};

#define NAMES_NONE INTERN_NONE

void names_deinit(struct names *names);

/* Number of a frame, which must stay; frames of equal names have equal numbers. NAMES_NONE: out of memory. */
uint32_t names_frame(struct names *names, const struct mmt_frame *frame);

/* Number of a sequence of frame numbers. */
uint32_t names_stack(struct names *names, const uint32_t *frames, size_t count);

#endif
