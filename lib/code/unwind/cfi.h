/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Unwind rows for one piece of code: an ELF file (.eh_frame and .debug_frame), or JIT code. */
#ifndef CODE_UNWIND_CFI_H
#define CODE_UNWIND_CFI_H

#include <libelf.h>
#include <stdint.h>

#include "base/errors.h"
#include "code/unwind/cfi-rows.h"

struct cfi;

/* Keeps `elf`, which must outlive the result. */
struct mmt_error *cfi_create(Elf *elf, struct cfi **cfi_ret) MMT_MUST_CHECK;

/* Use the bytes of an .eh_frame section, as in jitdump's UNWINDING_INFO, as if loaded at `address`. Rows use that
 * address space. The bytes are not needed afterwards. */
struct mmt_error *cfi_create_from_memory(const uint8_t *bytes, size_t size, uint64_t address,
					 struct cfi **cfi_ret) MMT_MUST_CHECK;
void cfi_destroy(struct cfi *cfi);

/* The row that covers `address` (ELF virtual); NULL: none, or out of memory. Valid as long as `cfi`. */
const struct cfi_row *cfi_find(struct cfi *cfi, uint64_t address);

/* cfi_rows_function_range() over all tables. */
bool cfi_function_range(struct cfi *cfi, uint64_t address, uint64_t *end_ret);

/* The underlying tables; NULL: none. */
struct cfi_rows *cfi_eh_frame(struct cfi *cfi);
struct cfi_rows *cfi_debug_frame(struct cfi *cfi);

#endif
