/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decodes records to events. */
#pragma once

#include "trace/format/sample-layout.h"
#include "trace/read/reader.h"

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
	bool major_faults;
	bool uses_stack; /* the stack of the call is needed even if it did not fail */
};

struct decoder {
	const struct layouts *layouts;
	const struct reader_metadata *metadata;
	struct decode_fields *fields; /* by attribute */
	uint64_t *callchain;   /* room for LIMIT_CALLCHAIN entries; the caller sets it */
	uint32_t exits;	       /* a bit for each call whose exits are recorded */
	bool no_data_mappings; /* no attribute requested them */
	bool only_used_stacks; /* see reader_leave_out_unused_stacks() */
};

/* Borrows the layouts and the metadata. The caller frees decoder->fields. */
struct mmt_error *decoder_init(struct decoder *decoder, const struct recording_file *file,
			       const struct layouts *layouts, const struct reader_metadata *metadata) MMT_MUST_CHECK;

/* The event borrows from the record and from `callchain`. False: `bytes` describes what is wrong with the record. */
bool decoder_decode(struct decoder *decoder, const struct perf_event_header *header, const uint8_t *record,
		    const struct record_identity *identity, struct event *event, struct bytes *bytes);

/* A word of the runs of EVENT_RESIDENT_PAGES, or of a part of a sample. */
static inline uint64_t decode_word(const uint8_t *words, size_t index)
{
	return layout_word(words, index * sizeof(uint64_t));
}
