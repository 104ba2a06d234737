// SPDX-License-Identifier: LGPL-2.1-or-later
/* When large stack dumps are on, for simulated call rates. */
#include <check.h>

#include "capture/recorder/ring-reader.h"
#include "support/suite.h"

#define SECOND_NS 1000000000ULL
#define TICK_NS (SECOND_NS / 100)

struct series {
	struct large_dumps_rule rule;
	uint64_t now_ns;
	unsigned switches;
	bool on;
};

static void begin(struct series *series)
{
	*series = (struct series){.now_ns = 5000 * SECOND_NS, .on = true};
	series->rule = (struct large_dumps_rule){.time_ns = series->now_ns, .on = true};
}

/* Calls at this rate, checked a hundred times a second. */
static void run(struct series *series, uint64_t calls_per_second, uint64_t duration_ns)
{
	uint64_t calls = 0;

	for (uint64_t past_ns = TICK_NS; past_ns <= duration_ns; past_ns += TICK_NS) {
		uint64_t until_now = calls_per_second * past_ns / SECOND_NS;
		bool on;

		series->now_ns += TICK_NS;
		on = large_dumps_rule_update(&series->rule, until_now - calls, series->now_ns);
		series->switches += on != series->on;
		series->on = on;
		calls = until_now;
	}
}

/* All at once, and noticed together. */
static void burst(struct series *series, uint64_t calls)
{
	bool on = large_dumps_rule_update(&series->rule, calls, series->now_ns);

	series->switches += on != series->on;
	series->on = on;
}

START_TEST(large_dumps_are_on_at_ordinary_rates)
{
	static const uint64_t rates[] = {0, 1, 50, LARGE_DUMPS_RATE / 2, LARGE_DUMPS_RATE};
	struct series series;

	begin(&series);
	run(&series, rates[_i], 600 * SECOND_NS);
	ck_assert(series.on);
	ck_assert_uint_eq(series.switches, 0);
}
END_TEST

START_TEST(large_dumps_are_on_at_program_start)
{
	struct series series;

	begin(&series);
	burst(&series, LARGE_DUMPS_BURST - 1);
	ck_assert(series.on);
	/* The same again, after that is forgotten. */
	run(&series, 0, SECOND_NS * LARGE_DUMPS_BURST / LARGE_DUMPS_RATE);
	burst(&series, LARGE_DUMPS_BURST - 1);
	ck_assert(series.on);
}
END_TEST

START_TEST(large_dumps_are_off_at_full_speed)
{
	static const uint64_t rates[] = {LARGE_DUMPS_RATE + LARGE_DUMPS_RATE / 10, 20000, 1000000,
					 UINT64_MAX / (1000 * SECOND_NS)};
	struct series series;

	begin(&series);
	run(&series, rates[_i], 60 * SECOND_NS);
	ck_assert(!series.on);
	ck_assert_uint_eq(series.switches, 1);
	/* However long that lasted, a pause ends it. */
	run(&series, 0, SECOND_NS * LARGE_DUMPS_BURST / LARGE_DUMPS_RATE);
	ck_assert(series.on);
	ck_assert_uint_eq(series.switches, 2);
}
END_TEST

/* The calls made before: the cost of the measurement. */
START_TEST(full_speed_is_noticed_soon)
{
	struct series series;

	begin(&series);
	burst(&series, LARGE_DUMPS_BURST);
	ck_assert(!series.on);
	begin(&series);
	run(&series, 100000, TICK_NS * (1 + LARGE_DUMPS_BURST * (SECOND_NS / TICK_NS) / 100000));
	ck_assert(!series.on);
}
END_TEST

/* Bursts, or a rate around the limit, do not toggle it all the time. */
START_TEST(switching_is_rare)
{
	struct series series;

	begin(&series);
	for (unsigned second = 0; second < 600; second++) {
		run(&series, second % 2 ? 900 : 1100, SECOND_NS);
		ck_assert(series.on);
	}
	begin(&series);
	for (unsigned second = 0; second < 600; second++) {
		burst(&series, 5000);
		run(&series, 0, SECOND_NS);
	}
	ck_assert_uint_eq(series.switches, 1);
	begin(&series);
	for (unsigned second = 0; second < 600; second++)
		run(&series, second % 2 ? 100 : 10000, SECOND_NS);
	ck_assert_uint_le(series.switches, 600 / 2);
}
END_TEST

/* A clock that stands still, or a late check. */
START_TEST(clock_jumps_do_no_harm)
{
	struct series series;

	begin(&series);
	ck_assert(large_dumps_rule_update(&series.rule, 10, series.now_ns - SECOND_NS));
	ck_assert(large_dumps_rule_update(&series.rule, 10, series.now_ns));
	ck_assert(!large_dumps_rule_update(&series.rule, UINT64_MAX, UINT64_MAX / 2));
	ck_assert(large_dumps_rule_update(&series.rule, 0, UINT64_MAX));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("large-dumps");
	TCase *rule = add_tcase(suite, "rule");

	tcase_add_loop_test(rule, large_dumps_are_on_at_ordinary_rates, 0, 5);
	tcase_add_test(rule, large_dumps_are_on_at_program_start);
	tcase_add_loop_test(rule, large_dumps_are_off_at_full_speed, 0, 4);
	tcase_add_tests(rule, full_speed_is_noticed_soon, switching_is_rare, clock_jumps_do_no_harm);
	return suite;
}
