// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/elf/disassembly.h"
#include "support/suite.h"

#include <check.h>
#include <elf.h>

static const struct {
	uint8_t code[16];
	size_t size;
	int answer;
} cases[] = {
    {{0xe8, 1, 2, 3, 4}, 5, 1},			  /* call rel32 */
    {{0xff, 0xd0}, 2, 1},			  /* call rax */
    {{0x41, 0xff, 0xd3}, 3, 1},			  /* call r11 */
    {{0xff, 0x15, 1, 2, 3, 4}, 6, 1},		  /* call [rip + N] */
    {{0x41, 0xff, 0x94, 0x24, 1, 2, 3, 4}, 8, 1}, /* call [r12 + N] */
    {{0x67, 0xe8, 1, 2, 3, 4}, 6, 1},		  /* with a prefix */
    {{0x90, 0x90, 0xe8, 1, 2, 3, 4}, 7, 1},	  /* after other instructions */
    {{0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, 6, 0}, /* nops */
    {{0xe9, 1, 2, 3, 4}, 5, 0},			  /* jump */
    {{0xe8, 1, 2, 3, 4, 0x90}, 6, 0},		  /* not the last instruction */
    {{0x0f, 0x05}, 2, 0},			  /* syscall */
    {{0xe8}, 1, -1},
};

START_TEST(test_x86_64)
{
	struct disassembly *disassembly;

	disassembly = disassembly_create(EM_X86_64);
	ck_assert_int_eq(disassembly_ends_with_call(disassembly, cases[_i].code, cases[_i].size), cases[_i].answer);
	disassembly_destroy(disassembly);
}
END_TEST

START_TEST(test_other_architectures)
{
	static const uint8_t calls[][4] = {{1, 0, 0, 0x94},				    /* bl */
					   {0x20, 0, 0x3f, 0xd6},			    /* blr x1 */
					   {0x22, 0x0c, 0x3f, 0xd7},			    /* blrab x1, x2 */
					   {0x3f, 0x08, 0x3f, 0xd6}};			    /* blraaz x1 */
	static const uint8_t ret[] = {0xc0, 3, 0x5f, 0xd6}, jump[] = {0x20, 0, 0x1f, 0xd6}; /* br x1 */
	struct disassembly *disassembly;

	disassembly = disassembly_create(EM_AARCH64);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		ck_assert_int_eq(disassembly_ends_with_call(disassembly, calls[i], 4), 1);
	ck_assert_int_eq(disassembly_ends_with_call(disassembly, ret, 4), 0);
	ck_assert_int_eq(disassembly_ends_with_call(disassembly, jump, 4), 0);
	ck_assert_int_eq(disassembly_ends_with_call(disassembly, ret + 1, 3), -1);
	disassembly_destroy(disassembly);
	disassembly = disassembly_create(EM_SPARC);
	ck_assert_int_eq(disassembly_ends_with_call(disassembly, ret, 4), -1);
	disassembly_destroy(disassembly);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("disassembly");
	TCase *tests = add_tcase(suite, "disassembly");

	tcase_add_loop_test(tests, test_x86_64, 0, sizeof(cases) / sizeof(*cases));
	tcase_add_test(tests, test_other_architectures);
	return suite;
}
