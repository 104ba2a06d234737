/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Unwind rows of one ELF file, from .eh_frame and .debug_frame. */
#ifndef CODE_CFI_H
#define CODE_CFI_H

#include <libelf.h>
#include <stdint.h>

#include "base/error.h"
#include "code/unwind.h"

struct cfi;

/* Keeps `elf`, which must live as long. */
struct mmt_error *cfi_create(Elf *elf, struct cfi **cfi_ret) MMT_MUST_CHECK;
void cfi_destroy(struct cfi *cfi);

/* The row that covers `address` (ELF virtual); NULL: none, or out of memory. Valid as long as `cfi`; a second visit is
 * quick. */
const struct cfi_row *cfi_find(struct cfi *cfi, uint64_t address);

#endif
