/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names from a helper process. libdw and libiberty read files of strangers: a crash, an endless loop or a bomb in one
 * of them must cost only the names of that file. The helper is forked from this process on first use, has limits of
 * memory and time, and answers requests through a socket. If it ends, a new one reads only the symbols of the file's
 * own, and after the next end no names of that file. Its answers are untrusted bytes. */
#pragma once

#include "code/names/symbols.h"

struct special_function {
	const char *name;
	uint64_t start, end;
};

/* What this process knows of the names of one module. Initially all zero but the number. */
struct remote_names {
	uint32_t number;	 /* of the module, from 1 */
	uint32_t helper;	 /* number of the helper that has opened it; 0: none */
	enum symbols_use use;	 /* what is still read */
	enum module_state state; /* MODULE_READABLE: no problem so far */
	bool special_listed;
	VECTOR(struct special_function) special; /* the owner deinitialises it */
};

/* `describe` writes what `open` needs in the helper to open a module; NULL: it has no names. */
struct names_calls {
	void (*describe)(const struct remote_names *names, struct buffer *description);
	struct symbols *(*open)(void *context, struct bytes *description, enum symbols_use use);
	void *context;
};

/* NULL: out of memory. */
struct names_helper *names_helper_create(const struct names_calls *calls);
/* Accepts NULL. */
void names_helper_destroy(struct names_helper *helper);

/* Not 0: names may be missing. errno: a helper could not be started; -1: one ended before it was told to. */
int names_helper_failure(const struct names_helper *helper);

/* See module_names(). Strings live as long as the helper. */
size_t remote_names_find(struct names_helper *helper, struct remote_names *names, uint64_t address,
			 struct module_frame frames_ret[LIMIT_INLINED_FRAMES]);

struct names_query {
	struct remote_names *names;
	uint64_t address;
};

/* Fetch names that remote_names_find() will soon be asked for, and forget those fetched before. The limits of time
 * begin again with each query of another module than the query before. */
void remote_names_fetch(struct names_helper *helper, const struct names_query *queries, size_t count);

/* The function that contains the address, if stack_end_by_name() knows its name; NULL: it does not. */
const struct special_function *remote_names_special(struct names_helper *helper, struct remote_names *names,
						    uint64_t address);

/* See symbols_named_range() or, with `name` NULL, symbols_function_range(). */
bool remote_names_range(struct names_helper *helper, struct remote_names *names, const char *name, uint64_t address,
			uint64_t *start_ret, uint64_t *end_ret);

/* See demangle_type(). NULL, too, after a name that ended a helper. Lives as long as the helper. */
const char *names_helper_type(struct names_helper *helper, const char *name);

/* Opens and reads the file in the helper, which it costs if the file system does not answer: false. */
bool names_helper_file_answers(struct names_helper *helper, const char *path);

/* See symbols_missing_part(). */
char *remote_names_missing_part(struct names_helper *helper, struct remote_names *names);
