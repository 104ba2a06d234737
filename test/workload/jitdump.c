/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * x86-64 JIT code with a jitdump, jit-PID.dump in the working directory: frameless functions that can only be unwound
 * by their UNWINDING_INFO, with source lines; later other code at the same address, and code that is moved. The file
 * ends with CLOSE and the first part of a truncated record.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "support/stage.h"

enum {
	LEAKS = 10,
	BLOCK_PAGES = 4,
	FUNCTION_BYTES = 21,
	OUTER = 0,
	INNER = 64,
	LOADED = 128,
	MOVED = 192,
	UNUSED = 256
};
enum { LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING_INFO };

struct header {
	uint32_t magic, version, size, machine, padding, pid;
	uint64_t time_ns, flags;
};

struct prefix {
	uint32_t id, size;
	uint64_t time_ns;
};

/* "N0tCa11d", in code that is in no stack; read from memory, so that it is not in the code that is in one. */
static volatile uint64_t not_called = 0x643131614374304e;

static FILE *dump;
static char *code;

VISIBLE void native_allocate(void)
{
	stage_need(mmap(NULL, BLOCK_PAGES * stage_page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void put(const void *data, size_t size)
{
	stage_need(fwrite(data, size, 1, dump) ? dump : NULL, "fwrite");
}

static void put_u64(uint64_t value)
{
	put(&value, sizeof(value));
}

static void put_prefix(uint32_t id, size_t size)
{
	const struct prefix prefix = {.id = id, .size = (uint32_t)(sizeof(prefix) + size), .time_ns = now_ns()};

	put(&prefix, sizeof(prefix));
}

/* One line for the whole function. */
static void put_lines(uint64_t address, uint32_t line, const char *file)
{
	put_prefix(DEBUG_INFO, 16 + 16 + strlen(file) + 1);
	put_u64(address);
	put_u64(1);
	put_u64(address);
	put_u64(line); /* and discriminator 0 */
	put(file, strlen(file) + 1);
}

static void put_unwinding(void)
{
	/* CFA rsp+8; after `sub rsp, 24` rsp+32; before `ret` rsp+8. The table would follow 24 bytes after the
	 * code's start, so the code starts 56 bytes before the field that says so. */
	static const uint8_t eh_frame[] = {
	    20, 0, 0,	 0, 0, 0,    0,	 0,  1,	   'z', 'R', 0, 1, 0x78, 16,  1,    0x1b, 12,
	    7,	8, 0x90, 1, 0, 0,    20, 0,  0,	   0,	28,  0, 0, 0,	 200, 0xff, 0xff, 0xff,
	    21, 0, 0,	 0, 0, 0x44, 14, 32, 0x50, 14,	8,   0, 0, 0,	 0,   0,
	};

	put_prefix(UNWINDING_INFO, 24 + sizeof(eh_frame));
	put_u64(sizeof(eh_frame));
	put_u64(0);
	put_u64(0);
	put(eh_frame, sizeof(eh_frame));
}

/* sub rsp, 24; mov rax, callee; call rax; add rsp, 24; ret */
static void generate(size_t offset, uint64_t callee, const char *name, uint64_t index)
{
	static const uint8_t head[] = {0x48, 0x83, 0xec, 0x18, 0x48, 0xb8};
	static const uint8_t tail[] = {0xff, 0xd0, 0x48, 0x83, 0xc4, 0x18, 0xc3};
	char *place = code + offset;
	const uint32_t thread[] = {(uint32_t)getpid(), (uint32_t)getpid()};

	_Static_assert(sizeof(head) + sizeof(callee) + sizeof(tail) == FUNCTION_BYTES, "size of a function");
	memcpy(place, head, sizeof(head));
	memcpy(place + sizeof(head), &callee, sizeof(callee));
	memcpy(place + sizeof(head) + sizeof(callee), tail, sizeof(tail));
	put_lines((uint64_t)(uintptr_t)place, (uint32_t)(10 + index), "/nowhere/source.js");
	put_unwinding();
	put_prefix(LOAD, 40 + strlen(name) + 1 + FUNCTION_BYTES);
	put(thread, sizeof(thread));
	put_u64((uint64_t)(uintptr_t)place);
	put_u64((uint64_t)(uintptr_t)place);
	put_u64(FUNCTION_BYTES);
	put_u64(index);
	put(name, strlen(name) + 1);
	put(place, FUNCTION_BYTES);
}

static void move(size_t from, size_t to, uint64_t index)
{
	const uint32_t thread[] = {(uint32_t)getpid(), (uint32_t)getpid()};

	memcpy(code + to, code + from, FUNCTION_BYTES);
	memset(code + from, 0xcc, FUNCTION_BYTES);
	put_prefix(MOVE, 48);
	put(thread, sizeof(thread));
	put_u64((uint64_t)(uintptr_t)code + from);
	put_u64((uint64_t)(uintptr_t)code + from);
	put_u64((uint64_t)(uintptr_t)code + to);
	put_u64(FUNCTION_BYTES);
	put_u64(index);
}

static void start_dump(void)
{
	const struct header header = {.magic = 0x4a695444,
				      .version = 1,
				      .size = sizeof(header),
				      .machine = 62,
				      .pid = (uint32_t)getpid(),
				      .time_ns = now_ns()};
	char path[64];

	snprintf(path, sizeof(path), "jit-%d.dump", (int)getpid());
	dump = stage_need(fopen(path, "w+"), path);
	put(&header, sizeof(header));
	fflush(dump);
	/* The recorder finds the file by this mapping. */
	stage_need(mmap(NULL, stage_page_bytes(), PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0), "mmap");
}

static inline __attribute__((always_inline)) void run(size_t offset)
{
	fflush(dump);
	for (int i = 0; i < LEAKS; i++)
		((void (*)(void))(uintptr_t)(code + offset))();
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t bytes = LEAKS * BLOCK_PAGES * stage_page_bytes();

	start_dump();
	code = stage_need(
	    mmap(NULL, stage_page_bytes(), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	    "mmap");
	generate(INNER, (uint64_t)(uintptr_t)native_allocate, "Inner", 0);
	generate(OUTER, (uint64_t)(uintptr_t)code + INNER, "Outer", 1);
	stage_begin(&stage);
	run(OUTER);
	generate(INNER, (uint64_t)(uintptr_t)native_allocate, "LaterInner", 2);
	generate(OUTER, (uint64_t)(uintptr_t)code + INNER, "LaterOuter", 3);
	run(OUTER);
	generate(LOADED, (uint64_t)(uintptr_t)code + INNER, "Moved", 4);
	move(LOADED, MOVED, 4);
	run(MOVED);
	generate(UNUSED, not_called, "Unused", 5);
	put_prefix(CLOSE, 0);
	put_prefix(LOAD, 1000);
	fflush(dump);
	stage_expect("bytes=%zu count=%d stack=mmap<native_allocate<Inner<Outer<main", bytes, LEAKS);
	stage_expect("bytes=%zu count=%d stack=mmap<native_allocate<LaterInner<LaterOuter<main", bytes, LEAKS);
	stage_expect("bytes=%zu count=%d stack=mmap<native_allocate<LaterInner<Moved<main", bytes, LEAKS);
	stage_expect("total=%zu", 3 * bytes);
	stage_end(&stage);
	return 0;
}
