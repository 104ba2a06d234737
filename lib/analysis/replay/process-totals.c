// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/process-totals.h"

#include "analysis/replay/replay-calls.h"
#include "analysis/replay/replay.h"
#include "analysis/report/classes.h"

const struct account *holdings_owner(const struct replay *replay, const struct space_interval *interval)
{
	const struct ledger *ledger = &replay->ledger;
	const struct birth *birth = ledger_birth(ledger, interval->birth);

	return birth ? ledger_counted(ledger, birth->account) : NULL;
}

static bool is_wanted(const struct replay *replay, uint32_t kind)
{
	return !replay->classes || replay->classes >> classes_kind_class(kind) & 1;
}

/* Valid until the next. */
static struct mmt_error *find_holdings(struct replay *replay, uint32_t process, struct kept_holdings **holdings_ret)
{
	while (replay->holdings.count <= process) {
		if (!vector_append(&replay->holdings))
			return &error_no_memory;
	}
	*holdings_ret = &replay->holdings.items[process];
	return NULL;
}

/* What most spaces have nothing of takes no memory. */
static struct mmt_error *keep_facts(struct replay *replay, const struct space *space, struct kept_holdings *holdings)
{
	struct space_counts counts = space_counts(space);
	struct space_facts facts = {.unknown_bytes = counts.unknown_bytes,
				    .repaired_bytes = counts.repaired_bytes,
				    .ambiguous = counts.ambiguous,
				    .check = space_check_result(space)};

	if (!facts.unknown_bytes && !facts.repaired_bytes && !facts.ambiguous && !facts.check.done)
		return NULL;
	holdings->facts = arena_alloc(&replay->arena, 1, sizeof(facts));
	if (!holdings->facts)
		return &error_no_memory;
	*holdings->facts = facts;
	return NULL;
}

static struct mmt_error *find_held(struct replay *replay, uint32_t process, bool ended, struct held_bytes **held_ret)
{
	struct kept_holdings *holdings;
	struct mmt_error *error = find_holdings(replay, process, &holdings);
	struct held_bytes **held;

	if (error)
		return error;
	held = ended ? &holdings->ended : &holdings->now;
	if (!*held)
		*held = arena_alloc(&replay->arena, 1, sizeof(**held));
	*held_ret = *held;
	return *held ? NULL : &error_no_memory;
}

/* Bytes of no row: what are they? */
static void add_unowned(const struct replay *replay, const struct space_interval *interval, struct held_bytes *held)
{
	const struct birth *birth = ledger_birth(&replay->ledger, interval->birth);
	uint64_t bytes = interval->end - interval->start;

	if (!is_wanted(replay, birth ? birth->kind : replay_calls_kind(replay, interval)))
		return;
	if (interval->birth == BIRTH_BEFORE)
		held->inherited += bytes;
	else if (interval->birth == BIRTH_KERNEL)
		held->kernel += bytes;
	else if (birth && birth->side == LEDGER_BEFORE)
		held->older += bytes;
	else if (birth && birth->side == LEDGER_YOUNGER)
		held->younger += bytes;
}

static void add_owned(const struct space_interval *interval, struct held_bytes *held)
{
	uint64_t bytes = interval->end - interval->start;

	held->unfreed += bytes;
	if (interval->attributes.protection)
		held->committed += bytes;
	else
		held->reserved += bytes;
}

/* Who mapped it, unless that process left for a space of its own, as a child of vfork does; what was there before has
 * nobody but the owner of the space. */
static uint32_t find_holder(const struct replay *replay, const struct process *owner,
			    const struct space_interval *interval, const struct account *account)
{
	const struct birth *birth = ledger_birth(&replay->ledger, interval->birth);
	const struct process *mapper = owner;

	if (account)
		mapper = processes_at(replay->processes, account->process);
	else if (birth)
		mapper = processes_at(replay->processes, birth->process);
	return mapper->space == owner->space ? mapper->index : owner->index;
}

/* To each process its part of a space. */
static struct mmt_error *add_space(struct replay *replay, const struct process *owner, bool ended)
{
	const struct space_interval *interval;

	for (uint64_t position = 0; (interval = space_next(owner->space, position)); position = interval->end) {
		const struct account *account = holdings_owner(replay, interval);
		struct held_bytes *held;
		struct mmt_error *error =
		    find_held(replay, find_holder(replay, owner, interval, account), ended, &held);

		if (error)
			return error;
		if (account)
			add_owned(interval, held);
		else
			add_unowned(replay, interval, held);
	}
	return NULL;
}

struct mmt_error *holdings_release(struct replay *replay, const struct process *process)
{
	struct kept_holdings *holdings;
	struct mmt_error *error;

	if (process->borrows_space)
		return NULL;
	error = find_holdings(replay, process->index, &holdings);
	if (error)
		return error;
	space_finish(process->space);
	/* One that came back after its end, as a loss may make it look: the figures stay those of its first end. */
	if (!holdings->released) {
		holdings->released = true;
		error = keep_facts(replay, process->space, holdings);
		if (!error)
			error = add_space(replay, process, true);
	}
	replay->ledger.now_ns = process->ended_ns;
	space_release(process->space);
	return error;
}

struct mmt_error *holdings_sum(struct replay *replay)
{
	for (size_t i = 0; i < processes_count(replay->processes); i++) {
		const struct process *process = processes_at(replay->processes, (uint32_t)i);
		struct kept_holdings *holdings;
		struct mmt_error *error;

		if (process->borrows_space)
			continue;
		error = add_space(replay, process, false);
		if (!error)
			error = find_holdings(replay, process->index, &holdings);
		if (!error && !holdings->released)
			error = keep_facts(replay, process->space, holdings);
		if (error)
			return error;
	}
	return NULL;
}

struct holdings holdings_of(const struct replay *replay, const struct process *process)
{
	struct kept_holdings kept = {0};
	struct holdings holdings = {0};

	if (process->index < replay->holdings.count)
		kept = replay->holdings.items[process->index];
	if (kept.now)
		holdings.now = *kept.now;
	if (kept.ended)
		holdings.ended = *kept.ended;
	if (kept.facts)
		holdings.facts = *kept.facts;
	return holdings;
}

#define CPUS_MAXIMUM 8192 /* a file that names higher ones lies */

void losses_deinit(struct losses *losses)
{
	vector_deinit(&losses->latest);
}

bool losses_note(struct losses *losses, int32_t cpu, uint64_t sequence)
{
	losses->anywhere = sequence;
	if (cpu < 0 || cpu >= CPUS_MAXIMUM) {
		losses->everywhere = sequence;
		return true;
	}
	while (losses->latest.count <= (size_t)cpu) {
		if (!vector_push(&losses->latest, 0))
			return false;
	}
	losses->latest.items[cpu] = sequence;
	return true;
}

bool losses_since(const struct losses *losses, int32_t cpu, uint64_t sequence)
{
	if (losses->anywhere <= sequence)
		return false;
	if (cpu < 0 || losses->everywhere > sequence)
		return true;
	return (size_t)cpu < losses->latest.count && losses->latest.items[cpu] > sequence;
}
