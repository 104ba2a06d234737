// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/unwind/unwind.h"

#include <check.h>
#include <elf.h>
#include <string.h>

#include "support/suite.h"

START_TEST(test_names)
{
	ck_assert_int_eq(stack_end_by_name("_start", false), CODE_SPECIAL_FUNCTION_ENTRY);
	ck_assert_int_eq(stack_end_by_name("clone", true), CODE_SPECIAL_FUNCTION_ENTRY);
	ck_assert_int_eq(stack_end_by_name("__clone3@@GLIBC_PRIVATE", true), CODE_SPECIAL_FUNCTION_ENTRY);
	ck_assert_int_eq(stack_end_by_name("start_thread", true), CODE_SPECIAL_FUNCTION_THREAD_START);
	ck_assert_int_eq(stack_end_by_name("__libc_start_call_main", true), CODE_SPECIAL_FUNCTION_THREAD_START);
	ck_assert_int_eq(stack_end_by_name("__libc_start_main@@GLIBC_2.34", true), CODE_SPECIAL_FUNCTION_THREAD_START);
	ck_assert_int_eq(stack_end_by_name("__libc_start_call_main", false), CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(stack_end_by_name("runtime.goexit.abi0", false), CODE_SPECIAL_FUNCTION_ENTRY);
	ck_assert_int_eq(stack_end_by_name("runtime.systemstack", false), CODE_SPECIAL_FUNCTION_STACK_SWITCH);
	ck_assert_int_eq(stack_end_by_name("cloned", true), CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(stack_end_by_name(NULL, true), CODE_SPECIAL_FUNCTION_NONE);
}
END_TEST

/* A program's function of this name need not do what libc's does. */
START_TEST(test_other_names)
{
	ck_assert_int_eq(stack_end_by_name("clone", false), CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(stack_end_by_name("__clone", false), CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(stack_end_by_name("start_thread", false), CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(stack_end_by_name("__start_context", false), CODE_SPECIAL_FUNCTION_NONE);
}
END_TEST

START_TEST(test_libc_of_every_kind)
{
	ck_assert(stack_end_is_c_library("/usr/lib/x86_64-linux-gnu/libc.so.6"));
	ck_assert(stack_end_is_c_library("/lib/libc-2.31.so"));
	ck_assert(stack_end_is_c_library("/lib/x86_64-linux-gnu/libpthread.so.0"));
	ck_assert(stack_end_is_c_library("/lib64/ld-linux-x86-64.so.2"));
	ck_assert(stack_end_is_c_library("/lib/ld-musl-x86_64.so.1"));
	ck_assert(stack_end_is_c_library("/lib/libc.musl-x86_64.so.1"));
	ck_assert(!stack_end_is_c_library("/usr/lib/libcrypto.so.3"));
	ck_assert(!stack_end_is_c_library("/opt/libc.d/program"));
	ck_assert(!stack_end_is_c_library("[vdso]"));
}
END_TEST

/* The code at the return address `split` bytes from the start, if `size` bytes are known. */
static enum code_special_function special_function_at(uint16_t machine, const uint8_t *code, size_t split, size_t size)
{
	return stack_end_by_code(machine, code + split, size - split, code, split);
}

START_TEST(test_code)
{
	static const uint8_t signal_return[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

	ck_assert_int_eq(special_function_at(EM_X86_64, signal_return, 0, sizeof(signal_return)),
			 CODE_SPECIAL_FUNCTION_SIGNAL_RETURN);
	ck_assert_int_eq(special_function_at(EM_X86_64, signal_return, 0, sizeof(signal_return) - 1),
			 CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(special_function_at(EM_AARCH64, signal_return, 0, sizeof(signal_return)),
			 CODE_SPECIAL_FUNCTION_NONE);
}
END_TEST

START_TEST(test_code_of_aarch64)
{
	static const uint8_t signal_return[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};

	ck_assert_int_eq(special_function_at(EM_AARCH64, signal_return, 0, sizeof(signal_return)),
			 CODE_SPECIAL_FUNCTION_SIGNAL_RETURN);
	ck_assert_int_eq(special_function_at(EM_AARCH64, signal_return, 0, sizeof(signal_return) - 1),
			 CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(special_function_at(EM_X86_64, signal_return, 0, sizeof(signal_return)),
			 CODE_SPECIAL_FUNCTION_NONE);
}
END_TEST

/* A thread of musl's is called from its stack. A function that exits the process after another call, as a child of
 * vfork() may, has callers. */
START_TEST(test_thread_of_aarch64)
{
	static const uint8_t clone[] = {0xe1, 0x03, 0xc1, 0xa8, 0x20, 0, 0x3f, 0xd6,
					0xa8, 0x0b, 0x80, 0xd2, 0x01, 0, 0,    0xd4};
	static const uint8_t called_otherwise[] = {0xe1, 0x03, 0xc1, 0xa8, 0x03, 0, 0, 0x94, /* bl */
						   0xa8, 0x0b, 0x80, 0xd2, 0x01, 0, 0, 0xd4};

	ck_assert_int_eq(special_function_at(EM_AARCH64, clone, 8, sizeof(clone)), CODE_SPECIAL_FUNCTION_ENTRY);
	ck_assert_int_eq(special_function_at(EM_AARCH64, clone, 8, sizeof(clone) - 1), CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(special_function_at(EM_X86_64, clone, 8, sizeof(clone)), CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(special_function_at(EM_AARCH64, called_otherwise, 8, sizeof(called_otherwise)),
			 CODE_SPECIAL_FUNCTION_NONE);
	/* Without the code before it, or with less of it, nothing is certain. */
	ck_assert_int_eq(stack_end_by_code(EM_AARCH64, clone + 8, 8, NULL, 0), CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(stack_end_by_code(EM_AARCH64, clone + 8, 8, clone + 4, 4), CODE_SPECIAL_FUNCTION_NONE);
}
END_TEST

/* The return address of a coroutine of makecontext(): nothing has called it. */
START_TEST(test_coroutine_of_boost)
{
	/* push %rbp; jmp *%rbx | xor %rdi, %rdi; call _exit; hlt */
	static const uint8_t start[] = {0x55, 0xff, 0xe3, 0x48, 0x31, 0xff, 0xe8, 0x49, 0xfe, 0xff, 0xff, 0xf4};
	uint8_t other[sizeof(start)];

	ck_assert_int_eq(special_function_at(EM_X86_64, start, 3, sizeof(start)), CODE_SPECIAL_FUNCTION_COROUTINE);
	ck_assert_int_eq(special_function_at(EM_X86_64, start, 3, 6), CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(special_function_at(EM_X86_64, start + 1, 2, sizeof(start) - 1), CODE_SPECIAL_FUNCTION_NONE);
	memcpy(other, start, sizeof(start));
	other[2] = 0xe0; /* jmp *%rax */
	ck_assert_int_eq(special_function_at(EM_X86_64, other, 3, sizeof(other)), CODE_SPECIAL_FUNCTION_NONE);
}
END_TEST

START_TEST(test_coroutine_of_aarch64)
{
	static const uint8_t start[] = {0x1f, 0x20, 0x03, 0xd5, 0xe0, 0x03, 0x13, 0xaa,
					0xc0, 0xf9, 0xff, 0xb5, 0x79, 0xf5, 0xff, 0x17};
	static const uint8_t start_with_bti[] = {0x1f, 0x20, 0x03, 0xd5, 0x5f, 0x24, 0x03, 0xd5, 0xe0, 0x03,
						 0x13, 0xaa, 0xa0, 0xf9, 0xff, 0xb5, 0x78, 0xf5, 0xff, 0x17};
	uint8_t other[sizeof(start)];

	ck_assert_int_eq(special_function_at(EM_AARCH64, start, 4, sizeof(start)), CODE_SPECIAL_FUNCTION_COROUTINE);
	ck_assert_int_eq(special_function_at(EM_AARCH64, start, 4, sizeof(start) - 1), CODE_SPECIAL_FUNCTION_NONE);
	ck_assert_int_eq(special_function_at(EM_AARCH64, start_with_bti, 4, sizeof(start_with_bti)),
			 CODE_SPECIAL_FUNCTION_COROUTINE);
	memcpy(other, start, sizeof(start));
	memcpy(other, (const uint8_t[]){0x03, 0, 0, 0x94}, 4); /* bl: an ordinary function that continues */
	ck_assert_int_eq(special_function_at(EM_AARCH64, other, 4, sizeof(other)), CODE_SPECIAL_FUNCTION_NONE);
	memcpy(other, start, sizeof(start));
	other[8] |= 1; /* cbnz x1 */
	ck_assert_int_eq(special_function_at(EM_AARCH64, other, 4, sizeof(other)), CODE_SPECIAL_FUNCTION_NONE);
	memcpy(other, start, sizeof(start));
	other[15] |= 0x80; /* bl */
	ck_assert_int_eq(special_function_at(EM_AARCH64, other, 4, sizeof(other)), CODE_SPECIAL_FUNCTION_NONE);
}
END_TEST

START_TEST(test_system_calls)
{
	static const uint8_t x86[] = {0x31, 0xc0, 0x0f, 0x05, 0xc3};
	static const uint8_t arm[] = {0xa8, 0x0b, 0x80, 0xd2, 0x01, 0, 0, 0xd4, 0xc0, 0x03, 0x5f, 0xd6};

	ck_assert(stack_end_has_system_call(EM_X86_64, x86, sizeof(x86)));
	ck_assert(!stack_end_has_system_call(EM_X86_64, x86, 3));
	ck_assert(!stack_end_has_system_call(EM_X86_64, NULL, 0));
	ck_assert(!stack_end_has_system_call(EM_AARCH64, x86, sizeof(x86)));
	ck_assert(stack_end_has_system_call(EM_AARCH64, arm, sizeof(arm)));
	ck_assert(!stack_end_has_system_call(EM_AARCH64, arm, 7));
	ck_assert(!stack_end_has_system_call(EM_AARCH64, arm + 1, sizeof(arm) - 1));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("special-functions");
	TCase *tests = add_tcase(suite, "special functions");

	tcase_add_tests(tests, test_names, test_other_names, test_libc_of_every_kind, test_code, test_code_of_aarch64,
			test_thread_of_aarch64, test_coroutine_of_aarch64, test_coroutine_of_boost, test_system_calls);
	return suite;
}
