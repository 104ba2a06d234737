/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory that was reserved before recording is made accessible during it, in pieces, some of which are released. */
#include <sys/mman.h>

#include "support/stage.h"

enum { MEBIBYTE = 1 << 20, RESERVED = 64 * MEBIBYTE, PIECE = 3 * MEBIBYTE, PIECES = 5, RETURNED = 2 };

VISIBLE char *reserve_area(void)
{
	char *area = mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	stage_need(area, "mmap");
	return area;
}

VISIBLE void commit_piece(char *start)
{
	stage_need_call(mprotect(start, PIECE, PROT_READ | PROT_WRITE), "mprotect");
	stage_touch(start, PIECE);
}

VISIBLE void commit_again(char *start)
{
	stage_need_call(mprotect(start, PIECE, PROT_READ | PROT_WRITE), "mprotect");
	KEEP_FRAME();
}

VISIBLE void return_piece(char *start)
{
	stage_need_call(mprotect(start, PIECE, PROT_NONE), "mprotect");
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	char *before = reserve_area(), *inside;

	stage_begin(&stage);
	inside = reserve_area();
	for (int i = 0; i < PIECES; i++) {
		commit_piece(before + i * 2 * PIECE);
		commit_piece(inside + i * 2 * PIECE);
	}
	for (int i = 0; i < RETURNED; i++) {
		return_piece(before + i * 2 * PIECE);
		return_piece(inside + i * 2 * PIECE);
	}
	/* Already accessible: it still counts for the first call. */
	commit_again(before + RETURNED * 2 * PIECE);
	/* Released before: it counts for the new call. */
	commit_again(before);
	stage_expect("bytes=0 committed=%d committed_before=%d stack=mprotect<commit_piece<main",
		     (PIECES - RETURNED) * PIECE, (PIECES - RETURNED) * PIECE);
	stage_expect("bytes=0 committed=0 committed_before=%d stack=mprotect<commit_again<main", PIECE);
	stage_expect("bytes=%d count=1 committed=0 reserved=%d stack=mmap<reserve_area<main", RESERVED,
		     RESERVED - (PIECES - RETURNED) * PIECE);
	stage_expect("total=%d committed=%d committed_before=%d reserved=%d", RESERVED, (PIECES - RETURNED) * PIECE,
		     (PIECES - RETURNED + 1) * PIECE, RESERVED - (PIECES - RETURNED) * PIECE);
	stage_end(&stage);
	return 0;
}
