/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The entries (CIE and FDE) of a section of call frame information. Any bytes are a section: what makes no sense is
 * left out. */
#ifndef CODE_UNWIND_CFI_ENTRIES_H
#define CODE_UNWIND_CFI_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/vector.h"

#define CFI_SECTION_MAX (1u << 28)

struct cfi_section {
	const uint8_t *bytes; /* of a 64-bit program, little endian */
	size_t size;
	uint64_t address;	   /* of the first byte, in the numbering that the rows are to have */
	bool is_debug_frame;	   /* else .eh_frame */
	bool ends_with_terminator; /* what follows an entry of length 0 is something else */
	/* .eh_frame_hdr, which has the FDEs in the order of their addresses; size 0: none. */
	const uint8_t *header;
	size_t header_size;
	uint64_t header_address;
};

struct cfi_cie {
	size_t offset; /* in the section */
	struct bytes instructions;
	uint64_t code_alignment;
	int64_t data_alignment;
	uint8_t pointer_encoding;
	uint8_t return_column;
	bool has_augmentation_size;
	bool signal_frame;
	bool usable;
};

/* A section has few CIEs in use, each by many FDEs in a row. */
#define CFI_CIES 8

/* The CIEs looked at last. Zeroed: none. */
struct cfi_cies {
	struct {
		struct cfi_cie cie;
		bool known;
	} items[CFI_CIES];
};

struct cfi_fde {
	uint64_t start, end;
	struct bytes instructions;
	const struct cfi_cie *cie; /* one of the CIEs looked at last */
};

/* Reads the FDE at `offset`; false: nothing there describes any code. */
bool cfi_entries_fde(const struct cfi_section *section, struct cfi_cies *cies, size_t offset, struct cfi_fde *fde_ret);

/*
 * Go from entry to entry: `for (size_t position = 0; cfi_entries_next(section, &position, &offset);)`; what is at
 * `offset` need not be an FDE.
 */
bool cfi_entries_next(const struct cfi_section *section, size_t *position, size_t *offset_ret);

/*
 * The pointer of the format `encoding` (DW_EH_PE_*) at the cursor, which is inside the section; a failed cursor: it
 * cannot be read, or needs the running process.
 */
uint64_t cfi_entries_pointer(const struct cfi_section *section, struct bytes *bytes, uint8_t encoding);

/*
 * Where the FDEs of a section are, by the addresses that they describe: as .eh_frame_hdr has it, or by reading them
 * all.
 */

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
