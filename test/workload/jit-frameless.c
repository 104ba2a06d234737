/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * x86-64 JIT code without frame pointers, as optimising runtimes make it: a function with rbp calls two functions
 * without, each of which does little more than one call; one of them saves a register and may return early. A
 * frame-pointer walk from them skips the function that called them.
 *
 * With the operand "java", a function of Java's names and conventions is below them: its interpreter, which moves its
 * frame away from its caller's and stores where that is, and the first frame of virtual threads, for which callees do
 * not preserve the frame pointer. With the operand "unknown", code whose rule cannot be deduced.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

enum { LEAKS = 10, BLOCK_PAGES = 4, SLOT_BYTES = 64, SLOTS = 3 };

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

#define SEQUENCE(array) {array, sizeof(array)}

/* push rbp; mov rbp, rsp; mov rax, callee; call rax; pop rbp; ret */
static const uint8_t outer_head[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8}, outer_tail[] = {0xff, 0xd0, 0x5d, 0xc3};
/* sub rsp, 40; mov rax, callee; call rax; add rsp, 40; ret */
static const uint8_t first_head[] = {0x48, 0x83, 0xec, 0x28, 0x48, 0xb8},
		     first_tail[] = {0xff, 0xd0, 0x48, 0x83, 0xc4, 0x28, 0xc3};
/* push rbx; sub rsp, 16; mov rax, callee; call rax; test eax, eax; je over; xor eax, eax; over: add rsp, 16; pop rbx;
 * ret */
static const uint8_t second_head[] = {0x53, 0x48, 0x83, 0xec, 0x10, 0x48, 0xb8},
		     second_tail[] = {0xff, 0xd0, 0x85, 0xc0, 0x74, 0x02, 0x31,
				      0xc0, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3};
/* push rbp; mov rbp, rsp; sub rsp, 48; xor ebp, ebp; mov rax, callee; call rax; add rsp, 48; pop rbp; ret */
static const uint8_t enter_head[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x30, 0x31, 0xed, 0x48, 0xb8},
		     enter_tail[] = {0xff, 0xd0, 0x48, 0x83, 0xc4, 0x30, 0x5d, 0xc3};
/* lea r10, [rsp + 8]; pop rax; sub rsp, 64; push rax; push rbp; mov rbp, rsp; push r10; push 0; mov rax, callee; call
 * rax; mov r11, [rbp - 8]; mov rcx, [rbp + 8]; mov rbp, [rbp]; mov rsp, r11; jmp rcx */
static const uint8_t interpreter_head[] = {0x4c, 0x8d, 0x54, 0x24, 0x08, 0x58, 0x48, 0x83, 0xec, 0x40, 0x50, 0x55,
					   0x48, 0x89, 0xe5, 0x41, 0x52, 0x6a, 0x00, 0x48, 0xb8},
		     interpreter_tail[] = {0xff, 0xd0, 0x4c, 0x8b, 0x5d, 0xf8, 0x48, 0x8b, 0x4d, 0x08,
					   0x48, 0x8b, 0x6d, 0x00, 0x4c, 0x89, 0xdc, 0xff, 0xe1};
/* sub rsp, 40; mov rax, callee; call rax; add rsp, 40; pop rcx; jmp rcx */
static const uint8_t unknown_tail[] = {0xff, 0xd0, 0x48, 0x83, 0xc4, 0x28, 0x59, 0xff, 0xe1};

struct function {
	const char *name; /* "": none in the map */
	struct sequence head, tail;
};

static const struct function frameless[SLOTS] = {
    {"Outer", SEQUENCE(outer_head), SEQUENCE(outer_tail)},
    {"First", SEQUENCE(first_head), SEQUENCE(first_tail)},
    {"Second", SEQUENCE(second_head), SEQUENCE(second_tail)}};
static const struct function java[SLOTS] = {
    {"jdk.internal.vm.Continuation.enterSpecial(boolean)", SEQUENCE(enter_head), SEQUENCE(enter_tail)},
    {"Main.first(int)", SEQUENCE(first_head), SEQUENCE(first_tail)},
    {"Interpreter", SEQUENCE(interpreter_head), SEQUENCE(interpreter_tail)}};
static const struct function unknown[SLOTS] = {{"", SEQUENCE(outer_head), SEQUENCE(outer_tail)},
					       {"", SEQUENCE(first_head), SEQUENCE(unknown_tail)},
					       {"", SEQUENCE(second_head), SEQUENCE(second_tail)}};

/* Each function calls the next one. */
static void generate(char *code, const struct function *functions, FILE *map)
{
	for (int i = 0; i < SLOTS; i++) {
		uint64_t callee = i + 1 < SLOTS ? (uint64_t)(uintptr_t)code + (uint64_t)(i + 1) * SLOT_BYTES
						: (uint64_t)(uintptr_t)native_allocate;

		emit(code, i, functions[i].head, callee, functions[i].tail);
		if (*functions[i].name)
			fprintf(map, "%zx %x %s\n", (size_t)code + (size_t)i * SLOT_BYTES, SLOT_BYTES, functions[i].name);
	}
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t page = stage_page_bytes(), bytes = LEAKS * BLOCK_PAGES * page;
	char *code = stage_need(
	    mmap(NULL, page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	const char *kind = stage.operand_count ? stage.operands[0] : "";
	const struct function *functions = !strcmp(kind, "java")      ? java
					   : !strcmp(kind, "unknown") ? unknown
								      : frameless;
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = stage_need(fopen(path, "w"), path);
	generate(code, functions, map);
	fclose(map);
	stage_begin(&stage);
	for (int i = 0; i < LEAKS; i++)
		((void (*)(void))(uintptr_t)code)();
	if (functions != unknown)
		stage_expect("bytes=%zu count=%d stack=mmap<native_allocate<%s<%s<%s<main", bytes, LEAKS,
			     functions[2].name, functions[1].name, functions[0].name);
	stage_expect("total=%zu", bytes);
	stage_end(&stage);
	if (!stage.exit_by_itself)
		unlink(path);
	return 0;
}
