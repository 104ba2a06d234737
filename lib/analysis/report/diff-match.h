/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the rows of two reports that belong together: those with the same identity or name and, of the stacks that
 * are left, similar ones. The first rows of a report are matched first.
 */
#pragma once

#include "analysis/report/stack-identity.h"
#include "base/errors.h"

/* The two reports of a diff. */
enum { DIFF_BEFORE, DIFF_AFTER, DIFF_SIDES };

struct row_match {
	const struct mmt_row *other;  /* of the other report; NULL: none */
	const struct mmt_row *joined; /* if `other` is NULL: a row of `after` that may include this one, because
					   calls were inlined in one of the builds; NULL: none */
	size_t differing_frames; /* from the stack of `other` or `joined`: the match is uncertain if there are any */
};

struct row_matcher {
	bool task_ids; /* set by the caller: IDs of processes and threads count, too */
	bool limited;  /* so many stacks are left that not all of them were searched for similar ones */
	const struct mmt_report *reports[DIFF_SIDES];
	struct build_id_paths paths[DIFF_SIDES];
	struct identities identities;
	struct intern names;		/* of rows and processes */
	struct map ranks[DIFF_SIDES];	/* PID -> number of the process among those of its name, from 1, << 32 | name */
	struct map callers[DIFF_SIDES]; /* of a stack's origin: its caller, or SEVERAL_CALLERS */
	uint64_t work;			/* done so far in search of similar stacks */
};

/* Call row_matcher_deinit() on errors, too. */
struct mmt_error *row_matcher_init(struct row_matcher *matcher,
				   const struct mmt_report *const reports[DIFF_SIDES]) MMT_MUST_CHECK;
void row_matcher_deinit(struct row_matcher *matcher);

/* Memory of a heap or garbage collector: who needs its next page changes with each run, and need not keep it. */
bool row_is_pool(const struct mmt_row *row);

/* Call this after row_matcher_match(). The number that the row shares with those of its function: its origin and,
 * if stacks of one recording share that but differ in its caller, the caller. All stacks of the heap of a program, or
 * of another such pool, share one. False: out of memory. */
bool row_matcher_function(struct row_matcher *matcher, unsigned side, const struct mmt_row *row,
			  uint64_t *function_ret);

/* `matches`: as many of each side as the report has rows. Rows that hold nothing match only such rows. */
struct mmt_error *row_matcher_match(struct row_matcher *matcher,
				    struct row_match *const matches[DIFF_SIDES]) MMT_MUST_CHECK;
