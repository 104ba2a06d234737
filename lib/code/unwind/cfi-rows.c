// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the entries of a section of call frame information, and computes rows from them. */
#include "code/unwind/cfi.h"

#include <dwarf.h>

#include "base/limits.h"
#include "base/map.h"

/* The entries (CIEs and FDEs) of a section, and an index of the FDEs by address. The input may be arbitrary bytes;
 * invalid entries are ignored. */

struct cfi_cie {
	struct bytes instructions;
	uint64_t code_alignment;
	int64_t data_alignment;
	uint8_t pointer_encoding;
	uint8_t return_column;
	bool has_augmentation_size;
	bool signal_frame;
	bool usable;
};

struct cfi_fde {
	uint64_t start, end;
	struct bytes instructions;
	struct cfi_cie cie;
};

struct cfi_index_entry {
	uint64_t start;
	uint32_t offset; /* offset of the FDE in the section */
};

struct cfi_rows {
	struct cfi_section section;
	struct bytes pairs;		      /* those of .eh_frame_hdr */
	size_t pair_count;		      /* 0: use the index */
	VECTOR(struct cfi_index_entry) index; /* ascending by start; of equal starts the last one wins */
	struct intern keys;		      /* of rows */
	VECTOR(struct stored_row *) distinct; /* by number of the key */
};

#define LENGTH_64_BIT 0xffffffffu

/* An entry of the section. */
struct cfi_table_entry {
	struct bytes bytes; /* after the length field */
	size_t pointer_offset;
	uint64_t pointer; /* CIE pointer of an FDE */
	bool is_cie;
};

static uint64_t read_value(struct bytes *bytes, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return bytes_u64(bytes);
	case DW_EH_PE_uleb128:
		return bytes_uleb128(bytes);
	case DW_EH_PE_sleb128:
		return (uint64_t)bytes_sleb128(bytes);
	case DW_EH_PE_udata2:
		return bytes_u16(bytes);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int64_t)(int16_t)bytes_u16(bytes);
	case DW_EH_PE_udata4:
		return bytes_u32(bytes);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int64_t)(int32_t)bytes_u32(bytes);
	}
	bytes_fail(bytes, "unknown pointer format");
	return 0;
}

uint64_t cfi_entries_pointer(const struct cfi_section *section, struct bytes *bytes, uint8_t encoding)
{
	uint64_t here = section->address + (uint64_t)(bytes->position - section->bytes);
	uint64_t value;

	if (encoding == DW_EH_PE_omit || encoding & DW_EH_PE_indirect) {
		bytes_fail(bytes, "pointer that only the process knows");
		return 0;
	}
	value = read_value(bytes, encoding);
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
		return value;
	case DW_EH_PE_pcrel:
		return here + value;
	}
	bytes_fail(bytes, "unknown pointer base");
	return 0;
}

/* Read the entry at the cursor and move the cursor after it. False: end of the section, or not an entry. */
static bool read_entry(const struct cfi_section *section, struct bytes *cursor, struct cfi_table_entry *entry)
{
	uint64_t length = bytes_u32(cursor);
	bool wide = length == LENGTH_64_BIT;
	uint64_t none = section->is_debug_frame ? (wide ? UINT64_MAX : UINT32_MAX) : 0;

	if (wide)
		length = bytes_u64(cursor);
	entry->bytes = bytes_sub(cursor, length);
	if (!bytes_ok(cursor))
		return false;
	if (!length)
		return true; /* a terminator: entries of other object files may follow */
	entry->pointer_offset = (size_t)(entry->bytes.position - section->bytes);
	entry->pointer = wide && section->is_debug_frame ? bytes_u64(&entry->bytes) : bytes_u32(&entry->bytes);
	entry->is_cie = entry->pointer == none;
	return true;
}

static void read_augmentation(const char *letters, struct bytes *data, struct cfi_cie *cie)
{
	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointer_encoding = bytes_u8(data);
			break;
		case 'P':
			/* Only the size of the pointer to the personality routine matters, not its value. */
			(void)read_value(data, bytes_u8(data));
			break;
		case 'L':
			(void)bytes_u8(data);
			break;
		case 'S':
			cie->signal_frame = true;
			break;
		case 'B': /* return addresses are signed with key B */
		case 'G': /* memory tagging */
			break;
		default:
			return; /* the other augmentation characters are unknown, but their size is not needed */
		}
	}
}

static void read_cie(struct bytes bytes, struct cfi_cie *cie)
{
	uint8_t version = bytes_u8(&bytes);
	struct bytes text = bytes_over(bytes.position, smaller_of(bytes_left(&bytes), LIMIT_CFI_AUGMENTATION));
	const char *augmentation = bytes_string(&text);
	uint64_t return_column;

	if (!bytes_ok(&text))
		return;
	bytes_skip(&bytes, strlen(augmentation) + 1);
	if (version != 1 && version != 3 && version != 4)
		return;
	if (!strcmp(augmentation, "eh"))
		bytes_skip(&bytes, sizeof(uint64_t));
	else if (*augmentation && *augmentation != 'z')
		return;
	/* Size of addresses and of segment selectors. */
	if (version == 4 && (bytes_u8(&bytes) != sizeof(uint64_t) || bytes_u8(&bytes)))
		return;
	cie->code_alignment = bytes_uleb128(&bytes);
	cie->data_alignment = bytes_sleb128(&bytes);
	return_column = version == 1 ? bytes_u8(&bytes) : bytes_uleb128(&bytes);
	if (*augmentation == 'z') {
		uint64_t size = bytes_uleb128(&bytes);
		struct bytes data = bytes_sub(&bytes, size);

		cie->has_augmentation_size = true;
		read_augmentation(augmentation + 1, &data, cie);
		if (!bytes_ok(&data))
			return;
	}
	cie->instructions = bytes;
	cie->return_column = (uint8_t)return_column;
	cie->usable = bytes_ok(&bytes) && return_column < CFI_REGISTERS && bytes_left(&bytes) <= LIMIT_CFI_CIE_BYTES;
}

static bool read_entry_at(const struct cfi_section *section, uint64_t offset, struct cfi_table_entry *entry)
{
	struct bytes cursor;

	if (offset >= section->size)
		return false;
	cursor = bytes_over(section->bytes + offset, section->size - (size_t)offset);
	return read_entry(section, &cursor, entry) && bytes_left(&entry->bytes);
}

/* Read the FDE at `offset`. False: there is no FDE that describes code. */
static bool read_fde(const struct cfi_section *section, size_t offset, struct cfi_fde *fde_ret)
{
	struct cfi_table_entry entry = {0}, cie_entry = {0};
	struct bytes *bytes = &entry.bytes;
	struct cfi_cie *cie = &fde_ret->cie;
	uint64_t size, place;

	if (!read_entry_at(section, offset, &entry) || entry.is_cie)
		return false;
	place = section->is_debug_frame ? entry.pointer : entry.pointer_offset - entry.pointer;
	*cie = (struct cfi_cie){.pointer_encoding = DW_EH_PE_absptr};
	if (read_entry_at(section, place, &cie_entry) && cie_entry.is_cie)
		read_cie(cie_entry.bytes, cie);
	if (!cie->usable)
		return false;
	fde_ret->start = cfi_entries_pointer(section, bytes, cie->pointer_encoding);
	size = read_value(bytes, cie->pointer_encoding & 0x0f);
	if (cie->has_augmentation_size)
		bytes_skip(bytes, bytes_uleb128(bytes));
	if (!bytes_ok(bytes) || !size)
		return false;
	fde_ret->end = fde_ret->start + size < fde_ret->start ? UINT64_MAX : fde_ret->start + size;
	fde_ret->instructions = *bytes;
	return true;
}

/* If two entries start at the same address, the first one in the section wins. */
COMPARISON(compare_entries, struct cfi_index_entry, order_of(a->start, b->start) ?: order_of(b->offset, a->offset))

/* False: out of memory. */
static bool index_entries(struct cfi_rows *rows)
{
	const struct cfi_section *section = &rows->section;
	struct bytes cursor = bytes_over(section->bytes, section->size);

	while (section->size < LIMIT_CFI_SECTION_BYTES && bytes_left(&cursor)) {
		size_t offset = (size_t)(cursor.position - section->bytes);
		struct cfi_table_entry entry = {0};
		struct cfi_fde fde;

		if (!read_entry(section, &cursor, &entry) ||
		    (section->ends_with_terminator && !bytes_left(&entry.bytes)))
			break;
		if (read_fde(section, offset, &fde) &&
		    !vector_push(&rows->index,
				 ((struct cfi_index_entry){.start = fde.start, .offset = (uint32_t)offset})))
			return false;
	}
	for (size_t i = 1; i < rows->index.count; i++) {
		if (compare_entries(&rows->index.items[i - 1], &rows->index.items[i]) > 0) {
			vector_sort(&rows->index, compare_entries);
			break;
		}
	}
	return true;
}

#define PAIR_BYTES 8 /* of .eh_frame_hdr: 4-byte offsets from it, of the start of the code and of its entry */

static size_t entry_count(const struct cfi_rows *rows)
{
	return rows->pair_count ? rows->pair_count : rows->index.count;
}

static struct cfi_index_entry entry_at(const struct cfi_rows *rows, size_t place)
{
	uint64_t header = rows->section.header_address;
	struct bytes pair = rows->pairs;
	struct cfi_index_entry entry;

	if (!rows->pair_count)
		return rows->index.items[place];
	bytes_skip(&pair, place * PAIR_BYTES);
	entry.start = header + (uint64_t)(int32_t)bytes_u32(&pair);
	entry.offset = (uint32_t)(header + (uint64_t)(int32_t)bytes_u32(&pair) - rows->section.address);
	return entry;
}

/* Number of entries that begin at or before `address`. */
static size_t entries_up_to(const struct cfi_rows *rows, uint64_t address)
{
	return partition_point(entry_count(rows), i, entry_at(rows, i).start <= address);
}

/* Executes the instructions of one FDE, row by row, with the address at which each row begins. */

struct cfi_state {
	uint8_t cfa_kind, cfa_register, plt_threshold;
	bool cfa_from_expression;
	int64_t cfa_offset;
	uint32_t cfa_addend;
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

/* Read the rest of an expression behind "register plus offset": nothing, or a load of the word there, perhaps plus a
 * number. False: something else. */
static bool read_load(struct bytes *bytes, bool *loads_ret, uint32_t *addend_ret)
{
	uint64_t addend = 0;

	*loads_ret = bytes_left(bytes);
	if (*loads_ret && bytes_u8(bytes) != DW_OP_deref)
		return false;
	if (bytes_left(bytes)) {
		if (bytes_u8(bytes) != DW_OP_plus_uconst)
			return false;
		addend = bytes_uleb128(bytes);
	}
	*addend_ret = (uint32_t)addend;
	return bytes_ok(bytes) && !bytes_left(bytes) && addend <= INT32_MAX;
}

/* The expressions of 2,239 ELF files of a distribution, but for those of some cryptographic functions. */
static void set_cfa_expression(struct cfi_machine *machine, struct bytes *from)
{
	struct cfi_state *state = &machine->state;
	struct bytes cursor = bytes_sub(from, bytes_uleb128(from));
	uint8_t base = 0;
	bool loads;

	state->cfa_from_expression = true;
	state->cfa_addend = 0;
	state->plt_threshold = plt_threshold(cursor.position, bytes_left(&cursor));
	if (!read_register_offset(&cursor, &base, &state->cfa_offset)) {
		state->cfa_kind = CFI_CFA_UNKNOWN;
		state->cfa_offset = 0;
		return;
	}
	state->cfa_register = base;
	if (state->plt_threshold)
		state->cfa_kind = CFI_CFA_PLT;
	else if (read_load(&cursor, &loads, &state->cfa_addend))
		state->cfa_kind = loads ? CFI_CFA_LOAD : CFI_CFA_REGISTER;
	else
		state->cfa_kind = CFI_CFA_UNKNOWN;
}

/* Some begin with the operation that removes the CFA, which is on the stack. */
static void set_expression(struct cfi_machine *machine, uint64_t number, struct bytes *from)
{
	struct bytes cursor = bytes_sub(from, bytes_uleb128(from));
	uint8_t base = 0;
	int64_t offset = 0;

	if (bytes_left(&cursor) && *cursor.position == DW_OP_drop)
		bytes_skip(&cursor, 1);
	if (read_register_offset(&cursor, &base, &offset) && !bytes_left(&cursor))
		set_rule(machine, number, CFI_RULE_AT_REGISTER, base, offset);
	else
		set_rule(machine, number, CFI_RULE_UNKNOWN, 0, 0);
}

static void set_cfa(struct bytes *from, struct cfi_machine *machine, uint64_t number, int64_t offset)
{
	if (number >= CFI_REGISTERS)
		bytes_fail(from, "register of the CFA");
	machine->state.cfa_kind = CFI_CFA_REGISTER;
	machine->state.cfa_from_expression = false;
	machine->state.cfa_register = (uint8_t)number;
	machine->state.cfa_offset = offset;
	machine->state.cfa_addend = 0;
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

static int64_t scaled(const struct cfi_machine *machine, int64_t factor)
{
	return (int64_t)((uint64_t)factor * (uint64_t)machine->cie->data_alignment);
}

/* The instructions that begin with the number of a register. */
static void run_register_instruction(struct cfi_machine *machine, uint8_t instruction, struct bytes *from)
{
	uint64_t number = bytes_uleb128(from), other;

	switch (instruction) {
	case DW_CFA_offset_extended:
		return set_rule(machine, number, CFI_RULE_OFFSET, 0, scaled(machine, (int64_t)bytes_uleb128(from)));
	case DW_CFA_offset_extended_sf:
		return set_rule(machine, number, CFI_RULE_OFFSET, 0, scaled(machine, bytes_sleb128(from)));
	case DW_CFA_GNU_negative_offset_extended:
		return set_rule(machine, number, CFI_RULE_OFFSET, 0,
				scaled(machine, (int64_t)(0 - bytes_uleb128(from))));
	case DW_CFA_val_offset:
		return set_rule(machine, number, CFI_RULE_VALUE, 0, scaled(machine, (int64_t)bytes_uleb128(from)));
	case DW_CFA_val_offset_sf:
		return set_rule(machine, number, CFI_RULE_VALUE, 0, scaled(machine, bytes_sleb128(from)));
	case DW_CFA_undefined:
		return set_rule(machine, number, CFI_RULE_UNDEFINED, 0, 0);
	case DW_CFA_same_value:
		return set_rule(machine, number, CFI_RULE_SAME, 0, 0);
	case DW_CFA_register:
		other = bytes_uleb128(from);
		return other < CFI_REGISTERS ? set_rule(machine, number, CFI_RULE_REGISTER, (uint8_t)other, 0)
					     : set_rule(machine, number, CFI_RULE_UNDEFINED, 0, 0);
	case DW_CFA_expression:
		return set_expression(machine, number, from);
	case DW_CFA_val_expression:
		bytes_skip(from, bytes_uleb128(from));
		return set_rule(machine, number, CFI_RULE_UNKNOWN, 0, 0);
	default:
		bytes_fail(from, "unknown instruction");
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
		if (machine->saved_count == LIMIT_CFI_SAVED_STATES)
			return bytes_fail(from, "too many saved states");
		machine->saved[machine->saved_count++] = machine->state;
		return;
	case DW_CFA_restore_state:
		if (!machine->saved_count)
			return bytes_fail(from, "no saved state");
		machine->state = machine->saved[--machine->saved_count];
		return;
	case DW_CFA_restore_extended:
		return restore_rule(machine, bytes_uleb128(from));
	case DW_CFA_restore ... DW_CFA_restore + OPERAND_MASK:
		return restore_rule(machine, instruction & OPERAND_MASK);
	case DW_CFA_offset ... DW_CFA_offset + OPERAND_MASK:
		return set_rule(machine, instruction & OPERAND_MASK, CFI_RULE_OFFSET, 0,
				scaled(machine, (int64_t)bytes_uleb128(from)));
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
	case DW_CFA_advance_loc ... DW_CFA_advance_loc + OPERAND_MASK:
		factor = instruction & OPERAND_MASK;
		break;
	default:
		return false;
	}
	if (__builtin_mul_overflow(factor, machine->cie->code_alignment, location_ret) ||
	    __builtin_add_overflow(*location_ret, machine->location, location_ret))
		bytes_fail(from, "advance beyond all addresses");
	return true;
}

/* Execute up to the next change of the location: the current row ends at *next_ret. False: the current row is the last
 * one or, if the cursor has failed, unknown. */
static bool cfi_machine_run(struct cfi_machine *machine, struct bytes *instructions, uint64_t *next_ret)
{
	while (bytes_left(instructions)) {
		uint8_t instruction = bytes_u8(instructions);

		if (!read_location(machine, instruction, instructions, next_ret)) {
			run_instruction(machine, instruction, instructions);
			continue;
		}
		if (bytes_ok(instructions) && *next_ret < machine->location)
			bytes_fail(instructions, "goes back");
		if (bytes_ok(instructions) && *next_ret != machine->location)
			return true;
	}
	return false;
}

/* ---- the rows of a section ---- */

#define HEADER_VERSION 1

/* A row, of which only the used rules are stored. Its bytes, with `row.rules` NULL, are the key. */
struct stored_row {
	struct cfi_row row;
	struct cfi_rule rules[CFI_REGISTERS];
};

void cfi_rows_destroy(struct cfi_rows *rows)
{
	if (!rows)
		return;
	vector_deinit_each(&rows->distinct, item, free(*item));
	vector_deinit(&rows->index);
	intern_deinit(&rows->keys);
	free(rows);
}

struct mmt_error *cfi_rows_create(const struct cfi_section *section, struct cfi_rows **rows_ret)
{
	struct cfi_rows *rows = calloc(1, sizeof(*rows));
	struct bytes header = bytes_over(section->header, section->header_size);

	if (!rows) {
		memory_failed();
		return &error_no_memory;
	}
	rows->section = *section;
	/* Use the table of .eh_frame_hdr if it has the form that every linker writes. */
	if (bytes_u8(&header) == HEADER_VERSION && bytes_take(&header, 1) && bytes_u8(&header) == DW_EH_PE_udata4 &&
	    bytes_u8(&header) == (DW_EH_PE_datarel | DW_EH_PE_sdata4) && bytes_take(&header, 4)) {
		rows->pair_count = bytes_count_u32(&header, PAIR_BYTES);
		rows->pairs = header;
	}
	if (!rows->pair_count && !index_entries(rows)) {
		cfi_rows_destroy(rows);
		return &error_no_memory;
	}
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
	stored = rows->distinct.count < LIMIT_CFI_ROWS ? malloc(size) : NULL;
	id = stored ? intern_put(&rows->keys, key, size) : INTERN_NONE;
	if (id != rows->distinct.count || !vector_push(&rows->distinct, stored)) {
		free(stored);
		return NULL;
	}
	memcpy(stored, key, size);
	stored->row.rules = stored->rules;
	return &stored->row;
}

/* Run the instructions of the CIE, then those of the entry up to the row that covers `address`. */
static const struct cfi_row *compute_row(struct cfi_rows *rows, const struct cfi_fde *fde, uint64_t address)
{
	struct cfi_machine machine;
	const struct cfi_state *state = &machine.state;
	struct bytes initial = fde->cie.instructions, instructions = fde->instructions;
	struct stored_row key;
	uint64_t next;

	if (address >= fde->end || bytes_left(&instructions) > LIMIT_CFI_ENTRY_BYTES)
		return NULL;
	machine.section = &rows->section;
	machine.cie = &fde->cie;
	machine.state = machine.initial = (struct cfi_state){0};
	machine.location = 0;
	machine.saved_count = 0;
	if (cfi_machine_run(&machine, &initial, &next) || !bytes_ok(&initial))
		return NULL;
	machine.initial = machine.state;
	machine.location = fde->start;
	machine.saved_count = 0;
	while (cfi_machine_run(&machine, &instructions, &next) && next <= address)
		machine.location = next;
	if (!bytes_ok(&instructions))
		return NULL;
	memset(&key, 0, sizeof(key));
	key.row.cfa_kind = state->cfa_kind;
	key.row.cfa_register = state->cfa_register;
	key.row.cfa_offset = (int32_t)state->cfa_offset;
	key.row.cfa_addend = state->cfa_addend;
	key.row.plt_threshold = state->plt_threshold;
	key.row.return_column = machine.cie->return_column;
	key.row.signal_frame = machine.cie->signal_frame;
	for (uint64_t left = state->specified; left; left &= left - 1)
		key.rules[key.row.rule_count++] = state->rules[__builtin_ctzll(left)];
	return state->cfa_offset == key.row.cfa_offset ? store_row(rows, &key) : NULL;
}

/* The last entry that begins at or before `address`. False: there is none. A header that lists something else than
 * entries is no longer used from then on. */
static bool find_entry(struct cfi_rows *rows, uint64_t address, struct cfi_fde *fde_ret)
{
	size_t count = entries_up_to(rows, address);
	struct cfi_index_entry entry;

	if (!count)
		return false;
	entry = entry_at(rows, count - 1);
	if (read_fde(&rows->section, entry.offset, fde_ret) && fde_ret->start == entry.start)
		return true;
	if (!rows->pair_count)
		return false;
	rows->pair_count = 0;
	return index_entries(rows) && find_entry(rows, address, fde_ret);
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
	size_t count = entries_up_to(rows, address);

	*end_ret = count < entry_count(rows) ? entry_at(rows, count).start : UINT64_MAX;
	if (covered && fde.end < *end_ret)
		*end_ret = fde.end;
	return covered && fde.start == address;
}
