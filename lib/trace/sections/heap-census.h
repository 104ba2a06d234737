/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* FEATURE_MMTRACE_HEAP: the censuses of malloc heaps, in the order of time. lib/capture/heap takes them. It also sends
 * them from its helper process in this form. */
#ifndef TRACE_SECTIONS_HEAP_CENSUS_H
#define TRACE_SECTIONS_HEAP_CENSUS_H

#include <mmtrace/heap.h>

#include "trace/sections/section-codec.h"

struct heap_censuses {
	VECTOR(struct mmt_heap_census) items;
};

extern const struct section_kind section_heap; /* for section_read() and section_write() */

void heap_census_deinit(struct mmt_heap_census *census);
void heap_censuses_deinit(void *value);

#endif
