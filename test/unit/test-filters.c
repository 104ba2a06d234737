// SPDX-License-Identifier: LGPL-2.1-or-later
/* --focus and --ignore: which memory their patterns select. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/filters.h"
#include "support/suite.h"

static const struct mmt_frame frames[] = {
    {.function = "mmap", .raw_function = "mmap", .module = "libc.so.6", .module_path = "/usr/lib/libc.so.6"},
    {.function = "cache::grow(int)",
     .raw_function = "_ZN5cache4growEi",
     .module = "server",
     .module_path = "/opt/server"},
    {.function = NULL, .module = NULL},
    {.function = "Page::operator=(Page const&)", .module = "server", .module_path = "/opt/server"},
};
static const struct mmt_frame *const stack[] = {&frames[0], &frames[1], &frames[2], &frames[3]};
static const struct filter_subject subject = {.frames = stack,
					      .frame_count = 4,
					      .memory_class = MMT_CLASS_FILE,
					      .file = "/srv/data/pages.db (deleted)",
					      .thread = "worker-7",
					      .tid = 4711};

static const struct selecting {
	const char *focus[4], *ignore[3];
	bool selected;
} cases[] = {
    {{0}, {0}, true},
    /* A pattern without a key matches a function, demangled or not, or a module. */
    {{"mmap"}, {0}, true},
    {{"grow"}, {0}, false},
    {{"*grow*"}, {0}, true},
    {{"_ZN5cache4growEi"}, {0}, true},
    {{"libc.so*"}, {0}, true},
    {{"function=server"}, {0}, false},
    {{"module=server"}, {0}, true},
    {{"module=/opt/*"}, {0}, true},
    {{"module=mmap"}, {0}, false},
    {{"function=Page::operator=(*"}, {0}, true},
    /* What is mapped, and by which thread. */
    {{"file=pages.db"}, {0}, true},
    {{"file=/srv/data/*"}, {0}, true},
    {{"file=/srv/data/pages.db (deleted)"}, {0}, true},
    {{"file=data"}, {0}, false},
    {{"class=file"}, {0}, true},
    {{"class=heap"}, {0}, false},
    {{"class=*"}, {0}, true},
    {{"thread=worker-*"}, {0}, true},
    {{"thread=4711"}, {0}, true},
    {{"thread=471*"}, {0}, false},
    /* OR within a key, AND between keys. */
    {{"nothing", "mmap"}, {0}, true},
    {{"class=heap", "class=file"}, {0}, true},
    {{"mmap", "class=heap"}, {0}, false},
    {{"mmap", "class=file", "thread=other"}, {0}, false},
    {{"function=mmap", "module=server"}, {0}, true},
    {{"mmap", "function=nothing"}, {0}, false},
    /* --ignore wins. */
    {{0}, {"mmap"}, false},
    {{0}, {"nothing"}, true},
    {{"mmap"}, {"thread=worker-7"}, false},
    {{"mmap"}, {"nothing", "class=file"}, false},
    {{"function=mmap"}, {"function=mmap"}, false},
};

static struct mmt_report_options options_of(const struct selecting *selecting)
{
	struct mmt_report_options options = {.focus = selecting->focus, .ignore = selecting->ignore};

	while (selecting->focus[options.focus_count])
		options.focus_count++;
	while (options.ignore_count < 3 && selecting->ignore[options.ignore_count])
		options.ignore_count++;
	return options;
}

START_TEST(patterns_select)
{
	struct mmt_report_options options = options_of(&cases[_i]);
	struct filters filters = {0};

	ck_assert_ptr_null(filters_parse(&options, &filters));
	ck_assert_int_eq(filters.items.count > 0, options.focus_count + options.ignore_count > 0);
	ck_assert_msg(filters_select(&filters, &subject) == cases[_i].selected, "case %d: focus %s", _i,
		      cases[_i].focus[0] ? cases[_i].focus[0] : "-");
	vector_deinit(&filters.items);
}
END_TEST

/* Lost calls and memory that no thread mapped have neither a thread nor a stack. */
START_TEST(memory_without_thread_or_stack)
{
	const struct filter_subject unknown = {.memory_class = MMT_CLASS_ANON};
	static const struct selecting unmatched[] = {
	    {{"*"}, {0}, false}, {{"file=*"}, {0}, false}, {{"thread=*"}, {0}, false}, {{0}, {"thread=*"}, true}};

	for (size_t i = 0; i < sizeof(unmatched) / sizeof(*unmatched); i++) {
		struct mmt_report_options options = options_of(&unmatched[i]);
		struct filters filters = {0};

		ck_assert_ptr_null(filters_parse(&options, &filters));
		ck_assert_int_eq(filters_select(&filters, &unknown), unmatched[i].selected);
		vector_deinit(&filters.items);
	}
}
END_TEST

/* A failed call mapped nothing: neither class nor file excludes it. */
START_TEST(failed_calls_by_stack)
{
	static const struct selecting selecting = {{"mmap", "class=heap"}, {"thread=*"}, true},
				      other = {{"nothing", "class=file"}, {0}, false};
	const struct filter_subject call = {.frames = stack, .frame_count = 4, .frames_only = true};
	struct mmt_report_options options = options_of(&selecting);
	struct filters filters = {0};

	ck_assert_ptr_null(filters_parse(&options, &filters));
	ck_assert(filters.by_frames && filters.by_threads);
	ck_assert(filters_select(&filters, &call));
	vector_deinit(&filters.items);
	options = options_of(&other);
	ck_assert_ptr_null(filters_parse(&options, &filters));
	ck_assert(!filters_select(&filters, &call));
	vector_deinit(&filters.items);
}
END_TEST

static const struct {
	struct selecting selecting;
	const char *message;
} refused[] = {
    {{{"clas=anon"}, {0}, false}, "--focus: 'clas' in 'clas=anon' is not function"},
    {{{0}, {"operator=(int)"}, false}, "write 'function=operator=(int)'"},
    {{{"class=annon"}, {0}, false}, "no class matches 'annon'"},
    {{{0}, {"class="}, false}, "--ignore: 'class=' has no pattern"},
    {{{""}, {0}, false}, "has no pattern"},
    {{{"=x"}, {0}, false}, "is not function"},
};

START_TEST(invalid_patterns_are_refused)
{
	struct mmt_report_options options = options_of(&refused[_i].selecting);
	struct filters filters = {0};
	struct mmt_error *error = filters_parse(&options, &filters);

	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_INVALID);
	ck_assert_msg(strstr(error->message, refused[_i].message) != NULL, "%s", error->message);
	mmt_error_destroy(error);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("filters");
	TCase *tcase = add_tcase(suite, "filters");

	tcase_add_loop_test(tcase, patterns_select, 0, sizeof(cases) / sizeof(*cases));
	tcase_add_tests(tcase, memory_without_thread_or_stack, failed_calls_by_stack);
	tcase_add_loop_test(tcase, invalid_patterns_are_refused, 0, sizeof(refused) / sizeof(*refused));
	return suite;
}
