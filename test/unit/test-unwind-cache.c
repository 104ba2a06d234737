// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "code/unwind/unwind.h"
#include "support/suite.h"

/* Code of the imaginary process: JIT code with frame pointers, called by an entry; a leaf with CFI. */
#define LEAF 0x400000ULL  /* CFA = rsp + 8 */
#define PLAIN 0x401000ULL /* CFA = rsp + 32, rbx saved at CFA - 16 */
#define ENTRY 0x402000ULL
#define JIT 0x900000ULL
#define STACK 0x7ffd00001000ULL

enum { RBX = 3, RBP = 6, RSP = 7, RIP = 16 };

static struct cfi_row rows[3];
static struct cfi_rule rules[3][2];
static uint64_t words[32], chain[4];
static struct register_values registers;
static struct unwind_input input;
static struct unwind_result result;
static struct unwind_cache *cache;

static enum code_kind find_code(void *context, uint64_t address, bool is_return_address, struct code_place *place_ret)
{
	(void)context;
	if (address >> 12 == JIT >> 12)
		return CODE_OTHER;
	if (address < LEAF || address >= ENTRY + 0x1000)
		return CODE_NONE;
	place_ret->row = &rows[(address - is_return_address - LEAF) >> 12];
	return CODE_NATIVE;
}

static const struct unwind_callbacks callbacks = {.find = find_code};

/* LEAF < PLAIN < JIT < JIT < ENTRY, at stack pointer `stack`. */
static void build_stack(uint64_t stack)
{
	memset(words, 0, sizeof(words));
	words[0] = PLAIN + 2;
	words[3] = 0x1111; /* rbx, which nothing depends on */
	words[4] = JIT + 2;
	words[8] = stack + 8 * 16;
	words[9] = JIT + 4;
	words[16] = 0;
	words[17] = ENTRY + 2;
	registers = (struct register_values){.known = 1ULL << RBX | 1ULL << RBP | 1ULL << RSP | 1ULL << RIP};
	registers.values[RSP] = stack;
	registers.values[RBP] = stack + 8 * 8;
	registers.values[RIP] = LEAF + 2;
	registers.values[RBX] = 1;
	chain[0] = LEAF + 2;
	chain[1] = JIT + 4;
	chain[2] = ENTRY + 2;
	input = (struct unwind_input){.registers = &registers,
				      .stack = (const uint8_t *)words,
				      .stack_size = sizeof(words),
				      .callchain = chain,
				      .callchain_count = 3};
}

static void set_up(void)
{
	for (size_t i = 0; i < 3; i++) {
		rows[i] = (struct cfi_row){.rules = rules[i],
					   .rule_count = i == 1 ? 2 : 1,
					   .cfa_register = RSP,
					   .cfa_offset = i == 1 ? 32 : 8,
					   .return_column = RIP};
		rules[i][0] = (struct cfi_rule){.number = RIP, .kind = CFI_RULE_OFFSET, .offset = -8};
	}
	rules[1][1] = (struct cfi_rule){.number = RBX, .kind = CFI_RULE_OFFSET, .offset = -16};
	rules[2][0].kind = CFI_RULE_UNDEFINED;
	ck_assert_ptr_null(unwind_cache_create(1000, &cache));
	build_stack(STACK);
}

static void tear_down(void)
{
	unwind_cache_destroy(cache);
}

static void remember(uint64_t generation, uint32_t value)
{
	unwind(&unwind_rules_x86_64, &input, &callbacks, &result);
	unwind_cache_put(cache, generation, &input, &result, value);
}

static bool recall(uint64_t generation, uint32_t expected)
{
	uint32_t value = UINT32_MAX;

	if (!unwind_cache_get(cache, generation, &input, &value))
		return false;
	ck_assert_uint_eq(value, expected);
	return true;
}

START_TEST(test_equal_stacks_hit)
{
	ck_assert(!recall(1, 0));
	remember(1, 42);
	ck_assert_uint_eq(result.frame_count, 5);
	ck_assert_uint_eq(result.end, MMT_STACK_END_ENTRY);
	ck_assert(recall(1, 42));
	/* Elsewhere in memory: another thread, another depth. */
	build_stack(STACK + 0x700010);
	ck_assert(recall(1, 42));
	/* Inputs that no frame depends on. */
	registers.values[RBX] = 99;
	words[3] = 0x2222;
	words[1] = 7;
	words[30] = 7;
	ck_assert(recall(1, 42));
}
END_TEST

START_TEST(test_whatever_changed_misses)
{
	static const size_t relevant[] = {0, 4, 8, 9, 17};

	remember(1, 42);
	for (size_t i = 0; i < sizeof(relevant) / sizeof(*relevant); i++) {
		build_stack(STACK);
		words[relevant[i]] += 16;
		ck_assert_msg(!recall(1, 42), "word %zu", relevant[i]);
	}
	build_stack(STACK);
	registers.values[RIP]++;
	ck_assert(!recall(1, 42));
	build_stack(STACK);
	registers.values[RBP] += 8;
	ck_assert(!recall(1, 42));
	build_stack(STACK);
	registers.known &= ~(1ULL << RBP);
	ck_assert(!recall(1, 42));
	build_stack(STACK + 4);
	ck_assert(!recall(1, 42));
	build_stack(STACK);
	chain[2]++;
	ck_assert(!recall(1, 42));
	build_stack(STACK);
	input.callchain_count--;
	ck_assert(!recall(1, 42));
	build_stack(STACK);
	input.callchain_full = true;
	ck_assert(!recall(1, 42));
	build_stack(STACK);
	input.stack_size = 72; /* word 9 is not in it */
	ck_assert(!recall(1, 42));
	build_stack(STACK);
	ck_assert(!recall(2, 42));
	ck_assert(recall(1, 42));
}
END_TEST

START_TEST(test_missing_inputs_must_stay_missing)
{
	input.stack_size = 72;
	remember(1, 7);
	ck_assert(recall(1, 7));
	input.stack_size = sizeof(words);
	ck_assert(!recall(1, 7));
	remember(1, 8);
	ck_assert(recall(1, 8));
	input.stack_size = 72;
	ck_assert(recall(1, 7));
}
END_TEST

/* Any change of any input: a hit must give the stack that unwinding gives. */
START_TEST(test_random_changes_are_exact)
{
	static struct unwind_result seen[512];
	static struct unwind_input scratch;
	size_t hits = 0;

	srand(1);
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t value;

		build_stack(STACK + (uint64_t)(rand() % 4) * 64);
		for (int changes = rand() % 3; changes > 0; changes--) {
			static const uint64_t values[] = {0,	     8,		JIT + 2, JIT + 4,
							  PLAIN + 2, ENTRY + 2, 0x12345, STACK + 96};

			words[rand() % 20] = values[(size_t)rand() % (sizeof(values) / sizeof(*values))];
		}
		if (rand() % 8 == 0)
			input.stack_size = (size_t)(rand() % 20) * 8;
		if (rand() % 8 == 0)
			registers.values[RBP] = registers.values[RSP] + (uint64_t)(rand() % 24) * 8;
		scratch = input;
		unwind(&unwind_rules_x86_64, &scratch, &callbacks, &result);
		if (unwind_cache_get(cache, 1, &input, &value)) {
			const struct unwind_result *old = &seen[value];

			hits++;
			ck_assert_uint_eq(old->frame_count, result.frame_count);
			ck_assert_uint_eq(old->end, result.end);
			for (size_t j = 0; j < result.frame_count; j++) {
				ck_assert_uint_eq(old->frames[j].address, result.frames[j].address);
				ck_assert(old->frames[j].doubtful == result.frames[j].doubtful);
			}
		} else {
			static uint32_t next;

			if (next < 512) {
				seen[next] = result;
				unwind_cache_put(cache, 1, &input, &result, next++);
			}
		}
	}
	ck_assert_uint_gt(hits, 5000);
}
END_TEST

START_TEST(test_bounded)
{
	size_t hits = 0;

	for (uint32_t i = 0; i < 5000; i++) {
		words[17] = ENTRY + 2 + i % 2000;
		remember(1, i);
	}
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t value;

		words[17] = ENTRY + 2 + i;
		hits += unwind_cache_get(cache, 1, &input, &value);
	}
	ck_assert_uint_gt(hits, 0);
	ck_assert_uint_le(hits, 1000);
}
END_TEST

START_TEST(test_no_registers)
{
	input.registers = NULL;
	input.stack = NULL;
	input.stack_size = 0;
	ck_assert(!recall(1, 0));
	remember(1, 3);
	ck_assert(recall(1, 3));
	chain[1]++;
	ck_assert(!recall(1, 3));
}
END_TEST

/* A callchain alone: the code is compared, and whether the callchain is complete. */
START_TEST(test_callchain_alone)
{
	const struct register_values *taken = input.registers;

	input.registers = NULL;
	input.stack = NULL;
	input.stack_size = 0;
	remember(1, 3);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert(recall(1, 3));
		ck_assert(!recall(2, 3));
		input.callchain_full = !input.callchain_full;
		ck_assert(!recall(1, 3));
		input.callchain_full = !input.callchain_full;
		input.registers = taken;
		ck_assert(!recall(1, 3));
		input.registers = NULL;
	}
	remember(1, 4);
	ck_assert(recall(1, 4));
}
END_TEST

static void add_stacks_by_hand(Suite *suite)
{
	TCase *tests = add_tcase(suite, "stacks by hand");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 600);
	tcase_add_tests(tests, test_equal_stacks_hit, test_whatever_changed_misses,
			test_missing_inputs_must_stay_missing, test_random_changes_are_exact, test_bounded,
			test_no_registers, test_callchain_alone);
}

Suite *test_suite(void)
{
	Suite *suite = suite_create("unwind-cache");

	add_stacks_by_hand(suite);
	return suite;
}
