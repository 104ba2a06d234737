/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef OUTPUT_TEXT_TEXT_DIFF_H
#define OUTPUT_TEXT_TEXT_DIFF_H

#include <mmtrace/diff.h>

#include "output/text/text.h"

/* How the two recordings are related; nothing for two runs of one program. */
void text_diff_relation(struct text *text, const struct mmt_diff *diff);

#endif
