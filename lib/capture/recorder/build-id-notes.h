/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Build-ids of the mapped modules, and copies of modules that may be gone when the report is made (--images). */
#pragma once

#include "trace/sections/sections.h"

struct blocking_calls;
struct recorder;
struct stat;

struct kept_file {
	int fd;		/* -1: the file is not copied */
	uint64_t bytes; /* size when first seen; the copy is limited to it if the file grows */
};

/* The modules of the recorded processes. Each file is opened (O_PATH) when it is first seen and stays open, because it
 * can then be read after its process, its path and its mount namespace are gone. When recording ends, files that a
 * report would not find by their path are copied into the recording: files of a container or another root directory,
 * and files that were replaced or deleted. */
struct kept_modules {
	struct module_copies index;
	VECTOR(struct kept_file) files; /* in the order of `index` */
	uint64_t bytes;			/* total size of the files to copy */
	uint64_t index_bytes;
	char *left_out; /* path of the first file left out because of the size limit; owned */
	uint64_t left_out_count;
	size_t interrupted, failed; /* number of files not copied: stopped by the user, or errors */
};

void kept_modules_deinit(struct kept_modules *kept);

/* Add a mapped file of `bytes` (0: it is no ELF file). Copy `module` and take ownership of `fd`, the file (O_PATH)
 * or -1. If the files together exceed the limit, the largest is left out, so that the files of one program do not
 * displace all others. */
struct mmt_error *kept_modules_add(struct blocking_calls *calls, struct kept_modules *kept, enum mmt_images which,
				   const struct module_copy *module, int fd, uint64_t bytes) MMT_MUST_CHECK;

/* Write the section: the index, then the copies. Files that cannot be read or compressed are left out. After a second
 * stop request the remaining files are left out, too. */
struct mmt_error *kept_modules_encode(struct recorder *recorder, struct kept_modules *kept,
				      struct buffer *buffer) MMT_MUST_CHECK;

struct build_id_mapping {
	pid_t pid;
	uint64_t start, end;
	uint32_t device_major, device_minor;
	uint64_t inode;
	const char *path;
};

struct wanted_build_id {
	struct build_id_mapping mapping; /* without its path */
	char *path;			 /* owned */
};

/* The build-ids of the mapped modules, read while the files are accessible. */
struct build_id_notes {
	struct intern seen; /* key: device, inode and path */
	VECTOR(struct wanted_build_id) wanted;
	struct build_ids found;
	size_t in_pieces; /* number of elements of `found` already written as incremental metadata */
};

void build_id_notes_deinit(struct build_id_notes *notes);

/* Requests the build-id of the file of an executable mapping, once per file. Copy its arguments. */
struct mmt_error *build_id_notes_want(struct build_id_notes *notes,
				      const struct build_id_mapping *mapping) MMT_MUST_CHECK;

/* Read the requested build-ids of recorder->jobs. Files that cannot be read or have no build-id are left out. The
 * files are added to the kept modules. Let the ring reader work in between. */
struct mmt_error *build_id_notes_read(struct recorder *recorder) MMT_MUST_CHECK;

/* Find a mapped file through /proc/PID/map_files (O_PATH). Return -1 and errno on failure. */
int mapped_file_find(struct blocking_calls *calls, const struct build_id_mapping *mapping, struct stat *status_ret);

/* Find NT_GNU_BUILD_ID of an ELF file whose first `size` bytes are at `data`; these must include the program headers
 * and the notes. False: the file has none. */
bool build_id_notes_find(const void *data, size_t size, struct build_id_entry *entry);
