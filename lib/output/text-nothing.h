/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report without unfreed bytes: a result only as far as the recording can be trusted. */
#ifndef OUTPUT_TEXT_NOTHING_H
#define OUTPUT_TEXT_NOTHING_H

#include "output/text.h"

void text_nothing_unfreed(struct text *text, const struct mmt_report *report);

#endif
