/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads and decompresses the records of the data section in sequence. */
#pragma once

#include "trace/read/recording-file.h"

struct record {
	struct perf_event_header header;
	const uint8_t *data;	    /* the complete record with its header; valid until the next call */
	uint64_t offset;	    /* offset in the file: of the record, or of the compressed record that ends it */
	struct record_block *block; /* the block that holds it */
};

struct records;

/* Borrows the file. */
struct mmt_error *records_create(const struct recording_file *file, struct records **records_ret) MMT_MUST_CHECK;
void records_destroy(struct records *records);

/* Takes a list of blocks without pending records, to use their memory again. */
void records_recycle(struct records *records, struct record_block *list);

/* Offset in the file of the next record, or of the compressed record that has it. */
uint64_t records_offset(const struct records *records);

/* The end is the end of the data, the end of a truncated file, or the first damage: *damage_ret is then an error that
 * the caller owns. The return value is for failures of this machine. */
struct mmt_error *records_next(struct records *records, struct record *record_ret, bool *end_ret,
			       struct mmt_error **damage_ret) MMT_MUST_CHECK;

/* Finds the zstd stream in a RECORD_COMPRESSED or RECORD_COMPRESSED2. False: the size inside is wrong. */
bool records_find_stream(const uint8_t *record, size_t size, const uint8_t **data_ret, size_t *size_ret);

/* Returns "MMAP2", or "UNKNOWN", because "record type 77" would need a buffer. Static. */
const char *record_type_name(uint32_t type);
