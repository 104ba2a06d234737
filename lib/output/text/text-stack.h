/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The frames of one stack as aligned lines. */
#ifndef OUTPUT_TEXT_TEXT_STACK_H
#define OUTPUT_TEXT_TEXT_STACK_H

#include "output/text/text.h"

/* Marks in the stacks printed so far that are explained below them. */
struct text_stack_marks {
	bool doubtful, unnamed, folded, cut, hidden;
	bool between; /* frames between two functions are folded without a line */
	bool ends[MMT_STACK_END_KINDS];
};

/* `named`: the function that the table of causes names, which is shown in any case; NULL: none. */
void text_stack(struct text *text, const struct mmt_row *row, const char *named, unsigned indent,
		struct text_stack_marks *marks);

/* Lines below the stacks that explain their marks, and how to record so that no callers are missing. */

struct text_explanations {
	struct text_stack_marks marks;	      /* of the stacks shown */
	bool reserved;			      /* a figure is marked so */
	const char *hints[MMT_PATTERN_KINDS]; /* hints that have been printed */
	uint64_t lost_stack_dumps, exhausted_stacks;
	bool notes;		   /* the header has some */
	bool stacks_not_asked_for; /* some recording has no stacks, or that is unknown */
	bool small_dumps;	   /* some recording has dumps below the maximum size */
	bool largest_dumps;	   /* some recording has dumps of the maximum size */
	bool no_dumps;		   /* some recording has no dumps, or that is unknown */
};

/* Add what is missing in a recording. Call this once for each recording shown. */
void text_explanations_add(struct text_explanations *explanations, const struct mmt_report *report);

/* Print them after an empty line; nothing if there is nothing to explain. */
void text_explanations(struct text *text, const struct text_explanations *explanations);

#define TEXT_FRAME_NAME_BYTES 4096

/* The function's name, "module+0x1234" or "0x1234"; the latter two in `room`. */
const char *text_frame_name(const struct mmt_frame *frame, char room[TEXT_FRAME_NAME_BYTES]);

#endif
