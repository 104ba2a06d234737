// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/procfs/clock.h"

#include "capture/procfs/proc.h"

#define SECOND_NS 1000000000ULL

/* Inode number of the initial time namespace (include/linux/proc_ns.h of the kernel). */
#define FIRST_TIME_NAMESPACE 0xeffffffau

uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t longest_ns(uint64_t least_ns, uint64_t age_ns, uint64_t cost_ns)
{
	return larger_of(larger_of(least_ns, age_ns), cost_ns);
}

bool clock_is_of_events(void)
{
	static const char name[] = "monotonic";
	CLEANUP(free) char *offsets = NULL;
	struct stat status;
	char *next;

	/* These offsets apply to children. They also apply to this process, unless its next child will be the first
	 * process of a new time namespace. */
	if (stat("/proc/self/ns/time", &status) < 0 || status.st_ino == FIRST_TIME_NAMESPACE ||
	    text_file_read(-1, "/proc/self/timens_offsets", &offsets) < 0 ||
	    strncmp(offsets, name, sizeof(name) - 1) != 0)
		return true;
	return strtoll(offsets + sizeof(name) - 1, &next, 10) == 0 && strtoll(next, NULL, 10) == 0;
}

uint64_t clock_from_ticks(uint64_t ticks)
{
	uint64_t boot_ns = ticks * (SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK));
	/* Clock ticks since boot include the time that the machine was suspended. Read the clock that is ahead last. */
	uint64_t now_ns = clock_read_ns(CLOCK_MONOTONIC), asleep_ns = clock_read_ns(CLOCK_BOOTTIME) - now_ns;

	return boot_ns > asleep_ns ? boot_ns - asleep_ns : 0;
}

uint64_t clock_thread_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

bool time_budget_allows(struct time_budget *budget, uint64_t now_ns, unsigned share, int64_t saved_ns)
{
	budget->left_ns += (int64_t)((now_ns - budget->at_ns) / share);
	budget->at_ns = now_ns;
	budget->left_ns = smaller_of(budget->left_ns, saved_ns);
	return budget->left_ns > 0;
}
