/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One row of call frame information: how to find the caller's registers from one range of addresses. */
#ifndef CODE_CFI_ROW_H
#define CODE_CFI_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/registers.h"

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

#endif
