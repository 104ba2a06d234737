// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arguments and environment in stack dumps. */
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "capture/procfs/proc.h"
#include "support/suite.h"

#define ADDRESS 0x7ffc00001000ULL
#define STACK_WORDS 96
#define VECTOR_WORD 30
#define STRING_GAP 9 /* between the vector and the strings */

static uint64_t stack[STACK_WORDS];
static size_t end; /* of the vector */

static void put_vector(size_t word, uint64_t string)
{
	const uint64_t vector[] = {
	    AT_SYSINFO_EHDR, 0x7ffc00100000, AT_PAGESZ, 4096,	AT_PHDR, 0x400040, AT_PHENT, 56, AT_PHNUM, 13,
	    AT_UID,	     1000,	     AT_RANDOM, string, AT_NULL, 0};

	memcpy(stack + word, vector, sizeof(vector));
	end = (word + sizeof(vector) / sizeof(vector[0])) * sizeof(vector[0]);
}

static void make_stack(void)
{
	for (size_t i = 0; i < STACK_WORDS; i++)
		stack[i] = 0x400000 + i;
	put_vector(VECTOR_WORD, 0);
	put_vector(VECTOR_WORD, ADDRESS + end + STRING_GAP);
}

static size_t find(size_t offset, size_t size)
{
	return program_strings_find((const uint8_t *)stack + offset, size, ADDRESS + offset);
}

START_TEST(strings_start_where_the_auxiliary_vector_says)
{
	make_stack();
	ck_assert_uint_eq(find(0, sizeof(stack)), end + STRING_GAP);
	/* However the dump starts. */
	ck_assert_uint_eq(find(3, sizeof(stack) - 3), end + STRING_GAP - 3);
	ck_assert_uint_eq(find(8, sizeof(stack) - 8), end + STRING_GAP - 8);
}
END_TEST

/* A copy of each size in memory of its own, so that a sanitizer detects reads beyond it. */
START_TEST(dump_may_end_anywhere)
{
	make_stack();
	for (size_t size = 0; size <= sizeof(stack); size++) {
		uint8_t *copy = malloc(size ? size : 1);
		size_t expected = size < end + STRING_GAP ? size : end + STRING_GAP;

		memcpy(copy, stack, size);
		ck_assert_uint_eq(program_strings_find(copy, size, ADDRESS), expected);
		free(copy);
	}
}
END_TEST

START_TEST(other_copies_of_the_vector_are_ignored)
{
	uint64_t string;

	make_stack();
	string = ADDRESS + end + STRING_GAP;
	put_vector(4, string + 400);
	ck_assert_uint_eq(find(0, sizeof(stack)), string - ADDRESS);
	put_vector(VECTOR_WORD, ADDRESS + 0x100000);
	ck_assert_uint_eq(find(0, sizeof(stack)), sizeof(stack));
	put_vector(VECTOR_WORD, 0);
	ck_assert_uint_eq(find(0, sizeof(stack)), sizeof(stack));
}
END_TEST

/* From this frame to the end of the stack, read as a file: sanitizers refuse to read what lies between variables. */
START_TEST(strings_of_this_program_are_found)
{
	const uint8_t *here = __builtin_frame_address(0);
	const char *random = (const char *)getauxval(AT_RANDOM);
	uint64_t address = (uint64_t)(uintptr_t)here, first, last = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	int memory = open("/proc/self/mem", O_RDONLY);
	uint8_t *copy;
	char line[512];

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, "[stack]"))
			ck_assert_int_eq(sscanf(line, "%" SCNx64 "-%" SCNx64, &first, &last), 2);
	}
	fclose(maps);
	ck_assert_uint_gt(last, address);
	copy = malloc(last - address);
	ck_assert_ptr_nonnull(copy);
	ck_assert_int_eq(pread(memory, copy, last - address, (off_t)address), (ssize_t)(last - address));
	ck_assert_ptr_eq(here + program_strings_find(copy, last - address, address), random);
	free(copy);
	close(memory);
	ck_assert(program_invocation_name > random);
	for (char **variable = environ; *variable; variable++) {
		/* Those of the fixture, and of Check, are elsewhere. */
		if ((const uint8_t *)*variable >= here && (uint64_t)(uintptr_t)*variable < last)
			ck_assert(*variable > random);
	}
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("program-strings");
	TCase *strings = add_tcase(suite, "strings");

	tcase_add_tests(strings, strings_start_where_the_auxiliary_vector_says, dump_may_end_anywhere,
			other_copies_of_the_vector_are_ignored, strings_of_this_program_are_found);
	return suite;
}
