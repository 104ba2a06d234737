// SPDX-License-Identifier: LGPL-2.1-or-later
/* Whether the recorded processes grow: the verdict about RSS over time. row-verdicts.c judges single stacks. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis/report/row-verdicts.h"

#define WINDOWS VERDICT_PARTS
#define NEAR_SHARE 5	     /* a group is nearly full if less than 1/this of its limit is left, */
#define NEAR_NS 600000000000 /* or if it is full so soon */
#define HALF (WINDOWS / 2)
#define QUARTER (WINDOWS / 4)
#define GAPS_MAX QUARTER /* parts without a reading */
#define BRIEF_NS 1000000000
#define LITTLE_BYTES 65536     /* any program maps as much when it starts */
#define HEAP_BYTES 1048576     /* likewise, by malloc */
#define LARGE_BYTES (8u << 20) /* of RSS, that a command gave back: it did more than start */
#define NORMAL_BEND 1.652 /* median of the absolute second difference of a normal variable, in standard deviations */

/* The lowest sizes in equal parts of the recording: without what a garbage collector or a cache gives back. */
struct troughs {
	double bytes[WINDOWS], times[WINDOWS]; /* ns since the first reading */
	double highest, lowest;		       /* of them */
	double least;			       /* changes up to this do not count, */
	double floor;			       /* and changes up to this may be noise */
	double level;			       /* what a size may still change while it counts as level */
	double spread;			       /* from the lowest to the highest size of a part, as a rule */
	double start, end;		       /* the first and the last reading */
	size_t first;			       /* the reading that is bytes[0] */
	double before_end;		       /* the highest before the last part */
	uint64_t span_ns;
};

#define SHARED_BYTES_MIN (4u << 20)
#define SHARED_SHARE 32 /* of RSS: with less, RSS is near enough */

bool mmt_growth_goes_by_pss(uint64_t resident_bytes, uint64_t pss_bytes)
{
	uint64_t shared_bytes = resident_bytes > pss_bytes ? resident_bytes - pss_bytes : 0;

	return shared_bytes >= SHARED_BYTES_MIN && shared_bytes >= resident_bytes / SHARED_SHARE;
}

COMPARISON(compare_doubles, double, order_of(*a, *b))

static double median(const double *values, size_t count)
{
	double sorted[WINDOWS];

	memcpy(sorted, values, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_doubles);
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* What is swapped out is not resident, but it is not given back either. */
static double in_use(const struct mmt_resident_reading *reading)
{
	return (double)reading->resident_bytes + (double)reading->swapped_bytes;
}

/* On a busy machine the recorder may make no readings for a while. The memory was probably between what it was before
 * and after that: use the lower of the two. False: too many parts have no reading. */
static bool fill_gaps(struct troughs *troughs, const struct mmt_resident_reading *readings, size_t count,
		      const bool seen[WINDOWS])
{
	size_t gaps = 0;

	for (size_t i = 0; i < WINDOWS; i++) {
		uint64_t start_ns = readings[0].time_ns + (uint64_t)((double)troughs->span_ns * (double)i / WINDOWS);
		size_t next = partition_point(count, j, readings[j].time_ns < start_ns);

		if (seen[i])
			continue;
		if (++gaps > GAPS_MAX || !next || next == count)
			return false;
		troughs->bytes[i] = smaller_of(in_use(&readings[next - 1]), in_use(&readings[next]));
		troughs->times[i] = (double)troughs->span_ns * ((double)i + 0.5) / WINDOWS;
	}
	return true;
}

/* False: too many parts have no reading. */
static bool find_troughs(const struct mmt_resident_reading *readings, size_t count, struct troughs *troughs)
{
	double highest[WINDOWS], spreads[WINDOWS], bends[WINDOWS - 2], peak = 0;
	bool seen[WINDOWS] = {false};
	size_t spread_count = 0;

	troughs->start = in_use(&readings[0]);
	troughs->end = in_use(&readings[count - 1]);
	troughs->before_end = 0;
	troughs->span_ns = readings[count - 1].time_ns - readings[0].time_ns;
	for (size_t i = 0; i < count; i++) {
		double since = (double)(readings[i].time_ns - readings[0].time_ns) / (double)troughs->span_ns;
		size_t window = (size_t)(since * WINDOWS);
		double bytes = in_use(&readings[i]);

		peak = larger_of(peak, bytes);
		if (window >= WINDOWS)
			window = WINDOWS - 1;
		if (!seen[window] || bytes < troughs->bytes[window]) {
			troughs->bytes[window] = bytes;
			troughs->times[window] = (double)(readings[i].time_ns - readings[0].time_ns);
			troughs->first = window ? troughs->first : i;
		}
		highest[window] = seen[window] ? larger_of(highest[window], bytes) : bytes;
		seen[window] = true;
	}
	if (!fill_gaps(troughs, readings, count, seen))
		return false;
	troughs->highest = troughs->lowest = troughs->bytes[0];
	for (size_t i = 0; i < WINDOWS; i++) {
		troughs->highest = larger_of(troughs->highest, troughs->bytes[i]);
		troughs->lowest = smaller_of(troughs->lowest, troughs->bytes[i]);
		if (seen[i])
			spreads[spread_count++] = highest[i] - troughs->bytes[i];
		if (seen[i] && i < WINDOWS - 1)
			troughs->before_end = larger_of(troughs->before_end, highest[i]);
	}
	troughs->spread = median(spreads, spread_count);
	troughs->least = larger_of(VERDICT_FLOOR_BYTES, VERDICT_NEGLIGIBLE * peak);
	/* The standard deviation of the troughs from a smooth line: their second differences ignore a slope. */
	for (size_t i = 0; i < WINDOWS - 2; i++)
		bends[i] = fabs(troughs->bytes[i] - 2 * troughs->bytes[i + 1] + troughs->bytes[i + 2]);
	troughs->floor = larger_of(troughs->least, VERDICT_NOISE * (median(bends, WINDOWS - 2) / NORMAL_BEND));
	troughs->level = larger_of(troughs->floor, VERDICT_SMALL * (troughs->highest - troughs->lowest));
	return true;
}

static double mean_of_quarter(const double *bytes, size_t quarter)
{
	double sum = 0;

	for (size_t i = 0; i < QUARTER; i++)
		sum += bytes[quarter * QUARTER + i];
	return sum / QUARTER;
}

/* The largest rise from a value to a later one; of negative values: the largest fall. */
static double largest_rise(const double *bytes, size_t count, double sign)
{
	double lowest = sign * bytes[0], rise = 0;

	for (size_t i = 1; i < count; i++) {
		rise = larger_of(rise, sign * bytes[i] - lowest);
		lowest = smaller_of(lowest, sign * bytes[i]);
	}
	return rise;
}

/* Whether the size rises, or falls: Kendall's S, the pairs that rise minus those that fall, is at least `z` standard
 * deviations of a series without trend. */
static bool rises_by(const double *bytes, size_t count, int sign, double z)
{
	double n = (double)count, rises = -1;

	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++)
			rises += sign * order_of(bytes[j], bytes[i]);
	return rises > 0 && rises * rises >= z * z * n * (n - 1) * (2 * n + 5) / 18;
}

/* Whether the last quarter is level. */
static bool is_level_at_end(const double *bytes, double level)
{
	const double *last = &bytes[WINDOWS - QUARTER];

	return largest_rise(last, QUARTER, 1) <= level && largest_rise(last, QUARTER, -1) <= level;
}

static bool rises_late(const struct troughs *troughs, const double *bytes)
{
	return bytes[WINDOWS - 1] - bytes[HALF - 1] > troughs->floor &&
	       rises_by(bytes + HALF, HALF, 1, VERDICT_MAYBE_Z);
}

/* The size rose without significant falls: judge whether it still rises. */
static enum mmt_verdict judge_rise(const struct troughs *troughs, const double *bytes)
{
	double all = troughs->highest - troughs->lowest, level = troughs->level;
	double late = bytes[WINDOWS - 1] - bytes[HALF - 1];
	double third = bytes[WINDOWS - 1 - QUARTER] - bytes[HALF - 1], fourth = late - third;
	double last_share = (mean_of_quarter(bytes, 3) - mean_of_quarter(bytes, 2)) /
			    (mean_of_quarter(bytes, 3) - mean_of_quarter(bytes, 0));
	bool level_at_end = is_level_at_end(bytes, level);
	size_t step = HALF; /* the trough of the second half with the largest rise from the one before it */

	for (size_t i = HALF; i < WINDOWS; i++) {
		if (bytes[i] - bytes[i - 1] > bytes[step] - bytes[step - 1])
			step = i;
	}
	if (late > level && bytes[step] - bytes[step - 1] >= (1 - VERDICT_LONG) * late)
		return step < WINDOWS - QUARTER && level_at_end ? MMT_VERDICT_PLATEAU : MMT_VERDICT_TOO_SHORT;
	if (rises_late(troughs, bytes) && fourth >= VERDICT_HALF * third)
		return MMT_VERDICT_GROWING;
	if (rises_by(bytes, WINDOWS, 1, VERDICT_TREND_Z) && last_share >= VERDICT_SMALL)
		return MMT_VERDICT_GROWING;
	return fourth <= VERDICT_SMALL * all && level_at_end ? MMT_VERDICT_PLATEAU : MMT_VERDICT_TOO_SHORT;
}

/* The size rises and falls, within the parts or from part to part: only a trend through all of them counts. */
static enum mmt_verdict judge_trend(const struct troughs *troughs)
{
	const double *bytes = troughs->bytes;
	double change = mean_of_quarter(bytes, 3) - mean_of_quarter(bytes, 0);
	double late = mean_of_quarter(bytes, 3) - mean_of_quarter(bytes, 2);

	if (fabs(change) <= troughs->least || fabs(change) < VERDICT_HALF * troughs->spread ||
	    (!rises_by(bytes, WINDOWS, 1, VERDICT_MAYBE_Z) && !rises_by(bytes, WINDOWS, -1, VERDICT_MAYBE_Z)))
		return MMT_VERDICT_STEADY;
	if (rises_by(bytes, WINDOWS, -1, VERDICT_TREND_Z))
		return MMT_VERDICT_SHRINKING;
	if (rises_by(bytes, WINDOWS, 1, VERDICT_TREND_Z) && late >= change / WINDOWS * 2)
		return MMT_VERDICT_GROWING;
	return MMT_VERDICT_TOO_SHORT;
}

/* Whether two or three saw-teeth, which last for several parts, each end higher than the one before: too few for a
 * trend. */
static bool floors_rise(const struct troughs *troughs, double tooth)
{
	double high = troughs->bytes[0], floor = troughs->bytes[0];
	unsigned falls = 0;

	for (size_t i = 1; i < WINDOWS; i++) {
		double bytes = troughs->bytes[i];

		if (high - bytes >= tooth) {
			if (falls++ && bytes <= floor + troughs->least)
				return false;
			floor = high = bytes;
		}
		high = larger_of(high, bytes);
	}
	return falls >= 2 && falls < VERDICT_TEETH && troughs->highest - troughs->lowest > 2 * troughs->spread;
}

static bool judges_trend(const struct troughs *troughs)
{
	return troughs->highest - troughs->lowest <= larger_of(troughs->floor, troughs->spread / VERDICT_LARGE);
}

static enum mmt_verdict judge(const struct troughs *troughs)
{
	double range = troughs->highest - troughs->lowest;
	double tooth = larger_of(VERDICT_LARGE * range, troughs->least), high = troughs->bytes[0];
	double smoothed[WINDOWS], change, since_start, level = troughs->level;
	unsigned falls = 0; /* by so much, from the highest size since it fell before */

	/* The size is at its maximum, and it is too early to tell whether it stays there. */
	if (range <= troughs->floor && troughs->end - troughs->before_end > larger_of(troughs->floor, troughs->spread))
		return MMT_VERDICT_TOO_SHORT;
	if (range <= troughs->least)
		return MMT_VERDICT_STEADY;
	if (judges_trend(troughs)) {
		enum mmt_verdict verdict = judge_trend(troughs);

		return verdict == MMT_VERDICT_STEADY && floors_rise(troughs, tooth) ? MMT_VERDICT_TOO_SHORT : verdict;
	}
	/* The median of each inner trough and its neighbours keeps steps and removes single spikes. */
	memcpy(smoothed, troughs->bytes, sizeof(smoothed));
	for (size_t i = 1; i + 1 < WINDOWS; i++)
		smoothed[i] = median(&troughs->bytes[i - 1], 3);
	change = mean_of_quarter(smoothed, 3) - mean_of_quarter(smoothed, 0);
	/* A fall or a rise within the first or the last part may be as large as all others. */
	since_start = troughs->end - troughs->start;
	if (change > troughs->floor && since_start >= -troughs->floor &&
	    largest_rise(smoothed, WINDOWS, -1) <= VERDICT_LARGE * range)
		return judge_rise(troughs, smoothed);
	if (change < -troughs->floor && since_start <= troughs->floor &&
	    largest_rise(smoothed, WINDOWS, 1) <= VERDICT_LARGE * range)
		return rises_late(troughs, smoothed) ? MMT_VERDICT_TOO_SHORT : MMT_VERDICT_SHRINKING;
	for (size_t i = 1; i < WINDOWS; i++) {
		bool falls_now = high - troughs->bytes[i] >= tooth;

		falls += falls_now;
		high = falls_now ? troughs->bytes[i] : larger_of(high, troughs->bytes[i]);
	}
	if (falls >= VERDICT_TEETH)
		return judge_trend(troughs);
	/* There are too few saw-teeth for a trend; but if the end is level, the growth is over. */
	change = mean_of_quarter(troughs->bytes, 3) - troughs->bytes[0];
	if (!is_level_at_end(troughs->bytes, level) || rises_late(troughs, smoothed))
		return MMT_VERDICT_TOO_SHORT;
	if (fabs(change) <= level)
		return fabs(since_start) <= level ? MMT_VERDICT_STEADY : MMT_VERDICT_TOO_SHORT;
	if ((change > 0 ? -since_start : since_start) > troughs->floor)
		return MMT_VERDICT_TOO_SHORT;
	return change > 0 ? MMT_VERDICT_PLATEAU : MMT_VERDICT_SHRINKING;
}

/* Since when the size has been from `low` to `high`, at the earliest since the reading `first`; from `free_ns` on, it
 * may be higher. */
static uint64_t find_settled(const struct mmt_resident_reading *readings, size_t first, size_t count, double low,
			     double high, uint64_t free_ns)
{
	for (size_t i = count; i > first; i--) {
		double bytes = in_use(&readings[i - 1]);

		if (bytes < low || (bytes > high && readings[i - 1].time_ns < free_ns))
			return readings[i < count ? i : count - 1].time_ns;
	}
	return readings[first].time_ns;
}

/* Since when the size has been near what it is at the end, apart from saw-teeth. */
static uint64_t find_plateau(const struct mmt_resident_reading *readings, size_t count, const struct troughs *troughs)
{
	double end = troughs->bytes[WINDOWS - 1], high = end + troughs->level;
	double part_ns = (double)troughs->span_ns / WINDOWS;
	size_t part = WINDOWS - 1, first;
	uint64_t from_ns;

	while (part > 0 && troughs->bytes[part - 1] <= high)
		part--;
	from_ns = readings[0].time_ns + (uint64_t)(part_ns * (double)part);
	first = partition_point(count, i, readings[i].time_ns < from_ns);
	return find_settled(readings, first, count, end - troughs->level, high + troughs->spread,
			    from_ns + (uint64_t)part_ns);
}

/* Since when a size that grows or shrinks has been level; 0: it has not. In that time it would have changed by more
 * than noise. Large steps look like noise: there, it has been still for twice as long as from any step to the next. */
static uint64_t find_level_end(const struct mmt_resident_reading *readings, size_t count, const struct troughs *troughs,
			       const struct mmt_growth *growth)
{
	double end = in_use(&readings[count - 1]), floor = troughs->floor, least = troughs->least;
	uint64_t level_ns = find_settled(readings, 0, count, end - floor, end + floor, UINT64_MAX);
	uint64_t still_ns = find_settled(readings, 0, count, end - least, end + least, UINT64_MAX), longest_ns = 0;
	double expected = fabs((double)growth->bytes_per_minute) / 60e9 * (double)(growth->end_ns - level_ns);

	if (growth->end_ns - level_ns >= VERDICT_SPAN_NS / 2 && expected >= VERDICT_NOISE * floor)
		return level_ns;
	for (size_t i = 1, from = 0; i < count && readings[i].time_ns <= still_ns; i++) {
		if (fabs(in_use(&readings[i]) - in_use(&readings[from])) <= least)
			continue;
		longest_ns = larger_of(longest_ns, readings[i].time_ns - readings[from].time_ns);
		from = i;
	}
	return !longest_ns || growth->end_ns - still_ns < larger_of(2 * longest_ns, VERDICT_SPAN_NS / 2) ? 0 : still_ns;
}

int64_t bytes_per_minute(double bytes, double span_ns)
{
	double rate = span_ns > 0 ? bytes * 60e9 / span_ns : 0;

	return fabs(rate) < 9e15 ? (int64_t)rate : rate < 0 ? -9000000000000000 : 9000000000000000;
}

double slope_of(const double *times, const double *values, size_t count)
{
	double middle = 0, sum = 0, squares = 0;

	for (size_t i = 0; i < count; i++)
		middle += times[i] / (double)count;
	for (size_t i = 0; i < count; i++) {
		sum += (times[i] - middle) * values[i];
		squares += (times[i] - middle) * (times[i] - middle);
	}
	return squares > 0 ? sum / squares : 0;
}

/* The rate that the size has now: what happened in the first half, or before it was level, is over. */
static void find_rate(const struct troughs *troughs, struct mmt_growth *growth)
{
	double part_ns = (double)troughs->span_ns / WINDOWS, slope;
	/* With saw-teeth, only all parts show a trend. */
	size_t first = growth->verdict == MMT_VERDICT_GROWING && judges_trend(troughs) ? 0 : HALF;

	if (growth->settled_ns)
		first = (size_t)((double)(growth->settled_ns - growth->start_ns) / part_ns) + 1;
	first = growth->settled_ns && first < HALF ? HALF : first > WINDOWS - QUARTER ? WINDOWS - QUARTER : first;
	slope = slope_of(troughs->times + first, troughs->bytes + first, WINDOWS - first);
	growth->rate_from_ns = growth->start_ns + (uint64_t)(part_ns * (double)first);
	growth->bytes_per_minute = bytes_per_minute(slope, 1);
	if (growth->settled_ns || growth->verdict == MMT_VERDICT_PLATEAU || growth->verdict == MMT_VERDICT_STEADY ||
	    (growth->verdict != MMT_VERDICT_GROWING &&
	     fabs(slope) * part_ns * (double)(WINDOWS - first) <= troughs->floor))
		growth->bytes_per_minute = 0;
}

int64_t mmt_growth_rate_noise(const struct mmt_growth *growth)
{
	return growth->end_ns > growth->rate_from_ns
		   ? bytes_per_minute((double)growth->floor_bytes, (double)(growth->end_ns - growth->rate_from_ns))
		   : 0;
}

static void describe(const struct mmt_resident_reading *readings, size_t count, struct mmt_growth *growth)
{
	size_t most = 0;

	growth->start_bytes = readings[0].resident_bytes;
	growth->start_ns = readings[0].time_ns;
	growth->end_bytes = readings[count - 1].resident_bytes;
	growth->end_ns = readings[count - 1].time_ns;
	growth->start_swap_bytes = readings[0].swapped_bytes;
	growth->end_swap_bytes = readings[count - 1].swapped_bytes;
	for (size_t i = 1; i < count; i++)
		most = readings[i].resident_bytes > readings[most].resident_bytes ? i : most;
	growth->peak_bytes = readings[most].resident_bytes;
	growth->peak_ns = readings[most].time_ns;
	growth->rate_from_ns = growth->start_ns;
	/* What a program does in its first moments says nothing about a minute. */
	if (growth->end_ns >= growth->start_ns + VERDICT_SPAN_NS)
		growth->bytes_per_minute = bytes_per_minute(in_use(&readings[count - 1]) - in_use(&readings[0]),
							    (double)(growth->end_ns - growth->start_ns));
}

/* *first_ret: the lowest reading of the first part, if the parts are known. */
static struct mmt_growth judge_from(const struct mmt_resident_reading *readings, size_t count, size_t *first_ret)
{
	struct mmt_growth growth = {.verdict = MMT_VERDICT_UNKNOWN,
				    .start_bytes = MMT_UNKNOWN,
				    .end_bytes = MMT_UNKNOWN,
				    .peak_bytes = MMT_UNKNOWN,
				    .bytes_per_minute = MMT_RATE_UNKNOWN};
	struct troughs troughs;
	double slope_bytes;
	uint64_t span_ns;

	if (!count)
		return growth;
	describe(readings, count, &growth);
	span_ns = growth.end_ns > growth.start_ns ? growth.end_ns - growth.start_ns : 0;
	growth.verdict = MMT_VERDICT_TOO_SHORT;
	if (count >= VERDICT_READINGS && span_ns >= VERDICT_SPAN_NS && find_troughs(readings, count, &troughs)) {
		growth.verdict = judge(&troughs);
		*first_ret = troughs.first;
		if (growth.verdict == MMT_VERDICT_PLATEAU)
			growth.settled_ns = find_plateau(readings, count, &troughs);
		else if (growth.verdict == MMT_VERDICT_SHRINKING)
			growth.settled_ns = find_level_end(readings, count, &troughs, &growth);
		find_rate(&troughs, &growth);
		/* It fell, and has risen since; or the reverse. */
		if ((growth.verdict == MMT_VERDICT_SHRINKING &&
		     (growth.bytes_per_minute > 0 || troughs.end >= troughs.start)) ||
		    (growth.verdict == MMT_VERDICT_GROWING && growth.bytes_per_minute < 0))
			growth.verdict = MMT_VERDICT_TOO_SHORT;
		/* What the size changes within a part, apart from its slope: the troughs of saw-teeth do not show that.
		 */
		slope_bytes = fabs((double)growth.bytes_per_minute) / 60e9 * (double)troughs.span_ns / WINDOWS;
		growth.floor_bytes = (uint64_t)larger_of(troughs.floor, troughs.spread - slope_bytes);
		if (growth.verdict == MMT_VERDICT_GROWING)
			growth.settled_ns = find_level_end(readings, count, &troughs, &growth);
	}
	if (growth.verdict == MMT_VERDICT_TOO_SHORT)
		growth.advised_ns = span_ns * 3 > VERDICT_SPAN_NS * 5ull ? span_ns * 3 : VERDICT_SPAN_NS * 5ull;
	return growth;
}

struct mmt_growth mmt_growth_judge(const struct mmt_resident_reading *readings, size_t count)
{
	size_t first = 0, unused;
	struct mmt_growth growth = judge_from(readings, count, &first), later;
	double peak = 0;

	if (!first || (growth.verdict != MMT_VERDICT_TOO_SHORT && growth.verdict != MMT_VERDICT_GROWING))
		return growth;
	/* Recording may begin in a peak. Growth begins after it, whether the size reaches it again or not. */
	for (size_t i = 0; i < first; i++)
		peak = larger_of(peak, in_use(&readings[i]));
	later = judge_from(readings + first, count - first, &unused);
	if (later.verdict != MMT_VERDICT_GROWING ||
	    peak - in_use(&readings[first]) <= VERDICT_NOISE * (double)later.floor_bytes)
		return growth;
	later.peak_bytes = growth.peak_bytes;
	later.peak_ns = growth.peak_ns;
	return later;
}

/* Readings that come from elsewhere may be of any size: unsigned, the sums may wrap. */
int64_t mmt_growth_change(const struct mmt_growth *growth)
{
	uint64_t start_bytes = growth->by_pss ? growth->start_pss_bytes : growth->start_bytes;
	uint64_t end_bytes = growth->by_pss ? growth->end_pss_bytes : growth->end_bytes;

	if (growth->verdict == MMT_VERDICT_UNKNOWN)
		return 0;
	return (int64_t)(end_bytes + growth->end_swap_bytes - start_bytes - growth->start_swap_bytes -
			 (uint64_t)growth->outside_bytes);
}

struct mmt_cause mmt_report_cause(const struct mmt_report *report, size_t place)
{
	const struct mmt_row *row = &report->rows[place];

	if (report->cause_count)
		return report->causes[place];
	return (struct mmt_cause){.name = row->name,
				  .memory_class = row->memory_class,
				  .verdict = row->verdict,
				  .pattern = row->pattern,
				  .memory_bytes = row->memory_bytes,
				  .bytes_per_minute = row->bytes_per_minute,
				  .rows = &row->id,
				  .row_count = 1};
}

#define GROWTH_SHARE 64 /* of a growth: a heap that holds less is not the answer, although it grows, too */

bool growth_has_leak(const struct mmt_growth *growth, const struct mmt_cause *cause)
{
	enum mmt_verdict verdict = growth->by_process ? growth->sum_verdict : growth->verdict;
	bool grows = verdict == MMT_VERDICT_GROWING || verdict == MMT_VERDICT_TOO_SHORT;

	return mmt_row_leaks(cause->verdict) && cause->memory_bytes &&
	       (cause->verdict != MMT_ROW_KEEPS_GROWING || !grows ||
		(int64_t)cause->memory_bytes >= mmt_growth_change(growth) / GROWTH_SHARE);
}

struct mmt_cause mmt_report_first_leak(const struct mmt_report *report)
{
	bool by_name = report->row_count && report->rows[0].name;
	size_t count = report->cause_count || !by_name ? report->cause_count : report->row_count;
	struct mmt_cause cause;

	for (size_t i = 0; i < count; i++) {
		cause = mmt_report_cause(report, i);
		if (growth_has_leak(&report->growth, &cause))
			return cause;
	}
	return (struct mmt_cause){0};
}

bool mmt_report_has_leak(const struct mmt_report *report)
{
	return mmt_report_first_leak(report).memory_bytes > 0;
}

bool mmt_report_was_refused_memory(const struct mmt_report *report)
{
	return array_find(failure, report->failures, report->failure_count, failure->refused);
}

bool mmt_report_has_nothing_to_see(const struct mmt_report *report)
{
	if (report->growth.verdict > MMT_VERDICT_TOO_SHORT || report->end_ns - report->start_ns >= BRIEF_NS ||
	    !report->cause_count || subtract(report->growth.peak_bytes, report->growth.end_bytes) > LARGE_BYTES ||
	    mmt_report_was_refused_memory(report))
		return false;
	array_each(cause, report->causes, report->cause_count) {
		uint64_t most = cause->pattern == MMT_PATTERN_HEAP	? HEAP_BYTES
				: cause->pattern == MMT_PATTERN_CODE	? MMT_BYTES_MAX
				: cause->memory_class == MMT_CLASS_FILE ? HEAP_BYTES
									: LITTLE_BYTES;

		if (mmt_row_leaks(cause->verdict) || cause->unfreed_bytes > most || cause->memory_bytes > most)
			return false;
	}
	return true;
}

#define LEAK_SHARE 4 /* of the growth */

bool mmt_report_goes_by_rows(const struct mmt_report *report)
{
	enum mmt_verdict verdict = report->growth.verdict;
	const struct mmt_cause leak = mmt_report_first_leak(report);
	int64_t leaking_bytes = (int64_t)leak.memory_bytes, change = mmt_growth_change(&report->growth);

	/* What has shrunk so far is not growing. */
	return (verdict == MMT_VERDICT_GROWING || verdict == MMT_VERDICT_TOO_SHORT) && leaking_bytes &&
	       leaking_bytes >= change / LEAK_SHARE && (change > 0 || leak.verdict != MMT_ROW_KEEPS_GROWING);
}

const char *mmt_verdict_headline(enum mmt_verdict verdict)
{
	static const char *const words[MMT_VERDICT_KINDS] = {
	    [MMT_VERDICT_UNKNOWN] = "NO VERDICT", [MMT_VERDICT_TOO_SHORT] = "UNDECIDED",
	    [MMT_VERDICT_GROWING] = "GROWING",	  [MMT_VERDICT_PLATEAU] = "PLATEAU",
	    [MMT_VERDICT_STEADY] = "STEADY",	  [MMT_VERDICT_SHRINKING] = "SHRINKING",
	};

	return words[verdict];
}

const char *mmt_report_headline(const struct mmt_report *report)
{
	if (mmt_report_has_nothing_to_see(report))
		return "NOTHING TO SEE";
	if (!mmt_report_goes_by_rows(report))
		return mmt_verdict_headline(report->growth.verdict);
	return mmt_report_first_leak(report).verdict == MMT_ROW_KEEPS_GROWING ? "GROWING" : "LEAK";
}

int64_t mmt_process_growth(const struct mmt_process *process)
{
	const struct mmt_process_readings *readings = process->readings;

	if (!readings)
		return 0;
	if (readings->growth_known)
		return readings->growth_bytes;
	return (int64_t)(readings->end_resident_bytes + readings->end_swapped_bytes - readings->start_resident_bytes -
			 readings->start_swapped_bytes);
}

const char *mmt_oom_kill_describe(const struct mmt_oom_kill *oom_kill, char text[MMT_OOM_KILL_TEXT])
{
	snprintf(text, MMT_OOM_KILL_TEXT, "OOM kill of %s (pid %" PRId32 ")", *oom_kill->name ? oom_kill->name : "a process",
		 oom_kill->pid);
	return text;
}

const struct mmt_process *mmt_oom_kill_victim(const struct mmt_report *report, const struct mmt_oom_kill *oom_kill)
{
	const struct mmt_process *victim = NULL;

	/* The last one that had this PID by then. */
	array_each(process, report->processes, report->process_count) {
		if (process->pid == oom_kill->pid && process->started_ns <= oom_kill->time_ns)
			victim = process;
	}
	return victim;
}

uint64_t mmt_control_group_used(const struct mmt_control_group *group)
{
	static const enum mmt_group_figure parts[] = {MMT_GROUP_ANON, MMT_GROUP_SHMEM, MMT_GROUP_KERNEL};
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (group->end[parts[i]] != MMT_UNKNOWN)
			sum = saturating_add(sum, group->end[parts[i]], MMT_BYTES_MAX);
	}
	return sum;
}

uint64_t mmt_control_group_full_ns(const struct mmt_report *report)
{
	const struct mmt_growth *growth = &report->growth;
	const struct mmt_control_group *group = report->limiting_group;
	uint64_t limit = group ? mmt_control_group_limit(group) : MMT_UNKNOWN, used;
	double ns;

	if (limit == MMT_UNKNOWN || growth->verdict != MMT_VERDICT_GROWING || growth->bytes_per_minute <= 0)
		return MMT_UNKNOWN;
	for (size_t i = 1; !report->control_group->selected && i < report->process_count; i++) {
		if (strcmp(report->processes[i].control_group, report->processes[0].control_group) != 0)
			return MMT_UNKNOWN;
	}
	used = mmt_control_group_used(group);
	ns = used < limit ? (double)(limit - used) / (double)growth->bytes_per_minute * 60e9 : 0;
	return ns < 0x1p63 ? (uint64_t)ns : MMT_UNKNOWN;
}

bool mmt_control_group_is_near(const struct mmt_report *report)
{
	const struct mmt_control_group *group = report->limiting_group;
	uint64_t limit = group ? mmt_control_group_limit(group) : MMT_UNKNOWN;

	return limit != MMT_UNKNOWN && (mmt_control_group_used(group) >= limit - limit / NEAR_SHARE ||
					mmt_control_group_full_ns(report) < NEAR_NS);
}
