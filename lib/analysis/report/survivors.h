/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether the unfreed mappings of a row (the survivors) are a leak, a cache or traffic, from the times when they were
 * mapped and the lifetimes of the freed ones. mmtrace-report(1) describes the rule. Pure. */
#ifndef ANALYSIS_REPORT_SURVIVORS_H
#define ANALYSIS_REPORT_SURVIVORS_H

#include <stdint.h>

#include <mmtrace/report.h>

#include "analysis/replay/lifetime-histogram.h"

struct survivors_window {
	uint64_t from_ns, to_ns; /* allocations of [from, to) count */
	uint64_t end_ns;	 /* mappings that are not freed before this time survive */
};

struct survivors {
	uint64_t outlived_ns;	   /* nearly all freed mappings lived shorter; 0: none was freed */
	uint64_t freed_count;	   /* as far as lifetimes are known */
	uint64_t long_lived_freed; /* freed, and lived a third of the window or longer */
	uint64_t count;		   /* of the survivors added so far, as all below */
	uint64_t early_count;	   /* made in the first half of the window */
	uint64_t long_lived_count; /* a third of the window old or older */
	uint64_t old_count;	   /* older than outlived_ns */
	uint64_t old_early_count;  /* of these, made in the first half of the window */
	uint64_t old_thirds[3];	   /* of these, by third of the time in which such mappings could be made */
};

/* `count`: the number of survivors that will be added. */
void survivors_begin(struct survivors *survivors, const struct survivors_window *window,
		     const struct lifetime_histogram *freed, uint64_t count);

void survivors_add(struct survivors *survivors, const struct survivors_window *window, uint64_t allocated_ns);

enum mmt_lifetime_verdict survivors_judge(const struct survivors *survivors, const struct survivors_window *window);

/*
 * How long a recording should be for a verdict, where this one has none: long enough for the freed mappings to have
 * lived for a small part of it and for as many survivors as show a pattern, at least twice as long as this one.
 */
uint64_t survivors_advise(const struct survivors *survivors, const struct survivors_window *window);

#endif
