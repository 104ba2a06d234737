/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The events of a recording, one after the other in time order: what mmtrace-dump(1) prints. Recordings of plain perf
 * can be read, too.
 *
 *     error = mmt_events_open("mmtrace.data", NULL, &events);
 *     while (!error && !(error = mmt_events_next(events, &event)) && event)
 *             ...;
 *     mmt_events_close(events);
 *
 * Everything that is returned belongs to the reader. An event and what it points to are valid until the next call of
 * mmt_events_next(), a stack until the next call of mmt_events_symbolize(), and everything else until
 * mmt_events_close(). The library allocates the structs of this header, so that they can get more members at their
 * ends; a caller must not copy them, nor have arrays of them. Enumerations can get more values: ignore the events of
 * kinds that you do not know.
 *
 * Times are nanoseconds of the recording's clock, CLOCK_MONOTONIC unless perf recorded it with another one. Addresses
 * are those of the recorded process; sizes are bytes. Texts come from the recording and may hold any byte but NUL:
 * mmt_write_escaped() makes them safe for a terminal.
 *
 * One thread at a time may use a reader; different readers are independent. Reading a large recording starts threads,
 * with all signals blocked, that decompress and sort what comes next; they end with the events or with
 * mmt_events_close().
 */
#ifndef MMTRACE_EVENTS_H
#define MMTRACE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mmtrace/error.h>
#include <mmtrace/progress.h>
#include <mmtrace/report.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mmt_events; /* a reader of events */

enum mmt_event_kind {
	MMT_EVENT_CALL,	      /* a memory system call returned: `call`, `stack` */
	MMT_EVENT_CALL_ENTER, /* its entry, in files of plain perf: `call` without result, `stack` */
	MMT_EVENT_STACK_DUMP, /* a copy of the stack at a call of the same thread, before or after it: `call`, `stack`
			       */
	MMT_EVENT_NEW_TASK,   /* a thread was created; the flags of clone(2): `task` */
	MMT_EVENT_MAPPING,    /* the kernel describes a mapping that was made or changed: `mapping` */
	MMT_EVENT_COMM,	      /* a thread's name, or a program was executed: `task` */
	MMT_EVENT_FORK,	      /* a thread or a process began: `task` */
	MMT_EVENT_EXIT,	      /* a thread ended: `task` */
	MMT_EVENT_LOCK,	      /* a thread locked its address space for writing: `address_space` */
	MMT_EVENT_LOST,	      /* system calls were lost: `count` */
	MMT_EVENT_LOST_DUMPS, /* stack dumps were lost: `count` */
	MMT_EVENT_SNAPSHOT_BEGIN, /* /proc/PID/maps was read, one mapping after the other: `snapshot`, `task` */
	MMT_EVENT_SNAPSHOT_LINE,  /* `snapshot`, `mapping` */
	MMT_EVENT_SNAPSHOT_END,	  /* `snapshot`, `task` */
	MMT_EVENT_MARK,		  /* made by the user while recording: `mark` */
	MMT_EVENT_RESIDENT,	  /* resident size of a process: `resident_bytes` */
	MMT_EVENT_LARGE_DUMPS,	  /* large stack dumps were switched on or off: `enabled` */
	MMT_EVENT_OTHER,	  /* a record that mmtrace does not use: `record_name` */
};

/* The word that mmtrace-dump(1) prints, for instance "snapshot-line". Static; "unknown" for other values. */
MMT_PUBLIC const char *mmt_event_kind_name(enum mmt_event_kind kind);

struct mmt_event_call {
	const char *name;	   /* of the system call, for instance "mmap". Static */
	bool has_arguments;	   /* plain perf records those of an exit with its entry */
	unsigned argument_count;   /* how many the call takes, up to 6 */
	unsigned advice;	   /* which argument is MADV_*, counted from 1; 0: none */
	const uint64_t *arguments; /* 6 of them, as passed; 0 without has_arguments */
	int64_t result;		   /* what it returned; 0 for MMT_EVENT_CALL_ENTER */
	bool failed;		   /* result is -errno */
	/* What it mapped, unmapped or changed, not rounded to pages; of mremap(2) the new place. range_bytes is 0 if
	 * the call failed, or if its arguments and result do not tell: brk, shmat, shmdt, io_setup, io_destroy. */
	uint64_t range_start, range_bytes;
};

struct mmt_register {
	const char *name; /* as in perf: "sp", "ip", "x0". Static */
	uint64_t value;
};

/* What was recorded of a stack. mmt_events_symbolize() makes frames of it. */
struct mmt_event_stack {
	const uint64_t
	    *callchain; /* of the kernel, innermost first: an instruction, then return addresses; NULL: none */
	size_t callchain_count;
	bool callchain_full; /* as long as the kernel allows: outer frames may be missing */
	const struct mmt_register *registers;
	size_t register_count;
	const uint8_t *bytes; /* memory from the stack pointer upwards; NULL: none */
	size_t byte_count;
	size_t wanted_bytes; /* asked for; with fewer byte_count the stack ended first, or a page was not in memory */
};

struct mmt_event_mapping {
	uint64_t start, bytes;
	uint64_t file_offset;
	uint64_t inode;
	uint32_t device_major, device_minor;
	uint32_t protection; /* PROT_* of mmap(2) */
	uint32_t flags;	     /* MAP_SHARED or MAP_PRIVATE, and others that the record has */
	bool code_only;	     /* the file has no records of other mappings than code */
	const char *path;    /* "//anon" for anonymous memory, as perf names it; "" unknown */
};

struct mmt_event_task {
	int32_t pid, tid;		/* that began, ended, or was created (NEW_TASK: -1 and its thread) */
	int32_t parent_pid, parent_tid; /* MMT_EVENT_FORK, MMT_EVENT_EXIT; else -1 */
	uint64_t clone_flags;		/* MMT_EVENT_NEW_TASK; else 0 */
	const char *name;		/* MMT_EVENT_COMM, and of the process of a snapshot; else "" */
	bool exec;			/* MMT_EVENT_COMM: a program was executed */
};

struct mmt_event {
	enum mmt_event_kind kind;
	int32_t pid, tid; /* where it happened; -1: not known */
	int32_t cpu;	  /* -1: not known */
	uint64_t time_ns; /* 0: before the recording began */
	uint64_t number;  /* of the event in the recording, from 1 */
	size_t attribute; /* for mmt_events_get_attribute() */
	/* NULL where `kind` does not name them. */
	const struct mmt_event_call *call;
	const struct mmt_event_stack *stack;
	const struct mmt_event_mapping *mapping;
	const struct mmt_event_task *task;
	const char *snapshot; /* why it was taken: "start", "first", "exec", "interval", "stop". Static */
	/* 0 where `kind` does not name them. */
	uint64_t address_space; /* the same for all threads that share it */
	uint64_t count;
	uint64_t mark; /* its number, from 1 */
	uint64_t resident_bytes;
	uint64_t resident_reading; /* the same for all processes that were read at one time */
	bool enabled;
	/* The record in the file, see mmtrace-file(5). */
	const char *record_name; /* for instance "MMAP2". Static */
	uint32_t record_type, record_bytes;
};

/* The recording as a whole. */
struct mmt_recording {
	bool by_mmtrace;	   /* or by perf */
	const char *architecture;  /* "x86_64", "aarch64" */
	const char *host, *kernel; /* "" unknown */
	const char *recorder;	   /* version of mmtrace or perf; "" unknown */
	const char *command_line;  /* of the recorder, quoted for a shell; "" unknown */
	bool on_cpus;		   /* events were recorded on CPUs, not of threads */
	bool all_processes;	   /* ... for every process */
	size_t attribute_count;	   /* perf events that it was recorded with */
};

struct mmt_event_attribute {
	const char *name;     /* "syscalls:sys_exit_mmap" */
	const char *role;     /* what mmtrace-dump(1) prints: "truth", "dump", "side-band". Static */
	uint64_t sample_type; /* PERF_SAMPLE_* of perf_event_open(2) */
	bool has_lost;
	uint64_t lost; /* events that the kernel dropped */
};

/* What is missing; complete when there are no more events. */
struct mmt_events_state {
	bool incomplete;	     /* the recorder did not finish, or the file was cut short */
	uint64_t unfinished_records; /* at its end, discarded: records of other CPUs from that time are missing */
	uint64_t out_of_order;	     /* events that were older than the one before */
	const char *damage;	     /* the first bytes that could not be decoded, where the events end; NULL: none */
};

/* Set `size` to sizeof(struct mmt_events_options), and what is not needed to 0. */
struct mmt_events_options {
	size_t size;
	const struct mmt_progress *progress; /* of reading the recording; NULL: none */
	const char *cache_directory;	     /* as in struct mmt_report_options; NULL: none */
	bool no_demangle;
};

/*
 * Open a recording by path ("-": standard input) or by descriptor. The descriptor stays the caller's and may be closed
 * at once, and the options and their strings are copied. A pipe is first read to its end, into a file without a name in
 * TMPDIR (/var/tmp). `options` may be NULL. MMT_ERROR_FORMAT: it is no recording.
 */
MMT_PUBLIC struct mmt_error *mmt_events_open(const char *path, const struct mmt_events_options *options,
					     struct mmt_events **events_ret) MMT_MUST_CHECK;
MMT_PUBLIC struct mmt_error *mmt_events_open_fd(int fd, const struct mmt_events_options *options,
						struct mmt_events **events_ret) MMT_MUST_CHECK;

/* Ends the threads and frees everything. Accepts NULL. */
MMT_PUBLIC void mmt_events_close(struct mmt_events *events);

MMT_PUBLIC const struct mmt_recording *mmt_events_get_recording(const struct mmt_events *events);

/* NULL: `attribute` is not less than attribute_count, as that of an event whose attribute is not known. */
MMT_PUBLIC const struct mmt_event_attribute *mmt_events_get_attribute(const struct mmt_events *events,
								      size_t attribute);

/*
 * The next event; NULL: there are no more. Damage and loss are no errors: see mmt_events_get_state(). An error is one
 * of this machine (no memory, a read error); no events follow it.
 */
MMT_PUBLIC struct mmt_error *mmt_events_next(struct mmt_events *events,
					     const struct mmt_event **event_ret) MMT_MUST_CHECK;

MMT_PUBLIC const struct mmt_events_state *mmt_events_get_state(struct mmt_events *events);

struct mmt_stack {
	const struct mmt_frame *const *frames; /* innermost first; an inlined function is a frame of its own */
	size_t frame_count;
	enum mmt_stack_end end;
	uint32_t number; /* from 1: stacks with the same number are the same; 0: none was recorded */
};

/*
 * The call stack of the event that mmt_events_next() returned last. Calls have one (MMT_EVENT_CALL) if they mapped
 * memory, made it accessible, or failed to; others have no frames and MMT_STACK_END_NOT_RECORDED.
 *
 * The first call takes as long as a report: it reads the whole recording, because the code that was mapped and the
 * stack dumps of a call may come later than the call. It keeps 8 bytes for each event in a file without a name in /tmp,
 * and opens modules and debug information on this machine, which must have the recorded build-ids. Later calls only
 * look the result up, and name frames that were not named before.
 */
MMT_PUBLIC struct mmt_error *mmt_events_symbolize(struct mmt_events *events,
						  const struct mmt_stack **stack_ret) MMT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
