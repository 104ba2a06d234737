// SPDX-License-Identifier: LGPL-2.1-or-later
/* What one returned call does: to the model, by its arguments, and to the ledger, by its stack. replay.c calls it. */
#include "analysis/replay/replay.h"

#include <errno.h>

#include "analysis/replay/memory-classes.h"

static bool has_failed(const struct event *event)
{
	return call_has_failed(event->call.call, event->call.arguments, event->call.result);
}

static struct mmt_error *count_failure(struct replay *replay, const struct process *process, const struct event *event,
				       uint32_t stack)
{
	enum call call = event->call.call;
	struct failure *failure = &replay->failure;
	struct mmt_error *error;

	*failure = (struct failure){.stack = stack,
				    .process = process->index,
				    .call = call_describe(call)->counter,
				    .error = call_errno(call, event->call.result),
				    .count = 1,
				    .asked_bytes = call_bytes_asked(call, event->call.arguments, event->call.result),
				    .first_ns = event->time_ns,
				    .last_ns = event->time_ns};
	error = refused_calls_describe(replay, process, event, &failure->refused);
	return error ? error : ledger_fail(&replay->ledger, failure);
}

uint32_t replay_calls_kind(const struct replay *replay, const struct space_interval *interval)
{
	enum mmt_class class =
	    classes_of_interval(interval, resolver_path_name(replay->code, interval->attributes.path));

	return classes_kind(class, interval);
}

/* The commit number must exist before the call makes the bytes accessible, so that equal neighbours merge. */
static struct mmt_error *find_commit(struct replay *replay, const struct thread_state *state, const struct event *event,
				     const struct process *process, uint32_t stack, uint32_t *commit_ret)
{
	uint64_t start = event->call.arguments[0], end = start + event->call.arguments[1];
	const struct space_interval *reserved, *first;
	const struct allocation *allocation;
	struct space_interval accessible;
	uint32_t kind;

	*commit_ret = COMMIT_WITH_ALLOCATION;
	if (call_describe(event->call.call)->effect != CALL_PROTECTS)
		return NULL;
	first = space_find(process->space, start);
	if (first && first->attributes.protection && !first->attributes.shared &&
	    !(first->attributes.protection & PROT_WRITE) && (event->call.arguments[2] & PROT_WRITE) &&
	    !has_failed(event))
		replay->made_writable_bytes =
		    saturating_add(replay->made_writable_bytes, event->call.arguments[1], UINT64_MAX);
	if (!(event->call.arguments[2] & (PROT_READ | PROT_WRITE | PROT_EXEC)))
		return NULL;
	/* A call that failed has an effect only if an MMAP2 record shows it or if it failed with ENOMEM at a hole. */
	if (has_failed(event) && event->call.result != -ENOMEM && !state->mmap2_records.count)
		return NULL;
	/* The first interval that the call makes accessible. */
	reserved = space_next(process->space, start);
	while (reserved && reserved->start < end && reserved->attributes.protection)
		reserved = space_next(process->space, reserved->end);
	if (!reserved || reserved->start >= end)
		return NULL;
	/* The bytes keep their kind, unless they become code. */
	accessible = *reserved;
	accessible.attributes.protection = (uint32_t)event->call.arguments[2] & (PROT_READ | PROT_WRITE | PROT_EXEC);
	kind = replay_calls_kind(replay, &accessible);
	allocation = ledger_allocation(&replay->ledger, reserved->allocation);
	if (allocation && classes_kind_class(kind) != MMT_CLASS_JIT)
		kind = allocation->kind;
	return ledger_commit(&replay->ledger, processes_holder(replay->processes, process), state->number, kind, stack,
			     commit_ret);
}

/* Anonymous memory that the call made executable becomes code; the rest of its mapping does not. */
static struct mmt_error *note_code(struct replay *replay, struct space *space, const struct event *event)
{
	uint64_t start = event->call.arguments[0], end = start + event->call.arguments[1], position = start;
	const struct space_interval *interval;

	if (call_describe(event->call.call)->effect != CALL_PROTECTS || !(event->call.arguments[2] & PROT_EXEC))
		return NULL;
	while ((interval = space_next(space, position)) && interval->start < end) {
		uint64_t code_start = interval->start, code_end = interval->end;
		uint32_t kind = replay_calls_kind(replay, interval), allocation = interval->allocation, part;
		uint64_t uncommitted = interval->commit == COMMIT_WITH_ALLOCATION ? 0 : code_end - code_start;
		struct mmt_error *error;

		position = code_end;
		if (!ledger_allocation(&replay->ledger, allocation) || classes_kind_class(kind) != MMT_CLASS_JIT)
			continue;
		ledger_uncommitted(&replay->ledger, allocation, -uncommitted, false);
		error = ledger_split(&replay->ledger, allocation, kind, code_end - code_start, &part);
		ledger_uncommitted(&replay->ledger, part, uncommitted, false);
		error = error ?: space_set_allocation(space, code_start, code_end, part);
		if (error)
			return error;
	}
	return NULL;
}

/* In the first pass no stack is known. */
struct mmt_error *replay_calls_stack(struct replay *replay, const struct event *event, uint32_t *stack_ret)
{
	uint32_t number = call_stacks_counts(event) ? call_stacks_get(&replay->stacks, replay->calls) : 0;
	struct mmt_error *error = NULL;

	*stack_ret = replay->no_stack;
	if (replay->finds_stacks)
		return NULL;
	if (replay->metadata->packed && event->call.stack.resolved)
		error = resolver_unwind(replay->code, NULL, &event->call.stack, stack_ret);
	else if (number)
		*stack_ret = number - 1;
	if (*stack_ret >= replay->stacks_max && *stack_ret != replay->no_stack) {
		*stack_ret = replay->no_stack;
		replay->stacks_left_out++;
	}
	return error;
}

static struct mmt_error *apply_call(struct replay *replay, struct thread_state *state, const struct event *event)
{
	struct process *process = replay->processes->all.items[replay->threads.items[state->number]->process];
	const uint64_t *arguments = event->call.arguments;
	struct space_call call = {
	    .kind = event->call.call,
	    .arguments = {arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]},
	    .result = event->call.result,
	    .time_ns = event->time_ns,
	    .thread = event->tid,
	    .allocation = ALLOCATION_BEFORE,
	    .mmap2_records = state->mmap2_records.items,
	    .mmap2_count = state->mmap2_records.count};
	bool needs_stack = has_failed(event);
	uint32_t stack;
	struct mmt_error *error = replay_calls_stack(replay, event, &stack);

	if (!error && has_failed(event))
		error = count_failure(replay, process, event, stack);
	error = error ?: find_commit(replay, state, event, process, stack, &call.commit);
	if (!error && call_has_stack(event->call.call))
		error = ledger_open(&replay->ledger, processes_holder(replay->processes, process), state->number, stack,
				    &call.allocation);
	if (error)
		return error;
	replay->applying_thread = state->number;
	replay->applying_stack = stack;
	replay->applying = true;
	error = space_apply(process->space, &call);
	replay->applying = false;
	replay_mmap2_forget(replay, state);
	error = error ?: note_code(replay, process->space, event);
	needs_stack |= ledger_close(&replay->ledger, call.allocation) || call.commit != COMMIT_WITH_ALLOCATION;
	if (error)
		return error;
	if (!touched_pages_apply(replay, process, event))
		return &error_no_memory;
	if (replay->watch.call)
		error = replay->watch.call(replay->watch.context, replay, process, event);
	if (!error && replay->watch.moved && call.kind == CALL_MREMAP && call.result > 0 &&
	    (uint64_t)call.result != arguments[0])
		error = replay->watch.moved(replay->watch.pages_context, replay, process, event);
	if (!error && replay->finds_stacks)
		error = call_stacks_applied(replay, state, process, event, needs_stack);
	return error;
}

/* Whether the entry is that of the call that returned. If events were lost, it may be that of an earlier call; the
 * arguments that the exit still has in registers are then usually different. */
static bool is_entry_of(const struct replay *replay, const struct kept_sample *enter, const struct event *event)
{
	const struct architecture *architecture = replay->metadata->architecture;
	const struct register_values *registers = &event->call.stack.registers;
	unsigned used = call_arguments_used(event->call.call, enter->arguments);

	if (!enter->present || enter->call != event->call.call)
		return false;
	for (unsigned i = architecture->first_argument_lost ? 1 : 0; used >> i & 1; i++) {
		unsigned number = architecture->argument_registers[i];

		if ((registers->known >> number & 1) && registers->values[number] != enter->arguments[i])
			return false;
	}
	return true;
}

struct mmt_error *replay_calls_exit(struct replay *replay, struct thread_state *state, struct event *event)
{
	const struct process *process = replay->processes->all.items[replay->threads.items[state->number]->process];
	bool in_window = !replay->window.windowed || event->time_ns >= replay->window.from_ns;
	struct mmt_error *error = call_stacks_give_up(replay, state);
	struct kept_sample *enter = &state->enter;

	if (error)
		return error;
	if (in_window && notes_count(&replay->notes, process->pid))
		replay->call_counts[call_describe(event->call.call)->counter]++;
	/* The exit has the result, the entry the arguments. In plain perf's recordings the entry usually has the better
	 * stack. */
	if (!event->call.has_arguments) {
		bool joined = is_entry_of(replay, enter, event);

		enter->present = false;
		if (!joined) {
			replay->calls_without_entry++;
			return NULL;
		}
		memcpy(event->call.arguments, enter->arguments, sizeof(enter->arguments));
		event->call.has_arguments = true;
		if (enter->stack.bytes ||
		    (enter->stack.callchain_count && enter->stack.callchain_count >= event->call.stack.callchain_count))
			event->call.stack = enter->stack;
	}
	if (space_call_is_faked(event->call.call, event->call.arguments, event->call.result)) {
		replay->faked_calls++;
		return NULL;
	}
	return apply_call(replay, state, event);
}
