/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Forks a child about every millisecond, without end; prints "done" after a number of them. Each child maps a little,
 * releases part of it, and exits after the number of milliseconds in the first operand. The second operand is the
 * number of mappings that each inherits.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

#define CHILDREN_BEFORE_DONE 50

static void live(size_t milliseconds)
{
	for (int i = 0; i < 4; i++) {
		void *memory =
		    stage_need(mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");

		stage_touch(memory, 1 << 16);
		if (i % 2)
			munmap(memory, 1 << 15);
	}
	usleep((useconds_t)milliseconds * 1000);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t milliseconds = stage_number(&stage, 0, 1), mappings = stage_number(&stage, 1, 100);

	/* Neighbours differ, so that they are not merged. */
	for (size_t i = 0; i < mappings; i++)
		stage_need(mmap(NULL, stage_page_bytes(), i % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			   "mmap");
	signal(SIGCHLD, SIG_IGN);
	stage_begin(&stage);
	for (size_t count = 0;; count++) {
		if (fork() == 0)
			live(milliseconds);
		usleep(1000);
		if (count == CHILDREN_BEFORE_DONE) {
			puts("done");
			fflush(stdout);
		}
	}
}
