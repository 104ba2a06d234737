/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The machine that runs the instructions of one FDE: row after row, with the addresses where the rows begin. */
#ifndef CODE_CFI_MACHINE_H
#define CODE_CFI_MACHINE_H

#include "base/map.h"
#include "base/vector.h"
#include "code/cfi-entries.h"
#include "code/cfi-row.h"

struct cfi_state {
	uint8_t cfa_kind, cfa_register, plt_threshold;
	bool cfa_from_expression;
	int64_t cfa_offset;
	uint64_t specified; /* mask of the registers that have a rule */
	struct cfi_rule rules[CFI_REGISTERS];
};

struct cfi_machine {
	const struct cfi_section *section;
	const struct cfi_cie *cie;
	struct intern *expressions; /* where expressions get their index */
	struct cfi_state state;	    /* the row in force */
	struct cfi_state initial;   /* after the instructions of the CIE */
	bool no_memory;		    /* or too many expressions */
	uint64_t location;	    /* where the row in force begins */
	VECTOR(struct cfi_state) saved;
};

/* Run the CIE's instructions, from a zeroed state. False: they make no sense. */
bool cfi_machine_run_cie(struct cfi_machine *machine);

enum cfi_machine_step {
	CFI_MACHINE_ROW,    /* the row in force ends at *next_ret */
	CFI_MACHINE_END,    /* the row in force is the last one */
	CFI_MACHINE_FAILED, /* the row in force, and what follows it, is not known */
};

/* Run up to the next change of the location. */
enum cfi_machine_step cfi_machine_run(struct cfi_machine *machine, struct bytes *instructions, uint64_t *next_ret);

void cfi_machine_deinit(struct cfi_machine *machine);

#endif
