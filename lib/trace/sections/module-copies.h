/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * FEATURE_MMTRACE_IMAGES: the modules that were mapped, by device and inode, which stay the same whatever root a
 * path is looked at from; and copies of those that their path does not lead to on the recording machine.
 */
#ifndef TRACE_SECTIONS_MODULE_COPIES_H
#define TRACE_SECTIONS_MODULE_COPIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/errors.h"
#include "base/vector.h"
#include "trace/read/recording-file.h"

struct module_copy {
	uint32_t device_major, device_minor;
	uint64_t inode;
	char *path; /* owned; as MMAP2 or the snapshot names it */
	uint8_t build_id[20];
	uint8_t build_id_size;	 /* 0: it has none */
	uint64_t size;		 /* of the file; 0: no copy */
	uint32_t offset, stored; /* the compressed copy in the section */
};

struct module_copies {
	VECTOR(struct module_copy) images;
	const struct recording_file *file; /* NULL: none read */
};

void module_copies_deinit(struct module_copies *copies);

/* The size of an image's index entry. */
uint64_t module_copies_entry_bytes(const struct module_copy *image);

/*
 * The section begins with the index; the copies are appended to the same buffer, and told to the index once they are
 * there: image `number` has `stored` bytes at `offset`, which are `size` bytes uncompressed. `places` has an element
 * for each image.
 */
void module_copies_encode_index(const struct module_copies *copies, struct buffer *buffer, size_t *places);
void module_copies_patch(struct buffer *buffer, size_t place, size_t offset, size_t stored, uint64_t size);

/* The index; on error the value is empty. The file must outlive it. */
struct mmt_error *module_copies_load(const struct recording_file *file,
				     struct module_copies *copies_ret) MMT_MUST_CHECK;

/* The content of a file that was copied, owned by the caller; exactly image->size bytes. */
struct mmt_error *module_copies_extract(const struct module_copies *copies, const struct module_copy *image,
					uint8_t **data_ret) MMT_MUST_CHECK;

#endif
