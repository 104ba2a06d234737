/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private and shared mappings of a file, complete and from an offset. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

enum { FILE_PAGES = 32, LEAKS = 3 };

VISIBLE void leak_private(int fd, size_t page)
{
	char *block = mmap(NULL, FILE_PAGES * page, PROT_READ, MAP_PRIVATE, fd, 0);

	stage_need(block, "mmap");
	KEEP_FRAME();
}

VISIBLE void leak_shared(int fd, size_t page)
{
	char *block = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(16 * page));

	stage_need(block, "mmap");
	stage_touch(block, 8 * page);
}

VISIBLE void map_and_unmap(int fd, size_t page)
{
	char *block = mmap(NULL, FILE_PAGES * page, PROT_READ, MAP_SHARED, fd, 0);

	stage_need(block, "mmap");
	stage_need_call(munmap(block, FILE_PAGES * page), "munmap");
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	char path[] = "/tmp/mmtrace-leak-file-XXXXXX";
	size_t page = stage_page_bytes();
	int fd = stage_need_call(mkstemp(path), path);

	unlink(path);
	stage_need_call(ftruncate(fd, (off_t)(FILE_PAGES * page)), "ftruncate");
	stage_begin(&stage);
	for (int i = 0; i < LEAKS; i++) {
		leak_private(fd, page);
		leak_shared(fd, page);
		map_and_unmap(fd, page);
	}
	stage_expect("bytes=%zu count=%d stack=mmap<leak_private<main", LEAKS * FILE_PAGES * page, LEAKS);
	stage_expect("bytes=%zu count=%d resident=%zu stack=mmap<leak_shared<main", LEAKS * 8 * page, LEAKS,
		     LEAKS * 8 * page);
	stage_expect("bytes=0 freed=%zu releases=%d stack=mmap<map_and_unmap<main", LEAKS * FILE_PAGES * page, LEAKS);
	stage_expect("total=%zu", LEAKS * (FILE_PAGES + 8) * page);
	stage_end(&stage);
	return 0;
}
