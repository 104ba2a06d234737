// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/names/demangle.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
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

struct demangled_text {
	VECTOR(char) characters;
	jmp_buf too_long;
	char without_packs[LIMIT_MANGLED_BYTES];
};

/*
 * The library has no way to stop it, so the callback uses longjmp(). The library holds no memory while it calls back,
 * except for a Rust identifier in Punycode, which it writes in one piece. Such an identifier is never pure ASCII: then
 * wait for the next piece.
 */
static bool may_leave(const char *piece, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if ((unsigned char)piece[i] >= 0x80)
			return false;
	}
	return true;
}

static void write_piece(const char *piece, size_t length, void *context)
{
	struct demangled_text *text = context;

	for (size_t i = 0; i < length && text->characters.count < LIMIT_DEMANGLED_BYTES; i++) {
		if (!vector_push(&text->characters, piece[i]))
			longjmp(text->too_long, 1);
	}
	if (text->characters.count == LIMIT_DEMANGLED_BYTES && may_leave(piece, length))
		longjmp(text->too_long, 1);
}

/* Count components such as "T_I" or "S1_": the letter, an optional number in base 36, the end. */
static unsigned count_places(const char *name, char letter, const char *end)
{
	unsigned count = 0;

	for (const char *place = name; (place = strchr(place, letter)); place++) {
		size_t number = 1 + strspn(place + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");

		count += !strncmp(place + number, end, strlen(end));
	}
	return count;
}

/* In the target type of a conversion operator, the library parses possible template arguments twice to see what
 * follows. Nested ones double the time on each level, without producing text. */
static bool is_read_again_and_again(const char *name)
{
	return strstr(name, "cv") && count_places(name, 'T', "_I") > LIMIT_DEMANGLER_REREADS;
}

static void replace(char *name, const char *old, const char *new)
{
	for (char *place = name; (place = strstr(place, old)); place += strlen(new))
		memcpy(place, new, strlen(new));
}

/* Replace packs by references or signs, which the library writes without a search. */
static bool can_be_written_without_packs(const char *name, struct demangled_text *text)
{
	memcpy(text->without_packs, name, strlen(name) + 1); /* shorter than LIMIT_MANGLED_BYTES */
	replace(text->without_packs, "Dp", "RR");
	replace(text->without_packs, "sp", "ng");
	return cplus_demangle_v3_callback(text->without_packs, DMGL_PARAMS | DMGL_ANSI, write_piece, text);
}

/*
 * Before the library writes a pack expansion, it searches the whole pattern for the pack, and visits a component as
 * often as the pattern refers to it, which is exponential in nested references. If the pattern itself can be written,
 * the search is bounded too; otherwise reject names with many references. Does not return if the text is too long.
 */
static bool is_searched_without_end(const char *name, struct demangled_text *text)
{
	bool written;

	if (!strstr(name, "Dp") && !strstr(name, "sp"))
		return false;
	written = can_be_written_without_packs(name, text);
	text->characters.count = 0;
	return !written && count_places(name, 'S', "_") > LIMIT_DEMANGLER_SEARCHES;
}

static bool write_text(const char *name, struct demangled_text *text)
{
	if (setjmp(text->too_long))
		return false;
	if (rust_demangle_callback(name, DMGL_PARAMS | DMGL_ANSI, write_piece, text))
		return true;
	text->characters.count = 0;
	if (is_read_again_and_again(name) || is_searched_without_end(name, text))
		return false;
	return cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI, write_piece, text);
}

/* The library expands references to earlier parts again and again: the text at most doubles with each second one. It
 * recurses for each modifier of a type. */
static char *demangle_d(const char *name)
{
	size_t references = 0;

	if (strnlen(name, LIMIT_D_NAME_BYTES) == LIMIT_D_NAME_BYTES)
		return NULL;
	for (const char *place = name; (place = strchr(place, 'Q')); place++)
		references++;
	return references > LIMIT_D_REFERENCES ? NULL : dlang_demangle(name, DMGL_PARAMS | DMGL_ANSI);
}

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
	struct demangled_text *text;
	char *result = NULL;

	if (starts_with(name, "_D"))
		return demangle_d(name);
	if (strnlen(name, LIMIT_MANGLED_BYTES) == LIMIT_MANGLED_BYTES)
		return NULL;
	text = calloc(1, sizeof(*text)); /* longjmp() does not change it */
	if (text && write_text(name, text) && vector_push(&text->characters, '\0')) {
		result = text->characters.items;
		text->characters.items = NULL;
	}
	if (text)
		vector_deinit(&text->characters);
	free(text);
	return result || !ada ? result : demangle_ada(name);
}
