/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory that was mapped before recording is touched during it, most of it by one function. With the operand "map", two
 * functions map a little more. With "file", the memory is that of a file, which is read; with "private", it is mapped
 * from a file, too, but written. With "pages" and a seed, a random program gives some of it back, moves it and lets a
 * child inherit it; then each process prints which of its pages are present.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

enum { MEBIBYTE = 1 << 20, POOL = 64 * MEBIBYTE, OTHERS = 16 * MEBIBYTE, PAGES = 600, HUGE = 8 * MEBIBYTE, STEPS = 40 };

static size_t page_bytes;

/* Without huge pages, which the kernel would make when it has some. */
static char *map_pages(size_t length)
{
	char *area = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(area, "mmap");
	(void)madvise(area, length, MADV_NOHUGEPAGE);
	return area;
}

VISIBLE void fill_pool(char *start, size_t length)
{
	for (size_t i = 0; i < length; i += page_bytes)
		((volatile char *)start)[i] = 1;
}

/* Written page by page, so that the page cache has single pages. */
static char *map_file(size_t length, int protection)
{
	FILE *file = tmpfile();
	static const char zeros[4096];
	char *area;

	for (size_t i = 0; file && i < length; i += sizeof(zeros))
		stage_need_call(fwrite(zeros, sizeof(zeros), 1, file) == 1 ? 0 : -1, "fwrite");
	stage_need_call(file && fflush(file) == 0 ? 0 : -1, "tmpfile");
	area = mmap(NULL, length, protection, MAP_PRIVATE, fileno(file), 0);
	stage_need(area, "mmap");
	return area;
}

VISIBLE void read_pool(const char *start, size_t length)
{
	for (size_t i = 0; i < length; i += page_bytes)
		(void)((const volatile char *)start)[i];
}

VISIBLE void fill_others(char *start, size_t length)
{
	for (size_t i = 0; i < length; i += page_bytes)
		((volatile char *)start)[i] = 1;
}

VISIBLE void map_one(void)
{
	fill_others(map_pages(MEBIBYTE), MEBIBYTE);
	KEEP_FRAME();
}

VISIBLE void map_another(void)
{
	fill_others(map_pages(MEBIBYTE), MEBIBYTE);
	KEEP_FRAME();
}

VISIBLE void touch_some(char *area, unsigned seed, unsigned share)
{
	for (size_t i = 0; i < PAGES; i++) {
		seed = seed * 1103515245 + 12345;
		if ((seed >> 16) % 100 < share)
			*(volatile char *)(area + i * page_bytes) = 1;
	}
}

/* With `own`, only pages that no other process has mapped: those that this one has copied. */
static void print_pages(const char *who, const char *area, size_t count, bool own)
{
	int fd = stage_need_call(open("/proc/self/pagemap", O_RDONLY), "pagemap");
	static uint64_t entries[HUGE / 4096];

	(void)stage_need_call(
	    (int)pread(fd, entries, count * sizeof(*entries), (off_t)((uintptr_t)area / page_bytes * sizeof(*entries))),
	    "pread");
	close(fd);
	for (size_t i = 0; i < count; i++) {
		if (entries[i] >> 63 && (!own || entries[i] >> 56 & 1))
			printf("page %s %d %#lx\n", who, (int)getpid(),
			       (unsigned long)(uintptr_t)(area + i * page_bytes));
	}
	fflush(stdout);
}

static void replace_pages(char *start, size_t length)
{
	stage_need(mmap(start, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), "mmap");
	(void)madvise(start, length, MADV_NOHUGEPAGE);
}

/* The child stays until its parent has ended. What it has copied is only known before the parent writes to more pages.
 */
static void fork_and_copy(char *area)
{
	int done[2], ended[2];
	char byte;

	stage_need_call(pipe(done), "pipe");
	stage_need_call(pipe(ended), "pipe");
	fflush(stdout);
	if (!stage_need_call(fork(), "fork")) {
		touch_some(area, 4, 20);
		print_pages("child", area, PAGES, true);
		close(ended[1]);
		if (write(done[1], "", 1) == 1)
			(void)!read(ended[0], &byte, 1);
		_exit(0);
	}
	close(ended[0]);
	(void)!read(done[0], &byte, 1);
}

static void move_pages(char *from, char *to, size_t length)
{
	stage_need(mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to), "mremap");
	replace_pages(from, length);
}

/* The range that is moved is mapped at once, so that it is one mapping. */
static void use_pages(char *area, char *elsewhere, unsigned seed)
{
	srand(seed);
	for (unsigned step = 0; step < STEPS; step++) {
		size_t first = (size_t)rand() % (PAGES - 1),
		       count = 1 + (size_t)rand() % (PAGES - first < 100 ? PAGES - first : 100);
		char *start = area + first * page_bytes;

		switch (rand() % 6) {
		case 0:
			stage_need_call(madvise(start, count * page_bytes, MADV_DONTNEED), "madvise");
			break;
		case 1:
			stage_need_call(munmap(start, count * page_bytes), "munmap");
			replace_pages(start, count * page_bytes);
			break;
		case 2:
			replace_pages(start, count * page_bytes);
			fill_others(start, count / 2 * page_bytes);
			move_pages(start, elsewhere + (PAGES - first - count) * page_bytes, count * page_bytes);
			break;
		case 3:
			read_pool(start, count * page_bytes);
			break;
		default:
			touch_some(area, (unsigned)rand(), 1 + (unsigned)rand() % 30);
		}
	}
}

/* Without more huge pages from the kernel's own thread. */
static void use_huge_pages(char *huge)
{
	(void)madvise(huge, HUGE, MADV_HUGEPAGE);
	for (size_t i = 0; i < HUGE; i += 2 * MEBIBYTE)
		fill_others(huge + i, page_bytes);
	(void)madvise(huge, HUGE, MADV_NOHUGEPAGE);
	stage_need_call(madvise(huge + MEBIBYTE / 2, 3 * MEBIBYTE, MADV_DONTNEED), "madvise");
	fill_others(huge + MEBIBYTE, MEBIBYTE);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	const char *kind = stage.operand_count > 0 ? stage.operands[0] : "";
	unsigned seed = stage.operand_count > 1 ? (unsigned)atoi(stage.operands[1]) : 1;
	bool pages = !strcmp(kind, "pages"), file = !strcmp(kind, "file"), own = !strcmp(kind, "private");
	char *pool, *others, *area, *elsewhere, *huge;

	page_bytes = stage_page_bytes();
	pool = file || own ? map_file(POOL, PROT_READ | (own ? PROT_WRITE : 0)) : map_pages(POOL);
	others = map_pages(OTHERS);
	area = map_pages(PAGES * page_bytes);
	elsewhere = map_pages(PAGES * page_bytes);
	huge = map_pages(2 * HUGE);
	huge += -(uintptr_t)huge % (2 * MEBIBYTE);
	for (size_t i = 0; pages && i < PAGES; i++)
		printf("area %#lx\narea %#lx\n", (unsigned long)(uintptr_t)(area + i * page_bytes),
		       (unsigned long)(uintptr_t)(elsewhere + i * page_bytes));
	for (size_t i = 0; pages && i < HUGE; i += page_bytes)
		printf("area %#lx\n", (unsigned long)(uintptr_t)(huge + i));
	stage_begin(&stage);
	if (pages) {
		use_pages(area, elsewhere, seed);
		use_huge_pages(huge);
		fork_and_copy(area);
		touch_some(elsewhere, seed, 10);
		print_pages("parent", area, PAGES, false);
		print_pages("parent", elsewhere, PAGES, false);
		print_pages("parent", huge, HUGE / page_bytes, false);
	} else {
		if (file || !strcmp(kind, "read"))
			read_pool(pool, POOL);
		if (!file)
			fill_pool(pool, POOL);
		fill_others(others, OTHERS);
	}
	if (!strcmp(kind, "map")) {
		map_one();
		map_another();
	}
	stage_end(&stage);
	return 0;
}
