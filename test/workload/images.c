/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes that execute another program: images [--exit] KIND. Earlier mappings vanish with the old address space,
 * unless a child of vfork made them: those stay with the parent.
 */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/children.h"
#include "support/stage.h"

enum { BEFORE_BLOCKS = 9, AFTER_BLOCKS = 4, BUSY_THREADS = 3, BLOCK_PAGES = 16 };

static size_t block;
static char *itself;

VISIBLE void *map_block(void)
{
	void *mapped = mmap(NULL, block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(mapped, "mmap");
	stage_touch(mapped, block);
	return mapped;
}

VISIBLE void leak_before_exec(void)
{
	for (int i = 0; i < BEFORE_BLOCKS; i++)
		map_block();
	KEEP_FRAME();
}

VISIBLE void leak_after_exec(void)
{
	for (int i = 0; i < AFTER_BLOCKS; i++)
		map_block();
	KEEP_FRAME();
}

static void expect_after_exec(pid_t pid)
{
	stage_expect("bytes=%zu count=%d resident=%zu pid=%d stack=mmap<map_block<leak_after_exec<main",
		     AFTER_BLOCKS * block, AFTER_BLOCKS, AFTER_BLOCKS * block, (int)pid);
	stage_expect("process=%d ended=0 checked=1", (int)pid);
}

/* The child maps in the address space of its parent and leaves the mapping there. */
static void run_vfork(const struct stage *stage)
{
	char descriptor[16];
	pid_t child;

	snprintf(descriptor, sizeof(descriptor), "%d", children_descriptor());
	stage_begin(stage);
	child = vfork();
	if (!child) {
		leak_before_exec();
		execl("/proc/self/exe", itself, "child", descriptor, (char *)NULL);
		_exit(127);
	}
	stage_need_call(child, "vfork");
	children_await();
	stage_expect("bytes=%zu count=%d resident=%zu stack=mmap<map_block<leak_before_exec", BEFORE_BLOCKS * block,
		     BEFORE_BLOCKS, BEFORE_BLOCKS * block);
	stage_expect("process=%d unfreed=%zu ended=0 checked=1", (int)getpid(), BEFORE_BLOCKS * block);
	expect_after_exec(child);
}

static void run_posix_spawn(const struct stage *stage)
{
	char descriptor[16], *arguments[] = {itself, (char[]){"child"}, descriptor, NULL};
	int error;
	pid_t child;

	snprintf(descriptor, sizeof(descriptor), "%d", children_descriptor());
	stage_begin(stage);
	error = posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ);
	stage_need_call(-error, "posix_spawn");
	children_await();
	stage_expect("process=%d unfreed=0 ended=0 checked=1", (int)getpid());
	expect_after_exec(child);
}

static void *churn(void *unused)
{
	for (;;)
		munmap(map_block(), block);
	return unused;
}

static void *take_the_next_program(void *exit_by_itself)
{
	leak_before_exec();
	usleep(20000);
	if (exit_by_itself)
		execl("/proc/self/exe", itself, "--exit", "after-exec", (char *)NULL);
	else
		execl("/proc/self/exe", itself, "after-exec", (char *)NULL);
	stage_need_call(-1, "execl");
	return NULL;
}

/* A thread other than the first calls exec while others make calls: it becomes the process. */
static void run_exec_thread(const struct stage *stage)
{
	pthread_t thread;

	stage_begin(stage);
	for (int i = 0; i < BUSY_THREADS; i++)
		stage_need_call(-pthread_create(&thread, NULL, churn, NULL), "pthread_create");
	pthread_create(&thread, NULL, take_the_next_program, stage->exit_by_itself ? itself : NULL);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	const char *name = stage.operand_count > 0 ? stage.operands[0] : "";

	block = BLOCK_PAGES * stage_page_bytes();
	itself = argv[0];
	if (!strcmp(name, "child") && stage.operand_count == 2) {
		children_open_as_child((int)stage_number(&stage, 1, 0));
		leak_after_exec();
		children_report_and_stay();
	}
	children_open();
	if (!strcmp(name, "vfork")) {
		run_vfork(&stage);
	} else if (!strcmp(name, "posix-spawn")) {
		run_posix_spawn(&stage);
	} else if (!strcmp(name, "exec-thread")) {
		run_exec_thread(&stage);
	} else if (!strcmp(name, "after-exec")) {
		leak_after_exec();
		stage_expect("bytes=0 stack=mmap<map_block<leak_before_exec");
		stage_expect("bytes=0 stack=mmap<map_block<churn");
		expect_after_exec(getpid());
	} else {
		fprintf(stderr, "images: no kind \"%s\"\n", name);
		return 2;
	}
	stage_end(&stage);
	children_end();
	return 0;
}
