// SPDX-License-Identifier: LGPL-2.1-or-later
/* Walks heaps that were made in memory: layouts of other versions of glibc, and hostile ones. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "capture/heap/heap-readings.h"
#include "support/suite.h"
#include "trace/sections/sections.h"

#define DATA 0x7f0000000000 /* the data of libc, with main_arena */
#define ARENA (DATA + 0x40)
#define RELRO 0x7f0000010000 /* vtables and type information */
#define CODE 0x7f0000020000
#define HEAP 0x555500000000
#define HEAP_BYTES 0x40000
#define SECOND (64ULL << 20) /* the heap of a second arena */
#define PAGES 0x10000

static char libc[] = "/lib/libc.so.6", program[] = "/bin/program", heap_path[] = "[heap]", anonymous[] = "";
static struct heap_mapping mappings[5];
static uint8_t memory[5][HEAP_BYTES];
static unsigned reads, allowed;
static uint64_t missing;    /* this page is not in memory */
static uint64_t shrunk_to;  /* the break from the second reading on */
static uint64_t grown_from; /* the break when the mappings were read */
static struct mmt_heap_census census;
static uint64_t repaired, right; /* this word gets this value as soon as the walk has passed over a wrong header */

static void put(uint64_t address, uint64_t value);

static size_t read_fake(void *context, uint64_t address, void *data, size_t size)
{
	(void)context;
	reads++;
	for (size_t i = 0; i < 5; i++) {
		uint64_t end = mappings[i].start == HEAP && shrunk_to && reads > 20 ? shrunk_to : mappings[i].end;

		if (address < mappings[i].start || address >= end || (address & ~4095ull) == missing)
			continue;
		size = end - address < size ? end - address : size;
		if (repaired && census.stopped_at)
			put(repaired, right);
		memcpy(data, memory[i] + (address - mappings[i].start), size);
		return size;
	}
	return 0;
}

static uint64_t resident_fake(void *context, uint64_t start, uint64_t end)
{
	(void)context;
	return end - start;
}

static uint64_t find_resident_fake(void *context, uint64_t start, uint64_t end)
{
	uint8_t byte;

	for (; start < end && !read_fake(context, start, &byte, 1); start = (start | 4095) + 1)
		reads--;
	return start < end ? start : end;
}

static bool is_over_fake(void *context)
{
	(void)context;
	return reads > allowed;
}

static void put(uint64_t address, uint64_t value)
{
	for (size_t i = 0; i < 5; i++) {
		if (address >= mappings[i].start && address < mappings[i].end)
			memcpy(memory[i] + (address - mappings[i].start), &value, sizeof(value));
	}
}

/* Writes an empty arena. */
static void put_arena(uint64_t arena, uint64_t top, uint64_t next)
{
	for (uint64_t i = 0; i < 127; i++) {
		put(arena + 112 + 16 * i, arena + 96 + 16 * i);
		put(arena + 112 + 16 * i + 8, arena + 96 + 16 * i);
	}
	put(arena + 96, top);
	put(arena + 2160, next);
	put(arena + 2184, HEAP_BYTES);
	put(arena + 2192, HEAP_BYTES);
}

static uint64_t place;

static void restart_heap(uint64_t start)
{
	place = start;
}

/* Appends a chunk in use, as far as the chunk below it is. Returns the address of its bytes. */
static uint64_t chunk(uint64_t size, uint64_t word)
{
	uint64_t address = place;

	put(address + 8, size | 1);
	put(address + 16, word);
	place += size;
	return address + 16;
}

static void finish_heap(uint64_t arena, uint64_t end)
{
	put(place + 8, (end - place) | 1);
	put(arena + 96, place);
}

static void create(void)
{
	const struct heap_mapping layout[] = {
	    {SECOND, SECOND + HEAP_BYTES, true, false, anonymous, NULL},
	    {HEAP, HEAP + HEAP_BYTES, true, false, heap_path, NULL},
	    {DATA, DATA + PAGES, true, false, libc, &mappings[2]},
	    {RELRO, RELRO + PAGES, false, false, program, &mappings[3]},
	    {CODE, CODE + PAGES, false, true, program, &mappings[3]},
	};

	memcpy(mappings, layout, sizeof(layout));
	memset(memory, 0, sizeof(memory));
	memset(&census, 0, sizeof(census));
	reads = 0;
	allowed = 100000;
	missing = shrunk_to = grown_from = repaired = 0;
	put_arena(ARENA, HEAP, ARENA);
	restart_heap(HEAP);
}

static void walk(void)
{
	struct heap_mapping listed[5];
	const struct heap_source source = {NULL,	 listed, 5, read_fake, resident_fake, find_resident_fake,
					   is_over_fake, NULL};

	memcpy(listed, mappings, sizeof(listed));
	if (grown_from)
		listed[1].end = grown_from;
	census.allocator = MMT_ALLOCATOR_GLIBC;
	ck_assert_ptr_null(heap_walk(&source, &census));
	ck_assert_uint_le(census.in_use_low, census.in_use_high);
	ck_assert_uint_le(census.walked_bytes, census.mapped_bytes);
	ck_assert_uint_le(census.group_count, LIMIT_HEAP_GROUPS);
	ck_assert_uint_lt(reads, allowed + 100);
}

static void destroy(void)
{
	heap_census_deinit(&census);
}

static const struct mmt_heap_group *find(enum mmt_heap_content content, uint64_t bytes)
{
	for (size_t i = 0; i < census.group_count; i++) {
		if (census.groups[i].content == content && census.groups[i].smallest_bytes == bytes)
			return &census.groups[i];
	}
	return NULL;
}

START_TEST(chunks_are_counted_by_what_they_begin_with)
{
	uint64_t freed;

	/* A vtable at 0x110: its type information at 0x200, whose name is at 0x300. */
	put(RELRO + 0x108, RELRO + 0x200);
	put(RELRO + 0x200, RELRO + 0x400);
	put(RELRO + 0x208, RELRO + 0x300);
	memcpy(memory[3] + 0x300, "*N3app7SessionE", 16);
	for (unsigned i = 0; i < 20; i++) {
		chunk(928, RELRO + 0x110);
		chunk(64, RELRO + 0x800);
		chunk(48, 0x6f77206f6c6c6568);
		chunk(32, 7);
	}
	freed = chunk(0x5000, 0);
	put(place, 0x5000);
	chunk(512, 0);
	put(freed + 0x5000 - 8, 512); /* the chunk below is free */
	chunk(32, 0);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	walk();
	ck_assert_int_eq(census.result, MMT_HEAP_COMPLETE);
	ck_assert_uint_eq(census.arenas, 1);
	ck_assert_uint_eq(census.walked_bytes, HEAP_BYTES);
	ck_assert_uint_eq(census.in_use_low, 20 * (928 + 64 + 48 + 32) + 512 + 32);
	ck_assert_uint_eq(census.in_use_high, census.in_use_low);
	ck_assert_uint_eq(census.free_bytes, 0x5000);
	ck_assert_uint_eq(census.top_bytes, HEAP + HEAP_BYTES - place);
	ck_assert_str_eq(find(MMT_HEAP_TYPE, 928)->name, "N3app7SessionE");
	ck_assert_uint_eq(find(MMT_HEAP_TYPE, 928)->count, 20);
	ck_assert_str_eq(find(MMT_HEAP_POINTER, 64)->name, program);
	ck_assert_uint_eq(find(MMT_HEAP_POINTER, 64)->offset, 0x800);
	ck_assert_uint_eq(find(MMT_HEAP_TEXT, 48)->count, 20);
	ck_assert_uint_eq(find(MMT_HEAP_UNKNOWN, 32)->count, 21);
	ck_assert_uint_eq(find(MMT_HEAP_UNKNOWN, 512)->after_free_bytes, 0x5000);
}
END_TEST

/* The first break of a static program is not the end of a page, and its heap is longer than whole pages. */
START_TEST(the_break_may_begin_within_a_page)
{
	put(ARENA + 2184, HEAP_BYTES - 0xd00);
	put(ARENA + 2192, HEAP_BYTES - 0xd00);
	restart_heap(HEAP + 0xd00);
	chunk(32, 0);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	walk();
	ck_assert_int_eq(census.result, MMT_HEAP_COMPLETE);
	ck_assert_uint_eq(census.in_use_count, 1);
}
END_TEST

/* The tcache of a thread, with one chunk of 32 bytes. */
static uint64_t put_tcache(uint64_t key, uint64_t next)
{
	uint64_t tcache = chunk(0x290, 1), block = chunk(32, next);

	put(tcache + 128, block);
	put(block + 8, key ? key : tcache);
	return block;
}

START_TEST(tcaches_are_known_by_key_and_before_2_34_by_address)
{
	put(DATA + 0x8000, 0x123456789abcdef1);
	put_tcache(0x123456789abcdef1, 0);
	put(chunk(48, 0) + 8, 0x123456789abcdef1);
	chunk(32, 0);
	put_tcache(0, 0);					   /* another thread: its key is found late */
	put(HEAP + 0x290 + 32 + 48 + 24, place - 32 - 0x290 + 16); /* a chunk below it has that key */
	chunk(32, 0);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	walk();
	ck_assert_int_eq(census.result, MMT_HEAP_COMPLETE);
	ck_assert_uint_eq(census.tcache_bytes, 32 + 48 + 32 + 32);
	ck_assert_uint_eq(census.in_use_low, 2 * 0x290 + 32);
}
END_TEST

/* A block that the program got back while its tcache was read. Many blocks have that word. */
START_TEST(words_of_the_program_are_no_keys)
{
	static const uint64_t words[] = {1, HEAP + 0x2a0, 0xdeadbeefcafebabe, 0x0101010101010101, UINT64_MAX};

	for (unsigned i = 0; i < 3; i++)
		put(DATA + 0x8000 + 8 * i, (const uint64_t[]){1, HEAP + 0x2a0, UINT64_MAX}[i]);
	put_tcache(words[_i], 0);
	for (unsigned i = 0; i < 100; i++)
		put(chunk(48, 0) + 8, words[_i]);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	walk();
	ck_assert_uint_eq(census.tcache_bytes, 0);
	ck_assert_uint_eq(census.in_use_count, 102);
}
END_TEST

static void put_fastbins(bool mangled)
{
	uint64_t blocks[4];

	for (unsigned i = 0; i < 4; i++) {
		blocks[i] = chunk(64, 0);
		chunk(32, 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		uint64_t next = i ? blocks[i - 1] - 16 : 0;

		put(blocks[i], mangled ? next ^ blocks[i] >> 12 : next);
	}
	put(ARENA + 16 + 2 * 8, blocks[3] - 16);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
}

START_TEST(fastbins_are_followed_with_mangled_and_plain_pointers)
{
	put_fastbins(_i);
	walk();
	ck_assert_int_eq(census.result, MMT_HEAP_COMPLETE);
	ck_assert_uint_eq(census.fastbin_bytes, 4 * 64);
	ck_assert_uint_eq(census.in_use_low, 4 * 32);
	ck_assert_uint_eq(census.in_use_high, 4 * 32);
}
END_TEST

START_TEST(a_cycle_in_a_fastbin_makes_a_range)
{
	put_fastbins(false);
	put(HEAP + 16, HEAP + 3 * 96); /* the last leads to the first again */
	walk();
	ck_assert_uint_lt(reads, 1000);
	ck_assert_uint_eq(census.fastbin_bytes, 4 * 64);
	ck_assert_uint_eq(census.in_use_low, 0);
	ck_assert_uint_eq(census.in_use_high, 4 * 32);
}
END_TEST

START_TEST(other_arenas_have_heaps_of_several_layouts)
{
	const uint64_t arena = SECOND + (_i ? 48 : 32);

	chunk(32, 0);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	put(SECOND, arena);
	put(SECOND + 16, HEAP_BYTES);
	put_arena(arena, 0, ARENA);
	put(ARENA + 2160, arena);
	restart_heap((arena + 2200 + 15) & ~15ull);
	for (unsigned i = 0; i < 10; i++)
		put(chunk(96, 0) - 8, 96 | 5);
	finish_heap(arena, SECOND + HEAP_BYTES);
	walk();
	ck_assert_int_eq(census.result, MMT_HEAP_COMPLETE);
	ck_assert_uint_eq(census.arenas, 2);
	ck_assert_uint_eq(find(MMT_HEAP_UNKNOWN, 96)->count, 10);
}
END_TEST

/* Sizes of a header that no chunk has. */
static const uint64_t wrong_heads[] = {0,	 1,   3, 9, 0x29, UINT64_MAX, 0x4141414141414141, HEAP_BYTES * 2 | 1,
				       0x61 | 2, 0x65};

START_TEST(a_wrong_header_is_passed_over)
{
	uint64_t wrong;

	for (unsigned i = 0; i < 50; i++)
		chunk(96, 0);
	wrong = chunk(96, 0);
	for (unsigned i = 0; i < 50; i++)
		chunk(96, 0);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	put(wrong - 8, wrong_heads[_i]);
	walk();
	if (wrong_heads[_i] != 1) { /* a fencepost */
		ck_assert_int_eq(census.result, MMT_HEAP_DAMAGED);
		ck_assert_uint_le(census.stopped_at, wrong - 16);
		ck_assert_uint_ge(census.stopped_at, wrong - 16 - 96);
	}
	ck_assert_uint_ge(census.in_use_low, 99 * 96);
	ck_assert_uint_ge(census.in_use_high, 101 * 96);
	ck_assert_uint_gt(census.top_bytes, 0);
}
END_TEST

START_TEST(a_header_that_was_wrong_for_a_moment_is_no_damage)
{
	for (unsigned i = 0; i < 50; i++)
		chunk(96, 0);
	repaired = chunk(96, 0) - 8;
	right = 96 | 1;
	for (unsigned i = 0; i < 50; i++)
		chunk(96, 0);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	put(repaired, 0x4141414141414141);
	walk();
	ck_assert_int_eq(census.result, MMT_HEAP_CHANGING);
	ck_assert_uint_ge(census.in_use_low + census.in_use_high, 2 * 99 * 96);
}
END_TEST

/* The heap of another arena is filled, so that the arena has its top elsewhere, or given to another arena. */
START_TEST(a_heap_that_is_filled_or_replaced_is_no_damage)
{
	const uint64_t arena = SECOND + 48;

	chunk(32, 0);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	put(SECOND, arena);
	put(SECOND + 16, HEAP_BYTES / 2);
	put_arena(arena, SECOND + HEAP_BYTES / 2 - 32, ARENA);
	put(ARENA + 2160, arena);
	restart_heap((arena + 2200 + 15) & ~15ull);
	for (unsigned i = 0; i < 50; i++)
		chunk(96, 0);
	chunk(HEAP_BYTES / 2, 0);
	repaired = (uint64_t[]){0, SECOND + 16, SECOND}[_i];
	right = (uint64_t[]){0, HEAP_BYTES, ARENA}[_i];
	walk();
	ck_assert_int_eq(census.result, _i ? MMT_HEAP_CHANGING : MMT_HEAP_DAMAGED);
}
END_TEST

/* Where the heap ended when its mapping was read: between a header and its size, within a chunk, between chunks. */
static const uint64_t early_ends[] = {HEAP + 0x10000, HEAP + 0x11000, HEAP + 0x3f000};

START_TEST(a_heap_that_grows_while_it_is_read_is_no_damage)
{
	for (unsigned i = 0; i < 258; i++)
		chunk(1008, 0);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	grown_from = early_ends[_i];
	walk();
	ck_assert_int_eq(census.result, MMT_HEAP_CHANGING);
}
END_TEST

/* The header of the top; the last one is not in memory. */
static const uint64_t top_heads[] = {0, 1, 8, 0};

START_TEST(a_top_without_a_size_ends_the_region)
{
	for (unsigned i = 0; i < 127; i++)
		chunk(64, 0);
	chunk(32, 0);
	chunk(32, 0);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	put(place + 8, top_heads[_i]);
	if (_i == 3)
		shrunk_to = HEAP + 0x2000;
	reads = 21;
	walk();
	ck_assert_uint_lt(reads, 1000);
	ck_assert_uint_ge(census.in_use_low + census.in_use_high, 2 * 126 * 64);
	ck_assert_uint_ge(census.in_use_high, HEAP_BYTES - 0x1000);
}
END_TEST

START_TEST(main_arena_is_found_behind_pages_that_are_not_in_memory)
{
	mappings[2].start = DATA - 0x3000;
	missing = DATA - 0x3000;
	memset(memory[2], 0, HEAP_BYTES);
	put_arena(ARENA, HEAP, ARENA);
	chunk(32, 0);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	walk();
	ck_assert_uint_eq(census.arenas, 1);
	ck_assert_int_eq(census.result, MMT_HEAP_COMPLETE);
}
END_TEST

START_TEST(beyond_the_limit_of_time_types_are_not_read)
{
	for (unsigned i = 0; i < 2000; i++)
		chunk(64, RELRO + 8 * i);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	allowed = 100;
	walk();
	ck_assert_int_eq(census.result, MMT_HEAP_SAMPLED);
}
END_TEST

START_TEST(absent_pages_are_passed_over_at_once)
{
	for (unsigned i = 0; i < 50; i++)
		chunk(96, 0);
	put(chunk(96, 0) - 8, 3);
	shrunk_to = HEAP + 0x2000;
	put(ARENA + 96, HEAP + HEAP_BYTES - 64);
	reads = 21;
	walk();
	ck_assert_int_eq(census.result, MMT_HEAP_DAMAGED);
	ck_assert_uint_lt(reads, 21 + HEAP_BYTES / 4096 / 2);
}
END_TEST

START_TEST(hostile_types_have_no_names)
{
	/* Vtables that lead to themselves, to nothing, to code, to a name without an end, and to none. */
	put(RELRO + 0x108, RELRO + 0x108);
	put(RELRO + 0x208, 0xdeadbeef000);
	put(RELRO + 0x308, CODE);
	put(RELRO + 0x408, RELRO + 0x1000);
	put(RELRO + 0x1000, RELRO);
	put(RELRO + 0x1008, RELRO + 0x4000);
	memset(memory[3] + 0x4000, 'A', PAGES - 0x4000);
	put(RELRO + 0x508, RELRO + 0x1100);
	put(RELRO + 0x1100, RELRO);
	put(RELRO + 0x1108, RELRO + 0x3000);
	memcpy(memory[3] + 0x3000, "bad\033name", 9);
	for (unsigned i = 1; i <= 5; i++)
		chunk(32 + 16 * i, RELRO + 0x100 * i + 0x10);
	chunk(144, RELRO); /* before it is no memory */
	chunk(160, RELRO + 3);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	walk();
	ck_assert_int_eq(census.result, MMT_HEAP_COMPLETE);
	for (unsigned i = 1; i <= 8; i++)
		ck_assert(i == 6 || find(MMT_HEAP_POINTER, 32 + 16 * i));
}
END_TEST

START_TEST(more_kinds_of_chunks_than_a_census_has_are_summed)
{
	uint64_t count = 0, bytes = 0, in_use = 0;

	for (unsigned i = 0; i < 1500; i++) {
		chunk(32 + 16 * (i % 16), i % 3 ? i : RELRO + 0x2000 + 8 * i);
		in_use += 32 + 16 * (i % 16);
	}
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	walk();
	for (size_t i = 0; i < census.group_count; i++) {
		count += census.groups[i].count;
		bytes += census.groups[i].bytes;
	}
	ck_assert_uint_eq(count, 1500);
	ck_assert_uint_eq(bytes, in_use);
	ck_assert_uint_eq(census.in_use_low, in_use);
}
END_TEST

START_TEST(random_memory_ends_in_bounded_work)
{
	uint32_t seed = 1 + (uint32_t)_i;

	for (size_t i = 0; i < HEAP_BYTES; i += 8) {
		uint64_t word;

		seed = seed * 1664525 + 1013904223;
		/* Many headers are nearly right. */
		word = seed & 1 ? (seed >> 8 & 0xfff0) | 1 : HEAP + (seed >> 8 & 0x3fff0);
		memcpy(memory[1] + i, &word, sizeof(word));
	}
	for (unsigned i = 0; i < 10; i++)
		put(ARENA + 16 + 8 * i, HEAP + 0x100 * i);
	put(ARENA + 2160, HEAP + 0x20);
	put(ARENA + 96, HEAP + HEAP_BYTES - 64);
	allowed = 2000;
	walk();
}
END_TEST

START_TEST(a_heap_may_shrink_while_it_is_read)
{
	for (unsigned i = 0; i < 2000; i++)
		chunk(112, 0);
	finish_heap(ARENA, HEAP + HEAP_BYTES);
	shrunk_to = HEAP + 0x1000;
	walk();
	ck_assert_uint_ge(census.in_use_high, census.mapped_bytes - census.walked_bytes);
}
END_TEST

START_TEST(without_an_arena_nothing_is_walked)
{
	memset(memory[2], 0, PAGES);
	walk();
	ck_assert_int_eq(census.result, MMT_HEAP_NOT_WALKED);
	ck_assert_uint_eq(census.mapped_bytes, 0);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("heap walk");
	TCase *cases = add_tcase(suite, "made in memory");

	tcase_add_checked_fixture(cases, create, destroy);
	tcase_add_loop_test(cases, words_of_the_program_are_no_keys, 0, 5);
	tcase_add_tests(cases, the_break_may_begin_within_a_page, chunks_are_counted_by_what_they_begin_with,
			tcaches_are_known_by_key_and_before_2_34_by_address, a_cycle_in_a_fastbin_makes_a_range,
			hostile_types_have_no_names, more_kinds_of_chunks_than_a_census_has_are_summed,
			main_arena_is_found_behind_pages_that_are_not_in_memory,
			beyond_the_limit_of_time_types_are_not_read, absent_pages_are_passed_over_at_once,
			a_heap_may_shrink_while_it_is_read, a_header_that_was_wrong_for_a_moment_is_no_damage,
			without_an_arena_nothing_is_walked);
	tcase_add_loop_test(cases, fastbins_are_followed_with_mangled_and_plain_pointers, 0, 2);
	tcase_add_loop_test(cases, a_top_without_a_size_ends_the_region, 0, sizeof(top_heads) / sizeof(*top_heads));
	tcase_add_loop_test(cases, a_heap_that_grows_while_it_is_read_is_no_damage, 0, 3);
	tcase_add_loop_test(cases, a_heap_that_is_filled_or_replaced_is_no_damage, 0, 3);
	tcase_add_loop_test(cases, other_arenas_have_heaps_of_several_layouts, 0, 2);
	tcase_add_loop_test(cases, a_wrong_header_is_passed_over, 0, sizeof(wrong_heads) / sizeof(*wrong_heads));
	tcase_add_loop_test(cases, random_memory_ends_in_bounded_work, 0, 20);
	return suite;
}
