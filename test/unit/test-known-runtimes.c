// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <string.h>

#include "analysis/resolver/known-runtimes.h"
#include "support/suite.h"

START_TEST(files_of_runtimes)
{
	static const struct {
		const char *path, *runtime; /* NULL: none */
	} cases[] = {
	    {"/usr/lib/dotnet/shared/Microsoft.NETCore.App/10.0.9/libcoreclr.so", "dotnet"},
	    {"/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so", "java"},
	    {"/usr/bin/node", "node"},
	    {"/usr/lib/x86_64-linux-gnu/libnode.so.108", "node"},
	    {"/usr/local/bin/python3", "python"},
	    {"/usr/bin/python3.12", "python"},
	    {"/usr/lib/libpython3.12.so.1.0", "python"},
	    {"/usr/bin/mono-sgen", "mono"},
	    {"/usr/lib/libmonosgen-2.0.so.1.0.0", "mono"},
	    {"/usr/bin/php8.2", "php"},
	    {"/usr/lib/erlang/erts-13.1.5/bin/beam.smp", "erlang"},
	    {"/usr/bin/ruby3.3", "ruby"},
	    {"/usr/bin/luajit", "luajit"},
	    {"/usr/bin/luajit-2.1.0-beta3", "luajit"},
	    {"/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2", "luajit"},
	    {"/memfd:doublemapper (deleted)", "dotnet"},
	    {"/usr/bin/nodejs-helper", NULL},
	    {"/usr/bin/noder", NULL},
	    {"/usr/bin/python3-config", NULL},
	    {"/opt/node/server", NULL},
	    {"/usr/lib/libc.so.6", NULL},
	    {"node", NULL},
	    {"", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct runtime *runtime = runtimes_of_file(cases[i].path);

		if (cases[i].runtime)
			ck_assert_msg(runtime && !strcmp(runtime->name, cases[i].runtime), "%s: %s", cases[i].path,
				      runtime ? runtime->name : "none");
		else
			ck_assert_msg(!runtime, "%s: %s", cases[i].path, runtime ? runtime->name : "");
	}
}
END_TEST

START_TEST(runtimes_are_found_by_name)
{
	ck_assert_str_eq(runtimes_find("java")->label, "Java");
	ck_assert_ptr_null(runtimes_find("cobol"));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("runtimes");
	TCase *tests = add_tcase(suite, "runtimes");

	tcase_add_tests(tests, files_of_runtimes, runtimes_are_found_by_name);
	return suite;
}
