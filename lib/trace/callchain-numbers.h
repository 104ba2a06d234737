/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Equal callchains have equal numbers, so that whoever has seen one need not look at it again. In bounded memory: one
 * that was not seen for long may get another number when it comes again. No number is given twice to different ones.
 */
#ifndef TRACE_CALLCHAIN_NUMBERS_H
#define TRACE_CALLCHAIN_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct callchain_numbers;

struct mmt_error *callchain_numbers_create(struct callchain_numbers **numbers_ret) MMT_MUST_CHECK;
/* Accepts NULL. */
void callchain_numbers_destroy(struct callchain_numbers *numbers);

/* Its number, from 1; 0: it has none yet, and *hash_ret is for callchain_numbers_add(); or it can have none. */
uint64_t callchain_numbers_find(struct callchain_numbers *numbers, const uint64_t *callchain, size_t count,
				uint64_t *hash_ret);

/* A number for one that has none; 0: it is empty or too long, or memory is short. */
uint64_t callchain_numbers_add(struct callchain_numbers *numbers, const uint64_t *callchain, size_t count,
			       uint64_t hash);

#endif
