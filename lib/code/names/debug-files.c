// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/names/debug-files.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compression.h"
#include "base/cleanup.h"
#include "base/limits.h"

static const char *text_attribute(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr(die, name, &attribute));
}

/* Relative to the compilation directory of the unit. */
static char *part_path(Dwarf_Die *skeleton)
{
	const char *directory = text_attribute(skeleton, DW_AT_comp_dir);
	const char *name = text_attribute(skeleton, DW_AT_dwo_name);
	char *path;

	if (!name)
		name = text_attribute(skeleton, DW_AT_GNU_dwo_name);
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

bool debug_part_has_supplement(Dwarf *dwarf)
{
	const char *name;
	const void *build_id;

	return dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id) > 0;
}

#define COMPRESSED_ZSTD 2   /* ELFCOMPRESS_ZSTD, which older headers lack */
#define EXPANSION_MAX 32768 /* more than zstd reaches with debug information */

/* False: the section is not compressed with zstd, or damaged. */
static bool expand_section(Elf_Scn *section)
{
	Elf_Data *data;
	GElf_Shdr header;
	GElf_Chdr compression;
	size_t size;
	char *expanded;

	if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS || !(header.sh_flags & SHF_COMPRESSED) ||
	    !gelf_getchdr(section, &compression) || compression.ch_type != COMPRESSED_ZSTD ||
	    !elf_getdata(section, NULL) || !(data = elf_rawdata(section, NULL)) || data->d_size <= sizeof(Elf64_Chdr) ||
	    compression.ch_size / EXPANSION_MAX > data->d_size)
		return false;
	size = compression.ch_size;
	expanded = malloc(size + 1);
	if (!expanded || !compress_expand_frame((const char *)data->d_buf + sizeof(Elf64_Chdr),
						data->d_size - sizeof(Elf64_Chdr), expanded, size)) {
		free(expanded);
		return false;
	}
	/* The library has the data twice, and libdw reads the first of these. */
	*elf_getdata(section, NULL) = *data =
	    (Elf_Data){.d_buf = expanded, .d_size = size, .d_type = ELF_T_BYTE, .d_version = EV_CURRENT};
	header.sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	header.sh_size = size;
	header.sh_addralign = compression.ch_addralign;
	return gelf_update_shdr(section, &header);
}

bool debug_expand_zstd(Elf *elf)
{
	Elf_Scn *section = NULL;
	bool expanded = false;

	while (gelf_getclass(elf) == ELFCLASS64 && (section = elf_nextscn(elf, section)))
		expanded |= expand_section(section);
	return expanded;
}

bool debug_file_open(const char *path, struct debug_file *file_ret)
{
	CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);

	*file_ret = (struct debug_file){.elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL)};
	if (file_ret->elf && debug_expand_zstd(file_ret->elf))
		file_ret->dwarf = dwarf_begin_elf(file_ret->elf, DWARF_C_READ, NULL);
	if (!file_ret->dwarf)
		debug_file_close(file_ret);
	return file_ret->dwarf;
}

void debug_file_close(struct debug_file *file)
{
	(void)dwarf_end(file->dwarf);
	(void)elf_end(file->elf);
	*file = (struct debug_file){0};
}
