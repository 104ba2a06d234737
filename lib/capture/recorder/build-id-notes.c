// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/recorder/build-id-notes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/auxv.h>

#include "base/compression.h"
#include "base/strings.h"
#include "capture/recorder/recorder.h"

#define HEAD_BYTES 4096 /* The ELF header and the program headers must lie in the first HEAD_BYTES of a file. */

void build_id_notes_deinit(struct build_id_notes *notes)
{
	intern_deinit(&notes->seen);
	vector_deinit_each(&notes->wanted, item, free(item->path));
	build_ids_deinit(&notes->found);
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
	struct wanted_build_id wanted = {.mapping = *mapping};
	const char *path = mapping->path;
	bool program = !strcmp(path, "[vdso]") || (path[0] == '/' && path[1] != '/' && strncmp(path, "/memfd:", 7) &&
						   strncmp(path, "/dev/zero", 9) && strncmp(path, "/SYSV", 5));

	if (path_size > sizeof(key.path) || !program)
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

/* Search one PT_NOTE segment for NT_GNU_BUILD_ID. */
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

/* The bytes of an ELF file, read from memory or from a descriptor. */
struct build_id_source {
	const uint8_t *data;
	size_t size;
	int fd; /* -1: all bytes are in memory */
};

static bool find_in_segment(const struct build_id_source *source, uint64_t offset, uint64_t size,
			    struct build_id_entry *entry)
{
	uint8_t notes[HEAD_BYTES]; /* a longer segment has the build-id among its first notes, or none */
	ssize_t count;

	if (offset <= source->size && size <= source->size - offset)
		return find_note(bytes_over(source->data + offset, size), entry);
	if (source->fd < 0 || offset > INT64_MAX)
		return false;
	count = pread(source->fd, notes, size < sizeof(notes) ? size : sizeof(notes), (off_t)offset);
	return count > 0 && find_note(bytes_over(notes, (size_t)count), entry);
}

static bool find_build_id(const struct build_id_source *source, struct build_id_entry *entry)
{
	Elf64_Phdr program;

	for (size_t i = 0; elf_program_header(source->data, source->size, i, &program); i++) {
		if (program.p_type == PT_NOTE && find_in_segment(source, program.p_offset, program.p_filesz, entry))
			return true;
	}
	return false;
}

bool build_id_notes_find(const void *data, size_t size, struct build_id_entry *entry)
{
	return find_build_id(&(struct build_id_source){data, size, -1}, entry);
}

int mapped_file_find(struct blocking_calls *calls, const struct build_id_mapping *mapping, struct stat *status_ret)
{
	uint64_t place = place_of_device(mapping->device_major, mapping->device_minor);
	char name[96];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, proc_living_thread(mapping->pid),
		 mapping->start, mapping->end);
	fd = target_file_find(calls, place_of_process(mapping->pid), AT_FDCWD, name, TARGET_ANYWHERE, NULL);
	if (fd < 0 || target_file_stat(calls, place, fd, status_ret))
		return fd;
	close(fd);
	return -1;
}

/* Find the mapped file through /proc/PID/map_files if permitted, otherwise by its path if that is still the same
 * file. */
static int find_mapped_file(struct blocking_calls *calls, const struct wanted_build_id *wanted)
{
	const struct build_id_mapping *mapping = &wanted->mapping;
	uint64_t place = place_of_device(mapping->device_major, mapping->device_minor);
	CLEANUP(close) int root = -1;
	struct stat status;
	int fd = mapped_file_find(calls, mapping, &status);

	if (fd >= 0 && S_ISREG(status.st_mode))
		return fd;
	close_descriptor(&fd);
	/* Symbolic links cannot leave the process's root directory. If the process has exited: most processes have the
	 * same root directory as the recorder. */
	root = process_root_open(calls, mapping->pid);
	fd = target_file_find(calls, place, root >= 0 ? root : AT_FDCWD, wanted->path,
			      root >= 0 ? TARGET_IN_ROOT : TARGET_ANYWHERE, &status);
	if (fd >= 0 && (!S_ISREG(status.st_mode) || !regular_file_is_mapped(&status, mapping->device_major,
									    mapping->device_minor, mapping->inode))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool read_open_file(int fd, struct build_id_entry *entry)
{
	uint8_t head[HEAD_BYTES];
	ssize_t count = pread(fd, head, sizeof(head), 0);

	return count > 0 && find_build_id(&(struct build_id_source){head, (size_t)count, fd}, entry);
}

/* What one look at a mapped file shows. */
struct module_look {
	bool found; /* its build-id */
	struct build_id_entry entry;
	uint64_t elf_bytes; /* the size of an ELF file; 0: it is none */
};

static void look_at_module(struct blocking_call *call)
{
	CLEANUP(close) int fd = target_file_reopen(call->given);
	struct module_look *look = call->result;
	unsigned char magic[SELFMAG];
	struct stat status;

	*look = (struct module_look){0};
	if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0 &&
	    pread(fd, magic, sizeof(magic), 0) == sizeof(magic) && !memcmp(magic, ELFMAG, sizeof(magic))) {
		look->elf_bytes = (uint64_t)status.st_size;
		look->found = read_open_file(fd, &look->entry);
	}
}

static struct mmt_error *read_wanted(struct recorder *recorder, struct wanted_build_id *wanted)
{
	struct module_copy module = {.device_major = wanted->mapping.device_major,
				     .device_minor = wanted->mapping.device_minor,
				     .inode = wanted->mapping.inode,
				     .path = wanted->path};
	struct module_look look = {0};
	struct blocking_call call = {.place = place_of_device(module.device_major, module.device_minor),
				     .run = look_at_module,
				     .result = &look,
				     .result_bytes = sizeof(look)};
	struct mmt_error *error = NULL;

	if (!strcmp(wanted->path, "[vdso]")) {
		/* All 64-bit processes have the same vDSO, so read the recorder's own. */
		const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);

		look.found = vdso && build_id_notes_find(vdso, (size_t)sysconf(_SC_PAGESIZE), &look.entry);
	} else {
		call.given = find_mapped_file(&recorder->calls, wanted);
		if (call.given >= 0)
			(void)blocking_call(&recorder->calls, &call);
		memcpy(module.build_id, look.entry.bytes, sizeof(module.build_id));
		module.build_id_size = look.found ? look.entry.size : 0;
		error = kept_modules_add(&recorder->calls, &recorder->jobs.kept_modules, recorder->options->images,
					 &module, call.given, look.elf_bytes);
	}
	if (error || !look.found)
		return error;
	look.entry.path = wanted->path;
	if (!vector_push(&recorder->jobs.build_ids.found.entries, look.entry))
		return &error_no_memory;
	wanted->path = NULL;
	return NULL;
}

struct mmt_error *build_id_notes_read(struct recorder *recorder)
{
	struct build_id_notes *notes = &recorder->jobs.build_ids;
	struct mmt_error *error = NULL;

	while (!error && notes->wanted.count) {
		struct wanted_build_id wanted = notes->wanted.items[--notes->wanted.count];

		error = read_wanted(recorder, &wanted);
		free(wanted.path);
		error = error ?: ring_reader_give_way(recorder);
	}
	return error;
}

#define PIECE_BYTES (1u << 20)
#define INDEX_BYTES_MAX (LIMIT_IMAGE_INDEX_BYTES - 4096) /* limit for all entries; leaves room for the header */

void kept_modules_deinit(struct kept_modules *kept)
{
	vector_deinit_each(&kept->files, item, close_descriptor(&item->fd));
	module_copies_deinit(&kept->index);
	free(TAKE(kept->left_out));
}

struct module_argument {
	struct module_copy module;
	char path[LIMIT_PATH_BYTES + 1];
};

/* Will a report on this machine find this file, or another file with the same build-id, by the path? */
static void is_provided(struct blocking_call *call)
{
	const struct module_argument *wanted = call->argument;
	const struct module_copy *module = &wanted->module;
	/* Open the path in the recorder's root directory, as a report on this machine would. */
	CLEANUP(free) char *linked = strndup(wanted->path, mapped_path_length(wanted->path));
	CLEANUP(close) int fd = linked ? regular_file_open(linked) : -1;
	struct build_id_entry found = {0};
	struct stat status, other;
	bool *provided = call->result;

	*provided = false;
	if (fd >= 0 && fstat(fd, &other) == 0 && fstat(call->given, &status) == 0)
		*provided = (other.st_dev == status.st_dev && other.st_ino == status.st_ino) ||
			    (module->build_id_size && read_open_file(fd, &found) &&
			     found.size == module->build_id_size && !memcmp(found.bytes, module->build_id, found.size));
}

static bool path_provides(struct blocking_calls *calls, const struct module_copy *module, int fd)
{
	struct module_argument argument = {.module = *module};
	bool provided = false;
	struct blocking_call call =
	    BLOCKING_CALL(place_of_paths(calls, getpid()), is_provided, &argument, fd, &provided);

	snprintf(argument.path, sizeof(argument.path), "%s", module->path);
	return blocking_call(calls, &call) && provided;
}

/* Was the same file already added under another path? Each file is copied once. */
static bool is_kept(const struct kept_modules *kept, const struct module_copy *module)
{
	for (size_t i = 0; i < kept->files.count; i++) {
		const struct module_copy *other = &kept->index.images.items[i];

		if (kept->files.items[i].fd >= 0 && other->inode == module->inode &&
		    other->device_major == module->device_major && other->device_minor == module->device_minor)
			return true;
	}
	return false;
}

static void leave_out(struct kept_modules *kept, const char *path)
{
	kept->left_out_count++;
	if (!kept->left_out)
		kept->left_out = strdup(path);
}

/* Leave out one larger file to make room. That is enough: the files fitted before this one was added. */
static bool make_room(struct kept_modules *kept, uint64_t bytes)
{
	struct kept_file *largest = NULL;

	if (bytes <= LIMIT_RECORDED_IMAGES_BYTES - kept->bytes)
		return true;
	array_each(file, kept->files.items, kept->files.count) {
		if (file->fd >= 0 && (!largest || file->bytes > largest->bytes))
			largest = file;
	}
	if (!largest || largest->bytes <= bytes)
		return false;
	leave_out(kept, kept->index.images.items[largest - kept->files.items].path);
	kept->bytes -= largest->bytes;
	close(largest->fd);
	*largest = (struct kept_file){.fd = -1};
	return true;
}

struct mmt_error *kept_modules_add(struct blocking_calls *calls, struct kept_modules *kept, enum mmt_images which,
				   const struct module_copy *module, int fd, uint64_t bytes)
{
	uint64_t entry_bytes = module_copies_entry_bytes(module);
	bool too_many = kept->files.count >= LIMIT_IMAGES || entry_bytes > INDEX_BYTES_MAX - kept->index_bytes;
	bool wanted = !too_many && bytes && fd >= 0 && which != MMT_IMAGES_NONE && !is_kept(kept, module) &&
		      (which != MMT_IMAGES_MISSING || !path_provides(calls, module, fd));
	struct kept_file file = {.fd = -1};
	struct module_copy copy = *module;

	if (wanted && make_room(kept, bytes)) {
		file = (struct kept_file){.fd = process_table_spare(fd), .bytes = bytes};
	} else {
		if (wanted || too_many)
			leave_out(kept, module->path);
		close_descriptor(&fd);
	}
	if (too_many)
		return NULL;
	copy.path = strdup(module->path);
	if (copy.path && vector_push(&kept->files, file)) {
		if (vector_push(&kept->index.images, copy)) {
			kept->index_bytes += entry_bytes;
			kept->bytes += file.fd >= 0 ? file.bytes : 0;
			return NULL;
		}
		kept->files.count--;
	}
	close_descriptor(&file.fd);
	free(copy.path);
	return &error_no_memory;
}

static bool is_interrupted(const struct recorder *recorder)
{
	return recorder_stop_requests(recorder) > recorder->stop_requests;
}

/* Write a compressed frame for each piece of the file, or nothing if it cannot be copied completely. */
static bool add_copy(struct recorder *recorder, struct compressor *compressor, const struct kept_file *file,
		     uint64_t place, struct buffer *buffer, uint64_t *size_ret)
{
	CLEANUP(free) uint8_t *piece = malloc(PIECE_BYTES);
	size_t start = buffer->size;
	bool ok = piece && !is_interrupted(recorder);

	*size_ret = 0;
	while (ok && *size_ret < file->bytes) {
		uint64_t left = file->bytes - *size_ret;
		ssize_t count = target_file_read(&recorder->calls, place, file->fd, piece,
						 smaller_of(left, PIECE_BYTES), *size_ret);
		struct mmt_error *error = count > 0 ? compressor_frame(compressor, piece, (size_t)count, buffer) : NULL;

		ok = count >= 0 && !error && !is_interrupted(recorder);
		mmt_error_destroy(error);
		if (count <= 0)
			break;
		*size_ret += (uint64_t)count;
	}
	ok = ok && *size_ret;
	if (!ok)
		buffer->size = start;
	return ok;
}

struct mmt_error *kept_modules_encode(struct recorder *recorder, struct kept_modules *kept, struct buffer *buffer)
{
	struct compressor compressor;
	struct mmt_error *error = compressor_init(&compressor);

	if (error)
		return error;
	module_copies_encode_index(&kept->index, buffer);
	error = buffer_finish(buffer);
	for (size_t i = 0; !error && i < kept->files.count; i++) {
		struct module_copy *module = &kept->index.images.items[i];
		uint64_t place = place_of_device(module->device_major, module->device_minor);
		size_t offset = buffer->size;

		if (kept->files.items[i].fd < 0)
			continue;
		if (add_copy(recorder, &compressor, &kept->files.items[i], place, buffer, &module->size)) {
			module->offset = (uint32_t)offset;
			module->stored = (uint32_t)(buffer->size - offset);
			continue;
		}
		module->size = 0;
		if (is_interrupted(recorder))
			kept->interrupted++;
		else
			kept->failed++;
	}
	if (!error)
		module_copies_encode_index(&kept->index, buffer);
	compressor_deinit(&compressor);
	return error;
}
