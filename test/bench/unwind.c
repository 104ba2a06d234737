// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 *     bench-unwind RECORDING [FILE...]
 *
 * Unwinds every sample with a stack dump of a recording in three ways: with the row tables, cold (including opening the
 * files and compiling their tables); with the cache; and with libunwind. Then prints the size of the row tables of the
 * FILEs, and compares each row with libdw's. test/bench/unwind-cost makes the recording and runs perf. Prints figures
 * and never fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/errors.h"
#include "base/limits.h"
#include "support/cfi-oracle.h"
#include "support/unwind-oracle.h"

static struct unwind_result result;

static void require(struct mmt_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "bench-unwind: %s\n", error->message);
	exit(EXIT_FAILURE);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time); /* whatever else the machine does */
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* ---- mmtrace ---- */

/* Frames of all samples; *whole_ret: samples that reached the entry. */
static uint64_t unwind_all(uint64_t *whole_ret)
{
	struct unwind_callbacks callbacks = unwind_oracle_callbacks();
	uint64_t frames = 0;

	*whole_ret = 0;
	for (size_t i = 0; i < unwind_oracle_count(); i++) {
		struct unwind_input input = unwind_oracle_input(i);

		unwind(unwind_rules_find(HOST_MACHINE), &input, &callbacks, &result);
		frames += result.frame_count;
		*whole_ret += result.end == MMT_STACK_END_ENTRY;
	}
	return frames;
}

#define ROUNDS 16

/* Each sample several times in a row: after the first its bytes are in the CPU cache, as if they had just been read. */
static uint64_t unwind_in_cache(void)
{
	struct unwind_callbacks callbacks = unwind_oracle_callbacks();
	uint64_t frames = 0;

	for (size_t i = 0; i < unwind_oracle_count() * ROUNDS; i++) {
		struct unwind_input input = unwind_oracle_input(i / ROUNDS);

		unwind(unwind_rules_find(HOST_MACHINE), &input, &callbacks, &result);
		frames += result.frame_count;
	}
	return frames;
}

/* Number of samples found in the cache; each is looked up `rounds` times in a row. */
static uint64_t unwind_memoised(size_t rounds)
{
	struct unwind_callbacks callbacks = unwind_oracle_callbacks();
	struct unwind_cache *cache = NULL;
	uint64_t known = 0;
	uint32_t value;

	require(unwind_cache_create(1u << 16, &cache));
	for (size_t i = 0; i < unwind_oracle_count() * rounds; i++) {
		struct unwind_input input = unwind_oracle_input(i / rounds);

		if (unwind_cache_get(cache, 1, &input, &value)) {
			known++;
			continue;
		}
		unwind(unwind_rules_find(HOST_MACHINE), &input, &callbacks, &result);
		unwind_cache_put(cache, 1, &input, &result, (uint32_t)i);
	}
	unwind_cache_destroy(cache);
	return known;
}

/* ---- libunwind, with the same data ---- */

/* Frames of all samples; *equal_ret: samples whose frames equal ours. The comparison is not timed. */
static uint64_t libunwind_all(uint64_t *equal_ret, double *seconds_ret)
{
	struct unwind_callbacks callbacks = unwind_oracle_callbacks();
	static uint64_t addresses[LIMIT_UNWIND_FRAMES];
	uint64_t frames = 0;

	*equal_ret = 0;
	*seconds_ret = 0;
	unwind_oracle_open_libunwind();
	for (size_t i = 0; i < unwind_oracle_count(); i++) {
		struct unwind_input input = unwind_oracle_input(i);
		double start = now();
		size_t count = unwind_oracle_libunwind(i, addresses), equal = 0;

		*seconds_ret += now() - start;
		frames += count;
		unwind(unwind_rules_find(HOST_MACHINE), &input, &callbacks, &result);
		while (equal < count && equal < result.frame_count && result.frames[equal].address == addresses[equal])
			equal++;
		*equal_ret += equal == count && equal == result.frame_count;
	}
	unwind_oracle_close_libunwind();
	return frames;
}

/* ---- figures ---- */

static void print_rate(const char *name, double seconds, uint64_t frames)
{
	printf("%-34s %12.0f samples/s %13.0f steps/s\n", name, (double)unwind_oracle_count() / seconds,
	       (double)frames / seconds);
}

static void unwind_recording(const char *path)
{
	uint64_t frames, whole, known, equal;
	double start, seconds;

	unwind_oracle_read(path);
	if (!unwind_oracle_count()) {
		fprintf(stderr, "bench-unwind: no stack dumps in %s\n", path);
		exit(EXIT_FAILURE);
	}
	start = now();
	unwind_oracle_begin();
	frames = unwind_all(&whole);
	print_rate("mmtrace, cold: files and tables", now() - start, frames);
	start = now();
	frames = unwind_all(&whole);
	print_rate("mmtrace, each sample", now() - start, frames);
	start = now();
	(void)unwind_in_cache();
	print_rate("mmtrace, each sample, in the cache", (now() - start) / ROUNDS, frames);
	start = now();
	known = unwind_memoised(1);
	print_rate("mmtrace, memoised", now() - start, frames);
	start = now();
	(void)unwind_memoised(ROUNDS);
	print_rate("mmtrace, memoised, in the cache", (now() - start) / ROUNDS, frames);
	(void)libunwind_all(&equal, &seconds);
	frames = libunwind_all(&equal, &seconds);
	print_rate("libunwind, its global cache", seconds, frames);
	printf("%zu samples, %.1f frames each; %lu whole, %lu known to the cache, %lu equal to libunwind's\n",
	       unwind_oracle_count(), (double)frames / (double)unwind_oracle_count(), (unsigned long)whole,
	       (unsigned long)known, (unsigned long)equal);
	unwind_oracle_end();
}

static void print_table(const char *path)
{
	struct cfi_oracle_result rows;

	if (cfi_oracle_compare(path, 0, &rows)) {
		printf("%-34s no rows\n", path);
		return;
	}
	printf("%-34.34s %8zu rows; %zu of %zu addresses differ from libdw %s\n",
	       strrchr(path, '/') ? strrchr(path, '/') + 1 : path, rows.rows, rows.differences, rows.addresses,
	       rows.first);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: bench-unwind RECORDING [FILE...]\n");
		return EXIT_FAILURE;
	}
	unwind_recording(argv[1]);
	for (int i = 2; i < argc; i++)
		print_table(argv[i]);
	return EXIT_SUCCESS;
}
