/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lines above the figures: what was recorded, and how far it can be trusted. */
#ifndef OUTPUT_TEXT_TEXT_HEADER_H
#define OUTPUT_TEXT_TEXT_HEADER_H

#include "output/text/text.h"

/* Loud lines for what is missing or damaged; nothing when all is well. */
void text_warnings(struct text *text, const struct mmt_report *report);

/* Target, duration, date; events, loss, stacks; the check against the kernel; what the file lacks. */
void text_header(struct text *text, const struct mmt_report *report, bool one_line_of_checks);

/* Single lines of it: the file, and when it was recorded; how many events, and how many were lost; how complete the
 * stacks are, or nothing if there are none; what was repaired from the kernel's maps, or nothing. */
void text_source(struct text *text, const struct mmt_report *report);
void text_events(struct text *text, const struct mmt_report *report);
void text_stacks(struct text *text, const struct mmt_report *report);
void text_reconciled(struct text *text, const struct mmt_report *report);

/* What the comparison with the kernel's own list of mappings gave, in few lines however many processes there are. */

struct check_sum {
	uint64_t processes, mappings;
	uint64_t mismatch_bytes, unverifiable_bytes, unread_bytes, unknown_bytes;
};

struct checks {
	struct check_sum checked; /* the next three together */
	struct check_sum wrong, equal;
	struct check_sum earlier; /* equal, at the last moment that could be compared */
	struct check_sum ended;	  /* not checked: ended by themselves before */
	struct check_sum missing; /* not checked for any other reason */
};

struct checks checks_sum(const struct mmt_report *report);

/* The processes that differ most by name, then a line for those that do not differ, and for those not checked. */
void text_checks(struct text *text, const struct mmt_report *report);

/* All of it in one line. */
void text_checks_line(struct text *text, const struct mmt_report *report);

#endif
