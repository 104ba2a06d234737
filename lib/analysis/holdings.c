// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/holdings.h"

#include "analysis/classes.h"
#include "analysis/replay-calls.h"
#include "analysis/replay.h"

const struct account *holdings_owner(const struct replay *replay, const struct process *process,
				     const struct space_interval *interval)
{
	const struct ledger *ledger = &replay->ledger;
	const struct birth *birth = ledger_birth(ledger, interval->birth);

	if (interval->birth == BIRTH_UNKNOWN)
		return ledger_counted(ledger,
				      ledger_find_account(ledger, process->index, replay_lost_kind(replay, interval),
							  replay->lost_stack));
	return birth ? ledger_counted(ledger, birth->account) : NULL;
}

static bool is_wanted(const struct replay *replay, uint32_t kind)
{
	return !replay->classes || replay->classes >> classes_kind_class(kind) & 1;
}

/* Bytes of no row: whose are they? */
static void add_unowned(const struct replay *replay, const struct space_interval *interval, struct holdings *holdings)
{
	const struct birth *birth = ledger_birth(&replay->ledger, interval->birth);
	uint64_t bytes = interval->end - interval->start;

	if (!is_wanted(replay, birth ? birth->kind : replay_calls_kind(replay, interval)))
		return;
	if (interval->birth == BIRTH_BEFORE)
		holdings->inherited_bytes += bytes;
	else if (birth && birth->side == LEDGER_BEFORE)
		holdings->older_bytes += bytes;
	else if (birth && birth->side == LEDGER_YOUNGER)
		holdings->younger_bytes += bytes;
}

static void add_interval(const struct replay *replay, const struct process *process,
			 const struct space_interval *interval, struct holdings *holdings)
{
	uint64_t bytes = interval->end - interval->start;

	if (!holdings_owner(replay, process, interval)) {
		add_unowned(replay, interval, holdings);
		return;
	}
	holdings->unfreed_bytes += bytes;
	if (interval->attributes.protection)
		holdings->committed_bytes += bytes;
	else
		holdings->reserved_bytes += bytes;
}

struct holdings holdings_of(const struct replay *replay, const struct process *process)
{
	const struct space_interval *interval;
	struct holdings holdings = {0};

	if (process->index < replay->ended.count && replay->ended.items[process->index])
		return *replay->ended.items[process->index];
	if (process->borrows_space)
		return holdings;
	holdings.counts = space_counts(process->space);
	holdings.check = space_check_result(process->space);
	for (uint64_t position = 0; (interval = space_next(process->space, position)); position = interval->end)
		add_interval(replay, process, interval, &holdings);
	return holdings;
}

struct mmt_error *holdings_release(struct replay *replay, const struct process *process)
{
	struct holdings *kept;

	if (process->borrows_space)
		return NULL;
	while (replay->ended.count <= process->index) {
		if (!vector_push(&replay->ended, (struct holdings *)NULL))
			return &error_no_memory;
	}
	space_finish(process->space);
	/* One that came back after its end, as a loss may make it look: the figures stay those of its first end. */
	if (!replay->ended.items[process->index]) {
		kept = arena_alloc(&replay->arena, 1, sizeof(*kept));
		if (!kept)
			return &error_no_memory;
		*kept = holdings_of(replay, process);
		kept->released = true;
		replay->ended.items[process->index] = kept;
	}
	replay->ledger.now_ns = process->ended_ns;
	space_release(process->space);
	return NULL;
}
