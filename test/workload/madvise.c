// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory released without unmapping, and advice that releases nothing: known numbers of calls and bytes. */
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "support/stage.h"

enum { BLOCK_PAGES = 64, ROUNDS = 10 };

static size_t calls, dontneeds, given_back;

static void advise(char *start, size_t bytes, int advice, bool gives_back)
{
	stage_need_call(madvise(start, bytes, advice), "madvise");
	calls++;
	dontneeds += advice == MADV_DONTNEED;
	given_back += gives_back ? bytes : 0;
}

static void advise_process(char *start, size_t bytes)
{
	struct iovec range = {start, bytes};
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	(void)syscall(SYS_process_madvise, pidfd, &range, 1, MADV_COLD, 0);
	close(pidfd);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t page = stage_page_bytes();
	char *block, *hole;

	stage_begin(&stage);
	block = mmap(NULL, BLOCK_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stage_need(block, "mmap");
	for (int i = 0; i < ROUNDS; i++) {
		stage_touch(block, BLOCK_PAGES * page);
		advise(block, BLOCK_PAGES * page, MADV_DONTNEED, true);
		advise(block + page, 3 * page, MADV_FREE, true);
		advise(block, 2 * page, MADV_WILLNEED, false);
	}
	advise(block, page, MADV_DONTFORK, false);
	advise(block, page, MADV_DOFORK, false);
	/* Across a hole: applied to what is mapped, and an error. */
	hole = block + 8 * page;
	stage_need_call(munmap(hole, page), "munmap");
	if (madvise(hole - page, 3 * page, MADV_DONTNEED) == 0)
		return 1;
	calls++;
	given_back += 2 * page;
	/* Its own memory, through a PID file descriptor, which is not recorded. */
	for (int i = 0; i < ROUNDS; i++)
		advise_process(block, page);
	dprintf(STDOUT_FILENO, "advised %zu dontneed %zu given_back %zu\n", calls, dontneeds, given_back);
	stage_expect("total=%zu", (BLOCK_PAGES - 1) * page);
	stage_end(&stage);
	return 0;
}
