/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks mapped through every kind of frame that a C compiler generates: program [--exit] [ROUNDS]. Each round maps one
 * block on each of the paths below; the functions' names say which.
 */
#include <alloca.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/stage.h"

enum { BLOCK = 4096, MALLOC_BLOCK = 256 << 10, LARGE_FRAME = 8 << 10 };

VISIBLE void leak_mmap(void)
{
	stage_need(mmap(NULL, BLOCK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

/* So large that malloc maps it. */
VISIBLE void leak_malloc(void)
{
	stage_need(malloc(MALLOC_BLOCK), "malloc");
	KEEP_FRAME();
}

VISIBLE void leak_syscall(void)
{
	stage_need((void *)syscall(SYS_mmap, NULL, BLOCK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

#ifdef __x86_64__
VISIBLE void leak_instruction(void)
{
	register long flags __asm__("r10") = MAP_PRIVATE | MAP_ANONYMOUS, file __asm__("r8") = -1;
	register long offset __asm__("r9") = 0;
	long result = SYS_mmap;

	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(0), "S"((long)BLOCK), "d"((long)PROT_READ), "r"(flags), "r"(file), "r"(offset)
			 : "rcx", "r11", "memory");
	stage_need_call((int)(result >> 63), "mmap");
}
#else
VISIBLE void leak_instruction(void)
{
	leak_syscall();
	KEEP_FRAME();
}
#endif

/* The stack pointer moves by an amount that is known only at run time: the frame needs a base register. */
VISIBLE void with_alloca(size_t bytes, void (*leak)(void))
{
	volatile char *room = alloca(bytes);

	room[0] = room[bytes - 1] = 1;
	leak();
	room[0] = 2;
}

/* A frame with a larger alignment than the stack, found again by the caller's frame address. */
VISIBLE void with_alignment(void (*leak)(void))
{
	__attribute__((aligned(128))) volatile char room[128];

	room[0] = 1;
	leak();
	room[1] = room[0];
}

/* Both at once: the frame's base register itself is saved on the stack. */
VISIBLE void with_alignment_and_alloca(size_t bytes, void (*leak)(void))
{
	__attribute__((aligned(64))) volatile char room[64];
	volatile char *more = alloca(bytes);

	room[0] = more[0] = 1;
	leak();
	room[1] = more[0] = room[0];
}

/* The next calls have their frames in this memory. */
VISIBLE void touch_below(void)
{
	volatile char room[BLOCK];

	room[0] = room[BLOCK / 2] = 1;
}

VISIBLE void with_large_frame(void (*leak)(void))
{
	volatile char room[LARGE_FRAME];

	/* Every page of it: untouched pages cannot be copied. */
	for (size_t i = 0; i < sizeof(room); i += BLOCK / 2)
		room[i] = 1;
	/* Nor can a stack that starts in such a page, where a function has reserved space and not used it. */
	touch_below();
	leak();
	room[1] = 2;
}

VISIBLE int with_arguments(void (*leak)(void), int count, ...)
{
	va_list arguments;
	int sum = 0;

	va_start(arguments, count);
	for (int i = 0; i < count; i++)
		sum += va_arg(arguments, int);
	va_end(arguments);
	leak();
	return sum;
}

static int compare(const void *left, const void *right)
{
	leak_mmap();
	return *(const int *)left - *(const int *)right;
}

/* Through libc and back. */
VISIBLE void by_callback(void)
{
	int numbers[2] = {2, 1};

	qsort(numbers, 2, sizeof(numbers[0]), compare);
	KEEP_FRAME();
}

static inline __attribute__((always_inline)) void inlined_inner(void)
{
	leak_mmap();
	KEEP_FRAME();
}

static inline __attribute__((always_inline)) void inlined_outer(void)
{
	inlined_inner();
}

VISIBLE void by_inlined(void)
{
	inlined_outer();
}

VISIBLE int by_recursion(int depth)
{
	if (!depth) {
		leak_mmap();
		return 1;
	}
	depth += by_recursion(depth - 1);
	KEEP_FRAME();
	return depth;
}

/* The call is the last instruction of the function: the return address belongs to the next one. */
VISIBLE __attribute__((noreturn)) void leave_thread(void)
{
	leak_mmap();
	pthread_exit(NULL);
}

VISIBLE __attribute__((noreturn)) void by_last_call(void)
{
	leave_thread();
}

static void *thread(void *argument)
{
	(void)argument;
	leak_mmap();
	leak_malloc();
	by_last_call();
}

VISIBLE void one_round(void)
{
	leak_mmap();
	leak_malloc();
	leak_syscall();
	leak_instruction();
	with_alloca(100, leak_mmap);
	with_alignment(leak_mmap);
	with_alignment_and_alloca(200, leak_malloc);
	with_large_frame(leak_mmap);
	with_arguments(leak_mmap, 3, 1, 2, 3);
	by_callback();
	by_inlined();
	by_recursion(5);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t rounds = stage_number(&stage, 0, 1);
	pthread_t id;

	stage_begin(&stage);
	for (size_t i = 0; i < rounds; i++)
		one_round();
	if (pthread_create(&id, NULL, thread, NULL) || pthread_join(id, NULL))
		return 1;
	stage_end(&stage);
	return 0;
}
