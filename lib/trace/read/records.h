/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The records of the data section one after the other, decompressed. */
#ifndef TRACE_READ_RECORDS_H
#define TRACE_READ_RECORDS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "trace/read/recording-file.h"

struct record {
	struct perf_event_header header;
	const uint8_t *data;	    /* the whole record, its header included; until the next call */
	uint64_t offset;	    /* in the file: of the record, or of the compressed record that ends it */
	struct record_block *block; /* that holds it */
};

struct records;

/* Borrows the file. */
struct mmt_error *records_create(const struct recording_file *file, struct records **records_ret) MMT_MUST_CHECK;
void records_destroy(struct records *records);

/*
 * From now on take blocks from `blocks`, and do not free a block after its last record was read: a block with pending
 * records belongs to the code that made them pending, others are returned by records_retired().
 */
void records_share_blocks(struct records *records, struct record_blocks *blocks);
/* From now on another thread may call records_decompress_one(), also during records_next(). Requires shared blocks.
 * Does nothing if out of memory. */
void records_start_readahead(struct records *records);
/* From that thread: decompress a block ahead. False: nothing to do now. */
bool records_decompress_one(struct records *records);
/* A list for record_blocks_give_back(); NULL: none since the last call. */
struct record_block *records_retired(struct records *records);
bool records_has_retired(const struct records *records);

/*
 * The end is where the data end, where a file that was cut short ends, or at the first damage: then *damage_ret is an
 * error that the caller owns. The return value is for failures of this machine.
 */
struct mmt_error *records_next(struct records *records, struct record *record_ret, bool *end_ret,
			       struct mmt_error **damage_ret) MMT_MUST_CHECK;

/* "MMAP2"; "record type 77" would need a buffer, so "UNKNOWN". Static. */
const char *record_type_name(uint32_t type);

#endif
