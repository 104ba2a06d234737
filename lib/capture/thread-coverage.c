// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/thread-coverage.h"

void thread_coverage_deinit(struct thread_coverage *coverage)
{
	map_deinit(&coverage->times);
	map_deinit(&coverage->births);
	map_deinit(&coverage->ends);
}

/* The later of two times. */
static bool put_latest(struct map *map, pid_t tid, uint64_t time_ns)
{
	const uint64_t *known_ns = map_get(map, (uint32_t)tid);

	return (known_ns && *known_ns >= time_ns) || map_put(map, (uint32_t)tid, time_ns);
}

bool thread_coverage_put(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns)
{
	return put_latest(&coverage->times, tid, time_ns);
}

bool thread_coverage_has(const struct thread_coverage *coverage, pid_t tid, uint64_t start_ns)
{
	const uint64_t *time_ns = map_get(&coverage->times, (uint32_t)tid);

	return time_ns && start_ns <= *time_ns;
}

bool thread_coverage_note_birth(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns, bool *new_ret)
{
	bool whole = coverage->whole_ns && time_ns > coverage->whole_ns;

	*new_ret = whole && !map_get(&coverage->times, (uint32_t)tid);
	if (whole)
		return thread_coverage_put(coverage, tid, time_ns);
	return coverage->whole_ns || put_latest(&coverage->births, tid, time_ns);
}

bool thread_coverage_note_end(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns)
{
	const uint64_t *known_ns = map_get(&coverage->times, (uint32_t)tid);

	if (!known_ns || *known_ns > time_ns)
		return true;
	(void)map_remove(&coverage->times, (uint32_t)tid);
	return coverage->whole_ns || put_latest(&coverage->ends, tid, time_ns);
}

bool thread_coverage_lasted_until(const struct thread_coverage *coverage, pid_t tid, uint64_t time_ns)
{
	const uint64_t *end_ns = map_get(&coverage->ends, (uint32_t)tid);

	return end_ns && *end_ns >= time_ns;
}

bool thread_coverage_is_same(const struct thread_coverage *coverage, pid_t tid, uint64_t a_ns, uint64_t b_ns)
{
	const uint64_t *birth_ns = map_get(&coverage->births, (uint32_t)tid);

	return !coverage->births_missing && (!birth_ns || (*birth_ns <= a_ns && *birth_ns <= b_ns));
}

void thread_coverage_set_whole(struct thread_coverage *coverage, uint64_t time_ns)
{
	coverage->whole_ns = time_ns;
	map_deinit(&coverage->births);
	map_deinit(&coverage->ends);
}
