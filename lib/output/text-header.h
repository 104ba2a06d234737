/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a recording is and how far it can be trusted: the lines above the figures. */
#ifndef OUTPUT_TEXT_HEADER_H
#define OUTPUT_TEXT_HEADER_H

#include "output/text.h"

/* Loud lines for what is missing or damaged; nothing when all is well. */
void text_warnings(struct text *text, const struct mmt_report *report);

/* Target, duration, date; events, loss, stacks; the check against the kernel; what the file lacks. */
void text_header(struct text *text, const struct mmt_report *report, bool one_line_of_checks);

#endif
