/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the events of a recording in time order, as mmtrace-dump(1) prints them. Also reads recordings of perf.
 *
 *     error = mmt_events_open("mmtrace.data", NULL, &events);
 *     while (!error && !(error = mmt_events_next(events, &event)) && event)
 *             ...;
 *     mmt_events_close(events);
 *
 * The reader owns everything that it returns. An event and the objects that it points to are valid until the next call
 * of mmt_events_next(), a stack until the next call of mmt_events_symbolize(), everything else until
 * mmt_events_close(). Later versions can add values to enumerations: ignore events of unknown kinds.
 *
 * Times are nanoseconds of the recording's clock: CLOCK_MONOTONIC, unless perf recorded with another clock. Addresses
 * are those of the recorded process. Sizes are in bytes. Strings come from the recording and can contain any byte
 * except NUL: use mmt_write_escaped() to print them.
 *
 * Only one thread at a time may use a reader. Different readers are independent. For a large recording the library
 * starts threads that decompress and sort ahead, with all signals blocked. They end after the last event or in
 * mmt_events_close().
 */
#ifndef MMTRACE_EVENTS_H
#define MMTRACE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mmtrace/error.h>
#include <mmtrace/heap.h>
#include <mmtrace/progress.h>
#include <mmtrace/report.h>

MMT_BEGIN_C

struct mmt_events; /* a reader of events */

struct mmt_event_call {
	const char *name;	   /* name of the system call, for instance "mmap". Static */
	bool has_arguments;	   /* false: MMT_EVENT_CALL_ENTER has the arguments of this exit */
	unsigned argument_count;   /* number of arguments that the call takes, up to 6 */
	unsigned advice;	   /* number of the argument with an MADV_* value, from 1; 0: none */
	const uint64_t *arguments; /* 6 values as passed; 0 if !has_arguments */
	int64_t result;		   /* return value; 0 for MMT_EVENT_CALL_ENTER */
	bool failed;		   /* `result` is -errno */
	/* The range that was mapped, unmapped or changed, not rounded to pages; for mremap(2), the new range.
	 * range_bytes is 0 if the call failed, or if the range is unknown: brk, shmat, shmdt, io_setup, io_destroy. */
	uint64_t range_start, range_bytes;
};

struct mmt_register {
	const char *name; /* as in perf: "sp", "ip", "x0". Static */
	uint64_t value;
};

/* Recorded stack data. mmt_events_symbolize() unwinds it. */
struct mmt_event_stack {
	const uint64_t
	    *callchain; /* kernel callchain, innermost first: an instruction, then return addresses; NULL: none */
	size_t callchain_count;
	bool callchain_full; /* has the kernel's maximum length: outer frames may be missing */
	const struct mmt_register *registers;
	size_t register_count;
	const uint8_t *bytes; /* stack dump, from the stack pointer upwards; NULL: none */
	size_t byte_count;
	size_t wanted_bytes; /* requested size; byte_count is smaller if the stack ended or a page was not in memory */
};

struct mmt_event_mapping {
	uint64_t start, length; /* length in bytes */
	uint64_t file_offset;
	uint32_t device_major, device_minor;
	uint64_t inode;
	uint32_t protection; /* PROT_* of mmap(2) */
	uint32_t flags;	     /* MAP_SHARED or MAP_PRIVATE, and other MAP_* flags of the record */
	bool code_only;	     /* the recording has such records only for executable mappings */
	const char *path;    /* "//anon" for anonymous memory, as in perf; "": unknown */
};

struct mmt_event_task {
	int32_t pid, tid;		/* the task that started, ended or was created (NEW_TASK: pid is -1) */
	int32_t parent_pid, parent_tid; /* of MMT_EVENT_FORK and MMT_EVENT_EXIT; otherwise -1 */
	uint64_t clone_flags;		/* of MMT_EVENT_NEW_TASK; otherwise 0 */
	const char *name;		/* of MMT_EVENT_COMM and snapshots; otherwise "" */
	bool exec;			/* MMT_EVENT_COMM: the task executed a program */
};

struct mmt_event {
	enum mmt_event_kind kind;
	int32_t pid, tid; /* of the task that caused the event; -1: unknown */
	int32_t cpu;	  /* -1: unknown */
	uint64_t time_ns; /* 0: before the recording started */
	uint64_t number;  /* of the event in the recording, from 1 */
	size_t attribute; /* for mmt_events_get_attribute() */
	/* NULL unless listed at the value of `kind`. */
	const struct mmt_event_call *call;
	const struct mmt_event_stack *stack;
	const struct mmt_event_mapping *mapping;
	const struct mmt_event_task *task;
	const char *snapshot; /* reason: "start", "first", "exec", "interval", "stop". Static */
	/* 0 unless listed at the value of `kind`. */
	uint64_t count;
	uint64_t mark; /* number, from 1 */
	uint64_t resident_bytes;
	uint64_t resident_reading; /* number; equal for all processes that were read at the same time */
	bool enabled;
	uint64_t address;
	uint64_t page_bytes; /* size of the page that is there now; 0: not known */
	/* The record in the file: see mmtrace-file(5). */
	const char *record_name; /* for instance "MMAP2". Static */
	uint32_t record_type, record_bytes;
};

struct mmt_recording {
	bool by_mmtrace;	   /* false: by perf */
	const char *architecture;  /* "x86_64", "aarch64" */
	const char *host, *kernel; /* "": unknown */
	const char *recorder;	   /* version of mmtrace or perf; "": unknown */
	const char *command_line;  /* of the recorder, quoted for a shell; "": unknown */
	bool on_cpus;		   /* the events were opened on CPUs, not for threads */
	bool all_processes;	   /* on_cpus: of all processes */
	bool in_cgroups;	   /* on_cpus: of the processes in control groups */
	size_t attribute_count;	   /* number of perf events */
};

struct mmt_event_attribute {
	const char *name;     /* "syscalls:sys_exit_mmap" */
	const char *role;     /* as mmtrace-dump(1) prints it: "syscall", "stack-dump", "side-band". Static */
	uint64_t sample_type; /* PERF_SAMPLE_* of perf_event_open(2) */
	bool has_lost;
	uint64_t lost; /* events that the kernel dropped */
};

/* Missing data. Final after the last event. */
struct mmt_events_state {
	bool incomplete;	     /* the recorder did not finish, or the file is truncated */
	uint64_t unfinished_records; /* discarded at the end, because records from other CPUs are missing */
	uint64_t out_of_order;	     /* number of events that were older than the previous one */
	const char *damage;	     /* description of data that cannot be decoded, where the events end; NULL: none */
};

/* Open a recording ("-": standard input). A pipe is first copied into an unnamed file in TMPDIR (default /var/tmp).
 * `progress`, of which a copy is kept, may be NULL. MMT_ERROR_FORMAT: the file is not a recording. */
MMT_PUBLIC struct mmt_error *mmt_events_open(const char *path, const struct mmt_progress *progress,
					     struct mmt_events **events_ret) MMT_MUST_CHECK;

/* End the threads and free everything. Accepts NULL. */
MMT_PUBLIC void mmt_events_close(struct mmt_events *events);

MMT_PUBLIC const struct mmt_recording *mmt_events_get_recording(const struct mmt_events *events);

/* NULL if `attribute` is not less than attribute_count: the event's attribute is unknown. */
MMT_PUBLIC const struct mmt_event_attribute *mmt_events_get_attribute(const struct mmt_events *events,
								      size_t attribute);

/* Return the next event, or NULL after the last one. Damage and lost events are not errors: see mmt_events_get_state().
 * After an error (out of memory, read error) there are no more events. */
MMT_PUBLIC struct mmt_error *mmt_events_next(struct mmt_events *events,
					     const struct mmt_event **event_ret) MMT_MUST_CHECK;

/* The heap censuses, in the order of time; NULL if `index` is not less than their number. */
MMT_PUBLIC const struct mmt_heap_census *mmt_events_get_heap(const struct mmt_events *events, size_t index);

MMT_PUBLIC const struct mmt_events_state *mmt_events_get_state(struct mmt_events *events);

struct mmt_stack {
	const struct mmt_frame *const *frames; /* innermost first; inlined functions have frames of their own */
	size_t frame_count;
	enum mmt_stack_end end;
	uint32_t number; /* from 1; equal stacks have equal numbers. 0: no stack was recorded */
};

/*
 * Return the call stack of the event that mmt_events_next() returned last. MMT_EVENT_CALL has one if the call mapped
 * memory, made memory accessible, or failed to do so. Other events have no frames and MMT_STACK_END_NOT_RECORDED.
 *
 * The first call takes as long as a report: it reads the whole recording, because mappings of code and stack dumps can
 * follow the call that they belong to. It uses an unnamed temporary file in /tmp with 8 bytes per event, and opens
 * modules and debug information on this machine whose build-ids match. Later calls look up the result and symbolize new
 * frames.
 */
MMT_PUBLIC struct mmt_error *mmt_events_symbolize(struct mmt_events *events,
						  const struct mmt_stack **stack_ret) MMT_MUST_CHECK;

MMT_END_C

#endif
