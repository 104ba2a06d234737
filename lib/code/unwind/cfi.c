// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/unwind/cfi.h"

#include <gelf.h>

#include "base/limits.h"

/* The sections of an ELF file. */

/* Tables are loaded on demand; .debug_frame only if .eh_frame has no row. */
struct cfi {
	Elf *elf;		    /* NULL: not from a file */
	struct cfi_rows *tables[2]; /* .eh_frame, .debug_frame; NULL: none */
	bool loaded[2];
};

struct cfi *cfi_create(Elf *elf)
{
	struct cfi *cfi = calloc(1, sizeof(*cfi));

	if (cfi)
		cfi->elf = elf;
	return cfi;
}

struct cfi *cfi_create_from_memory(const uint8_t *bytes, size_t size, uint64_t address)
{
	struct cfi_section section = {.bytes = bytes, .size = size, .address = address, .ends_with_terminator = true};
	struct cfi *cfi = cfi_create(NULL);

	if (!cfi)
		return NULL;
	cfi->loaded[false] = cfi->loaded[true] = true;
	mmt_error_destroy(cfi_rows_create(&section, &cfi->tables[false]));
	return cfi;
}

void cfi_destroy(struct cfi *cfi)
{
	if (!cfi)
		return;
	cfi_rows_destroy(cfi->tables[false]);
	cfi_rows_destroy(cfi->tables[true]);
	free(cfi);
}

static Elf_Scn *find_section(Elf *elf, const char *wanted, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;

		if (gelf_getshdr(section, header) && header->sh_type != SHT_NOBITS &&
		    (name = elf_strptr(elf, names, header->sh_name)) && !strcmp(name, wanted))
			return section;
	}
	return NULL;
}

/* Up to `size` bytes of the file from `offset`; fewer, or none, at its end. */
static struct bytes file_bytes(Elf *elf, uint64_t offset, uint64_t size)
{
	size_t file_size = 0;
	const char *file = elf_rawfile(elf, &file_size);

	if (!file || offset >= file_size)
		return bytes_over(NULL, 0);
	return bytes_over(file + offset, size < file_size - offset ? (size_t)size : file_size - (size_t)offset);
}

/* Without section headers, .eh_frame_hdr points to .eh_frame. */
static void find_eh_frame_by_header(Elf *elf, struct cfi_section *section)
{
	struct cfi_section table = {.bytes = section->header, .address = section->header_address};
	struct bytes bytes = bytes_over(section->header, section->header_size), entries = bytes_over(NULL, 0);
	GElf_Phdr header;
	uint8_t encoding;
	size_t count;

	if (bytes_u8(&bytes) != 1)
		return;
	encoding = bytes_u8(&bytes);
	bytes_skip(&bytes, 2);
	section->address = cfi_entries_pointer(&table, &bytes, encoding);
	if (!bytes_ok(&bytes) || elf_getphdrnum(elf, &count))
		return;
	/* The file's bytes from there to the end of the segment. */
	for (size_t i = 0; i < count && !bytes_left(&entries) && gelf_getphdr(elf, (int)i, &header); i++) {
		uint64_t offset = section->address - header.p_vaddr;

		if (header.p_type == PT_LOAD && section->address >= header.p_vaddr && offset < header.p_filesz)
			entries = file_bytes(elf, header.p_offset + offset, header.p_filesz - offset);
	}
	section->bytes = entries.position;
	section->size = bytes_left(&entries);
	section->ends_with_terminator = true;
}

static struct cfi_section find_eh_frame(Elf *elf)
{
	struct cfi_section section = {0};
	struct bytes bytes;
	GElf_Phdr segment;
	GElf_Shdr header;
	size_t count;

	if (elf_getphdrnum(elf, &count))
		count = 0;
	/* Find .eh_frame_hdr as the running program finds it. */
	for (size_t i = 0; i < count && !section.header && gelf_getphdr(elf, (int)i, &segment); i++) {
		if (segment.p_type != PT_GNU_EH_FRAME)
			continue;
		bytes = file_bytes(elf, segment.p_offset, segment.p_filesz);
		section.header = bytes.position;
		section.header_size = bytes_left(&bytes);
		section.header_address = segment.p_vaddr;
	}
	if (find_section(elf, ".eh_frame", &header)) {
		bytes = file_bytes(elf, header.sh_offset, header.sh_size);
		section.bytes = bytes.position;
		section.size = bytes_left(&bytes);
		section.address = header.sh_addr;
	} else {
		find_eh_frame_by_header(elf, &section);
	}
	return section;
}

static struct cfi_section find_debug_frame(Elf *elf)
{
	struct cfi_section section = {.is_debug_frame = true};
	GElf_Shdr header;
	Elf_Scn *found = find_section(elf, ".debug_frame", &header);
	Elf_Data *data;

	if (found && header.sh_flags & SHF_COMPRESSED) {
		GElf_Chdr compression;

		/* Does it claim a plausible decompressed size? */
		if (!gelf_getchdr(found, &compression) || compression.ch_size >= LIMIT_CFI_SECTION_BYTES ||
		    compression.ch_size / LIMIT_INFLATION > header.sh_size || elf_compress(found, 0, 0) < 0)
			return section;
	}
	data = found ? elf_rawdata(found, NULL) : NULL;
	if (data && data->d_buf) {
		section.bytes = data->d_buf;
		section.size = data->d_size;
	}
	return section;
}

struct cfi_rows *cfi_table(struct cfi *cfi, bool debug_frame)
{
	const char *identification;
	struct cfi_section section;

	if (cfi->loaded[debug_frame])
		return cfi->tables[debug_frame];
	cfi->loaded[debug_frame] = true;
	identification = elf_getident(cfi->elf, NULL);
	if (!identification || identification[EI_CLASS] != ELFCLASS64 || identification[EI_DATA] != ELFDATA2LSB)
		return NULL;
	section = debug_frame ? find_debug_frame(cfi->elf) : find_eh_frame(cfi->elf);
	if (section.size)
		mmt_error_destroy(cfi_rows_create(&section, &cfi->tables[debug_frame]));
	return cfi->tables[debug_frame];
}

const struct cfi_row *cfi_find(struct cfi *cfi, uint64_t address)
{
	const struct cfi_row *row = NULL;

	for (int i = 0; i < 2 && !row; i++) {
		struct cfi_rows *rows = cfi_table(cfi, i);

		row = rows ? cfi_rows_find(rows, address) : NULL;
	}
	return row;
}

bool cfi_function_range(struct cfi *cfi, uint64_t address, uint64_t *end_ret)
{
	bool begins = false;

	*end_ret = UINT64_MAX;
	for (int i = 0; i < 2 && !begins; i++) {
		struct cfi_rows *rows = cfi_table(cfi, i);
		uint64_t end = UINT64_MAX;

		begins = rows && cfi_rows_function_range(rows, address, &end);
		*end_ret = smaller_of(*end_ret, end);
	}
	return begins;
}
