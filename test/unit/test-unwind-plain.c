// SPDX-License-Identifier: LGPL-2.1-or-later
/* Plain rows are applied late, and only to registers that are read: the result equals that of applying every row at
 * once, however the stack continues. */
#include <check.h>
#include <elf.h>
#include <string.h>

#include "code/unwind/unwind.h"
#include "support/suite.h"

#define CODE 0x10000
#define PAGES 16
#define STACK 0x7ffff000
#define WORDS 96
#define RULES_MAX 8
#define ROUNDS 15000

static struct cfi_row rows[PAGES];
static struct cfi_rule rules[PAGES][RULES_MAX];
static enum code_special_function special_functions[PAGES];
static uint8_t operations[PAGES][2];
static struct cfi_expression expressions[PAGES];
static bool rows_are_finished;

static enum code_kind find_code(void *context, uint64_t address, bool is_return_address, struct code_place *place_ret)
{
	uint64_t page = (address - is_return_address - CODE) >> 12;

	(void)context;
	if (page >= PAGES)
		return page == PAGES ? CODE_OTHER : CODE_NONE;
	rows[page].plain = false;
	if (rows_are_finished)
		cfi_row_finish(&rows[page]);
	place_ret->row = &rows[page];
	place_ret->special_function = special_functions[page];
	return CODE_NATIVE;
}

static const struct unwind_callbacks callbacks = {.find = find_code};

/* The properties of an architecture that rows need. */
struct machine {
	uint16_t elf_machine;
	uint8_t stack_pointer, frame_pointer, preserved, scratch, pc, return_column;
};

static const struct machine machines[] = {
    {.elf_machine = EM_X86_64,
     .stack_pointer = 7,
     .frame_pointer = 6,
     .preserved = 3,
     .scratch = 0,
     .pc = 16,
     .return_column = 16},
    {.elf_machine = EM_AARCH64,
     .stack_pointer = 31,
     .frame_pointer = 29,
     .preserved = 19,
     .scratch = 2,
     .pc = 32,
     .return_column = 30},
};

static uint64_t seed;

static uint32_t pick(uint32_t below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % below;
}

static void make_row(const struct machine *machine, size_t page)
{
	const uint8_t registers[] = {machine->scratch, machine->preserved, machine->frame_pointer};
	struct cfi_row *row = &rows[page];
	/* Most rows of compilers are plain; others occur in between. */
	unsigned kinds = pick(4) ? CFI_RULE_OFFSET + 1 : CFI_RULE_AT_REGISTER + 1;

	memset(rules[page], 0, sizeof(rules[page]));
	*row = (struct cfi_row){.rules = rules[page],
				.cfa_register = pick(3) ? machine->stack_pointer : registers[1 + pick(2)],
				.cfa_offset = (int32_t)(8 + 8 * pick(4)),
				.return_column = machine->return_column};
	for (size_t i = 0; i < sizeof(registers); i++) {
		if (pick(2))
			rules[page][row->rule_count++] = (struct cfi_rule){.number = registers[i],
									   .kind = (uint8_t)pick(kinds),
									   .reg = registers[pick(3)],
									   .offset = -8 * (int32_t)(2 + pick(3))};
	}
	if (pick(8) || machine->elf_machine == EM_X86_64)
		rules[page][row->rule_count++] =
		    (struct cfi_rule){.number = machine->return_column, .kind = CFI_RULE_OFFSET, .offset = -8};
	if (!pick(12))
		rules[page][row->rule_count++] =
		    (struct cfi_rule){.number = machine->stack_pointer, .kind = CFI_RULE_OFFSET, .offset = -16};
}

/* Not rows of registers and offsets: recognized code, and a CFA given by an expression. */
static void make_other(const struct machine *machine, size_t page)
{
	struct cfi_row *row = &rows[page];
	uint32_t kind = pick(10);

	special_functions[page] = kind == 0   ? CODE_SPECIAL_FUNCTION_PYTHON_TRAMPOLINE
				  : kind == 1 ? CODE_SPECIAL_FUNCTION_STACK_SWITCH
					      : CODE_SPECIAL_FUNCTION_NONE;
	if (kind != 2)
		return;
	operations[page][0] =
	    (uint8_t)(0x70 /* DW_OP_breg0 */ + (pick(2) ? machine->preserved : machine->frame_pointer));
	operations[page][1] = (uint8_t)(8 * pick(4));
	expressions[page] = (struct cfi_expression){.bytes = operations[page], .size = 2};
	row->cfa_kind = CFI_CFA_EXPRESSION;
	row->cfa_offset = 0;
	row->expressions = &expressions[page];
	row->has_expressions = true;
}

/* Mostly code addresses, and addresses on the stack. */
static uint64_t make_word(size_t place)
{
	switch (pick(8)) {
	case 0:
		return pick(1000);
	case 1:
	case 2:
		return STACK + 8 * (place + pick(12));
	default:
		return CODE + 0x1000 * pick(PAGES + 1) + 8 * pick(100) + 8;
	}
}

static void expect_same(const struct unwind_result *one, const struct unwind_result *other, uint64_t round)
{
	ck_assert_msg(one->frame_count == other->frame_count && one->end == other->end &&
			  one->spliced == other->spliced && one->read_count == other->read_count,
		      "round %lu: %zu frames, end %d, %zu reads, or %zu, %d, %zu", (unsigned long)round,
		      one->frame_count, one->end, one->read_count, other->frame_count, other->end, other->read_count);
	for (size_t i = 0; i < one->frame_count; i++) {
		ck_assert_uint_eq(one->frames[i].address, other->frames[i].address);
		ck_assert_uint_eq(one->frames[i].origin, other->frames[i].origin);
		ck_assert_uint_eq(one->frames[i].doubtful, other->frames[i].doubtful);
	}
	for (size_t i = 0; i < one->read_count; i++) {
		ck_assert_uint_eq(one->reads[i].offset, other->reads[i].offset);
		ck_assert_uint_eq(one->reads[i].kind, other->reads[i].kind);
		ck_assert_uint_eq(one->reads[i].value, other->reads[i].value);
	}
}

START_TEST(test_random_rows)
{
	static struct unwind_result at_once, late;
	const struct machine *machine = &machines[_i];
	uint64_t words[WORDS], deep = 0, spliced = 0, ways[UNWIND_BY_CALLCHAIN + 1] = {0};

	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct register_values registers = {.known = UINT64_MAX >> 31};
		uint64_t chain[] = {CODE + 8, CODE + 16, CODE + 24};
		struct unwind_input input = {.registers = &registers,
					     .stack = (const uint8_t *)words,
					     .stack_size = 8 * (8 + pick(WORDS - 7)),
					     .callchain = chain,
					     .callchain_count = pick(2) ? 3 : 0};

		seed = round * 2 + 1;
		for (size_t i = 0; i < PAGES; i++) {
			make_row(machine, i);
			make_other(machine, i);
		}
		for (size_t i = 0; i < WORDS; i++)
			words[i] = make_word(i);
		for (size_t i = 0; i < UNWIND_REGISTERS; i++)
			registers.values[i] = make_word(0);
		registers.values[machine->stack_pointer] = STACK;
		registers.values[machine->pc] = CODE + 0x1000 * pick(PAGES) + 8;
		rows_are_finished = false;
		unwind(unwind_rules_find(machine->elf_machine), &input, &callbacks, &at_once);
		rows_are_finished = true;
		unwind(unwind_rules_find(machine->elf_machine), &input, &callbacks, &late);
		expect_same(&at_once, &late, round);
		deep += late.frame_count > 4;
		spliced += late.spliced && late.frame_count > 6;
		for (size_t i = 2; i < late.frame_count; i++)
			ways[late.frames[i].origin]++;
	}
	/* The rows lead somewhere, and continue after others. */
	ck_assert_uint_gt(deep, ROUNDS / 50);
	ck_assert_uint_gt(spliced, ROUNDS / 1000);
	ck_assert(machine->elf_machine != EM_X86_64 || ways[UNWIND_BY_SPECIAL_FUNCTION] > ROUNDS / 50);
	ck_assert(machine->elf_machine != EM_X86_64 || ways[UNWIND_BY_EXPRESSION] > ROUNDS / 500);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("unwind-plain");
	TCase *tests = add_tcase(suite, "unwind-plain");

	tcase_set_timeout(tests, 600);
	tcase_add_loop_test(tests, test_random_rows, 0, sizeof(machines) / sizeof(*machines));
	return suite;
}
