/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The constants of all verdicts: on RSS (growth-verdict.c), on mappings (survivors.c), on rows and causes. The rules
 * that use them are in mmtrace-internals(7). "too low", "too high": what gets worse, and from which value on the
 * simulated programs of test-growth and test-survivors show it. test/bench/verdict-rules tries other values.
 */
#pragma once

/* ns: shorter recordings have no verdict, nor do leaks that began later. Programs start in less.
 * Too low: start-up is a leak. Too high: the first report says nothing. The advised time, 5 times this, follows. */
#define VERDICT_SPAN_NS 2000000000u

/* Equal parts of a recording: the lowest reading of each counts. A process that lives for less counts as brief. It must
 * be a multiple of 4.
 * Too low (12): the tests for trends miss leaks. Too high (20): short recordings have too few readings, and a garbage
 * collector does not run in every part. */
#define VERDICT_PARTS 16

/* Readings: on average three in each part, so that one may be missing. */
#define VERDICT_READINGS (3 * VERDICT_PARTS)

/* Mappings: fewer show no pattern in time.
 * Too low (4): a few mappings by chance are a leak. Too high (11): rare leaks need longer recordings. */
#define VERDICT_COUNT 8

/* Bytes: smaller changes of RSS do not count. The kernel counts pages in batches for each thread.
 * Too low: steady programs of which the kernel counts late grow. Too high: slow leaks need longer recordings. */
#define VERDICT_FLOOR_BYTES 262144.0

/* Share of the size, and of the freed mappings, that does not count.
 * Too low: the least change of a large process counts. Too high (0.005): leaks of large processes are not seen. */
#define VERDICT_NEGLIGIBLE 0.001

/* Share of mappings that may differ from the others: what was kept before a leak began, freed ones that lived long.
 * Too low: one odd mapping decides. Too high (0.1): a leak of 1 in 1,000 disappears in uneven traffic. */
#define VERDICT_FEW 0.05

/* Share that is small: growth in the last half, or old mappings made late, that still count as level.
 * Too low (0.09): what slows down is no plateau yet. Too high (0.15): slow growth is level. */
#define VERDICT_SMALL 0.125

/* Share that is large: falls that make a saw-tooth, noise that hides a level, mappings of a leak's age that are freed.
 * Too low: noise makes saw-teeth, and leaks are not told from them. Too high (0.35): steady programs grow. */
#define VERDICT_LARGE 0.25

/* Share of the time that is long: a leak lasts longer, and what is freed lives shorter.
 * Too low (0.23): a late warm-up is a leak. Too high (0.47): a leak that began in the recording is not found. */
#define VERDICT_LONG 0.333

/* Share of what was before that shows that growth goes on: of an earlier third or quarter, or of a saw-tooth.
 * Too low (0.35): a warm-up is a leak. Too high (0.55): a leak in steps is not found. */
#define VERDICT_HALF 0.5

/* Standard deviations: smaller changes are noise.
 * Too low: chance counts. Too high (4.2): it takes longer to see that growth has ended. */
#define VERDICT_NOISE 3.0

/* Standard deviations of Kendall's S that show a trend. 16 parts that all rise have 5.4.
 * Too low (2.8): 1 in 250 programs without a trend grows. Too high (5.6): leaks with noise are not found. */
#define VERDICT_TREND_Z 4.0

/* The same for a trend that is possible, so that the recording is too short, or that something else also shows.
 * Too low (1.25): steady programs get no verdict. Too high (3.5): saw-teeth and late growth are not found. */
#define VERDICT_MAYBE_Z 2.5

/* Falls that make saw-teeth: fewer show no trend.
 * Too low (3): a leak below a collector that runs rarely is steady. Too high: such collectors get no verdict. */
#define VERDICT_TEETH 4

/* Share of the memory of a row or a cause: if less than this leaks, its other memory decides.
 * Too low: a small leak hides what most of the memory is. Too high: a cache hides a leak that will outgrow it. */
#define VERDICT_LEAK_SHARE 0.0625
