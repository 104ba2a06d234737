// SPDX-License-Identifier: LGPL-2.1-or-later
/* The recorder runs before its targets, and leaves them their share. */
#include <check.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/procfs/clock.h"
#include "capture/procfs/scheduling-priority.h"
#include "support/suite.h"

static int own_nice(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

/* What any user may do, whatever the priority at which the tests were started. */
static int lower_priority(void)
{
	ck_assert_int_eq(setpriority(PRIO_PROCESS, 0, own_nice() + 2), 0);
	return own_nice();
}

static int own_policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

/* The kernel is asked in a child, which exits at once. */
static bool may_be_realtime(void)
{
	const struct sched_param parameters = {.sched_priority = PRIORITY_REALTIME};
	pid_t child = fork();
	int status;

	if (!child)
		_exit(sched_setscheduler(0, SCHED_RR, &parameters) != 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void expect_ordinary_children(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(own_policy() != SCHED_OTHER || own_nice() < 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A user's own choice. */
START_TEST(another_policy_is_kept)
{
	const struct sched_param none = {0};
	struct priority priority = {0};

	ck_assert_int_eq(sched_setscheduler(0, SCHED_BATCH, &none), 0);
	ck_assert_ptr_nonnull(priority_raise(&priority));
	ck_assert(!priority.raised);
	ck_assert_int_eq(own_policy(), SCHED_BATCH);
	priority_leave_realtime(&priority);
	priority_restore(&priority);
	ck_assert_int_eq(own_policy(), SCHED_BATCH);
}
END_TEST

/* A process with a lower priority than the default, which is restored; suites run in a child. */
START_TEST(priority_is_raised_and_restored)
{
	struct priority priority = {0};
	int lowered = lower_priority();

	ck_assert_ptr_nonnull(priority_raise(&priority));
	ck_assert_int_eq(own_policy(), may_be_realtime() ? SCHED_RR : SCHED_OTHER);
	if (own_policy() == SCHED_OTHER)
		ck_assert_int_eq(own_nice(), priority.has_nice ? PRIORITY_NICE : lowered);
	expect_ordinary_children();
	priority_leave_realtime(&priority);
	ck_assert_int_eq(own_policy(), SCHED_OTHER);
	ck_assert_int_eq(own_nice(), priority.has_nice ? PRIORITY_NICE : lowered);
	expect_ordinary_children();
	priority_restore(&priority);
	ck_assert_int_eq(own_policy(), SCHED_OTHER);
	ck_assert_int_eq(own_nice(), lowered);
	ck_assert(!priority.raised);
	/* Once: a later setting by somebody else stays. */
	lowered = lower_priority();
	priority_restore(&priority);
	ck_assert_int_eq(own_nice(), lowered);
}
END_TEST

/* Without the permission for it. */
START_TEST(refused_priority_is_reported)
{
	const struct rlimit none = {0};
	struct priority priority = {0};
	int lowered;

	ck_assert_int_eq(setrlimit(RLIMIT_NICE, &none), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_RTPRIO, &none), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	lowered = lower_priority();
	priority_raise(&priority);
	ck_assert(!priority.raised);
	priority_restore(&priority);
	ck_assert_int_eq(own_nice(), lowered);
	/* It takes its turn like any other process. */
	priority.work_began_ns = 1000;
	ck_assert(!priority_pause_is_due(&priority, 1000 + 100 * PRIORITY_WORK_NS));
	/* The leak detector must be allowed to run at the end. */
	ck_assert_int_eq(seteuid(getuid()), 0);
	ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 1), 0);
}
END_TEST

/* The real-time policy is used while rings fill up, and for a while after that. */
START_TEST(real_time_follows_the_rings)
{
	struct priority priority = {0};
	int policy;

	ck_assert_ptr_nonnull(priority_raise(&priority));
	policy = priority.may_be_realtime ? SCHED_RR : SCHED_OTHER;
	/* Until priority_leave_realtime(), the rings do not matter. */
	priority_follow_rings(&priority, false, UINT64_MAX - 1);
	ck_assert_int_eq(own_policy(), policy);
	priority_leave_realtime(&priority);
	priority_follow_rings(&priority, false, 1000);
	ck_assert_int_eq(own_policy(), SCHED_OTHER);
	priority_follow_rings(&priority, true, 1000);
	ck_assert_int_eq(own_policy(), policy);
	priority_follow_rings(&priority, true, 2000);
	priority_follow_rings(&priority, false, 1999 + PRIORITY_REALTIME_NS);
	ck_assert_int_eq(own_policy(), policy);
	priority_follow_rings(&priority, false, 2000 + PRIORITY_REALTIME_NS);
	ck_assert_int_eq(own_policy(), SCHED_OTHER);
	priority_enter_realtime(&priority, UINT64_MAX);
	priority_follow_rings(&priority, false, UINT64_MAX - 1);
	ck_assert_int_eq(own_policy(), policy);
	priority_restore(&priority);
	ck_assert_int_eq(own_policy(), SCHED_OTHER);
	priority_follow_rings(&priority, true, 1000);
	ck_assert_int_eq(own_policy(), SCHED_OTHER);
}
END_TEST

START_TEST(real_time_pauses)
{
	struct priority priority = {.raised = true};
	uint64_t before_ns;

	priority.work_began_ns = 5000;
	ck_assert(!priority_pause_is_due(&priority, 5000));
	ck_assert(!priority_pause_is_due(&priority, 5000 + PRIORITY_WORK_NS - 1));
	ck_assert(priority_pause_is_due(&priority, 5000 + PRIORITY_WORK_NS));
	before_ns = clock_now_ns();
	priority_pause(&priority);
	ck_assert_uint_ge(priority.work_began_ns, before_ns + PRIORITY_PAUSE_NS);
	ck_assert(!priority_pause_is_due(&priority, priority.work_began_ns));
}
END_TEST

/* No call may have to wait a millisecond. */
START_TEST(real_time_periods_are_short)
{
	ck_assert_uint_le(PRIORITY_WORK_NS, 500000);
	ck_assert_uint_ge(PRIORITY_PAUSE_NS, PRIORITY_WORK_NS);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("scheduling-priority");
	TCase *tests = add_tcase(suite, "priority");

	tcase_add_tests(tests, priority_is_raised_and_restored, another_policy_is_kept, refused_priority_is_reported,
			real_time_follows_the_rings, real_time_pauses, real_time_periods_are_short);
	return suite;
}
