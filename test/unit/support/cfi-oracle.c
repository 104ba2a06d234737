// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/cfi-oracle.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "code/unwind/cfi.h"

#define REGISTERS 17
#define STACK_POINTER 7
#define EXPRESSION (-1)	   /* kind of a rule: not compared */
#define BY_CONVENTION (-2) /* no rule; libdw then chooses which registers are preserved */

struct comparison {
	Dwarf_CFI *oracle;
	struct cfi_rows *rows;
	struct cfi_oracle_result *result;
};

/* The effect of a register's rule. */
struct meaning {
	int kind; /* enum cfi_rule_kind, or EXPRESSION */
	int reg;
	int64_t offset;
};

static bool is_register_offset(const Dwarf_Op *op, int *register_ret, int64_t *offset_ret)
{
	bool direct = op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31;

	if (!direct && op->atom != DW_OP_bregx)
		return false;
	*register_ret = direct ? op->atom - DW_OP_breg0 : (int)op->number;
	*offset_ret = (int64_t)(direct ? op->number : op->number2);
	return true;
}

/* dwarf_frame_register() describes a rule by operations that start with the CFA on their stack. */
static struct meaning meaning_of_operations(const Dwarf_Op *ops, size_t count)
{
	struct meaning meaning = {.kind = EXPRESSION};
	bool is_value = count && ops[count - 1].atom == DW_OP_stack_value;

	count -= is_value;
	if (count >= 2 && count <= 3 && !is_value && ops[0].atom == DW_OP_call_frame_cfa &&
	    (count == 2 || ops[1].atom == DW_OP_drop) &&
	    is_register_offset(&ops[count - 1], &meaning.reg, &meaning.offset)) {
		meaning.kind = CFI_RULE_AT_REGISTER;
	} else if (count == 1 && ops[0].atom == DW_OP_call_frame_cfa) {
		meaning.kind = is_value ? CFI_RULE_VALUE : CFI_RULE_OFFSET;
	} else if (count == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst) {
		meaning.kind = is_value ? CFI_RULE_VALUE : CFI_RULE_OFFSET;
		meaning.offset = (int64_t)ops[1].number;
	} else if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
		meaning = (struct meaning){.kind = CFI_RULE_REGISTER, .reg = ops[0].atom - DW_OP_reg0};
	} else if (count == 1 && ops[0].atom == DW_OP_regx) {
		meaning = (struct meaning){.kind = CFI_RULE_REGISTER, .reg = (int)ops[0].number};
	}
	return meaning;
}

static struct meaning oracle_meaning(Dwarf_Frame *frame, int number)
{
	Dwarf_Op memory[3];
	Dwarf_Op *ops;
	size_t count;

	if (dwarf_frame_register(frame, number, memory, &ops, &count))
		return (struct meaning){.kind = CFI_RULE_UNDEFINED};
	if (!count)
		return (struct meaning){.kind = ops ? CFI_RULE_UNDEFINED : CFI_RULE_SAME};
	return meaning_of_operations(ops, count);
}

static struct meaning our_meaning(const struct cfi_row *row, unsigned number)
{
	const struct cfi_rule *rule = cfi_row_rule(row, number);
	struct meaning meaning;

	if (!rule)
		return (struct meaning){.kind = number == STACK_POINTER ? CFI_RULE_VALUE : BY_CONVENTION};
	meaning = (struct meaning){.kind = rule->kind, .offset = rule->offset, .reg = rule->reg};
	if (rule->kind == CFI_RULE_UNKNOWN)
		meaning = (struct meaning){.kind = EXPRESSION};
	return meaning;
}

static bool same_cfa(const struct cfi_row *row, const Dwarf_Op *ops, size_t count)
{
	int reg;
	int64_t offset;

	if (count == 1 && is_register_offset(&ops[0], &reg, &offset))
		return row->cfa_kind == CFI_CFA_REGISTER && row->cfa_register == reg && row->cfa_offset == offset;
	if (count >= 2 && is_register_offset(&ops[0], &reg, &offset) && ops[1].atom == DW_OP_deref &&
	    (count == 2 || (count == 3 && ops[2].atom == DW_OP_plus_uconst)))
		return row->cfa_kind == CFI_CFA_LOAD && row->cfa_register == reg && row->cfa_offset == offset &&
		       row->cfa_addend == (count == 3 ? ops[2].number : 0);
	if (row->cfa_kind == CFI_CFA_PLT)
		return count == 9 && ops[4].atom == DW_OP_lit0 + row->plt_threshold && ops[8].atom == DW_OP_plus;
	return row->cfa_kind == CFI_CFA_UNKNOWN;
}

static void note_difference(struct comparison *comparison, uint64_t address, const char *what, int number)
{
	if (!comparison->result->differences++)
		snprintf(comparison->result->first, sizeof(comparison->result->first), "%#lx: %s %d",
			 (unsigned long)address, what, number);
}

/* Compare at one address; returns where the oracle's row ends, or the next address if it has none. */
static uint64_t compare_at(struct comparison *comparison, uint64_t address, const struct cfi_row *row)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr start, end = address + 1;
	Dwarf_Op *ops;
	bool signal_frame = false;
	size_t count;
	int column = -1;

	comparison->result->addresses++;
	if (!dwarf_cfi_addrframe(comparison->oracle, address, &frame))
		column = dwarf_frame_info(frame, &start, &end, &signal_frame);
	if (column < 0 || address >= end || !row) {
		if ((column >= 0 && address < end) || row)
			note_difference(comparison, address, row ? "a row too many" : "a row too few", 0);
		free(frame);
		return address + 1;
	}
	if (dwarf_frame_cfa(frame, &ops, &count) || !same_cfa(row, ops, count))
		note_difference(comparison, address, "CFA", 0);
	if (signal_frame != row->signal_frame || column != row->return_column)
		note_difference(comparison, address, "signal frame or return column", column);
	for (int i = 0; i < REGISTERS; i++) {
		struct meaning theirs = oracle_meaning(frame, i), ours = our_meaning(row, (unsigned)i);

		if (ours.kind == BY_CONVENTION && (theirs.kind == CFI_RULE_SAME || theirs.kind == CFI_RULE_UNDEFINED))
			continue;
		if (theirs.kind != ours.kind ||
		    (ours.kind != EXPRESSION && (theirs.reg != ours.reg || theirs.offset != ours.offset)))
			note_difference(comparison, address, "register", i);
	}
	free(frame);
	return end;
}

/* Entry by entry: where the oracle's rows begin and end, and the ends of the gap before the next entry. */
static void compare_rows(struct comparison *comparison)
{
	struct cfi_rows *rows = comparison->rows;
	uint64_t address = 0, end;

	while (cfi_rows_function_range(rows, address, &end), end != UINT64_MAX) {
		bool is_gap = !cfi_rows_find(rows, address);

		while (address < end) {
			uint64_t next = compare_at(comparison, address, cfi_rows_find(rows, address));

			next = is_gap || next > end ? end : next;
			compare_at(comparison, next - 1, cfi_rows_find(rows, next - 1));
			comparison->result->rows += !is_gap;
			address = next;
		}
	}
}

int cfi_oracle_compare(const char *path, int debug_frame, struct cfi_oracle_result *result)
{
	struct comparison comparison = {.result = result};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd >= 0 && elf_version(EV_CURRENT) ? elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL) : NULL;
	Dwarf *dwarf = elf && debug_frame ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	struct cfi *cfi;

	*result = (struct cfi_oracle_result){0};
	if (elf)
		comparison.oracle = debug_frame ? dwarf_getcfi(dwarf) : dwarf_getcfi_elf(elf);
	cfi = comparison.oracle ? cfi_create(elf) : NULL;
	if (cfi) {
		comparison.rows = cfi_table(cfi, debug_frame);
		if (comparison.rows)
			compare_rows(&comparison);
	}
	cfi_destroy(cfi);
	if (comparison.oracle && !debug_frame)
		dwarf_cfi_end(comparison.oracle);
	dwarf_end(dwarf);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return comparison.rows ? 0 : -1;
}
