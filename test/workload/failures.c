/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that fail in several ways, many of them with ENOMEM: they map nothing and are counted by stack. */
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "support/stage.h"

enum { TOO_LARGE = 300, OVER_LIMIT = 200, NO_SUCH_FILE = 50, HALF_CHANGED = 20, LEFT = 3, BLOCK_PAGES = 4 };
#define TOO_LARGE_BYTES ((size_t)1 << 46)
#define OVER_LIMIT_BYTES ((size_t)1 << 32)

static void must_fail(bool failed, int error)
{
	if (!failed || errno != error)
		stage_need_call(-1, "a call that must fail did not, or differently");
}

VISIBLE void ask_for_too_much(void)
{
	void *block = mmap(NULL, TOO_LARGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must_fail(block == MAP_FAILED, ENOMEM);
}

VISIBLE void ask_beyond_limit(void)
{
	void *block = mmap(NULL, OVER_LIMIT_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	must_fail(block == MAP_FAILED, ENOMEM);
}

VISIBLE void map_closed_file(void)
{
	must_fail(mmap(NULL, stage_page_bytes(), PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED, EBADF);
}

/* The first half is mapped, the second is not: the call fails and has changed the first. */
VISIBLE void protect_half(char *block)
{
	must_fail(mprotect(block, 2 * BLOCK_PAGES * stage_page_bytes(), PROT_NONE) < 0, ENOMEM);
	stage_need_call(mprotect(block, BLOCK_PAGES * stage_page_bytes(), PROT_READ), "mprotect");
}

VISIBLE char *map_left(void)
{
	size_t block = BLOCK_PAGES * stage_page_bytes();
	char *mapped = mmap(NULL, 2 * block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(mapped, "mmap");
	stage_need_call(munmap(mapped + block, block), "munmap");
	return mapped;
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	struct rlimit limit = {.rlim_cur = (rlim_t)1 << 30, .rlim_max = RLIM_INFINITY};
	size_t block = BLOCK_PAGES * stage_page_bytes();
	char *left[LEFT];

	stage_begin(&stage);
	for (int i = 0; i < LEFT; i++)
		left[i] = map_left();
	for (int i = 0; i < TOO_LARGE; i++)
		ask_for_too_much();
	for (int i = 0; i < NO_SUCH_FILE; i++)
		map_closed_file();
	for (int i = 0; i < HALF_CHANGED; i++)
		protect_half(left[0]);
	setrlimit(RLIMIT_AS, &limit);
	for (int i = 0; i < OVER_LIMIT; i++)
		ask_beyond_limit();
	stage_expect("bytes=%zu count=%d stack=mmap<map_left", LEFT * block, LEFT);
	stage_expect("bytes=0 stack=mmap<ask_for_too_much");
	stage_expect("bytes=0 stack=mmap<ask_beyond_limit");
	stage_expect("total=%zu", LEFT * block);
	stage_expect("failed=mmap error=%d count=%d asked=%zu stack=mmap<ask_for_too_much<main", ENOMEM, TOO_LARGE,
		     TOO_LARGE * TOO_LARGE_BYTES);
	stage_expect("failed=mmap error=%d count=%d asked=%zu stack=mmap<ask_beyond_limit<main", ENOMEM, OVER_LIMIT,
		     OVER_LIMIT * OVER_LIMIT_BYTES);
	stage_expect("failed=mmap error=%d count=%d stack=mmap<map_closed_file<main", EBADF, NO_SUCH_FILE);
	stage_expect("failed=mprotect error=%d count=%d stack=mprotect<protect_half<main", ENOMEM, HALF_CHANGED);
	stage_end(&stage);
	return 0;
}
