// SPDX-License-Identifier: LGPL-2.1-or-later
/* The verdict on the lifetimes of a stack's mappings, on simulated programs. Every series is derived from its seed. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/report/row-verdicts.h"
#include "support/suite.h"

#define SECOND_NS 1e9
#define LENGTH (64 * SECOND_NS) /* of a recording */
#define SEEDS 300
#define MAPPINGS_MAX 60000
#define FOREVER 1e30

struct mapping {
	double allocated, freed; /* ns after the start */
};

static struct mapping mappings[MAPPINGS_MAX];
static size_t mapping_count;
static uint64_t state;

static double draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / 9007199254740992.0;
}

static double between(double least, double most)
{
	return least + (most - least) * draw();
}

static double exponential(double mean)
{
	return -mean * log(1 - draw());
}

static double normal(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += draw();
	return sum;
}

static void map(double time, double lifetime)
{
	ck_assert_uint_lt(mapping_count, MAPPINGS_MAX);
	mappings[mapping_count++] = (struct mapping){time, time + lifetime};
}

/* A survivor now and then, and nothing is ever freed. */
static void leak(void)
{
	size_t count = (size_t)between(30, 200);

	for (size_t i = 0; i < count; i++)
		map(draw() * LENGTH, FOREVER);
}

/* Requests, from very short ones to ones that live for a 60th of the recording. */
static void traffic(void)
{
	double mean = LENGTH / pow(10, between(1.8, 4));

	for (size_t i = 0; i < 50000; i++)
		map(draw() * LENGTH, exponential(mean));
}

/* Most requests are short, few are very long. */
static void uneven_traffic(void)
{
	double median = LENGTH / pow(10, between(3, 5));

	for (size_t i = 0; i < 50000; i++)
		map(draw() * LENGTH, median * exp(1.5 * normal()));
}

/* One of 1,000 is never freed. */
static void leaking_traffic(void)
{
	traffic();
	for (size_t i = 0; i < 50; i++)
		map(draw() * LENGTH, FOREVER);
}

static void leaking_uneven_traffic(void)
{
	uneven_traffic();
	for (size_t i = 0; i < 50; i++)
		map(draw() * LENGTH, FOREVER);
}

/* Filled in the first part of the recording, then kept. */
static void cache(void)
{
	double filled = LENGTH * between(0.02, 0.4);

	for (size_t i = 0; i < 100; i++)
		map(draw() * filled, FOREVER);
}

/* Slows down: each tenth of the time adds half of the remainder. */
static void warm_up(void)
{
	for (size_t i = 0; i < 100; i++)
		map(exponential(LENGTH / 10 / log(2)), FOREVER);
}

/* Kept memory in addition to requests. */
static void cache_and_traffic(void)
{
	cache();
	for (size_t i = 0; i < 20000; i++)
		map(draw() * LENGTH, exponential(LENGTH / 1000));
}

/* Each entry is replaced after the same time. */
static void turnover(void)
{
	double lifetime = LENGTH * between(0.02, 0.3);

	for (size_t i = 0; i < 2000; i++)
		map(draw() * LENGTH, lifetime * between(0.9, 1.1));
}

static void one_off(void)
{
	map(LENGTH * between(0.01, 0.45), FOREVER);
}

static void burst(void)
{
	double begin = LENGTH * between(0.01, 0.4);

	for (size_t i = 0; i < 50; i++)
		map(begin + draw() * LENGTH / 50, FOREVER);
}

static void late_burst(void)
{
	double begin = LENGTH * between(0.75, 0.95);

	for (size_t i = 0; i < 50; i++)
		map(begin + draw() * LENGTH / 50, FOREVER);
}

static void few(void)
{
	for (size_t i = 0; i < 4; i++)
		map(LENGTH * (0.2 * (double)(i + 1) + between(-0.1, 0.1)), FOREVER);
}

static void steps(void)
{
	size_t count = (size_t)between(5, 16);
	double phase = draw();

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < 15; j++)
			map(LENGTH * ((double)i + phase) / (double)count + draw() * LENGTH / 1000, FOREVER);
	}
}

/* A collector frees everything at the end of each tooth, or leaves `kept` of it. */
static void collect(double kept)
{
	double tooth = LENGTH / between(4, 20), phase = draw() * tooth;

	for (size_t i = 0; i < 3000; i++) {
		double time = draw() * LENGTH, end = phase;

		while (end <= time)
			end += tooth;
		map(time, draw() < kept ? FOREVER : end - time);
	}
}

static void saw_tooth(void)
{
	collect(0);
}

static void leaking_saw_tooth(void)
{
	collect(0.1);
}

/* It begins in the recording, after the program has started. */
static void beginning_leak(void)
{
	double begin = LENGTH * between(0.1, 0.65);
	size_t count = (size_t)between(30, 300);

	for (size_t i = 0; i < count; i++)
		map(begin + draw() * (LENGTH - begin), FOREVER);
}

/* The stack has mapped something before, and kept it. */
static void beginning_leak_after_start(void)
{
	map(LENGTH * between(0.001, 0.01), FOREVER);
	beginning_leak();
}

/* Slows down, and has hardly begun. */
static void late_warm_up(void)
{
	double begin = LENGTH * between(0.4, 0.7);

	for (size_t i = 0; i < 100; i++)
		map(begin + exponential(LENGTH / 10 / log(2)), FOREVER);
}

static void late_cache(void)
{
	double begin = LENGTH * between(0.5, 0.7), filled = LENGTH * between(0.02, 0.15);

	for (size_t i = 0; i < 100; i++)
		map(begin + draw() * filled, FOREVER);
}

static void late_traffic(void)
{
	double begin = LENGTH * between(0.4, 0.7);

	for (size_t i = 0; i < 20000; i++)
		map(begin + draw() * (LENGTH - begin), exponential(LENGTH / pow(10, 2.2)));
}

/* A leak that starts late. */
static void late_leak(void)
{
	for (size_t i = 0; i < 50000; i++)
		map(draw() * LENGTH, exponential(LENGTH / 1000));
	for (size_t i = 0; i < 50; i++)
		map(LENGTH * between(0.55, 1), FOREVER);
}

/* Each lives for most of the recording. */
static void long_requests(void)
{
	for (size_t i = 0; i < 500; i++)
		map(draw() * LENGTH, LENGTH * between(0.6, 0.8));
}

static const struct {
	const char *name;
	void (*run)(void);
	enum mmt_row_verdict verdict;
} programs[] = {
    {"leak", leak, MMT_ROW_LEAK},
    {"leak of 1 in 1,000", leaking_traffic, MMT_ROW_LEAK},
    {"leak of 1 in 1,000, uneven", leaking_uneven_traffic, MMT_ROW_LEAK},
    {"steps", steps, MMT_ROW_LEAK},
    {"leaking saw-tooth", leaking_saw_tooth, MMT_ROW_LEAK},
    {"traffic", traffic, MMT_ROW_TRAFFIC},
    {"uneven traffic", uneven_traffic, MMT_ROW_TRAFFIC},
    {"turnover", turnover, MMT_ROW_TRAFFIC},
    {"saw-tooth", saw_tooth, MMT_ROW_TRAFFIC},
    {"cache", cache, MMT_ROW_CACHE},
    {"warm-up", warm_up, MMT_ROW_CACHE},
    {"cache and traffic", cache_and_traffic, MMT_ROW_CACHE},
    {"one-off", one_off, MMT_ROW_CACHE},
    {"burst", burst, MMT_ROW_CACHE},
    {"late burst", late_burst, MMT_ROW_UNDECIDED},
    {"few", few, MMT_ROW_UNDECIDED},
    {"late leak", late_leak, MMT_ROW_LEAK},
    {"beginning leak", beginning_leak, MMT_ROW_LEAK},
    {"beginning leak after start", beginning_leak_after_start, MMT_ROW_LEAK},
    {"late warm-up", late_warm_up, MMT_ROW_UNDECIDED},
    {"late cache", late_cache, MMT_ROW_UNDECIDED},
    {"late traffic", late_traffic, MMT_ROW_TRAFFIC},
    {"long requests", long_requests, MMT_ROW_UNDECIDED},
};

static bool survives(const struct mapping *mapping)
{
	return mapping->freed > LENGTH;
}

/* `scale`: factor on times. */
static enum mmt_row_verdict judge(double scale)
{
	const struct survivors_window window = {
	    .from_ns = 1000, .to_ns = 1000 + (uint64_t)(LENGTH * scale), .end_ns = 1000 + (uint64_t)(LENGTH * scale)};
	struct lifetime_histogram freed = {0};
	struct survivors survivors;
	uint64_t count = 0;

	for (size_t i = 0; i < mapping_count; i++) {
		const struct mapping *mapping = &mappings[i];

		if (mapping->allocated >= LENGTH)
			continue;
		if (survives(mapping))
			count++;
		else
			lifetime_histogram_add(&freed, (uint64_t)((mapping->freed - mapping->allocated) * scale));
	}
	survivors_begin(&survivors, &window, &freed, count);
	for (size_t i = 0; i < mapping_count; i++) {
		if (survives(&mappings[i]) && mappings[i].allocated < LENGTH)
			survivors_add(&survivors, &window, 1000 + (uint64_t)(mappings[i].allocated * scale));
	}
	ck_assert_uint_eq(survivors.count, count);
	return survivors_judge(&survivors, &window);
}

static void simulate(size_t program, uint64_t seed)
{
	state = (program * SEEDS + seed + 1) * 0x9e3779b97f4a7c15u;
	mapping_count = 0;
	for (int i = 0; i < 10; i++)
		draw();
	programs[program].run();
}

/* 95 % are right, and memory that does not leak is never called a leak. */
START_TEST(verdicts)
{
	unsigned counts[MMT_ROW_VERDICTS] = {0};
	enum mmt_row_verdict right = programs[_i].verdict;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		simulate((size_t)_i, seed);
		counts[judge(1)]++;
	}
	printf("%-28s leak %3u  cache %3u  traffic %3u  too short %3u  unknown %u of %d\n", programs[_i].name,
	       counts[MMT_ROW_LEAK], counts[MMT_ROW_CACHE], counts[MMT_ROW_TRAFFIC], counts[MMT_ROW_UNDECIDED],
	       counts[MMT_ROW_UNKNOWN], SEEDS);
	fflush(stdout);
	ck_assert_msg(counts[right] >= SEEDS * 95 / 100, "%s: only %u of %d are %s", programs[_i].name, counts[right],
		      SEEDS, mmt_row_verdict_name(right));
	if (right != MMT_ROW_LEAK)
		ck_assert_msg(!counts[MMT_ROW_LEAK], "%s: %u of %d are called a leak", programs[_i].name,
			      counts[MMT_ROW_LEAK], SEEDS);
}
END_TEST

/* A second of the same shows nothing; an hour shows the same. */
START_TEST(lengths)
{
	for (size_t program = 0; program < sizeof(programs) / sizeof(*programs); program++) {
		enum mmt_row_verdict verdict;

		simulate(program, 1);
		verdict = judge(1);
		ck_assert_int_eq(judge(1.0 / 64), MMT_ROW_UNDECIDED);
		ck_assert_msg(judge(56) == verdict, "%s", programs[program].name);
	}
}
END_TEST

/* In seconds; `lifetime`: of 100 freed mappings, 0: none was freed. The verdict of such a recording is known. */
START_TEST(recommended_recording_length)
{
	static const struct {
		uint64_t length, lifetime;
		unsigned survivors;
		uint64_t least, most;
	} cases[] = {{10, 0, 8, 20, 20},  {10, 0, 2, 40, 40}, {10, 8, 20, 24, 40},
		     {10, 1, 40, 20, 20}, {1, 0, 8, 2, 2},    {40000, 20000, 1, 86400, 86400}};
	uint64_t length = cases[_i].length * (uint64_t)SECOND_NS;
	const struct survivors_window window = {.from_ns = 1000, .to_ns = 1000 + length, .end_ns = 1000 + length};
	struct lifetime_histogram freed = {0};
	struct survivors survivors;
	uint64_t advised;

	for (int i = 0; i < 100 && cases[_i].lifetime; i++)
		lifetime_histogram_add(&freed, cases[_i].lifetime * (uint64_t)SECOND_NS);
	survivors_begin(&survivors, &window, &freed, cases[_i].survivors);
	for (unsigned i = 0; i < cases[_i].survivors; i++)
		survivors_add(&survivors, &window, 1000 + length / cases[_i].survivors * i);
	advised = survivors_advise(&survivors, &window) / (uint64_t)SECOND_NS;
	ck_assert_uint_ge(advised, cases[_i].least);
	ck_assert_uint_le(advised, cases[_i].most);
}
END_TEST

START_TEST(no_survivors_no_verdict)
{
	mapping_count = 0;
	map(LENGTH / 2, SECOND_NS);
	ck_assert_int_eq(judge(1), MMT_ROW_UNKNOWN);
}
END_TEST

START_TEST(buckets)
{
	for (unsigned bucket = 0; bucket + 1 < LIFETIME_BUCKETS; bucket++) {
		ck_assert_uint_eq(lifetime_bucket(lifetime_bucket_end_ns(bucket) - 1), bucket);
		ck_assert_uint_eq(lifetime_bucket(lifetime_bucket_end_ns(bucket)), bucket + 1);
	}
	ck_assert_uint_eq(lifetime_bucket(0), 0);
	ck_assert_uint_eq(lifetime_bucket(UINT64_MAX), LIFETIME_BUCKETS - 1);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("survivors");
	TCase *tcase = add_tcase(suite, "survivors");

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, verdicts, 0, sizeof(programs) / sizeof(*programs));
	tcase_add_test(tcase, lengths);
	tcase_add_loop_test(tcase, recommended_recording_length, 0, 6);
	tcase_add_tests(tcase, no_survivors_no_verdict, buckets);
	return suite;
}
