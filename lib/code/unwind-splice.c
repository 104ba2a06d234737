// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kernel made its callchain by walking frame pointers from the recorded register: entry 1 was read one word above
 * the frame that the register points to, entry 2 one word above the frame whose address is saved there, and so on. As
 * long as those frames are in the copied stack, the place of every entry is known, and with it which entry follows the
 * last frame of ours.
 */
#include "code/unwind-state.h"

/* Where the callchain continues our frames. */
struct continuation {
	size_t next; /* index into the callchain */
	bool exact;  /* no frame can be missing in between */
};

/*
 * The kernel follows frame pointers wherever they lead. Where it left the copied stack with the frame pointer that we
 * have at the end, entry `next` is what it read in that frame, which is the last function's own or that of one of its
 * callers.
 */
static void continue_on_other_stack(struct unwind_state *state, struct unwind_value frame_pointer, size_t next,
				    struct continuation *continuation_ret)
{
	struct unwind_value ours = unwind_look_at(state, unwind_current(state, state->rules->frame_pointer));
	bool same = ours.state == UNWIND_VALUE_KNOWN && frame_pointer.state == UNWIND_VALUE_KNOWN &&
		    ours.value == frame_pointer.value;

	*continuation_ret = (struct continuation){.next = state->input->callchain_count};
	if (state->result->end == UNWIND_END_OTHER_STACK && same)
		*continuation_ret = (struct continuation){.next = next, .exact = state->by_frame_pointer};
}

/*
 * By places on the stack; false: the places are not known. A register that does not point into the stack is no frame
 * pointer, and what the kernel read there is no stack.
 */
static bool continue_by_place(struct unwind_state *state, struct continuation *continuation_ret)
{
	const struct unwind_rules *rules = state->rules;
	const struct unwind_input *input = state->input;
	int64_t to_return_address = rules->saved_return_address, to_saved = rules->saved_frame_pointer;
	uint64_t first = state->wanted ? state->wanted : state->slot + 1;
	struct unwind_value frame_pointer = unwind_register(input, rules->frame_pointer);

	for (size_t i = 1; i < input->callchain_count; i++) {
		struct unwind_value word;
		uint64_t frame, place, address;

		if (!unwind_use_pointer(state, frame_pointer, &frame)) {
			continue_on_other_stack(state, frame_pointer, i, continuation_ret);
			return frame_pointer.state == UNWIND_VALUE_KNOWN;
		}
		place = frame + (uint64_t)to_return_address;
		word = unwind_load(state, place);
		if (unwind_use_address(state, word, &address) && address != input->callchain[i])
			return false;
		if (place >= first) {
			*continuation_ret = (struct continuation){.next = i, .exact = place == state->wanted};
			return true;
		}
		frame_pointer = unwind_load(state, frame + (uint64_t)to_saved);
	}
	*continuation_ret = (struct continuation){.next = input->callchain_count};
	return true;
}

/*
 * Whether the function at `place` has a frame record, so that the kernel's callchain contains its return address. Code
 * without call frame information is assumed to have one, as everywhere in the unwinder.
 */
static bool keeps_frame_pointer(const struct unwind_state *state, const struct code_place *place)
{
	const struct cfi_row *row = place->row;

	if (!row || row->deduced || place->frame_pointer || !state->rules->return_address_pushed)
		return true;
	return (row->cfa_kind == CFI_CFA_REGISTER || row->cfa_kind == CFI_CFA_LOAD) &&
	       row->cfa_register == state->rules->frame_pointer;
}

/* A recursive function has the same return address several times. */
static bool is_only_one(const struct unwind_state *state, uint64_t address)
{
	size_t frames = 0, entries = 0;

	for (size_t i = 1; i < state->result->frame_count; i++)
		frames += state->result->frames[i].address == address;
	for (size_t i = 1; i < state->input->callchain_count; i++)
		entries += state->input->callchain[i] == address;
	return frames == 1 && entries == 1;
}

/*
 * Whether the entry after `address` in the callchain is its caller. If the function keeps no frame pointer, the kernel
 * found its address by chance, or through the frame of another function.
 */
static bool leads_to_caller(const struct unwind_state *state, uint64_t address)
{
	struct code_place place = {0};

	unwind_find(state, address, true, &place);
	return keeps_frame_pointer(state, &place) && is_only_one(state, address);
}

/* By equal return addresses, from our outermost frame inwards. */
static void continue_by_address(struct unwind_state *state, struct continuation *continuation_ret)
{
	const struct unwind_input *input = state->input;
	const struct unwind_result *result = state->result;

	for (size_t frame = result->frame_count; frame-- > 1;) {
		for (size_t i = 1; i < input->callchain_count; i++) {
			bool is_last = frame == result->frame_count - 1;

			if (result->frames[frame].address != input->callchain[i])
				continue;
			*continuation_ret = (struct continuation){
			    .next = i + 1, .exact = is_last && leads_to_caller(state, input->callchain[i])};
			return;
		}
	}
	*continuation_ret = (struct continuation){.next = 1};
}

static enum code_stub find_stub(const struct unwind_state *state, const struct code_place *place, uint64_t address,
				bool is_return_address)
{
	const struct unwind_callbacks *callbacks = state->callbacks;

	return place->stub == CODE_STUB_NONE && callbacks->find_stub
		   ? callbacks->find_stub(callbacks->context, address, is_return_address)
		   : place->stub;
}

/* What begins a thread of Go is returned to, and nothing has called it. */
static bool follows_no_call(const struct unwind_state *state, const struct code_place *place, uint64_t address)
{
	return unwind_follows_call(state, address) == 0 && find_stub(state, place, address, true) != CODE_STUB_ENTRY;
}

/*
 * How a stack ends whose last frames are the callchain's. The kernel stops where the frame pointer is no more, often in
 * the C library, a few frames before the function that nothing has called: only that one is the entry.
 */
static enum unwind_end end_of_callchain(const struct unwind_state *state)
{
	const struct unwind_result *result = state->result;
	const struct unwind_frame *last = &result->frames[result->frame_count - 1];
	struct code_place place = {0};
	enum code_stub stub;

	if (state->rules)
		unwind_find(state, last->address, last->is_return_address, &place);
	stub = find_stub(state, &place, last->address, last->is_return_address);
	if (stub == CODE_STUB_ENTRY || stub == CODE_STUB_THREAD_START || (place.row && cfi_row_is_outermost(place.row)))
		return UNWIND_END_ENTRY;
	return state->input->callchain_full ? UNWIND_END_DEPTH_LIMIT : UNWIND_END_CALLCHAIN;
}

void unwind_splice(struct unwind_state *state)
{
	const struct unwind_input *input = state->input;
	struct unwind_result *result = state->result;
	struct continuation continuation;
	bool exact;

	if (!continue_by_place(state, &continuation))
		continue_by_address(state, &continuation);
	exact = continuation.exact;
	for (size_t i = continuation.next; i < input->callchain_count; i++) {
		uint64_t address = input->callchain[i];
		struct code_place place;
		struct unwind_frame frame = {
		    .address = address, .is_return_address = true, .origin = UNWIND_BY_CALLCHAIN};

		/* Code that uses the frame pointer for other things makes the kernel read words that are no return
		 * addresses. */
		if (!address || unwind_find(state, address, true, &place) == CODE_NONE)
			return;
		frame.doubtful = !exact || follows_no_call(state, &place, address);
		if (!unwind_push(result, &frame)) {
			result->end = UNWIND_END_DEPTH_LIMIT;
			return;
		}
		result->spliced = true;
		exact = keeps_frame_pointer(state, &place);
		if (!exact && find_stub(state, &place, address, true) == CODE_STUB_THREAD_START)
			break;
	}
	if (result->spliced)
		result->end = end_of_callchain(state);
}

/* Not where the code of the process is, as far as that is known. */
static bool leads_nowhere(struct unwind_state *state, size_t index)
{
	const uint64_t *callchain = state->input->callchain;
	struct code_place place;

	return state->rules && unwind_find(state, callchain[0], false, &place) != CODE_NONE &&
	       unwind_find(state, callchain[index], true, &place) == CODE_NONE;
}

void unwind_callchain(struct unwind_state *state)
{
	const struct unwind_input *input = state->input;
	struct unwind_result *result = state->result;

	for (size_t i = 0; i < input->callchain_count; i++) {
		struct unwind_frame frame = {.address = input->callchain[i],
					     .is_return_address = i > 0,
					     .origin = i ? UNWIND_BY_CALLCHAIN : UNWIND_BY_REGISTERS};

		frame.doubtful =
		    i && (follows_no_call(state, &(struct code_place){0}, frame.address) || leads_nowhere(state, i));
		if (!unwind_push(result, &frame)) {
			result->end = UNWIND_END_DEPTH_LIMIT;
			return;
		}
	}
	result->end = end_of_callchain(state);
}
