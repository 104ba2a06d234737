// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/jit/code-timeline.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static size_t slow_before(const bool *set, size_t limit, size_t number)
{
	for (size_t i = number < limit ? number + 1 : limit; i-- > 0;) {
		if (set[i])
			return i;
	}
	return ORDERED_BITS_NONE;
}

static size_t slow_after(const bool *set, size_t limit, size_t number)
{
	for (size_t i = number; i < limit; i++) {
		if (set[i])
			return i;
	}
	return ORDERED_BITS_NONE;
}

/* Sizes around the boundaries of one, two and three levels. */
static const size_t limits[] = {0, 1, 63, 64, 65, 4095, 4096, 4097, 20000};

START_TEST(test_same_as_an_array)
{
	size_t limit = limits[_i];
	bool *set = calloc(limit + 1, sizeof(*set));
	struct ordered_bits bits;

	ck_assert(ordered_bits_init(&bits, limit));
	srand((unsigned)limit);
	for (int i = 0; limit && i < 3000; i++) {
		size_t number = (size_t)rand() % limit, asked = (size_t)rand() % (limit + 2);

		/* Few, then more. */
		set[number] = rand() % 3000 < i;
		if (set[number])
			ordered_bits_set(&bits, number);
		else
			ordered_bits_clear(&bits, number);
		ck_assert(ordered_bits_has(&bits, number) == set[number]);
		ck_assert_uint_eq(ordered_bits_before(&bits, asked), slow_before(set, limit, asked));
		ck_assert_uint_eq(ordered_bits_after(&bits, asked), slow_after(set, limit, asked));
	}
	ck_assert(!ordered_bits_has(&bits, limit));
	ck_assert_uint_eq(ordered_bits_after(&bits, limit), ORDERED_BITS_NONE);
	ordered_bits_deinit(&bits);
	free(set);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("ordered-bits");
	TCase *tests = add_tcase(suite, "ordered-bits");

	tcase_set_timeout(tests, 600);
	tcase_add_loop_test(tests, test_same_as_an_array, 0, sizeof(limits) / sizeof(*limits));
	return suite;
}
