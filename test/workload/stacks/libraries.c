/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks mapped by a library that is loaded and unloaded while the program runs, called through its PLT and through
 * pointers, and calling back: libraries [--exit] LIBRARY [ROUNDS]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/stage.h"

enum { BLOCK = 4096 };

typedef int (*leak_function)(size_t bytes);
typedef int (*call_function)(int (*callback)(int), int number);

static leak_function leak;

static void *need_symbol(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return symbol;
}

VISIBLE int called_back(int number)
{
	int status = leak(BLOCK);

	KEEP_FRAME();
	return status + number;
}

VISIBLE void by_pointer(void)
{
	stage_need_call(leak(BLOCK), "native_leak");
	KEEP_FRAME();
}

VISIBLE void by_callback(call_function call)
{
	stage_need_call(call(called_back, 0), "native_call");
	KEEP_FRAME();
}

VISIBLE void one_round(const char *path)
{
	void *library = dlopen(path, RTLD_LAZY);
	int (*by_table)(void *, void *, long);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	leak = (leak_function)need_symbol(library, "native_leak");
	by_table = (int (*)(void *, void *, long))need_symbol(library, "Java_Program_leak");
	by_pointer();
	by_callback((call_function)need_symbol(library, "native_call"));
	stage_need_call(by_table(NULL, NULL, BLOCK), "Java_Program_leak");
	dlclose(library);
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t rounds = stage_number(&stage, 1, 1);

	if (stage.operand_count < 1)
		return 1;
	stage_begin(&stage);
	for (size_t i = 0; i < rounds; i++)
		one_round(stage.operands[0]);
	stage_end(&stage);
	return 0;
}
