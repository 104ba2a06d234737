/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Registers of a thread by DWARF register number, as unwinding needs them. */
#pragma once

#include <stdint.h>

#define REGISTER_NUMBERS 33

struct register_values {
	uint64_t known;			   /* bit n: values[n] was recorded */
	uint64_t values[REGISTER_NUMBERS]; /* x86-64: 6 rbp, 7 rsp, 16 the instruction pointer */
};
