/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The figures of one group as rows of parts. */
#ifndef OUTPUT_TEXT_GROUP_H
#define OUTPUT_TEXT_GROUP_H

#include "output/text.h"

/* "256 x 4.00 MiB" or "256, 4.00 KiB to 8.00 MiB". */
void text_group_sizes(struct text *text, const struct mmt_group *group);

/* "12.0 MiB of 16.0 MiB given back", or nothing when no part of an unfreed mapping was. */
void text_group_given_back(struct text *text, const struct mmt_group *group);

/* Unfreed bytes over time as a row of bars or digits. */
void text_group_trend(struct text *text, const struct mmt_group *group);

/* Values over time, their number as in a group's trend. */
void text_trend(struct text *text, const uint64_t points[MMT_TREND_POINTS]);

/* "thread main (12)", "threads a (1), b (2) and 3 more". */
void text_group_threads(struct text *text, const struct mmt_report *report, const struct mmt_group *group);

#endif
