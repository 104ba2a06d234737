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

/* Only versions that can write a perf map are advised to. */
START_TEST(versions_of_python)
{
	static const struct {
		const char *path;
		bool writes_maps;
	} cases[] = {{"/usr/bin/python3.11", false},
		     {"/usr/lib/libpython3.9.so.1.0", false},
		     {"/usr/bin/python3.12", true},
		     {"/usr/lib/libpython3.13.so.1.0", true},
		     {"/usr/bin/python3", true}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct runtime *runtime = runtimes_of_file(cases[i].path);

		ck_assert_str_eq(runtime->name, "python");
		ck_assert_int_eq(strstr(runtime->interpreted_advice, "start it with -X perf") != NULL,
				 cases[i].writes_maps);
		ck_assert_int_eq(strstr(runtime->advice, "start it with -X perf") != NULL, cases[i].writes_maps);
		ck_assert_str_eq(runtime->loop, "_PyEval_EvalFrameDefault");
	}
}
END_TEST

START_TEST(runtimes_are_found_by_name)
{
	ck_assert_str_eq(runtimes_find("java")->label, "Java");
	ck_assert_ptr_null(runtimes_find("cobol"));
}
END_TEST

/* Options that a program has are not advised. */
START_TEST(options_that_are_set)
{
	static const struct {
		const char *runtime;
		enum runtime_option options[2];
		bool perf_map, interpreted;
	} cases[] = {
	    {"dotnet", {OPTION_DOTNET_PERF_MAP}, true, false},
	    {"dotnet", {OPTION_NODE_PERF_MAP}, false, false},
	    {"node", {OPTION_NODE_PERF_MAP}, true, false},
	    {"node", {OPTION_NODE_INTERPRETED_FRAMES}, false, false},
	    {"node", {OPTION_NODE_PERF_MAP, OPTION_NODE_INTERPRETED_FRAMES}, true, true},
	    {"python", {OPTION_PYTHON_PERF_MAP}, true, true},
	    {"java", {OPTION_JAVA_COMPILED}, false, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct runtime *runtime = runtimes_find(cases[i].runtime);
		struct reader_metadata metadata = {0};

		for (unsigned value = 0; value < 2; value++) {
			for (unsigned j = 0; j < 2 && cases[i].options[j]; j++)
				ck_assert(vector_push(
				    &metadata.options.values,
				    ((struct option_value){
					.pid = 7, .option = cases[i].options[j], .began_ns = 5, .value = value})));
			for (unsigned interpreted = 0; interpreted < 2; interpreted++) {
				bool expected = value && (interpreted ? cases[i].interpreted : cases[i].perf_map);

				ck_assert_msg((runtimes_names_option(runtime, interpreted, &metadata, 7, 5) != NULL) ==
						  expected,
					      "case %zu, %u, %u", i, value, interpreted);
				ck_assert_ptr_null(runtimes_names_option(runtime, interpreted, &metadata, 7, 4));
				ck_assert_ptr_null(runtimes_names_option(runtime, interpreted, &metadata, 8, 5));
			}
			section_options.deinit(&metadata.options);
		}
	}
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("runtimes");
	TCase *tests = add_tcase(suite, "runtimes");

	tcase_add_tests(tests, files_of_runtimes, versions_of_python, runtimes_are_found_by_name, options_that_are_set);
	return suite;
}
