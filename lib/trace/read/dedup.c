// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/read/dedup.h"

/* Copies are microseconds apart. A root that was silent for so long is not preferred any more, so that a thread whose
   number was used before never loses its records to one that is gone. */
#define WINDOW_NS 1000000000ULL
#define SWEEP_MINIMUM (1u << 16)

void copies_deinit(struct copies *copies)
{
	vector_deinit(&copies->roots);
	map_deinit(&copies->places);
	map_deinit(&copies->births);
}

void copies_begin_epoch(struct copies *copies, uint16_t epoch)
{
	copies_deinit(copies);
	*copies = (struct copies){.epoch = epoch};
}

static bool is_recent(uint64_t then_ns, uint64_t now_ns)
{
	return now_ns < then_ns || now_ns - then_ns <= WINDOW_NS;
}

static bool add_root(struct copies *copies, const struct copies_root *root)
{
	return map_put(&copies->places, root->key, copies->roots.count) && vector_push(&copies->roots, *root);
}

/* What is not recent has no say, so memory need not grow with the recording. */
static void sweep(struct copies *copies, uint64_t now_ns)
{
	struct copies kept = {.epoch = copies->epoch};
	uint64_t tid, time_ns;

	for (size_t i = 0; i < copies->roots.count; i++) {
		if (is_recent(copies->roots.items[i].time_ns, now_ns))
			(void)add_root(&kept, &copies->roots.items[i]);
	}
	for (size_t i = 0; map_next(&copies->births, &i, &tid, &time_ns);) {
		if (is_recent(time_ns, now_ns))
			(void)map_put(&kept.births, tid, time_ns);
	}
	kept.sweep_at = 2 * (kept.roots.count + kept.births.count);
	copies_deinit(copies);
	*copies = kept;
}

/* NULL: none yet. */
static struct copies_root *find_root(struct copies *copies, uint64_t key)
{
	uint32_t *recent = &copies->recent[copies_recent_place(key)];
	const uint64_t *place;

	if (*recent && copies->roots.items[*recent - 1].key == key)
		return &copies->roots.items[*recent - 1];
	place = map_get(&copies->places, key);
	if (!place || *place >= copies->roots.count)
		return NULL;
	*recent = (uint32_t)*place + 1;
	return &copies->roots.items[*place];
}

static bool is_older_than_birth(const struct copies *copies, const struct copies_root *root, int32_t tid)
{
	const uint64_t *birth = map_get(&copies->births, (uint32_t)tid);

	return birth && root->time_ns < *birth;
}

bool copies_check_seldom(struct copies *copies, const struct copies_root *fresh)
{
	struct copies_root *root = find_root(copies, fresh->key);

	if (root && root->id != fresh->id && is_recent(root->time_ns, fresh->time_ns) &&
	    !is_older_than_birth(copies, root, (int32_t)(fresh->key >> 32)))
		return true;
	if (root) {
		*root = *fresh;
		return false;
	}
	if (copies->roots.count >= SWEEP_MINIMUM && copies->roots.count >= copies->sweep_at)
		sweep(copies, fresh->time_ns);
	(void)add_root(copies, fresh);
	return false;
}

void copies_forget(struct copies *copies, int32_t tid, uint64_t time_ns)
{
	if (copies->births.count >= SWEEP_MINIMUM && copies->births.count >= copies->sweep_at)
		sweep(copies, time_ns);
	(void)map_put(&copies->births, (uint32_t)tid, time_ns);
}
