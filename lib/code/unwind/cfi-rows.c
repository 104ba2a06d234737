// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compiles the call frame information of functions into rows; cfi.c finds it in a module. */
#include "code/unwind/cfi.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/vector.h"

/* Executes the instructions of one FDE, row by row, with the address at which each row begins. */

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
	struct intern *expressions; /* assigns indexes to expressions */
	struct cfi_state state;	    /* the current row */
	struct cfi_state initial;   /* state after the instructions of the CIE */
	bool no_memory;		    /* also set if there are too many expressions */
	uint64_t location;	    /* start address of the current row */
	VECTOR(struct cfi_state) saved;
};

enum cfi_machine_step {
	CFI_MACHINE_ROW,    /* the current row ends at *next_ret */
	CFI_MACHINE_END,    /* the current row is the last one */
	CFI_MACHINE_FAILED, /* invalid instruction: the current row and all rows after it are unknown */
};

#define EXPRESSIONS_MAX 0xffff

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

/* Index of an expression, stored as a rule's offset. */
static int64_t keep_expression(struct cfi_machine *machine, const uint8_t *bytes, size_t size)
{
	uint32_t index = intern_find(machine->expressions, bytes, size);

	if (index == INTERN_NONE && machine->expressions->count < EXPRESSIONS_MAX)
		index = intern_put(machine->expressions, bytes, size);
	machine->no_memory |= index == INTERN_NONE;
	return index;
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

#define NO_ROW 0	 /* kind of a gap; other kinds are an index plus 1 */
#define ENTRY_END 0xffff /* kind of the end of an entry, after its last row */
#define KINDS_MAX 0xfffe /* distinct rows */
#define NO_ROWS                                                                                                        \
	UINT32_MAX /* `rows` of an entry in the index: compiled, and without any; else one more than an index          \
		    */

/* Identity of a row, including its rules. */
struct row_key {
	int32_t cfa_offset;
	uint8_t cfa_kind, cfa_register, plt_threshold, return_column, signal_frame;
	uint8_t unused[3];
	struct cfi_rule rules[CFI_REGISTERS];
};

struct distinct {
	struct cfi_row row;
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
	struct intern keys, texts;	    /* of rows and expressions; empty once the table is complete */
	VECTOR(struct distinct *) distinct; /* by number of the key */
	/* A row keeps the list that existed when it was made; larger lists begin with the same expressions. */
	VECTOR(struct cfi_expression *) expression_lists;
	size_t expression_count, expression_capacity, expression_bytes, distinct_bytes;
	VECTOR(uint32_t)
	starts; /* offset from the start of the entry; the first row has offset 0, and stores the number of rows in the
		   entry instead */
	VECTOR(uint16_t) kinds;
	size_t described_count;
};

void cfi_rows_destroy(struct cfi_rows *rows)
{
	struct cfi_expression *last;

	if (!rows)
		return;
	last = rows->expression_count ? rows->expression_lists.items[rows->expression_lists.count - 1] : NULL;
	for (size_t i = 0; i < rows->expression_count; i++)
		free((void *)last[i].bytes);
	for (size_t i = 0; i < rows->expression_lists.count; i++)
		free(rows->expression_lists.items[i]);
	vector_deinit(&rows->expression_lists);
	for (size_t i = 0; i < rows->distinct.count; i++)
		free(rows->distinct.items[i]);
	vector_deinit(&rows->distinct);
	cfi_index_deinit(&rows->index);
	vector_deinit(&rows->machine.saved);
	intern_deinit(&rows->keys);
	intern_deinit(&rows->texts);
	vector_deinit(&rows->starts);
	vector_deinit(&rows->kinds);
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
	rows->machine.expressions = &rows->texts;
	rows->bytes_left = (uint64_t)section->size * LIMIT_CFI_RUNS;
	*rows_ret = rows;
	return NULL;
}

/* ---- compiling ---- */

static bool grow_expressions(struct cfi_rows *rows)
{
	size_t capacity = rows->expression_capacity ? 2 * rows->expression_capacity : 8;
	struct cfi_expression *list = calloc(capacity, sizeof(*list));

	if (!list || !vector_push(&rows->expression_lists, list)) {
		free(list);
		return false;
	}
	if (rows->expression_count)
		memcpy(list, rows->expression_lists.items[rows->expression_lists.count - 2],
		       rows->expression_count * sizeof(*list));
	rows->expression_bytes += capacity * sizeof(*list);
	rows->expression_capacity = capacity;
	return true;
}

/* Store the expressions that the machine has found, for use by rows. False: out of memory. */
static bool keep_expressions(struct cfi_rows *rows)
{
	while (rows->expression_count < rows->texts.count) {
		size_t size = 0;
		const void *text = intern_get(&rows->texts, (uint32_t)rows->expression_count, &size);
		uint8_t *bytes;

		if (rows->expression_count == rows->expression_capacity && !grow_expressions(rows))
			return false;
		bytes = malloc(size + 1);
		if (!bytes)
			return false;
		memcpy(bytes, text, size);
		rows->expression_lists.items[rows->expression_lists.count - 1][rows->expression_count++] =
		    (struct cfi_expression){.bytes = bytes, .size = size};
		rows->expression_bytes += size + 1;
	}
	return true;
}

static bool has_expressions(const struct cfi_row *row)
{
	if (row->cfa_kind == CFI_CFA_EXPRESSION)
		return true;
	for (unsigned i = 0; i < row->rule_count; i++) {
		if (row->rules[i].kind == CFI_RULE_EXPRESSION || row->rules[i].kind == CFI_RULE_VALUE_EXPRESSION)
			return true;
	}
	return false;
}

/* Add a distinct row; false: out of memory. */
static bool add_distinct(struct cfi_rows *rows, const struct row_key *key, size_t rule_count)
{
	size_t size = sizeof(struct distinct) + rule_count * sizeof(struct cfi_rule);
	struct distinct *made = calloc(1, size);

	if (!made || !keep_expressions(rows) || !vector_push(&rows->distinct, made)) {
		free(made);
		return false;
	}
	memcpy(made->rules, key->rules, rule_count * sizeof(*key->rules));
	made->row = (struct cfi_row){
	    .rules = made->rules,
	    .expressions =
		rows->expression_count ? rows->expression_lists.items[rows->expression_lists.count - 1] : NULL,
	    .cfa_offset = key->cfa_offset,
	    .cfa_kind = key->cfa_kind,
	    .cfa_register = key->cfa_register,
	    .plt_threshold = key->plt_threshold,
	    .rule_count = (uint8_t)rule_count,
	    .return_column = key->return_column,
	    .signal_frame = key->signal_frame,
	};
	made->row.has_expressions = has_expressions(&made->row);
	cfi_row_finish(&made->row);
	rows->distinct_bytes += size;
	return true;
}

/* Kind of the current row; NO_ROW: it cannot be stored. */
static uint16_t intern_row(struct cfi_rows *rows)
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
	if (id == INTERN_NONE && rows->keys.count < KINDS_MAX) {
		bool added = add_distinct(rows, &key, count);

		id = added ? intern_put(&rows->keys, &key, size) : INTERN_NONE;
		if (added && id == INTERN_NONE)
			free(rows->distinct.items[--rows->distinct.count]);
		rows->machine.no_memory |= id == INTERN_NONE;
	}
	return id == INTERN_NONE ? NO_ROW : (uint16_t)(id + 1);
}

/* `kind` applies from `start` on. */
static void begin_row(struct cfi_rows *rows, size_t first, uint64_t start, uint16_t kind)
{
	bool same = rows->kinds.count > first && rows->kinds.items[rows->kinds.count - 1] == kind;

	if (rows->kinds.count >= LIMIT_CFI_ROWS ||
	    (!same && (!vector_push(&rows->starts, (uint32_t)start) || !vector_push(&rows->kinds, kind))))
		rows->machine.no_memory = true;
}

/* The initial state of the entries of a CIE; false: the CIE is invalid. */
static bool enter_cie(struct cfi_rows *rows, const struct cfi_cie *cie)
{
	struct cfi_machine *machine = &rows->machine;

	machine->cie = cie;
	if (!rows->have_cie || rows->cie != cie->offset) {
		rows->cie_makes_sense = cfi_machine_run_cie(machine);
		rows->cie = cie->offset;
		rows->have_cie = !machine->no_memory;
	}
	machine->state = machine->initial;
	machine->saved.count = 0;
	return rows->cie_makes_sense;
}

static void compile_fde(struct cfi_rows *rows, const struct cfi_fde *fde, size_t first)
{
	struct cfi_machine *machine = &rows->machine;
	struct bytes instructions = fde->instructions;
	uint64_t last = fde->start | UINT32_MAX; /* no function crosses a multiple of 4 GiB */
	uint64_t end = fde->end > last ? last : fde->end;
	enum cfi_machine_step step = CFI_MACHINE_ROW;

	if (!enter_cie(rows, fde->cie))
		return;
	machine->location = fde->start;
	while (step == CFI_MACHINE_ROW && machine->location < end && !machine->no_memory) {
		uint64_t next = end;
		uint16_t kind;

		step = cfi_machine_run(machine, &instructions, &next);
		if (step == CFI_MACHINE_FAILED)
			break;
		kind = intern_row(rows);
		rows->described_count += kind != NO_ROW;
		begin_row(rows, first, machine->location - fde->start, kind);
		machine->location = next < end ? next : end;
	}
	if (rows->kinds.count > first)
		begin_row(rows, first, machine->location - fde->start, ENTRY_END);
}

/* Charge the entry's instructions to the budget. False: too many, so the entries are not those of a real section. */
static bool may_run(struct cfi_rows *rows, const struct cfi_fde *fde)
{
	uint64_t bytes = bytes_left(&fde->instructions) + bytes_left(&fde->cie->instructions);

	if (bytes > rows->bytes_left)
		return false;
	rows->bytes_left -= bytes;
	return true;
}

/* False: the index has an entry that is not an FDE. An FDE has no rows if memory runs out. */
static bool compile(struct cfi_rows *rows, struct cfi_index_entry *entry)
{
	size_t first = rows->kinds.count;
	struct cfi_fde fde;

	entry->rows = NO_ROWS;
	if (!cfi_entries_fde(&rows->section, &rows->cies, entry->offset, &fde) || fde.start != entry->start)
		return false;
	if (!may_run(rows, &fde))
		return true;
	compile_fde(rows, &fde, first);
	if (rows->machine.no_memory)
		rows->kinds.count = first;
	rows->machine.no_memory = false;
	rows->starts.count = rows->kinds.count;
	if (rows->kinds.count > first) {
		entry->rows = (uint32_t)first + 1;
		rows->starts.items[first] = (uint32_t)(rows->kinds.count - first - 1);
	}
	return true;
}

/* Stop using a header that is wrong or lists entries that describe no code. False: out of memory. */
static bool rebuild_index(struct cfi_rows *rows)
{
	rows->starts.count = rows->kinds.count = rows->described_count = 0;
	rows->bytes_left = (uint64_t)rows->section.size * LIMIT_CFI_RUNS;
	return cfi_index_scan(&rows->section, &rows->index);
}

struct mmt_error *cfi_rows_complete(struct cfi_rows *rows)
{
	for (size_t i = 0; i < rows->index.entries.count; i++) {
		struct cfi_index_entry *entry = &rows->index.entries.items[i];

		if (entry->rows || compile(rows, entry) || !rows->index.from_header)
			continue;
		if (!rebuild_index(rows))
			return &error_no_memory;
		i = SIZE_MAX;
	}
	intern_deinit(&rows->keys);
	vector_trim(&rows->index.entries);
	vector_trim(&rows->starts);
	vector_trim(&rows->kinds);
	return NULL;
}

/* ---- the table ---- */

static const struct cfi_row *row_of(const struct cfi_rows *rows, size_t index)
{
	uint16_t kind = rows->kinds.items[index];

	return kind == NO_ROW || kind == ENTRY_END ? NULL : &rows->distinct.items[kind - 1]->row;
}

/* What applies after the last row of the entry. */
static size_t end_of_entry(const struct cfi_rows *rows, const struct cfi_index_entry *entry)
{
	size_t first = entry->rows - 1;

	return first + rows->starts.items[first];
}

/* The row, or the end, of the entry that applies at `distance` from the entry's start. */
static size_t row_at(const struct cfi_rows *rows, const struct cfi_index_entry *entry, uint64_t distance)
{
	const uint32_t *starts = &rows->starts.items[entry->rows];

	return entry->rows + partition_point(end_of_entry(rows, entry) + 1 - entry->rows, i, starts[i] <= distance) - 1;
}

const struct cfi_row *cfi_rows_find(struct cfi_rows *rows, uint64_t address)
{
	size_t count = cfi_index_up_to(&rows->index, address);
	struct cfi_index_entry *entry;

	if (!count)
		return NULL;
	entry = &rows->index.entries.items[count - 1];
	if (!entry->rows && !compile(rows, entry) && rows->index.from_header)
		return rebuild_index(rows) ? cfi_rows_find(rows, address) : NULL;
	if (entry->rows == NO_ROWS || address - entry->start > UINT32_MAX)
		return NULL;
	return row_of(rows, row_at(rows, entry, address - entry->start));
}

bool cfi_rows_function_range(struct cfi_rows *rows, uint64_t address, uint64_t *end_ret)
{
	bool covered = cfi_rows_find(rows, address);
	size_t count = cfi_index_up_to(&rows->index, address), last;
	const struct cfi_index_entry *entry;

	*end_ret = count < rows->index.entries.count ? rows->index.entries.items[count].start : UINT64_MAX;
	if (!covered || !count)
		return false;
	entry = &rows->index.entries.items[count - 1];
	last = end_of_entry(rows, entry);
	if (entry->start + rows->starts.items[last] < *end_ret)
		*end_ret = entry->start + rows->starts.items[last];
	return entry->start == address;
}

/* `position`: the entry and the index of its row. */
bool cfi_rows_next(const struct cfi_rows *rows, size_t *position, uint64_t *start_ret, uint64_t *end_ret,
		   const struct cfi_row **row_ret)
{
	for (size_t number = *position >> 32; number < rows->index.entries.count; number++) {
		const struct cfi_index_entry *entry = &rows->index.entries.items[number];
		size_t index = entry->rows - 1 + (uint32_t)*position;
		bool is_last = number + 1 == rows->index.entries.count;
		uint64_t limit = is_last ? UINT64_MAX : entry[1].start;
		bool is_gap = entry->rows == NO_ROWS || rows->kinds.items[index] == ENTRY_END;

		*start_ret = entry->start + ((uint32_t)*position ? rows->starts.items[index] : 0);
		*end_ret = is_gap ? limit : entry->start + rows->starts.items[index + 1];
		*end_ret = *end_ret < limit ? *end_ret : limit;
		*row_ret = is_gap ? NULL : row_of(rows, index);
		*position = is_gap ? (number + 1) << 32 : *position + 1;
		if (*start_ret < limit && !(is_gap && is_last))
			return true;
		*position = (number + 1) << 32;
	}
	return false;
}

static size_t intern_bytes(const struct intern *intern)
{
	return intern->bytes_capacity + intern->capacity * sizeof(*intern->entries) +
	       intern->by_hash.capacity * sizeof(*intern->by_hash.slots);
}

struct cfi_rows_size cfi_rows_size(const struct cfi_rows *rows)
{
	return (struct cfi_rows_size){
	    .entries = rows->index.entries.count,
	    .rows = rows->described_count,
	    .distinct = rows->distinct.count,
	    .bytes = sizeof(*rows) + rows->index.entries.capacity * sizeof(*rows->index.entries.items) +
		     rows->starts.capacity * sizeof(*rows->starts.items) +
		     rows->kinds.capacity * sizeof(*rows->kinds.items) +
		     rows->distinct.capacity * sizeof(*rows->distinct.items) + rows->distinct_bytes +
		     rows->expression_bytes + intern_bytes(&rows->keys) + intern_bytes(&rows->texts),
	};
}
