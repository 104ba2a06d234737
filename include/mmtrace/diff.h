/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares the reports of two recordings of the same program. Stacks match if module, function and line of every frame
 * are equal; addresses do not matter. Sizes are in bytes. The diff owns its entries. Any number of threads may read it.
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
	const struct mmt_group *before; /* NULL if MMT_CHANGE_NEW */
	const struct mmt_group *after;	/* NULL if MMT_CHANGE_GONE */
	int64_t bytes;			/* change of unfreed bytes; if 0, committed_bytes determines `change` */
	int64_t committed_bytes;	/* change of committed bytes, including memory mapped before the window */
	int64_t count;			/* change of the number of unfreed mappings */
	double before_bytes_per_second, after_bytes_per_second; /* unfreed bytes divided by the duration */
};

/* What the two recordings are of. */
enum mmt_diff_relation {
	MMT_DIFF_RUNS,		/* runs of one program: the growth within each is compared */
	MMT_DIFF_SAME_PROCESS,	/* one process, first earlier, then later */
	MMT_DIFF_OTHER_PROGRAM, /* no two processes have the same name: stacks can hardly match */
};

/* "runs", "same-process" or "other-program". Static. */
MMT_PUBLIC const char *mmt_diff_relation_name(enum mmt_diff_relation relation);

struct mmt_diff {
	const struct mmt_report *before, *after;
	const struct mmt_diff_entry
	    *entries; /* from the largest growth to the largest decrease; without MMT_CHANGE_SAME */
	size_t entry_count;
	size_t same_count; /* stacks with MMT_CHANGE_SAME */
	enum mmt_diff_relation relation;
	bool rated; /* both recordings lasted at least 10 seconds: the rates of the entries are meaningful */
	/*
	 * For MMT_DIFF_SAME_PROCESS: the time between the recordings, and the bytes that the process had mapped at the
	 * end of each. Then `before` counts as 0 in the figures of an entry, because everything that the stacks of
	 * `after` hold was mapped later; there are no entries for stacks of `before` alone.
	 */
	uint64_t between_ns, mapped_before_bytes, mapped_after_bytes;
	/*
	 * Likewise: by how much RSS differs between the end of `before` and the start of `after`, in which kinds of
	 * memory (MMT_GROWTH_BEFORE, largest change first), and what these leave unexplained. Not known if a recording
	 * has no resident pages of these times.
	 */
	bool between_parts_known;
	int64_t between_bytes, between_unexplained_bytes;
	const struct mmt_growth_part *between_parts;
	size_t between_part_count;
	int64_t bytes, committed_bytes; /* sums over all stacks */
};

/* "new", "gone", "grown", "shrunk" or "same". Static. */
MMT_PUBLIC const char *mmt_change_name(enum mmt_change change);

/* Both reports must outlive the diff. */
MMT_PUBLIC struct mmt_error *mmt_diff_create(const struct mmt_report *before, const struct mmt_report *after,
					     struct mmt_diff **diff_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
MMT_PUBLIC void mmt_diff_destroy(struct mmt_diff *diff);

#ifdef __cplusplus
}
#endif

#endif
