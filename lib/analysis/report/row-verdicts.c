// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/row-verdicts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/classes.h"
#include "analysis/report/stack-identity.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/saturating-sum.h"

const char *mmt_lifetime_verdict_name(enum mmt_lifetime_verdict verdict)
{
	static const char *const names[MMT_LIFETIME_KINDS] = {
	    [MMT_LIFETIME_UNKNOWN] = "unknown", [MMT_LIFETIME_TOO_SHORT] = "too-short", [MMT_LIFETIME_LEAK] = "leak",
	    [MMT_LIFETIME_CACHE] = "cache",	[MMT_LIFETIME_TRAFFIC] = "traffic",
	};

	return verdict < MMT_LIFETIME_KINDS ? names[verdict] : "unknown";
}

static enum mmt_row_verdict row_verdict(const struct mmt_report *report, enum mmt_lifetime_verdict verdict,
					enum mmt_pattern pattern, uint64_t unfreed_count)
{
	switch (verdict) {
	case MMT_LIFETIME_LEAK:
		return mmt_pattern_is_by_design(pattern) ? MMT_ROW_KEEPS_GROWING : MMT_ROW_LEAK;
	case MMT_LIFETIME_CACHE:
		return unfreed_count < SURVIVORS_COUNT_MIN ? MMT_ROW_MADE_EARLY : MMT_ROW_CACHE;
	case MMT_LIFETIME_TRAFFIC:
		return MMT_ROW_TRAFFIC;
	case MMT_LIFETIME_TOO_SHORT:
		return report->to_ns - report->from_ns < SURVIVORS_SHORTEST_NS ? MMT_ROW_NO_VERDICT : MMT_ROW_UNDECIDED;
	default:
		return MMT_ROW_NO_VERDICT;
	}
}

enum mmt_row_verdict mmt_verdict_of_cause(const struct mmt_report *report, const struct mmt_cause *cause)
{
	return row_verdict(report, cause->verdict, cause->pattern, cause->unfreed_count);
}

enum mmt_row_verdict mmt_verdict_of_row(const struct mmt_report *report, const struct mmt_row *row)
{
	if (!verdict_is_open(row->verdict) || !row->cause || !report->causes[row->cause - 1].leaks_together)
		return row_verdict(report, row->verdict, row->pattern, row->unfreed_count);
	return mmt_pattern_is_by_design(row->pattern) ? MMT_ROW_KEEPS_GROWING : MMT_ROW_PART_OF_LEAK;
}

static uint64_t account_key(const struct account *account)
{
	return (uint64_t)(account->row - 1) << 32 | account->kind;
}

static uint64_t unfreed_bytes(const struct account *account)
{
	uint64_t allocated = account->allocated_bytes;
	uint64_t freed = account->freed_bytes;

	return allocated > freed ? allocated - freed : 0;
}

static struct mmt_error *describe_kind(const struct rows *rows, struct arena *arena, const struct account *account,
				       struct mmt_row *row)
{
	uint32_t path = classes_kind_path(account->kind);

	row->memory_class = rows_class(rows, account);
	row->file = path ? arena_string(arena, resolver_path_name(rows->code, path)) : NULL;
	return path && !row->file ? &error_no_memory : NULL;
}

/* The kind with most bytes of each row, and its files. */
static struct mmt_error *add_kinds(const struct ledger *ledger, const struct rows *rows, struct arena *arena,
				   struct mmt_row *figures, struct map *sums)
{
	size_t row_count = rows->items.count, position = 0;
	CLEANUP(free) uint64_t *most = calloc(row_count + 1, sizeof(*most)); /* plus 1; 0: none yet */
	uint64_t key, bytes;

	if (!most)
		return &error_no_memory;
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];

		if (account->row != LEDGER_NO_ROW && !map_add(sums, account_key(account), unfreed_bytes(account)))
			return &error_no_memory;
	}
	while (map_next(sums, &position, &key, &bytes))
		figures[key >> 32].file_count += bytes && classes_kind_path((uint32_t)key);
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];
		struct mmt_error *error;
		uint32_t row;

		if (account->row == LEDGER_NO_ROW)
			continue;
		bytes = *map_get(sums, account_key(account));
		row = account->row;
		if (bytes < most[row - 1])
			continue;
		most[row - 1] = bytes + 1;
		error = describe_kind(rows, arena, account, &figures[row - 1]);
		if (error)
			return error;
	}
	return NULL;
}

static uint64_t larger(uint64_t left, uint64_t right)
{
	return left > right ? left : right;
}

#define ONE_ARENA_PERCENT 75
#define ARENAS_ADVISED 2

static bool measure_arenas(const struct replay *replay, const struct rows *rows, const struct process *process,
			   struct arena_bytes *bytes_ret)
{
	struct map threads = {0}; /* -> bytes */
	const struct space_interval *interval;
	uint64_t thread, bytes;
	size_t position = 0;
	bool ok = true;

	for (uint64_t address = 0; ok && (interval = space_next(process->space, address)); address = interval->end) {
		const struct account *owner = process_totals_owner(replay, interval);
		bool is_used = interval->attributes.noreserve && interval->attributes.protection;

		if (is_used && owner && rows_pattern(rows, owner) == MMT_PATTERN_ARENA)
			ok = map_add(&threads, ledger_allocation(&replay->ledger, interval->allocation)->thread,
				     interval->end - interval->start);
	}
	while (map_next(&threads, &position, &thread, &bytes)) {
		bytes_ret->largest = larger(bytes_ret->largest, bytes);
		bytes_ret->all += bytes;
	}
	map_deinit(&threads);
	return ok;
}

struct arena_bytes *row_details_arenas(const struct replay *replay, const struct rows *rows)
{
	size_t count = processes_count(replay->processes);
	struct arena_bytes *bytes = calloc(count + 1, sizeof(*bytes));

	for (size_t i = 0; bytes && i < count; i++) {
		const struct process *process = processes_at(replay->processes, (uint32_t)i);

		if (!process->borrows_space && !measure_arenas(replay, rows, process, &bytes[i])) {
			free(bytes);
			bytes = NULL;
		}
	}
	return bytes;
}

bool row_details_limits_arenas(const struct replay *replay, const struct process *process)
{
	const uint64_t *limit = runtime_options_find(&replay->metadata->options, process->pid, process->program_ns,
						     OPTION_MALLOC_ARENA_MAX);

	return limit && *limit && *limit <= ARENAS_ADVISED;
}

enum arena_use row_details_arena_use(const struct replay *replay, const struct arena_bytes *bytes,
				     const struct mmt_row *row)
{
	uint64_t largest = 0, all = 0;
	bool limited = true;

	for (size_t i = 0; i < row->pid_count; i++) {
		const struct process *process = processes_find(replay->processes, row->pids[i]);

		if (!process)
			continue;
		largest += bytes[process->index].largest;
		all += bytes[process->index].all;
		limited &= row_details_limits_arenas(replay, process);
	}
	if (limited && row->pid_count)
		return ARENAS_LIMITED;
	return all && largest >= all / 100 * ONE_ARENA_PERCENT ? ARENAS_OF_ONE_THREAD : ARENAS_OF_SEVERAL_THREADS;
}

/* The row of an unfreed allocation with a known time; LEDGER_NO_ROW: none. */
static uint32_t row_of(const struct ledger *ledger, const struct allocation *allocation)
{
	const struct account *account;

	if (!allocation->in_use || allocation->account == LEDGER_NO_ACCOUNT || !allocation->live_bytes ||
	    allocation->found)
		return LEDGER_NO_ROW;
	account = &ledger->accounts.items[allocation->account];
	return account->row == LEDGER_NO_ROW ? LEDGER_NO_ROW : account->row;
}

static void add_to_trend(struct mmt_row *row, const struct mmt_report *report, const struct allocation *allocation)
{
	uint64_t since = allocation->time_ns > report->from_ns ? allocation->time_ns - report->from_ns : 0;
	uint64_t length = report->to_ns > report->from_ns ? report->to_ns - report->from_ns : 0;
	double point = length ? (double)since / (double)length * MMT_TREND_POINTS : 0;

	row->survivor_trend[point < MMT_TREND_POINTS - 1 ? (unsigned)point : MMT_TREND_POINTS - 1] +=
	    allocation->live_bytes;
}

static uint64_t smaller(uint64_t left, uint64_t right)
{
	return left < right ? left : right;
}

/* The part of the window in which a selected process lived. A worker that leaked until it ended maps nothing later,
 * which does not make it a cache. */
static struct survivors_window window_of(const struct mmt_report *report, const struct rows *rows)
{
	struct survivors_window window = {
	    .from_ns = report->from_ns, .to_ns = report->allocations_to_ns, .end_ns = report->to_ns};
	uint64_t started_ns = UINT64_MAX, ended_ns = 0;

	for (size_t i = 0; i < processes_count(rows->processes); i++) {
		const struct process *process = processes_at(rows->processes, (uint32_t)i);

		if (!rows_selects(rows, process))
			continue;
		started_ns = smaller(started_ns, process->started_ns);
		ended_ns = larger(ended_ns, process->ended_ns);
	}
	if (larger(started_ns, window.from_ns) >= smaller(ended_ns, window.to_ns))
		return window;
	window.from_ns = larger(started_ns, window.from_ns);
	window.to_ns = smaller(ended_ns, window.to_ns);
	window.end_ns = smaller(ended_ns, window.end_ns);
	return window;
}

/* By row number - 1. */
static const struct lifetime_histogram *freed_of(const struct ledger *ledger, size_t row)
{
	static const struct lifetime_histogram none;

	return row + 1 < ledger->trends.count ? &ledger->trends.items[row + 1].freed : &none;
}

static struct mmt_error *add_survivors(const struct ledger *ledger, const struct rows *rows,
				       const struct mmt_report *report, struct mmt_row *figures)
{
	const struct survivors_window window = window_of(report, rows);
	size_t row_count = rows->items.count;
	CLEANUP(free) struct survivors *survivors = calloc(row_count + 1, sizeof(*survivors));

	if (!survivors)
		return &error_no_memory;
	for (size_t i = 0; i < row_count; i++)
		survivors_begin(&survivors[i], &window, freed_of(ledger, i), figures[i].unfreed_count);
	for (size_t i = 0; i < ledger->allocations.count; i++) {
		const struct allocation *allocation = &ledger->allocations.items[i];
		uint32_t row = row_of(ledger, allocation);

		if (row == LEDGER_NO_ROW)
			continue;
		survivors_add(&survivors[row - 1], &window, allocation->time_ns);
		add_to_trend(&figures[row - 1], report, allocation);
	}
	for (size_t i = 0; i < row_count; i++) {
		figures[i].verdict = survivors_judge(&survivors[i], &window);
		if (figures[i].verdict == MMT_LIFETIME_TOO_SHORT)
			figures[i].advised_ns = survivors_advise(&survivors[i], &window);
		figures[i].outlived_count = survivors[i].old_count;
		figures[i].outlived_ns = survivors[i].outlived_ns;
		for (unsigned point = 1; point < MMT_TREND_POINTS; point++)
			figures[i].survivor_trend[point] += figures[i].survivor_trend[point - 1];
	}
	return NULL;
}

#define COMMIT_POINTS 64 /* of a series that mmt_growth_judge() can judge */

_Static_assert(COMMIT_POINTS % MMT_TREND_POINTS == 0, "a point of the trend is one of the series");

/* Add up the committed bytes until `end_ns` of the rows of each set: what they mapped, with the changes of what is
 * accessible of it, which alone may be negative. `sets` has the set of each row, by row number - 1, or
 * ROW_NO_SET; `points` has that of each set, and is 0. */
static void add_committed_points(const struct ledger *ledger, const struct rows *rows, uint64_t end_ns,
				 const uint32_t *sets, uint64_t (*points)[COMMIT_POINTS])
{
	for (size_t i = 0; i < rows->items.count; i++) {
		uint64_t mapped[COMMIT_POINTS];

		if (sets[i] == ROW_NO_SET || i + 1 >= ledger->trends.count)
			continue;
		ledger_trend(ledger, (uint32_t)i + 1, end_ns, mapped, COMMIT_POINTS);
		for (unsigned point = 0; point < COMMIT_POINTS; point++)
			points[sets[i]][point] += mapped[point];
	}
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];
		uint32_t set;

		if (account->row == LEDGER_NO_ROW || !account->trend)
			continue;
		set = sets[account->row - 1];
		if (set != ROW_NO_SET)
			commit_trends_sum(&ledger->commit_trends, account->trend, end_ns, ledger->bucket_ns,
					  points[set], COMMIT_POINTS);
	}
}

/* The committed bytes of the rows of each of `count` sets. */
static void find_committed(const struct ledger *ledger, const struct rows *rows, uint64_t end_ns, const uint32_t *sets,
			   uint64_t (*points)[COMMIT_POINTS], size_t count)
{
	memset(points, 0, count * sizeof(*points));
	add_committed_points(ledger, rows, end_ns, sets, points);
	for (size_t i = 0; i < count; i++) {
		for (unsigned point = 0; point < COMMIT_POINTS; point++)
			points[i][point] = (int64_t)points[i][point] > 0 ? points[i][point] : 0;
	}
}

/* Small but steady growth, which the rules for RSS treat as noise. */
static bool rises_throughout(const uint64_t *points)
{
	uint64_t before = 0;

	for (unsigned third = 1; third <= 3; third++) {
		uint64_t bytes = points[COMMIT_POINTS * third / 3 - 1];

		if (bytes <= before)
			return false;
		before = bytes;
	}
	return points[0] < before;
}

/* A row without mappings of its own, for instance a malloc arena that grows into reserved memory, has no lifetimes:
 * judge the committed bytes over time, by the rule for RSS. Calls after allocations_to_ns do not count. */
static enum mmt_lifetime_verdict judge_committed(const struct mmt_report *report, const struct survivors_window *window,
						 const uint64_t *points, uint64_t *advised_ns_ret)
{
	static const enum mmt_lifetime_verdict verdicts[MMT_VERDICT_KINDS] = {
	    [MMT_VERDICT_TOO_SHORT] = MMT_LIFETIME_TOO_SHORT, [MMT_VERDICT_GROWING] = MMT_LIFETIME_LEAK,
	    [MMT_VERDICT_PLATEAU] = MMT_LIFETIME_CACHE,	      [MMT_VERDICT_STEADY] = MMT_LIFETIME_CACHE,
	    [MMT_VERDICT_SHRINKING] = MMT_LIFETIME_CACHE,
	};
	struct mmt_resident_reading readings[COMMIT_POINTS] = {{0}};
	uint64_t step_ns = (report->allocations_to_ns - report->from_ns) / COMMIT_POINTS;
	struct mmt_growth growth;
	size_t count = 0;

	for (unsigned i = 0; i < COMMIT_POINTS; i++) {
		uint64_t time_ns = report->from_ns + step_ns * (i + 1);

		if (time_ns >= window->from_ns && time_ns <= window->to_ns)
			readings[count++] =
			    (struct mmt_resident_reading){.time_ns = time_ns, .resident_bytes = points[i]};
	}
	growth = mmt_growth_judge(readings, count);
	*advised_ns_ret = growth.advised_ns;
	if (growth.verdict != MMT_VERDICT_STEADY || !rises_throughout(points))
		return verdicts[growth.verdict];
	*advised_ns_ret = survivors_length(window) * 2;
	return MMT_LIFETIME_TOO_SHORT;
}

void row_verdicts_set_leak(struct mmt_row *row)
{
	row->verdict = MMT_LIFETIME_LEAK;
	row->advised_ns = row->outlived_count = row->outlived_ns = 0;
}

/* A row that is no single stack, for instance a function, can both reserve memory and make it accessible: the lifetimes
 * of its few mappings then do not show that it grows. */
static void judge_both_halves(const struct mmt_report *report, const struct survivors_window *window,
			      const uint64_t *points, struct mmt_row *row)
{
	uint64_t advised_ns;

	if (!verdict_is_open(row->verdict) || !points[COMMIT_POINTS - 1] ||
	    judge_committed(report, window, points, &advised_ns) != MMT_LIFETIME_LEAK)
		return;
	row_verdicts_set_leak(row);
}

/* A stack that is one of several in a row. */
struct part_stack {
	uint32_t row;
	uint64_t committed_bytes;
	struct survivors survivors;
};

/* By row << 32 | stack: the number of its allocations, and then its place in `items`, plus 1. */
struct part_stacks {
	struct map numbers;
	VECTOR(struct part_stack) items;
};

/* Whether the row has several stacks, and its mappings together do not show what it is. Memory that an allocator keeps
 * is no leak of another row. Sets the key of the allocation's stack. */
static bool is_of_open_row(const struct ledger *ledger, const struct rows *rows, const struct mmt_row *figures,
			   const struct allocation *allocation, uint64_t *key_ret)
{
	uint32_t row = row_of(ledger, allocation);
	const struct account *account = row == LEDGER_NO_ROW ? NULL : &ledger->accounts.items[allocation->account];

	if (!account || (!figures[row - 1].name && !figures[row - 1].lines_differ) ||
	    !verdict_is_open(figures[row - 1].verdict) ||
	    (mmt_pattern_is_by_design(rows_pattern(rows, account)) &&
	     !mmt_pattern_is_by_design(figures[row - 1].pattern)))
		return false;
	*key_ret = (uint64_t)row << 32 | account->stack;
	return true;
}

static bool begin_part_stacks(const struct ledger *ledger, const struct survivors_window *window,
			      struct part_stacks *stacks)
{
	size_t position = 0;
	uint64_t key, count;

	while (map_next(&stacks->numbers, &position, &key, &count)) {
		struct part_stack stack = {.row = (uint32_t)(key >> 32)};

		*map_get(&stacks->numbers, key) = count < SURVIVORS_COUNT_MIN ? 0 : stacks->items.count + 1;
		survivors_begin(&stack.survivors, window, freed_of(ledger, stack.row - 1), count);
		if (count >= SURVIVORS_COUNT_MIN && !vector_push(&stacks->items, stack))
			return false;
	}
	return true;
}

static bool judge_part_stacks(const struct ledger *ledger, const struct rows *rows, const struct mmt_report *report,
			      struct mmt_row *figures, struct part_stacks *stacks)
{
	const struct survivors_window window = window_of(report, rows);
	bool ok = true;
	uint64_t key;

	for (size_t i = 0; ok && i < ledger->allocations.count; i++) {
		if (is_of_open_row(ledger, rows, figures, &ledger->allocations.items[i], &key))
			ok = map_add(&stacks->numbers, key, 1);
	}
	if (!ok || !begin_part_stacks(ledger, &window, stacks))
		return false;
	for (size_t i = 0; stacks->items.count && i < ledger->allocations.count; i++) {
		const struct allocation *allocation = &ledger->allocations.items[i];
		struct part_stack *stack;

		if (!is_of_open_row(ledger, rows, figures, allocation, &key) || !*map_get(&stacks->numbers, key))
			continue;
		stack = &stacks->items.items[*map_get(&stacks->numbers, key) - 1];
		survivors_add(&stack->survivors, &window, allocation->time_ns);
		if (allocation->live_bytes > allocation->uncommitted_bytes)
			stack->committed_bytes += allocation->live_bytes - allocation->uncommitted_bytes;
	}
	for (size_t i = 0; i < stacks->items.count; i++) {
		const struct part_stack *stack = &stacks->items.items[i];
		struct mmt_row *row = &figures[stack->row - 1];

		if (stack->committed_bytes >= row->committed_bytes / LEAK_SHARE &&
		    survivors_judge(&stack->survivors, &window) == MMT_LIFETIME_LEAK)
			row_verdicts_set_leak(row);
	}
	return true;
}

/* A row of several stacks leaks if one of them does. Which of the freed mappings were of that stack is not known,
 * so that more of them count. */
static struct mmt_error *add_part_stacks(const struct ledger *ledger, const struct rows *rows,
					 const struct mmt_report *report, struct mmt_row *figures)
{
	struct part_stacks stacks = {0};
	bool ok = judge_part_stacks(ledger, rows, report, figures, &stacks);

	map_deinit(&stacks.numbers);
	vector_deinit(&stacks.items);
	return ok ? NULL : &error_no_memory;
}

/* Number the sets, or (NULL) rows, with memory that was made accessible after it was mapped. */
static uint32_t number_committers(const struct ledger *ledger, const uint32_t *sets, uint32_t *numbers_ret,
				  size_t set_count)
{
	uint32_t count = 0;

	for (size_t i = 0; i < set_count; i++)
		numbers_ret[i] = ROW_NO_SET;
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];
		uint32_t set;

		if (account->row == LEDGER_NO_ROW || !account->trend)
			continue;
		set = account->row - 1;
		set = sets ? sets[set] : set;
		if (set != ROW_NO_SET && numbers_ret[set] == ROW_NO_SET)
			numbers_ret[set] = count++;
	}
	return count;
}

static struct mmt_error *add_committed(const struct ledger *ledger, const struct rows *rows, struct arena *arena,
				       const struct mmt_report *report, struct mmt_row *figures)
{
	const struct survivors_window window = window_of(report, rows);
	size_t row_count = rows->items.count;
	uint32_t count;
	CLEANUP(free) uint64_t(*points)[COMMIT_POINTS] = calloc(ledger->commit_trends.items.count + 1, sizeof(*points));
	CLEANUP(free) uint32_t *sets = calloc(row_count + 1, sizeof(*sets));

	if (!points || !sets)
		return &error_no_memory;
	count = number_committers(ledger, NULL, sets, row_count);
	find_committed(ledger, rows, report->allocations_to_ns, sets, points, count);
	for (size_t i = 0; i < row_count; i++) {
		struct mmt_row *row = &figures[i];

		if (sets[i] != ROW_NO_SET && row->unfreed_count)
			judge_both_halves(report, &window, points[sets[i]], row);
		else if (sets[i] != ROW_NO_SET && (row->committed_bytes || row->committed_before_bytes))
			row->verdict = judge_committed(report, &window, points[sets[i]], &row->advised_ns);
	}
	find_committed(ledger, rows, report->to_ns, sets, points, count);
	for (size_t i = 0; i < row_count; i++) {
		uint64_t *trend;

		if (sets[i] == ROW_NO_SET)
			continue;
		trend = arena_alloc(arena, MMT_TREND_POINTS, sizeof(*trend));
		if (!trend)
			return &error_no_memory;
		for (unsigned point = 0; point < MMT_TREND_POINTS; point++)
			trend[point] = points[sets[i]][(point + 1) * (COMMIT_POINTS / MMT_TREND_POINTS) - 1];
		figures[i].committed_trend = trend;
	}
	return NULL;
}

struct mmt_error *row_details_add(const struct replay *replay, const struct rows *rows, struct arena *arena,
				  const struct mmt_report *report, struct mmt_row *figures)
{
	struct map sums = {0};
	struct mmt_error *error = add_kinds(&replay->ledger, rows, arena, figures, &sums);

	map_deinit(&sums);
	if (!error)
		error = add_survivors(&replay->ledger, rows, report, figures);
	if (!error)
		error = add_part_stacks(&replay->ledger, rows, report, figures);
	return error ? error : add_committed(&replay->ledger, rows, arena, report, figures);
}

/* What is made accessible in turns by several rows of a set, each too rarely to be judged by itself, is a leak if it
 * grows, whatever the lifetimes of their mappings are. */
static struct mmt_error *judge_commits_of_sets(const struct ledger *ledger, const struct rows *rows,
					       const struct mmt_report *report, const uint32_t *sets, size_t set_count,
					       enum mmt_lifetime_verdict *verdicts)
{
	const struct survivors_window window = window_of(report, rows);
	CLEANUP(free) uint32_t *numbers = calloc(set_count + 1, sizeof(*numbers));
	CLEANUP(free) uint32_t *of_rows = calloc(rows->items.count + 1, sizeof(*of_rows));
	uint32_t count = numbers && of_rows ? number_committers(ledger, sets, numbers, set_count) : 0;
	CLEANUP(free) uint64_t(*points)[COMMIT_POINTS] = calloc(count + 1, sizeof(*points));
	uint64_t advised_ns;

	if (!numbers || !of_rows || !points)
		return &error_no_memory;
	for (size_t i = 0; i < rows->items.count; i++)
		of_rows[i] = sets[i] == ROW_NO_SET ? ROW_NO_SET : numbers[sets[i]];
	find_committed(ledger, rows, report->allocations_to_ns, of_rows, points, count);
	for (size_t i = 0; i < set_count; i++) {
		const uint64_t *of_set = numbers[i] == ROW_NO_SET ? NULL : points[numbers[i]];

		if (of_set && of_set[COMMIT_POINTS - 1] && verdicts[i] != MMT_LIFETIME_TRAFFIC &&
		    judge_committed(report, &window, of_set, &advised_ns) == MMT_LIFETIME_LEAK)
			verdicts[i] = MMT_LIFETIME_LEAK;
	}
	return NULL;
}

struct mmt_error *row_verdicts_judge_sets(const struct ledger *ledger, const struct rows *rows,
					  const struct mmt_report *report, const uint32_t *sets, size_t set_count,
					  enum mmt_lifetime_verdict *verdicts_ret)
{
	const struct survivors_window window = window_of(report, rows);
	CLEANUP(free) struct lifetime_histogram *freed = calloc(set_count + 1, sizeof(*freed));
	CLEANUP(free) struct survivors *survivors = calloc(set_count + 1, sizeof(*survivors));
	CLEANUP(free) uint64_t *counts = calloc(set_count + 1, sizeof(*counts));

	if (!freed || !survivors || !counts)
		return &error_no_memory;
	for (size_t i = 0; i < rows->items.count; i++) {
		if (sets[i] != ROW_NO_SET)
			lifetime_histogram_join(&freed[sets[i]], freed_of(ledger, i));
	}
	/* Two passes: the number of survivors decides which are old. */
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ledger->allocations.count; i++) {
			uint32_t row = row_of(ledger, &ledger->allocations.items[i]);
			uint32_t set = row == LEDGER_NO_ROW ? ROW_NO_SET : sets[row - 1];

			if (set == ROW_NO_SET)
				continue;
			if (round)
				survivors_add(&survivors[set], &window, ledger->allocations.items[i].time_ns);
			else
				counts[set]++;
		}
		for (size_t i = 0; !round && i < set_count; i++)
			survivors_begin(&survivors[i], &window, &freed[i], counts[i]);
	}
	for (size_t i = 0; i < set_count; i++)
		verdicts_ret[i] = survivors_judge(&survivors[i], &window);
	return judge_commits_of_sets(ledger, rows, report, sets, set_count, verdicts_ret);
}
