/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A range reserved without access; one part is made accessible by mprotect, another by a mapping over it. */
#include <sys/mman.h>

#include "support/stage.h"

enum { MEBIBYTE = 1 << 20, RESERVED = 64 * MEBIBYTE };

VISIBLE char *reserve_area(void)
{
	char *area = mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	stage_need(area, "mmap");
	KEEP_FRAME();
	return area;
}

VISIBLE void commit_by_mprotect(char *start)
{
	stage_need_call(mprotect(start, MEBIBYTE, PROT_READ | PROT_WRITE), "mprotect");
	KEEP_FRAME();
	stage_touch(start, MEBIBYTE);
}

VISIBLE void commit_by_mapping(char *start)
{
	stage_need(mmap(start, MEBIBYTE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		   "mmap");
	stage_touch(start, MEBIBYTE);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	char *area;

	stage_begin(&stage);
	area = reserve_area();
	commit_by_mprotect(area + 4 * MEBIBYTE);
	commit_by_mapping(area + 8 * MEBIBYTE);
	/* Bytes count for the call that makes them accessible, not for the one that reserved them. */
	stage_expect("bytes=%d count=1 committed=0 reserved=%d resident=0 stack=mmap<reserve_area<main",
		     RESERVED - MEBIBYTE, RESERVED - 2 * MEBIBYTE);
	stage_expect("bytes=0 committed=%d resident=%d stack=mprotect<commit_by_mprotect<main", MEBIBYTE, MEBIBYTE);
	stage_expect("bytes=%d count=1 committed=%d reserved=0 resident=%d stack=mmap<commit_by_mapping<main", MEBIBYTE,
		     MEBIBYTE, MEBIBYTE);
	stage_expect("total=%d", RESERVED);
	stage_end(&stage);
	return 0;
}
