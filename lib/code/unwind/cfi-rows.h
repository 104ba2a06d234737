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

/* DWARF numbers of the tracked registers are below this: the general registers of every architecture. */
#define CFI_REGISTERS REGISTER_NUMBERS

enum cfi_rule_kind {
	CFI_RULE_SAME,		   /* register unchanged */
	CFI_RULE_UNDEFINED,	   /* undefined; for the return address: this is the outermost frame */
	CFI_RULE_OFFSET,	   /* saved at CFA + offset */
	CFI_RULE_VALUE,		   /* value is CFA + offset */
	CFI_RULE_REGISTER,	   /* in another register */
	CFI_RULE_AT_REGISTER,	   /* saved at register + offset (functions that align their stack) */
	CFI_RULE_EXPRESSION,	   /* saved at the address that a DWARF expression computes */
	CFI_RULE_VALUE_EXPRESSION, /* value computed by a DWARF expression */
};

struct cfi_rule {
	uint8_t number; /* register that the rule describes */
	uint8_t kind;	/* enum cfi_rule_kind */
	uint8_t reg;	/* CFI_RULE_REGISTER, CFI_RULE_AT_REGISTER */
	uint8_t unused;
	int32_t offset; /* for expressions: index into the row's `expressions` */
};

enum cfi_cfa_kind {
	CFI_CFA_REGISTER, /* register + offset */
	CFI_CFA_LOAD,	  /* word at register + offset */
	CFI_CFA_PLT,	  /* register + offset, plus a word if the low four bits of the address are >= plt_threshold */
	CFI_CFA_EXPRESSION, /* `cfa_offset` is an index into `expressions` */
};

struct cfi_expression {
	const uint8_t *bytes;
	size_t size;
};

/* Registers without a rule follow the calling convention of the architecture: preserved, or undefined. The stack
 * pointer becomes the CFA. */
struct cfi_row {
	const struct cfi_rule *rules; /* by ascending number */
	const struct cfi_expression *expressions;
	int32_t cfa_offset;
	uint8_t cfa_kind; /* enum cfi_cfa_kind */
	uint8_t cfa_register;
	uint8_t plt_threshold;
	uint8_t rule_count;
	uint8_t return_column; /* column of the return address */
	bool signal_frame;
	bool has_expressions; /* needs DWARF expressions: see expressions.h */
	bool deduced;	      /* from instruction analysis, without an unwind table */
	bool other_stack;     /* the caller is on another stack: the other members are unused */
	bool unsure;	      /* the instructions may have changed: use the row only if the resulting return address
				 follows a call */
	/* Set by cfi_row_finish(): */
	bool plain;	       /* the CFA is register plus offset, and all saved registers are at CFA plus offset */
	int32_t return_offset; /* plain row: the return address is saved at CFA + this */
	uint64_t ruled;	       /* plain row: mask of the registers with a rule */
};

/* The rule for register `number`; NULL: none. */
static inline const struct cfi_rule *cfi_row_rule(const struct cfi_row *row, unsigned number)
{
	/* Start at the end: the usual query is for the return address, which has the highest number. */
	for (unsigned i = row->rule_count; i-- > 0;) {
		if (row->rules[i].number == number)
			return &row->rules[i];
	}
	return NULL;
}

/* Precompute what makes a row fast to use, after its rules are complete. A row works without this too. */
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

/* Whether the row marks its function as outermost. */
static inline bool cfi_row_is_outermost(const struct cfi_row *row)
{
	const struct cfi_rule *rule = cfi_row_rule(row, row->return_column);

	return rule && rule->kind == CFI_RULE_UNDEFINED;
}

/* A section of call frame information. Functions are compiled on demand: each address at which the rules change takes 4
 * bytes plus the index of its row. A file has few distinct rows, so each is stored only once. */

struct cfi_rows;

/* Accepts arbitrary bytes, which must outlive the table; their number bounds time and memory. Where entries overlap,
 * the one that begins later applies, and none applies after its end. An invalid instruction ends its entry. */
struct mmt_error *cfi_rows_create(const struct cfi_section *section, struct cfi_rows **rows_ret) MMT_MUST_CHECK;

void cfi_rows_destroy(struct cfi_rows *rows);

/* The row that covers `address`; NULL: none, or out of memory. Valid as long as the table. */
const struct cfi_row *cfi_rows_find(struct cfi_rows *rows, uint64_t address);

/* Find the end of the code at `address`: the end of the entry that covers it, or else the start of the next entry;
 * UINT64_MAX: none. Returns true if an entry begins exactly at `address`. */
bool cfi_rows_function_range(struct cfi_rows *rows, uint64_t address, uint64_t *end_ret);

/* Compile all remaining functions. */
struct mmt_error *cfi_rows_complete(struct cfi_rows *rows) MMT_MUST_CHECK;

/* Iterate over a complete table by address: `for (size_t i = 0; cfi_rows_next(rows, &i, &start, &end, &row);)`. `row`
 * is NULL for a gap. */
bool cfi_rows_next(const struct cfi_rows *rows, size_t *position, uint64_t *start_ret, uint64_t *end_ret,
		   const struct cfi_row **row_ret);

struct cfi_rows_size {
	size_t entries; /* FDEs */
	size_t rows;	/* rows in the compiled entries; consecutive equal rows count separately */
	size_t distinct;
	size_t bytes; /* of the whole table */
};

struct cfi_rows_size cfi_rows_size(const struct cfi_rows *rows);

#endif
