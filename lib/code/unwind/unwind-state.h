/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the parts of the unwinder: the rules of an architecture, and the state between two frames.
 *
 * Values remember where they came from, and a read is recorded only when the value is used. A saved register that is
 * never used is therefore not a dependency of the result. Function after function saves and restores most registers
 * without using them; their words are never read.
 */
#pragma once

#include "code/unwind/unwind.h"

/* Bytes of a word; also the alignment of the stack pointer. A frame record, to which the frame pointer points, consists
 * of the caller's frame pointer and the return address. */
#define UNWIND_WORD 8

/* Porting: fill one in for the new architecture (see unwind.c). */
struct unwind_rules {
	uint16_t elf_machine;
	uint8_t register_count;					   /* the tracked registers are 0 to this, exclusive */
	uint8_t instruction_pointer, stack_pointer, frame_pointer; /* DWARF numbers */
	uint64_t preserved;					   /* mask of the callee-saved registers */
	/* A call pushes the return address; false: it sets the link register. */
	bool return_address_pushed;
	uint8_t link_register;
	uint64_t address_mask; /* removes the signature that a return address may carry */
	/* At the signal return trampoline: the registers that are saved from this offset of the stack pointer on, a
	 * word each. */
	uint16_t signal_offset;
	uint8_t signal_registers[CFI_REGISTERS];
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
	UNWIND_VALUE_MISSING, /* is at `source`, which was not recorded */
	UNWIND_VALUE_KNOWN,
	UNWIND_VALUE_SAVED, /* is at `source`, not read yet */
};

#define UNWIND_SOURCE_DERIVED UINT32_MAX /* computed from values already recorded as reads */

struct unwind_value {
	uint64_t value;
	uint32_t source; /* as in struct unwind_read.offset */
	uint8_t state;	 /* enum unwind_value_state */
};

struct unwind_state {
	const struct unwind_rules *rules;
	const struct unwind_input *input;
	const struct unwind_callbacks *callbacks;
	struct unwind_result *result;
	uint64_t base; /* the recorded stack pointer: address of the first byte of the dump */
	struct unwind_value registers[UNWIND_REGISTERS];
	uint64_t address;
	uint64_t rejected; /* return address that an analyzed row gave and that was rejected; 0: none */
	bool is_return_address, doubtful;
	uint8_t origin;
	uint64_t slot;		     /* address that `address` was read from; 0: not the stack */
	uint64_t wanted;	     /* address of the next return address if that was not recorded, else 0 */
	bool other_stack;	     /* the registers belong to a stack that was not dumped */
	bool stack_pointer_is_bound; /* the stack pointer is only a lower bound */
	bool by_frame_pointer;	     /* the caller of the last frame is found by frame pointer */
	bool no_frame_pointer;	     /* the last frame is in code that does not keep one */
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

/* The word saved at `address`, without reading it. */
static inline struct unwind_value unwind_saved_value(const struct unwind_state *state, uint64_t address)
{
	uint64_t offset = address - state->base;

	return offset < UNWIND_STACK_REACH
		   ? (struct unwind_value){.source = (uint32_t)offset, .state = UNWIND_VALUE_SAVED}
		   : (struct unwind_value){.source = UNWIND_SOURCE_DERIVED, .state = UNWIND_VALUE_MISSING};
}

/* Read a saved value; its state becomes missing if it is outside the dump. */
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

/* Read a value that is needed; false: it is unknown. */
static inline bool unwind_use(struct unwind_state *state, struct unwind_value *value)
{
	*value = unwind_look_at(state, *value);
	if (value->state == UNWIND_VALUE_MISSING)
		unwind_write_down(state, value->source, UNWIND_READ_MISSING, 0);
	return value->state == UNWIND_VALUE_KNOWN;
}

/* Use a value as a pointer into the stack; false: it is unknown or not a stack pointer. */
static inline bool unwind_use_pointer(struct unwind_state *state, struct unwind_value value, uint64_t *pointer_ret)
{
	uint64_t offset;

	if (!unwind_use(state, &value))
		return false;
	offset = value.value - state->base;
	if (offset >= UNWIND_STACK_REACH) {
		unwind_write_down(state, value.source, UNWIND_READ_OUTSIDE, value.value);
		return false;
	}
	unwind_write_down(state, value.source, UNWIND_READ_RELATIVE, offset);
	*pointer_ret = value.value;
	return true;
}

/* Use a value as a code address; false: it is unknown. */
static inline bool unwind_use_address(struct unwind_state *state, struct unwind_value value, uint64_t *address_ret)
{
	/* A value computed from the stack pointer is not a code address, and would differ from stack to stack. */
	if (!unwind_use(state, &value) || value.source == UNWIND_SOURCE_DERIVED)
		return false;
	unwind_write_down(state, value.source, UNWIND_READ_ADDRESS, value.value);
	*address_ret = value.value & state->rules->address_mask;
	return true;
}

/* Why a value could not be used. */
static inline enum unwind_step unwind_failed_value(const struct unwind_state *state, struct unwind_value value)
{
	return unwind_look_at(state, value).state == UNWIND_VALUE_MISSING ? UNWIND_STEP_MISSING : UNWIND_STEP_NO_DATA;
}

/* Move to the next frame; `registers` already describe it. */
void unwind_enter_frame(struct unwind_state *state, uint64_t address, uint64_t slot, enum unwind_origin origin);
/* The same with new registers, which replace the old ones. */
void unwind_enter_caller(struct unwind_state *state, const struct unwind_value *caller, uint64_t address, uint64_t slot,
			 enum unwind_origin origin);

/* Step with a row, or through the frame that the kernel builds for a signal handler: unwind-cfi.c. */
enum unwind_step unwind_step_by_cfi(struct unwind_state *state, const struct cfi_row *row);
enum unwind_step unwind_step_by_signal_frame(struct unwind_state *state);

int unwind_follows_call(const struct unwind_state *state, uint64_t return_address);
