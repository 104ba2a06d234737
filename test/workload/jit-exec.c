/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs in one process, one after the other, each with x86-64 JIT code at the same address: jit-exec NAME... Each
 * writes a perf map with its name for the code; a program named "-" writes none and finds the map of the one before. A
 * program whose name starts with "+" writes a jitdump in the working directory instead, into the same file as the one
 * before.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "support/stage.h"

#define CODE_ADDRESS 0x200000000

enum { LEAKS = 10, BLOCK_PAGES = 4, CODE_BYTES = 18 };

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
	_Static_assert(sizeof(head) + sizeof(callee) + sizeof(tail) == CODE_BYTES, "size of the code");
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

static void put(FILE *dump, const void *data, size_t size)
{
	stage_need(fwrite(data, size, 1, dump) ? dump : NULL, "fwrite");
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A header, whose mapping makes it known to the recorder, and one LOAD. */
static void write_dump(const char *code, const char *name)
{
	const uint32_t pid = (uint32_t)getpid(), header[] = {0x4a695444, 1, 40, 62, 0, pid};
	const uint32_t prefix[] = {0, (uint32_t)(16 + 40 + strlen(name) + 1 + CODE_BYTES)}, thread[] = {pid, pid};
	const uint64_t times[] = {now_ns(), 0}, place = (uint64_t)(uintptr_t)code;
	const uint64_t fields[] = {place, place, CODE_BYTES, 0};
	char path[64];
	FILE *dump;

	snprintf(path, sizeof(path), "jit-%d.dump", (int)pid);
	dump = stage_need(fopen(path, "w+"), path);
	put(dump, header, sizeof(header));
	put(dump, times, sizeof(times));
	put(dump, prefix, sizeof(prefix));
	put(dump, times, sizeof(*times));
	put(dump, thread, sizeof(thread));
	put(dump, fields, sizeof(fields));
	put(dump, name, strlen(name) + 1);
	put(dump, code, CODE_BYTES);
	fflush(dump);
	stage_need(mmap(NULL, stage_page_bytes(), PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0), "mmap");
	fclose(dump);
}

/* Until the recorder has seen everything so far. `left`: programs. */
static void pause_at(const struct stage *stage, const char *what, int left)
{
	char word[64];

	snprintf(word, sizeof(word), "%s-%d", what, left);
	stage_pause(stage, word);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	char *code;

	if (!getenv("JIT_EXEC"))
		stage_begin(&stage);
	setenv("JIT_EXEC", "1", 1);
	pause_at(&stage, "begun", argc - 1);
	code = generate();
	if (argv[1][0] == '+')
		write_dump(code, argv[1] + 1);
	else if (strcmp(argv[1], "-"))
		write_map(code, argv[1]);
	for (int i = 0; i < LEAKS; i++)
		((void (*)(void))(uintptr_t)code)();
	pause_at(&stage, "written", argc - 1);
	if (argc > 2) {
		argv[1] = argv[0];
		execv("/proc/self/exe", argv + 1);
	}
	stage_end(&stage);
	return 0;
}
