/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the JIT code of processes, one bounded pass at a time. */
#ifndef CAPTURE_JIT_CODE_CODE_READER_H
#define CAPTURE_JIT_CODE_CODE_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"
#include "capture/jit-code/code-pages.h"
#include "capture/jit-code/code-ranges.h"
#include "capture/proc/proc-maps.h"
#include "capture/proc/residency.h"

struct recorder;

struct code_pass {
	struct recorder *recorder;
	uint64_t now_ns;
	uint64_t due_ns;   /* pages that are to be read by then are */
	uint64_t spent_ns; /* this thread's time, without that of reading rings */
	uint64_t spent_ns_max;
	bool at_end;
	bool trust_ranges; /* where the kernel does not tell whether they are executable still */
	/* Its own. */
	uint64_t work_ns; /* when the work began that is not in `spent_ns` yet */
	uint8_t *piece;
};

/* All programs that have their turn, until `spent_ns_max` is spent; the next pass goes on there. Keeps up
 * with the rings. Errors: those of reading them, and no memory. */
struct mmt_error *code_pass_read(struct code_pass *pass) MMT_MUST_CHECK;

/* One program of a process: where it has JIT code, its memory, and which pages of it have been read. */

#define TIDY_FROM (CODE_RANGES_MAX / 4 * 3) /* with so many ranges it begins to look for room */
#define TIDY_STEP_RANGES 256		    /* it looks at in one step: the rings fill meanwhile */
#define TIDY_STEP_LINES 1024		    /* of /proc/PID/maps in one step, on kernels without mapping_query() */
#define TIDY_WORTH_RANGES 2048		    /* where fewer are gone of all, looking at once again is in vain */
#define TIDY_STEP_NS 1000000ULL		    /* from one step to the next, at least, while there is room */
#define TIDY_INTERVAL_NS 1000000000ULL	    /* after all were looked at and there is no more room than before */

struct generating_program {
	pid_t pid;
	uint64_t until_ns; /* as in struct process_code */
	uint64_t from_ns;  /* not read before */
	bool asked_for;	   /* its process was: while it lives what is kept of it gives way to nothing */
	bool opened;	   /* or tried to */
	uint64_t opened_ns;
	bool descriptors_short; /* it could not be opened for this */
	bool ended;
	bool gave_way;	  /* what was kept of it did, to others */
	int memory, maps; /* of the memory that it had then, whatever the process executes later; -1: none */
	struct residency_reader pagemap;
	struct code_ranges ranges;
	struct code_pages pages;
	uint64_t position;	  /* address up to which ranges were read last */
	uint64_t tidy_ns;	  /* before this time its ranges are not searched again for unmapped ones to drop */
	uint64_t tidy_position;	  /* address up to which this search has got */
	struct mapping_scan scan; /* of this search, on kernels without mapping_query() */
	size_t tidied;		  /* ranges that this search found unmapped */
	bool tidied_in_vain;	  /* a complete search found hardly any unmapped */
};

void generating_program_init(struct generating_program *program, pid_t pid);

void generating_program_deinit(struct generating_program *program);

/* Its memory, as of now. When recording ends no descriptors are left for other uses. */
void generating_program_open(struct generating_program *program, bool at_end);

void generating_program_close(struct generating_program *program);

/*
 * A range is about to be added. Nobody tells what is unmapped: so while there are many ranges, those that are not there
 * any more, or not executable, are forgotten, a step each time; what becomes executable again is told of. Adds the time
 * of this thread that it takes to *spent_ns. False: out of memory.
 */
bool generating_program_tidy(struct generating_program *program, int64_t *spent_ns);

#endif
