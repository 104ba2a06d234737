/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads a recording by mmtrace or by plain perf. Events are returned in time order. */
#pragma once

#include "trace/format/sample-layout.h"
#include "trace/format/tracepoint.h"
#include "trace/read/reorder.h"
#include "trace/sections/sections.h"

struct reader_attribute {
	char *name;		  /* "syscalls:sys_exit_mmap", "dummy:u", ... */
	enum attribute_role role; /* inferred in files that are not ours */
	bool is_call, is_enter;	  /* whether `call` is valid */
	enum call call;
	uint64_t sample_type;
	uint64_t period; /* one of so many events has a sample */
};

/* All of a recording except its events. Borrowed; lives as long as the reader. */
struct reader_metadata {
	struct recording_info info;
	bool ours;	    /* written by mmtrace: `info` is filled */
	bool incomplete;    /* the recorder was killed, or the file was truncated */
	bool cut;	    /* the file was truncated */
	uint64_t names_end; /* offset in the file: names recorded later are not in here */
	bool has_loss;
	struct recording_loss loss;
	struct perf_map_copies perf_maps;
	struct jitdump_copies jitdumps;
	struct jit_code code;
	bool has_residency;
	struct recording_residency residency;
	bool has_swapped;
	struct recording_residency swapped; /* pages that were swapped out; none at the start */
	struct recording_residency shared;  /* resident pages that other processes have mapped, too */
	bool has_huge_pages;
	struct recording_huge_pages huge_pages;
	struct runtime_options options;
	struct heap_censuses heaps; /* in the order of time */
	struct build_ids build_ids;
	struct module_copies images;
	bool packed; /* samples have numbers of stacks, which are in `stacks` */
	struct packed_stacks stacks;
	struct tracepoints tracepoints;
	const struct architecture *architecture;      /* x86_64 when the file does not say */
	char *host, *kernel, *version, *command_line; /* "" when absent; command line quoted for a shell */
	struct reader_attribute *attributes;
	size_t attribute_count;
	uint64_t first_ns, last_ns; /* FEATURE_SAMPLE_TIME; 0: absent */
	bool compressed;
};

struct metadata {
	struct reader_metadata values;
	struct mmt_error *damage; /* first damage of an optional section; owned */
};

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
	uint64_t *callchain;	      /* room for LIMIT_CALLCHAIN entries; the caller sets it */
	uint32_t exits;		      /* a bit for each call whose exits are recorded */
	bool no_data_mappings;	      /* no attribute requested them */
	/* Set before the first event: do not decode callchains of calls that only unmap and succeeded, nor registers of
	 * calls without a stack dump. */
	bool only_used_stacks;
};

/* Event dedup: a thread created while mmtrace attached to its process can inherit an event from several roots. Each of
 * these fires, so one call produces several records. Of the roots that fire for one (thread, attribute, CPU), only the
 * first counts; ids are per root and CPU. */
struct dedup_root {
	uint64_t key; /* (thread, attribute, CPU) */
	uint64_t id;
	uint64_t time_ns; /* of its last record */
};

struct dedup {
	VECTOR(struct dedup_root) roots;
	struct map places;	/* key -> place in `roots` */
	struct map allocations; /* thread -> when its TID was last reused */
	size_t sweep_at;
};

/* Opened by reader_open(). Others only read it, but for `only_used_stacks`. */
struct reader {
	struct recording_file *file;
	struct metadata metadata;
	struct layouts layouts;
	struct decoder decoder;
	struct dedup dedup;
	struct mmt_error *damage; /* first damage */
	uint64_t out_of_order;	  /* number of events returned after a younger one: the rounds are wrong */
	struct reorder_unfinished unfinished;
	struct records *records; /* NULL: the last event was returned */
	struct order *order;
	bool drained;		   /* no more records to push to the order */
	bool paused;		   /* there are none for now */
	bool ended;		   /* there are no more events */
	uint64_t names_offset;	   /* of the last names that were read among the events, as `names_end` */
	uint64_t sequence;	   /* of the last event */
	struct record_block *done; /* blocks that give no more records after the last event */
};

/* `progress` is for a pipe; it may be NULL. Errors: cannot open, not perf.data, empty, foreign byte order, damage. */
struct mmt_error *reader_open(const char *path, const struct mmt_progress *progress,
			      struct reader **reader_ret) MMT_MUST_CHECK;

/* Events between two checks of the clock for progress reports. */
#define PROGRESS_EVENTS 1024

/* Open the same recording again from its start. */
struct mmt_error *reader_open_again(const struct reader *reader, struct reader **reader_ret) MMT_MUST_CHECK;

/* Return the events from the first one again. */
struct mmt_error *reader_rewind(struct reader *reader) MMT_MUST_CHECK;

/* The recording still grows. At its end, reader_next() says so, and later reads on behind it: after this was called
 * again, with all readers that share the file. `follows` false: from now on that is the end. */
struct mmt_error *reader_follow(struct reader *reader, bool follows) MMT_MUST_CHECK;

/* Returns the next event in time order; *end_ret: there are no more. Damage in the data ends the events early, without
 * an error: see reader_damage(). Errors are failures of this machine (out of memory, read error). */
struct mmt_error *reader_next(struct reader *reader, struct event *event_ret, bool *end_ret) MMT_MUST_CHECK;

/* One line about damage; NULL if there is none. The first undecodable record, such as "record at offset 4711 (MMAP2):
 * ends too early at byte 40", or else a section that was ignored, such as "residency section: version 0 at byte 4".
 * Valid until the next call of reader_next(). */
const char *reader_damage(const struct reader *reader);

/* The records of the last round that were discarded, at the end of an incomplete or damaged recording. For a packed
 * recording it includes those discarded when it was packed. */
struct reorder_unfinished reader_unfinished(const struct reader *reader);

/* Accepts NULL. */
void reader_close(struct reader *reader);

/* Everything but the events: metadata.c. */

/* Zero-initialise it before; deinitialise it on error too. */
struct mmt_error *metadata_load(struct metadata *metadata, const struct recording_file *file) MMT_MUST_CHECK;
void metadata_deinit(struct metadata *metadata);

/* Incremental metadata: perf maps, jitdumps and build-ids between the records, for killed recorders. */

/* Adds the pieces to `values`. A piece that does not continue the previous one ends the file that it belongs to.
 * *damage_ret: there are more pieces than a recorder writes; the rest is ignored. */
struct mmt_error *incremental_metadata_read(const struct recording_file *file, const struct layouts *layouts,
					    struct reader_metadata *values,
					    struct mmt_error **damage_ret) MMT_MUST_CHECK;

/* Decoding of records to events: decode.c. */

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
