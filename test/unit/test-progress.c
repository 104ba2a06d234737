// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdlib.h>

/* The tool is not a library: its progress display is compiled in. */
#include "../../cmd/cli/message.c"
#include <mmtrace/pack.h>

#include "support/recording-builder.h"
#include "support/suite.h"
#include "support/temporary.h"

static void expect_line(const char *path, uint64_t elapsed_ns, uint64_t done, uint64_t total, const char *expected)
{
	struct progress progress = {.name = short_name(path)};
	char line[256];
	FILE *stream = fmemopen(line, sizeof(line), "w");

	ck_assert_ptr_nonnull(stream);
	write_line(&progress, elapsed_ns, done, total, stream);
	fclose(stream);
	ck_assert_str_eq(line, expected);
}

START_TEST(shows_progress_and_remaining_time)
{
	expect_line("a.data", 2 * SECOND_NS, 250, 1000, "reading a.data: 25 %, 6 s left");
	expect_line("/some/where/a.data", 10 * SECOND_NS, 999, 1000, "reading a.data: 100 %, 1 s left");
	expect_line("a.data", 2 * SECOND_NS, 1000, 1000, "reading a.data: 100 %, 0 s left");
	expect_line("a.data", 2 * SECOND_NS, 2000, 1000, "reading a.data: 100 %, 0 s left"); /* the file grew */
	expect_line("a.data", SECOND_NS / 10, 1, 1000, "reading a.data: 0 %");
	expect_line("a.data", 2 * SECOND_NS, 0, 1000, "reading a.data: 0 %");
	expect_line("-", 2 * SECOND_NS, 3u << 20, 0, "reading standard input: 3.00 MiB");
}
END_TEST

START_TEST(fits_in_one_line)
{
	expect_line("0123456789012345678901234567890123456789", SECOND_NS, 1, 2,
		    "reading 0123456789012345678901234567890123456789: 50 %, 1 s left");
	expect_line("01234567890123456789012345678901234567890", SECOND_NS, 1, 2,
		    "reading the recording: 50 %, 1 s left");
	expect_line("two\nlines", SECOND_NS, 1, 2, "reading the recording: 50 %, 1 s left");
	expect_line("directory/", SECOND_NS, 1, 2, "reading directory/: 50 %, 1 s left");
}
END_TEST

START_TEST(appears_after_a_second_and_not_too_often)
{
	struct progress progress = {.name = "a.data", .start_ns = clock_ns()};
	uint64_t told_ns;

	tell(&progress, 1, 2);
	ck_assert(!line_stands);
	progress.start_ns -= PATIENCE_NS;
	tell(&progress, 1, 2);
	ck_assert(line_stands);
	told_ns = progress.told_ns;
	tell(&progress, 1, 2);
	ck_assert_uint_eq(progress.told_ns, told_ns);
	progress.told_ns -= AGAIN_NS;
	tell(&progress, 1, 2);
	ck_assert_uint_ge(progress.told_ns, told_ns);
	progress_end();
	ck_assert(!line_stands);
}
END_TEST

#define EVENTS 20000
#define PID 100

struct observed {
	uint64_t latest, first, total, count;
	bool went_back;
};

static void note(void *context, uint64_t done, uint64_t total)
{
	struct observed *told = context;

	told->went_back |= done < told->latest || (told->count && total != told->total);
	told->first = told->count++ ? told->first : done;
	told->latest = done;
	told->total = total;
}

static void write_recording(const char *path)
{
	struct recording_builder *builder = builder_create(path);
	uint64_t time_ns = 1000;

	for (unsigned i = 0; i < EVENTS; i++, time_ns += 1000) {
		builder_mmap_exit(builder, time_ns, PID, PID, 0x100000000u + i * 8192ULL, 4096, 0x7f0000000001);
		if (i % 1000 == 999)
			builder_round(builder);
	}
	builder_finish(builder, time_ns);
}

/* From start to end, and never back. */
static void check_progress(const struct observed *told)
{
	ck_assert_uint_ge(told->count, 10);
	ck_assert(!told->went_back);
	ck_assert_uint_lt(told->first, told->total / 4);
	ck_assert_uint_gt(told->latest, told->total * 3 / 4);
	ck_assert_uint_le(told->latest, told->total);
}

START_TEST(dump_and_pack_show_progress)
{
	char path[TEMPORARY_PATH_SIZE];
	struct observed dumped = {0}, packed = {0};
	const struct mmt_progress dump_progress = {.tell = note, .context = &dumped};
	const struct mmt_progress pack_progress = {.tell = note, .context = &packed};
	const struct mmt_pack_options options = {.input = path, .progress = &pack_progress};
	struct mmt_pack_summary summary;
	FILE *nowhere = fopen("/dev/null", "w");

	temporary_name(path);
	write_recording(path);
	ck_assert_ptr_nonnull(nowhere);
	ck_assert_ptr_null(mmt_dump(path, &dump_progress, nowhere));
	fclose(nowhere);
	check_progress(&dumped);
	ck_assert_ptr_null(mmt_pack(&options, &summary));
	check_progress(&packed);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("progress");
	TCase *cases = add_tcase(suite, "line");

	tcase_add_tests(cases, shows_progress_and_remaining_time, fits_in_one_line,
			appears_after_a_second_and_not_too_often, dump_and_pack_show_progress);
	return suite;
}
