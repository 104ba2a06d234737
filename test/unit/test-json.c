// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <jansson.h>
#include <mmtrace/output.h>
#include <mmtrace/trace.h>
#include <stdlib.h>
#include <string.h>

#include "support/suite.h"
#include "support/sample-report.h"

static json_t *load(char *text)
{
	json_error_t error;
	json_t *root = json_loads(text, 0, &error);

	ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
	free(text);
	return root;
}

static json_t *render(const struct mmt_report *report, const struct mmt_text_options *options)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(stream);
	ck_assert_ptr_null(mmt_report_write_json(report, options, stream));
	ck_assert_int_eq(fclose(stream), 0);
	return load(text);
}

static json_int_t number(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	ck_assert_msg(json_is_integer(value), "%s is no integer", key);
	return json_integer_value(value);
}

static const char *string(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	ck_assert_msg(json_is_string(value), "%s is no string", key);
	return json_string_value(value);
}

START_TEST(report_fields)
{
	struct mmt_report report = sample_report();
	struct mmt_row rows[2] = {sample_rows[0], sample_rows[1]};
	json_t *root, *row, *frame, *process;

	rows[0].original_bytes = 2147483648;
	report.rows = rows;
	report.ended_bytes = 157286400;
	report.left_out_process_count = 2;
	root = render(&report, &(struct mmt_text_options){0});
	ck_assert_int_eq(number(root, "ended_bytes"), 157286400);
	ck_assert_int_eq(number(root, "left_out_process_count"), 2);
	ck_assert_str_eq(string(root, "mmtrace"), "report");
	ck_assert_int_eq(number(root, "version"), MMT_JSON_VERSION);
	ck_assert_int_eq(number(root, "unfreed_bytes"), 1073754112);
	ck_assert(json_is_null(json_object_get(root, "resident_bytes")));
	ck_assert(json_is_null(json_object_get(root, "start_realtime_ns")));
	ck_assert_int_eq(number(json_object_get(root, "events"), "mmap"), 1333);
	ck_assert_int_eq(number(json_object_get(json_object_get(root, "completeness"), "stacks_by_end"), "entry"), 256);
	ck_assert_int_eq(number(json_object_get(root, "completeness"), "complete_stacks"), 256);
	ck_assert_int_eq(number(json_object_get(root, "completeness"), "doubtful_stacks"), 0);
	ck_assert_int_eq(number(json_object_get(root, "completeness"), "truncated_stacks"), 2);
	process = json_array_get(json_object_get(root, "processes"), 0);
	ck_assert_int_eq(number(process, "mismatch_bytes"), 0);
	ck_assert(json_is_null(json_object_get(process, "parent_pid")));
	ck_assert(json_is_null(json_object_get(process, "container_pid")));
	row = json_array_get(json_object_get(root, "groups"), 0);
	ck_assert_int_eq(number(row, "unfreed_count"), 256);
	ck_assert_int_eq(number(row, "original_bytes"), 2147483648);
	ck_assert_uint_eq(json_array_size(json_object_get(row, "trend")), MMT_TREND_POINTS);
	frame = json_array_get(json_object_get(row, "frames"), 1);
	ck_assert_str_eq(string(frame, "function"), "mmap_allocation");
	ck_assert_int_eq(number(frame, "source_line"), 18);
	frame = json_array_get(json_object_get(row, "frames"), 0);
	ck_assert_str_eq(string(frame, "address"), "0x7f0000001000");
	ck_assert(json_is_null(json_object_get(frame, "source_file")));
	json_decref(root);
}
END_TEST

START_TEST(fields_of_commits_and_threads)
{
	static const struct mmt_failure failure = {.call = MMT_COUNT_MMAP,
						   .error = 12,
						   .count = 3,
						   .asked_bytes = 4096,
						   .stack_end = MMT_STACK_END_NOT_RECORDED};
	static const struct mmt_thread_total total = {.thread = {1, 2, "maker"}, .unfreed_bytes = 4096};
	static const struct mmt_release release = {.bytes = 8192};
	struct mmt_report report = sample_report();
	struct mmt_row rows[2] = {sample_rows[0], sample_rows[1]};
	json_t *root, *row, *item;

	rows[0].name = "leak.so";
	rows[0].pattern = MMT_PATTERN_GC_HEAP;
	rows[0].class_bytes[MMT_CLASS_GC_RESERVE] = 77;
	rows[0].reserved_by = 2;
	rows[0].committed_before_bytes = 5;
	rows[0].peak_bytes = 6;
	rows[0].peak_ns = 7;
	rows[1].origin = 1;
	report.rows = rows;
	report.by = MMT_BY_MODULE;
	report.windowed = true;
	report.failures = &failure;
	report.thread_totals = &total;
	report.releases = &release;
	report.failure_count = report.thread_total_count = report.release_count = 1;
	root = render(&report, &(struct mmt_text_options){0});
	ck_assert_str_eq(string(root, "by"), "module");
	ck_assert(json_is_true(json_object_get(root, "windowed")));
	row = json_array_get(json_object_get(root, "groups"), 0);
	ck_assert_str_eq(string(row, "name"), "leak.so");
	ck_assert_str_eq(string(row, "pattern"), "gc-heap");
	ck_assert_int_eq(number(json_object_get(row, "class_bytes"), "gc-reserve"), 77);
	ck_assert_int_eq(number(row, "reserved_by"), 2);
	ck_assert_int_eq(number(row, "committed_before_bytes"), 5);
	ck_assert_int_eq(number(row, "peak_bytes"), 6);
	ck_assert_int_eq(number(row, "peak_ns"), 7);
	row = json_array_get(json_object_get(root, "groups"), 1);
	ck_assert_str_eq(string(row, "name"), "plain.so+0x1234");
	ck_assert(json_is_null(json_object_get(row, "pattern")));
	ck_assert(json_is_null(json_object_get(row, "reserved_by")));
	item = json_array_get(json_object_get(root, "failures"), 0);
	ck_assert_str_eq(string(item, "call"), "mmap");
	ck_assert_int_eq(number(item, "error"), 12);
	ck_assert_str_eq(string(item, "stack_end"), "not_recorded");
	item = json_array_get(json_object_get(root, "thread_totals"), 0);
	ck_assert_str_eq(string(json_object_get(item, "thread"), "name"), "maker");
	ck_assert_int_eq(number(item, "unfreed_bytes"), 4096);
	ck_assert_int_eq(number(json_array_get(json_object_get(root, "releases"), 0), "bytes"), 8192);
	json_decref(root);
}
END_TEST

/* Every figure of the table, with a value of its own. */
#define SET(name, ...) it->name = ++value;
#define CHECK(name, ...) ck_assert_int_eq(number(object, #name), ++value);

START_TEST(figures_of_the_table)
{
	struct mmt_process_readings readings = {.private_known = true};
	struct mmt_process process = {.name = "app", .checked = true, .readings = &readings};
	struct mmt_report report = sample_report();
	struct mmt_row row = sample_rows[0];
	struct mmt_cause cause = {0};
	json_int_t value = 0;
	json_t *root, *object;

	report.rows = &row;
	report.processes = &process;
	report.causes = &cause;
	report.row_count = report.process_count = report.cause_count = 1;
	report.growth = (struct mmt_growth){.by_pss = true, .parts_known = true, .verdict = MMT_VERDICT_TOO_SHORT};
	{
		struct mmt_row *it = &row;

		MMT_ROW_FIGURES(SET)
	}
	{
		struct mmt_cause *it = &cause;

		MMT_CAUSE_FIGURES(SET)
	}
	{
		struct mmt_process *it = &process;

		MMT_PROCESS_FIGURES(SET)
	}
	{
		struct mmt_process_readings *it = &readings;

		MMT_READINGS_FIGURES(SET)
	}
	{
		struct mmt_growth *it = &report.growth;

		MMT_GROWTH_FIGURES(SET)
	}
	{
		struct mmt_report *it = &report;

		MMT_REPORT_FIGURES(SET)
	}
	root = render(&report, &(struct mmt_text_options){0});
	value = 0;
	object = json_array_get(json_object_get(root, "groups"), 0);
	MMT_ROW_FIGURES(CHECK)
	object = json_array_get(json_object_get(root, "causes"), 0);
	MMT_CAUSE_FIGURES(CHECK)
	object = json_array_get(json_object_get(root, "processes"), 0);
	MMT_PROCESS_FIGURES(CHECK)
	MMT_READINGS_FIGURES(CHECK)
	object = json_object_get(root, "growth");
	MMT_GROWTH_FIGURES(CHECK)
	object = root;
	MMT_REPORT_FIGURES(CHECK)
	ck_assert_int_gt(value, 90);
	json_decref(root);
}
END_TEST

START_TEST(invalid_utf8)
{
	struct mmt_report report = sample_report();
	json_t *root = render(&report, &(struct mmt_text_options){0}), *row, *frame;

	row = json_array_get(json_object_get(root, "groups"), 1);
	ck_assert_str_eq(string(row, "stack_end"), "no_unwind_data");
	frame = json_array_get(json_object_get(row, "frames"), 0);
	ck_assert_str_eq(string(frame, "function"), "evil\x1b[31m\\xff\n");
	json_decref(root);
}
END_TEST

START_TEST(output_is_ascii)
{
	struct mmt_report report = sample_report();
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	report.command_line = "\xc2\x9b"
			      "31m \xe2\x80\xae";
	ck_assert_ptr_null(mmt_report_write_json(&report, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	ck_assert_ptr_nonnull(strstr(text, "\"\\u009B31m \\u202E\""));
	for (const char *byte = text; *byte; byte++)
		ck_assert_int_gt(*byte, 0);
	free(text);
}
END_TEST

START_TEST(limited_rows)
{
	struct mmt_report report = sample_report();
	json_t *root = render(&report, &(struct mmt_text_options){.limit = 1});

	ck_assert_uint_eq(json_array_size(json_object_get(root, "groups")), 1);
	ck_assert_int_eq(number(root, "group_count"), 2);
	ck_assert_int_eq(number(root, "hidden_count"), 1);
	ck_assert_int_eq(number(root, "hidden_bytes"), 12288);
	json_decref(root);
}
END_TEST

START_TEST(diff_fields)
{
	struct mmt_report before = sample_report(), after = sample_report();
	struct mmt_diff_entry entry = {.change = MMT_CHANGE_NEW,
				       .after = &sample_rows[0],
				       .bytes = 1073741824,
				       .committed_bytes = -4096,
				       .count = 256,
				       .after_bytes_per_second = 1048576.4};
	struct mmt_diff value = {.before = &before,
				 .after = &after,
				 .entries = &entry,
				 .entry_count = 1,
				 .bytes = 1073741824,
				 .rated = true};
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	json_t *root, *item;

	ck_assert_ptr_null(mmt_diff_write_json(&value, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	root = load(text);
	ck_assert_str_eq(string(root, "mmtrace"), "diff");
	item = json_array_get(json_object_get(root, "entries"), 0);
	ck_assert_str_eq(string(item, "change"), "new");
	ck_assert_int_eq(number(item, "after_bytes_per_second"), 1048576);
	ck_assert_int_eq(number(item, "committed_bytes"), -4096);
	ck_assert(json_is_null(json_object_get(item, "before")));
	ck_assert_int_eq(number(json_object_get(item, "after"), "unfreed_bytes"), 1073741824);
	json_decref(root);
}
END_TEST

/* A hostile recording can have any number. */
START_TEST(error_without_a_name)
{
	static const struct {
		int error;
		const char *words;
	} cases[] = {{12, "ENOMEM"}, {4000, "error 4000"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct mmt_traced_call call = {.name = "mmap", .error = cases[i].error};
		char *text = NULL;
		size_t size = 0;
		FILE *stream = open_memstream(&text, &size);
		json_t *root;

		mmt_traced_call_write_json(&call, false, stream);
		ck_assert_int_eq(fclose(stream), 0);
		root = load(text);
		ck_assert_str_eq(string(root, "error"), cases[i].words);
		json_decref(root);
	}
}
END_TEST

/* DEL too: the text of the document affects no terminal. */
START_TEST(no_control_character_in_the_text)
{
	struct mmt_report report = sample_report();
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	report.kernel = "a\x7f"
			"b\x01"
			"c\x7f";
	ck_assert_ptr_nonnull(stream);
	ck_assert_ptr_null(mmt_report_write_json(&report, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	ck_assert_ptr_nonnull(strstr(text, "\"a\\u007Fb\\u0001c\\u007F\""));
	ck_assert_ptr_null(strchr(text, '\x7f'));
	json_decref(load(text));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("json");
	TCase *cases = add_tcase(suite, "json");

	tcase_add_tests(cases, report_fields, figures_of_the_table, fields_of_commits_and_threads, invalid_utf8,
			output_is_ascii, limited_rows, diff_fields, error_without_a_name, no_control_character_in_the_text);
	return suite;
}
