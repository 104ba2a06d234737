/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory that was mapped before recording is touched, as much each time: at the bottom of a deep stack, in a signal
 * handler, on an alternate stack, by the kernel in a call, and by a thread.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

enum { AREA = 1 << 20, DEPTH = 40, STACK_BYTES = 64 << 10 };

static char *deep_area, *signal_area, *alternate_area, *call_area, *thread_area;
static int zeros;

static char *map_area(void)
{
	char *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(area, "mmap");
	(void)madvise(area, AREA, MADV_NOHUGEPAGE);
	return area;
}

VISIBLE void touch(char *area)
{
	for (size_t i = 0; i < AREA; i += stage_page_bytes())
		*(volatile char *)(area + i) = 1;
	KEEP_FRAME();
}

VISIBLE void descend(unsigned depth)
{
	if (depth)
		descend(depth - 1);
	else
		touch(deep_area);
	KEEP_FRAME();
}

static void handle_signal(int number)
{
	touch(number == SIGUSR1 ? signal_area : alternate_area);
	KEEP_FRAME();
}

VISIBLE void raise_signal(int number)
{
	if (raise(number))
		exit(1);
	KEEP_FRAME();
}

VISIBLE void read_zeros(void)
{
	stage_need_call((int)read(zeros, call_area, AREA), "read");
	KEEP_FRAME();
}

static void *run_thread(void *unused)
{
	touch(thread_area);
	KEEP_FRAME();
	return unused;
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	stack_t alternate = {.ss_sp = stage_need(malloc(STACK_BYTES), "malloc"), .ss_size = STACK_BYTES};
	struct sigaction action = {.sa_handler = handle_signal};
	pthread_t thread;

	stage_need_call(sigaltstack(&alternate, NULL), "sigaltstack");
	stage_need_call(sigaction(SIGUSR1, &action, NULL), "sigaction");
	action.sa_flags = SA_ONSTACK;
	stage_need_call(sigaction(SIGUSR2, &action, NULL), "sigaction");
	zeros = stage_need_call(open("/dev/zero", O_RDONLY), "/dev/zero");
	deep_area = map_area();
	signal_area = map_area();
	alternate_area = map_area();
	call_area = map_area();
	thread_area = map_area();
	stage_begin(&stage);
	descend(DEPTH);
	raise_signal(SIGUSR1);
	raise_signal(SIGUSR2);
	read_zeros();
	if (pthread_create(&thread, NULL, run_thread, NULL) || pthread_join(thread, NULL))
		return 1;
	stage_end(&stage);
	return 0;
}
