// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/row-verdicts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/classes.h"
#include "analysis/report/stack-identity.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/wide-sum.h"

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

enum mmt_row_verdict mmt_cause_verdict(const struct mmt_report *report, const struct mmt_cause *cause)
{
	return row_verdict(report, cause->verdict, cause->pattern, cause->unfreed_count);
}

enum mmt_row_verdict mmt_group_verdict(const struct mmt_report *report, const struct mmt_group *group)
{
	bool open = group->verdict == MMT_LIFETIME_TOO_SHORT || group->verdict == MMT_LIFETIME_CACHE;

	if (!open || !group->cause || !report->causes[group->cause - 1].leaks_together)
		return row_verdict(report, group->verdict, group->pattern, group->unfreed_count);
	return mmt_pattern_is_by_design(group->pattern) ? MMT_ROW_KEEPS_GROWING : MMT_ROW_PART_OF_LEAK;
}

bool continues_mapping(const struct space_interval *left, const struct space_interval *right)
{
	const struct space_attributes *a = &left->attributes, *b = &right->attributes;
	bool offset_follows = !b->inode || a->zero || b->file_offset == a->file_offset + (left->end - left->start);

	return left->end == right->start && a->protection == b->protection && a->shared == b->shared &&
	       a->hugetlb == b->hugetlb && a->growsdown == b->growsdown && a->noreserve == b->noreserve &&
	       a->heap == b->heap && a->stack == b->stack && a->ring == b->ring && a->dontfork == b->dontfork &&
	       a->sealed == b->sealed && a->device_major == b->device_major && a->device_minor == b->device_minor &&
	       a->inode == b->inode && a->attachment == b->attachment && offset_follows;
}

static uint64_t account_key(const struct rows *rows, const struct account *account)
{
	return (uint64_t)(rows_shown(rows, account) - 1) << 32 | account->kind;
}

static uint64_t unfreed_bytes(const struct account *account)
{
	uint64_t allocated = wide_sum_get(&account->allocated_bytes, MMT_BYTES_MAX);
	uint64_t freed = wide_sum_get(&account->freed_bytes, MMT_BYTES_MAX);

	return allocated > freed ? allocated - freed : 0;
}

static struct mmt_error *describe_kind(const struct rows *rows, struct arena *arena, const struct account *account,
				       struct mmt_group *group)
{
	uint32_t path = classes_kind_path(account->kind);

	group->memory_class = rows_class(rows, account);
	group->file = path ? arena_string(arena, code_view_path_name(rows->code, path)) : NULL;
	return path && !group->file ? &error_no_memory : NULL;
}

/* The kind with most bytes of each row, and its files. */
static struct mmt_error *add_kinds(const struct ledger *ledger, const struct rows *rows, struct arena *arena,
				   struct mmt_group *groups, struct map *sums)
{
	size_t row_count = rows->items.count, position = 0;
	CLEANUP(free) uint64_t *most = calloc(row_count + 1, sizeof(*most)); /* plus 1; 0: none yet */
	uint64_t key, bytes;

	if (!most)
		return &error_no_memory;
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];

		if (account->row != LEDGER_NO_ROW && !map_add(sums, account_key(rows, account), unfreed_bytes(account)))
			return &error_no_memory;
	}
	while (map_next(sums, &position, &key, &bytes))
		groups[key >> 32].file_count += bytes && classes_kind_path((uint32_t)key);
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];
		struct mmt_error *error;
		uint32_t row;

		if (account->row == LEDGER_NO_ROW)
			continue;
		bytes = *map_get(sums, account_key(rows, account));
		row = rows_shown(rows, account);
		if (bytes < most[row - 1])
			continue;
		most[row - 1] = bytes + 1;
		error = describe_kind(rows, arena, account, &groups[row - 1]);
		if (error)
			return error;
	}
	return NULL;
}

/* The row of an unfreed allocation with a known time; LEDGER_NO_ROW: none. */
static uint32_t row_of(const struct ledger *ledger, const struct rows *rows, const struct allocation *allocation)
{
	const struct account *account;

	if (!allocation->in_use || allocation->account == LEDGER_NO_ACCOUNT || !allocation->live_bytes ||
	    allocation->found)
		return LEDGER_NO_ROW;
	account = &ledger->accounts.items[allocation->account];
	return account->row == LEDGER_NO_ROW ? LEDGER_NO_ROW : rows_shown(rows, account);
}

static void add_to_trend(struct mmt_group *group, const struct mmt_report *report, const struct allocation *allocation)
{
	uint64_t since = allocation->time_ns > report->from_ns ? allocation->time_ns - report->from_ns : 0;
	uint64_t length = report->to_ns > report->from_ns ? report->to_ns - report->from_ns : 0;
	double point = length ? (double)since / (double)length * MMT_TREND_POINTS : 0;

	group->survivor_trend[point < MMT_TREND_POINTS - 1 ? (unsigned)point : MMT_TREND_POINTS - 1] +=
	    allocation->live_bytes;
}

static uint64_t smaller(uint64_t left, uint64_t right)
{
	return left < right ? left : right;
}

static uint64_t larger(uint64_t left, uint64_t right)
{
	return left > right ? left : right;
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
				       const struct mmt_report *report, struct mmt_group *groups)
{
	const struct survivors_window window = window_of(report, rows);
	size_t row_count = rows->items.count;
	CLEANUP(free) struct survivors *survivors = calloc(row_count + 1, sizeof(*survivors));

	if (!survivors)
		return &error_no_memory;
	for (size_t i = 0; i < row_count; i++)
		survivors_begin(&survivors[i], &window, freed_of(ledger, i), groups[i].unfreed_count);
	for (size_t i = 0; i < ledger->allocations.count; i++) {
		const struct allocation *allocation = &ledger->allocations.items[i];
		uint32_t row = row_of(ledger, rows, allocation);

		if (row == LEDGER_NO_ROW)
			continue;
		survivors_add(&survivors[row - 1], &window, allocation->time_ns);
		add_to_trend(&groups[row - 1], report, allocation);
	}
	for (size_t i = 0; i < row_count; i++) {
		groups[i].verdict = survivors_judge(&survivors[i], &window);
		if (groups[i].verdict == MMT_LIFETIME_TOO_SHORT)
			groups[i].advised_ns = survivors_advise(&survivors[i], &window);
		groups[i].outlived_count = survivors[i].old_count;
		groups[i].outlived_ns = survivors[i].outlived_ns;
		for (unsigned point = 1; point < MMT_TREND_POINTS; point++)
			groups[i].survivor_trend[point] += groups[i].survivor_trend[point - 1];
	}
	return NULL;
}

#define GROUP_DETAILS_NO_SET UINT32_MAX
#define COMMIT_POINTS 64 /* of a series that mmt_growth_judge() can judge */

_Static_assert(COMMIT_POINTS % MMT_TREND_POINTS == 0, "a point of the trend is one of the series");

/* Add up the committed bytes until `end_ns` of the rows of each set: what they mapped, with the changes of what is
 * accessible of it, which alone may be negative. `sets` has the set of each row, by row number - 1, or
 * GROUP_DETAILS_NO_SET; `points` has that of each set, and is 0. */
static void add_committed_points(const struct ledger *ledger, const struct rows *rows, uint64_t end_ns,
				 const uint32_t *sets, uint64_t (*points)[COMMIT_POINTS])
{
	for (size_t i = 0; i < rows->items.count; i++) {
		uint64_t mapped[COMMIT_POINTS];

		if (sets[i] == GROUP_DETAILS_NO_SET || i + 1 >= ledger->trends.count)
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
		set = sets[rows_shown(rows, account) - 1];
		if (set != GROUP_DETAILS_NO_SET)
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

/* A group without mappings of its own, for instance a malloc arena that grows into reserved memory, has no lifetimes:
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

/* A row that is no single stack, for instance a function, can both reserve memory and make it accessible: the lifetimes
 * of its few mappings then do not show that it grows. */
static void judge_both_halves(const struct mmt_report *report, const struct survivors_window *window,
			      const uint64_t *points, struct mmt_group *group)
{
	bool open = group->verdict == MMT_LIFETIME_TOO_SHORT || group->verdict == MMT_LIFETIME_CACHE;
	uint64_t advised_ns;

	if (!open || !points[COMMIT_POINTS - 1] ||
	    judge_committed(report, window, points, &advised_ns) != MMT_LIFETIME_LEAK)
		return;
	group->verdict = MMT_LIFETIME_LEAK;
	group->advised_ns = 0;
	/* The evidence is the committed bytes, not lifetimes. */
	group->outlived_count = 0;
	group->outlived_ns = 0;
}

static struct mmt_error *add_committed(const struct ledger *ledger, const struct rows *rows, struct arena *arena,
				       const struct mmt_report *report, struct mmt_group *groups)
{
	const struct survivors_window window = window_of(report, rows);
	size_t row_count = rows->items.count;
	uint32_t count = 0;
	CLEANUP(free) uint64_t(*points)[COMMIT_POINTS] = calloc(ledger->commit_trends.items.count + 1, sizeof(*points));
	CLEANUP(free) uint32_t *sets = calloc(row_count + 1, sizeof(*sets));

	if (!points || !sets)
		return &error_no_memory;
	for (size_t i = 0; i < row_count; i++)
		sets[i] = GROUP_DETAILS_NO_SET;
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];
		uint32_t row = account->row == LEDGER_NO_ROW ? LEDGER_NO_ROW : rows_shown(rows, account);

		if (row != LEDGER_NO_ROW && account->trend && sets[row - 1] == GROUP_DETAILS_NO_SET)
			sets[row - 1] = count++;
	}
	find_committed(ledger, rows, report->allocations_to_ns, sets, points, count);
	for (size_t i = 0; i < row_count; i++) {
		struct mmt_group *group = &groups[i];

		if (sets[i] != GROUP_DETAILS_NO_SET && group->unfreed_count)
			judge_both_halves(report, &window, points[sets[i]], group);
		else if (sets[i] != GROUP_DETAILS_NO_SET && (group->committed_bytes || group->committed_before_bytes))
			group->verdict = judge_committed(report, &window, points[sets[i]], &group->advised_ns);
	}
	find_committed(ledger, rows, report->to_ns, sets, points, count);
	for (size_t i = 0; i < row_count; i++) {
		uint64_t *trend;

		if (sets[i] == GROUP_DETAILS_NO_SET)
			continue;
		trend = arena_alloc(arena, MMT_TREND_POINTS, sizeof(*trend));
		if (!trend)
			return &error_no_memory;
		for (unsigned point = 0; point < MMT_TREND_POINTS; point++)
			trend[point] = points[sets[i]][(point + 1) * (COMMIT_POINTS / MMT_TREND_POINTS) - 1];
		groups[i].committed_trend = trend;
	}
	return NULL;
}

struct mmt_error *group_details_add(const struct replay *replay, const struct rows *rows, struct arena *arena,
				    const struct mmt_report *report, struct mmt_group *groups)
{
	struct map sums = {0};
	struct mmt_error *error = add_kinds(&replay->ledger, rows, arena, groups, &sums);

	map_deinit(&sums);
	if (!error)
		error = add_survivors(&replay->ledger, rows, report, groups);
	return error ? error : add_committed(&replay->ledger, rows, arena, report, groups);
}

/*
 * Judges the lifetimes of the mappings of all rows of a set together. `sets` has the set of each row, by row number -
 * 1, or GROUP_DETAILS_NO_SET; `verdicts_ret` has room for `set_count`.
 */
static struct mmt_error *group_details_judge_sets(const struct ledger *ledger, const struct rows *rows,
						  const struct mmt_report *report, const uint32_t *sets,
						  size_t set_count, enum mmt_lifetime_verdict *verdicts_ret)
{
	const struct survivors_window window = window_of(report, rows);
	CLEANUP(free) struct lifetime_histogram *freed = calloc(set_count + 1, sizeof(*freed));
	CLEANUP(free) struct survivors *survivors = calloc(set_count + 1, sizeof(*survivors));
	CLEANUP(free) uint64_t *counts = calloc(set_count + 1, sizeof(*counts));

	if (!freed || !survivors || !counts)
		return &error_no_memory;
	for (size_t i = 0; i < rows->items.count; i++) {
		if (sets[i] != GROUP_DETAILS_NO_SET)
			lifetime_histogram_join(&freed[sets[i]], freed_of(ledger, i));
	}
	/* Two passes: the number of survivors decides which are old. */
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ledger->allocations.count; i++) {
			uint32_t row = row_of(ledger, rows, &ledger->allocations.items[i]);
			uint32_t set = row == LEDGER_NO_ROW ? GROUP_DETAILS_NO_SET : sets[row - 1];

			if (set == GROUP_DETAILS_NO_SET)
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
	return NULL;
}

#define LEAK_PREFIX "leak "
#define LOST_NAME "[lost calls]"
#define LEAK_SHARE 16 /* a cause is a leak if at least 1/16 of its memory leaks */

struct causes {
	struct mmt_report *report;
	const struct mmt_group *groups;
	struct intern names; /* its ids are those of causes */
	struct intern function_names;
	uint32_t *functions;		     /* by place of the group: id in function_names */
	enum mmt_lifetime_verdict *together; /* by id: on the mappings of all groups of the function */
	struct build_id_paths build_ids;
	struct intern paths;
	uint32_t *group_paths;		     /* by place of the group: id in `paths` */
	enum mmt_lifetime_verdict *of_paths; /* by id */
	uint32_t *of_groups;		     /* by place of the group: its cause */
	struct mmt_cause *items;
	size_t count;
	uint64_t *leaking_bytes, *largest_bytes; /* by cause */
};

/* Show a row that only reserved memory together with the row that committed most of it. */
static void join_halves(struct mmt_group *groups, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct mmt_group *reserver = groups[i].reserved_by ? &groups[groups[i].reserved_by - 1] : NULL;

		if (!reserver || !groups[i].memory_bytes || reserver->memory_bytes || reserver->joined_to)
			continue;
		reserver->joined_to = groups[i].id;
		/* Only the reserving row has the number of mappings. */
		if (!groups[i].hint)
			groups[i].hint = reserver->hint;
	}
}

static const struct mmt_group *find_cause_group(const struct causes *causes, const struct mmt_group *group)
{
	if (group->unfreed_bytes || !group->reserved_by)
		return group;
	return &causes->groups[group->reserved_by - 1];
}

static char *function_of_group(const struct mmt_group *group)
{
	return rows_function_name(group->origin < group->frame_count ? group->frames[group->origin] : NULL);
}

/* NULL: out of memory. The caller frees it. */
static char *name_function(const struct mmt_group *origin)
{
	const char pattern[] = {(char)origin->pattern, 0};

	if (mmt_pattern_is_by_design(origin->pattern))
		return strdup(pattern);
	return origin->lost ? strdup(LOST_NAME) : function_of_group(origin);
}

/*
 * JIT code without names has other addresses after it was compiled again: such a path has several stacks one after
 * another, each of which looks like a cache by itself. Number what is equal in them; GROUP_DETAILS_NO_SET: the stack
 * has no such code. False: out of memory.
 */
static bool number_path(struct causes *causes, const struct mmt_group *group, uint32_t function, uint32_t *path_ret)
{
	uint64_t path[] = {function, 0};
	bool is_unnamed = false;

	*path_ret = GROUP_DETAILS_NO_SET;
	for (size_t i = group->origin; i < group->frame_count && !is_unnamed; i++)
		is_unnamed = group->frames[i]->kind == MMT_FRAME_JIT && !group->frames[i]->function;
	if (!is_unnamed)
		return true;
	path[1] = identity_checksum(&causes->build_ids, group, group->origin);
	*path_ret = intern_put(&causes->paths, path, sizeof(path));
	return *path_ret != INTERN_NONE;
}

/* Number the function or the pattern of each group, and its path. */
static struct mmt_error *find_functions(struct causes *causes)
{
	for (size_t i = 0; i < causes->report->group_count; i++) {
		CLEANUP(free) char *name = name_function(find_cause_group(causes, &causes->groups[i]));

		causes->functions[i] = name ? intern_put_string(&causes->function_names, name) : INTERN_NONE;
		if (causes->functions[i] == INTERN_NONE ||
		    !number_path(causes, &causes->groups[i], causes->functions[i], &causes->group_paths[i]))
			return &error_no_memory;
	}
	return NULL;
}

/* Judge the mappings of all groups with the same number together. Stacks that have freed everything show how long these
 * mappings live. */
static struct mmt_error *judge_numbered(const struct causes *causes, const struct ledger *ledger,
					const struct rows *rows, const uint32_t *numbers, size_t count,
					enum mmt_lifetime_verdict *verdicts_ret)
{
	CLEANUP(free) uint32_t *sets = calloc(rows->items.count + 1, sizeof(*sets));

	if (!sets)
		return &error_no_memory;
	for (size_t i = 0; i < rows->items.count; i++)
		sets[i] = rows->group_ids[i] ? numbers[rows->group_ids[i] - 1] : GROUP_DETAILS_NO_SET;
	return group_details_judge_sets(ledger, rows, causes->report, sets, count, verdicts_ret);
}

static struct mmt_error *judge_functions(struct causes *causes, const struct ledger *ledger, const struct rows *rows)
{
	struct mmt_error *error =
	    judge_numbered(causes, ledger, rows, causes->functions, causes->function_names.count, causes->together);

	return error ? error
		     : judge_numbered(causes, ledger, rows, causes->group_paths, causes->paths.count, causes->of_paths);
}

static bool path_leaks(const struct causes *causes, size_t place)
{
	uint32_t path = causes->group_paths[place];

	return path != GROUP_DETAILS_NO_SET && causes->of_paths[path] == MMT_LIFETIME_LEAK;
}

/* Leaks of a function are a separate cause from its other memory: it may be a wrapper that others call. */
static uint32_t find_cause(struct causes *causes, size_t place)
{
	const struct mmt_group *origin = find_cause_group(causes, &causes->groups[place]);
	const char *function = intern_get(&causes->function_names, causes->functions[place], NULL);
	bool leaks = (origin->verdict == MMT_LIFETIME_LEAK || path_leaks(causes, place)) &&
		     !mmt_pattern_is_by_design(origin->pattern) && !origin->lost;
	CLEANUP(free) char *key = NULL;

	if (asprintf(&key, "%s%s", leaks ? LEAK_PREFIX : "", function) < 0) {
		key = NULL;
		return INTERN_NONE;
	}
	return intern_put_string(&causes->names, key);
}

/* Start a cause with its first group, which is the largest. */
static struct mmt_error *start_cause(struct causes *causes, const struct mmt_group *group, struct arena *arena)
{
	const struct mmt_group *origin = find_cause_group(causes, group);
	struct mmt_cause *cause = &causes->items[causes->count++];
	CLEANUP(free) char *name = NULL;

	*cause = (struct mmt_cause){.pattern =
					mmt_pattern_is_by_design(origin->pattern) ? origin->pattern : MMT_PATTERN_NONE,
				    .memory_class = group->memory_class,
				    .file = group->file,
				    .resident_bytes = MMT_UNKNOWN,
				    .first_ns = UINT64_MAX};
	if (mmt_pattern_is_by_design(origin->pattern))
		return NULL;
	name = origin->lost ? strdup(LOST_NAME) : function_of_group(origin);
	cause->name = name ? arena_string(arena, name) : NULL;
	return cause->name ? NULL : &error_no_memory;
}

static void add(uint64_t *sum, uint64_t bytes)
{
	if (bytes != MMT_UNKNOWN)
		*sum = saturating_add(*sum == MMT_UNKNOWN ? 0 : *sum, bytes, MMT_BYTES_MAX);
}

static void add_group(struct causes *causes, uint32_t number, const struct mmt_group *group)
{
	struct mmt_cause *cause = &causes->items[number];
	uint64_t size = group->memory_bytes ? group->memory_bytes : group->unfreed_bytes;

	add(&cause->memory_bytes, group->memory_bytes);
	add(&cause->unfreed_bytes, group->unfreed_bytes);
	add(&cause->committed_bytes, group->committed_bytes);
	add(&cause->committed_bytes, group->committed_before_bytes);
	add(&cause->reserved_bytes, group->reserved_bytes);
	add(&cause->resident_bytes, group->resident_bytes);
	add(&cause->resident_bytes, group->resident_before_bytes);
	cause->unfreed_count += group->unfreed_count;
	cause->mapping_count += group->mapping_count;
	cause->group_count++;
	if (group->bytes_per_minute == MMT_RATE_UNKNOWN || cause->bytes_per_minute == MMT_RATE_UNKNOWN)
		cause->bytes_per_minute = MMT_RATE_UNKNOWN;
	else
		cause->bytes_per_minute =
		    bytes_per_minute((double)cause->bytes_per_minute + (double)group->bytes_per_minute, 60e9);
	if (group->unfreed_count) {
		cause->first_ns = group->first_ns < cause->first_ns ? group->first_ns : cause->first_ns;
		cause->last_ns = group->last_ns > cause->last_ns ? group->last_ns : cause->last_ns;
	}
	if (group->verdict == MMT_LIFETIME_LEAK)
		add(&causes->leaking_bytes[number], size);
	if (group->verdict && size >= causes->largest_bytes[number]) {
		causes->largest_bytes[number] = size;
		cause->verdict = group->verdict;
	}
}

/* A leak decides unless it is a small part; otherwise the largest row with a verdict does. */
static void decide(struct causes *causes)
{
	for (size_t i = 0; i < causes->count; i++) {
		struct mmt_cause *cause = &causes->items[i];
		uint64_t size = cause->memory_bytes ? cause->memory_bytes : cause->unfreed_bytes;

		if (causes->leaking_bytes[i] && causes->leaking_bytes[i] >= size / LEAK_SHARE)
			cause->verdict = MMT_LIFETIME_LEAK;
		if (!cause->unfreed_count)
			cause->first_ns = cause->last_ns = MMT_UNKNOWN;
	}
}

static struct mmt_error *add_groups(struct causes *causes, struct arena *arena)
{
	size_t count = causes->report->group_count;

	for (size_t i = 0; i < count; i++) {
		const struct mmt_group *group = &causes->groups[i];
		struct mmt_error *error = NULL;

		causes->of_groups[i] = INTERN_NONE;
		if (!group->unfreed_bytes && !group->memory_bytes)
			continue;
		causes->of_groups[i] = find_cause(causes, i);
		if (causes->of_groups[i] == INTERN_NONE)
			return &error_no_memory;
		if (causes->of_groups[i] == causes->count)
			error = start_cause(causes, group, arena);
		if (error)
			return error;
		add_group(causes, causes->of_groups[i], group);
	}
	return NULL;
}

/* True if a leak of the same function is a separate cause. */
static int has_leaking_sibling(const struct causes *causes, const struct mmt_cause *cause)
{
	CLEANUP(free) char *key = NULL;

	if (!cause->name)
		return false;
	if (asprintf(&key, LEAK_PREFIX "%s", cause->name) < 0) {
		key = NULL;
		return -1;
	}
	return intern_find(&causes->names, key, strlen(key) + 1) != INTERN_NONE;
}

/* The groups of a cause are a leak together; not if the leaks of the same function are a separate cause. */
static struct mmt_error *set_leaks_together(const struct causes *causes, struct mmt_cause *cause)
{
	int leaking_sibling = has_leaking_sibling(causes, cause);

	if (leaking_sibling < 0)
		return &error_no_memory;
	if (!leaking_sibling && cause->verdict != MMT_LIFETIME_LEAK) {
		cause->verdict = MMT_LIFETIME_LEAK;
		cause->leaks_together = true;
	}
	return NULL;
}

/* A function leaks if all of its memory together does and no stack of it leaks by itself, or if a path does. */
static struct mmt_error *set_leaking_functions(struct causes *causes)
{
	for (size_t i = 0; i < causes->report->group_count; i++) {
		struct mmt_cause *cause =
		    causes->of_groups[i] == INTERN_NONE ? NULL : &causes->items[causes->of_groups[i]];
		struct mmt_error *error = NULL;

		if (!cause)
			continue;
		if (causes->together[causes->functions[i]] == MMT_LIFETIME_LEAK)
			error = set_leaks_together(causes, cause);
		if (error)
			return error;
		if (path_leaks(causes, i) && causes->groups[i].verdict != MMT_LIFETIME_LEAK) {
			cause->verdict = MMT_LIFETIME_LEAK;
			cause->leaks_together = true;
		}
	}
	return NULL;
}

/*
 * Several stacks make an arena or a heap grow in turns, each too rarely to be judged by itself. So judge the memory
 * that the stacks of a cause made accessible together, if it is most of the cause's memory.
 */
static struct mmt_error *judge_commits_together(struct causes *causes, const struct ledger *ledger,
						const struct rows *rows)
{
	const struct survivors_window window = window_of(causes->report, rows);
	CLEANUP(free) uint32_t *sets = calloc(rows->items.count + 1, sizeof(*sets));
	CLEANUP(free) uint64_t *memory_bytes = calloc(causes->count + 1, sizeof(*memory_bytes));
	CLEANUP(free) uint64_t(*points)[COMMIT_POINTS] = calloc(causes->count + 1, sizeof(*points));
	struct mmt_error *error = NULL;

	if (!sets || !memory_bytes || !points)
		return &error_no_memory;
	for (size_t i = 0; i < rows->items.count; i++) {
		const struct mmt_group *group = rows->group_ids[i] ? &causes->groups[rows->group_ids[i] - 1] : NULL;

		sets[i] = group && !group->unfreed_count ? causes->of_groups[group->id - 1] : GROUP_DETAILS_NO_SET;
		if (sets[i] != GROUP_DETAILS_NO_SET)
			add(&memory_bytes[sets[i]], group->memory_bytes);
	}
	find_committed(ledger, rows, causes->report->allocations_to_ns, sets, points, causes->count);
	for (size_t i = 0; !error && i < causes->count; i++) {
		uint64_t advised_ns;

		if (memory_bytes[i] >= causes->items[i].memory_bytes / 2 &&
		    judge_committed(causes->report, &window, points[i], &advised_ns) == MMT_LIFETIME_LEAK)
			error = set_leaks_together(causes, &causes->items[i]);
	}
	return error;
}

/*
 * RSS is level, but mappings that are hardly touched can leak, for instance the stacks of threads: find how much the
 * unfreed bytes of such causes grew since then.
 */
static void find_unfreed_growth(struct causes *causes)
{
	struct mmt_report *report = causes->report;
	uint64_t length_ns = report->to_ns > report->from_ns ? report->to_ns - report->from_ns : 0;
	uint64_t level_ns =
	    report->growth.settled_ns > report->from_ns ? report->growth.settled_ns - report->from_ns : 0;
	double point = length_ns ? (double)level_ns / (double)length_ns * MMT_TREND_POINTS : 0;
	unsigned first = point < MMT_TREND_POINTS - 1 ? (unsigned)point : MMT_TREND_POINTS - 1;
	uint64_t grown = 0;

	for (size_t i = 0; i < report->group_count; i++) {
		const struct mmt_group *group = &causes->groups[i];
		uint32_t number = causes->of_groups[i];
		const struct mmt_cause *cause = number == INTERN_NONE ? NULL : &causes->items[number];
		uint64_t at_end = group->trend[MMT_TREND_POINTS - 1];

		if (!cause || cause->verdict != MMT_LIFETIME_LEAK || cause->resident_bytes == MMT_UNKNOWN ||
		    cause->memory_bytes > cause->unfreed_bytes / 2)
			continue;
		if (at_end > group->trend[first])
			grown = saturating_add(grown, at_end - group->trend[first], MMT_BYTES_MAX);
	}
	if (grown > report->growth.floor_bytes)
		report->growth.unfreed_growth_bytes = grown;
}

/* List the IDs of the groups of each cause. */
static struct mmt_error *list_groups(struct causes *causes, struct arena *arena)
{
	for (size_t i = 0; i < causes->count; i++) {
		causes->items[i].groups = arena_alloc(arena, causes->items[i].group_count, sizeof(uint32_t));
		if (!causes->items[i].groups)
			return &error_no_memory;
		causes->items[i].group_count = 0;
	}
	for (size_t i = 0; i < causes->report->group_count; i++) {
		struct mmt_cause *cause;

		if (causes->of_groups[i] == INTERN_NONE)
			continue;
		cause = &causes->items[causes->of_groups[i]];
		((uint32_t *)cause->groups)[cause->group_count++] = causes->groups[i].id;
	}
	return NULL;
}

static int compare_causes(const void *left, const void *right)
{
	const struct mmt_cause *a = left, *b = right;

	bool a_leaks = a->verdict == MMT_LIFETIME_LEAK && a->memory_bytes,
	     b_leaks = b->verdict == MMT_LIFETIME_LEAK && b->memory_bytes;

	if (a_leaks != b_leaks)
		return a_leaks ? -1 : 1;
	if (a->memory_bytes != b->memory_bytes)
		return a->memory_bytes < b->memory_bytes ? 1 : -1;
	if (a->unfreed_bytes != b->unfreed_bytes)
		return a->unfreed_bytes < b->unfreed_bytes ? 1 : -1;
	return a->groups[0] < b->groups[0] ? -1 : a->groups[0] > b->groups[0];
}

/* `ledger` NULL: there are no mappings to judge. */
static struct mmt_error *judge_causes(struct causes *causes, const struct ledger *ledger, const struct rows *rows,
				      struct arena *arena)
{
	const struct mmt_growth *growth = &causes->report->growth;
	enum mmt_verdict verdict = growth->by_process ? growth->sum_verdict : growth->verdict;
	struct mmt_error *error = find_functions(causes);

	if (!error && ledger)
		error = judge_functions(causes, ledger, rows);
	if (!error)
		error = add_groups(causes, arena);
	if (!error)
		error = list_groups(causes, arena);
	if (error)
		return error;
	decide(causes);
	error = set_leaking_functions(causes);
	if (!error && ledger)
		error = judge_commits_together(causes, ledger, rows);
	if (verdict == MMT_VERDICT_PLATEAU || verdict == MMT_VERDICT_STEADY)
		find_unfreed_growth(causes);
	return error;
}

struct mmt_error *row_causes_build(struct mmt_report *report, struct mmt_group *groups, const struct ledger *ledger,
				   const struct rows *rows, struct arena *arena)
{
	size_t count = report->group_count;
	CLEANUP(free) uint32_t *of_groups = calloc(count + 1, sizeof(*of_groups));
	CLEANUP(free) uint64_t *leaking_bytes = calloc(count + 1, sizeof(*leaking_bytes));
	CLEANUP(free) uint64_t *largest_bytes = calloc(count + 1, sizeof(*largest_bytes));
	CLEANUP(free) struct mmt_cause *items = calloc(count + 1, sizeof(*items));
	CLEANUP(free) uint32_t *functions = calloc(count + 1, sizeof(*functions));
	CLEANUP(free) enum mmt_lifetime_verdict *together = calloc(count + 1, sizeof(*together));
	CLEANUP(free) uint32_t *group_paths = calloc(count + 1, sizeof(*group_paths));
	CLEANUP(free) enum mmt_lifetime_verdict *of_paths = calloc(count + 1, sizeof(*of_paths));
	struct causes causes = {.report = report,
				.groups = groups,
				.of_groups = of_groups,
				.items = items,
				.functions = functions,
				.together = together,
				.group_paths = group_paths,
				.of_paths = of_paths,
				.leaking_bytes = leaking_bytes,
				.largest_bytes = largest_bytes};
	struct mmt_cause *kept;
	struct mmt_error *error;

	if (report->then_by != MMT_BY_STACK || (report->by != MMT_BY_STACK && report->by != MMT_BY_THREAD))
		return NULL;
	if (!of_groups || !leaking_bytes || !largest_bytes || !items || !functions || !together || !group_paths ||
	    !of_paths)
		return &error_no_memory;
	join_halves(groups, count);
	error = build_id_paths_init(&causes.build_ids, report) ? judge_causes(&causes, ledger, rows, arena)
							       : &error_no_memory;
	intern_deinit(&causes.names);
	intern_deinit(&causes.function_names);
	build_id_paths_deinit(&causes.build_ids);
	intern_deinit(&causes.paths);
	if (error)
		return error;
	kept = arena_alloc(arena, causes.count, sizeof(*kept));
	if (!kept)
		return &error_no_memory;
	qsort(items, causes.count, sizeof(*items), compare_causes);
	if (causes.count)
		memcpy(kept, items, causes.count * sizeof(*items));
	for (size_t i = 0; i < causes.count; i++) {
		for (size_t j = 0; j < kept[i].group_count; j++)
			groups[kept[i].groups[j] - 1].cause = (uint32_t)i + 1;
	}
	report->causes = kept;
	report->cause_count = causes.count;
	return NULL;
}
