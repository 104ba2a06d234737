// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/unwind/unwind.h"

#include <elf.h>

#include "code/unwind/unwind-state.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, RIP };

const struct unwind_rules unwind_rules_x86_64 = {
    .elf_machine = EM_X86_64,
    .register_count = RIP + 1,
    .instruction_pointer = RIP,
    .stack_pointer = RSP,
    .frame_pointer = RBP,
    .preserved = 1 << RBX | 1 << RBP | 1 << R12 | 1 << R13 | 1 << R14 | 1 << R15,
    .address_mask = UINT64_MAX,
    .return_address_pushed = true,
    /* struct ucontext: flags, link and stack, then the general registers. */
    .signal_offset = 40,
    .signal_registers = {R8, R9, R10, R11, R12, R13, R14, R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP, RIP},
};

enum { X19 = 19, FRAME_POINTER = 29, LINK_REGISTER, STACK_POINTER, PROGRAM_COUNTER };

static const struct unwind_rules unwind_rules_aarch64 = {
    .elf_machine = EM_AARCH64,
    .register_count = PROGRAM_COUNTER + 1,
    .instruction_pointer = PROGRAM_COUNTER,
    .stack_pointer = STACK_POINTER,
    .frame_pointer = FRAME_POINTER,
    .link_register = LINK_REGISTER,
    .preserved = ((1ULL << (FRAME_POINTER + 1)) - 1) & ~((1ULL << X19) - 1),
    .address_mask = (1ULL << 48) - 1,
    /* struct rt_sigframe: siginfo, then ucontext. Its sigcontext is aligned to 16 bytes and begins with the fault
     * address. */
    .signal_offset = 128 + 176 + 8,
    .signal_registers = {0,  1,	 2,  3,	 4,  5,	 6,  7,	 8,  9,	 10, 11, 12, 13, 14, 15, 16,
			 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32},
};

const struct unwind_rules *unwind_rules_find(uint16_t elf_machine)
{
	static const struct unwind_rules *const all[] = {&unwind_rules_x86_64, &unwind_rules_aarch64};
	const struct unwind_rules *const *found =
	    array_find(rules, all, sizeof(all) / sizeof(*all), (*rules)->elf_machine == elf_machine);

	return found ? *found : NULL;
}

/* Maximum stack use of code that never returns. */
#define ENTRY_WORDS 16

/* Initial value of a register. */
static struct unwind_value unwind_register(const struct unwind_input *input, unsigned number)
{
	bool known = input->registers->known >> number & 1;

	return (struct unwind_value){.value = known ? input->registers->values[number] : 0,
				     .source = UNWIND_READ_REGISTER + number,
				     .state = known ? UNWIND_VALUE_KNOWN : UNWIND_VALUE_MISSING};
}

/* False: there are too many frames. */
static bool push_frame(struct unwind_result *result, const struct unwind_frame *frame)
{
	if (result->frame_count == LIMIT_UNWIND_FRAMES)
		return false;
	result->frames[result->frame_count++] = *frame;
	return true;
}

static enum code_kind find_place(const struct unwind_state *state, uint64_t address, bool is_return_address,
				 struct code_place *place_ret)
{
	*place_ret = (struct code_place){0};
	return state->callbacks->find(state->callbacks->context, address, is_return_address, place_ret);
}

/* As struct code_place has it, or else by the slow callback. */
static enum code_special_function find_special_function(const struct unwind_state *state,
							const struct code_place *place, uint64_t address,
							bool is_return_address)
{
	const struct unwind_callbacks *callbacks = state->callbacks;

	return place->special_function == CODE_SPECIAL_FUNCTION_NONE && callbacks->find_special_function
		   ? callbacks->find_special_function(callbacks->context, address, is_return_address)
		   : place->special_function;
}

int unwind_follows_call(const struct unwind_state *state, uint64_t return_address)
{
	const struct unwind_callbacks *callbacks = state->callbacks;

	return callbacks->follows_call ? callbacks->follows_call(callbacks->context, return_address) : -1;
}

void unwind_enter_frame(struct unwind_state *state, uint64_t address, uint64_t slot, enum unwind_origin origin)
{
	state->address = address;
	state->is_return_address = true;
	state->doubtful = false;
	state->stack_pointer_is_bound = false;
	state->origin = (uint8_t)origin;
	state->slot = slot;
}

void unwind_enter_caller(struct unwind_state *state, const struct unwind_value *caller, uint64_t address, uint64_t slot,
			 enum unwind_origin origin)
{
	memcpy(state->registers, caller, sizeof(state->registers));
	unwind_enter_frame(state, address, slot, origin);
}

/* For the first frame, or one interrupted by a signal, without a frame of its own: use the word at the stack pointer if
 * it is the return address of a call. */
static enum unwind_step step_by_stack_pointer(struct unwind_state *state)
{
	const struct unwind_rules *rules = state->rules;
	struct code_place caller_place;
	enum code_kind kind;
	uint64_t place, address;

	if (!unwind_use_pointer(state, state->registers[rules->stack_pointer], &place) ||
	    !unwind_use_address(state, unwind_load(state, place), &address) || !address)
		return UNWIND_STEP_NO_DATA;
	kind = find_place(state, address, true, &caller_place);
	if (kind == CODE_NONE || unwind_follows_call(state, address) < (kind == CODE_OTHER ? -1 : 1) ||
	    unwind_follows_call(state, address) == 0)
		return UNWIND_STEP_NO_DATA;
	state->registers[rules->stack_pointer] = unwind_derived_value(place + UNWIND_WORD);
	unwind_enter_frame(state, address, place, UNWIND_BY_STACK_POINTER);
	return UNWIND_STEP_DONE;
}

static enum unwind_step step_by_frame_pointer(struct unwind_state *state)
{
	const struct unwind_rules *rules = state->rules;
	struct unwind_value caller[UNWIND_REGISTERS] = {0};
	struct unwind_value frame_pointer = state->registers[rules->frame_pointer];
	struct unwind_value saved, return_address;
	uint64_t frame, stack_pointer, slot, address, outer;
	struct code_place place;

	if (!unwind_use_pointer(state, frame_pointer, &frame))
		return unwind_failed_value(state, frame_pointer);
	if (!unwind_use_pointer(state, state->registers[rules->stack_pointer], &stack_pointer) ||
	    frame < stack_pointer || frame & (UNWIND_WORD - 1u))
		return UNWIND_STEP_NO_DATA;
	slot = frame + UNWIND_WORD;
	return_address = unwind_load(state, slot);
	if (!unwind_use_address(state, return_address, &address)) {
		state->wanted = slot;
		return UNWIND_STEP_MISSING;
	}
	if (!address || find_place(state, address, true, &place) == CODE_NONE)
		return UNWIND_STEP_NO_DATA;
	saved = unwind_load(state, frame);
	/* The frame pointers of code without CFI only grow, or end with 0. */
	if (!place.row && (unwind_use_pointer(state, saved, &outer) ? outer <= frame
								    : saved.state != UNWIND_VALUE_KNOWN || saved.value))
		return UNWIND_STEP_NO_DATA;
	caller[rules->frame_pointer] = saved;
	caller[rules->stack_pointer] = unwind_derived_value(frame + 2 * UNWIND_WORD);
	unwind_enter_caller(state, caller, address, slot, UNWIND_BY_FRAME_POINTER);
	state->doubtful = state->no_frame_pointer || unwind_follows_call(state, address) == 0;
	/* A frame record may be anywhere in its frame. */
	state->stack_pointer_is_bound = !rules->return_address_pushed;
	return UNWIND_STEP_DONE;
}

/* A first frame without CFI and without a frame record: the caller's address is in the link register, and the frame
 * pointer points to the caller's record. If the function has a record, the link register equals the one in the record,
 * or belongs to a call that the function made. */
static enum unwind_step step_by_link_register(struct unwind_state *state)
{
	const struct unwind_rules *rules = state->rules;
	uint64_t frame, address, recorded;

	if (!unwind_use_address(state, state->registers[rules->link_register], &address) || !address ||
	    unwind_follows_call(state, address) != 1)
		return UNWIND_STEP_NO_DATA;
	if (unwind_use_pointer(state, state->registers[rules->frame_pointer], &frame) &&
	    unwind_use_address(state, unwind_load(state, frame + UNWIND_WORD), &recorded) && recorded == address)
		return UNWIND_STEP_NO_DATA;
	state->registers[rules->link_register] = (struct unwind_value){0};
	unwind_enter_frame(state, address, 0, UNWIND_BY_LINK_REGISTER);
	state->stack_pointer_is_bound = state->doubtful = true;
	return UNWIND_STEP_DONE;
}

/* Code that never returns, because it ends the thread after its callee returns, has no instruction that shows where its
 * return address is. If the first plausible word on the stack leads to the entry of a thread, that word is the return
 * address. */
static enum unwind_step step_to_entry(struct unwind_state *state)
{
	const struct unwind_rules *rules = state->rules;
	struct unwind_value caller[UNWIND_REGISTERS] = {0};
	struct code_place code;
	uint64_t place, address;

	if (find_place(state, state->address, true, &code) != CODE_NATIVE ||
	    !unwind_use_pointer(state, state->registers[rules->stack_pointer], &place))
		return UNWIND_STEP_NO_DATA;
	for (unsigned i = 0; i < ENTRY_WORDS; i++, place += UNWIND_WORD) {
		if (!unwind_use_address(state, unwind_load(state, place), &address))
			return UNWIND_STEP_NO_DATA;
		if (unwind_follows_call(state, address) != 1)
			continue;
		find_place(state, address, true, &code);
		if (find_special_function(state, &code, address, true) != CODE_SPECIAL_FUNCTION_ENTRY)
			return UNWIND_STEP_NO_DATA;
		caller[rules->stack_pointer] = unwind_derived_value(place + UNWIND_WORD);
		unwind_enter_caller(state, caller, address, place, UNWIND_BY_SPECIAL_FUNCTION);
		return UNWIND_STEP_DONE;
	}
	return UNWIND_STEP_NO_DATA;
}

static enum unwind_step step_without_cfi(struct unwind_state *state)
{
	enum unwind_step step;

	if (!state->is_return_address) {
		step =
		    state->rules->return_address_pushed ? step_by_stack_pointer(state) : step_by_link_register(state);
		if (step == UNWIND_STEP_DONE)
			return step;
	}
	step = step_by_frame_pointer(state);
	return step == UNWIND_STEP_NO_DATA && state->is_return_address && state->rules->return_address_pushed
		   ? step_to_entry(state)
		   : step;
}

/* CPython calls through generated trampolines; newer versions set up a frame pointer in them. */
static enum unwind_step step_by_python_trampoline(struct unwind_state *state)
{
	const struct unwind_rules *rules = state->rules;
	struct unwind_value return_address;
	uint64_t stack_pointer, frame, slot, address;

	if (!unwind_use_pointer(state, state->registers[rules->stack_pointer], &stack_pointer))
		return unwind_failed_value(state, state->registers[rules->stack_pointer]);
	if (unwind_use_pointer(state, state->registers[rules->frame_pointer], &frame) && frame == stack_pointer)
		return step_by_frame_pointer(state);
	slot = stack_pointer + UNWIND_WORD;
	return_address = unwind_load(state, slot);
	if (!unwind_use_address(state, return_address, &address)) {
		state->wanted = slot;
		return UNWIND_STEP_MISSING;
	}
	state->registers[rules->stack_pointer] = unwind_derived_value(slot + UNWIND_WORD);
	unwind_enter_frame(state, address, slot, UNWIND_BY_SPECIAL_FUNCTION);
	state->doubtful = unwind_follows_call(state, address) == 0;
	return UNWIND_STEP_DONE;
}

static enum unwind_step step(struct unwind_state *state, const struct code_place *place)
{
	enum unwind_step last;

	switch (place->special_function) {
	case CODE_SPECIAL_FUNCTION_SIGNAL_RETURN:
		return unwind_step_by_signal_frame(state);
	case CODE_SPECIAL_FUNCTION_COROUTINE:
		return UNWIND_STEP_COROUTINE;
	case CODE_SPECIAL_FUNCTION_ENTRY:
		return UNWIND_STEP_ENTRY;
	case CODE_SPECIAL_FUNCTION_STACK_SWITCH:
		return UNWIND_STEP_OTHER_STACK;
	case CODE_SPECIAL_FUNCTION_PYTHON_TRAMPOLINE:
		if (state->rules->return_address_pushed)
			return step_by_python_trampoline(state);
		break;
	case CODE_SPECIAL_FUNCTION_NONE:
	case CODE_SPECIAL_FUNCTION_THREAD_START:
	case CODE_SPECIAL_FUNCTION_RETURN_PROBE:
		break;
	}
	if (!place->row)
		return step_without_cfi(state);
	state->rejected = 0;
	last = unwind_step_by_cfi(state, place->row);
	if (last == UNWIND_STEP_DONE || last == UNWIND_STEP_OTHER_STACK || !place->row->deduced ||
	    (last != UNWIND_STEP_NO_DATA && !place->row->unsure))
		return last;
	last = step_without_cfi(state);
	/* Two different candidates, neither confirmed. */
	if (last == UNWIND_STEP_DONE && state->origin == UNWIND_BY_FRAME_POINTER && place->row->unsure &&
	    state->rejected && state->rejected != state->address)
		state->doubtful = true;
	return last;
}

/* ---- how the stack ends ---- */

/* The kind of the last frame's function, by the slow callback. */
static enum code_special_function last_function(const struct unwind_state *state)
{
	const struct unwind_result *result = state->result;
	const struct unwind_frame *last = result->frame_count ? &result->frames[result->frame_count - 1] : NULL;

	return last ? find_special_function(state, &(struct code_place){0}, last->address, last->is_return_address)
		    : CODE_SPECIAL_FUNCTION_NONE;
}

/* A stack that cannot be continued may have reached the start function of its thread or coroutine. */
static enum mmt_stack_end recognise_end(const struct unwind_state *state, enum mmt_stack_end end)
{
	if (end != MMT_STACK_END_NO_UNWIND_DATA && end != MMT_STACK_END_INVALID)
		return end;
	switch (last_function(state)) {
	case CODE_SPECIAL_FUNCTION_ENTRY:
		return MMT_STACK_END_ENTRY;
	case CODE_SPECIAL_FUNCTION_COROUTINE:
		return MMT_STACK_END_COROUTINE;
	case CODE_SPECIAL_FUNCTION_STACK_SWITCH:
		return MMT_STACK_END_OTHER_STACK;
	default:
		return end;
	}
}

/* A stack that has reached the function that the entry of a thread calls is complete even if the dump or the callchain
 * ends there. */
static enum mmt_stack_end recognise_thread(const struct unwind_state *state)
{
	enum mmt_stack_end end = state->result->end;

	if ((end == MMT_STACK_END_DUMP_EXHAUSTED || end == MMT_STACK_END_CALLCHAIN) &&
	    last_function(state) == CODE_SPECIAL_FUNCTION_THREAD_START)
		return MMT_STACK_END_ENTRY;
	return end;
}

/* The kernel stops where the frame pointer chain ends, often in libc, a few frames before the entry function. Only that
 * function has no caller. */
static enum mmt_stack_end end_of_callchain(const struct unwind_state *state)
{
	const struct unwind_result *result = state->result;
	const struct unwind_frame *last;
	struct code_place place = {0};
	enum code_special_function special_function;

	if (!result->frame_count)
		return MMT_STACK_END_NOT_RECORDED;
	last = &result->frames[result->frame_count - 1];
	if (state->rules)
		find_place(state, last->address, last->is_return_address, &place);
	special_function = find_special_function(state, &place, last->address, last->is_return_address);
	if (special_function == CODE_SPECIAL_FUNCTION_ENTRY || special_function == CODE_SPECIAL_FUNCTION_THREAD_START ||
	    (place.row && cfi_row_is_outermost(place.row)))
		return MMT_STACK_END_ENTRY;
	return state->input->callchain_full ? MMT_STACK_END_DEPTH_LIMIT : MMT_STACK_END_CALLCHAIN;
}

static enum mmt_stack_end walk_stack(struct unwind_state *state)
{
	static const enum mmt_stack_end ends[] = {
	    [UNWIND_STEP_ENTRY] = MMT_STACK_END_ENTRY,
	    [UNWIND_STEP_COROUTINE] = MMT_STACK_END_COROUTINE,
	    [UNWIND_STEP_OTHER_STACK] = MMT_STACK_END_OTHER_STACK,
	    [UNWIND_STEP_MISSING] = MMT_STACK_END_DUMP_EXHAUSTED,
	    [UNWIND_STEP_INVALID] = MMT_STACK_END_INVALID,
	};
	enum unwind_step last;

	do {
		struct code_place place;
		enum code_kind kind = find_place(state, state->address, state->is_return_address, &place);
		struct unwind_frame frame = {.address = state->address,
					     .is_return_address = state->is_return_address,
					     .doubtful = state->doubtful,
					     .origin = state->origin};

		if (place.special_function == CODE_SPECIAL_FUNCTION_RETURN_PROBE)
			return MMT_STACK_END_RETURN_PROBE;
		/* Only the first frame is certain to have been executed. */
		if (kind == CODE_NONE && state->result->frame_count)
			return MMT_STACK_END_INVALID;
		/* These addresses were not pushed by a call. Their CFI may begin a byte earlier because of that. */
		if ((place.special_function == CODE_SPECIAL_FUNCTION_SIGNAL_RETURN &&
		     !(place.row && place.row->signal_frame)) ||
		    place.special_function == CODE_SPECIAL_FUNCTION_COROUTINE)
			frame.is_return_address = false;
		if (!push_frame(state->result, &frame))
			return MMT_STACK_END_DEPTH_LIMIT;
		if (state->base & (UNWIND_WORD - 1u))
			return MMT_STACK_END_INVALID;
		state->by_frame_pointer = place.row && place.row->cfa_kind == CFI_CFA_REGISTER &&
					  place.row->cfa_register == state->rules->frame_pointer;
		state->no_frame_pointer = place.frame_pointer == CODE_FRAME_POINTER_NONE;
		last = step(state, &place);
	} while (last == UNWIND_STEP_DONE);
	if (last != UNWIND_STEP_NO_DATA)
		return ends[last];
	return state->other_stack ? MMT_STACK_END_OTHER_STACK : MMT_STACK_END_NO_UNWIND_DATA;
}

/* The kernel builds its callchain by following frame pointers from the recorded register: it reads entry 1 one word
 * above the frame that the register points to, entry 2 one word above the frame whose address is saved there, and so
 * on. As long as those frames are in the stack dump, the address of every entry is known, and therefore also the entry
 * that follows our last frame. */

/* Where the callchain continues our frames. */
struct continuation {
	size_t next; /* index into the callchain */
	bool exact;  /* no frame can be missing in between */
};

/* Match by stack address; false: the addresses are unknown. A register that does not point into the stack is not a
 * frame pointer, and the kernel did not read a stack there. */
static bool continue_by_place(struct unwind_state *state, struct continuation *continuation_ret)
{
	const struct unwind_rules *rules = state->rules;
	const struct unwind_input *input = state->input;
	uint64_t first = state->wanted ? state->wanted : state->slot + 1;
	struct unwind_value frame_pointer = unwind_register(input, rules->frame_pointer);

	*continuation_ret = (struct continuation){.next = input->callchain_count};
	for (size_t i = 1; i < input->callchain_count; i++) {
		struct unwind_value word;
		uint64_t frame, place, address;

		if (!unwind_use_pointer(state, frame_pointer, &frame)) {
			struct unwind_value ours = unwind_look_at(state, state->registers[rules->frame_pointer]);
			bool known = frame_pointer.state == UNWIND_VALUE_KNOWN;

			/* The kernel follows frame pointers wherever they lead. If it left the dump with the frame
			 * pointer that we have at the end, it read this entry in that frame, which belongs to the last
			 * function or to one of its callers. */
			if (state->result->end == MMT_STACK_END_OTHER_STACK && known &&
			    ours.state == UNWIND_VALUE_KNOWN && ours.value == frame_pointer.value)
				*continuation_ret = (struct continuation){.next = i, .exact = state->by_frame_pointer};
			return known;
		}
		place = frame + UNWIND_WORD;
		word = unwind_load(state, place);
		if (unwind_use_address(state, word, &address) && address != input->callchain[i])
			return false;
		if (place >= first) {
			*continuation_ret = (struct continuation){.next = i, .exact = place == state->wanted};
			return true;
		}
		frame_pointer = unwind_load(state, frame);
	}
	return true;
}

/* Whether the function at `place` has a frame record, so that the kernel's callchain contains its return address. The
 * unwinder assumes that code without CFI has one. */
static bool keeps_frame_pointer(const struct unwind_state *state, const struct code_place *place)
{
	const struct cfi_row *row = place->row;

	if (place->frame_pointer != CODE_FRAME_POINTER_BY_ROW)
		return place->frame_pointer == CODE_FRAME_POINTER_KEPT;
	if (!row || row->deduced || !state->rules->return_address_pushed)
		return true;
	return (row->cfa_kind == CFI_CFA_REGISTER || row->cfa_kind == CFI_CFA_LOAD) && !row->cfa_addend &&
	       row->cfa_register == state->rules->frame_pointer;
}

/* Whether the entry after `address` in the callchain is its caller. If the function keeps no frame pointer, the kernel
 * found the address by chance, or through the frame of another function. */
static bool leads_to_caller(const struct unwind_state *state, uint64_t address)
{
	size_t frames = 0, entries = 0;
	struct code_place place;

	find_place(state, address, true, &place);
	if (!keeps_frame_pointer(state, &place))
		return false;
	/* A recursive function occurs several times with the same return address. */
	for (size_t i = 1; i < state->result->frame_count; i++)
		frames += state->result->frames[i].address == address;
	for (size_t i = 1; i < state->input->callchain_count; i++)
		entries += state->input->callchain[i] == address;
	return frames == 1 && entries == 1;
}

/* Match by equal return addresses, from our outermost frame inwards. */
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

/* The start function of a Go thread is a return target that no call pushed. */
static bool follows_no_call(const struct unwind_state *state, const struct code_place *place, uint64_t address)
{
	return unwind_follows_call(state, address) == 0 &&
	       find_special_function(state, place, address, true) != CODE_SPECIAL_FUNCTION_ENTRY;
}

/* Continue with the kernel's callchain after the frames from the dump, which ended with `result->end`. */
static void splice(struct unwind_state *state)
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

		/* Code that uses the frame pointer register for other data makes the kernel read words that are not
		 * return addresses. */
		if (!address || find_place(state, address, true, &place) == CODE_NONE)
			return;
		frame.doubtful = !exact || follows_no_call(state, &place, address);
		if (!push_frame(result, &frame)) {
			result->end = MMT_STACK_END_DEPTH_LIMIT;
			return;
		}
		result->spliced = true;
		exact = keeps_frame_pointer(state, &place);
		if (!exact && find_special_function(state, &place, address, true) == CODE_SPECIAL_FUNCTION_THREAD_START)
			break;
	}
	if (result->spliced)
		result->end = end_of_callchain(state);
}

/* Use only the callchain. */
static void use_callchain(struct unwind_state *state)
{
	const struct unwind_input *input = state->input;
	struct unwind_result *result = state->result;
	bool lost = false, starts_in_code = false; /* within the known code of the process */

	for (size_t i = 0; i < input->callchain_count; i++) {
		struct unwind_frame frame = {.address = input->callchain[i],
					     .is_return_address = i > 0,
					     .origin = i ? UNWIND_BY_CALLCHAIN : UNWIND_BY_REGISTERS};
		struct code_place place = {0};
		enum code_kind kind = CODE_OTHER;

		if (state->rules)
			kind = find_place(state, frame.address, frame.is_return_address, &place);
		if (!i)
			starts_in_code = state->rules && kind != CODE_NONE;
		frame.doubtful = i && (lost || follows_no_call(state, &(struct code_place){0}, frame.address) ||
				       (starts_in_code && kind == CODE_NONE));
		if (!push_frame(result, &frame)) {
			result->end = MMT_STACK_END_DEPTH_LIMIT;
			return;
		}
		/* The kernel skips the caller of a function without a frame pointer. */
		lost = place.frame_pointer == CODE_FRAME_POINTER_NONE;
	}
	result->end = end_of_callchain(state);
}

void unwind(const struct unwind_rules *rules, const struct unwind_input *input,
	    const struct unwind_callbacks *callbacks, struct unwind_result *result)
{
	struct unwind_state state = {.rules = rules, .input = input, .callbacks = callbacks, .result = result};
	bool have_registers = rules && input->registers && input->registers->known >> rules->instruction_pointer & 1 &&
			      input->registers->known >> rules->stack_pointer & 1;

	result->rules = rules;
	result->frame_count = result->read_count = 0;
	result->reads_overflow = result->spliced = false;
	result->end = MMT_STACK_END_NOT_RECORDED;
	if (input->callchain_count && (!have_registers || !input->stack_size)) {
		use_callchain(&state);
		/* A dump was requested, but is empty. */
		if (result->end == MMT_STACK_END_CALLCHAIN && have_registers && input->stack)
			result->end = MMT_STACK_END_DUMP_EXHAUSTED;
		result->end = recognise_thread(&state);
		return;
	}
	if (!rules || !input->registers || !(input->registers->known >> rules->instruction_pointer & 1))
		return;
	for (unsigned i = 0; i < UNWIND_REGISTERS; i++)
		state.registers[i] = unwind_register(input, i);
	state.address = input->registers->values[rules->instruction_pointer];
	state.base = input->registers->values[rules->stack_pointer];
	state.origin = UNWIND_BY_REGISTERS;
	result->end = recognise_end(&state, walk_stack(&state));
	/* The kernel's callchain may contain more frames. */
	if (result->end != MMT_STACK_END_ENTRY && result->end != MMT_STACK_END_COROUTINE &&
	    result->end != MMT_STACK_END_DEPTH_LIMIT && input->callchain_count > 1)
		splice(&state);
	result->end = recognise_thread(&state);
}
