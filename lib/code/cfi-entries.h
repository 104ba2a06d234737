/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The entries (CIE and FDE) of a section of call frame information. Any bytes are a section: what makes no sense is
 * left out. */
#ifndef CODE_CFI_ENTRIES_H
#define CODE_CFI_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/vector.h"

#define CFI_SECTION_MAX (1u << 28)
#define CFI_CIES_MAX (1u << 18)

struct cfi_section {
	const uint8_t *bytes; /* of a 64-bit program, little endian */
	size_t size;
	uint64_t address;	   /* of the first byte, in the numbering that the rows are to have */
	bool is_debug_frame;	   /* else .eh_frame */
	bool ends_with_terminator; /* what follows an entry of length 0 is something else */
};

struct cfi_cie {
	struct bytes instructions;
	uint64_t code_alignment;
	int64_t data_alignment;
	uint8_t pointer_encoding;
	uint8_t return_column;
	bool has_augmentation_size;
	bool signal_frame;
	bool usable;
};

struct cfi_fde {
	uint64_t start, end;
	uint32_t cie; /* index */
	uint32_t instructions_offset, instructions_size;
};

struct cfi_entries {
	VECTOR(struct cfi_cie) cies;
	VECTOR(struct cfi_fde) fdes; /* in the section's order; of CIEs that are usable */
	struct map cie_by_offset;
	size_t cie_bytes; /* of all of them: those of a real section do not overlap */
};

/* False: out of memory. `entries` is zeroed before and, either way, to be given back afterwards. */
bool cfi_entries_read(const struct cfi_section *section, struct cfi_entries *entries);
void cfi_entries_deinit(struct cfi_entries *entries);

/*
 * The pointer of the format `encoding` (DW_EH_PE_*) at the cursor, which is inside the section; a failed cursor: it
 * cannot be read, or needs the running process.
 */
uint64_t cfi_entries_pointer(const struct cfi_section *section, struct bytes *bytes, uint8_t encoding);

#endif
