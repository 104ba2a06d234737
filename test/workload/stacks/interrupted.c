/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks mapped by a signal handler that interrupts the program at any instruction: in its own functions, including
 * their first and last instructions, in libc, its PLT and the vdso. interrupted [--exit] [HUNDREDS]
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#include "support/stage.h"

enum { BLOCK = 4096, EVERY_MICROSECONDS = 200 };

static volatile sig_atomic_t handled;

static void handle_signal(int number)
{
	(void)number;
	stage_need(mmap(NULL, BLOCK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	handled++;
}

VISIBLE int compare(const void *left, const void *right)
{
	return *(const int *)left - *(const int *)right;
}

VISIBLE void in_library(void)
{
	int numbers[8] = {8, 7, 6, 5, 4, 3, 2, 1};

	qsort(numbers, 8, sizeof(numbers[0]), compare);
	KEEP_FRAME();
}

VISIBLE void in_vdso(void)
{
	struct timespec now;

	for (int i = 0; i < 20; i++)
		clock_gettime(CLOCK_MONOTONIC, &now);
}

VISIBLE long in_program(long number)
{
	if (number > 0)
		number = in_program(number - 1) + 1;
	KEEP_FRAME();
	return number;
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	int wanted = (int)stage_number(&stage, 0, 1) * 100;
	struct sigaction action = {.sa_handler = handle_signal, .sa_flags = SA_RESTART};
	struct itimerval interval = {{0, EVERY_MICROSECONDS}, {0, EVERY_MICROSECONDS}};

	stage_need_call(sigaction(SIGALRM, &action, NULL), "sigaction");
	stage_begin(&stage);
	stage_need_call(setitimer(ITIMER_REAL, &interval, NULL), "setitimer");
	while (handled < wanted) {
		in_library();
		in_vdso();
		in_program(8);
	}
	interval = (struct itimerval){0};
	stage_need_call(setitimer(ITIMER_REAL, &interval, NULL), "setitimer");
	stage_end(&stage);
	return 0;
}
