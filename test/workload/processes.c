/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes that are created and end in every way: processes [--exit] KIND. Memory that a child inherits is not its
 * own, memory that it shares is counted once, and memory of an ended process has no owner.
 */
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/children.h"
#include "support/stage.h"

enum { PARENT_BLOCKS = 7, CHILD_BLOCKS = 5, GRANDCHILD_BLOCKS = 3, FREED_BY_CHILD = 2, BLOCK_PAGES = 8 };
enum { BUSY_THREADS = 4, BUSY_SLOTS = 16, BUSY_CHILDREN = 8, CLONE_STACK = 64 << 10 };
enum { TURNS = 100, TURN_BYTES = 10 << 20 };

static size_t block;
static void *inherited[PARENT_BLOCKS];
static char *clone_stack;
static atomic_bool busy_end;

VISIBLE void *map_block(void)
{
	void *mapped = mmap(NULL, block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(mapped, "mmap");
	stage_touch(mapped, block);
	return mapped;
}

VISIBLE void leak_in_parent(void)
{
	for (int i = 0; i < PARENT_BLOCKS; i++)
		inherited[i] = map_block();
	KEEP_FRAME();
}

VISIBLE void leak_in_child(size_t blocks)
{
	for (size_t i = 0; i < blocks; i++)
		map_block();
	KEEP_FRAME();
}

VISIBLE void leak_in_grandchild(void)
{
	for (int i = 0; i < GRANDCHILD_BLOCKS; i++)
		map_block();
	KEEP_FRAME();
}

/* Maps and unmaps in its own slots until told to stop, then leaves nothing. */
static void *churn(void *seed)
{
	uint32_t number = (uint32_t)(uintptr_t)seed;
	void *slots[BUSY_SLOTS] = {0};

	while (!atomic_load(&busy_end)) {
		unsigned i = number >> 16 & (BUSY_SLOTS - 1);

		number = number * 1664525u + 1013904223u;
		if (slots[i])
			munmap(slots[i], block);
		slots[i] = slots[i]
			       ? NULL
			       : stage_need(mmap(NULL, block, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	}
	for (unsigned i = 0; i < BUSY_SLOTS; i++)
		if (slots[i])
			munmap(slots[i], block);
	return NULL;
}

static void start_churning(pthread_t *threads)
{
	for (size_t i = 0; i < BUSY_THREADS; i++)
		stage_need_call(-pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), "pthread_create");
}

static void end_churning(pthread_t *threads)
{
	atomic_store(&busy_end, true);
	for (size_t i = 0; i < BUSY_THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void run_child_with_inheritance(void)
{
	leak_in_child(CHILD_BLOCKS);
	for (int i = 0; i < FREED_BY_CHILD; i++)
		munmap(inherited[i], block);
}

static void expect_parent(void)
{
	stage_expect("process=%d unfreed=%zu ended=0 checked=1", (int)getpid(), PARENT_BLOCKS * block);
	stage_expect("bytes=%zu count=%d resident=%zu releases=0 stack=mmap<map_block<leak_in_parent",
		     PARENT_BLOCKS * block, PARENT_BLOCKS, PARENT_BLOCKS * block);
}

static void expect_child(pid_t child, size_t blocks)
{
	stage_expect("process=%d parent=%d unfreed=%zu ended=0 checked=1", (int)child, (int)getpid(), blocks * block);
}

/* A child and its own child. */
static void run_fork(const struct stage *stage)
{
	pid_t child, grandchild;

	stage_begin(stage);
	leak_in_parent();
	child = stage_need_call(fork(), "fork");
	if (!child) {
		children_begin();
		run_child_with_inheritance();
		if (!stage_need_call(fork(), "fork")) {
			children_begin();
			leak_in_grandchild();
		}
		children_report_and_stay();
	}
	/* Whichever finishes first. */
	grandchild = children_await();
	if (grandchild == child)
		grandchild = children_await();
	else
		children_await();
	expect_parent();
	expect_child(child, CHILD_BLOCKS);
	stage_expect("process=%d parent=%d unfreed=%zu", (int)grandchild, (int)child, GRANDCHILD_BLOCKS * block);
	stage_expect("bytes=%zu count=%d stack=mmap<map_block<leak_in_child", CHILD_BLOCKS * block, CHILD_BLOCKS);
	stage_expect("bytes=%zu count=%d pid=%d stack=mmap<map_block<leak_in_grandchild", GRANDCHILD_BLOCKS * block,
		     GRANDCHILD_BLOCKS, (int)grandchild);
	stage_expect("total=%zu", (PARENT_BLOCKS + CHILD_BLOCKS + GRANDCHILD_BLOCKS) * block);
}

/* Children of a process whose other threads never pause. */
static void run_fork_busy(const struct stage *stage)
{
	pthread_t threads[BUSY_THREADS];

	start_churning(threads);
	stage_begin(stage);
	leak_in_parent();
	for (int i = 0; i < BUSY_CHILDREN; i++) {
		if (!stage_need_call(fork(), "fork")) {
			children_begin();
			run_child_with_inheritance();
			children_report_and_stay();
		}
		usleep(3000);
	}
	for (int i = 0; i < BUSY_CHILDREN; i++)
		expect_child(children_await(), CHILD_BLOCKS);
	end_churning(threads);
	expect_parent();
	stage_expect("bytes=%zu count=%d stack=mmap<map_block<leak_in_child", BUSY_CHILDREN * CHILD_BLOCKS * block,
		     BUSY_CHILDREN * CHILD_BLOCKS);
	stage_expect("bytes=0 stack=mmap<churn");
	stage_expect("total=%zu", (PARENT_BLOCKS + BUSY_CHILDREN * CHILD_BLOCKS) * block);
}

static int run_sharing_child(void *unused)
{
	(void)unused;
	leak_in_child(CHILD_BLOCKS);
	children_report_and_stay();
}

static int run_cloned_child(void *unused)
{
	(void)unused;
	children_begin();
	run_child_with_inheritance();
	children_report_and_stay();
}

/* A process in the address space of its parent: what it maps is counted once. */
static void run_clone_vm(const struct stage *stage)
{
	stage_begin(stage);
	leak_in_parent();
	stage_need_call(clone(run_sharing_child, clone_stack + CLONE_STACK, CLONE_VM | SIGCHLD, NULL), "clone");
	children_await();
	stage_expect("bytes=%zu count=%d stack=mmap<map_block<leak_in_parent", PARENT_BLOCKS * block, PARENT_BLOCKS);
	stage_expect("bytes=%zu count=%d stack=mmap<map_block<leak_in_child", CHILD_BLOCKS * block, CHILD_BLOCKS);
	stage_expect("total=%zu", (PARENT_BLOCKS + CHILD_BLOCKS) * block);
}

static void run_clone_no_vm(const struct stage *stage)
{
	pid_t child;

	stage_begin(stage);
	leak_in_parent();
	child = clone(run_cloned_child, clone_stack + CLONE_STACK, CLONE_FILES | CLONE_FS | SIGCHLD, NULL);
	stage_need_call(child, "clone");
	children_await();
	expect_parent();
	expect_child(child, CHILD_BLOCKS);
	stage_expect("total=%zu", (PARENT_BLOCKS + CHILD_BLOCKS) * block);
}

/* A child with busy threads, one of which ends all of them. */
static void run_group_exit(const struct stage *stage)
{
	pid_t child;

	stage_begin(stage);
	leak_in_parent();
	child = stage_need_call(fork(), "fork");
	if (!child) {
		pthread_t threads[BUSY_THREADS];

		start_churning(threads);
		leak_in_child(CHILD_BLOCKS);
		usleep(100000);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	expect_parent();
	stage_expect("process=%d parent=%d ended=1", (int)child, (int)getpid());
	stage_expect("total=%zu", PARENT_BLOCKS * block);
}

/* Children one after the other: no two of them hold anything at the same time. */
static void run_in_turn(const struct stage *stage)
{
	stage_begin(stage);
	leak_in_parent();
	for (int i = 0; i < TURNS; i++) {
		pid_t child = stage_need_call(fork(), "fork");

		if (!child) {
			stage_need(mmap(NULL, TURN_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	expect_parent();
	stage_expect("total=%zu ended=%zu peak=%zu", PARENT_BLOCKS * block, (size_t)TURNS * TURN_BYTES,
		     PARENT_BLOCKS * block + TURN_BYTES);
}

static pid_t fork_as(pid_t wanted)
{
	struct clone_args arguments = {.exit_signal = SIGCHLD};

	if (wanted) {
		arguments.set_tid = (uintptr_t)&wanted;
		arguments.set_tid_size = 1;
	}
	return (pid_t)stage_need_call((int)syscall(SYS_clone3, &arguments, sizeof(arguments)), "clone3");
}

/* A child exits, and another one reuses its PID. */
static void run_pid_reuse(const struct stage *stage)
{
	pid_t child;

	stage_begin(stage);
	leak_in_parent();
	child = fork_as(0);
	if (!child) {
		leak_in_child(GRANDCHILD_BLOCKS);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	if (!fork_as(child)) {
		children_begin();
		leak_in_child(CHILD_BLOCKS);
		children_report_and_stay();
	}
	children_await();
	expect_parent();
	stage_expect("process=%d parent=%d living=%zu", (int)child, (int)getpid(), CHILD_BLOCKS * block);
	stage_expect("bytes=%zu count=%d stack=mmap<map_block<leak_in_child", CHILD_BLOCKS * block, CHILD_BLOCKS);
	stage_expect("total=%zu ended=%zu", (PARENT_BLOCKS + CHILD_BLOCKS) * block, GRANDCHILD_BLOCKS * block);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const struct stage *stage);
	} kinds[] = {
	    {"fork", run_fork},
	    {"fork-busy", run_fork_busy},
	    {"clone-vm", run_clone_vm},
	    {"clone-no-vm", run_clone_no_vm},
	    {"group-exit", run_group_exit},
	    {"in-turn", run_in_turn},
	    {"pid-reuse", run_pid_reuse},
	};
	struct stage stage = stage_open(argc, argv);
	const char *name = stage.operand_count > 0 ? stage.operands[0] : "";

	block = BLOCK_PAGES * stage_page_bytes();
	clone_stack = stage_need(malloc(CLONE_STACK), "malloc");
	children_open();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(kinds[i].name, name))
			continue;
		kinds[i].run(&stage);
		stage_end(&stage);
		children_end();
		return 0;
	}
	fprintf(stderr, "processes: no kind \"%s\"\n", name);
	return 2;
}
