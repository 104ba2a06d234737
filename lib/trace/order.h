/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Time order across rings, in bounded memory. Records of one ring are in order, rings are not in order with each other.
 * A round ends when every ring has been drained up to a head read in that round: what comes later is younger than the
 * youngest record of the round before. So at the end of round n everything up to the largest time of round n-1 may go
 * out.
 */
#ifndef TRACE_ORDER_H
#define TRACE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct order;

struct order_item {
	uint64_t time_ns;
	uint64_t file_offset;
	const uint8_t *record; /* owned by the order until the next order_pop() */
	size_t size;
};

struct mmt_error *order_create(struct order **order_ret) MMT_MUST_CHECK;
void order_destroy(struct order *order);

/* Copies the record. Equal times keep their order of arrival. */
struct mmt_error *order_push(struct order *order, uint64_t time_ns, uint64_t file_offset, const void *record,
			     size_t size) MMT_MUST_CHECK;

void order_end_round(struct order *order);
/* Nothing more comes: everything may go out. */
void order_end(struct order *order);

/* False: nothing may go out yet. */
bool order_pop(struct order *order, struct order_item *item_ret);

/* Records popped with a time before one popped earlier. */
uint64_t order_violations(const struct order *order);

/* Bytes held, for the test of boundedness. */
size_t order_bytes(const struct order *order);

#endif
