/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The frames of one stack as aligned lines. */
#ifndef OUTPUT_TEXT_TEXT_STACK_H
#define OUTPUT_TEXT_TEXT_STACK_H

#include "output/text/text.h"

/* What was met in the stacks printed so far and wants a word of explanation below them. */
struct text_stack_marks {
	bool doubtful, unnamed, folded, cut, hidden;
	bool ends[MMT_STACK_END_KINDS];
};

void text_stack(struct text *text, const struct mmt_group *group, unsigned indent, struct text_stack_marks *marks);

/* Lines below the stacks: what signs in them mean, and what to record differently so that no callers are missing. */

struct text_explanations {
	struct text_stack_marks marks; /* of the stacks shown */
	bool reserved;		       /* a figure says so */
	const char *hints[MMT_PATTERN_KINDS]; /* that has been printed last */
	uint64_t lost_stack_dumps, exhausted_stacks;
	bool notes;		   /* the header has some */
	bool stacks_not_asked_for; /* some recording lacks stacks, or that is not known */
	bool small_dumps;	   /* some recording has dumps below the maximum size */
	bool largest_dumps;	   /* some recording has dumps of the maximum size */
	bool no_dumps;		   /* some recording has no dumps, or that is not known */
};

/* Takes up what the recording lacks; once for each of those shown. */
void text_explanations_add(struct text_explanations *explanations, const struct mmt_report *report);

/* An empty line before them; nothing at all when nothing needs a word. */
void text_explanations(struct text *text, const struct text_explanations *explanations);

#endif
