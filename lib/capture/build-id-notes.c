// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/build-id-notes.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "capture/perf-maps.h"
#include "capture/proc.h"
#include "capture/regular-file.h"
#include "trace/format.h"

#define HEAD_BYTES 4096 /* where program headers are looked for */
#define NOTE_BYTES_MAX 65536
#define PROGRAM_HEADERS_MAX 512
#define PROGRAM_HEADER_BYTES 56

void build_id_notes_deinit(struct build_id_notes *notes)
{
	intern_deinit(&notes->seen);
	for (size_t i = 0; i < notes->wanted.count; i++)
		free(notes->wanted.items[i].path);
	vector_deinit(&notes->wanted);
	build_ids_deinit(&notes->found);
}

static bool may_be_program(const char *path)
{
	return !strcmp(path, "[vdso]") || (path[0] == '/' && path[1] != '/' && strncmp(path, "/memfd:", 7) &&
					   strncmp(path, "/dev/zero", 9) && strncmp(path, "/SYSV", 5));
}

struct mmt_error *build_id_notes_want(struct build_id_notes *notes, const struct build_id_mapping *mapping)
{
	struct {
		uint32_t device_major, device_minor;
		uint64_t inode;
		char path[LIMIT_PATH_BYTES + 1];
	} key = {mapping->device_major, mapping->device_minor, mapping->inode, ""};
	size_t known = notes->seen.count;
	size_t path_size = strlen(mapping->path) + 1;
	struct wanted_build_id wanted = {.pid = mapping->pid,
					 .start = mapping->start,
					 .end = mapping->end,
					 .device_major = mapping->device_major,
					 .device_minor = mapping->device_minor,
					 .inode = mapping->inode};

	if (path_size > sizeof(key.path) || !may_be_program(mapping->path))
		return NULL;
	memcpy(key.path, mapping->path, path_size);
	if (intern_put(&notes->seen, &key, sizeof(key) - sizeof(key.path) + path_size) == INTERN_NONE)
		return &error_no_memory;
	if (notes->seen.count == known)
		return NULL;
	wanted.path = strdup(mapping->path);
	if (wanted.path && vector_push(&notes->wanted, wanted))
		return NULL;
	free(wanted.path);
	return &error_no_memory;
}

/* A segment of notes, one after the other. */
static bool find_note(struct bytes notes, struct build_id_entry *entry)
{
	while (bytes_left(&notes) >= 12 && bytes_ok(&notes)) {
		uint32_t name_size = bytes_u32(&notes);
		uint32_t content_size = bytes_u32(&notes);
		uint32_t type = bytes_u32(&notes);
		const char *name = bytes_take(&notes, name_size);
		const uint8_t *content;

		bytes_align(&notes, 4);
		content = bytes_take(&notes, content_size);
		bytes_align(&notes, 4);
		if (!name || !content || type != NT_GNU_BUILD_ID || name_size != 4 || memcmp(name, "GNU", 4) ||
		    content_size == 0 || content_size > sizeof(entry->bytes))
			continue;
		memcpy(entry->bytes, content, content_size);
		entry->size = (uint8_t)content_size;
		return true;
	}
	return false;
}

/* Where bytes of the file come from: memory, or a descriptor. */
struct source {
	const uint8_t *data;
	size_t size;
	int fd; /* -1: memory only */
};

static bool find_in_segment(const struct source *source, uint64_t offset, uint64_t size, struct build_id_entry *entry)
{
	uint8_t notes[4096];
	CLEANUP(free) uint8_t *larger = NULL;
	uint8_t *buffer = notes;
	ssize_t count;

	if (size > NOTE_BYTES_MAX || offset > INT64_MAX)
		return false;
	if (offset <= source->size && size <= source->size - offset)
		return find_note(bytes_over(source->data + offset, size), entry);
	if (source->fd < 0)
		return false;
	if (size > sizeof(notes))
		buffer = larger = malloc(size);
	count = buffer ? pread(source->fd, buffer, size, (off_t)offset) : -1;
	return count > 0 && find_note(bytes_over(buffer, (size_t)count), entry);
}

static bool find_build_id(const struct source *source, struct build_id_entry *entry)
{
	struct bytes header = bytes_over(source->data, source->size);
	struct bytes programs = header;
	const unsigned char *identification = bytes_take(&header, EI_NIDENT);
	uint64_t program_offset;
	uint16_t entry_bytes, count;

	if (!identification || memcmp(identification, ELFMAG, SELFMAG) || identification[EI_CLASS] != ELFCLASS64 ||
	    identification[EI_DATA] != ELFDATA2LSB)
		return false;
	bytes_skip(&header, 16); /* type, machine, version, entry */
	program_offset = bytes_u64(&header);
	bytes_skip(&header, 14); /* section headers, flags, header size */
	entry_bytes = bytes_u16(&header);
	count = bytes_u16(&header);
	if (!bytes_ok(&header) || program_offset > source->size || entry_bytes < PROGRAM_HEADER_BYTES ||
	    count > PROGRAM_HEADERS_MAX)
		return false;
	bytes_skip(&programs, program_offset);
	for (uint16_t i = 0; i < count && bytes_ok(&programs); i++) {
		struct bytes program = bytes_sub(&programs, entry_bytes);
		uint32_t type = bytes_u32(&program);
		uint64_t offset, size;

		bytes_skip(&program, 4); /* flags */
		offset = bytes_u64(&program);
		bytes_skip(&program, 16); /* addresses */
		size = bytes_u64(&program);
		if (bytes_ok(&program) && type == PT_NOTE && find_in_segment(source, offset, size, entry))
			return true;
	}
	return false;
}

bool build_id_notes_find(const void *data, size_t size, struct build_id_entry *entry)
{
	const struct source source = {.data = data, .size = size, .fd = -1};

	return find_build_id(&source, entry);
}

/* Opened below the process's root directory, which no symbolic link can leave. */
static int open_in_root(const struct wanted_build_id *wanted)
{
	CLEANUP(close) int root = -1;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/root", proc_living_thread(wanted->pid));
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? -1 : target_file_open(root, wanted->path);
}

/* The mapped file itself where the kernel lets us; else the file of that name, if it is the same. */
static int open_mapped_file(const struct wanted_build_id *wanted)
{
	char name[96];
	struct stat status;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, wanted->pid, wanted->start,
		 wanted->end);
	fd = regular_file_open(name);
	if (fd >= 0)
		return fd;
	fd = open_in_root(wanted);
	if (fd < 0) /* the process is gone: most share our root */
		fd = regular_file_open(wanted->path);
	if (fd >= 0 && (fstat(fd, &status) < 0 ||
			!regular_file_is_mapped(&status, wanted->device_major, wanted->device_minor, wanted->inode))) {
		close(fd);
		return -1;
	}
	return fd;
}

bool build_id_notes_read_file(int fd, struct build_id_entry *entry)
{
	uint8_t head[HEAD_BYTES];
	struct source source = {.data = head, .fd = fd};
	ssize_t count = pread(fd, head, sizeof(head), 0);

	if (count <= 0)
		return false;
	source.size = (size_t)count;
	return find_build_id(&source, entry);
}

/* Every 64-bit process has the same one, we too. */
static bool read_from_vdso(struct build_id_entry *entry)
{
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);

	return vdso && build_id_notes_find(vdso, (size_t)sysconf(_SC_PAGESIZE), entry);
}

/* Takes the path into the table of build-ids. */
static struct mmt_error *keep_build_id(struct build_id_notes *notes, struct wanted_build_id *wanted,
				       struct build_id_entry *entry)
{
	entry->path = wanted->path;
	if (!vector_push(&notes->found.entries, *entry))
		return &error_no_memory;
	wanted->path = NULL;
	return NULL;
}

static struct mmt_error *read_wanted(struct build_id_notes *notes, struct kept_images *kept, enum mmt_images which,
				     struct wanted_build_id *wanted)
{
	struct image_copy image = {.device_major = wanted->device_major,
				   .device_minor = wanted->device_minor,
				   .inode = wanted->inode,
				   .path = wanted->path};
	struct build_id_entry entry = {0};
	struct mmt_error *error = NULL;
	bool found;

	if (!strcmp(wanted->path, "[vdso]")) {
		found = read_from_vdso(&entry);
	} else {
		int fd = open_mapped_file(wanted);

		found = fd >= 0 && build_id_notes_read_file(fd, &entry);
		memcpy(image.build_id, entry.bytes, sizeof(image.build_id));
		image.build_id_size = found ? entry.size : 0;
		error = kept_images_add(kept, which, &image, fd);
	}
	return found && !error ? keep_build_id(notes, wanted, &entry) : error;
}

struct mmt_error *build_id_notes_read(struct build_id_notes *notes, struct kept_images *kept, enum mmt_images which)
{
	while (notes->wanted.count) {
		struct wanted_build_id wanted = notes->wanted.items[--notes->wanted.count];
		struct mmt_error *error = read_wanted(notes, kept, which, &wanted);

		free(wanted.path);
		if (error)
			return error;
	}
	return NULL;
}
