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

/* From 1; 0: no number for this one: it is empty or too long, or memory is short. */
uint64_t callchain_numbers_get(struct callchain_numbers *numbers, const uint64_t *callchain, size_t count);

/* The same in two steps: 0 when it has none yet; then *hash_ret is for callchain_numbers_add(). */
uint64_t callchain_numbers_find(struct callchain_numbers *numbers, const uint64_t *callchain, size_t count,
				uint64_t *hash_ret);
uint64_t callchain_numbers_add(struct callchain_numbers *numbers, const uint64_t *callchain, size_t count,
			       uint64_t hash);

#endif
