/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the parts of the unwinder share: rules of an architecture, and the state between two frames.
 *
 * Values remember where they came from; a read is written down only when the value is used. So a saved register that
 * nothing depends on is no part of what the result depends on. Most are saved and restored by function after function
 * without ever being used: their words are not read at all.
 */
#ifndef CODE_UNWIND_UNWIND_STATE_H
#define CODE_UNWIND_UNWIND_STATE_H

#include <string.h>

#include "code/unwind/unwind.h"

/* To port: fill one in (see unwind-x86-64.c). */
struct unwind_rules {
	uint16_t elf_machine;
	uint8_t register_count;					   /* those that are followed: 0 to this, exclusive */
	uint8_t instruction_pointer, stack_pointer, frame_pointer; /* DWARF numbers */
	uint64_t preserved; /* mask of the registers that a function leaves as they were */
	uint8_t word;	    /* bytes, 8; also the alignment of the stack pointer */
	/* Call puts the return address at the stack pointer; else into the link register. */
	bool return_address_pushed;
	uint8_t link_register;
	uint64_t address_mask; /* without the signature that a return address may carry */
	/* From the frame pointer, in bytes. */
	int8_t saved_frame_pointer, saved_return_address, frame_end;
	/* Offset of each register from the stack pointer at the trampoline that a signal handler returns to. */
	uint16_t signal_registers[CFI_REGISTERS];
};

enum unwind_step {
	UNWIND_STEP_DONE,
	UNWIND_STEP_ENTRY,
	UNWIND_STEP_MISSING, /* needs a word that was not recorded */
	UNWIND_STEP_NO_DATA,
	UNWIND_STEP_INVALID,
	UNWIND_STEP_OTHER_STACK,
	UNWIND_STEP_COROUTINE,
};

enum unwind_value_state {
	UNWIND_VALUE_LOST,
	UNWIND_VALUE_MISSING, /* would be at `source`, which was not recorded */
	UNWIND_VALUE_KNOWN,
	UNWIND_VALUE_SAVED, /* is at `source`, and has not been looked at */
};

#define UNWIND_SOURCE_DERIVED UINT32_MAX /* computed from values written down already */

struct unwind_value {
	uint64_t value;
	uint32_t source; /* as struct unwind_read.offset */
	uint8_t state;	 /* enum unwind_value_state */
};

/* A frame that was left by a plain row, which has not been applied to the registers. */
struct unwind_left {
	const struct cfi_row *row;
	uint64_t cfa;
};

/*
 * Most steps need the stack pointer alone. So plain rows are only noted, and applied to a register when its value is
 * asked for: by unwind_current().
 */
struct unwind_state {
	const struct unwind_rules *rules;
	const struct unwind_input *input;
	const struct unwind_callbacks *callbacks;
	struct unwind_result *result;
	uint64_t base; /* the stack pointer recorded: address of the copy's first byte */
	struct unwind_value registers[UNWIND_REGISTERS]; /* the stack pointer's is current, see unwind_current() */
	uint16_t applied[UNWIND_REGISTERS];		 /* how many of those left have been, to this register */
	struct unwind_left *left;			 /* UNWIND_FRAMES_MAX */
	uint16_t left_count;
	uint64_t fetched; /* what of the copy is on its way to the processor: offset */
	uint64_t address;
	uint64_t rejected; /* what a deduced row gave, and was not believed; 0: nothing */
	bool is_return_address, doubtful;
	uint8_t origin;
	uint64_t slot;		     /* where `address` was read, 0: not from the stack */
	uint64_t wanted;	     /* where the next return address is, when that was not recorded; else 0 */
	bool other_stack;	     /* the registers are those of a stack that was not copied */
	bool stack_pointer_is_bound; /* the stack pointer is only known to be at least that */
	bool by_frame_pointer;	     /* the last frame's caller is found by the frame pointer */
};

static inline void unwind_write_down(struct unwind_state *state, uint32_t offset, enum unwind_read_kind kind,
				     uint64_t value)
{
	struct unwind_result *result = state->result;

	if (offset == UNWIND_SOURCE_DERIVED)
		return;
	if (result->read_count == UNWIND_READS_MAX) {
		result->reads_overflow = true;
		return;
	}
	result->reads[result->read_count++] =
	    (struct unwind_read){.offset = offset, .kind = (uint8_t)kind, .value = value};
}

static inline struct unwind_value unwind_derived_value(uint64_t value)
{
	return (struct unwind_value){.value = value, .source = UNWIND_SOURCE_DERIVED, .state = UNWIND_VALUE_KNOWN};
}

/*
 * A recording's bytes come from far: waiting for one word after the other takes ten times as long as all the rest, and
 * less far ahead than this, twice as long.
 */
#define UNWIND_FETCH_AHEAD 4096
#define UNWIND_CACHE_LINE 64

/* Ask for the copy from offset `from` to so many bytes behind `place`; where it got to. */
static inline uint64_t unwind_fetch(const struct unwind_input *input, uint64_t from, uint64_t place)
{
	size_t end = input->stack_size;

	if (place >= end)
		return from;
	if (end - place > UNWIND_FETCH_AHEAD)
		end = place + UNWIND_FETCH_AHEAD;
	for (; from < end; from += UNWIND_CACHE_LINE)
		__builtin_prefetch(input->stack + from);
	return from;
}

/* What is saved at `address`. */
static inline struct unwind_value unwind_saved_value(const struct unwind_state *state, uint64_t address)
{
	uint64_t offset = address - state->base;

	return offset < UNWIND_STACK_REACH
		   ? (struct unwind_value){.source = (uint32_t)offset, .state = UNWIND_VALUE_SAVED}
		   : (struct unwind_value){.source = UNWIND_SOURCE_DERIVED, .state = UNWIND_VALUE_MISSING};
}

/* Look at a value that has only been saved; missing when it is no part of the copy. */
static inline struct unwind_value unwind_look_at(const struct unwind_state *state, struct unwind_value value)
{
	const struct unwind_input *input = state->input;

	if (value.state != UNWIND_VALUE_SAVED)
		return value;
	value.state = UNWIND_VALUE_MISSING;
	if ((size_t)value.source + sizeof(value.value) <= input->stack_size) {
		memcpy(&value.value, input->stack + value.source, sizeof(value.value));
		value.state = UNWIND_VALUE_KNOWN;
	}
	return value;
}

/* The word at `address`. */
static inline struct unwind_value unwind_load(const struct unwind_state *state, uint64_t address)
{
	return unwind_look_at(state, unwind_saved_value(state, address));
}

/* Use a value as a pointer into the stack; false when it is not known or none. */
static inline bool unwind_use_pointer(struct unwind_state *state, struct unwind_value value, uint64_t *pointer_ret)
{
	uint64_t offset;

	value = unwind_look_at(state, value);
	offset = value.value - state->base;
	if (value.state == UNWIND_VALUE_LOST)
		return false;
	if (value.state == UNWIND_VALUE_MISSING) {
		unwind_write_down(state, value.source, UNWIND_READ_MISSING, 0);
		return false;
	}
	if (offset >= UNWIND_STACK_REACH) {
		unwind_write_down(state, value.source, UNWIND_READ_OUTSIDE, value.value);
		return false;
	}
	unwind_write_down(state, value.source, UNWIND_READ_RELATIVE, offset);
	*pointer_ret = value.value;
	return true;
}

/* Use a value as a code address; false when it is not known. */
static inline bool unwind_use_address(struct unwind_state *state, struct unwind_value value, uint64_t *address_ret)
{
	value = unwind_look_at(state, value);
	/* What was computed from the stack pointer is no code address, and would differ from stack to stack. */
	if (value.state == UNWIND_VALUE_LOST ||
	    (value.state == UNWIND_VALUE_KNOWN && value.source == UNWIND_SOURCE_DERIVED))
		return false;
	if (value.state == UNWIND_VALUE_MISSING) {
		unwind_write_down(state, value.source, UNWIND_READ_MISSING, 0);
		return false;
	}
	unwind_write_down(state, value.source, UNWIND_READ_ADDRESS, value.value);
	*address_ret = value.value & state->rules->address_mask;
	return true;
}

/* Why a value could not be used. */
static inline enum unwind_step unwind_failed_value(const struct unwind_state *state, struct unwind_value value)
{
	return unwind_look_at(state, value).state == UNWIND_VALUE_MISSING ? UNWIND_STEP_MISSING : UNWIND_STEP_NO_DATA;
}

/* Value of a register in the frame that the walk has come to. */
struct unwind_value unwind_current(struct unwind_state *state, unsigned number);

/* Make all in `registers` current. */
void unwind_catch_up(struct unwind_state *state);

/* Initial value of a register. */
struct unwind_value unwind_register(const struct unwind_input *input, unsigned number);

/* A frame has been left: the registers are those of the next one. */
void unwind_enter_frame(struct unwind_state *state, uint64_t address, uint64_t slot, enum unwind_origin origin);
/* The same with new registers; those that were are forgotten. */
void unwind_enter_caller(struct unwind_state *state, const struct unwind_value *caller, uint64_t address, uint64_t slot,
			 enum unwind_origin origin);

/* By a row, and through the frame that the kernel makes for a signal handler: unwind-cfi.c. */
enum unwind_step unwind_step_by_cfi(struct unwind_state *state, const struct cfi_row *row);
enum unwind_step unwind_step_by_signal_frame(struct unwind_state *state);

/* False when there is no more room. */
bool unwind_push(struct unwind_result *result, const struct unwind_frame *frame);

enum code_kind unwind_find(const struct unwind_state *state, uint64_t address, bool is_return_address,
			   struct code_place *place_ret);
int unwind_follows_call(const struct unwind_state *state, uint64_t return_address);

/* Continue with the kernel's callchain where the stack's frames ended by `result->end`. */
void unwind_splice(struct unwind_state *state);

/* Nothing but the callchain. */
void unwind_callchain(struct unwind_state *state);

#endif
