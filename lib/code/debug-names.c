// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/debug-names.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vector.h"

/* Units of which each covers the address are looked at from the nearest start downwards, at most so many. */
#define OVERLAPPING_UNITS 16

struct unit {
	Dwarf_Die lines;  /* has the line table */
	Dwarf_Die scopes; /* has the functions; another one with split DWARF */
};

struct unit_range {
	uint64_t start, end;
	uint32_t unit;
};

struct debug_names {
	VECTOR(struct unit) units;
	VECTOR(struct unit_range) ranges; /* sorted by start */
};

static int compare_ranges(const void *left, const void *right)
{
	const struct unit_range *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

static bool add_unit(struct debug_names *names, const struct unit *unit)
{
	struct unit_range range = {.unit = (uint32_t)names->units.count};
	Dwarf_Die die = unit->lines;
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while ((offset = dwarf_ranges(&die, offset, &base, &start, &end)) > 0) {
		range.start = start;
		range.end = end;
		if (start < end && !vector_push(&names->ranges, range))
			return false;
	}
	return vector_push(&names->units, *unit);
}

/*
 * The ranges of all units are taken from the units themselves: many compilers write no .debug_aranges, which the
 * library's own search depends on.
 */
struct mmt_error *debug_names_create(Dwarf *dwarf, struct debug_names **names_ret)
{
	struct debug_names *names = calloc(1, sizeof(*names));
	Dwarf_CU *position = NULL;
	struct unit unit = {0};
	uint8_t type;

	if (!names)
		return &error_no_memory;
	while (!dwarf_get_units(dwarf, position, &position, NULL, &type, &unit.lines, &unit.scopes)) {
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		if (dwarf_tag(&unit.lines) == DW_TAG_partial_unit)
			continue;
		if (type != DW_UT_skeleton || dwarf_tag(&unit.scopes) == DW_TAG_invalid)
			unit.scopes = unit.lines;
		if (!add_unit(names, &unit)) {
			debug_names_destroy(names);
			return &error_no_memory;
		}
	}
	if (names->ranges.count)
		qsort(names->ranges.items, names->ranges.count, sizeof(*names->ranges.items), compare_ranges);
	*names_ret = names;
	return NULL;
}

void debug_names_destroy(struct debug_names *names)
{
	if (!names)
		return;
	vector_deinit(&names->units);
	vector_deinit(&names->ranges);
	free(names);
}

static const struct unit *find_unit(const struct debug_names *names, uint64_t address)
{
	size_t low = 0, high = names->ranges.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (names->ranges.items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < OVERLAPPING_UNITS && low > 0; i++) {
		const struct unit_range *range = &names->ranges.items[--low];

		if (address < range->end)
			return &names->units.items[range->unit];
	}
	return NULL;
}

static uint32_t integer_attribute(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) || value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

static const char *text_attribute(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

static void describe_line(const struct unit *unit, uint64_t address, struct debug_frame *frame)
{
	Dwarf_Die die = unit->lines;
	Dwarf_Line *line = dwarf_getsrc_die(&die, address);
	int number;

	if (!line || dwarf_lineno(line, &number) || number <= 0)
		return;
	frame->source_file = dwarf_linesrc(line, NULL, NULL);
	frame->source_line = (uint32_t)number;
}

/* Where an inlined function is called. */
static void describe_call(const struct unit *unit, Dwarf_Die *inlined, struct debug_frame *frame)
{
	uint32_t file = integer_attribute(inlined, DW_AT_call_file);
	Dwarf_Die die = unit->scopes;
	Dwarf_Files *files;
	size_t count;

	frame->source_line = integer_attribute(inlined, DW_AT_call_line);
	if (!dwarf_getsrcfiles(&die, &files, &count) && file < count)
		frame->source_file = dwarf_filesrc(files, file, NULL, NULL);
}

static void describe_function(Dwarf_Die *die, struct debug_frame *frame)
{
	Dwarf_Addr entry;

	frame->linkage_name = text_attribute(die, DW_AT_linkage_name);
	if (!frame->linkage_name)
		frame->linkage_name = text_attribute(die, DW_AT_MIPS_linkage_name);
	frame->name = dwarf_diename(die);
	frame->inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
	if (!frame->inlined && !dwarf_entrypc(die, &entry))
		frame->entry = entry;
}

size_t debug_names_find(const struct debug_names *names, uint64_t address, struct debug_frame *frames, size_t limit)
{
	const struct unit *unit = find_unit(names, address);
	CLEANUP(free) Dwarf_Die *nearest = NULL;
	CLEANUP(free) Dwarf_Die *scopes = NULL;
	const char *directory;
	Dwarf_Die die;
	size_t count = 0;
	int scope_count = 0;

	if (!unit || !limit)
		return 0;
	die = unit->lines;
	directory = text_attribute(&die, DW_AT_comp_dir);
	frames[0] = (struct debug_frame){.directory = directory};
	describe_line(unit, address, &frames[0]);
	die = unit->scopes;
	if (dwarf_getscopes(&die, address, &nearest) > 0)
		scope_count = dwarf_getscopes_die(&nearest[0], &scopes);
	for (int i = 0; i < scope_count; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		describe_function(&scopes[i], &frames[count++]);
		if (tag == DW_TAG_subprogram || count == limit)
			return count;
		frames[count] = (struct debug_frame){.directory = directory};
		describe_call(unit, &scopes[i], &frames[count]);
	}
	return count ? count : frames[0].source_line > 0;
}
