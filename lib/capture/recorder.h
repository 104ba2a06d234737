/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The state of a recording in progress, shared by the files of lib/capture. */
#ifndef CAPTURE_RECORDER_H
#define CAPTURE_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <mmtrace/record.h>

#include "base/bytes.h"
#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "capture/jit-code/jit-code.h"
#include "capture/build-id-notes.h"
#include "capture/perf/clock.h"
#include "capture/procfs/proc.h"
#include "capture/procfs/residency.h"
#include "capture/process/command.h"
#include "capture/process/process-events.h"
#include "capture/process/process-table.h"
#include "capture/ring-reader.h"
#include "capture/runtimes/ask-runtime.h"
#include "capture/runtimes/jit-files.h"
#include "capture/scheduling-priority.h"
#include "trace/format/architecture.h"
#include "trace/sections/copies.h"
#include "trace/sections/sections.h"
#include "trace/write/writer.h"

struct process_ranges {
	pid_t pid;
	VECTOR(struct mapped_range) ranges; /* from the first or last snapshot */
};

typedef VECTOR(struct process_ranges) process_ranges_list;

void process_ranges_list_deinit(process_ranges_list *list);

/* The children of a target that are not recorded. */
struct unrecorded_children {
	pid_t parent;
	uint64_t count;
};

typedef VECTOR(struct unrecorded_children) unrecorded_children_list;

/*
 * The jobs: slow work that the loop runs between two drains of the rings, such as reading maps, JIT code, perf maps,
 * build-ids and resident pages. A job appends records of its own. It neither reads the rings nor uses the ring reader's
 * state; between two steps it calls ring_reader_give_way(). test/lint/reentry.sh checks this.
 */
struct jobs {
	struct build_id_notes build_ids;
	struct kept_modules kept_modules;
	struct jitdump_notes jitdumps;
	struct jit_code jit_code;
	struct code_copies code; /* copies of JIT code, filled when recording ends */

	uint64_t snapshot_lines;	     /* of all snapshots so far */
	struct time_budget children_budget;  /* for first snapshots of children */
	process_ranges_list final_ranges;    /* of the STOP snapshots */
	process_ranges_list start_ranges;    /* of the START snapshots of targets, until residency is read */
	process_ranges_list interval_ranges; /* of the latest INTERVAL snapshot, with options->snapshot_interval_ns */

	struct resident_series resident_series;
	process_residencies start_residency;
	uint64_t huge_spent_ns; /* on samples of huge pages, up to HUGE_SAMPLES_NS_MAX */
	uint32_t page_readings; /* how often resident pages were read since the start */
	bool residency_reported;

	struct unasked unknown_runtimes, ended_runtimes; /* processes with --ask-runtime */
	struct unasked old_maps;			 /* processes that started after their perf map was written */
	VECTOR(struct perf_map_copy) earlier_maps;	 /* perf maps of programs that ended with an exec */
	uint64_t perf_map_bytes;			 /* copied so far: at most PERF_MAPS_BYTES_MAX */
	uint64_t piece_bytes;				 /* of incremental metadata, written so far */
};

/*
 * A recording session. The ring reader writes what the kernel recorded, and passes on through process_events what
 * concerns the process table. The loop applies those events and runs the jobs.
 */
struct recorder {
	const struct mmt_record_options *options;
	const struct architecture *architecture;
	struct mmt_record_summary summary;
	struct mmt_record_progress progress;
	uint64_t progress_ns; /* time of the last progress report */
	struct priority priority;

	struct ring_reader reader;
	struct process_events process_events;
	struct process_table processes;
	struct jobs jobs;

	struct traced_command command;
	struct exit_watch *exit_watch;		      /* NULL: no checks at exit */
	int cgroup;				      /* directory of the control group that is recorded; -1: none */
	unrecorded_children_list unrecorded_children; /* children of targets when recording began */
	struct map left_out_children;		      /* with options->tree: children that cannot be recorded */
	bool descriptors_reported;
	bool guarded_reported;

	struct writer *writer;
	bool writing;		       /* records from start_ns on go into the file */
	struct mmt_error *write_error; /* the first write error; nothing is written after it */
	struct mmt_error *failure;     /* the first other error; ends the recording */
	uint64_t round_bytes;	       /* appended since the round began */
	uint64_t flushed_ns;	       /* time of the last flush */
	uint64_t first_ns, last_ns;    /* of the records written; 0: none */

	uint64_t start_ns, start_realtime_ns;
	bool closed;		/* unknown processes are no longer added */
	unsigned stop_requests; /* stop requests seen when recording ended */
	uint64_t stop_ns;	/* later records are not written; 0: not stopped yet */
};

/* When options->duration_ns is over; UINT64_MAX: no limit. */
uint64_t recorder_end_ns(const struct recorder *recorder);

/* Whether a stop was requested. */
bool recorder_is_stopped(const struct recorder *recorder);
/* The number of stop requests: 1 if the descriptor does not count them. */
unsigned recorder_stop_requests(const struct recorder *recorder);

/* Send the user a message that is not a warning, even without options->verbose. */
void recorder_inform(const struct recorder *recorder, const char *text);

/* Send the user a message. Messages that are not warnings need options->verbose. */
void recorder_message(const struct recorder *recorder, bool warning, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Keep the first failure and return it when the file is complete. Takes `failure`, which may be NULL. */
void recorder_keep_failure(struct recorder *recorder, struct mmt_error *failure);

/* The part of a record that must not be written to the file. */
struct hidden_part {
	size_t offset, bytes;
};

/* Append a record from a ring to this stream of the writer, with zeros in place of the hidden part. */
void recorder_append_read(struct recorder *recorder, unsigned stream, const void *record, size_t size,
			  const struct hidden_part *hidden, uint64_t time_ns);
/* The end of a round promises that everything that was in the rings at the end of the previous round, and when the
 * recorder last appended a record of its own, has been read. If the rings were not drained since, the round
 * continues. */
void recorder_end_round(struct recorder *recorder);
void recorder_flush(struct recorder *recorder);

/*
 * What the recorder writes besides the kernel's records: the head of the file, its closing sections, marks and
 * incremental metadata.
 */

/* The head of the file: event attributes and the sections that are known when recording starts. */

/* Hands the head to the writer. recorder->start_ns must be set. */
struct mmt_error *file_metadata_add_head(struct recorder *recorder) MMT_MUST_CHECK;

/* The tail of the file: sections behind the events, collected when recording has stopped. */

/*
 * `lost`: one count per event. Reads the residency of the final mappings; perf maps and build-ids must have been
 * collected. A section that fails does not affect the others: optional ones cause a warning, others call
 * recorder_keep_failure().
 */
void file_metadata_add_sections(struct recorder *recorder, const uint64_t *lost);

/* Records made by the recorder, in the format of kernel records. */

/* Begins a record of the kernel's `type` in the buffer, whose content is discarded. */
void own_record_begin(struct buffer *record, uint32_t type, uint16_t misc);

/* Ends the record with the sample_id_all trailer and appends it to the recording. */
struct mmt_error *own_record_append(struct recorder *recorder, struct buffer *record, pid_t pid, pid_t tid,
				    uint64_t time_ns, uint64_t id) MMT_MUST_CHECK;

/*
 * The same for mmtrace's own data, in a PERF_RECORD_TEXT_POKE record, which perf ignores in user space. The caller puts
 * the content into the buffer between the two calls; `id` is its kind, NAME_PIECE_ID or NOTE_ID.
 * own_record_append_bytes() always frees the buffer, even if it fails because the content is too large or memory is
 * short.
 */
void own_record_begin_bytes(struct buffer *record);

struct mmt_error *own_record_append_bytes(struct recorder *recorder, struct buffer *record, pid_t pid, uint64_t time_ns,
					  uint64_t id) MMT_MUST_CHECK;

/* Notes that the recorder makes during a recording: marks of the user, RSS readings, the state of large stack dumps. */

/* Add a mark for each timestamp that is waiting in options->mark_fd. */
struct mmt_error *recorder_note_marks(struct recorder *recorder) MMT_MUST_CHECK;

/* The RSS of a process. All readings taken at the same time have the same number `reading`. */
struct mmt_error *recorder_note_resident(struct recorder *recorder, pid_t pid, uint64_t time_ns, uint64_t bytes,
					 uint64_t reading) MMT_MUST_CHECK;

/* What is swapped of it, after its RSS in the same reading; without a note, nothing is. */
struct mmt_error *recorder_note_swapped(struct recorder *recorder, pid_t pid, uint64_t time_ns, uint64_t bytes,
					uint64_t reading) MMT_MUST_CHECK;

/* When a process started, in nanoseconds since boot. */
struct mmt_error *recorder_note_started(struct recorder *recorder, pid_t pid, uint64_t time_ns,
					uint64_t boot_ns) MMT_MUST_CHECK;

/* How many unrecorded children a process had when recording began. */
struct mmt_error *recorder_note_unrecorded_children(struct recorder *recorder, pid_t pid,
						    uint64_t count) MMT_MUST_CHECK;

/* Notes whether large stack dumps are on from now on. */
struct mmt_error *recorder_note_large_dumps(struct recorder *recorder, uint64_t now_ns) MMT_MUST_CHECK;

/*
 * Incremental metadata: perf maps, jitdumps and build-ids are written between the records as they grow. If the recorder
 * is killed, the file has no other copy. Every byte is written once, soon after it appeared, up to
 * INCREMENTAL_METADATA_BYTES_MAX in total.
 */

#define INCREMENTAL_METADATA_TICK_BYTES (4u << 20) /* of all files together */

/* Write what was added since the last call, at most INCREMENTAL_METADATA_TICK_BYTES; the next call continues. Gives
 * way to the ring reader. Write failures are kept in the recorder, and unreadable files are left for the end. Errors:
 * reading the rings failed, or out of memory. */
struct mmt_error *incremental_metadata_write(struct recorder *recorder) MMT_MUST_CHECK;

#endif
