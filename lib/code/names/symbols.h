/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names and lines of one ELF file: its own symbols and DWARF, or those of its separate debug file. */
#pragma once

#include "code/elf/go-functions.h"
#include "code/elf/module.h"

/* How much is read. */
enum symbols_use {
	SYMBOLS_ALL,
	SYMBOLS_OWN, /* only the file's own symbols: no debug information, no other files */
	SYMBOLS_NONE,
};

/* An ELF file, and what is known about it. All pointers must outlive the names. */
struct symbols_source {
	const char *path;
	int fd;	     /* needed only while symbols_create() runs */
	void *image; /* the file in memory; NULL: read `fd` */
	size_t size; /* of the image */
	bool demangle;
	enum symbols_use use;
	const struct go_functions *go; /* also use the names and lines of Go's table; NULL: there is none */
	/* Returns the end of a function whose symbol has no size, at most `end`: the start of the next symbol or the
	 * end of the section. NULL: such a symbol extends to `end`. */
	uint64_t (*measure)(void *context, uint64_t start, uint64_t end);
	void *context;
};

/* A file that libdwfl cannot read has no names. NULL: out of memory. */
struct symbols *symbols_create(const struct symbols_source *source);

void symbols_destroy(struct symbols *symbols);

/* See module_names(). Strings live until the next call. */
size_t symbols_find(struct symbols *symbols, uint64_t address, struct module_frame frames_ret[LIMIT_INLINED_FRAMES]);

/* The next function that stack_end_by_name() knows; start with *position 0. NULL: no more. */
const char *symbols_next_special(struct symbols *symbols, size_t *position, uint64_t *start_ret, uint64_t *end_ret);

/* Range of the function at `address`, from its symbol; false: none. */
bool symbols_function_range(struct symbols *symbols, uint64_t address, uint64_t *start_ret, uint64_t *end_ret);

/* The same for the function with this name in the symbol table. */
bool symbols_named_range(struct symbols *symbols, const char *name, uint64_t *start_ret, uint64_t *end_ret);

/* Why results of symbols_find() may be incomplete, see module_known_state(); MODULE_READABLE: they are complete. */
enum module_state symbols_debug_state(const struct symbols *symbols);

/* What is missing with MODULE_MISSING_NAMES: see dwarf_names_missing(). */
char *symbols_missing_part(const struct symbols *symbols);

const char *symbols_library_version(void);

/* Demangle a C++, Rust, D or, with `ada`, Ada name with libiberty; NULL if it is not mangled. The caller frees it. A
 * hostile name takes exponential time and memory. */
char *demangle(const char *name, bool ada);

/* Likewise, the name of a C++ type as std::type_info has it, such as "N3app7SessionE". */
char *demangle_type(const char *name);
