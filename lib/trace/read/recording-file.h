/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The outer structure of a perf.data file: header, attributes with their ids, places of the data and the sections. */
#pragma once

#include <mmtrace/progress.h>

#include "base/compression.h"
#include "base/vector.h"
#include "trace/format/format.h"

struct file_attribute {
	struct perf_event_attr attr; /* zero beyond its size in the file */
	VECTOR(uint64_t) ids;
};

struct file_section {
	uint64_t offset, size;
	bool present; /* and completely inside the file */
};

struct recording_file {
	char *path;
	int fd;
	uint64_t size;
	uint64_t data_offset, data_end;
	bool cut;	 /* its end is missing */
	bool changed;	 /* it does not match its checksum */
	bool incomplete; /* the recorder did not finish, or the file is shorter than its header says */
	bool finished;	 /* the recorder has finished since it was opened */
	bool follows;	 /* the end of the data is only one for now: see recording_file_grow() */
	unsigned users;	 /* how often it must be closed */
	VECTOR(struct file_attribute) attributes; /* at least one */
	uint64_t id_count;			  /* of all attributes */
	struct file_section sections[FEATURE_BITS];
};

#define RECORDING_STANDARD_INPUT "-" /* instead of a path; a pipe is first read to its end */

/* Opens the path. Every message begins with it. `progress` is for input from a pipe; it may be NULL. */
struct mmt_error *recording_file_open(const char *path, const struct mmt_progress *progress,
				      struct recording_file **file_ret) MMT_MUST_CHECK;

/* Adds an attribute of any size, and its ids. */
struct mmt_error *recording_file_add_attribute(struct recording_file *file, const void *attribute, size_t size,
					       const uint8_t *ids, size_t id_count) MMT_MUST_CHECK;

/* Find how far the recorder has written since then. */
struct mmt_error *recording_file_grow(struct recording_file *file) MMT_MUST_CHECK;

/* Accepts NULL. */
void recording_file_close(struct recording_file *file);

/* Reads exactly `size` bytes. */
struct mmt_error *recording_file_read(const struct recording_file *file, uint64_t offset, void *data,
				      size_t size) MMT_MUST_CHECK;

/* Reads the complete section; the caller owns it. NULL with size 0 if absent. */
struct mmt_error *recording_file_load(const struct recording_file *file, enum format_feature feature,
				      uint8_t **data_ret, size_t *size_ret) MMT_MUST_CHECK;

/* Does the file begin with the header of perf's pipe format? */
bool pipe_input_is_pipe_format(int fd);

/* Where the unnamed files are. */
const char *pipe_input_directory(void);

/* Reads all of `input` from its current position into a file that becomes the descriptor of `file`, whose path is for
 * messages. If it has perf's pipe format, the file is complete afterwards; else its data_end is 0. `progress` may be
 * NULL. */
struct mmt_error *pipe_input_keep(int input, struct recording_file *file,
				  const struct mmt_progress *progress) MMT_MUST_CHECK;

/* Blocks of memory that hold records: a part of the file, or the content of one compressed record. Code that keeps a
 * record keeps its block, so no record is copied. */

struct record_block {
	struct buffer content;
	uint64_t offset; /* offset in the file: of the content, or of the compressed record */
	bool compressed;
	bool left;	/* it contains no more unread records */
	size_t pending; /* records in it that wait in the order */
	size_t counted; /* bytes counted by the order while records are pending */
	struct record_block *next;
};

/* Returns an empty block for at most `maximum` bytes. NULL: out of memory. */
struct record_block *record_block_create(size_t maximum);

/* Destroys a list of blocks; may be NULL. */
void record_blocks_destroy(struct record_block *list);

/* Reads and decompresses the records of the data section in sequence. */

struct record {
	struct perf_event_header header;
	const uint8_t *data;	    /* the complete record with its header; valid until the next call */
	uint64_t offset;	    /* offset in the file: of the record, or of the compressed record that ends it */
	struct record_block *block; /* the block that holds it */
};

struct records {
	const struct recording_file *file;
	struct record_block *window; /* of the file; NULL: none yet */
	uint64_t offset;	     /* in the file, of the next record or of the compressed record that has it */
	struct decompressor decompressor;
	struct record_block *plain; /* decompressed; a record may begin in one compressed record and end in a later one;
				       NULL: none yet */
	size_t plain_position;
	struct record_block *retired;
	struct record_block *spare;	     /* for decompressed records; NULL: none */
	uint64_t plain_records, plain_bytes; /* decompressed so far */
	struct mmt_error *plain_damage;	     /* error to return after the records that could be decompressed */
	bool ended;
};

/* Borrows the file. */
struct mmt_error *records_create(const struct recording_file *file, struct records **records_ret) MMT_MUST_CHECK;
void records_destroy(struct records *records);

/* Takes a list of blocks without pending records, to use their memory again. */
void records_recycle(struct records *records, struct record_block *list);

/* The end is the end of the data, the end of a truncated file, or the first damage: *damage_ret is then an error that
 * the caller owns. The return value is for failures of this machine. */
struct mmt_error *records_next(struct records *records, struct record *record_ret, bool *end_ret,
			       struct mmt_error **damage_ret) MMT_MUST_CHECK;

/* Finds the zstd stream in a RECORD_COMPRESSED or RECORD_COMPRESSED2. False: the size inside is wrong. */
bool records_find_stream(const uint8_t *record, size_t size, const uint8_t **data_ret, size_t *size_ret);

/* Returns "MMAP2", or "UNKNOWN", because "record type 77" would need a buffer. Static. */
const char *record_type_name(uint32_t type);
