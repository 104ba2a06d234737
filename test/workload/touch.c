/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory that was mapped before recording is touched during it, most of it by one function. With the operand "map", two
 * functions map a little more. With "file", the memory is that of a file, which is read. With "pages", some of it is
 * given back, moved and inherited by a child; then each process prints which of its pages are present.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

enum { MEBIBYTE = 1 << 20, POOL = 64 * MEBIBYTE, OTHERS = 16 * MEBIBYTE, PAGES = 600 };

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
static char *map_file(size_t length)
{
	FILE *file = tmpfile();
	static const char zeros[4096];
	char *area;

	for (size_t i = 0; file && i < length; i += sizeof(zeros))
		stage_need_call(fwrite(zeros, sizeof(zeros), 1, file) == 1 ? 0 : -1, "fwrite");
	stage_need_call(file && fflush(file) == 0 ? 0 : -1, "tmpfile");
	area = mmap(NULL, length, PROT_READ, MAP_PRIVATE, fileno(file), 0);
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
static void print_pages(const char *who, const char *area, bool own)
{
	int fd = stage_need_call(open("/proc/self/pagemap", O_RDONLY), "pagemap");
	uint64_t entries[PAGES];

	(void)stage_need_call(
	    (int)pread(fd, entries, sizeof(entries), (off_t)((uintptr_t)area / page_bytes * sizeof(*entries))),
	    "pread");
	close(fd);
	for (size_t i = 0; i < PAGES; i++) {
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
		print_pages("child", area, true);
		close(ended[1]);
		if (write(done[1], "", 1) == 1)
			(void)!read(ended[0], &byte, 1);
		_exit(0);
	}
	close(ended[0]);
	(void)!read(done[0], &byte, 1);
}

static void use_pages(char *area, char *elsewhere)
{
	touch_some(area, 1, 60);
	stage_need_call(madvise(area + 50 * page_bytes, 100 * page_bytes, MADV_DONTNEED), "madvise");
	touch_some(area, 2, 30);
	stage_need_call(munmap(area + 200 * page_bytes, 20 * page_bytes), "munmap");
	replace_pages(area + 200 * page_bytes, 20 * page_bytes);
	touch_some(area, 3, 10);
	stage_need(mremap(area + 300 * page_bytes, 100 * page_bytes, 100 * page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
			  elsewhere),
		   "mremap");
	replace_pages(area + 300 * page_bytes, 100 * page_bytes);
	fork_and_copy(area);
	touch_some(elsewhere, 5, 10);
	print_pages("parent", area, false);
	print_pages("parent", elsewhere, false);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	bool pages = stage.operand_count > 0 && !strcmp(stage.operands[0], "pages");
	bool file = stage.operand_count > 0 && !strcmp(stage.operands[0], "file");
	char *pool, *others, *area, *elsewhere;

	page_bytes = stage_page_bytes();
	pool = file ? map_file(POOL) : map_pages(POOL);
	others = map_pages(OTHERS);
	area = map_pages(PAGES * page_bytes);
	elsewhere = map_pages(PAGES * page_bytes);
	for (size_t i = 0; pages && i < PAGES; i++)
		printf("area %#lx\narea %#lx\n", (unsigned long)(uintptr_t)(area + i * page_bytes),
		       (unsigned long)(uintptr_t)(elsewhere + i * page_bytes));
	stage_begin(&stage);
	if (pages) {
		use_pages(area, elsewhere);
	} else {
		if (file || (stage.operand_count > 0 && !strcmp(stage.operands[0], "read")))
			read_pool(pool, POOL);
		if (!file)
			fill_pool(pool, POOL);
		fill_others(others, OTHERS);
	}
	if (stage.operand_count > 0 && !strcmp(stage.operands[0], "map")) {
		map_one();
		map_another();
	}
	stage_end(&stage);
	return 0;
}
