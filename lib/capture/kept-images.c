// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/kept-images.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/build-id-notes.h"
#include "capture/known-processes.h"
#include "capture/regular-file.h"
#include "trace/compress.h"
#include "trace/format.h"

#define PIECE_BYTES (1u << 20)

static const char deleted_suffix[] = " (deleted)";

void kept_images_deinit(struct kept_images *kept)
{
	for (size_t i = 0; i < kept->fds.count; i++) {
		if (kept->fds.items[i] >= 0)
			close(kept->fds.items[i]);
	}
	vector_deinit(&kept->fds);
	image_copies_deinit(&kept->index);
	free(TAKE(kept->left_out));
}

static bool is_program(int fd)
{
	unsigned char magic[SELFMAG];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) && !memcmp(magic, ELFMAG, sizeof(magic));
}

/* What the path leads to for us, and for a report on this machine; -1: nothing. */
static int open_by_path(const char *path)
{
	size_t length = strlen(path), suffix = sizeof(deleted_suffix) - 1;
	CLEANUP(free) char *plain = NULL;

	if (length > suffix && !strcmp(path + length - suffix, deleted_suffix)) {
		plain = strndup(path, length - suffix);
		path = plain;
	}
	return path ? regular_file_open(path) : -1;
}

/* Whether a report finds this very file, or the same build, by the path. */
static bool path_provides(const struct image_copy *image, const struct stat *status)
{
	CLEANUP(close) int fd = open_by_path(image->path);
	struct build_id_entry found = {0};
	struct stat other;

	if (fd < 0 || fstat(fd, &other) < 0)
		return false;
	if (other.st_dev == status->st_dev && other.st_ino == status->st_ino)
		return true;
	return image->build_id_size && build_id_notes_read_file(fd, &found) && found.size == image->build_id_size &&
	       !memcmp(found.bytes, image->build_id, found.size);
}

/* The same file under another path: once is enough. */
static bool is_kept(const struct kept_images *kept, const struct image_copy *image)
{
	for (size_t i = 0; i < kept->fds.count; i++) {
		const struct image_copy *other = &kept->index.images.items[i];

		if (kept->fds.items[i] >= 0 && other->inode == image->inode &&
		    other->device_major == image->device_major && other->device_minor == image->device_minor)
			return true;
	}
	return false;
}

static bool is_wanted(struct kept_images *kept, enum mmt_images which, const struct image_copy *image, int fd)
{
	struct stat status;

	if (fd < 0 || which == MMT_IMAGES_NONE || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
	    status.st_size <= 0 || !is_program(fd) || is_kept(kept, image))
		return false;
	if (which == MMT_IMAGES_MISSING && path_provides(image, &status))
		return false;
	if ((uint64_t)status.st_size <= IMAGES_BYTES_MAX - kept->bytes) {
		kept->bytes += (uint64_t)status.st_size;
		return true;
	}
	kept->left_out_count++;
	if (!kept->left_out)
		kept->left_out = strdup(image->path);
	return false;
}

struct mmt_error *kept_images_add(struct kept_images *kept, enum mmt_images which, const struct image_copy *image,
				  int fd)
{
	struct image_copy copy = *image;

	if (fd >= 0 && !is_wanted(kept, which, image, fd)) {
		close(fd);
		fd = -1;
	}
	fd = known_processes_spare(fd);
	copy.path = strdup(image->path);
	if (copy.path && vector_push(&kept->fds, fd)) {
		if (vector_push(&kept->index.images, copy))
			return NULL;
		kept->fds.count--;
	}
	if (fd >= 0)
		close(fd);
	free(copy.path);
	return &error_no_memory;
}

/* In frames of a piece each. False: the file could not be read; nothing is added. */
static struct mmt_error *add_copy(struct compressor *compressor, int fd, struct buffer *buffer, uint64_t *size_ret)
{
	CLEANUP(free) uint8_t *piece = malloc(PIECE_BYTES);
	struct mmt_error *error = piece ? NULL : &error_no_memory;
	size_t start = buffer->size;
	uint64_t size = 0;
	ssize_t count = 0;

	while (!error && size < IMAGES_BYTES_MAX && (count = pread(fd, piece, PIECE_BYTES, (off_t)size)) > 0) {
		error = compressor_frame(compressor, piece, (size_t)count, buffer);
		size += (uint64_t)count;
	}
	if (count < 0)
		size = 0;
	if (!size && !error)
		buffer->size = start;
	*size_ret = size;
	return error;
}

struct mmt_error *kept_images_encode(struct kept_images *kept, struct buffer *buffer)
{
	CLEANUP(free) size_t *places = calloc(kept->fds.count + 1, sizeof(*places));
	struct compressor *compressor = NULL;
	struct mmt_error *error = places ? compressor_create(&compressor) : &error_no_memory;

	if (!error)
		image_copies_encode_index(&kept->index, buffer, places);
	for (size_t i = 0; !error && i < kept->fds.count; i++) {
		size_t offset = buffer->size;
		uint64_t size;

		if (kept->fds.items[i] < 0)
			continue;
		error = add_copy(compressor, kept->fds.items[i], buffer, &size);
		if (!error && size)
			image_copies_patch(buffer, places[i], offset, buffer->size - offset, size);
	}
	compressor_destroy(compressor);
	return error;
}
