// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/jit/code-timeline.h"

#include "base/limits.h"

/* The starts and ends of all ranges divide the address space into pieces, which are the leaves of a segment tree: the
 * parent of node i is i / 2, and that of piece p is node bound_count + p. A range is entered in the fewest nodes that
 * have exactly its pieces below them, one or two as a rule. So the ranges that ever cover a piece are those of its node
 * and of all nodes above it. */
struct code_timeline {
	const struct timed_range *ranges;
	size_t count;
	uint64_t *bounds; /* piece i begins at bounds[i] and ends at bounds[i + 1] */
	size_t bound_count;
	uint32_t *entries;   /* numbers of ranges, ascending in each node */
	uint32_t *starts;    /* by node: its first entry; its last one is before that of the next node */
	uint32_t *replacing; /* by range: how many up to this one replaced something */
};

/* Entries of overlapping ranges: at least this many, or so many times the number of ranges. Later ranges are left out.
 */
#define ENTRIES_MIN (1u << 20)
#define ENTRIES_TIMES 8

COMPARISON(compare_numbers, uint64_t, order_of(*a, *b))

static bool collect_bounds(struct code_timeline *timeline)
{
	size_t count = 0, kept = 0;

	timeline->bounds = malloc((2 * timeline->count + 1) * sizeof(*timeline->bounds));
	if (!timeline->bounds)
		return false;
	for (size_t i = 0; i < timeline->count; i++) {
		timeline->bounds[count++] = timeline->ranges[i].start;
		timeline->bounds[count++] = timeline->ranges[i].end;
	}
	qsort(timeline->bounds, count, sizeof(*timeline->bounds), compare_numbers);
	for (size_t i = 0; i < count; i++) {
		if (!kept || timeline->bounds[kept - 1] != timeline->bounds[i])
			timeline->bounds[kept++] = timeline->bounds[i];
	}
	timeline->bound_count = kept;
	return true;
}

/* Number of bounds at or below `address`. */
static size_t bounds_up_to(const struct code_timeline *timeline, uint64_t address)
{
	return partition_point(timeline->bound_count, i, timeline->bounds[i] <= address);
}

/* The nodes of a range. */
struct node_walk {
	size_t left, right;
};

static struct node_walk walk_range(const struct code_timeline *timeline, size_t range)
{
	return (struct node_walk){timeline->bound_count + bounds_up_to(timeline, timeline->ranges[range].start) - 1,
				  timeline->bound_count + bounds_up_to(timeline, timeline->ranges[range].end) - 1};
}

/* Returns 0 after the last node. */
static size_t next_node(struct node_walk *walk)
{
	for (; walk->left < walk->right; walk->left /= 2, walk->right /= 2) {
		if (walk->left % 2)
			return walk->left++;
		if (walk->right % 2)
			return --walk->right;
	}
	return 0;
}

/* Counts the entries of each node, and places them one after the other. */
static bool place_entries(struct code_timeline *timeline)
{
	size_t nodes = 2 * timeline->bound_count, maximum = timeline->count * ENTRIES_TIMES, total = 0, node;

	maximum = maximum > ENTRIES_MIN ? maximum : ENTRIES_MIN;
	timeline->starts = calloc(nodes + 1, sizeof(*timeline->starts));
	if (!timeline->starts)
		return false;
	for (size_t i = 0; i < timeline->count; i++) {
		struct node_walk walk = walk_range(timeline, i);

		if (total > maximum) {
			timeline->count = i;
			break;
		}
		for (; (node = next_node(&walk)); total++)
			timeline->starts[node + 1]++;
	}
	for (size_t i = 0; i < nodes; i++)
		timeline->starts[i + 1] += timeline->starts[i];
	timeline->entries = malloc((total + 1) * sizeof(*timeline->entries));
	return timeline->entries;
}

static bool enter_ranges(struct code_timeline *timeline)
{
	size_t nodes = 2 * timeline->bound_count, node;
	CLEANUP(free) uint32_t *ends = malloc((nodes + 1) * sizeof(*ends)); /* of the entries so far, by node */
	CLEANUP(free) bool *below = calloc(nodes + 1, sizeof(*below));	    /* whether there are entries below a node */
	uint32_t count = 0;

	timeline->replacing = malloc((timeline->count + 1) * sizeof(*timeline->replacing));
	if (!ends || !below || !timeline->replacing)
		return false;
	for (size_t i = 0; i < nodes; i++)
		ends[i] = timeline->starts[i];
	for (size_t i = 0; i < timeline->count; i++) {
		struct node_walk walk = walk_range(timeline, i);
		bool replaces = false;

		while ((node = next_node(&walk))) {
			/* Has the node, or one above or below it, an entry so far? */
			replaces |= below[node];
			for (size_t above = node; above && !replaces; above /= 2)
				replaces = ends[above] > timeline->starts[above];
			timeline->entries[ends[node]++] = (uint32_t)i;
			for (node /= 2; node && !below[node]; node /= 2)
				below[node] = true;
		}
		count += replaces;
		timeline->replacing[i] = count;
	}
	return true;
}

struct mmt_error *code_timeline_create(const struct timed_range *ranges, size_t count,
				       struct code_timeline **timeline_ret)
{
	struct code_timeline *timeline = calloc(1, sizeof(*timeline));

	if (!timeline)
		return &error_no_memory;
	timeline->ranges = ranges;
	timeline->count = count < LIMIT_TIMELINE_RANGES ? count : LIMIT_TIMELINE_RANGES;
	if (!collect_bounds(timeline) || !place_entries(timeline) || !enter_ranges(timeline)) {
		code_timeline_destroy(timeline);
		return &error_no_memory;
	}
	*timeline_ret = timeline;
	return NULL;
}

void code_timeline_destroy(struct code_timeline *timeline)
{
	if (!timeline)
		return;
	free(timeline->bounds);
	free(timeline->entries);
	free(timeline->starts);
	free(timeline->replacing);
	free(timeline);
}

/* Number of ranges that existed at this time. */
static size_t count_existing(const struct code_timeline *timeline, uint64_t time_ns)
{
	return partition_point(timeline->count, i, timeline->ranges[i].from_ns <= time_ns);
}

uint64_t code_timeline_epoch(const struct code_timeline *timeline, uint64_t time_ns)
{
	size_t existing = count_existing(timeline, time_ns);

	return existing ? timeline->replacing[existing - 1] : 0;
}

uint32_t code_timeline_find(const struct code_timeline *timeline, uint64_t address, uint64_t time_ns)
{
	uint32_t latest = CODE_TIMELINE_NONE, first = CODE_TIMELINE_NONE;
	size_t existing = count_existing(timeline, time_ns), piece = bounds_up_to(timeline, address);

	for (size_t node = piece ? timeline->bound_count + piece - 1 : 0; node; node /= 2) {
		const uint32_t *entries = timeline->entries + timeline->starts[node];
		size_t count = timeline->starts[node + 1] - timeline->starts[node];
		size_t before = partition_point(count, i, entries[i] < existing);

		if (before && (latest == CODE_TIMELINE_NONE || entries[before - 1] > latest))
			latest = entries[before - 1];
		if (count && entries[0] < first)
			first = entries[0];
	}
	return latest == CODE_TIMELINE_NONE ? first : latest;
}
