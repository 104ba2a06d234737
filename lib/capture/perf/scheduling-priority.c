// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/perf/scheduling-priority.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>

#include "capture/perf/clock.h"

void precedence_take(struct precedence *precedence)
{
	errno = 0;
	precedence->nice_before = getpriority(PRIO_PROCESS, 0);
	precedence->taken = !errno && !setpriority(PRIO_PROCESS, 0, PRECEDENCE_NICE);
	precedence_begin_work(precedence, clock_now_ns());
}

void precedence_give_up(struct precedence *precedence)
{
	if (precedence->taken)
		setpriority(PRIO_PROCESS, 0, precedence->nice_before);
	precedence->taken = false;
}

void precedence_begin_work(struct precedence *precedence, uint64_t now_ns)
{
	precedence->work_began_ns = now_ns;
}

bool precedence_pause_is_due(const struct precedence *precedence, uint64_t now_ns)
{
	return precedence->taken && now_ns - precedence->work_began_ns >= PRECEDENCE_WORK_NS;
}

void precedence_pause(struct precedence *precedence)
{
	const struct timespec pause = {.tv_nsec = PRECEDENCE_PAUSE_NS};

	nanosleep(&pause, NULL);
	precedence_begin_work(precedence, clock_now_ns());
}
