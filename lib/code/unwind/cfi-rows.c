// SPDX-License-Identifier: LGPL-2.1-or-later
/* Computes rows from the call frame information that cfi.c finds in a module. */
#include "code/unwind/cfi.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/vector.h"

/* Executes the instructions of one FDE, row by row, with the address at which each row begins. The offset of a rule
 * with an expression is where its length is in the section. */

struct cfi_state {
	uint8_t cfa_kind, cfa_register, plt_threshold;
	bool cfa_from_expression;
	int64_t cfa_offset;
	uint64_t specified; /* mask of the registers with a rule */
	struct cfi_rule rules[CFI_REGISTERS];
};

struct cfi_machine {
	const struct cfi_section *section;
	const struct cfi_cie *cie;
	struct cfi_state state;	  /* the current row */
	struct cfi_state initial; /* state after the instructions of the CIE */
	uint64_t location;	  /* start address of the current row */
	struct cfi_state saved[LIMIT_CFI_SAVED_STATES];
	unsigned saved_count;
};

enum cfi_machine_step {
	CFI_MACHINE_ROW,    /* the current row ends at *next_ret */
	CFI_MACHINE_END,    /* the current row is the last one */
	CFI_MACHINE_FAILED, /* invalid instruction: the current row and all rows after it are unknown */
};

#define OPERAND_MASK 0x3f /* operands inside the instruction byte */

static void set_rule(struct cfi_machine *machine, uint64_t number, enum cfi_rule_kind kind, uint8_t reg, int64_t offset)
{
	/* Vector registers and the like: the unwinder never needs them. */
	if (number >= CFI_REGISTERS)
		return;
	machine->state.specified |= 1ULL << number;
	if (offset != (int32_t)offset)
		kind = CFI_RULE_UNDEFINED;
	machine->state.rules[number] =
	    (struct cfi_rule){.number = (uint8_t)number, .kind = (uint8_t)kind, .reg = reg, .offset = (int32_t)offset};
}

static void restore_rule(struct cfi_machine *machine, uint64_t number)
{
	if (number >= CFI_REGISTERS)
		return;
	machine->state.specified &= ~(1ULL << number);
	machine->state.specified |= machine->initial.specified & 1ULL << number;
	machine->state.rules[number] = machine->initial.rules[number];
}

/* Read "register plus offset" at the cursor; false: another operation. */
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

/* Recognise the expression that linkers write for the PLT: rsp + 8 + ((rip & 15) >= N) << 3. Returns N; 0: another
 * expression. */
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

static void set_cfa_expression(struct cfi_machine *machine, struct bytes *from)
{
	struct cfi_state *state = &machine->state;
	int32_t place = (int32_t)(uint32_t)(from->position - machine->section->bytes);
	struct bytes cursor = bytes_sub(from, bytes_uleb128(from));
	const uint8_t *bytes = cursor.position;
	size_t size = bytes_left(&cursor);
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
		state->cfa_offset = place;
	}
}

static void set_expression(struct cfi_machine *machine, uint64_t number, enum cfi_rule_kind kind, struct bytes *from)
{
	int32_t place = (int32_t)(uint32_t)(from->position - machine->section->bytes);
	struct bytes cursor = bytes_sub(from, bytes_uleb128(from));
	uint8_t base;
	int64_t offset;

	if (kind == CFI_RULE_EXPRESSION && read_register_offset(&cursor, &base, &offset) && !bytes_left(&cursor))
		set_rule(machine, number, CFI_RULE_AT_REGISTER, base, offset);
	else
		set_rule(machine, number, kind, 0, place);
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

/* The instructions that change only the register or only the offset of the CFA. */
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
	if (machine->saved_count == LIMIT_CFI_SAVED_STATES)
		bytes_fail(from, "too many saved states");
	else
		machine->saved[machine->saved_count++] = machine->state;
}

static void restore_state(struct bytes *from, struct cfi_machine *machine)
{
	if (machine->saved_count)
		machine->state = machine->saved[--machine->saved_count];
	else
		bytes_fail(from, "no saved state");
}

static int64_t scaled(const struct cfi_machine *machine, int64_t factor)
{
	return (int64_t)((uint64_t)factor * (uint64_t)machine->cie->data_alignment);
}

/* What follows the number of the register in an instruction about it. */
enum register_operand {
	OPERAND_NONE,
	OPERAND_FACTOR,
	OPERAND_SIGNED_FACTOR,
	OPERAND_NEGATIVE_FACTOR,
	OPERAND_REGISTER,
	OPERAND_EXPRESSION,
};

static const struct register_instruction {
	uint8_t instruction;
	uint8_t rule;	 /* enum cfi_rule_kind */
	uint8_t operand; /* enum register_operand */
} register_instructions[] = {
    {DW_CFA_offset_extended, CFI_RULE_OFFSET, OPERAND_FACTOR},
    {DW_CFA_offset_extended_sf, CFI_RULE_OFFSET, OPERAND_SIGNED_FACTOR},
    {DW_CFA_GNU_negative_offset_extended, CFI_RULE_OFFSET, OPERAND_NEGATIVE_FACTOR},
    {DW_CFA_val_offset, CFI_RULE_VALUE, OPERAND_FACTOR},
    {DW_CFA_val_offset_sf, CFI_RULE_VALUE, OPERAND_SIGNED_FACTOR},
    {DW_CFA_undefined, CFI_RULE_UNDEFINED, OPERAND_NONE},
    {DW_CFA_same_value, CFI_RULE_SAME, OPERAND_NONE},
    {DW_CFA_register, CFI_RULE_REGISTER, OPERAND_REGISTER},
    {DW_CFA_expression, CFI_RULE_EXPRESSION, OPERAND_EXPRESSION},
    {DW_CFA_val_expression, CFI_RULE_VALUE_EXPRESSION, OPERAND_EXPRESSION},
};

static void run_register_instruction(struct cfi_machine *machine, uint8_t instruction, struct bytes *from)
{
	const struct register_instruction *known = register_instructions;
	const struct register_instruction *end = known + sizeof(register_instructions) / sizeof(*known);
	uint64_t number = bytes_uleb128(from), other;

	while (known < end && known->instruction != instruction)
		known++;
	if (known == end) {
		bytes_fail(from, "unknown instruction");
		return;
	}
	switch ((enum register_operand)known->operand) {
	case OPERAND_NONE:
		return set_rule(machine, number, known->rule, 0, 0);
	case OPERAND_FACTOR:
		return set_rule(machine, number, known->rule, 0, scaled(machine, (int64_t)bytes_uleb128(from)));
	case OPERAND_SIGNED_FACTOR:
		return set_rule(machine, number, known->rule, 0, scaled(machine, bytes_sleb128(from)));
	case OPERAND_NEGATIVE_FACTOR:
		return set_rule(machine, number, known->rule, 0, scaled(machine, (int64_t)(0 - bytes_uleb128(from))));
	case OPERAND_REGISTER:
		other = bytes_uleb128(from);
		return other < CFI_REGISTERS ? set_rule(machine, number, known->rule, (uint8_t)other, 0)
					     : set_rule(machine, number, CFI_RULE_UNDEFINED, 0, 0);
	case OPERAND_EXPRESSION:
		return set_expression(machine, number, known->rule, from);
	}
}

static void run_instruction(struct cfi_machine *machine, uint8_t instruction, struct bytes *from)
{
	uint64_t number;

	switch (instruction) {
	case DW_CFA_nop:
	case DW_CFA_GNU_window_save: /* aarch64: toggles whether the return address is signed; the unwinder always
					strips the signature */
		return;
	case DW_CFA_GNU_args_size:
		(void)bytes_uleb128(from);
		return;
	case DW_CFA_remember_state:
		return save_state(from, machine);
	case DW_CFA_restore_state:
		return restore_state(from, machine);
	case DW_CFA_restore_extended:
		return restore_rule(machine, bytes_uleb128(from));
	case DW_CFA_def_cfa:
		number = bytes_uleb128(from);
		return set_cfa(from, machine, number, (int64_t)bytes_uleb128(from));
	case DW_CFA_def_cfa_sf:
		number = bytes_uleb128(from);
		return set_cfa(from, machine, number, scaled(machine, bytes_sleb128(from)));
	case DW_CFA_def_cfa_register:
		return change_cfa(from, machine, true, (int64_t)bytes_uleb128(from));
	case DW_CFA_def_cfa_offset:
		return change_cfa(from, machine, false, (int64_t)bytes_uleb128(from));
	case DW_CFA_def_cfa_offset_sf:
		return change_cfa(from, machine, false, scaled(machine, bytes_sleb128(from)));
	case DW_CFA_def_cfa_expression:
		return set_cfa_expression(machine, from);
	default:
		run_register_instruction(machine, instruction, from);
	}
}

/* The instructions with an operand in their first byte, except DW_CFA_advance_loc; false: another instruction. */
static bool run_packed_instruction(struct cfi_machine *machine, uint8_t instruction, struct bytes *from)
{
	if ((instruction & ~OPERAND_MASK) == DW_CFA_offset)
		set_rule(machine, instruction & OPERAND_MASK, CFI_RULE_OFFSET, 0,
			 scaled(machine, (int64_t)bytes_uleb128(from)));
	else if ((instruction & ~OPERAND_MASK) == DW_CFA_restore)
		restore_rule(machine, instruction & OPERAND_MASK);
	else
		return false;
	return true;
}

/* Get the new location from an instruction that sets it; false: another instruction. */
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

/* Execute up to the next change of the location. */
static enum cfi_machine_step cfi_machine_run(struct cfi_machine *machine, struct bytes *instructions,
					     uint64_t *next_ret)
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
	}
	return bytes_ok(instructions) ? CFI_MACHINE_END : CFI_MACHINE_FAILED;
}

/* Start with the instructions of the CIE. False: they are invalid. */
static bool cfi_machine_begin(struct cfi_machine *machine)
{
	struct bytes instructions = machine->cie->instructions;
	uint64_t ignored;

	machine->state = machine->initial = (struct cfi_state){0};
	machine->saved_count = 0;
	machine->location = 0;
	if (cfi_machine_run(machine, &instructions, &ignored) != CFI_MACHINE_END)
		return false;
	machine->initial = machine->state;
	machine->saved_count = 0;
	return true;
}

/* ---- the rows of a section ---- */

#define DISTINCT_MAX 65536

/* A row, of which only the used rules are stored. Its bytes, with `row.rules` NULL, are the key. */
struct stored_row {
	struct cfi_row row;
	struct cfi_rule rules[CFI_REGISTERS];
};

struct cfi_rows {
	struct cfi_section section;
	struct cfi_index index;
	struct cfi_cies cies;
	struct intern keys;		      /* of rows */
	VECTOR(struct stored_row *) distinct; /* by number of the key */
};

void cfi_rows_destroy(struct cfi_rows *rows)
{
	if (!rows)
		return;
	for (size_t i = 0; i < rows->distinct.count; i++)
		free(rows->distinct.items[i]);
	vector_deinit(&rows->distinct);
	cfi_index_deinit(&rows->index);
	intern_deinit(&rows->keys);
	free(rows);
}

struct mmt_error *cfi_rows_create(const struct cfi_section *section, struct cfi_rows **rows_ret)
{
	struct cfi_rows *rows = calloc(1, sizeof(*rows));

	if (!rows || !cfi_index_create(section, &rows->index)) {
		cfi_rows_destroy(rows);
		return &error_no_memory;
	}
	rows->section = *section;
	*rows_ret = rows;
	return NULL;
}

static const struct cfi_row *store_row(struct cfi_rows *rows, const struct stored_row *key)
{
	size_t size = offsetof(struct stored_row, rules) + key->row.rule_count * sizeof(*key->rules);
	uint32_t id = intern_find(&rows->keys, key, size);
	struct stored_row *stored;

	if (id != INTERN_NONE && id < rows->distinct.count)
		return &rows->distinct.items[id]->row;
	stored = rows->distinct.count < DISTINCT_MAX ? malloc(size) : NULL;
	id = stored ? intern_put(&rows->keys, key, size) : INTERN_NONE;
	if (id != rows->distinct.count || !vector_push(&rows->distinct, stored)) {
		free(stored);
		return NULL;
	}
	memcpy(stored, key, size);
	stored->row.rules = stored->rules;
	return &stored->row;
}

static bool is_expression(const struct cfi_rule *rule)
{
	return rule->kind == CFI_RULE_EXPRESSION || rule->kind == CFI_RULE_VALUE_EXPRESSION;
}

/* NULL: the row cannot be stored. */
static const struct cfi_row *make_row(struct cfi_rows *rows, const struct cfi_machine *machine)
{
	const struct cfi_state *state = &machine->state;
	struct stored_row key;

	memset(&key, 0, sizeof(key));
	key.row.cfa_kind = state->cfa_kind;
	key.row.cfa_register = state->cfa_register;
	key.row.cfa_offset = (int32_t)state->cfa_offset;
	key.row.plt_threshold = state->plt_threshold;
	key.row.return_column = machine->cie->return_column;
	key.row.signal_frame = machine->cie->signal_frame;
	key.row.has_expressions = state->cfa_kind == CFI_CFA_EXPRESSION;
	key.row.section = &rows->section;
	for (uint64_t left = state->specified; left; left &= left - 1) {
		const struct cfi_rule *rule = &state->rules[__builtin_ctzll(left)];

		key.rules[key.row.rule_count++] = *rule;
		key.row.has_expressions |= is_expression(rule);
	}
	return state->cfa_offset == key.row.cfa_offset ? store_row(rows, &key) : NULL;
}

/* Run the entry up to the row that covers `address`. */
static const struct cfi_row *compute_row(struct cfi_rows *rows, const struct cfi_fde *fde, uint64_t address)
{
	struct cfi_machine machine;
	struct bytes instructions = fde->instructions;
	enum cfi_machine_step step;

	machine.section = &rows->section;
	machine.cie = fde->cie;
	if (address >= fde->end || bytes_left(&instructions) > LIMIT_CFI_ENTRY_BYTES || !cfi_machine_begin(&machine))
		return NULL;
	machine.location = fde->start;
	do {
		uint64_t next = fde->end;

		step = cfi_machine_run(&machine, &instructions, &next);
		if (step == CFI_MACHINE_FAILED)
			return NULL;
		machine.location = next;
	} while (step == CFI_MACHINE_ROW && machine.location <= address);
	return make_row(rows, &machine);
}

/* The last entry that begins at or before `address`. False: there is none. A header that lists something else than
 * entries is no longer used from then on. */
static bool find_entry(struct cfi_rows *rows, uint64_t address, struct cfi_fde *fde_ret)
{
	size_t count = cfi_index_up_to(&rows->index, address);
	const struct cfi_index_entry *entry = count ? &rows->index.entries.items[count - 1] : NULL;

	if (!entry)
		return false;
	if (cfi_entries_fde(&rows->section, &rows->cies, entry->offset, fde_ret) && fde_ret->start == entry->start)
		return true;
	return rows->index.from_header && cfi_index_scan(&rows->section, &rows->index) &&
	       find_entry(rows, address, fde_ret);
}

const struct cfi_row *cfi_rows_find(struct cfi_rows *rows, uint64_t address)
{
	struct cfi_fde fde;

	return find_entry(rows, address, &fde) ? compute_row(rows, &fde, address) : NULL;
}

bool cfi_rows_function_range(struct cfi_rows *rows, uint64_t address, uint64_t *end_ret)
{
	struct cfi_fde fde;
	bool covered = find_entry(rows, address, &fde) && compute_row(rows, &fde, address);
	size_t count = cfi_index_up_to(&rows->index, address);

	*end_ret = count < rows->index.entries.count ? rows->index.entries.items[count].start : UINT64_MAX;
	if (covered && fde.end < *end_ret)
		*end_ret = fde.end;
	return covered && fde.start == address;
}
