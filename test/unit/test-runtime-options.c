// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "support/section.h"
#include "support/suite.h"
#include "trace/format/format.h"
#include "trace/sections/section-codec.h"
#include "trace/sections/sections.h"

#define PID 4711
#define BEGAN 1000
#define TEXT(text) (text), sizeof(text) /* further zero bytes are inside */

static struct runtime_options options;

static void scan(const char *arguments, size_t arguments_size, const char *variables, size_t variables_size)
{
	ck_assert(runtime_options_scan(&options, PID, BEGAN, arguments, arguments_size, variables, variables_size));
}

/* UINT64_MAX: it was not found. Each option is there only once. */
static uint64_t found(enum runtime_option option)
{
	uint64_t value = UINT64_MAX;

	for (size_t i = 0; i < options.values.count; i++) {
		if (options.values.items[i].option != (uint32_t)option)
			continue;
		ck_assert_uint_eq(value, UINT64_MAX);
		value = options.values.items[i].value;
	}
	return value;
}

/* Whether it is known which options were not given. */
static bool complete(void)
{
	return found(OPTIONS_READ) == 0;
}

START_TEST(options_of_java)
{
	scan(
	    TEXT(
		"/usr/bin/java\0-cp\0dir\0-Xcomp\0-XX:+PreserveFramePointer\0Main\0-Xint\0-XX:-PreserveFramePointer\0"),
	    TEXT("PATH=/bin\0"));
	ck_assert_uint_eq(found(OPTION_JAVA_COMPILED), 1);
	ck_assert_uint_eq(found(OPTION_JAVA_FRAME_POINTERS), 1);
	ck_assert(complete());
	ck_assert_uint_eq(options.values.count, 3);
	section_options.deinit(&options);
	/* The archive is the first argument that is not Java's. */
	scan(TEXT("java\0-jar\0a.jar\0-Xcomp\0@file\0"), TEXT("PATH=/bin\0"));
	ck_assert(complete());
	ck_assert_uint_eq(options.values.count, 1);
	section_options.deinit(&options);
	scan(TEXT("java\0-Xcomp\0-Xmixed\0Main\0"), TEXT("XJAVA_TOOL_OPTIONS=-Xcomp\0JAVA_TOOL_OPTIONSX=-Xcomp\0"));
	ck_assert_uint_eq(found(OPTION_JAVA_COMPILED), 0);
	section_options.deinit(&options);
}
END_TEST

/* Whatever the order of the environment. */
START_TEST(order_of_java)
{
	static const char tool[] = "JAVA_TOOL_OPTIONS=-Xint -XX:+PreserveFramePointer";
	static const char launcher[] = "JDK_JAVA_OPTIONS=-Xcomp\t-XX:-PreserveFramePointer";
	static const char last[] = "_JAVA_OPTIONS=-XX:-PreserveFramePointer";
	char variables[256];

	for (int turned = 0; turned < 2; turned++) {
		int size = snprintf(variables, sizeof(variables), "%s%c%s", turned ? launcher : tool, 0,
				    turned ? tool : launcher);

		scan(TEXT("java\0Main"), variables, (size_t)size + 1);
		ck_assert_uint_eq(found(OPTION_JAVA_COMPILED), 1);
		ck_assert_uint_eq(found(OPTION_JAVA_FRAME_POINTERS), 0);
		section_options.deinit(&options);
		scan(TEXT("java\0-XX:+PreserveFramePointer\0Main"), variables, (size_t)size + 1);
		ck_assert_uint_eq(found(OPTION_JAVA_FRAME_POINTERS), 1);
		section_options.deinit(&options);
	}
	scan(TEXT("java\0-XX:+PreserveFramePointer\0Main"), last, sizeof(last));
	ck_assert_uint_eq(found(OPTION_JAVA_FRAME_POINTERS), 0);
	section_options.deinit(&options);
}
END_TEST

/* A file may contain the option, and so may words in quotes. A program that loads the JVM chooses its options. */
START_TEST(unknown_options)
{
	static const struct {
		const char *program, *argument, *variable;
	} cases[] = {{"java", "@file", "A=1"},
		     {"java", "-XX:Flags=file", "A=1"},
		     {"java", "-XX:VMOptionsFile=file", "A=1"},
		     {"java", "-Xcomp", "JDK_JAVA_OPTIONS=@file"},
		     {"java", "-Xcomp", "JAVA_TOOL_OPTIONS=-Dx=1 -XX:VMOptionsFile=file"},
		     {"java", "-Xcomp", "_JAVA_OPTIONS='-XX:+PreserveFramePointer'"},
		     {"java", "-Xcomp", NULL},
		     {"jsvc", "-Xcomp", "A=1"},
		     {"/opt/java/server", "-Xcomp", "JDK_JAVA_OPTIONS=-Xcomp"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char arguments[64];
		int size = snprintf(arguments, sizeof(arguments), "%s%c%s%c-Xcomp%cMain", cases[i].program, 0,
				    cases[i].argument, 0, 0);

		scan(arguments, (size_t)size + 1, cases[i].variable,
		     cases[i].variable ? strlen(cases[i].variable) + 1 : 0);
		ck_assert_msg(!complete(), "case %zu", i);
		ck_assert_uint_eq(found(OPTION_JAVA_COMPILED), strcmp(cases[i].program, "java") ? UINT64_MAX : 1);
		section_options.deinit(&options);
	}
	scan(TEXT("jsvc\0Main"), TEXT("JAVA_TOOL_OPTIONS=-Xcomp"));
	ck_assert_uint_eq(found(OPTION_JAVA_COMPILED), 1);
	ck_assert(!complete());
	section_options.deinit(&options);
}
END_TEST

START_TEST(options_of_mono)
{
	scan(TEXT("mono\0-Xcomp\0a.exe"), TEXT("MONO_DEBUG=gdb,disable_omit_fp\0"));
	ck_assert_uint_eq(found(OPTION_MONO_FRAME_POINTERS), 1);
	ck_assert(complete());
	ck_assert_uint_eq(options.values.count, 2);
	section_options.deinit(&options);
}
END_TEST

START_TEST(options_of_node_and_python)
{
	static const struct {
		struct {
			const char *bytes;
			size_t size;
		} arguments, variables;
		uint64_t perf_map, frames, python; /* UINT64_MAX: not given */
	} cases[] = {
	    {{TEXT("/usr/bin/node\0--perf-basic-prof\0a.js\0--interpreted-frames-native-stack")},
	     {TEXT("")},
	     1,
	     UINT64_MAX,
	     UINT64_MAX},
	    {{TEXT("node\0-r\0a\0--interpreted_frames_native_stack\0a.js")}, {TEXT("")}, UINT64_MAX, 1, UINT64_MAX},
	    {{TEXT("npm\0--perf-basic-prof\0a")},
	     {TEXT("NODE_OPTIONS=--max-old-space-size=9 --perf-basic-prof-only-functions  "
		   "--interpreted-frames-native-stack")},
	     1,
	     1,
	     UINT64_MAX},
	    {{TEXT("node\0--perf-basic-profile")},
	     {TEXT("NODE_OPTIONS=perf-basic-prof")},
	     UINT64_MAX,
	     UINT64_MAX,
	     UINT64_MAX},
	    {{TEXT("python3.12\0-u\0-X\0perf\0a.py")}, {TEXT("")}, UINT64_MAX, UINT64_MAX, 1},
	    {{TEXT("python3\0-Xperf\0-c\0x")}, {TEXT("PYTHONPERFSUPPORT=0")}, UINT64_MAX, UINT64_MAX, 1},
	    {{TEXT("python3\0a.py\0-X\0perf")}, {TEXT("PYTHONPERFSUPPORT=yes")}, UINT64_MAX, UINT64_MAX, UINT64_MAX},
	    {{TEXT("/usr/bin/python3\0a.py")}, {TEXT("PYTHONPERFSUPPORT=0")}, UINT64_MAX, UINT64_MAX, 0},
	    {{TEXT("python3\0-W\0perf\0a.py")}, {TEXT("")}, UINT64_MAX, UINT64_MAX, UINT64_MAX},
	    {{TEXT("python3\0-W\0-Xperf\0a.py")}, {TEXT("")}, UINT64_MAX, UINT64_MAX, UINT64_MAX},
	    {{TEXT("python3\0-W\0-X\0perf\0a.py")}, {TEXT("")}, UINT64_MAX, UINT64_MAX, UINT64_MAX},
	    {{TEXT("node\0-r\0-r\0a.js\0--perf-basic-prof")}, {TEXT("")}, UINT64_MAX, UINT64_MAX, UINT64_MAX},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		scan(cases[i].arguments.bytes, cases[i].arguments.size, cases[i].variables.bytes,
		     cases[i].variables.size);
		ck_assert_msg(found(OPTION_NODE_PERF_MAP) == cases[i].perf_map &&
				  found(OPTION_NODE_INTERPRETED_FRAMES) == cases[i].frames &&
				  found(OPTION_PYTHON_PERF_MAP) == cases[i].python,
			      "case %zu", i);
		ck_assert(!complete());
		section_options.deinit(&options);
	}
}
END_TEST

/* The numbers of known variables, whatever the program; nothing that is no number. */
START_TEST(variables_with_numbers)
{
	scan(TEXT("server"), TEXT("MALLOC_ARENA_MAX=2\0DOTNET_PerfMapEnabled=0x3\0COMPlus_PerfMapEnabled=0"));
	ck_assert_uint_eq(found(OPTION_MALLOC_ARENA_MAX), 2);
	ck_assert_uint_eq(found(OPTION_DOTNET_PERF_MAP), 3);
	ck_assert_uint_eq(options.values.count, 2);
	section_options.deinit(&options);
	scan(TEXT("server"), TEXT("MALLOC_ARENA_MAX=2secret\0MALLOC_ARENA_MAXIMUM=7\0DOTNET_PerfMapEnabled="));
	ck_assert_uint_eq(options.values.count, 0);
	section_options.deinit(&options);
}
END_TEST

/* Neither unknown options, nor known ones at another place. */
START_TEST(nothing_else)
{
	scan(TEXT("java\0-Xmx1g\0-XX:+PreserveFramePointers\0-Dp=-Xcomp\0--token=-Xcomp\0-cp\0-Xcomp=\0-X"),
	     TEXT("SECRET=-Xcomp\0MONO_DEBUG\0-Xcomp\0=\0MONO_DEBUG_=disable_omit_fp\0JAVA_TOOL_OPTIONS\0"));
	ck_assert(complete());
	ck_assert_uint_eq(options.values.count, 1);
	section_options.deinit(&options);
	scan("", 0, "", 0);
	ck_assert_uint_eq(options.values.count, 0);
	/* A program may have no variables. */
	scan(TEXT("java\0Main"), "", 0);
	ck_assert(complete());
	section_options.deinit(&options);
}
END_TEST

static struct mmt_error *decode(const struct buffer *buffer, struct runtime_options *decoded)
{
	struct bytes bytes = bytes_over(buffer->data, buffer->size);
	size_t room = 1 << 20;

	return section_read(&section_options, &bytes, &room, decoded);
}

START_TEST(section)
{
	static const struct option_value values[] = {
	    {.pid = 9, .option = OPTION_JAVA_COMPILED, .began_ns = 5, .value = 2},
	    {.pid = 9, .option = OPTIONS_READ, .began_ns = 5},
	    {.pid = 9, .option = OPTION_JAVA_COMPILED, .began_ns = 0, .value = 1},
	    {.pid = 7, .option = 999, .began_ns = 5, .value = UINT64_MAX},
	    {.pid = 9, .option = OPTIONS_READ, .began_ns = 5}, /* it was read twice */
	};
	struct runtime_options decoded = {0};
	struct buffer buffer;

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		ck_assert(vector_push(&options.values, values[i]));
	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	ck_assert_ptr_null(runtime_options_encode(&options, &buffer));
	ck_assert_ptr_null(decode(&buffer, &decoded));
	ck_assert_uint_eq(decoded.values.count, 4);
	ck_assert_uint_eq(*runtime_options_find(&decoded, 9, 5, OPTION_JAVA_COMPILED), 2);
	ck_assert_uint_eq(*runtime_options_find(&decoded, 9, 0, OPTION_JAVA_COMPILED), 1);
	ck_assert_ptr_nonnull(runtime_options_find(&decoded, 9, 5, OPTIONS_READ));
	ck_assert_ptr_null(runtime_options_find(&decoded, 9, 0, OPTIONS_READ));
	ck_assert_ptr_null(runtime_options_find(&decoded, 8, 5, OPTION_JAVA_COMPILED));
	section_options.deinit(&decoded);
	buffer_deinit(&buffer);
	section_options.deinit(&options);
}
END_TEST

START_TEST(damaged_section)
{
	struct runtime_options decoded = {0};
	struct buffer plain, buffer;
	struct mmt_error *error;

	/* Two equal options. */
	buffer_init(&plain, LIMIT_SECTION_BYTES);
	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	buffer_put_u32(&plain, 2);
	for (int i = 0; i < 12; i++)
		buffer_put_u32(&plain, 0);
	ck_assert_ptr_null(pack_section(&plain, 1, &buffer));
	error = decode(&buffer, &decoded);
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_nonnull(strstr(error->message, "not ascending"));
	ck_assert_uint_eq(decoded.values.count, 0);
	mmt_error_destroy(error);
	buffer_deinit(&buffer);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("runtime-options");
	TCase *tests = add_tcase(suite, "runtime-options");

	tcase_add_tests(tests, options_of_java, order_of_java, unknown_options, options_of_mono,
			options_of_node_and_python, variables_with_numbers, nothing_else, section, damaged_section);
	return suite;
}
