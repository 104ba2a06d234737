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
	struct dedup kept = {0};
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

bool dedup_check(struct dedup *dedup, int32_t tid, uint32_t attribute, int32_t cpu, uint64_t id, uint64_t time_ns)
{
	/* Attributes are fewer than 2^12, processors than 2^20. */
	const uint64_t key =
	    (uint64_t)(uint32_t)tid << 32 | (uint64_t)(attribute & 0xfff) << 20 | ((uint32_t)cpu & 0xfffff);
	const struct dedup_root fresh = {.key = key, .id = id, .time_ns = time_ns};
	const uint64_t *allocation, *place = map_get(&dedup->places, key);
	struct dedup_root *root = place && *place < dedup->roots.count ? &dedup->roots.items[*place] : NULL;

	if (root) {
		if (root->id != id && is_recent(root->time_ns, time_ns)) {
			allocation = map_get(&dedup->allocations, (uint32_t)tid);
			if (!allocation || root->time_ns >= *allocation)
				return true;
		}
		*root = fresh;
		return false;
	}
	if (dedup->roots.count >= SWEEP_MINIMUM && dedup->roots.count >= dedup->sweep_at)
		sweep(dedup, time_ns);
	(void)add_root(dedup, &fresh);
	return false;
}

void dedup_forget(struct dedup *dedup, int32_t tid, uint64_t time_ns)
{
	if (dedup->allocations.count >= SWEEP_MINIMUM && dedup->allocations.count >= dedup->sweep_at)
		sweep(dedup, time_ns);
	(void)map_put(&dedup->allocations, (uint32_t)tid, time_ns);
}
