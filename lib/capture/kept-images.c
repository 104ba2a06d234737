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
#include "capture/recorder.h"
#include "capture/regular-file.h"
#include "trace/compress.h"
#include "trace/format.h"

#define PIECE_BYTES (1u << 20)
#define INDEX_BYTES_MAX (LIMIT_IMAGE_INDEX_BYTES - 4096) /* of all entries; leaves room for the header */

static const char deleted_suffix[] = " (deleted)";

void kept_images_deinit(struct kept_images *kept)
{
	for (size_t i = 0; i < kept->files.count; i++) {
		if (kept->files.items[i].fd >= 0)
			close(kept->files.items[i].fd);
	}
	vector_deinit(&kept->files);
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
	for (size_t i = 0; i < kept->files.count; i++) {
		const struct image_copy *other = &kept->index.images.items[i];

		if (kept->files.items[i].fd >= 0 && other->inode == image->inode &&
		    other->device_major == image->device_major && other->device_minor == image->device_minor)
			return true;
	}
	return false;
}

/* The bytes to copy; 0: do not copy the file. */
static uint64_t measure_wanted(const struct kept_images *kept, enum mmt_images which, const struct image_copy *image,
			       int fd)
{
	struct stat status;

	if (fd < 0 || which == MMT_IMAGES_NONE || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
	    status.st_size <= 0 || !is_program(fd) || is_kept(kept, image))
		return 0;
	if (which == MMT_IMAGES_MISSING && path_provides(image, &status))
		return 0;
	return (uint64_t)status.st_size;
}

static void leave_out(struct kept_images *kept, const char *path)
{
	kept->left_out_count++;
	if (!kept->left_out)
		kept->left_out = strdup(path);
}

static struct kept_file *find_largest(const struct kept_images *kept)
{
	struct kept_file *largest = NULL;

	for (size_t i = 0; i < kept->files.count; i++) {
		struct kept_file *file = &kept->files.items[i];

		if (file->fd >= 0 && (!largest || file->bytes > largest->bytes))
			largest = file;
	}
	return largest;
}

/* Removing one larger file is enough: the others fitted together with it. */
static bool make_room(struct kept_images *kept, uint64_t bytes)
{
	struct kept_file *largest;

	if (bytes <= IMAGES_BYTES_MAX - kept->bytes)
		return true;
	largest = find_largest(kept);
	if (!largest || largest->bytes <= bytes)
		return false;
	leave_out(kept, kept->index.images.items[largest - kept->files.items].path);
	kept->bytes -= largest->bytes;
	close(largest->fd);
	*largest = (struct kept_file){.fd = -1};
	return true;
}

/* Takes `fd`. */
static struct kept_file choose_file(struct kept_images *kept, enum mmt_images which, const struct image_copy *image,
				    int fd)
{
	struct kept_file file = {.fd = fd, .bytes = measure_wanted(kept, which, image, fd)};

	if (file.bytes && make_room(kept, file.bytes)) {
		file.fd = known_processes_spare(fd);
		return file;
	}
	if (file.bytes)
		leave_out(kept, image->path);
	if (fd >= 0)
		close(fd);
	return (struct kept_file){.fd = -1};
}

struct mmt_error *kept_images_add(struct kept_images *kept, enum mmt_images which, const struct image_copy *image,
				  int fd)
{
	uint64_t entry_bytes = image_copies_entry_bytes(image);
	struct image_copy copy = *image;
	struct kept_file file;

	if (kept->files.count >= LIMIT_IMAGES || entry_bytes > INDEX_BYTES_MAX - kept->index_bytes) {
		leave_out(kept, image->path);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	file = choose_file(kept, which, image, fd);
	copy.path = strdup(image->path);
	if (copy.path && vector_push(&kept->files, file)) {
		if (vector_push(&kept->index.images, copy)) {
			kept->index_bytes += entry_bytes;
			kept->bytes += file.fd >= 0 ? file.bytes : 0;
			return NULL;
		}
		kept->files.count--;
	}
	if (file.fd >= 0)
		close(file.fd);
	free(copy.path);
	return &error_no_memory;
}

static bool is_interrupted(const struct recorder *recorder)
{
	return recorder_stop_requests(recorder) > recorder->stop_requests;
}

/* Writes a compressed frame for each piece. The size is 0 if the file is empty now. */
static bool add_pieces(const struct recorder *recorder, struct compressor *compressor, const struct kept_file *file,
		       struct buffer *buffer, uint64_t *size_ret)
{
	CLEANUP(free) uint8_t *piece = malloc(PIECE_BYTES);
	uint64_t size = 0;
	ssize_t count = 1;

	while (piece && count > 0 && size < file->bytes && !is_interrupted(recorder)) {
		uint64_t left = file->bytes - size;
		struct mmt_error *error;

		count = pread(file->fd, piece, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES, (off_t)size);
		if (count <= 0)
			break;
		error = compressor_frame(compressor, piece, (size_t)count, buffer);
		if (error) {
			mmt_error_destroy(error);
			return false;
		}
		size += (uint64_t)count;
	}
	*size_ret = size;
	return size && count >= 0 && !is_interrupted(recorder);
}

/* Copies the complete file or nothing. */
static bool add_copy(const struct recorder *recorder, struct compressor *compressor, const struct kept_file *file,
		     struct buffer *buffer, uint64_t *size_ret)
{
	size_t start = buffer->size;

	if (add_pieces(recorder, compressor, file, buffer, size_ret))
		return true;
	buffer->size = start;
	return false;
}

struct mmt_error *kept_images_encode(const struct recorder *recorder, struct kept_images *kept, struct buffer *buffer)
{
	CLEANUP(free) size_t *places = calloc(kept->files.count + 1, sizeof(*places));
	struct compressor *compressor = NULL;
	struct mmt_error *error = places ? compressor_create(&compressor) : &error_no_memory;

	if (!error) {
		image_copies_encode_index(&kept->index, buffer, places);
		error = buffer_finish(buffer);
	}
	for (size_t i = 0; !error && i < kept->files.count; i++) {
		size_t offset = buffer->size;
		uint64_t size = 0;

		if (kept->files.items[i].fd < 0)
			continue;
		if (add_copy(recorder, compressor, &kept->files.items[i], buffer, &size))
			image_copies_patch(buffer, places[i], offset, buffer->size - offset, size);
		else if (is_interrupted(recorder))
			kept->interrupted++;
		else
			kept->failed++;
	}
	compressor_destroy(compressor);
	return error;
}
