// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which pages of JIT code are read again and when, and what is stored of them. */
#include <check.h>
#include <string.h>

#include "base/limits.h"
#include "capture/jit-code/jit-pages.h"
#include "support/suite.h"

enum { PAGE = 4096, AGAIN = JIT_PAGE_AGAIN_NS };

static struct jit_pages pages;
static struct jit_store store;
static uint8_t page[PAGE];

static void set_up(void)
{
	pages = (struct jit_pages){.page_bytes = PAGE};
	ck_assert_ptr_null(jit_store_init(&store, 4 * PAGE, 4 * PAGE));
}

static void tear_down(void)
{
	jit_pages_discard(&pages, &store);
	ck_assert_uint_eq(store.plain_bytes + store.stored_bytes, 0);
	jit_store_deinit(&store);
}

static void put(uint64_t address, int value, size_t size, uint64_t now_ns)
{
	memset(page, 0, sizeof(page));
	memset(page, value, size);
	ck_assert_ptr_null(jit_pages_put(&pages, &store, address, page, now_ns));
}

/* A byte of what is stored of the page. */
static uint8_t stored(size_t index, size_t offset)
{
	struct buffer plain;
	uint8_t byte;

	buffer_init(&plain, PAGE);
	ck_assert_ptr_null(jit_page_get(&pages.items.items[index], &store, &plain));
	ck_assert_uint_lt(offset, plain.size);
	byte = plain.data[offset];
	buffer_deinit(&plain);
	return byte;
}

static bool due(uint64_t address, uint64_t now_ns)
{
	uint64_t start;

	return jit_pages_due(&pages, address, address + PAGE, PAGE, now_ns, &start) == PAGE;
}

START_TEST(changing_pages_are_read_again)
{
	uint64_t now_ns = 1000;

	ck_assert(due(PAGE, now_ns));
	put(PAGE, 1, 100, now_ns);
	ck_assert(!due(PAGE, now_ns + AGAIN - 1));
	ck_assert(due(PAGE, now_ns + AGAIN));
	put(PAGE, 1, 200, now_ns += AGAIN);
	ck_assert(due(PAGE, now_ns + AGAIN));
	put(PAGE, 1, 200, now_ns += AGAIN);
	ck_assert(!due(PAGE, now_ns + AGAIN));
	ck_assert(due(PAGE, now_ns + 2 * AGAIN));
	for (int i = 0; i < 20; i++)
		put(PAGE, 1, 200, now_ns += JIT_PAGE_AGAIN_NS_MAX);
	ck_assert(due(PAGE, now_ns + JIT_PAGE_AGAIN_NS_MAX));
	ck_assert(!due(PAGE, now_ns + JIT_PAGE_AGAIN_NS_MAX / 2));
	put(PAGE, 2, 200, now_ns += JIT_PAGE_AGAIN_NS_MAX);
	ck_assert(due(PAGE, now_ns + AGAIN));
	ck_assert_uint_eq(pages.items.count, 1);
}
END_TEST

START_TEST(adjacent_due_pages_are_read_together)
{
	uint64_t start;

	put(2 * PAGE, 1, 1, 1000);
	ck_assert_uint_eq(jit_pages_due(&pages, PAGE, 8 * PAGE, 8 * PAGE, 1000, &start), PAGE);
	ck_assert_uint_eq(start, PAGE);
	ck_assert_uint_eq(jit_pages_due(&pages, 2 * PAGE, 8 * PAGE, 3 * PAGE, 1000, &start), 3 * PAGE);
	ck_assert_uint_eq(start, 3 * PAGE);
	ck_assert_uint_eq(jit_pages_due(&pages, 2 * PAGE, 3 * PAGE, PAGE, 1000, &start), 0);
	ck_assert_uint_eq(jit_pages_due(&pages, 2 * PAGE, 3 * PAGE, PAGE, UINT64_MAX, &start), PAGE);
}
END_TEST

/* A blank page is not stored; for a page that becomes blank, its earlier content is. */
START_TEST(blank_pages_are_not_stored)
{
	put(PAGE, 0, PAGE, 1000);
	ck_assert_uint_eq(store.plain_bytes, 0);
	put(PAGE, 1, 100, 2000);
	put(PAGE, 0, PAGE, 3000);
	ck_assert_uint_eq(store.plain_bytes, PAGE);
	ck_assert_uint_eq(stored(0, 99), 1);
	ck_assert_uint_eq(pages.items.items[0].replaced.size, 0);
}
END_TEST

/* Appended code and a patched call replace nothing. What was replaced twice counts as replaced until the last time. */
START_TEST(replaced_code_is_noted)
{
	const struct jit_code_change *replaced;

	put(PAGE, 1, 100, 1000);
	put(PAGE, 1, 200, 2000);
	memset(page + 40, 7, JIT_REPLACED_BYTES_MIN - 1);
	ck_assert_ptr_null(jit_pages_put(&pages, &store, PAGE, page, 3000));
	replaced = &pages.items.items[0].replaced;
	ck_assert_uint_eq(replaced->size, 0);
	memset(page + 40, 8, JIT_REPLACED_BYTES_MIN);
	ck_assert_ptr_null(jit_pages_put(&pages, &store, PAGE, page, 4000));
	ck_assert_uint_eq(replaced->start, PAGE + 40);
	ck_assert_uint_eq(replaced->size, JIT_REPLACED_BYTES_MIN);
	ck_assert_uint_eq(replaced->until_ns, 3000);
	ck_assert_uint_eq(stored(0, 40), 8);
	memset(page + 100, 9, JIT_REPLACED_BYTES_MIN);
	ck_assert_ptr_null(jit_pages_put(&pages, &store, PAGE, page, 5000));
	ck_assert_uint_eq(replaced->start, PAGE + 40);
	ck_assert_uint_eq(replaced->size, 60 + JIT_REPLACED_BYTES_MIN);
	ck_assert_uint_eq(replaced->until_ns, 4000);
}
END_TEST

START_TEST(stored_bytes_are_limited)
{
	for (uint64_t i = 1; i <= 6; i++)
		put(i * PAGE, 1, PAGE - 1, 1000);
	ck_assert_uint_eq(store.plain_bytes, 4 * PAGE);
	put(PAGE, 2, PAGE - 1, 2000);
	ck_assert_uint_eq(stored(0, 0), 2);
	ck_assert_uint_eq(store.plain_bytes, 4 * PAGE);
	/* Pages without room in the store are not read again; blank ones may stay blank. */
	ck_assert(!due(5 * PAGE, UINT64_MAX - 1));
	put(7 * PAGE, 0, 0, 1000);
	ck_assert(due(7 * PAGE, 1000 + AGAIN));
}
END_TEST

/* The same for code that does not compress: the earlier content stays, as replaced code. */
START_TEST(memory_is_limited)
{
	const struct jit_code_change *replaced;
	size_t stored_bytes;

	jit_store_deinit(&store);
	ck_assert_ptr_null(jit_store_init(&store, 100 * PAGE, 2 * PAGE));
	put(PAGE, 1, 100, 1000);
	stored_bytes = store.stored_bytes;
	ck_assert_uint_lt(stored_bytes, PAGE / 10);
	for (uint32_t i = 0, value = 1; i < PAGE; i++, value = value * 1664525 + 1013904223)
		page[i] = (uint8_t)(value >> 24);
	ck_assert_ptr_null(jit_pages_put(&pages, &store, 2 * PAGE, page, 1000));
	ck_assert(!store.full);
	ck_assert_uint_gt(store.stored_bytes, PAGE);
	page[0]++;
	ck_assert_ptr_null(jit_pages_put(&pages, &store, PAGE, page, 2000));
	ck_assert(store.full);
	ck_assert_uint_eq(stored(0, 99), 1);
	ck_assert_uint_eq(stored(0, 100), 0);
	replaced = &pages.items.items[0].replaced;
	ck_assert_uint_eq(replaced->start, PAGE + 1); /* the first byte stays */
	ck_assert_uint_eq(replaced->size, 99);
	ck_assert_uint_eq(replaced->until_ns, JIT_PAGE_NEVER);
	/* The same content again: now there is room. */
	store.stored_bytes_max = 3 * PAGE;
	ck_assert_ptr_null(jit_pages_put(&pages, &store, PAGE, page, 2500));
	ck_assert_uint_eq(stored(0, 0), page[0]);
	ck_assert_uint_eq(replaced->until_ns, 2000);
	store.stored_bytes_max = 2 * PAGE;
	put(PAGE, 3, 200, 3000);
	ck_assert_uint_eq(stored(0, 199), 3);
	ck_assert_uint_le(store.stored_bytes, 2 * PAGE);
}
END_TEST

/* A page that was stored before is still updated. */
START_TEST(number_of_pages_is_limited)
{
	for (uint64_t i = 1; i <= LIMIT_CODE_PAGES; i++)
		put(i * PAGE, 0, 0, 1000);
	ck_assert(!due((LIMIT_CODE_PAGES + 1ull) * PAGE, UINT64_MAX));
	ck_assert(due(LIMIT_CODE_PAGES * 1ull * PAGE, UINT64_MAX));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("jit-pages");
	TCase *tests = add_tcase(suite, "jit-pages");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_tests(tests, changing_pages_are_read_again, adjacent_due_pages_are_read_together,
			blank_pages_are_not_stored, replaced_code_is_noted, stored_bytes_are_limited, memory_is_limited,
			number_of_pages_is_limited);
	return suite;
}
