/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * x86-64 JIT code without frame pointers, as optimising runtimes make it: a function with rbp calls two functions
 * without, each of which does little more than one call; one of them saves a register and may return early. A
 * frame-pointer walk from them skips the function that called them.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

enum { LEAKS = 10, BLOCK_PAGES = 4, SLOT_BYTES = 64, OUTER_SLOT = 0, FIRST_SLOT = 1, SECOND_SLOT = 2 };

struct sequence {
	const uint8_t *bytes;
	size_t size;
};

VISIBLE void native_allocate(void)
{
	stage_need(mmap(NULL, BLOCK_PAGES * stage_page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

static void emit(char *code, int slot, struct sequence head, uint64_t callee, struct sequence tail)
{
	char *place = code + (size_t)slot * SLOT_BYTES;

	memcpy(place, head.bytes, head.size);
	memcpy(place + head.size, &callee, sizeof(callee));
	memcpy(place + head.size + sizeof(callee), tail.bytes, tail.size);
}

#define SEQUENCE(array) ((struct sequence){array, sizeof(array)})

static void generate(char *code, FILE *map)
{
	static const char *const names[] = {"Outer", "First", "Second"};
	/* push rbp; mov rbp, rsp; mov rax, callee; call rax; pop rbp; ret */
	static const uint8_t outer_head[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8},
			     outer_tail[] = {0xff, 0xd0, 0x5d, 0xc3};
	/* sub rsp, 40; mov rax, callee; call rax; add rsp, 40; ret */
	static const uint8_t first_head[] = {0x48, 0x83, 0xec, 0x28, 0x48, 0xb8},
			     first_tail[] = {0xff, 0xd0, 0x48, 0x83, 0xc4, 0x28, 0xc3};
	/* push rbx; sub rsp, 16; mov rax, callee; call rax; test eax, eax; je over; xor eax, eax; over: add rsp, 16;
	 * pop rbx; ret */
	static const uint8_t second_head[] = {0x53, 0x48, 0x83, 0xec, 0x10, 0x48, 0xb8},
			     second_tail[] = {0xff, 0xd0, 0x85, 0xc0, 0x74, 0x02, 0x31,
					      0xc0, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3};
	uint64_t start = (uint64_t)(uintptr_t)code;

	emit(code, OUTER_SLOT, SEQUENCE(outer_head), start + FIRST_SLOT * SLOT_BYTES, SEQUENCE(outer_tail));
	emit(code, FIRST_SLOT, SEQUENCE(first_head), start + SECOND_SLOT * SLOT_BYTES, SEQUENCE(first_tail));
	emit(code, SECOND_SLOT, SEQUENCE(second_head), (uint64_t)(uintptr_t)native_allocate, SEQUENCE(second_tail));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		fprintf(map, "%zx %x %s\n", (size_t)code + i * SLOT_BYTES, SLOT_BYTES, names[i]);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t page = stage_page_bytes(), bytes = LEAKS * BLOCK_PAGES * page;
	char *code = stage_need(
	    mmap(NULL, page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = stage_need(fopen(path, "w"), path);
	generate(code, map);
	fclose(map);
	stage_begin(&stage);
	for (int i = 0; i < LEAKS; i++)
		((void (*)(void))(uintptr_t)code)();
	stage_expect("bytes=%zu count=%d stack=mmap<native_allocate<Second<First<Outer<main", bytes, LEAKS);
	stage_expect("total=%zu", bytes);
	stage_end(&stage);
	if (!stage.exit_by_itself)
		unlink(path);
	return 0;
}
