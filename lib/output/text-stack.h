/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The frames of one stack as aligned lines. */
#ifndef OUTPUT_TEXT_STACK_H
#define OUTPUT_TEXT_STACK_H

#include "output/text.h"

/* What was met in the stacks printed so far and wants a word of explanation below them. */
struct text_stack_marks {
	bool doubtful, unnamed, folded, cut, hidden;
	bool ends[MMT_STACK_END_KINDS];
};

void text_stack(struct text *text, const struct mmt_group *group, unsigned indent, struct text_stack_marks *marks);

#endif
