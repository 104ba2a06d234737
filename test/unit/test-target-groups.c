// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where --scope auto opens the events, on machines with more CPUs than this one. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/recorder/recorder.h"
#include "capture/record-loop.h"
#include "support/suite.h"

#define EVENTS 23

static struct mmt_record_options options;
static struct recorder *recorder;
static pid_t own;
static char messages[4096];
static bool warned;

static void keep_message(void *context, bool warning, const char *text)
{
	(void)context;
	warned |= warning;
	strncat(messages, text, sizeof(messages) - strlen(messages) - 1);
}

static void setup(void)
{
	own = getpid();
	mmt_record_options_init(&options);
	options.pids = &own;
	options.pid_count = 1;
	options.message = keep_message;
	options.verbose = true;
	recorder = calloc(1, sizeof(*recorder));
	ck_assert_ptr_nonnull(recorder);
	recorder->options = &options;
	recorder->cgroup = -1;
	for (int i = 0; i < EVENTS; i++)
		ck_assert_ptr_nonnull(vector_append(&recorder->reader.events.items));
	recorder->reader.attachment = (struct attachment){
	    .set = &recorder->reader.events, .rings = &recorder->reader.rings, .calls = &recorder->calls};
	*messages = '\0';
	warned = false;
}

static void teardown(void)
{
	scope_deinit(&recorder->reader.scope);
	vector_deinit(&recorder->reader.rings.cpus);
	vector_deinit(&recorder->reader.events.items);
	free(recorder);
}

static enum scope_kind choose(int cpus)
{
	for (int cpu = 0; cpu < cpus; cpu++)
		ck_assert(vector_push(&recorder->reader.rings.cpus, cpu));
	ck_assert_ptr_null(targets_choose_scope(recorder));
	return recorder->reader.scope.kind;
}

START_TEST(few_cpus_have_events_of_threads)
{
	ck_assert_int_eq(choose(8), SCOPE_THREADS);
	ck_assert_str_eq(recorder->summary.scope, "for each thread");
	ck_assert_str_eq(messages, "");
}
END_TEST

START_TEST(many_cpus_have_events_of_groups_or_cpus)
{
	ck_assert_int_eq(choose(64), SCOPE_PROCESSES);
	ck_assert(recorder->summary.on_cpus);
	ck_assert_ptr_nonnull(strstr(messages, "events for each of 1 threads on 64 CPUs would slow down"));
	ck_assert(!warned);
	/* Which of the two depends on the group in which this test runs. */
	if (recorder->reader.scope.cgroups.count)
		ck_assert_ptr_nonnull(strstr(recorder->summary.scope, "in the control group /"));
	else
		ck_assert_str_eq(recorder->summary.scope, "on every CPU");
}
END_TEST

START_TEST(users_without_permission_stay_with_threads_and_are_warned)
{
	recorder->summary.restricted = true;
	ck_assert_int_eq(choose(64), SCOPE_THREADS);
	ck_assert(warned);
	ck_assert_ptr_nonnull(strstr(messages, "with 64 CPUs, each pair of mmap and munmap takes about 14 us longer"));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("target-groups");
	TCase *cases = add_tcase(suite, "scope");

	tcase_add_checked_fixture(cases, setup, teardown);
	tcase_add_tests(cases, few_cpus_have_events_of_threads, many_cpus_have_events_of_groups_or_cpus,
			users_without_permission_stay_with_threads_and_are_warned);
	return suite;
}
