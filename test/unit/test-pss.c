// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is read from smaps_rollup and stat, and what reading it is expected to cost. */
#include <check.h>
#include <stdint.h>

#include "base/limits.h"
#include "capture/memory/residency.h"
#include "support/suite.h"

START_TEST(rollup)
{
	const char *text = "5618cfd10000-7ffc1d9b1000 ---p 00000000 00:00 0                          [rollup]\n"
			   "Rss:               17988 kB\nPss:               16510 kB\nPss_Dirty:         16480 kB\n"
			   "Pss_Anon:          16480 kB\nShared_Clean:       1496 kB\nShared_Dirty:          0 kB\n"
			   "Private_Clean:        12 kB\nPrivate_Dirty:     16480 kB\nAnonHugePages:      2048 kB\n"
			   "Anonymous:         16484 kB\nLazyFree:             24 kB\nPrivate_Hugetlb:      99 "
			   "kB\nSwap:                 16 "
			   "kB\nSwapPss:               8 kB\n";
	union pss_counts counts;

	ck_assert(pss_parse_rollup(text, &counts));
	ck_assert_uint_eq(counts.resident_bytes, 17988 * 1024);
	ck_assert_uint_eq(counts.pss_bytes, 16510 * 1024);
	ck_assert_uint_eq(counts.swap_pss_bytes, 8 * 1024);
	ck_assert_uint_eq(counts.private_bytes, (12 + 16480) * 1024);
	ck_assert_uint_eq(counts.huge_bytes, 2048 * 1024);
	ck_assert_uint_eq(counts.anonymous_bytes, 16484 * 1024);
	ck_assert_uint_eq(counts.lazy_free_bytes, 24 * 1024);
	ck_assert_uint_eq(counts.pss_anon_bytes, 16480 * 1024);
	/* A process that is exiting, and a kernel thread. */
	ck_assert(!pss_parse_rollup("", &counts));
}
END_TEST

START_TEST(faults)
{
	ck_assert_uint_eq(pss_parse_faults("7 (a) b (c) S 1 7 7 0 -1 4194560 123 99999 45 7 1 2 3"), 123 + 45);
	ck_assert_uint_eq(pss_parse_faults("7 (cut) S 1 7"), 0);
	ck_assert_uint_eq(pss_parse_faults(""), 0);
}
END_TEST

/* A terabyte in pages of 4 KiB is not read; in huge pages it is, once the process has been seen to be cheap. */
START_TEST(price)
{
	const uint64_t terabyte = 1ull << 40, gibibyte = 1ull << 30;

	ck_assert_uint_lt(pss_expected_ns(gibibyte, 0, 0), LIMIT_PSS_WALK_NS);
	ck_assert_uint_gt(pss_expected_ns(terabyte, 0, 0), LIMIT_PSS_WALK_NS);
	/* 4 GiB in huge pages took 600 us. */
	ck_assert_uint_lt(pss_expected_ns(16 * gibibyte, 4 * gibibyte, 600000), 5000000);
	/* What a small process cost says nothing about a large one. */
	ck_assert_uint_eq(pss_expected_ns(gibibyte, 1 << 20, 1), pss_expected_ns(gibibyte, 0, 0));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("pss");
	TCase *tests = add_tcase(suite, "pss");

	tcase_add_tests(tests, rollup, faults, price);
	return suite;
}
