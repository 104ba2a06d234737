/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs in one process, one after the other, each with generated x86-64 code at the same address:
 *     jit-exec NAME...
 * Each has a perf map with its name for the code; one that is called "-" writes none and finds that of the one before.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

#define CODE_ADDRESS 0x200000000
#define SEEN_MICROSECONDS 300000 /* the recorder looks at the process and its map every 50 ms */

enum { LEAKS = 10, BLOCK_PAGES = 4 };

VISIBLE void native_allocate(void)
{
	stage_need(mmap(NULL, BLOCK_PAGES * stage_page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

/* push rbp; mov rbp, rsp; mov rax, native_allocate; call rax; pop rbp; ret */
static char *generate(void)
{
	static const uint8_t head[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8}, tail[] = {0xff, 0xd0, 0x5d, 0xc3};
	uint64_t callee = (uint64_t)(uintptr_t)native_allocate;
	char *code = mmap((void *)CODE_ADDRESS, stage_page_bytes(), PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	stage_need(code, "mmap");
	memcpy(code, head, sizeof(head));
	memcpy(code + sizeof(head), &callee, sizeof(callee));
	memcpy(code + sizeof(head) + sizeof(callee), tail, sizeof(tail));
	return code;
}

static void write_map(const char *code, const char *name)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = stage_need(fopen(path, "w"), path);
	fprintf(map, "%zx 1000 %s\n", (size_t)code, name);
	fclose(map);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	char *code;

	if (!getenv("JIT_EXEC"))
		stage_begin(&stage);
	setenv("JIT_EXEC", "1", 1);
	usleep(SEEN_MICROSECONDS);
	code = generate();
	if (strcmp(argv[1], "-"))
		write_map(code, argv[1]);
	for (int i = 0; i < LEAKS; i++)
		((void (*)(void))(uintptr_t)code)();
	usleep(SEEN_MICROSECONDS);
	if (argc > 2) {
		argv[1] = argv[0];
		execv("/proc/self/exe", argv + 1);
	}
	stage_end(&stage);
	return 0;
}
