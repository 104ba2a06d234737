// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/page-faults.h"

/* Samples stay apart: their number tells how exact their sum is. */
static bool joins(const struct interval_node *node, const struct page_fault *fault)
{
	return fault->weight == 1 && node->interval.commit == 1 && node->interval.allocation == fault->stack;
}

bool page_faults_add(struct page_faults *faults, const struct page_fault *fault)
{
	struct intervals *runs = &faults->runs;
	struct space_interval interval = {
	    .start = fault->start, .end = fault->end, .allocation = fault->stack, .commit = fault->weight & INT32_MAX};
	struct interval_node *left, *right;

	if (fault->start >= fault->end)
		return true;
	if (!intervals_cut(runs, fault->start, fault->end))
		return false;
	right = intervals_next(runs, fault->end);
	if (right && right->interval.start == fault->end && joins(right, fault)) {
		interval.end = right->interval.end;
		intervals_remove(runs, fault->end);
	}
	left = intervals_before(runs, fault->start);
	if (!left || left->interval.end != fault->start || !joins(left, fault))
		return intervals_insert(runs, &interval, fault->time_ns);
	left->interval.end = interval.end;
	left->time_ns = fault->time_ns;
	return true;
}

bool page_faults_move(struct page_faults *faults, uint64_t from, uint64_t to, uint64_t length)
{
	uint64_t position = from, low = from < to ? from : to, high = from < to ? to : from;
	VECTOR(struct page_fault) moved = {0};
	struct page_fault part;
	bool ok = true;

	if (high - low < length || high > UINT64_MAX - length)
		return true;
	while (ok && page_faults_next(faults, &position, from + length, &part))
		ok = vector_push(&moved, part);
	ok = ok && page_faults_forget(faults, from, from + length) && page_faults_forget(faults, to, to + length);
	for (size_t i = 0; ok && i < moved.count; i++) {
		part = moved.items[i];
		part.start += to - from;
		part.end += to - from;
		ok = page_faults_add(faults, &part);
	}
	vector_deinit(&moved);
	return ok;
}

bool page_faults_next(const struct page_faults *faults, uint64_t *position, uint64_t end, struct page_fault *part_ret)
{
	struct space_interval part;
	const struct interval_node *node = intervals_next_part(&faults->runs, position, end, &part);

	if (node)
		*part_ret = (struct page_fault){.start = part.start,
						.end = part.end,
						.stack = part.allocation,
						.weight = part.commit,
						.time_ns = node->time_ns};
	return node;
}
