/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Common causes of growth, one for each KIND; with `fixed`, the same program after the fix: causes KIND [fixed]. */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/stage.h"

#define BLOCK_BYTES ((size_t)1 << 20)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

#define HUGE_BYTES ((size_t)2 << 20)
enum { BLOCKS = 32, WORKERS = 8, PIECES = 400, PIECE_BYTES = 60000, THREADS = 48 };

static bool fixed;
static pthread_barrier_t turn;

VISIBLE void *allocate_piece(size_t bytes)
{
	void *piece = stage_need(malloc(bytes), "malloc");

	memset(piece, 1, bytes);
	KEEP_FRAME();
	return piece;
}

/* Each thread frees all but its last piece, so that its arena cannot shrink at its end. */
VISIBLE void *use_memory(void *next)
{
	void *pieces[PIECES], *kept;

	while (atomic_load((atomic_int *)next) < 0)
		usleep(1000);
	for (int i = 0; i < PIECES; i++) {
		pieces[i] = stage_need(malloc(PIECE_BYTES), "malloc");
		memset(pieces[i], 1, PIECE_BYTES);
	}
	kept = allocate_piece(100);
	for (int i = 0; i < PIECES; i++)
		free(pieces[i]);
	atomic_store((atomic_int *)next, -1);
	pthread_barrier_wait(&turn);
	free(kept);
	return NULL;
}

/* Threads that allocate one after the other: with one arena, each reuses what the previous one freed. */
static void grow_arenas(void)
{
	static atomic_int may_run[WORKERS];
	pthread_t thread;

	pthread_barrier_init(&turn, NULL, WORKERS + 1);
	for (int i = 0; i < WORKERS; i++) {
		atomic_store(&may_run[i], -1);
		stage_need_call(-pthread_create(&thread, NULL, use_memory, &may_run[i]), "pthread_create");
	}
	for (int i = 0; i < WORKERS; i++) {
		atomic_store(&may_run[i], 1);
		while (atomic_load(&may_run[i]) > 0)
			usleep(1000);
	}
}

/* About one small piece of each page stays. */
static void fragment_heap(void)
{
	enum { SMALL = 1000, COUNT = 40000 };
	static void *pieces[COUNT];

	for (int i = 0; i < COUNT; i++)
		pieces[i] = allocate_piece(SMALL);
	for (int i = 0; i < COUNT; i++) {
		if (fixed || i % 4)
			free(pieces[i]);
	}
}

VISIBLE void *run_briefly(void *unused)
{
	volatile char stack[256 << 10];

	memset((void *)(uintptr_t)stack, 1, sizeof(stack));
	return unused;
}

VISIBLE void start_thread_without_join(void)
{
	pthread_t thread;

	stage_need_call(-pthread_create(&thread, NULL, run_briefly, NULL), "pthread_create");
	if (fixed)
		stage_need_call(-pthread_join(thread, NULL), "pthread_join");
}

VISIBLE void *wait_forever(void *unused)
{
	run_briefly(unused);
	pause();
	return unused;
}

VISIBLE void start_waiting_thread(void)
{
	pthread_t thread;

	stage_need_call(-pthread_create(&thread, NULL, wait_forever, NULL), "pthread_create");
}

VISIBLE void *map_file(int fd, int flags)
{
	void *block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);

	return stage_need(block, "mmap");
}

static int open_file(const char *kind)
{
	FILE *file = NULL;
	int fd = -1;

	if (!strcmp(kind, "memfd"))
		fd = memfd_create("frames", MFD_CLOEXEC);
	else if (!strcmp(kind, "file") && (file = fopen("block.bin", "w+")))
		fd = fileno(file);
	stage_need_call(fd, kind);
	stage_need_call(ftruncate(fd, BLOCK_BYTES), "ftruncate");
	return fd;
}

VISIBLE void map_and_forget(const char *kind)
{
	int fd = strcmp(kind, "shared") ? open_file(kind) : -1;
	void *block = map_file(fd, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0));

	stage_touch(block, BLOCK_BYTES);
	if (fd >= 0)
		close(fd);
	if (fixed)
		munmap(block, BLOCK_BYTES);
}

VISIBLE void attach_and_forget(void)
{
	int id = stage_need_call(shmget(IPC_PRIVATE, BLOCK_BYTES, IPC_CREAT | 0600), "shmget");
	void *block = shmat(id, NULL, 0);

	shmctl(id, IPC_RMID, NULL);
	stage_need(block == (void *)-1 ? NULL : block, "shmat");
	stage_touch(block, BLOCK_BYTES);
	if (fixed)
		shmdt(block);
}

VISIBLE void set_up_and_forget(void)
{
	aio_context_t context = 0;

	stage_need_call((int)syscall(SYS_io_setup, 100, &context), "io_setup");
	if (fixed)
		syscall(SYS_io_destroy, context);
}

/* Whether there are huge pages depends on the system. */
VISIBLE char *map_huge_pages(void)
{
	char *block = mmap(NULL, BLOCKS * HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(block, "mmap");
	stage_need_call(prctl(PR_SET_THP_DISABLE, fixed, 0, 0, 0), "prctl");
	madvise(block, BLOCKS * HUGE_BYTES, MADV_HUGEPAGE);
	KEEP_FRAME();
	return block;
}

/* One byte of each huge page. If free memory is fragmented, the kernel provides small pages unless asked to collapse
 * them. */
VISIBLE void touch_sparsely(char *block)
{
	for (size_t i = 0; i < BLOCKS; i++)
		block[i * HUGE_BYTES] = 1;
	if (!fixed)
		madvise(block, BLOCKS * HUGE_BYTES, MADV_COLLAPSE);
	KEEP_FRAME();
}

VISIBLE void fill(char *block)
{
	memset(block, 1, BLOCKS * HUGE_BYTES);
	KEEP_FRAME();
}

VISIBLE void map_anonymous(void)
{
	void *block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_touch(stage_need(block, "mmap"), BLOCK_BYTES);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	const char *kind = stage.operand_count ? stage.operands[0] : "anonymous";
	char *block;

	fixed = stage.operand_count > 1 && !strcmp(stage.operands[1], "fixed");
	block = !strcmp(kind, "old-huge-pages") ? map_huge_pages() : NULL;
	stage_begin(&stage);
	if (!strcmp(kind, "arenas"))
		grow_arenas();
	else if (!strcmp(kind, "fragments"))
		fragment_heap();
	else if (!strcmp(kind, "huge-pages"))
		touch_sparsely(map_huge_pages());
	else if (!strcmp(kind, "old-huge-pages"))
		touch_sparsely(block);
	else if (!strcmp(kind, "full-huge-pages"))
		fill(map_huge_pages());
	for (int i = 0; i < THREADS && !strcmp(kind, "finished-threads"); i++)
		start_thread_without_join();
	for (int i = 0; i < THREADS && !strcmp(kind, "waiting-threads"); i++)
		start_waiting_thread();
	for (int i = 0; i < BLOCKS && !strcmp(kind, "shm"); i++)
		attach_and_forget();
	for (int i = 0; i < BLOCKS && !strcmp(kind, "aio"); i++)
		set_up_and_forget();
	for (int i = 0; i < BLOCKS && !strcmp(kind, "anonymous"); i++)
		map_anonymous();
	for (int i = 0; i < BLOCKS && (!strcmp(kind, "memfd") || !strcmp(kind, "file") || !strcmp(kind, "shared")); i++)
		map_and_forget(kind);
	stage_end(&stage);
	return 0;
}
