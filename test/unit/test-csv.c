// SPDX-License-Identifier: LGPL-2.1-or-later
/* CSV: names in a recording can neither break a record nor become formulas. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <mmtrace/output.h>

#include "support/suite.h"
#include "support/sample-report.h"

static char *render(const struct mmt_report *report)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(stream);
	ck_assert_ptr_null(mmt_report_write_csv(report, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	return text;
}

static char *render_named(const char *name)
{
	struct mmt_report report = sample_report();
	struct mmt_row row = sample_rows[0];

	row.name = name;
	row.frame_count = 0;
	report.rows = &row;
	report.row_count = 1;
	return render(&report);
}

START_TEST(hostile_names)
{
	static const char *const names[][2] = {
	    {"=cmd|' /C calc'!A0", ",\"'=cmd|' /C calc'!A0\","},
	    {"-[NSData bytes]", ",\"'-[NSData bytes]\","},
	    {"a,\"b\"", ",\"a,\"\"b\"\"\","},
	    {"a\r\nb\x1b[31m", ",\"a\\x0d\\x0ab\\x1b[31m\","},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char *text = render_named(names[i][0]);

		ck_assert_msg(strstr(text, names[i][1]) != NULL, "%s", text);
		free(text);
	}
}
END_TEST

/* Semicolons separate frames; code without a name is shown by its address. */
START_TEST(frames_have_names_or_addresses)
{
	const struct mmt_frame inner = {.kind = MMT_FRAME_NATIVE, .module = "a.so", .module_offset = 0x12},
			       outer = {.kind = MMT_FRAME_JIT, .function = "Main(LList;I)"};
	const struct mmt_frame *const frames[] = {&inner, &outer};
	struct mmt_report report = sample_report();
	struct mmt_row row = sample_rows[0];
	char *text;

	row.frames = frames;
	row.frame_count = 2;
	row.origin = 0;
	row.identity = 0xab;
	report.rows = &row;
	report.row_count = 1;
	text = render(&report);
	ck_assert_msg(strstr(text, "\r\n1,\"a.so+0x12\",") != NULL, "%s", text);
	ck_assert_msg(strstr(text, ",\"Main(LList:I);a.so+0x12\",\"00000000000000ab\",,,,,,,,\r\n") != NULL, "%s",
		      text);
	free(text);
	row.origin = 1;
	text = render(&report);
	ck_assert_msg(strstr(text, "\r\n1,\"Main(LList;I)\",") != NULL, "%s", text);
	free(text);
}
END_TEST

START_TEST(each_step_is_one_record)
{
	static const struct mmt_step steps[] = {
	    {.to_ns = 3500000000,
	     .unfreed_bytes = 7,
	     .committed_bytes = 5,
	     .reserved_bytes = 2,
	     .process_resident_bytes = MMT_UNKNOWN,
	     .heap_in_use_bytes = MMT_UNKNOWN,
	     .heap_free_bytes = MMT_UNKNOWN},
	    {.to_ns = 4000000000, .unfreed_bytes = 9, .committed_bytes = 9, .process_resident_bytes = 4096},
	    /* The end of the recording is the end of its last step. */
	    {.to_ns = 4000000000,
	     .unfreed_bytes = 11,
	     .committed_bytes = 11,
	     .process_resident_bytes = 8192,
	     .heap_in_use_bytes = 512,
	     .heap_free_bytes = 64},
	};
	struct mmt_report report = sample_report();
	char *text;

	report.start_ns = 1000000000;
	report.start_realtime_ns = 0;
	report.every_ns = 500000000;
	report.steps = steps;
	report.step_count = 3;
	report.row_count = 0;
	text = render(&report);
	ck_assert_str_eq(
	    text,
	    "seconds,time,rss_bytes,committed_bytes,unfreed_bytes,reserved_bytes,heap_in_use_bytes,heap_free_bytes\r\n"
	    "2.500000000,,,5,7,2,,\r\n"
	    "3.000000000,,8192,11,11,0,512,64\r\n");
	free(text);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("csv");
	TCase *tcase = add_tcase(suite, "csv");

	tcase_add_tests(tcase, hostile_names, frames_have_names_or_addresses);
	tcase_add_test(tcase, each_step_is_one_record);
	return suite;
}
