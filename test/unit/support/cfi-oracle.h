/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rows of a file compared with libdw's, at every address where either has a new one. */
#pragma once

#include <stddef.h>

struct cfi_oracle_result {
	size_t addresses; /* compared */
	size_t differences;
	char first[160]; /* the first difference, for people */
	size_t rows;
};

/* Of x86-64's .eh_frame, or of .debug_frame. -1: no such file, or no such section. */
int cfi_oracle_compare(const char *path, int debug_frame, struct cfi_oracle_result *result);
