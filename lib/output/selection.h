/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chooses and sorts the groups of a report, or the entries of a diff, that are shown. */
#ifndef OUTPUT_SELECTION_H
#define OUTPUT_SELECTION_H

#include <mmtrace/output.h>

/* Left out by the limit or by min_bytes. */
struct hidden_groups {
	size_t count;
	uint64_t bytes;
	uint64_t memory_bytes;
};

struct selection {
	const struct mmt_group **groups; /* owned array */
	size_t count;
	struct hidden_groups hidden; /* of those with unfreed bytes, and these */
	struct hidden_groups hidden_by_allocated,
	    hidden_by_freed; /* of all, and what they mapped; of those that freed */
};

/*
 * `freed_too`: groups of which nothing is left are selected as well, and, sorted by memory, those that only reserved
 * what another one shows.
 */
struct mmt_error *selection_create(const struct mmt_report *report, const struct mmt_text_options *options,
				   bool freed_too, struct selection *selection_ret) MMT_MUST_CHECK;

/* The same of these groups, such as the inner ones of a group. */
struct mmt_error *selection_of_groups(const struct mmt_group *groups, size_t count,
				      const struct mmt_text_options *options, bool freed_too,
				      struct selection *selection_ret) MMT_MUST_CHECK;

void selection_deinit(struct selection *selection);

struct diff_selection {
	const struct mmt_diff_entry **entries; /* owned array */
	size_t count;
	size_t hidden_count;
};

struct mmt_error *selection_of_diff(const struct mmt_diff *diff, const struct mmt_text_options *options,
				    struct diff_selection *selection_ret) MMT_MUST_CHECK;
void selection_of_diff_deinit(struct diff_selection *selection);

#endif
