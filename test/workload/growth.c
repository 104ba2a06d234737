/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory that grows in different places; the operand selects the kind. `arena` touches what malloc reserved and made
 * accessible before, in an arena of a thread; `mmap` maps and touches; `brk` grows the heap; `protect` makes memory
 * accessible that was reserved before, and touches it; `forbid` makes memory inaccessible that was touched before,
 * which keeps its pages; `file` reads a file that was mapped before; `memfd` maps and touches one; `shared` touches
 * shared memory that was mapped before; `huge` touches a byte of each huge page; `hugetlb` touches huge pages of
 * hugetlbfs, in a segment that was attached before and in a mapping; `dontneed` releases what it had touched, without
 * unmapping it; `swap` touches four mappings, has two of
 * them swapped out and makes another a guard; `give-back` unmaps it; `children` forks children that touch what they
 * inherited; `kinds` pauses, and then grows in each kind of memory that a process has; `idle` does nothing. Prints the
 * change of the resident size in bytes. `phases` maps and touches, releases without unmapping and touches again, in
 * four phases; it prints what is resident in each, and when each has ended. `steadily` maps and touches 64 KiB a
 * hundred times a second for two minutes. `separate` maps pages that the kernel does not merge.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/stage.h"

enum {
	PIECE_BYTES = 60000,
	PIECES = 700,
	BYTES = 40 << 20,
	HUGE_BYTES = 2 << 20,
	CHILDREN = 3,
	STACKS = 4,
	STACK_BYTES = 4 << 20,
	STEP_BYTES = 64 << 10,
	STEPS = 12000,
	STEP_MICROSECONDS = 10000
};

static char *pieces[PIECES];
static pthread_barrier_t begin, done, end;

/* The pieces lie in the thread's arena; only their headers are touched. */
static void *run_thread(void *unused)
{
	for (int i = 0; i < PIECES; i++)
		pieces[i] = stage_need(malloc(PIECE_BYTES), "malloc");
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&begin);
	for (int i = 0; i < PIECES; i++)
		memset(pieces[i], 1, PIECE_BYTES);
	pthread_barrier_wait(&done);
	pthread_barrier_wait(&end);
	return unused;
}

static void grow_arena(const struct stage *stage)
{
	pthread_t thread;

	pthread_barrier_init(&begin, NULL, 2);
	pthread_barrier_init(&done, NULL, 2);
	pthread_barrier_init(&end, NULL, 2);
	if (pthread_create(&thread, NULL, run_thread, NULL))
		exit(1);
	pthread_barrier_wait(&begin);
	stage_begin(stage);
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&done);
	/* The page of each header was touched before. */
	printf("touched %zu\n", PIECES * (PIECE_BYTES - stage_page_bytes()));
	stage_end(stage);
	pthread_barrier_wait(&end);
	pthread_join(thread, NULL);
}

static size_t resident_bytes(void)
{
	FILE *file = stage_need(fopen("/proc/self/statm", "r"), "statm");
	unsigned long pages = 0;

	if (fscanf(file, "%*u %lu", &pages) != 1)
		exit(1);
	fclose(file);
	return pages * stage_page_bytes();
}

VISIBLE void *map_block(void)
{
	void *block = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return stage_need(block, "mmap");
}

VISIBLE void *grow_heap(void)
{
	void *block = sbrk(BYTES);

	return stage_need(block == (void *)-1 ? NULL : block, "sbrk");
}

static void grow(const struct stage *stage, void *(*allocate)(void))
{
	stage_begin(stage);
	stage_touch(allocate(), BYTES);
	printf("touched %d\n", BYTES);
	stage_end(stage);
}

static void give_back(const struct stage *stage)
{
	void *block = map_block();

	stage_touch(block, BYTES);
	stage_begin(stage);
	munmap(block, BYTES);
	printf("touched %d\n", -BYTES);
	stage_end(stage);
}

static void grow_steadily(const struct stage *stage)
{
	stage_begin(stage);
	for (int i = 0; i < STEPS; i++) {
		void *step = mmap(NULL, STEP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		stage_touch(stage_need(step, "mmap"), STEP_BYTES);
		usleep(STEP_MICROSECONDS);
	}
	stage_end(stage);
}

static void map_separately(const struct stage *stage)
{
	stage_begin(stage);
	for (int i = 0; i < STEPS; i++)
		stage_need(mmap(NULL, 1, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	stage_end(stage);
}

static void *map_anonymous(int protection, int flags)
{
	return stage_need(mmap(NULL, BYTES, protection, flags | MAP_ANONYMOUS, -1, 0), "mmap");
}

static void *map_file(int fd, int protection, int flags)
{
	return stage_need(mmap(NULL, BYTES, protection, flags, fd, 0), "mmap");
}

static void touch_and_end(const struct stage *stage, void *block)
{
	stage_touch(block, BYTES);
	printf("touched %d\n", BYTES);
	stage_end(stage);
}

static void grow_protected(const struct stage *stage)
{
	void *block = map_anonymous(PROT_NONE, MAP_PRIVATE | MAP_NORESERVE);

	stage_begin(stage);
	stage_need_call(mprotect(block, BYTES, PROT_READ | PROT_WRITE), "mprotect");
	touch_and_end(stage, block);
}

static void forbid(const struct stage *stage)
{
	void *block = map_anonymous(PROT_READ | PROT_WRITE, MAP_PRIVATE);

	stage_touch(block, BYTES);
	stage_begin(stage);
	stage_need_call(mprotect(block, BYTES, PROT_NONE), "mprotect");
	printf("touched 0\n");
	stage_end(stage);
}

/* The pages are in the page cache, and the kernel maps several at each fault. */
static void grow_file(const struct stage *stage)
{
	FILE *file = stage_need(tmpfile(), "tmpfile");
	static char zeros[1 << 20];
	volatile const char *block;
	char sum = 0;

	for (int i = 0; i < BYTES; i += (int)sizeof(zeros))
		fwrite(zeros, sizeof(zeros), 1, file);
	fflush(file);
	block = map_file(fileno(file), PROT_READ, MAP_PRIVATE);
	stage_begin(stage);
	for (size_t i = 0; i < BYTES; i += stage_page_bytes())
		sum ^= block[i];
	printf("touched %d\n", BYTES + sum);
	stage_end(stage);
}

static int create_memfd(void)
{
	int fd = stage_need_call(memfd_create("growth", MFD_CLOEXEC), "memfd_create");

	stage_need_call(ftruncate(fd, BYTES), "ftruncate");
	return fd;
}

static void grow_memfd(const struct stage *stage)
{
	stage_begin(stage);
	touch_and_end(stage, map_file(create_memfd(), PROT_READ | PROT_WRITE, MAP_SHARED));
}

static void grow_shared(const struct stage *stage)
{
	void *block = map_anonymous(PROT_READ | PROT_WRITE, MAP_SHARED);

	stage_begin(stage);
	touch_and_end(stage, block);
}

/* Whether there are huge pages depends on the system. */
static void grow_huge(const struct stage *stage)
{
	char *block = map_anonymous(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	size_t before;

	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	madvise(block, BYTES, MADV_HUGEPAGE);
	before = resident_bytes();
	stage_begin(stage);
	for (size_t i = 0; i < BYTES; i += HUGE_BYTES)
		block[i] = 1;
	printf("touched %zd\n", (ssize_t)(resident_bytes() - before));
	stage_end(stage);
}

/* Four huge pages must be free. */
static void grow_hugetlb(const struct stage *stage)
{
	int id = stage_need_call(shmget(IPC_PRIVATE, 2 * HUGE_BYTES, IPC_CREAT | SHM_HUGETLB | 0600), "shmget");
	char *segment = shmat(id, NULL, 0), *block;

	stage_need(segment == (char *)-1 ? NULL : segment, "shmat");
	stage_need_call(shmctl(id, IPC_RMID, NULL), "shmctl");
	stage_begin(stage);
	block = stage_need(
	    mmap(NULL, 2 * HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0),
	    "mmap");
	stage_touch(segment, 2 * HUGE_BYTES);
	stage_touch(block, 2 * HUGE_BYTES);
	printf("touched 0\n");
	stage_end(stage);
}

/* Bytes in a line of /proc/self/status, such as "VmSwap: %zu". */
static size_t status_bytes(const char *format)
{
	FILE *file = stage_need(fopen("/proc/self/status", "r"), "status");
	size_t kilobytes = 0;
	char line[256];

	while (fgets(line, sizeof(line), file) && sscanf(line, format, &kilobytes) != 1)
		;
	fclose(file);
	return kilobytes << 10;
}

VISIBLE char *map_swapped(void)
{
	char *block = map_anonymous(PROT_READ | PROT_WRITE, MAP_PRIVATE);

	KEEP_FRAME();
	return block;
}

/* Shared memory that is swapped out shows in no pagemap and not in VmSwap. */
VISIBLE char *map_shared(void)
{
	char *block = map_anonymous(PROT_READ | PROT_WRITE, MAP_SHARED);

	KEEP_FRAME();
	return block;
}

VISIBLE char *map_guarded(void)
{
	char *block = map_anonymous(PROT_READ | PROT_WRITE, MAP_PRIVATE);

	KEEP_FRAME();
	return block;
}

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

/* The kernel swaps out pages that it can lock, so ask it again for the others. It may have no guards. */
static void swap_out(const struct stage *stage)
{
	char *swapped, *guarded, *shared;
	size_t bytes = 0;

	stage_begin(stage);
	swapped = map_swapped();
	stage_touch(swapped, BYTES);
	guarded = map_guarded();
	stage_touch(guarded, BYTES / 4);
	(void)madvise(guarded + BYTES / 2, BYTES / 2, MADV_GUARD_INSTALL);
	shared = map_shared();
	stage_touch(shared, BYTES / 4);
	for (int i = 0; i < 1000 && status_bytes("RssShmem: %zu"); i++) {
		stage_need_call(madvise(shared, BYTES / 4, MADV_PAGEOUT), "madvise");
		usleep(STEP_MICROSECONDS);
	}
	for (int i = 0; i < 1000 && (bytes = status_bytes("VmSwap: %zu")) < BYTES; i++) {
		stage_need_call(madvise(swapped, BYTES, MADV_PAGEOUT), "madvise");
		usleep(STEP_MICROSECONDS);
	}
	printf("swapped %zu\n", bytes);
	printf("touched %zd\n", (ssize_t)(BYTES + BYTES / 4 + status_bytes("RssShmem: %zu") - bytes));
	stage_end(stage);
}

static void discard(const struct stage *stage)
{
	void *block = map_anonymous(PROT_READ | PROT_WRITE, MAP_PRIVATE);

	stage_touch(block, BYTES);
	stage_begin(stage);
	stage_need_call(madvise(block, BYTES, MADV_DONTNEED), "madvise");
	printf("touched %d\n", -BYTES);
	stage_end(stage);
}

/* A child's memory is its own and is counted from zero. */
static void grow_children(const struct stage *stage)
{
	void *block = map_anonymous(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	pid_t children[CHILDREN];
	size_t touched = 0;
	int ready[2], wait[2];
	char byte;

	stage_touch(block, BYTES);
	stage_need_call(pipe(ready), "pipe");
	stage_need_call(pipe(wait), "pipe");
	stage_begin(stage);
	for (int i = 0; i < CHILDREN; i++) {
		children[i] = stage_need_call(fork(), "fork");
		if (!children[i]) {
			size_t bytes;

			stage_touch(block, BYTES);
			bytes = resident_bytes();
			close(wait[1]);
			stage_need_call((int)write(ready[1], &bytes, sizeof(bytes)), "write");
			_exit(read(wait[0], &byte, 1) != 0);
		}
	}
	for (int i = 0; i < CHILDREN; i++) {
		size_t bytes = 0;

		stage_need_call((int)read(ready[0], &bytes, sizeof(bytes)), "read");
		touched += bytes;
	}
	printf("touched %zu\n", touched);
	stage_end(stage);
	close(wait[1]);
	for (int i = 0; i < CHILDREN; i++)
		waitpid(children[i], NULL, 0);
}

static void print_phase(const struct stage *stage, int phase, int first, int second, int older)
{
	struct timespec now;
	char word[16];

	printf("phase %d first %d second %d older %d rss %zu\n", phase, first, second, older, resident_bytes());
	fflush(stdout);
	snprintf(word, sizeof(word), "phase-%d", phase);
	stage_pause(stage, word);
	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("timestamp %d %lld\n", phase, now.tv_sec * 1000000000LL + now.tv_nsec);
}

VISIBLE char *map_first(void)
{
	char *block = map_anonymous(PROT_READ | PROT_WRITE, MAP_PRIVATE);

	KEEP_FRAME();
	return block;
}

VISIBLE char *map_second(void)
{
	char *block = map_anonymous(PROT_READ | PROT_WRITE, MAP_PRIVATE);

	KEEP_FRAME();
	return block;
}

/* Each phase ends with a pause in which the recorder can read what is resident. */
static void run_phases(const struct stage *stage)
{
	char *older = map_anonymous(PROT_READ | PROT_WRITE, MAP_PRIVATE), *first, *second;

	stage_begin(stage);
	first = map_first();
	stage_touch(first, BYTES);
	print_phase(stage, 1, BYTES, 0, 0);
	second = map_second();
	stage_touch(second, BYTES / 4);
	stage_need_call(madvise(first, BYTES / 2, MADV_DONTNEED), "madvise");
	print_phase(stage, 2, BYTES / 2, BYTES / 4, 0);
	stage_touch(first, BYTES / 4);
	stage_need_call(munmap(second, BYTES), "munmap");
	stage_touch(older, BYTES / 2);
	print_phase(stage, 3, BYTES / 4 * 3, 0, BYTES / 2);
	second = map_second();
	stage_touch(second, BYTES);
	print_phase(stage, 4, BYTES / 4 * 3, BYTES, BYTES / 2);
	stage_end(stage);
}

/* In an arena of the thread, and in its stack. */
static void *use_arena_and_stack(void *unused)
{
	char block[STACK_BYTES];

	pthread_barrier_wait(&begin);
	stage_touch(block, sizeof(block));
	for (int i = 0; i < PIECES / STACKS; i++)
		memset(stage_need(malloc(PIECE_BYTES), "malloc"), 1, PIECE_BYTES);
	pthread_barrier_wait(&done);
	pthread_barrier_wait(&end);
	return unused;
}

static void touch_file(void)
{
	FILE *file = stage_need(tmpfile(), "tmpfile");
	static char zeros[1 << 20];

	for (int i = 0; i < BYTES; i += (int)sizeof(zeros))
		fwrite(zeros, sizeof(zeros), 1, file);
	fflush(file);
	stage_touch(map_file(fileno(file), PROT_READ | PROT_WRITE, MAP_SHARED), BYTES);
}

/* All stacks first: the kernel merges other memory, such as the arena of the first thread, with a stack directly below
 * it. */
static void grow_kinds(const struct stage *stage)
{
	pthread_t threads[STACKS];

	pthread_barrier_init(&begin, NULL, STACKS + 1);
	pthread_barrier_init(&done, NULL, STACKS + 1);
	pthread_barrier_init(&end, NULL, STACKS + 1);
	stage_begin(stage);
	stage_pause(stage, "round");
	for (int i = 0; i < STACKS; i++)
		stage_need_call(-pthread_create(&threads[i], NULL, use_arena_and_stack, NULL), "pthread_create");
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&done);
	stage_touch(grow_heap(), BYTES);
	stage_touch(map_block(), BYTES);
	stage_touch(map_file(create_memfd(), PROT_READ | PROT_WRITE, MAP_SHARED), BYTES);
	stage_touch(map_anonymous(PROT_READ | PROT_WRITE, MAP_SHARED), BYTES);
	touch_file();
	printf("touched %d %d %d\n", BYTES, STACKS * STACK_BYTES, PIECES / STACKS * STACKS * PIECE_BYTES);
	stage_pause(stage, "grown");
	stage_end(stage);
	pthread_barrier_wait(&end);
	for (int i = 0; i < STACKS; i++)
		pthread_join(threads[i], NULL);
}

static void idle(const struct stage *stage)
{
	stage_begin(stage);
	printf("touched 0\n");
	stage_end(stage);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const struct stage *stage);
	} kinds[] = {
	    {"arena", grow_arena},
	    {"protect", grow_protected},
	    {"file", grow_file},
	    {"memfd", grow_memfd},
	    {"shared", grow_shared},
	    {"huge", grow_huge},
	    {"dontneed", discard},
	    {"give-back", give_back},
	    {"children", grow_children},
	    {"steadily", grow_steadily},
	    {"separate", map_separately},
	    {"idle", idle},
	    {"phases", run_phases},
	    {"kinds", grow_kinds},
	    {"forbid", forbid},
	    {"hugetlb", grow_hugetlb},
	    {"swap", swap_out},
	};
	struct stage stage = stage_open(argc, argv);
	/* With huge pages, touching the headers would touch all. */
	int status = prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	const char *kind = stage.operand_count ? stage.operands[0] : "idle";

	stage_need_call(status, "prctl");
	if (!strcmp(kind, "mmap"))
		grow(&stage, map_block);
	else if (!strcmp(kind, "brk"))
		grow(&stage, grow_heap);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!strcmp(kinds[i].name, kind))
			kinds[i].run(&stage);
	}
	return 0;
}
