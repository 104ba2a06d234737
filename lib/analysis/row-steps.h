/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the unfreed bytes of rows develop in equal steps of time: only where something changed. */
#ifndef ANALYSIS_ROW_STEPS_H
#define ANALYSIS_ROW_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

struct row_step {
	uint32_t step;
	uint64_t change; /* modulo 2^64: a decrease is a large number */
};

struct row_steps {
	VECTOR(struct row_step) items; /* ascending, one of each step */
};

/* By row number. Zero initialisation makes an empty one. */
struct steps_of_rows {
	VECTOR(struct row_steps) rows;
};

void steps_of_rows_deinit(struct steps_of_rows *steps);

/* False: out of memory. */
bool steps_of_rows_add(struct steps_of_rows *steps, uint32_t row, uint32_t step, uint64_t bytes);

/* The bytes before each of the moments step 1, 2 ...; the last of them after everything. */
void steps_of_rows_get(const struct steps_of_rows *steps, uint32_t row, uint64_t *bytes_ret, size_t count);

#endif
