/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sections of a text report that are printed only when they have content. */
#ifndef OUTPUT_TEXT_TEXT_SECTIONS_H
#define OUTPUT_TEXT_TEXT_SECTIONS_H

#include "output/text/text-stack.h"

/* The marks that the user made while recording. */
void text_marks(struct text *text, const struct mmt_report *report);

/* The part of the recording that --from and --to select. */
void text_window(struct text *text, const struct mmt_report *report);

/* The classes and processes that were selected. */
void text_choice(struct text *text, const struct mmt_report *report);

/* The memory of each process, if there is more than one. */
void text_processes(struct text *text, const struct mmt_report *report);

/* Unfreed bytes by class, if there is more than one. */
void text_classes(struct text *text, const struct mmt_report *report);

/* For each thread, the bytes that it mapped and released, and whose memory it released. */
void text_threads(struct text *text, const struct mmt_report *report);

/* Failed calls, the most frequent ones with their stacks. */
void text_failures(struct text *text, const struct mmt_report *report, struct text_stack_marks *marks);

#endif
