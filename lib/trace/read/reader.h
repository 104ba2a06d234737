/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads a recording by mmtrace or by plain perf. Events are returned in time order. */
#pragma once

#include "trace/format/architecture.h"
#include "trace/format/tracepoint.h"
#include "trace/read/reorder.h"
#include "trace/sections/copies.h"
#include "trace/sections/jit-code.h"
#include "trace/sections/packed-stacks.h"
#include "trace/sections/runtime-options.h"
#include "trace/sections/sections.h"

struct reader;

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

/* `progress` is for a pipe; it may be NULL. Errors: cannot open, not perf.data, empty, foreign byte order, damage. */
struct mmt_error *reader_open(const char *path, const struct mmt_progress *progress,
			      struct reader **reader_ret) MMT_MUST_CHECK;

/* Events between two checks of the clock for progress reports. */
#define PROGRESS_EVENTS 1024

/* Open the same recording again from its start. */
struct mmt_error *reader_open_again(const struct reader *reader, struct reader **reader_ret) MMT_MUST_CHECK;

/* Return the events from the first one again. */
struct mmt_error *reader_rewind(struct reader *reader) MMT_MUST_CHECK;

const struct recording_file *reader_file(const struct reader *reader);

/* Do not decode callchains of calls that only unmap and succeeded, nor registers of calls without a stack dump. Call it
 * before the first event. */
void reader_leave_out_unused_stacks(struct reader *reader);

/* The recording still grows. At its end, reader_next() says so, and later reads on behind it: after this was called
 * again, with all readers that share the file. `follows` false: from now on that is the end. */
struct mmt_error *reader_follow(struct reader *reader, bool follows) MMT_MUST_CHECK;

/* Offset in the file of the last names that were read among the events, as `names_end`. */
uint64_t reader_names_offset(const struct reader *reader);

const struct reader_metadata *reader_metadata(const struct reader *reader);

/* Returns the next event in time order; *end_ret: there are no more. Damage in the data ends the events early, without
 * an error: see reader_damage(). Errors are failures of this machine (out of memory, read error). */
struct mmt_error *reader_next(struct reader *reader, struct event *event_ret, bool *end_ret) MMT_MUST_CHECK;

/* One line about damage; NULL if there is none. The first undecodable record, such as "record at offset 4711 (MMAP2):
 * ends too early at byte 40", or else a section that was ignored, such as "residency section: version 0 at byte 4".
 * Valid until the next call of reader_next(). */
const char *reader_damage(const struct reader *reader);

/* Number of events returned after a younger one, because the rounds in the file are wrong. */
uint64_t reader_out_of_order(const struct reader *reader);

/* The records of the last round that were discarded, at the end of an incomplete or damaged recording. For a packed
 * recording it includes those discarded when it was packed. */
struct reorder_unfinished reader_unfinished(const struct reader *reader);

/* Accepts NULL. */
void reader_close(struct reader *reader);

/* Everything but the events: metadata.c. */

struct layouts;

struct metadata {
	struct reader_metadata values;
	struct mmt_error *damage; /* first damage of an optional section; owned */
};

/* Zero-initialise it before; deinitialise it on error too. */
struct mmt_error *metadata_load(struct metadata *metadata, const struct recording_file *file) MMT_MUST_CHECK;
void metadata_deinit(struct metadata *metadata);

/* Incremental metadata: perf maps, jitdumps and build-ids between the records, for killed recorders. */

/* Adds the pieces to `values`. A piece that does not continue the previous one ends the file that it belongs to.
 * *damage_ret: there are more pieces than a recorder writes; the rest is ignored. */
struct mmt_error *incremental_metadata_read(const struct recording_file *file, const struct layouts *layouts,
					    struct reader_metadata *values,
					    struct mmt_error **damage_ret) MMT_MUST_CHECK;
