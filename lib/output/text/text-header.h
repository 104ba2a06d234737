/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lines above the figures: what was recorded, and how reliable it is. */
#ifndef OUTPUT_TEXT_TEXT_HEADER_H
#define OUTPUT_TEXT_TEXT_HEADER_H

#include "output/text/text.h"

/* Prominent lines about missing or damaged data; nothing if there is none. */
void text_warnings(struct text *text, const struct mmt_report *report);

/* Target, duration, date; events, losses, stacks; the check against the kernel's maps; missing data. */
void text_header(struct text *text, const struct mmt_report *report, bool one_line_of_checks);

/* Single lines of it: the file, and when it was recorded; how many events, and how many were lost; how complete the
 * stacks are, or nothing if there are none; what was repaired from the kernel's maps, or nothing. */
void text_source(struct text *text, const struct mmt_report *report);
void text_events(struct text *text, const struct mmt_report *report);
void text_stacks(struct text *text, const struct mmt_report *report);
void text_reconciled(struct text *text, const struct mmt_report *report);

/* The result of the comparison with the kernel's maps, in a few lines for any number of processes. */

struct check_sum {
	uint64_t processes, mappings;
	uint64_t mismatch_bytes, unverifiable_bytes, unread_bytes, unknown_bytes;
};

struct checks {
	struct check_sum checked; /* the next three together */
	struct check_sum wrong, equal;
	struct check_sum earlier; /* equal, at the last time that could be compared */
	struct check_sum ended;	  /* not checked: ended by themselves before */
	struct check_sum missing; /* not checked for any other reason */
};

struct checks checks_sum(const struct mmt_report *report);

/* The processes that differ most, by name; then a line for those that are equal, and one for those not checked. */
void text_checks(struct text *text, const struct mmt_report *report);

/* The same in one line. */
void text_checks_line(struct text *text, const struct mmt_report *report);

#endif
