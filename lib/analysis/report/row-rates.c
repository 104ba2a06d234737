// SPDX-License-Identifier: LGPL-2.1-or-later
/* How fast the memory of each row grows. Slopes of equally long series add up, so the rates of the rows are comparable
 * with that of RSS, which growth-verdict.c computes in the same way. */
#include "analysis/report/report-build.h"

#include "analysis/report/row-verdicts.h"
#include "base/figures.h"

#define POINTS_MIN 3 /* fewer show no slope */
#define USE_SHARE 16 /* of the time since the start: a reading replaces the last one if that is as close to another */

bool row_uses_begin(struct row_uses *uses, uint64_t from_ns, uint64_t time_ns, uint64_t before_ns)
{
	size_t last = uses->count - 1;
	uint64_t gap_ns;
	bool begins;

	if (!uses->count)
		uses->times_ns[last = uses->count++] = from_ns;
	if (time_ns <= uses->times_ns[last])
		return false;
	gap_ns = last ? uses->times_ns[last] - uses->times_ns[last - 1] : UINT64_MAX;
	/* A process read for the first time, between the readings of others, does not show what these have by then. */
	if (last && !before_ns && time_ns - uses->times_ns[last] > gap_ns / 8 && time_ns - uses->times_ns[last] < gap_ns)
		return false;
	begins = gap_ns > (time_ns - from_ns) / USE_SHARE && uses->count < ROW_USES_MAX;
	/* Processes are read one after the other, and once more at the end, perhaps in the middle of a round. */
	if (last && time_ns - uses->times_ns[last] < gap_ns / (before_ns <= uses->times_ns[last - 1] ? 2 : USE_SHARE))
		begins = false;
	uses->count += begins;
	uses->times_ns[uses->count - 1] = time_ns;
	return begins;
}

struct mmt_error *row_uses_change(struct row_uses *uses, struct map *use, struct map *now)
{
	map_each(row, now, true) {
		if (!map_add(use, row->key, -row->value))
			return &error_no_memory;
	}
	map_each(row, use, true) {
		if (row->value && uses->changes++ < LIMIT_USE_CHANGES &&
		    !steps_of_rows_add(&uses->steps, (uint32_t)row->key, (uint32_t)uses->count - 1, -row->value))
			return &error_no_memory;
	}
	map_deinit(use);
	*use = *now;
	*now = (struct map){0};
	return NULL;
}

/* What is resident or swapped out, as in the rate of RSS, of what an account or a row made accessible. */
static double used_share(uint64_t used_bytes, uint64_t committed_bytes)
{
	return used_bytes < committed_bytes ? (double)used_bytes / (double)committed_bytes : 1;
}

/* RSS is read much more often than pages. Processes that lived briefly have none of a row's use in the end. */
static double rss_at(const struct mmt_report *report, uint64_t time_ns)
{
	const struct mmt_resident_reading *readings = report->judged_readings;
	size_t after = partition_point(report->judged_reading_count, i, readings[i].time_ns <= time_ns);

	return after ? (double)readings[after - 1].resident_bytes : 0;
}

/* Which part of its change between two readings of pages a row has made by `time_ns`: the same as RSS if that changed
 * by as much, so that a step does not become a slope. */
static double part_of_change(const struct mmt_report *report, uint64_t before_ns, uint64_t after_ns, uint64_t time_ns,
			     double change)
{
	double before = rss_at(report, before_ns), all = rss_at(report, after_ns) - before, part;

	if (all / change < VERDICT_HALF)
		return (double)(time_ns - before_ns) / (double)(after_ns - before_ns);
	part = (rss_at(report, time_ns) - before) / all;
	return part < 0 ? 0 : part < 1 ? part : 1;
}

/* Which of `count` steps ends at a time: of all that do nearly, with `round` -0.5 the first, and with 0.5 the one
 * after. */
static unsigned point_of(const struct mmt_report *report, uint64_t time_ns, double step_ns, double round,
			 unsigned count)
{
	double point = ((double)time_ns - (double)report->from_ns) / step_ns + round;

	return point > 0 ? point < count ? (unsigned)point : count : 0;
}

bool row_uses_find(const struct resident_sums *resident, const struct mmt_report *report, const struct mmt_row *row,
		   uint32_t number, uint64_t *bytes_ret, unsigned count, unsigned *first_ret, unsigned *end_ret)
{
	const struct row_uses *uses = resident ? resident->uses : NULL;
	double step_ns = (double)(report->to_ns - report->from_ns) / count;
	uint64_t used[ROW_USES_MAX];
	size_t next = 1, use_count = uses ? uses->count : 0, readings = report->resident_reading_count;
	unsigned at;

	/* Of processes that end together, only the readings before count, as in the verdict. */
	if (readings && report->resident_readings[readings - 1].time_ns > report->growth.end_ns)
		use_count = partition_point(use_count, i, uses->times_ns[i] <= report->growth.end_ns);

	/* What is swapped out is only known at the end. */
	if (use_count < 3 || uses->changes >= LIMIT_USE_CHANGES || row->swapped_bytes)
		return false;
	steps_of_rows_get(&uses->steps, number, used, uses->count);
	for (unsigned point = 0; point < count; point++) {
		uint64_t time_ns = report->from_ns + (uint64_t)(step_ns * (point + 1));
		double change;

		while (next + 1 < use_count && uses->times_ns[next] < time_ns)
			next++;
		time_ns = time_ns < uses->times_ns[next] ? time_ns : uses->times_ns[next];
		change = (double)used[next] - (double)used[next - 1];
		bytes_ret[point] = used[next - 1];
		if (change != 0)
			bytes_ret[point] +=
			    (uint64_t)(int64_t)(change * part_of_change(report, uses->times_ns[next - 1],
									uses->times_ns[next], time_ns, change));
	}
	*end_ret = point_of(report, uses->times_ns[use_count - 1], step_ns, 0.5, count);
	/* Begin at a reading if most of the time is after it: what lies between two is guessed. */
	for (next = 1;
	     next + 1 < use_count && point_of(report, uses->times_ns[next], step_ns, -0.5, count) < *first_ret;)
		next++;
	at = point_of(report, uses->times_ns[next], step_ns, -0.5, count);
	*first_ret = larger_of(next == 1 || at + at < *first_ret + *end_ret ? at : 0, *first_ret);
	return true;
}

static double share_of_row(const struct mmt_row *row)
{
	return used_share(row->memory_bytes,
			  saturating_add(row->committed_bytes, row->committed_before_bytes, MMT_BYTES_MAX));
}

/* What of a row is new decides how much of its growth is in use: it may also hold memory that was never touched. */
struct recent {
	double bytes, used_bytes;
};

/* By account: what it made accessible, as far as it is still mapped. */
struct accessible {
	uint64_t recent_bytes; /* since rates count */
	uint64_t read_ns;      /* when resident pages of its process were read; UINT64_MAX: not known */
	uint64_t unread_bytes; /* since then */
};

struct mmt_error *row_rates_add(const struct rows *rows, const struct mmt_report *report,
				const struct resident_sums *resident, const struct held_memory *memory,
				struct mmt_row *figures)
{
	const struct ledger *ledger = &rows->replay->ledger;
	CLEANUP(free) struct recent *recents = calloc(rows->items.count + 1, sizeof(*recents));
	CLEANUP(free) struct accessible *accessible = calloc(ledger->accounts.count + 1, sizeof(*accessible));
	double step_ns = (double)(report->to_ns - report->from_ns) / MMT_TREND_POINTS;
	bool judged = report->growth.verdict != MMT_VERDICT_UNKNOWN;
	/* From and to when rates count. */
	uint64_t start_ns =
	    judged ? report->growth.rate_from_ns : report->from_ns + (report->allocations_to_ns - report->from_ns) / 2;
	uint64_t end_ns = smaller_of(judged ? report->growth.end_ns : UINT64_MAX, report->allocations_to_ns);
	unsigned end = point_of(report, end_ns, step_ns, 0.5, MMT_TREND_POINTS);
	unsigned first = point_of(report, start_ns, step_ns, -0.5, end);

	if (!recents || !accessible)
		return &error_no_memory;
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const uint64_t *read_ns =
		    resident ? map_get(&resident->read_ns, ledger->accounts.items[i].process) : NULL;

		accessible[i].read_ns = read_ns ? *read_ns : UINT64_MAX;
	}
	array_each(allocation, ledger->allocations.items, ledger->allocations.count) {
		uint64_t bytes = allocation->live_bytes - allocation->uncommitted_bytes;
		struct accessible *of_account;

		if (!allocation->in_use || allocation->account == LEDGER_NO_ACCOUNT ||
		    allocation->live_bytes < allocation->uncommitted_bytes)
			continue;
		of_account = &accessible[allocation->account];
		if (allocation->time_ns >= start_ns)
			of_account->recent_bytes += bytes;
		if (allocation->time_ns > of_account->read_ns)
			of_account->unread_bytes += bytes;
	}
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];
		const uint64_t *trend;
		struct recent *recent;
		uint64_t points[MMT_TREND_POINTS] = {0}, used_bytes = 0, committed_bytes;
		double share;
		unsigned read = point_of(report, accessible[i].read_ns, step_ns, -0.5, MMT_TREND_POINTS - 1);
		int64_t growth;

		if (account->row == LEDGER_NO_ROW)
			continue;
		recent = &recents[account->row - 1];
		trends_sum(&ledger->commit_trends, account->trend, report->to_ns, 1, points, MMT_TREND_POINTS);
		growth = (int64_t)(points[MMT_TREND_POINTS - 1] - points[first < end ? first : 0]);
		accessible[i].recent_bytes += growth > 0 ? (uint64_t)growth : 0;
		/* Since the point that ends nearest to the reading. */
		growth = (int64_t)(points[MMT_TREND_POINTS - 1] - points[read]);
		accessible[i].unread_bytes += growth > 0 ? (uint64_t)growth : 0;
		/* Pages of memory unmapped since were read, too: only what the row grew by was not. */
		trend = figures[account->row - 1].committed_trend ?: figures[account->row - 1].trend;
		growth = (int64_t)(trend[MMT_TREND_POINTS - 1] - trend[read]);
		accessible[i].unread_bytes = smaller_of(accessible[i].unread_bytes, (uint64_t)larger_of(growth, 0));
		/* In rows of files and classes, what an account made accessible counts for the one that mapped it. */
		for (unsigned kind = 0; kind < HELD_PAGES; kind++)
			figure_add(&used_bytes, memory[i].bytes[kind]);
		committed_bytes = account_committed(&memory[i]);
		committed_bytes -= accessible[i].unread_bytes < committed_bytes ? accessible[i].unread_bytes : 0;
		share = memory[i].resident_known ? used_share(used_bytes, committed_bytes)
						 : share_of_row(&figures[account->row - 1]);
		recent->bytes += (double)accessible[i].recent_bytes;
		recent->used_bytes += (double)accessible[i].recent_bytes * share;
	}
	if (end - first < POINTS_MIN) {
		first = 0;
		end = MMT_TREND_POINTS;
	}
	for (size_t i = 0; i < rows->items.count; i++) {
		const uint64_t *trend = figures[i].committed_trend ? figures[i].committed_trend : figures[i].trend;
		double times[MMT_TREND_POINTS], values[MMT_TREND_POINTS];
		double share =
		    recents[i].bytes > 0 ? recents[i].used_bytes / recents[i].bytes : share_of_row(&figures[i]);
		uint64_t used[MMT_TREND_POINTS];
		unsigned row_first = first, row_end = end;
		bool known = row_uses_find(resident, report, &figures[i], (uint32_t)i + 1, used, MMT_TREND_POINTS,
					   &row_first, &row_end);

		row_end = smaller_of(row_end, end);
		known &= row_end > row_first + POINTS_MIN;
		row_first = known ? row_first + 1 : first;
		row_end = known ? row_end : end;
		for (unsigned point = row_first; point < row_end; point++) {
			times[point] = point;
			/* As of RSS: the lowest in a step. Programs that start in the last moment do not count. */
			values[point] = known ? (double)smaller_of(used[point - 1], used[point])
					      : (double)smaller_of(trend[point - !!point], trend[point]) * share;
		}
		figures[i].bytes_per_minute =
		    report->to_ns < report->from_ns + VERDICT_SPAN_NS
			? MMT_RATE_UNKNOWN
			: bytes_per_minute(slope_of(times + row_first, values + row_first, row_end - row_first),
					   step_ns);
	}
	return NULL;
}
