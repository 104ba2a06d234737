/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the report says of rows beyond their sums: whether they leak, and which rows have one cause. */
#ifndef ANALYSIS_REPORT_ROW_VERDICTS_H
#define ANALYSIS_REPORT_ROW_VERDICTS_H

#include <stdint.h>

#include <mmtrace/report.h>

#include "analysis/replay/replay.h"
#include "analysis/replay/row-history.h"
#include "analysis/report/hints.h"
#include "analysis/report/rows.h"
#include "base/arena.h"
#include "base/errors.h"

/* The slope of the line through `values` that has the least squares. The slopes of parts add up to that of their sum.
 */
double slope_of(const double *times, const double *values, size_t count);

int64_t bytes_per_minute(double bytes, double span_ns);

/* Whether the unfreed mappings of a row (the survivors) are a leak, a cache or traffic, from the times when they were
 * mapped and the lifetimes of the freed ones. mmtrace-internals(7) describes the rules. Pure. */

struct survivors_window {
	uint64_t from_ns, to_ns; /* allocations of [from, to) count */
	uint64_t end_ns;	 /* mappings that are not freed before this time survive */
};

#define SURVIVORS_SHORTEST_NS 2000000000u /* as for the verdict about RSS */
#define SURVIVORS_COUNT_MIN 8		  /* fewer mappings are neither a leak nor a cache */
#define SURVIVOR_PARTS 48
#define LEAK_SHARE                                                                                                     \
	16 /* a leak of less than 1/16 of the memory does not decide for a row or cause of several stacks              \
	    */

static inline uint64_t survivors_length(const struct survivors_window *window)
{
	return window->end_ns > window->from_ns ? window->end_ns - window->from_ns : 0;
}

struct survivors {
	const struct lifetime_histogram *freed;
	uint64_t outlived_ns;		    /* nearly all freed mappings lived shorter; 0: none was freed */
	uint64_t freed_count;		    /* as far as lifetimes are known */
	uint64_t long_lived_freed;	    /* freed, and lived a third of the window or longer */
	uint64_t count;			    /* of the survivors added so far, as all below */
	uint64_t early_count;		    /* made in the first half of the window */
	uint64_t long_lived_count;	    /* a third of the window old or older */
	uint64_t old_count;		    /* older than outlived_ns */
	uint64_t old_early_count;	    /* of these, made in the first half of the window */
	uint32_t old_parts[SURVIVOR_PARTS]; /* of these, by part of the time in which such mappings could be made */
};

/* `count`: the number of survivors that will be added. `freed` must remain valid. */
void survivors_begin(struct survivors *survivors, const struct survivors_window *window,
		     const struct lifetime_histogram *freed, uint64_t count);

void survivors_add(struct survivors *survivors, const struct survivors_window *window, uint64_t allocated_ns);

enum mmt_lifetime_verdict survivors_judge(const struct survivors *survivors, const struct survivors_window *window);

/*
 * How long a recording should be for a verdict, where this one has none: long enough for the freed mappings to have
 * lived for a small part of it and for as many survivors as show a pattern, at least twice as long as this one.
 */
uint64_t survivors_advise(const struct survivors *survivors, const struct survivors_window *window);

/* The unfreed mappings of each row: class and file, when they were mapped, and the verdict on their lifetimes. */

/* Whether memory in the same place can still make it a leak. */
static inline bool verdict_is_open(enum mmt_lifetime_verdict verdict)
{
	return verdict == MMT_LIFETIME_TOO_SHORT || verdict == MMT_LIFETIME_CACHE;
}

/* Call this after the unfreed bytes have been added to `rows`, which is indexed by row number - 1. */
struct mmt_error *row_details_add(const struct replay *replay, const struct rows *rows, struct arena *arena,
				  const struct mmt_report *report, struct mmt_row *figures) MMT_MUST_CHECK;

/* Accessible memory in the malloc arenas of a process: all of it, and that of the thread that has most. */
struct arena_bytes {
	uint64_t all, largest;
};

/* By index of the process; the caller frees them. NULL: out of memory. */
struct arena_bytes *row_details_arenas(const struct replay *replay, const struct rows *rows);

/* What is known of the arenas of the row's processes. */
enum arena_use row_details_arena_use(const struct replay *replay, const struct arena_bytes *bytes,
				     const struct mmt_row *row);

/* Whether the process was started with a limit of malloc arenas as low as the one that hints advise. */
bool row_details_limits_arenas(const struct replay *replay, const struct process *process);

/* The lifetimes of all its mappings do not show it. */
void row_verdicts_set_leak(struct mmt_row *row);

#define ROW_NO_SET UINT32_MAX

/*
 * Judge all rows of a set together: the lifetimes of their mappings, and what they make accessible. `sets` has the set
 * of each row, by row number - 1, or ROW_NO_SET; `verdicts_ret` has room for `set_count`.
 */
struct mmt_error *row_verdicts_judge_sets(const struct ledger *ledger, const struct rows *rows,
					  const struct mmt_report *report, const uint32_t *sets, size_t set_count,
					  enum mmt_lifetime_verdict *verdicts_ret) MMT_MUST_CHECK;

/* row-causes.c. The causes of a report: each combines the rows of one function or one pattern. A row that only
 * committed what another row reserved has the cause of that row. */

/* Call this after sorting. `rows` are those of the report; this sets their joined_to. Without stacks there are no
 * causes. */
struct mmt_error *row_causes_build(struct mmt_report *report, struct mmt_row *figures, const struct ledger *ledger,
				   const struct rows *rows, struct arena *arena) MMT_MUST_CHECK;

#endif
