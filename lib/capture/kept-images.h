/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program files of the targets, held open from when they are first seen: an open file can be read after its
 * process, its name and its mount namespace are gone. At the end those that a report could not find by their path are
 * copied into the recording: files of a container or another root, and files that were replaced or deleted meanwhile.
 */
#ifndef CAPTURE_KEPT_IMAGES_H
#define CAPTURE_KEPT_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include <mmtrace/record.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/vector.h"
#include "trace/image-copies.h"

struct recorder;

struct kept_file {
	int fd;		/* -1: not copied */
	uint64_t bytes; /* its size when it was first seen: no more is copied if it grows */
};

struct kept_images {
	struct image_copies index;
	VECTOR(struct kept_file) files; /* by image */
	uint64_t bytes;			/* of those to be copied */
	uint64_t index_bytes;
	char *left_out; /* path of the first file left out for lack of room; owned */
	uint64_t left_out_count;
	size_t interrupted, failed; /* files that were not copied because the user stopped copying, or on errors */
};

/* Accepts a value that is zero. */
void kept_images_deinit(struct kept_images *kept);

/*
 * Adds an ELF file; the image is copied, and `fd`, its file or -1, becomes owned. If the files together are too large,
 * the largest is left out, so that the files of one program do not displace all others.
 */
struct mmt_error *kept_images_add(struct kept_images *kept, enum mmt_images which, const struct image_copy *image,
				  int fd) MMT_MUST_CHECK;

/*
 * Writes the section: index and copies. It leaves out files that cannot be read or compressed, and the rest of the files
 * when the user asks a second time to stop.
 */
struct mmt_error *kept_images_encode(const struct recorder *recorder, struct kept_images *kept,
				     struct buffer *buffer) MMT_MUST_CHECK;

#endif
