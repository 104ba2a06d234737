// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/unwatched.h"

#define EXITED (1ULL << 32) /* beside the name */

void unwatched_deinit(struct unwatched *unwatched)
{
	map_deinit(&unwatched->programs);
}

static void count_one(struct unwatched_count *count, uint32_t name)
{
	if (!count->programs++ || name < count->name)
		count->name = name;
}

/* One that executes again has gone on after its EXIT, so that its events were not the ones that ended. */
bool unwatched_executed(struct unwatched *unwatched, int32_t tid, uint32_t name)
{
	return map_put(&unwatched->programs, (uint32_t)tid, name);
}

void unwatched_exited(struct unwatched *unwatched, int32_t tid)
{
	uint64_t *program = map_get(&unwatched->programs, (uint32_t)tid);

	if (program)
		*program |= EXITED;
}

void unwatched_mapped(struct unwatched *unwatched, int32_t tid)
{
	map_remove(&unwatched->programs, (uint32_t)tid);
}

void unwatched_forked(struct unwatched *unwatched, int32_t tid)
{
	const uint64_t *program = map_get(&unwatched->programs, (uint32_t)tid);

	if (!program)
		return;
	if (*program & EXITED)
		count_one(&unwatched->gone, (uint32_t)*program);
	map_remove(&unwatched->programs, (uint32_t)tid);
}

struct unwatched_count unwatched_count(const struct unwatched *unwatched)
{
	struct unwatched_count count = unwatched->gone;
	uint64_t tid, program;

	for (size_t i = 0; map_next(&unwatched->programs, &i, &tid, &program);) {
		if (program & EXITED)
			count_one(&count, (uint32_t)program);
	}
	return count;
}
