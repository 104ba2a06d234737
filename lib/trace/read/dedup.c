// SPDX-License-Identifier: LGPL-2.1-or-later
/* Removes duplicate events: a thread inherited through several roots makes a copy of each event for each root. */
#include "trace/read/dedup.h"

/* Duplicates are microseconds apart. A root without records for this long loses its preference, so that a thread with a
   reused TID never loses its records to a thread that has ended. */
#define WINDOW_NS 1000000000ULL
#define SWEEP_MINIMUM (1u << 16)

void dedup_deinit(struct dedup *dedup)
{
	vector_deinit(&dedup->roots);
	map_deinit(&dedup->places);
	map_deinit(&dedup->allocations);
}

void dedup_begin_epoch(struct dedup *dedup, uint16_t epoch)
{
	dedup_deinit(dedup);
	*dedup = (struct dedup){.epoch = epoch};
}

static bool is_recent(uint64_t then_ns, uint64_t now_ns)
{
	return now_ns < then_ns || now_ns - then_ns <= WINDOW_NS;
}

static bool add_root(struct dedup *dedup, const struct dedup_root *root)
{
	return map_put(&dedup->places, root->key, dedup->roots.count) && vector_push(&dedup->roots, *root);
}

/* Old entries are not used, so memory need not grow with the recording. */
static void sweep(struct dedup *dedup, uint64_t now_ns)
{
	struct dedup kept = {.epoch = dedup->epoch};
	uint64_t tid, time_ns;

	for (size_t i = 0; i < dedup->roots.count; i++) {
		if (is_recent(dedup->roots.items[i].time_ns, now_ns))
			(void)add_root(&kept, &dedup->roots.items[i]);
	}
	for (size_t i = 0; map_next(&dedup->allocations, &i, &tid, &time_ns);) {
		if (is_recent(time_ns, now_ns))
			(void)map_put(&kept.allocations, tid, time_ns);
	}
	kept.sweep_at = 2 * (kept.roots.count + kept.allocations.count);
	dedup_deinit(dedup);
	*dedup = kept;
}

bool dedup_check_cold(struct dedup *dedup, const struct dedup_root *fresh)
{
	const uint64_t *allocation, *place = map_get(&dedup->places, fresh->key);
	struct dedup_root *root = place && *place < dedup->roots.count ? &dedup->roots.items[*place] : NULL;

	if (root) {
		dedup->recent[dedup_recent_place(fresh->key)] = (uint32_t)*place + 1;
		allocation = map_get(&dedup->allocations, fresh->key >> 32);
		if (root->id != fresh->id && is_recent(root->time_ns, fresh->time_ns) &&
		    !(allocation && root->time_ns < *allocation))
			return true;
		*root = *fresh;
		return false;
	}
	if (dedup->roots.count >= SWEEP_MINIMUM && dedup->roots.count >= dedup->sweep_at)
		sweep(dedup, fresh->time_ns);
	(void)add_root(dedup, fresh);
	return false;
}

void dedup_forget(struct dedup *dedup, int32_t tid, uint64_t time_ns)
{
	if (dedup->allocations.count >= SWEEP_MINIMUM && dedup->allocations.count >= dedup->sweep_at)
		sweep(dedup, time_ns);
	(void)map_put(&dedup->allocations, (uint32_t)tid, time_ns);
}
