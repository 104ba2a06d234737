/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Call frame information (CFI) of one piece of code: an ELF file (.eh_frame and .debug_frame), or JIT code. cfi.c finds
 * the sections; cfi-rows.c reads their entries and computes rows, which show how to find the CFA and the saved
 * registers at an address. */
#pragma once

#include <libelf.h>

#include "base/bytes.h"
#include "base/registers.h"
#include "base/vector.h"

struct cfi_section {
	const uint8_t *bytes; /* of a 64-bit program, little endian */
	size_t size;
	uint64_t address;	   /* address of the first byte, in the address space that the rows will use */
	bool is_debug_frame;	   /* false: .eh_frame */
	bool ends_with_terminator; /* the section ends at an entry of length 0 */
	/* .eh_frame_hdr, which lists the FDEs by address; size 0: none. */
	const uint8_t *header;
	size_t header_size;
	uint64_t header_address;
};

/* Read a pointer with format `encoding` (DW_EH_PE_*) at the cursor, which is inside the section. The cursor fails if
 * the pointer is unreadable or needs the running process. */
uint64_t cfi_entries_pointer(const struct cfi_section *section, struct bytes *bytes, uint8_t encoding);

/* One row of call frame information: how to find the caller's registers from one range of addresses. */

/* DWARF numbers of the tracked registers are below this: the general registers of every architecture. */
#define CFI_REGISTERS REGISTER_NUMBERS

enum cfi_rule_kind {
	CFI_RULE_SAME,	      /* register unchanged */
	CFI_RULE_UNDEFINED,   /* undefined; for the return address: this is the outermost frame */
	CFI_RULE_OFFSET,      /* saved at CFA + offset */
	CFI_RULE_VALUE,	      /* value is CFA + offset */
	CFI_RULE_REGISTER,    /* in another register */
	CFI_RULE_AT_REGISTER, /* saved at register + offset (functions that align their stack) */
	CFI_RULE_UNKNOWN,     /* by another DWARF expression */
};

struct cfi_rule {
	uint8_t number; /* register that the rule describes */
	uint8_t kind;	/* enum cfi_rule_kind */
	uint8_t reg;	/* CFI_RULE_REGISTER, CFI_RULE_AT_REGISTER */
	uint8_t unused;
	int32_t offset;
};

enum cfi_cfa_kind {
	CFI_CFA_REGISTER, /* register + offset */
	CFI_CFA_LOAD,	  /* word at register + offset, plus cfa_addend */
	CFI_CFA_PLT,	  /* register + offset, plus a word if the low four bits of the address are >= plt_threshold */
	CFI_CFA_UNKNOWN,  /* another DWARF expression: only cryptographic code without calls has some */
};

/* Registers without a rule follow the calling convention of the architecture: preserved, or undefined. The stack
 * pointer becomes the CFA. */
struct cfi_row {
	const struct cfi_rule *rules; /* by ascending number */
	int32_t cfa_offset;
	uint32_t cfa_addend;
	uint8_t cfa_kind; /* enum cfi_cfa_kind */
	uint8_t cfa_register;
	uint8_t plt_threshold;
	uint8_t rule_count;
	uint8_t return_column; /* column of the return address */
	bool signal_frame;
	bool deduced;	  /* from instruction analysis, without an unwind table */
	bool other_stack; /* the caller is on another stack: the other members are unused */
	bool unsure;	  /* the instructions may have changed: use the row only if the resulting return address
			     follows a call */
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

/* Whether the row marks its function as outermost. */
static inline bool cfi_row_is_outermost(const struct cfi_row *row)
{
	const struct cfi_rule *rule = cfi_row_rule(row, row->return_column);

	return rule && rule->kind == CFI_RULE_UNDEFINED;
}

/* The rows of a section of call frame information: computed on look-up, and each stored once, because a file has few
 * distinct ones. */

struct cfi_rows;

/* Accepts arbitrary bytes, which must outlive the table. The time of a lookup and the number of rows are bounded.
 * Where entries overlap, the one that begins later applies, and none applies after its end. An invalid instruction ends
 * its entry. */
struct mmt_error *cfi_rows_create(const struct cfi_section *section, struct cfi_rows **rows_ret) MMT_MUST_CHECK;

void cfi_rows_destroy(struct cfi_rows *rows);

/* The row that covers `address`; NULL: none, or out of memory. Valid as long as the table. */
const struct cfi_row *cfi_rows_find(struct cfi_rows *rows, uint64_t address);

/* Find the end of the code at `address`: the end of the entry that covers it, or else the start of the next entry;
 * UINT64_MAX: none. Returns true if an entry begins exactly at `address`. */
bool cfi_rows_function_range(struct cfi_rows *rows, uint64_t address, uint64_t *end_ret);

/* All tables of an ELF file, or of JIT code. */

/* Keeps `elf`, which must outlive the result. NULL: out of memory. */
struct cfi *cfi_create(Elf *elf);

/* Use the bytes of an .eh_frame section, as in jitdump's UNWINDING_INFO, as if loaded at `address`. Rows use that
 * address space. Borrows the bytes. */
struct cfi *cfi_create_from_memory(const uint8_t *bytes, size_t size, uint64_t address);
void cfi_destroy(struct cfi *cfi);

/* The row that covers `address` (ELF virtual); NULL: none, or out of memory. Valid as long as `cfi`. */
const struct cfi_row *cfi_find(struct cfi *cfi, uint64_t address);

/* cfi_rows_function_range() over all tables. */
bool cfi_function_range(struct cfi *cfi, uint64_t address, uint64_t *end_ret);

/* The table of .eh_frame or of .debug_frame; NULL: none. */
struct cfi_rows *cfi_table(struct cfi *cfi, bool debug_frame);
