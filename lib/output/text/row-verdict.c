// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/text/row-verdict.h"

#define SHORTEST_NS 2000000000u /* shorter recordings have no verdict, which the first lines say already */
#define CACHE_COUNT_MIN 8	/* fewer mappings are no cache; they may be a pool that is touched bit by bit */

struct row_verdict row_verdict(const struct mmt_report *report, enum mmt_lifetime_verdict verdict,
			       enum mmt_pattern pattern, uint64_t unfreed_count)
{
	/* In a growing process, mappings that are kept may be the memory that grows. */
	enum text_style good = report->growth.verdict == MMT_VERDICT_GROWING ? TEXT_PLAIN : TEXT_GOOD;

	switch (verdict) {
	case MMT_LIFETIME_LEAK:
		/* Memory that an allocator or a runtime keeps by design is no leak of the program. */
		return (struct row_verdict){mmt_pattern_is_by_design(pattern) ? "keeps growing" : "LEAK", TEXT_BAD};
	case MMT_LIFETIME_CACHE:
		return (struct row_verdict){unfreed_count < CACHE_COUNT_MIN ? "made early" : "cache", good};
	case MMT_LIFETIME_TRAFFIC:
		return (struct row_verdict){"traffic", good};
	case MMT_LIFETIME_TOO_SHORT:
		return (struct row_verdict){report->to_ns - report->from_ns < SHORTEST_NS ? NULL : "undecided",
					    TEXT_PLAIN};
	default:
		return (struct row_verdict){NULL, TEXT_PLAIN};
	}
}

struct row_verdict row_verdict_of_group(const struct mmt_report *report, const struct mmt_group *group)
{
	bool open = group->verdict == MMT_LIFETIME_TOO_SHORT || group->verdict == MMT_LIFETIME_CACHE;

	if (!open || !group->cause || !report->causes[group->cause - 1].leaks_together)
		return row_verdict(report, group->verdict, group->pattern, group->unfreed_count);
	if (mmt_pattern_is_by_design(group->pattern))
		return row_verdict(report, MMT_LIFETIME_LEAK, group->pattern, group->unfreed_count);
	return (struct row_verdict){"part of a LEAK", TEXT_BAD};
}
