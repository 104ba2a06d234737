// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of functions and inlined functions from DWARF debug information. */
#include "code/names/dwarf-names.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <inttypes.h>

#include "base/map.h"

/* Maximum number of overlapping units, or functions, checked for an address, from the nearest start downwards. */
#define OVERLAPPING_RANGES 16

#define RANGE_BYTES_MIN 3 /* smallest encoding of a range in DWARF */

#define UNNAMED_MAX_BYTES 48

#define NO_SCOPE UINT32_MAX

struct code_range {
	uint64_t start, end;
	uint64_t value; /* index of a unit, or offset of a function's entry */
};

struct code_ranges {
	struct code_range *items; /* a VECTOR, sorted by start */
	size_t count, capacity;
};

/* A DWARF entry that contains others. */
struct debug_scope {
	Dwarf_Off start, end; /* offsets of the entries inside; `end` may exceed the parent's */
	uint32_t parent;      /* index; NO_SCOPE: the unit */
};

/* What is found by walking the entries of a unit. */
struct unit_entries {
	Dwarf_Off last;			   /* offset of the last entry visited: offsets must increase */
	bool broken;			   /* scopes are missing */
	VECTOR(struct debug_scope) scopes; /* ascending by start */
	struct code_ranges functions;
};

struct unit {
	Dwarf_Die lines;    /* contains the line table */
	Dwarf_Die scopes;   /* contains the functions; a different unit with split DWARF */
	bool parts_missing; /* the file with its functions is missing */
	bool met_missing;   /* a lookup needed that file */
};

struct dwarf_names {
	Dwarf *dwarf;
	VECTOR(struct unit) units;
	struct code_ranges ranges; /* of the units */
	struct map entries;	   /* Dwarf_CU -> struct unit_entries */
	uint64_t ranges_left;	   /* maximum number of ranges left that the file can describe */
	bool parts_missing;
	bool supplement_missing; /* such a file is missing: any entry may refer to it */
	bool met_missing;	 /* a lookup needed a missing file */
	bool limited;		 /* something exceeds a limit */
	bool damaged;		 /* something that the file has, or should have, cannot be read */
};

/* ---- ranges ---- */

COMPARISON(compare_ranges, struct code_range, order_of(a->start, b->start) ?: order_of(a->value, b->value))

/* Read the range after *position, which starts at 0. False: there are no more, or the budget is used up. */
static bool next_range(struct dwarf_names *names, Dwarf_Die *die, ptrdiff_t *position, uint64_t *budget,
		       struct code_range *range)
{
	Dwarf_Addr base;

	*position = dwarf_ranges(die, *position, &base, &range->start, &range->end);
	names->damaged |= *position < 0;
	names->limited |= *position > 0 && !*budget;
	if (*position <= 0 || !*budget)
		return false;
	--*budget;
	return true;
}

/* False: out of memory. */
static bool add_ranges(struct dwarf_names *names, struct code_ranges *ranges, Dwarf_Die *die, uint64_t value)
{
	struct code_range range = {.value = value};

	for (ptrdiff_t position = 0; next_range(names, die, &position, &names->ranges_left, &range);) {
		if (range.start < range.end && !vector_push(ranges, range))
			return false;
	}
	return true;
}

/* NULL: none contains the address. */
static const struct code_range *find_range(const struct code_ranges *ranges, uint64_t address)
{
	size_t up_to = partition_point(ranges->count, i, ranges->items[i].start <= address);

	for (size_t i = 0; i < OVERLAPPING_RANGES && up_to > 0; i++) {
		if (address < ranges->items[--up_to].end)
			return &ranges->items[up_to];
	}
	return NULL;
}

/* ---- the entries of a unit ---- */

static bool is_scope(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
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

/* The library's search for scopes walks the whole unit each time, and does not find code inlined from another unit,
 * which link-time optimisation and dwz produce. */
static void index_entries(struct dwarf_names *names, struct unit_entries *unit, Dwarf_Die *parent,
			  uint32_t parent_index, int level)
{
	uint32_t before = NO_SCOPE; /* the scope that ends at the next entry */
	Dwarf_Die die;
	int missing = dwarf_child(parent, &die);

	for (; !missing; missing = dwarf_siblingof(&die, &die)) {
		Dwarf_Off offset = dwarf_dieoffset(&die);
		int tag = dwarf_tag(&die);

		/* Only an invalid reference leads back. */
		if (tag == DW_TAG_invalid || offset <= unit->last)
			break;
		unit->last = offset;
		if (before != NO_SCOPE)
			unit->scopes.items[before].end = offset;
		before = NO_SCOPE;
		if (tag == DW_TAG_subprogram)
			unit->broken |= !add_ranges(names, &unit->functions, &die, offset);
		if (!is_scope(tag) || !dwarf_haschildren(&die))
			continue;
		names->limited |= level == LIMIT_DWARF_NESTING;
		if (level == LIMIT_DWARF_NESTING ||
		    !vector_push(&unit->scopes,
				 ((struct debug_scope){.start = offset, .end = UINT64_MAX, .parent = parent_index}))) {
			unit->broken = true;
			continue;
		}
		before = (uint32_t)unit->scopes.count - 1;
		index_entries(names, unit, &die, before, level + 1);
	}
	if (missing <= 0)
		unit->broken = names->damaged = true;
}

/* The entries of the unit that `die` is in. NULL: out of memory. */
static const struct unit_entries *find_entries(struct dwarf_names *names, Dwarf_Die *die)
{
	uint64_t key = (uint64_t)(uintptr_t)die->cu;
	struct unit_entries *unit = map_get_pointer(&names->entries, key);
	Dwarf_Die root;

	if (unit)
		return unit;
	unit = calloc(1, sizeof(*unit));
	if (!unit || !map_put_pointer(&names->entries, key, unit)) {
		free(unit);
		return NULL;
	}
	/* Type units may be in a separate section, with its own offsets. */
	if (!dwarf_cu_die(die->cu, &root, NULL, NULL, NULL, NULL, NULL, NULL) || dwarf_tag(&root) == DW_TAG_type_unit)
		return unit;
	unit->last = dwarf_dieoffset(&root);
	index_entries(names, unit, &root, NO_SCOPE, 0);
	if (unit->broken)
		unit->scopes.count = 0;
	vector_sort(&unit->functions, compare_ranges);
	return unit;
}

/* The innermost scope that contains the entry. */
static uint32_t find_scope_of(struct dwarf_names *names, Dwarf_Die *die, const struct unit_entries **unit_ret)
{
	const struct unit_entries *unit = *unit_ret = find_entries(names, die);
	Dwarf_Off offset = dwarf_dieoffset(die);
	size_t before = unit ? partition_point(unit->scopes.count, i, unit->scopes.items[i].start < offset) : 0;
	uint32_t found = before ? (uint32_t)before - 1 : NO_SCOPE, scope;

	/* The last scope that begins before the entry contains it, or is inside the scope that does. */
	for (scope = found; scope != NO_SCOPE; scope = unit->scopes.items[scope].parent) {
		if (offset >= unit->scopes.items[scope].end)
			found = unit->scopes.items[scope].parent;
	}
	return found;
}

/*
 * ---- qualified names ----
 *
 * Compilers give no linkage name to C++ functions with internal linkage: those in an anonymous namespace or of local
 * classes, lambdas, static functions. Their namespaces and classes are the DWARF entries that contain the function's
 * entry.
 */

/* Built from end to start, because scopes are found from the inside out. */
struct scope_text {
	char bytes[LIMIT_DWARF_NAME_BYTES];
	size_t start;
};

/* False: no room. */
static bool prepend(struct scope_text *text, const char *piece)
{
	size_t length = strnlen(piece, LIMIT_DWARF_NAME_BYTES);

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
static void find_declaration(Dwarf_Die *die)
{
	Dwarf_Attribute reference;
	Dwarf_Die next;

	for (int i = 0; i < LIMIT_DWARF_REFERENCES; i++) {
		if (!dwarf_formref_die(dwarf_attr(die, DW_AT_abstract_origin, &reference), &next) &&
		    !dwarf_formref_die(dwarf_attr(die, DW_AT_specification, &reference), &next))
			return;
		*die = next;
	}
}

/* A type without a name: the line distinguishes lambdas. */
static const char *unnamed_type(Dwarf_Die *die, const struct scope_text *inside, char room[UNNAMED_MAX_BYTES])
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

char *dwarf_names_qualified(struct dwarf_names *names, const struct debug_frame *frame)
{
	Dwarf_Die die = frame->function;
	struct scope_text text = {.start = LIMIT_DWARF_NAME_BYTES - 1};
	const struct unit_entries *unit;
	const char *name;
	uint32_t scope;
	size_t own;

	if (!frame->name || frame->linkage_name)
		return NULL;
	find_declaration(&die);
	name = dwarf_diename(&die);
	if (!name || !is_cplusplus(&die) || !prepend(&text, name))
		return NULL;
	own = text.start;
	/* Prepend all scopes. A local class is inside a function, which may be declared elsewhere. */
	scope = find_scope_of(names, &die, &unit);
	for (int level = 0; level < LIMIT_DWARF_NESTING && scope != NO_SCOPE; level++) {
		char room[UNNAMED_MAX_BYTES];

		if (!dwarf_offdie(dwarf_cu_getdwarf(die.cu), unit->scopes.items[scope].start, &die))
			return NULL;
		if (dwarf_tag(&die) == DW_TAG_subprogram)
			find_declaration(&die);
		if (dwarf_tag(&die) != DW_TAG_lexical_block) {
			if (!prepend(&text, "::"))
				return NULL;
			name = dwarf_diename(&die);
			if (!name)
				name = dwarf_tag(&die) == DW_TAG_namespace ? "(anonymous namespace)"
									   : unnamed_type(&die, &text, room);
			if (!prepend(&text, name))
				return NULL;
		}
		scope = dwarf_tag(&die) == DW_TAG_subprogram ? find_scope_of(names, &die, &unit)
							     : unit->scopes.items[scope].parent;
	}
	return text.start != own ? strdup(text.bytes + text.start) : NULL;
}

/* ---- functions and lines by address ---- */

/* No two units share a range list, except in a hostile file that makes every unit refer to the same long one. Some
 * sections indicate a supplementary file, which contains the common parts of several programs. */
static void look_at_sections(struct dwarf_names *names, Dwarf *dwarf)
{
	Elf *elf = dwarf_getelf(dwarf);
	Elf_Scn *section = NULL;
	bool has_supplement = false;
	uint64_t size = 0;
	size_t texts;

	if (elf_getshdrstrndx(elf, &texts))
		return;
	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data;
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || !(name = elf_strptr(elf, texts, header.sh_name)))
			continue;
		has_supplement |= !strcmp(name, ".gnu_debugaltlink") || !strcmp(name, ".debug_sup");
		if (strstr(name, "debug_") && (data = elf_getdata(section, NULL)))
			size += data->d_size;
	}
	names->ranges_left = size / RANGE_BYTES_MIN;
	names->supplement_missing = names->parts_missing = has_supplement && !dwarf_getalt(dwarf);
}

/* Whether the unit contains code. */
static bool is_wanted(struct dwarf_names *names, Dwarf_Die *unit, uint8_t type)
{
	/* If even the unit's own name is unreadable, do not trust the rest. */
	names->damaged |= !names->parts_missing && dwarf_hasattr(unit, DW_AT_name) && !dwarf_diename(unit);
	switch (dwarf_tag(unit)) {
	case DW_TAG_compile_unit:
	case DW_TAG_skeleton_unit:
		return type == DW_UT_compile || type == DW_UT_skeleton;
	case DW_TAG_partial_unit:
	case DW_TAG_type_unit:
		return false;
	default:
		names->damaged = true;
		return false;
	}
}

/* The part of a unit that is in another file; false: missing or unreadable. */
static bool find_part(Dwarf_CU *position, Dwarf_Die *part_ret)
{
	const char *supplement;
	const void *build_id;

	if (dwarf_cu_info(position, NULL, NULL, NULL, part_ret, NULL, NULL, NULL) ||
	    dwarf_tag(part_ret) == DW_TAG_invalid)
		return false;
	/* No compiler writes a chain of such references. */
	return dwelf_dwarf_gnu_debugaltlink(dwarf_cu_getdwarf(part_ret->cu), &supplement, &build_id) <= 0;
}

/* Read the ranges of all units from the units themselves: many compilers write no .debug_aranges, which the library's
 * own search needs. */
struct dwarf_names *dwarf_names_create(Dwarf *dwarf)
{
	struct dwarf_names *names = calloc(1, sizeof(*names));
	Dwarf_CU *position = NULL;
	struct unit unit = {0};
	uint8_t type;
	int end;

	if (!names)
		return NULL;
	names->dwarf = dwarf;
	look_at_sections(names, dwarf);
	while (!(end = dwarf_get_units(dwarf, position, &position, NULL, &type, &unit.lines, NULL))) {
		if (!is_wanted(names, &unit.lines, type))
			continue;
		unit.parts_missing = type == DW_UT_skeleton && !find_part(position, &unit.scopes);
		names->parts_missing |= unit.parts_missing;
		if (type != DW_UT_skeleton || unit.parts_missing)
			unit.scopes = unit.lines;
		if (!add_ranges(names, &names->ranges, &unit.lines, names->units.count) ||
		    !vector_push(&names->units, unit)) {
			dwarf_names_destroy(names);
			return NULL;
		}
	}
	names->damaged |= end < 0;
	vector_sort(&names->ranges, compare_ranges);
	return names;
}

enum module_state dwarf_names_state(const struct dwarf_names *names)
{
	if (names->damaged)
		return MODULE_POOR_NAMES;
	if (names->limited)
		return MODULE_LIMITED_NAMES;
	return names->met_missing ? MODULE_MISSING_NAMES : MODULE_READABLE;
}

static const char *text_attribute(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

/* The file with the functions of a unit, as dwarf_names_missing() returns it. */
static char *describe_part(Dwarf_Die *skeleton)
{
	const char *directory = text_attribute(skeleton, DW_AT_comp_dir);
	const char *name = text_attribute(skeleton, DW_AT_dwo_name);
	uint64_t id;
	uint8_t type;
	char *text;

	if (!name)
		name = text_attribute(skeleton, DW_AT_GNU_dwo_name);
	if (!name || dwarf_cu_info(skeleton->cu, NULL, &type, NULL, NULL, &id, NULL, NULL) || type != DW_UT_skeleton)
		return NULL;
	if (*name == '/' || !directory)
		directory = "";
	return asprintf(&text, "%s%s%s (id %016" PRIx64 ")", directory, *directory ? "/" : "", name, id) < 0 ? NULL
													     : text;
}

static char *describe_supplement(Dwarf *dwarf)
{
	char id[2 * LIMIT_BUILD_ID_BYTES + 1] = "", *text;
	const char *path = NULL;
	const void *build_id;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &path, &build_id);

	if (size <= 0 || size > LIMIT_BUILD_ID_BYTES)
		return NULL;
	for (ssize_t i = 0; i < size; i++)
		snprintf(&id[2 * i], 3, "%02x", ((const uint8_t *)build_id)[i]);
	return asprintf(&text, "%s (id %s)", path, id) < 0 ? NULL : text;
}

char *dwarf_names_missing(const struct dwarf_names *names)
{
	struct unit *first = NULL;
	char *part, *text = NULL;
	size_t others = 0;

	for (size_t i = 0; i < names->units.count; i++) {
		if (!names->units.items[i].met_missing)
			continue;
		others += first != NULL;
		first = first ? first : &names->units.items[i];
	}
	if (!first)
		return names->met_missing ? describe_supplement(names->dwarf) : NULL;
	part = describe_part(&first->lines);
	if (!part || !others)
		return part;
	if (asprintf(&text, "%s and %zu more", part, others) < 0)
		text = NULL;
	free(part);
	return text;
}

bool dwarf_names_expected(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t texts;

	if (elf_getshdrstrndx(elf, &texts))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, texts, header.sh_name) : NULL;

		if (!name || (header.sh_type != SHT_NOBITS && !strcmp(name, ".debug_info")))
			return true;
	}
	return false;
}

void dwarf_names_destroy(struct dwarf_names *names)
{
	if (!names)
		return;
	map_each(slot, &names->entries, true) {
		struct unit_entries *unit = slot->pointer;

		vector_deinit(&unit->scopes);
		vector_deinit(&unit->functions);
		free(unit);
	}
	map_deinit(&names->entries);
	vector_deinit(&names->units);
	vector_deinit(&names->ranges);
	free(names);
}

/* `budget`: number of ranges that may still be checked. */
static bool covers(struct dwarf_names *names, Dwarf_Die *die, uint64_t address, uint64_t *budget)
{
	struct code_range range;

	for (ptrdiff_t position = 0; next_range(names, die, &position, budget, &range);) {
		if (range.start <= address && address < range.end)
			return true;
	}
	return false;
}

/* The child of `die` that contains the address, possibly with functions inlined into it. */
static bool find_scope(struct dwarf_names *names, Dwarf_Die *die, uint64_t address, uint64_t *budget)
{
	Dwarf_Die child;
	Dwarf_Off offset;
	int missing = dwarf_child(die, &child);

	names->damaged |= missing < 0;
	if (missing)
		return false;
	do {
		int tag = dwarf_tag(&child);

		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
		     tag == DW_TAG_catch_block) &&
		    covers(names, &child, address, budget)) {
			*die = child;
			return true;
		}
		offset = dwarf_dieoffset(&child);
		missing = *budget ? dwarf_siblingof(&child, &child) : 1;
	} while (!missing && dwarf_dieoffset(&child) > offset);
	/* A reference to an earlier entry would never end. */
	names->damaged |= missing <= 0;
	names->limited |= !*budget;
	return false;
}

/* The function at `address` and the functions inlined there, outermost first. */
static size_t find_scopes(struct dwarf_names *names, struct unit *unit, uint64_t address,
			  Dwarf_Die scopes[LIMIT_INLINED_FRAMES])
{
	uint64_t budget = LIMIT_DWARF_LOOKUP_RANGES;
	const struct unit_entries *entries = find_entries(names, &unit->scopes);
	const struct code_range *function = entries ? find_range(&entries->functions, address) : NULL;
	Dwarf_Die die;
	size_t count = 0;

	if (!function || !dwarf_offdie(dwarf_cu_getdwarf(unit->scopes.cu), function->value, &die))
		return 0;
	scopes[count++] = die;
	for (int level = 0; find_scope(names, &die, address, &budget); level++) {
		bool inlined = dwarf_tag(&die) == DW_TAG_inlined_subroutine;

		if (level == LIMIT_DWARF_NESTING || (inlined && count == LIMIT_INLINED_FRAMES)) {
			names->limited = true;
			break;
		}
		if (inlined)
			scopes[count++] = die;
	}
	return count;
}

static uint32_t integer_attribute(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) || value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

static void describe_function(Dwarf_Die *die, struct debug_frame *frame)
{
	Dwarf_Addr base, entry, end;

	frame->linkage_name = text_attribute(die, DW_AT_linkage_name);
	if (!frame->linkage_name)
		frame->linkage_name = text_attribute(die, DW_AT_MIPS_linkage_name);
	frame->name = dwarf_diename(die);
	frame->function = *die;
	frame->inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
	if (frame->inlined)
		return;
	/* Some compilers write no entry address for a function with several ranges: use the first range. */
	if (!dwarf_entrypc(die, &entry) || dwarf_ranges(die, 0, &base, &entry, &end) > 0)
		frame->entry = entry;
}

size_t dwarf_names_find(struct dwarf_names *names, uint64_t address, struct debug_frame frames[LIMIT_INLINED_FRAMES])
{
	const struct code_range *found = find_range(&names->ranges, address);
	struct unit *unit = found ? &names->units.items[found->value] : NULL;
	Dwarf_Die scopes[LIMIT_INLINED_FRAMES];
	size_t count, file_count;
	const char *directory;
	Dwarf_Lines *table;
	Dwarf_Files *files;
	uint32_t file;
	int line;

	if (!unit)
		return 0;
	unit->met_missing |= unit->parts_missing;
	names->met_missing |= unit->parts_missing || names->supplement_missing;
	directory = text_attribute(&unit->lines, DW_AT_comp_dir);
	frames[0] = (struct debug_frame){.directory = directory};
	if (dwarf_getsrclines(&unit->lines, &table, &count))
		names->damaged |= dwarf_hasattr(&unit->lines, DW_AT_stmt_list);
	else if (!dwarf_lineno(dwarf_getsrc_die(&unit->lines, address), &line) && line > 0) {
		frames[0].source_line = (uint32_t)line;
		frames[0].source_file = dwarf_linesrc(dwarf_getsrc_die(&unit->lines, address), NULL, NULL);
	}
	count = find_scopes(names, unit, address, scopes);
	for (size_t i = 0; i < count; i++) {
		Dwarf_Die *scope = &scopes[count - 1 - i];

		describe_function(scope, &frames[i]);
		if (i + 1 == count)
			return count;
		/* The call site of an inlined function. */
		frames[i + 1] = (struct debug_frame){.directory = directory,
						     .source_line = integer_attribute(scope, DW_AT_call_line)};
		file = integer_attribute(scope, DW_AT_call_file);
		if (!dwarf_getsrcfiles(&unit->scopes, &files, &file_count) && file < file_count)
			frames[i + 1].source_file = dwarf_filesrc(files, file, NULL, NULL);
	}
	return frames[0].source_line > 0;
}
