// SPDX-License-Identifier: LGPL-2.1-or-later
/* Computes the figures of each row, the columns of a report: bytes, counts, trends, times. row-verdicts.c judges them.
 * mmtrace/figures.h lists them. */
#include "analysis/report/report-build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <mmtrace/report.h>

#include "analysis/replay/replay.h"
#include "analysis/report/hints.h"
#include "analysis/report/row-verdicts.h"
#include "analysis/report/rows.h"
#include "base/cleanup.h"
#include "base/figures.h"
#include "base/limits.h"
#include "base/map.h"

/* Sums of what is mapped at the end, by row: mapped bytes and committed bytes. */

struct survivor_sums {
	uint64_t unfreed_bytes, committed_bytes; /* of all classes, functions and threads */
	struct mmt_row *figures;		 /* by row number - 1; figures are added */
	struct account_memory *accounts;	 /* by account number; likewise */
	bool *resident_known;			 /* likewise */
	struct map reservers;			 /* (row that committed) << 32 | row that had reserved -> bytes */
	struct map committers;			 /* (row that committed - 1) << 32 | index of its process */
};

/* `sums` has an element for every row. Also adds to the parts of the ledger's lifetimes, if it keeps them. */
static struct mmt_error *add_unfreed_sums(struct replay *replay, const struct rows *rows, struct survivor_sums *sums);

struct grouping {
	struct replay *replay;
	struct rows *rows;
	struct arena *arena;
	struct mmt_report *report;
	struct mmt_row *figures; /* by row number - 1 */
	size_t row_count;
	const struct resident_sums *resident; /* NULL: not known */
	struct survivor_sums sums;
	size_t step_figures;	 /* of all rows so far */
	struct map thread_bytes; /* (row - 1) << 32 | thread -> unfreed bytes */
};

/* Add the resident bytes to the rows and, if the ledger keeps lifetimes, to their parts. */
static struct mmt_error *publish_residents(struct grouping *grouping);

/* The calls that mapped memory or made it accessible. Lost calls have bytes, but neither a count nor a stack. */
static void count_stacks(const struct grouping *grouping, const struct account *account)
{
	struct mmt_completeness *completeness = &grouping->report->completeness;
	enum mmt_stack_end end = account->stack_end;
	uint64_t count = account->allocated_count + account->committed_count;

	if (!count)
		count = account->allocated_bytes > 0;
	completeness->stacks_by_end[end] += count;
	if (!mmt_stack_end_is_complete(end))
		completeness->truncated_stacks += count;
	else if (account->doubtful)
		completeness->doubtful_stacks += count;
	else
		completeness->complete_stacks += count;
}

static void add_account(struct grouping *grouping, const struct account *account)
{
	struct mmt_row *row;

	if (account->row == LEDGER_NO_ROW)
		return;
	row = &grouping->figures[account->row - 1];
	figure_add(&row->allocated_bytes, account->allocated_bytes);
	row->allocated_count += account->allocated_count;
	figure_add(&row->freed_bytes, account->freed_bytes);
	row->freed_count += account->freed_count;
	count_stacks(grouping, account);
}

/* Fill in what the ledger and the rows know about each row. */
static struct mmt_error *start_rows(struct grouping *grouping)
{
	const struct ledger *ledger = &grouping->replay->ledger;

	for (size_t i = 0; i < grouping->row_count; i++) {
		struct mmt_row *row = &grouping->figures[i];
		struct row_description description;
		struct mmt_error *error = rows_describe(grouping->rows, i, &description);

		if (error)
			return error;
		row->name = description.name;
		row->frames = description.frames;
		row->frame_count = description.frame_count;
		row->origin = origin_of_stack(description.frames, description.frame_count);
		row->hidden_frame_count = description.hidden_frame_count;
		row->stack_end = description.stack_end;
		row->pattern = description.pattern;
		row->lost = description.lost;
		row->lines_differ = description.lines_differ;
		row->smallest_bytes = UINT64_MAX;
		if (i + 1 >= ledger->rows.count)
			continue;
		row->peak_bytes = ledger->rows.items[i + 1].peak_bytes;
		row->peak_ns = ledger->rows.items[i + 1].peak_ns;
		ledger_trend(ledger, (uint32_t)i + 1, grouping->report->to_ns, row->trend, MMT_TREND_POINTS);
	}
	for (size_t i = 0; i < ledger->accounts.count; i++)
		add_account(grouping, &ledger->accounts.items[i]);
	return NULL;
}

static struct mmt_error *identify_stacks(struct grouping *grouping)
{
	struct build_id_paths paths;
	bool complete = build_id_paths_init(&paths, grouping->report);

	for (size_t i = 0; complete && i < grouping->row_count; i++)
		if (!grouping->figures[i].name)
			grouping->figures[i].identity = identity_checksum(&paths, &grouping->figures[i]);
	build_id_paths_deinit(&paths);
	return complete ? NULL : &error_no_memory;
}

/* "name (123)", or `name`, if it is the name of the row by this key; the caller frees it. */
static char *name_by(const struct replay *replay, const struct row_description *row, enum mmt_row_key by,
		     const char *row_name)
{
	const struct process *process = processes_at(replay->processes, row->process);
	const char *name = process_name(replay->processes, process), *kind = "process";
	int32_t id = process->pid;
	char *text;

	if (row_name)
		return strdup(row_name);
	if (by == MMT_BY_THREAD && row->thread == LEDGER_NO_THREAD)
		return strdup("[unknown thread]");
	if (by == MMT_BY_THREAD) {
		const struct replay_thread *thread = &replay->threads.items[row->thread];

		name = processes_name(replay->processes, thread->thread->name);
		kind = "thread";
		id = thread->tid;
	}
	return asprintf(&text, "%s (%" PRId32 ")", *name ? name : kind, id) < 0 ? NULL : text;
}

/* "malloc / worker (123)"; the caller frees it. */
static char *name_pair(const struct grouping *grouping, const struct row_description *row)
{
	enum mmt_row_key second_by = grouping->report->then_by;
	CLEANUP(free) char *first = name_by(grouping->replay, row, row->by, row->name);
	CLEANUP(free) char *second = name_by(grouping->replay, row, second_by, row->second_name);
	char *text;

	return first && second && asprintf(&text, "%s / %s", first, second) >= 0 ? text : NULL;
}

/* Name processes, threads and pairs. Processes have the names that they have at the end. */
static struct mmt_error *name_tasks(struct grouping *grouping)
{
	bool is_pair = grouping->report->then_by != MMT_BY_STACK;

	for (size_t i = 0; i < grouping->row_count; i++) {
		const struct row_description *row = &grouping->rows->items.items[i];
		CLEANUP(free) char *text = NULL;

		if (row->by != MMT_BY_PROCESS && !is_pair)
			continue;
		text = is_pair ? name_pair(grouping, row) : name_by(grouping->replay, row, row->by, NULL);
		grouping->figures[i].name = text ? arena_string(grouping->arena, text) : NULL;
		if (!grouping->figures[i].name)
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *add_allocation(struct grouping *grouping, const struct allocation *allocation, uint32_t number)
{
	struct mmt_row *row = &grouping->figures[number - 1];
	uint64_t key = (uint64_t)(number - 1) << 32 | allocation->thread;
	const uint64_t *bytes = map_get(&grouping->thread_bytes, key);

	if (!row->unfreed_count || allocation->time_ns < row->first_ns)
		row->first_ns = allocation->time_ns;
	if (allocation->time_ns > row->last_ns)
		row->last_ns = allocation->time_ns;
	if (allocation->live_bytes < row->smallest_bytes)
		row->smallest_bytes = allocation->live_bytes;
	if (allocation->live_bytes > row->largest_bytes)
		row->largest_bytes = allocation->live_bytes;
	row->original_bytes += allocation->original_bytes;
	row->unfreed_count++;
	if (!bytes)
		row->thread_count++;
	return map_put(&grouping->thread_bytes, key, (bytes ? *bytes : 0) + allocation->live_bytes) ? NULL
												    : &error_no_memory;
}

static struct mmt_error *add_allocations(struct grouping *grouping)
{
	const struct ledger *ledger = &grouping->replay->ledger;

	for (size_t i = 0; i < ledger->allocations.count; i++) {
		const struct allocation *allocation = &ledger->allocations.items[i];
		struct mmt_error *error;
		uint32_t row;

		/* For lost calls, the number of calls, their times and their threads are unknown. */
		if (!allocation->in_use || allocation->account == LEDGER_NO_ACCOUNT || !allocation->live_bytes ||
		    allocation->found)
			continue;
		row = ledger->accounts.items[allocation->account].row;
		if (row == LEDGER_NO_ROW)
			continue;
		error = add_allocation(grouping, allocation, row);
		if (error)
			return error;
	}
	return NULL;
}

struct thread_share {
	uint32_t thread;
	uint64_t bytes;
};

static int compare_shares(const void *left, const void *right)
{
	const struct thread_share *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

static struct mmt_error *list_pids(struct grouping *grouping, struct mmt_row *row)
{
	int32_t *pids = arena_alloc(grouping->arena, row->thread_count, sizeof(*pids));
	struct map seen = {0};

	if (!pids)
		return &error_no_memory;
	for (size_t i = 0; i < row->thread_count; i++) {
		int32_t pid = row->threads[i].pid;

		if (map_get(&seen, (uint32_t)pid))
			continue;
		pids[row->pid_count++] = pid;
		if (!map_put(&seen, (uint32_t)pid, 1)) {
			map_deinit(&seen);
			return &error_no_memory;
		}
	}
	map_deinit(&seen);
	row->pids = pids;
	return NULL;
}

static struct mmt_error *list_threads(struct grouping *grouping, struct mmt_row *row, struct thread_share *shares)
{
	struct mmt_thread *threads = arena_alloc(grouping->arena, row->thread_count, sizeof(*threads));

	if (!threads)
		return &error_no_memory;
	qsort(shares, row->thread_count, sizeof(*shares), compare_shares);
	for (size_t i = 0; i < row->thread_count; i++) {
		const struct replay *replay = grouping->replay;
		const struct replay_thread *thread = &replay->threads.items[shares[i].thread];

		threads[i].pid = processes_at(replay->processes, thread->process)->pid;
		threads[i].tid = thread->tid;
		threads[i].name =
		    arena_string(grouping->arena, processes_name(replay->processes, thread->thread->name));
		if (!threads[i].name)
			return &error_no_memory;
	}
	row->threads = threads;
	return list_pids(grouping, row);
}

/* Add the sums of (row, thread) pairs to their rows. */
static struct mmt_error *add_threads(struct grouping *grouping)
{
	size_t total = grouping->thread_bytes.count, first = 0, position = 0;
	struct thread_share *shares = calloc(total + 1, sizeof(*shares));
	size_t *filled = calloc(grouping->row_count + 1, sizeof(*filled));
	struct mmt_error *error = shares && filled ? NULL : &error_no_memory;
	uint64_t key, bytes;

	for (size_t i = 0; !error && i < grouping->row_count; i++) {
		filled[i] = first;
		first += grouping->figures[i].thread_count;
	}
	while (!error && map_next(&grouping->thread_bytes, &position, &key, &bytes))
		shares[filled[key >> 32]++] = (struct thread_share){.thread = (uint32_t)key, .bytes = bytes};
	for (size_t i = 0; !error && i < grouping->row_count; i++) {
		struct mmt_row *row = &grouping->figures[i];

		error = list_threads(grouping, row, shares + filled[i] - row->thread_count);
	}
	free(shares);
	free(filled);
	return error;
}

static int compare_pids(const void *left, const void *right)
{
	const int32_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Stacks that only made memory accessible that others had mapped have no threads: list their processes. */
static struct mmt_error *add_committers(struct grouping *grouping)
{
	size_t *counts = calloc(grouping->row_count + 1, sizeof(*counts)), position = 0;
	struct mmt_error *error = counts ? NULL : &error_no_memory;
	uint64_t key, value;

	while (!error && map_next(&grouping->sums.committers, &position, &key, &value))
		counts[key >> 32]++;
	position = 0;
	while (!error && map_next(&grouping->sums.committers, &position, &key, &value)) {
		struct mmt_row *row = &grouping->figures[key >> 32];
		int32_t *pids = (int32_t *)row->pids;

		if (row->thread_count)
			continue;
		if (!row->pid_count)
			row->pids = pids = arena_alloc(grouping->arena, counts[key >> 32], sizeof(*pids));
		if (!pids)
			error = &error_no_memory;
		else
			pids[row->pid_count++] = processes_at(grouping->replay->processes, (uint32_t)key)->pid;
	}
	for (size_t i = 0; !error && i < grouping->row_count; i++) {
		struct mmt_row *row = &grouping->figures[i];
		int32_t *pids = (int32_t *)row->pids;
		size_t kept = 0;

		if (row->thread_count || !row->pid_count)
			continue;
		qsort(pids, row->pid_count, sizeof(*pids), compare_pids);
		/* Two processes may have had the same PID, one after the other. */
		for (size_t k = 0; k < row->pid_count; k++) {
			if (!k || pids[k] != pids[k - 1])
				pids[kept++] = pids[k];
		}
		row->pid_count = kept;
	}
	free(counts);
	return error;
}

/* The second sort key, for rows with equal memory (usually none): unfreed bytes, or bytes used in memory that others
 * reserved. */
static uint64_t rank_bytes(const struct mmt_row *row)
{
	uint64_t committed = row->committed_bytes + row->committed_before_bytes;

	return row->unfreed_bytes > committed ? row->unfreed_bytes : committed;
}

/* `left`, `right`: row numbers. */
static int compare_rows(const void *left, const void *right, void *context)
{
	const struct mmt_row *figures = context;
	const struct mmt_row *a = &figures[*(const uint32_t *)left], *b = &figures[*(const uint32_t *)right];

	if (a->memory_bytes != b->memory_bytes)
		return a->memory_bytes < b->memory_bytes ? 1 : -1;
	if (rank_bytes(a) != rank_bytes(b))
		return rank_bytes(a) < rank_bytes(b) ? 1 : -1;
	if (a->allocated_bytes != b->allocated_bytes)
		return a->allocated_bytes < b->allocated_bytes ? 1 : -1;
	return a < b ? -1 : a > b;
}

static void count_unnamed(struct mmt_completeness *completeness, const struct mmt_frame *frame)
{
	if (frame->function)
		return;
	completeness->frames_without_name++;
	completeness->jit_frames_without_name += frame->kind == MMT_FRAME_JIT;
	completeness->runtime_frames_without_name += mmt_frame_is_runtime(frame);
}

static void add_to_report(struct mmt_report *report, const struct mmt_row *row)
{
	figures_add_to_report(report, row);
	report->completeness.frames += row->frame_count;
	for (size_t i = 0; i < row->frame_count; i++)
		count_unnamed(&report->completeness, row->frames[i]);
}

struct mmt_error *row_figures_verify(const struct mmt_row *row)
{
	/* A sum that has reached its maximum cannot be verified. */
	if (row->allocated_bytes == MMT_BYTES_MAX || row->allocated_bytes - row->freed_bytes == row->unfreed_bytes)
		return NULL;
	return error_create(MMT_ERROR_INTERNAL,
			    "a bug in mmtrace: %" PRIu64 " bytes mapped, %" PRIu64 " freed, but %" PRIu64
			    " unfreed%s%s; please report it",
			    row->allocated_bytes, row->freed_bytes, row->unfreed_bytes,
			    row->frame_count && row->frames[0]->function ? " by a stack that begins with " : "",
			    row->frame_count && row->frames[0]->function ? row->frames[0]->function : "");
}

/* For each row, the row that had reserved most of the bytes it committed; row_count: none. */
static struct mmt_error *link_reservers(struct grouping *grouping, const uint32_t *ids)
{
	uint64_t *most = calloc(grouping->row_count + 1, sizeof(*most));
	size_t position = 0;
	uint64_t key, bytes;

	if (!most)
		return &error_no_memory;
	while (map_next(&grouping->sums.reservers, &position, &key, &bytes)) {
		size_t row = (size_t)(key >> 32) - 1;
		uint32_t id = ids[(uint32_t)key - 1];

		if (bytes < most[row] || (bytes == most[row] && grouping->figures[row].reserved_by < id))
			continue;
		most[row] = bytes;
		grouping->figures[row].reserved_by = id;
	}
	free(most);
	return NULL;
}

/* Only the largest rows have steps if there are too many rows for all. */
static struct mmt_error *copy_steps(struct grouping *grouping, struct mmt_row *row, uint32_t number)
{
	size_t count = grouping->report->step_count;
	uint64_t *bytes;

	if (!count || grouping->step_figures + count > LIMIT_STEP_FIGURES)
		return NULL;
	grouping->step_figures += count;
	bytes = arena_alloc(grouping->arena, count, sizeof(*bytes));
	if (!bytes)
		return &error_no_memory;
	steps_of_rows_get(&grouping->replay->ledger.steps, number, bytes, count);
	row->step_bytes = bytes;
	row->step_count = count;
	return NULL;
}

/* Move each row to the place of its id, one at a time: there may be many, and they are large. */
static void sort_rows(struct mmt_row *figures, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		while (figures[i].id != i + 1) {
			struct mmt_row *place = &figures[figures[i].id - 1], row = *place;

			*place = figures[i];
			figures[i] = row;
		}
	}
}

static struct mmt_error *rank(struct grouping *grouping)
{
	CLEANUP(free) uint32_t *order = calloc(grouping->row_count + 1, sizeof(*order));
	uint32_t *ids = arena_alloc(grouping->arena, grouping->row_count + 1, sizeof(*ids));
	size_t count = grouping->row_count;
	struct mmt_error *error = NULL;

	if (!order || !ids)
		return &error_no_memory;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), compare_rows, grouping->figures);
	/* The largest have steps, if there are too many. */
	for (size_t i = 0; !error && i < count; i++)
		error = copy_steps(grouping, &grouping->figures[order[i]], order[i] + 1);
	if (error)
		return error;
	for (size_t i = 0; i < count; i++)
		grouping->figures[order[i]].id = ids[order[i]] = (uint32_t)i + 1;
	grouping->rows->row_ids = ids;
	error = link_reservers(grouping, ids);
	sort_rows(grouping->figures, count);
	grouping->report->rows = grouping->figures;
	grouping->report->row_count = count;
	return error ? error : row_causes_build(grouping->report, grouping->figures, grouping->arena);
}

static void set_residency_unknown(struct mmt_row *row)
{
	row->memory_bytes = row->committed_bytes;
	figure_add(&row->memory_bytes, row->committed_before_bytes);
	row->resident_bytes = row->resident_before_bytes = MMT_UNKNOWN;
}

static uint64_t count_live_threads(const struct replay *replay, const struct mmt_row *row)
{
	uint64_t count = 0;

	for (size_t i = 0; row->pattern == MMT_PATTERN_THREAD_STACK && i < row->pid_count; i++) {
		const struct process *process = processes_find(replay->processes, row->pids[i]);

		for (const struct thread *thread = process ? process->threads : NULL; thread; thread = thread->next)
			count++;
	}
	return count;
}

/* Rows other than stacks have the pattern that most of their memory has, so that an allocator's memory is not called a
 * leak of the function that called it. All rows have the hint of their pattern. */
static struct mmt_error *find_patterns(struct grouping *grouping)
{
	const struct ledger *ledger = &grouping->replay->ledger;
	CLEANUP(free) uint64_t(*bytes)[MMT_PATTERN_KINDS] = calloc(grouping->row_count + 1, sizeof(*bytes));
	CLEANUP(free) struct arena_bytes *arenas = row_kinds_arenas(grouping->replay);

	if (!bytes || !arenas)
		return &error_no_memory;
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];

		if (account->row != LEDGER_NO_ROW)
			bytes[account->row - 1][account->pattern] += grouping->sums.accounts[i].committed_bytes;
	}
	for (size_t i = 0; i < grouping->row_count; i++) {
		struct mmt_row *row = &grouping->figures[i];
		uint64_t committed = row->committed_bytes + row->committed_before_bytes;

		for (unsigned pattern = 1; pattern < MMT_PATTERN_KINDS; pattern++) {
			if (row->name && bytes[i][pattern] > committed / 2)
				row->pattern = (enum mmt_pattern)pattern;
		}
		if (row->pattern)
			row->hint = hints_of_row(row, count_live_threads(grouping->replay, row),
						 row_kinds_arena_use(grouping->replay, arenas, row));
	}
	return NULL;
}

/* Figures that are computed from the sums. */
static struct mmt_error *complete_rows(struct grouping *grouping)
{
	struct mmt_error *error;

	for (size_t i = 0; i < grouping->row_count; i++) {
		struct mmt_row *row = &grouping->figures[i];

		error = row_figures_verify(row);
		if (error)
			return error;
		resident_sums_limit(grouping->resident, &row->resident_bytes,
				    row->committed_bytes + row->reserved_bytes);
		resident_sums_limit(grouping->resident, &row->resident_before_bytes, row->committed_before_bytes);
		if (grouping->sums.resident_known[i])
			row->memory_bytes = row->resident_bytes + row->resident_before_bytes + row->swapped_bytes;
		else
			set_residency_unknown(row);
		if (!row->unfreed_count)
			row->smallest_bytes = 0;
	}
	error = find_patterns(grouping);
	if (!error)
		error = row_verdicts_add(&grouping->replay->ledger, grouping->rows, grouping->arena, grouping->report,
					 grouping->sums.accounts, grouping->figures);
	if (error)
		return error;
	return row_rates_add(&grouping->replay->ledger, grouping->rows, grouping->report, grouping->sums.accounts,
			     grouping->figures);
}

static struct mmt_error *build_level(struct grouping *grouping)
{
	struct mmt_error *error;

	grouping->figures = arena_alloc(grouping->arena, grouping->row_count, sizeof(*grouping->figures));
	grouping->sums.figures = grouping->figures;
	grouping->sums.resident_known = arena_alloc(grouping->arena, grouping->row_count, sizeof(bool));
	grouping->sums.accounts = calloc(grouping->replay->ledger.accounts.count + 1, sizeof(*grouping->sums.accounts));
	if (!grouping->figures || !grouping->sums.resident_known || !grouping->sums.accounts)
		return &error_no_memory;
	error = start_rows(grouping);
	if (!error)
		error = name_tasks(grouping);
	if (!error)
		error = identify_stacks(grouping);
	if (!error)
		error = add_unfreed_sums(grouping->replay, grouping->rows, &grouping->sums);
	if (!error)
		error = publish_residents(grouping);
	if (!error)
		error = add_allocations(grouping);
	if (!error)
		error = row_kinds_add(&grouping->replay->ledger, grouping->rows, grouping->arena, grouping->figures);
	if (!error)
		error = add_threads(grouping);
	return error ? error : add_committers(grouping);
}

static void grouping_deinit(struct grouping *grouping)
{
	map_deinit(&grouping->sums.reservers);
	map_deinit(&grouping->sums.committers);
	free(grouping->sums.accounts);
	map_deinit(&grouping->thread_bytes);
}

static bool some_pages_are_known(const struct mmt_report *report)
{
	for (size_t i = 0; i < report->process_count; i++) {
		if (report->processes[i].resident_bytes != MMT_UNKNOWN)
			return true;
	}
	return !report->process_count;
}

static struct mmt_error *publish(struct grouping *grouping)
{
	const struct ledger *ledger = &grouping->replay->ledger;
	struct mmt_report *report = grouping->report;
	struct mmt_error *error;

	/* No pages are known of processes that ended, or called exec before they could be read. */
	report->resident_bytes = grouping->resident && some_pages_are_known(report) ? 0 : MMT_UNKNOWN;
	report->swapped_known = grouping->replay->metadata->has_swapped && !grouping->replay->window.ends_early;
	report->resident_hugetlb_bytes = grouping->resident ? grouping->resident->owned_hugetlb_bytes : 0;
	report->resident_ns = grouping->resident ? grouping->resident->time_ns : 0;
	report->unfiltered_unfreed_bytes = grouping->sums.unfreed_bytes;
	report->unfiltered_committed_bytes = grouping->sums.committed_bytes;
	if (ledger->rows.count) {
		report->peak_bytes = ledger->rows.items[LEDGER_ROW_TOTAL].peak_bytes;
		report->peak_ns = ledger->rows.items[LEDGER_ROW_TOTAL].peak_ns;
	}
	error = complete_rows(grouping);
	for (size_t i = 0; !error && i < grouping->row_count; i++)
		add_to_report(report, &grouping->figures[i]);
	if (!error)
		error = rank(grouping);
	if (!error)
		row_rates_sum(report);
	return error;
}

struct mmt_error *row_figures_build(struct replay *replay, struct rows *rows, const struct resident_sums *resident,
				    struct arena *arena, struct mmt_report *report)
{
	struct grouping grouping = {.replay = replay,
				    .rows = rows,
				    .arena = arena,
				    .report = report,
				    .row_count = rows->items.count,
				    .resident = resident};
	struct mmt_error *error = build_level(&grouping);

	if (!error)
		error = publish(&grouping);
	grouping_deinit(&grouping);
	return error;
}

/* Add `bytes` to what the account committed. */
static bool add_committer(const struct replay *replay, struct survivor_sums *sums, uint32_t row,
			  const struct account *committer, uint64_t bytes)
{
	sums->accounts[committer - replay->ledger.accounts.items].committed_bytes += bytes;
	return map_put(&sums->committers, (uint64_t)(row - 1) << 32 | committer->process, 1);
}

static bool add_reserver(struct survivor_sums *sums, uint32_t row, uint32_t reserver, uint64_t bytes)
{
	return row == reserver || map_add(&sums->reservers, (uint64_t)row << 32 | reserver, bytes);
}

/* The part that the accessible bytes of an interval count for; NULL: parts are not kept. False: out of memory. */
static bool find_part(struct replay *replay, const struct account *account, const struct allocation *allocation,
		      struct lifetime_part **part_ret)
{
	struct ledger *ledger = &replay->ledger;
	uint32_t number = (uint32_t)(account - ledger->accounts.items);
	bool is_owner = allocation && allocation->account == number;

	*part_ret = NULL;
	if (!ledger->lifetimes.steps_max)
		return true;
	*part_ret = lifetimes_part(&ledger->lifetimes, number, is_owner ? allocation->thread : LEDGER_NO_THREAD);
	return *part_ret;
}

static bool add_owned(struct replay *replay, const struct rows *rows, struct survivor_sums *sums,
		      const struct space_interval *interval, const struct account *owner,
		      const struct allocation *allocation)
{
	uint64_t bytes = interval->end - interval->start;
	struct mmt_row *row = &sums->figures[owner->row - 1];
	const struct account *committer = rows_holder(replay, rows, interval, owner);
	const struct account *reserver = allocation ? ledger_counted(&replay->ledger, allocation->reserver) : NULL;
	bool is_reserved = !interval->attributes.protection;
	struct lifetime_part *part;

	if (!find_part(replay, is_reserved ? owner : committer, allocation, &part))
		return false;
	row->unfreed_bytes += bytes;
	row->class_bytes[owner->memory_class] += bytes;
	if (part && is_reserved)
		part->reserved_bytes += bytes;
	else if (part)
		part->committed_bytes += bytes;
	if (is_reserved) {
		row->reserved_bytes += bytes;
		return true;
	}
	sums->figures[committer->row - 1].committed_bytes += bytes;
	if (!add_committer(replay, sums, committer->row, committer, bytes))
		return false;
	if (!add_reserver(sums, committer->row, owner->row, bytes))
		return false;
	return !reserver || add_reserver(sums, owner->row, reserver->row, bytes);
}

/* Committed in the window by a stack of this report. */
static bool add_unowned(struct replay *replay, const struct rows *rows, struct survivor_sums *sums,
			const struct space_interval *interval, const struct allocation *allocation)
{
	const struct account *committer = rows_committer(replay, interval);
	struct lifetime_part *part;

	if (!committer || !interval->attributes.protection || !rows_exclude_mapping(replay, rows, interval, allocation))
		return true;
	if (!find_part(replay, committer, NULL, &part))
		return false;
	sums->figures[committer->row - 1].committed_before_bytes += interval->end - interval->start;
	if (part)
		part->committed_before_bytes += interval->end - interval->start;
	return add_committer(replay, sums, committer->row, committer, interval->end - interval->start);
}

/* Add resident bytes to the row and to the part of an account. */
static bool publish_resident(struct grouping *grouping, uint64_t key, uint64_t bytes, bool before)
{
	const struct account *account = ledger_counted(&grouping->replay->ledger, (uint32_t)(key >> 32));
	struct lifetimes *lifetimes = &grouping->replay->ledger.lifetimes;
	struct lifetime_part *part;
	struct mmt_row *row;
	uint32_t number;

	if (!account)
		return true;
	number = account->row;
	row = &grouping->figures[number - 1];
	grouping->sums.resident_known[number - 1] = true;
	grouping->sums.accounts[key >> 32].resident_known = true;
	figure_add(&grouping->sums.accounts[key >> 32].used_bytes, bytes);
	figure_add(before ? &row->resident_before_bytes : &row->resident_bytes, bytes);
	if (!lifetimes->steps_max)
		return true;
	part = lifetimes_part(lifetimes, (uint32_t)(key >> 32), (uint32_t)key);
	if (!part)
		return false;
	part->resident_known = true;
	figure_add(before ? &part->resident_before_bytes : &part->resident_bytes, bytes);
	return true;
}

static void publish_swapped(struct grouping *grouping, uint64_t key, uint64_t bytes)
{
	const struct account *account = ledger_counted(&grouping->replay->ledger, (uint32_t)(key >> 32));

	if (!account)
		return;
	figure_add(&grouping->sums.accounts[key >> 32].used_bytes, bytes);
	figure_add(&grouping->figures[account->row - 1].swapped_bytes, bytes);
}

static bool publish_unresolved(struct grouping *grouping, uint64_t number, uint64_t bytes)
{
	const struct allocation *allocation = resident_sums_unresolved(grouping->resident, grouping->replay, number);

	if (!allocation || allocation->account == LEDGER_NO_ACCOUNT)
		return true;
	return publish_resident(grouping, (uint64_t)allocation->account << 32 | allocation->thread, bytes, false);
}

static struct mmt_error *publish_residents(struct grouping *grouping)
{
	size_t owned = 0, before = 0, swapped = 0, unresolved = 0;
	bool ok = true;
	uint64_t key, bytes;

	if (!grouping->resident)
		return NULL;
	while (ok && map_next(&grouping->resident->owned, &owned, &key, &bytes))
		ok = publish_resident(grouping, key, bytes, false);
	while (ok && map_next(&grouping->resident->before, &before, &key, &bytes))
		ok = publish_resident(grouping, key, bytes, true);
	while (ok && map_next(&grouping->resident->swapped, &swapped, &key, &bytes))
		publish_swapped(grouping, key, bytes);
	while (ok && map_next(&grouping->resident->unresolved, &unresolved, &key, &bytes))
		ok = publish_unresolved(grouping, key, bytes);
	resident_sums_limit_parts(grouping->resident, &grouping->replay->ledger.lifetimes);
	return ok ? NULL : &error_no_memory;
}

static bool is_account_of(const struct replay *replay, const struct rows *rows, uint32_t number)
{
	const struct ledger *ledger = &replay->ledger;

	return number < ledger->accounts.count &&
	       rows_selects(rows, processes_at(replay->processes, ledger->accounts.items[number].process));
}

/* Add to the sums that ignore --class, --focus and --ignore. */
static void add_unfiltered(const struct replay *replay, const struct rows *rows, struct survivor_sums *sums,
			   const struct space_interval *interval, const struct allocation *allocation)
{
	uint64_t bytes = interval->end - interval->start;
	uint32_t commit = interval->commit - COMMIT_FIRST;
	bool counts = allocation && is_account_of(replay, rows, allocation->account);

	if (counts)
		sums->unfreed_bytes += bytes;
	if (!interval->attributes.protection)
		return;
	if (!counts && interval->commit >= COMMIT_FIRST && commit < replay->ledger.commits.count)
		counts = rows_exclude_mapping(replay, rows, interval, allocation) &&
			 is_account_of(replay, rows, replay->ledger.commits.items[commit].account);
	if (counts)
		sums->committed_bytes += bytes;
}

static struct mmt_error *add_process(struct replay *replay, const struct rows *rows, struct survivor_sums *sums,
				     const struct process *process)
{
	const struct space_interval *interval, *previous = NULL;

	for (uint64_t address = 0; (interval = space_next(process->space, address)); address = interval->end) {
		const struct allocation *allocation = ledger_allocation(&replay->ledger, interval->allocation);
		const struct account *owner = process_totals_owner(replay, interval);
		bool continues = previous && space_continues_mapping(previous, interval);

		previous = interval;
		add_unfiltered(replay, rows, sums, interval, allocation);
		if (!owner) {
			if (!add_unowned(replay, rows, sums, interval, allocation))
				return &error_no_memory;
			continue;
		}
		sums->figures[owner->row - 1].mapping_count += !continues;
		if (!add_owned(replay, rows, sums, interval, owner, allocation))
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *add_unfreed_sums(struct replay *replay, const struct rows *rows, struct survivor_sums *sums)
{
	struct mmt_error *error = NULL;

	/* A space may contain bytes of any process that ever shared it; the rows decide which are selected. */
	for (size_t i = 0; !error && i < processes_count(replay->processes); i++) {
		const struct process *process = processes_at(replay->processes, (uint32_t)i);

		if (!process->borrows_space)
			error = add_process(replay, rows, sums, process);
	}
	return error;
}
