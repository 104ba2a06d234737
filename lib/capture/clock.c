// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/clock.h"

#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL

static uint64_t read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

uint64_t clock_now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_from_ticks(uint64_t ticks)
{
	uint64_t boot_ns = ticks * (SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK));
	/* The clock of ticks goes on while the machine sleeps. */
	uint64_t asleep_ns = read_ns(CLOCK_BOOTTIME) - read_ns(CLOCK_MONOTONIC);

	return boot_ns > asleep_ns ? boot_ns - asleep_ns : 0;
}

uint64_t clock_thread_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}
