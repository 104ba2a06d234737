/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the FDEs of a section are, by the addresses that they describe: as .eh_frame_hdr has it, or by reading them
 * all.
 */
#ifndef CODE_CFI_INDEX_H
#define CODE_CFI_INDEX_H

#include "base/vector.h"
#include "code/cfi-entries.h"

struct cfi_index_entry {
	uint64_t start;
	uint32_t offset; /* of the FDE in the section */
	uint32_t rows;	 /* the table's, see cfi-rows.c; 0 in a new index */
};

struct cfi_index {
	VECTOR(struct cfi_index_entry) entries; /* by ascending start; of those with equal ones the last one holds */
	bool from_header;			/* whether its places are those of FDEs is not known */
};

/* Any bytes give an index of no more entries than they have room for. False: out of memory. */
bool cfi_index_create(const struct cfi_section *section, struct cfi_index *index);

/* The same without the header, of entries that describe code. */
bool cfi_index_scan(const struct cfi_section *section, struct cfi_index *index);
void cfi_index_deinit(struct cfi_index *index);

/* Number of entries that begin at or before `address`. */
size_t cfi_index_up_to(const struct cfi_index *index, uint64_t address);

#endif
