// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 *     unwind-check RECORDING
 *
 * Unwinds every sample with a stack dump of a recording of one program twice, from the same registers and bytes: with
 * the row tables and with libunwind. Both must find the same frames as long as the code is in ELF files. Prints
 * "SAMPLES samples, FRAMES frames, DIFFERENT different" and the first that differ; the exit status is 1 if any do.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "support/unwind-oracle.h"

#define SHOWN 5

static struct unwind_result ours;
static uint64_t theirs[LIMIT_UNWIND_FRAMES];

/* libunwind guesses its way through code that is in no file. */
static size_t in_programs(size_t count)
{
	size_t known = 1;

	while (known < count && unwind_oracle_is_program(theirs[known]))
		known++;
	return count ? known : 0;
}

static bool is_same(size_t count)
{
	if (ours.frame_count != count)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (ours.frames[i].address != theirs[i])
			return false;
	}
	return true;
}

static void show(size_t number, size_t count)
{
	fprintf(stderr, "sample %zu, end %d\n", number, ours.end);
	for (size_t i = 0; i < count || i < ours.frame_count; i++)
		fprintf(stderr, "  %#18" PRIx64 " %#18" PRIx64 "\n", i < ours.frame_count ? ours.frames[i].address : 0,
			i < count ? theirs[i] : 0);
}

int main(int argc, char **argv)
{
	size_t frames = 0, different = 0;
	struct unwind_callbacks callbacks;

	if (argc != 2) {
		fprintf(stderr, "usage: unwind-check RECORDING\n");
		return EXIT_FAILURE;
	}
	unwind_oracle_read(argv[1]);
	unwind_oracle_begin();
	unwind_oracle_open_libunwind();
	callbacks = unwind_oracle_callbacks();
	for (size_t i = 0; i < unwind_oracle_count(); i++) {
		struct unwind_input input = unwind_oracle_input(i);
		size_t count = in_programs(unwind_oracle_libunwind(i, theirs));

		unwind(unwind_rules_find(HOST_MACHINE), &input, &callbacks, &ours);
		frames += count;
		if (is_same(count))
			continue;
		if (different++ < SHOWN)
			show(i, count);
	}
	unwind_oracle_close_libunwind();
	printf("%zu samples, %zu frames, %zu different\n", unwind_oracle_count(), frames, different);
	unwind_oracle_end();
	return different ? EXIT_FAILURE : EXIT_SUCCESS;
}
