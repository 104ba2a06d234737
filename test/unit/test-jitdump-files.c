// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which process each jitdump belongs to, and which are kept if there is not enough room. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "capture/procfs/clock.h"
#include "capture/procfs/proc.h"
#include "capture/runtimes/ask-runtime.h"
#include "capture/recorder/recorder.h"
#include "support/recorder-state.h"
#include "support/suite.h"
#include "trace/format/format.h"
#include "trace/sections/section-codec.h"

#define DUMP_BYTES 100

static struct recorder recorder;
static struct mmt_record_options options;
static char told[512];
static unsigned messages;

static void take_message(void *context, bool warning, const char *text)
{
	(void)context;
	messages += warning;
	snprintf(told, sizeof(told), "%s", text);
}

static void create(void)
{
	options.message = take_message;
	recorder.options = &options;
	recorder_state_init(&recorder);
}

static void destroy(void)
{
	jitdumps_deinit(&recorder.jobs.runtimes->jitdumps);
}

static void add(struct noted_jitdump note)
{
	ck_assert(vector_push(&recorder.jobs.runtimes->jitdumps.items, note));
}

static int make_file(void)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, DUMP_BYTES), 0);
	return fd;
}

/* Whatever was known of its dump before. */
START_TEST(dumps_belong_to_the_last_program_before_them)
{
	static const uint64_t orders[][3] = {{10, 20, 30}, {30, 20, 10}, {20, 30, 10}, {10, 30, 20}};

	add((struct noted_jitdump){.copy.pid = 5, .fd = -1, .mapped_ns = 25});
	add((struct noted_jitdump){.copy.pid = 6, .fd = -1, .mapped_ns = 25});
	for (int i = 0; i < 3; i++)
		jitdumps_note_begin(&recorder, 5, orders[_i][i]);
	ck_assert_uint_eq(recorder.jobs.runtimes->jitdumps.items.items[0].copy.program_ns, 20);
	ck_assert_uint_eq(recorder.jobs.runtimes->jitdumps.items.items[1].copy.program_ns, 0);
}
END_TEST

/* Of two dumps there is room for the first, and for a part of the second. */
START_TEST(dumps_beyond_the_limit_are_cut)
{
	struct jitdump_copies copies = {0};
	struct buffer section;
	size_t room = SIZE_MAX;
	struct bytes bytes;

	recorder.jobs.runtimes->jitdumps.kept_bytes = LIMIT_RECORDED_JITDUMPS_BYTES - DUMP_BYTES - 1;
	add((struct noted_jitdump){.copy.pid = 5, .fd = make_file()});
	add((struct noted_jitdump){.copy.pid = 6, .fd = make_file()});
	buffer_init(&section, SIZE_MAX);
	ck_assert_ptr_null(jitdumps_encode(&recorder, &section));
	bytes = bytes_over(section.data, section.size);
	ck_assert_ptr_null(section_read(&section_jitdumps, &bytes, &room, &copies));
	ck_assert_uint_eq(copies.dumps.count, 2);
	ck_assert_uint_eq(copies.dumps.items[0].size, DUMP_BYTES);
	ck_assert_uint_eq(copies.dumps.items[1].size, 1);
	ck_assert_uint_eq(messages, 1);
	ck_assert_ptr_nonnull(strstr(told, "1 of 2 jitdumps"));
	section_jitdumps.deinit(&copies);
	buffer_deinit(&section);
}
END_TEST

/* What is copied is compressed piece by piece: nothing is in memory as a whole. */
START_TEST(large_dumps_take_little_memory)
{
	const size_t bytes = 64u << 20;
	uint64_t before = proc_own_peak_bytes();
	struct buffer section;
	int fd = make_file();

	ck_assert_int_eq(ftruncate(fd, (off_t)bytes), 0);
	add((struct noted_jitdump){.copy.pid = 5, .fd = fd});
	buffer_init(&section, SIZE_MAX);
	ck_assert_ptr_null(jitdumps_encode(&recorder, &section));
	ck_assert_uint_gt(before, 0);
	ck_assert_uint_lt(proc_own_peak_bytes() - before, bytes / 2);
	ck_assert_uint_lt(section.size, bytes / 16);
	ck_assert_uint_eq(recorder.jobs.runtimes->jitdumps.kept_bytes, bytes);
	ck_assert_uint_eq(messages, 0);
	buffer_deinit(&section);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("jitdump-files");
	TCase *cases = add_tcase(suite, "jitdumps");

	tcase_add_checked_fixture(cases, create, destroy);
	tcase_add_loop_test(cases, dumps_belong_to_the_last_program_before_them, 0, 4);
	tcase_add_test(cases, dumps_beyond_the_limit_are_cut);
	tcase_add_test(cases, large_dumps_take_little_memory);
	return suite;
}
