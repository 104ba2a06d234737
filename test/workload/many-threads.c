/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that are all alive at once: many-threads [--exit] COUNT [joined]. Their stacks belong to two callers of
 * pthread_create, half to each; when they are joined, glibc caches some stacks.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "support/stage.h"

enum { STACK_KIBIBYTES = 512 };

struct worker {
	pthread_t thread;
	char *stack;
	size_t bytes, guard;
};

static pthread_barrier_t all_there, may_end;

/* The stack with its guard; the attributes are glibc's. */
static void find_stack(struct worker *worker)
{
	pthread_attr_t attributes;
	void *stack;

	stage_need_call(-pthread_getattr_np(worker->thread, &attributes), "pthread_getattr_np");
	pthread_attr_getstack(&attributes, &stack, &worker->bytes);
	pthread_attr_getguardsize(&attributes, &worker->guard);
	worker->stack = stack;
	pthread_attr_destroy(&attributes);
}

static void *run_worker(void *unused)
{
	pthread_barrier_wait(&all_there);
	pthread_barrier_wait(&may_end);
	return unused;
}

static void create_worker(struct worker *worker, const pthread_attr_t *attributes)
{
	stage_need_call(-pthread_create(&worker->thread, attributes, run_worker, NULL), "pthread_create");
}

VISIBLE void start_even(struct worker *worker, const pthread_attr_t *attributes)
{
	create_worker(worker, attributes);
	KEEP_FRAME();
}

VISIBLE void start_odd(struct worker *worker, const pthread_attr_t *attributes)
{
	create_worker(worker, attributes);
	KEEP_FRAME();
}

static bool is_mapped(const struct worker *worker)
{
	return msync(worker->stack, 1, MS_ASYNC) == 0 || errno != ENOMEM;
}

static void expect_stacks(const struct worker *workers, size_t count, size_t first, const char *function, bool joined)
{
	size_t bytes = 0, guards = 0, mappings = 0;

	for (size_t i = first; i < count; i += 2) {
		if (joined && !is_mapped(&workers[i]))
			continue;
		bytes += workers[i].bytes + workers[i].guard;
		guards += workers[i].guard;
		mappings++;
	}
	stage_expect("bytes=%zu count=%zu reserved=%zu allocations=%zu call=mmap through=%s", bytes, mappings, guards,
		     count / 2, function);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t count = stage_number(&stage, 0, 1500);
	struct worker *workers = stage_need(calloc(count, sizeof(*workers)), "calloc");
	bool joined = stage.operand_count > 1;
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_KIBIBYTES << 10);
	pthread_barrier_init(&all_there, NULL, (unsigned)count + 1);
	pthread_barrier_init(&may_end, NULL, (unsigned)count + 1);
	stage_begin(&stage);
	for (size_t i = 0; i < count; i++)
		(i & 1 ? start_odd : start_even)(&workers[i], &attributes);
	pthread_barrier_wait(&all_there);
	for (size_t i = 0; i < count; i++)
		find_stack(&workers[i]);
	if (joined) {
		pthread_barrier_wait(&may_end);
		for (size_t i = 0; i < count; i++)
			pthread_join(workers[i].thread, NULL);
	}
	expect_stacks(workers, count, 0, "start_even", joined);
	expect_stacks(workers, count, 1, "start_odd", joined);
	stage_end(&stage);
	return 0;
}
