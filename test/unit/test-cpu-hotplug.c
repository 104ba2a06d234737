// SPDX-License-Identifier: LGPL-2.1-or-later
/* CPUs that come online during recording. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/perf/ring-buffers.h"
#include "capture/procfs/proc.h"
#include "support/suite.h"

static struct cpu_watch watch;

static void teardown(void)
{
	vector_deinit(&watch.away);
	vector_deinit(&watch.missed);
}

static void note_after(const char *recorded, const char *online, bool on_cpus, uint64_t asleep_ns)
{
	cpu_list before = {0}, now = {0};

	ck_assert(cpus_parse(recorded, &before) && cpus_parse(online, &now));
	ck_assert(cpu_watch_note(&watch, &before, &now, on_cpus, asleep_ns));
	vector_deinit(&before);
	vector_deinit(&now);
}

static void note(const char *recorded, const char *online, bool on_cpus)
{
	note_after(recorded, online, on_cpus, 5000000000);
}

START_TEST(cpu_lists_are_parsed)
{
	static const int expected[] = {0, 1, 2, 3, 5, 8, 9};
	cpu_list cpus = {0};

	ck_assert(cpus_parse("0-3,5,8-9\n", &cpus));
	ck_assert_uint_eq(cpus.count, sizeof(expected) / sizeof(expected[0]));
	ck_assert_mem_eq(cpus.items, expected, sizeof(expected));
	cpus.count = 0;
	ck_assert(cpus_parse("", &cpus) && cpus_parse("\n", &cpus));
	ck_assert_uint_eq(cpus.count, 0);
	vector_deinit(&cpus);
}
END_TEST

START_TEST(no_change_is_reported_as_none)
{
	note("0-3", "0-3", _i);
	note("0-3", "0-3", _i);
	ck_assert_uint_eq(watch.missed.count, 0);
}
END_TEST

START_TEST(a_cpu_comes_online)
{
	note("0,2", "0-2", _i);
	ck_assert_uint_eq(watch.missed.count, 1);
	ck_assert_int_eq(watch.missed.items[0], 1);
	/* Counted once, even if it goes offline again. */
	note("0,2", "0-2", _i);
	note("0,2", "0,2", _i);
	ck_assert_uint_eq(watch.missed.count, 1);
}
END_TEST

START_TEST(a_cpu_goes_offline_and_comes_back)
{
	note("0-1", "0", _i);
	ck_assert_uint_eq(watch.missed.count, 0);
	note("0-1", "0-1", _i);
	ck_assert_uint_eq(watch.missed.count, _i); /* events of threads are still there */
}
END_TEST

/* The kernel has closed the events of all CPUs but the first. */
START_TEST(the_machine_was_suspended)
{
	CLEANUP(free) char *text = NULL;
	/* In suspend to idle, the default of many machines, CPUs stay online. */
	bool closed = _i && (text_file_read(-1, "/sys/power/mem_sleep", &text) < 0 || !strstr(text, "[s2idle]"));

	note("0-3", "0-2", _i);
	note_after("0-3", "0-2", _i, 5000001000);
	ck_assert_uint_eq(watch.missed.count, 0);
	note_after("0-3", "0-2", _i, 7000000000);
	ck_assert_uint_eq(watch.missed.count, closed ? 2 : 0);
	note_after("0-3", "0-3", _i, 7000000000);
	ck_assert_uint_eq(watch.missed.count, closed ? 3 : _i ? 1 : 0);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("cpu-hotplug");
	TCase *tests = add_tcase(suite, "cpus");

	tcase_add_checked_fixture(tests, NULL, teardown);
	tcase_add_test(tests, cpu_lists_are_parsed);
	tcase_add_loop_test(tests, no_change_is_reported_as_none, 0, 2);
	tcase_add_loop_test(tests, a_cpu_comes_online, 0, 2);
	tcase_add_loop_test(tests, a_cpu_goes_offline_and_comes_back, 0, 2);
	tcase_add_loop_test(tests, the_machine_was_suspended, 0, 2);
	return suite;
}
