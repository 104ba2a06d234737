/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Modules: unwind rows, names, lines and instructions by file address. One `struct modules` caches all files of a
 * report. A file is used only if it has the recorded build-id (or if none was recorded). The first name that is looked
 * up forks a helper process (names-helper.h). */
#pragma once

#include "code/unwind/unwind.h"

struct modules;
struct module;

struct mmt_error *modules_create(uint16_t elf_machine, bool demangle, struct modules **modules_ret) MMT_MUST_CHECK;
/* Set the end of the recording, since the epoch (0, the initial value: unknown), and the release of the recorded
 * kernel, to find its vdso ("", the initial value: unknown). */
void modules_recorded(struct modules *modules, uint64_t until_ns, const char *kernel);
void modules_destroy(struct modules *modules);

/* See names_helper_failure(). */
int modules_names_failure(const struct modules *modules);

/* The name of a C++ type, demangled if possible. Lives as long as the modules, or as `name`. */
const char *modules_type_name(const struct modules *modules, const char *name);

/* Packed recordings contain these numbers. */
enum module_state {
	MODULE_READABLE = 0,
	MODULE_NOT_ELF = 1,	/* not an ELF file: a .dll, a memfd, a device */
	MODULE_MISSING = 2,	/* cannot be opened */
	MODULE_OTHER_BUILD = 3, /* build-id differs from the recorded one */
	MODULE_BROKEN = 4,	/* ELF, but unreadable */
	MODULE_CHANGED =
	    5, /* no build-id was recorded, and the file is newer than the recording or has another inode */
	/* Readable, but with incomplete debug information: only from module_known_state(). */
	MODULE_POOR_NAMES = 6,	  /* the debug information is damaged */
	MODULE_LIMITED_NAMES = 7, /* the debug information exceeds a limit */
	MODULE_MISSING_NAMES = 8, /* a file with a part of the debug information is missing */
	MODULE_UNREAD_NAMES = 9,  /* the process that reads names was killed, or could not be started */
	MODULE_SLOW_NAMES = 10,	  /* reading the debug information takes too long */
	MODULE_SILENT = 11,	  /* the file system does not answer: not opened */
};

/* Open the module at `path` with this build-id (size 0: any) or, without one, with this inode (0: unknown). "[vdso]" is
 * taken from this process if its build-id matches, or without a build-id the kernel release. Opens each path and
 * build-id once. `modules` owns the result. */
struct mmt_error *modules_open(struct modules *modules, const char *path, const uint8_t *build_id, size_t build_id_size,
			       uint64_t inode, struct module **module_ret) MMT_MUST_CHECK;

/* Open such a module although it may be open, from `content`, a copy of its file that `modules` owns from now on, even
 * after an error; NULL: from the file. */
struct mmt_error *modules_open_content(struct modules *modules, const char *path, void *content, size_t size,
				       const uint8_t *build_id, size_t build_id_size, uint64_t inode,
				       struct module **module_ret) MMT_MUST_CHECK;

enum module_state module_state(const struct module *module);
/* The same, including problems that module_names() has found so far. */
enum module_state module_known_state(const struct module *module);
/* With MODULE_MISSING_NAMES: the first missing file as "PATH (id HEX)", and how many others. The caller frees it. NULL:
 * unknown. */
char *module_missing_part(struct module *module);

/* NULL: the Go linker did not make it, or out of memory. */
const struct go_functions *module_go(struct module *module);

/* Whether the ELF file contains the runtime of .NET. */
bool module_contains_coreclr(struct module *module);

/* ELF virtual address of a byte of the file, through the LOAD segments; false: in none. */
bool module_address(const struct module *module, uint64_t file_offset, uint64_t *address_ret);

/* The row that covers `address` (ELF virtual); NULL: none. Valid as long as the module. */
const struct cfi_row *module_cfi(struct module *module, uint64_t address);

/* The row that covers `address`, or the instruction before a return address, and the kind of code there. Cached. */
struct code_place module_place(struct module *module, uint64_t address, bool is_return_address);

/* The row of the function with this name after its prologue; NULL: none. Valid as long as the module. */
const struct cfi_row *module_frame_row(struct module *module, const char *function);

/* Classify code by its name or as the module's entry point. Loads the symbols. */
enum code_special_function module_special_function(struct module *module, uint64_t address, bool is_return_address);

struct disassembly *modules_disassembly(struct modules *modules);

/* 1: the instruction that ends at `address` is a call; 0: it is not; -1: unknown. */
int module_follows_call(struct module *module, uint64_t address);

#define VTABLE_PREFIX "_ZTV" /* of symbols in data; the mangled name of the C++ type follows */

struct module_frame {
	const char *function; /* demangled; NULL: no symbol. Borrowed from the module */
	const char *raw_function;
	const char *source_file; /* NULL: unknown */
	uint32_t source_line;
	bool inlined; /* inlined into the next frame */
};

/* Names of the code at `address` (ELF virtual), innermost inlined function first; at least one frame. `for_lookup` is
 * the address itself for an instruction pointer, one less for a return address: the caller does the subtraction. */
size_t module_names(struct module *module, uint64_t for_lookup, struct module_frame frames_ret[LIMIT_INLINED_FRAMES]);

struct module_query {
	struct module *module;
	uint64_t address; /* for lookup */
};

#define MODULE_FETCH_MAX 256

/* Fetch names that module_names() will soon be asked for, at most MODULE_FETCH_MAX, in one step. */
void modules_fetch_names(struct modules *modules, const struct module_query *queries, size_t count);
