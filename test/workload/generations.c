/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * COUNT families, one after the other: a child, its child and that one's child, each forked immediately and, if
 * possible, on another CPU than its parent. Only the youngest maps a page.
 */
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/stage.h"

#define GENERATIONS 3

static void run_on(size_t number, const cpu_set_t *allowed)
{
	size_t cpus = (size_t)CPU_COUNT(allowed), skipped = 0;
	cpu_set_t one;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, allowed) || skipped++ != number % cpus)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		stage_need_call(sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
	}
}

VISIBLE void map_as_the_youngest(void)
{
	stage_need(mmap(NULL, stage_page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

static void beget(unsigned generation, const cpu_set_t *allowed)
{
	pid_t pid;

	if (generation == GENERATIONS) {
		map_as_the_youngest();
		return;
	}
	run_on(generation, allowed);
	pid = stage_need_call(fork(), "fork");
	if (pid == 0) {
		beget(generation + 1, allowed);
		_exit(0);
	}
	stage_need_call(waitpid(pid, NULL, 0), "waitpid");
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t count = stage_number(&stage, 0, 1000);
	cpu_set_t allowed;

	stage_need_call(sched_getaffinity(0, sizeof(allowed), &allowed), "sched_getaffinity");
	stage_begin(&stage);
	for (size_t i = 0; i < count; i++)
		beget(0, &allowed);
	stage_end(&stage);
	return 0;
}
