// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a chain of recordings knows of memory that was mapped before the last one. */
#include <check.h>
#include <mmtrace/pack.h>
#include <mmtrace/report.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "support/recording-builder.h"
#include "support/suite.h"
#include "support/temporary.h"

#define PAGE 4096ull
#define SECOND 1000000000ull
#define PID 42
#define START (1000 * SECOND) /* of the first recording */
#define EVERY (10 * SECOND)   /* between starts; recordings take a second more */
#define LEAKS 40	      /* that live at a time */
#define LEAK_CALLER 0x7f1000000000
#define HELD_CALLER 0x7f1000001000

static char directory[TEMPORARY_PATH_SIZE], paths[2][TEMPORARY_PATH_SIZE + 8];

static uint64_t start_of(unsigned number)
{
	return START + number * EVERY;
}

static uint64_t leak_address(unsigned number)
{
	return 0x7f2000000000 + number % (2 * LEAKS) * 4 * PAGE;
}

/* Mapped while this recording and the next one run; unmapped at that time of the next one. */
static uint64_t held_address(unsigned number)
{
	return 0x7f3000000000 + number % 2 * 4 * PAGE;
}

static struct event_mapping line_of(uint64_t start)
{
	return (struct event_mapping){.start = start,
				      .length = 2 * PAGE,
				      .protection = PROT_READ | PROT_WRITE,
				      .flags = MAP_PRIVATE,
				      .path = "//anon"};
}

static int compare_lines(const void *left, const void *right)
{
	const struct event_mapping *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

static void overlap(struct recording_builder *builder, unsigned number)
{
	uint64_t time_ns = start_of(number + 1) + SECOND / 2;

	builder_mmap_exit(builder, time_ns, PID, PID, held_address(number), 2 * PAGE, HELD_CALLER);
	if (number)
		builder_munmap_exit(builder, time_ns + 1000, PID, PID, held_address(number - 1), 2 * PAGE);
}

/* Recording N maps leak N, and unmaps the one that is LEAKS older. */
static void make_recording(const char *path, unsigned number)
{
	struct recording_builder *builder = builder_create_at(path, start_of(number));
	struct event_mapping lines[LEAKS + 2];
	size_t count = 0;
	uint64_t time_ns = start_of(number) + 5 * SECOND;

	for (unsigned i = number > LEAKS ? number - LEAKS : 0; i < number; i++)
		lines[count++] = line_of(leak_address(i));
	if (number > 1)
		lines[count++] = line_of(held_address(number - 2));
	lines[count++] = line_of(0x7f0000000000);
	qsort(lines, count, sizeof(*lines), compare_lines);
	builder_snapshot(builder, SNAPSHOT_START, start_of(number) + 1000, PID, lines, count);
	builder_note(builder, start_of(number) + 2000, PID, NOTE_RESIDENT, (number + 1) * PAGE, 1);
	if (number)
		overlap(builder, number - 1);
	builder_mmap_exit(builder, time_ns, PID, PID, leak_address(number), 2 * PAGE, LEAK_CALLER);
	if (number >= LEAKS)
		builder_munmap_exit(builder, time_ns + 1000, PID, PID, leak_address(number - LEAKS), 2 * PAGE);
	overlap(builder, number);
	builder_finish(builder, start_of(number + 1) + SECOND);
}

static struct mmt_error *pack_after(const char *path, const char *previous)
{
	const struct mmt_pack_options options = {.input = path, .after = previous};
	struct mmt_pack_summary summary;

	return mmt_pack(&options, &summary);
}

static struct mmt_report *report_of(const char *path, bool with_earlier)
{
	struct mmt_report_options options;
	struct mmt_report *report;

	mmt_report_options_init(&options);
	options.input = path;
	options.with_earlier = with_earlier;
	ck_assert_ptr_null(mmt_report_create(&options, &report));
	return report;
}

static void create(void)
{
	temporary_directory(directory);
	for (int i = 0; i < 2; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%d.data", directory, i);
}

static void destroy(void)
{
	temporary_remove(directory);
}

START_TEST(a_long_chain_knows_what_is_mapped_and_stays_small)
{
	const unsigned last = 5 * LEAKS;
	off_t bytes[2] = {0};
	struct mmt_report *report;
	struct stat status;

	for (unsigned i = 0; i <= last; i++) {
		make_recording(paths[i % 2], i);
		ck_assert_ptr_null(pack_after(paths[i % 2], i ? paths[(i - 1) % 2] : NULL));
		ck_assert_int_eq(stat(paths[i % 2], &status), 0);
		if (i == 2 * LEAKS || i == last)
			bytes[i == last] = status.st_size;
	}
	ck_assert_msg(bytes[1] < bytes[0] + bytes[0] / 8, "%lld bytes, then %lld", (long long)bytes[0],
		      (long long)bytes[1]);
	report = report_of(paths[last % 2], true);
	ck_assert_uint_eq(report->earlier_recordings, last);
	ck_assert_uint_eq(report->start_ns, START);
	/* All leaks but those that were freed, and the last two of the overlaps. */
	ck_assert_uint_eq(report->unfreed_bytes, (LEAKS + 1) * 2 * PAGE);
	ck_assert_uint_eq(report->before_bytes, 2 * PAGE);
	ck_assert_uint_eq(report->row_count, 2);
	ck_assert_uint_eq(report->rows[0].unfreed_count, LEAKS);
	ck_assert_uint_eq(report->rows[0].freed_count, last + 1 - LEAKS);
	ck_assert_uint_eq(report->rows[0].first_ns, start_of(last + 1 - LEAKS) + 5 * SECOND);
	ck_assert_uint_eq(report->resident_readings[0].resident_bytes, PAGE);
	/* Level since the first fifth. */
	ck_assert_uint_lt(report->rows[0].trend[2], LEAKS * 2 * PAGE);
	for (unsigned i = MMT_TREND_POINTS / 4; i < MMT_TREND_POINTS; i++)
		ck_assert_msg(report->rows[0].trend[i] >= LEAKS * 2 * PAGE &&
				  report->rows[0].trend[i] <= (LEAKS + 1) * 2 * PAGE,
			      "%u: %llu", i, (unsigned long long)report->rows[0].trend[i]);
	mmt_report_destroy(report);
	/* An ordinary report does not know it, nor does packing again change it. */
	report = report_of(paths[last % 2], false);
	ck_assert_uint_eq(report->unfreed_bytes, 2 * 2 * PAGE);
	ck_assert_uint_eq(report->start_ns, start_of(last));
	mmt_report_destroy(report);
	ck_assert_ptr_null(pack_after(paths[last % 2], NULL));
	report = report_of(paths[last % 2], true);
	ck_assert_uint_eq(report->unfreed_bytes, (LEAKS + 1) * 2 * PAGE);
	mmt_report_destroy(report);
}
END_TEST

static void refuse(unsigned first, unsigned second, const char *why)
{
	struct stat before, after;
	struct mmt_error *error;

	make_recording(paths[0], first);
	make_recording(paths[1], second);
	ck_assert_int_eq(stat(paths[1], &before), 0);
	error = pack_after(paths[1], paths[0]);
	ck_assert_ptr_nonnull(error);
	ck_assert_msg(strstr(error->message, why), "%s", error->message);
	mmt_error_destroy(error);
	ck_assert_int_eq(stat(paths[1], &after), 0);
	ck_assert(before.st_ino == after.st_ino && before.st_size == after.st_size);
}

START_TEST(only_overlapping_recordings_of_one_boot_are_a_chain)
{
	struct mmt_error *error;

	refuse(1, 3, "ended 9.000 s before");
	refuse(3, 2, "did not begin and end before");
	refuse(0, 400, "the machine was booted since");
	temporary_remove(paths[0]);
	error = pack_after(paths[1], paths[0]);
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_nonnull(strstr(error->message, paths[0]));
	mmt_error_destroy(error);
}
END_TEST

static void refuse_section(const struct earlier_mappings *earlier, const char *why)
{
	struct earlier_mappings read = {0};
	struct mmt_error *error;
	struct buffer buffer;
	struct bytes bytes;

	buffer_init(&buffer, 1 << 20);
	ck_assert_ptr_null(section_write(&section_earlier, earlier, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	error = section_read(&section_earlier, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &read);
	ck_assert_msg(!error == !why && (!why || strstr(error->message, why)), "%s", error ? error->message : "");
	mmt_error_destroy(error);
	section_earlier.deinit(&read);
	buffer_deinit(&buffer);
}

START_TEST(contradictions_are_damage)
{
	struct earlier_account account = {.pid = PID, .stack = 1};
	struct earlier_range range = {.start = PAGE, .end = 2 * PAGE, .time_ns = 5, .account = 1};
	struct earlier_mappings earlier = {.began_ns = 5,
					   .end_ns = 9,
					   .step_ns = 1,
					   .recordings = 1,
					   .accounts = {.items = &account, .count = 1},
					   .ranges = {.items = &range, .count = 1}};

	refuse_section(&earlier, NULL);
	range.account = 2;
	refuse_section(&earlier, "account that does not exist");
	range.account = 0;
	refuse_section(&earlier, "account that does not exist");
	range.commit = 1;
	refuse_section(&earlier, NULL);
	range.end = range.start;
	refuse_section(&earlier, "addresses");
	range.end = 2 * PAGE;
	range.time_ns = 10;
	refuse_section(&earlier, "outside");
	range.time_ns = 9;
	account.points[63] = LIMIT_RESIDENT_BYTES + 1;
	refuse_section(&earlier, "more bytes");
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("earlier-mappings");
	TCase *tcase = add_tcase(suite, "chain");

	tcase_add_checked_fixture(tcase, create, destroy);
	tcase_add_tests(tcase, a_long_chain_knows_what_is_mapped_and_stays_small,
			only_overlapping_recordings_of_one_boot_are_a_chain, contradictions_are_damage);
	return suite;
}
