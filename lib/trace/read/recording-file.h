/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The frame of a perf.data file: header, attributes with their ids, where the data and the feature sections lie. */
#ifndef TRACE_READ_RECORDING_FILE_H
#define TRACE_READ_RECORDING_FILE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mmtrace/progress.h>

#include "base/buffer.h"
#include "base/errors.h"
#include "base/vector.h"
#include "trace/format/format.h"

struct file_attribute {
	struct perf_event_attr attr; /* zero beyond what the file has */
	VECTOR(uint64_t) ids;
};

struct file_section {
	uint64_t offset, size;
	bool present; /* and wholly inside the file */
};

struct recording_file {
	char *path;
	int fd;
	uint64_t size;
	uint64_t data_offset, data_end;
	bool cut;	 /* what came through a pipe ended in the middle of a record */
	bool incomplete; /* recorder did not finish, or less in the file than its header says */
	VECTOR(struct file_attribute) attributes; /* at least one */
	struct file_section sections[FEATURE_BITS];
};

#define RECORDING_STANDARD_INPUT "-" /* in place of a path; a pipe is read to its end first */

/* Every message begins with the path. */
struct mmt_error *recording_file_open(const char *path, struct recording_file **file_ret) MMT_MUST_CHECK;

/* The same for somebody who waits for a pipe; `progress` may be NULL. */
struct mmt_error *recording_file_open_watched(const char *path, const struct mmt_progress *progress,
					      struct recording_file **file_ret) MMT_MUST_CHECK;

/* An open file, or a pipe; `name` is for messages. The descriptor stays the caller's. */
struct mmt_error *recording_file_open_descriptor(int fd, const char *name, const struct mmt_progress *progress,
						 struct recording_file **file_ret) MMT_MUST_CHECK;

/* The same file, whatever has its name now. */
struct mmt_error *recording_file_open_again(const struct recording_file *file,
					    struct recording_file **file_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
void recording_file_close(struct recording_file *file);

/* Exactly `size` bytes. */
struct mmt_error *recording_file_read(const struct recording_file *file, uint64_t offset, void *data,
				      size_t size) MMT_MUST_CHECK;

/* The whole section, owned by the caller; NULL with size 0 when absent. */
struct mmt_error *recording_file_load(const struct recording_file *file, enum format_feature feature,
				      uint8_t **data_ret, size_t *size_ret) MMT_MUST_CHECK;

/*
 * Where records lie while they are looked at: a piece of the file, or what one compressed record holds. Whoever keeps
 * records keeps their block, so that none has to be copied; a pool takes back blocks for the next ones. The pool is the
 * one thing here that two threads may use at once.
 */

struct record_block {
	struct buffer content;
	uint64_t offset; /* in the file: of the content, or of the compressed record */
	bool compressed;
	bool left;	/* no more records will be found in it */
	size_t pending; /* records in it that wait in the order */
	size_t counted; /* bytes, by the order while it has pending ones */
	struct record_block *next;
};

struct record_blocks;

struct mmt_error *record_blocks_create(struct record_blocks **blocks_ret) MMT_MUST_CHECK;

/* Those that were given back go with it. Accepts NULL. */
void record_blocks_destroy(struct record_blocks *blocks);

/* An empty one, which bears at most `maximum` bytes, and is to hold `expected` of them (0: unknown); NULL: out of
 * memory. */
struct record_block *record_blocks_take(struct record_blocks *blocks, size_t expected, size_t maximum);

/* A list of them, linked by `next`; may be NULL. */
void record_blocks_give_back(struct record_blocks *blocks, struct record_block *list);

#endif
