/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * JIT code as a runtime makes it: with frame pointers, in anonymous memory or (the default of .NET) in a memfd
 * "doublemapper" that is written through a second mapping, with names in /tmp/perf-PID.map. It calls a native function
 * that maps memory. With an operand, other code replaces the anonymous code after this number of milliseconds: the map
 * gets lines for the same addresses.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

enum { LEAKS = 10, BLOCK_PAGES = 4, OUTER_OFFSET = 0, INNER_OFFSET = 64 };
#ifdef __aarch64__
enum { FUNCTION_BYTES = 33 };
#else
enum { FUNCTION_BYTES = 22 };
#endif

struct code {
	char *writable, *executable;
};

VISIBLE void native_allocate(void)
{
	stage_need(mmap(NULL, BLOCK_PAGES * stage_page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

static void emit_caller(const struct code *code, size_t offset, uint64_t callee)
{
#ifdef __aarch64__
	/* stp x29, x30, [sp, #-16]!; mov x29, sp; ldr x16, callee; blr x16; ldp x29, x30, [sp], #16; ret; callee: */
	static const uint32_t head[] = {0xa9bf7bfd, 0x910003fd, 0x58000090, 0xd63f0200, 0xa8c17bfd, 0xd65f03c0};
	static const uint8_t tail[] = "";
#else
	/* push rbp; mov rbp, rsp; sub rsp, 16; mov rax, callee; call rax; leave; ret */
	static const uint8_t head[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x48, 0xb8};
	static const uint8_t tail[] = {0xff, 0xd0, 0xc9, 0xc3};
#endif
	char *place = code->writable + offset, *executable = code->executable + offset;

	_Static_assert(sizeof(head) + sizeof(callee) + sizeof(tail) == FUNCTION_BYTES, "size of a function");
	memcpy(place, head, sizeof(head));
	memcpy(place + sizeof(head), &callee, sizeof(callee));
	memcpy(place + sizeof(head) + sizeof(callee), tail, sizeof(tail));
	__builtin___clear_cache(executable, executable + FUNCTION_BYTES);
}

static struct code map_anonymous(size_t page)
{
	char *both = mmap(NULL, page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stage_need(both, "mmap");
	return (struct code){both, both};
}

static struct code map_doubly(size_t page)
{
	int fd = stage_need_call(memfd_create("doublemapper", 0), "memfd_create");
	struct code code;

	stage_need_call(ftruncate(fd, (off_t)page), "ftruncate");
	code.executable = stage_need(mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0), "mmap");
	code.writable = stage_need(mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), "mmap");
	close(fd);
	return code;
}

static void generate(const struct code *code, const char *name, FILE *map)
{
	emit_caller(code, INNER_OFFSET, (uint64_t)(uintptr_t)native_allocate);
	emit_caller(code, OUTER_OFFSET, (uint64_t)(uintptr_t)(code->executable + INNER_OFFSET));
	fprintf(map, "%zx %x %sOuter\n", (size_t)code->executable + OUTER_OFFSET, FUNCTION_BYTES, name);
	fprintf(map, "%zx %x %sInner\n", (size_t)code->executable + INNER_OFFSET, FUNCTION_BYTES, name);
}

static inline __attribute__((always_inline)) void run(const struct code *code)
{
	for (int i = 0; i < LEAKS; i++)
		((void (*)(void))(uintptr_t)code->executable)();
}

static void replace_code(const struct code *code, const char *path, size_t milliseconds)
{
	FILE *map = stage_need(fopen(path, "a"), path);

	usleep((useconds_t)(1000 * milliseconds));
	generate(code, "Later", map);
	fclose(map);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t page = stage_page_bytes(), bytes = LEAKS * BLOCK_PAGES * page;
	struct code anonymous = map_anonymous(page), doubly = map_doubly(page);
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = stage_need(fopen(path, "w"), path);
	generate(&anonymous, "Anonymous", map);
	generate(&doubly, "Doubly", map);
	fclose(map);
	stage_begin(&stage);
	run(&anonymous);
	run(&doubly);
	if (stage_number(&stage, 0, 0)) {
		replace_code(&anonymous, path, stage_number(&stage, 0, 0));
		run(&anonymous);
		stage_expect("bytes=%zu count=%d stack=mmap<native_allocate<LaterInner<LaterOuter<main", bytes, LEAKS);
	}
	stage_expect("bytes=%zu count=%d stack=mmap<native_allocate<AnonymousInner<AnonymousOuter<main", bytes, LEAKS);
	stage_expect("bytes=%zu count=%d stack=mmap<native_allocate<DoublyInner<DoublyOuter<main", bytes, LEAKS);
	stage_expect("total=%zu", (stage_number(&stage, 0, 0) ? 3 : 2) * bytes);
	stage_end(&stage);
	if (!stage.exit_by_itself)
		unlink(path);
	return 0;
}
