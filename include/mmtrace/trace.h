/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The memory calls of a recording one after another, with what each did to the address space of its process. */
#pragma once

#include <mmtrace/output.h>

/* Memory that a call maps (accessible, or with PROT_NONE), unmaps or replaces, makes accessible or the reverse, moves
 * to another address, or gives the pages back of, as far as they are resident. */
/* clang-format off */
#define MMT_EFFECTS(DO) \
DO(MAPPED, mapped_bytes, "maps") \
DO(RESERVED, reserved_bytes, "reserves") \
DO(FREED, freed_bytes, "frees") \
DO(COMMITTED, committed_bytes, "commits") \
DO(PROTECTED, protected_bytes, "makes inaccessible") \
DO(MOVED, moved_bytes, "moves") \
DO(GIVEN_BACK, given_back_bytes, "gives back up to")
/* clang-format on */
#define MMT_EFFECT(kind, ...) MMT_EFFECT_##kind,
enum mmt_effect { MMT_EFFECTS(MMT_EFFECT) MMT_EFFECT_KINDS };

/* What mapped most of the memory that a call found, or most of what the options select of that. */
struct mmt_traced_memory {
	struct mmt_row row; /* as for struct mmt_traced_call; unfreed_bytes: of that memory; 0: it found none */
	bool known;	    /* false: it was mapped before the recording, or by the kernel, or it is inherited */
	bool inherited;	    /* the process has it from its parent, which forked it during the recording */
	uint64_t age_ns;    /* of the oldest of it; inherited: since the fork */
};

/* Borrowed: valid until the callback returns. */
struct mmt_traced_call {
	uint64_t time_ns;     /* when it returned */
	uint64_t realtime_ns; /* since the epoch; 0: unknown */
	struct mmt_thread thread;
	const char *name;	   /* "mmap" */
	const uint64_t *arguments; /* all that it reads */
	unsigned argument_count;
	int64_t result;
	int error;		/* errno; 0: it succeeded */
	struct mmt_limit limit; /* that made it fail */
	uint64_t bytes[MMT_EFFECT_KINDS];
	/* Of each row: frames, origin, stack_end, and pattern, memory_class and file of the memory. */
	struct mmt_row stack; /* of the call; calls that map nothing and succeed may have no frames */
	struct mmt_traced_memory owner;
	struct mmt_traced_memory freed; /* if it also moves memory, which is the owner's */
};

struct mmt_trace_options {
	/* Used are: input, pids, no_demangle, from, to; focus, ignore, classes and min_age_ns, of what a call
	 * maps or any of what it finds, where freed and moved memory also has the frames of its own stack; and follow,
	 * which returns false at the end.
	 */
	struct mmt_report_options report;
	const char *const *calls; /* shell patterns of names */
	size_t call_count;	  /* 0: all calls; each must match a call that can be recorded */
	uint64_t min_bytes;	  /* that a call changes, or was refused */
	bool failed_only;
	void (*call)(void *context, const struct mmt_traced_call *call);
	void *context;
};

struct mmt_trace_summary {
	uint64_t lost_events;
	bool incomplete;      /* the recorder had not finished when the file was opened */
	bool processes_ended; /* all, before the end of the recording */
};

/* Calls back for each call that the options select, in time order. Errors: as of mmt_report_create(), and
 * MMT_ERROR_FORMAT behind the last readable call of a damaged recording. */
MMT_PUBLIC struct mmt_error *mmt_trace(const struct mmt_trace_options *options,
				       struct mmt_trace_summary *summary_ret) MMT_MUST_CHECK;

/* Write a line. `stacks`: with the call's stack, or else the owner's, below it; of the options, stack_frames, colour
 * and ascii are used. In JSON: with all frames of both instead of the origins. */
MMT_PUBLIC struct mmt_error *mmt_traced_call_write_text(const struct mmt_traced_call *call,
							const struct mmt_text_options *options, bool stacks,
							FILE *stream) MMT_MUST_CHECK;
MMT_PUBLIC void mmt_traced_call_write_json(const struct mmt_traced_call *call, bool stacks, FILE *stream);
