/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the comparison with the kernel's own list of mappings gave, in few lines however many processes there are. */
#ifndef OUTPUT_TEXT_CHECKS_H
#define OUTPUT_TEXT_CHECKS_H

#include "output/text.h"

struct check_sum {
	uint64_t processes, mappings;
	uint64_t wrong_bytes, undecided_bytes, unread_bytes, unknown_bytes;
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
