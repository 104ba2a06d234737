// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/format/syscalls.h"

#include <string.h>
#include <sys/mman.h>

static const struct call_description descriptions[CALL_KINDS] = {
    [CALL_MMAP] = {.name = "mmap", .creates = true, .arguments = 6},
    [CALL_MUNMAP] = {.name = "munmap", .arguments = 2},
    [CALL_MREMAP] = {.name = "mremap", .creates = true, .arguments = 5},
    [CALL_BRK] = {.name = "brk", .creates = true, .arguments = 1},
    [CALL_MPROTECT] = {.name = "mprotect", .creates = true, .arguments = 3},
    [CALL_PKEY_MPROTECT] = {.name = "pkey_mprotect", .creates = true, .arguments = 4, .rare = true},
    [CALL_SHMAT] = {.name = "shmat", .creates = true, .arguments = 3, .rare = true},
    [CALL_SHMDT] = {.name = "shmdt", .arguments = 1, .rare = true},
    [CALL_REMAP_FILE_PAGES] = {.name = "remap_file_pages", .creates = true, .arguments = 5, .rare = true},
    [CALL_IO_SETUP] = {.name = "io_setup", .creates = true, .arguments = 2, .rare = true},
    [CALL_IO_DESTROY] = {.name = "io_destroy", .arguments = 1, .rare = true},
    [CALL_MSEAL] = {.name = "mseal", .arguments = 3, .rare = true},
    [CALL_MADVISE] = {.name = "madvise", .arguments = 3, .rare = true, .at_entry = true},
};

const struct call_description *call_describe(enum call call)
{
	return &descriptions[call];
}

unsigned call_arguments_used(enum call call, const uint64_t arguments[6])
{
	unsigned used = (1u << descriptions[call].arguments) - 1;

	if (call == CALL_MREMAP && !(arguments[3] & (MREMAP_FIXED | MREMAP_DONTUNMAP)))
		used &= ~(1u << 4);
	return used;
}

bool call_find(const char *tracepoint, enum call *call_ret, bool *enter_ret)
{
	static const char exit_prefix[] = "sys_exit_", enter_prefix[] = "sys_enter_";
	const char *name;
	bool enter;

	if (strncmp(tracepoint, exit_prefix, sizeof(exit_prefix) - 1) == 0) {
		name = tracepoint + sizeof(exit_prefix) - 1;
		enter = false;
	} else if (strncmp(tracepoint, enter_prefix, sizeof(enter_prefix) - 1) == 0) {
		name = tracepoint + sizeof(enter_prefix) - 1;
		enter = true;
	} else {
		return false;
	}
	for (size_t i = 0; i < CALL_KINDS; i++) {
		if (strcmp(name, descriptions[i].name) != 0)
			continue;
		*call_ret = (enum call)i;
		*enter_ret = enter;
		return true;
	}
	return false;
}
