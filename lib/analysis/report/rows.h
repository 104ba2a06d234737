/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Assigns accounts to the rows of a report, or excludes them, when they are created, so that the ledger can keep each
 * row's peak. Stacks with equal names are one row, whatever their addresses.
 *
 * Therefore every stack is symbolized, even if it is not shown in the end: a row's peak is not the sum of its stacks'
 * peaks. Each frame is symbolized once, in however many stacks it is; test/README has the cost.
 * The figures of a row are a struct mmt_row, which row-figures.c fills in.
 */
#pragma once

#include "analysis/resolver/resolver.h"
#include "analysis/replay/ledger.h"
#include "analysis/report/filters.h"
#include "analysis/report/stack-identity.h"
#include "analysis/report/stack-origin.h"

/* What is known of a row that has no name, or none yet: names are in the keys. */
/* What page faults of a stack, or of several, touched: see touchers.c. */
struct touch_sum {
	uint64_t part;
	uint32_t stack;
	double bytes, variance;
	double near_bytes;     /* of the pages around, which the same faults may have mapped */
	double repeated_bytes; /* so much more or less: of pages with several faults, or mapped with their neighbours */
	double largest_bytes;  /* of the stacks that were added */
};

/* What one process touched, of a row. */
struct row_touch {
	uint32_t row; /* its place in the report before they are sorted */
	uint32_t process, kind;
	double bytes;
};

struct row_description {
	uint32_t stack;	   /* by stack: the first of those that are this row */
	uint64_t lines;	   /* identity_lines() of that stack */
	bool lines_differ; /* another stack of the row has others */
	enum mmt_pattern pattern;
	uint32_t process;	  /* by process: its index */
	uint32_t thread;	  /* with two keys: its number, or LEDGER_NO_THREAD */
	struct touch_sum touched; /* by touch; `part` is that of the largest one */
};

struct rows {
	const struct mmt_report_options *options;
	struct replay *replay; /* set by the caller */
	struct filters filters;
	struct map matches; /* for rows_match_stack() */
	struct arena *arena;
	struct identities identities;
	struct build_id_paths build_ids;      /* set by row_figures_build() */
	struct intern keys;		      /* its ids are row numbers - 1 */
	VECTOR(struct row_description) items; /* by row number - 1 */
	named_frames frames;		      /* scratch: of one stack */
	VECTOR(struct row_touch) touches;     /* by touch, and if lifetimes are kept */
	bool touching; /* by touch: accounts given to rows_find() are of pages, as is their pattern; otherwise row 1 */
	const uint32_t *row_ids; /* of the report's rows, by row number - 1, when they are built */
};

/* Borrows all arguments; the other fields become zero. Deinitialise the value on errors, too. */
struct mmt_error *rows_init(struct rows *rows, const struct mmt_report_options *options,
			    struct arena *arena) MMT_MUST_CHECK;
void rows_deinit(struct rows *rows);

bool rows_selects_pid(const struct rows *rows, int32_t pid);

/* Iterate over the processes that they select: the one after this one. NULL: the first, or there is none. */
struct process *rows_next(const struct rows *rows, const struct process *process);

/* The ledger must keep accounts by thread. */
bool rows_need_threads(const struct rows *rows);

/* Put all frames of a stack into rows->frames. Stacks that a report shows as one have one identity. */
struct mmt_error *rows_identify_stack(struct rows *rows, uint32_t stack, uint32_t *identity_ret) MMT_MUST_CHECK;

/* filters_matches() of a stack's frames alone. Each stack is looked at once. */
struct mmt_error *rows_match_stack(struct rows *rows, uint32_t stack, unsigned *matches_ret) MMT_MUST_CHECK;

/* The name that --by function gives a stack with this origin (NULL: none). NULL: out of memory. The caller frees it. */
char *rows_function_name(const struct mmt_frame *origin);

/* For the ledger; `context` is the rows. */
struct mmt_error *rows_find(void *context, struct account *account) MMT_MUST_CHECK;

/* The account that the accessible bytes of an interval and its resident pages count for: the one that committed them
 * or, if rows are kinds of memory, the one that mapped them (`owner`). NULL: they are not in this report. */
const struct account *rows_holder(const struct rows *rows, const struct space_interval *interval,
				  const struct allocation *allocation, const struct account *owner);

/* Whether the mapping itself is not in this report: it was mapped before the window, or the options exclude it. */
bool rows_exclude_mapping(const struct rows *rows, const struct space_interval *interval,
			  const struct allocation *allocation);

/* Describe row `place` + 1 for the report: its name, frames, pattern, and what else is known of its stack. */
struct mmt_error *rows_describe(struct rows *rows, size_t place, struct mmt_row *row_ret) MMT_MUST_CHECK;

/* Symbolize a stack. Sets only the fields about its frames; their list is in the arena. */
struct mmt_error *rows_name_stack(struct rows *rows, uint32_t stack, struct mmt_row *row_ret) MMT_MUST_CHECK;
