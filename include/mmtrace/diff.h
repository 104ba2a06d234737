/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compares the reports of two recordings of the same program. Stacks match if the module and the function of every
 * frame are equal or, of a frame without a name, the build-id and the place in the module; addresses, lines and source
 * files do not matter. Of the stacks that are left, similar ones match, which is uncertain: see `differing_frames`.
 * Rows that are not stacks match by name. Sizes are in bytes. The diff owns its entries. Any number of threads may read
 * it. */
#pragma once

#include <mmtrace/report.h>

struct mmt_diff_entry {
	enum mmt_change change;
	const struct mmt_row *before; /* NULL if MMT_CHANGE_NEW */
	const struct mmt_row *after;  /* NULL if MMT_CHANGE_GONE */
	/* Change of unfreed bytes; if 0, committed_bytes determines `change`. And of committed bytes, including memory
	 * mapped before the window. If `rated`: without what a leak of `before` grows at the same rate in
	 * longer_ns. */
	int64_t bytes, committed_bytes;
	int64_t count;		      /* change of the number of unfreed mappings */
	double before_bytes_per_second, after_bytes_per_second; /* unfreed bytes divided by the duration */
	/* 0: equal. Otherwise uncertain: how many frames only one stack has, or has under another name. */
	size_t differing_frames;
	/* Of a stack that is new or gone, or NULL: a similar stack of `after`, which has a match, but may include this
	 * one, because calls were inlined in one of the builds. Its growth counts for the function of that one. */
	const struct mmt_row *part_of;
};

struct mmt_diff {
	const struct mmt_report *before, *after;
	const struct mmt_diff_entry *entries; /* largest growth first, largest decrease last; without MMT_CHANGE_SAME */
	size_t entry_count;
	/* The other rows: with MMT_CHANGE_SAME, or that hold nothing in either report (`change` means nothing). */
	const struct mmt_diff_entry *unchanged;
	size_t unchanged_count;
	size_t same_count;	/* of `unchanged`: those that hold memory */
	size_t uncertain_count; /* of `entries`: those with differing_frames */
	bool search_limited;	/* so many stacks differ that similar ones were searched only for the largest */
	enum mmt_diff_relation relation;
	/* By how much the second recording is longer, if processes were still running at the end of both: 0 if the
	 * durations are nearly the same, or the programs may have done the same work. */
	int64_t longer_ns;
	bool rated; /* both recordings lasted at least 10 seconds: the rates of the entries are meaningful */
	/* `keep_ended` holds for one recording, and the other has processes that ended, which do not count. */
	bool counted_unlike;
	/* That, or longer_ns is not 0, and one recording lasted less than 10 seconds, or the second more than three
	 * times as long as the first: what grew need not be a change. */
	bool incomparable;
	/* What the figures do not include, if `rated`: what leaks of `before` grow at the same rate in longer_ns, and
	 * its RSS (Pss, if its growth is by_pss) if its verdict is MMT_VERDICT_GROWING. Below 0 if longer_ns is. */
	int64_t left_out_bytes, left_out_resident_bytes;
	/* For MMT_DIFF_SAME_PROCESS: the time between the recordings, and the bytes that the process had mapped at the
	 * end of each, unless it is `released` in `after`. Then `before` counts as 0 in the figures of an entry,
	 * because everything that the stacks of `after` hold was mapped later; there are no entries for stacks of
	 * `before` alone. */
	uint64_t between_ns, mapped_before_bytes, mapped_after_bytes;
	size_t same_process_count; /* likewise: processes that are in both recordings */
	/* Not part of growth_bytes and committed_growth_bytes: what rows have of processes that started since the first
	 * recording, less what these have mapped more than those had that ended, whose places they may have taken. Of
	 * two runs: what programs hold that ran for less than three quarters of it, as far as more of them ran in
	 * `after`, but not at once. */
	uint64_t replaced_bytes;
	/* Likewise, or NULL: the first of these that executed another program after the end of `before`. */
	const struct mmt_process *executed_before, *executed_after;
	/* Likewise: by how much RSS differs between the end of `before` and the start of `after`, in which kinds of
	 * memory (MMT_GROWTH_BEFORE, largest change first), and what these leave unexplained. Not known if a recording
	 * has no resident pages of these times. */
	bool between_parts_known;
	int64_t between_bytes, between_unexplained_bytes;
	const struct mmt_growth_part *between_parts;
	size_t between_part_count;
	int64_t bytes, committed_bytes; /* sums over all rows */
	/* The same of all functions that grew: the net of all stacks whose origin is this function; if stacks of one
	 * report share it but differ in its caller, of those that have the caller, too. If the rows are
	 * not stacks, of all rows that grew. */
	uint64_t growth_bytes, committed_growth_bytes;
	/* Malloc heaps that both recordings counted, from the last census of `before` to that of `after`; largest
	 * change first. `process` is that of `after`: the same one, or the only one of its name. */
	const struct mmt_heap *heaps;
	size_t heap_count;
	/* The commands of one name had larger_bytes more, each at its largest size, even if they freed that: the largest
	 * of them, and how many ended in each recording. NULL and 0: none; only 0: some memory is left out. */
	const struct mmt_process *larger;
	uint64_t larger_bytes, larger_counts[2];
};

/* Both reports must outlive the diff, and be made with the same options. If their rows are stacks, `merge_lines` must
 * be set: otherwise stacks that differ only in lines are paired by size. */
MMT_PUBLIC struct mmt_error *mmt_diff_create(const struct mmt_report *before, const struct mmt_report *after,
					     struct mmt_diff **diff_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
MMT_PUBLIC void mmt_diff_destroy(struct mmt_diff *diff);
