/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* System V segments, attached twice and detached once, and shared anonymous memory. */
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "support/stage.h"

enum { SEGMENTS = 4, SEGMENT_PAGES = 16, SHARED_PAGES = 8 };

VISIBLE void *attach_segment(int id)
{
	void *segment = shmat(id, NULL, 0);

	stage_need(segment, "shmat");
	KEEP_FRAME();
	return segment;
}

VISIBLE void leak_segment(size_t page)
{
	int id = stage_need_call(shmget(IPC_PRIVATE, SEGMENT_PAGES * page, IPC_CREAT | 0600), "shmget");
	void *first = attach_segment(id), *second = attach_segment(id);

	stage_need_call(shmctl(id, IPC_RMID, NULL), "shmctl");
	stage_touch(second, SEGMENT_PAGES * page);
	stage_need_call(shmdt(first), "shmdt");
}

VISIBLE void leak_shared_anonymous(size_t page)
{
	void *block = mmap(NULL, SHARED_PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	stage_need(block, "mmap");
	stage_touch(block, SHARED_PAGES * page);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t page = stage_page_bytes(), segment = SEGMENT_PAGES * page, shared = SHARED_PAGES * page;

	stage_begin(&stage);
	for (int i = 0; i < SEGMENTS; i++) {
		leak_segment(page);
		leak_shared_anonymous(page);
	}
	stage_expect("bytes=%zu count=%d resident=%zu freed=%zu releases=%d "
		     "stack=shmat<attach_segment<leak_segment<main",
		     SEGMENTS * segment, SEGMENTS, SEGMENTS * segment, SEGMENTS * segment, SEGMENTS);
	stage_expect("bytes=%zu count=%d resident=%zu stack=mmap<leak_shared_anonymous<main", SEGMENTS * shared,
		     SEGMENTS, SEGMENTS * shared);
	stage_expect("total=%zu", SEGMENTS * (segment + shared));
	stage_end(&stage);
	return 0;
}
