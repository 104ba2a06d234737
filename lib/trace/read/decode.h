/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decodes records to events. */
#ifndef TRACE_READ_DECODE_H
#define TRACE_READ_DECODE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/errors.h"
#include "trace/format/event.h"
#include "trace/format/sample-layout.h"
#include "trace/read/reader.h"
#include "trace/read/reorder.h"

/* The RAW fields in a sample of one call or task attribute. */
struct decode_fields {
	struct tracepoint_field result;	      /* exits */
	struct tracepoint_field arguments[6]; /* entries */
	size_t argument_count;
	struct tracepoint_field task, clone_flags; /* new tasks */
	bool complete;				   /* all fields required by the attribute's role exist */

	int8_t registers[64];	  /* DWARF numbers of the registers in the sample's order; -1: not used */
	size_t register_count;	  /* in the sample */
	uint64_t registers_known; /* bits of their DWARF numbers */

	/* For calls. */
	uint8_t argument_places[6]; /* index in the sample's registers */
	size_t arguments_known;	    /* all arguments of the call, or 0 */
	bool uses_stack;	    /* its stack is needed even if it did not fail */
	bool usual;		    /* see decode_ahead() */
};

#define CALLCHAIN_LIMIT_DEFAULT 127 /* kernel.perf_event_max_stack */

struct decoder {
	const struct recording_file *file;
	const struct layouts *layouts;
	const struct reader_metadata *metadata;
	struct decode_fields *fields; /* by attribute */
	uint64_t *callchain;	      /* LIMIT_CALLCHAIN entries */
	bool no_data_mappings;	      /* no attribute requested them */
	bool has_dumps;		      /* some attribute is only for stack dumps */
	bool only_used_stacks;	      /* see reader_leave_out_unused_stacks() */
};

/* Borrows all three arguments. */
struct mmt_error *decoder_create(const struct recording_file *file, const struct layouts *layouts,
				 const struct reader_metadata *metadata, struct decoder **decoder_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
void decoder_destroy(struct decoder *decoder);

/* The event borrows from the record and the decoder. False: `bytes_ret` describes what is wrong with the record,
 * counted from its start. */
bool decoder_decode(struct decoder *decoder, const struct perf_event_header *header, const uint8_t *record,
		    const struct record_identity *identity, struct event *event_ret, struct bytes *bytes_ret);

/* Parts of a sample, for code that parses samples itself. */
static inline uint64_t decode_word(const uint8_t *words, size_t index)
{
	uint64_t word;

	memcpy(&word, words + index * sizeof(word), sizeof(word));
	return le64toh(word);
}

/* Decodes samples on the readahead thread, and numbers equal callchains. */

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
	uint32_t callchain_count, resolved, delay;
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

/* Decodes each item. */
void decode_ahead(const struct decoder *decoder, struct callchain_numbers *numbers, const struct reorder_item *items,
		  size_t count, struct ahead_call *calls_ret);

/* The event as decoder_decode() would return it. */
void decode_ahead_expand(const struct decoder *decoder, const struct reorder_item *item, const struct ahead_call *call,
			 struct event *event_ret);

#endif
