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

#define DEDUP_RECENT 256 /* a power of two */

struct dedup_root {
	uint64_t key; /* (thread, attribute, CPU) */
	uint64_t id;
	uint64_t time_ns; /* of its last record */
};

/* Zero-initialise an empty value. */
struct dedup {
	VECTOR(struct dedup_root) roots;
	struct map places;	       /* key -> place in `roots` */
	struct map allocations;	       /* thread -> when its TID was last reused */
	uint32_t recent[DEDUP_RECENT]; /* places + 1 of some, by key */
	size_t sweep_at;
	uint16_t epoch; /* of the clock, see reorder.h */
};

void dedup_deinit(struct dedup *dedup);

/* The clock has jumped: times from before the jump are no longer comparable, so drop the entries that have them. */
void dedup_begin_epoch(struct dedup *dedup, uint16_t epoch);

/* A new thread has this TID since `time_ns`. */
void dedup_forget(struct dedup *dedup, int32_t tid, uint64_t time_ns);

static inline size_t dedup_recent_place(uint64_t key)
{
	return hash_number(key) >> 32 & (DEDUP_RECENT - 1);
}

bool dedup_check_cold(struct dedup *dedup, const struct dedup_root *fresh);

/* Whether the record is a duplicate. If out of memory, returns false: one duplicate too many is better than aborting.
 * Most records come from the root that fired for their thread before. */
static inline bool dedup_check(struct dedup *dedup, int32_t tid, uint32_t attribute, int32_t cpu, uint64_t id,
			       uint64_t time_ns)
{
	/* Attributes are fewer than 2^12, processors than 2^20. */
	const uint64_t key =
	    (uint64_t)(uint32_t)tid << 32 | (uint64_t)(attribute & 0xfff) << 20 | ((uint32_t)cpu & 0xfffff);
	const uint32_t recent = dedup->recent[dedup_recent_place(key)];
	struct dedup_root *root = recent ? &dedup->roots.items[recent - 1] : NULL;

	if (!root || root->key != key || root->id != id)
		return dedup_check_cold(dedup, &(struct dedup_root){.key = key, .id = id, .time_ns = time_ns});
	root->time_ns = time_ns;
	return false;
}

#endif
