/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of causes with most memory, one line each. */
#ifndef OUTPUT_TEXT_TEXT_CAUSES_H
#define OUTPUT_TEXT_TEXT_CAUSES_H

#include "output/text/text.h"

/* Prints an empty line before and after it; nothing if a single row holds all memory. */
void text_causes(struct text *text, const struct mmt_report *report);

#endif
