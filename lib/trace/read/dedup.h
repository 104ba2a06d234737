/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Event dedup: finds duplicate events. A thread created while mmtrace attached to its process can inherit an event from
 * several roots. Each of these fires, so one call produces several records. Of the roots that fire for one (thread,
 * attribute, CPU), only the first counts; ids are per root and CPU. */
#ifndef TRACE_READ_DEDUP_H
#define TRACE_READ_DEDUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vector.h"

struct dedup_root {
	uint64_t key; /* (thread, attribute, CPU) */
	uint64_t id;
	uint64_t time_ns; /* of its last record */
};

/* Zero-initialise an empty value. */
struct dedup {
	VECTOR(struct dedup_root) roots;
	struct map places;	/* key -> place in `roots` */
	struct map allocations; /* thread -> when its TID was last reused */
	size_t sweep_at;
};

void dedup_deinit(struct dedup *dedup);

/* A new thread has this TID since `time_ns`. */
void dedup_forget(struct dedup *dedup, int32_t tid, uint64_t time_ns);

/* Whether the record is a duplicate. If out of memory, returns false: one duplicate too many is better than aborting.
 */
bool dedup_check(struct dedup *dedup, int32_t tid, uint32_t attribute, int32_t cpu, uint64_t id, uint64_t time_ns);

#endif
