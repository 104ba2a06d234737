// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/process-totals.h"

#include "analysis/replay/memory-classes.h"
#include "analysis/replay/replay.h"

#define MEBIBYTES_MAX ((1u << 28) - 1)

const struct account *process_totals_owner(const struct replay *replay, const struct space_interval *interval)
{
	const struct ledger *ledger = &replay->ledger;
	const struct allocation *allocation = ledger_allocation(ledger, interval->allocation);

	return allocation ? ledger_counted(ledger, allocation->account) : NULL;
}

/* Valid until the next call. */
static struct mmt_error *find_process_totals(struct replay *replay, uint32_t process,
					     struct kept_process_totals **process_totals_ret)
{
	while (replay->process_totals.count <= process) {
		if (!vector_append(&replay->process_totals))
			return &error_no_memory;
	}
	*process_totals_ret = &replay->process_totals.items[process];
	return NULL;
}

/* Allocates only if a value is not zero: most spaces have none. */
static struct mmt_error *keep_facts(struct replay *replay, const struct space *space,
				    struct kept_process_totals *process_totals)
{
	static const struct space_facts none;
	struct space_counts counts = space_counts(space);
	struct space_facts facts = {.unknown_bytes = counts.unknown_bytes,
				    .reconciled_bytes = counts.reconciled_bytes,
				    .given_back_bytes = counts.given_back_bytes,
				    .ambiguous = counts.ambiguous,
				    .check = space_check_result(space)};
	struct space_facts *kept;

	process_totals->facts = &none;
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
static void add_unowned(const struct replay *replay, const struct space_interval *interval, struct held_bytes *held)
{
	const struct allocation *allocation = ledger_allocation(&replay->ledger, interval->allocation);
	uint64_t bytes = interval->end - interval->start;
	uint32_t class = classes_kind_class(allocation ? allocation->kind : replay_calls_kind(replay, interval));

	if (replay->classes && !(replay->classes >> class & 1))
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

/* Add each process's share of a space. */
static struct mmt_error *add_space(struct replay *replay, const struct process *owner, bool ended)
{
	space_each(interval, owner->space, true) {
		const struct account *account = process_totals_owner(replay, interval);
		uint64_t bytes = interval->end - interval->start;
		const struct allocation *allocation = ledger_allocation(&replay->ledger, interval->allocation);
		struct kept_process_totals *process_totals;
		const struct process *holder = owner;
		struct held_bytes **held;
		struct mmt_error *error;

		/* The process that mapped it holds it. If that process moved to its own space, as a child of vfork
		 * does, or if the mapping existed before, the owner of the space does. */
		if (account)
			holder = processes_at(replay->processes, account->process);
		else if (allocation)
			holder = processes_at(replay->processes, allocation->process);
		if (holder->space != owner->space)
			holder = owner;
		error = find_process_totals(replay, holder->index, &process_totals);
		if (error)
			return error;
		held = ended ? &process_totals->ended : &process_totals->now;
		if (!*held)
			*held = arena_alloc(&replay->arena, 1, sizeof(**held));
		if (!*held)
			return &error_no_memory;
		if (!account) {
			add_unowned(replay, interval, *held);
			continue;
		}
		(*held)->unfreed += bytes;
		*(interval->attributes.protection ? &(*held)->committed : &(*held)->reserved) += bytes;
	}
	return NULL;
}

static void note_size(struct followed_children *children, uint32_t mebibytes)
{
	if (mebibytes > children->largest_mebibytes) {
		children->second_mebibytes = children->largest_mebibytes;
		children->largest_mebibytes = mebibytes;
	} else if (mebibytes > children->second_mebibytes) {
		children->second_mebibytes = mebibytes;
	}
}

/* Links a list to the end of another. */
static void append(struct replay *replay, struct followed_children *children, uint32_t first, uint32_t last)
{
	*(children->last ? &replay->process_totals.items[children->last - 1].next : &children->first) = first;
	children->last = last ?: children->last;
}

/* Returns NULL when out of memory. */
static struct followed_children *children_of(struct replay *replay, uint32_t parent)
{
	struct followed_children *children = map_get_pointer(&replay->followed, parent);

	if (!children)
		children = arena_alloc(&replay->arena, 1, sizeof(*children));
	return children && map_put_pointer(&replay->followed, parent, children) ? children : NULL;
}

struct mmt_error *process_totals_note_end(struct replay *replay, const struct process *process)
{
	struct followed_children *own_children = map_get_pointer(&replay->followed, process->index), *children;
	uint64_t mebibytes = space_measure(process->space).data_bytes >> 20;
	struct kept_process_totals *own;
	struct mmt_error *error = find_process_totals(replay, process->index, &own);

	/* After a loss a process can seem to return after its end. */
	if (error || process->borrows_space || process->forked_from == process->index || own->listed || own->released)
		return error;
	children = children_of(replay, process->forked_from);
	if (!children)
		return &error_no_memory;
	own->listed = true;
	own->mebibytes = mebibytes < MEBIBYTES_MAX ? (uint32_t)mebibytes : MEBIBYTES_MAX;
	note_size(children, own->mebibytes);
	append(replay, children, process->index + 1, process->index + 1);
	if (own_children) {
		note_size(children, own_children->largest_mebibytes);
		note_size(children, own_children->second_mebibytes);
		append(replay, children, own_children->first, own_children->last);
		own_children->first = own_children->last = 0;
	}
	return NULL;
}

struct mmt_error *process_totals_release_followed(struct replay *replay, const struct process *parent, bool all)
{
	struct followed_children *children = map_get_pointer(&replay->followed, parent->index);
	uint64_t now_ns = replay->ledger.now_ns;
	uint32_t next = children ? children->first : 0;
	struct mmt_error *error = NULL;

	if (children)
		children->first = children->last = 0;
	while (!error && next) {
		struct process *process = processes_at(replay->processes, next - 1);
		struct kept_process_totals *own = &replay->process_totals.items[process->index];
		uint64_t largest = own->mebibytes == children->largest_mebibytes ? children->second_mebibytes
										  : children->largest_mebibytes;

		next = own->next;
		own->next = 0;
		/* After a loss a process can seem to return: its end lists it again. */
		own->listed = process->ended;
		if (!process->ended)
			continue;
		/* Nothing of its size was beside it, or nothing has followed it yet. */
		if (own->mebibytes > 2 * largest || (all && !own->followed)) {
			own->followed |= !all;
			append(replay, children, process->index + 1, process->index + 1);
			continue;
		}
		error = call_stacks_unwind_early(replay, process->index) ?: process_totals_release(replay, process);
		if (!error)
			processes_release_space(replay->processes, process);
	}
	replay->ledger.now_ns = now_ns;
	return error;
}

struct mmt_error *process_totals_release(struct replay *replay, const struct process *process)
{
	struct kept_process_totals *process_totals;
	struct mmt_error *error;

	if (process->borrows_space)
		return NULL;
	error = find_process_totals(replay, process->index, &process_totals);
	if (error)
		return error;
	space_finish(process->space);
	/* After a loss a process can seem to return after its end: keep the figures of its first end. */
	if (!process_totals->facts) {
		error = keep_facts(replay, process->space, process_totals) ?: add_space(replay, process, true);
	}
	if (!error)
		replay->process_totals.items[process->index].released = true;
	replay->ledger.now_ns = process->ended_ns;
	space_release(process->space);
	return error;
}

bool process_totals_are_released(const struct replay *replay, const struct process *process)
{
	return process->index < replay->process_totals.count && replay->process_totals.items[process->index].released;
}

struct mmt_error *process_totals_sum(struct replay *replay)
{
	const struct process *process = NULL;
	struct kept_process_totals *process_totals;
	struct mmt_error *error = NULL;

	while (!error && (process = processes_next(replay->processes, process))) {
		if (process->borrows_space)
			continue;
		error =
		    add_space(replay, process, false) ?: find_process_totals(replay, process->index, &process_totals);
		if (!error && !process_totals->facts)
			error = keep_facts(replay, process->space, process_totals);
	}
	return error;
}

struct process_totals process_totals_of(const struct replay *replay, const struct process *process)
{
	struct process_totals process_totals = {0};
	const struct kept_process_totals *kept;

	if (process->index >= replay->process_totals.count)
		return process_totals;
	kept = &replay->process_totals.items[process->index];
	if (kept->now)
		process_totals.now = *kept->now;
	if (kept->ended)
		process_totals.ended = *kept->ended;
	if (kept->facts)
		process_totals.facts = *kept->facts;
	return process_totals;
}
