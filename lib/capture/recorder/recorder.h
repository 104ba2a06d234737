/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The state of a recording in progress, shared by the files of lib/capture, with the headers of its parts. */
#pragma once

#include "capture/recorder/build-id-notes.h"
#include "capture/procfs/clock.h"
#include "capture/procfs/blocking-calls.h"
#include "capture/recorder/ring-reader.h"
#include "capture/procfs/scheduling-priority.h"
#include "trace/write/writer.h"

/*
 * process-events.c: forks, execs, exits and mappings of the recorded processes. The ring reader puts them into a
 * queue, and the record loop applies them to the process table.
 *
 * The rings must be read during slow jobs: reading the maps of a large process takes seconds. So reading the rings must
 * not change any state that a job uses. Effects of a record on the process table, JIT code and modules wait in this
 * queue until the loop applies them between two jobs.
 */

enum process_event_kind {
	PROCESS_SEEN, /* a process made a call, and no record announced it */
	PROCESS_FORK,
	PROCESS_EXEC,
	PROCESS_FIRST_CALL, /* the first call after an exec */
	PROCESS_MAPPING,
};

struct process_event {
	enum process_event_kind kind;
	pid_t pid;
	uint64_t time_ns;
	pid_t parent;  /* FORK */
	bool recorded; /* FORK: after the recording has begun */
	bool waited;   /* EXEC: a round for the record that announces its process */

	/* MAPPING: */
	uint64_t start, end;
	uint64_t inode;
	uint32_t device_major, device_minor;
	uint32_t protection;
	size_t path; /* offset into the paths of the queue */
};

/* Zero-initialise an empty queue. */
struct process_events {
	VECTOR(struct process_event) items;
	VECTOR(char) paths;
	/* By PID: the time of an exec after which the process has made no call yet, in nanoseconds. */
	struct map executing;
};

/* The jobs: slow work that the loop runs between two drains of the rings, such as reading maps, JIT code, perf maps,
 * build-ids and resident pages. A job appends records of its own. It neither reads the rings nor uses the state of the
 * ring reader; between two steps it calls ring_reader_give_way(). test/lint/reentry.sh checks this. */
struct jobs {
	struct build_id_notes build_ids;
	struct kept_modules kept_modules;

	struct time_budget children_budget; /* for first snapshots of children */
	uint64_t piece_bytes;		    /* bytes of incremental metadata written so far */

	/* The state of the jobs in these folders. */
	struct memory_jobs *memory;
	struct runtime_jobs *runtimes;
	struct jit_reader *jit_reader;
	struct heap_jobs *heap;
	struct helper heap_helper;
};

/* A recording session. The ring reader writes the kernel's records to the file, and queues process events. The loop
 * applies these events to the process table and runs the jobs. */
struct recorder {
	const struct mmt_record_options *options;
	const struct architecture *architecture;
	struct mmt_record_summary summary;
	struct mmt_record_progress progress;
	struct priority priority;

	struct ring_reader reader;
	struct blocking_calls calls;
	struct process_events process_events;
	struct process_table processes;
	struct jobs jobs;

	struct traced_command command;
	int cgroup;		      /* directory of the group of -G; borrowed; -1: none */
	struct map left_out_children; /* with options->tree: PIDs of children that cannot be recorded */
	bool descriptors_reported;
	bool denied_maps_reported;

	struct writer *writer;
	bool writing;		       /* records from start_ns on are written to the file */
	struct mmt_error *write_error; /* the first write error; nothing is written after it */
	struct mmt_error *failure;     /* the first other error; ends the recording */
	uint64_t round_bytes;	       /* appended since the round began */
	uint64_t flushed_ns;	       /* time of the last flush */
	uint64_t first_ns, last_ns;    /* timestamps of the first and the last record written; 0: none */

	uint64_t start_ns, start_realtime_ns;
	bool closed;		/* unknown processes are not added any more */
	unsigned stop_requests; /* stop requests seen when recording ended */
	uint64_t stop_ns;	/* later records are not written; 0: not stopped yet */
};

/* Return when options->duration_ns is over; UINT64_MAX: there is no limit. */
uint64_t recorder_end_ns(const struct recorder *recorder);

/* Is this a helper process of the recorder, which is not recorded? */
bool recorder_has_helper(const struct recorder *recorder, pid_t pid);

/* Was a stop requested? */
bool recorder_is_stopped(const struct recorder *recorder);
/* Return the number of stop requests, or 1 if the descriptor does not count them. */
unsigned recorder_stop_requests(const struct recorder *recorder);

/* Send the user a message that is not a warning, even without options->verbose. */
void recorder_inform(const struct recorder *recorder, const char *text);

/* Send the user a message. Messages that are not warnings need options->verbose. */
void recorder_message(const struct recorder *recorder, bool warning, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Keep the first failure, which mmt_record() returns when the file is complete. Take ownership of `failure`, which
 * may be NULL. */
void recorder_keep_failure(struct recorder *recorder, struct mmt_error *failure);

/* Append a record to the file. A write error is kept in write_error. */
void recorder_append(struct recorder *recorder, const void *record, size_t size, uint64_t time_ns);
/* End a round if the rings were drained since the recorder last appended a record of its own; otherwise the round
 * continues. The end of a round promises that every record is in the file that was in the rings at the end of the
 * previous round, or when the recorder last appended a record of its own. */
void recorder_end_round(struct recorder *recorder);
void recorder_flush(struct recorder *recorder);

/* Write the head of the file: the event attributes and the sections that are known when recording starts.
 * recorder->start_ns must be set. */
struct mmt_error *file_metadata_add_head(struct recorder *recorder) MMT_MUST_CHECK;

/* Write the sections after the records, when recording has stopped. `lost`: one count per event. Read the resident
 * pages of the final mappings; perf maps and build-ids must have been collected. An error in one section does not
 * affect the others: it causes a warning if the section is optional, and is passed to recorder_keep_failure()
 * otherwise. */
void file_metadata_add_sections(struct recorder *recorder, const uint64_t *lost);

/* Begin a record of the recorder itself, of the kernel's `type`, and discard what the buffer contains. */
void own_record_begin(struct buffer *record, uint32_t type, uint16_t misc);

/* End the record with the sample_id_all trailer and append it. */
struct mmt_error *own_record_append(struct recorder *recorder, struct buffer *record, pid_t pid, pid_t tid,
				    uint64_t time_ns, uint64_t id) MMT_MUST_CHECK;

/* Do the same for mmtrace's own data, in a PERF_RECORD_TEXT_POKE record, which perf ignores in user space. The caller
 * appends the content to the buffer between the two calls. `id`: the kind of content, NAME_PIECE_ID or NOTE_ID.
 * own_record_append_bytes() always frees the buffer, even if the content is too large or memory is short. */
void own_record_begin_bytes(struct buffer *record);

struct mmt_error *own_record_append_bytes(struct recorder *recorder, struct buffer *record, pid_t pid, uint64_t time_ns,
					  uint64_t id) MMT_MUST_CHECK;

/* Write a note: see format.h for its value and number. `pid`: the process that it is about; 0: none. It ends with the
 * text; NULL: it has none. */
struct mmt_error *recorder_note(struct recorder *recorder, enum note_kind kind, pid_t pid, uint64_t time_ns,
				uint64_t value, uint64_t number, const char *text) MMT_MUST_CHECK;

/* Incremental metadata: perf maps, jitdumps and build-ids are also written between the records while they grow, because
 * the file of a killed recorder has no closing sections. Every byte is written once, soon after it appeared, up to
 * LIMIT_RECORDED_PIECES_BYTES in total. */

#define INCREMENTAL_METADATA_TICK_BYTES (4u << 20) /* bytes written by one call */

/* Write what was added since the last call, at most INCREMENTAL_METADATA_TICK_BYTES; the next call continues. Let the
 * ring reader work in between. Write errors are kept in the recorder. Files that cannot be read now are tried again
 * when recording ends. Errors: reading the rings failed, or out of memory. */
struct mmt_error *incremental_metadata_write(struct recorder *recorder) MMT_MUST_CHECK;

void process_events_deinit(struct process_events *events);

/* Add an event. `path`, only for mappings, is copied. A mapping that no job needs is left out. */
struct mmt_error *process_events_push(struct recorder *recorder, const struct process_event *event,
				      const char *path) MMT_MUST_CHECK;

/* Note that the process made a call. Cheap while no process is in an exec. */
struct mmt_error *process_events_note_call(struct recorder *recorder, pid_t pid, uint64_t time_ns) MMT_MUST_CHECK;

/* Note that a program has begun whose exec is over and which has made no call since: it may never make one. */
struct mmt_error *process_events_end_exec(struct recorder *recorder, pid_t pid) MMT_MUST_CHECK;

/* Will an event in the queue cause a snapshot of this process, or is it in an exec? */
bool process_events_want_snapshot(const struct recorder *recorder, pid_t pid);
