/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Anonymous memory, mapped through three functions and never unmapped: leak-anon [--exit] [COUNT [BYTES]]. */
#include <sys/mman.h>

#include "support/stage.h"

VISIBLE void *leak_inner(size_t bytes)
{
	void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(block, "mmap");
	stage_touch(block, bytes);
	return block;
}

VISIBLE void leak_middle(size_t bytes)
{
	leak_inner(bytes);
	KEEP_FRAME();
}

VISIBLE void leak_outer(size_t bytes)
{
	leak_middle(bytes);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t count = stage_number(&stage, 0, 10), bytes = stage_number(&stage, 1, stage_page_bytes());

	stage_begin(&stage);
	for (size_t i = 0; i < count; i++)
		leak_outer(bytes);
	stage_expect("bytes=%zu count=%zu committed=%zu reserved=0 resident=%zu releases=0 "
		     "stack=mmap<leak_inner<leak_middle<leak_outer<main",
		     count * bytes, count, count * bytes, count * bytes);
	stage_expect("total=%zu", count * bytes);
	stage_end(&stage);
	return 0;
}
