/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of every class, a different amount of each. Prints the amounts: "class NAME unfreed=BYTES". With huge pages if
 * the system has three to spare.
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "support/stage.h"

enum { MEBIBYTE = 1 << 20, HUGE_PAGES = 2, HUGE_BYTES = 2 * MEBIBYTE, PIECE = 2 * MEBIBYTE, CODE_PIECE = 256 << 10 };
#define RESERVED ((size_t)4 << 30)

static pthread_barrier_t never;

VISIBLE char *map(size_t bytes, int protection, int flags, int fd)
{
	char *mapped = mmap(NULL, bytes, protection, flags, fd, 0);

	return stage_need(mapped, "mmap");
}

static void print_class(const char *name, size_t bytes)
{
	printf("class %s unfreed=%zu\n", name, bytes);
}

/* The second is grown by a call that gives no hint of its class. */
VISIBLE void leak_anonymous(size_t page)
{
	char *grown = map(3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	map(5 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	stage_need(mremap(grown, 3 * page, 9 * page, MREMAP_MAYMOVE), "mremap");
	/* With what replaces a part of the managed heap, and what surrounds code. */
	print_class("anon", 14 * page + PIECE + 6 * page);
}

VISIBLE void leak_files(size_t page)
{
	int file = stage_need_call(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "open");
	int memory = stage_need_call(memfd_create("a file of memory", MFD_CLOEXEC), "memfd_create");

	stage_need_call(ftruncate(memory, (off_t)(7 * page)), "ftruncate");
	map(2 * page, PROT_READ, MAP_PRIVATE, file);
	map(7 * page, PROT_READ | PROT_WRITE, MAP_SHARED, memory);
	close(file);
	close(memory);
	print_class("file", 9 * page);
}

VISIBLE void leak_heap(size_t page)
{
	char *end = sbrk((intptr_t)(11 * page));

	stage_need_call(end == (char *)-1 ? -1 : 0, "sbrk");
	print_class("heap", 11 * page);
}

VISIBLE void leak_shared(size_t page)
{
	int segment = stage_need_call(shmget(IPC_PRIVATE, 13 * page, IPC_CREAT | 0600), "shmget");

	stage_need_call(shmat(segment, NULL, 0) == (void *)-1 ? -1 : 0, "shmat");
	shmctl(segment, IPC_RMID, NULL);
	map(6 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	print_class("shm", 19 * page);
}

static void *stay(void *unused)
{
	pthread_barrier_wait(&never);
	return unused;
}

/* One made by glibc, one as other runtimes make them. */
VISIBLE void leak_thread_stacks(size_t page)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 * page);
	pthread_attr_setguardsize(&attributes, page);
	stage_need_call(-pthread_create(&thread, &attributes, stay, NULL), "pthread_create");
	map(17 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1);
	stage_need_call(-pthread_getattr_np(thread, &attributes), "pthread_getattr_np");
	pthread_attr_destroy(&attributes);
	print_class("thread-stack", (64 + 1 + 17) * page);
}

/* Both are rounded up to whole huge pages. */
VISIBLE void leak_huge_pages(void)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
	char *huge = mmap(NULL, HUGE_PAGES * HUGE_BYTES - 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
	char *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (gone != MAP_FAILED)
		stage_need_call(munmap(gone, HUGE_BYTES), "munmap");
	print_class("hugetlb", huge == MAP_FAILED ? 0 : HUGE_PAGES * HUGE_BYTES);
}

/* Written, then made executable; and two mappings of one memory. */
VISIBLE void leak_jit_code(size_t page)
{
	int memory = stage_need_call(memfd_create("doublemapper", MFD_CLOEXEC), "memfd_create");
	char *code = map(20 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	stage_need_call(mprotect(code, 20 * page, PROT_READ | PROT_EXEC), "mprotect");
	/* Executable once, then no longer. */
	code = map(3 * page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	stage_need_call(mprotect(code, 3 * page, PROT_READ), "mprotect");
	stage_need_call(ftruncate(memory, (off_t)(4 * page)), "ftruncate");
	map(4 * page, PROT_READ | PROT_EXEC, MAP_SHARED, memory);
	close(memory);
	/* Two parts of one mapping, the first for a while only; the rest is not code. */
	code = map(10 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	stage_need_call(mprotect(code + 2 * page, 3 * page, PROT_READ | PROT_EXEC), "mprotect");
	stage_need_call(mprotect(code + 2 * page, 3 * page, PROT_READ | PROT_WRITE), "mprotect");
	stage_need_call(mprotect(code + 7 * page, page, PROT_READ | PROT_EXEC), "mprotect");
	print_class("jit", 31 * page + CODE_PIECE);
}

/* A mapping placed into it is ordinary memory; a part made executable is code. */
VISIBLE void leak_managed_heap(void)
{
	char *area = map(RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);

	stage_need_call(mprotect(area + PIECE, PIECE, PROT_READ | PROT_WRITE), "mprotect");
	stage_touch(area + PIECE, PIECE);
	stage_need(
	    mmap(area + 4 * PIECE, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
	    "mmap");
	stage_need_call(mprotect(area + 8 * PIECE, CODE_PIECE, PROT_READ | PROT_WRITE | PROT_EXEC), "mprotect");
	print_class("gc-reserve", RESERVED - PIECE - CODE_PIECE);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t page = stage_page_bytes();

	setvbuf(stdout, NULL, _IONBF, 0);
	free(malloc(1));
	pthread_barrier_init(&never, NULL, 2);
	stage_begin(&stage);
	leak_anonymous(page);
	leak_files(page);
	leak_shared(page);
	leak_thread_stacks(page);
	leak_huge_pages();
	leak_jit_code(page);
	leak_managed_heap();
	leak_heap(page);
	stage_end(&stage);
	return 0;
}
