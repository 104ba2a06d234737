// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Random forks, clone flags, execs and exits of a few processes and threads, in any order, with calls in between: each
 * address space has one owner among the processes that share it, is valid, and releases every byte that a call
 * allocated in it.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "model/processes.h"
#include "support/space-valid.h"

#define PAGE 4096ULL
#define FIRST_PID 100
#define PIDS 8
#define PROCESSES_MAXIMUM 32 /* each step looks at all pairs of them */
#define STEPS_MAXIMUM 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct streams {
	struct processes *processes;
	uint64_t now_ns;
	uint32_t allocation;
	uint64_t live; /* bytes allocated and not released */
	uint64_t losses;
};

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void on_allocated(void *context, const struct space_interval *interval)
{
	if (interval->allocation >= ALLOCATION_FIRST)
		((struct streams *)context)->live += interval->end - interval->start;
}

static void on_released(void *context, const struct space_interval *interval, uint64_t bytes,
			const struct space_call *by)
{
	(void)by;
	/* Other mappings may have been copied by a fork. */
	if (interval->allocation >= ALLOCATION_FIRST)
		((struct streams *)context)->live -= bytes;
}

static bool observe(void *context, struct process *process, struct space_observer *observer_ret)
{
	(void)process;
	*observer_ret = (struct space_observer){.allocated = on_allocated, .released = on_released, .context = context};
	return true;
}

/* A thread of a process has the same ID or one of the next few, which may belong to another process too. */
static int32_t take_number(struct bytes *input)
{
	return FIRST_PID + bytes_u8(input) % PIDS;
}

static struct mmt_error *fork_task(struct streams *streams, struct bytes *input, uint8_t shape)
{
	int32_t parent = take_number(input), parent_thread = shape & 1 ? take_number(input) : parent;
	int32_t child = shape & 2 ? parent : take_number(input), thread = shape & 4 ? take_number(input) : child;

	return processes_fork(streams->processes, child, thread, parent, parent_thread,
			      shape & 8 ? 0 : streams->now_ns);
}

static struct mmt_error *new_task(struct streams *streams, struct bytes *input, uint8_t shape)
{
	uint64_t flags = (shape & 1 ? CLONE_VM : 0) | (shape & 2 ? CLONE_VFORK : 0) | (shape & 4 ? CLONE_THREAD : 0);

	return processes_new_task(streams->processes, take_number(input), flags);
}

static struct mmt_error *rename_task(struct streams *streams, struct bytes *input, bool exec)
{
	int32_t pid = take_number(input), tid = take_number(input);
	struct thread *thread;
	struct mmt_error *error = processes_thread(streams->processes, pid, tid, streams->now_ns, &thread);

	return error ? error
		     : processes_comm(streams->processes, thread, exec ? "exec" : "comm", exec, streams->now_ns);
}

/* An ended process may be forgotten unless another one needs it. */
static struct mmt_error *exit_task(struct streams *streams, int32_t pid, int32_t tid, bool let_go)
{
	struct mmt_error *error = processes_exit(streams->processes, pid, tid, streams->now_ns);
	struct process *process = processes_find(streams->processes, pid);

	if (error || !process || !process->ended || process->borrows_space || !let_go)
		return error;
	space_release(process->space);
	processes_release_space(streams->processes, process);
	return NULL;
}

static struct mmt_error *apply_call(struct streams *streams, struct bytes *input, uint8_t shape)
{
	int32_t pid = take_number(input), tid = take_number(input);
	uint64_t address = bytes_u8(input) * PAGE, length = (1 + (shape & 3)) * PAGE;
	bool map = shape & 4;
	const struct space_call call = {
	    .kind = map ? CALL_MMAP : CALL_MUNMAP,
	    .arguments = {address, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | (shape & 8 ? MAP_FIXED : 0),
			  UINT64_MAX},
	    .result = map ? (int64_t)address : 0,
	    .time_ns = streams->now_ns,
	    .thread = tid,
	    .allocation = ALLOCATION_FIRST + ++streams->allocation,
	};
	struct thread *thread;
	struct mmt_error *error = processes_thread(streams->processes, pid, tid, streams->now_ns, &thread);

	if (error)
		return error;
	return space_apply(streams->processes->all.items[thread->process]->space, &call);
}

static struct mmt_error *step(struct streams *streams, struct bytes *input)
{
	uint8_t choice = bytes_u8(input), shape = bytes_u8(input);
	int32_t pid;

	streams->now_ns += 1000;
	switch (choice % 8) {
	case 0:
		return fork_task(streams, input, shape);
	case 1:
	case 2:
		return new_task(streams, input, shape);
	case 3:
		pid = take_number(input);
		return exit_task(streams, pid, shape & 1 ? take_number(input) : pid, shape & 2);
	case 4:
		return rename_task(streams, input, shape & 1);
	case 5:
		streams->losses++;
		return NULL;
	default:
		return apply_call(streams, input, shape);
	}
}

/* Processes that share an address space refer to the same one; exactly one of them owns it. */
static void check_sharers(const struct streams *streams, const struct process *process)
{
	const struct process *next = process;
	size_t owners = 0, seen = 0;

	do {
		require(next->space == process->space, "processes that share a space name different ones");
		owners += !next->borrows_space;
		next = next->next_sharer;
		require(++seen <= streams->processes->all.count, "who shares a space goes round elsewhere");
	} while (next != process);
	require(process->ended || owners == 1, "a space that is shared has not one owner");
	for (uint32_t i = 0; !process->borrows_space && i < process->index; i++) {
		const struct process *other = streams->processes->all.items[i];

		require(other->borrows_space || other->space != process->space ||
			    (process->ended && other->ended && !space_next(process->space, 0)),
			"a space has two owners");
	}
}

static void check(const struct streams *streams)
{
	const char *why = "";

	for (uint32_t i = 0; i < streams->processes->all.count; i++) {
		const struct process *process = streams->processes->all.items[i], *holder;

		require(process->space != NULL, "a process without a space");
		require(process->borrows_space || space_valid(process->space, &why), why);
		holder = streams->processes->all.items[processes_holder(streams->processes, process)];
		require(holder->space == process->space, "who maps for another is not in its space");
		check_sharers(streams, process);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes input = bytes_over(data, size);
	struct streams streams = {.now_ns = 1000000};
	const struct processes_options options = {
	    .page_bytes = PAGE, .observe = observe, .context = &streams, .losses = &streams.losses};

	if (processes_create(&options, &streams.processes))
		abort();
	for (unsigned i = 0;
	     i < STEPS_MAXIMUM && bytes_left(&input) && streams.processes->all.count < PROCESSES_MAXIMUM; i++) {
		mmt_error_destroy(step(&streams, &input));
		check(&streams);
	}
	processes_destroy(streams.processes);
	require(!streams.live, "what was allocated is not what was released");
	return 0;
}
