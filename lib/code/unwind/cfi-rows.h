/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compiles call frame information (CFI) into rows: for a range of addresses, how to find the CFA and the saved
 * registers.
 */
#ifndef CODE_UNWIND_CFI_ROWS_H
#define CODE_UNWIND_CFI_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/registers.h"
#include "code/unwind/cfi-entries.h"

/* One row of call frame information: how to find the caller's registers from one range of addresses. */

/* DWARF numbers below this are looked at: the general registers of every architecture. */
#define CFI_REGISTERS REGISTER_NUMBERS

enum cfi_rule_kind {
	CFI_RULE_SAME,		   /* register unchanged */
	CFI_RULE_UNDEFINED,	   /* lost; of the return address: this is the outermost frame */
	CFI_RULE_OFFSET,	   /* saved at CFA + offset */
	CFI_RULE_VALUE,		   /* is CFA + offset */
	CFI_RULE_REGISTER,	   /* is in another register */
	CFI_RULE_AT_REGISTER,	   /* saved at register + offset (functions that align their stack) */
	CFI_RULE_EXPRESSION,	   /* saved where a DWARF expression says */
	CFI_RULE_VALUE_EXPRESSION, /* is what a DWARF expression gives */
};

struct cfi_rule {
	uint8_t number; /* of the register it is about */
	uint8_t kind;	/* enum cfi_rule_kind */
	uint8_t reg;	/* CFI_RULE_REGISTER, CFI_RULE_AT_REGISTER */
	uint8_t unused;
	int32_t offset; /* of the expressions: index into the row's `expressions` */
};

enum cfi_cfa_kind {
	CFI_CFA_REGISTER, /* register + offset */
	CFI_CFA_LOAD,	  /* the word at register + offset */
	CFI_CFA_PLT, /* register + offset, and a word more when the low four bits of the address are >= plt_threshold */
	CFI_CFA_EXPRESSION, /* `cfa_offset` is an index into `expressions` */
};

struct cfi_expression {
	const uint8_t *bytes;
	size_t size;
};

/*
 * Registers that no rule is about are as the architecture's calling convention has them: preserved, or lost; the stack
 * pointer is the CFA.
 */
struct cfi_row {
	const struct cfi_rule *rules; /* by ascending number */
	const struct cfi_expression *expressions;
	int32_t cfa_offset;
	uint8_t cfa_kind; /* enum cfi_cfa_kind */
	uint8_t cfa_register;
	uint8_t plt_threshold;
	uint8_t rule_count;
	uint8_t return_column; /* number of the register that holds, or stands for, the return address */
	bool signal_frame;
	bool has_expressions; /* needs more than what is here: see expressions.h */
	bool deduced;	      /* from the instructions, where no table says anything */
	bool other_stack;     /* the caller is on another stack: nothing else here counts */
	bool unsure;	      /* the instructions may have been others: only if it leads behind a call */
	/* Of cfi_row_finish(): */
	bool plain;	       /* CFA is register plus offset, and so are all places where something is saved */
	int32_t return_offset; /* of a plain row: the return address is saved at CFA + this */
	uint64_t ruled;	       /* of a plain row: mask of the registers that a rule is about */
};

/* The rule about register `number`; NULL: none. */
static inline const struct cfi_rule *cfi_row_rule(const struct cfi_row *row, unsigned number)
{
	/* It is most often the return address, which has the highest number. */
	for (unsigned i = row->rule_count; i-- > 0;) {
		if (row->rules[i].number == number)
			return &row->rules[i];
	}
	return NULL;
}

/* Note what makes a row quick to use, once it has all its rules. A row that this was not done for is as good. */
static inline void cfi_row_finish(struct cfi_row *row)
{
	const struct cfi_rule *return_rule = cfi_row_rule(row, row->return_column);

	row->ruled = 0;
	row->plain = return_rule && return_rule->kind == CFI_RULE_OFFSET && row->cfa_kind == CFI_CFA_REGISTER &&
		     !row->signal_frame && !row->deduced;
	for (unsigned i = 0; i < row->rule_count; i++) {
		row->ruled |= 1ULL << row->rules[i].number;
		row->plain &= row->rules[i].kind <= CFI_RULE_OFFSET;
	}
	row->return_offset = return_rule ? return_rule->offset : 0;
}

/* Whether the row says that its function has no caller. */
static inline bool cfi_row_is_outermost(const struct cfi_row *row)
{
	const struct cfi_rule *rule = cfi_row_rule(row, row->return_column);

	return rule && rule->kind == CFI_RULE_UNDEFINED;
}

/*
 * A section of call frame information, compiled function by function as they are asked for: for each address where the
 * rules change a number of 4 bytes and the index of what holds from there on. Few distinct rows make up a file, so they
 * are kept once.
 */

struct cfi_rows;

/*
 * Any bytes give a table, bounded in time and memory by their number; they must live as long. Where entries overlap,
 * the one that begins later holds, and behind its end none does; an instruction that makes no sense ends its entry.
 */
struct mmt_error *cfi_rows_create(const struct cfi_section *section, struct cfi_rows **rows_ret) MMT_MUST_CHECK;

void cfi_rows_destroy(struct cfi_rows *rows);

/* The row that covers `address`; NULL: none, or out of memory. Valid as long as the table. */
const struct cfi_row *cfi_rows_find(struct cfi_rows *rows, uint64_t address);

/*
 * Where the code ends that `address` is the beginning, or a part, of: the end of the entry that covers it, or else the
 * beginning of the next one; UINT64_MAX: none. True: an entry begins just there.
 */
bool cfi_rows_function_range(struct cfi_rows *rows, uint64_t address, uint64_t *end_ret);

/* Compile what has not been asked for. */
struct mmt_error *cfi_rows_complete(struct cfi_rows *rows) MMT_MUST_CHECK;

/*
 * Iterate by address over a complete table: `for (size_t i = 0; cfi_rows_next(rows, &i, &start, &end, &row);)`; row
 * NULL: a gap.
 */
bool cfi_rows_next(const struct cfi_rows *rows, size_t *position, uint64_t *start_ret, uint64_t *end_ret,
		   const struct cfi_row **row_ret);

struct cfi_rows_size {
	size_t entries; /* FDEs */
	size_t rows;	/* that those compiled describe, whether or not two that follow each other are the same */
	size_t distinct;
	size_t bytes; /* of the whole table */
};

struct cfi_rows_size cfi_rows_size(const struct cfi_rows *rows);

#endif
