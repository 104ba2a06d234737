// SPDX-License-Identifier: LGPL-2.1-or-later
/* How long the first snapshots of children may keep the recorder from its rings. */
#include <check.h>
#include <stdlib.h>

#include "base/limits.h"
#include "capture/procfs/clock.h"
#include "support/suite.h"

#define SECOND_NS 1000000000ULL
#define MILLISECOND_NS 1000000ULL

#define SHARE 4

static bool allows(struct time_budget *budget, uint64_t now_ns)
{
	return time_budget_allows(budget, now_ns, SHARE, LIMIT_BUDGET_SAVED_NS);
}

/* Nanoseconds of work in `duration_ns` if there is always work, in pieces of this length. */
static uint64_t work_for(struct time_budget *budget, uint64_t now_ns, uint64_t duration_ns, uint64_t piece_ns)
{
	uint64_t end_ns = now_ns + duration_ns, worked_ns = 0;

	while (now_ns < end_ns) {
		if (allows(budget, now_ns)) {
			now_ns += piece_ns;
			worked_ns += piece_ns;
			budget->left_ns -= (int64_t)piece_ns;
		} else {
			now_ns += MILLISECOND_NS; /* the rings are drained */
		}
	}
	return worked_ns;
}

/* Whatever one piece costs, even if it is more than can be accumulated. */
START_TEST(work_takes_only_its_share)
{
	static const uint64_t pieces[] = {MILLISECOND_NS / 10, 20 * MILLISECOND_NS, SECOND_NS};
	struct time_budget budget = {0};
	uint64_t piece_ns = pieces[_i];
	uint64_t worked_ns = work_for(&budget, 5000 * SECOND_NS, 100 * SECOND_NS, piece_ns);

	ck_assert_uint_le(worked_ns, 25 * SECOND_NS + LIMIT_BUDGET_SAVED_NS + piece_ns);
	ck_assert_uint_ge(worked_ns, 24 * SECOND_NS);
}
END_TEST

/* After a long pause as after a short one. */
START_TEST(unused_time_is_limited)
{
	struct time_budget budget = {0};
	uint64_t now_ns = 5000 * SECOND_NS;

	(void)work_for(&budget, now_ns, SECOND_NS, MILLISECOND_NS);
	for (uint64_t rest_ns = 2 * SECOND_NS; rest_ns < 2000 * SECOND_NS; rest_ns *= 10) {
		uint64_t worked_ns;

		now_ns += rest_ns;
		ck_assert(allows(&budget, now_ns));
		worked_ns = work_for(&budget, now_ns, 300 * MILLISECOND_NS, MILLISECOND_NS);
		ck_assert_uint_le(worked_ns, LIMIT_BUDGET_SAVED_NS + 80 * MILLISECOND_NS);
		now_ns += 300 * MILLISECOND_NS;
	}
}
END_TEST

/* Work that has used up its budget may run again when its share of the time has accumulated. */
START_TEST(overdrawn_time_is_made_up)
{
	struct time_budget budget = {0};
	uint64_t now_ns = 5000 * SECOND_NS;

	ck_assert(allows(&budget, now_ns));
	budget.left_ns -= (int64_t)((uint64_t)LIMIT_BUDGET_SAVED_NS + SECOND_NS);
	ck_assert(!allows(&budget, now_ns + SHARE * SECOND_NS - MILLISECOND_NS));
	ck_assert(allows(&budget, now_ns + SHARE * SECOND_NS + MILLISECOND_NS));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("time-budget");
	TCase *tests = add_tcase(suite, "children");

	tcase_add_loop_test(tests, work_takes_only_its_share, 0, 3);
	tcase_add_tests(tests, unused_time_is_limited, overdrawn_time_is_made_up);
	return suite;
}
