/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls of each kind, with arguments that have names. With an operand: then calls that change memory of several functions,
 * and it maps and unmaps until that file exists. The name of its thread has an escape sequence then. */
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/stage.h"

#define MIB ((size_t)1 << 20)
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)

VISIBLE char *map(size_t bytes, int protection, int flags)
{
	return stage_need(mmap(NULL, bytes, protection, ANONYMOUS | flags, -1, 0), "mmap");
}

VISIBLE void work(void)
{
	char *block = map(4 * MIB, PROT_READ | PROT_WRITE, 0), *reserved = map(8 * MIB, PROT_NONE, MAP_NORESERVE);
	char *moved, *end;

	stage_touch(block, MIB);
	stage_need_call(mprotect(reserved, MIB, PROT_READ | PROT_WRITE), "mprotect");
	stage_need_call(madvise(block, MIB, MADV_DONTNEED), "madvise");
	moved = stage_need(mremap(block, 4 * MIB, 6 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, reserved + 2 * MIB), "mremap");
	stage_need_call(mprotect(moved, 2 * MIB, PROT_NONE), "mprotect");
	stage_need(mmap(reserved, MIB, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0), "mmap");
	stage_need_call(munmap(reserved, 8 * MIB), "munmap");
	block = map(MIB, PROT_READ | PROT_WRITE, 0);
	stage_need(mremap(block, MIB, MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL), "mremap");
	end = sbrk(0);
	stage_need_call(brk(end + MIB), "brk");
	stage_need_call(brk(end), "brk");
	if (mmap(NULL, (size_t)1 << 46, PROT_READ | PROT_WRITE, ANONYMOUS, -1, 0) != MAP_FAILED ||
	    mmap(NULL, MIB, PROT_READ, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED ||
	    mmap(NULL, (size_t)1 << 40, PROT_READ, ANONYMOUS | MAP_HUGETLB | 21 << 26, -1, 0) != MAP_FAILED ||
	    madvise(NULL, (size_t)-8192, MADV_NORMAL) == 0 || munmap(end + 1, 1) == 0)
		stage_need_call(-1, "a call that must fail");
}

VISIBLE char *place(char *address, size_t bytes)
{
	return stage_need(mmap(address, bytes, PROT_READ | PROT_WRITE, ANONYMOUS | MAP_FIXED, -1, 0), "mmap");
}

VISIBLE void change(void)
{
	char *area = map(8 * MIB, PROT_NONE, MAP_NORESERVE), *block = map(MIB, PROT_READ | PROT_WRITE, 0);
	char *first = place(area, MIB), *second = place(area + 2 * MIB, 2 * MIB);
	const int fixed = MREMAP_MAYMOVE | MREMAP_FIXED;
	pid_t child;

	stage_need(mremap(block, MIB, MIB, fixed, second), "mremap");
	stage_need(mremap(first, MIB, MIB, fixed | MREMAP_DONTUNMAP, area + 6 * MIB), "mremap");
	stage_need(mmap(first, MIB / 2, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0), "mmap");
	stage_need_call(munmap(first + 4096, 4096), "munmap");
	if (madvise(first, 4 * 4096, MADV_DONTNEED) == 0 || madvise(first + 1, 4096, MADV_DONTNEED) == 0)
		stage_need_call(-1, "a call that must fail");
	(void)madvise(first, 4096, 102); /* MADV_GUARD_INSTALL, since Linux 6.13 */
	child = fork();
	if (child == 0) {
		stage_need_call(munmap(first, 4096), "munmap");
		_exit(0);
	}
	stage_need_call(waitpid(child, NULL, 0), "waitpid");
	stage_need_call(munmap(area, 8 * MIB), "munmap");
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);

	if (stage.operand_count)
		prctl(PR_SET_NAME, "a\x1b[31m\n\xff");
	stage_begin(&stage);
	work();
	if (stage.operand_count)
		change();
	while (stage.operand_count && access(stage.operands[0], F_OK) != 0) {
		stage_need_call(munmap(map(MIB, PROT_READ, 0), MIB), "munmap");
		usleep(200);
	}
	return 0;
}
