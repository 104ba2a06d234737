// SPDX-License-Identifier: LGPL-2.1-or-later
/* Whatever is asked for, the figures of a report agree with each other: the stored recordings, or those of the command
 * line, with every option. */
#include <check.h>
#include <mmtrace/report.h>
#include <stdio.h>
#include <string.h>

#include "support/run-suite.h"

static const char *const stored[] = {"data/leak.data", "data/more.data", "data/perf.data", "data/troubled.data"};

static const char *const *recordings = stored;
static int recording_count = sizeof(stored) / sizeof(*stored);

static void check_group(const struct mmt_report *report, const struct mmt_group *group)
{
	uint64_t by_class = 0;

	ck_assert_uint_eq(group->allocated_bytes - group->freed_bytes, group->unfreed_bytes);
	if (!report->completeness.reconciled_bytes)
		ck_assert_uint_eq(group->allocated_count - group->freed_count, group->unfreed_count);
	ck_assert_uint_le(group->reserved_bytes, group->unfreed_bytes);
	ck_assert_uint_ge(group->peak_bytes, group->unfreed_bytes);
	/* Memory of a class may become code and leave it. */
	if (!report->classes && report->by != MMT_BY_CLASS && report->by != MMT_BY_FILE)
		ck_assert_uint_le(group->peak_bytes, group->allocated_bytes);
	ck_assert_uint_le(group->peak_bytes, report->peak_bytes);
	ck_assert_uint_eq(group->trend[MMT_TREND_POINTS - 1], group->unfreed_bytes);
	for (unsigned kind = 0; kind < MMT_CLASS_KINDS; kind++) {
		by_class += group->class_bytes[kind];
		ck_assert(!group->class_bytes[kind] || !report->classes || (report->classes >> kind & 1));
	}
	ck_assert_uint_eq(by_class, group->unfreed_bytes);
	ck_assert(!group->unfreed_count == !group->thread_count);
	/* What lost calls mapped has no births to count. */
	if (report->completeness.reconciled_bytes)
		return;
	ck_assert(!group->unfreed_count == !group->unfreed_bytes);
	ck_assert_uint_ge(group->original_bytes, group->unfreed_bytes);
	if (!group->unfreed_count)
		return;
	ck_assert_uint_le(group->smallest_bytes, group->largest_bytes);
	ck_assert_uint_le(group->unfreed_count * group->smallest_bytes, group->unfreed_bytes);
	ck_assert_uint_ge(group->unfreed_count * group->largest_bytes, group->unfreed_bytes);
	ck_assert_uint_ge(group->first_ns, report->from_ns);
	ck_assert_uint_le(group->first_ns, group->last_ns);
	ck_assert(group->last_ns < report->allocations_to_ns || report->allocations_to_ns == report->to_ns);
}

static void check_groups(const struct mmt_report *report)
{
	uint64_t allocated = 0, freed = 0, unfreed = 0, committed = 0, before = 0, reserved = 0, peaks = 0;

	for (size_t i = 0; i < report->group_count; i++) {
		const struct mmt_group *group = &report->groups[i];

		check_group(report, group);
		ck_assert_uint_eq(group->id, i + 1);
		allocated += group->allocated_bytes;
		freed += group->freed_bytes;
		unfreed += group->unfreed_bytes;
		committed += group->committed_bytes;
		before += group->committed_before_bytes;
		reserved += group->reserved_bytes;
		peaks += group->peak_bytes;
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
	for (size_t i = 0; i < report->group_count; i++)
		count -= report->groups[i].allocated_count;
	/* What lost calls mapped is no thread's. */
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

/* False: there is nothing to report, for a reason that is said. */
static bool check_report(const struct mmt_report_options *options)
{
	struct mmt_report *report = NULL;
	struct mmt_error *error = mmt_report_create(options, &report);

	if (error) {
		ck_assert_msg(mmt_error_get_code(error) == MMT_ERROR_INVALID, "%s", mmt_error_get_message(error));
		mmt_error_destroy(error);
		return false;
	}
	check_groups(report);
	check_threads(report);
	check_processes(report);
	mmt_report_destroy(report);
	return true;
}

/* Per mille of the recording: from, to, age, tail. */
static const unsigned windows[][4] = {
    {0, 1000, 0, 0},   {0, 500, 0, 0},	 {500, 1000, 0, 0},  {250, 750, 0, 0},	   {0, 1000, 300, 0},
    {0, 1000, 0, 300}, {0, 700, 0, 200}, {100, 900, 200, 0}, {100, 900, 200, 200}, {990, 1000, 0, 0},
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
	options.tail = windows[window][3] / 1000.0;
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
				options.by = (enum mmt_group_by)by;
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

int main(int argc, char **argv)
{
	Suite *suite = suite_create("agreement");
	TCase *tcase = tcase_create("agreement");

	tcase_set_timeout(tcase, 600);
	if (argc > 1) {
		recordings = (const char *const *)argv + 1;
		recording_count = argc - 1;
	}
	tcase_add_loop_test(tcase, figures_agree, 0, recording_count);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
