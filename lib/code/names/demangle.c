// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/names/demangle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"

/* libiberty.h requires this; <string.h> declares basename(). */
#define HAVE_DECL_BASENAME 1
#include <demangle.h>

struct key {
	const char *first, *second; /* NULL for a demangled name */
};

void synthesized_names_deinit(struct synthesized_names *names)
{
	intern_deinit(&names->keys);
	vector_deinit(&names->texts);
	arena_deinit(&names->arena);
}

/* NULL: not stored yet, or out of memory. */
static const char **find(struct synthesized_names *names, const char *first, const char *second, bool *made_ret)
{
	const struct key key = {first, second};
	uint32_t number = intern_put(&names->keys, &key, sizeof(key));

	if (number == INTERN_NONE)
		return NULL;
	*made_ret = number < names->texts.count;
	while (names->texts.count <= number) {
		if (!vector_append(&names->texts))
			return NULL;
	}
	return &names->texts.items[number];
}

const char *synthesized_names_demangle(struct synthesized_names *names, const char *name)
{
	bool made;
	const char **text = find(names, name, NULL, &made);

	if (text && !made) {
		CLEANUP(free) char *demangled = demangle(name, names->ada);

		*text = demangled ? arena_string(&names->arena, demangled) : NULL;
	}
	return text ? *text : NULL;
}

const char *synthesized_names_path(struct synthesized_names *names, const char *directory, const char *file)
{
	bool made;
	const char **text = find(names, directory, file, &made);

	if (text && !made) {
		size_t size = strlen(directory) + 1 + strlen(file) + 1;
		char *path = arena_alloc(&names->arena, size, 1);

		if (path)
			(void)snprintf(path, size, "%s/%s", directory, file);
		*text = path;
	}
	return text ? *text : NULL;
}

const char *synthesized_names_without_version(struct synthesized_names *names, const char *name, const char *end)
{
	bool made;
	const char **text = find(names, name, end, &made);

	if (text && !made) {
		size_t length = (size_t)(end - name);
		char *copy = arena_alloc(&names->arena, length + 1, 1);

		*text = copy ? memcpy(copy, name, length) : NULL;
	}
	return text ? *text : NULL;
}

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

/* The library puts brackets around what is not a name of Ada. */
static char *demangle_ada(const char *name)
{
	char *text = ada_demangle(name, 0);

	if (text && *text != '<')
		return text;
	free(text);
	return NULL;
}

char *demangle(const char *name, bool ada)
{
	char *text;

	if (starts_with(name, "_D"))
		return dlang_demangle(name, OPTIONS);
	text = rust_demangle(name, OPTIONS);
	if (!text)
		text = cplus_demangle_v3(name, OPTIONS);
	return text || !ada ? text : demangle_ada(name);
}

char *demangle_type(const char *name)
{
	/* The linker's name of a type that is not exported begins with this. */
	return cplus_demangle_v3(*name == '*' ? name + 1 : name, OPTIONS | DMGL_TYPES);
}
