// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/perf/scheduling-priority.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>

#include "capture/perf/clock.h"

void priority_take(struct priority *priority)
{
	errno = 0;
	priority->nice_before = getpriority(PRIO_PROCESS, 0);
	priority->taken = !errno && !setpriority(PRIO_PROCESS, 0, PRIORITY_NICE);
	priority_begin_work(priority, clock_now_ns());
}

void priority_give_up(struct priority *priority)
{
	if (priority->taken)
		setpriority(PRIO_PROCESS, 0, priority->nice_before);
	priority->taken = false;
}

void priority_begin_work(struct priority *priority, uint64_t now_ns)
{
	priority->work_began_ns = now_ns;
}

bool priority_pause_is_due(const struct priority *priority, uint64_t now_ns)
{
	return priority->taken && now_ns - priority->work_began_ns >= PRIORITY_WORK_NS;
}

void priority_pause(struct priority *priority)
{
	const struct timespec pause = {.tv_nsec = PRIORITY_PAUSE_NS};

	nanosleep(&pause, NULL);
	priority_begin_work(priority, clock_now_ns());
}
