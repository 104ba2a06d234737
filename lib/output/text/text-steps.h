/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of report --every: memory at equal steps of time. */
#ifndef OUTPUT_TEXT_TEXT_STEPS_H
#define OUTPUT_TEXT_TEXT_STEPS_H

#include "output/selection.h"
#include "output/text/text.h"

/* Prints nothing if no steps were requested. */
void text_steps(struct text *text, const struct mmt_report *report, const struct selection *selection);

#endif
