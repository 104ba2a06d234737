// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <dlfcn.h>
#include <elf.h>
#include <libunwind.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>
#include <unwind.h>

#include "base/limits.h"
#include "code/elf/module.h"
#include "code/unwind/unwind.h"
#include "support/frameless.h"
#include "support/host.h"
#include "support/suite.h"

/* ---- stacks written by hand ---- */

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, RIP = 16 };

#define STACK 0x7ffd00001000ULL
#define WORDS 64

/* Code of the imaginary process: each page is a kind of code. */
#define PLAIN 0x400000ULL      /* CFA = rsp + 16: one word of locals */
#define FRAMED 0x401000ULL     /* CFA = rbp + 16, rbp saved there */
#define LEAF 0x402000ULL       /* CFA = rsp + 8 */
#define ENTRY 0x403000ULL      /* outermost */
#define NO_CFI 0x404000ULL     /* native without CFI */
#define TRAMPOLINE 0x405000ULL /* signal frame */
#define PLT 0x406000ULL
#define ALIGNED 0x407000ULL /* realigns its stack: CFA = [rbp - 8] */
#define EXPRESSION 0x408000ULL
#define STUCK 0x409000ULL /* CFA = rsp + 0 */
#define LOSES_RBP 0x40a000ULL
#define SIGRETURN 0x40b000ULL /* without CFI, known by its bytes */
#define CONTEXT 0x40c000ULL   /* __start_context */
#define SWITCH 0x40d000ULL    /* leaves its caller on another stack */
#define NAMED_ENTRY 0x40e000ULL
#define THREAD_START 0x40f000ULL
#define CHANGES_STACKS 0x410000ULL /* as SWITCH, from a deduced row */
#define LAST CHANGES_STACKS
#define JIT 0x900000ULL
#define JIT_NO_CALL 0x901000ULL
#define PYTHON 0x902000ULL
#define RETURN_PROBE 0x7fffffffe000ULL /* "[uprobes]" */

#define RULES_MAX 4

static struct cfi_row rows[17];
static struct cfi_rule rules[17][RULES_MAX];
static uint64_t words[WORDS];
static struct register_values registers;
static uint64_t chain[128];
static struct unwind_input input;
static struct unwind_result result;

static struct cfi_row *row_of(uint64_t page)
{
	return &rows[(page - PLAIN) >> 12];
}

static bool plain_keeps_frame_pointer, jit_keeps_none;

static enum code_kind find_code(void *context, uint64_t address, bool is_return_address, struct code_place *place_ret)
{
	uint64_t page = (address - is_return_address) & ~0xfffULL;

	(void)context;
	if (is_return_address && (address & ~0xfffULL) == SIGRETURN)
		place_ret->special_function = CODE_SPECIAL_FUNCTION_SIGNAL_RETURN;
	if (is_return_address && (address & ~0xfffULL) == CONTEXT)
		place_ret->special_function = CODE_SPECIAL_FUNCTION_COROUTINE;
	if (is_return_address && address == RETURN_PROBE)
		place_ret->special_function = CODE_SPECIAL_FUNCTION_RETURN_PROBE;
	if (page == SWITCH)
		place_ret->special_function = CODE_SPECIAL_FUNCTION_STACK_SWITCH;
	if (page == PYTHON)
		place_ret->special_function = CODE_SPECIAL_FUNCTION_PYTHON_TRAMPOLINE;
	if (page == PLAIN && plain_keeps_frame_pointer)
		place_ret->frame_pointer = CODE_FRAME_POINTER_KEPT;
	if (page == JIT && jit_keeps_none)
		place_ret->frame_pointer = CODE_FRAME_POINTER_NONE;
	if (page == JIT || page == JIT_NO_CALL || page == PYTHON)
		return CODE_OTHER;
	if (page < PLAIN - 0x1000 || page > LAST)
		return CODE_NONE;
	if ((page >= PLAIN && page <= LOSES_RBP && page != NO_CFI) || page == THREAD_START || page == CHANGES_STACKS)
		place_ret->row = row_of(page);
	return CODE_NATIVE;
}

static enum code_special_function find_special_function(void *context, uint64_t address, bool is_return_address)
{
	(void)context;
	switch ((address - is_return_address) & ~0xfffULL) {
	case NAMED_ENTRY:
		return CODE_SPECIAL_FUNCTION_ENTRY;
	case THREAD_START:
		return CODE_SPECIAL_FUNCTION_THREAD_START;
	default:
		return CODE_SPECIAL_FUNCTION_NONE;
	}
}

static int follows_call(void *context, uint64_t address)
{
	(void)context;
	if ((address & ~0xfffULL) == JIT)
		return -1;
	return (address & ~0xfffULL) != JIT_NO_CALL && !(address & 1);
}

static const struct unwind_callbacks callbacks = {
    .find = find_code, .find_special_function = find_special_function, .follows_call = follows_call};

/* The unwinder does not depend on their order. */
static void add_rule(uint64_t page, uint8_t number, enum cfi_rule_kind kind, uint8_t reg, int32_t offset)
{
	struct cfi_row *row = row_of(page);
	struct cfi_rule *list = rules[row - rows];

	ck_assert_uint_lt(row->rule_count, RULES_MAX);
	list[row->rule_count++] =
	    (struct cfi_rule){.number = number, .kind = (uint8_t)kind, .reg = reg, .offset = offset};
	row->rules = list;
}

static struct cfi_row *set_row(uint64_t page, uint8_t cfa_register, int32_t cfa_offset)
{
	*row_of(page) = (struct cfi_row){.cfa_register = cfa_register, .cfa_offset = cfa_offset, .return_column = RIP};
	add_rule(page, RIP, CFI_RULE_OFFSET, 0, -8);
	return row_of(page);
}

static void set_up(void)
{
	memset(rows, 0, sizeof(rows));
	memset(words, 0, sizeof(words));
	memset(chain, 0, sizeof(chain));
	plain_keeps_frame_pointer = jit_keeps_none = false;
	set_row(PLAIN, RSP, 16);
	set_row(FRAMED, RBP, 16);
	add_rule(FRAMED, RBP, CFI_RULE_OFFSET, 0, -16);
	set_row(LEAF, RSP, 8);
	set_row(ENTRY, RSP, 8);
	rules[(ENTRY - PLAIN) >> 12][0].kind = CFI_RULE_UNDEFINED;
	set_row(TRAMPOLINE, RSP, 160)->signal_frame = true;
	set_row(PLT, RSP, 8)->cfa_kind = CFI_CFA_PLT;
	row_of(PLT)->plt_threshold = 11;
	set_row(ALIGNED, RBP, -8)->cfa_kind = CFI_CFA_LOAD;
	add_rule(ALIGNED, RBP, CFI_RULE_AT_REGISTER, RBP, 0);
	set_row(EXPRESSION, RSP, 16)->cfa_kind = CFI_CFA_LOAD; /* [rsp + 16] + 8 */
	row_of(EXPRESSION)->cfa_addend = 8;
	add_rule(EXPRESSION, RBX, CFI_RULE_UNKNOWN, 0, 0);
	add_rule(EXPRESSION, RBP, CFI_RULE_OFFSET, 0, -16);
	set_row(STUCK, RSP, 0);
	set_row(LOSES_RBP, RSP, 8);
	set_row(THREAD_START, RSP, 16);
	add_rule(LOSES_RBP, RBP, CFI_RULE_UNDEFINED, 0, 0);
	registers = (struct register_values){.known = 1ULL << RBX | 1ULL << RBP | 1ULL << RSP | 1ULL << RIP};
	registers.values[RSP] = STACK;
	input = (struct unwind_input){
	    .registers = &registers, .stack = (const uint8_t *)words, .stack_size = sizeof(words), .callchain = chain};
}

static void start_at(uint64_t address, uint64_t frame_pointer)
{
	registers.values[RIP] = address;
	registers.values[RBP] = frame_pointer;
}

static uint64_t place(size_t word)
{
	return STACK + 8 * word;
}

static void run(void)
{
	unwind(&unwind_rules_x86_64, &input, &callbacks, &result);
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

static void set_chain(const uint64_t *addresses, size_t count)
{
	memcpy(chain, addresses, count * sizeof(*addresses));
	input.callchain_count = count;
}
#define CHAIN(...)                                                                                                     \
	set_chain((const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

START_TEST(test_cfi_to_the_entry)
{
	/* A leaf, a function with a local, one with a frame pointer, the entry. */
	start_at(LEAF + 4, place(4));
	words[0] = PLAIN + 0x10;
	words[2] = FRAMED + 0x20;
	words[4] = 0;
	words[5] = ENTRY + 0x30;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF + 4, PLAIN + 0x10, FRAMED + 0x20, ENTRY + 0x30);
	ck_assert(!result.frames[0].is_return_address);
	ck_assert(result.frames[1].is_return_address);
	ck_assert_uint_eq(result.frames[0].origin, UNWIND_BY_REGISTERS);
	ck_assert_uint_eq(result.frames[3].origin, UNWIND_BY_CFI);
	ck_assert(!result.spliced);
}
END_TEST

START_TEST(test_return_address_is_looked_up_before_the_call_ends)
{
	/* The call is the last instruction of PLAIN: its return address is on the next page, which is FRAMED. */
	start_at(LEAF, 0);
	words[0] = FRAMED;
	words[2] = ENTRY + 2;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, FRAMED, ENTRY + 2);
}
END_TEST

START_TEST(test_zero_return_address_is_the_entry)
{
	start_at(LEAF, 0);
	words[0] = PLAIN + 2;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, PLAIN + 2);
}
END_TEST

START_TEST(test_plt_special_function)
{
	start_at(PLT + 11, 0);
	words[0] = 7; /* what the stub pushed */
	words[1] = ENTRY + 2;
	run();
	EXPECT(MMT_STACK_END_ENTRY, PLT + 11, ENTRY + 2);
	start_at(PLT + 10, 0);
	words[0] = ENTRY + 4;
	run();
	EXPECT(MMT_STACK_END_ENTRY, PLT + 10, ENTRY + 4);
}
END_TEST

START_TEST(test_realigned_stacks)
{
	start_at(ALIGNED, place(4));
	words[3] = place(10); /* rbp - 8: the CFA */
	words[4] = place(12); /* the caller's rbp */
	words[9] = FRAMED + 2;
	words[13] = ENTRY + 2;
	run();
	EXPECT(MMT_STACK_END_ENTRY, ALIGNED, FRAMED + 2, ENTRY + 2);
}
END_TEST

START_TEST(test_signal_frame)
{
	/* The handler returns to the trampoline, where the stack pointer points to the ucontext. */
	uint64_t *general = &words[1 + 5];

	start_at(LEAF, 0);
	words[0] = TRAMPOLINE + 2;
	general[10] = place(40); /* rbp */
	general[15] = place(36); /* rsp */
	general[16] = FRAMED;	 /* rip: the first instruction, not looked up one byte before */
	words[41] = ENTRY + 2;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, TRAMPOLINE + 2, FRAMED, ENTRY + 2);
	ck_assert(!result.frames[2].is_return_address);
	ck_assert_uint_eq(result.frames[2].origin, UNWIND_BY_SIGNAL_FRAME);
}
END_TEST

START_TEST(test_frame_pointer_through_jit_code)
{
	start_at(LEAF, place(4));
	words[0] = PLAIN + 2;
	words[2] = JIT + 0x10;
	words[4] = place(8);
	words[5] = JIT + 0x20;
	words[8] = 0x1234567; /* native code uses it for something else */
	words[9] = ENTRY + 2;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, PLAIN + 2, JIT + 0x10, JIT + 0x20, ENTRY + 2);
	ck_assert_uint_eq(result.frames[3].origin, UNWIND_BY_FRAME_POINTER);
	ck_assert(!result.frames[3].doubtful);
	/* The method keeps none: callers may be missing. */
	jit_keeps_none = true;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, PLAIN + 2, JIT + 0x10, JIT + 0x20, ENTRY + 2);
	ck_assert(!result.frames[2].doubtful);
	ck_assert(result.frames[3].doubtful);
}
END_TEST

/* The kernel skips the caller of a function that is known to keep no frame pointer. */
START_TEST(test_bare_chain_through_code_without_frame_pointer)
{
	jit_keeps_none = true;
	CHAIN(LEAF, FRAMED + 2, JIT + 2, ENTRY + 2);
	input.registers = NULL;
	input.stack = NULL;
	input.stack_size = 0;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, FRAMED + 2, JIT + 2, ENTRY + 2);
	ck_assert(!result.frames[2].doubtful);
	ck_assert(result.frames[3].doubtful);
}
END_TEST

START_TEST(test_guess_without_a_call_is_doubtful)
{
	start_at(LEAF, place(4));
	words[0] = JIT + 0x10;
	words[5] = JIT_NO_CALL + 2;
	run();
	EXPECT(MMT_STACK_END_NO_UNWIND_DATA, LEAF, JIT + 0x10, JIT_NO_CALL + 2);
	ck_assert(result.frames[2].doubtful);
}
END_TEST

START_TEST(test_frame_pointer_must_grow_in_jit_code)
{
	start_at(LEAF, place(4));
	words[0] = JIT + 0x10;
	words[4] = place(2);
	words[5] = JIT + 0x20;
	run();
	EXPECT(MMT_STACK_END_NO_UNWIND_DATA, LEAF, JIT + 0x10);
}
END_TEST

START_TEST(test_frameless_first_frame)
{
	/* JIT code that makes the system call itself; then stripped native code. */
	start_at(JIT, place(8));
	words[0] = ENTRY + 2;
	run();
	EXPECT(MMT_STACK_END_ENTRY, JIT, ENTRY + 2);
	ck_assert_uint_eq(result.frames[1].origin, UNWIND_BY_STACK_POINTER);

	/* No call before the word at the stack pointer: use the frame pointer. */
	start_at(NO_CFI, place(8));
	words[0] = ENTRY + 3;
	words[9] = ENTRY + 4;
	run();
	EXPECT(MMT_STACK_END_ENTRY, NO_CFI, ENTRY + 4);
}
END_TEST

START_TEST(test_unrecovered_register)
{
	/* A frame-pointer step recovers only the frame pointer; rbx in the next frame's rule is unknown. */
	start_at(LEAF, place(4));
	words[0] = LOSES_RBP + 2;
	words[1] = FRAMED + 2;
	run();
	EXPECT(MMT_STACK_END_NO_UNWIND_DATA, LEAF, LOSES_RBP + 2, FRAMED + 2);
}
END_TEST

START_TEST(test_bad_stacks_end)
{
	start_at(STUCK, 0);
	run();
	EXPECT(MMT_STACK_END_INVALID, STUCK);

	start_at(LEAF, 0);
	words[0] = 0x1000; /* no code there */
	run();
	EXPECT(MMT_STACK_END_INVALID, LEAF);

	registers.values[RSP] = STACK + 4;
	run();
	EXPECT(MMT_STACK_END_INVALID, LEAF);

	registers.known = 0;
	run();
	ck_assert_uint_eq(result.frame_count, 0);
	ck_assert_uint_eq(result.end, MMT_STACK_END_NOT_RECORDED);
}
END_TEST

START_TEST(test_expressions)
{
	start_at(EXPRESSION + 4, 0x1234);
	words[2] = place(9);  /* 8 below the CFA */
	words[8] = place(20); /* rbp */
	words[9] = FRAMED + 2;
	words[21] = ENTRY + 2;
	run();
	EXPECT(MMT_STACK_END_ENTRY, EXPRESSION + 4, FRAMED + 2, ENTRY + 2);
	ck_assert(!result.reads_overflow);
	input.stack_size = 16;
	run();
	EXPECT(MMT_STACK_END_DUMP_EXHAUSTED, EXPRESSION + 4);
	row_of(EXPRESSION)->cfa_kind = CFI_CFA_UNKNOWN;
	run();
	EXPECT(MMT_STACK_END_NO_UNWIND_DATA, EXPRESSION + 4);
}
END_TEST

START_TEST(test_signal_trampoline_without_cfi)
{
	uint64_t *general = &words[1 + 5];

	start_at(LEAF, 0);
	words[0] = SIGRETURN; /* what precedes it is another function */
	general[10] = place(40);
	general[15] = place(36);
	general[16] = FRAMED;
	words[41] = ENTRY + 2;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, SIGRETURN, FRAMED, ENTRY + 2);
	ck_assert(!result.frames[1].is_return_address);
	ck_assert(!result.frames[2].is_return_address);
}
END_TEST

#define OTHER_STACK 0x7ffdf0000000ULL

/* A handler with frame pointers on an alternate stack, which has interrupted `function`. */
static void interrupt(uint64_t function)
{
	uint64_t *general = &words[2 + 5];

	start_at(FRAMED, place(0));
	words[0] = OTHER_STACK + 64; /* what the handler saved */
	words[1] = TRAMPOLINE + 2;
	general[10] = OTHER_STACK + 64;
	general[15] = OTHER_STACK;
	general[16] = function;
}

START_TEST(test_alternate_signal_stack)
{
	interrupt(LEAF);
	run();
	EXPECT(MMT_STACK_END_OTHER_STACK, FRAMED, TRAMPOLINE + 2, LEAF);
	interrupt(FRAMED + 4);
	run();
	EXPECT(MMT_STACK_END_OTHER_STACK, FRAMED, TRAMPOLINE + 2, FRAMED + 4);
}
END_TEST

START_TEST(test_chain_continues_from_an_alternate_stack)
{
	/* The kernel followed the frame pointer onto the thread's own stack. */
	interrupt(FRAMED + 4);
	CHAIN(FRAMED, TRAMPOLINE + 2, FRAMED + 2, ENTRY + 2);
	run();
	EXPECT(MMT_STACK_END_ENTRY, FRAMED, TRAMPOLINE + 2, FRAMED + 4, FRAMED + 2, ENTRY + 2);
	ck_assert(result.spliced);
	ck_assert(!result.frames[3].doubtful);

	/* The interrupted function has no frame: its caller may be missing. */
	interrupt(LEAF);
	run();
	EXPECT(MMT_STACK_END_ENTRY, FRAMED, TRAMPOLINE + 2, LEAF, FRAMED + 2, ENTRY + 2);
	ck_assert(result.frames[3].doubtful);
	ck_assert(!result.frames[4].doubtful);
}
END_TEST

/* The kernel has put its page in place of the caller. */
START_TEST(test_return_probe)
{
	start_at(LEAF, 0);
	words[0] = PLAIN + 2;
	words[2] = RETURN_PROBE;
	words[3] = FRAMED + 2;
	run();
	EXPECT(MMT_STACK_END_RETURN_PROBE, LEAF, PLAIN + 2);
}
END_TEST

START_TEST(test_coroutine)
{
	start_at(LEAF, 0);
	words[0] = PLAIN + 2;
	words[2] = CONTEXT; /* its first byte */
	run();
	EXPECT(MMT_STACK_END_COROUTINE, LEAF, PLAIN + 2, CONTEXT);
	ck_assert(!result.frames[2].is_return_address);
}
END_TEST

START_TEST(test_function_that_switches_stacks)
{
	start_at(LEAF, OTHER_STACK);
	words[0] = SWITCH + 2;
	words[1] = PLAIN + 2; /* left over from something else */
	run();
	EXPECT(MMT_STACK_END_OTHER_STACK, LEAF, SWITCH + 2);
}
END_TEST

START_TEST(test_code_that_switches_stacks)
{
	/* By its instructions: the frame pointer, which leads further, is not used. */
	row_of(CHANGES_STACKS)->deduced = row_of(CHANGES_STACKS)->unsure = row_of(CHANGES_STACKS)->other_stack = true;
	start_at(LEAF, place(4));
	words[0] = CHANGES_STACKS + 2;
	words[4] = place(8);
	words[5] = ENTRY + 2;
	run();
	EXPECT(MMT_STACK_END_OTHER_STACK, LEAF, CHANGES_STACKS + 2);
	/* A frame of a resumed coroutine returns there, although no call has pushed the address. */
	row_of(LOSES_RBP)->deduced = true;
	start_at(LOSES_RBP, place(4));
	words[0] = CHANGES_STACKS + 1;
	run();
	EXPECT(MMT_STACK_END_OTHER_STACK, LOSES_RBP, CHANGES_STACKS + 1);
	row_of(LOSES_RBP)->unsure = true;
	run();
	EXPECT(MMT_STACK_END_OTHER_STACK, LOSES_RBP, CHANGES_STACKS + 1);
}
END_TEST

START_TEST(test_entry_known_by_name)
{
	start_at(LEAF, 0);
	words[0] = NAMED_ENTRY + 2;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, NAMED_ENTRY + 2);
	words[0] = NO_CFI + 2;
	run();
	EXPECT(MMT_STACK_END_NO_UNWIND_DATA, LEAF, NO_CFI + 2);
}
END_TEST

/* Its stack use is unknown, but its entry is recognized. */
START_TEST(test_code_that_never_returns)
{
	start_at(LEAF, 0);
	words[0] = NO_CFI + 2;
	words[1] = words[2] = 7; /* no return addresses */
	words[3] = NAMED_ENTRY + 2;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, NO_CFI + 2, NAMED_ENTRY + 2);
	/* Other frames may lie in between. */
	words[2] = PLAIN + 2;
	run();
	EXPECT(MMT_STACK_END_NO_UNWIND_DATA, LEAF, NO_CFI + 2);
}
END_TEST

/* A row found by instruction analysis is used if it leads to a call. */
START_TEST(test_row_from_instruction_analysis)
{
	row_of(LOSES_RBP)->deduced = true;
	start_at(LOSES_RBP, place(4));
	words[0] = PLAIN + 2;
	words[2] = ENTRY + 4;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LOSES_RBP, PLAIN + 2, ENTRY + 4);
	words[0] = PLAIN + 1;
	words[5] = ENTRY + 4;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LOSES_RBP, ENTRY + 4);
}
END_TEST

START_TEST(test_python_trampoline)
{
	/* It pads its frame; the frame pointer is whatever the interpreter keeps there. */
	start_at(LEAF, place(30));
	words[0] = PYTHON + 7;
	words[2] = FRAMED + 2;
	words[30] = 0;
	words[31] = ENTRY + 2;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, PYTHON + 7, FRAMED + 2, ENTRY + 2);
	ck_assert_uint_eq(result.frames[2].origin, UNWIND_BY_SPECIAL_FUNCTION);

	/* It has a frame pointer. */
	start_at(LEAF, place(1));
	words[1] = place(30);
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, PYTHON + 7, FRAMED + 2, ENTRY + 2);
	ck_assert_uint_eq(result.frames[2].origin, UNWIND_BY_FRAME_POINTER);
}
END_TEST

START_TEST(test_depth_limit)
{
	static uint64_t deep[2 * LIMIT_UNWIND_FRAMES];

	for (size_t i = 0; i < 2 * LIMIT_UNWIND_FRAMES; i++)
		deep[i] = LEAF + 2;
	input.stack = (const uint8_t *)deep;
	input.stack_size = sizeof(deep);
	start_at(LEAF, 0);
	run();
	ck_assert_uint_eq(result.frame_count, LIMIT_UNWIND_FRAMES);
	ck_assert_uint_eq(result.end, MMT_STACK_END_DEPTH_LIMIT);
}
END_TEST

START_TEST(test_end_of_the_dump)
{
	start_at(LEAF, 0);
	words[0] = PLAIN + 2;
	input.stack_size = 16;
	run();
	EXPECT(MMT_STACK_END_DUMP_EXHAUSTED, LEAF, PLAIN + 2);
	input.stack_size = 0;
	input.stack = NULL;
	run();
	EXPECT(MMT_STACK_END_DUMP_EXHAUSTED, LEAF);
}
END_TEST

START_TEST(test_splice_after_a_frameless_leaf)
{
	/* The wrapper has no frame, and neither has its caller; the frame pointer is the JIT code's. Four words of
	 * stack. */
	start_at(LEAF, place(20));
	words[0] = PLAIN + 2;
	words[2] = JIT + 0x10;
	CHAIN(LEAF, JIT + 0x20, JIT + 0x30, ENTRY + 2);
	input.stack_size = 32;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, PLAIN + 2, JIT + 0x10, JIT + 0x20, JIT + 0x30, ENTRY + 2);
	ck_assert(result.spliced);
	ck_assert_uint_eq(result.frames[2].origin, UNWIND_BY_CFI);
	ck_assert_uint_eq(result.frames[3].origin, UNWIND_BY_CALLCHAIN);
	for (size_t i = 0; i < result.frame_count; i++)
		ck_assert(!result.frames[i].doubtful);
}
END_TEST

START_TEST(test_splice_repeats_no_frame)
{
	/* The dump contains two frames that the chain has as well. */
	start_at(LEAF, place(4));
	words[0] = FRAMED + 2;
	words[4] = place(8);
	words[5] = FRAMED + 2; /* recursion: equal return addresses */
	words[8] = place(30);
	words[9] = FRAMED + 2;
	CHAIN(LEAF, FRAMED + 2, FRAMED + 2, FRAMED + 2, PLAIN + 4, JIT + 2);
	input.stack_size = 80;
	run();
	EXPECT(MMT_STACK_END_CALLCHAIN, LEAF, FRAMED + 2, FRAMED + 2, FRAMED + 2, FRAMED + 2, PLAIN + 4, JIT + 2);
	ck_assert_uint_eq(result.frames[3].origin, UNWIND_BY_CFI);
	ck_assert_uint_eq(result.frames[4].origin, UNWIND_BY_CALLCHAIN);
	ck_assert(!result.frames[4].doubtful);
}
END_TEST

START_TEST(test_splice_across_a_gap_is_doubtful)
{
	/* The caller's own return address would be at word 9; the chain continues from word 21. */
	set_row(PLAIN, RSP, 72);
	start_at(LEAF, place(20));
	words[0] = PLAIN + 2;
	CHAIN(LEAF, JIT + 0x20, ENTRY + 2);
	input.stack_size = 64;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, PLAIN + 2, JIT + 0x20, ENTRY + 2);
	ck_assert(result.frames[2].doubtful);
	ck_assert(!result.frames[3].doubtful);
}
END_TEST

/* A goroutine's first function has no caller, and yet this is known. */
START_TEST(test_first_function_in_the_chain_is_certain)
{
	start_at(LEAF, place(20));
	words[0] = PLAIN + 2;
	words[2] = JIT + 0x10;
	CHAIN(LEAF, JIT + 0x20, JIT_NO_CALL + 2, NAMED_ENTRY + 1);
	input.stack_size = 32;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, PLAIN + 2, JIT + 0x10, JIT + 0x20, JIT_NO_CALL + 2, NAMED_ENTRY + 1);
	ck_assert(result.frames[4].doubtful);
	ck_assert(!result.frames[5].doubtful);
	input.stack_size = 0;
	input.registers = NULL;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, JIT + 0x20, JIT_NO_CALL + 2, NAMED_ENTRY + 1);
	ck_assert(result.frames[2].doubtful);
	ck_assert(!result.frames[3].doubtful);
}
END_TEST

START_TEST(test_splice_by_address)
{
	/* Without the frame pointer's value only equal addresses show where the chain continues. */
	start_at(LEAF, 0);
	registers.known &= ~(1ULL << RBP);
	words[0] = PLAIN + 2;
	words[2] = FRAMED + 2;
	CHAIN(LEAF, PLAIN + 2, FRAMED + 2, JIT + 2);
	run();
	EXPECT(MMT_STACK_END_CALLCHAIN, LEAF, PLAIN + 2, FRAMED + 2, JIT + 2);
	ck_assert(!result.frames[3].doubtful);
}
END_TEST

/* The frame pointer points beyond the dump: the kernel found the last address by chance, or through another frame. */
START_TEST(test_splice_after_a_function_without_frame_pointer_is_doubtful)
{
	start_at(LEAF, 0);
	registers.known &= ~(1ULL << RBP);
	words[0] = PLAIN + 2;
	words[2] = PLAIN + 4;
	input.stack_size = 24;
	CHAIN(LEAF, PLAIN + 4, FRAMED + 2, JIT + 2);
	run();
	EXPECT(MMT_STACK_END_CALLCHAIN, LEAF, PLAIN + 2, PLAIN + 4, FRAMED + 2, JIT + 2);
	ck_assert(!result.frames[2].doubtful);
	ck_assert(result.frames[3].doubtful);
	ck_assert(!result.frames[4].doubtful);
	words[2] = FRAMED + 4;
	CHAIN(LEAF, FRAMED + 4, FRAMED + 2, JIT + 2);
	run();
	EXPECT(MMT_STACK_END_CALLCHAIN, LEAF, PLAIN + 2, FRAMED + 4, FRAMED + 2, JIT + 2);
	ck_assert(!result.frames[3].doubtful);
}
END_TEST

START_TEST(test_splice_at_one_of_several_equal_addresses_is_doubtful)
{
	start_at(LEAF, 0);
	registers.known &= ~(1ULL << RBP);
	words[0] = FRAMED + 2;
	input.stack_size = 8;
	CHAIN(LEAF, FRAMED + 2, FRAMED + 2, JIT + 2);
	run();
	EXPECT(MMT_STACK_END_CALLCHAIN, LEAF, FRAMED + 2, FRAMED + 2, JIT + 2);
	ck_assert(result.frames[2].doubtful);
	ck_assert(!result.frames[3].doubtful);
}
END_TEST

START_TEST(test_chain_through_a_function_without_frame_pointer_is_doubtful)
{
	start_at(LEAF, place(20));
	words[0] = JIT + 2;
	input.stack_size = 16;
	CHAIN(LEAF, FRAMED + 2, PLAIN + 2, ENTRY + 2);
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, JIT + 2, FRAMED + 2, PLAIN + 2, ENTRY + 2);
	ck_assert(!result.frames[3].doubtful);
	ck_assert(result.frames[4].doubtful);
	/* The caller of a thread's first function keeps no frame pointer, and what the kernel reads next is
	 * arbitrary. */
	CHAIN(LEAF, FRAMED + 2, THREAD_START + 2, JIT + 4);
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, JIT + 2, FRAMED + 2, THREAD_START + 2);
	/* Go keeps one, although its rows are relative to the stack pointer. */
	plain_keeps_frame_pointer = true;
	CHAIN(LEAF, FRAMED + 2, PLAIN + 2, ENTRY + 2);
	run();
	ck_assert(!result.frames[4].doubtful);
}
END_TEST

START_TEST(test_chain_through_a_non_frame_pointer)
{
	/* It points into the heap: what the kernel read there is not a stack. */
	start_at(LEAF, 0x55550000);
	words[0] = PLAIN + 2;
	CHAIN(LEAF, JIT + 2, JIT + 4);
	input.stack_size = 16;
	run();
	EXPECT(MMT_STACK_END_DUMP_EXHAUSTED, LEAF, PLAIN + 2);
	ck_assert(!result.spliced);
}
END_TEST

START_TEST(test_chain_with_garbage_stops)
{
	start_at(LEAF, place(20));
	words[0] = JIT + 2;
	CHAIN(LEAF, JIT + 4, 0x12, JIT + 6);
	input.stack_size = 16;
	run();
	EXPECT(MMT_STACK_END_DUMP_EXHAUSTED, LEAF, JIT + 2, JIT + 4);
}
END_TEST

START_TEST(test_chain_to_an_entry_known_by_name)
{
	start_at(LEAF, place(20));
	words[0] = JIT + 2;
	CHAIN(LEAF, JIT + 4, NAMED_ENTRY + 2);
	input.stack_size = 16;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, JIT + 2, JIT + 4, NAMED_ENTRY + 2);
	/* Only there: the thread does not start in its callees. */
	CHAIN(LEAF, NAMED_ENTRY + 2, JIT + 4);
	run();
	EXPECT(MMT_STACK_END_CALLCHAIN, LEAF, JIT + 2, NAMED_ENTRY + 2, JIT + 4);
}
END_TEST

START_TEST(test_thread_entry_known_by_its_callee)
{
	start_at(LEAF, 0);
	words[0] = PLAIN + 2;
	words[2] = THREAD_START + 2;
	words[4] = ENTRY + 2;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, PLAIN + 2, THREAD_START + 2, ENTRY + 2);
	/* The dump ends in its frame. */
	input.stack_size = 32;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, PLAIN + 2, THREAD_START + 2);
	input.stack_size = 16;
	run();
	EXPECT(MMT_STACK_END_DUMP_EXHAUSTED, LEAF, PLAIN + 2);
	CHAIN(LEAF, JIT + 2, THREAD_START + 2);
	input.stack_size = 0;
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, JIT + 2, THREAD_START + 2);
}
END_TEST

START_TEST(test_full_chain_is_truncated)
{
	start_at(LEAF, place(20));
	words[0] = JIT + 2;
	CHAIN(LEAF, JIT + 4, JIT + 6);
	input.callchain_full = true;
	input.stack_size = 16;
	run();
	EXPECT(MMT_STACK_END_DEPTH_LIMIT, LEAF, JIT + 2, JIT + 4, JIT + 6);
}
END_TEST

/* The function has reserved its frame in a page that did not exist yet: only the chain of the code below is
 * available. */
START_TEST(test_empty_dump)
{
	start_at(LEAF, 1);
	CHAIN(LEAF);
	input.stack_size = 0;
	run();
	EXPECT(MMT_STACK_END_DUMP_EXHAUSTED, LEAF);
	start_at(LEAF, place(4));
	CHAIN(LEAF, JIT + 2, THREAD_START + 2);
	run();
	EXPECT(MMT_STACK_END_ENTRY, LEAF, JIT + 2, THREAD_START + 2);
}
END_TEST

START_TEST(test_chain_without_a_dump)
{
	CHAIN(LEAF, JIT + 2, 0x1234, JIT_NO_CALL + 2);
	input.registers = NULL;
	input.stack = NULL;
	input.stack_size = 0;
	run();
	EXPECT(MMT_STACK_END_CALLCHAIN, LEAF, JIT + 2, 0x1234, JIT_NO_CALL + 2);
	ck_assert(!result.frames[0].is_return_address);
	ck_assert(result.frames[1].is_return_address);
	ck_assert(!result.frames[1].doubtful);
	ck_assert(result.frames[2].doubtful); /* no code is there */
	ck_assert(result.frames[3].doubtful);
}
END_TEST

/* ---- the real stack of this process, beside the compiler's own unwinder and libunwind ---- */

#define LIVE_MAX 256

static struct modules *programs;

struct live_module {
	uint64_t start, end, bias;
	struct module *program;
};

struct live {
	uint64_t address;
	struct live_module found;
};

static int find_module(struct dl_phdr_info *info, size_t size, void *context)
{
	struct live *live = context;
	const char *path = info->dlpi_name;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X) || live->address < start ||
		    live->address >= start + header->p_memsz)
			continue;
		if (!*path)
			path = "/proc/self/exe";
		else if (!strncmp(path, "linux-vdso", 10))
			path = "[vdso]";
		live->found =
		    (struct live_module){.start = start, .end = start + header->p_memsz, .bias = info->dlpi_addr};
		ck_assert_ptr_null(modules_open(programs, path, NULL, 0, 0, &live->found.program));
		return 1;
	}
	return 0;
}

static enum code_kind find_live(void *context, uint64_t address, bool is_return_address, struct code_place *place_ret)
{
	struct live live = {.address = address - is_return_address};

	(void)context;
	if (!dl_iterate_phdr(find_module, &live))
		return CODE_NONE;
	*place_ret = module_place(live.found.program, address - live.found.bias, is_return_address);
	return CODE_NATIVE;
}

static int live_follows_call(void *context, uint64_t address)
{
	struct live live = {.address = address - 1};

	(void)context;
	if (!dl_iterate_phdr(find_module, &live))
		return -1;
	return module_follows_call(live.found.program, address - live.found.bias);
}

static const struct unwind_callbacks live_callbacks = {.find = find_live, .follows_call = live_follows_call};

#if defined(__aarch64__)
enum { HOST_STACK_POINTER = 31, HOST_PROGRAM_COUNTER };

static void take_registers(const ucontext_t *context)
{
	registers = (struct register_values){.known = (1ULL << (HOST_PROGRAM_COUNTER + 1)) - 1};
	for (size_t i = 0; i < HOST_STACK_POINTER; i++)
		registers.values[i] = context->uc_mcontext.regs[i];
	registers.values[HOST_STACK_POINTER] = context->uc_mcontext.sp;
	registers.values[HOST_PROGRAM_COUNTER] = context->uc_mcontext.pc;
}
#else
enum { HOST_STACK_POINTER = RSP };

static void take_registers(const ucontext_t *context)
{
	static const int of_dwarf[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
				       REG_R9,	REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

	registers = (struct register_values){.known = (1ULL << 17) - 1};
	for (size_t i = 0; i < 17; i++)
		registers.values[i] = (uint64_t)context->uc_mcontext.gregs[of_dwarf[i]];
}
#endif

/* Bytes of this thread's stack above the stack pointer, at most `limit`. */
static size_t stack_above(uint64_t stack_pointer, size_t limit)
{
	pthread_attr_t attributes;
	void *start;
	size_t size, above;

	ck_assert_int_eq(pthread_getattr_np(pthread_self(), &attributes), 0);
	pthread_attr_getstack(&attributes, &start, &size);
	pthread_attr_destroy(&attributes);
	above = (size_t)((uint64_t)start + size - stack_pointer);
	return above < limit ? above : limit;
}

/* Word by word, across the guards that a sanitizer puts between variables. */
static __attribute__((noinline, no_sanitize("address"))) void copy_stack(uint64_t *copy, uint64_t address, size_t size)
{
	const volatile uint64_t *from = (const volatile uint64_t *)address;

	for (size_t i = 0; i < size / sizeof(*copy); i++)
		copy[i] = from[i];
}

static size_t live_frames, live_snapshot_races, live_calls;

/* One frame of the compiler's unwinder, which gives frame 0 another address of the same function. */
static _Unwind_Reason_Code compare_frame(struct _Unwind_Context *context, void *number)
{
	size_t *count = number;
	int before = 0;
	uint64_t address = _Unwind_GetIPInfo(context, &before);

	if (!address)
		return _URC_END_OF_STACK;
	ck_assert_msg(*count < result.frame_count, "ended by %d after %zu frames, before %#lx", (int)result.end,
		      result.frame_count, (unsigned long)address);
	if (*count) {
		ck_assert_msg(result.frames[*count].address == address, "frame %zu: %#lx instead of %#lx", *count,
			      (unsigned long)result.frames[*count].address, (unsigned long)address);
		ck_assert_int_eq(result.frames[*count].is_return_address, !before);
	}
	if (*count && !before) {
		live_calls++;
		live_snapshot_races += live_follows_call(NULL, address) == 0;
	}
	++*count;
	return _URC_NO_REASON;
}

/* libunwind, on the same stack, from the same initial registers. */
static void compare_with_libunwind(ucontext_t *context)
{
	unw_cursor_t cursor;
	size_t count = 0;
	unw_word_t address;

	ck_assert_int_eq(unw_init_local(&cursor, (unw_context_t *)context), 0);
	do {
		ck_assert_int_eq(unw_get_reg(&cursor, UNW_REG_IP, &address), 0);
		if (!address)
			break;
		ck_assert_uint_lt(count, result.frame_count);
		ck_assert_msg(result.frames[count].address == address, "frame %zu: %#lx instead of %#lx", count,
			      (unsigned long)result.frames[count].address, (unsigned long)address);
		count++;
	} while (unw_step(&cursor) > 0);
	ck_assert_uint_eq(result.frame_count, count);
}

/* Unwind from here with all three and compare; called at the bottom of each shape of stack. */
static __attribute__((noinline)) void compare_here(void)
{
	static uint64_t copy[8192];
	ucontext_t context;
	size_t size, count = 0;

	ck_assert_int_eq(getcontext(&context), 0);
	take_registers(&context);
	size = stack_above(registers.values[HOST_STACK_POINTER], sizeof(copy));
	copy_stack(copy, registers.values[HOST_STACK_POINTER], size);
	input = (struct unwind_input){.registers = &registers, .stack = (const uint8_t *)copy, .stack_size = size};
	unwind(unwind_rules_find(HOST_MACHINE), &input, &live_callbacks, &result);
	_Unwind_Backtrace(compare_frame, &count);
	ck_assert_uint_eq(result.frame_count, count);
	compare_with_libunwind(&context);
	ck_assert_uint_eq(result.end, MMT_STACK_END_ENTRY);
	ck_assert_uint_gt(count, 4);
	live_frames = count;
}

static int compare_in_callback(const void *left, const void *right)
{
	compare_here();
	return *(const int *)left - *(const int *)right;
}

static void compare_in_handler(int number)
{
	(void)number;
	compare_here();
}

static int visit_all(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)info;
	(void)size;
	++*(int *)context;
	return 0;
}

START_TEST(test_same_as_other_unwinders)
{
	int numbers[] = {2, 1};
	int visits = 0;

	ck_assert_ptr_null(modules_create(HOST_MACHINE, true, &programs));
	dl_iterate_phdr(visit_all, &visits);
	ck_assert_int_gt(visits, 1);
	compare_here();
	frameless_recurse(1, compare_here);
	frameless_recurse(100, compare_here);
	ck_assert_uint_gt(live_frames, 100);
	qsort(numbers, 2, sizeof(*numbers), compare_in_callback);
	ck_assert_int_eq(numbers[0], 1);
	frameless_allocate((size_t)visits * 16, compare_here);
	ck_assert_uint_gt(live_calls, 100);
	ck_assert_uint_eq(live_snapshot_races, 0);
	/* On aarch64 the vDSO has the code to which a handler returns; some versions of qemu-user have no vDSO. */
	if (HOST_MACHINE == EM_X86_64 || getauxval(AT_SYSINFO_EHDR)) {
		signal(SIGUSR1, compare_in_handler);
		raise(SIGUSR1);
		signal(SIGUSR1, SIG_DFL);
	} else {
		puts("signal handlers are not tested: the emulator has no vDSO");
	}
	modules_destroy(programs);
}
END_TEST

static void add_stacks_by_hand(Suite *suite)
{
	TCase *by_hand = add_tcase(suite, "stacks by hand");

	tcase_add_checked_fixture(by_hand, set_up, NULL);
	tcase_add_tests(by_hand, test_cfi_to_the_entry, test_return_address_is_looked_up_before_the_call_ends,
			test_zero_return_address_is_the_entry, test_plt_special_function, test_realigned_stacks,
			test_signal_frame, test_frame_pointer_through_jit_code,
			test_bare_chain_through_code_without_frame_pointer, test_guess_without_a_call_is_doubtful,
			test_frame_pointer_must_grow_in_jit_code, test_frameless_first_frame, test_unrecovered_register,
			test_bad_stacks_end);
	tcase_add_tests(by_hand, test_expressions);
	tcase_add_tests(
	    by_hand, test_signal_trampoline_without_cfi, test_alternate_signal_stack,
	    test_chain_continues_from_an_alternate_stack, test_coroutine, test_return_probe,
	    test_function_that_switches_stacks, test_code_that_switches_stacks, test_entry_known_by_name,
	    test_code_that_never_returns, test_row_from_instruction_analysis, test_python_trampoline, test_depth_limit,
	    test_end_of_the_dump, test_splice_after_a_frameless_leaf, test_splice_repeats_no_frame,
	    test_splice_across_a_gap_is_doubtful, test_first_function_in_the_chain_is_certain, test_splice_by_address,
	    test_splice_after_a_function_without_frame_pointer_is_doubtful,
	    test_splice_at_one_of_several_equal_addresses_is_doubtful,
	    test_chain_through_a_function_without_frame_pointer_is_doubtful, test_chain_to_an_entry_known_by_name,
	    test_thread_entry_known_by_its_callee, test_chain_through_a_non_frame_pointer,
	    test_chain_with_garbage_stops, test_full_chain_is_truncated, test_empty_dump, test_chain_without_a_dump);
}

Suite *test_suite(void)
{
	Suite *suite = suite_create("unwind");
	TCase *live = add_tcase(suite, "own stack");

	add_stacks_by_hand(suite);
	tcase_set_timeout(live, 600);
	tcase_add_test(live, test_same_as_other_unwinders);
	return suite;
}
