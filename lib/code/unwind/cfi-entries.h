/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The entries (CIEs and FDEs) of a section of call frame information. The input may be arbitrary bytes; invalid entries
 * are ignored. */
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
	uint64_t address;	   /* address of the first byte, in the address space that the rows will use */
	bool is_debug_frame;	   /* false: .eh_frame */
	bool ends_with_terminator; /* the section ends at an entry of length 0 */
	/* .eh_frame_hdr, which lists the FDEs by address; size 0: none. */
	const uint8_t *header;
	size_t header_size;
	uint64_t header_address;
};

struct cfi_cie {
	size_t offset; /* offset in the section */
	struct bytes instructions;
	uint64_t code_alignment;
	int64_t data_alignment;
	uint8_t pointer_encoding;
	uint8_t return_column;
	bool has_augmentation_size;
	bool signal_frame;
	bool usable;
};

/* A section uses few CIEs, each by many consecutive FDEs. */
#define CFI_CIES 8

/* Cache of recently used CIEs. All zero: empty. */
struct cfi_cies {
	struct {
		struct cfi_cie cie;
		bool known;
	} items[CFI_CIES];
};

struct cfi_fde {
	uint64_t start, end;
	struct bytes instructions;
	const struct cfi_cie *cie; /* an entry of the CIE cache */
};

/* Read the FDE at `offset`. False: there is no FDE that describes code. */
bool cfi_entries_fde(const struct cfi_section *section, struct cfi_cies *cies, size_t offset, struct cfi_fde *fde_ret);

/* Iterate over entries: `for (size_t position = 0; cfi_entries_next(section, &position, &offset);)`. The entry at
 * `offset` need not be an FDE. */
bool cfi_entries_next(const struct cfi_section *section, size_t *position, size_t *offset_ret);

/* Read a pointer with format `encoding` (DW_EH_PE_*) at the cursor, which is inside the section. The cursor fails if
 * the pointer is unreadable or needs the running process. */
uint64_t cfi_entries_pointer(const struct cfi_section *section, struct bytes *bytes, uint8_t encoding);

/* Index of the FDEs of a section by address: from .eh_frame_hdr, or from reading all FDEs. */

struct cfi_index_entry {
	uint64_t start;
	uint32_t offset; /* offset of the FDE in the section */
	uint32_t rows;	 /* used by cfi-rows.c; 0 in a new index */
};

struct cfi_index {
	VECTOR(struct cfi_index_entry) entries; /* ascending by start; of equal starts the last one wins */
	bool from_header;			/* the offsets may not be those of FDEs */
};

/* Create an index from arbitrary bytes; their size limits the number of entries. False: out of memory. */
bool cfi_index_create(const struct cfi_section *section, struct cfi_index *index);

/* The same without the header: reads all entries that describe code. */
bool cfi_index_scan(const struct cfi_section *section, struct cfi_index *index);

void cfi_index_deinit(struct cfi_index *index);

/* Number of entries that begin at or before `address`. */
size_t cfi_index_up_to(const struct cfi_index *index, uint64_t address);

#endif
