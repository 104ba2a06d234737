// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/stubs.h"

#include <check.h>
#include <elf.h>

#include "support/run-suite.h"

START_TEST(test_names)
{
	ck_assert_int_eq(stubs_by_name("_start", false), CODE_STUB_ENTRY);
	ck_assert_int_eq(stubs_by_name("clone", true), CODE_STUB_ENTRY);
	ck_assert_int_eq(stubs_by_name("__clone3@@GLIBC_PRIVATE", true), CODE_STUB_ENTRY);
	ck_assert_int_eq(stubs_by_name("start_thread", true), CODE_STUB_THREAD_START);
	ck_assert_int_eq(stubs_by_name("runtime.goexit.abi0", false), CODE_STUB_ENTRY);
	ck_assert_int_eq(stubs_by_name("runtime.systemstack", false), CODE_STUB_STACK_SWITCH);
	ck_assert_int_eq(stubs_by_name("cloned", true), CODE_STUB_NONE);
	ck_assert_int_eq(stubs_by_name(NULL, true), CODE_STUB_NONE);
}
END_TEST

/* What a program calls so need not be what the C library does. */
START_TEST(test_names_of_others)
{
	ck_assert_int_eq(stubs_by_name("clone", false), CODE_STUB_NONE);
	ck_assert_int_eq(stubs_by_name("__clone", false), CODE_STUB_NONE);
	ck_assert_int_eq(stubs_by_name("start_thread", false), CODE_STUB_NONE);
	ck_assert_int_eq(stubs_by_name("__start_context", false), CODE_STUB_NONE);
}
END_TEST

START_TEST(test_c_libraries)
{
	ck_assert(stubs_is_c_library("/usr/lib/x86_64-linux-gnu/libc.so.6"));
	ck_assert(stubs_is_c_library("/lib/libc-2.31.so"));
	ck_assert(stubs_is_c_library("/lib/x86_64-linux-gnu/libpthread.so.0"));
	ck_assert(stubs_is_c_library("/lib64/ld-linux-x86-64.so.2"));
	ck_assert(stubs_is_c_library("/lib/ld-musl-x86_64.so.1"));
	ck_assert(stubs_is_c_library("/lib/libc.musl-x86_64.so.1"));
	ck_assert(!stubs_is_c_library("/usr/lib/libcrypto.so.3"));
	ck_assert(!stubs_is_c_library("/opt/libc.d/program"));
	ck_assert(!stubs_is_c_library("[vdso]"));
}
END_TEST

START_TEST(test_code)
{
	static const uint8_t signal_return[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

	ck_assert_int_eq(stubs_by_code(EM_X86_64, signal_return, sizeof(signal_return)), CODE_STUB_SIGNAL_RETURN);
	ck_assert_int_eq(stubs_by_code(EM_X86_64, signal_return, sizeof(signal_return) - 1), CODE_STUB_NONE);
	ck_assert_int_eq(stubs_by_code(EM_AARCH64, signal_return, sizeof(signal_return)), CODE_STUB_NONE);
}
END_TEST

START_TEST(test_code_of_aarch64)
{
	static const uint8_t signal_return[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
	static const uint8_t thread_exit[] = {0xa8, 0x0b, 0x80, 0xd2, 0x01, 0, 0, 0xd4, 0xc0, 0x03, 0x5f, 0xd6};

	ck_assert_int_eq(stubs_by_code(EM_AARCH64, signal_return, sizeof(signal_return)), CODE_STUB_SIGNAL_RETURN);
	ck_assert_int_eq(stubs_by_code(EM_AARCH64, signal_return, sizeof(signal_return) - 1), CODE_STUB_NONE);
	ck_assert_int_eq(stubs_by_code(EM_AARCH64, thread_exit, sizeof(thread_exit)), CODE_STUB_ENTRY);
	ck_assert_int_eq(stubs_by_code(EM_AARCH64, thread_exit + 4, sizeof(thread_exit) - 4), CODE_STUB_NONE);
	ck_assert_int_eq(stubs_by_code(EM_X86_64, thread_exit, sizeof(thread_exit)), CODE_STUB_NONE);
}
END_TEST

START_TEST(test_system_calls)
{
	static const uint8_t x86[] = {0x31, 0xc0, 0x0f, 0x05, 0xc3};
	static const uint8_t arm[] = {0xa8, 0x0b, 0x80, 0xd2, 0x01, 0, 0, 0xd4, 0xc0, 0x03, 0x5f, 0xd6};

	ck_assert(stubs_has_system_call(EM_X86_64, x86, sizeof(x86)));
	ck_assert(!stubs_has_system_call(EM_X86_64, x86, 3));
	ck_assert(!stubs_has_system_call(EM_X86_64, NULL, 0));
	ck_assert(!stubs_has_system_call(EM_AARCH64, x86, sizeof(x86)));
	ck_assert(stubs_has_system_call(EM_AARCH64, arm, sizeof(arm)));
	ck_assert(!stubs_has_system_call(EM_AARCH64, arm, 7));
	ck_assert(!stubs_has_system_call(EM_AARCH64, arm + 1, sizeof(arm) - 1));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stubs");
	TCase *tests = tcase_create("stubs");

	tcase_add_test(tests, test_names);
	tcase_add_test(tests, test_names_of_others);
	tcase_add_test(tests, test_c_libraries);
	tcase_add_test(tests, test_code);
	tcase_add_test(tests, test_code_of_aarch64);
	tcase_add_test(tests, test_system_calls);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
