// SPDX-License-Identifier: LGPL-2.1-or-later
/* Times of /proc as times of CLOCK_MONOTONIC. */
#include <check.h>
#include <time.h>
#include <unistd.h>

#include "capture/procfs/clock.h"
#include "support/suite.h"

#define SECOND_NS 1000000000ULL
#define ROUNDS 1000

START_TEST(ticks_of_now_are_now)
{
	uint64_t ticks_per_second = (uint64_t)sysconf(_SC_CLK_TCK);

	for (int i = 0; i < ROUNDS; i++) {
		struct timespec boot;
		uint64_t before_ns = clock_now_ns(), ticks, from_ticks_ns;

		ck_assert_int_eq(clock_gettime(CLOCK_BOOTTIME, &boot), 0);
		ticks =
		    (uint64_t)boot.tv_sec * ticks_per_second + (uint64_t)boot.tv_nsec * ticks_per_second / SECOND_NS;
		from_ticks_ns = clock_from_ticks(ticks);
		ck_assert_uint_le(from_ticks_ns, clock_now_ns());
		/* If the test waits for a processor between two clocks, the result is earlier by that time. */
		ck_assert_uint_ge(from_ticks_ns + SECOND_NS / ticks_per_second + (clock_now_ns() - before_ns),
				  before_ns);
	}
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("clock");

	tcase_add_test(add_tcase(suite, "clock"), ticks_of_now_are_now);
	return suite;
}
