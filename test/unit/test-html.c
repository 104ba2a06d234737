// SPDX-License-Identifier: LGPL-2.1-or-later
/* The page of report --html: names from a recording cannot harm it, and it shows the lifetimes. test/html opens
 * pages. */
#include <check.h>
#include <jansson.h>
#include <mmtrace/output.h>
#include <stdlib.h>
#include <string.h>

#include "support/suite.h"
#include "support/sample-report.h"

#define DATA_BEGIN "<script type=\"application/json\" id=\"data\">"
#define DATA_END "</script>"

static struct mmt_report page_report(void)
{
	struct mmt_report report = sample_report();

	report.lifetime_step_ns = 1000000000;
	return report;
}

static char *render(const struct mmt_report *report, const struct mmt_text_options *options)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(stream);
	ck_assert_ptr_null(mmt_report_write_html(report, options, stream));
	ck_assert_int_eq(fclose(stream), 0);
	return text;
}

static unsigned count(const char *text, const char *part)
{
	unsigned found = 0;

	for (; (text = strstr(text, part)) != NULL; text += strlen(part))
		found++;
	return found;
}

/* The data embedded in the page. */
static char *cut_data(const char *page)
{
	const char *begin = strstr(page, DATA_BEGIN), *end;

	ck_assert_ptr_nonnull(begin);
	begin += strlen(DATA_BEGIN);
	end = strstr(begin, DATA_END);
	ck_assert_ptr_nonnull(end);
	return strndup(begin, (size_t)(end - begin));
}

static json_t *load(const char *data)
{
	json_error_t error;
	json_t *root = json_loads(data, 0, &error);

	ck_assert_msg(root != NULL, "%s", error.text);
	return root;
}

static bool has_string(const json_t *root, const char *text)
{
	json_t *strings = json_object_get(root, "strings"), *string;
	size_t i;

	json_array_foreach(strings, i, string)
	{
		if (strcmp(json_string_value(string), text) == 0)
			return true;
	}
	return false;
}

static const char *const hostile[] = {
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]><img src=x onerror=alert(1)>",
    "&lt;&#60;\"'`",
    "line\xe2\x80\xa8separator\xe2\x80\xa9",
    "\xe2\x80\xaereversed",
    "\x1b[31m\x7f\xff\n",
    "@SCRIPT@ @DATA@ %s %n",
};

static const char *const shown[] = {
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]><img src=x onerror=alert(1)>",
    "&lt;&#60;\"'`",
    "line\\xe2\\x80\\xa8separator\\xe2\\x80\\xa9",
    "\\xe2\\x80\\xaereversed",
    "\\x1b[31m\\x7f\\xff\\x0a",
    "@SCRIPT@ @DATA@ %s %n",
};

#define HOSTILE_COUNT (sizeof(hostile) / sizeof(hostile[0]))

START_TEST(hostile_names)
{
	const char *name = hostile[_i];
	const struct mmt_frame frame = {
	    .kind = MMT_FRAME_NATIVE, .function = name, .module = name, .source_file = name};
	const struct mmt_frame *frames[] = {&frame};
	const struct mmt_thread thread = {.pid = 1, .tid = 1, .name = name};
	const struct mmt_process process = {.pid = 1, .name = name};
	const struct mmt_row row = {
	    .id = 1, .frames = frames, .frame_count = 1, .unfreed_bytes = 4096, .unfreed_count = 1};
	const struct mmt_part part = {
	    .thread = thread, .file = name, .unfreed_bytes = 4096, .unfreed_count = 1, .resident_bytes = MMT_UNKNOWN};
	const enum mmt_warning code = MMT_WARNING_MODULE_UNUSABLE;
	struct mmt_report report = page_report(), plain = page_report();
	char *page, *plain_page = render(&plain, &(struct mmt_text_options){0}), *data;
	json_t *root;

	report.input = report.command_line = name;
	report.completeness.warnings = &name;
	report.completeness.warning_codes = &code;
	report.completeness.warning_count = 1;
	report.processes = &process;
	report.rows = &row;
	report.row_count = 1;
	report.parts = &part;
	report.part_count = 1;
	page = render(&report, &(struct mmt_text_options){0});
	data = cut_data(page);
	data[strcspn(data, "\n")] = '\0'; /* it ends a line */
	for (const char *at = data; *at; at++)
		ck_assert_msg(*at >= ' ' && *at <= '~' && !strchr("<>&", *at), "%s: a raw %02x", name, *at & 0xff);
	ck_assert_uint_eq(count(page, "<script"), count(plain_page, "<script"));
	root = load(data);
	ck_assert_msg(has_string(root, shown[_i]), "%s is not among the strings of %s", shown[_i], data);
	json_decref(root);
	free(data);
	free(page);
	free(plain_page);
}
END_TEST

START_TEST(page_loads_nothing)
{
	struct mmt_report report = page_report();
	char *page = render(&report, &(struct mmt_text_options){0});

	ck_assert_int_eq(strncmp(page, "<!DOCTYPE html>", 15), 0);
	ck_assert_ptr_nonnull(strstr(page, "default-src 'none'; script-src 'sha256-"));
	ck_assert_ptr_null(strstr(page, "unsafe-inline"));
	ck_assert_ptr_null(strstr(page, "http:"));
	ck_assert_ptr_null(strstr(page, "https:"));
	ck_assert_ptr_null(strstr(page, "innerHTML"));
	/* The placeholders of the template are filled. */
	ck_assert_ptr_null(strstr(page, "_HASH@"));
	ck_assert_ptr_null(strstr(page, "@STYLE@"));
	free(page);
}
END_TEST

START_TEST(limited_rows)
{
	struct mmt_report report = page_report();
	char *page = render(&report, &(struct mmt_text_options){.limit = 1}), *data = cut_data(page);
	json_t *root = load(data);

	ck_assert_uint_eq(json_array_size(json_object_get(root, "stacks")), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(root, "leftOut")), 1);
	json_decref(root);
	free(data);
	free(page);
}
END_TEST

/* Reports of which there is no page. */
START_TEST(grouped_rows)
{
	struct mmt_report report = page_report();
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	struct mmt_error *error;

	if (_i)
		report.lifetime_step_ns = 0;
	else
		report.by = MMT_BY_MODULE;
	error = mmt_report_write_html(&report, &(struct mmt_text_options){0}, stream);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_INVALID);
	mmt_error_destroy(error);
	ck_assert_int_eq(fclose(stream), 0);
	free(text);
}
END_TEST

/* A stack that only the first recording has, and memory that it freed, are no change if both are of the same
 * process. */
START_TEST(diff_of_one_process)
{
	struct mmt_report before = page_report(), after = page_report();
	struct mmt_diff diff = {.before = &before, .after = &after, .between_ns = 1000000000};
	struct mmt_diff_entry unchanged[] = {{.before = &before.rows[0]}, {.before = &before.rows[1]}};
	static const char *const words[] = {"One process in both recordings:", "of different programs"};
	char *text, *data;
	size_t size;
	json_t *root;
	FILE *stream;

	after.row_count = 0;
	diff.relation = _i ? MMT_DIFF_OTHER_PROGRAM : MMT_DIFF_SAME_PROCESS;
	diff.unchanged = unchanged;
	diff.unchanged_count = _i ? before.row_count : 0;
	stream = open_memstream(&text, &size);
	ck_assert_ptr_null(mmt_diff_write_html(&diff, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	data = cut_data(text);
	root = load(data);
	ck_assert_str_eq(json_string_value(json_object_get(root, "relation")), mmt_diff_relation_name(diff.relation));
	ck_assert_ptr_nonnull(strstr(data, words[_i]));
	ck_assert_uint_eq(json_array_size(json_object_get(root, "stacks")), _i ? before.row_count : 0);
	json_decref(root);
	free(data);
	free(text);
}
END_TEST

/* As in text: a stack of the second recording that the first one has too has grown. The page's script treats
 * unmarked stacks as new. */
START_TEST(diff_of_one_process_marks_common_stacks)
{
	static const struct mmt_frame frame = {.kind = MMT_FRAME_UNKNOWN, .function = "f"};
	static const struct mmt_frame *const frames[] = {&frame};
	const struct mmt_row row = {
	    .id = 1, .frames = frames, .frame_count = 1, .unfreed_bytes = 4096, .unfreed_count = 1};
	const struct mmt_diff_entry entry = {
	    .change = _i ? MMT_CHANGE_NEW : MMT_CHANGE_GROWN, .before = _i ? NULL : &row, .after = &row, .bytes = 4096};
	struct mmt_report before = page_report(), after = page_report();
	struct mmt_diff diff = {
	    .before = &before, .after = &after, .relation = MMT_DIFF_SAME_PROCESS, .entries = &entry, .entry_count = 1};
	char *text, *data;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	before.rows = after.rows = &row;
	before.row_count = after.row_count = 1;
	ck_assert_ptr_null(mmt_diff_write_html(&diff, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	data = cut_data(text);
	ck_assert_int_eq(strstr(data, "inFirst") != NULL, !_i);
	free(data);
	free(text);
}
END_TEST

/* As in text, memory that an allocator keeps by design is not a leak of the program. */
START_TEST(verdicts_are_those_of_the_text)
{
	static const struct mmt_frame frame = {.kind = MMT_FRAME_UNKNOWN, .function = "f"};
	static const struct mmt_frame *const frames[] = {&frame};
	struct mmt_row row = {.id = 1,
			      .frames = frames,
			      .frame_count = 1,
			      .unfreed_bytes = 4096,
			      .unfreed_count = 1,
			      .verdict = _i ? MMT_ROW_KEEPS_GROWING : MMT_ROW_LEAK};
	struct mmt_report report = page_report();
	char *page, *data;
	json_t *root, *stack;

	report.rows = &row;
	report.row_count = 1;
	page = render(&report, &(struct mmt_text_options){0});
	data = cut_data(page);
	root = load(data);
	stack = json_array_get(json_object_get(root, "stacks"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(stack, "verdictWord")), _i ? "GROWING" : "LEAK");
	json_decref(root);
	free(data);
	free(page);
}
END_TEST

#define STEPS 400
#define PARTS 4
#define PART_COLUMNS 7 /* before its lifetimes */

/* More lifetimes than a page may have: steps become longer, and nothing is lost. */
START_TEST(long_steps)
{
	static struct mmt_lifetime lifetimes[STEPS * (STEPS + 1) / 2];
	struct mmt_part parts[PARTS];
	struct mmt_report report = page_report();
	size_t made = 0;
	uint64_t bytes = 0, mappings = 0, sum = 0, counted = 0;
	char *page, *data;
	json_t *root, *recording, *row;
	int64_t unit, steps;

	for (uint32_t i = 0; i < STEPS; i++) {
		for (uint32_t j = i; j < STEPS; j++, made++) {
			lifetimes[made] = (struct mmt_lifetime){i, j, 8192 * (1 + made % 3), 1 + made % 2};
			bytes += lifetimes[made].bytes;
			mappings += lifetimes[made].count;
		}
	}
	for (size_t i = 0; i < PARTS; i++)
		parts[i] = (struct mmt_part){.row = i % 2, .lifetimes = lifetimes, .lifetime_count = made};
	report.parts = parts;
	report.part_count = PARTS;
	report.lifetime_steps = STEPS;
	report.lifetime_step_ns = 1000;
	page = render(&report, &(struct mmt_text_options){0});
	data = cut_data(page);
	root = load(data);
	recording = json_array_get(json_object_get(root, "recordings"), 0);
	unit = json_integer_value(json_object_get(root, "unit"));
	steps = json_integer_value(json_object_get(recording, "stepCount"));
	ck_assert_int_eq(unit, 8192);
	ck_assert_int_lt(steps, STEPS);
	ck_assert_int_eq(steps * json_integer_value(json_object_get(recording, "stepNs")), STEPS * 1000);
	ck_assert_uint_lt(strlen(data), 1000000);
	row = json_array_get(json_object_get(recording, "parts"), 0);
	for (size_t i = PART_COLUMNS; i < json_array_size(row); i += 4) {
		ck_assert_int_lt(json_integer_value(json_array_get(row, i + 1)), steps);
		sum += (uint64_t)(json_integer_value(json_array_get(row, i + 2)) * unit);
		counted += (uint64_t)json_integer_value(json_array_get(row, i + 3));
	}
	ck_assert_uint_eq(sum, bytes);
	ck_assert_uint_eq(counted, mappings);
	json_decref(root);
	free(data);
	free(page);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("html");
	TCase *page = add_tcase(suite, "page");

	tcase_add_loop_test(page, hostile_names, 0, HOSTILE_COUNT);
	tcase_add_tests(page, page_loads_nothing, limited_rows);
	tcase_add_loop_test(page, grouped_rows, 0, 2);
	tcase_add_loop_test(page, diff_of_one_process, 0, 2);
	tcase_add_loop_test(page, diff_of_one_process_marks_common_stacks, 0, 2);
	tcase_add_loop_test(page, verdicts_are_those_of_the_text, 0, 2);
	tcase_add_test(page, long_steps);
	return suite;
}
