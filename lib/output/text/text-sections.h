/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sections of a text report that are printed only when they have content. */
#ifndef OUTPUT_TEXT_TEXT_SECTIONS_H
#define OUTPUT_TEXT_TEXT_SECTIONS_H

#include "output/text/text-stack.h"

/* The marks that the user made while recording. */
void text_marks(struct text *text, const struct mmt_report *report);

/* The part of the recording that --from and --to select. */
void text_window(struct text *text, const struct mmt_report *report);

/* The classes and processes that were asked for. */
void text_choice(struct text *text, const struct mmt_report *report);

/* Who holds how much, when there is more than one process. */
void text_processes(struct text *text, const struct mmt_report *report);

/* Unfreed bytes by class, when there is more than one. */
void text_classes(struct text *text, const struct mmt_report *report);

/* Who mapped how much and who released it, and whose. */
void text_threads(struct text *text, const struct mmt_report *report);

/* Calls that failed, the most frequent with their stacks. */
void text_failures(struct text *text, const struct mmt_report *report, struct text_stack_marks *marks);

#endif
