/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The analysis of one recording: unfreed bytes by stack. Reads the recording, the program files it names (build-ids are
 * checked) and nothing else.
 *
 * All strings and arrays of a `struct mmt_report` belong to it and live as long as it does. Strings come from the
 * recording and may hold any byte but NUL: whoever prints them escapes control characters (mmtrace/output.h does).
 * Times are nanoseconds of the recording's clock (CLOCK_MONOTONIC for our own files); addresses are those of the traced process.
 */
#ifndef MMTRACE_REPORT_H
#define MMTRACE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mmtrace/error.h>
#include <mmtrace/record.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MMT_UNKNOWN UINT64_MAX /* a figure that the recording cannot give */

struct mmt_report_options {
	const char *input;     /* path of the recording */
	const int32_t *pids;   /* only these processes; NULL: all */
	size_t pid_count;
	bool no_demangle;
};

/* How a stack came to its end: nothing is known to be missing only in the first case. */
enum mmt_stack_end {
	MMT_STACK_END_ENTRY,          /* reached the thread's entry: _start, clone, start_thread */
	MMT_STACK_END_DUMP_EXHAUSTED, /* the dump ended and the kernel's callchain did not continue it */
	MMT_STACK_END_DEPTH_LIMIT,    /* kernel.perf_event_max_stack or our own limit */
	MMT_STACK_END_NO_UNWIND_DATA, /* a frame whose caller nothing describes */
	MMT_STACK_END_CALLCHAIN,      /* the kernel's frame-pointer chain ended before an entry was seen */
	MMT_STACK_END_INVALID,        /* the stack did not advance or pointed nowhere */
	MMT_STACK_END_NOT_RECORDED,   /* no stack in the recording (--call-graph none, or the sample was lost) */
	MMT_STACK_END_KINDS,
};

/* For the user, for instance "stack dump exhausted". Static. */
MMT_PUBLIC const char *mmt_stack_end_name(enum mmt_stack_end end);

enum mmt_frame_kind {
	MMT_FRAME_NATIVE,  /* in a program file */
	MMT_FRAME_JIT,     /* generated code, named by a perf map or not at all */
	MMT_FRAME_UNKNOWN, /* an address in no known mapping */
};

struct mmt_frame {
	enum mmt_frame_kind kind;
	bool inlined;          /* the function was inlined into the next frame */
	bool doubtful;         /* a guessed return address that does not follow a call */
	const char *function;  /* demangled and normalised; NULL: no symbol */
	const char *raw_function; /* as the file has it; NULL: no symbol */
	const char *module;    /* base name, "[jit]", "[vdso]"; NULL for MMT_FRAME_UNKNOWN */
	const char *module_path;  /* as the kernel named it; NULL as above */
	const char *source_file;  /* NULL: unknown */
	uint32_t source_line;     /* 0: unknown */
	uint64_t address;         /* of the instruction in one process that had this frame; a return address unless first in the stack */
	uint64_t module_offset;   /* MMT_FRAME_NATIVE: address in the file's own numbering (ELF virtual address) */
};

struct mmt_thread {
	int32_t pid;
	int32_t tid;
	const char *name;
};

#define MMT_TREND_POINTS 32

struct mmt_group {
	uint32_t id; /* from 1, by rank of unfreed bytes in the whole recording */
	const struct mmt_frame *frames; /* innermost first */
	size_t frame_count;
	enum mmt_stack_end stack_end;

	uint64_t unfreed_bytes; /* mapped at the end, born in this recording */
	uint64_t unfreed_count; /* mappings with any byte left */
	uint64_t born_bytes;    /* their size when they were mapped; more than unfreed_bytes: parts were given back */
	uint64_t committed_bytes, reserved_bytes; /* of the unfreed: accessible, PROT_NONE */
	uint64_t resident_bytes; /* MMT_UNKNOWN without a snapshot of residency */
	uint64_t allocated_bytes, allocated_count; /* all that this stack ever mapped */
	uint64_t freed_bytes, freed_count; /* count: mappings of which nothing is left */
	uint64_t smallest_bytes, largest_bytes; /* what is left of each unfreed mapping */
	uint64_t first_ns, last_ns; /* birth of the oldest and youngest unfreed mapping */
	uint64_t trend[MMT_TREND_POINTS]; /* unfreed bytes at equal steps; the last is the end of the recording */

	const struct mmt_thread *threads; /* that mapped the unfreed bytes, most bytes first */
	size_t thread_count;
	const int32_t *pids;
	size_t pid_count;
};

struct mmt_process {
	int32_t pid;
	int32_t parent_pid; /* 0: not known */
	const char *name;
	bool ended;                     /* ended by itself while recorded: figures are those just before */
	uint64_t threads;
	uint64_t unfreed_bytes, committed_bytes, reserved_bytes;
	uint64_t resident_bytes;        /* MMT_UNKNOWN */
	uint64_t before_bytes;          /* mapped before the recording (or the fork) and still there */
	bool checked;                   /* against the kernel's maps */
	uint64_t checked_mappings;
	uint64_t wrong_bytes;           /* pages on which the model and the kernel differ */
	uint64_t undecided_bytes;       /* changed by calls in flight while the kernel's maps were read */
	uint64_t unknown_bytes;         /* pages never seen in any snapshot */
};

/* What a recording cannot say, for the first screen of a report. */
struct mmt_completeness {
	bool incomplete;          /* the recorder did not finish (killed, file cut short) */
	bool damaged;             /* undecodable bytes were met; what lies before them is used */
	const char *damage;       /* what and where; NULL when not damaged */
	uint64_t lost_events;     /* truth events */
	uint64_t lost_stack_dumps;
	uint64_t ambiguous_events; /* order of racing calls could not be told */
	uint64_t stacks_by_end[MMT_STACK_END_KINDS]; /* of all creating calls */
	uint64_t frames, frames_without_name;        /* of the groups */
	const char *const *lacks; /* sentences: what this file does not hold ("no munmap events: ...") and what to do */
	size_t lack_count;
};

struct mmt_report {
	const char *input;
	const char *command_line;   /* of the recorder; "" unknown */
	const char *host, *kernel;  /* "" unknown */
	const char *recorded_by;    /* "mmtrace 0.1.0", "perf 6.1" */
	uint64_t start_ns, end_ns;
	uint64_t start_realtime_ns; /* since the epoch; 0 unknown */
	uint64_t events[MMT_COUNT_KINDS];
	uint64_t failed_calls;
	struct mmt_completeness completeness;
	const struct mmt_process *processes;
	size_t process_count;
	size_t left_out_process_count; /* not selected by the options */
	const struct mmt_group *groups; /* largest unfreed_bytes first; groups with nothing unfreed at the end */
	size_t group_count;
	uint64_t unfreed_bytes, committed_bytes, reserved_bytes, resident_bytes; /* sums; resident MMT_UNKNOWN */
	uint64_t ended_bytes; /* unfreed in children that ended while a target lived on; in no other unfreed figure */
	uint64_t before_bytes;
	uint64_t allocated_bytes, freed_bytes;
};

MMT_PUBLIC void mmt_report_options_init(struct mmt_report_options *options);

/* Damage and loss are no errors: see completeness. An error means that there is nothing to report. */
MMT_PUBLIC struct mmt_error *mmt_report_create(const struct mmt_report_options *options,
					       struct mmt_report **report_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
MMT_PUBLIC void mmt_report_destroy(struct mmt_report *report);

#ifdef __cplusplus
}
#endif

#endif
