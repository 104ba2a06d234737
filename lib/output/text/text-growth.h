/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The first lines of a report: how much the recorded processes grew, whether they still grow, and in which memory. */
#ifndef OUTPUT_TEXT_TEXT_GROWTH_H
#define OUTPUT_TEXT_TEXT_GROWTH_H

#include "output/text/text.h"

/* Processes, duration and resident sizes; the verdict. */
void text_verdict(struct text *text, const struct mmt_report *report);

/* Where the growth is. */
void text_growth(struct text *text, const struct mmt_report *report);

/* What a part of MMT_GROWTH_BEFORE is, for instance "malloc arenas", or the name of its file. */
void text_put_kind(struct text *text, const struct mmt_growth_part *part);

/* Below a part: what explains it, if anything is known. */
void text_put_part_hint(struct text *text, const struct mmt_growth_part *part);

/*
 * Whether the report shows all memory of the processes; then memory that no row shows was mapped before the recording.
 */
bool text_growth_is_of_all(const struct mmt_report *report);

#endif
