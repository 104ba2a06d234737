/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values over time as a sparkline. */
#ifndef OUTPUT_TEXT_TREND_H
#define OUTPUT_TEXT_TREND_H

#include "output/text/text.h"

/*
 * A part of the line; nothing if all values are 0. Digits where no characters beyond ASCII are allowed. The lowest bar is
 * 0; the others go from the smallest value that is not 0 to the largest, or are all high if these differ by no more than
 * `floor`.
 */
void text_trend(struct text *text, const uint64_t points[MMT_TREND_POINTS], uint64_t floor);

#endif
