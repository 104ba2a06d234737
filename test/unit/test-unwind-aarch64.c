// SPDX-License-Identifier: LGPL-2.1-or-later
/* The rules of aarch64 on handwritten stacks, on any host. */
#include <check.h>
#include <elf.h>
#include <string.h>

#include "code/unwind/unwind.h"
#include "support/suite.h"

enum { X19 = 19, FP = 29, LR = 30, SP = 31, PC = 32 };

#define STACK 0xffffe0001000ULL
#define WORDS 128
#define SIGNATURE 0x002a000000000000ULL /* of a return address */

/* Each page is a kind of code. */
#define LEAF 0x400000ULL       /* CFA = sp, return address in the link register */
#define FRAMED 0x401000ULL     /* CFA = sp + 32, frame record at the bottom */
#define BY_FRAME 0x402000ULL   /* CFA = x29 + 48 */
#define ENTRY 0x403000ULL      /* outermost */
#define TRAMPOLINE 0x404000ULL /* signal frame */
#define NO_CFI 0x405000ULL
#define SIGRETURN 0x406000ULL /* what a handler returns to, without CFI */
#define CONTEXT 0x407000ULL   /* what the C library makes a coroutine return to, one instruction from its row's start */
#define JIT 0x900000ULL

static struct cfi_row rows[5];
static struct cfi_rule rules[5][3];
static uint64_t words[WORDS];
static struct register_values registers;
static struct unwind_input input;
static struct unwind_result result;

/* nop; mov x0, x19; cbnz x0, setcontext; b exit */
static const uint8_t start_context[] = {0x1f, 0x20, 0x03, 0xd5, 0xe0, 0x03, 0x13, 0xaa,
					0xc0, 0xf9, 0xff, 0xb5, 0x79, 0xf5, 0xff, 0x17};

static enum code_kind find_code(void *context, uint64_t address, bool is_return_address, struct code_place *place_ret)
{
	uint64_t page = (address - is_return_address) & ~0xfffULL;

	(void)context;
	if (page == JIT)
		return CODE_OTHER;
	if (is_return_address && address == SIGRETURN)
		place_ret->special_function = CODE_SPECIAL_FUNCTION_SIGNAL_RETURN;
	if (page == CONTEXT) {
		size_t known = address - CONTEXT;

		place_ret->special_function = stack_end_by_code(EM_AARCH64, start_context + known,
								sizeof(start_context) - known, start_context, known);
		place_ret->row = &rows[0];
		return CODE_NATIVE;
	}
	if (page < LEAF || page > NO_CFI)
		return CODE_NONE;
	if (page != NO_CFI)
		place_ret->row = &rows[(page - LEAF) >> 12];
	return CODE_NATIVE;
}

static int follows_call(void *context, uint64_t address)
{
	(void)context;
	return (address & ~0xfffULL) == JIT ? -1 : !(address & 8);
}

static const struct unwind_callbacks callbacks = {.find = find_code, .follows_call = follows_call};

static struct cfi_row *set_row(uint64_t page, uint8_t cfa_register, int32_t cfa_offset)
{
	struct cfi_row *row = &rows[(page - LEAF) >> 12];

	*row = (struct cfi_row){
	    .cfa_register = cfa_register, .cfa_offset = cfa_offset, .return_column = LR, .rules = rules[row - rows]};
	return row;
}

/* x29 and x30 saved at the CFA minus `offset`. */
static void save_pair(uint64_t page, int32_t offset)
{
	struct cfi_row *row = &rows[(page - LEAF) >> 12];

	row->rule_count = 2;
	rules[row - rows][0] = (struct cfi_rule){.number = FP, .kind = CFI_RULE_OFFSET, .offset = -offset};
	rules[row - rows][1] = (struct cfi_rule){.number = LR, .kind = CFI_RULE_OFFSET, .offset = 8 - offset};
}

static uint64_t place(size_t word)
{
	return STACK + 8 * word;
}

static void set_up(void)
{
	memset(rules, 0, sizeof(rules));
	memset(words, 0, sizeof(words));
	set_row(LEAF, SP, 0);
	set_row(FRAMED, SP, 32);
	save_pair(FRAMED, 32);
	set_row(BY_FRAME, FP, 48);
	save_pair(BY_FRAME, 48);
	set_row(ENTRY, SP, 0)->rule_count = 1;
	rules[3][0] = (struct cfi_rule){.number = LR, .kind = CFI_RULE_UNDEFINED};
	set_row(TRAMPOLINE, SP, 0)->signal_frame = true;
	registers = (struct register_values){.known = (1ULL << 33) - 1};
	registers.values[SP] = STACK;
	input = (struct unwind_input){
	    .registers = &registers, .stack = (const uint8_t *)words, .stack_size = sizeof(words)};
}

static void start_at(uint64_t address, uint64_t link, uint64_t frame_pointer)
{
	registers.values[PC] = address;
	registers.values[LR] = link;
	registers.values[FP] = frame_pointer;
}

static void run(void)
{
	unwind(unwind_rules_find(EM_AARCH64), &input, &callbacks, &result);
}

static void expect(const uint64_t *addresses, size_t count, enum mmt_stack_end end)
{
	ck_assert_uint_eq(result.frame_count, count);
	for (size_t i = 0; i < count; i++)
		ck_assert_msg(result.frames[i].address == addresses[i], "frame %zu: %#lx instead of %#lx", i,
			      (unsigned long)result.frames[i].address, (unsigned long)addresses[i]);
	ck_assert_uint_eq(result.end, end);
}
#define EXPECT(end, ...)                                                                                               \
	expect((const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), end)

START_TEST(test_leaf_and_frames)
{
	start_at(LEAF + 4, FRAMED + 16, place(4));
	words[0] = place(8);
	words[1] = BY_FRAME + 16;
	/* BY_FRAME starts at word 4, its record is at word 8, its CFA at word 14. */
	words[8] = 0;
	words[9] = ENTRY + 16;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF + 4, FRAMED + 16, BY_FRAME + 16, ENTRY + 16);
	for (size_t i = 1; i < result.frame_count; i++) {
		ck_assert_uint_eq(result.frames[i].origin, UNWIND_BY_CFI);
		ck_assert(result.frames[i].is_return_address);
	}
}
END_TEST

START_TEST(test_signed_return_addresses)
{
	start_at(LEAF + 4, (FRAMED + 16) | SIGNATURE, 0);
	words[1] = (ENTRY + 16) | SIGNATURE;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF + 4, FRAMED + 16, ENTRY + 16);
}
END_TEST

/* CFA = [x1 + 16] + 8, and the same with x20, a register that x86-64 does not have. */
START_TEST(test_expressions)
{
	static const uint8_t numbers[] = {1, 20};
	struct cfi_row *row = set_row(FRAMED, numbers[_i], 16);

	row->cfa_kind = CFI_CFA_LOAD;
	row->cfa_addend = 8;
	save_pair(FRAMED, 16);
	start_at(FRAMED + 4, ENTRY + 16, place(4));
	registers.values[numbers[_i]] = STACK;
	words[2] = place(7);
	words[6] = place(20);
	words[7] = ENTRY + 32;
	run();
	EXPECT(MMT_STACK_END_ENTRY, FRAMED + 4, ENTRY + 32);
	registers.known &= ~(1ULL << numbers[_i]);
	run();
	EXPECT(MMT_STACK_END_DUMP_EXHAUSTED, FRAMED + 4);
}
END_TEST

START_TEST(test_only_the_first_frame_may_be_a_leaf)
{
	/* A function that called another has saved its return address: this CFI is wrong. */
	start_at(LEAF + 4, LEAF + 16, 0);
	run();
	EXPECT(MMT_STACK_END_INVALID, LEAF + 4, LEAF + 16);
	set_row(LEAF, SP, 16);
	run();
	EXPECT(MMT_STACK_END_NO_UNWIND_DATA, LEAF + 4, LEAF + 16);
}
END_TEST

START_TEST(test_frame_records_of_jit_code)
{
	start_at(LEAF, JIT + 16, place(4));
	words[4] = place(10);
	words[5] = JIT + 32;
	words[10] = place(20);
	words[11] = BY_FRAME + 16;
	words[20] = 0;
	words[21] = ENTRY + 16;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, JIT + 16, JIT + 32, BY_FRAME + 16, ENTRY + 16);
	ck_assert_uint_eq(result.frames[2].origin, UNWIND_BY_FRAME_POINTER);

	/* The start of the caller's frame is unknown: unwinding cannot continue by the stack pointer. */
	words[11] = FRAMED + 16;
	run();
	EXPECT(MMT_STACK_END_NO_UNWIND_DATA, LEAF, JIT + 16, JIT + 32, FRAMED + 16);
}
END_TEST

START_TEST(test_first_frame_without_cfi)
{
	/* It has no record: the link register is its caller, and a guess. */
	start_at(NO_CFI, BY_FRAME + 16, place(4));
	words[4] = 0;
	words[5] = ENTRY + 16;
	run();
	EXPECT(MMT_STACK_END_ENTRY, NO_CFI, BY_FRAME + 16, ENTRY + 16);
	ck_assert_uint_eq(result.frames[1].origin, UNWIND_BY_LINK_REGISTER);
	ck_assert(result.frames[1].doubtful);

	/* It has one, with the same address. */
	start_at(NO_CFI, ENTRY + 16, place(4));
	run();
	EXPECT(MMT_STACK_END_ENTRY, NO_CFI, ENTRY + 16);
	ck_assert_uint_eq(result.frames[1].origin, UNWIND_BY_FRAME_POINTER);
	ck_assert(!result.frames[1].doubtful);
}
END_TEST

START_TEST(test_signal_frame)
{
	uint64_t *general = &words[4 + (128 + 176 + 8) / 8];

	start_at(FRAMED + 4, 0, 0);
	words[1] = TRAMPOLINE;
	words[0] = 0;
	general[LR] = BY_FRAME + 16; /* the function that was interrupted is a leaf */
	general[FP] = place(100);
	general[SP] = place(90);
	general[PC] = LEAF;
	words[101] = ENTRY + 16;
	/* The return address of a signal handler is looked up one instruction before, as the kernel's vDSO expects. */
	words[1] = TRAMPOLINE + 4;
	run();
	EXPECT(MMT_STACK_END_ENTRY, FRAMED + 4, TRAMPOLINE + 4, LEAF, BY_FRAME + 16, ENTRY + 16);
	ck_assert(!result.frames[2].is_return_address);
	ck_assert_uint_eq(result.frames[2].origin, UNWIND_BY_SIGNAL_FRAME);
}
END_TEST

/* libc has no CFI for it in some versions: it is recognized by its instructions. */
START_TEST(test_signal_trampoline_without_cfi)
{
	uint64_t *general = &words[4 + (128 + 176 + 8) / 8];

	start_at(FRAMED + 4, 0, 0);
	words[1] = SIGRETURN;
	general[LR] = (ENTRY + 16) | SIGNATURE;
	general[SP] = place(90);
	general[PC] = LEAF;
	run();
	EXPECT(MMT_STACK_END_ENTRY, FRAMED + 4, SIGRETURN, LEAF, ENTRY + 16);
	ck_assert(!result.frames[1].is_return_address);

	/* The interrupted code ran on a stack that was not dumped. */
	general[SP] = STACK - (1 << 20);
	general[PC] = FRAMED;
	run();
	EXPECT(MMT_STACK_END_OTHER_STACK, FRAMED + 4, SIGRETURN, FRAMED);
}
END_TEST

/* A PLT entry leaves everything unchanged: its caller is in the link register. */
START_TEST(test_first_frame_in_a_special_function)
{
	start_at(NO_CFI + 4, (FRAMED + 16) | SIGNATURE, place(4));
	words[4] = 0;
	words[5] = BY_FRAME + 16;
	run();
	ck_assert_uint_ge(result.frame_count, 2);
	ck_assert_uint_eq(result.frames[1].address, FRAMED + 16);
	ck_assert_uint_eq(result.frames[1].origin, UNWIND_BY_LINK_REGISTER);
}
END_TEST

/* The link register is from the start of the coroutine: by its row this code would be its own caller, forever. */
START_TEST(test_coroutine)
{
	start_at(LEAF + 4, FRAMED + 16, 0);
	words[1] = CONTEXT + 4;
	run();
	EXPECT(MMT_STACK_END_COROUTINE, LEAF + 4, FRAMED + 16, CONTEXT + 4);
	ck_assert(!result.frames[2].is_return_address);
	/* A leaf called first by the coroutine. */
	start_at(LEAF + 4, CONTEXT + 4, 0);
	run();
	EXPECT(MMT_STACK_END_COROUTINE, LEAF + 4, CONTEXT + 4);
}
END_TEST

START_TEST(test_end_of_the_dump)
{
	start_at(LEAF, FRAMED + 16, 0);
	input.stack_size = 8;
	run();
	EXPECT(MMT_STACK_END_DUMP_EXHAUSTED, LEAF, FRAMED + 16);
	registers.known &= ~(1ULL << LR);
	run();
	EXPECT(MMT_STACK_END_DUMP_EXHAUSTED, LEAF);
}
END_TEST

static void add_stacks_by_hand(Suite *suite)
{
	TCase *tests = add_tcase(suite, "stacks by hand");

	tcase_add_checked_fixture(tests, set_up, NULL);
	tcase_add_tests(tests, test_leaf_and_frames, test_signed_return_addresses);
	tcase_add_loop_test(tests, test_expressions, 0, 2);
	tcase_add_tests(tests, test_only_the_first_frame_may_be_a_leaf, test_frame_records_of_jit_code,
			test_first_frame_without_cfi, test_signal_frame, test_signal_trampoline_without_cfi,
			test_first_frame_in_a_special_function, test_coroutine, test_end_of_the_dump);
}

Suite *test_suite(void)
{
	Suite *suite = suite_create("unwind-aarch64");

	add_stacks_by_hand(suite);
	return suite;
}
