/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Build-ids of the program files that were mapped, read while the files can be had. */
#ifndef CAPTURE_BUILD_ID_NOTES_H
#define CAPTURE_BUILD_ID_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/map.h"
#include "base/vector.h"
#include "capture/kept-images.h"
#include "trace/sections.h"

struct build_id_mapping {
	pid_t pid;
	uint64_t start, end;
	uint32_t device_major, device_minor;
	uint64_t inode;
	const char *path;
};

struct wanted_build_id {
	pid_t pid;
	uint64_t start, end;
	uint32_t device_major, device_minor;
	uint64_t inode;
	char *path; /* owned */
};

struct build_id_notes {
	struct intern seen; /* device, inode, path */
	VECTOR(struct wanted_build_id) wanted;
	struct build_ids found;
	size_t in_pieces; /* of `found`: see name-pieces.h */
};

/* Accepts a zeroed value. */
void build_id_notes_deinit(struct build_id_notes *notes);

/* Ask for the build-id of an executable mapping's file; once per file. Copies. */
struct mmt_error *build_id_notes_want(struct build_id_notes *notes,
				      const struct build_id_mapping *mapping) MMT_MUST_CHECK;

/* Read those asked for; files that cannot be read or have none are left out. The files themselves go to `kept`. */
struct mmt_error *build_id_notes_read(struct build_id_notes *notes, struct kept_images *kept,
				      enum mmt_images which) MMT_MUST_CHECK;

/* Of an open file; false: none. */
bool build_id_notes_read_file(int fd, struct build_id_entry *entry);

/*
 * The NT_GNU_BUILD_ID of an ELF file of which the first `size` bytes are at `data`: program headers and notes must lie
 * within. False: none.
 */
bool build_id_notes_find(const void *data, size_t size, struct build_id_entry *entry);

#endif
