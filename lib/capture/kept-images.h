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

struct kept_images {
	struct image_copies index;
	VECTOR(int) fds; /* by image; -1: not copied */
	uint64_t bytes;	 /* of those to be copied */
	char *left_out;	 /* the first that there was no room for; owned */
	uint64_t left_out_count;
};

/* Accepts a value that is zero. */
void kept_images_deinit(struct kept_images *kept);

/* An image, copied; `fd` is its file, or -1, and is taken. */
struct mmt_error *kept_images_add(struct kept_images *kept, enum mmt_images which, const struct image_copy *image,
				  int fd) MMT_MUST_CHECK;

/* The section: index and copies. Files that cannot be read any more are left without. */
struct mmt_error *kept_images_encode(struct kept_images *kept, struct buffer *buffer) MMT_MUST_CHECK;

#endif
