/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which stack brought in the pages of one address space last: what unmapping, moving and giving back leave of its page
 * faults. Pure. Faults may be samples: then a page stands for as many as its weight. Neighbours that are not samples
 * merge.
 *
 * A child that is forked has none of its parent's: until it writes to them, its pages are those of its parent.
 */
#pragma once

#include "model/space/intervals.h"

struct page_fault {
	uint64_t start, end;
	uint32_t stack;	 /* the caller's number */
	uint32_t weight; /* from 1 to INT32_MAX */
	uint64_t time_ns;
};

/* All-zero: no faults. intervals_deinit() frees the runs. */
struct page_faults {
	struct intervals runs; /* `allocation` is the stack, `commit` the weight, time_ns that of the last fault */
};

/* This and the functions below return false if out of memory. */
bool page_faults_add(struct page_faults *faults, const struct page_fault *fault);

/* The pages are gone. */
static inline bool page_faults_forget(struct page_faults *faults, uint64_t start, uint64_t end)
{
	return intervals_cut(&faults->runs, start, end);
}

/* The pages are at another address now, and what was there is gone. Nothing happens if the two ranges overlap. */
bool page_faults_move(struct page_faults *faults, uint64_t from, uint64_t to, uint64_t length);

/* Iterates over what lies in [*position, end). False: there is no more. */
bool page_faults_next(const struct page_faults *faults, uint64_t *position, uint64_t end, struct page_fault *part_ret);
