/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decodes records to events. */
#ifndef TRACE_READ_DECODE_H
#define TRACE_READ_DECODE_H

#include <endian.h>
#include <string.h>

#include "base/bytes.h"
#include "trace/format/event.h"
#include "trace/format/sample-layout.h"
#include "trace/read/reader.h"

/* The RAW fields in a sample of one call or task attribute. */
struct decode_fields {
	struct tracepoint_field result;	      /* exits */
	struct tracepoint_field arguments[6]; /* entries */
	size_t argument_count;
	struct tracepoint_field task, clone_flags;     /* new tasks */
	struct tracepoint_field space, write, success; /* locks */
	bool complete;				       /* all fields required by the attribute's role exist */

	int8_t registers[64];	  /* DWARF numbers of the registers in the sample's order; -1: not used */
	size_t register_count;	  /* in the sample */
	uint64_t registers_known; /* bits of their DWARF numbers */

	/* For calls. */
	uint8_t argument_places[6]; /* index in the sample's registers */
	size_t arguments_known;	    /* all arguments of the call, or 0 */
	bool uses_stack;	    /* its stack is needed even if it did not fail */
	bool usual;		    /* see decode-ahead.h */
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

/* The usual callchain: one marker, then user addresses. It can be used in place. */
bool decode_is_plain_callchain(const uint8_t *data, uint64_t count);

/* The same for a callchain whose words after the first are known to be addresses. */
static inline bool decode_begins_plainly(const uint8_t *data, uint64_t count)
{
	return count >= 2 && decode_word(data, 0) == (uint64_t)PERF_CONTEXT_USER &&
	       (uintptr_t)data % sizeof(uint64_t) == 0 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
}

/* The addresses of such a callchain. */
static inline const uint64_t *decode_plain_callchain(const uint8_t *data, uint64_t count, uint32_t *count_ret)
{
	*count_ret = (uint32_t)(count - 1);
	return (const uint64_t *)data + 1;
}

/* Whether the kernel may have truncated a callchain of this length. */
static inline bool decode_is_full_callchain(const struct decoder *decoder, uint64_t count)
{
	uint64_t limit = decoder->metadata->info.callchain_limit;

	return count >= (limit ? limit : CALLCHAIN_LIMIT_DEFAULT);
}

/* Decodes a sample; in a file of its own because samples have so many fields. `bytes` is positioned behind the record's
 * header. */
void decode_sample(struct decoder *decoder, const struct record_identity *identity, struct bytes *bytes,
		   struct event *event);

#endif
