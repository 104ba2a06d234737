// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space-doubt.h"

#include "model/space-edit.h"
#include "model/space-guards.h"

#define LATE_NS 1000000000ULL /* a call in flight while its page was read returns within this time */
#define READING UINT64_MAX    /* instead of a time: the read at work */

/* In the nodes the birth is a doubt_kind, the commit the birth of what was held; attributes are those that address 0
 * would have. The time is when the read had ended. */

static bool insert(struct space *space, const struct space_interval *range)
{
	struct interval_node *before = intervals_before(&space->doubts, range->start);

	if (before && range->birth == DOUBT_UNKNOWN && before->interval.birth == DOUBT_UNKNOWN &&
	    before->interval.end == range->start && before->time_ns == READING) {
		before->interval.end = range->end;
		return true;
	}
	return intervals_insert(&space->doubts, range, READING);
}

bool space_doubt_renew(struct space *space, uint64_t start, uint64_t end)
{
	struct interval_node *node;

	for (uint64_t position = start; (node = intervals_within(&space->doubts, position, end));) {
		struct space_interval part = node->interval;

		if (part.start < start)
			part.start = start;
		if (part.end > end)
			part.end = end;
		position = part.end;
		if (node->time_ns != READING &&
		    (!intervals_cut(&space->doubts, part.start, part.end) || !insert(space, &part)))
			return false;
	}
	return true;
}

bool space_doubt_add(struct space *space, enum doubt_kind kind, uint64_t start, uint64_t end,
		     const struct space_interval *held)
{
	struct space_interval range = {.birth = kind};
	struct interval_node *node;

	if (held) {
		range.attributes = space_edit_advance(&held->attributes, -held->start);
		range.commit = held->birth;
	}
	if (!space_doubt_renew(space, start, end))
		return false;
	for (uint64_t position = start; position < end; position = node ? node->interval.end : end) {
		node = intervals_within(&space->doubts, position, end);
		range.start = position;
		range.end = node ? node->interval.start : end;
		if (range.start < range.end && !insert(space, &range))
			return false;
	}
	return true;
}

void space_doubt_close(struct space *space, uint64_t start, uint64_t end, uint64_t time_ns)
{
	struct interval_node *node;

	for (uint64_t position = start; (node = intervals_within(&space->doubts, position, end));
	     position = node->interval.end) {
		if (node->time_ns == READING)
			node->time_ns = time_ns;
	}
	space->doubts_ns = time_ns;
}

bool space_doubt_settle(struct space *space, uint64_t start, uint64_t end)
{
	return intervals_cut(&space->doubts, start, end);
}

/* What was held changes with what the model has now. Where nothing was, the call has found something all the same. */
static struct space_interval changed(const struct space_interval *doubt,
				     void (*change)(void *context, struct space_interval *interval), void *context)
{
	struct space_interval part = *doubt, held = {.start = part.start, .end = part.end, .birth = part.commit};

	if (part.birth != DOUBT_HELD) {
		part.birth = DOUBT_UNKNOWN;
		return part;
	}
	held.attributes = space_edit_advance(&part.attributes, part.start);
	held.commit = space_edit_commit(&held.attributes);
	change(context, &held);
	part.attributes = space_edit_advance(&held.attributes, -part.start);
	return part;
}

bool space_doubt_change(struct space *space, uint64_t start, uint64_t end,
			void (*change)(void *context, struct space_interval *interval), void *context)
{
	struct interval_node *node;

	for (uint64_t position = start; (node = intervals_within(&space->doubts, position, end));) {
		struct space_interval part = node->interval;
		uint64_t time_ns = node->time_ns;

		if (part.start < start)
			part.start = start;
		if (part.end > end)
			part.end = end;
		position = part.end;
		if (part.birth == DOUBT_UNKNOWN)
			continue;
		part = changed(&part, change, context);
		if (!intervals_cut(&space->doubts, part.start, part.end) ||
		    !intervals_insert(&space->doubts, &part, time_ns))
			return false;
	}
	return true;
}

static bool was_in_flight(const struct space *space, const struct space_call *call, uint64_t read_ns)
{
	const uint64_t *last_exit = map_get(&space->last_exits, (uint32_t)call->thread);

	if (read_ns != READING && call->time_ns > read_ns && call->time_ns - read_ns > LATE_NS)
		return false;
	return !last_exit || *last_exit <= read_ns;
}

bool space_doubt_covers(const struct space *space, const struct space_call *call, uint64_t address)
{
	const struct interval_node *node = intervals_next(&space->doubts, address);

	return node && node->interval.start <= address && was_in_flight(space, call, node->time_ns);
}

static void forget_attributes(void *context, struct space_interval *interval)
{
	(void)context;
	interval->attributes = (struct space_attributes){.unknown = true};
	interval->commit = COMMIT_NONE;
}

/* Mapped or not: it is not known as what. What a release in flight took is known. */
static bool make_unknown(struct space *space, uint64_t start, uint64_t end)
{
	struct interval_node *node;

	if (!space_edit_change(space, start, end, forget_attributes, NULL) ||
	    !intervals_cut(&space->unknown, start, end))
		return false;
	for (uint64_t position = start; position < end; position = node ? node->interval.end : end) {
		struct space_interval free_range = {.start = position};

		node = intervals_within(&space->mapped, position, end);
		free_range.end = node ? node->interval.start : end;
		if (free_range.start < free_range.end &&
		    !space_guards_wait_for(space, free_range.start, free_range.end) &&
		    !intervals_insert(&space->unknown, &free_range, 0))
			return false;
	}
	return true;
}

static bool put_back(struct space *space, const struct space_interval *range)
{
	struct space_interval held = *range;

	if (range->birth == DOUBT_UNKNOWN)
		return make_unknown(space, range->start, range->end);
	if (!space_edit_release(space, range->start, range->end, NULL))
		return false;
	if (range->birth == DOUBT_NOTHING)
		return true;
	held.attributes = space_edit_advance(&range->attributes, range->start);
	held.birth = range->commit;
	held.commit = space_edit_commit(&held.attributes);
	return space_edit_bear(space, &held);
}

bool space_doubt_undo(struct space *space, const struct space_call *call, uint64_t start, uint64_t end)
{
	struct interval_node *node;

	for (uint64_t position = start; (node = intervals_within(&space->doubts, position, end));) {
		struct space_interval part = node->interval;

		if (part.start < start)
			part.start = start;
		if (part.end > end)
			part.end = end;
		position = part.end;
		if (was_in_flight(space, call, node->time_ns) &&
		    (!intervals_cut(&space->doubts, part.start, part.end) || !put_back(space, &part)))
			return false;
	}
	return true;
}

bool space_doubt_undo_in_copy(const struct space *space, struct space *copy)
{
	struct interval_node *node;

	for (uint64_t position = 0; (node = intervals_next(&space->doubts, position)); position = node->interval.end) {
		struct space_interval part = node->interval;

		if (node->time_ns != READING)
			continue;
		part.commit = BIRTH_BEFORE;
		if (part.birth == DOUBT_HELD && part.attributes.dontfork)
			part.birth = DOUBT_NOTHING;
		if (!put_back(copy, &part))
			return false;
	}
	return true;
}

void space_doubt_expire(struct space *space, uint64_t now_ns)
{
	if (space->doubts.count && !space->snapshot.open && now_ns > space->doubts_ns &&
	    now_ns - space->doubts_ns > LATE_NS)
		space_doubt_forget(space);
}

void space_doubt_forget(struct space *space)
{
	intervals_deinit(&space->doubts);
}
