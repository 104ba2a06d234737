// SPDX-License-Identifier: LGPL-2.1-or-later
/* Censuses of real heaps: those of child processes, which say themselves what is in them (mallinfo2(3)). */
#include <check.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/heap/heap-readings.h"
#include "support/suite.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define THREADS 8

struct thread_bytes {
	volatile uint64_t least, most;
};

struct shared {
	struct mallinfo2 info;
	uint64_t live_bytes;
	struct thread_bytes threads[THREADS];
};

static struct shared *shared;
static int ready[2];
static pid_t target;

/* Says what the heap contains, and waits to be killed. */
static _Noreturn void stay(void)
{
	shared->info = mallinfo2();
	if (write(ready[1], "r", 1) == 1)
		for (;;)
			pause();
	_exit(1);
}

static void start(void (*program)(void))
{
	char byte;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	ck_assert_int_eq(pipe(ready), 0);
	target = fork();
	if (target == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		program();
		stay();
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
}

/* The process that takes a census has no rights afterwards. The target ends with it. */
static struct mmt_heap_census take(void)
{
	struct mmt_heap_census census = {0};
	char path[64];
	int mem;

	snprintf(path, sizeof(path), "/proc/%d/mem", target);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_ptr_null(heap_census_take(target, mem, &census));
	close(mem);
	return census;
}

static const struct mmt_heap_group *find(const struct mmt_heap_census *census, uint64_t bytes)
{
	for (size_t i = 0; i < census->group_count; i++) {
		if (census->groups[i].smallest_bytes == bytes && census->groups[i].largest_bytes == bytes)
			return &census->groups[i];
	}
	return NULL;
}

/* What the library says of the main arena, and of those with heaps of their own, which begin with their description. */
static void compare(const struct mmt_heap_census *census)
{
	ck_assert_int_eq(census->allocator, MMT_ALLOCATOR_GLIBC);
	ck_assert_msg(census->result == MMT_HEAP_COMPLETE, "result %d, stopped at %#lx", census->result,
		      census->stopped_at);
	ck_assert_uint_eq(census->in_use_low, census->in_use_high);
	ck_assert_uint_eq(census->walked_bytes, census->mapped_bytes);
	ck_assert_uint_eq(census->fastbin_bytes, shared->info.fsmblks);
	ck_assert_uint_eq(census->free_bytes + census->fastbin_bytes + census->top_bytes, shared->info.fordblks);
	ck_assert_uint_eq(census->free_count + census->arenas, shared->info.ordblks);
	if (census->arenas == 1)
		ck_assert_uint_eq(census->in_use_low + census->tcache_bytes, shared->info.uordblks);
	ck_assert_uint_eq(census->mmapped_bytes, shared->info.hblkhd);
	ck_assert_uint_eq(census->mmapped_count, shared->info.hblks);
}

static void *kept[200000];

/* Random sizes, a part of them freed: every kind of free chunk. */
static void fill(size_t count, uint32_t seed)
{
	for (size_t i = 0; i < count; i++) {
		seed = seed * 1664525 + 1013904223;
		kept[i] = malloc(seed >> 8 & (i % 16 ? 0x1ff : 0x3fff));
	}
	for (size_t i = 0; i < count; i++) {
		seed = seed * 1664525 + 1013904223;
		if (seed >> 16 & 1) {
			free(kept[i]);
			kept[i] = NULL;
		}
	}
}

static void mixed(void)
{
	fill(100000, 1);
	kept[100000] = malloc(300000);
	kept[100001] = malloc(5 << 20);
	kept[100002] = memset(malloc(1000), 'x', 1000);
	for (size_t i = 0; i < 100; i++)
		kept[100003 + i] = malloc(40);
	for (size_t i = 0; i < 100; i += 2)
		free(kept[100003 + i]);
}

START_TEST(the_main_heap_equals_mallinfo)
{
	struct mmt_heap_census census;
	char name[64];

	start(mixed);
	census = take();
	compare(&census);
	snprintf(name, sizeof(name), "glibc %s", gnu_get_libc_version());
	ck_assert_str_eq(census.allocator_name, name);
	ck_assert_uint_gt(census.tcache_bytes, 0);
	ck_assert_uint_gt(census.fastbin_bytes, 0);
	ck_assert_uint_gt(census.free_bytes, 0);
	heap_census_deinit(&census);
}
END_TEST

static void many_fast(void)
{
	for (size_t i = 0; i < 200000; i++)
		kept[i] = malloc(50);
	for (size_t i = 0; i < 199990; i++)
		free(kept[i]);
}

START_TEST(chunks_in_fastbins_are_free)
{
	struct mmt_heap_census census;
	const struct mmt_heap_group *group;

	start(many_fast);
	census = take();
	compare(&census);
	group = find(&census, 64);
	ck_assert_uint_ge(census.fastbin_bytes, (199990 - 64) * 64);
	ck_assert_ptr_nonnull(group);
	ck_assert_uint_ge(group->count, 10);
	ck_assert_uint_lt(group->count, 200);
	heap_census_deinit(&census);
}
END_TEST

static void *fill_arena(void *argument)
{
	void **blocks = calloc(20000, sizeof(*blocks));
	uint32_t seed = (uint32_t)(uintptr_t)argument + 5;

	/* More than one heap of 64 MiB. */
	for (size_t i = 0; i < 20000; i++) {
		seed = seed * 1664525 + 1013904223;
		blocks[i] = malloc(seed >> 8 & 0x3fff);
	}
	for (size_t i = 0; i < 20000; i += 1 + (seed & 3)) {
		seed = seed * 1664525 + 1013904223;
		free(blocks[i]);
	}
	(void)write(ready[1], "t", 1);
	for (;;)
		pause();
	return NULL;
}

static void arenas(void)
{
	pthread_t thread;
	char byte;
	int inner[2];
	int outer = ready[1];

	mallopt(M_ARENA_MAX, 3);
	if (pipe(inner) < 0)
		_exit(1);
	ready[1] = inner[1];
	for (uintptr_t i = 0; i < 4; i++) {
		pthread_create(&thread, NULL, fill_arena, (void *)i);
		if (read(inner[0], &byte, 1) != 1)
			_exit(1);
	}
	ready[1] = outer;
	fill(10000, 3);
}

START_TEST(all_arenas_equal_mallinfo)
{
	struct mmt_heap_census census;

	start(arenas);
	census = take();
	ck_assert_uint_eq(census.arenas, 3);
	ck_assert_uint_gt(census.mapped_bytes, 128 << 20);
	compare(&census);
	heap_census_deinit(&census);
}
END_TEST

static void foreign_break(void)
{
	for (size_t i = 0; i < 20000; i++) {
		kept[i] = malloc(1000);
		if (i % 5000 == 2500)
			memset(sbrk(12345), 0x21, 12345);
	}
	for (size_t i = 0; i < 20000; i += 2)
		free(kept[i]);
}

START_TEST(a_break_that_others_use_has_several_segments)
{
	struct mmt_heap_census census;

	start(foreign_break);
	census = take();
	ck_assert_int_eq(census.result, MMT_HEAP_COMPLETE);
	/* What others have is not walked, and nothing else. */
	ck_assert_uint_ge(census.mapped_bytes - census.walked_bytes, 4 * 12345);
	ck_assert_uint_lt(census.mapped_bytes - census.walked_bytes, 4 * (12345 + 64));
	ck_assert_uint_eq(census.free_bytes + census.fastbin_bytes + census.top_bytes, shared->info.fordblks);
	ck_assert_uint_le(census.in_use_low, shared->info.uordblks);
	ck_assert_uint_ge(census.in_use_high, shared->info.uordblks - census.tcache_bytes - 4 * 32);
	heap_census_deinit(&census);
}
END_TEST

static void no_break(void)
{
	struct shared *page;

	/* The break cannot grow: the library maps its memory. */
	page = mmap((void *)(((uintptr_t)sbrk(0) + 4095) & ~4095ul), 4096, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (page == MAP_FAILED)
		_exit(1);
	fill(100000, 7);
}

START_TEST(a_heap_without_the_break_is_walked)
{
	struct mmt_heap_census census;

	start(no_break);
	census = take();
	ck_assert_uint_eq(census.free_bytes + census.fastbin_bytes + census.top_bytes, shared->info.fordblks);
	ck_assert_uint_le(census.in_use_low + census.tcache_bytes, shared->info.uordblks);
	ck_assert_uint_ge(census.in_use_low + census.tcache_bytes + (64 << 10), shared->info.uordblks);
	heap_census_deinit(&census);
}
END_TEST

/* Each thread keeps as many blocks of random sizes, and replaces them all the time. */
static void *churn(void *argument)
{
	struct thread_bytes *bytes = argument;
	uint32_t seed = (uint32_t)(uintptr_t)argument;
	void *blocks[2000] = {0};
	uint64_t live = 0;

	for (uint64_t i = 0;; i++) {
		void **block;

		seed = seed * 1664525 + 1013904223;
		block = &blocks[i < 2000 ? i : (seed >> 8) % 2000];
		live -= *block ? malloc_usable_size(*block) + 8 : 0;
		free(*block);
		*block = malloc(seed >> 20 & 0x3ff);
		live += malloc_usable_size(*block) + 8;
		if (i < 2000)
			continue;
		bytes->least = i == 2000 || live < bytes->least ? live : bytes->least;
		bytes->most = live > bytes->most ? live : bytes->most;
		if (i == 2000 && write(ready[1], "t", 1) != 1)
			_exit(1);
	}
	return NULL;
}

static void churning(void)
{
	int inner[2], outer = ready[1];
	pthread_t thread;
	char byte;

	if (pipe(inner) < 0)
		_exit(1);
	ready[1] = inner[1];
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, churn, &shared->threads[i]);
	for (unsigned i = 0; i < THREADS; i++)
		if (read(inner[0], &byte, 1) != 1)
			_exit(1);
	ready[1] = outer;
}

START_TEST(the_range_holds_while_eight_threads_allocate)
{
	struct mmt_heap_census census;
	uint64_t least = 0, most = 0;

	start(churning);
	census = take();
	for (unsigned i = 0; i < THREADS; i++) {
		least += shared->threads[i].least;
		most += shared->threads[i].most;
	}
	ck_assert_int_ne(census.result, MMT_HEAP_DAMAGED);
	ck_assert_uint_gt(census.mapped_bytes, least);
	ck_assert_uint_ge(census.in_use_high, least / 4 * 3);
	/* The test program itself has some, and each thread a tcache. */
	ck_assert_uint_le(census.in_use_low, most / 4 * 5 + (1 << 20));
	ck_assert_uint_lt(census.in_use_low, census.in_use_high);
	heap_census_deinit(&census);
}
END_TEST

static void corrupted(void)
{
	uint64_t *block;

	fill(100000, 9);
	block = NULL;
	for (size_t i = 50000; !block; i++)
		block = kept[i];
	shared->live_bytes = (uintptr_t)(block - 2);
	shared->info = mallinfo2();
	block[-1] = 0x4141414141414141;
	if (write(ready[1], "r", 1) == 1)
		for (;;)
			pause();
}

START_TEST(a_corrupted_header_is_named_and_passed_over)
{
	struct mmt_heap_census census;

	start(corrupted);
	census = take();
	ck_assert_int_eq(census.result, MMT_HEAP_DAMAGED);
	/* The walk ends there, or at the chunk below it, which says where this one begins. */
	ck_assert_uint_le(census.stopped_at, shared->live_bytes);
	ck_assert_uint_gt(census.stopped_at, shared->live_bytes - 0x8000);
	ck_assert_uint_gt(census.walked_bytes, census.mapped_bytes - 0x20000);
	ck_assert_uint_lt(census.walked_bytes, census.mapped_bytes);
	ck_assert_uint_le(census.in_use_low + census.tcache_bytes, shared->info.uordblks);
	ck_assert_uint_ge(census.in_use_high + census.tcache_bytes, shared->info.uordblks);
	heap_census_deinit(&census);
}
END_TEST

extern char end[]; /* of the .bss of this program */

static void above_bss(void)
{
	const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	char *above = (char *)(((uintptr_t)end + page_bytes - 1) & ~(page_bytes - 1));

	above = mmap(above, 16 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		     -1, 0);
	shared->live_bytes = above != MAP_FAILED;
	for (size_t i = 0; i < 10 && above != MAP_FAILED; i++) {
		above[i * page_bytes] = 1;
		kept[i] = malloc(7000);
		*(char **)kept[i] = above + i * page_bytes;
	}
}

START_TEST(memory_directly_above_a_module_is_not_its_data)
{
	struct mmt_heap_census census;

	start(above_bss);
	census = take();
	ck_assert_uint_eq(census.result, MMT_HEAP_COMPLETE);
	if (shared->live_bytes) { /* nothing else was there */
		ck_assert_ptr_nonnull(find(&census, 7008));
		ck_assert_int_eq(find(&census, 7008)->content, MMT_HEAP_UNKNOWN);
	}
	heap_census_deinit(&census);
}
END_TEST

/* Only the pages with headers are in memory. */
static void larger_than_the_limit(void)
{
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	for (size_t i = 0; i < 210; i++)
		kept[i] = malloc(31 << 20);
}

START_TEST(parts_of_a_heap_beyond_the_limit_are_read)
{
	struct mmt_heap_census census;

	start(larger_than_the_limit);
	census = take();
	ck_assert_int_eq(census.result, MMT_HEAP_SAMPLED);
	ck_assert_uint_gt(census.mapped_bytes, 6ULL << 30);
	/* Every second part, of whole chunks. */
	ck_assert_uint_gt(census.walked_bytes, census.mapped_bytes / 5 * 2);
	ck_assert_uint_lt(census.walked_bytes, census.mapped_bytes / 5 * 4);
	ck_assert_uint_ge(census.in_use_low, find(&census, 31 << 20 | 16)->bytes);
	ck_assert_uint_ge(shared->info.uordblks, census.in_use_low);
	ck_assert_uint_le(shared->info.uordblks, census.in_use_high);
	heap_census_deinit(&census);
}
END_TEST

static void ended(void)
{
	fill(1000, 2);
}

START_TEST(a_process_that_has_ended_has_no_census)
{
	struct mmt_heap_census census = {0};
	siginfo_t info;
	char path[64];
	int mem;

	start(ended);
	snprintf(path, sizeof(path), "/proc/%d/mem", target);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	kill(target, SIGKILL);
	/* It has no memory any more, which is no question of permission. */
	ck_assert_int_eq(waitid(P_PID, (id_t)target, &info, WEXITED | WNOWAIT), 0);
	ck_assert_ptr_null(heap_census_take(target, -1, &census));
	ck_assert_int_eq(census.result, MMT_HEAP_ENDED);
	heap_census_deinit(&census);
	waitpid(target, NULL, 0);
	census = (struct mmt_heap_census){0};
	ck_assert_ptr_null(heap_census_take(target, mem, &census));
	ck_assert_uint_eq(census.walked_bytes, 0);
	ck_assert_int_eq(census.result, MMT_HEAP_ENDED);
	heap_census_deinit(&census);
	close(mem);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("heap census");
	TCase *cases = add_tcase(suite, "live");

	if (SANITIZED)
		skip_suite("AddressSanitizer has an allocator of its own");
	tcase_set_timeout(cases, 60);
	tcase_add_tests(cases, the_main_heap_equals_mallinfo, chunks_in_fastbins_are_free, all_arenas_equal_mallinfo,
			a_break_that_others_use_has_several_segments, a_heap_without_the_break_is_walked,
			a_corrupted_header_is_named_and_passed_over, the_range_holds_while_eight_threads_allocate,
			memory_directly_above_a_module_is_not_its_data, parts_of_a_heap_beyond_the_limit_are_read,
			a_process_that_has_ended_has_no_census);
	return suite;
}
