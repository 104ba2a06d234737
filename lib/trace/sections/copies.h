/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sections with copies: of JIT code (FEATURE_MMTRACE_CODE) and of modules (FEATURE_MMTRACE_IMAGES). */
#ifndef TRACE_SECTIONS_COPIES_H
#define TRACE_SECTIONS_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/errors.h"
#include "base/vector.h"
#include "trace/read/recording-file.h"

/*
 * FEATURE_MMTRACE_CODE: the latest bytes of JIT code, by process and program. Other code seen at the same address
 * before is among the changes.
 */

/* Contiguous bytes. */
struct code_run {
	uint64_t start; /* address in the process */
	size_t size;
	size_t offset; /* in code_copies.bytes */
};

/* Code that was later replaced by other code. */
struct code_change {
	uint64_t start; /* within one run */
	size_t size;
	size_t offset;	   /* in code_copies.bytes */
	uint64_t until_ns; /* when it was last seen */
};

struct process_code {
	int32_t pid;
	uint64_t until_ns; /* when another program replaced it in the process, or another process got its PID;
			      UINT64_MAX: never */
	VECTOR(struct code_run) runs;	    /* ascending, disjoint */
	VECTOR(struct code_change) changes; /* ascending by time */
};

struct code_copies {
	VECTOR(struct process_code) processes;
	struct buffer bytes;
};

/* The kernel's names for memory that belongs to no module: executable memory there is JIT code. */
bool code_copies_is_jit(const char *path);

/* The same, and modules of .NET: their precompiled code has no frame pointers and no unwind tables that mmtrace
 * reads. */
bool code_copies_is_wanted(const char *path);

/* Accepts a zeroed value. */
void code_copies_deinit(struct code_copies *copies);

/* Adds the next bytes of a process, which are at `offset` in code_copies.bytes. Bytes below the end of its last run are
 * ignored. False: out of memory. */
bool code_copies_add(struct process_code *process, uint64_t start, size_t size, size_t offset);

/* Source of bytes that the recorder keeps elsewhere: appends those of the run or change at this offset to `plain`. */
struct code_source {
	void *context;
	struct mmt_error *(*read)(void *context, size_t offset, struct buffer *plain);
};

/* As for the other compressed sections, see sections.h, but in several frames: they are never all in memory. `source`:
 * NULL for copies->bytes. */
struct mmt_error *code_copies_encode(const struct code_copies *copies, const struct code_source *source,
				     struct buffer *buffer) MMT_MUST_CHECK;
struct mmt_error *code_copies_decode(struct bytes *bytes, size_t *room, struct code_copies *copies_ret) MMT_MUST_CHECK;

/* The code of the program that began in the process at this time; NULL: none. */
const struct process_code *code_copies_find(const struct code_copies *copies, int32_t pid, uint64_t began_ns);

/* At most `size` bytes from `address` on. Returns their number, 0: none. Borrowed. */
size_t code_copies_at(const struct code_copies *copies, const struct process_code *process, uint64_t address,
		      size_t size, const uint8_t **code_ret);

/* At most `size` bytes that end at `address`. */
size_t code_copies_before(const struct code_copies *copies, const struct process_code *process, uint64_t address,
			  size_t size, const uint8_t **code_ret);

/*
 * FEATURE_MMTRACE_IMAGES: the mapped modules, by device and inode, which do not depend on the root in which a path is
 * resolved; and copies of modules that cannot be found by their path on the recording machine.
 */

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

/*
 * The section begins with the index. The copies are appended to the same buffer, and then entered in the index: image
 * `number` has `stored` bytes at `offset`, which are `size` bytes uncompressed. `places` has an element for each image.
 */
void module_copies_encode_index(const struct module_copies *copies, struct buffer *buffer, size_t *places);
void module_copies_patch(struct buffer *buffer, size_t place, size_t offset, size_t stored, uint64_t size);

/* Decodes the index; on error the value is empty. The file must outlive it. */
struct mmt_error *module_copies_load(const struct recording_file *file,
				     struct module_copies *copies_ret) MMT_MUST_CHECK;

/* Reads the content of a copied file; the caller owns it. Exactly image->size bytes. */
struct mmt_error *module_copies_extract(const struct module_copies *copies, const struct module_copy *image,
					uint8_t **data_ret) MMT_MUST_CHECK;

#endif
