// SPDX-License-Identifier: LGPL-2.1-or-later
/* What smaps says of swapped memory, beside what the pagemap shows. */
#include <check.h>
#include <stdlib.h>

#include "capture/memory/residency.h"
#include "support/suite.h"

static const struct {
	struct resident_run resident[2], found[2];
	const char *swap; /* of the mapping from 0x10000 to 0x20000 */
	struct resident_run expected[3];
	size_t count;
} cases[] = {
    /* shared memory: the pagemap shows nothing */
    {{{0x10000, 0x14000}, {0x16000, 0x20000}}, {{0, 0}}, "Swap:                  8 kB", {{0x14000, 0x16000}}, 1},
    {{{0x12000, 0x14000}}, {{0, 0}}, "Swap:                 16 kB", {{0x10000, 0x12000}, {0x14000, 0x16000}}, 2},
    /* as the pagemap says */
    {{{0x10000, 0x11000}}, {{0x12000, 0x14000}}, "Swap:                  8 kB", {{0x12000, 0x14000}}, 1},
    /* guard pages of an older kernel */
    {{{0x10000, 0x11000}}, {{0x12000, 0x14000}, {0x18000, 0x20000}}, "Swap:                  0 kB", {{0, 0}}, 0},
    {{{0x10000, 0x11000}},
     {{0x12000, 0x14000}, {0x18000, 0x20000}},
     "Swap: 12 kB",
     {{0x12000, 0x14000}, {0x18000, 0x19000}},
     2},
    /* a private mapping of shared memory: both kinds */
    {{{0x10000, 0x11000}}, {{0x12000, 0x13000}}, "Swap: 12 kB", {{0x11000, 0x14000}}, 1},
    /* more than the mapping has, or ranges beyond it */
    {{{0x8000, 0x11000}}, {{0x1f000, 0x28000}}, "Swap: 4096 kB", {{0x11000, 0x20000}}, 1},
    {{{0, 0}}, {{0x1000, 0x8000}, {0x20000, 0x30000}}, "Swap: 4 kB", {{0x10000, 0x11000}}, 1},
};

static resident_runs list(const struct resident_run *runs, size_t count)
{
	resident_runs list = {0};

	for (size_t i = 0; i < count; i++)
		ck_assert(!runs[i].end || vector_push(&list, runs[i]));
	return list;
}

START_TEST(swap_of_a_mapping)
{
	resident_runs resident = list(cases[_i].resident, 2), found = list(cases[_i].found, 2);
	struct swapped_pages pages = {.resident = &resident, .found = &found};

	ck_assert(swapped_pages_line(&pages, "10000-20000 rw-s 00000000 00:01 77     /dev/shm/pool"));
	ck_assert(swapped_pages_line(&pages, "Rss:                  64 kB"));
	ck_assert(swapped_pages_line(&pages, cases[_i].swap));
	ck_assert(swapped_pages_line(&pages, "SwapPss:               0 kB"));
	ck_assert_uint_eq(pages.corrected.count, cases[_i].count);
	for (size_t i = 0; i < cases[_i].count; i++) {
		ck_assert_uint_eq(pages.corrected.items[i].start, cases[_i].expected[i].start);
		ck_assert_uint_eq(pages.corrected.items[i].end, cases[_i].expected[i].end);
	}
	vector_deinit(&pages.corrected);
	vector_deinit(&resident);
	vector_deinit(&found);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("swapped pages");
	TCase *tests = add_tcase(suite, "swapped pages");

	tcase_add_loop_test(tests, swap_of_a_mapping, 0, (int)(sizeof(cases) / sizeof(cases[0])));
	return suite;
}
