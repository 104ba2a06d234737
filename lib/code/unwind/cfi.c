// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/unwind/cfi.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

/* The entries of a section, and the index of its functions. */

#define LENGTH_64_BIT 0xffffffffu

/* An entry of the section. */
struct cfi_table_entry {
	struct bytes bytes; /* after the length field */
	size_t pointer_offset;
	uint64_t pointer; /* CIE pointer of an FDE */
	bool is_cie;
};

static uint64_t read_value(struct bytes *bytes, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return bytes_u64(bytes);
	case DW_EH_PE_uleb128:
		return bytes_uleb128(bytes);
	case DW_EH_PE_sleb128:
		return (uint64_t)bytes_sleb128(bytes);
	case DW_EH_PE_udata2:
		return bytes_u16(bytes);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int64_t)(int16_t)bytes_u16(bytes);
	case DW_EH_PE_udata4:
		return bytes_u32(bytes);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int64_t)(int32_t)bytes_u32(bytes);
	}
	bytes_fail(bytes, "unknown pointer format");
	return 0;
}

uint64_t cfi_entries_pointer(const struct cfi_section *section, struct bytes *bytes, uint8_t encoding)
{
	uint64_t here = section->address + (uint64_t)(bytes->position - section->bytes);
	uint64_t value;

	if (encoding == DW_EH_PE_omit || encoding & DW_EH_PE_indirect) {
		bytes_fail(bytes, "pointer that only the process knows");
		return 0;
	}
	value = read_value(bytes, encoding);
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
		return value;
	case DW_EH_PE_pcrel:
		return here + value;
	}
	bytes_fail(bytes, "unknown pointer base");
	return 0;
}

/* Read the entry at the cursor and move the cursor after it. False: end of the section, or not an entry. */
static bool read_entry(const struct cfi_section *section, struct bytes *cursor, struct cfi_table_entry *entry)
{
	uint64_t length = bytes_u32(cursor);
	bool wide = length == LENGTH_64_BIT;
	uint64_t none = section->is_debug_frame ? (wide ? UINT64_MAX : UINT32_MAX) : 0;

	if (wide)
		length = bytes_u64(cursor);
	entry->bytes = bytes_sub(cursor, length);
	if (!bytes_ok(cursor))
		return false;
	if (!length)
		return true; /* a terminator: entries of other object files may follow */
	entry->pointer_offset = (size_t)(entry->bytes.position - section->bytes);
	entry->pointer = wide && section->is_debug_frame ? bytes_u64(&entry->bytes) : bytes_u32(&entry->bytes);
	entry->is_cie = entry->pointer == none;
	return true;
}

static void read_augmentation(const char *letters, struct bytes *data, struct cfi_cie *cie)
{
	for (; *letters; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'R':
			cie->pointer_encoding = bytes_u8(data);
			break;
		case 'P':
			encoding = bytes_u8(data);
			/* Only the size of the pointer to the personality routine matters, not its value. */
			(void)read_value(data, encoding);
			break;
		case 'L':
			(void)bytes_u8(data);
			break;
		case 'S':
			cie->signal_frame = true;
			break;
		case 'B': /* return addresses are signed with key B */
		case 'G': /* memory tagging */
			break;
		default:
			return; /* the other augmentation characters are unknown, but their size is not needed */
		}
	}
}

static void read_cie(struct bytes bytes, struct cfi_cie *cie)
{
	uint8_t version = bytes_u8(&bytes);
	struct bytes text = bytes_over(
	    bytes.position, bytes_left(&bytes) < LIMIT_CFI_AUGMENTATION ? bytes_left(&bytes) : LIMIT_CFI_AUGMENTATION);
	const char *augmentation = bytes_string(&text);
	uint64_t return_column;

	if (!bytes_ok(&text))
		return;
	bytes_skip(&bytes, strlen(augmentation) + 1);
	if (version != 1 && version != 3 && version != 4)
		return;
	if (!strcmp(augmentation, "eh"))
		bytes_skip(&bytes, sizeof(uint64_t));
	else if (*augmentation && *augmentation != 'z')
		return;
	/* Size of addresses and of segment selectors. */
	if (version == 4 && (bytes_u8(&bytes) != sizeof(uint64_t) || bytes_u8(&bytes)))
		return;
	cie->code_alignment = bytes_uleb128(&bytes);
	cie->data_alignment = bytes_sleb128(&bytes);
	return_column = version == 1 ? bytes_u8(&bytes) : bytes_uleb128(&bytes);
	if (*augmentation == 'z') {
		uint64_t size = bytes_uleb128(&bytes);
		struct bytes data = bytes_sub(&bytes, size);

		cie->has_augmentation_size = true;
		read_augmentation(augmentation + 1, &data, cie);
		if (!bytes_ok(&data))
			return;
	}
	cie->instructions = bytes;
	cie->return_column = (uint8_t)return_column;
	cie->usable = bytes_ok(&bytes) && return_column < CFI_REGISTERS && bytes_left(&bytes) <= LIMIT_CFI_CIE_BYTES;
}

static bool read_entry_at(const struct cfi_section *section, uint64_t offset, struct cfi_table_entry *entry)
{
	struct bytes cursor;

	if (offset >= section->size)
		return false;
	cursor = bytes_over(section->bytes + offset, section->size - (size_t)offset);
	return read_entry(section, &cursor, entry) && bytes_left(&entry->bytes);
}

static const struct cfi_cie *find_cie(const struct cfi_section *section, struct cfi_cies *cies, uint64_t offset)
{
	/* A CIE has more than eight bytes. */
	size_t slot = (size_t)(offset / 8 % CFI_CIES);
	struct cfi_cie *cie = &cies->items[slot].cie;
	struct cfi_table_entry entry = {0};

	if (cies->items[slot].known && cie->offset == offset)
		return cie;
	cies->items[slot].known = true;
	*cie = (struct cfi_cie){.offset = (size_t)offset, .pointer_encoding = DW_EH_PE_absptr};
	if (read_entry_at(section, offset, &entry) && entry.is_cie)
		read_cie(entry.bytes, cie);
	return cie;
}

bool cfi_entries_fde(const struct cfi_section *section, struct cfi_cies *cies, size_t offset, struct cfi_fde *fde_ret)
{
	struct cfi_table_entry entry = {0};
	struct bytes *bytes = &entry.bytes;
	const struct cfi_cie *cie;
	uint64_t size;

	if (!read_entry_at(section, offset, &entry) || entry.is_cie)
		return false;
	cie = find_cie(section, cies, section->is_debug_frame ? entry.pointer : entry.pointer_offset - entry.pointer);
	if (!cie->usable)
		return false;
	fde_ret->cie = cie;
	fde_ret->start = cfi_entries_pointer(section, bytes, cie->pointer_encoding);
	size = read_value(bytes, cie->pointer_encoding & 0x0f);
	if (cie->has_augmentation_size)
		bytes_skip(bytes, bytes_uleb128(bytes));
	if (!bytes_ok(bytes) || !size)
		return false;
	fde_ret->end = fde_ret->start + size < fde_ret->start ? UINT64_MAX : fde_ret->start + size;
	fde_ret->instructions = *bytes;
	return true;
}

/* Iterate over entries: `for (size_t position = 0; cfi_entries_next(section, &position, &offset);)`. The entry at
 * `offset` need not be an FDE. */
static bool cfi_entries_next(const struct cfi_section *section, size_t *position, size_t *offset_ret)
{
	struct bytes cursor;
	struct cfi_table_entry entry = {0};

	if (section->size >= LIMIT_CFI_SECTION_BYTES || *position >= section->size)
		return false;
	cursor = bytes_over(section->bytes + *position, section->size - *position);
	if (!read_entry(section, &cursor, &entry) || (section->ends_with_terminator && !bytes_left(&entry.bytes)))
		return false;
	*offset_ret = *position;
	*position = (size_t)(cursor.position - section->bytes);
	return true;
}

#define HEADER_VERSION 1
#define ENTRY_BYTES_MIN 12 /* length, CIE pointer, and the smallest encoding of start and length */

static int compare_entries(const void *left, const void *right)
{
	const struct cfi_index_entry *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	/* If two entries start at the same address, the first one in the section wins. */
	return a->offset > b->offset ? -1 : a->offset < b->offset;
}

static void sort(struct cfi_index *index)
{
	struct cfi_index_entry *entries = index->entries.items;
	size_t count = index->entries.count;

	for (size_t i = 1; i < count; i++) {
		if (compare_entries(&entries[i - 1], &entries[i]) > 0) {
			qsort(entries, count, sizeof(*entries), compare_entries);
			return;
		}
	}
}

/*
 * Read the table in the form that every linker writes: pairs of 4-byte offsets from the header. False: another form, or
 * out of memory. A sparse file can have any number of meaningless pairs, so accept no more pairs than entries can
 * exist, and no repeated pair.
 */
static bool read_header(const struct cfi_section *section, struct cfi_index *index)
{
	struct bytes bytes = bytes_over(section->header, section->header_size);
	struct cfi_index_entry last = {0};
	uint64_t count;

	if (bytes_u8(&bytes) != HEADER_VERSION)
		return false;
	bytes_skip(&bytes, 1); /* encoding of the section's address */
	if (bytes_u8(&bytes) != DW_EH_PE_udata4 || bytes_u8(&bytes) != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		return false;
	bytes_skip(&bytes, 4);
	count = bytes_u32(&bytes);
	if (!bytes_ok(&bytes) || !count || count > bytes_left(&bytes) / 8 || section->size >= LIMIT_CFI_SECTION_BYTES ||
	    count > section->size / ENTRY_BYTES_MIN)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t start = section->header_address + (uint64_t)(int32_t)bytes_u32(&bytes);
		uint64_t place = section->header_address + (uint64_t)(int32_t)bytes_u32(&bytes);
		struct cfi_index_entry entry = {.start = start, .offset = (uint32_t)(place - section->address)};

		if (place - section->address >= section->size || (i && !compare_entries(&last, &entry)) ||
		    !vector_push(&index->entries, entry))
			return false;
		last = entry;
	}
	index->from_header = true;
	return true;
}

bool cfi_index_scan(const struct cfi_section *section, struct cfi_index *index)
{
	struct cfi_cies cies = {0};
	size_t offset;

	index->entries.count = 0;
	index->from_header = false;
	for (size_t position = 0; cfi_entries_next(section, &position, &offset);) {
		struct cfi_fde fde;

		if (cfi_entries_fde(section, &cies, offset, &fde) &&
		    !vector_push(&index->entries,
				 ((struct cfi_index_entry){.start = fde.start, .offset = (uint32_t)offset}))) {
			index->entries.count = 0; /* not sorted */
			return false;
		}
	}
	sort(index);
	return true;
}

bool cfi_index_create(const struct cfi_section *section, struct cfi_index *index)
{
	*index = (struct cfi_index){0};
	if (!section->header_size || !read_header(section, index))
		return cfi_index_scan(section, index);
	sort(index);
	return true;
}

void cfi_index_deinit(struct cfi_index *index)
{
	vector_deinit(&index->entries);
}

size_t cfi_index_up_to(const struct cfi_index *index, uint64_t address)
{
	return partition_point(index->entries.count, i, index->entries.items[i].start <= address);
}

/* The sections of an ELF file. */

/* Tables are loaded on demand; .debug_frame only if .eh_frame has no row. */
struct cfi_source {
	struct cfi_rows *rows; /* NULL: none */
	bool found;
};

struct cfi {
	Elf *elf;	/* NULL: not from a file */
	uint8_t *bytes; /* then a copy */
	struct cfi_source eh_frame, debug_frame;
};

struct mmt_error *cfi_create(Elf *elf, struct cfi **cfi_ret)
{
	struct cfi *cfi = calloc(1, sizeof(*cfi));

	if (!cfi)
		return &error_no_memory;
	cfi->elf = elf;
	*cfi_ret = cfi;
	return NULL;
}

struct mmt_error *cfi_create_from_memory(const uint8_t *bytes, size_t size, uint64_t address, struct cfi **cfi_ret)
{
	struct cfi_section section = {.size = size, .address = address, .ends_with_terminator = true};
	struct mmt_error *error;
	struct cfi *cfi = NULL;

	error = cfi_create(NULL, &cfi);
	if (error)
		return error;
	cfi->eh_frame.found = cfi->debug_frame.found = true;
	section.bytes = cfi->bytes = malloc(size ? size : 1);
	if (cfi->bytes && size)
		memcpy(cfi->bytes, bytes, size);
	error = cfi->bytes ? cfi_rows_create(&section, &cfi->eh_frame.rows) : &error_no_memory;
	if (error)
		cfi_destroy(cfi);
	else
		*cfi_ret = cfi;
	return error;
}

void cfi_destroy(struct cfi *cfi)
{
	if (!cfi)
		return;
	cfi_rows_destroy(cfi->eh_frame.rows);
	cfi_rows_destroy(cfi->debug_frame.rows);
	free(cfi->bytes);
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

/* The file's bytes from ELF address `address` to the end of that segment. */
static struct bytes segment_bytes(Elf *elf, uint64_t address)
{
	size_t count;
	GElf_Phdr header;

	if (elf_getphdrnum(elf, &count))
		return bytes_over(NULL, 0);
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &header); i++) {
		uint64_t offset = address - header.p_vaddr;

		if (header.p_type == PT_LOAD && address >= header.p_vaddr && offset < header.p_filesz)
			return file_bytes(elf, header.p_offset + offset, header.p_filesz - offset);
	}
	return bytes_over(NULL, 0);
}

/* .eh_frame_hdr, found as the running program finds it. */
static void find_header(Elf *elf, struct cfi_section *section)
{
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(elf, &count))
		return;
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &header); i++) {
		struct bytes bytes;

		if (header.p_type != PT_GNU_EH_FRAME)
			continue;
		bytes = file_bytes(elf, header.p_offset, header.p_filesz);
		section->header = bytes.position;
		section->header_size = bytes_left(&bytes);
		section->header_address = header.p_vaddr;
		return;
	}
}

/* Without section headers, .eh_frame_hdr points to .eh_frame. */
static void find_eh_frame_by_header(Elf *elf, struct cfi_section *section)
{
	struct cfi_section table = {.bytes = section->header, .address = section->header_address};
	struct bytes bytes = bytes_over(section->header, section->header_size), entries;
	uint8_t encoding;

	if (bytes_u8(&bytes) != 1)
		return;
	encoding = bytes_u8(&bytes);
	bytes_skip(&bytes, 2);
	section->address = cfi_entries_pointer(&table, &bytes, encoding);
	if (!bytes_ok(&bytes))
		return;
	entries = segment_bytes(elf, section->address);
	section->bytes = entries.position;
	section->size = bytes_left(&entries);
	section->ends_with_terminator = true;
}

static struct cfi_section find_eh_frame(Elf *elf)
{
	struct cfi_section section = {0};
	struct bytes bytes;
	GElf_Shdr header;

	find_header(elf, &section);
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

/* Whether a section claims a plausible decompressed size. */
static bool is_plausible_size(uint64_t compressed, uint64_t size)
{
	return size < LIMIT_CFI_SECTION_BYTES && size / LIMIT_INFLATION <= compressed;
}

static struct cfi_section find_debug_frame(Elf *elf)
{
	struct cfi_section section = {.is_debug_frame = true};
	GElf_Shdr header;
	Elf_Scn *found = find_section(elf, ".debug_frame", &header);
	Elf_Data *data;

	if (found && header.sh_flags & SHF_COMPRESSED) {
		GElf_Chdr compression;

		if (!gelf_getchdr(found, &compression) || !is_plausible_size(header.sh_size, compression.ch_size) ||
		    elf_compress(found, 0, 0) < 0)
			return section;
	} else if (!found && (found = find_section(elf, ".zdebug_frame", &header))) {
		struct bytes bytes = file_bytes(elf, header.sh_offset, header.sh_size);
		uint64_t size;

		bytes_skip(&bytes, strlen("ZLIB"));
		size = __builtin_bswap64(bytes_u64(&bytes));
		if (!bytes_ok(&bytes) || !is_plausible_size(header.sh_size, size) || elf_compress_gnu(found, 0, 0) < 0)
			return section;
	}
	data = found ? elf_rawdata(found, NULL) : NULL;
	if (data && data->d_buf) {
		section.bytes = data->d_buf;
		section.size = data->d_size;
	}
	return section;
}

static struct cfi_section find_table(struct cfi *cfi, const struct cfi_source *source)
{
	const char *identification = elf_getident(cfi->elf, NULL);

	if (!identification || identification[EI_CLASS] != ELFCLASS64 || identification[EI_DATA] != ELFDATA2LSB)
		return (struct cfi_section){0};
	return source == &cfi->eh_frame ? find_eh_frame(cfi->elf) : find_debug_frame(cfi->elf);
}

static struct cfi_rows *rows_of(struct cfi *cfi, struct cfi_source *source)
{
	if (!source->found) {
		struct cfi_section section = find_table(cfi, source);

		source->found = true;
		if (section.size)
			mmt_error_destroy(cfi_rows_create(&section, &source->rows));
	}
	return source->rows;
}

struct cfi_rows *cfi_eh_frame(struct cfi *cfi)
{
	return rows_of(cfi, &cfi->eh_frame);
}

struct cfi_rows *cfi_debug_frame(struct cfi *cfi)
{
	return rows_of(cfi, &cfi->debug_frame);
}

const struct cfi_row *cfi_find(struct cfi *cfi, uint64_t address)
{
	struct cfi_rows *rows = cfi_eh_frame(cfi);
	const struct cfi_row *row = rows ? cfi_rows_find(rows, address) : NULL;

	if (row)
		return row;
	rows = cfi_debug_frame(cfi);
	return rows ? cfi_rows_find(rows, address) : NULL;
}

bool cfi_function_range(struct cfi *cfi, uint64_t address, uint64_t *end_ret)
{
	struct cfi_rows *tables[] = {cfi_eh_frame(cfi), cfi_debug_frame(cfi)};

	*end_ret = UINT64_MAX;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		uint64_t end;
		bool begins = tables[i] && cfi_rows_function_range(tables[i], address, &end);

		if (tables[i] && end < *end_ret)
			*end_ret = end;
		if (begins)
			return true;
	}
	return false;
}
