/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What changed between two recordings of the same program. Stacks are matched by module, function and line, never by
 * address. Sizes are bytes. The entries belong to the diff; any number of threads may read it.
 */
#ifndef MMTRACE_DIFF_H
#define MMTRACE_DIFF_H

#include <mmtrace/report.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mmt_change { MMT_CHANGE_NEW, MMT_CHANGE_GONE, MMT_CHANGE_GROWN, MMT_CHANGE_SHRUNK, MMT_CHANGE_SAME };

struct mmt_diff_entry {
	enum mmt_change change;
	const struct mmt_group *before; /* NULL for new */
	const struct mmt_group *after;	/* NULL for gone */
	int64_t bytes;			/* unfreed after minus before; where that is 0, committed_bytes decide */
	int64_t committed_bytes;	/* made accessible after minus before, in memory mapped before too */
	int64_t count;
	double before_bytes_per_second, after_bytes_per_second; /* unfreed bytes by the recording's duration */
};

struct mmt_diff {
	const struct mmt_report *before, *after;
	const struct mmt_diff_entry
	    *entries; /* largest growth first, largest shrinkage last; MMT_CHANGE_SAME left out */
	size_t entry_count;
	size_t same_count;
	int64_t bytes, committed_bytes; /* sums over all stacks */
};

/* The change's word for the user: "new", "gone", "grown", "shrunk", "same". Static. */
MMT_PUBLIC const char *mmt_change_name(enum mmt_change change);

/* Borrows both reports, which must outlive the diff. */
MMT_PUBLIC struct mmt_error *mmt_diff_create(const struct mmt_report *before, const struct mmt_report *after,
					     struct mmt_diff **diff_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
MMT_PUBLIC void mmt_diff_destroy(struct mmt_diff *diff);

#ifdef __cplusplus
}
#endif

#endif
