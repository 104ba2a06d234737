// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/cfi.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vector.h"

#define ROWS_PER_BLOCK 64

/* Rows are handed out by pointer, so they never move. */
struct row_block {
	struct cfi_row rows[ROWS_PER_BLOCK];
};

struct cfi {
	Elf *elf;
	Dwarf_CFI *eh_frame; /* NULL: none */
	Dwarf *dwarf;
	Dwarf_CFI *debug_frame; /* NULL: none, or not yet looked for; belongs to `dwarf` */
	bool debug_frame_opened;
	struct map by_address; /* address -> row pointer, 0 for no row */
	struct map by_end;     /* end of a row -> row pointer */
	VECTOR(struct row_block *) blocks;
	size_t row_count;
};

struct mmt_error *cfi_create(Elf *elf, struct cfi **cfi_ret)
{
	struct cfi *cfi = calloc(1, sizeof(*cfi));

	if (!cfi)
		return &error_no_memory;
	cfi->elf = elf;
	cfi->eh_frame = dwarf_getcfi_elf(elf);
	*cfi_ret = cfi;
	return NULL;
}

void cfi_destroy(struct cfi *cfi)
{
	if (!cfi)
		return;
	for (size_t i = 0; i < cfi->blocks.count; i++)
		free(cfi->blocks.items[i]);
	vector_deinit(&cfi->blocks);
	map_deinit(&cfi->by_address);
	map_deinit(&cfi->by_end);
	if (cfi->eh_frame)
		dwarf_cfi_end(cfi->eh_frame);
	if (cfi->dwarf)
		dwarf_end(cfi->dwarf);
	free(cfi);
}

/* Opening a Dwarf is worth it only where .eh_frame does not answer and .debug_frame is there. */
static Dwarf_CFI *open_debug_frame(struct cfi *cfi)
{
	size_t names;
	Elf_Scn *section = NULL;

	if (cfi->debug_frame_opened)
		return cfi->debug_frame;
	cfi->debug_frame_opened = true;
	if (elf_getshdrstrndx(cfi->elf, &names))
		return NULL;
	while ((section = elf_nextscn(cfi->elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || !(name = elf_strptr(cfi->elf, names, header.sh_name)))
			continue;
		if (strcmp(name, ".debug_frame") && strcmp(name, ".zdebug_frame"))
			continue;
		cfi->dwarf = dwarf_begin_elf(cfi->elf, DWARF_C_READ, NULL);
		cfi->debug_frame = cfi->dwarf ? dwarf_getcfi(cfi->dwarf) : NULL;
		break;
	}
	return cfi->debug_frame;
}

/* A register plus offset; false: the operation is another one. */
static bool decode_register_offset(const Dwarf_Op *op, uint8_t *register_ret, int32_t *offset_ret)
{
	Dwarf_Word number, offset;

	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		number = op->atom - DW_OP_breg0;
		offset = op->number;
	} else if (op->atom == DW_OP_bregx) {
		number = op->number;
		offset = op->number2;
	} else {
		return false;
	}
	if (number >= UNWIND_REGISTERS || (int64_t)offset != (int32_t)offset)
		return false;
	*register_ret = (uint8_t)number;
	*offset_ret = (int32_t)offset;
	return true;
}

/* What linkers write for the PLT: register + 8 + ((rip & 15) >= N) << 3; N, or 0 when it is not that. */
static uint8_t plt_threshold(const Dwarf_Op *ops, size_t count)
{
	static const uint8_t expected[] = {0,	     DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
					   DW_OP_ge, DW_OP_lit3,   DW_OP_shl,	DW_OP_plus};

	if (count != sizeof(expected) || ops[4].atom <= DW_OP_lit0 || ops[4].atom > DW_OP_lit15)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (expected[i] && ops[i].atom != expected[i])
			return 0;
	}
	return (uint8_t)(ops[4].atom - DW_OP_lit0);
}

static void decode_cfa(Dwarf_Frame *frame, struct cfi_row *row)
{
	Dwarf_Op *ops;
	size_t count;

	row->cfa_expression = true;
	if (dwarf_frame_cfa(frame, &ops, &count) || !count ||
	    !decode_register_offset(&ops[0], &row->cfa_register, &row->cfa_offset))
		return;
	if (count == 1) {
		row->cfa_expression = false;
	} else if (count == 2 && ops[1].atom == DW_OP_deref) {
		row->cfa_expression = false;
		row->cfa_load = true;
	} else {
		row->plt_threshold = plt_threshold(ops, count);
		row->cfa_expression = !row->plt_threshold;
	}
}

/* What dwarf_frame_register() gives for saved at CFA + N, for is CFA + N, for in a register and for expressions. */
static struct cfi_rule decode_operations(const Dwarf_Op *ops, size_t count)
{
	struct cfi_rule rule = {.kind = CFI_RULE_EXPRESSION};
	bool is_value = count && ops[count - 1].atom == DW_OP_stack_value;
	int64_t offset = 0;

	count -= is_value;
	/* An expression begins with the CFA on its stack, which one that starts from a register leaves alone. */
	if (count == 2 && !is_value && ops[0].atom == DW_OP_call_frame_cfa &&
	    decode_register_offset(&ops[1], &rule.reg, &rule.offset)) {
		rule.kind = CFI_RULE_AT_REGISTER;
	} else if (count && ops[0].atom == DW_OP_call_frame_cfa) {
		if (count == 2 && ops[1].atom == DW_OP_plus_uconst)
			offset = (int64_t)ops[1].number;
		else if (count != 1)
			return rule;
		if (offset != (int32_t)offset)
			return rule;
		rule.kind = is_value ? CFI_RULE_VALUE : CFI_RULE_OFFSET;
		rule.offset = (int32_t)offset;
	} else if (count == 1 && !is_value && ops[0].atom == DW_OP_regx && ops[0].number < UNWIND_REGISTERS) {
		rule = (struct cfi_rule){.kind = CFI_RULE_REGISTER, .reg = (uint8_t)ops[0].number};
	} else if (count == 1 && !is_value && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
		rule = (struct cfi_rule){.kind = CFI_RULE_REGISTER, .reg = (uint8_t)(ops[0].atom - DW_OP_reg0)};
	}
	return rule;
}

static struct cfi_rule decode_rule(Dwarf_Frame *frame, int number)
{
	Dwarf_Op memory[3];
	Dwarf_Op *ops;
	size_t count;

	if (dwarf_frame_register(frame, number, memory, &ops, &count))
		return (struct cfi_rule){.kind = CFI_RULE_UNDEFINED};
	if (!count)
		return (struct cfi_rule){.kind = ops ? CFI_RULE_UNDEFINED : CFI_RULE_SAME};
	return decode_operations(ops, count);
}

static bool read_row(Dwarf_CFI *source, uint64_t address, struct cfi_row *row)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr start, end;
	bool is_signal_frame;
	int return_column;

	if (!source || dwarf_cfi_addrframe(source, address, &frame))
		return false;
	return_column = dwarf_frame_info(frame, &start, &end, &is_signal_frame);
	if (return_column < 0 || address < start || address >= end) {
		free(frame);
		return false;
	}
	/* After a restored state the library's start is that of the row the state was saved in. Only the end tells rows
	 * apart. */
	*row = (struct cfi_row){.start = address, .end = end, .signal_frame = is_signal_frame};
	decode_cfa(frame, row);
	for (int i = 0; i < CFI_REGISTERS - 1; i++)
		row->rules[i] = decode_rule(frame, i);
	row->rules[CFI_REGISTERS - 1] = decode_rule(frame, return_column);
	free(frame);
	return true;
}

/* Room for the next row; it counts only once `row_count` says so. */
static struct cfi_row *next_row(struct cfi *cfi)
{
	size_t block = cfi->row_count / ROWS_PER_BLOCK;

	if (block == cfi->blocks.count) {
		struct row_block *new_block = malloc(sizeof(*new_block));

		if (!new_block || !vector_push(&cfi->blocks, new_block)) {
			free(new_block);
			return NULL;
		}
	}
	return &cfi->blocks.items[block]->rows[cfi->row_count % ROWS_PER_BLOCK];
}

const struct cfi_row *cfi_find(struct cfi *cfi, uint64_t address)
{
	const uint64_t *known = map_get(&cfi->by_address, address);
	struct cfi_row *row;

	if (known)
		return (const struct cfi_row *)(uintptr_t)*known;
	row = next_row(cfi);
	if (!row)
		return NULL;
	if (!read_row(cfi->eh_frame, address, row) && !read_row(open_debug_frame(cfi), address, row)) {
		(void)map_put(&cfi->by_address, address, 0);
		return NULL;
	}
	known = map_get(&cfi->by_end, row->end);
	if (known)
		row = (struct cfi_row *)(uintptr_t)*known;
	else if (map_put(&cfi->by_end, row->end, (uint64_t)(uintptr_t)row))
		cfi->row_count++;
	else
		return NULL;
	if (address < row->start)
		row->start = address;
	(void)map_put(&cfi->by_address, address, (uint64_t)(uintptr_t)row);
	return row;
}
