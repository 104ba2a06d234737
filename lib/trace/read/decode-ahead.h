/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decodes samples on the readahead thread, and numbers equal callchains. */
#ifndef TRACE_READ_DECODE_AHEAD_H
#define TRACE_READ_DECODE_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "trace/format/event.h"
#include "trace/read/decode.h"
#include "trace/read/reorder.h"

/*
 * Gives equal callchains equal numbers, so that each needs to be examined only once. Memory is bounded: a callchain
 * that was not seen for long may get another number when it comes again. Different callchains never have the same
 * number.
 */

struct callchain_numbers;

struct mmt_error *callchain_numbers_create(struct callchain_numbers **numbers_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
void callchain_numbers_destroy(struct callchain_numbers *numbers);

/* Its number, from 1. 0: no number yet, and *hash_ret is for callchain_numbers_add(); or it cannot have one. */
uint64_t callchain_numbers_find(struct callchain_numbers *numbers, const uint64_t *callchain, size_t count,
				uint64_t *hash_ret);

/* Assigns a number to a callchain without one; 0: it is empty or too long, or out of memory. */
uint64_t callchain_numbers_add(struct callchain_numbers *numbers, const uint64_t *callchain, size_t count,
			       uint64_t hash);

/*
 * Samples of calls, the bulk of a long recording, decoded into a compact form by the thread that has just decompressed
 * them. Samples of unusual shape and all damaged ones are left to decoder_decode().
 */

struct ahead_call {
	bool ready; /* false: the other members are invalid */
	bool callchain_full;
	uint32_t callchain_count, resolved;
	int32_t pid, tid, cpu;
	uint64_t id;
	int64_t result;
	uint64_t arguments[6];
	const uint64_t *callchain; /* in the record, like the next two; NULL: none, or not needed */
	uint64_t callchain_number;
	const uint8_t *registers; /* NULL: none, or not needed */
	const uint8_t *bytes;
	uint32_t byte_count, bytes_wanted;
};

/* Whether samples of an attribute have the usual shape. */
bool decode_ahead_is_usual(const struct reader_attribute *attribute, const struct perf_event_attr *attr,
			   const struct decode_fields *fields);

/* Decodes each item. */
void decode_ahead(const struct decoder *decoder, struct callchain_numbers *numbers, const struct order_item *items,
		  size_t count, struct ahead_call *calls_ret);

/* The event as decoder_decode() would return it. */
void decode_ahead_expand(const struct decoder *decoder, const struct order_item *item, const struct ahead_call *call,
			 struct event *event_ret);

#endif
