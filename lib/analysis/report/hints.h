/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Hints: for memory with a known cause, a sentence that says what it is, whether it is likely a leak, and what helps. A
 * wrong hint is worse than none, so small amounts and single mappings have none. Pure; all texts are static. */
#ifndef ANALYSIS_REPORT_HINTS_H
#define ANALYSIS_REPORT_HINTS_H

#include <mmtrace/report.h>

/* Whether a limit of malloc arenas can help. */
enum arena_use {
	ARENAS_OF_SEVERAL_THREADS,
	ARENAS_OF_ONE_THREAD, /* it has most of the arenas of each process */
	ARENAS_LIMITED	      /* the processes have such a limit */
};

/* The hint of a row with all figures; NULL: none. `live_threads`: number of threads of its processes at the end. */
const char *hints_of_row(const struct mmt_row *row, uint64_t live_threads, enum arena_use arenas);

/* The hint for memory that was mapped before the recording; NULL: none. `made_writable_bytes`: of readable memory, by
 * mprotect(2), or HINTS_CALLS_UNKNOWN if the calls of a part of the time are not in the report. */
#define HINTS_CALLS_UNKNOWN UINT64_MAX
#define HINTS_BETWEEN (UINT64_MAX - 1) /* the growth is between two recordings */
const char *hints_of_growth(const struct mmt_growth_part *part, uint64_t made_writable_bytes, enum arena_use arenas);

/* The same in a recording with page faults, none of which is in the part. */
const char *hints_with_faults(const char *hint);

/* The hint instead of this one, which may be NULL, if the censuses of the heap show what grows. */
const char *hints_with_census(const char *hint);

/* The hint for memory in huge pages; NULL: a large part of it was written, or that is not known. `memory_bytes`: all
 * resident memory that it is a part of. `always`: the system gives huge pages to every program. */
const char *hints_of_huge_pages(const struct mmt_huge_pages *huge, uint64_t memory_bytes, bool always);

#endif
