/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The section with the mapped modules and copies of some of them. */
#pragma once

#include "trace/read/recording-file.h"

/* FEATURE_MMTRACE_IMAGES: the mapped modules, by device and inode, which do not depend on the root in which a path is
 * resolved; and copies of modules that cannot be found by their path on the recording machine. */

struct module_copy {
	uint32_t device_major, device_minor;
	uint64_t inode;
	char *path; /* owned; as in MMAP2 records or the snapshot */
	uint8_t build_id[20];
	uint8_t build_id_size;	 /* 0: no build-id */
	uint64_t size;		 /* of the file; 0: no copy */
	uint32_t offset, stored; /* the compressed copy in the section */
};

struct module_copies {
	VECTOR(struct module_copy) images;
	const struct recording_file *file; /* NULL: not read from a file */
};

void module_copies_deinit(struct module_copies *copies);

/* The size of an image's index entry. */
uint64_t module_copies_entry_bytes(const struct module_copy *image);

/* Writes the index to the start of the buffer, or over the one that is there: first encode it, to make room, then
 * append the copies, enter them in `copies`, and encode it again. */
void module_copies_encode_index(const struct module_copies *copies, struct buffer *buffer);

/* Decodes the index; on error the value is empty. The file must outlive it. */
struct mmt_error *module_copies_load(const struct recording_file *file,
				     struct module_copies *copies_ret) MMT_MUST_CHECK;

/* Reads the content of a copied file; the caller owns it. Exactly image->size bytes. */
struct mmt_error *module_copies_extract(const struct module_copies *copies, const struct module_copy *image,
					uint8_t **data_ret) MMT_MUST_CHECK;
