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
#include "base/map.h"
#include "base/vector.h"
#include "capture/jit-code/code-pages.h"
#include "capture/procfs/proc.h"
#include "capture/procfs/residency.h"

struct recorder;

/* A program of a process: where it has JIT code, its memory, and which of its pages have been read. */

#define TIDY_FROM (CODE_RANGES_MAX / 4 * 3) /* with this many ranges it begins to drop unmapped ones */
#define TIDY_STEP_RANGES 256		    /* ranges checked in one step: the rings fill in the meantime */
#define TIDY_STEP_LINES 1024		    /* of /proc/PID/maps in one step, on kernels without mapping_query() */
#define TIDY_WORTH_RANGES 2048		    /* a search that drops fewer ranges than this was in vain */
#define TIDY_STEP_NS 1000000ULL		    /* shortest time between two steps while there is room */
#define TIDY_INTERVAL_NS 1000000000ULL	    /* pause after a complete search in vain */

struct jit_program {
	pid_t pid;
	uint64_t until_ns; /* as in struct process_code */
	uint64_t from_ns;  /* do not read it before this time */
	bool requested;	   /* its process was requested by the user: while it lives, its code is never evicted */
	bool opened;	   /* the open() was tried */
	uint64_t opened_ns;
	bool descriptors_short; /* it could not be opened because descriptors were short */
	bool ended;
	bool gave_way;	  /* its code was evicted for others */
	int memory, maps; /* of the address space that it had at that time, even after an exec; -1: none */
	struct residency_reader pagemap;
	struct code_ranges ranges;
	struct code_pages pages;
	uint64_t position;	  /* address up to which ranges were read last */
	uint64_t tidy_ns;	  /* before this time its ranges are not searched again for unmapped ones to drop */
	uint64_t tidy_position;	  /* address that this search has reached */
	struct mapping_scan scan; /* of this search, on kernels without mapping_query() */
	size_t tidied;		  /* ranges that this search found unmapped */
	bool tidied_in_vain;	  /* a complete search found hardly any unmapped */
};

struct jit_code {
	VECTOR(struct jit_program) programs;
	struct map program_of_pid;	   /* of programs that have not ended */
	struct code_store store;	   /* for the pages of all programs */
	const struct jit_program *reading; /* during a pass */
	bool nothing_gives_way;		   /* nothing can be evicted until another program ends */
	uint64_t read_ns, next_ns;	   /* time of the last pass, and of the next */
	int64_t spent_ns;		   /* time spent beyond the allowed share up to ... */
	uint64_t reckoned_ns;
	size_t turns[2]; /* whose turn is next: among the others, and among the requested ones */
	bool others_first;
	bool full, cut;	  /* limits prevented a complete copy of a program that has ended */
	size_t unopened;  /* programs that could not be opened and were removed from the list */
	bool out_of_time; /* when recording ended */
};

/* Accepts a zeroed value. */
void jit_code_deinit(struct jit_code *jit_code);

/* What was mapped at that time. Memory of a new child process is inherited from its parent and mostly discarded
 * soon. */
struct jit_mapping {
	pid_t pid;
	uint64_t start, end, time_ns;
	uint32_t protection;
	const char *path;
	bool forked;
};

struct mmt_error *jit_code_note(struct recorder *recorder, const struct jit_mapping *mapping) MMT_MUST_CHECK;

/* Does the process have watched executable memory in this range? Changes nothing. */
bool jit_code_overlaps(const struct recorder *recorder, pid_t pid, uint64_t start, uint64_t end);

/* A new program, by exec or in a new process with this PID, began at this time. Ranges noted for a later time belong to
 * it: records and snapshots do not arrive in time order. */
struct mmt_error *jit_code_end_program(struct recorder *recorder, pid_t pid, uint64_t time_ns) MMT_MUST_CHECK;

/* The process has ended; its PID has not been reused yet. */
void jit_code_end_process(struct recorder *recorder, pid_t pid);

/* One of its threads has exited: the others may follow. */
void jit_code_note_exit(struct recorder *recorder, pid_t pid);

/* All its mappings will be noted next. */
void jit_code_begin_snapshot(struct recorder *recorder, pid_t pid);

/*
 * Called periodically during the recording: reads new JIT code. Takes a small share of the time and reads few bytes at
 * once. Keeps up with the rings. Errors: reading the rings failed, or out of memory.
 */
struct mmt_error *jit_code_read(struct recorder *recorder) MMT_MUST_CHECK;

/* Called when recording ends: reads the current JIT code of living programs. recorder->jobs.code then describes all
 * code ever read. */
struct mmt_error *jit_code_finish(struct recorder *recorder) MMT_MUST_CHECK;

/* As code_copies_encode(). Call it after the above. */
struct mmt_error *jit_code_encode(struct recorder *recorder, struct buffer *buffer) MMT_MUST_CHECK;

#endif
