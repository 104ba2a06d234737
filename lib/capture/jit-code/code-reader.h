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
	uint64_t due_ns;   /* pages due by then are read */
	uint64_t spent_ns; /* CPU time of this thread, without reading rings */
	uint64_t spent_ns_max;
	bool at_end;
	bool trust_ranges; /* do not check that ranges are still executable if the kernel has no query for it */
	/* State of the pass itself. */
	uint64_t work_ns; /* start of the work that is not yet in `spent_ns` */
	uint8_t *piece;
};

/* Gives all programs a turn until `spent_ns_max` is spent; the next pass continues there. Keeps up with the rings.
 * Errors: reading the rings failed, or out of memory. */
struct mmt_error *code_pass_read(struct code_pass *pass) MMT_MUST_CHECK;

/* A program of a process: where it has JIT code, its memory, and which of its pages have been read. */

#define TIDY_FROM (CODE_RANGES_MAX / 4 * 3) /* with this many ranges it begins to drop unmapped ones */
#define TIDY_STEP_RANGES 256		    /* ranges checked in one step: the rings fill in the meantime */
#define TIDY_STEP_LINES 1024		    /* of /proc/PID/maps in one step, on kernels without mapping_query() */
#define TIDY_WORTH_RANGES 2048		    /* a search that drops fewer ranges than this was in vain */
#define TIDY_STEP_NS 1000000ULL		    /* shortest time between two steps while there is room */
#define TIDY_INTERVAL_NS 1000000000ULL	    /* pause after a complete search in vain */

struct generating_program {
	pid_t pid;
	uint64_t until_ns; /* as in struct process_code */
	uint64_t from_ns;  /* do not read it before this time */
	bool asked_for;	   /* its process was requested by the user: while it lives, its code is never evicted */
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

void generating_program_init(struct generating_program *program, pid_t pid);

void generating_program_deinit(struct generating_program *program);

/* Opens its current memory. When recording ends, no descriptors are reserved for other uses. */
void generating_program_open(struct generating_program *program, bool at_end);

void generating_program_close(struct generating_program *program);

/*
 * Call this before adding a range. The kernel does not report unmapping of JIT code, so while there are many ranges,
 * each call checks some of them and drops those that are unmapped or no longer executable; memory that becomes
 * executable again is reported. Adds the CPU time of this thread that it takes to *spent_ns. False: out of memory.
 */
bool generating_program_tidy(struct generating_program *program, int64_t *spent_ns);

#endif
