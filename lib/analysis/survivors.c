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

static const struct account *account_at(const struct replay *replay, uint32_t number)
{
	const struct account *account;

	if (number >= replay->ledger.accounts.count)
		return NULL;
	account = &replay->ledger.accounts.items[number];
	return account->row == LEDGER_NO_ROW ? NULL : account;
}

/* The accounts of lost calls, process << 32 | kind -> place. */
static struct mmt_error *find_lost_accounts(const struct replay *replay, struct map *lost)
{
	for (size_t i = 0; i < replay->ledger.accounts.count; i++) {
		const struct account *account = &replay->ledger.accounts.items[i];

		if (account->stack == replay->lost_stack &&
		    !map_put(lost, (uint64_t)account->process << 32 | account->kind, i))
			return &error_no_memory;
	}
	return NULL;
}

static const struct account *find_lost_account(const struct replay *replay, const struct map *lost,
					       const struct process *process, const struct space_interval *interval)
{
	const uint64_t *place = map_get(lost, (uint64_t)process->index << 32 | replay_lost_kind(replay, interval));

	return place ? account_at(replay, (uint32_t)*place) : NULL;
}

/* Who made it accessible, where that is not the call that mapped it. */
static const struct account *find_committer(const struct replay *replay, const struct space_interval *interval)
{
	uint32_t commit = interval->commit;

	if (commit < COMMIT_FIRST || commit - COMMIT_FIRST >= replay->ledger.commits.count)
		return NULL;
	return account_at(replay, replay->ledger.commits.items[commit - COMMIT_FIRST]);
}

/* Whose figures the accessible bytes of an interval, and what is resident of them, belong to. */
static const struct account *find_holder(const struct replay *replay, const struct space_interval *interval,
					 const struct account *owner)
{
	const struct account *committer = find_committer(replay, interval);

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
	const struct account *committer = find_holder(replay, interval, owner);
	const struct account *reserver = birth ? account_at(replay, birth->reserver) : NULL;

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

/* Mapped before the window, or before the recording, and made accessible in it. */
static void add_unowned(const struct replay *replay, struct survivor_sums *sums, const struct space_interval *interval,
			const struct birth *birth)
{
	const struct account *committer = find_committer(replay, interval);
	bool before = interval->birth < BIRTH_FIRST || (birth && birth->side == LEDGER_BEFORE);

	if (committer && before && interval->attributes.protection)
		sums->groups[committer->row - 1].committed_before_bytes += interval->end - interval->start;
}

struct pass {
	const struct replay *replay;
	const struct rows *rows;
	struct survivor_sums *sums;
	struct map lost;
};

static struct mmt_error *add_process(struct pass *pass, const struct process *process)
{
	const struct replay *replay = pass->replay;
	const struct process_residency *residency = find_residency(replay, process);
	const struct space_interval *interval;
	uint64_t address = 0;
	size_t run = 0;

	while ((interval = space_next(process->space, address))) {
		const struct birth *birth = ledger_birth(&replay->ledger, interval->birth);
		const struct account *owner = birth ? account_at(replay, birth->account) : NULL;

		address = interval->end;
		if (interval->birth == BIRTH_UNKNOWN)
			owner = find_lost_account(replay, &pass->lost, process, interval);
		if (!owner) {
			add_unowned(replay, pass->sums, interval, birth);
			continue;
		}
		if (!add_owned(replay, pass->rows, pass->sums, interval, owner, birth))
			return &error_no_memory;
		if (!residency)
			continue;
		owner = find_holder(replay, interval, owner);
		pass->sums->resident_known[owner->row - 1] = true;
		pass->sums->groups[owner->row - 1].resident_bytes += resident_bytes(residency, &run, interval);
	}
	return NULL;
}

struct mmt_error *survivors_add(const struct replay *replay, const struct rows *rows, struct survivor_sums *sums)
{
	struct pass pass = {.replay = replay, .rows = rows, .sums = sums};
	struct mmt_error *error = find_lost_accounts(replay, &pass.lost);

	for (size_t i = 0; !error && i < processes_count(replay->processes); i++) {
		const struct process *process = processes_at(replay->processes, (uint32_t)i);

		if (!process->borrows_space && rows_selects(rows, process))
			error = add_process(&pass, process);
	}
	map_deinit(&pass.lost);
	return error;
}
