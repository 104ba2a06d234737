/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The word for the verdict on a row or a cause. */
#ifndef OUTPUT_TEXT_ROW_VERDICT_H
#define OUTPUT_TEXT_ROW_VERDICT_H

#include "output/text/text.h"

struct row_verdict {
	const char *word; /* NULL: none, or the recording is too short for one */
	enum text_style style;
};

struct row_verdict row_verdict(const struct mmt_report *report, enum mmt_lifetime_verdict verdict,
			       enum mmt_pattern pattern, uint64_t unfreed_count);

/* Of a row, which may be a leak only together with others. */
struct row_verdict row_verdict_of_group(const struct mmt_report *report, const struct mmt_group *group);

#endif
