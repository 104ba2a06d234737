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
	bool no_memory;
	uint64_t location; /* start address of the current row */
	VECTOR(struct cfi_state) saved;
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

/* Where an expression, with its length before it, is in the section. */
static struct bytes expression_at(const struct cfi_section *section, int32_t place)
{
	struct bytes bytes = bytes_over(section->bytes, section->size);

	bytes_skip(&bytes, (uint32_t)place);
	return bytes_sub(&bytes, bytes_uleb128(&bytes));
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
	if (machine->saved.count == LIMIT_CFI_SAVED_STATES)
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

/* An instruction about the CFA; false: another instruction. */
static bool run_cfa_instruction(struct cfi_machine *machine, uint8_t instruction, struct bytes *from)
{
	uint64_t number;

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
		set_cfa_expression(machine, from);
		return true;
	}
	return false;
}

/* An instruction about the register `number`; false: another instruction. */
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
	case DW_CFA_GNU_window_save: /* aarch64: toggles whether the return address is signed; the unwinder always
					strips the signature */
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

/* The instructions with an operand in their first byte, except DW_CFA_advance_loc; false: another instruction. */
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
		if (machine->no_memory)
			return CFI_MACHINE_FAILED;
	}
	return bytes_ok(instructions) ? CFI_MACHINE_END : CFI_MACHINE_FAILED;
}

/* Execute the CIE's instructions, starting from a zeroed state. False: they are invalid. */
static bool cfi_machine_run_cie(struct cfi_machine *machine)
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

/* ---- the rows of a section ---- */

#define NO_ROW 0
#define DISTINCT_MAX 65536

/* Identity of a row, including its rules. */
struct row_key {
	int32_t cfa_offset;
	uint8_t cfa_kind, cfa_register, plt_threshold, return_column, signal_frame;
	uint8_t unused[3];
	struct cfi_rule rules[CFI_REGISTERS];
};

struct distinct {
	struct cfi_row row;
	struct cfi_expression *expressions;
	struct cfi_rule rules[];
};

struct cfi_rows {
	struct cfi_section section;
	struct cfi_index index;
	struct cfi_cies cies;
	struct cfi_machine machine;
	size_t cie; /* offset of the CIE whose state the machine starts from */
	bool have_cie, cie_makes_sense;
	uint64_t bytes_left;		    /* bytes of instructions that may still be executed */
	struct intern keys;		    /* of rows */
	VECTOR(struct distinct *) distinct; /* by number of the key */
	struct map known;		    /* address -> number of the key plus 1, or NO_ROW */
};

void cfi_rows_destroy(struct cfi_rows *rows)
{
	if (!rows)
		return;
	for (size_t i = 0; i < rows->distinct.count; i++) {
		free(rows->distinct.items[i]->expressions);
		free(rows->distinct.items[i]);
	}
	vector_deinit(&rows->distinct);
	cfi_index_deinit(&rows->index);
	vector_deinit(&rows->machine.saved);
	intern_deinit(&rows->keys);
	map_deinit(&rows->known);
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
	rows->machine.section = &rows->section;
	rows->bytes_left = (uint64_t)section->size * LIMIT_CFI_RUNS;
	*rows_ret = rows;
	return NULL;
}

/* Moves the places of the row's expressions to a list of them. False: out of memory. */
static bool list_expressions(const struct cfi_section *section, struct distinct *made)
{
	int32_t *places[CFI_REGISTERS + 1];
	size_t count = 0;

	if (made->row.cfa_kind == CFI_CFA_EXPRESSION)
		places[count++] = &made->row.cfa_offset;
	for (unsigned i = 0; i < made->row.rule_count; i++) {
		if (made->rules[i].kind == CFI_RULE_EXPRESSION || made->rules[i].kind == CFI_RULE_VALUE_EXPRESSION)
			places[count++] = &made->rules[i].offset;
	}
	made->expressions = count ? malloc(count * sizeof(*made->expressions)) : NULL;
	for (size_t i = 0; made->expressions && i < count; i++) {
		struct bytes bytes = expression_at(section, *places[i]);

		made->expressions[i] = (struct cfi_expression){.bytes = bytes.position, .size = bytes_left(&bytes)};
		*places[i] = (int32_t)i;
	}
	made->row.has_expressions = count;
	made->row.expressions = made->expressions;
	return made->expressions || !count;
}

/* Add a distinct row; false: out of memory. */
static bool add_distinct(struct cfi_rows *rows, const struct row_key *key, size_t rule_count)
{
	struct distinct *made = calloc(1, sizeof(*made) + rule_count * sizeof(*made->rules));

	if (!made)
		return false;
	memcpy(made->rules, key->rules, rule_count * sizeof(*key->rules));
	made->row = (struct cfi_row){
	    .rules = made->rules,
	    .cfa_offset = key->cfa_offset,
	    .cfa_kind = key->cfa_kind,
	    .cfa_register = key->cfa_register,
	    .plt_threshold = key->plt_threshold,
	    .rule_count = (uint8_t)rule_count,
	    .return_column = key->return_column,
	    .signal_frame = key->signal_frame,
	};
	if (!list_expressions(&rows->section, made) || !vector_push(&rows->distinct, made)) {
		free(made->expressions);
		free(made);
		return false;
	}
	return true;
}

/* Number of the machine's row; NO_ROW: it cannot be stored. */
static uint32_t intern_row(struct cfi_rows *rows)
{
	const struct cfi_state *state = &rows->machine.state;
	const struct cfi_cie *cie = rows->machine.cie;
	struct row_key key = {.cfa_kind = state->cfa_kind,
			      .cfa_register = state->cfa_register,
			      .plt_threshold = state->plt_threshold,
			      .return_column = cie->return_column,
			      .signal_frame = cie->signal_frame,
			      .cfa_offset = (int32_t)state->cfa_offset};
	size_t count = 0, size;
	uint32_t id;

	if (state->cfa_offset != key.cfa_offset)
		return NO_ROW;
	for (uint64_t left = state->specified; left; left &= left - 1)
		key.rules[count++] = state->rules[__builtin_ctzll(left)];
	size = offsetof(struct row_key, rules) + count * sizeof(*key.rules);
	id = intern_find(&rows->keys, &key, size);
	if (id != INTERN_NONE)
		return id + 1;
	if (rows->keys.count >= DISTINCT_MAX || !add_distinct(rows, &key, count))
		return NO_ROW;
	id = intern_put(&rows->keys, &key, size);
	if (id != INTERN_NONE)
		return id + 1;
	free(rows->distinct.items[--rows->distinct.count]->expressions);
	free(rows->distinct.items[rows->distinct.count]);
	return NO_ROW;
}

/* The initial state of the entries of a CIE; false: the CIE is invalid. */
static bool enter_cie(struct cfi_rows *rows, const struct cfi_cie *cie)
{
	struct cfi_machine *machine = &rows->machine;

	machine->cie = cie;
	machine->no_memory = false;
	if (!rows->have_cie || rows->cie != cie->offset) {
		rows->cie_makes_sense = cfi_machine_run_cie(machine);
		rows->cie = cie->offset;
		rows->have_cie = !machine->no_memory;
	}
	machine->state = machine->initial;
	machine->saved.count = 0;
	return rows->cie_makes_sense;
}

/* Charges the entry's instructions to the budget, to which each lookup adds. False: too many, so the entries are not
 * those of a real section. */
static bool may_run(struct cfi_rows *rows, const struct cfi_fde *fde)
{
	uint64_t bytes = bytes_left(&fde->instructions) + bytes_left(&fde->cie->instructions);

	rows->bytes_left += LIMIT_CFI_LOOKUP_BYTES;
	if (bytes > rows->bytes_left)
		return false;
	rows->bytes_left -= bytes;
	return true;
}

/* Runs the entry up to the row that covers `address`. */
static uint32_t compute_row(struct cfi_rows *rows, const struct cfi_fde *fde, uint64_t address)
{
	struct cfi_machine *machine = &rows->machine;
	struct bytes instructions = fde->instructions;
	enum cfi_machine_step step;

	if (address >= fde->end || !may_run(rows, fde) || !enter_cie(rows, fde->cie))
		return NO_ROW;
	machine->location = fde->start;
	do {
		uint64_t next = fde->end;

		step = cfi_machine_run(machine, &instructions, &next);
		if (step == CFI_MACHINE_FAILED)
			return NO_ROW;
		machine->location = next;
	} while (step == CFI_MACHINE_ROW && machine->location <= address);
	return intern_row(rows);
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
	const uint64_t *known = map_get(&rows->known, address);
	struct cfi_fde fde;
	uint64_t number;

	if (known) {
		number = *known;
	} else {
		number = find_entry(rows, address, &fde) ? compute_row(rows, &fde, address) : NO_ROW;
		if (rows->known.count >= LIMIT_CFI_KNOWN)
			map_deinit(&rows->known);
		(void)map_put(&rows->known, address, number);
	}
	return number == NO_ROW ? NULL : &rows->distinct.items[number - 1]->row;
}

bool cfi_rows_function_range(struct cfi_rows *rows, uint64_t address, uint64_t *end_ret)
{
	struct cfi_fde fde;
	bool covered = cfi_rows_find(rows, address) && find_entry(rows, address, &fde);
	size_t count = cfi_index_up_to(&rows->index, address);

	*end_ret = count < rows->index.entries.count ? rows->index.entries.items[count].start : UINT64_MAX;
	if (covered && fde.end < *end_ret)
		*end_ret = fde.end;
	return covered && fde.start == address;
}
