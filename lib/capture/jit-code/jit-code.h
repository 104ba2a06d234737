/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bytes of JIT code, needed to unwind code without frame pointers. They are read while the process lives and when
 * recording ends, without stopping the process. Only resident pages are read: reading does not fault in any page.
 */
#ifndef CAPTURE_JIT_CODE_JIT_CODE_H
#define CAPTURE_JIT_CODE_JIT_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/errors.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/vector.h"
#include "capture/jit-code/code-pages.h"
#include "capture/procfs/proc.h"
#include "capture/procfs/residency.h"
#include "capture/process/blocking-calls.h"

struct recorder;

/* One program that a process runs or ran: where it has JIT code, its memory, and which of its pages have been read. */

#define PRUNE_FROM (LIMIT_CODE_RANGES / 4 * 3) /* with so many ranges, look for unmapped ones and drop them */
#define PRUNE_STEP_RANGES 256		       /* ranges checked in one step, so that the rings are read in time */
#define PRUNE_STEP_LINES 1024		/* lines of /proc/PID/maps read in one step, on kernels without PROCMAP_QUERY */
#define PRUNE_WORTH_RANGES 2048		/* a search that drops fewer ranges than this was not worth its cost */
#define PRUNE_STEP_NS 1000000ULL	/* pause between two steps while there is room for more ranges */
#define PRUNE_INTERVAL_NS 1000000000ULL /* pause after a search that was not worth its cost */

struct jit_program {
	struct blocking_calls *calls;
	pid_t pid;
	uint64_t until_ns; /* when the program ended, as in struct process_code */
	uint64_t from_ns;  /* do not read its code before this time */
	bool requested;	   /* the user requested its process: its code is not evicted while it is alive */
	bool opened;	   /* opening its memory was tried */
	uint64_t opened_ns;
	bool descriptors_short; /* its memory could not be opened because too many files were open */
	bool denied;		/* ... because the recorder may not read it */
	bool ended;
	bool evicted;	  /* its stored code was evicted */
	int memory, maps; /* of its address space, valid even after an exec; -1: not open */
	struct residency_reader pagemap;
	struct code_ranges ranges;
	struct code_pages pages;
	uint64_t position;	  /* address up to which the last pass has read */
	uint64_t prune_ns;	  /* do not search for unmapped ranges before this time */
	uint64_t prune_position;  /* address up to which the search has checked ranges */
	struct mapping_scan scan; /* /proc/PID/maps, for the search on kernels without PROCMAP_QUERY */
	size_t pruned;		  /* ranges that the search found unmapped */
	bool prune_was_futile;	  /* the last complete search was not worth its cost */
};

struct jit_code {
	VECTOR(struct jit_program) programs;
	struct map program_of_pid;	   /* index of the living program by PID */
	struct code_store store;	   /* the code of all programs */
	const struct jit_program *reading; /* the program that is being read; NULL between two passes */
	bool nothing_to_evict;		   /* no code can be evicted until another program ends */
	uint64_t read_ns, next_ns;	   /* when the last pass ended; when the next is due */
	int64_t spent_ns;		   /* CPU time used beyond the allowed share, up to reckoned_ns */
	uint64_t reckoned_ns;
	size_t turns[2]; /* index of the program that is read next, among the other and among the requested ones */
	bool others_first;
	bool full, cut;		 /* a limit prevented a complete copy for a program that has ended */
	size_t unopened, denied; /* programs whose memory was never opened, and that are no longer in the list */
	bool out_of_time;	 /* at the end of the recording the time was not enough to read all code */
};

/* Accepts a zeroed value. */
void jit_code_deinit(struct jit_code *jit_code);

/* Memory that became executable at this time. A new child process inherits its parent's memory and discards most
 * of it soon, so inherited memory is read later. */
struct jit_mapping {
	pid_t pid;
	uint64_t start, end, time_ns;
	uint32_t protection;
	const char *path;
	bool forked;
};

struct mmt_error *jit_code_note(struct recorder *recorder, const struct jit_mapping *mapping) MMT_MUST_CHECK;

/* Does the process have known JIT code in this range? Changes nothing, so that the ring reader may call it. */
bool jit_code_overlaps(const struct recorder *recorder, pid_t pid, uint64_t start, uint64_t end);

/* A new program began at this time in the process with this PID, by exec or by fork. Records and snapshots do not
 * arrive in order of time, so ranges noted for a later time belong to the new program. */
struct mmt_error *jit_code_end_program(struct recorder *recorder, pid_t pid, uint64_t time_ns) MMT_MUST_CHECK;

/* The process has ended, and its PID has not been reused yet. */
void jit_code_end_process(struct recorder *recorder, pid_t pid);

/* A thread of the process has exited. The others may follow soon, so its code is read early. */
void jit_code_note_exit(struct recorder *recorder, pid_t pid);

/* A snapshot of the process begins, which will add all of its executable mappings. */
void jit_code_begin_snapshot(struct recorder *recorder, pid_t pid);

/*
 * Reads new JIT code if a pass is due. Uses a small share of the time, reads few bytes at once, and lets the ring
 * reader work in between. Errors: reading the rings failed, or out of memory.
 */
struct mmt_error *jit_code_read(struct recorder *recorder) MMT_MUST_CHECK;

/* Reads the JIT code of living programs once more when recording ends. Afterwards recorder->jobs.code describes all
 * stored code. */
struct mmt_error *jit_code_finish(struct recorder *recorder) MMT_MUST_CHECK;

/* Encodes the section as code_copies_encode() does. Call this after jit_code_finish(). */
struct mmt_error *jit_code_encode(struct recorder *recorder, struct buffer *buffer) MMT_MUST_CHECK;

#endif
