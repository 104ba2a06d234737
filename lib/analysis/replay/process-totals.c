// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/replay.h"

#include "analysis/replay/memory-classes.h"

#define MEBIBYTES_MAX ((1u << 29) - 1)
#define UNDECIDED_PER_PROCESS 32 /* what a process takes besides its intervals, in intervals */
#define FORKS_MAX 16		 /* from a process to the one whose memory it has */
#define HEIRS_MAX 256		 /* processes alive at the end: with more, who inherited what takes too long */
#define LIVED_ON_NS 1000000000	 /* a parent that only waited for its child to end does not live on for so long */

const struct account *process_totals_owner(const struct replay *replay, const struct space_interval *interval)
{
	const struct ledger *ledger = &replay->ledger;
	const struct allocation *allocation = ledger_allocation(ledger, interval->allocation);

	return allocation ? ledger_counted(ledger, allocation->account) : NULL;
}

/* Valid until the next call; NULL: out of memory. */
static struct kept_process_totals *find_process_totals(struct replay *replay, uint32_t process)
{
	return vector_extend(&replay->process_totals, (size_t)process + 1) ? &replay->process_totals.items[process]
									   : NULL;
}

static const struct space_facts no_facts; /* of most spaces */

/* Allocates only if a value is not zero: most spaces have none. */
static struct mmt_error *keep_facts(struct replay *replay, const struct space *space,
				    struct kept_process_totals *process_totals)
{
	struct space_counts counts = space_counts(space);
	struct space_facts facts = {.unknown_bytes = counts.unknown_bytes,
				    .reconciled_bytes = counts.reconciled_bytes,
				    .given_back_bytes = counts.given_back_bytes,
				    .ambiguous = counts.ambiguous,
				    .check = space_check_result(space)};
	struct space_facts *kept;

	process_totals->facts = &no_facts;
	if (!facts.unknown_bytes && !facts.reconciled_bytes && !facts.given_back_bytes && !facts.ambiguous &&
	    !facts.check.done)
		return NULL;
	process_totals->facts = kept = arena_alloc(&replay->arena, 1, sizeof(*kept));
	if (!kept)
		return &error_no_memory;
	*kept = facts;
	return NULL;
}

/* Classify bytes that no row counts. */
static void add_unowned(const struct replay *replay, const struct space_interval *interval,
			const struct allocation *allocation, struct held_bytes *held)
{
	uint64_t bytes = interval->end - interval->start;

	if (replay->classes &&
	    !(replay->classes >>
		  classes_kind_class(allocation ? allocation->kind : replay_calls_kind(replay, interval)) &
	      1))
		return;
	if (interval->allocation == ALLOCATION_BEFORE)
		held->inherited += bytes;
	else if (interval->allocation == ALLOCATION_KERNEL)
		held->kernel += bytes;
	else if (allocation && allocation->side == LEDGER_BEFORE)
		held->older += bytes;
	else if (allocation && allocation->side == LEDGER_YOUNGER)
		held->younger += bytes;
}

struct mmt_error *process_totals_add(struct replay *replay, const struct process *owner,
				     const struct space_interval *interval)
{
	const struct allocation *allocation = ledger_allocation(&replay->ledger, interval->allocation);
	const struct account *account = process_totals_owner(replay, interval);
	uint64_t bytes = interval->end - interval->start;
	struct kept_process_totals *process_totals;
	const struct process *holder = owner;
	struct held_bytes **held;

	/* The process that mapped it holds it. If that process moved to its own space, as a child of vfork does, or if
	 * the mapping existed before, the owner of the space does. */
	if (account)
		holder = replay->processes->all.items[account->process];
	else if (allocation)
		holder = replay->processes->all.items[allocation->process];
	if (holder->space != owner->space)
		holder = owner;
	process_totals = find_process_totals(replay, holder->index);
	if (!process_totals)
		return &error_no_memory;
	held = replay->ending ? &process_totals->ended : &process_totals->now;
	if (!*held)
		*held = arena_alloc(&replay->arena, 1, sizeof(**held));
	if (!*held)
		return &error_no_memory;
	if (!account) {
		add_unowned(replay, interval, allocation, *held);
		return NULL;
	}
	(*held)->unfreed += bytes;
	*(interval->attributes.protection ? &(*held)->committed : &(*held)->reserved) += bytes;
	return NULL;
}

/* Free the space of an ended process, whose figures are kept, as of its end. */
static struct mmt_error *let_go(struct replay *replay, struct process *process)
{
	uint64_t now_ns = replay->ledger.now_ns;
	struct mmt_error *error =
	    call_stacks_unwind_early(replay, process->index) ?: process_totals_release(replay, process);

	replay->ledger.now_ns = now_ns;
	if (!error)
		processes_release_space(replay->processes, process);
	return error;
}

/* Whether its pages were read when recording stopped, even if its events end: an earlier process may have its PID. */
static bool is_survivor(const struct replay *replay, const struct process *process)
{
	return processes_find(replay->processes, process->pid) == process &&
	       map_get(&replay->survivors, (uint32_t)process->pid);
}

/* A process for a request is a copy of its parent. A command of a shell, which executed a program, is none. */
static bool is_copy(const struct process *process)
{
	return process->program_ns <= process->started_ns;
}

/* Whether it is a copy of its parent, which lived on for longer than it did. A shell may have other commands to run. */
static bool is_outlived(const struct process *process, const struct process *parent, uint64_t now_ns)
{
	uint64_t after_ns = subtract(smaller_of(parent->ended_ns, now_ns), process->ended_ns);

	return is_copy(process) && after_ns > LIVED_ON_NS &&
	       after_ns > subtract(process->ended_ns, process->started_ns);
}

struct mmt_error *process_totals_find_followed(struct replay *replay, bool last)
{
	uint32_t largest = 0, second = 0;
	struct kept_process_totals *own;
	struct process *process = NULL;
	struct mmt_error *error = NULL;
	bool keeps = replay_keeps_ended(replay);

	replay->undecided = 0;
	array_each(totals, replay->process_totals.items, replay->process_totals.count) {
		second = larger_of(second, smaller_of(largest, totals->mebibytes));
		largest = larger_of(largest, totals->mebibytes);
	}
	while (!error && (process = processes_next(replay->processes, process))) {
		const struct process *parent = replay->processes->all.items[process->forked_from];
		bool ended = process->ended && process != parent;
		uint32_t other;

		own = find_process_totals(replay, process->index);
		if (!own || (replay->stacks.goes.count == process->index && !vector_push(&replay->stacks.goes, false)))
			return &error_no_memory;
		own->followed =
		    ended &&
		    (process->ended_ns < replay->processes->all.items[parent->last_child]->started_ns ||
		     (process->ended_ns <= parent->ended_ns && replay->process_totals.items[parent->index].followed));
		other = own->mebibytes == largest ? second : largest;
		replay->stacks.goes.items[process->index] =
		    last && replay->has_survivors && !keeps
			? process->ended && !is_survivor(replay, process)
			: ((is_copy(process) || !keeps) && own->followed && own->mebibytes <= 2 * other) ||
			      (ended && is_outlived(process, parent, replay->ledger.now_ns));
		if (replay->stacks.goes.items[process->index] && !last && space_counts(process->space).intervals)
			error = let_go(replay, process);
	}
	return error;
}

static bool is_own_data(const struct space_interval *interval)
{
	return interval->allocation >= ALLOCATION_FIRST && space_is_data(&interval->attributes);
}

/* Whether it inherited half of the data that a process mapped in the recording, which are `bytes`. */
static bool is_heir(const struct replay *replay, const struct process *heir, const struct process *process,
		    uint64_t bytes)
{
	const struct process *origin = heir;
	uint64_t inherited = 0;

	for (unsigned i = 0; i < FORKS_MAX && origin != process && is_copy(origin); i++)
		origin = replay->processes->all.items[origin->forked_from];
	space_each(interval, process->space, origin == process && !heir->ended) {
		const struct space_interval *own = space_find(heir->space, interval->start);

		if (is_own_data(interval) && own && own->allocation == ALLOCATION_BEFORE)
			inherited += interval->end - interval->start;
	}
	return inherited >> 20 && inherited >= bytes / 2;
}

bool process_totals_have_heir(const struct replay *replay, const struct process *process)
{
	uint64_t bytes = 0;
	bool found = false;

	if (process->last_child == process->index)
		return false;
	space_each(interval, process->space, true)
		bytes += is_own_data(interval) ? interval->end - interval->start : 0;
	/* Most have too little, which costs less to find out than who inherited it. */
	if (!(bytes >> 20))
		return false;
	map_each(slot, &replay->survivors, !found && replay->survivors.count <= HEIRS_MAX) {
		const struct process *heir = processes_find(replay->processes, (int32_t)slot->key);

		found = heir && is_heir(replay, heir, process, bytes);
	}
	/* The last child may yet fork the one that lives on. */
	return found || is_heir(replay, replay->processes->all.items[process->last_child], process, bytes);
}

/* Whether an ended process is one that does not count. */
static bool goes(const struct replay *replay, const struct process *process)
{
	const struct packed_stacks *packed = &replay->metadata->stacks;
	uint32_t index = process->index;

	if (replay->notes.pids)
		return false;
	if (replay->releases_ended && !map_get(&replay->survivors, (uint32_t)process->pid))
		return !process_totals_have_heir(replay, process);
	if (replay->metadata->packed && !replay->two_passes)
		return index < packed->processes.count && packed->processes.items[index].released;
	return !replay->finds_stacks && index < replay->stacks.goes.count && replay->stacks.goes.items[index];
}

struct mmt_error *process_totals_end(struct replay *replay, struct process *process)
{
	const struct space_counts counts = space_counts(process->space);
	struct kept_process_totals *own;

	if (goes(replay, process))
		return let_go(replay, process);
	if (process->borrows_space || process->forked_from == process->index)
		return NULL;
	if (replay_keeps_ended(replay) && !replay->notes.pids && !(counts.data_bytes >> 20) &&
	    replay->processes->all.count > LIMIT_KEPT_PROCESSES)
		return let_go(replay, process);
	if (replay->releases_ended || !replay->finds_stacks)
		return NULL;
	own = find_process_totals(replay, process->index);
	if (!own)
		return &error_no_memory;
	own->mebibytes = smaller_of(counts.data_bytes >> 20, MEBIBYTES_MAX);
	replay->undecided += UNDECIDED_PER_PROCESS + counts.intervals;
	if (replay->undecided < LIMIT_UNDECIDED_INTERVALS + UNDECIDED_PER_PROCESS * replay->processes->all.count / 16)
		return NULL;
	return process_totals_find_followed(replay, false);
}

struct mmt_error *process_totals_release_followed(struct replay *replay)
{
	struct mmt_error *error = NULL;

	for (struct process *process = NULL; !error && (process = processes_next(replay->processes, process));) {
		if (process->ended && goes(replay, process) && space_counts(process->space).intervals)
			error = let_go(replay, process);
	}
	return error;
}

struct mmt_error *process_totals_release(struct replay *replay, const struct process *process)
{
	struct kept_process_totals *process_totals;
	struct mmt_error *error = NULL;

	if (process->borrows_space)
		return NULL;
	process_totals = find_process_totals(replay, process->index);
	if (!process_totals)
		return &error_no_memory;
	space_finish(process->space);
	/* After a loss a process can seem to return after its end: keep the figures of its first end. */
	if (!process_totals->facts) {
		error = keep_facts(replay, process->space, process_totals);
		replay->ending = process;
	}
	process_totals->released = true;
	replay->ledger.now_ns = process->ended_ns;
	space_release(process->space);
	replay->ending = NULL;
	return error;
}

bool process_totals_are_released(const struct replay *replay, const struct process *process)
{
	return process->index < replay->process_totals.count && replay->process_totals.items[process->index].released;
}

struct mmt_error *process_totals_sum(struct replay *replay)
{
	const struct process *process = NULL;
	struct mmt_error *error = NULL;

	while (!error && (process = processes_next(replay->processes, process))) {
		struct kept_process_totals *process_totals;

		if (process->borrows_space)
			continue;
		space_each(interval, process->space, !error)
			error = process_totals_add(replay, process, interval);
		process_totals = find_process_totals(replay, process->index);
		if (!process_totals)
			return &error_no_memory;
		if (!error && !process_totals->facts)
			error = keep_facts(replay, process->space, process_totals);
	}
	return error;
}

struct process_totals process_totals_of(const struct replay *replay, const struct process *process)
{
	static const struct held_bytes nothing;
	static const struct kept_process_totals none;
	const struct kept_process_totals *kept =
	    process->index < replay->process_totals.count ? &replay->process_totals.items[process->index] : &none;

	return (struct process_totals){
	    .now = *(kept->now ?: &nothing), .ended = *(kept->ended ?: &nothing), .facts = *(kept->facts ?: &no_facts)};
}
