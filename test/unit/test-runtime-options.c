// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <string.h>

#include "support/suite.h"
#include "trace/format/format.h"
#include "trace/sections/runtime-options.h"
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

START_TEST(options_of_java)
{
	scan(TEXT("java\0-Xmx1536m\0-XX:MaxRAMPercentage=62.5\0-Xss512k\0-XX:+PreserveFramePointer\0"
		  "-XX:MaxDirectMemorySize=1G\0-jar\0-Xcomp.jar\0"),
	     TEXT("PATH=/bin\0JAVA_TOOL_OPTIONS=-Xcomp -XX:-PreserveFramePointer\0X"));
	ck_assert_uint_eq(found(OPTION_JAVA_HEAP), 1536ull << 20);
	ck_assert_uint_eq(found(OPTION_JAVA_RAM_PERCENTAGE), 62);
	ck_assert_uint_eq(found(OPTION_JAVA_THREAD_STACK), 512 << 10);
	ck_assert_uint_eq(found(OPTION_JAVA_DIRECT_MEMORY), 1 << 30);
	ck_assert_uint_eq(found(OPTION_JAVA_COMPILED), 1);
	ck_assert_uint_eq(found(OPTION_JAVA_FRAME_POINTERS), 1); /* the command line counts */
	ck_assert_uint_eq(options.values.count, 6);
	runtime_options_deinit(&options);
	/* This variable counts even more; and the last argument of several. */
	scan(TEXT("java\0-Xmx1g\0-Xmx2g\0-XX:+PreserveFramePointer\0"),
	     TEXT("_JAVA_OPTIONS=-XX:-PreserveFramePointer\0"));
	ck_assert_uint_eq(found(OPTION_JAVA_FRAME_POINTERS), 0);
	ck_assert_uint_eq(found(OPTION_JAVA_HEAP), 2ull << 30);
	runtime_options_deinit(&options);
}
END_TEST

START_TEST(options_of_others)
{
	scan(TEXT("node\0--perf-basic-prof\0--max-old-space-size=300\0-X\0perf\0--yjit-perf\0"),
	     TEXT("MONO_DEBUG=gdb,disable_omit_fp\0DOTNET_gcServer=1\0DOTNET_GCHeapHardLimit=0x10000\0"
		  "DOTNET_PerfMapEnabled=3\0MALLOC_ARENA_MAX=2\0GODEBUG=gctrace=1,madvdontneed=0\0"));
	ck_assert_uint_eq(found(OPTION_NODE_PERF_MAP), 1);
	ck_assert_uint_eq(found(OPTION_NODE_OLD_SPACE), 300 << 20);
	ck_assert_uint_eq(found(OPTION_PYTHON_PERF), 1);
	ck_assert_uint_eq(found(OPTION_RUBY_PERF), 1);
	ck_assert_uint_eq(found(OPTION_MONO_FRAME_POINTERS), 1);
	ck_assert_uint_eq(found(OPTION_DOTNET_SERVER_GC), 1);
	ck_assert_uint_eq(found(OPTION_DOTNET_HEAP_LIMIT), 0x10000);
	ck_assert_uint_eq(found(OPTION_DOTNET_PERF_MAP), 3);
	ck_assert_uint_eq(found(OPTION_ARENA_MAX), 2);
	ck_assert_uint_eq(found(OPTION_GO_DONTNEED), 0);
	runtime_options_deinit(&options);
}
END_TEST

/* Neither unknown options and values that are no numbers, nor known ones at another place. */
START_TEST(nothing_else)
{
	scan(TEXT("java\0-Xmxpassword\0-Xmx1gx\0-Xmx-5\0-Xmx\0-XX:+PreserveFramePointers\0-Dp=-Xmx1g\0--token=-Xcomp\0"
		  "-Xss99999999999999999999999999999999999999k\0-X\0perfect\0-X"),
	     TEXT("SECRET=-Xmx1g\0MALLOC_ARENA_MAX=s3cret\0MALLOC_ARENA_MAX\0-Xcomp\0=\0GODEBUG=madvdontneed\0"
		  "A_VARIABLE_WITH_A_NAME_THAT_IS_LONGER_THAN_ANY_KNOWN=1\0XMALLOC_ARENA_MAX=1\0"));
	ck_assert_uint_eq(options.values.count, 0);
	scan("", 0, "", 0);
	ck_assert_uint_eq(options.values.count, 0);
}
END_TEST

static struct mmt_error *decode(const struct buffer *buffer, struct runtime_options *decoded)
{
	struct bytes bytes = bytes_over(buffer->data, buffer->size);
	size_t room = 1 << 20;

	return runtime_options_decode(&bytes, &room, decoded);
}

START_TEST(section)
{
	static const struct option_value values[] = {
	    {.pid = 9, .option = OPTION_ARENA_MAX, .began_ns = 5, .value = 2},
	    {.pid = 9, .option = OPTIONS_READ, .began_ns = 5},
	    {.pid = 9, .option = OPTION_ARENA_MAX, .began_ns = 0, .value = 1},
	    {.pid = 7, .option = 999, .began_ns = 5, .value = UINT64_MAX},
	};
	struct runtime_options decoded = {0};
	struct buffer buffer;

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		ck_assert(vector_push(&options.values, values[i]));
	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	ck_assert_ptr_null(runtime_options_encode(&options, &buffer));
	ck_assert_ptr_null(decode(&buffer, &decoded));
	ck_assert_uint_eq(*runtime_options_find(&decoded, 9, 5, OPTION_ARENA_MAX), 2);
	ck_assert_uint_eq(*runtime_options_find(&decoded, 9, 0, OPTION_ARENA_MAX), 1);
	ck_assert_ptr_nonnull(runtime_options_find(&decoded, 9, 5, OPTIONS_READ));
	ck_assert_ptr_null(runtime_options_find(&decoded, 9, 0, OPTIONS_READ));
	ck_assert_ptr_null(runtime_options_find(&decoded, 8, 5, OPTION_ARENA_MAX));
	runtime_options_deinit(&decoded);
	buffer_deinit(&buffer);
	runtime_options_deinit(&options);
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
	ck_assert_ptr_null(sections_pack(&plain, 1, &buffer));
	error = decode(&buffer, &decoded);
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_nonnull(strstr(mmt_error_get_message(error), "not ascending"));
	ck_assert_uint_eq(decoded.values.count, 0);
	mmt_error_destroy(error);
	buffer_deinit(&buffer);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("runtime-options");
	TCase *tests = add_tcase(suite, "runtime-options");

	tcase_add_tests(tests, options_of_java, options_of_others, nothing_else, section, damaged_section);
	return suite;
}
