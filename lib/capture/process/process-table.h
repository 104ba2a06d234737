/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The process table of the recorder: the recorded processes and their children. */
#ifndef CAPTURE_PROCESS_PROCESS_TABLE_H
#define CAPTURE_PROCESS_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "capture/runtimes/runtime-helper.h"
#include "trace/format/event.h"
#include "trace/sections/sections.h"

struct askable_runtime;

struct file_state {
	uint64_t inode;
	int64_t size;
	struct timespec changed;
};

/* How far a file was seen that is only appended to. Another file, or other bytes before that: begun again. */
#define FILE_MARK_BYTES 64

struct file_mark {
	uint64_t inode, length;
	uint8_t last[FILE_MARK_BYTES]; /* before `length`, fewer in a shorter file */
};

/* When the programs of a PID began, by fork and exec: the last ones, ascending. In whatever order they are told. */
#define PROGRAM_BEGINS_MAX 8

struct program_begins {
	uint64_t times_ns[PROGRAM_BEGINS_MAX];
	unsigned count;
	bool forgot; /* one that was earlier than these */
};

struct traced_process {
	pid_t pid;
	bool target; /* asked for */
	bool partly; /* some of its threads only */
	bool left;   /* the control group that is recorded */
	bool ended;
	uint64_t ended_ns;	  /* when that was noticed */
	int pidfd;		  /* -1: ended before it could be had, or descriptors are short */
	uint64_t looked_after_ns; /* without a descriptor: when it was last seen to live */
	bool guarded;		  /* its maps may not be read */
	bool start_noted;	  /* when it started is in the recording */
	bool snapshot_wanted;
	enum snapshot_kind snapshot_kind;
	uint64_t snapshot_wanted_ns; /* of the record that asked for it */
	uint64_t snapshot_ns;	     /* when the last one began */
	struct program_begins begins;
	uint64_t executing_ns; /* its exec, as long as it has made no call in the new program; 0: none */

	/* Its perf map, see perf-map-files.h. */
	int tmp_directory; /* O_PATH; -1: none */
	pid_t namespace_pid;
	uid_t owner;
	uint64_t started_realtime_ns;
	uint64_t map_looked_at_ns;
	struct file_mark map_growth_mark;
	struct file_mark map_pieces_mark; /* see metadata.h */
	uint64_t map_pieces_ns;
	struct perf_map_copy perf_map;
	struct file_state earlier_map; /* of the program before the last exec, left as it was then */
	uint64_t exec_ns;	       /* of an exec before which that has not been kept yet; 0: none */

	/* What it is asked for, see ask-runtime.h. */
	const struct askable_runtime *runtime; /* NULL: none that can be asked */
	bool generates_code;
	enum ask_state { ASKED_NOT, ASKED_NOW, ASKED_AGREED, ASKED_WRITES, ASKED_TO_END, ASKED_DONE } asked;
	unsigned ask_attempts;
	uint64_t ask_at_ns; /* not before; when it has agreed: its map is waited for until then */
	struct helper helper;
	bool had_trigger; /* before it was asked: the file that makes its runtime listen */
	bool map_is_ours; /* its perf map, that of the program before the exec at exec_ns, is there because we asked */
};

/* Told before its process was: the rings are read one after the other. */
struct unplaced_begin {
	pid_t pid;
	uint64_t time_ns;
};

struct process_table {
	VECTOR(struct traced_process) items;
	VECTOR(struct unplaced_begin) unplaced;
	struct map index_of_pid; /* of the youngest process with this number */
	uint64_t forgotten;	 /* how many there were besides */
	bool descriptors_short;	 /* some process is recorded with less than is wanted */
};

void process_table_deinit(struct process_table *processes);

/*
 * Add a process and open its descriptor; perf_maps_watch() has to be called for the rest. It may have ended already;
 * see `ended`. The pointer is valid until the next addition; NULL: out of memory.
 */
struct traced_process *process_table_add(struct process_table *processes, pid_t pid, bool target);

/* Forget the one that was added last: it is not recorded. */
void process_table_drop_last(struct process_table *processes);

/* NULL: not known. */
struct traced_process *process_table_find(const struct process_table *processes, pid_t pid);

/* A program began: of a process that is not known by now, it is kept until that is added. False: out of memory. */
bool process_table_note_begin(struct process_table *processes, pid_t pid, uint64_t time_ns) MMT_MUST_CHECK;

/* When the program began that ran then, as far as was told; 0: before the recording. False: it is not known, or not any
 * more. */
bool process_table_find_begin(const struct process_table *processes, pid_t pid, uint64_t time_ns,
			      uint64_t *began_ns_ret);

/* Keep a descriptor that stays open, unless it would take one of the last: closed then; -1. */
int process_table_spare(int fd);

/* Look whether processes have ended; true: every target has, and there is one. */
bool process_table_update(struct process_table *processes);

/*
 * Drop those of which nothing more is to come: not asked for, ended a while ago, released, without a perf map. Others
 * move.
 */
void process_table_forget_ended(struct process_table *processes);

/* Descriptors of an ended process are of no more use. */
void process_table_release(struct traced_process *process);

/*
 * Threads that may be inside a call whose effect a reading of the maps has seen already. The rest of a call takes what
 * it takes: milliseconds to free a gigabyte, and on a busy machine longer to get a processor for it. So a thread has
 * returned only when it is seen outside: asleep where signals wake it, waiting in a call of another kind, at its end,
 * or told of by a record that nobody makes in the midst of a call.
 */

struct in_flight_thread {
	pid_t pid, tid;
};

/* Zero initialisation makes an empty one. */
struct in_flight {
	VECTOR(struct in_flight_thread) threads;
	struct map read_ns; /* of those not told of since, by number: when the maps had been read */
};

/* Empties it. Accepts a zeroed value. */
void in_flight_deinit(struct in_flight *in_flight);

/* Append the threads of a process that may be in a call, after its maps have been read; false: out of memory, or the
 * process is gone. */
bool in_flight_add(struct in_flight *in_flight, pid_t pid, uint64_t read_ns);

/* The thread made a record then: of a call's entry or exit, or because it was outside the kernel. */
void in_flight_note_outside(struct in_flight *in_flight, pid_t tid, uint64_t time_ns);

/* Remove those that have returned, or ended. */
void in_flight_remove_returned(struct in_flight *in_flight);

#endif
