// SPDX-License-Identifier: LGPL-2.1-or-later
/* The figures of a report agree with each other, with every option: for the stored recordings, or those named on the
 * command line. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <mmtrace/report.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "support/suite.h"

static const char *const stored[] = {"data/leak.data", "data/more.data", "data/perf.data", "data/troubled.data"};

static const char *const *recordings = stored;
static int recording_count = sizeof(stored) / sizeof(*stored);

static void check_row(const struct mmt_report *report, const struct mmt_row *row)
{
	uint64_t by_class = 0;

	ck_assert_uint_eq(row->allocated_bytes - row->freed_bytes, row->unfreed_bytes);
	if (!report->completeness.reconciled_bytes)
		ck_assert_uint_eq(row->allocated_count - row->freed_count, row->unfreed_count);
	ck_assert_uint_le(row->reserved_bytes, row->unfreed_bytes);
	ck_assert_uint_ge(row->peak_bytes, row->unfreed_bytes);
	/* Memory of one class may become code and stop being code. */
	if (!report->options.classes && report->by != MMT_BY_CLASS && report->by != MMT_BY_FILE)
		ck_assert_uint_le(row->peak_bytes, row->allocated_bytes);
	ck_assert_uint_le(row->peak_bytes, report->peak_bytes);
	ck_assert_uint_eq(row->trend[MMT_TREND_POINTS - 1], row->unfreed_bytes);
	for (unsigned kind = 0; kind < MMT_CLASS_KINDS; kind++) {
		by_class += row->class_bytes[kind];
		ck_assert(!row->class_bytes[kind] || !report->options.classes || (report->options.classes >> kind & 1));
	}
	ck_assert_uint_eq(by_class, row->unfreed_bytes);
	ck_assert(!row->unfreed_count == !row->thread_count);
	/* Memory mapped by lost calls has no allocations to count. */
	if (report->completeness.reconciled_bytes)
		return;
	ck_assert(!row->unfreed_count == !row->unfreed_bytes);
	ck_assert_uint_ge(row->original_bytes, row->unfreed_bytes);
	if (!row->unfreed_count)
		return;
	ck_assert_uint_le(row->smallest_bytes, row->largest_bytes);
	ck_assert_uint_le(row->unfreed_count * row->smallest_bytes, row->unfreed_bytes);
	ck_assert_uint_ge(row->unfreed_count * row->largest_bytes, row->unfreed_bytes);
	ck_assert_uint_ge(row->first_ns, report->from_ns);
	ck_assert_uint_le(row->first_ns, row->last_ns);
	ck_assert(row->last_ns < report->allocations_to_ns || report->allocations_to_ns == report->to_ns);
}

static void check_rows(const struct mmt_report *report)
{
	uint64_t allocated = 0, freed = 0, unfreed = 0, committed = 0, before = 0, reserved = 0, peaks = 0;

	for (size_t i = 0; i < report->row_count; i++) {
		const struct mmt_row *row = &report->rows[i];

		check_row(report, row);
		ck_assert_uint_eq(row->id, i + 1);
		allocated += row->allocated_bytes;
		freed += row->freed_bytes;
		unfreed += row->unfreed_bytes;
		committed += row->committed_bytes;
		before += row->committed_before_bytes;
		reserved += row->reserved_bytes;
		peaks += row->peak_bytes;
	}
	ck_assert_uint_eq(report->allocated_bytes, allocated);
	ck_assert_uint_eq(report->freed_bytes, freed);
	ck_assert_uint_eq(report->unfreed_bytes, unfreed);
	ck_assert_uint_eq(report->committed_bytes, committed);
	ck_assert_uint_eq(report->committed_before_bytes, before);
	ck_assert_uint_eq(report->reserved_bytes, reserved);
	ck_assert_uint_eq(allocated - freed, unfreed);
	ck_assert_uint_eq(committed + reserved, unfreed);
	ck_assert_uint_ge(report->peak_bytes, unfreed);
	ck_assert_uint_le(report->peak_bytes, peaks);
	if (report->peak_bytes)
		ck_assert(report->peak_ns >= report->from_ns && report->peak_ns <= report->to_ns);
	if (report->resident_bytes != MMT_UNKNOWN)
		ck_assert_uint_le(report->resident_bytes, unfreed);
}

static void check_threads(const struct mmt_report *report)
{
	uint64_t allocated = 0, freed = 0, unfreed = 0, count = 0, released = 0;

	for (size_t i = 0; i < report->thread_total_count; i++) {
		const struct mmt_thread_total *total = &report->thread_totals[i];

		ck_assert_uint_eq(total->allocated_bytes - total->freed_by_itself_bytes - total->freed_by_others_bytes,
				  total->unfreed_bytes);
		ck_assert(!total->unfreed_count == !total->unfreed_bytes);
		allocated += total->allocated_bytes;
		freed += total->freed_by_itself_bytes + total->freed_by_others_bytes;
		unfreed += total->unfreed_bytes;
		count += total->allocated_count;
		released += total->released_bytes;
	}
	for (size_t i = 0; i < report->row_count; i++)
		count -= report->rows[i].allocated_count;
	/* Memory mapped by lost calls belongs to no thread. */
	if (report->completeness.reconciled_bytes) {
		ck_assert_uint_le(allocated, report->allocated_bytes);
		ck_assert_uint_le(unfreed, report->unfreed_bytes);
	} else {
		ck_assert_uint_eq(allocated, report->allocated_bytes);
		ck_assert_uint_eq(freed, report->freed_bytes);
		ck_assert_uint_eq(unfreed, report->unfreed_bytes);
		ck_assert_uint_eq(count, 0);
	}
	for (size_t i = 0; i < report->release_count; i++)
		released -= report->releases[i].bytes;
	ck_assert_uint_eq(released, 0);
}

static void check_processes(const struct mmt_report *report)
{
	uint64_t unfreed = 0, committed = 0, reserved = 0;

	for (size_t i = 0; i < report->process_count; i++) {
		unfreed += report->processes[i].unfreed_bytes;
		committed += report->processes[i].committed_bytes;
		reserved += report->processes[i].reserved_bytes;
	}
	ck_assert_uint_eq(unfreed, report->unfreed_bytes + report->ended_bytes);
	ck_assert_uint_eq(committed + reserved, unfreed);
	if (!report->ended_bytes)
		ck_assert_uint_eq(reserved, report->reserved_bytes);
}

/* False: there is nothing to report, and the error says why. */
static bool check_report(const struct mmt_report_options *options)
{
	struct mmt_report *report = NULL;
	struct mmt_error *error = mmt_report_create(options, &report);

	if (error) {
		ck_assert_msg(error->code == MMT_ERROR_INVALID, "%s", error->message);
		mmt_error_destroy(error);
		return false;
	}
	check_rows(report);
	check_threads(report);
	check_processes(report);
	mmt_report_destroy(report);
	return true;
}

struct inner_sums {
	uint64_t memory, unfreed, unfreed_count, original, committed, committed_before, reserved, resident,
	    resident_before, allocated, allocated_count, freed, freed_count, mappings, peaks;
	bool unknown; /* what is resident, of some */
	uint64_t smallest, largest, first_ns, last_ns;
	uint64_t classes[MMT_CLASS_KINDS], trend[MMT_TREND_POINTS], survivors[MMT_TREND_POINTS];
};

static void add_inner(struct inner_sums *sums, const struct mmt_row *row)
{
	sums->memory += row->memory_bytes;
	sums->unknown |= row->resident_bytes == MMT_UNKNOWN;
	sums->unfreed += row->unfreed_bytes;
	sums->unfreed_count += row->unfreed_count;
	sums->original += row->original_bytes;
	sums->committed += row->committed_bytes;
	sums->committed_before += row->committed_before_bytes;
	sums->reserved += row->reserved_bytes;
	sums->resident += row->resident_bytes;
	sums->resident_before += row->resident_before_bytes;
	sums->allocated += row->allocated_bytes;
	sums->allocated_count += row->allocated_count;
	sums->freed += row->freed_bytes;
	sums->freed_count += row->freed_count;
	sums->mappings += row->mapping_count;
	sums->peaks += row->peak_bytes;
	if (row->unfreed_count) {
		sums->smallest = row->smallest_bytes < sums->smallest ? row->smallest_bytes : sums->smallest;
		sums->largest = row->largest_bytes > sums->largest ? row->largest_bytes : sums->largest;
		sums->first_ns = row->first_ns < sums->first_ns ? row->first_ns : sums->first_ns;
		sums->last_ns = row->last_ns > sums->last_ns ? row->last_ns : sums->last_ns;
	}
	for (unsigned kind = 0; kind < MMT_CLASS_KINDS; kind++)
		sums->classes[kind] += row->class_bytes[kind];
	for (unsigned point = 0; point < MMT_TREND_POINTS; point++) {
		sums->trend[point] += row->trend[point];
		sums->survivors[point] += row->survivor_trend[point];
	}
}

/* In every measure that can be added up; the others are within their bounds. */
static void check_inner_sums(const struct mmt_row *outer, const struct inner_sums *sums)
{
	ck_assert(sums->unknown || sums->memory == outer->memory_bytes);
	ck_assert_uint_eq(sums->unfreed, outer->unfreed_bytes);
	ck_assert_uint_eq(sums->unfreed_count, outer->unfreed_count);
	ck_assert_uint_eq(sums->original, outer->original_bytes);
	ck_assert_uint_eq(sums->committed, outer->committed_bytes);
	ck_assert_uint_eq(sums->committed_before, outer->committed_before_bytes);
	ck_assert_uint_eq(sums->reserved, outer->reserved_bytes);
	ck_assert_uint_eq(sums->allocated, outer->allocated_bytes);
	ck_assert_uint_eq(sums->allocated_count, outer->allocated_count);
	ck_assert_uint_eq(sums->freed, outer->freed_bytes);
	ck_assert_uint_eq(sums->freed_count, outer->freed_count);
	ck_assert_uint_eq(sums->mappings, outer->mapping_count);
	ck_assert_uint_ge(sums->peaks, outer->peak_bytes);
	if (!sums->unknown) {
		ck_assert_uint_eq(sums->resident, outer->resident_bytes);
		ck_assert_uint_eq(sums->resident_before, outer->resident_before_bytes);
	}
	if (outer->unfreed_count) {
		ck_assert_uint_eq(sums->smallest, outer->smallest_bytes);
		ck_assert_uint_eq(sums->largest, outer->largest_bytes);
		ck_assert_uint_eq(sums->first_ns, outer->first_ns);
		ck_assert_uint_eq(sums->last_ns, outer->last_ns);
	}
	for (unsigned kind = 0; kind < MMT_CLASS_KINDS; kind++)
		ck_assert_uint_eq(sums->classes[kind], outer->class_bytes[kind]);
	for (unsigned point = 0; point < MMT_TREND_POINTS; point++) {
		ck_assert_uint_eq(sums->trend[point], outer->trend[point]);
		ck_assert_uint_eq(sums->survivors[point], outer->survivor_trend[point]);
	}
}

/* The pairs of a row of the first key add up to it. */
static void check_outer(const struct mmt_report *pair, const struct mmt_row *outer)
{
	struct inner_sums sums = {.smallest = UINT64_MAX, .first_ns = UINT64_MAX};
	size_t length = strlen(outer->name), count = 0;

	for (size_t i = 0; i < pair->row_count; i++) {
		const struct mmt_row *inner = &pair->rows[i];

		if (strncmp(inner->name, outer->name, length) != 0 || strncmp(inner->name + length, " / ", 3) != 0)
			continue;
		ck_assert_uint_le(inner->peak_bytes, outer->peak_bytes);
		ck_assert_uint_ge(inner->peak_bytes, inner->unfreed_bytes);
		add_inner(&sums, inner);
		count++;
	}
	ck_assert_uint_gt(count, 0);
	check_inner_sums(outer, &sums);
}

static void check_pair(struct mmt_report_options options, enum mmt_row_key by, enum mmt_row_key then_by)
{
	struct mmt_report *pair = NULL, *alone = NULL;
	struct mmt_error *error;

	options.by = by;
	error = mmt_report_create(&options, &alone);
	if (error) {
		mmt_error_destroy(error);
		return;
	}
	options.then_by = then_by;
	ck_assert_ptr_null(mmt_report_create(&options, &pair));
	check_rows(pair);
	check_threads(pair);
	ck_assert_uint_eq(pair->unfreed_bytes, alone->unfreed_bytes);
	ck_assert_uint_eq(pair->completeness.complete_stacks, alone->completeness.complete_stacks);
	ck_assert_uint_eq(pair->cause_count, 0);
	for (size_t i = 0; by != MMT_BY_THREAD && i < alone->row_count; i++)
		check_outer(pair, &alone->rows[i]);
	mmt_report_destroy(pair);
	mmt_report_destroy(alone);
}

/* Per mille of the recording: from, to, age. */
static const unsigned windows[][3] = {
    {0, 1000, 0},   {0, 500, 0},   {500, 1000, 0},  {250, 750, 0},
    {0, 1000, 300}, {0, 700, 140}, {100, 900, 200}, {990, 1000, 0},
};

enum { WINDOWS = sizeof(windows) / sizeof(*windows), CLASSES = MMT_CLASS_KINDS + 2 };

static struct mmt_report_options describe(const char *recording, const struct mmt_report *whole, size_t window,
					  unsigned classes)
{
	uint64_t length = whole->end_ns - whole->start_ns;
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	options.input = recording;
	if (classes)
		options.classes =
		    classes > MMT_CLASS_KINDS ? 1u << MMT_CLASS_ANON | 1u << MMT_CLASS_HEAP : 1u << (classes - 1);
	if (windows[window][0])
		options.from = (struct mmt_timestamp){MMT_TIMESTAMP_SINCE_START, length / 1000 * windows[window][0]};
	if (windows[window][1] < 1000)
		options.to = (struct mmt_timestamp){MMT_TIMESTAMP_SINCE_START, length / 1000 * windows[window][1]};
	options.min_age_ns = length / 1000 * windows[window][2];
	return options;
}

START_TEST(figures_agree)
{
	const char *recording = recordings[_i];
	struct mmt_report_options options;
	struct mmt_report *whole = NULL;
	unsigned made = 0;

	mmt_report_options_init(&options);
	options.input = recording;
	ck_assert_ptr_null(mmt_report_create(&options, &whole));
	ck_assert_uint_gt(whole->allocated_bytes, 0);
	for (size_t window = 0; window < WINDOWS; window++) {
		for (unsigned classes = 0; classes < CLASSES; classes++) {
			options = describe(recording, whole, window, classes);
			for (unsigned by = MMT_BY_STACK; by <= MMT_BY_THREAD; by++) {
				options.by = (enum mmt_row_key)by;
				made += check_report(&options);
			}
			for (size_t i = 0; i < whole->process_count; i++) {
				options.pids = &whole->processes[i].pid;
				options.pid_count = 1;
				made += check_report(&options);
			}
		}
	}
	ck_assert_uint_gt(made, WINDOWS * CLASSES);
	mmt_report_destroy(whole);
}
END_TEST

START_TEST(groupings_by_two_keys_agree)
{
	struct mmt_report_options options;
	struct mmt_report *whole = NULL;

	mmt_report_options_init(&options);
	options.input = recordings[_i];
	ck_assert_ptr_null(mmt_report_create(&options, &whole));
	for (size_t window = 0; window < WINDOWS; window++) {
		options = describe(recordings[_i], whole, window, 0);
		options.every_ns = (whole->end_ns - whole->start_ns) / 7 + 1;
		for (unsigned by = MMT_BY_FUNCTION; by <= MMT_BY_THREAD; by++) {
			for (unsigned then_by = MMT_BY_FUNCTION; then_by <= MMT_BY_THREAD; then_by++) {
				if (by != then_by)
					check_pair(options, (enum mmt_row_key)by, (enum mmt_row_key)then_by);
			}
		}
	}
	mmt_report_destroy(whole);
}
END_TEST

START_TEST(incompatible_keys_are_refused)
{
	static const struct {
		enum mmt_row_key by, then_by;
		uint32_t lifetime_steps;
	} refused[] = {
	    {MMT_BY_STACK, MMT_BY_CLASS, 0}, {MMT_BY_CLASS, MMT_BY_CLASS, 0}, {MMT_BY_CLASS, MMT_BY_FILE, 16}};
	struct mmt_report_options options;
	struct mmt_report *report = NULL;
	struct mmt_error *error;

	mmt_report_options_init(&options);
	options.input = recordings[0];
	options.by = refused[_i].by;
	options.then_by = refused[_i].then_by;
	options.lifetime_steps = refused[_i].lifetime_steps;
	error = mmt_report_create(&options, &report);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_INVALID);
	mmt_error_destroy(error);
}
END_TEST

/* The golden tests place the program of the stored recordings in /tmp, under an exclusive lock: reports that are
 * compared must either all have its names, or none. Held until the process ends. */
static void keep_program_as_it_is(void)
{
	int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	while (fd >= 0 && flock(fd, LOCK_SH) < 0 && errno == EINTR)
		;
}

Suite *test_suite(void)
{
	Suite *suite = suite_create("agreement");
	TCase *tcase = add_tcase(suite, "agreement");

	keep_program_as_it_is();
	tcase_set_timeout(tcase, 600);
	if (*test_operands) {
		recordings = (const char *const *)test_operands;
		for (recording_count = 0; recordings[recording_count];)
			recording_count++;
	}
	tcase_add_loop_test(tcase, figures_agree, 0, recording_count);
	tcase_add_loop_test(tcase, groupings_by_two_keys_agree, 0, recording_count);
	tcase_add_loop_test(tcase, incompatible_keys_are_refused, 0, 3);
	return suite;
}
