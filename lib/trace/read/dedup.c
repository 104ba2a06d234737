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

/* NULL: none yet. */
static struct dedup_root *find_root(struct dedup *dedup, uint64_t key)
{
	uint32_t *recent = &dedup->recent[dedup_recent_place(key)];
	const uint64_t *place;

	if (*recent && dedup->roots.items[*recent - 1].key == key)
		return &dedup->roots.items[*recent - 1];
	place = map_get(&dedup->places, key);
	if (!place || *place >= dedup->roots.count)
		return NULL;
	*recent = (uint32_t)*place + 1;
	return &dedup->roots.items[*place];
}

static bool is_older_than_allocation(const struct dedup *dedup, const struct dedup_root *root, int32_t tid)
{
	const uint64_t *allocation = map_get(&dedup->allocations, (uint32_t)tid);

	return allocation && root->time_ns < *allocation;
}

bool dedup_check_cold(struct dedup *dedup, const struct dedup_root *fresh)
{
	struct dedup_root *root = find_root(dedup, fresh->key);

	if (root && root->id != fresh->id && is_recent(root->time_ns, fresh->time_ns) &&
	    !is_older_than_allocation(dedup, root, (int32_t)(fresh->key >> 32)))
		return true;
	if (root) {
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
