// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/elf/elf-file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/bytes.h"
#include "base/cleanup.h"

#define VDSO_MAX (64u << 10)
#define SEGMENTS_MAX 4096
#define PAGE_MASK 4095ULL /* the smallest page size; mappings begin and end on page boundaries */

static const char deleted_suffix[] = " (deleted)";

/* Open a regular file. Returns a descriptor or -1. Never blocks on a FIFO and never opens a device. */
static int open_regular(const char *path, struct stat *status_ret, enum program_state *state_ret)
{
	int fd;

	*state_ret = PROGRAM_MISSING;
	if (stat(path, status_ret))
		return -1;
	if (!S_ISREG(status_ret->st_mode)) {
		*state_ret = PROGRAM_NOT_ELF;
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (fstat(fd, status_ret) || !S_ISREG(status_ret->st_mode)) {
		close(fd);
		*state_ret = PROGRAM_NOT_ELF;
		return -1;
	}
	return fd;
}

/* Recorders that always store 20 bytes pad a shorter build-id with zeros. */
static bool equal_build_ids(const uint8_t *found, size_t found_size, const uint8_t *recorded, size_t recorded_size)
{
	if (!found_size || found_size > recorded_size || memcmp(found, recorded, found_size))
		return false;
	for (size_t i = found_size; i < recorded_size; i++) {
		if (recorded[i])
			return false;
	}
	return true;
}

static bool read_segments(struct elf_file *file)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count))
		return true;
	for (size_t i = 0; i < count && i < SEGMENTS_MAX; i++) {
		GElf_Phdr header;
		struct elf_segment segment;

		if (!gelf_getphdr(file->elf, (int)i, &header))
			continue;
		file->has_interpreter |= header.p_type == PT_INTERP;
		if (header.p_type != PT_LOAD)
			continue;
		if (header.p_vaddr + header.p_filesz < header.p_vaddr ||
		    header.p_offset + header.p_filesz < header.p_offset)
			continue;
		segment = (struct elf_segment){.file_offset = header.p_offset,
					       .file_size = header.p_filesz,
					       .address = header.p_vaddr,
					       .executable = header.p_flags & PF_X};
		if (!vector_push(&file->segments, segment))
			return false;
	}
	return true;
}

/* The Go linker always writes a table of functions in sections of its own, even in stripped programs. */
static bool is_made_by_go(Elf *elf)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (gelf_getshdr(section, &header) && (name = elf_strptr(elf, names, header.sh_name)) &&
		    strstr(name, ".gopclntab"))
			return true;
	}
	return false;
}

static size_t find_note_build_id(Elf *elf, const GElf_Phdr *header, const void **id_ret)
{
	Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)header->p_offset, header->p_filesz,
					      header->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	size_t position = 0, name, description;
	GElf_Nhdr note;

	while (data && (position = gelf_getnote(data, position, &note, &name, &description))) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp((const char *)data->d_buf + name, "GNU", sizeof("GNU")))
			continue;
		*id_ret = (const char *)data->d_buf + description;
		return note.n_descsz;
	}
	return 0;
}

/* Find the build-id by the sections, as the library does, or else where the running program has it: the sections may be
 * damaged. */
static size_t find_build_id(Elf *elf, const void **id_ret)
{
	ssize_t size = dwelf_elf_gnu_build_id(elf, id_ret);
	GElf_Phdr header;
	size_t count;

	if (size > 0)
		return (size_t)size;
	if (elf_getphdrnum(elf, &count))
		return 0;
	for (size_t i = 0; i < count && i < SEGMENTS_MAX && gelf_getphdr(elf, (int)i, &header); i++) {
		size_t found = header.p_type == PT_NOTE ? find_note_build_id(elf, &header, id_ret) : 0;

		if (found)
			return found;
	}
	return 0;
}

static enum program_state check_elf(Elf *elf, uint16_t machine, const uint8_t *build_id, size_t build_id_size)
{
	const void *found = NULL;
	GElf_Ehdr header;
	size_t found_size;
	GElf_Phdr first;
	size_t count;

	if (elf_kind(elf) != ELF_K_ELF)
		return PROGRAM_NOT_ELF;
	if (!gelf_getehdr(elf, &header) || elf_getphdrnum(elf, &count) || !count || !gelf_getphdr(elf, 0, &first))
		return PROGRAM_BROKEN;
	if (header.e_machine != machine)
		return PROGRAM_OTHER_BUILD;
	if (!build_id || !build_id_size)
		return PROGRAM_READABLE;
	found_size = find_build_id(elf, &found);
	if (!equal_build_ids(found, found_size, build_id, build_id_size))
		return PROGRAM_OTHER_BUILD;
	return PROGRAM_READABLE;
}

/* Takes ownership of `elf`, which may be NULL. */
static struct mmt_error *accept_elf(struct elf_file *file, Elf *elf, uint16_t machine, const uint8_t *build_id,
				    size_t build_id_size)
{
	GElf_Ehdr header;

	file->state = elf ? check_elf(elf, machine, build_id, build_id_size) : PROGRAM_BROKEN;
	if (file->state != PROGRAM_READABLE) {
		elf_end(elf);
		return NULL;
	}
	file->elf = elf;
	file->is_go = is_made_by_go(elf);
	if (gelf_getehdr(elf, &header))
		file->entry = header.e_entry;
	return read_segments(file) ? NULL : &error_no_memory;
}

/* This process has the vdso of the running kernel mapped. Its size is that of its headers and sections. */
static struct mmt_error *open_vdso(uint16_t machine, const uint8_t *build_id, size_t build_id_size,
				   struct elf_file *file)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);

	file->state = PROGRAM_MISSING;
	if (!header || header->e_ident[EI_CLASS] != ELFCLASS64)
		return NULL;
	file->image_size = (size_t)header->e_shoff + (size_t)header->e_shentsize * header->e_shnum;
	if (file->image_size > VDSO_MAX || file->image_size < sizeof(*header))
		return NULL;
	file->image = malloc(file->image_size);
	if (!file->image)
		return &error_no_memory;
	memcpy(file->image, header, file->image_size);
	return accept_elf(file, elf_memory(file->image, file->image_size), machine, build_id, build_id_size);
}

static struct mmt_error *open_path(const char *path, uint16_t machine, const uint8_t *build_id, size_t build_id_size,
				   struct elf_file *file)
{
	CLEANUP(close) int fd = open_regular(path, &file->identity, &file->state);
	Elf *elf;

	if (fd < 0)
		return NULL;
	elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	/* Map the file so that no descriptor is needed: a report may use thousands of files. */
	if (elf && elf_cntl(elf, ELF_C_FDREAD)) {
		elf_end(elf);
		elf = NULL;
	}
	return accept_elf(file, elf, machine, build_id, build_id_size);
}

struct mmt_error *elf_file_open(const char *path, uint16_t machine, const uint8_t *build_id, size_t build_id_size,
				struct elf_file *file)
{
	size_t length = strlen(path), suffix = sizeof(deleted_suffix) - 1;
	CLEANUP(free) char *remaining = NULL;

	*file = (struct elf_file){.state = PROGRAM_NOT_ELF};
	if (elf_version(EV_CURRENT) == EV_NONE)
		return error_create(MMT_ERROR_UNSUPPORTED, "libelf is older than the header it was built with");
	if (!strcmp(path, "[vdso]"))
		return open_vdso(machine, build_id, build_id_size, file);
	/* Names of memory that is not backed by a file on disk: [heap], //anon, memfds. */
	if (path[0] != '/' || path[1] == '/' || !strncmp(path, "/memfd:", 7) || !strncmp(path, "/SYSV", 5))
		return NULL;
	if (length <= suffix || strcmp(path + length - suffix, deleted_suffix))
		return open_path(path, machine, build_id, build_id_size, file);
	/* Another file may have the name now: use it only if it is the same build. */
	file->state = PROGRAM_MISSING;
	if (!build_id || !build_id_size)
		return NULL;
	remaining = strndup(path, length - suffix);
	if (!remaining)
		return &error_no_memory;
	return open_path(remaining, machine, build_id, build_id_size, file);
}

struct mmt_error *elf_file_open_content(void *content, size_t size, uint16_t machine, const uint8_t *build_id,
					size_t build_id_size, struct elf_file *file)
{
	*file = (struct elf_file){.state = PROGRAM_BROKEN, .image = content, .image_size = size};
	if (elf_version(EV_CURRENT) == EV_NONE)
		return error_create(MMT_ERROR_UNSUPPORTED, "libelf is older than the header it was built with");
	return accept_elf(file, elf_memory(content, size), machine, build_id, build_id_size);
}

void elf_file_close(struct elf_file *file)
{
	elf_end(file->elf);
	free(file->image);
	vector_deinit(&file->segments);
	*file = (struct elf_file){.state = PROGRAM_MISSING};
}

size_t elf_file_build_id(const struct elf_file *file, uint8_t id_ret[20])
{
	const void *id;
	size_t size = file->elf ? find_build_id(file->elf, &id) : 0;

	if (!size || size > 20)
		return 0;
	memcpy(id_ret, id, size);
	return size;
}

int elf_file_reopen(const struct elf_file *file, const char *path)
{
	size_t length = strlen(path), suffix = sizeof(deleted_suffix) - 1;
	CLEANUP(free) char *remaining = NULL;
	enum program_state state;
	struct stat status;
	int fd;

	if (length > suffix && !strcmp(path + length - suffix, deleted_suffix)) {
		remaining = strndup(path, length - suffix);
		if (!remaining)
			return -1;
		path = remaining;
	}
	fd = open_regular(path, &status, &state);
	if (fd >= 0 &&
	    (status.st_dev != file->identity.st_dev || status.st_ino != file->identity.st_ino ||
	     status.st_size != file->identity.st_size || status.st_mtim.tv_sec != file->identity.st_mtim.tv_sec ||
	     status.st_mtim.tv_nsec != file->identity.st_mtim.tv_nsec)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* How well a segment matches: 0 not at all, 1 only after rounding to pages, 3 by its bytes; plus 1 if executable. */
static int rank_segment(const struct elf_segment *segment, uint64_t file_offset)
{
	uint64_t rounded = segment->file_offset & ~PAGE_MASK;
	uint64_t size = segment->file_offset - rounded + segment->file_size;

	if (file_offset >= segment->file_offset && file_offset - segment->file_offset < segment->file_size)
		return 3 + segment->executable;
	if (file_offset >= rounded && file_offset - rounded < ((size + PAGE_MASK) & ~PAGE_MASK))
		return 1 + segment->executable;
	return 0;
}

bool elf_file_address(const struct elf_file *file, uint64_t file_offset, uint64_t *address_ret)
{
	int best = 0;

	for (size_t i = 0; i < file->segments.count; i++) {
		const struct elf_segment *segment = &file->segments.items[i];
		int rank = rank_segment(segment, file_offset);

		if (rank > best) {
			best = rank;
			*address_ret = segment->address + (file_offset - segment->file_offset);
		}
	}
	return best > 0;
}

/* The code of the segment that contains `address`, or ends there, as far as the file has it; *offset_ret: offset of the
 * address. */
static struct bytes find_code(const struct elf_file *file, uint64_t address, bool may_end_it, uint64_t *offset_ret)
{
	size_t raw_size;
	const char *raw = file->elf ? elf_rawfile(file->elf, &raw_size) : NULL;

	for (size_t i = 0; raw && i < file->segments.count; i++) {
		const struct elf_segment *segment = &file->segments.items[i];
		uint64_t offset = address - segment->address;
		struct bytes bytes = bytes_over(raw, raw_size);

		if (!segment->executable || offset >= segment->file_size + may_end_it || offset < may_end_it)
			continue;
		bytes_skip(&bytes, (size_t)segment->file_offset);
		*offset_ret = offset;
		return bytes_sub(&bytes,
				 segment->file_size < bytes_left(&bytes) ? segment->file_size : bytes_left(&bytes));
	}
	return bytes_over(NULL, 0);
}

size_t elf_file_code_at(const struct elf_file *file, uint64_t address, size_t size, const uint8_t **code_ret)
{
	uint64_t offset = 0;
	struct bytes code = find_code(file, address, false, &offset);

	bytes_skip(&code, (size_t)offset);
	size = size < bytes_left(&code) ? size : bytes_left(&code);
	*code_ret = bytes_take(&code, size);
	return *code_ret ? size : 0;
}

size_t elf_file_code_before(const struct elf_file *file, uint64_t address, size_t size, const uint8_t **code_ret)
{
	uint64_t offset = 0;
	struct bytes code = find_code(file, address, true, &offset);

	size = offset < size ? (size_t)offset : size;
	bytes_skip(&code, (size_t)offset - size);
	*code_ret = bytes_take(&code, size);
	return *code_ret ? size : 0;
}
