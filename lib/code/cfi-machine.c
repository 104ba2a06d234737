// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/cfi-machine.h"

#include <dwarf.h>
#include <string.h>

#define SAVED_STATES_MAX 128
#define EXPRESSIONS_MAX 0xffff

#define OPERAND_MASK 0x3f /* of the instructions that carry one themselves */

void cfi_machine_deinit(struct cfi_machine *machine)
{
	vector_deinit(&machine->saved);
}

static void set_rule(struct cfi_machine *machine, uint64_t number, enum cfi_rule_kind kind, uint8_t reg, int64_t offset)
{
	/* Vector registers and the like: nothing is ever found by them. */
	if (number >= CFI_REGISTERS)
		return;
	machine->state.specified |= 1ULL << number;
	if (offset != (int32_t)offset)
		kind = CFI_RULE_UNDEFINED;
	machine->state.rules[number] =
	    (struct cfi_rule){.number = (uint8_t)number, .kind = (uint8_t)kind, .reg = reg, .offset = (int32_t)offset};
}

static void set_scaled_rule(struct cfi_machine *machine, uint64_t number, enum cfi_rule_kind kind, int64_t factor)
{
	set_rule(machine, number, kind, 0, (int64_t)((uint64_t)factor * (uint64_t)machine->cie->data_alignment));
}

static void restore_rule(struct cfi_machine *machine, uint64_t number)
{
	if (number >= CFI_REGISTERS)
		return;
	machine->state.specified &= ~(1ULL << number);
	machine->state.specified |= machine->initial.specified & 1ULL << number;
	machine->state.rules[number] = machine->initial.rules[number];
}

/* "register plus offset" at the cursor; false: another operation. */
static bool read_register_offset(struct bytes *bytes, uint8_t *register_ret, int64_t *offset_ret)
{
	uint8_t operation = bytes_u8(bytes);
	uint64_t number = (uint64_t)operation - DW_OP_breg0;

	if (operation == DW_OP_bregx)
		number = bytes_uleb128(bytes);
	else if (operation < DW_OP_breg0 || operation > DW_OP_breg31)
		return false;
	*offset_ret = bytes_sleb128(bytes);
	*register_ret = (uint8_t)number;
	return bytes_ok(bytes) && number < CFI_REGISTERS && *offset_ret == (int32_t)*offset_ret;
}

/* Index of an expression, as a rule's offset. */
static int64_t keep_expression(struct cfi_machine *machine, const uint8_t *bytes, size_t size)
{
	uint32_t index = intern_find(machine->expressions, bytes, size);

	if (index == INTERN_NONE && machine->expressions->count < EXPRESSIONS_MAX)
		index = intern_put(machine->expressions, bytes, size);
	machine->no_memory |= index == INTERN_NONE;
	return index;
}

/* What linkers write for the PLT: rsp + 8 + ((rip & 15) >= N) << 3; N, or 0 when it is not that. */
static uint8_t plt_threshold(const uint8_t *bytes, size_t size)
{
	static const uint8_t before[] = {DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and};
	static const uint8_t after[] = {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};
	uint8_t literal;

	if (size != sizeof(before) + 1 + sizeof(after) || memcmp(bytes, before, sizeof(before)) ||
	    memcmp(bytes + sizeof(before) + 1, after, sizeof(after)))
		return 0;
	literal = bytes[sizeof(before)];
	return literal > DW_OP_lit0 && literal <= DW_OP_lit15 ? (uint8_t)(literal - DW_OP_lit0) : 0;
}

static void set_cfa_expression(struct cfi_machine *machine, const uint8_t *bytes, size_t size)
{
	struct cfi_state *state = &machine->state;
	struct bytes cursor = bytes_over(bytes, size);
	uint8_t base = 0;
	int64_t offset = 0;
	bool simple = read_register_offset(&cursor, &base, &offset);

	state->cfa_from_expression = true;
	state->plt_threshold = plt_threshold(bytes, size);
	state->cfa_register = base;
	state->cfa_offset = offset;
	if (state->plt_threshold) {
		state->cfa_kind = CFI_CFA_PLT;
	} else if (simple && !bytes_left(&cursor)) {
		state->cfa_kind = CFI_CFA_REGISTER;
	} else if (simple && bytes_left(&cursor) == 1 && *cursor.position == DW_OP_deref) {
		state->cfa_kind = CFI_CFA_LOAD;
	} else {
		state->cfa_kind = CFI_CFA_EXPRESSION;
		state->cfa_register = 0;
		state->cfa_offset = keep_expression(machine, bytes, size);
	}
}

static void set_expression(struct cfi_machine *machine, uint64_t number, enum cfi_rule_kind kind, struct bytes *from)
{
	struct bytes expression = bytes_sub(from, bytes_uleb128(from));
	struct bytes cursor = expression;
	uint8_t base;
	int64_t offset;

	if (!bytes_ok(from))
		return;
	if (kind == CFI_RULE_EXPRESSION && read_register_offset(&cursor, &base, &offset) && !bytes_left(&cursor))
		set_rule(machine, number, CFI_RULE_AT_REGISTER, base, offset);
	else
		set_rule(machine, number, kind, 0,
			 keep_expression(machine, expression.position, bytes_left(&expression)));
}

static void set_cfa(struct bytes *from, struct cfi_machine *machine, uint64_t number, int64_t offset)
{
	if (number >= CFI_REGISTERS)
		bytes_fail(from, "register of the CFA");
	machine->state.cfa_kind = CFI_CFA_REGISTER;
	machine->state.cfa_from_expression = false;
	machine->state.cfa_register = (uint8_t)number;
	machine->state.cfa_offset = offset;
}

/* The instructions that change one half of "register plus offset". */
static void change_cfa(struct bytes *from, struct cfi_machine *machine, bool of_register, int64_t value)
{
	if (machine->state.cfa_from_expression)
		bytes_fail(from, "CFA is an expression");
	else if (of_register)
		set_cfa(from, machine, (uint64_t)value, machine->state.cfa_offset);
	else
		machine->state.cfa_offset = value;
}

static void save_state(struct bytes *from, struct cfi_machine *machine)
{
	if (machine->saved.count == SAVED_STATES_MAX)
		bytes_fail(from, "too many saved states");
	else if (!vector_push(&machine->saved, machine->state))
		machine->no_memory = true;
}

static void restore_state(struct bytes *from, struct cfi_machine *machine)
{
	if (!machine->saved.count) {
		bytes_fail(from, "no saved state");
		return;
	}
	machine->state = machine->saved.items[--machine->saved.count];
}

static int64_t scaled(const struct cfi_machine *machine, int64_t factor)
{
	return (int64_t)((uint64_t)factor * (uint64_t)machine->cie->data_alignment);
}

/* An instruction about the CFA; false: it is none. */
static bool run_cfa_instruction(struct cfi_machine *machine, uint8_t instruction, struct bytes *from)
{
	uint64_t number;
	struct bytes expression;

	switch (instruction) {
	case DW_CFA_def_cfa:
		number = bytes_uleb128(from);
		set_cfa(from, machine, number, (int64_t)bytes_uleb128(from));
		return true;
	case DW_CFA_def_cfa_sf:
		number = bytes_uleb128(from);
		set_cfa(from, machine, number, scaled(machine, bytes_sleb128(from)));
		return true;
	case DW_CFA_def_cfa_register:
		change_cfa(from, machine, true, (int64_t)bytes_uleb128(from));
		return true;
	case DW_CFA_def_cfa_offset:
		change_cfa(from, machine, false, (int64_t)bytes_uleb128(from));
		return true;
	case DW_CFA_def_cfa_offset_sf:
		change_cfa(from, machine, false, scaled(machine, bytes_sleb128(from)));
		return true;
	case DW_CFA_def_cfa_expression:
		expression = bytes_sub(from, bytes_uleb128(from));
		if (bytes_ok(from))
			set_cfa_expression(machine, expression.position, bytes_left(&expression));
		return true;
	}
	return false;
}

/* An instruction about the register `number`; false: it is none. */
static bool run_register_instruction(struct cfi_machine *machine, uint8_t instruction, uint64_t number,
				     struct bytes *from)
{
	uint64_t other;

	switch (instruction) {
	case DW_CFA_offset_extended:
		set_scaled_rule(machine, number, CFI_RULE_OFFSET, (int64_t)bytes_uleb128(from));
		return true;
	case DW_CFA_offset_extended_sf:
		set_scaled_rule(machine, number, CFI_RULE_OFFSET, bytes_sleb128(from));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		set_scaled_rule(machine, number, CFI_RULE_OFFSET, (int64_t)(0 - bytes_uleb128(from)));
		return true;
	case DW_CFA_val_offset:
		set_scaled_rule(machine, number, CFI_RULE_VALUE, (int64_t)bytes_uleb128(from));
		return true;
	case DW_CFA_val_offset_sf:
		set_scaled_rule(machine, number, CFI_RULE_VALUE, bytes_sleb128(from));
		return true;
	case DW_CFA_restore_extended:
		restore_rule(machine, number);
		return true;
	case DW_CFA_undefined:
		set_rule(machine, number, CFI_RULE_UNDEFINED, 0, 0);
		return true;
	case DW_CFA_same_value:
		set_rule(machine, number, CFI_RULE_SAME, 0, 0);
		return true;
	case DW_CFA_register:
		other = bytes_uleb128(from);
		set_rule(machine, number, other < CFI_REGISTERS ? CFI_RULE_REGISTER : CFI_RULE_UNDEFINED,
			 other < CFI_REGISTERS ? (uint8_t)other : 0, 0);
		return true;
	case DW_CFA_expression:
		set_expression(machine, number, CFI_RULE_EXPRESSION, from);
		return true;
	case DW_CFA_val_expression:
		set_expression(machine, number, CFI_RULE_VALUE_EXPRESSION, from);
		return true;
	}
	return false;
}

static void run_instruction(struct cfi_machine *machine, uint8_t instruction, struct bytes *from)
{
	if (run_cfa_instruction(machine, instruction, from))
		return;
	switch (instruction) {
	case DW_CFA_nop:
	case DW_CFA_GNU_window_save: /* aarch64: whether the return address is signed; the signature is taken off */
		return;
	case DW_CFA_remember_state:
		save_state(from, machine);
		return;
	case DW_CFA_restore_state:
		restore_state(from, machine);
		return;
	case DW_CFA_GNU_args_size:
		(void)bytes_uleb128(from);
		return;
	}
	if (!run_register_instruction(machine, instruction, bytes_uleb128(from), from))
		bytes_fail(from, "unknown instruction");
}

/* The three kinds whose first byte holds an operand, except the one that advances; false: another instruction. */
static bool run_packed_instruction(struct cfi_machine *machine, uint8_t instruction, struct bytes *from)
{
	if ((instruction & ~OPERAND_MASK) == DW_CFA_offset)
		set_scaled_rule(machine, instruction & OPERAND_MASK, CFI_RULE_OFFSET, (int64_t)bytes_uleb128(from));
	else if ((instruction & ~OPERAND_MASK) == DW_CFA_restore)
		restore_rule(machine, instruction & OPERAND_MASK);
	else
		return false;
	return true;
}

/* Where an instruction that changes the location leads; false: another instruction. */
static bool read_location(const struct cfi_machine *machine, uint8_t instruction, struct bytes *from,
			  uint64_t *location_ret)
{
	uint64_t factor;

	switch (instruction) {
	case DW_CFA_set_loc:
		*location_ret = cfi_entries_pointer(machine->section, from, machine->cie->pointer_encoding);
		return true;
	case DW_CFA_advance_loc1:
		factor = bytes_u8(from);
		break;
	case DW_CFA_advance_loc2:
		factor = bytes_u16(from);
		break;
	case DW_CFA_advance_loc4:
		factor = bytes_u32(from);
		break;
	case DW_CFA_MIPS_advance_loc8:
		factor = bytes_u64(from);
		break;
	default:
		if ((instruction & ~OPERAND_MASK) != DW_CFA_advance_loc)
			return false;
		factor = instruction & OPERAND_MASK;
	}
	if (__builtin_mul_overflow(factor, machine->cie->code_alignment, location_ret) ||
	    __builtin_add_overflow(*location_ret, machine->location, location_ret))
		bytes_fail(from, "advance beyond all addresses");
	return true;
}

enum cfi_machine_step cfi_machine_run(struct cfi_machine *machine, struct bytes *instructions, uint64_t *next_ret)
{
	while (bytes_left(instructions)) {
		uint8_t instruction = bytes_u8(instructions);
		uint64_t location;

		if (read_location(machine, instruction, instructions, &location)) {
			if (bytes_ok(instructions) && location < machine->location)
				bytes_fail(instructions, "goes back");
			if (bytes_ok(instructions) && location != machine->location) {
				*next_ret = location;
				return CFI_MACHINE_ROW;
			}
		} else if (!run_packed_instruction(machine, instruction, instructions)) {
			run_instruction(machine, instruction, instructions);
		}
		if (machine->no_memory)
			return CFI_MACHINE_FAILED;
	}
	return bytes_ok(instructions) ? CFI_MACHINE_END : CFI_MACHINE_FAILED;
}

bool cfi_machine_run_cie(struct cfi_machine *machine)
{
	struct bytes instructions = machine->cie->instructions;
	uint64_t ignored;

	machine->state = machine->initial = (struct cfi_state){0};
	machine->saved.count = 0;
	machine->location = 0;
	if (cfi_machine_run(machine, &instructions, &ignored) != CFI_MACHINE_END)
		return false;
	machine->initial = machine->state;
	return true;
}
