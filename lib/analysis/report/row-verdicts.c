// SPDX-License-Identifier: LGPL-2.1-or-later
/* Judges the memory of rows: by the lifetimes of its mappings, and by what is made accessible over time. */
#include "analysis/report/row-verdicts.h"

#include "analysis/report/report-build.h"

#define COMMIT_POINTS 64 /* of a series that mmt_growth_judge() can judge */

_Static_assert(COMMIT_POINTS % MMT_TREND_POINTS == 0, "a point of the trend is one of the series");

struct judging {
	const struct ledger *ledger; /* that of the rows */
	struct rows *rows;
	const struct mmt_report *report;
	struct survivors_window window;
};

struct row_judgement {
	enum mmt_row_verdict verdict;
	uint64_t advised_ns, outlived_count, outlived_ns; /* see struct mmt_row */
};

bool mmt_row_leaks(enum mmt_row_verdict verdict)
{
	return verdict == MMT_ROW_LEAK || verdict == MMT_ROW_PART_OF_LEAK || verdict == MMT_ROW_KEEPS_GROWING;
}

uint32_t verdict_row_of(const struct ledger *ledger, const struct allocation *allocation)
{
	if (!allocation->in_use || allocation->account == LEDGER_NO_ACCOUNT || !allocation->live_bytes ||
	    allocation->found)
		return LEDGER_NO_ROW;
	return ledger->accounts.items[allocation->account].row;
}

/* The part of the window in which selected processes live: a worker that leaks until it ends maps nothing later. */
static struct survivors_window window_of(const struct mmt_report *report, const struct rows *rows)
{
	struct survivors_window window = {
	    .from_ns = report->from_ns, .to_ns = report->allocations_to_ns, .end_ns = report->to_ns};
	uint64_t started_ns = UINT64_MAX, ended_ns = 0;

	for (const struct process *process = NULL; (process = rows_next(rows, process));) {
		started_ns = smaller_of(process->started_ns, started_ns);
		ended_ns = larger_of(process->ended_ns, ended_ns);
	}
	started_ns = larger_of(started_ns, window.from_ns);
	if (started_ns >= ended_ns || started_ns >= window.to_ns)
		return window;
	window.from_ns = started_ns;
	window.to_ns = smaller_of(ended_ns, window.to_ns);
	window.end_ns = smaller_of(ended_ns, window.end_ns);
	return window;
}

/* `sets`: the set of each account, or VERDICT_NO_SET. */
static struct mmt_error *judge_survivors(const struct judging *judging, const uint32_t *sets, size_t set_count,
					 struct row_judgement *judgements)
{
	const struct ledger *ledger = judging->ledger;
	CLEANUP(free) struct survivors *survivors = calloc(set_count + 1, sizeof(*survivors));
	/* Of most sets nothing was freed: the first histogram is empty. */
	CLEANUP(free) struct lifetime_histogram *freed = calloc(ledger->freed_lifetimes.count + 1, sizeof(*freed));
	CLEANUP(free) uint32_t *places = calloc(set_count + 1, sizeof(*places)); /* in `freed` */
	CLEANUP(free) uint64_t *counts = calloc(set_count + 1, sizeof(*counts));
	CLEANUP(free) bool *joined = calloc(ledger->freed_lifetimes.count + 1, sizeof(*joined));
	uint32_t used = 0;

	if (!survivors || !freed || !places || !counts || !joined)
		return &error_no_memory;
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		uint32_t lifetimes = ledger->accounts.items[i].lifetimes;

		/* Accounts of one stack and pattern share them. */
		if (sets[i] == VERDICT_NO_SET || !lifetimes || joined[lifetimes - 1])
			continue;
		joined[lifetimes - 1] = true;
		if (!places[sets[i]])
			places[sets[i]] = ++used;
		lifetime_histogram_join(&freed[places[sets[i]]], &ledger->freed_lifetimes.items[lifetimes - 1]);
	}
	/* Two passes: the number of survivors decides which are old. */
	for (int round = 0; round < 2; round++) {
		array_each(allocation, ledger->allocations.items, ledger->allocations.count) {
			uint32_t set = verdict_row_of(ledger, allocation) == LEDGER_NO_ROW ? VERDICT_NO_SET
											   : sets[allocation->account];

			if (set == VERDICT_NO_SET)
				continue;
			if (round)
				survivors_add(&survivors[set], &judging->window, allocation->time_ns);
			else
				counts[set]++;
		}
		for (size_t i = 0; !round && i < set_count; i++)
			survivors_begin(&survivors[i], &judging->window, &freed[places[i]], counts[i]);
	}
	for (size_t i = 0; i < set_count; i++) {
		judgements[i] = (struct row_judgement){.verdict = survivors_judge(&survivors[i], &judging->window),
						       .outlived_count = survivors[i].old_count,
						       .outlived_ns = survivors[i].outlived_ns};
		if (judgements[i].verdict == MMT_ROW_UNDECIDED)
			judgements[i].advised_ns = survivors_advise(&survivors[i], &judging->window);
	}
	return NULL;
}

/* Committed bytes over time, of the sets in which something was made accessible after it was mapped. */
struct series {
	uint32_t *of_sets; /* by set: place in `points`, or VERDICT_NO_SET */
	uint64_t (*points)[COMMIT_POINTS];
	size_t count;
};

/* Changes of what is accessible can be negative, as long as they are not added to what was mapped. `are_rows`: the sets
 * are rows, of which it is known how much was mapped over time. Of other sets, only accounts that mapped nothing count.
 */
static struct mmt_error *add_up(const struct judging *judging, const uint32_t *sets, size_t set_count, bool are_rows,
				uint64_t end_ns, struct series *series)
{
	const struct ledger *ledger = judging->ledger;

	*series = (struct series){.of_sets = calloc(set_count + 1, sizeof(uint32_t))};
	if (!series->of_sets)
		return &error_no_memory;
	memset(series->of_sets, UINT8_MAX, set_count * sizeof(uint32_t));
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		if (sets[i] != VERDICT_NO_SET && ledger->accounts.items[i].trend &&
		    series->of_sets[sets[i]] == VERDICT_NO_SET)
			series->of_sets[sets[i]] = (uint32_t)series->count++;
	}
	series->points = calloc(series->count + 1, sizeof(*series->points));
	if (!series->points)
		return &error_no_memory;
	for (size_t i = 0; are_rows && i < set_count && i + 1 < ledger->rows.count; i++) {
		if (series->of_sets[i] != VERDICT_NO_SET)
			ledger_trend(ledger, (uint32_t)i + 1, end_ns, series->points[series->of_sets[i]],
				     COMMIT_POINTS);
	}
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];

		if (sets[i] != VERDICT_NO_SET && account->trend && (are_rows || !account->allocated_bytes))
			trends_sum(&ledger->commit_trends, account->trend, end_ns, ledger->trends.bucket_ns,
				   series->points[series->of_sets[sets[i]]], COMMIT_POINTS);
	}
	for (size_t i = 0; i < series->count; i++) {
		for (unsigned point = 0; point < COMMIT_POINTS; point++)
			series->points[i][point] = (int64_t)series->points[i][point] > 0 ? series->points[i][point] : 0;
	}
	return NULL;
}

/* Judge committed bytes by the rules for RSS. Calls after allocations_to_ns do not count. */
static struct row_judgement judge_series(const struct judging *judging, const uint64_t *points)
{
	static const enum mmt_row_verdict verdicts[MMT_VERDICT_KINDS] = {
	    [MMT_VERDICT_TOO_SHORT] = MMT_ROW_UNDECIDED, [MMT_VERDICT_GROWING] = MMT_ROW_LEAK,
	    [MMT_VERDICT_PLATEAU] = MMT_ROW_CACHE,	 [MMT_VERDICT_STEADY] = MMT_ROW_CACHE,
	    [MMT_VERDICT_SHRINKING] = MMT_ROW_CACHE,
	};
	const struct mmt_report *report = judging->report;
	struct mmt_resident_reading readings[COMMIT_POINTS] = {{0}};
	uint64_t step_ns = (report->allocations_to_ns - report->from_ns) / COMMIT_POINTS;
	uint64_t first = points[COMMIT_POINTS / 3 - 1], second = points[COMMIT_POINTS * 2 / 3 - 1],
		 third = points[COMMIT_POINTS - 1];
	struct mmt_growth growth;
	size_t count = 0;

	for (unsigned i = 0; i < COMMIT_POINTS; i++) {
		uint64_t time_ns = report->from_ns + step_ns * (i + 1);

		if (time_ns >= judging->window.from_ns && time_ns <= judging->window.to_ns)
			readings[count++] =
			    (struct mmt_resident_reading){.time_ns = time_ns, .resident_bytes = points[i]};
	}
	growth = mmt_growth_judge(readings, count);
	/* Small but steady growth, which the rules for RSS treat as noise. */
	if (growth.verdict == MMT_VERDICT_STEADY && first && second > first && third > second && points[0] < third)
		return (struct row_judgement){.verdict = MMT_ROW_UNDECIDED,
					      .advised_ns = survivors_length(&judging->window) * 2};
	return (struct row_judgement){.verdict = verdicts[growth.verdict], .advised_ns = growth.advised_ns};
}

/* Whether memory in the same place can still make it a leak. */
static bool is_open(enum mmt_row_verdict verdict)
{
	return verdict == MMT_ROW_UNDECIDED || verdict == MMT_ROW_CACHE;
}

static struct mmt_error *judge(const struct judging *judging, const uint32_t *sets, size_t set_count, bool are_rows,
			       struct row_judgement *judgements)
{
	struct series series = {0};
	struct mmt_error *error =
	    judge_survivors(judging, sets, set_count, judgements)
		?: add_up(judging, sets, set_count, are_rows, judging->report->allocations_to_ns, &series);

	/* Judge memory that was made accessible after it was mapped, by another stack or before the recording, for
	 * instance a malloc arena that grows. If it is all that a set has, there are no lifetimes; otherwise the
	 * lifetimes of a few mappings, which may be only reserved, do not show that it grows. */
	for (size_t i = 0; !error && i < set_count; i++) {
		const uint64_t *points = series.of_sets[i] == VERDICT_NO_SET ? NULL : series.points[series.of_sets[i]];
		bool unknown = judgements[i].verdict == MMT_ROW_UNKNOWN;
		struct row_judgement judgement;

		if (!points || !points[COMMIT_POINTS - 1] || (!unknown && !is_open(judgements[i].verdict)))
			continue;
		judgement = judge_series(judging, points);
		if (unknown || judgement.verdict == MMT_ROW_LEAK)
			judgements[i] = judgement;
	}
	free(series.of_sets);
	free(series.points);
	return error;
}

/* What leaks of an account. */
enum leak { LEAK_NONE, LEAK_ALONE, LEAK_TOGETHER }; /* its stack does, or only several of them */

/* Judge the sets of all levels. `leaks_ret`: by account. */
static struct mmt_error *find_leaks(const struct judging *judging, uint8_t *leaks_ret)
{
	const struct ledger *ledger = judging->ledger;
	struct verdict_sets sets;
	struct mmt_error *error = verdict_sets_find(judging->rows, judging->report, &sets);

	for (unsigned level = 0; !error && level < VERDICT_LEVELS; level++) {
		CLEANUP(free) struct row_judgement *judgements = calloc(sets.counts[level] + 1, sizeof(*judgements));
		const uint32_t *of_accounts = sets.of_accounts[level];

		error =
		    judgements ? judge(judging, of_accounts, sets.counts[level], false, judgements) : &error_no_memory;
		for (size_t i = 0; !error && i < ledger->accounts.count; i++) {
			if (of_accounts[i] == VERDICT_NO_SET || judgements[of_accounts[i]].verdict != MMT_ROW_LEAK)
				continue;
			if (!leaks_ret[i])
				leaks_ret[i] = level < VERDICT_PATH ? LEAK_ALONE : LEAK_TOGETHER;
			/* The other memory of the function may leak together, too. */
			sets.of_accounts[VERDICT_FUNCTION][i] = VERDICT_NO_SET;
		}
	}
	for (unsigned level = 0; level < VERDICT_LEVELS; level++)
		free(sets.of_accounts[level]);
	return error;
}

/* What leaks of a row, in bytes that are accessible: nothing may be. */
struct leaking {
	bool is[LEAK_TOGETHER + 1];
	double bytes[LEAK_TOGETHER + 1];
	double unkept_bytes; /* of both: what no allocator or runtime keeps by design */
	bool is_unkept;	     /* these are enough for a leak */
};

/* A row leaks if enough of its memory does. Memory that an allocator keeps is no leak of another row. */
static void add_leaks(const struct judging *judging, const struct held_memory *memory, const uint8_t *leaks,
		      struct leaking *leaking, struct mmt_row *rows)
{
	const struct ledger *ledger = judging->ledger;

	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];
		struct leaking *of_row = &leaking[account->row - 1];
		bool is_by_design, counts;

		if (account->row == LEDGER_NO_ROW)
			continue;
		is_by_design = mmt_pattern_is_by_design(account->pattern);
		counts = !is_by_design || mmt_pattern_is_by_design(rows[account->row - 1].pattern);
		of_row->is[counts ? leaks[i] : LEAK_NONE] = true;
		of_row->bytes[counts ? leaks[i] : LEAK_NONE] += (double)account_committed(&memory[i]);
		if (leaks[i] && !is_by_design)
			of_row->unkept_bytes += (double)account_committed(&memory[i]);
	}
	for (size_t i = 0; i < judging->rows->items.count; i++) {
		const double *bytes = leaking[i].bytes, alone = bytes[LEAK_ALONE],
			     together = alone + bytes[LEAK_TOGETHER];
		double least = (bytes[LEAK_NONE] + together) * VERDICT_LEAK_SHARE;
		enum mmt_row_verdict verdict = rows[i].verdict;

		if (leaking[i].is[LEAK_ALONE] && alone >= least && (is_open(verdict) || verdict == MMT_ROW_TRAFFIC))
			rows[i].verdict = MMT_ROW_LEAK;
		else if (leaking[i].is[LEAK_TOGETHER] && together >= least && is_open(verdict))
			rows[i].verdict = rows[i].name ? MMT_ROW_LEAK : MMT_ROW_PART_OF_LEAK;
		leaking[i].is_unkept = leaking[i].unkept_bytes > 0 && leaking[i].unkept_bytes >= least;
		if (rows[i].verdict != verdict)
			rows[i].advised_ns = rows[i].outlived_count = rows[i].outlived_ns = 0;
	}
}

static double late_growth(const uint64_t *points)
{
	return (double)points[COMMIT_POINTS - 1] - (double)points[COMMIT_POINTS / 2 - 1];
}

/* Memory that grows because pages are touched that were mapped before: it may be a buffer that fills. Or each mapping
 * is unmapped soon, for a larger one: a table that grows. `committed`: what was mapped, and made accessible, over time;
 * NULL: no more than was mapped. */
static void judge_use(const struct judging *judging, const struct resident_sums *resident, uint32_t number,
		      const uint64_t *committed, struct mmt_row *row)
{
	uint64_t points[COMMIT_POINTS], mapped[COMMIT_POINTS];
	/* Few mappings are left, which are larger than those that were unmapped. */
	bool replaced = row->verdict == MMT_ROW_TRAFFIC && row->unfreed_count && row->unfreed_count < VERDICT_COUNT &&
			row->freed_count && row->smallest_bytes > row->freed_bytes / row->freed_count;
	double grown, made_accessible, late;
	const uint64_t *late_bytes;
	unsigned first = 0, end;

	/* A queue: each mapping is unmapped soon, but fewer than are mapped. Rows by touch have no trend. Short
	 * saw-teeth can look like a rise, but their peak came earlier. */
	if (row->verdict == MMT_ROW_TRAFFIC)
		ledger_trend(judging->ledger, number, judging->report->allocations_to_ns, mapped, COMMIT_POINTS);
	if (row->verdict == MMT_ROW_TRAFFIC && !replaced && row->memory_bytes >= VERDICT_FLOOR_BYTES &&
	    row->peak_ns >= judging->window.to_ns - survivors_length(&judging->window) / 4 &&
	    late_growth(mapped) >= larger_of((double)judging->report->growth.floor_bytes, VERDICT_FLOOR_BYTES) &&
	    judge_series(judging, mapped).verdict == MMT_ROW_LEAK) {
		row->verdict = MMT_ROW_KEEPS_GROWING;
		return;
	}
	if ((!is_open(row->verdict) && row->verdict != MMT_ROW_UNKNOWN && !replaced) ||
	    row->memory_bytes < VERDICT_FLOOR_BYTES || judging->report->allocations_to_ns < judging->report->to_ns ||
	    !row_uses_find(resident, judging->report, row, number, points, COMMIT_POINTS, &first, &end))
		return;
	grown = late_growth(points);
	late_bytes = map_get(&resident->late, number);
	ledger_trend(judging->ledger, number, judging->report->to_ns, mapped, COMMIT_POINTS);
	/* New mappings may also stand in for others that were unmapped. */
	late = late_bytes && late_growth(mapped) > 0 ? smaller_of((double)*late_bytes, late_growth(mapped)) : 0;
	made_accessible = committed ? late_growth(committed) - late_growth(mapped) : 0;
	/* Which of it is in use is not known: the same share as of all. */
	if (made_accessible > 0 && committed[COMMIT_POINTS - 1])
		late += made_accessible * (double)points[COMMIT_POINTS - 1] / (double)committed[COMMIT_POINTS - 1];
	/* Changes of RSS within a part may be as large, and readings may fall on any of them. */
	if ((grown - late < grown * VERDICT_HALF && !replaced) || grown < (double)judging->report->growth.floor_bytes ||
	    judge_series(judging, points).verdict != MMT_ROW_LEAK)
		return;
	row->verdict = MMT_ROW_KEEPS_GROWING;
	if (replaced && !row->hint)
		row->hint =
		    "its mappings are unmapped after larger ones were mapped: probably the table of a vector or a "
		    "hash map that grows";
	row->advised_ns = row->outlived_count = row->outlived_ns = 0;
}

static struct mmt_error *add_committed_trends(const struct judging *judging, const uint32_t *row_of_accounts,
					      const struct resident_sums *resident, struct mmt_row *rows)
{
	size_t row_count = judging->rows->items.count;
	struct series series;
	struct mmt_error *error = add_up(judging, row_of_accounts, row_count, true, judging->report->to_ns, &series);

	for (size_t i = 0; !error && i < row_count; i++) {
		const uint64_t *points = series.of_sets[i] == VERDICT_NO_SET ? NULL : series.points[series.of_sets[i]];
		uint64_t *trend;

		judge_use(judging, resident, (uint32_t)i + 1, points, &rows[i]);
		if (!points)
			continue;
		trend = arena_alloc(judging->rows->arena, MMT_TREND_POINTS, sizeof(*trend));
		if (!trend)
			error = &error_no_memory;
		for (unsigned point = 0; trend && point < MMT_TREND_POINTS; point++)
			trend[point] = points[(point + 1) * (COMMIT_POINTS / MMT_TREND_POINTS) - 1];
		rows[i].committed_trend = trend;
	}
	free(series.of_sets);
	free(series.points);
	return error;
}

static void add_survivor_trends(const struct judging *judging, struct mmt_row *rows)
{
	const struct ledger *ledger = judging->ledger;
	const struct mmt_report *report = judging->report;
	uint64_t length = report->to_ns > report->from_ns ? report->to_ns - report->from_ns : 0;

	array_each(allocation, ledger->allocations.items, ledger->allocations.count) {
		uint32_t row = verdict_row_of(ledger, allocation);
		uint64_t since = allocation->time_ns > report->from_ns ? allocation->time_ns - report->from_ns : 0;
		double point = length ? (double)since / (double)length * MMT_TREND_POINTS : 0;

		if (row != LEDGER_NO_ROW)
			rows[row - 1]
			    .survivor_trend[point < MMT_TREND_POINTS - 1 ? (unsigned)point : MMT_TREND_POINTS - 1] +=
			    allocation->live_bytes;
	}
	for (size_t i = 0; i < judging->rows->items.count; i++) {
		for (unsigned point = 1; point < MMT_TREND_POINTS; point++)
			rows[i].survivor_trend[point] += rows[i].survivor_trend[point - 1];
	}
}

struct mmt_error *row_verdicts_add(struct rows *rows, const struct mmt_report *report,
				   const struct resident_sums *resident, const struct held_memory *memory,
				   struct mmt_row *figures)
{
	const struct ledger *ledger = &rows->replay->ledger;
	const struct judging judging = {ledger, rows, report, window_of(report, rows)};
	CLEANUP(free) uint32_t *row_of_accounts = calloc(ledger->accounts.count + 1, sizeof(*row_of_accounts));
	CLEANUP(free) uint8_t *leaks = calloc(ledger->accounts.count + 1, sizeof(*leaks));
	CLEANUP(free) struct leaking *leaking = calloc(rows->items.count + 1, sizeof(*leaking));
	CLEANUP(free) struct row_judgement *judgements = calloc(rows->items.count + 1, sizeof(*judgements));
	struct mmt_error *error;
	bool open = false; /* whether it is worth naming all stacks */

	if (!row_of_accounts || !leaks || !leaking || !judgements)
		return &error_no_memory;
	for (size_t i = 0; i < ledger->accounts.count; i++)
		row_of_accounts[i] =
		    ledger->accounts.items[i].row == LEDGER_NO_ROW ? VERDICT_NO_SET : ledger->accounts.items[i].row - 1;
	error = judge(&judging, row_of_accounts, rows->items.count, true, judgements);
	for (size_t i = 0; !error && i < rows->items.count; i++) {
		enum mmt_row_verdict verdict = figures[i].verdict = judgements[i].verdict;

		figures[i].advised_ns = judgements[i].advised_ns;
		figures[i].outlived_count = judgements[i].outlived_count;
		figures[i].outlived_ns = judgements[i].outlived_ns;
		open |= survivors_length(&judging.window) >= VERDICT_SPAN_NS &&
			(is_open(verdict) || verdict == MMT_ROW_TRAFFIC ||
			 (verdict == MMT_ROW_LEAK && mmt_pattern_is_by_design(figures[i].pattern)));
	}
	if (!error && open)
		error = find_leaks(&judging, leaks);
	if (!error && open)
		add_leaks(&judging, memory, leaks, leaking, figures);
	error = error ?: add_committed_trends(&judging, row_of_accounts, resident, figures);
	for (size_t i = 0; i < rows->items.count; i++) {
		struct mmt_row *row = &figures[i];

		/* Tell the words of a row from those of its memory. */
		if (mmt_row_leaks(row->verdict) && mmt_pattern_is_by_design(row->pattern) && !leaking[i].is_unkept)
			row->verdict = MMT_ROW_KEEPS_GROWING;
		else if (row->verdict == MMT_ROW_CACHE && row->unfreed_count < VERDICT_COUNT)
			row->verdict = MMT_ROW_MADE_EARLY;
		else if (row->verdict == MMT_ROW_UNDECIDED && report->to_ns - report->from_ns < VERDICT_SPAN_NS)
			row->verdict = MMT_ROW_TOO_SHORT;
	}
	add_survivor_trends(&judging, figures);
	return error;
}
