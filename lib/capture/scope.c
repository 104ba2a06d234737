// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/scope.h"

#include <stdlib.h>

void scope_deinit(struct scope *scope)
{
	map_deinit(&scope->begins);
	map_deinit(&scope->ends);
	vector_deinit(&scope->births);
}

bool scope_wants_births(const struct scope *scope)
{
	return scope->kind != SCOPE_THREADS;
}

static bool is_followed(const struct scope *scope, pid_t pid, uint64_t time_ns)
{
	const uint64_t *begin_ns = map_get(&scope->begins, (uint32_t)pid);
	const uint64_t *end_ns = map_get(&scope->ends, (uint32_t)pid);

	return begin_ns && time_ns >= *begin_ns && (!end_ns || time_ns < *end_ns);
}

bool scope_follow(struct scope *scope, pid_t pid, uint64_t time_ns)
{
	(void)map_remove(&scope->ends, (uint32_t)pid);
	return map_put(&scope->begins, (uint32_t)pid, time_ns);
}

bool scope_note_birth(struct scope *scope, pid_t pid, pid_t parent, uint64_t time_ns)
{
	struct scope_birth birth = {.time_ns = time_ns, .pid = pid, .parent = parent};

	return vector_push(&scope->births, birth);
}

static int compare_times(const void *left, const void *right)
{
	uint64_t a = ((const struct scope_birth *)left)->time_ns, b = ((const struct scope_birth *)right)->time_ns;

	return (a > b) - (a < b);
}

/* A number that is given out again is another process, of which only what comes later is meant. */
static bool apply(struct scope *scope, const struct scope_birth *birth)
{
	bool followed = !scope->no_inherit && is_followed(scope, birth->parent, birth->time_ns);

	if (!is_followed(scope, birth->pid, birth->time_ns))
		return !followed || scope_follow(scope, birth->pid, birth->time_ns);
	return followed || map_put(&scope->ends, (uint32_t)birth->pid, birth->time_ns);
}

bool scope_apply_births(struct scope *scope, uint64_t until_ns)
{
	size_t applied = 0, count = scope->births.count;
	bool ok = true;

	if (count > 1)
		qsort(scope->births.items, count, sizeof(*scope->births.items), compare_times);
	for (; ok && applied < count && scope->births.items[applied].time_ns <= until_ns; applied++)
		ok = apply(scope, &scope->births.items[applied]);
	for (size_t i = applied; i < count; i++)
		scope->births.items[i - applied] = scope->births.items[i];
	scope->births.count = count - applied;
	return ok;
}

void scope_forget(struct scope *scope, const struct known_processes *known, uint64_t before_ns)
{
	uint64_t pid, begin_ns;

	for (size_t i = 0; map_next(&scope->begins, &i, &pid, &begin_ns);) {
		if (begin_ns > before_ns || known_processes_find(known, (pid_t)pid))
			continue;
		(void)map_remove(&scope->begins, pid);
		(void)map_remove(&scope->ends, pid);
	}
}

bool scope_admits(const struct scope *scope, pid_t pid, uint64_t time_ns)
{
	return scope->kind == SCOPE_THREADS || is_followed(scope, pid, time_ns);
}
