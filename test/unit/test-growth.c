// SPDX-License-Identifier: LGPL-2.1-or-later
/* The verdict on a series of RSS values, on simulated programs. Every series is derived from its seed, so nothing is
 * random. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <mmtrace/report.h>
#include "base/vector.h"
#include "support/suite.h"

#define MEBIBYTE (1024.0 * 1024)
#define SEEDS 1000
#define POINTS_MAX 500
#define LIVE_BLOCKS 50		   /* of a churning program, on average */
#define CHURN_PER_POINT 200	   /* pairs of calls */
#define BLOCK_BYTES (256.0 * 1024) /* what such a call maps */

/* How a program behaves; `phase`, `teeth` and so on are drawn again for each seed. */
struct module {
	uint64_t random;
	double base, noise, growth; /* bytes */
	double phase;		    /* 0 to 1 */
	double teeth;		    /* in the complete recording: saw-teeth or steps */
	double at;		    /* when something happens, 0 to 1 */
	double wave;		    /* noise that remembers */
	double live, leaked;	    /* blocks */
};

static double draw(struct module *program)
{
	program->random ^= program->random << 13;
	program->random ^= program->random >> 7;
	program->random ^= program->random << 17;
	return (double)(program->random >> 11) / 9007199254740992.0;
}

/* Approximately normal, with standard deviation 1. */
static double draw_normal(struct module *program)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += draw(program);
	return sum;
}

static double part_of(double value)
{
	return value - (double)(uint64_t)value;
}

typedef double (*behaviour)(struct module *program, double time);

static double steady(struct module *program, double time)
{
	(void)time;
	return program->noise * draw_normal(program);
}

/* Consecutive sizes are correlated: requests last for several readings. */
static double waves(struct module *program, double time)
{
	(void)time;
	program->wave = 0.6 * program->wave + 0.8 * draw_normal(program);
	return program->noise * program->wave;
}

static double leak(struct module *program, double time)
{
	return program->growth * time + steady(program, time);
}

/* Each tenth of the time adds half of the remainder. */
static double warm_up(struct module *program, double time)
{
	double missing = 1;

	for (; time > 0.1; time -= 0.1)
		missing /= 2;
	return program->growth * (1 - missing * (1 - time / 0.2)) + steady(program, time);
}

static double warm_up_and_leak(struct module *program, double time)
{
	return warm_up(program, 2 * time) + program->growth * 0.15 * time;
}

static double one_off(struct module *program, double time)
{
	return (time > 0.1 + 0.6 * program->at ? program->growth : 0) + steady(program, time);
}

static double late_one_off(struct module *program, double time)
{
	return (time > 0.76 + 0.18 * program->at ? program->growth : 0) + steady(program, time);
}

static double steps(struct module *program, double time)
{
	return program->growth * (double)(uint64_t)(time * program->teeth + program->phase) / program->teeth +
	       steady(program, time);
}

static double collector(struct module *program, double time)
{
	return program->growth * part_of(time * program->teeth + program->phase) + steady(program, time);
}

static double leaking_collector(struct module *program, double time)
{
	return collector(program, time) + (1 + 2 * program->at) * program->growth * time;
}

static double shrinking(struct module *program, double time)
{
	return program->growth * 0.5 * (1 - time) + steady(program, time);
}

static double spike(struct module *program, double time)
{
	double begin = 0.1 + 0.4 * program->at;

	return (time > begin && time < begin + 0.15 ? program->growth : 0) + steady(program, time);
}

static void churn_once(struct module *program)
{
	if (draw(program) < 0.5 - (program->live - LIVE_BLOCKS) / 400)
		program->live++;
	else if (program->live > 0)
		program->live--;
}

static double churn(struct module *program, double time)
{
	(void)time;
	for (int i = 0; i < CHURN_PER_POINT; i++)
		churn_once(program);
	return program->live * BLOCK_BYTES;
}

/* One of 1,000 mappings is never unmapped: each turn above stands for ten pairs. */
static double churn_with_leak(struct module *program, double time)
{
	for (int i = 0; i < CHURN_PER_POINT; i++)
		program->leaked += draw(program) < 0.01;
	return churn(program, time) + program->leaked * BLOCK_BYTES;
}

static struct module make_program(unsigned seed)
{
	struct module program = {.random = 88172645463325252ull + seed * 0x9E3779B97F4A7C15ull, .live = LIVE_BLOCKS};

	for (int i = 0; i < 20; i++)
		(void)draw(&program);
	program.base = (50 + 3950 * draw(&program)) * MEBIBYTE;
	program.noise = (0.1 + 1.9 * draw(&program)) * MEBIBYTE;
	program.growth = program.base * (0.05 + 0.95 * draw(&program));
	program.phase = draw(&program);
	program.teeth = 8 + 15 * draw(&program);
	program.at = draw(&program);
	return program;
}

struct counts {
	unsigned of[MMT_VERDICT_KINDS];
};

static struct counts judge_many(behaviour behave, size_t points, double span_s)
{
	static struct mmt_resident_reading readings[POINTS_MAX];
	struct counts counts = {{0}};

	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		struct module program = make_program(seed);

		for (size_t i = 0; i < points; i++) {
			double time = (double)i / (double)(points - 1);

			readings[i].time_ns = 1000000000 + (uint64_t)(time * span_s * 1e9);
			readings[i].resident_bytes = (uint64_t)(program.base + behave(&program, time));
		}
		counts.of[mmt_growth_judge(readings, points).verdict]++;
	}
	return counts;
}

static const struct {
	behaviour behaviour;
	enum mmt_verdict right;
	bool never_growing; /* a single one that is called growing is a fault */
} programs[] = {
    {steady, MMT_VERDICT_STEADY, true},
    {waves, MMT_VERDICT_STEADY, true},
    {churn, MMT_VERDICT_STEADY, true},
    {collector, MMT_VERDICT_STEADY, true},
    {spike, MMT_VERDICT_STEADY, true},
    {leak, MMT_VERDICT_GROWING, false},
    {steps, MMT_VERDICT_GROWING, false},
    {leaking_collector, MMT_VERDICT_GROWING, false},
    {churn_with_leak, MMT_VERDICT_GROWING, false},
    {warm_up_and_leak, MMT_VERDICT_GROWING, false},
    {warm_up, MMT_VERDICT_PLATEAU, false},
    {one_off, MMT_VERDICT_PLATEAU, false},
    {late_one_off, MMT_VERDICT_TOO_SHORT, true},
    {shrinking, MMT_VERDICT_SHRINKING, true},
};

#define PROGRAMS ((int)(sizeof(programs) / sizeof(programs[0])))

START_TEST(simulated_programs)
{
	static const struct {
		size_t points;
		unsigned right_percent;
	} series[] = {{48, 85}, {64, 95}, {100, 95}, {240, 95}, {POINTS_MAX, 95}};

	for (size_t i = 0; i < sizeof(series) / sizeof(series[0]); i++) {
		struct counts counts = judge_many(programs[_i].behaviour, series[i].points, 60);

		ck_assert_msg(counts.of[programs[_i].right] >= SEEDS * series[i].right_percent / 100,
			      "program %d, %zu points: %u right", _i, series[i].points, counts.of[programs[_i].right]);
		if (programs[_i].never_growing)
			ck_assert_uint_eq(counts.of[MMT_VERDICT_GROWING], 0);
		if (programs[_i].right == MMT_VERDICT_GROWING && series[i].points >= 64)
			ck_assert_uint_le(counts.of[MMT_VERDICT_STEADY] + counts.of[MMT_VERDICT_SHRINKING],
					  SEEDS / 100);
	}
}
END_TEST

START_TEST(short_recordings_get_no_verdict)
{
	struct counts few = judge_many(leak, 47, 60), brief = judge_many(leak, 100, 1.9);
	struct mmt_resident_reading readings[2] = {{1000000000, 4096, 0}, {1000000000, 4096, 0}};
	struct mmt_growth growth = mmt_growth_judge(readings, 2);

	ck_assert_uint_eq(few.of[MMT_VERDICT_TOO_SHORT], SEEDS);
	ck_assert_uint_eq(brief.of[MMT_VERDICT_TOO_SHORT], SEEDS);
	ck_assert_uint_eq(growth.verdict, MMT_VERDICT_TOO_SHORT);
	ck_assert_uint_eq(growth.advised_ns, 10000000000);
	ck_assert_int_eq(growth.bytes_per_minute, MMT_RATE_UNKNOWN);
	/* A start that takes 100 ms is not gigabytes per minute. */
	readings[1] = (struct mmt_resident_reading){1100000000, 50 << 20, 0};
	ck_assert_int_eq(mmt_growth_judge(readings, 2).bytes_per_minute, MMT_RATE_UNKNOWN);
	readings[1].time_ns = 3000000000;
	ck_assert_int_ne(mmt_growth_judge(readings, 2).bytes_per_minute, MMT_RATE_UNKNOWN);
}
END_TEST

START_TEST(no_readings_give_no_verdict)
{
	struct mmt_growth growth = mmt_growth_judge(NULL, 0);

	ck_assert_uint_eq(growth.verdict, MMT_VERDICT_UNKNOWN);
	ck_assert(growth.start_bytes == MMT_UNKNOWN && growth.end_bytes == MMT_UNKNOWN);
	ck_assert_str_eq(mmt_verdict_name(growth.verdict), "unknown");
}
END_TEST

START_TEST(figures_of_a_leak)
{
	struct mmt_resident_reading readings[121];
	struct mmt_growth growth;

	for (uint64_t i = 0; i <= 120; i++)
		readings[i] = (struct mmt_resident_reading){i * 1000000000, (100 + i) << 20, 0};
	growth = mmt_growth_judge(readings, 121);
	ck_assert_uint_eq(growth.verdict, MMT_VERDICT_GROWING);
	ck_assert_uint_eq(growth.start_bytes, 100 << 20);
	ck_assert_uint_eq(growth.end_bytes, 220 << 20);
	ck_assert_uint_eq(growth.peak_bytes, 220 << 20);
	ck_assert_uint_eq(growth.peak_ns, 120000000000);
	ck_assert_int_eq(growth.bytes_per_minute, 60 << 20);
	ck_assert_uint_eq(growth.rate_from_ns, 60000000000);
	ck_assert_uint_eq(growth.settled_ns, 0);
	/* That of one minute, the second one. */
	ck_assert_int_eq(mmt_growth_rate_noise(&growth), (int64_t)growth.floor_bytes);
}
END_TEST

/* A rate is one of now: what a program gained while it started does not count. */
START_TEST(rates_are_slopes)
{
	static const struct {
		uint64_t first, from, second, level_at; /* MiB until a tenth of the time; per second from then on */
		enum mmt_verdict verdict;
		int64_t least, most; /* MiB per minute */
		bool is_level;
	} cases[] = {
	    {200, 12, 1, 121, MMT_VERDICT_GROWING, 58, 62, false}, {200, 12, 0, 121, MMT_VERDICT_PLATEAU, 0, 0, false},
	    {0, 12, 4, 75, MMT_VERDICT_PLATEAU, -10, 10, false},   {0, 0, 0, 121, MMT_VERDICT_STEADY, 0, 0, false},
	    {0, 0, 1, 112, MMT_VERDICT_GROWING, 40, 60, true},	   {0, 0, 1, 119, MMT_VERDICT_GROWING, 55, 62, false},
	};
	struct mmt_resident_reading readings[121];
	struct mmt_growth growth;

	for (uint64_t i = 0; i <= 120; i++) {
		uint64_t until = i < cases[_i].level_at ? i : cases[_i].level_at;
		uint64_t mib = i < cases[_i].from ? cases[_i].first * i / cases[_i].from
						  : cases[_i].first + (until - cases[_i].from) * cases[_i].second;

		readings[i] = (struct mmt_resident_reading){i * 1000000000, (100 + mib) << 20, 0};
	}
	growth = mmt_growth_judge(readings, 121);
	ck_assert_str_eq(mmt_verdict_name(growth.verdict), mmt_verdict_name(cases[_i].verdict));
	ck_assert_int_ge(growth.bytes_per_minute, cases[_i].least * (1 << 20));
	ck_assert_int_le(growth.bytes_per_minute, cases[_i].most * (1 << 20));
	if (growth.verdict == MMT_VERDICT_GROWING)
		ck_assert_int_eq(growth.settled_ns != 0, cases[_i].is_level);
}
END_TEST

/* Steps that are as long as a part of the recording look like noise. After the last one, the size is level. */
START_TEST(end_of_large_steps)
{
	for (unsigned still = 1; still <= 8; still++) {
		struct mmt_resident_reading readings[280];
		struct mmt_growth growth;
		size_t count = 200 + 10 * still;

		for (uint64_t i = 0; i < count; i++)
			readings[i] = (struct mmt_resident_reading){
			    i * 50000000, (100 + 10 * (i < 200 ? i / 14 * 14 / 10 : 20)) << 20, 0};
		growth = mmt_growth_judge(readings, count);
		ck_assert_uint_eq(growth.verdict, MMT_VERDICT_GROWING);
		ck_assert_int_eq(growth.settled_ns != 0, still >= 3);
	}
}
END_TEST

/* The noise of saw-teeth is their height, although the verdict goes by their low ends; that of a line is small. */
START_TEST(noise_of_saw_teeth)
{
	for (unsigned height = 1; height <= 64; height *= 8) {
		struct mmt_resident_reading readings[241];
		struct mmt_growth growth;

		for (uint64_t i = 0; i <= 240; i++)
			readings[i] = (struct mmt_resident_reading){
			    i * 250000000, ((100 + i % 5 * height / 4) << 20) + (i * height << 16), 0};
		growth = mmt_growth_judge(readings, 241);
		ck_assert_uint_ge(growth.floor_bytes, ((uint64_t)height << 20) * 7 / 8);
		ck_assert_uint_le(growth.floor_bytes, (uint64_t)height << 21);
		for (uint64_t i = 0; i <= 240; i++)
			readings[i].resident_bytes = (100 + i * height) << 20;
		growth = mmt_growth_judge(readings, 241);
		ck_assert_uint_le(growth.floor_bytes, (uint64_t)height << 20);
	}
}
END_TEST

START_TEST(start_of_a_plateau)
{
	struct mmt_resident_reading readings[121];
	struct mmt_growth growth;

	for (uint64_t i = 0; i <= 120; i++)
		readings[i] = (struct mmt_resident_reading){i * 1000000000, (100 + (i < 40 ? i : 40)) << 20, 0};
	growth = mmt_growth_judge(readings, 121);
	ck_assert_uint_eq(growth.verdict, MMT_VERDICT_PLATEAU);
	ck_assert_uint_ge(growth.settled_ns, 35000000000);
	ck_assert_uint_le(growth.settled_ns, 41000000000);
	/* The last MiB comes when the size counts as level already: the rate may not contradict the verdict. */
	for (uint64_t i = 0; i <= 100; i++)
		readings[i] = (struct mmt_resident_reading){i * 50000000, (24 + (i < 58 ? i : 58)) << 20, 0};
	growth = mmt_growth_judge(readings, 101);
	ck_assert_uint_eq(growth.verdict, MMT_VERDICT_PLATEAU);
	ck_assert_int_eq(growth.bytes_per_minute, 0);
}
END_TEST

/* Programs that rise and fall; `at` and `phase` are the seed's. The share of the growth that is in use. */
static double falls_once(struct module *program, double time)
{
	return time < 0.1 + 0.8 * program->at ? 1 : 0.3 * program->phase;
}

static double falls_at_start(struct module *program, double time)
{
	return time < 0.02 * program->at ? 1 : 0.9 * program->phase * time;
}

static double jumps_and_falls(struct module *program, double time)
{
	return time < 0.05 * program->at ? 0 : time < 0.7 + 0.3 * program->phase ? 1 : 0.3;
}

static double jumps_and_declines(struct module *program, double time)
{
	return time < 0.1 * program->at ? 0 : 1 - 0.3 * program->phase * time;
}

static double falls_and_rises(struct module *program, double time)
{
	double begin = 0.1 + 0.3 * program->at;

	return time < begin ? 1 : 0.1 + 0.9 * program->phase * (time - begin);
}

static double rises_and_declines(struct module *program, double time)
{
	return time < program->at ? time / program->at : 1 - 0.5 * (time - program->at);
}

static double batch_job(struct module *program, double time)
{
	double begin = 0.1 + 0.4 * program->at, end = begin + 0.2 + 0.3 * program->phase;

	return time < begin ? 0 : time < end ? 1 : 0.4 * program->wave;
}

/* Of a period of `teeth` recordings: from much less than one to three. */
static double saw(struct module *program, double time)
{
	return part_of(time / program->teeth + program->phase);
}

static double reverse_saw(struct module *program, double time)
{
	return 1 - saw(program, time);
}

static double queue(struct module *program, double time)
{
	double part = saw(program, time);

	return part < 0.5 ? smaller_of(2.5 * part, 1) : part < 0.9 ? 1 : (1 - part) * 10;
}

static double two_collections(struct module *program, double time)
{
	return 0.3 * part_of(6 * time / program->teeth) + saw(program, time);
}

static const behaviour risers_and_fallers[] = {falls_once,	falls_at_start,	    jumps_and_falls, jumps_and_declines,
					       falls_and_rises, rises_and_declines, batch_job,	     saw,
					       reverse_saw,	queue,		    two_collections};

#define RISERS_AND_FALLERS ((int)(sizeof(risers_and_fallers) / sizeof(risers_and_fallers[0])))

/* Fail if what a report says of these readings is not true of one stretch of time. */
static void check_agreement(const struct mmt_resident_reading *readings, size_t count, double highest, const char *of)
{
	struct mmt_growth growth = mmt_growth_judge(readings, count);
	int64_t change = mmt_growth_change(&growth), noise = (int64_t)growth.floor_bytes;
	uint64_t least = UINT64_MAX, most = 0;
	const char *name = mmt_verdict_name(growth.verdict);

	for (size_t i = 0; i < count; i++) {
		if (readings[i].time_ns < growth.settled_ns)
			continue;
		least = smaller_of(least, readings[i].resident_bytes);
		most = larger_of(most, readings[i].resident_bytes);
	}
	if (growth.settled_ns)
		ck_assert_msg((double)(most - least) <= highest / 4 + 2 * (double)noise, "%s: %s, but not level", of, name);
	if (growth.verdict == MMT_VERDICT_PLATEAU || growth.verdict == MMT_VERDICT_STEADY)
		ck_assert_msg(!growth.bytes_per_minute, "%s: %s with a rate", of, name);
	if (growth.verdict == MMT_VERDICT_GROWING)
		ck_assert_msg(growth.bytes_per_minute >= 0 && change >= -noise, "%s: growing, but falls", of);
	if (growth.verdict == MMT_VERDICT_PLATEAU)
		ck_assert_msg(change >= -noise, "%s: plateau below the start", of);
	if (growth.verdict == MMT_VERDICT_SHRINKING)
		ck_assert_msg(growth.bytes_per_minute <= 0 && change < 0, "%s: shrinking, but rises", of);
}

START_TEST(verdict_rate_and_change_agree)
{
	static const double periods[] = {0.02, 0.06, 0.13, 0.26, 0.4, 0.7, 1, 1.5, 3};
	static struct mmt_resident_reading readings[POINTS_MAX];
	char of[64];

	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		struct module program = make_program(seed);
		size_t count = (size_t[]){64, 150, 450}[seed % 3];
		double noise = seed % 2 ? 0 : program.noise / 4;

		program.teeth = periods[seed % 9];
		program.wave = draw(&program);
		for (size_t i = 0; i < count; i++) {
			double time = (double)i / (double)(count - 1);

			readings[i].time_ns = 1000000000 + (uint64_t)(time * 60e9);
			readings[i].resident_bytes =
			    (uint64_t)(program.base + program.growth * risers_and_fallers[_i](&program, time) +
				       noise * (draw(&program) + draw(&program) - 1));
		}
		snprintf(of, sizeof(of), "program %d, seed %u, %zu readings", _i, seed, count);
		check_agreement(readings, count, program.growth, of);
	}
}
END_TEST

/* A queue that fills at once and drains late is level since it drained. What fell and is level then has no
 * rate; what rises again is no longer shrinking. */
START_TEST(stretches_of_verdicts)
{
	static const struct {
		unsigned start, from, high, until, low, per_second; /* MiB; seconds */
		enum mmt_verdict verdict;
		unsigned settled_least, settled_most; /* seconds */
	} cases[] = {
	    {26, 1, 43, 46, 30, 0, MMT_VERDICT_PLATEAU, 46, 47},   {100, 0, 100, 15, 40, 0, MMT_VERDICT_SHRINKING, 15, 16},
	    {100, 0, 100, 15, 40, 1, MMT_VERDICT_TOO_SHORT, 0, 0}, {100, 1, 20, 60, 20, 0, MMT_VERDICT_STEADY, 0, 0},
	    {200, 1, 20, 1, 20, 2, MMT_VERDICT_GROWING, 0, 0},	   {100, 0, 100, 60, 30, 0, MMT_VERDICT_SHRINKING, 0, 0},
	    {80, 1, 210, 22, 40, 1, MMT_VERDICT_TOO_SHORT, 0, 0},  {200, 6, 20, 6, 20, 2, MMT_VERDICT_TOO_SHORT, 0, 0},
	};
	struct mmt_resident_reading readings[241];
	struct mmt_growth growth;

	for (uint64_t i = 0; i <= 240; i++) {
		uint64_t second = i / 4, grown = second > cases[_i].until ? second - cases[_i].until : 0;
		uint64_t mib = second < cases[_i].from	  ? cases[_i].start
			       : second < cases[_i].until ? cases[_i].high
							  : cases[_i].low + grown * cases[_i].per_second;

		readings[i] = (struct mmt_resident_reading){i * 250000000, mib << 20, 0};
	}
	growth = mmt_growth_judge(readings, 241);
	ck_assert_str_eq(mmt_verdict_name(growth.verdict), mmt_verdict_name(cases[_i].verdict));
	/* A peak at the very start is no part of what has grown since. */
	if (growth.verdict == MMT_VERDICT_GROWING) {
		ck_assert_uint_eq(growth.start_ns, 1000000000);
		ck_assert_int_eq(mmt_growth_change(&growth), 118 << 20);
		ck_assert_uint_eq(growth.peak_bytes, 200ull << 20);
	}
	ck_assert_uint_ge(growth.settled_ns, cases[_i].settled_least * 1000000000ull);
	ck_assert_uint_le(growth.settled_ns, cases[_i].settled_most * 1000000000ull);
	if (growth.settled_ns)
		ck_assert_int_eq(growth.bytes_per_minute, 0);
}
END_TEST

/* Workers of a pool that start again one after the other, then two, three and four at once: all are back at the end. */
START_TEST(shrinks_only_below_its_start)
{
	static struct mmt_resident_reading readings[161];

	for (uint64_t i = 0; i <= 160; i++)
		readings[i] = (struct mmt_resident_reading){
		    (i + 1) * 250000000, (44 - (i % 10 == 5 ? 10 * (i / 40 + 1) : 0)) << 20, 0};
	ck_assert_str_eq(mmt_verdict_name(mmt_growth_judge(readings, 161).verdict), "too-short");
	/* If one is missing at the end, it has shrunk. */
	readings[160].resident_bytes = 34 << 20;
	ck_assert_str_eq(mmt_verdict_name(mmt_growth_judge(readings, 161).verdict), "shrinking");
}
END_TEST

/* Growth after a peak at the start begins behind it, before the size reaches the peak again, and after that. */
START_TEST(growth_after_a_peak)
{
	static struct mmt_resident_reading readings[541];

	for (uint64_t i = 0; i <= 540; i++)
		readings[i] = (struct mmt_resident_reading){(i + 1) * 1000000000, ((i ? 40 + i : 300) << 20) / 2, 0};
	for (uint64_t seconds = 60; seconds <= 540; seconds += 30) {
		struct mmt_growth growth = mmt_growth_judge(readings, seconds + 1);

		ck_assert_str_eq(mmt_verdict_name(growth.verdict), "growing");
		ck_assert_uint_eq(growth.start_ns, 2000000000);
		ck_assert_int_eq(mmt_growth_change(&growth), (int64_t)((seconds - 1) << 19));
		ck_assert_int_le(llabs(growth.bytes_per_minute - (30 << 20)), 1);
		ck_assert_uint_eq(growth.peak_bytes, larger_of(150ull, 20 + seconds / 2) << 20);
	}
}
END_TEST

/* Three saw-teeth of 60 MiB of which 6 are kept, or none; and twelve of 40 MiB, of which 4 are kept. */
START_TEST(floors_of_saw_teeth)
{
	static const struct {
		double teeth;
		unsigned height, kept;
		enum mmt_verdict verdict;
	} cases[] = {
	    {3.3, 60, 6, MMT_VERDICT_TOO_SHORT}, {3.3, 60, 0, MMT_VERDICT_STEADY}, {12, 40, 4, MMT_VERDICT_GROWING}};
	const double height = cases[_i].height, kept = cases[_i].kept;
	struct mmt_resident_reading readings[201];
	struct mmt_growth growth;

	for (uint64_t i = 0; i <= 200; i++) {
		double teeth = cases[_i].teeth * (double)i / 200 + 0.2;
		double mib = 30 + kept * floor(teeth) + height * (teeth - floor(teeth));

		readings[i] = (struct mmt_resident_reading){i * 50000000, (uint64_t)(mib * 0x1p20), 0};
	}
	growth = mmt_growth_judge(readings, 201);
	ck_assert_str_eq(mmt_verdict_name(growth.verdict), mmt_verdict_name(cases[_i].verdict));
	if (growth.verdict == MMT_VERDICT_GROWING) {
		ck_assert_int_gt(growth.bytes_per_minute, mmt_growth_rate_noise(&growth));
		ck_assert_double_le(fabs((double)growth.bytes_per_minute / 0x1p20 - 12 * 4 * 6), 30);
	}
}
END_TEST

/* A busy machine may not let the recorder read for a while: a few parts without a reading are between those around
 * them. */
START_TEST(parts_without_readings)
{
	static const struct {
		uint64_t level_at, gap_from, gap_to; /* of 256 readings in 16 parts; level_at: it grows until then */
		enum mmt_verdict verdict;
	} cases[] = {
	    {256, 32, 64, MMT_VERDICT_GROWING}, {256, 192, 240, MMT_VERDICT_GROWING},  {0, 32, 64, MMT_VERDICT_STEADY},
	    {64, 32, 80, MMT_VERDICT_PLATEAU},	{256, 32, 112, MMT_VERDICT_TOO_SHORT}, /* five parts */
	};
	struct mmt_resident_reading readings[256];
	size_t count = 0;

	for (uint64_t i = 0; i < 256; i++) {
		uint64_t grown = i < cases[_i].level_at ? i : cases[_i].level_at;

		if (i < cases[_i].gap_from || i >= cases[_i].gap_to)
			readings[count++] = (struct mmt_resident_reading){i * 250000000, (100 + grown) << 20, 0};
	}
	ck_assert_str_eq(mmt_verdict_name(mmt_growth_judge(readings, count).verdict),
			 mmt_verdict_name(cases[_i].verdict));
}
END_TEST

/* A recording can hold any values. */
START_TEST(absurd_sizes)
{
	struct mmt_resident_reading readings[128];

	for (uint64_t i = 0; i < 128; i++)
		readings[i] = (struct mmt_resident_reading){i * 100000000, i % 2 ? UINT64_MAX / 2 : 0, 0};
	(void)mmt_growth_judge(readings, 128);
	for (uint64_t i = 0; i < 128; i++)
		readings[i] = (struct mmt_resident_reading){i < 127 ? 0 : UINT64_MAX, i * (UINT64_MAX / 256), 0};
	ck_assert_uint_eq(mmt_growth_judge(readings, 128).verdict, MMT_VERDICT_TOO_SHORT);
}
END_TEST

/* RSS in MiB and swap in MiB at the start and the end of a minute, rising or falling linearly. */
START_TEST(swapped_memory_is_in_use)
{
	static const struct {
		uint64_t start, end, start_swap, end_swap;
		enum mmt_verdict verdict;
	} cases[] = {
	    {60, 60, 30, 200, MMT_VERDICT_GROWING}, /* a leak at the memory limit of a control group */
	    {60, 20, 0, 40, MMT_VERDICT_STEADY},    /* an idle process is swapped out */
	    {20, 60, 40, 0, MMT_VERDICT_STEADY},    /* and comes back */
	    {60, 60, 30, 30, MMT_VERDICT_STEADY},
	};
	struct mmt_resident_reading readings[121];
	struct mmt_growth growth;
	int64_t change = (int64_t)(cases[_i].end + cases[_i].end_swap - cases[_i].start - cases[_i].start_swap);

	for (uint64_t i = 0; i < 121; i++)
		readings[i] = (struct mmt_resident_reading){
		    i * 500000000, ((cases[_i].start * (120 - i) + cases[_i].end * i) << 20) / 120,
		    ((cases[_i].start_swap * (120 - i) + cases[_i].end_swap * i) << 20) / 120};
	growth = mmt_growth_judge(readings, 121);
	ck_assert_int_eq(growth.verdict, cases[_i].verdict);
	ck_assert_int_ge(growth.bytes_per_minute, change * (1 << 20) - 1);
	ck_assert_int_le(growth.bytes_per_minute, change * (1 << 20) + 1);
	ck_assert_uint_eq(growth.end_bytes, cases[_i].end << 20);
	ck_assert_uint_eq(growth.start_swap_bytes, cases[_i].start_swap << 20);
	ck_assert_uint_eq(growth.end_swap_bytes, cases[_i].end_swap << 20);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("growth");
	TCase *tests = add_tcase(suite, "growth");

	tcase_set_timeout(tests, 120);
	tcase_add_loop_test(tests, simulated_programs, 0, PROGRAMS);
	tcase_add_tests(tests, short_recordings_get_no_verdict, no_readings_give_no_verdict, figures_of_a_leak,
			end_of_large_steps, noise_of_saw_teeth, start_of_a_plateau);
	tcase_add_loop_test(tests, rates_are_slopes, 0, 6);
	tcase_add_loop_test(tests, verdict_rate_and_change_agree, 0, RISERS_AND_FALLERS);
	tcase_add_loop_test(tests, stretches_of_verdicts, 0, 8);
	tcase_add_loop_test(tests, floors_of_saw_teeth, 0, 3);
	tcase_add_loop_test(tests, parts_without_readings, 0, 5);
	tcase_add_tests(tests, growth_after_a_peak, shrinks_only_below_its_start, absurd_sizes);
	tcase_add_loop_test(tests, swapped_memory_is_in_use, 0, 4);
	return suite;
}
