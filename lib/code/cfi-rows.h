/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A section of call frame information, compiled function by function as they are asked for: for each address where the
 * rules change a number of 4 bytes and the index of what holds from there on. Few distinct rows make up a file, so they
 * are kept once.
 */
#ifndef CODE_CFI_ROWS_H
#define CODE_CFI_ROWS_H

#include "base/error.h"
#include "code/cfi-entries.h"
#include "code/cfi-row.h"

struct cfi_rows;

/*
 * Any bytes give a table, bounded in time and memory by their number; they must live as long. Where entries overlap,
 * the one that begins later holds, and behind its end none does; an instruction that makes no sense ends its entry.
 */
struct mmt_error *cfi_rows_create(const struct cfi_section *section, struct cfi_rows **rows_ret) MMT_MUST_CHECK;
void cfi_rows_destroy(struct cfi_rows *rows);

/* The row that covers `address`; NULL: none, or out of memory. Valid as long as the table. */
const struct cfi_row *cfi_rows_find(struct cfi_rows *rows, uint64_t address);

/*
 * Where the code ends that `address` is the beginning, or a part, of: the end of the entry that covers it, or else the
 * beginning of the next one; UINT64_MAX: none. True: an entry begins just there.
 */
bool cfi_rows_extent(struct cfi_rows *rows, uint64_t address, uint64_t *end_ret);

/* Compile what has not been asked for. */
struct mmt_error *cfi_rows_complete(struct cfi_rows *rows) MMT_MUST_CHECK;

/*
 * Iterate by address over a complete table: `for (size_t i = 0; cfi_rows_next(rows, &i, &start, &end, &row);)`; row
 * NULL: a gap.
 */
bool cfi_rows_next(const struct cfi_rows *rows, size_t *position, uint64_t *start_ret, uint64_t *end_ret,
		   const struct cfi_row **row_ret);

struct cfi_rows_size {
	size_t entries; /* FDEs */
	size_t rows;	/* that those compiled describe, whether or not two that follow each other are the same */
	size_t distinct;
	size_t bytes; /* of the whole table */
};

struct cfi_rows_size cfi_rows_size(const struct cfi_rows *rows);

#endif
