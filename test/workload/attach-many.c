/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * 60,000 mappings of one page each (or as many as the operand says) that four threads change as fast as they can: they
 * unmap some, map them again, protect them, and move them. Each thread has its own pages, so that only the order of its
 * own calls matters; neighbours differ in their protection, so that none are merged.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

#define THREADS 4
#define MAPPINGS 60000

struct part {
	char *start;
	size_t pages;
	unsigned random;
};

static size_t page_bytes;

static int protection_of(size_t page)
{
	return page % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
}

static void map_page(const struct part *part, size_t page)
{
	stage_need(mmap(part->start + page * page_bytes, page_bytes, protection_of(page),
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		   "mmap");
}

static size_t choose(struct part *part)
{
	part->random = part->random * 1664525 + 1013904223;
	return (part->random >> 8) % part->pages;
}

static void change_page(struct part *part, size_t page)
{
	char *address = part->start + page * page_bytes;
	size_t other;

	switch (part->random % 5) {
	case 0:
		munmap(address, page_bytes);
		map_page(part, page);
		break;
	case 1:
		map_page(part, page);
		break;
	case 2:
		mprotect(address, page_bytes, protection_of(page) | PROT_EXEC);
		break;
	case 3: /* from anywhere to anywhere */
		other = choose(part) / 2 * 2 + page % 2;
		if (other != page)
			mremap(address, page_bytes, page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
			       part->start + other * page_bytes);
		map_page(part, page);
		break;
	default: /* where the kernel likes */
		address = mmap(NULL, 2 * page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (address != MAP_FAILED)
			munmap(address, 2 * page_bytes);
		break;
	}
}

static void *change_pages(void *argument)
{
	struct part *part = argument;

	for (;;)
		change_page(part, choose(part));
	return NULL;
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t mappings = stage_number(&stage, 0, MAPPINGS);
	struct part parts[THREADS];
	pthread_t thread;
	char *start;

	page_bytes = stage_page_bytes();
	start = stage_need(
	    mmap(NULL, mappings * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), "mmap");
	for (size_t i = 0; i < THREADS; i++) {
		parts[i] =
		    (struct part){start + i * (mappings / THREADS) * page_bytes, mappings / THREADS, (unsigned)i + 1};
		for (size_t page = 0; page < parts[i].pages; page++)
			map_page(&parts[i], page);
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, change_pages, &parts[i]);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
