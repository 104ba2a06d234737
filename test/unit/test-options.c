// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdint.h>
#include <stdlib.h>

/* The tool is not a library: its parser is compiled in. */
#include "../../cmd/cli/message.c"
#include "../../cmd/cli/options.c"
#include "support/suite.h"

static const char *const usage[] = {"[OPTIONS] FILE", NULL};
static const struct command command = {.name = "test", .usage = usage, .about = "About.", .examples = usage + 1};

struct settings {
	bool flag, size_given;
	const char *file;
	uint64_t size, duration;
	size_t count;
	int choice;
	struct value_pids pids;
};

static const char *const words[] = {"red", "green", NULL};

static int parse(struct settings *settings, enum options_order order, char **argv, int *first_ret)
{
	const struct option_entry table[] = {
	    OPTION('f', "flag", value_flag, &settings->flag, NULL, "a flag"),
	    OPTION('o', "output", value_string, &settings->file, "FILE", "a file"),
	    OPTION('s', "size", value_size, &settings->size, "SIZE", "a size", .given = &settings->size_given),
	    OPTION(0, "duration", value_duration, &settings->duration, "TIME", "a time"),
	    OPTION('n', "limit", value_count, &settings->count, "N", "a number"),
	    OPTION(0, "colour", NULL, &settings->choice, "red|green", "a colour", .alias = "color", .choices = words),
	    OPTION('p', "pid", value_pids, &settings->pids, "PID[,PID...]", "processes"),
	    OPTIONS_END,
	};
	int argc = 0;

	while (argv[argc])
		argc++;
	return options_parse(&command, table, order, argc, argv, first_ret);
}

#define ARGUMENTS(...)                                                                                                 \
	(char *[])                                                                                                     \
	{                                                                                                              \
		"test", __VA_ARGS__, NULL                                                                              \
	}

START_TEST(every_kind_of_option)
{
	struct settings settings = {0};
	char **argv = ARGUMENTS("-f", "--output=x.data", "-s", "4K", "--duration", "1.5s", "-n3", "--color", "green",
				"-p", "7,8,7", "--pid", " 9 8\n7 , 8\n", "rest");
	int first = 0;

	ck_assert_int_lt(parse(&settings, OPTIONS_ANYWHERE, argv, &first), 0);
	ck_assert(settings.flag && settings.size_given);
	ck_assert_str_eq(settings.file, "x.data");
	ck_assert_uint_eq(settings.size, 4096);
	ck_assert_uint_eq(settings.duration, 1500000000);
	ck_assert_uint_eq(settings.count, 3);
	ck_assert_int_eq(settings.choice, 1);
	ck_assert_uint_eq(settings.pids.count, 3);
	ck_assert_int_eq(settings.pids.items[2], 9);
	ck_assert_str_eq(argv[first], "rest");
	free(settings.pids.items);
}
END_TEST

START_TEST(order_of_arguments)
{
	struct settings settings = {0};
	char **first_word = ARGUMENTS("-f", "ls", "-s", "1");
	char **anywhere = ARGUMENTS("a", "-f", "b");
	char **dashes = ARGUMENTS("--", "-f");
	int first = 0;

	ck_assert_int_lt(parse(&settings, OPTIONS_FIRST, first_word, &first), 0);
	ck_assert_int_eq(first, 2);
	ck_assert(settings.flag && !settings.size_given);

	settings = (struct settings){0};
	ck_assert_int_lt(parse(&settings, OPTIONS_ANYWHERE, anywhere, &first), 0);
	ck_assert(settings.flag);
	ck_assert_str_eq(anywhere[first], "a");
	ck_assert_str_eq(anywhere[first + 1], "b");

	settings = (struct settings){0};
	ck_assert_int_lt(parse(&settings, OPTIONS_FIRST, dashes, &first), 0);
	ck_assert(!settings.flag);
	ck_assert_str_eq(dashes[first], "-f");
}
END_TEST

static const struct {
	const char *word, *value;
} refused[] = {
    {"--nosuch", NULL},	    {"-x", NULL},      {"--flag=1", NULL},  {"--size", NULL},	  {"--size", "4X"},
    {"--size", "-1"},	    {"--size", ""},    {"--duration", "0"}, {"--duration", "1w"}, {"--limit", "1.5"},
    {"--colour", "purple"}, {"--pid", "0"},    {"--pid", "1,"},	    {"--pid", "1,,2"},	  {"--pid", "99999999999"},
    {"-n", NULL},	    {"--limit", " 1"},
};

START_TEST(invalid_options_are_refused)
{
	struct settings settings = {0};
	char *argv[] = {"test", (char *)refused[_i].word, (char *)refused[_i].value, NULL};
	int first = 0;

	ck_assert_int_eq(parse(&settings, OPTIONS_ANYWHERE, argv, &first), EXIT_UNUSABLE);
	free(settings.pids.items);
}
END_TEST

START_TEST(sizes)
{
	uint64_t size = 0;

	ck_assert_ptr_null(value_size("0", &size));
	ck_assert_uint_eq(size, 0);
	ck_assert_ptr_null(value_size("3GiB", &size));
	ck_assert_uint_eq(size, 3221225472u);
	ck_assert_ptr_null(value_size("2mb", &size));
	ck_assert_uint_eq(size, 2097152);
	ck_assert_ptr_nonnull(value_size("99999999999T", &size));
	ck_assert_ptr_nonnull(value_size("99999999999999999999", &size));
	ck_assert_ptr_nonnull(value_size("1KK", &size));
	ck_assert_ptr_nonnull(value_size("1.5", &size));
	ck_assert_ptr_nonnull(value_size("1.K", &size));
	ck_assert_ptr_nonnull(value_size(".K", &size));
	ck_assert_ptr_nonnull(value_size("1.5.5K", &size));
	ck_assert_uint_eq(size, 2097152);
	ck_assert_ptr_null(value_size(".5K", &size));
	ck_assert_uint_eq(size, 512);
	ck_assert_ptr_null(value_size("1.5G", &size));
	ck_assert_uint_eq(size, 1610612736);
	ck_assert_ptr_null(value_size("0.999999999T", &size));
	ck_assert_uint_eq(size, 1099510528264);
	ck_assert_ptr_null(value_size("16777215.5T", &size));
	ck_assert_uint_eq(size, UINT64_MAX - (1ull << 39) + 1);
}
END_TEST

START_TEST(durations)
{
	uint64_t ns = 0;

	ck_assert_ptr_null(value_duration("500ms", &ns));
	ck_assert_uint_eq(ns, 500000000);
	ck_assert_ptr_null(value_duration("2m", &ns));
	ck_assert_uint_eq(ns, 120000000000u);
	ck_assert_ptr_null(value_duration("1h", &ns));
	ck_assert_uint_eq(ns, 3600000000000u);
	ck_assert_ptr_null(value_duration("0.25h", &ns));
	ck_assert_uint_eq(ns, 900000000000u);
	ck_assert_ptr_null(value_duration("10", &ns));
	ck_assert_uint_eq(ns, 10000000000u);
	ck_assert_ptr_nonnull(value_duration("99999999999999h", &ns));
	ck_assert_ptr_nonnull(value_duration(".s", &ns));
	ck_assert_ptr_nonnull(value_duration("", &ns));
	ck_assert_ptr_null(value_duration(".5s", &ns));
	ck_assert_uint_eq(ns, 500000000);
	ck_assert_ptr_null(value_duration(".2", &ns));
	ck_assert_uint_eq(ns, 200000000);
	ck_assert_ptr_nonnull(value_duration("1.s", &ns));
	ck_assert_ptr_null(value_duration("0.999999999h", &ns));
	ck_assert_uint_eq(ns, 3599996400000u);
}
END_TEST

static const struct {
	const char *text;
	enum mmt_timestamp_kind kind;
	uint64_t ns;
} timestamps[] = {
    {"10s", MMT_TIMESTAMP_SINCE_START, 10000000000},
    {"0", MMT_TIMESTAMP_SINCE_START, 0},
    {"0.5", MMT_TIMESTAMP_SINCE_START, 500000000},
    {"-500ms", MMT_TIMESTAMP_BEFORE_END, 500000000},
    {"-0s", MMT_TIMESTAMP_BEFORE_END, 0},
    {"@7900970165844", MMT_TIMESTAMP_CLOCK, 7900970165844},
    {"10:12", MMT_TIMESTAMP_TIME_OF_DAY, 36720000000000},
    {"10:12:03", MMT_TIMESTAMP_TIME_OF_DAY, 36723000000000},
    {"2025-11-21T10:12:03", MMT_TIMESTAMP_REALTIME, 1763719923000000000},
    {"2025-11-21 10:12", MMT_TIMESTAMP_REALTIME, 1763719920000000000},
};

START_TEST(timestamps_are_read)
{
	struct mmt_timestamp timestamp = {0};

	setenv("TZ", "UTC", 1);
	ck_assert_ptr_null(value_timestamp(timestamps[_i].text, &timestamp));
	ck_assert_int_eq(timestamp.kind, timestamps[_i].kind);
	ck_assert_uint_eq(timestamp.ns, timestamps[_i].ns);
}
END_TEST

static const char *const no_timestamps[] = {"",
					    "-",
					    "@",
					    "@-1",
					    "10x",
					    "25:00",
					    "10:60",
					    "10:12:60",
					    "10:12x",
					    "10:",
					    "2025-11-21",
					    "2025-13-01T10:00",
					    "2025-02-30T10:00",
					    "1969-01-01T10:00"};

START_TEST(timestamps_are_refused)
{
	struct mmt_timestamp timestamp = {.ns = 7};

	ck_assert_ptr_nonnull(value_timestamp(no_timestamps[_i], &timestamp));
	ck_assert_uint_eq(timestamp.ns, 7);
}
END_TEST

START_TEST(lists_of_classes)
{
	uint32_t classes = 0;

	ck_assert_ptr_null(value_classes("heap,thread-stack", &classes));
	ck_assert_uint_eq(classes, 1u << MMT_CLASS_HEAP | 1u << MMT_CLASS_THREAD_STACK);
	ck_assert_ptr_nonnull(value_classes("heap,", &classes));
	ck_assert_ptr_nonnull(value_classes("hea", &classes));
	ck_assert_ptr_nonnull(value_classes("", &classes));
}
END_TEST

START_TEST(misspelt_options_get_a_suggestion)
{
	ck_assert_uint_eq(value_distance("record", "record"), 0);
	ck_assert_uint_eq(value_distance("recrod", "record"), 1);
	ck_assert_uint_eq(value_distance("limt", "limit"), 1);
	ck_assert_uint_eq(value_distance("", "dump"), 4);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("options");
	TCase *cases = add_tcase(suite, "options");

	tcase_add_tests(cases, every_kind_of_option, order_of_arguments);
	tcase_add_loop_test(cases, invalid_options_are_refused, 0, (int)(sizeof(refused) / sizeof(refused[0])));
	tcase_add_tests(cases, sizes, durations);
	tcase_add_loop_test(cases, timestamps_are_read, 0, (int)(sizeof(timestamps) / sizeof(timestamps[0])));
	tcase_add_loop_test(cases, timestamps_are_refused, 0, (int)(sizeof(no_timestamps) / sizeof(no_timestamps[0])));
	tcase_add_tests(cases, lists_of_classes, misspelt_options_get_a_suggestion);
	return suite;
}
