// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/debug-parts.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "code/debug-places.h"

#define BUILD_ID_BYTES_MAX 64

static const char *text_attribute(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr(die, name, &attribute));
}

static const char *part_name(Dwarf_Die *skeleton)
{
	const char *name = text_attribute(skeleton, DW_AT_dwo_name);

	return name ? name : text_attribute(skeleton, DW_AT_GNU_dwo_name);
}

/* Relative to where the unit was compiled. */
static char *part_path(Dwarf_Die *skeleton)
{
	const char *directory = text_attribute(skeleton, DW_AT_comp_dir);
	const char *name = part_name(skeleton);
	char *path;

	if (!name)
		return NULL;
	if (*name == '/' || !directory)
		directory = "";
	return asprintf(&path, "%s%s%s", directory, *directory ? "/" : "", name) < 0 ? NULL : path;
}

char *debug_part_of_unit(Dwarf_Die *skeleton)
{
	CLEANUP(free) char *path = part_path(skeleton);
	uint64_t id;
	uint8_t type;
	char *text;

	if (!path || dwarf_cu_info(skeleton->cu, NULL, &type, NULL, NULL, &id, NULL, NULL) || type != DW_UT_skeleton)
		return NULL;
	return asprintf(&text, "%s (id %016" PRIx64 ")", path, id) < 0 ? NULL : text;
}

char *debug_part_supplement(Dwarf *dwarf)
{
	char id[2 * BUILD_ID_BYTES_MAX + 1] = "", *text;
	const char *path = NULL;
	const void *build_id;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &path, &build_id);

	if (size <= 0 || size > BUILD_ID_BYTES_MAX)
		return NULL;
	for (ssize_t i = 0; i < size; i++)
		snprintf(&id[2 * i], 3, "%02x", ((const uint8_t *)build_id)[i]);
	return asprintf(&text, "%s (id %s)", path, id) < 0 ? NULL : text;
}

bool debug_part_of_unit_blocks(Dwarf_Die *skeleton, const char *path)
{
	const char *name = part_name(skeleton);

	return debug_place_of_parts_blocks(path) ||
	       (name && debug_places_of_part_block(path, text_attribute(skeleton, DW_AT_comp_dir), name));
}

bool debug_part_has_supplement(Dwarf *dwarf)
{
	const char *name;
	const void *build_id;

	return dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id) > 0;
}

bool debug_part_supplement_blocks(Dwarf *dwarf, const char *path)
{
	const char *name;
	const void *build_id;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id);
	Dwarf *supplement;

	if (size <= 0)
		return false;
	if (debug_place_of_id_blocks(build_id, (size_t)size) || debug_places_of_part_block(path, NULL, name))
		return true;
	supplement = dwarf_getalt(dwarf);
	return supplement && debug_part_has_supplement(supplement);
}
