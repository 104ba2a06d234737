/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading a recording: ours or one by plain perf. Events come in time order. */
#ifndef TRACE_READ_READER_H
#define TRACE_READ_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mmtrace/progress.h>

#include "base/errors.h"
#include "trace/format/architecture.h"
#include "trace/sections/code-copies.h"
#include "trace/format/event.h"
#include "trace/sections/module-copies.h"
#include "trace/read/reorder.h"
#include "trace/sections/packed-stacks.h"
#include "trace/sections/sections.h"
#include "trace/format/tracepoint.h"

struct reader;

struct reader_attribute {
	const char *name;	  /* "syscalls:sys_exit_mmap", "dummy:u", ... */
	enum attribute_role role; /* inferred in files that are not ours */
	bool is_call, is_enter;	  /* `call` is meant */
	enum call call;
	uint64_t sample_type;
};

/* Everything but the events. Borrowed; lives as long as the reader. */
struct reader_metadata {
	bool ours;	 /* written by mmtrace: `info` is filled */
	bool incomplete; /* recorder killed or file cut short */
	struct recording_info info;
	bool has_loss;
	struct recording_loss loss;
	struct perf_map_copies perf_maps;
	struct jitdump_copies jitdumps;
	struct code_copies code;
	bool has_residency;
	struct recording_residency residency;
	struct build_ids build_ids;
	struct module_copies images;
	bool packed; /* samples have the numbers of their stacks, which are in `stacks` */
	struct resolved_stacks stacks;
	struct tracepoints tracepoints;
	const struct architecture *architecture;	    /* x86_64 when the file does not say */
	const char *host, *kernel, *version, *command_line; /* "" when absent; command line quoted for a shell */
	struct reader_attribute *attributes;
	size_t attribute_count;
	uint64_t first_ns, last_ns; /* FEATURE_SAMPLE_TIME; 0: absent */
	bool compressed;
};

/* Errors: cannot open, not perf.data, empty, foreign byte order, lies in the header. */
struct mmt_error *reader_open(const char *path, struct reader **reader_ret) MMT_MUST_CHECK;
/* As recording_file_open_watched(). */
struct mmt_error *reader_open_watched(const char *path, const struct mmt_progress *progress,
				      struct reader **reader_ret) MMT_MUST_CHECK;
struct mmt_error *reader_open_descriptor(int fd, const char *name, const struct mmt_progress *progress,
					 struct reader **reader_ret) MMT_MUST_CHECK;

/* From one look at the clock to the next, for those who tell their progress. */
#define PROGRESS_EVENTS 1024

/* Where in the file the events end. */
uint64_t reader_data_end(const struct reader *reader);

/* The same recording from its start. */
struct mmt_error *reader_open_again(const struct reader *reader, struct reader **reader_ret) MMT_MUST_CHECK;

/* Where it is read from. */
const struct recording_file *reader_file(const struct reader *reader);

/* Callchains of calls that only release, and did, are not read, nor the registers of a call without any copied stack:
 * for who does not look at them. Before the first event. */
void reader_leave_out_unused_stacks(struct reader *reader);

const struct reader_metadata *reader_metadata(const struct reader *reader);
/* Size of the recording as stored. */
uint64_t reader_file_bytes(const struct reader *reader);

/*
 * The next event in time order; *end_ret at the end of what is readable. Damage in the data ends the events early,
 * without an error: see reader_damage(). Errors are for failures of this machine (no memory, read error).
 */
struct mmt_error *reader_next(struct reader *reader, struct event *event_ret, bool *end_ret) MMT_MUST_CHECK;

struct reader_ahead {
	int32_t pid;
	uint64_t address;
};

/*
 * Where the call is whose record comes so many behind the one handed out last: what it releases or changes, but for
 * those that are told something else than an address. False: that is not known yet, or it only makes a new mapping.
 */
bool reader_look_ahead(const struct reader *reader, size_t events, struct reader_ahead *ahead_ret);

/*
 * NULL, or one line about undecodable bytes: the first among the events, "record at offset 4711 (MMAP2): ends too early
 * at byte 40", else a section that is done without, "residency section: version 0 at byte 4". Valid until the next call
 * of reader_next().
 */
const char *reader_damage(const struct reader *reader);

/* Events older than one already handed out (a lie in the file's rounds); they are handed out all the same. */
uint64_t reader_out_of_order(const struct reader *reader);

/* At the end of a recording that is not finished, or damaged: what there is of its last round, which is left out. Of a
 * packed recording with what was left out of the one that was packed. */
struct order_unfinished reader_unfinished(const struct reader *reader);

/* Accepts NULL. */
void reader_close(struct reader *reader);

#endif
