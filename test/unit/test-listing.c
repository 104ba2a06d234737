// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/elf/disassembly.h"

#include <check.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "support/suite.h"

/* push rbp; mov rbp, rsp; sub rsp, 16; movabs rax, 0x5090909090909090; call rax; leave; ret; nop * 20 */
static const uint8_t function[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x48, 0xb8, 0x90, 0x90, 0x90, 0x90,
				   0x90, 0x90, 0x90, 0x50, 0xff, 0xd0, 0xc9, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
				   0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90};
enum { START = 0x1000, CALL = START + 18, RETURN = START + 20 };

/* One for each byte searched backwards, and the listed ones. */
enum { DECODED_MAX = 128 + 17 };

static struct disassembly *disassembly;

static void set_up(void)
{
	ck_assert_ptr_null(disassembly_create(EM_X86_64, &disassembly));
}

static void tear_down(void)
{
	disassembly_destroy(disassembly);
}

static struct listing list(uint64_t site, bool is_return_address, size_t around)
{
	const struct listed_code code = {.bytes = function,
					 .size = sizeof(function),
					 .address = START,
					 .site = site,
					 .is_return_address = is_return_address};
	struct listing listing;

	ck_assert_ptr_null(listing_create(disassembly, &code, around, &listing));
	return listing;
}

static void expect(const struct listing *listing, size_t index, uint64_t address, const char *text, bool here)
{
	ck_assert_uint_lt(index, listing->items.count);
	ck_assert_uint_eq(listing->items.items[index].address, address);
	ck_assert_str_eq(listing->items.items[index].text, text);
	ck_assert(listing->items.items[index].here == here);
}

START_TEST(test_around_a_call)
{
	struct listing listing = list(RETURN, true, 2);

	ck_assert_uint_eq(listing.items.count, 5);
	expect(&listing, 0, START + 4, "sub rsp, 0x10", false);
	expect(&listing, 1, START + 8, "movabs rax, 0x5090909090909090", false);
	expect(&listing, 2, CALL, "call rax", true);
	expect(&listing, 3, RETURN, "leave", false);
	expect(&listing, 4, RETURN + 1, "ret", false);
	listing_deinit(&listing);
}
END_TEST

START_TEST(test_at_an_instruction)
{
	struct listing listing = list(START, false, 1);

	ck_assert_uint_eq(listing.items.count, 2);
	expect(&listing, 0, START, "push rbp", true);
	expect(&listing, 1, START + 1, "mov rbp, rsp", false);
	listing_deinit(&listing);
}
END_TEST

/* The bytes start in the middle of an instruction: the right start is found nevertheless. */
START_TEST(test_without_a_start)
{
	const struct listed_code code = {.bytes = function + 10,
					 .size = sizeof(function) - 10,
					 .address = START + 10,
					 .site = RETURN,
					 .is_return_address = true};
	struct listing listing;

	ck_assert_ptr_null(listing_create(disassembly, &code, 1, &listing));
	ck_assert_uint_eq(listing.items.count, 3);
	expect(&listing, 1, CALL, "call rax", true);
	expect(&listing, 2, RETURN, "leave", false);
	listing_deinit(&listing);
}
END_TEST

START_TEST(test_call_sites_outside_the_code)
{
	static const uint64_t sites[] = {START - 1, START + sizeof(function) + 1, 0, UINT64_MAX};

	for (size_t i = 0; i < sizeof(sites) / sizeof(*sites); i++) {
		for (int kind = 0; kind < 2; kind++) {
			struct listing listing = list(sites[i], kind, 4);

			ck_assert_uint_eq(listing.items.count, 0);
			listing_deinit(&listing);
		}
	}
}
END_TEST

START_TEST(test_unknown_architecture)
{
	const struct listed_code code = {.bytes = function, .size = sizeof(function), .site = 4};
	struct disassembly *other;
	struct listing listing;

	ck_assert_ptr_null(disassembly_create(EM_SPARC, &other));
	ck_assert_ptr_null(listing_create(other, &code, 4, &listing));
	ck_assert_uint_eq(listing.items.count, 0);
	disassembly_destroy(other);
}
END_TEST

START_TEST(test_aarch64)
{
	static const uint8_t bytes[] = {0xfd, 0x7b, 0xbf, 0xa9, 0x00, 0x00, 0x00, 0x94, 0xc0, 0x03, 0x5f, 0xd6};
	const struct listed_code code = {
	    .bytes = bytes, .size = sizeof(bytes), .address = 0x1000, .site = 0x1008, .is_return_address = true};
	struct disassembly *other;
	struct listing listing;

	ck_assert_ptr_null(disassembly_create(EM_AARCH64, &other));
	ck_assert_ptr_null(listing_create(other, &code, 4, &listing));
	ck_assert_uint_eq(listing.items.count, 3);
	expect(&listing, 1, 0x1004, "bl #0x1004", true);
	expect(&listing, 2, 0x1008, "ret", false);
	listing_deinit(&listing);
	disassembly_destroy(other);
}
END_TEST

/* Bytes that are not an instruction, at any place and of any kind: the work is bounded, and nothing beyond is read. */
START_TEST(test_invalid_instructions)
{
	for (unsigned round = 0; round < 300; round++) {
		size_t size = 1 + round;
		CLEANUP(free) uint8_t *bytes = malloc(size);
		struct listed_code code = {.bytes = bytes, .size = size, .address = START};
		struct listing listing;

		srand(round);
		for (size_t i = 0; i < size; i++)
			bytes[i] = (uint8_t)rand();
		code.is_return_address = round % 3;
		code.site = START + (uint64_t)rand() % (size + 2);
		ck_assert_ptr_null(listing_create(disassembly, &code, 8, &listing));
		ck_assert_uint_le(listing.items.count, 17);
		ck_assert_uint_le(listing.decoded, DECODED_MAX);
		listing_deinit(&listing);
	}
}
END_TEST

/* The length of a function does not matter, nor does code in which no instruction ends at the call site. */
START_TEST(test_long_function)
{
	enum { SIZE = 1 << 20 };
	CLEANUP(free) uint8_t *bytes = malloc(SIZE);
	struct listed_code code = {.bytes = bytes, .size = SIZE, .is_return_address = true};
	struct listing listing;

	memset(bytes, 0x90, SIZE);
	for (code.site = SIZE / 8; code.site < SIZE; code.site += SIZE / 8) {
		ck_assert_ptr_null(listing_create(disassembly, &code, 8, &listing));
		ck_assert_uint_eq(listing.items.count, 17);
		expect(&listing, 8, code.site - 1, "nop", true);
		ck_assert_uint_le(listing.decoded, DECODED_MAX);
		listing_deinit(&listing);
	}
	for (size_t i = SIZE / 2 - 300; i < SIZE / 2; i++)
		bytes[i] = 0x48; /* prefixes: all of them belong to the next instruction */
	code.site = SIZE / 2;
	ck_assert_ptr_null(listing_create(disassembly, &code, 8, &listing));
	ck_assert_uint_le(listing.decoded, DECODED_MAX);
	listing_deinit(&listing);
}
END_TEST

/* The bytes of a listing alone give the same listing: so a packed recording shows what the original does. */
START_TEST(test_only_listed_bytes_matter)
{
	enum { SIZE = 4096 };
	uint8_t bytes[SIZE];
	struct listed_code code = {.bytes = bytes, .size = SIZE, .address = START};
	unsigned found = 0;

	srand(1);
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)rand();
	for (uint64_t site = 0; site < SIZE; site++) {
		struct listing whole, own;
		const struct listed_instruction *first, *last;
		struct listed_code part = code;

		part.site = code.site = START + site;
		part.is_return_address = code.is_return_address = site % 2;
		ck_assert_ptr_null(listing_create(disassembly, &code, 8, &whole));
		if (!whole.items.count)
			continue;
		first = whole.items.items;
		last = first + whole.items.count - 1;
		part.address = first->address;
		part.bytes += first->address - START;
		part.size = last->address + last->size - first->address;
		ck_assert_ptr_null(listing_create(disassembly, &part, 8, &own));
		ck_assert_uint_eq(own.items.count, whole.items.count);
		for (size_t i = 0; i < own.items.count; i++)
			expect(&own, i, first[i].address, first[i].text, first[i].here);
		found++;
		listing_deinit(&whole);
		listing_deinit(&own);
	}
	ck_assert_uint_gt(found, SIZE / 2);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("listing");
	TCase *tests = add_tcase(suite, "listing");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 600);
	tcase_add_tests(tests, test_around_a_call, test_at_an_instruction, test_without_a_start,
			test_call_sites_outside_the_code, test_unknown_architecture, test_aarch64,
			test_invalid_instructions, test_long_function, test_only_listed_bytes_matter);
	return suite;
}
