// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Changes its address space at random and records the kernel's maps at checkpoints (torture-checkpoint.c).
 *
 *     torture [--exit] MODE DIRECTORY FIRST-SEED SEEDS OPERATIONS [without=NAME]...
 *
 * single   one thread
 * threads  each range belongs to one thread at a time; the kernel may give one thread what another has released
 * forks    one thread that forks at random moments; children continue alone, and fork too
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/stage.h"
#include "torture.h"

#define ARENAS 0x100000000000
#define ARENA_DISTANCE (1UL << 30)
#define FILE_PAGES 80
#define STRIDE 200 /* operations of a thread between checkpoints */
#define FORKS_DEPTH 3
#define FORKS_EVERY 600 /* operations, on average */

struct torture_program torture_program;

static size_t operations;
static struct torture_worker workers[TORTURE_THREADS];
static pthread_barrier_t barrier;

static void open_files(const char *directory)
{
	size_t bytes;
	char path[4096];

	torture_program.directory = directory;
	torture_program.page_bytes = stage_page_bytes();
	bytes = FILE_PAGES * torture_program.page_bytes;
	snprintf(path, sizeof(path), "%s/file", directory);
	torture_program.file = stage_need_call(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700), path);
	stage_need_call(ftruncate(torture_program.file, (off_t)bytes), path);
	torture_program.read_only_file = stage_need_call(open(path, O_RDONLY | O_CLOEXEC), path);
	torture_program.memory = stage_need_call(memfd_create("torture", MFD_CLOEXEC), "memfd_create");
	stage_need_call(ftruncate(torture_program.memory, (off_t)bytes), "memfd");
	torture_program.zero = stage_need_call(open("/dev/zero", O_RDWR | O_CLOEXEC), "/dev/zero");
	torture_program.unmappable = stage_need_call(open("/proc/version", O_RDONLY | O_CLOEXEC), "/proc/version");
}

static void open_program(const char *directory)
{
	_Atomic uint64_t *counts;
	uintptr_t break_end;

	open_files(directory);
	counts = stage_need(
	    mmap(NULL, torture_program.page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
	    "counts");
	torture_program.checkpoints = counts;
	torture_program.operations = counts + 1;
	torture_program.failures = counts + 2;
	/* The C library takes its heap first. */
	free(stage_need(malloc(1), "malloc"));
	break_end = (uintptr_t)syscall(SYS_brk, 0);
	torture_program.break_start = (break_end + torture_program.page_bytes - 1) & ~(torture_program.page_bytes - 1);
}

/* What is still in the slots has no owner. */
static void empty_slots(void)
{
	for (size_t i = 0; i < TORTURE_SLOTS; i++) {
		struct torture_range range = torture_unpack(atomic_exchange(&torture_program.slots[i], 0));

		if (range.pages)
			syscall(SYS_munmap, range.start, range.pages * torture_program.page_bytes);
	}
}

static void reset_break(void)
{
	syscall(SYS_brk, torture_program.break_start);
}

static void torture_alone(uint64_t seed)
{
	struct torture_worker *worker = &workers[0];

	torture_worker_open(worker, seed, ARENAS);
	worker->moves_break = worker->hands_over = true;
	for (size_t i = 1; i <= operations; i++) {
		torture_operate(worker);
		if (i % STRIDE == 0 || i == operations)
			torture_checkpoint();
	}
	torture_worker_close(worker);
	empty_slots();
	reset_break();
	torture_checkpoint();
}

static void wait_for_child(void)
{
	int status;

	if (stage_need_call(wait(&status), "wait") && status != 0) {
		fprintf(stderr, "a child ended with status %#x\n", (unsigned)status);
		exit(1);
	}
}

static void torture_tree(struct torture_worker *worker, size_t count, int depth)
{
	size_t children = 0;

	for (size_t i = 1; i <= count; i++) {
		torture_operate(worker);
		if (i % STRIDE == 0 || i == count)
			torture_checkpoint();
		if (depth == FORKS_DEPTH || torture_random(worker, FORKS_EVERY))
			continue;
		if (children == 2) {
			wait_for_child();
			children--;
		}
		if (stage_need_call(fork(), "fork")) {
			children++;
			continue;
		}
		torture_checkpoint_forked();
		torture_checkpoint();
		worker->random ^= (uint64_t)depth + 1;
		torture_tree(worker, (count - i) / 2 + 1, depth + 1);
		_exit(0);
	}
	for (; children; children--)
		wait_for_child();
}

static void torture_forks(uint64_t seed)
{
	struct torture_worker *worker = &workers[0];

	torture_worker_open(worker, seed, ARENAS);
	worker->moves_break = true;
	torture_tree(worker, operations / 2, 0);
	torture_worker_close(worker);
	reset_break();
	torture_checkpoint();
}

static void *run_worker(void *argument)
{
	struct torture_worker *worker = argument;
	size_t count = operations / TORTURE_THREADS;

	for (size_t i = 1; i <= count; i++) {
		torture_operate(worker);
		if (i % STRIDE && i != count)
			continue;
		torture_arrive();
		pthread_barrier_wait(&barrier);
		if (worker == &workers[0])
			torture_checkpoint();
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void torture_together(uint64_t seed)
{
	pthread_t threads[TORTURE_THREADS];

	for (size_t i = 0; i < TORTURE_THREADS; i++) {
		torture_worker_open(&workers[i], seed * TORTURE_THREADS + i,
				    ARENAS + i * ARENA_DISTANCE);
		workers[i].exact = workers[i].hands_over = true;
	}
	workers[0].moves_break = true;
	for (size_t i = 0; i < TORTURE_THREADS; i++)
		stage_need_call(-pthread_create(&threads[i], NULL, run_worker, &workers[i]), "pthread_create");
	for (size_t i = 0; i < TORTURE_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < TORTURE_THREADS; i++)
		torture_worker_close(&workers[i]);
	empty_slots();
	reset_break();
	torture_checkpoint();
}

static void torture_seed(const char *mode, uint64_t seed)
{
	if (!strcmp(mode, "single"))
		torture_alone(seed);
	else if (!strcmp(mode, "forks"))
		torture_forks(seed);
	else if (!strcmp(mode, "threads"))
		torture_together(seed);
	else
		stage_need_call(-1, "MODE is none of single, threads, forks");
}

static void exclude_operations(const struct stage *stage)
{
	for (int i = 5; i < stage->operand_count; i++) {
		const char *operand = stage->operands[i];

		if (strncmp(operand, "without=", 8) || !torture_exclude(operand + 8))
			stage_need_call(-1, operand);
	}
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t first = stage_number(&stage, 2, 1), seeds = stage_number(&stage, 3, 1);

	if (stage.operand_count < 2)
		stage_need_call(-1, "operands: MODE DIRECTORY FIRST-SEED SEEDS OPERATIONS [without=NAME]...");
	operations = stage_number(&stage, 4, 2000);
	exclude_operations(&stage);
	open_program(stage.operands[1]);
	pthread_barrier_init(&barrier, NULL, TORTURE_THREADS);
	stage_begin(&stage);
	for (size_t seed = first; seed < first + seeds; seed++)
		torture_seed(stage.operands[0], seed * 0x100000001b3);
	printf("torture mode=%s seeds=%zu operations=%llu failed=%llu checkpoints=%llu\n", stage.operands[0], seeds,
	       (unsigned long long)*torture_program.operations, (unsigned long long)*torture_program.failures,
	       (unsigned long long)*torture_program.checkpoints);
	fflush(stdout);
	stage_end(&stage);
	return 0;
}
