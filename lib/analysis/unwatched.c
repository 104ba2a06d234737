// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/unwatched.h"

#define EXITED (1ULL << 32) /* beside the name */

void unwatched_deinit(struct unwatched *unwatched)
{
	map_deinit(&unwatched->programs);
}

bool unwatched_executed(struct unwatched *unwatched, int32_t tid, uint32_t name)
{
	return map_put(&unwatched->programs, (uint32_t)tid, name);
}

void unwatched_exited(struct unwatched *unwatched, int32_t tid)
{
	uint64_t *program = map_get(&unwatched->programs, (uint32_t)tid);

	if (!program || *program & EXITED)
		return;
	if (!unwatched->count++)
		unwatched->first_name = (uint32_t)*program;
	*program |= EXITED;
}

void unwatched_mapped(struct unwatched *unwatched, int32_t tid)
{
	const uint64_t *program = map_get(&unwatched->programs, (uint32_t)tid);

	if (!program)
		return;
	if (*program & EXITED)
		unwatched->count--;
	map_remove(&unwatched->programs, (uint32_t)tid);
}

void unwatched_forked(struct unwatched *unwatched, int32_t tid)
{
	map_remove(&unwatched->programs, (uint32_t)tid);
}
