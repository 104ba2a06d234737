// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/survivors.h"

static const struct process_residency *find_residency(const struct replay *replay, const struct process *process)
{
	const struct recording_residency *residency = &replay->metadata->residency;

	if (!replay->metadata->has_residency || process->ended || replay->window.ends_early)
		return NULL;
	for (size_t i = 0; i < residency->processes.count; i++) {
		if (residency->processes.items[i].pid == process->pid)
			return &residency->processes.items[i];
	}
	return NULL;
}

/* Both ascend, so `*run` only moves forward. */
static uint64_t resident_bytes(const struct process_residency *residency, size_t *run,
			       const struct space_interval *interval)
{
	uint64_t bytes = 0;

	for (size_t i = *run; i < residency->runs.count; i++) {
		const struct resident_run *resident = &residency->runs.items[i];
		uint64_t start = resident->start > interval->start ? resident->start : interval->start;
		uint64_t end = resident->end < interval->end ? resident->end : interval->end;

		if (resident->end <= interval->start)
			*run = i + 1;
		if (resident->start >= interval->end)
			break;
		if (start < end)
			bytes += end - start;
	}
	return bytes;
}

/* Who made it accessible, where that is not the call that mapped it. */
static const struct account *find_committer(const struct replay *replay, const struct space_interval *interval)
{
	uint32_t commit = interval->commit;

	if (commit < COMMIT_FIRST || commit - COMMIT_FIRST >= replay->ledger.commits.count)
		return NULL;
	return ledger_counted(&replay->ledger, replay->ledger.commits.items[commit - COMMIT_FIRST]);
}

/* Whose figures the accessible bytes of an interval, and what is resident of them, belong to: who made them so. Where
 * rows are kinds of memory, they are the memory's. */
static const struct account *find_holder(const struct replay *replay, const struct rows *rows,
					 const struct space_interval *interval, const struct account *owner)
{
	bool by_kind = rows->options->by == MMT_BY_CLASS || rows->options->by == MMT_BY_FILE;
	const struct account *committer = by_kind ? NULL : find_committer(replay, interval);

	return committer ? committer : owner;
}

static bool add_reserver(struct survivor_sums *sums, uint32_t row, uint32_t reserver, uint64_t bytes)
{
	uint64_t key = (uint64_t)row << 32 | reserver;
	const uint64_t *sum = map_get(&sums->reservers, key);

	return row == reserver || map_put(&sums->reservers, key, (sum ? *sum : 0) + bytes);
}

static bool add_owned(const struct replay *replay, const struct rows *rows, struct survivor_sums *sums,
		      const struct space_interval *interval, const struct account *owner, const struct birth *birth)
{
	uint64_t bytes = interval->end - interval->start;
	struct mmt_group *group = &sums->groups[owner->row - 1];
	const struct account *committer = find_holder(replay, rows, interval, owner);
	const struct account *reserver = birth ? ledger_counted(&replay->ledger, birth->reserver) : NULL;

	group->unfreed_bytes += bytes;
	group->class_bytes[rows_class(rows, owner)] += bytes;
	if (!interval->attributes.protection) {
		group->reserved_bytes += bytes;
		return true;
	}
	sums->groups[committer->row - 1].committed_bytes += bytes;
	if (!add_reserver(sums, committer->row, owner->row, bytes))
		return false;
	return !reserver || add_reserver(sums, owner->row, reserver->row, bytes);
}

/* Whoever has mapped it, it is not in this report: it was before the window, or by a process that is not asked for. */
static bool is_of_others(const struct replay *replay, const struct rows *rows, const struct space_interval *interval,
			 const struct birth *birth)
{
	if (interval->birth < BIRTH_FIRST || (birth && birth->side == LEDGER_BEFORE))
		return true;
	return birth && !rows_selects(rows, processes_at(replay->processes, birth->process));
}

/* Made accessible in the window by a stack of this report. */
static void add_unowned(const struct replay *replay, const struct rows *rows, struct survivor_sums *sums,
			const struct space_interval *interval, const struct birth *birth)
{
	const struct account *committer = find_committer(replay, interval);

	if (committer && interval->attributes.protection && is_of_others(replay, rows, interval, birth))
		sums->groups[committer->row - 1].committed_before_bytes += interval->end - interval->start;
}

static struct mmt_error *add_process(const struct replay *replay, const struct rows *rows, struct survivor_sums *sums,
				     const struct process *process)
{
	const struct process_residency *residency = find_residency(replay, process);
	const struct space_interval *interval;
	size_t run = 0;

	for (uint64_t address = 0; (interval = space_next(process->space, address)); address = interval->end) {
		const struct birth *birth = ledger_birth(&replay->ledger, interval->birth);
		const struct account *owner = holdings_owner(replay, interval);

		if (!owner) {
			add_unowned(replay, rows, sums, interval, birth);
			continue;
		}
		if (!add_owned(replay, rows, sums, interval, owner, birth))
			return &error_no_memory;
		if (!residency)
			continue;
		owner = find_holder(replay, rows, interval, owner);
		sums->resident_known[owner->row - 1] = true;
		sums->groups[owner->row - 1].resident_bytes += resident_bytes(residency, &run, interval);
	}
	return NULL;
}

struct mmt_error *survivors_add(const struct replay *replay, const struct rows *rows, struct survivor_sums *sums)
{
	struct mmt_error *error = NULL;

	/* A space may hold bytes of any process that ever shared it: the rows know whose are asked for. */
	for (size_t i = 0; !error && i < processes_count(replay->processes); i++) {
		const struct process *process = processes_at(replay->processes, (uint32_t)i);

		if (!process->borrows_space)
			error = add_process(replay, rows, sums, process);
	}
	return error;
}
