// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/thread-state.h"

#include <string.h>

#define BYTES_KEPT_MAX 16384 /* larger buffers would add up in programs with many threads */

struct mmt_error *kept_sample_set_stack(struct kept_sample *kept, const struct event_stack *stack)
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
	return kept_sample_set_stack(kept, &event->call.stack);
}

struct event_stack event_stack_join(const struct event_stack *truth, const struct event_stack *dump)
{
	struct event_stack joined = *truth;

	if (!dump || dump->byte_count < truth->byte_count)
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

struct mmt_error *kept_sample_deepen(struct kept_sample *kept, const struct event_stack *dump)
{
	struct event_stack joined = event_stack_join(&kept->stack, dump);

	if (!vector_reserve_bytes((void **)&kept->bytes.items, &kept->bytes.capacity, joined.byte_count, 1))
		return &error_no_memory;
	if (joined.byte_count && joined.bytes == dump->bytes)
		memcpy(kept->bytes.items, joined.bytes, joined.byte_count);
	kept->stack = joined;
	kept->stack.bytes = joined.byte_count ? kept->bytes.items : NULL;
	return NULL;
}

void kept_sample_release(struct kept_sample *kept)
{
	kept->present = false;
	if (kept->bytes.capacity > BYTES_KEPT_MAX)
		vector_deinit(&kept->bytes);
}

static bool same_registers(const struct register_values *left, const struct register_values *right)
{
	for (unsigned i = 0; i < REGISTER_NUMBERS; i++) {
		if ((left->known & right->known) >> i & 1 && left->values[i] != right->values[i])
			return false;
	}
	return true;
}

/* As far as both were copied. */
static bool same_bytes(const struct event_stack *left, const struct event_stack *right)
{
	size_t count = left->byte_count < right->byte_count ? left->byte_count : right->byte_count;

	return !left->bytes || !right->bytes || !memcmp(left->bytes, right->bytes, count);
}

bool kept_sample_is_of_present(const struct kept_sample *kept, const struct event *event, const struct losses *lost)
{
	return kept->call == event->call.call && kept->result == event->call.result &&
	       (kept->cpu == event->cpu || kept->cpu < 0 || event->cpu < 0) &&
	       same_registers(&kept->stack.registers, &event->call.stack.registers) &&
	       same_bytes(&kept->stack, &event->call.stack) && !losses_since(lost, kept->cpu, kept->sequence);
}

void kept_sample_deinit(struct kept_sample *kept)
{
	vector_deinit(&kept->callchain);
	vector_deinit(&kept->bytes);
	kept->present = false;
}

void thread_state_deinit(struct thread_state *state)
{
	vector_deinit(&state->witnesses);
	kept_sample_deinit(&state->call);
	kept_sample_deinit(&state->dump);
	kept_sample_deinit(&state->enter);
}
