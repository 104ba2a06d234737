/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The process table of the recorder: the processes that are recorded. process-events.h changes it. */
#ifndef CAPTURE_PROCESS_PROCESS_TABLE_H
#define CAPTURE_PROCESS_PROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "capture/runtimes/ask-runtime.h"
#include "trace/format/event.h"
#include "trace/sections/sections.h"

struct askable_runtime;

struct file_state {
	uint64_t inode;
	int64_t size;
	struct timespec changed;
};

/* How much of an append-only file has been read. If it is another file, or its last bytes differ, reading starts
 * over. */
#define FILE_MARK_BYTES 64

struct file_mark {
	uint64_t inode, length;
	uint8_t last[FILE_MARK_BYTES]; /* the bytes before `length`; fewer in a shorter file */
};

/* When the programs of a PID began, by fork or exec: the most recent ones, ascending. Records may arrive in any
 * order. */
#define PROGRAM_BEGINS_MAX 8

struct program_begins {
	uint64_t times_ns[PROGRAM_BEGINS_MAX];
	unsigned count;
	bool forgot; /* programs earlier than these were dropped */
};

struct traced_process {
	pid_t pid;
	bool target; /* requested by the user */
	bool partly; /* only some of its threads are recorded */
	bool left;   /* it left the recorded control group */
	bool ended;
	uint64_t ended_ns;	  /* when the recorder noticed that it had ended */
	int pidfd;		  /* -1: it ended too early, or descriptors are short */
	uint64_t looked_after_ns; /* without a pidfd: when it was last seen alive */
	bool guarded;		  /* reading its maps is not permitted */
	bool start_noted;	  /* its start time is in the recording */
	bool snapshot_wanted;
	enum snapshot_kind snapshot_kind;
	uint64_t snapshot_wanted_ns; /* time of the record that requires it */
	uint64_t snapshot_ns;	     /* when the last one began */
	struct program_begins begins;
	uint64_t executing_ns; /* time of its exec until it makes a call in the new program; 0: none */

	/* Its perf map, see jit-files.h. */
	int tmp_directory; /* O_PATH; -1: none */
	pid_t namespace_pid;
	uid_t owner;
	uint64_t started_realtime_ns;
	uint64_t map_looked_at_ns;
	struct file_mark map_growth_mark;
	struct file_mark map_pieces_mark; /* see metadata.h */
	uint64_t map_pieces_ns;
	struct perf_map_copy perf_map;
	struct file_state earlier_map; /* of the program before the last exec, in its state at the exec */
	uint64_t exec_ns;	       /* time of an exec whose earlier map has not been kept yet; 0: none */

	/* State of asking its runtime, see ask-runtime.h. */
	const struct askable_runtime *runtime; /* NULL: none that supports it */
	bool has_jit_code;
	enum ask_state { ASKED_NOT, ASKED_NOW, ASKED_AGREED, ASKED_WRITES, ASKED_TO_END, ASKED_DONE } asked;
	unsigned ask_attempts;
	uint64_t ask_at_ns; /* not before this time; once it has agreed: wait for its map until then */
	struct helper helper;
	bool had_trigger; /* the file that triggers its runtime existed before it was asked */
	bool map_is_ours; /* the perf map of the program before the exec at exec_ns exists because we asked */
};

/* Events of a process that arrived before the process was known: the rings are read one after the other. */
struct unplaced_begin {
	pid_t pid;
	uint64_t time_ns;
};

struct process_table {
	VECTOR(struct traced_process *) items; /* owned: an entry stays where it is until it is forgotten */
	VECTOR(struct unplaced_begin) unplaced;
	struct map index_of_pid; /* index of the latest process with this PID */
	uint64_t forgotten;	 /* number of processes removed from the table */
	bool descriptors_short;	 /* descriptors were short for some process */
};

void process_table_deinit(struct process_table *processes);

/*
 * Add a process and open its descriptor; the caller must call perf_maps_watch() for the rest. The process may have
 * ended already; see `ended`. NULL: out of memory.
 */
struct traced_process *process_table_add(struct process_table *processes, pid_t pid, bool target);

/* Remove the process that was added last: it is not recorded. */
void process_table_drop_last(struct process_table *processes);

/* NULL: not known. */
struct traced_process *process_table_find(const struct process_table *processes, pid_t pid);

/* A program began. If its process is not known yet, keep the time until the process is added. False: out of memory. */
bool process_table_note_begin(struct process_table *processes, pid_t pid, uint64_t time_ns) MMT_MUST_CHECK;

/* When the program that ran at that time began, as far as is known; 0: before the recording. False: not known, or no
 * longer known. */
bool process_table_find_begin(const struct process_table *processes, pid_t pid, uint64_t time_ns,
			      uint64_t *began_ns_ret);

/* Keep a descriptor that stays open. Closes it and returns -1 if only the reserve of descriptors is left. */
int process_table_spare(int fd);

/* Check whether processes have ended. True: there are targets, and all have ended. */
bool process_table_update(struct process_table *processes);

/*
 * Remove and free processes that need no more work: no targets, ended a while ago, released, without a perf map. The
 * loop calls this when no job runs.
 */
void process_table_forget_ended(struct process_table *processes);

/* Closes the descriptors of an ended process. */
void process_table_release(struct traced_process *process);

/*
 * Threads that may still be inside a call whose effect is already visible in the maps. Such a call may take
 * milliseconds to free a gigabyte, and longer on a busy machine until the thread gets a CPU. So a thread counts as
 * returned only if it is seen outside the call: in an interruptible sleep, waiting in a different call, exiting, or by
 * a record that is not made in the middle of a call.
 */

struct in_flight_thread {
	pid_t pid, tid;
};

/* Zero-initialise an empty set. */
struct in_flight {
	VECTOR(struct in_flight_thread) threads;
	struct map read_ns; /* by TID: when the maps were read; only threads without a record since */
};

/* Empties it. Accepts a zeroed value. */
void in_flight_deinit(struct in_flight *in_flight);

/* Append the threads of a process that may be in a call, after its maps have been read; false: out of memory, or the
 * process is gone. */
bool in_flight_add(struct in_flight *in_flight, pid_t pid, uint64_t read_ns);

/* The thread made a record at this time: at the entry or exit of a call, or in user space. */
void in_flight_note_outside(struct in_flight *in_flight, pid_t tid, uint64_t time_ns);

/* Remove threads that have returned or exited. */
void in_flight_remove_returned(struct in_flight *in_flight);

#endif
