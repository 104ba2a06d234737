/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Has as many idle threads as the operand says; then some of them, a new one, and a child map something.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/stage.h"

enum { WOKEN_EVERY = 100, STACK_KIBIBYTES = 16, BLOCK = 1 << 16 };

static pthread_mutex_t closed = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_done;
static atomic_size_t started;
static atomic_int waiting; /* one of the threads that will map something */

VISIBLE void map_in_thread(void)
{
	stage_touch(stage_need(mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap"),
		    BLOCK);
	KEEP_FRAME();
}

VISIBLE void map_in_new_thread(void)
{
	stage_need(mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

static void *wait_to_map(void *unused)
{
	atomic_store(&waiting, gettid());
	atomic_fetch_add(&started, 1);
	pthread_mutex_lock(&closed);
	pthread_mutex_unlock(&closed);
	map_in_thread();
	pthread_barrier_wait(&all_done);
	pause();
	return unused;
}

static void *idle(void *unused)
{
	atomic_fetch_add(&started, 1);
	for (;;)
		pause();
	return unused;
}

static void *map_now(void *unused)
{
	map_in_new_thread();
	return unused;
}

static void run_child(void)
{
	pid_t child = stage_need_call(fork(), "fork");

	if (child == 0) {
		map_in_new_thread();
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t count = stage_number(&stage, 0, 10000), woken = count / WOKEN_EVERY;
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_KIBIBYTES << 10);
	pthread_barrier_init(&all_done, NULL, (unsigned)woken + 1);
	pthread_mutex_lock(&closed);
	for (size_t i = 0; i < count; i++)
		stage_need_call(-pthread_create(&thread, &attributes, i % WOKEN_EVERY ? idle : wait_to_map, NULL),
				"pthread_create");
	while (atomic_load(&started) < count)
		usleep(1000);
	printf("maps %d\n", atomic_load(&waiting));
	fflush(stdout);
	stage_begin(&stage);
	pthread_mutex_unlock(&closed);
	pthread_barrier_wait(&all_done);
	stage_need_call(-pthread_create(&thread, &attributes, map_now, NULL), "pthread_create");
	pthread_join(thread, NULL);
	run_child();
	stage_expect("bytes=%zu count=%zu call=mmap through=map_in_thread", woken * BLOCK, woken);
	stage_expect("bytes=%d count=1 call=mmap through=map_in_new_thread", BLOCK);
	stage_end(&stage);
	return 0;
}
