/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records to events. */
#ifndef TRACE_READ_DECODE_H
#define TRACE_READ_DECODE_H

#include <endian.h>
#include <string.h>

#include "base/bytes.h"
#include "trace/format/event.h"
#include "trace/format/sample-layout.h"
#include "trace/read/reader.h"

/* What a sample of one call or task attribute has in its RAW bytes. */
struct decode_fields {
	struct tracepoint_field result;	      /* exits */
	struct tracepoint_field arguments[6]; /* entries */
	size_t argument_count;
	struct tracepoint_field task, clone_flags;     /* new tasks */
	struct tracepoint_field space, write, success; /* locks */
	bool complete;				       /* what this attribute's role needs is there */

	int8_t registers[64];	  /* DWARF numbers of the registers in the sample's order; -1: of no use */
	size_t register_count;	  /* in the sample */
	uint64_t registers_known; /* bits of their DWARF numbers */

	/* Of calls. */
	uint8_t argument_places[6]; /* in the sample's registers */
	size_t arguments_known;	    /* all that the call takes, or 0 */
	bool uses_stack;	    /* somebody asks who it was, even if it did not fail */
	bool usual;		    /* see decode-ahead.h */
};

#define CALLCHAIN_LIMIT_DEFAULT 127 /* kernel.perf_event_max_stack */

struct decoder {
	const struct recording_file *file;
	const struct layouts *layouts;
	const struct reader_metadata *metadata;
	struct decode_fields *fields; /* by attribute */
	uint64_t *callchain;	      /* LIMIT_CALLCHAIN entries */
	bool no_data_mappings;	      /* no attribute asked for them */
	bool has_dumps;		      /* some attribute is for stack dumps alone */
	bool only_used_stacks;	      /* see reader_leave_out_unused_stacks() */
};

/* Borrows all three. */
struct mmt_error *decoder_create(const struct recording_file *file, const struct layouts *layouts,
				 const struct reader_metadata *metadata, struct decoder **decoder_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
void decoder_destroy(struct decoder *decoder);

/* The event borrows from the record and the decoder. False: `bytes_ret` says what is wrong with the record, counted
 * from its start. */
bool decoder_decode(struct decoder *decoder, const struct perf_event_header *header, const uint8_t *record,
		    const struct record_identity *identity, struct event *event_ret, struct bytes *bytes_ret);

/*
 * Parts of a sample, for those who read one in their own way.
 */
static inline uint64_t decode_word(const uint8_t *words, size_t index)
{
	uint64_t word;

	memcpy(&word, words + index * sizeof(word), sizeof(word));
	return le64toh(word);
}

/* What samples have mostly: one marker, then user addresses. They may stay where they are. */
bool decode_is_plain_callchain(const uint8_t *data, uint64_t count);

/* The same, of one whose words behind the first are known to be addresses. */
static inline bool decode_begins_plainly(const uint8_t *data, uint64_t count)
{
	return count >= 2 && decode_word(data, 0) == (uint64_t)PERF_CONTEXT_USER &&
	       (uintptr_t)data % sizeof(uint64_t) == 0 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
}

/* Its addresses. */
static inline const uint64_t *decode_plain_callchain(const uint8_t *data, uint64_t count, uint32_t *count_ret)
{
	*count_ret = (uint32_t)(count - 1);
	return (const uint64_t *)data + 1;
}

/* Whether so many addresses are as many as the kernel gives. */
static inline bool decode_is_full_callchain(const struct decoder *decoder, uint64_t count)
{
	uint64_t limit = decoder->metadata->info.callchain_limit;

	return count >= (limit ? limit : CALLCHAIN_LIMIT_DEFAULT);
}

/* Of a sample; in a file of its own because samples have so many fields. `bytes` is over the record, behind its header.
 */
void decode_sample(struct decoder *decoder, const struct record_identity *identity, struct bytes *bytes,
		   struct event *event);

#endif
