// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <sys/mman.h>

#include "model/space-calls.h"
#include "model/space-edit.h"
#include "model/space-repair.h"
#include "model/space-snapshot.h"

#ifndef PROT_GROWSDOWN
#define PROT_GROWSDOWN 0x01000000
#endif
#define PROTECTIONS (PROT_READ | PROT_WRITE | PROT_EXEC)

struct new_protection {
	uint32_t protection;
	uint32_t commit;
};

static void change_protection(void *context, struct space_interval *interval)
{
	const struct new_protection *change = context;
	bool accessible = space_edit_accessible(&interval->attributes);

	interval->attributes.protection = change->protection;
	if (!change->protection)
		interval->commit = COMMIT_NONE;
	else if (!accessible)
		interval->commit = change->commit;
}

static bool protect(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
		    uint32_t protection)
{
	struct new_protection change = {.protection = protection & PROTECTIONS, .commit = call->commit};

	/* A caller that does not tell commits apart gives none. */
	if (change.commit < COMMIT_WITH_BIRTH)
		change.commit = COMMIT_WITH_BIRTH;

	return start >= end || space_calls_change(space, start, end, change_protection, &change);
}

/* The end of what is mapped without a gap from `start`, at most `end`. */
static uint64_t gap_after(const struct space *space, uint64_t start, uint64_t end)
{
	const struct space_interval *interval;
	uint64_t position = start;

	while (position < end && (interval = space_find(space, position)))
		position = interval->end;
	return position < end ? position : end;
}

/* PROT_GROWSDOWN reaches down to the start of the mapping. */
static uint64_t lowest(const struct space *space, const struct space_call *call, uint64_t start)
{
	const struct space_interval *interval = space_find(space, start);
	uint64_t low = start;

	if (!(call->arguments[2] & PROT_GROWSDOWN))
		return start;
	if (interval && (interval->attributes.growsdown || interval->attributes.stack))
		low = interval->start;
	for (size_t i = 0; i < call->witness_count; i++) {
		const struct space_witness *witness = &call->witnesses[i];

		if (witness->start < low && witness->end > start && space_calls_valid_witness(space, witness))
			low = witness->start;
	}
	return low;
}

bool space_mprotect_apply(struct space *space, const struct space_call *call)
{
	struct range range;
	uint64_t changed_end;

	if (!space_calls_range(space, call->arguments[0], call->arguments[1], &range))
		return true;
	range.start = lowest(space, call, range.start);
	if (!space_repair_presumed(space, range.start, range.end))
		return false;
	changed_end = range.end;
	/* A failed call has changed what precedes the mapping it failed at: a gap in the map, or else only the kernel
	 * knows. */
	if (space_calls_failed(call))
		changed_end = call->result == -ENOMEM ? gap_after(space, range.start, range.end) : range.start;
	if (changed_end == range.end && space_calls_failed(call))
		changed_end = range.start;
	if (!protect(space, call, range.start, changed_end, space_calls_protection(space, call->arguments[2])))
		return false;
	for (size_t i = 0; i < call->witness_count; i++) {
		const struct space_witness *witness = &call->witnesses[i];
		uint64_t start = witness->start > range.start ? witness->start : range.start;
		uint64_t end = witness->end < range.end ? witness->end : range.end;

		if (start >= end || !space_calls_valid_witness(space, witness))
			continue;
		space_calls_learn(space, call->arguments[2], &witness->attributes);
		if (!protect(space, call, start, end, witness->attributes.protection))
			return false;
		if (end > changed_end)
			changed_end = end;
	}
	return range.start >= changed_end || space_snapshot_touch(space, range.start, changed_end);
}
