// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/intervals.h"

#include <stdlib.h>

void intervals_deinit(struct intervals *intervals)
{
	struct interval_node *node = intervals->root;

	/* Rotate left children away, so that no recursion depends on the shape. */
	while (node) {
		struct interval_node *left = node->left, *right = node->right;

		if (left) {
			node->left = left->right;
			left->right = node;
			node = left;
		} else {
			free(node);
			node = right;
		}
	}
	intervals->root = NULL;
	intervals->count = 0;
}

struct interval_node *intervals_next(const struct intervals *intervals, uint64_t address)
{
	struct interval_node *node = intervals->root, *found = NULL;

	while (node) {
		if (node->interval.end > address) {
			found = node;
			node = node->left;
		} else {
			node = node->right;
		}
	}
	return found;
}

struct interval_node *intervals_within(const struct intervals *intervals, uint64_t start, uint64_t end)
{
	struct interval_node *node = start < end ? intervals_next(intervals, start) : NULL;

	return node && node->interval.start < end ? node : NULL;
}

struct interval_node *intervals_before(const struct intervals *intervals, uint64_t address)
{
	struct interval_node *node = intervals->root, *found = NULL;

	while (node) {
		if (node->interval.start < address) {
			found = node;
			node = node->right;
		} else {
			node = node->left;
		}
	}
	return found;
}

static uint32_t next_random(struct intervals *intervals)
{
	uint32_t value = intervals->random ? intervals->random : 0x9e3779b9;

	value ^= value << 13;
	value ^= value >> 17;
	value ^= value << 5;
	return intervals->random = value;
}

static void split_tree(struct interval_node *node, uint64_t start, struct interval_node **left,
		       struct interval_node **right)
{
	while (node) {
		if (node->interval.start < start) {
			*left = node;
			left = &node->right;
			node = node->right;
		} else {
			*right = node;
			right = &node->left;
			node = node->left;
		}
	}
	*left = *right = NULL;
}

struct interval_node *intervals_insert(struct intervals *intervals, const struct space_interval *interval,
				       uint64_t time_ns)
{
	struct interval_node *node = malloc(sizeof(*node)), **link = &intervals->root;

	if (!node)
		return NULL;
	*node = (struct interval_node){.interval = *interval, .time_ns = time_ns, .priority = next_random(intervals)};
	while (*link && (*link)->priority >= node->priority)
		link = interval->start < (*link)->interval.start ? &(*link)->left : &(*link)->right;
	split_tree(*link, interval->start, &node->left, &node->right);
	*link = node;
	intervals->count++;
	return node;
}

static void join_trees(struct interval_node **link, struct interval_node *left, struct interval_node *right)
{
	while (left && right) {
		if (left->priority > right->priority) {
			*link = left;
			link = &left->right;
			left = left->right;
		} else {
			*link = right;
			link = &right->left;
			right = right->left;
		}
	}
	*link = left ? left : right;
}

void intervals_remove(struct intervals *intervals, uint64_t start)
{
	struct interval_node **link = &intervals->root, *node;

	while ((*link)->interval.start != start)
		link = start < (*link)->interval.start ? &(*link)->left : &(*link)->right;
	node = *link;
	join_trees(link, node->left, node->right);
	free(node);
	intervals->count--;
}

bool intervals_cut(struct intervals *intervals, uint64_t start, uint64_t end)
{
	struct interval_node *node;

	while ((node = intervals_within(intervals, start, end))) {
		struct space_interval *interval = &node->interval;

		if (interval->start < start && interval->end > end) {
			struct space_interval tail = *interval;

			tail.start = end;
			if (!intervals_insert(intervals, &tail, node->time_ns))
				return false;
			interval->end = start;
			return true;
		}
		if (interval->start < start)
			interval->end = start;
		else if (interval->end > end)
			interval->start = end;
		else
			intervals_remove(intervals, interval->start);
	}
	return true;
}
