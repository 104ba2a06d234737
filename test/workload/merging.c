/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two threads split and merge neighbouring mappings until they are killed, so that the lines of two readings of the
 * maps overlap: merging [PAGES].
 */
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

#define THREADS 2

struct part {
	uint8_t *start;
	size_t pages;
};

static void protect(const struct part *part, size_t page, int protection)
{
	stage_need_call(mprotect(part->start + page * stage_page_bytes(), stage_page_bytes(), protection), "mprotect");
}

static void *split_and_merge(void *context)
{
	const struct part *part = context;

	for (;;) {
		for (size_t page = 0; page + 1 < part->pages; page += 2)
			protect(part, page, PROT_READ);
		for (size_t page = part->pages - part->pages % 2; page >= 2; page -= 2)
			protect(part, page - 2, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

VISIBLE uint8_t *map_all(size_t bytes)
{
	uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(memory, "mmap");
	stage_touch(memory, bytes);
	return memory;
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t pages = stage_number(&stage, 0, 6000) / THREADS;
	uint8_t *memory = map_all(THREADS * pages * stage_page_bytes());
	struct part parts[THREADS];
	pthread_t thread;

	for (size_t i = 0; i < THREADS; i++) {
		parts[i] = (struct part){memory + i * pages * stage_page_bytes(), pages};
		stage_need_call(-pthread_create(&thread, NULL, split_and_merge, &parts[i]), "pthread_create");
	}
	for (;;)
		pause();
}
