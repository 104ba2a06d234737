// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/totals.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define NO_PLACE SIZE_MAX

static bool has_done_anything(const struct thread_account *account)
{
	return account->allocated_bytes.low || account->allocated_bytes.high || account->released_bytes.low ||
	       account->released_bytes.high;
}

static uint64_t unfreed_bytes(const struct thread_account *account)
{
	return account->allocated_bytes.low - account->freed_by_itself_bytes.low - account->freed_by_others_bytes.low;
}

static uint64_t allocated_bytes(const struct thread_account *account)
{
	return wide_sum_get(&account->allocated_bytes, MMT_BYTES_MAX);
}

static struct mmt_error *describe_thread(const struct replay *replay, struct arena *arena, size_t number,
					 struct mmt_thread_total *total)
{
	const struct replay_thread *thread = &replay->threads.items[number];
	const struct thread_account *account = &replay->ledger.threads.items[number];

	*total = (struct mmt_thread_total){
	    .thread = {.pid = processes_at(replay->processes, thread->process)->pid,
		       .tid = thread->tid,
		       .name = arena_string(arena, processes_name(replay->processes, thread->thread->name))},
	    .allocated_bytes = wide_sum_get(&account->allocated_bytes, MMT_BYTES_MAX),
	    .allocated_count = account->allocated_count,
	    .freed_by_itself_bytes = wide_sum_get(&account->freed_by_itself_bytes, MMT_BYTES_MAX),
	    .freed_by_others_bytes = wide_sum_get(&account->freed_by_others_bytes, MMT_BYTES_MAX),
	    .unfreed_bytes = unfreed_bytes(account),
	    .unfreed_count = account->allocated_count - account->freed_count,
	    .released_bytes = wide_sum_get(&account->released_bytes, MMT_BYTES_MAX),
	};
	return total->thread.name ? NULL : &error_no_memory;
}

/* Numbers of threads; `context`: the accounts. */
static int compare_totals(const void *left, const void *right, void *context)
{
	const struct thread_account *accounts = context;
	uint32_t number = *(const uint32_t *)left, other = *(const uint32_t *)right;
	const struct thread_account *a = &accounts[number], *b = &accounts[other];

	if (unfreed_bytes(a) != unfreed_bytes(b))
		return unfreed_bytes(a) < unfreed_bytes(b) ? 1 : -1;
	if (allocated_bytes(a) != allocated_bytes(b))
		return allocated_bytes(a) < allocated_bytes(b) ? 1 : -1;
	return number < other ? -1 : number > other;
}

static int compare_releases(const void *left, const void *right)
{
	const struct mmt_release *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	return a->releaser < b->releaser ? -1 : a->releaser > b->releaser;
}

/* `places`: by thread number, where it stands in the totals. */
static struct mmt_error *list_releases(const struct replay *replay, const size_t *places, struct arena *arena,
				       struct mmt_report *report)
{
	const struct map *map = &replay->ledger.releases;
	struct mmt_release *releases = arena_alloc(arena, map->count, sizeof(*releases));
	size_t thread_count = replay->ledger.threads.count, position = 0;
	uint64_t key, bytes;

	if (!releases)
		return &error_no_memory;
	while (map_next(map, &position, &key, &bytes)) {
		size_t owner = (size_t)(key >> 32), releaser = (uint32_t)key;

		if (owner >= thread_count || releaser >= thread_count || places[owner] == NO_PLACE ||
		    places[releaser] == NO_PLACE)
			continue;
		releases[report->release_count++] =
		    (struct mmt_release){.owner = places[owner], .releaser = places[releaser], .bytes = bytes};
	}
	qsort(releases, report->release_count, sizeof(*releases), compare_releases);
	report->releases = releases;
	return NULL;
}

struct mmt_error *totals_of_threads(const struct replay *replay, const struct rows *rows, struct arena *arena,
				    struct mmt_report *report)
{
	size_t count =
	    replay->ledger.threads.count < replay->threads.count ? replay->ledger.threads.count : replay->threads.count;
	CLEANUP(free) uint32_t *numbers = calloc(count + 1, sizeof(*numbers));
	CLEANUP(free) size_t *places = calloc(replay->ledger.threads.count + 1, sizeof(*places));
	struct mmt_thread_total *sorted;

	if (!numbers || !places)
		return &error_no_memory;
	for (size_t i = 0; i < replay->ledger.threads.count; i++)
		places[i] = NO_PLACE;
	for (size_t i = 0; i < count; i++) {
		const struct process *process = processes_at(replay->processes, replay->threads.items[i].process);

		if (!has_done_anything(&replay->ledger.threads.items[i]) || !rows_selects(rows, process))
			continue;
		numbers[report->thread_total_count++] = (uint32_t)i;
	}
	if (report->thread_total_count)
		qsort_r(numbers, report->thread_total_count, sizeof(*numbers), compare_totals,
			replay->ledger.threads.items);
	sorted = arena_alloc(arena, report->thread_total_count, sizeof(*sorted));
	if (!sorted)
		return &error_no_memory;
	for (size_t i = 0; i < report->thread_total_count; i++) {
		struct mmt_error *error = describe_thread(replay, arena, numbers[i], &sorted[i]);

		if (error)
			return error;
		places[numbers[i]] = i;
	}
	report->thread_totals = sorted;
	return list_releases(replay, places, arena, report);
}

static int compare_failures(const void *left, const void *right)
{
	const struct mmt_failure *a = left, *b = right;

	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	if (a->asked_bytes != b->asked_bytes)
		return a->asked_bytes < b->asked_bytes ? 1 : -1;
	return a->first_ns < b->first_ns ? -1 : a->first_ns > b->first_ns;
}

static struct mmt_error *describe_failure(const struct replay *replay, struct rows *rows, struct arena *arena,
					  const struct failure *failure, struct mmt_failure *described)
{
	int32_t *pid = arena_alloc(arena, 1, sizeof(*pid));
	struct row_description stack;
	struct mmt_error *error;

	if (!pid)
		return &error_no_memory;
	*pid = processes_at(replay->processes, failure->process)->pid;
	*described = (struct mmt_failure){
	    .call = (enum mmt_event_count)failure->call,
	    .error = failure->error,
	    .count = failure->count,
	    .asked_bytes = failure->asked_bytes,
	    .first_ns = failure->first_ns,
	    .last_ns = failure->last_ns,
	    .pids = pid,
	    .pid_count = 1,
	};
	error = rows_name_stack(rows, failure->stack, &stack);
	described->frames = stack.frames;
	described->frame_count = stack.frame_count;
	described->hidden_frame_count = stack.hidden_frame_count;
	described->stack_end = stack.stack_end;
	return error;
}

struct mmt_error *totals_of_failures(const struct replay *replay, struct rows *rows, struct arena *arena,
				     struct mmt_report *report)
{
	size_t count = replay->ledger.failures.count;
	struct mmt_failure *failures = arena_alloc(arena, count, sizeof(*failures));

	if (!failures)
		return &error_no_memory;
	for (size_t i = 0; i < count; i++) {
		const struct failure *failure = &replay->ledger.failures.items[i];
		struct mmt_error *error;

		if (!rows_selects(rows, processes_at(replay->processes, failure->process)))
			continue;
		report->failed_calls += failure->count;
		error = describe_failure(replay, rows, arena, failure, &failures[report->failure_count++]);
		if (error)
			return error;
	}
	qsort(failures, report->failure_count, sizeof(*failures), compare_failures);
	report->failures = failures;
	return NULL;
}
