/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records that are decoded soon, asked for from memory in time: in the order of time they lie all over their blocks. */
#ifndef TRACE_FETCH_H
#define TRACE_FETCH_H

#include <stddef.h>
#include <stdint.h>

#define FETCH_CACHE_LINE_BYTES 64
#define FETCH_RECORD_BYTES 384 /* what is behind is mostly a copied stack, of which little is read */

static inline void fetch(const void *start, size_t size)
{
	const uint8_t *line = (const uint8_t *)((uintptr_t)start & ~(uintptr_t)(FETCH_CACHE_LINE_BYTES - 1));

	for (; line < (const uint8_t *)start + size; line += FETCH_CACHE_LINE_BYTES)
		__builtin_prefetch(line);
}

static inline void fetch_record(const void *record, size_t size)
{
	fetch(record, size < FETCH_RECORD_BYTES ? size : FETCH_RECORD_BYTES);
}

#endif
