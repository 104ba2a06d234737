/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The development of a report's figures as a table. */
#ifndef OUTPUT_TEXT_STEPS_H
#define OUTPUT_TEXT_STEPS_H

#include "output/selection.h"
#include "output/text.h"

/* Nothing when no steps were asked for. */
void text_steps(struct text *text, const struct mmt_report *report, const struct selection *selection);

#endif
