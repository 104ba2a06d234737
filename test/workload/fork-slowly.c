/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Forks one child after the other without a pause, and has so much mapped that it is inside fork() nearly all the time.
 * Each child makes numbered calls for two seconds. A numbered call is a munmap() of pages that were never mapped; its
 * length is the number, and its address tells the child (PIDs may be used again). The first operand names a file with
 * the PID of each child and the number of its calls, four bytes each; the second is the number of inherited mappings.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

#define CHILDREN 4096
#define CALLS 200
#define CALL_MICROSECONDS 10000
#define ADDRESS 0x100000000000ULL
#define CHILD_BYTES 0x1000000ULL

struct child {
	uint32_t pid;
	_Atomic uint32_t calls;
};

static void live(struct child *child, uintptr_t address, void *area, size_t area_bytes)
{
	munmap(area, area_bytes);
	child->pid = (uint32_t)getpid();
	for (uint32_t call = 1; call <= CALLS; call++) {
		munmap((void *)address, call * stage_page_bytes());
		atomic_store(&child->calls, call);
		usleep(CALL_MICROSECONDS);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	const char *path = stage.operand_count ? stage.operands[0] : "/dev/null";
	size_t mappings = stage_number(&stage, 1, 20000), page_bytes = stage_page_bytes();
	int fd = stage_need_call(open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), path);
	struct child *children;
	char *area;

	stage_need_call(ftruncate(fd, CHILDREN * sizeof(*children)), path);
	children =
	    stage_need(mmap(NULL, CHILDREN * sizeof(*children), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), path);
	area = stage_need(mmap(NULL, mappings * page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	/* Neighbours differ, so that they are not merged. */
	for (size_t i = 0; i < mappings; i += 2)
		mprotect(area + i * page_bytes, page_bytes, PROT_READ | PROT_WRITE);
	signal(SIGCHLD, SIG_IGN);
	puts("ready");
	fflush(stdout);
	for (size_t i = 0; i < CHILDREN; i++) {
		if (fork() == 0)
			live(&children[i], (uintptr_t)(ADDRESS + i * CHILD_BYTES), area, mappings * page_bytes);
	}
	pause();
	return 0;
}
