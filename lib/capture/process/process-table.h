/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The process table: the recorded processes and their state. process-events.c changes it. */
#pragma once

#include "base/helper-process.h"
#include "trace/format/event.h"
#include "trace/sections/sections.h"

/* How much of an append-only file has been read. If the file was replaced, or its last bytes differ, reading starts
 * over. */
#define FILE_MARK_BYTES 64

struct file_mark {
	uint64_t inode, length;
	uint8_t last[FILE_MARK_BYTES]; /* the bytes before `length`; fewer if the file is shorter */
};

struct mapped_range {
	uint64_t start, end;
	bool anonymous; /* private and not of a file */
	bool reserved;	/* PROT_NONE: empty as a rule, but pages written before an mprotect(2) stay */
};

struct memory_limit {
	uint64_t bytes; /* NO_LIMIT_BYTES: no limit */
	uint64_t used;	/* 0: not read */
};

struct traced_process {
	size_t place; /* in the table */
	pid_t pid;
	pid_t parent;	/* that forked it, or the command if that did or its descendant; 0: before the recording */
	bool target;	/* requested by the user */
	bool found;	/* ... as a descendant of a process: not by its PID */
	bool from_exec; /* recorded from the exec of its program on: the command, or a process that was waited for */
	bool left;	/* the process left the recorded control group */
	bool ended;
	uint64_t ended_ns;			  /* when the recorder noticed the end of the process */
	int pidfd;				  /* -1: the process had already ended, or too many files are open */
	uint64_t alive_check_ns;		  /* without a pidfd: when the process was last found alive */
	bool maps_denied;			  /* the recorder may not read its maps */
	bool start_noted;			  /* the recording contains its start time */
	pid_t lender;				  /* uses the address space of this process; 0: has its own */
	uint64_t resident_bytes;		  /* RSS at the last reading; 0: none of its own */
	uint64_t paged_bytes;			  /* RSS when its pages were last read; 0: never */
	uint64_t pss_resident_bytes, pss_took_ns; /* RSS at the last reading of Pss, and the CPU time that this took */
	struct memory_limit limits[NOTE_LIMITS];  /* as noted last; all 0: not yet */
	bool snapshot_wanted;
	enum snapshot_kind snapshot_kind;
	uint64_t snapshot_wanted_ns; /* time of the record that requires a snapshot */
	uint64_t snapshot_ns;	     /* when the last snapshot began */
	VECTOR(struct mapped_range)
	ranges;	     /* of the last snapshot, if its resident pages are read next */
	int pagemap; /* of the program that the ranges belong to, opened with the snapshot; below 0: a negative errno */
	uint64_t break_before; /* its break just before recording began; 0: no heap, or not known */
	uint64_t program_ns;   /* when its program began, by fork or exec; 0: before the recording */
	uint64_t options_of;   /* program_ns + 1 of the program whose options were read; 0: none */

	/* Its perf map: see jit-files.h. */
	int tmp_directory;  /* the process's /tmp, O_PATH; -1: none */
	uint64_t tmp_place; /* see blocking-calls.h */
	pid_t namespace_pid;
	char map_name[32];
	uid_t owner;
	uint64_t started_realtime_ns;
	uint64_t map_checked_ns;
	struct file_mark map_growth_mark;
	struct file_mark map_pieces_mark; /* see file-metadata.c */
	uint64_t map_pieces_ns;
	struct perf_map_copy perf_map;

	/* Its runtime and the requests to it: see ask-runtime.h. */
	const struct askable_runtime *runtime; /* NULL: no runtime that supports requests */
	bool has_jit_code;
	enum ask_state { ASKED_NOT, ASKED_NOW, ASKED_AGREED, ASKED_WRITES, ASKED_TO_END, ASKED_DONE } asked;
	unsigned ask_attempts;
	uint64_t ask_at_ns; /* time of the next request; after the runtime agreed: how long to wait for the map */
	struct helper helper;
	bool had_trigger; /* the file that triggers the runtime existed before the request */
	bool map_is_ours; /* mmtrace made the program write its perf map */
};

struct process_table {
	VECTOR(struct traced_process *)
	items;			 /* owned; a pointer to a process stays valid until the process is removed */
	struct map index_of_pid; /* by PID: index of the latest process */
	uint64_t forgotten;	 /* number of processes removed from the table */
	bool descriptors_short;	 /* too many files were open for the pidfd or /tmp of some process */
};

/* NULL: there are not so many. */
static inline struct traced_process *process_table_at(const struct process_table *processes, size_t place)
{
	return place < processes->items.count ? processes->items.items[place] : NULL;
}

/* Loop while `more` is true, over no process that is added meanwhile: with forks that could go on for ever. */
#define process_table_each(process, table, more)                                                                       \
	for (size_t known_ = (table)->items.count, done_ = 0; !done_; done_ = 1)                                       \
		for (struct traced_process *process = process_table_at(table, 0);                                      \
		     process && process->place < known_ && (more);                                                     \
		     process = process_table_at(table, process->place + 1))

void process_table_deinit(struct process_table *processes);

/* Add a process and open its pidfd. The caller must call perf_maps_watch() for the other descriptors. The process may
 * have ended already; see `ended`. NULL: out of memory. */
struct traced_process *process_table_add(struct process_table *processes, pid_t pid, bool target);

/* Remove the process that was added last, because it is not recorded. */
void process_table_drop_last(struct process_table *processes);

/* Return the latest process with this PID; NULL: it is not recorded. */
struct traced_process *process_table_find(const struct process_table *processes, pid_t pid);

/* Return a descriptor that may stay open. If only the reserve of descriptors is left, close it and return -1. */
int process_table_spare(int fd);

/* Check which processes have ended. Return true if there are targets and all of them have ended. */
bool process_table_update(struct process_table *processes);

/* Remove processes that need no more work: they are not targets, ended a while ago, are released, and have no perf
 * map. Free them, so the loop calls this only while no job runs. */
void process_table_forget_ended(struct process_table *processes);

/* Close the pagemap, and empty the ranges. */
void traced_process_drop_ranges(struct traced_process *process);

/* Close the descriptors of an ended process. */
void process_table_release(struct traced_process *process);

/* Threads that may still be inside a call whose effect is already in the maps. Such a call may take milliseconds to
 * free a gigabyte, and longer if the thread has to wait for a CPU. A thread counts as returned only when it is seen
 * outside of the call: in an interruptible sleep, in a different call, exiting, or by a record that is not made in the
 * middle of a call. */

struct blocking_calls;

/* Zero-initialise an empty set. */
struct in_flight {
	struct map threads; /* by THREAD_KEY(): when the maps were read */
};

#define THREAD_KEY(pid, tid) ((uint64_t)(uint32_t)(pid) << 32 | (uint32_t)(tid))
#define THREAD_PID(key) ((pid_t)((key) >> 32))
#define THREAD_TID(key) ((pid_t)(uint32_t)(key))

/* Add the threads of a process that may be in a call. Call this after its maps have been read. False: out of memory,
 * or the process is gone. */
bool in_flight_add(struct in_flight *in_flight, struct blocking_calls *calls, pid_t pid, uint64_t read_ns);

/* Note that the thread made a record at this time: at the entry or exit of a call, or in user space. */
void in_flight_note_outside(struct in_flight *in_flight, pid_t pid, pid_t tid, uint64_t time_ns);

/* Remove the threads that have returned or exited. */
void in_flight_remove_returned(struct in_flight *in_flight, struct blocking_calls *calls);

/* The command to record: starts it and holds it before exec() until recording has begun. */

struct traced_command {
	pid_t pid; /* 0: not started, or reaped */
	int pidfd; /* readable when the command has ended; -1: none */
	const char *name;
	int go_pipe[2];		   /* the read end stays open: writing to a killed command raises no SIGPIPE */
	int error_pipe;		   /* read end */
	uint64_t descriptor_limit; /* soft limit of open files for the command; 0: the recorder's limit */
	bool output_to_stderr;	   /* redirect standard output: the recording uses it */
	/* Signals for the command to ignore and to block, 0-terminated; NULL: none. The command also ignores the
	 * signals that the recorder ignores, except SIGPIPE, which must be listed here. */
	const int *ignores;
	const int *blocks;
	uint64_t exec_ns;  /* when its program began; 0: not seen yet */
	bool options_read; /* of this program */
	int status;	   /* wait status; -1: it has not ended by itself */
};

/* Kills a command that has not been released. */
void command_deinit(struct traced_command *command);

/* Start the command, which then waits for command_release(). `arguments` must outlive the command. */
struct mmt_error *command_start(struct traced_command *command, char *const *arguments) MMT_MUST_CHECK;

/* Let the command run. Return after its exec, or when `stop_fd` is readable or at `until_ns`: the program's file
 * system may not answer. MMT_ERROR_COMMAND: the exec failed; MMT_ERROR_UNSUPPORTED: a 32-bit program. */
struct mmt_error *command_release(struct traced_command *command, int stop_fd, uint64_t until_ns) MMT_MUST_CHECK;

/* Was a command started, and has it ended? */
bool command_has_ended(const struct traced_command *command);

/* The wait status of a command that has ended, which stays to be reaped; -1: it runs, or it is not known. */
int command_status(const struct traced_command *command);

/* Send SIGTERM to a running command and wait for its end, at most a second. Its status stays -1. False: the command
 * is still running. */
bool command_stop(struct traced_command *command);
