// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "support/suite.h"
#include "trace/format/format.h"
#include "trace/format/tracepoint.h"

#define COMMON                                                                                                         \
	"format:\n"                                                                                                    \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                                         \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"                                                   \
	"\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"

static char exit_format[] = "name: sys_exit_mmap\nID: 101\n" COMMON
			    "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n\nprint fmt: \"0x%lx\", REC->ret\n";
static char enter_format[] =
    "name: sys_enter_munmap\nID: 102\n" COMMON "\tfield:unsigned long addr;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:size_t len;\toffset:24;\tsize:8;\tsigned:0;\n\n"
    "print fmt: \"addr: 0x%08lx\", ((unsigned long)(REC->addr))\n";
static char task_format[] =
    "name: task_newtask\nID: 7\n" COMMON "\tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n"
    "\tfield:unsigned long clone_flags;\toffset:32;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n";

static struct tracepoint items[] = {
    {.system = "syscalls", .name = "sys_exit_mmap", .id = 101, .format = exit_format},
    {.system = "task", .name = "task_newtask", .id = 7, .format = task_format},
    {.system = "syscalls", .name = "sys_enter_munmap", .id = 102, .format = enter_format},
};
static const struct tracepoints three = {
    .items = {.items = items, .count = 3}, .header_page = "page", .header_event = "event"};

START_TEST(formats_round_trip)
{
	struct tracepoints read = {0};
	struct buffer buffer;
	struct bytes bytes;

	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	tracepoints_encode(&three, 4096, &buffer);
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_ptr_null(tracepoints_decode(&bytes, &read));
	ck_assert_uint_eq(read.items.count, 3);
	ck_assert_str_eq(read.header_page, "page");
	ck_assert_str_eq(read.header_event, "event");
	for (size_t i = 0; i < 3; i++) {
		const struct tracepoint *found = tracepoints_find(&read, items[i].id);

		ck_assert_ptr_nonnull(found);
		ck_assert_str_eq(found->system, items[i].system);
		ck_assert_str_eq(found->name, items[i].name);
		ck_assert_str_eq(found->format, items[i].format);
	}
	ck_assert_ptr_null(tracepoints_find(&read, 103));
	tracepoints_deinit(&read);
	buffer_deinit(&buffer);
}
END_TEST

START_TEST(truncated_formats_are_errors)
{
	struct buffer buffer;

	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	tracepoints_encode(&three, 4096, &buffer);
	/* After the formats there are 16 unused bytes (no kallsyms, printk formats, command lines). */
	for (size_t size = 0; size < buffer.size - 16; size++) {
		struct bytes bytes = bytes_over(buffer.data, size);
		struct tracepoints read = {0};
		struct mmt_error *error = tracepoints_decode(&bytes, &read);

		ck_assert_msg(error != NULL, "no error with %zu bytes of %zu", size, buffer.size);
		ck_assert_ptr_nonnull(strstr(error->message, "tracepoint formats: "));
		mmt_error_destroy(error);
	}
	buffer_deinit(&buffer);
}
END_TEST

START_TEST(fields_have_the_offsets_of_the_format)
{
	struct tracepoint_field field;

	ck_assert(tracepoint_field(&items[0], "ret", &field));
	ck_assert_uint_eq(field.offset, 16);
	ck_assert_uint_eq(field.size, 8);
	ck_assert(field.is_signed);
	ck_assert(tracepoint_field(&items[0], "common_pid", &field));
	ck_assert_uint_eq(field.offset, 4);
	ck_assert(tracepoint_field(&items[1], "clone_flags", &field));
	ck_assert_uint_eq(field.offset, 32);
	ck_assert(!field.is_signed);
	ck_assert(tracepoint_field(&items[1], "comm", &field));
	ck_assert_uint_eq(field.offset, 12);
	ck_assert_uint_eq(field.size, 16);
	ck_assert(!tracepoint_field(&items[0], "addr", &field));
}
END_TEST

START_TEST(arguments_follow_the_syscall_number)
{
	struct tracepoint_field fields[6];

	ck_assert_uint_eq(tracepoint_arguments(&items[2], fields), 2);
	ck_assert_uint_eq(fields[0].offset, 16);
	ck_assert_uint_eq(fields[1].offset, 24);
}
END_TEST

START_TEST(invalid_formats_have_no_fields)
{
	const struct tracepoint garbage = {.system = "a", .name = "b", .format = "name: b\nID: 1\nformat:\n\tfield"};
	struct tracepoint_field fields[6];

	ck_assert(!tracepoint_field(&garbage, "ret", fields));
	ck_assert_uint_eq(tracepoint_arguments(&garbage, fields), 0);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("tracepoint");
	TCase *cases = add_tcase(suite, "formats");

	tcase_add_tests(cases, formats_round_trip, truncated_formats_are_errors, fields_have_the_offsets_of_the_format,
			arguments_follow_the_syscall_number, invalid_formats_have_no_fields);
	return suite;
}
