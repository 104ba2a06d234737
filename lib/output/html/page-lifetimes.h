/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lifetimes of a report's parts, in steps that are long enough for a page of moderate size. */
#ifndef OUTPUT_HTML_PAGE_LIFETIMES_H
#define OUTPUT_HTML_PAGE_LIFETIMES_H

#include <stdbool.h>

#include <mmtrace/report.h>

#include "base/vector.h"
#include "output/json/json-document.h"

struct page_lifetimes {
	uint32_t merged; /* number of steps of the report in a step of the page */
	uint64_t step_ns, step_count;
	uint64_t unit;			     /* bytes; the caller sets it */
	VECTOR(struct mmt_lifetime) current; /* of one part */
};

/* False: out of memory. */
bool page_lifetimes_init(struct page_lifetimes *lifetimes, const struct mmt_report *report);
void page_lifetimes_deinit(struct page_lifetimes *lifetimes);

/* The largest power of two that divides the bytes of every lifetime. */
uint64_t page_lifetimes_unit(const struct mmt_report *report);

/* Put the part's lifetimes into the open array; see page-data.h. False: out of memory. */
bool page_lifetimes_put(struct page_lifetimes *lifetimes, const struct mmt_part *part, struct document *document);

#endif
