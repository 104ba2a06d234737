// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Any bytes are an ELF file: open it, then look up rows, names, lines, calls and code at the addresses of its segments
 * and at their ends.
 */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/limits.h"
#include "code/elf/module.h"
#include "code/names/symbols.h"

#define ADDRESSES 24 /* looked up by file offset */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The names are read here, not in a helper process, so that sanitizers see it. */
static void look_up(struct module *module, struct symbols *symbols, uint64_t address)
{
	struct module_frame frames[LIMIT_INLINED_FRAMES];
	size_t count = symbols_find(symbols, address, frames);
	uint64_t start, end;

	if (!count || count > LIMIT_INLINED_FRAMES)
		abort();
	for (size_t i = 0; i < count; i++) {
		/* Every string must be readable to its end. */
		if ((frames[i].function && strlen(frames[i].function) > SIZE_MAX / 2) ||
		    (frames[i].source_file && strlen(frames[i].source_file) > SIZE_MAX / 2))
			abort();
	}
	(void)symbols_function_range(symbols, address, &start, &end);
	(void)module_cfi(module, address);
	(void)module_place(module, address, false);
	(void)module_place(module, address, true);
	(void)module_follows_call(module, address);
}

static void look_around(struct module *module, struct symbols *symbols, size_t size)
{
	uint64_t address;

	for (size_t i = 0; i < ADDRESSES; i++) {
		if (module_address(module, size * i / ADDRESSES, &address))
			look_up(module, symbols, address);
	}
	look_up(module, symbols, 0);
	look_up(module, symbols, UINT64_MAX);
	look_up(module, symbols, 0x401000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("program", MFD_CLOEXEC);
	struct modules *modules = NULL;
	struct module *module = NULL;
	struct symbols *symbols = NULL;
	struct mmt_error *error;
	char path[64];

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	error = modules_create(EM_X86_64, true, &modules);
	if (!error)
		error = modules_open(modules, path, NULL, 0, 0, &module);
	if (!error)
		symbols = symbols_create(&(struct symbols_source){.path = path, .fd = fd, .demangle = true});
	if (symbols)
		look_around(module, symbols, size);
	mmt_error_destroy(error);
	symbols_destroy(symbols);
	modules_destroy(modules);
	close(fd);
	return 0;
}
