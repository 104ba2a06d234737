// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/names/name-cache.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LINKS_MAX 16

struct walk {
	int directory;	/* O_PATH */
	char *rest;	/* of the path; owned */
	unsigned links; /* symbolic links followed so far */
};

/* Whether an open file has this type, belongs to this user, and is not writable for others. */
static bool own_directory_is_own(int fd, mode_t kind, struct stat *status_ret)
{
	return !fstat(fd, status_ret) && (status_ret->st_mode & S_IFMT) == kind && status_ret->st_uid == geteuid() &&
	       !(status_ret->st_mode & (S_IWGRP | S_IWOTH));
}

static const char *skip_slashes(const char *path)
{
	return path + strspn(path, "/");
}

static unsigned count_names(const char *path)
{
	unsigned count = 0;

	for (path = skip_slashes(path); *path; path = skip_slashes(path + strcspn(path, "/")))
		count++;
	return count;
}

/* Opens the name without following a link; creates a missing directory if that is allowed. */
static int open_name(int directory, const char *name, bool may_make)
{
	const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(directory, name, flags);
	struct stat status;

	if (fd >= 0 || errno != ENOENT || !may_make || !own_directory_is_own(directory, S_IFDIR, &status) ||
	    (mkdirat(directory, name, 0700) && errno != EEXIST))
		return fd;
	return openat(directory, name, flags);
}

/* Replaces the link by its target in the rest of the path. The last component must not be a link. */
static bool follow(struct walk *walk, int link, const char *rest)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(link, "", target, sizeof(target) - 1);
	char *path;

	if (length <= 0 || !*skip_slashes(rest) || ++walk->links > LINKS_MAX)
		return false;
	target[length] = '\0';
	if (asprintf(&path, "%s/%s", target, rest) < 0)
		return false;
	free(walk->rest);
	walk->rest = path;
	if (*target != '/')
		return true;
	close(walk->directory);
	walk->directory = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return walk->directory >= 0;
}

/* Walks one component of the path. */
static bool step(struct walk *walk, unsigned levels)
{
	const char *name = skip_slashes(walk->rest);
	size_t length = strcspn(name, "/");
	CLEANUP(free) char *copy = strndup(name, length);
	CLEANUP(close) int fd = -1;
	struct stat status;
	char *rest;
	int above;

	if (!copy)
		return false;
	fd = open_name(walk->directory, copy, count_names(name) <= levels);
	if (fd < 0 || fstat(fd, &status) || (status.st_uid != geteuid() && status.st_uid != 0))
		return false;
	if (S_ISLNK(status.st_mode))
		return follow(walk, fd, name + length);
	rest = S_ISDIR(status.st_mode) ? strdup(name + length) : NULL;
	if (!rest)
		return false;
	free(walk->rest);
	walk->rest = rest;
	above = walk->directory;
	walk->directory = fd;
	fd = above;
	return true;
}

/*
 * -1: it does not exist or cannot be trusted. Every directory and link in the path must belong to this user or root.
 * Creates up to `levels` missing directories at the end of the path, but only inside directories of this user.
 */
static int own_directory_open(const char *path, unsigned levels)
{
	struct walk walk = {.directory = -1};
	bool reached = false;
	int fd = -1;

	if (*path != '/')
		return -1;
	walk.directory = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	walk.rest = walk.directory >= 0 ? strdup(path) : NULL;
	while (walk.rest && !reached && (!*skip_slashes(walk.rest) || step(&walk, levels)))
		reached = !*skip_slashes(walk.rest);
	if (reached)
		fd = openat(walk.directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(walk.rest);
	if (walk.directory >= 0)
		close(walk.directory);
	return fd;
}

#define MAGIC 0x73656d616e746d6dull /* "mmtnames" */
#define VERSION 4		    /* 2: without the times of the last change of any kind; 3: without C++ scopes */
#define CHECKSUM_OFFSET (8 + 4 + 4)
#define CHECKED_FROM (CHECKSUM_OFFSET + 8)
#define HEADER_BYTES (CHECKED_FROM + 20 + 4 + 7 * 8)
#define SUFFIX ".names"
#define UNFINISHED ".new."
#define UNFINISHED_SECONDS 3600 /* after this age its writer is gone */
#define BLOCK_BYTES 4096	/* minimum disk space of a file */
#define FILES_MAX 65536		/* more files than fit below the limit */

struct name_cache {
	int directory;
	uint64_t limit;
	uint8_t writer[20]; /* build-id of this library */
};

/* ---- the build of mmtrace ---- */

static bool take_build_id(struct bytes notes, uint8_t id_ret[20])
{
	while (bytes_left(&notes)) {
		uint32_t name_size = bytes_u32(&notes), size = bytes_u32(&notes), type = bytes_u32(&notes);
		const char *name = bytes_take(&notes, name_size);
		const void *id;

		bytes_align(&notes, 4);
		id = bytes_take(&notes, size);
		bytes_align(&notes, 4);
		if (!bytes_ok(&notes))
			return false;
		if (type != NT_GNU_BUILD_ID || name_size != 4 || memcmp(name, "GNU", 4) != 0 ||
		    size < NAME_CACHE_ID_BYTES_MIN)
			continue;
		memcpy(id_ret, id, size < 20 ? size : 20);
		return true;
	}
	return false;
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *id_ret)
{
	const ElfW(Addr) here = (ElfW(Addr))(uintptr_t)look_at_object;
	bool inside = false;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		inside |= header->p_type == PT_LOAD && here - info->dlpi_addr - header->p_vaddr < header->p_memsz;
	}
	for (size_t i = 0; inside && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const void *notes = (const void *)(uintptr_t)(info->dlpi_addr + header->p_vaddr);

		if (header->p_type == PT_NOTE && take_build_id(bytes_over(notes, header->p_memsz), id_ret))
			return 1;
	}
	return 0;
}

struct name_cache *name_cache_open(const char *directory, uint64_t limit)
{
	struct name_cache *cache = calloc(1, sizeof(*cache));
	struct stat status;

	if (!cache)
		return NULL;
	cache->limit = limit;
	cache->directory = own_directory_open(directory, 2);
	if (cache->directory >= 0 && own_directory_is_own(cache->directory, S_IFDIR, &status) &&
	    dl_iterate_phdr(look_at_object, cache->writer))
		return cache;
	name_cache_close(cache);
	return NULL;
}

void name_cache_close(struct name_cache *cache)
{
	if (!cache)
		return;
	if (cache->directory >= 0)
		close(cache->directory);
	free(cache);
}

/* ---- a cache file ---- */

#define NAME_BYTES 64

static void file_name(const struct name_cache_key *key, char name[NAME_BYTES])
{
	size_t length = 0;

	for (size_t i = 0; i < key->build_id_size; i++)
		length += (size_t)snprintf(name + length, NAME_BYTES - length, "%02x", key->build_id[i]);
	snprintf(name + length, NAME_BYTES - length, "%s" SUFFIX, key->demangled ? "" : ".raw");
}

static bool has_key(const struct name_cache_key *key)
{
	return key->build_id_size >= NAME_CACHE_ID_BYTES_MIN && key->build_id_size <= sizeof(key->build_id);
}

/* Read the complete file; NULL: not possible. */
static uint8_t *read_all(int fd, size_t size)
{
	uint8_t *data = malloc(size);
	size_t done = 0;

	while (data && done < size) {
		ssize_t got = read(fd, data + done, size - done);

		if (got <= 0) {
			free(data);
			return NULL;
		}
		done += (size_t)got;
	}
	return data;
}

void name_cache_put_file(const struct stat *file, struct buffer *buffer)
{
	buffer_put_u64(buffer, file->st_dev);
	buffer_put_u64(buffer, file->st_ino);
	buffer_put_u64(buffer, (uint64_t)file->st_size);
	buffer_put_u64(buffer, (uint64_t)file->st_mtim.tv_sec);
	buffer_put_u64(buffer, (uint64_t)file->st_mtim.tv_nsec);
	buffer_put_u64(buffer, (uint64_t)file->st_ctim.tv_sec);
	buffer_put_u64(buffer, (uint64_t)file->st_ctim.tv_nsec);
}

static void put_identity(const struct name_cache *cache, const struct name_cache_key *key, struct buffer *buffer)
{
	buffer_put(buffer, cache->writer, sizeof(cache->writer));
	buffer_put_u32(buffer, (uint32_t)key->build_id_size);
	name_cache_put_file(&key->module, buffer);
}

/* Whether everything after the checksum is as written, by this build, about this module. */
static bool check(const struct name_cache *cache, const struct name_cache_key *key, struct bytes *bytes)
{
	uint64_t magic = bytes_u64(bytes), checksum;
	uint32_t version = bytes_u32(bytes);
	struct buffer identity;
	const void *found;
	bool right;

	(void)bytes_u32(bytes);
	checksum = bytes_u64(bytes);
	if (magic != MAGIC || version != VERSION || !bytes_ok(bytes) ||
	    checksum != map_checksum(bytes->position, bytes_left(bytes)))
		return false;
	buffer_init(&identity, HEADER_BYTES);
	put_identity(cache, key, &identity);
	found = bytes_take(bytes, identity.size);
	right = found && !identity.error && !memcmp(found, identity.data, identity.size);
	buffer_deinit(&identity);
	return right;
}

const uint8_t *name_cache_read(struct name_cache *cache, const struct name_cache_key *key, uint8_t **data_ret,
			       size_t *size_ret)
{
	CLEANUP(close) int fd = -1;
	char name[NAME_BYTES];
	struct stat status;
	struct bytes bytes;

	if (!cache || !has_key(key))
		return NULL;
	file_name(key, name);
	fd = openat(cache->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || !own_directory_is_own(fd, S_IFREG, &status) || status.st_size < HEADER_BYTES ||
	    status.st_size > NAME_CACHE_FILE_BYTES)
		return NULL;
	*data_ret = read_all(fd, (size_t)status.st_size);
	if (!*data_ret)
		return NULL;
	bytes = bytes_over(*data_ret, (size_t)status.st_size);
	if (!check(cache, key, &bytes)) {
		free(*data_ret);
		*data_ret = NULL;
		return NULL;
	}
	(void)futimens(fd, NULL); /* mark as used now */
	*size_ret = bytes_left(&bytes);
	return bytes.position;
}

static bool write_all(int fd, const uint8_t *data, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t written = write(fd, data + done, size - done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		done += (size_t)written;
	}
	return true;
}

static void write_file(struct name_cache *cache, const char *name, const struct buffer *buffer)
{
	char temporary[NAME_BYTES + 64];
	struct timespec now = {0};
	bool written;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(temporary, sizeof(temporary), "%s" UNFINISHED "%d.%ld", name, (int)getpid(), now.tv_nsec);
	fd = openat(cache->directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	written = write_all(fd, buffer->data, buffer->size);
	if (close(fd) || !written || renameat(cache->directory, temporary, cache->directory, name))
		(void)unlinkat(cache->directory, temporary, 0);
}

/* ---- size limit ---- */

struct cached_names_file {
	char *name;
	uint64_t bytes;
	struct timespec used;
};

static int compare_files(const void *left, const void *right)
{
	const struct cached_names_file *a = left, *b = right;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	return (a->used.tv_nsec > b->used.tv_nsec) - (a->used.tv_nsec < b->used.tv_nsec);
}

/* Delete temporary files of killed reports; all other files count. */
static bool counts(const struct name_cache *cache, const char *name, const struct stat *status)
{
	if (!S_ISREG(status->st_mode) || !strstr(name, SUFFIX))
		return false;
	if (!strstr(name, UNFINISHED) || status->st_mtim.tv_sec > time(NULL) - UNFINISHED_SECONDS)
		return true;
	(void)unlinkat(cache->directory, name, 0);
	return false;
}

struct kept_files {
	VECTOR(struct cached_names_file) items;
};

/* For most modules few names are looked up, so files are small: count disk blocks, not sizes. */
static uint64_t bytes_taken(uint64_t size)
{
	return (size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

/* Sum up their bytes and list the files in `files`. */
static uint64_t list_files(const struct name_cache *cache, DIR *stream, struct kept_files *files)
{
	const struct dirent *entry;
	uint64_t bytes = 0;

	while (files->items.count < FILES_MAX && (entry = readdir(stream))) {
		struct cached_names_file file;
		struct stat status;

		if (fstatat(cache->directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) ||
		    !counts(cache, entry->d_name, &status))
			continue;
		file = (struct cached_names_file){.name = strdup(entry->d_name),
						  .bytes = bytes_taken((uint64_t)status.st_size),
						  .used = status.st_mtim};
		if (!file.name || !vector_push(&files->items, file)) {
			free(file.name);
			break;
		}
		bytes += file.bytes;
	}
	return bytes;
}

static void keep_limit(const struct name_cache *cache)
{
	int fd = openat(cache->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
	struct kept_files files = {0};
	uint64_t bytes;

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return;
	}
	bytes = list_files(cache, stream, &files);
	closedir(stream);
	vector_sort(&files.items, compare_files);
	for (size_t i = 0; i < files.items.count; i++) {
		if (bytes > cache->limit && !unlinkat(cache->directory, files.items.items[i].name, 0))
			bytes -= files.items.items[i].bytes;
		free(files.items.items[i].name);
	}
	vector_deinit(&files.items);
}

void name_cache_begin(const struct name_cache *cache, const struct name_cache_key *key, struct buffer *buffer)
{
	buffer_init(buffer, NAME_CACHE_FILE_BYTES);
	buffer_put_u64(buffer, MAGIC);
	buffer_put_u32(buffer, VERSION);
	buffer_put_u32(buffer, 0);
	buffer_put_u64(buffer, 0); /* the checksum */
	put_identity(cache, key, buffer);
}

void name_cache_write(struct name_cache *cache, const struct name_cache_key *key, struct buffer *buffer)
{
	char name[NAME_BYTES];
	uint64_t checksum;

	if (buffer->error || bytes_taken(buffer->size) > cache->limit || !has_key(key))
		return;
	checksum = map_checksum(buffer->data + CHECKED_FROM, buffer->size - CHECKED_FROM);
	buffer_patch_u32(buffer, CHECKSUM_OFFSET, (uint32_t)checksum);
	buffer_patch_u32(buffer, CHECKSUM_OFFSET + 4, (uint32_t)(checksum >> 32));
	file_name(key, name);
	write_file(cache, name, buffer);
	keep_limit(cache);
}

/* ---- the content of a file ---- */

#define ANSWERS_MAX (1u << 22)
#define TEXTS_MAX (1u << 22)
#define FRAMES_MAX UINT32_MAX
#define ANSWER_BYTES 12 /* u64 address, u32 frames */
#define FRAME_BYTES 20	/* u32 function, raw function, source file: number of the text + 1; line; inlined */

void known_names_deinit(struct known_names *names)
{
	id_table_deinit(&names->by_address);
	vector_deinit(&names->found);
	vector_deinit(&names->frames);
	id_table_deinit(&names->by_place);
	vector_deinit(&names->texts);
}

/* Position and number of its frames. */
static size_t frames_of(const struct known_names *names, size_t place, const struct known_frame **frames_ret)
{
	const struct known_answer *answer = &names->found.items[place];
	size_t end = place + 1 < names->found.count ? answer[1].start : names->frames.count;

	*frames_ret = names->frames.items + answer->start;
	return end - answer->start;
}

static const char *text_at(const struct known_names *names, uint32_t number)
{
	return number ? names->texts.items[number - 1] : NULL;
}

size_t known_names_get(struct known_names *names, uint64_t address, struct module_frame frames_ret[MODULE_INLINE_MAX])
{
	uint64_t hash = id_table_hash(&names->by_address, &address, sizeof(address));
	const struct known_frame *frames;
	size_t position = 0, count;
	uint32_t place;

	do {
		place = id_table_next(&names->by_address, hash, &position);
		if (place == ID_NONE)
			return 0;
	} while (names->found.items[place].address != address);
	count = frames_of(names, place, &frames);
	for (size_t i = 0; i < count; i++) {
		frames_ret[i] = (struct module_frame){.function = text_at(names, frames[i].function),
						      .raw_function = text_at(names, frames[i].raw_function),
						      .source_file = text_at(names, frames[i].source_file),
						      .source_line = frames[i].source_line,
						      .inlined = frames[i].inlined};
	}
	return count;
}

static bool add_text(struct known_names *names, const char *text, uint64_t hash)
{
	if (names->texts.count >= TEXTS_MAX || !vector_push(&names->texts, text))
		return false;
	if (id_table_add(&names->by_place, hash) != ID_NONE)
		return true;
	names->texts.count--;
	return false;
}

static uint64_t hash_place(struct known_names *names, const char *text)
{
	return id_table_hash(&names->by_place, &text, sizeof(text));
}

/* `*number_ret` is 0 for NULL; false: out of memory, or too many. */
static bool number_text(struct known_names *names, const char *text, uint32_t *number_ret)
{
	uint64_t hash = hash_place(names, text);
	size_t position = 0;
	uint32_t place;

	*number_ret = 0;
	if (!text)
		return true;
	do {
		place = id_table_next(&names->by_place, hash, &position);
	} while (place != ID_NONE && names->texts.items[place] != text);
	if (place == ID_NONE) {
		place = (uint32_t)names->texts.count;
		if (!add_text(names, text, hash))
			return false;
	}
	*number_ret = place + 1;
	return true;
}

static bool add_frame(struct known_names *names, const struct module_frame *frame)
{
	uint32_t function, raw_function, source_file;

	return number_text(names, frame->function, &function) &&
	       number_text(names, frame->raw_function, &raw_function) &&
	       number_text(names, frame->source_file, &source_file) &&
	       vector_push(&names->frames, ((struct known_frame){.function = function,
								 .inlined = frame->inlined,
								 .raw_function = raw_function,
								 .source_file = source_file,
								 .source_line = frame->source_line}));
}

/* The frames added since `start` become the answer for the address, or are dropped. */
static void end_answer(struct known_names *names, uint64_t address, size_t start, bool complete)
{
	uint64_t hash = id_table_hash(&names->by_address, &address, sizeof(address));

	if (complete && vector_push(&names->found, ((struct known_answer){address, (uint32_t)start}))) {
		if (id_table_add(&names->by_address, hash) != ID_NONE)
			return;
		names->found.count--;
	}
	names->frames.count = start;
}

void known_names_put(struct known_names *names, uint64_t address, const struct module_frame *frames, size_t count)
{
	size_t start = names->frames.count, added = 0;

	while (added < count && start + count <= FRAMES_MAX && add_frame(names, &frames[added]))
		added++;
	end_answer(names, address, start, added == count);
}

/* ---- encoding ---- */

/* Number the texts for the file. Equal texts get one number, as do texts that came from a file. */
static bool put_texts(const struct known_names *names, uint32_t *numbers, struct buffer *buffer)
{
	struct intern texts = {0};
	bool complete = true;

	for (size_t i = 0; i < names->texts.count && complete; i++) {
		numbers[i] = intern_put_string(&texts, names->texts.items[i]) + 1;
		complete = numbers[i] != INTERN_NONE + 1;
	}
	buffer_put_u32(buffer, (uint32_t)texts.count);
	for (uint32_t i = 0; i < texts.count; i++)
		buffer_put_string(buffer, intern_get(&texts, i, NULL));
	intern_deinit(&texts);
	return complete;
}

static void put_frame(const struct known_frame *frame, const uint32_t *numbers, struct buffer *buffer)
{
	buffer_put_u32(buffer, frame->function ? numbers[frame->function - 1] : 0);
	buffer_put_u32(buffer, frame->raw_function ? numbers[frame->raw_function - 1] : 0);
	buffer_put_u32(buffer, frame->source_file ? numbers[frame->source_file - 1] : 0);
	buffer_put_u32(buffer, frame->source_line);
	buffer_put_u32(buffer, frame->inlined);
}

static void put_answers(const struct known_names *names, const uint32_t *numbers, struct buffer *buffer)
{
	buffer_put_u32(buffer, (uint32_t)names->found.count);
	for (size_t i = 0; i < names->found.count; i++) {
		const struct known_frame *frames;
		size_t count = frames_of(names, i, &frames);

		buffer_put_u64(buffer, names->found.items[i].address);
		buffer_put_u32(buffer, (uint32_t)count);
		for (size_t j = 0; j < count; j++)
			put_frame(&frames[j], numbers, buffer);
	}
}

bool known_names_encode(const struct known_names *names, struct buffer *buffer)
{
	CLEANUP(free) uint32_t *numbers = calloc(names->texts.count + 1, sizeof(*numbers));

	if (!numbers || !put_texts(names, numbers, buffer))
		return false;
	put_answers(names, numbers, buffer);
	return true;
}

static uint32_t take_text(struct bytes *bytes, const struct known_names *names)
{
	uint32_t number = bytes_u32(bytes);

	if (number > names->texts.count)
		bytes_fail(bytes, "text that does not exist");
	return bytes_ok(bytes) ? number : 0;
}

static void decode_answer(struct bytes *bytes, struct known_names *names)
{
	size_t start = names->frames.count;
	uint64_t address = bytes_u64(bytes);
	size_t count = bytes_u32(bytes);

	if (count == 0 || count > MODULE_INLINE_MAX)
		bytes_fail(bytes, "invalid number of frames");
	for (size_t i = 0; bytes_ok(bytes) && i < count; i++) {
		uint32_t function = take_text(bytes, names), raw_function = take_text(bytes, names);
		uint32_t source_file = take_text(bytes, names), line = bytes_u32(bytes), inlined = bytes_u32(bytes);

		if (!vector_push(&names->frames, ((struct known_frame){.function = function,
								       .inlined = inlined != 0,
								       .raw_function = raw_function,
								       .source_file = source_file,
								       .source_line = line})))
			bytes_fail(bytes, "no memory");
	}
	end_answer(names, address, start, bytes_ok(bytes));
}

bool known_names_decode(struct bytes *bytes, struct known_names *names)
{
	uint64_t count = bytes_count(bytes, bytes_u32(bytes), 1, TEXTS_MAX);

	for (uint64_t i = 0; bytes_ok(bytes) && i < count; i++) {
		const char *text = bytes_string(bytes);

		if (!add_text(names, text, hash_place(names, text)))
			bytes_fail(bytes, "no memory");
	}
	count = bytes_count(bytes, bytes_u32(bytes), ANSWER_BYTES + FRAME_BYTES, ANSWERS_MAX);
	for (uint64_t i = 0; bytes_ok(bytes) && i < count; i++)
		decode_answer(bytes, names);
	if (bytes_left(bytes))
		bytes_fail(bytes, "bytes behind the end");
	if (bytes_ok(bytes))
		return true;
	known_names_deinit(names);
	*names = (struct known_names){0};
	return false;
}
