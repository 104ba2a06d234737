// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/names/debug-files.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/compression.h"
#include "base/cleanup.h"
#include "base/limits.h"

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

/* Relative to the compilation directory of the unit. */
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

#define DEBUG_DIRECTORY "/usr/lib/debug"

/* The path exists, but is neither a regular file nor a directory. */
static bool debug_place_blocks(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* Out of memory: do not open anything either. */
__attribute__((format(printf, 1, 2))) static bool place_blocks(const char *format, ...)
{
	CLEANUP(free) char *path = NULL;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(&path, format, arguments);
	va_end(arguments);
	if (length < 0) {
		path = NULL;
		return true;
	}
	return debug_place_blocks(path);
}

/* Try each suffix of the program's path below the common directory. */
static bool name_blocks(const char *directory, const char *name)
{
	if (place_blocks("%s/%s", directory, name) || place_blocks("%s/.debug/%s", directory, name))
		return true;
	for (const char *end = directory; end; end = strchr(end + (*end == '/'), '/')) {
		if (place_blocks(DEBUG_DIRECTORY "/%s/%s", end, name))
			return true;
	}
	return place_blocks(DEBUG_DIRECTORY "/%s", name);
}

static bool module_blocks(const char *module, const char *link)
{
	const char *slash = strrchr(module, '/');
	CLEANUP(free) char *directory = slash ? strndup(module, (size_t)(slash - module)) : NULL;
	CLEANUP(free) char *made = NULL;

	if (!directory || asprintf(&made, "%s.debug", slash + 1) < 0) {
		made = NULL;
		return true;
	}
	return name_blocks(directory, link ? link : made) || (!link && name_blocks(directory, slash + 1));
}

bool debug_places_block(const char *module, const char *link)
{
	CLEANUP(free) char *resolved = realpath(module, NULL);

	return module_blocks(module, link) ||
	       (resolved && strcmp(resolved, module) != 0 && module_blocks(resolved, link));
}

#define ID_PATH_BYTES (sizeof(DEBUG_DIRECTORY "/.build-id//.debug") + 2 * LIMIT_BUILD_ID_BYTES)

/* False: no such build-id. */
static bool write_id_path(const uint8_t *build_id, size_t size, char path[ID_PATH_BYTES])
{
	char hex[2 * LIMIT_BUILD_ID_BYTES + 1] = "";

	if (size < 2 || size > LIMIT_BUILD_ID_BYTES)
		return false;
	for (size_t i = 0; i < size; i++)
		snprintf(&hex[2 * i], 3, "%02x", build_id[i]);
	snprintf(path, ID_PATH_BYTES, DEBUG_DIRECTORY "/.build-id/%.2s/%s.debug", hex, hex + 2);
	return true;
}

bool debug_place_of_id_blocks(const uint8_t *build_id, size_t size)
{
	char path[ID_PATH_BYTES];

	return write_id_path(build_id, size, path) && debug_place_blocks(path);
}

static bool has_id(int fd, const void *build_id, size_t size)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	const void *found;
	bool same = elf && dwelf_elf_gnu_build_id(elf, &found) == (ssize_t)size && !memcmp(found, build_id, size);

	elf_end(elf);
	return same;
}

/* Do not ask libdwfl's dwfl_build_id_find_debuginfo(): called by others than libdwfl, it leaves a module that closes
 * descriptor 0. */
int debug_open_by_id(Elf *module, char **path_ret)
{
	const void *build_id = NULL;
	ssize_t size = dwelf_elf_gnu_build_id(module, &build_id);
	char path[ID_PATH_BYTES];
	int fd;

	if (size <= 0 || !write_id_path(build_id, (size_t)size, path) || debug_place_blocks(path))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && has_id(fd, build_id, (size_t)size) && (*path_ret = realpath(path, NULL)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Resolve the path as the library does, from the real path of the file. */
static bool beside_blocks(const char *file, const char *directory, const char *name)
{
	const char *slash = strrchr(file, '/');
	int length = slash ? (int)(slash - file) : 0;

	if (!slash)
		return false;
	return place_blocks("%.*s/%s", length, file, name) ||
	       (directory && place_blocks("%.*s/%s/%s", length, file, directory, name));
}

bool debug_place_of_parts_blocks(const char *file)
{
	CLEANUP(free) char *resolved = realpath(file, NULL);

	return place_blocks("%s.dwp", resolved ? resolved : file);
}

bool debug_places_of_part_block(const char *file, const char *directory, const char *name)
{
	CLEANUP(free) char *resolved = realpath(file, NULL);

	if (*name == '/')
		return debug_place_blocks(name);
	if (directory && *directory == '/' && place_blocks("%s/%s", directory, name))
		return true;
	return beside_blocks(resolved ? resolved : file, directory, name);
}

#define FREE_PART 2 /* use at most this fraction of the free disk space */
#define PIECE_BYTES (1u << 18)
#define ALIGNMENT 16

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OWN_ORDER ELFDATA2LSB
#else
#define OWN_ORDER ELFDATA2MSB
#endif

struct expansion {
	int from, to;
	uint64_t written; /* bytes of `to` */
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	Elf64_Shdr *sections;
	char *names; /* of sections; the last byte is NUL */
	size_t names_size;
	uint8_t *input, *output; /* PIECE_BYTES each */
};

static bool read_at(int fd, void *data, size_t size, uint64_t offset)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = pread(fd, (char *)data + done, size - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

static bool append(struct expansion *expansion, const void *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t written =
		    pwrite(expansion->to, (const char *)data + done, size - done, (off_t)(expansion->written + done));

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		done += (size_t)written;
	}
	expansion->written += size;
	return true;
}

/* ---- the compressed file ---- */

static bool is_usual(const Elf64_Ehdr *header)
{
	return !memcmp(header->e_ident, ELFMAG, SELFMAG) && header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_ident[EI_DATA] == OWN_ORDER && (header->e_type == ET_EXEC || header->e_type == ET_DYN) &&
	       header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shnum > 0 &&
	       header->e_shstrndx < header->e_shnum &&
	       (!header->e_phnum || (header->e_phentsize == sizeof(Elf64_Phdr) && header->e_phnum != PN_XNUM));
}

static bool read_headers(struct expansion *expansion)
{
	Elf64_Ehdr *header = &expansion->header;
	const Elf64_Shdr *names;

	if (!read_at(expansion->from, header, sizeof(*header), 0) || !is_usual(header))
		return false;
	expansion->sections = calloc(header->e_shnum, sizeof(*expansion->sections));
	expansion->segments = calloc(header->e_phnum + 1u, sizeof(*expansion->segments));
	if (!expansion->sections || !expansion->segments ||
	    !read_at(expansion->from, expansion->sections, header->e_shnum * sizeof(*expansion->sections),
		     header->e_shoff) ||
	    !read_at(expansion->from, expansion->segments, header->e_phnum * sizeof(*expansion->segments),
		     header->e_phoff))
		return false;
	names = &expansion->sections[header->e_shstrndx];
	if (names->sh_type != SHT_STRTAB || names->sh_flags & SHF_COMPRESSED ||
	    names->sh_size > LIMIT_SECTION_NAMES_BYTES)
		return false;
	expansion->names_size = names->sh_size;
	expansion->names = calloc(names->sh_size + 1, 1);
	return expansion->names && read_at(expansion->from, expansion->names, names->sh_size, names->sh_offset);
}

static const char *section_name(const struct expansion *expansion, const Elf64_Shdr *section)
{
	return section->sh_name < expansion->names_size ? expansion->names + section->sh_name : "";
}

#define COMPRESSED_ZSTD 2 /* ELFCOMPRESS_ZSTD, which older headers lack */

bool debug_is_zstd(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Chdr compression;

	while ((section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, &header) && header.sh_flags & SHF_COMPRESSED &&
		    gelf_getchdr(section, &compression) && compression.ch_type == COMPRESSED_ZSTD)
			return true;
	}
	return false;
}

static bool is_compressed(const Elf64_Shdr *section)
{
	return section->sh_type != SHT_NOBITS && section->sh_flags & SHF_COMPRESSED;
}

static bool read_compression(const struct expansion *expansion, const Elf64_Shdr *section, Elf64_Chdr *compression)
{
	return section->sh_size > sizeof(*compression) &&
	       read_at(expansion->from, compression, sizeof(*compression), section->sh_offset) &&
	       (compression->ch_type == ELFCOMPRESS_ZLIB || compression->ch_type == COMPRESSED_ZSTD) &&
	       compression->ch_size / LIMIT_INFLATION <= section->sh_size;
}

/* Sections with functions and lines. */
static bool has_names(const char *section)
{
	static const char *const known[] = {".debug_info",	  ".debug_types",    ".debug_abbrev", ".debug_line",
					    ".debug_str",	  ".debug_line_str", ".debug_ranges", ".debug_rnglists",
					    ".debug_str_offsets", ".debug_addr"};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (!strcmp(section, known[i]))
			return true;
	}
	return false;
}

/* The copy has only the headers of other sections. */
static bool is_kept(const struct expansion *expansion, const Elf64_Shdr *section)
{
	return section->sh_type != SHT_NULL && section->sh_type != SHT_NOBITS &&
	       (section == &expansion->sections[expansion->header.e_shstrndx] ||
		has_names(section_name(expansion, section)));
}

/* Size of the section in the copy, and how much of that is compressed; false: too large, or unreadable. */
static bool measure_section(const struct expansion *expansion, const Elf64_Shdr *section, uint64_t *bytes,
			    uint64_t *expanded, bool *zstd)
{
	Elf64_Chdr compression = {.ch_size = section->sh_size};

	if (!is_kept(expansion, section))
		return true;
	if (is_compressed(section)) {
		if (!read_compression(expansion, section, &compression) || compression.ch_size > LIMIT_EXPANDED_BYTES)
			return false;
		*expanded += compression.ch_size;
		*zstd |= compression.ch_type == COMPRESSED_ZSTD;
	}
	if (compression.ch_size > LIMIT_EXPANDED_BYTES)
		return false;
	*bytes += compression.ch_size + ALIGNMENT;
	return *bytes <= LIMIT_EXPANDED_BYTES;
}

/*
 * The library finds other files with parts of the debug information by the path of the file, which the expanded copy
 * does not have. Do not expand files with a supplementary file or with split units. Split units need .debug_addr.
 * clang's DWARF 5 has that section without split units too, but only the compressed units would show that. With zstd,
 * nothing else can read the file.
 */
static bool is_worthwhile(const struct expansion *expansion, uint64_t minimum, uint64_t *bytes_ret)
{
	bool zstd = false, has_addresses = false;
	uint64_t bytes = 0, expanded = 0;

	for (size_t i = 0; i < expansion->header.e_shnum; i++) {
		const Elf64_Shdr *section = &expansion->sections[i];
		const char *name = section_name(expansion, section);

		if (!strcmp(name, ".gnu_debugaltlink") || !strcmp(name, ".debug_sup"))
			return false;
		has_addresses |= !strcmp(name, ".debug_addr");
		if (!measure_section(expansion, section, &bytes, &expanded, &zstd))
			return false;
	}
	*bytes_ret = bytes;
	return zstd || (!has_addresses && expanded && expanded >= minimum);
}

/* ---- the expanded copy ---- */

static bool copy_section(struct expansion *expansion, const Elf64_Shdr *section)
{
	uint64_t offset = section->sh_offset, left = section->sh_size;

	while (left) {
		size_t size = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

		if (!read_at(expansion->from, expansion->input, size, offset) ||
		    !append(expansion, expansion->input, size))
			return false;
		offset += size;
		left -= size;
	}
	return true;
}

/* The data must expand to exactly `size` bytes. */
static bool inflate_section(struct expansion *expansion, struct inflater *inflater, const Elf64_Shdr *section,
			    uint64_t size)
{
	uint64_t offset = section->sh_offset + sizeof(Elf64_Chdr), left = section->sh_size - sizeof(Elf64_Chdr);
	bool end = false;

	while (!end) {
		unsigned piece = left < PIECE_BYTES ? (unsigned)left : PIECE_BYTES;
		size_t made;

		if (inflater_is_hungry(inflater) && left) {
			if (!read_at(expansion->from, expansion->input, piece, offset))
				return false;
			inflater_feed(inflater, expansion->input, piece);
			offset += piece;
			left -= piece;
		}
		if (!inflater_next(inflater, expansion->output, PIECE_BYTES, &made, &end) || made > size ||
		    !append(expansion, expansion->output, made))
			return false;
		size -= made;
	}
	return !size;
}

static bool expand_section(struct expansion *expansion, Elf64_Shdr *section)
{
	Elf64_Chdr compression;
	struct inflater *inflater;
	bool done;

	if (!read_compression(expansion, section, &compression))
		return false;
	inflater = inflater_create(compression.ch_type == COMPRESSED_ZSTD);
	done = inflater && inflate_section(expansion, inflater, section, compression.ch_size);
	inflater_destroy(inflater);
	section->sh_size = compression.ch_size;
	section->sh_addralign = compression.ch_addralign;
	section->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
	return done;
}

static bool align(struct expansion *expansion)
{
	static const uint8_t zeros[ALIGNMENT];

	return append(expansion, zeros, -expansion->written % ALIGNMENT);
}

static bool put_section(struct expansion *expansion, Elf64_Shdr *section)
{
	uint64_t place;
	bool done;

	if (!is_kept(expansion, section)) {
		if (section->sh_type != SHT_NULL)
			section->sh_type = SHT_NOBITS;
		section->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
		return true;
	}
	if (!align(expansion))
		return false;
	place = expansion->written;
	done = is_compressed(section) ? expand_section(expansion, section) : copy_section(expansion, section);
	section->sh_offset = place;
	return done;
}

static bool write_expanded(struct expansion *expansion)
{
	Elf64_Ehdr *header = &expansion->header;
	size_t segments = header->e_phnum * sizeof(*expansion->segments);

	if (!append(expansion, header, sizeof(*header)) || !append(expansion, expansion->segments, segments))
		return false;
	for (size_t i = 0; i < header->e_shnum; i++) {
		if (!put_section(expansion, &expansion->sections[i]))
			return false;
	}
	if (!align(expansion))
		return false;
	header->e_phoff = segments ? sizeof(*header) : 0;
	header->e_shoff = expansion->written;
	if (!append(expansion, expansion->sections, header->e_shnum * sizeof(*expansion->sections)))
		return false;
	expansion->written = 0;
	return append(expansion, header, sizeof(*header));
}

static int create_file(void)
{
	const char *directory = getenv("TMPDIR");
	CLEANUP(free) char *path = NULL;
	int fd;

	if (!directory || *directory != '/')
		directory = "/var/tmp";
	fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	/* Not every file system supports O_TMPFILE. */
	if (asprintf(&path, "%s/mmtrace-XXXXXX", directory) < 0) {
		path = NULL;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		(void)unlink(path);
	return fd;
}

/* Leave free disk space for others. */
static bool has_room(int fd, uint64_t bytes)
{
	struct statvfs disk;

	return !fstatvfs(fd, &disk) && bytes / disk.f_frsize < disk.f_bavail / FREE_PART;
}

static void expansion_deinit(struct expansion *expansion)
{
	free(expansion->segments);
	free(expansion->sections);
	free(expansion->names);
	free(expansion->input);
	free(expansion->output);
}

int expanded_debug_create(int fd, uint64_t minimum)
{
	struct expansion expansion = {.from = fd, .to = -1};
	uint64_t bytes = 0;

	if (read_headers(&expansion) && is_worthwhile(&expansion, minimum, &bytes))
		expansion.to = create_file();
	if (expansion.to >= 0) {
		expansion.input = malloc(PIECE_BYTES);
		expansion.output = malloc(PIECE_BYTES);
		if (!expansion.input || !expansion.output || !has_room(expansion.to, bytes) ||
		    !write_expanded(&expansion)) {
			close(expansion.to);
			expansion.to = -1;
		}
	}
	expansion_deinit(&expansion);
	return expansion.to;
}

/* ---- reading the copy ---- */

struct debug_image {
	void *bytes;
	size_t size;
	Elf *elf;
	Dwarf *dwarf;
};

struct debug_image *debug_image_open(int fd)
{
	struct debug_image *image = calloc(1, sizeof(*image));
	struct stat status;

	if (!image || fstat(fd, &status) || status.st_size <= 0) {
		free(image);
		return NULL;
	}
	image->size = (size_t)status.st_size;
	image->bytes = mmap(NULL, image->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image->bytes == MAP_FAILED) {
		free(image);
		return NULL;
	}
	(void)elf_version(EV_CURRENT);
	image->elf = elf_memory(image->bytes, image->size);
	image->dwarf = dwarf_begin_elf(image->elf, DWARF_C_READ, NULL);
	if (image->dwarf)
		return image;
	debug_image_close(image);
	return NULL;
}

void debug_image_close(struct debug_image *image)
{
	if (!image)
		return;
	(void)dwarf_end(image->dwarf);
	(void)elf_end(image->elf);
	(void)munmap(image->bytes, image->size);
	free(image);
}

Dwarf *debug_image_dwarf(const struct debug_image *image)
{
	return image->dwarf;
}

bool debug_image_address(const struct debug_image *image, uint64_t *address_ret)
{
	GElf_Phdr segment;
	size_t count;

	if (elf_getphdrnum(image->elf, &count))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (gelf_getphdr(image->elf, (int)i, &segment) && segment.p_type == PT_LOAD) {
			*address_ret = segment.p_vaddr;
			return true;
		}
	}
	return false;
}

void debug_image_release(const struct debug_image *image)
{
	(void)madvise(image->bytes, image->size, MADV_DONTNEED);
}
