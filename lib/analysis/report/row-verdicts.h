/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the report says of rows beyond their sums: verdict and cause. */
#pragma once

#include "analysis/replay/replay.h"
#include "analysis/report/rows.h"
#include "analysis/report/verdict-rules.h"

struct resident_sums;

/* By least squares: the slopes of parts add up to that of their sum. */
double slope_of(const double *times, const double *values, size_t count);

int64_t bytes_per_minute(double bytes, double span_ns);

/* survivors.c. Whether unfreed mappings (the survivors) are a leak, a cache or traffic, from the times when they were
 * mapped and the lifetimes of the freed ones. mmtrace-internals(7) describes the rules. Pure. */

struct survivors_window {
	uint64_t from_ns, to_ns; /* allocations of [from, to) count */
	uint64_t end_ns;	 /* mappings that are not freed before this time survive */
};

#define SURVIVOR_PARTS (3 * VERDICT_PARTS)
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

/* MMT_ROW_UNKNOWN (there are no survivors), _UNDECIDED, _LEAK, _CACHE or _TRAFFIC. */
enum mmt_row_verdict survivors_judge(const struct survivors *survivors, const struct survivors_window *window);

/* How long a recording should be for a verdict, where this one has none: long enough for the freed mappings to have
 * lived for a small part of it and for as many survivors as show a pattern, at least twice as long as this one. */
uint64_t survivors_advise(const struct survivors *survivors, const struct survivors_window *window);

/* verdict-sets.c. Accounts are judged together that have one stack, at the same lines or at any; whose stacks are one
 * path; and whose stacks have one function, or one pattern of an allocator or a runtime. */
enum verdict_level { VERDICT_LINES, VERDICT_STACK, VERDICT_PATH, VERDICT_FUNCTION, VERDICT_LEVELS };

#define VERDICT_NO_SET UINT32_MAX

struct verdict_sets {
	uint32_t *of_accounts[VERDICT_LEVELS]; /* the set of each account, or VERDICT_NO_SET */
	size_t counts[VERDICT_LEVELS];
};

/* The caller frees `of_accounts`, on errors, too. */
struct mmt_error *verdict_sets_find(struct rows *rows, const struct mmt_report *report,
				    struct verdict_sets *sets) MMT_MUST_CHECK;

/* row-verdicts.c. The row of an unfreed allocation with a known time; LEDGER_NO_ROW: none. */
uint32_t verdict_row_of(const struct ledger *ledger, const struct allocation *allocation);

/* Set verdicts and trends of the rows, by number - 1, with their sums and patterns. `resident`: NULL if unknown;
 * `memory`: by account number. */
struct mmt_error *row_verdicts_add(struct rows *rows, const struct mmt_report *report,
				   const struct resident_sums *resident, const struct held_memory *memory,
				   struct mmt_row *figures) MMT_MUST_CHECK;

/* row-causes.c. The causes of a report, whose rows must be sorted: each combines the rows of one function or one
 * pattern. A row that only committed what another row reserved has the cause of that row. Sets the rows' joined_to.
 * Without stacks there are no causes. */
struct mmt_error *row_causes_build(struct mmt_report *report, struct mmt_row *figures,
				   const struct build_id_paths *build_ids, struct arena *arena) MMT_MUST_CHECK;

/* Whether the cause is a leak that explains some of the growth, and holds memory. What a heap keeps may come and go. */
bool growth_has_leak(const struct mmt_growth *growth, const struct mmt_cause *cause);
