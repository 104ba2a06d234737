// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/limits.h"
#include "code/unwind/instruction-analysis.h"
#include "support/suite.h"

#include <check.h>
#include <elf.h>

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, RIP = 16, CODE_MAX = 48 };
#define START 0x400000ULL

struct restored {
	uint8_t number, kind, reg;
	int32_t offset;
};

static const struct {
	const char *title;
	uint8_t code[CODE_MAX];
	size_t size;
	bool found;
	uint8_t cfa_register;
	int32_t cfa_offset;
	struct restored restored[2];
} cases[] = {
    {"return", {0xc3}, 1, true, RSP, 8, {{0}}},
    /* test; add rsp, 0x28; pop rbx; pop r12; ret */
    {"pops",
     {0x48, 0x85, 0xc0, 0x48, 0x83, 0xc4, 0x28, 0x5b, 0x41, 0x5c, 0xc3},
     11,
     true,
     RSP,
     0x40,
     {{RBX, CFI_RULE_AT_REGISTER, RSP, 0x28}, {R12, CFI_RULE_AT_REGISTER, RSP, 0x30}}},
    /* add rsp, 8; jmp [rip] */
    {"last call", {0x48, 0x83, 0xc4, 8, 0xff, 0x25, 0, 0, 0, 0}, 10, true, RSP, 16, {{0}}},
    /* jmp [rax * 8] */
    {"table", {0xff, 0x24, 0xc5, 0, 0, 0, 0}, 7, false, 0, 0, {{0}}},
    {"leave", {0xc9, 0xc3}, 2, true, RBP, 16, {{RBP, CFI_RULE_AT_REGISTER, RBP, 0}}},
    /* lea rsp, [rbp - 8]; pop rbx; pop rbp; ret */
    {"from the frame pointer",
     {0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3},
     7,
     true,
     RBP,
     16,
     {{RBX, CFI_RULE_AT_REGISTER, RBP, -8}, {RBP, CFI_RULE_AT_REGISTER, RBP, 0}}},
    /* mov rbp, [rsp + 0x38]; add rsp, 0x40; ret */
    {"loads",
     {0x48, 0x8b, 0x6c, 0x24, 0x38, 0x48, 0x83, 0xc4, 0x40, 0xc3},
     10,
     true,
     RSP,
     0x48,
     {{RBP, CFI_RULE_AT_REGISTER, RSP, 0x38}}},
    /* mov ebx, 1; ret */
    {"lost", {0xbb, 1, 0, 0, 0, 0xc3}, 6, true, RSP, 8, {{RBX, CFI_RULE_UNDEFINED, 0, 0}}},
    /* push 1; push 2; call; add rsp, 16; pop rbp; ret */
    {"arguments",
     {0x6a, 1, 0x6a, 2, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3},
     15,
     true,
     RSP,
     16,
     {{RBP, CFI_RULE_AT_REGISTER, RSP, 0}}},
    /* pop rbx; jmp to: push rbx; mov ebx, 1; pop rbx; ret */
    {"ends with a jump to a function",
     {0x5b, 0xeb, 1, 0xcc, 0x53, 0xbb, 1, 0, 0, 0, 0x5b, 0xc3},
     12,
     true,
     RSP,
     16,
     {{RBX, CFI_RULE_AT_REGISTER, RSP, 0}}},
    /* jne to the return; call; padding; pop rbp; ret */
    {"the other path does not return",
     {0x75, 7, 0xe8, 0, 0, 0, 0, 0x66, 0x90, 0x5d, 0xc3},
     11,
     true,
     RSP,
     16,
     {{RBP, CFI_RULE_AT_REGISTER, RSP, 0}}},
    {"never returns", {0xe8, 0, 0, 0, 0, 0x0f, 0x1f, 0, 0xc3}, 9, false, 0, 0, {{0}}},
    {"runs in a circle", {0x90, 0xeb, 0xfd}, 3, false, 0, 0, {{0}}},
    {"goes on beyond the code", {0x48, 0x85, 0xc0}, 3, false, 0, 0, {{0}}},
    {"no instruction", {0x06, 0xc3}, 2, false, 0, 0, {{0}}},
    /* and rsp, -16; ret */
    {"stack pointer not followed", {0x48, 0x83, 0xe4, 0xf0, 0xc3}, 5, false, 0, 0, {{0}}},
    /* mov rbp, rax; leave; ret */
    {"frame pointer lost", {0x48, 0x89, 0xc5, 0xc9, 0xc3}, 5, false, 0, 0, {{0}}},
    /* push rbp; ret: jumps, in effect */
    {"returns to what it pushed", {0x55, 0xc3}, 2, false, 0, 0, {{0}}},
    {"trap", {0x0f, 0x0b, 0xc3}, 3, false, 0, 0, {{0}}},
    /* jmp rax */
    {"leaves to an unknown place", {0xff, 0xe0, 0xc3}, 3, false, 0, 0, {{0}}},
};

static size_t read_code(void *context, uint64_t address, size_t size, const uint8_t **code_ret)
{
	int index = *(const int *)context;
	size_t offset = address - START;

	if (offset >= cases[index].size)
		return 0;
	*code_ret = cases[index].code + offset;
	return size < cases[index].size - offset ? size : cases[index].size - offset;
}

START_TEST(test_rows)
{
	struct disassembly *disassembly;
	struct deduced_row deduced;
	const struct cfi_row *row;
	unsigned expected = 0;

	disassembly = disassembly_create(EM_X86_64);
	ck_assert_msg(deduced_row_find(disassembly, &(struct analyzed_code){.read = read_code, .context = &_i}, START,
				       false, false, &deduced) == cases[_i].found,
		      "%s", cases[_i].title);
	disassembly_destroy(disassembly);
	if (!cases[_i].found)
		return;
	row = deduced_row_get(&deduced);
	ck_assert(row->deduced);
	ck_assert_uint_eq(row->cfa_kind, CFI_CFA_REGISTER);
	ck_assert_uint_eq(row->cfa_register, cases[_i].cfa_register);
	ck_assert_int_eq(row->cfa_offset, cases[_i].cfa_offset);
	for (size_t i = 0; i < 2 && cases[_i].restored[i].number; i++) {
		const struct restored *restored = &cases[_i].restored[i];
		const struct cfi_rule *rule = cfi_row_rule(row, restored->number);

		ck_assert_ptr_nonnull(rule);
		ck_assert_uint_eq(rule->kind, restored->kind);
		ck_assert_uint_eq(rule->reg, restored->reg);
		ck_assert_int_eq(rule->offset, restored->offset);
		expected++;
	}
	ck_assert_uint_eq(row->rule_count, expected + 1);
	ck_assert_uint_eq(row->return_column, RIP);
	ck_assert_int_eq(cfi_row_rule(row, RIP)->kind, CFI_RULE_OFFSET);
	ck_assert_int_eq(cfi_row_rule(row, RIP)->offset, -8);
}
END_TEST

static size_t read_padding(void *context, uint64_t address, size_t size, const uint8_t **code_ret)
{
	static const uint8_t code[] = {0x66, 0x90, 0x5b, 0xc3}; /* nop; pop rbx; ret */
	size_t offset = address - START;

	(void)context;
	*code_ret = code + offset;
	return offset < sizeof(code) ? (size < sizeof(code) - offset ? size : sizeof(code) - offset) : 0;
}

/* After a call, padding shows that the call does not return; elsewhere it is skipped. Other architectures are not
 * analyzed. */
static const struct analyzed_code padding_code = {.read = read_padding};

/* call; then, without padding, another function: pop rbx; ret */
static size_t read_neighbours(void *context, uint64_t address, size_t size, const uint8_t **code_ret)
{
	static const uint8_t code[] = {0xe8, 0, 0, 0, 0, 0x5b, 0xc3};
	uint64_t offset = address - START;

	(void)context;
	*code_ret = code + offset;
	return offset >= sizeof(code) ? 0 : size < sizeof(code) - offset ? size : sizeof(code) - offset;
}

static bool begins_behind_the_call(void *context, uint64_t address)
{
	(void)context;
	return address == START || address == START + 5;
}

/* The call is the last instruction of its function, so it does not return; with a known function start it is
 * followed nevertheless. */
START_TEST(test_next_function)
{
	const struct analyzed_code unknown = {.read = read_neighbours},
				   known = {.read = read_neighbours, .begins = begins_behind_the_call};
	struct disassembly *disassembly;
	struct deduced_row deduced;

	disassembly = disassembly_create(EM_X86_64);
	ck_assert(deduced_row_find(disassembly, &unknown, START, false, false, &deduced));
	ck_assert(!deduced_row_find(disassembly, &known, START, false, false, &deduced));
	ck_assert(!deduced_row_find(disassembly, &known, START + 5, true, false, &deduced));
	ck_assert(deduced_row_find(disassembly, &known, START + 5, false, false, &deduced));
	disassembly_destroy(disassembly);
}
END_TEST

START_TEST(test_padding)
{
	struct disassembly *disassembly;
	struct deduced_row deduced;

	disassembly = disassembly_create(EM_X86_64);
	ck_assert(deduced_row_find(disassembly, &padding_code, START, false, false, &deduced));
	ck_assert_int_eq(deduced_row_get(&deduced)->cfa_offset, 16);
	ck_assert(!deduced_row_find(disassembly, &padding_code, START, true, false, &deduced));
	ck_assert(deduced_row_find(disassembly, &padding_code, START, true, true, &deduced));
	ck_assert_int_eq(deduced_row_get(&deduced)->cfa_offset, 16);
	disassembly_destroy(disassembly);
	disassembly = disassembly_create(EM_AARCH64);
	ck_assert(!deduced_row_find(disassembly, &padding_code, START, false, false, &deduced));
	disassembly_destroy(disassembly);
}
END_TEST

/* Endless code: at even addresses a branch over the next byte, at odd ones a far branch. */
static size_t read_maze(void *context, uint64_t address, size_t size, const uint8_t **code_ret)
{
	static const uint8_t code[DISASSEMBLY_INSTRUCTION_MAX] = {0x75, 0x03}, /* jne */
	    other[DISASSEMBLY_INSTRUCTION_MAX] = {0x0f, 0x84, 0x40};	       /* je */
	unsigned *reads = context;

	++*reads;
	*code_ret = address & 1 ? other : code;
	return size < DISASSEMBLY_INSTRUCTION_MAX ? size : DISASSEMBLY_INSTRUCTION_MAX;
}

/* The number of analyzed instructions is bounded on all paths together. */
START_TEST(test_branches_are_bounded)
{
	unsigned reads = 0;
	const struct analyzed_code maze = {.read = read_maze, .context = &reads};
	struct disassembly *disassembly;
	struct deduced_row deduced;

	disassembly = disassembly_create(EM_X86_64);
	ck_assert(!deduced_row_find(disassembly, &maze, START, false, false, &deduced));
	ck_assert_uint_gt(reads, 16);
	ck_assert_uint_le(reads, 1000);
	reads = 0;
	ck_assert_uint_eq(function_range_find(disassembly, &maze, START, UINT64_MAX),
			  START + LIMIT_FUNCTION_RANGE_BYTES);
	ck_assert_uint_gt(reads, 16);
	ck_assert_uint_le(reads, LIMIT_FUNCTION_RANGE_BYTES);
	disassembly_destroy(disassembly);
}
END_TEST

struct bytes_at_start {
	const uint8_t *code;
	size_t size;
};

static size_t read_bytes(void *context, uint64_t address, size_t size, const uint8_t **code_ret)
{
	const struct bytes_at_start *bytes = context;
	size_t offset = address - START;

	if (offset >= bytes->size)
		return 0;
	*code_ret = bytes->code + offset;
	return size < bytes->size - offset ? size : bytes->size - offset;
}

static bool find_row(struct disassembly *disassembly, const uint8_t *code, size_t size, const struct cfi_row *host,
		     struct deduced_row *deduced)
{
	struct bytes_at_start bytes = {code, size};

	return deduced_row_find(disassembly,
				&(struct analyzed_code){.read = read_bytes, .context = &bytes, .host = host}, START,
				false, false, deduced);
}

/* Code reached by a jump from a function, which jumps to addresses outside the code. */
START_TEST(test_code_in_the_frame_of_another)
{
	static const struct cfi_rule rules[] = {{.number = RBX, .kind = CFI_RULE_OFFSET, .offset = -16},
						{.number = RIP, .kind = CFI_RULE_OFFSET, .offset = -8}};
	const struct cfi_row host = {
	    .rules = rules, .rule_count = 2, .cfa_register = RSP, .cfa_offset = 0x30, .return_column = RIP};
	const struct cfi_row by_frame_pointer = {
	    .rules = rules, .rule_count = 2, .cfa_register = RBP, .cfa_offset = 16, .return_column = RIP};
	static const uint8_t leaves[] = {0x48, 0x83, 0xc4, 8, 0x41, 0xff, 0x27}, /* add rsp, 8; jmp [r15] */
	    leaves_higher[] = {0x53, 0xff, 0xe0},				 /* push rbx; jmp rax */
	    returns[] = {0x75, 3, 0x41, 0xff, 0x27, 0x58, 0xc3}, /* jne to the end; jmp [r15]; pop rax; ret */
	    calls[] = {0x48, 0x83, 0xc4, 8, 0xc3};		 /* add rsp, 8; ret */
	struct disassembly *disassembly;
	struct deduced_row deduced;
	const struct cfi_row *row;

	disassembly = disassembly_create(EM_X86_64);
	ck_assert(!find_row(disassembly, leaves, sizeof(leaves), NULL, &deduced));
	ck_assert(!find_row(disassembly, leaves, sizeof(leaves), &by_frame_pointer, &deduced));
	ck_assert(!find_row(disassembly, leaves_higher, sizeof(leaves_higher), &host, &deduced));
	ck_assert(find_row(disassembly, leaves, sizeof(leaves), &host, &deduced));
	row = deduced_row_get(&deduced);
	ck_assert(row->deduced && !row->other_stack);
	ck_assert_uint_eq(row->cfa_register, RSP);
	ck_assert_int_eq(row->cfa_offset, 0x38);
	ck_assert_uint_eq(row->rule_count, 2);
	ck_assert_int_eq(cfi_row_rule(row, RBX)->offset, -16);
	ck_assert_int_eq(cfi_row_rule(row, RIP)->offset, -8);
	ck_assert(find_row(disassembly, returns, sizeof(returns), NULL, &deduced));
	ck_assert_int_eq(deduced_row_get(&deduced)->cfa_offset, 16);
	/* A called function has a frame of its own. */
	ck_assert(find_row(disassembly, calls, sizeof(calls), &host, &deduced));
	ck_assert_int_eq(deduced_row_get(&deduced)->cfa_offset, 16);
	disassembly_destroy(disassembly);
}
END_TEST

/* The caller is on a stack whose address the code loads from memory. */
START_TEST(test_code_that_switches_stacks)
{
	static const uint8_t switches[] = {0x49, 0x8b, 0x65, 0x58, 0xc3}, /* mov rsp, [r13 + 0x58]; ret */
	    from_global[] = {0x48, 0x8b, 0x25, 1, 0, 0, 0, 0xc9, 0xc3},	  /* mov rsp, [rip + 1]; leave; ret */
	    restores[] = {0x48, 0x8b, 0x65, 0xf8, 0xc9, 0xc3},		  /* mov rsp, [rbp - 8]; leave; ret */
	    sometimes[] = {0x75, 4, 0x49, 0x8b, 0x65, 0x58, 0x5b, 0xc3},  /* jne to: pop rbx; ret */
	    perhaps[] = {0x75, 4, 0x49, 0x8b, 0x65, 0x58, 0xff, 0xe0},	  /* jne to: jmp rax */
	    twice[] = {0x75, 0xfe, 0x75, 4, 0x49, 0x8b, 0x65, 0x58, 0x49, 0x8b, 0x65, 0x58}; /* jne to itself; jne */
	struct disassembly *disassembly;
	struct deduced_row deduced;

	disassembly = disassembly_create(EM_X86_64);
	ck_assert(find_row(disassembly, switches, sizeof(switches), NULL, &deduced));
	ck_assert(deduced_row_get(&deduced)->other_stack && deduced_row_get(&deduced)->deduced);
	ck_assert(find_row(disassembly, from_global, sizeof(from_global), NULL, &deduced));
	ck_assert(deduced_row_get(&deduced)->other_stack);
	ck_assert(!find_row(disassembly, restores, sizeof(restores), NULL, &deduced));
	ck_assert(!find_row(disassembly, perhaps, sizeof(perhaps), NULL, &deduced));
	ck_assert(find_row(disassembly, twice, sizeof(twice), NULL, &deduced));
	ck_assert(deduced_row_get(&deduced)->other_stack);
	ck_assert(find_row(disassembly, sometimes, sizeof(sometimes), NULL, &deduced));
	ck_assert(!deduced_row_get(&deduced)->other_stack);
	ck_assert_int_eq(deduced_row_get(&deduced)->cfa_offset, 16);
	disassembly_destroy(disassembly);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("instruction-analysis");
	TCase *tests = add_tcase(suite, "rows");

	tcase_add_loop_test(tests, test_rows, 0, sizeof(cases) / sizeof(*cases));
	tcase_add_tests(tests, test_padding, test_next_function, test_branches_are_bounded,
			test_code_in_the_frame_of_another, test_code_that_switches_stacks);
	return suite;
}
