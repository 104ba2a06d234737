// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/replay.h"

/* A call of a process whose code is not known yet. */
struct early_sample {
	struct kept_sample sample;
	struct early_sample *next; /* next sample of the same process; the list is circular */
};

bool lost_events_note(struct lost_events *lost, int32_t cpu, uint64_t sequence)
{
	lost->anywhere = sequence;
	if (cpu < 0 || cpu >= LIMIT_CPUS) {
		lost->everywhere = sequence;
		return true;
	}
	if (!vector_extend(&lost->latest, (size_t)cpu + 1))
		return false;
	lost->latest.items[cpu] = sequence;
	return true;
}

#define BYTES_KEPT_MAX 16384 /* free larger buffers: they would add up in programs with many threads */

static struct mmt_error *keep_stack(struct kept_sample *kept, const struct event_stack *stack)
{
	size_t callchain_count = stack->callchain ? stack->callchain_count : 0;
	size_t byte_count = stack->bytes ? stack->byte_count : 0;

	if (!vector_reserve_bytes((void **)&kept->callchain.items, &kept->callchain.capacity, callchain_count,
				  sizeof(uint64_t)) ||
	    !vector_reserve_bytes((void **)&kept->bytes.items, &kept->bytes.capacity, byte_count, 1))
		return &error_no_memory;
	if (callchain_count)
		memcpy(kept->callchain.items, stack->callchain, callchain_count * sizeof(uint64_t));
	if (byte_count)
		memcpy(kept->bytes.items, stack->bytes, byte_count);
	kept->stack = *stack;
	kept->stack.callchain = callchain_count ? kept->callchain.items : NULL;
	kept->stack.bytes = byte_count ? kept->bytes.items : NULL;
	return NULL;
}

struct mmt_error *kept_sample_set(struct kept_sample *kept, const struct event *event)
{
	kept->present = true;
	kept->cpu = event->cpu;
	kept->sequence = event->sequence;
	kept->call = event->call.call;
	kept->result = event->call.result;
	memcpy(kept->arguments, event->call.arguments, sizeof(kept->arguments));
	return keep_stack(kept, &event->call.stack);
}

/* Join the callchain of the syscall event with the registers and bytes of the dump, if that is larger. */
static struct event_stack join(const struct event_stack *syscall_event, const struct event_stack *dump)
{
	struct event_stack joined = *syscall_event;

	if (dump->byte_count < syscall_event->byte_count)
		return joined;
	joined.bytes = dump->bytes;
	joined.byte_count = dump->byte_count;
	joined.bytes_wanted = dump->bytes_wanted;
	for (unsigned i = 0; i < REGISTER_NUMBERS; i++) {
		if (dump->registers.known >> i & 1)
			joined.registers.values[i] = dump->registers.values[i];
	}
	joined.registers.known |= dump->registers.known;
	return joined;
}

/* Use the stack of another dump of the same call if it is larger. */
static struct mmt_error *extend(struct kept_sample *kept, const struct event_stack *dump)
{
	struct event_stack joined = join(&kept->stack, dump);

	if (!vector_reserve_bytes((void **)&kept->bytes.items, &kept->bytes.capacity, joined.byte_count, 1))
		return &error_no_memory;
	if (joined.byte_count && joined.bytes == dump->bytes)
		memcpy(kept->bytes.items, joined.bytes, joined.byte_count);
	kept->stack = joined;
	kept->stack.bytes = joined.byte_count ? kept->bytes.items : NULL;
	return NULL;
}

static void release(struct kept_sample *kept)
{
	kept->present = false;
	if (kept->bytes.capacity > BYTES_KEPT_MAX)
		vector_deinit(&kept->bytes);
}

bool kept_sample_is_of(const struct kept_sample *kept, const struct event *event, const struct lost_events *lost)
{
	const struct event_stack *left = &kept->stack, *right = &event->call.stack;
	size_t common = smaller_of(left->byte_count, right->byte_count);

	if (!kept->present || kept->call != event->call.call || kept->result != event->call.result ||
	    (kept->cpu != event->cpu && kept->cpu >= 0 && event->cpu >= 0))
		return false;
	for (unsigned i = 0; i < REGISTER_NUMBERS; i++) {
		if ((left->registers.known & right->registers.known) >> i & 1 &&
		    left->registers.values[i] != right->registers.values[i])
			return false;
	}
	if (left->bytes && right->bytes && memcmp(left->bytes, right->bytes, common) != 0)
		return false;
	/* Nor were records of that CPU (-1: any) lost since. */
	if (lost->anywhere <= kept->sequence)
		return true;
	if (kept->cpu < 0 || lost->everywhere > kept->sequence)
		return false;
	return (size_t)kept->cpu >= lost->latest.count || lost->latest.items[kept->cpu] <= kept->sequence;
}

void kept_sample_deinit(struct kept_sample *kept)
{
	vector_deinit(&kept->callchain);
	vector_deinit(&kept->bytes);
	kept->present = false;
}

static struct mmt_error *set_number(struct call_stacks *stacks, uint64_t call, uint32_t number)
{
	uint64_t chunk = (call - 1) / CALL_STACKS_CHUNK;

	if (!vector_extend(&stacks->chunks, chunk + 1))
		return &error_no_memory;
	if (!stacks->chunks.items[chunk])
		stacks->chunks.items[chunk] = calloc(CALL_STACKS_CHUNK, sizeof(**stacks->chunks.items));
	if (!stacks->chunks.items[chunk])
		return &error_no_memory;
	stacks->chunks.items[chunk][(call - 1) % CALL_STACKS_CHUNK] = number + 1;
	return NULL;
}

static struct mmt_error *unwind_call(struct replay *replay, const struct process *process, uint64_t call,
				     const struct event_stack *stack)
{
	uint32_t number;
	struct mmt_error *error = resolver_unwind(replay->code, process, stack, &number);

	return error ? error : set_number(&replay->stacks, call, number);
}

static void forget_early(struct call_stacks *stacks, uint32_t process)
{
	struct early_sample *last = map_get_pointer(&stacks->early_samples, process);
	struct early_sample *early = last ? last->next : NULL;

	map_remove(&stacks->early_samples, process);
	while (early) {
		struct early_sample *next = early == last ? NULL : early->next;

		stacks->early_bytes -= early->sample.stack.byte_count;
		kept_sample_deinit(&early->sample);
		free(early);
		stacks->early_count--;
		early = next;
	}
}

struct mmt_error *call_stacks_unwind_early(struct replay *replay, uint32_t process)
{
	const struct early_sample *last = map_get_pointer(&replay->stacks.early_samples, process);
	struct early_sample *early = last ? last->next : NULL, *first = early;
	struct mmt_error *error = NULL;

	if (!replay->finds_stacks)
		return NULL;
	while (!error && early) {
		error = unwind_call(replay, replay->processes->all.items[process], early->sample.number,
				    &early->sample.stack);
		early = early->next == first ? NULL : early->next;
	}
	if (first)
		forget_early(&replay->stacks, process);
	return error;
}

void call_stacks_deinit(struct call_stacks *stacks)
{
	map_each(process, &stacks->early_samples, true)
		forget_early(stacks, (uint32_t)process->key);
	map_deinit(&stacks->early_samples);
	vector_deinit_each(&stacks->chunks, item, free(*item));
	vector_deinit(&stacks->goes);
}

uint64_t call_stacks_settled(const struct replay *replay)
{
	uint64_t settled = replay->calls;

	for (size_t i = 0; i < replay->thread_states.count; i++) {
		const struct kept_sample *call = &replay->thread_states.items[i]->call;

		if (call->present && call->number <= settled)
			settled = call->number - 1;
	}
	map_each(process, &replay->stacks.early_samples, true) {
		const struct early_sample *last = process->pointer, *early = last;

		/* One that waited for its dump comes after later ones. */
		do {
			early = early->next;
			settled = early->sample.number <= settled ? early->sample.number - 1 : settled;
		} while (early != last);
	}
	return settled;
}

void call_stacks_forget(struct call_stacks *stacks, uint64_t call)
{
	for (size_t i = 0; i < stacks->chunks.count && (i + 1) * CALL_STACKS_CHUNK < call; i++) {
		free(stacks->chunks.items[i]);
		stacks->chunks.items[i] = NULL;
	}
}

/* Keep the stack while the code of the process is not known, unless too many wait for that. */
static struct mmt_error *unwind_or_keep(struct replay *replay, uint32_t index, uint64_t call,
					const struct event_stack *stack)
{
	const struct process *process = replay->processes->all.items[index];
	struct call_stacks *stacks = &replay->stacks;
	struct early_sample *early, *before;

	if (!replay->metadata->ours || replay->metadata->packed || space_is_described(process->space) ||
	    stacks->early_count >= LIMIT_EARLY_SAMPLES || stacks->early_bytes >= LIMIT_EARLY_BYTES)
		return unwind_call(replay, process, call, stack);
	/* Append to the circular list of its process; the map holds the last item. */
	early = calloc(1, sizeof(*early));
	before = map_get_pointer(&stacks->early_samples, index);
	if (!early || !map_put_pointer(&stacks->early_samples, index, early)) {
		free(early);
		return &error_no_memory;
	}
	early->next = before ? before->next : early;
	if (before)
		before->next = early;
	stacks->early_count++;
	stacks->early_bytes += stack->byte_count;
	early->sample.number = call;
	return keep_stack(&early->sample, stack);
}

static struct mmt_error *unwind_joined(struct replay *replay, uint32_t process, uint64_t call,
				       const struct event_stack *syscall_event, const struct event_stack *dump)
{
	const struct event_stack joined = join(syscall_event, dump);

	return unwind_or_keep(replay, process, call, &joined);
}

struct mmt_error *call_stacks_give_up(struct replay *replay, struct thread_state *state)
{
	struct kept_sample *call = &state->call;
	struct mmt_error *error;

	if (!call->present)
		return NULL;
	error = unwind_or_keep(replay, call->process, call->number, &call->stack);
	release(call);
	return error;
}

/* Keep the kernel's callchain of a call that is not unwound, without entries that are not in mapped code: without frame
 * pointers, the kernel's walk reads arbitrary words of memory. */
static struct mmt_error *keep_callchain(struct call_stacks *stacks, const struct space *space, uint64_t call,
					const struct event_stack *stack)
{
	CLEANUP(free) uint64_t *words = malloc((LIMIT_CALLCHAIN + 1) * sizeof(*words));
	uint32_t number;
	size_t count = 0;

	if (!words)
		return &error_no_memory;
	words[count++] = 0; /* no stack */
	for (size_t i = 0; i < stack->callchain_count && i < LIMIT_CALLCHAIN; i++) {
		const struct space_interval *interval = space_find(space, stack->callchain[i]);

		if (interval && interval->attributes.protection & PROT_EXEC)
			words[count++] = stack->callchain[i];
	}
	if (count == 1)
		return NULL;
	number = intern_put(stacks->callchains, words, count * sizeof(*words));
	return number == INTERN_NONE ? &error_no_memory : set_number(stacks, call, number);
}

struct mmt_error *call_stacks_applied(struct replay *replay, struct thread_state *state, const struct process *process,
				      const struct event *event, bool needed)
{
	const struct event_stack *stack = &event->call.stack;
	bool dumped = kept_sample_is_of(&state->dump, event, &replay->lost_calls);
	uint64_t call = replay->calls;
	struct mmt_error *error = NULL;

	if (replay->metadata->packed) {
		error = stack->resolved ? unwind_call(replay, process, call, stack) : NULL;
	} else if (!needed) {
		if (replay->stacks.callchains && stack->callchain && call_stacks_counts(event))
			error = keep_callchain(&replay->stacks, process->space, call, stack);
	} else if (dumped) {
		error = unwind_joined(replay, process->index, call, stack, &state->dump.stack);
	} else if (!replay->has_dumps || !call_has_stack(event->call.call)) {
		error = unwind_or_keep(replay, process->index, call, stack);
	} else {
		state->call.process = process->index;
		state->call.number = call;
		error = kept_sample_set(&state->call, event);
	}
	release(&state->dump);
	return error;
}

struct mmt_error *call_stacks_fault(struct replay *replay, const struct process *process, const struct event *event)
{
	const struct event_stack *stack = &event->call.stack;

	if (replay->metadata->packed)
		return stack->resolved ? unwind_call(replay, process, replay->calls, stack) : NULL;
	return unwind_or_keep(replay, process->index, replay->calls, stack);
}

struct mmt_error *call_stacks_dump(struct replay *replay, struct thread_state *state, const struct event *event)
{
	bool is_large = replay->metadata->attributes[event->attribute].role == ROLE_LARGE_DUMP;
	const struct event_stack *dump = &event->call.stack;
	struct kept_sample *call = &state->call;
	struct mmt_error *error;

	if (kept_sample_is_of(call, event, &replay->lost_dumps)) {
		/* If a call has two dumps, use the larger one, which may arrive later. */
		if (replay->large_dumps && !is_large)
			return extend(call, dump);
		error = unwind_joined(replay, call->process, call->number, &call->stack, dump);
		release(call);
		return error;
	}
	if (kept_sample_is_of(&state->dump, event, &replay->lost_calls) &&
	    state->dump.stack.byte_count >= dump->byte_count)
		return NULL;
	return kept_sample_set(&state->dump, event);
}
