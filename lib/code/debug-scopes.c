// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/debug-scopes.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vector.h"

/* Limits far beyond the output of any compiler, against hostile files. */
#define NESTING_MAX 64
#define SCOPES_MAX (1u << 20) /* in one unit */
#define REFERENCES_MAX 8      /* to follow from an entry to its declaration */
#define NAME_MAX_BYTES 2048
#define UNNAMED_MAX_BYTES 48

#define NO_SCOPE UINT32_MAX

/* A DWARF entry that contains others. */
struct scope {
	Dwarf_Off start, end; /* offsets of the entries inside; `end` may exceed the parent's */
	uint32_t parent;      /* index; NO_SCOPE: the unit */
};

struct unit_scopes {
	Dwarf_Off last;		    /* offset of the last entry visited: offsets must increase */
	VECTOR(struct scope) items; /* ascending by start */
};

struct debug_scopes {
	struct map by_unit; /* Dwarf_CU -> struct unit_scopes */
	struct map names;   /* entry of a declaration -> text; 0: none */
	struct arena arena;
	uint64_t bytes_read;
};

struct debug_scopes *debug_scopes_create(void)
{
	return calloc(1, sizeof(struct debug_scopes));
}

void debug_scopes_destroy(struct debug_scopes *scopes)
{
	uint64_t key, value;

	if (!scopes)
		return;
	for (size_t i = 0; map_next(&scopes->by_unit, &i, &key, &value);) {
		struct unit_scopes *unit = (struct unit_scopes *)(uintptr_t)value;

		vector_deinit(&unit->items);
		free(unit);
	}
	map_deinit(&scopes->by_unit);
	map_deinit(&scopes->names);
	arena_deinit(&scopes->arena);
	free(scopes);
}

uint64_t debug_scopes_bytes_read(const struct debug_scopes *scopes)
{
	return scopes->bytes_read;
}

/* ---- nesting of entries ---- */

static bool is_scope(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return true;
	default:
		return false;
	}
}

/* False: out of memory, or the file is damaged. */
static bool add_scopes(struct unit_scopes *unit, Dwarf_Die *parent, uint32_t parent_index, int level)
{
	uint32_t before = NO_SCOPE; /* the scope that ends at the next entry */
	Dwarf_Die die;
	int missing = dwarf_child(parent, &die);

	for (; !missing; missing = dwarf_siblingof(&die, &die)) {
		Dwarf_Off offset = dwarf_dieoffset(&die);

		/* Only an invalid reference leads back. */
		if (offset <= unit->last)
			return false;
		unit->last = offset;
		if (before != NO_SCOPE)
			unit->items.items[before].end = offset;
		before = NO_SCOPE;
		if (!is_scope(dwarf_tag(&die)) || !dwarf_haschildren(&die))
			continue;
		if (level == NESTING_MAX || unit->items.count == SCOPES_MAX)
			return false;
		before = (uint32_t)unit->items.count;
		if (!vector_push(&unit->items,
				 ((struct scope){.start = offset, .end = UINT64_MAX, .parent = parent_index})) ||
		    !add_scopes(unit, &die, before, level + 1))
			return false;
	}
	return missing > 0;
}

/* NULL: out of memory. */
static const struct unit_scopes *find_unit(struct debug_scopes *scopes, Dwarf_Die *die)
{
	uint64_t key = (uint64_t)(uintptr_t)die->cu;
	const uint64_t *known = map_get(&scopes->by_unit, key);
	struct unit_scopes *unit;
	Dwarf_Die root;

	if (known)
		return (const struct unit_scopes *)(uintptr_t)*known;
	unit = calloc(1, sizeof(*unit));
	if (!unit || !map_put(&scopes->by_unit, key, (uint64_t)(uintptr_t)unit)) {
		free(unit);
		return NULL;
	}
	/* Type units may be in a separate section, with its own offsets. */
	if (!dwarf_cu_die(die->cu, &root, NULL, NULL, NULL, NULL, NULL, NULL) || dwarf_tag(&root) == DW_TAG_type_unit)
		return unit;
	unit->last = dwarf_dieoffset(&root);
	if (!add_scopes(unit, &root, NO_SCOPE, 0))
		unit->items.count = 0;
	if (unit->last > dwarf_dieoffset(&root))
		scopes->bytes_read += unit->last - dwarf_dieoffset(&root);
	return unit;
}

/* The innermost scope that contains the entry at `offset`. */
static uint32_t find_scope(const struct unit_scopes *unit, Dwarf_Off offset)
{
	size_t low = 0, high = unit->items.count;
	uint32_t found, scope;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (unit->items.items[middle].start < offset)
			low = middle + 1;
		else
			high = middle;
	}
	found = low ? (uint32_t)low - 1 : NO_SCOPE;
	/* The last scope that begins before the entry contains it, or is inside the scope that does. */
	for (scope = found; scope != NO_SCOPE; scope = unit->items.items[scope].parent) {
		if (offset >= unit->items.items[scope].end)
			found = unit->items.items[scope].parent;
	}
	return found;
}

/* ---- texts ---- */

/* Built from end to start, because scopes are found from the inside out. */
struct text {
	char bytes[NAME_MAX_BYTES];
	size_t start;
};

/* False: no room. */
static bool prepend(struct text *text, const char *piece)
{
	size_t length = strnlen(piece, NAME_MAX_BYTES);

	if (length >= text->start)
		return false;
	text->start -= length;
	memcpy(text->bytes + text->start, piece, length);
	return true;
}

static bool is_cplusplus(Dwarf_Die *die)
{
	Dwarf_Die root;

	if (!dwarf_cu_die(die->cu, &root, NULL, NULL, NULL, NULL, NULL, NULL))
		return false;
	switch (dwarf_srclang(&root)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case 0x002b: /* C++17 */
	case 0x002c: /* C++20 */
	case 0x003a: /* C++23 */
		return true;
	default:
		return false;
	}
}

/* A definition refers to its declaration, an inlined instance to its abstract origin. */
static void go_to_declaration(Dwarf_Die *die)
{
	static const unsigned references[] = {DW_AT_abstract_origin, DW_AT_specification};
	Dwarf_Attribute attribute;

	for (int i = 0; i < REFERENCES_MAX; i++) {
		Dwarf_Die next;
		bool moved = false;

		for (size_t j = 0; j < sizeof(references) / sizeof(*references) && !moved; j++)
			moved = dwarf_attr(die, references[j], &attribute) && dwarf_formref_die(&attribute, &next);
		if (!moved)
			return;
		*die = next;
	}
}

/* A type without a name: the line distinguishes lambdas. */
static const char *unnamed_type(Dwarf_Die *die, const struct text *inside, char room[UNNAMED_MAX_BYTES])
{
	static const char call[] = "::operator()";
	const char *kind = strncmp(inside->bytes + inside->start, call, strlen(call)) ? "unnamed type" : "lambda";
	int line;

	if (!dwarf_decl_line(die, &line) && line > 0)
		(void)snprintf(room, UNNAMED_MAX_BYTES, "{%s at line %d}", kind, line);
	else
		(void)snprintf(room, UNNAMED_MAX_BYTES, "{%s}", kind);
	return room;
}

/* Prepends the scope to `text`; false: no room. */
static bool prepend_scope(struct text *text, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);
	char room[UNNAMED_MAX_BYTES];

	if (dwarf_tag(die) == DW_TAG_lexical_block)
		return true;
	if (!prepend(text, "::"))
		return false;
	if (!name)
		name = dwarf_tag(die) == DW_TAG_namespace ? "(anonymous namespace)" : unnamed_type(die, text, room);
	return prepend(text, name);
}

/* Prepends all scopes that contain a declaration. A local class is inside a function, which may be declared elsewhere.
 */
static bool prepend_scopes(struct debug_scopes *scopes, Dwarf_Die *declaration, struct text *text)
{
	Dwarf_Die die = *declaration;
	const struct unit_scopes *unit = find_unit(scopes, &die);
	uint32_t scope = unit ? find_scope(unit, dwarf_dieoffset(&die)) : NO_SCOPE;

	for (int level = 0; level < NESTING_MAX && scope != NO_SCOPE; level++) {
		if (!dwarf_offdie(dwarf_cu_getdwarf(die.cu), unit->items.items[scope].start, &die))
			return false;
		if (dwarf_tag(&die) == DW_TAG_subprogram)
			go_to_declaration(&die);
		if (!prepend_scope(text, &die))
			return false;
		scope = unit->items.items[scope].parent;
		if (dwarf_tag(&die) != DW_TAG_subprogram)
			continue;
		unit = find_unit(scopes, &die);
		scope = unit ? find_scope(unit, dwarf_dieoffset(&die)) : NO_SCOPE;
	}
	return true;
}

static const char *make_name(struct debug_scopes *scopes, Dwarf_Die *declaration)
{
	const char *name = dwarf_diename(declaration);
	struct text text = {.start = NAME_MAX_BYTES - 1};
	size_t own;

	if (!name || !is_cplusplus(declaration) || !prepend(&text, name))
		return NULL;
	own = text.start;
	if (!prepend_scopes(scopes, declaration, &text) || text.start == own)
		return NULL;
	return arena_string(&scopes->arena, text.bytes + text.start);
}

const char *debug_scopes_name(struct debug_scopes *scopes, Dwarf_Die *function)
{
	Dwarf_Die die = *function;
	const uint64_t *known;
	const char *name;
	uint64_t key;

	go_to_declaration(&die);
	key = (uint64_t)(uintptr_t)die.addr;
	known = map_get(&scopes->names, key);
	if (known)
		return (const char *)(uintptr_t)*known;
	name = make_name(scopes, &die);
	(void)map_put(&scopes->names, key, (uint64_t)(uintptr_t)name);
	return name;
}
