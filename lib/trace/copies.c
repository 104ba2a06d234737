// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/copies.h"

/* Copies are microseconds apart. A root that was silent for so long is not preferred any more, so that a thread whose
   number was used before never loses its records to one that is gone. */
#define WINDOW_NS 1000000000ULL
#define SWEEP_MINIMUM (1u << 16)

void copies_deinit(struct copies *copies)
{
	map_deinit(&copies->roots);
	map_deinit(&copies->times);
	map_deinit(&copies->births);
}

/* Attributes are fewer than 2^12, processors than 2^20. */
static uint64_t make_key(const struct record_identity *identity)
{
	return (uint64_t)(uint32_t)identity->tid << 32 | (uint64_t)(identity->attribute & 0xfff) << 20 |
	       ((uint32_t)identity->cpu & 0xfffff);
}

static bool is_recent(uint64_t then_ns, uint64_t now_ns)
{
	return now_ns < then_ns || now_ns - then_ns <= WINDOW_NS;
}

/* Forget what is not recent according to `times`, which may be the map itself. */
static struct map keep_recent(const struct map *map, const struct map *times, uint64_t now_ns)
{
	struct map kept = {0};
	uint64_t key, value;

	for (size_t i = 0; map_next(map, &i, &key, &value);) {
		const uint64_t *time = map_get(times, key);

		if (time && is_recent(*time, now_ns))
			(void)map_put(&kept, key, value);
	}
	return kept;
}

/* What is not recent has no say, so memory need not grow with the recording. */
static void sweep(struct copies *copies, uint64_t now_ns)
{
	struct copies kept = {
	    .roots = keep_recent(&copies->roots, &copies->times, now_ns),
	    .times = keep_recent(&copies->times, &copies->times, now_ns),
	    .births = keep_recent(&copies->births, &copies->births, now_ns),
	};

	kept.sweep_at = 2 * (kept.roots.count + kept.births.count);
	copies_deinit(copies);
	*copies = kept;
}

bool copies_check(struct copies *copies, const struct record_identity *identity)
{
	uint64_t key = make_key(identity);
	const uint64_t *root = map_get(&copies->roots, key);
	const uint64_t *time = map_get(&copies->times, key);
	const uint64_t *birth = map_get(&copies->births, (uint32_t)identity->tid);

	if (root && time && *root != identity->id && is_recent(*time, identity->time_ns) && (!birth || *time >= *birth))
		return true;
	if (copies->roots.count >= SWEEP_MINIMUM && copies->roots.count >= copies->sweep_at)
		sweep(copies, identity->time_ns);
	if (!map_put(&copies->roots, key, identity->id) || !map_put(&copies->times, key, identity->time_ns))
		(void)map_remove(&copies->roots, key);
	return false;
}

void copies_forget(struct copies *copies, int32_t tid, uint64_t time_ns)
{
	if (copies->births.count >= SWEEP_MINIMUM && copies->births.count >= copies->sweep_at)
		sweep(copies, time_ns);
	(void)map_put(&copies->births, (uint32_t)tid, time_ns);
}
