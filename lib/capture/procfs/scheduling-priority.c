// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/procfs/scheduling-priority.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>

#include "capture/procfs/clock.h"

static bool set_policy(int policy, int realtime_priority)
{
	const struct sched_param parameters = {.sched_priority = realtime_priority};

	return sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &parameters) == 0;
}

bool priority_raise_nice(void)
{
	return setpriority(PRIO_PROCESS, 0, PRIORITY_NICE) == 0;
}

/* Take the nice value first: it applies again when the real-time policy ends. */
const char *priority_raise(struct priority *priority)
{
	int policy = sched_getscheduler(0);

	errno = 0;
	priority->nice_before = getpriority(PRIO_PROCESS, 0);
	priority->policy_before = policy;
	priority->work_began_ns = clock_now_ns();
	/* Keep a policy that the user has chosen. */
	if (errno || policy != SCHED_OTHER)
		return "the scheduling policy that it was started with";
	priority->has_nice = set_policy(SCHED_OTHER, 0) && priority_raise_nice();
	priority->may_be_realtime = set_policy(SCHED_RR, PRIORITY_REALTIME);
	priority->raised = priority->has_nice || priority->may_be_realtime;
	priority->is_realtime = priority->may_be_realtime;
	priority->realtime_until_ns = UINT64_MAX;
	if (priority->may_be_realtime)
		return priority->has_nice ? "nice -20, and real-time priority while a ring fills up"
					  : "ordinary priority, and real-time priority while a ring fills up";
	return priority->has_nice ? "nice -20" : "ordinary priority: a higher one is not permitted (CAP_SYS_NICE)";
}

void priority_raise_same(const struct priority *priority)
{
	if (priority->raised && !(priority->may_be_realtime && set_policy(SCHED_RR, PRIORITY_REALTIME)))
		(void)priority_raise_nice();
}

void priority_enter_realtime(struct priority *priority, uint64_t until_ns)
{
	if (!priority->may_be_realtime)
		return;
	if (!priority->is_realtime)
		priority->is_realtime = set_policy(SCHED_RR, PRIORITY_REALTIME);
	priority->realtime_until_ns = until_ns;
}

void priority_leave_realtime(struct priority *priority)
{
	if (priority->is_realtime)
		priority->is_realtime = !set_policy(SCHED_OTHER, 0);
	priority->realtime_until_ns = 0;
}

void priority_follow_rings(struct priority *priority, bool filling, uint64_t now_ns)
{
	if (filling && priority->realtime_until_ns != UINT64_MAX)
		priority_enter_realtime(priority, now_ns + PRIORITY_REALTIME_NS);
	else if (priority->is_realtime && now_ns >= priority->realtime_until_ns)
		priority_leave_realtime(priority);
}

void priority_restore(struct priority *priority)
{
	const struct sched_param none = {0};

	if (!priority->raised)
		return;
	/* Reset the policy without SCHED_RESET_ON_FORK: the kernel lets only a thread with CAP_SYS_NICE clear that
	 * flag. */
	(void)sched_setscheduler(0, priority->policy_before, &none);
	(void)setpriority(PRIO_PROCESS, 0, priority->nice_before);
	priority->raised = priority->has_nice = priority->may_be_realtime = priority->is_realtime = false;
}

bool priority_pause_is_due(const struct priority *priority, uint64_t now_ns)
{
	return priority->raised && now_ns - priority->work_began_ns >= PRIORITY_WORK_NS;
}

void priority_pause(struct priority *priority)
{
	const struct timespec pause = {.tv_nsec = PRIORITY_PAUSE_NS};

	nanosleep(&pause, NULL);
	priority->work_began_ns = clock_now_ns();
}

void priority_pause_if_due(struct priority *priority)
{
	if (priority_pause_is_due(priority, clock_now_ns()))
		priority_pause(priority);
}
