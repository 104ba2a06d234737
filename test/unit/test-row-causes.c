// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which rows of a report have one cause, and which cause: each rule, and a case just outside it. */
#include <check.h>
#include <mmtrace/report.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "analysis/report/row-verdicts.h"
#include "analysis/report/stack-origin.h"
#include "support/report-file.h"
#include "support/suite.h"

#define ROWS_MAX 8
#define FRAME(name, file)                                                                                              \
	(&(const struct mmt_frame){.kind = MMT_FRAME_NATIVE,                                                           \
				   .function = name,                                                                   \
				   .raw_function = name,                                                               \
				   .module = file,                                                                     \
				   .module_path = "/" file})

static const struct mmt_frame *const load[] = {FRAME("mmap", "libc.so.6"), FRAME("load", "server")};
static const struct mmt_frame *const load_deeper[] = {FRAME("mmap", "libc.so.6"), FRAME("load", "server"),
						      FRAME("main", "server")};
static const struct mmt_frame *const load_of_plugin[] = {FRAME("mmap", "libc.so.6"), FRAME("load", "plugin.so")};
static const struct mmt_frame *const wrapped_load[] = {FRAME("mmap", "libc.so.6"), FRAME("buffer_new", "server"),
						       FRAME("new_page", "server"), FRAME("load", "server")};
static const struct mmt_frame *const wrapped_parse[] = {FRAME("mmap", "libc.so.6"), FRAME("buffer_new", "server"),
							FRAME("new_page", "server"), FRAME("parse", "server")};
static const struct mmt_frame *const wrapped_unnamed[] = {FRAME("mmap", "libc.so.6"), FRAME("buffer_new", "server"),
							  FRAME(NULL, "plugin.so"), FRAME("load", "server")};
static const struct mmt_frame *const checked[] = {FRAME("mmap", "libc.so.6"), FRAME("xmalloc", "server"),
						  FRAME("load", "server")};
static const struct mmt_frame *const wrapped_once[] = {FRAME("mmap", "libc.so.6"), FRAME("buffer_new", "server"),
						       FRAME("resize", "server")};
static const struct mmt_frame *const parse[] = {FRAME("mmap", "libc.so.6"), FRAME("parse", "server")};

#define STACK(list) .frames = list, .frame_count = sizeof(list) / sizeof(*(list)), .origin = 1

static struct mmt_row rows[ROWS_MAX];
static const struct build_id_paths no_build_ids;
static struct mmt_report report;
static struct arena arena;

/* Numbers them, and gives each a resident mapping of `memory_bytes` if nothing else is set. */
static void build_with(struct mmt_growth growth, size_t count, const struct mmt_row *given)
{
	memset(rows, 0, sizeof(rows));
	for (size_t i = 0; i < count; i++) {
		rows[i] = given[i];
		rows[i].id = (uint32_t)i + 1;
		if (!rows[i].unfreed_bytes && !rows[i].reserved_by && !rows[i].committed_before_bytes)
			rows[i].unfreed_bytes = rows[i].committed_bytes = rows[i].resident_bytes = rows[i].memory_bytes;
		rows[i].unfreed_count = rows[i].unfreed_bytes > 0;
	}
	report = (struct mmt_report){.rows = rows, .row_count = count, .growth = growth};
	ck_assert_ptr_null(row_causes_build(&report, rows, &no_build_ids, &arena));
}

static void build(size_t count, const struct mmt_row *given)
{
	build_with((struct mmt_growth){0}, count, given);
}

#define BUILD(...)                                                                                                     \
	build(sizeof((struct mmt_row[]){__VA_ARGS__}) / sizeof(struct mmt_row), (struct mmt_row[]){__VA_ARGS__})

static void assert_cause(size_t place, const char *name, enum mmt_pattern pattern, uint64_t memory_bytes,
			 size_t row_count)
{
	const struct mmt_cause *cause = &report.causes[place];

	ck_assert_uint_lt(place, report.cause_count);
	ck_assert_pstr_eq(cause->name, name);
	ck_assert_int_eq(cause->pattern, pattern);
	ck_assert_uint_eq(cause->memory_bytes, memory_bytes);
	ck_assert_uint_eq(cause->row_count, row_count);
	for (size_t i = 0; i < row_count; i++)
		ck_assert_uint_eq(rows[cause->rows[i] - 1].cause, place + 1);
}

static void teardown(void)
{
	arena_deinit(&arena);
}

/* Whatever calls it; a function of the same name in another file is another one. */
START_TEST(one_cause_for_each_function)
{
	BUILD({STACK(load), .memory_bytes = 4000}, {STACK(parse), .memory_bytes = 3000},
	      {STACK(load_deeper), .memory_bytes = 2000}, {STACK(load_of_plugin), .memory_bytes = 1000});
	ck_assert_uint_eq(report.cause_count, 3);
	assert_cause(0, "load (server)", MMT_PATTERN_NONE, 6000, 2);
	assert_cause(1, "parse (server)", MMT_PATTERN_NONE, 3000, 1);
	assert_cause(2, "load (plugin.so)", MMT_PATTERN_NONE, 1000, 1);
	ck_assert_uint_eq(report.causes[0].rows[0], 1);
	ck_assert_uint_eq(report.causes[0].rows[1], 3);
}
END_TEST

/* It may be a wrapper; a cache of the same function is not a leak, and leaks come first. */
START_TEST(leaks_of_a_function_are_separate)
{
	BUILD({STACK(load), .memory_bytes = 8000, .verdict = MMT_ROW_CACHE},
	      {STACK(load_deeper), .memory_bytes = 100, .verdict = MMT_ROW_LEAK},
	      {STACK(load), .memory_bytes = 50, .verdict = MMT_ROW_LEAK});
	ck_assert_uint_eq(report.cause_count, 2);
	assert_cause(0, "load (server)", MMT_PATTERN_NONE, 150, 2);
	ck_assert_int_eq(report.causes[0].verdict, MMT_ROW_LEAK);
	assert_cause(1, "load (server)", MMT_PATTERN_NONE, 8000, 1);
	ck_assert_int_eq(report.causes[1].verdict, MMT_ROW_CACHE);
}
END_TEST

/* Memory that allocators and runtimes keep has one cause, whichever function triggered the growth; memory that a
 * program maps itself, files for instance, belongs to the function. */
START_TEST(patterns_by_design_are_one_cause)
{
	enum mmt_pattern pattern = (enum mmt_pattern)_i;

	BUILD({STACK(load), .memory_bytes = 4000, .pattern = pattern},
	      {STACK(parse), .memory_bytes = 3000, .pattern = pattern}, {STACK(parse), .memory_bytes = 2000});
	if (mmt_pattern_is_by_design(pattern)) {
		ck_assert_uint_eq(report.cause_count, 2);
		assert_cause(0, NULL, pattern, 7000, 2);
		assert_cause(1, "parse (server)", MMT_PATTERN_NONE, 2000, 1);
	} else {
		ck_assert_uint_eq(report.cause_count, 2);
		assert_cause(0, "parse (server)", pattern, 5000, 2);
		assert_cause(1, "load (server)", pattern, 4000, 1);
		rows[1].pattern = MMT_PATTERN_NONE;
		ck_assert_ptr_null(row_causes_build(&report, rows, &no_build_ids, &arena));
		assert_cause(0, "parse (server)", MMT_PATTERN_NONE, 5000, 2);
	}
}
END_TEST

static void assert_caller(size_t place, const char *caller, uint64_t bytes)
{
	ck_assert_pstr_eq(report.causes[place].caller, caller);
	ck_assert_uint_eq(report.causes[place].caller_bytes, bytes);
}

/* The memory of a heap is not of the function in whose calls it grew, which is named nevertheless. */
START_TEST(heaps_name_their_callers)
{
	BUILD({STACK(load), .memory_bytes = 7000, .pattern = MMT_PATTERN_ARENA},
	      {STACK(parse), .memory_bytes = 500, .pattern = MMT_PATTERN_ARENA},
	      {STACK(load_deeper), .memory_bytes = 400, .pattern = MMT_PATTERN_ARENA},
	      {STACK(parse), .memory_bytes = 300, .pattern = MMT_PATTERN_GC_HEAP});
	assert_cause(0, NULL, MMT_PATTERN_ARENA, 7900, 3);
	assert_caller(0, "load (server)", 7400);
	assert_caller(1, "parse (server)", 300);
	/* Of wrappers, the caller with three quarters. */
	BUILD({STACK(wrapped_load), .memory_bytes = 7500, .pattern = MMT_PATTERN_HEAP},
	      {STACK(wrapped_once), .memory_bytes = 2500, .pattern = MMT_PATTERN_HEAP});
	assert_caller(0, "new_page (server)", 7500);
	BUILD({STACK(wrapped_load), .memory_bytes = 7500, .pattern = MMT_PATTERN_HEAP},
	      {STACK(wrapped_parse), .memory_bytes = 2500, .pattern = MMT_PATTERN_HEAP},
	      {STACK(wrapped_once), .memory_bytes = 100, .pattern = MMT_PATTERN_HEAP});
	assert_caller(0, "load (server)", 7500);
	BUILD({STACK(wrapped_load), .memory_bytes = 7400, .pattern = MMT_PATTERN_HEAP},
	      {STACK(wrapped_once), .memory_bytes = 2600, .pattern = MMT_PATTERN_HEAP});
	assert_caller(0, "buffer_new (server)", 10000);
}
END_TEST

#define JIT(name) (&(const struct mmt_frame){.kind = MMT_FRAME_JIT, .function = name, .module = "[jit]"})

static const struct mmt_frame *const named_buffer[] = {FRAME("mmap", "libc.so.6"), FRAME("node::Allocate()", "node"),
						       JIT("JS:alloc node:buffer:391:30"),
						       JIT("JS:keep /app/grow.js:1:31")};
static const struct mmt_frame *const unnamed_buffer[] = {FRAME("mmap", "libc.so.6"), FRAME("node::Allocate()", "node"),
							 JIT(NULL), FRAME("node::Start()", "node")};
static const struct mmt_frame *const stub[] = {FRAME("mmap", "libc.so.6"), FRAME("Unsafe_AllocateMemory0", "libjvm.so"),
					       JIT("Interpreter"), JIT("StubRoutines (1)")};
static const struct mmt_frame *const returns_library_type[] = {
    FRAME("mmap", "libc.so.6"), FRAME("Unsafe_AllocateMemory0", "libjvm.so"),
    JIT("java.util.List com.acme.Cache.load(int)"), JIT("void com.acme.Main.run()")};
static const struct mmt_frame *const extension[] = {
    FRAME("mmap", "libc.so.6"), FRAME("_PyObject_ArenaMmap", "libpython3.11.so.1.0"), FRAME("grow", "extension.so"),
    FRAME("_PyEval_EvalFrameDefault", "libpython3.11.so.1.0")};
static const struct mmt_frame *const interpreted[] = {
    FRAME("mmap", "libc.so.6"), FRAME("_PyEval_EvalFrameDefault", "python3.11"), FRAME("main", "python3.11")};
static const struct mmt_frame *const loop_for_a[] = {FRAME("mmap", "libc.so.6"),
						     FRAME("_PyEval_EvalFrameDefault", "python3.11"),
						     FRAME("grow", "extension.so"), JIT("py::a")};
static const struct mmt_frame *const loop_for_b[] = {FRAME("mmap", "libc.so.6"),
						     FRAME("_PyEval_EvalFrameDefault", "python3.11"),
						     FRAME("grow", "extension.so"), JIT("py::b")};
static const struct mmt_frame *const collected[] = {FRAME("mprotect", "libc.so.6"), JIT("Cache::Remember(int32)")};

/* A runtime's function says less than the program's, which may have no name. */
START_TEST(runtimes_name_the_program)
{
	BUILD({STACK(named_buffer), .memory_bytes = 7000}, {STACK(unnamed_buffer), .memory_bytes = 3000});
	assert_cause(0, "node::Allocate() (node)", MMT_PATTERN_NONE, 10000, 2);
	assert_caller(0, "JS:keep /app/grow.js:1:31", 7000);
	BUILD({STACK(unnamed_buffer), .memory_bytes = 7000}, {STACK(named_buffer), .memory_bytes = 3000});
	assert_caller(0, "[Node code without names]", 7000);
	BUILD({STACK(stub), .memory_bytes = 7000});
	assert_caller(0, "[Java code without names]", 7000);
	BUILD({STACK(returns_library_type), .memory_bytes = 7000});
	assert_caller(0, "java.util.List com.acme.Cache.load(int)", 7000);
	BUILD({STACK(interpreted), .memory_bytes = 7000});
	assert_cause(0, "[Python code without names]", MMT_PATTERN_NONE, 7000, 1);
	assert_caller(0, NULL, 0);
	BUILD({STACK(loop_for_a), .memory_bytes = 6000}, {STACK(loop_for_b), .memory_bytes = 4000});
	assert_cause(0, "_PyEval_EvalFrameDefault (python3.11)", MMT_PATTERN_NONE, 10000, 2);
	assert_caller(0, "py::a", 6000);
	BUILD({STACK(extension), .memory_bytes = 7000, .pattern = MMT_PATTERN_PYTHON},
	      {STACK(collected), .memory_bytes = 3000, .pattern = MMT_PATTERN_GC_HEAP},
	      {STACK(collected), .memory_bytes = 2000, .pattern = MMT_PATTERN_THREAD_STACK});
	assert_caller(0, "grow (extension.so)", 7000);
	assert_caller(1, "Cache::Remember(int32)", 3000);
	assert_caller(2, "Cache::Remember(int32)", 2000);
}
END_TEST

/* Several functions call a wrapper, in one cause or in two. */
START_TEST(wrappers_name_their_callers)
{
	BUILD({STACK(wrapped_load), .memory_bytes = 7000}, {STACK(wrapped_parse), .memory_bytes = 3000});
	assert_cause(0, "buffer_new (server)", MMT_PATTERN_NONE, 10000, 2);
	assert_caller(0, "load (server)", 7000);
	BUILD({STACK(wrapped_load), .memory_bytes = 7000, .verdict = MMT_ROW_CACHE},
	      {STACK(wrapped_parse), .memory_bytes = 3000, .verdict = MMT_ROW_LEAK});
	assert_cause(0, "buffer_new (server)", MMT_PATTERN_NONE, 3000, 1);
	assert_caller(0, "parse (server)", 3000);
	assert_caller(1, "load (server)", 7000);
	/* Whatever the function without a name is. */
	BUILD({STACK(wrapped_load), .memory_bytes = 7000}, {STACK(wrapped_unnamed), .memory_bytes = 2000},
	      {STACK(wrapped_parse), .memory_bytes = 1000});
	assert_caller(0, "load (server)", 9000);
	/* A wrapper that another one calls, which both causes have in common, too. */
	BUILD({STACK(wrapped_load), .memory_bytes = 7000, .verdict = MMT_ROW_LEAK},
	      {STACK(wrapped_parse), .memory_bytes = 3000}, {STACK(wrapped_once), .memory_bytes = 2000});
	assert_cause(0, "buffer_new (server)", MMT_PATTERN_NONE, 7000, 1);
	assert_caller(0, "load (server)", 7000);
	assert_caller(1, "parse (server)", 3000);
	/* Or one cause alone. */
	BUILD({STACK(wrapped_load), .memory_bytes = 7000}, {STACK(wrapped_parse), .memory_bytes = 3000},
	      {STACK(wrapped_once), .memory_bytes = 2000});
	assert_caller(0, "new_page (server)", 10000);
	ck_assert_uint_eq(origin_find(checked, sizeof(checked) / sizeof(*checked)), 2);
	/* The name says all. */
	BUILD({STACK(wrapped_load), .memory_bytes = 7000}, {STACK(wrapped_load), .memory_bytes = 3000});
	assert_caller(0, NULL, 0);
}
END_TEST

START_TEST(lost_calls_have_no_function)
{
	BUILD({.memory_bytes = 3000, .lost = true}, {STACK(load), .memory_bytes = 2000}, {.memory_bytes = 1000});
	ck_assert_uint_eq(report.cause_count, 3);
	assert_cause(0, "[lost calls]", MMT_PATTERN_NONE, 3000, 1);
	assert_cause(1, "load (server)", MMT_PATTERN_NONE, 2000, 1);
	assert_cause(2, "[no function]", MMT_PATTERN_NONE, 1000, 1);
}
END_TEST

/* A row that only made accessible what another one reserved has its cause; one that also mapped memory has its own. */
START_TEST(commits_belong_to_the_reservation)
{
	BUILD({STACK(parse), .memory_bytes = 500, .committed_bytes = 500, .reserved_by = 2},
	      {STACK(load), .unfreed_bytes = 64000, .reserved_bytes = 64000, .pattern = MMT_PATTERN_ARENA,
	       .hint = "arena"},
	      {STACK(parse), .memory_bytes = 300, .unfreed_bytes = 300, .committed_bytes = 300, .reserved_by = 2});
	ck_assert_uint_eq(report.cause_count, 2);
	assert_cause(0, NULL, MMT_PATTERN_ARENA, 500, 2);
	ck_assert_uint_eq(report.causes[0].reserved_bytes, 64000);
	ck_assert_uint_eq(report.causes[0].unfreed_bytes, 64000);
	assert_cause(1, "parse (server)", MMT_PATTERN_NONE, 300, 1);
	ck_assert_uint_eq(rows[1].joined_to, 1);
	ck_assert_str_eq(rows[0].hint, "arena");
	ck_assert_uint_eq(rows[0].joined_to, 0);
}
END_TEST

/* Shown with the row that uses most of it only if it holds nothing itself. */
START_TEST(reservations_with_memory_are_not_joined)
{
	BUILD(
	    {STACK(parse), .memory_bytes = 500, .committed_bytes = 500, .reserved_by = 2},
	    {STACK(load), .memory_bytes = 10, .unfreed_bytes = 64000, .committed_bytes = 10, .reserved_bytes = 63990});
	ck_assert_uint_eq(rows[1].joined_to, 0);
	ck_assert_uint_eq(report.cause_count, 1);
	assert_cause(0, "load (server)", MMT_PATTERN_NONE, 510, 2);
}
END_TEST

/* Beside a large growth of other memory, a heap that grows by little is not the first cause; a leak is. */
START_TEST(a_heap_that_grows_by_little_is_not_the_first)
{
	const struct mmt_row given[] = {{STACK(load), .memory_bytes = 64 << 10, .pattern = MMT_PATTERN_GC_HEAP},
					{STACK(parse), .memory_bytes = _i == 1 ? 1 << 10 : 1023,
					 .pattern = _i == 2 ? 0 : MMT_PATTERN_HEAP,
					 .verdict = _i == 2 ? MMT_ROW_LEAK : MMT_ROW_KEEPS_GROWING}};
	const struct mmt_growth growth = {.verdict = _i == 3 ? MMT_VERDICT_STEADY : MMT_VERDICT_GROWING,
					  .end_bytes = 64 << 10};

	build_with(growth, 2, given);
	ck_assert_uint_eq(report.cause_count, 2);
	ck_assert_uint_eq(*report.causes[0].rows, _i ? 2 : 1);
}
END_TEST

/* From a sixteenth on; below that the largest row with a verdict decides. */
START_TEST(a_leak_of_a_sixteenth_decides)
{
	BUILD({STACK(load), .memory_bytes = 15000, .pattern = MMT_PATTERN_HEAP, .verdict = MMT_ROW_CACHE},
	      {STACK(load), .memory_bytes = 1000, .pattern = MMT_PATTERN_HEAP, .verdict = MMT_ROW_LEAK});
	ck_assert_int_eq(report.causes[0].verdict, MMT_ROW_KEEPS_GROWING);
	BUILD({STACK(load), .memory_bytes = 20000, .pattern = MMT_PATTERN_HEAP},
	      {STACK(load), .memory_bytes = 15100, .pattern = MMT_PATTERN_HEAP, .verdict = MMT_ROW_TRAFFIC},
	      {STACK(load), .memory_bytes = 1000, .pattern = MMT_PATTERN_HEAP, .verdict = MMT_ROW_LEAK});
	ck_assert_int_eq(report.causes[0].verdict, MMT_ROW_TRAFFIC);
}
END_TEST

START_TEST(figures_are_sums)
{
	BUILD({STACK(load), .memory_bytes = 4000, .mapping_count = 3, .bytes_per_minute = 7, .first_ns = 50,
	       .last_ns = 60},
	      {STACK(load), .memory_bytes = 2000, .mapping_count = 4, .bytes_per_minute = 5, .first_ns = 40,
	       .last_ns = 55},
	      {STACK(parse), .memory_bytes = 100, .committed_before_bytes = 100, .resident_bytes = MMT_UNKNOWN,
	       .resident_before_bytes = MMT_UNKNOWN, .bytes_per_minute = MMT_RATE_UNKNOWN},
	      {STACK(load_of_plugin), .committed_before_bytes = 0});
	ck_assert_uint_eq(report.cause_count, 2);
	ck_assert_uint_eq(report.causes[0].mapping_count, 7);
	ck_assert_uint_eq(report.causes[0].unfreed_count, 2);
	ck_assert_int_eq(report.causes[0].bytes_per_minute, 12);
	ck_assert_uint_eq(report.causes[0].resident_bytes, 6000);
	ck_assert_uint_eq(report.causes[0].first_ns, 40);
	ck_assert_uint_eq(report.causes[0].last_ns, 60);
	ck_assert_uint_eq(report.causes[1].committed_bytes, 100);
	ck_assert_uint_eq(report.causes[1].resident_bytes, MMT_UNKNOWN);
	ck_assert_int_eq(report.causes[1].bytes_per_minute, MMT_RATE_UNKNOWN);
	ck_assert_uint_eq(report.causes[1].first_ns, MMT_UNKNOWN);
}
END_TEST

START_TEST(only_stacks_have_causes)
{
	static const enum mmt_row_key keys[][2] = {{MMT_BY_FUNCTION, MMT_BY_STACK}, {MMT_BY_THREAD, MMT_BY_CLASS}};

	BUILD({STACK(load), .memory_bytes = 4000});
	report = (struct mmt_report){.rows = rows, .row_count = 1, .by = keys[_i][0], .then_by = keys[_i][1]};
	ck_assert_ptr_null(row_causes_build(&report, rows, &no_build_ids, &arena));
	ck_assert_uint_eq(report.cause_count, 0);
}
END_TEST

/*
 * Recordings of a minute with JIT code without names, whose stacks have one cause: places 0, 1 and 2 of the code
 * allocate, like a path that is recompiled while it runs.
 */
enum { PID = 100, OTHER = 200, READINGS = 80 };

#define SECOND 1000000000ull
#define MEBIBYTE (1ull << 20)
#define START SECOND
#define ADDRESS 0x10000000000ull
#define CODE 0x400000ull
#define RESERVED 0x20000000000ull

/* `count` mappings of 1 MiB between two seconds, each unmapped after `lifetime` seconds, or (0) kept. */
static void allocate(struct recording_builder *builder, unsigned place, unsigned count, unsigned from, unsigned to,
		     unsigned lifetime)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t time = START + from * SECOND + (to - from) * SECOND * i / count + place + 1;
		uint64_t address = ADDRESS + (1000 * place + 2 * i) * MEBIBYTE;

		builder_mmap_exit(builder, time, PID, PID, address, MEBIBYTE, CODE + 0x1000 * place + 1);
		if (lifetime)
			builder_munmap_exit(builder, time + lifetime * SECOND, PID, PID, address, MEBIBYTE);
	}
}

static struct recording_builder *start_recording(bool grows)
{
	const struct event_mapping mappings[] = {
	    {.start = CODE, .length = MEBIBYTE, .protection = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE, .path = ""},
	    {.start = RESERVED, .length = 64 * MEBIBYTE, .flags = MAP_PRIVATE, .path = ""}};
	struct recording_builder *builder = builder_create(report_file_path());

	builder_snapshot(builder, SNAPSHOT_START, START, PID, mappings, 2);
	builder_snapshot(builder, SNAPSHOT_START, START, OTHER, mappings, 1);
	for (uint64_t i = 0; i < READINGS; i++)
		builder_note(builder, START + 60 * SECOND * i / READINGS + 9, PID, NOTE_RESIDENT,
			     100 * MEBIBYTE + (grows ? i * MEBIBYTE : 0), i + 1);
	return builder;
}

static struct mmt_report *made;

static void free_report(void)
{
	mmt_report_destroy(made);
	made = NULL;
	report_file_teardown();
}

static const struct mmt_report *report_of_older(uint64_t min_age_ns)
{
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	options.min_age_ns = min_age_ns;
	mmt_report_destroy(made);
	made = report_file_report(&options);
	return made;
}

static const struct mmt_report *end_recording(struct recording_builder *builder)
{
	builder_finish(builder, START + 60 * SECOND);
	return report_of_older(0);
}

/* Each of the places allocates 60 MiB per minute for its part of the time. */
static const struct mmt_report *report_of_places_in_turn(unsigned count, bool grows)
{
	struct recording_builder *builder = start_recording(grows);

	for (unsigned place = 0; place < count; place++)
		allocate(builder, place, 60 / count, 60 / count * place, 60 / count * (place + 1), 0);
	return end_recording(builder);
}

START_TEST(stacks_of_one_cause_leak_together)
{
	const struct mmt_report *whole = report_of_places_in_turn(4, true);

	ck_assert_int_eq(whole->growth.verdict, MMT_VERDICT_GROWING);
	ck_assert_uint_eq(whole->row_count, 4);
	ck_assert_uint_eq(whole->cause_count, 1);
	for (size_t i = 0; i < whole->row_count; i++) {
		ck_assert_int_ne(whole->rows[i].verdict, MMT_ROW_LEAK);
		ck_assert_uint_eq(whole->rows[i].cause, 1);
	}
	ck_assert(whole->causes[0].leaks_together);
	ck_assert_int_eq(whole->causes[0].verdict, MMT_ROW_LEAK);
	ck_assert_uint_eq(whole->causes[0].memory_bytes, 60 * MEBIBYTE);
}
END_TEST

/* The code is compiled for the last time after two thirds, so that its last stack is a leak by itself: not a second
 * cause, and a leak in every other grouping, too, whether RSS grows or not. */
START_TEST(one_verdict_in_every_grouping)
{
	for (int grows = 0; grows < 2; grows++) {
		const struct mmt_report *whole = report_of_places_in_turn(3, grows);
		struct mmt_report_options options;

		ck_assert_uint_eq(whole->cause_count, 1);
		ck_assert_int_eq(whole->causes[0].verdict, MMT_ROW_LEAK);
		for (size_t i = 0; i < 3; i++) {
			const struct mmt_row *row = &whole->rows[i];
			bool is_last = row->first_ns >= START + 40 * SECOND;

			ck_assert_int_eq(row->verdict, is_last ? MMT_ROW_LEAK : MMT_ROW_PART_OF_LEAK);
		}
		mmt_report_options_init(&options);
		for (int by = MMT_BY_FUNCTION; by <= MMT_BY_PROCESS; by++) {
			options.by = (enum mmt_row_key)by;
			mmt_report_destroy(made);
			made = report_file_report(&options);
			ck_assert_uint_eq(made->row_count, 1);
			ck_assert_int_eq(made->rows[0].verdict, MMT_ROW_LEAK);
		}
		report_file_teardown();
		report_file_setup();
	}
}
END_TEST

#define NAMED 0x80000 /* in the code: functions with names, 0x1000 bytes each */

static void name_code_of(struct perf_map_copies *copies, int32_t pid, const char *const *names, size_t count)
{
	struct perf_map_copy *copy = vector_append(&copies->maps);
	char *text = NULL;
	FILE *stream;

	ck_assert_ptr_nonnull(copy);
	stream = open_memstream(&text, &copy->text_size);
	ck_assert_ptr_nonnull(stream);
	for (size_t i = 0; i < count; i++)
		fprintf(stream, "%llx 1000 %s\n", CODE + NAMED + 0x1000 * i, names[i]);
	fclose(stream);
	copy->text = (uint8_t *)text;
	copy->pid = copy->namespace_pid = pid;
	ck_assert(vector_push(&copy->growth, ((struct perf_map_growth){.time_ns = START, .length = copy->text_size})));
}

static void name_code(struct recording_builder *builder, const char *const *names, size_t count)
{
	struct perf_map_copies copies = {0};
	struct buffer buffer;

	name_code_of(&copies, PID, names, count);
	name_code_of(&copies, OTHER, names, count);
	buffer_init(&buffer, 1 << 16);
	ck_assert_ptr_null(section_write(&section_perf_maps, &copies, &buffer));
	builder_section(builder, FEATURE_MMTRACE_PERF_MAPS, buffer.data, buffer.size);
	buffer_deinit(&buffer);
	section_perf_maps.deinit(&copies);
}

/* Mappings of 1 MiB from one second to another. `callers`: places in the code. */
static void allocate_by(struct recording_builder *builder, const uint64_t *callers, size_t count, unsigned per_second,
			unsigned from, unsigned to)
{
	uint64_t addresses[8];

	for (size_t i = 0; i < count; i++)
		addresses[i] = CODE + callers[i] + 1;
	for (uint64_t i = from * per_second; i < to * per_second; i++)
		builder_call(builder,
			     &(struct builder_call){.call = CALL_MMAP,
						    .time_ns = START + i * SECOND / per_second + count,
						    .pid = PID,
						    .tid = PID,
						    .result = (int64_t)(ADDRESS + (20 * i + 2 * count) * MEBIBYTE),
						    .arguments = {0, MEBIBYTE, PROT_READ | PROT_WRITE,
								  MAP_PRIVATE | MAP_ANONYMOUS, -1ULL, 0},
						    .callchain = addresses,
						    .callchain_count = count});
}

#define ALLOCATE_BY(builder, from, to, ...)                                                                            \
	allocate_by(builder, (const uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), 1, \
		    from, to)

enum { ALLOCATE = NAMED, PARSE = NAMED + 0x1000, SERVE = NAMED + 0x2000, MAIN = NAMED + 0x3000, LOAD = NAMED + 0x4000 };

static const char *const named[] = {"JS:allocate /a.js:1:1", "JS:parse /a.js:2:1", "JS:serve /a.js:3:1",
				    "JS:main /a.js:4:1", "JS:load /a.js:5:1"};

/* Code without names is between the allocator and one function at three lines: these do not make other paths. */
START_TEST(lines_make_no_other_path)
{
	static const char *const lines[] = {"JS:allocate /server.js:1:1", "JS:serve /server.js:11:5",
					    "JS:serve /server.js:12:5", "JS:serve /server.js:13:5"};
	struct recording_builder *builder = start_recording(true);
	const struct mmt_report *whole;

	for (unsigned i = 0; i < 3; i++)
		ALLOCATE_BY(builder, 20 * i, 20 * i + 20, NAMED, 0x1000 * i, NAMED + 0x1000 * (i + 1));
	name_code(builder, lines, 4);
	whole = end_recording(builder);
	ck_assert_uint_eq(whole->row_count, 3);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(whole->rows[i].frame_count, 3);
		ck_assert_ptr_null(whole->rows[i].frames[1]->function);
		ck_assert_ptr_nonnull(whole->rows[i].frames[2]->function);
	}
	ck_assert_uint_eq(whole->cause_count, 1);
	ck_assert_int_eq(whole->causes[0].verdict, MMT_ROW_LEAK);
}
END_TEST

static struct mmt_report *report_by(enum mmt_row_key by)
{
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	options.by = by;
	mmt_report_destroy(made);
	made = report_file_report(&options);
	return made;
}

/* The innermost function is inlined, first into its caller and then into the next one, so that each stack has another
 * function. Beside them another caller fills a cache, so that the leak is no leak of the function as a whole. */
START_TEST(inlined_innermost_functions_make_no_other_path)
{
	struct recording_builder *builder = start_recording(true);

	allocate_by(builder, (const uint64_t[]){ALLOCATE, LOAD, 0x1000, 0x2000, MAIN}, 5, 40, 0, 2);
	ALLOCATE_BY(builder, 3, 22, ALLOCATE, PARSE, SERVE, MAIN);
	ALLOCATE_BY(builder, 22, 41, PARSE, SERVE, MAIN);
	ALLOCATE_BY(builder, 41, 60, SERVE, MAIN);
	name_code(builder, named, 5);
	builder_finish(builder, START + 60 * SECOND);
	report_by(MMT_BY_STACK);
	ck_assert_uint_eq(made->row_count, 4);
	for (size_t i = 0; i < made->row_count; i++) {
		const struct mmt_row *row = &made->rows[i];

		if (row->frame_count == 5)
			ck_assert_int_eq(row->verdict, MMT_ROW_CACHE);
		else
			ck_assert(row->verdict == MMT_ROW_LEAK || row->verdict == MMT_ROW_PART_OF_LEAK);
	}
	for (size_t i = 0; i < made->cause_count; i++)
		ck_assert_int_eq(made->causes[i].verdict,
				 made->causes[i].unfreed_count == 80 ? MMT_ROW_CACHE : MMT_ROW_LEAK);
	for (int by = MMT_BY_FUNCTION; by <= MMT_BY_PROCESS; by++) {
		report_by((enum mmt_row_key)by);
		for (size_t i = 0; i < made->row_count; i++)
			ck_assert_int_eq(made->rows[i].verdict, MMT_ROW_LEAK);
	}
}
END_TEST

/* A function that maps memory beside its caller, as long as this one does, is not inlined. */
START_TEST(functions_in_use_side_by_side_are_no_path)
{
	struct recording_builder *builder = start_recording(true);

	for (unsigned i = 0; i < 60; i++) {
		if (i < 20)
			ALLOCATE_BY(builder, i, i + 1, PARSE, MAIN);
		ALLOCATE_BY(builder, i, i + 1, ALLOCATE, PARSE, MAIN);
	}
	name_code(builder, named, 5);
	builder_finish(builder, START + 60 * SECOND);
	report_by(MMT_BY_STACK);
	ck_assert_uint_eq(made->cause_count, 2);
	ck_assert_int_eq(made->causes[0].verdict, MMT_ROW_LEAK);
	ck_assert_int_eq(made->causes[1].verdict, MMT_ROW_CACHE);
}
END_TEST

/* Each time the code is compiled again, one more function is inlined. Another caller fills a cache, and stays one. */
START_TEST(inlining_makes_no_other_path)
{
	struct recording_builder *builder = start_recording(true);
	const struct mmt_report *whole;

	ALLOCATE_BY(builder, 0, 12, ALLOCATE, LOAD, 0x1000, 0x2000, 0x3000, MAIN);
	ALLOCATE_BY(builder, 12, 25, ALLOCATE, PARSE, SERVE, MAIN);
	ALLOCATE_BY(builder, 25, 42, ALLOCATE, SERVE, MAIN);
	ALLOCATE_BY(builder, 42, 60, ALLOCATE, MAIN);
	name_code(builder, named, 5);
	whole = end_recording(builder);
	ck_assert_uint_eq(whole->row_count, 4);
	ck_assert_uint_eq(whole->cause_count, 2);
	ck_assert_uint_eq(whole->causes[0].row_count, 3);
	ck_assert_int_eq(whole->causes[0].verdict, MMT_ROW_LEAK);
	for (size_t i = 0; i < whole->row_count; i++) {
		const struct mmt_row *row = &whole->rows[i];
		bool is_cache = row->frame_count == 6, leaks = row->verdict == MMT_ROW_LEAK;

		ck_assert_int_eq(row->cause, is_cache ? 2 : 1);
		if (is_cache)
			ck_assert_int_eq(row->verdict, MMT_ROW_CACHE);
		else
			ck_assert(leaks || row->verdict == MMT_ROW_PART_OF_LEAK);
	}
	report_by(MMT_BY_FUNCTION);
	ck_assert_uint_eq(made->row_count, 1);
	ck_assert_int_eq(made->rows[0].verdict, MMT_ROW_LEAK);
}
END_TEST

/* One caller of a function fills a cache, which is larger than what another one leaks. `churn`: a third one frees all
 * that it maps. */
START_TEST(leak_beside_a_cache_has_one_verdict)
{
	struct recording_builder *builder = start_recording(true);
	struct mmt_report_options options;

	allocate_by(builder, (const uint64_t[]){ALLOCATE, LOAD, MAIN}, 3, 40, 0, 2);
	for (unsigned i = 2; i < 60; i++) {
		ALLOCATE_BY(builder, i, i + 1, ALLOCATE, SERVE);
		for (unsigned j = 0; _i && j < 20; j++) {
			uint64_t time_ns = START + i * SECOND + 100 + 2 * j, address = RESERVED + (100 + j) * MEBIBYTE;

			builder_mmap_exit(builder, time_ns, PID, PID, address, MEBIBYTE, CODE + ALLOCATE + 1);
			builder_munmap_exit(builder, time_ns + 1, PID, PID, address, MEBIBYTE);
		}
	}
	name_code(builder, named, 5);
	builder_finish(builder, START + 60 * SECOND);
	mmt_report_options_init(&options);
	for (int by = MMT_BY_STACK; by <= MMT_BY_PROCESS; by++) {
		options.by = (enum mmt_row_key)by;
		mmt_report_destroy(made);
		made = report_file_report(&options);
		ck_assert_uint_eq(made->row_count, by == MMT_BY_STACK ? 2 + (unsigned)_i : 1);
		ck_assert_int_eq(made->rows[0].verdict, by == MMT_BY_STACK ? MMT_ROW_CACHE : MMT_ROW_LEAK);
	}
}
END_TEST

/* Which caller makes a heap grow is chance: each of them has the verdict that the function has. */
START_TEST(callers_of_a_heap_have_one_verdict)
{
	static const char *const in_heap[] = {"_PyObject_ArenaMmap", "JS:parse /a.js:2:1", "JS:serve /a.js:3:1",
					      "JS:main /a.js:4:1"};
	struct recording_builder *builder = start_recording(true);
	struct mmt_report_options options;

	for (unsigned i = 0; i < 3; i++)
		ALLOCATE_BY(builder, 20 * i, 20 * i + 20, NAMED, NAMED + 0x1000 * (i + 1));
	name_code(builder, in_heap, 4);
	builder_finish(builder, START + 60 * SECOND);
	mmt_report_options_init(&options);
	for (int by = MMT_BY_STACK; by <= MMT_BY_PROCESS; by++) {
		options.by = (enum mmt_row_key)by;
		mmt_report_destroy(made);
		made = report_file_report(&options);
		ck_assert_uint_eq(made->row_count, by == MMT_BY_STACK ? 3 : 1);
		for (size_t i = 0; i < made->row_count; i++)
			ck_assert_int_eq(made->rows[i].verdict, MMT_ROW_KEEPS_GROWING);
	}
}
END_TEST

/* Most of a row is a heap that is only large, but what is not in it leaks. */
START_TEST(leak_beside_a_heap_has_one_verdict)
{
	static const char *const beside_heap[] = {"_PyObject_ArenaMmap", "JS:parse /a.js:2:1", "JS:serve /a.js:3:1"};
	struct recording_builder *builder = start_recording(true);
	struct mmt_report_options options;

	allocate_by(builder, (const uint64_t[]){NAMED, PARSE}, 2, 80, 0, 2);
	ALLOCATE_BY(builder, 2, 60, SERVE);
	name_code(builder, beside_heap, 3);
	builder_finish(builder, START + 60 * SECOND);
	mmt_report_options_init(&options);
	for (int by = MMT_BY_STACK; by <= MMT_BY_PROCESS; by++) {
		size_t leaks = 0;

		options.by = (enum mmt_row_key)by;
		mmt_report_destroy(made);
		made = report_file_report(&options);
		ck_assert_int_eq(made->rows[0].pattern, MMT_PATTERN_PYTHON);
		for (size_t i = 0; i < made->row_count; i++)
			leaks += made->rows[i].verdict == MMT_ROW_LEAK;
		ck_assert_uint_eq(leaks, 1);
	}
}
END_TEST

/* Rows other than stacks have the hint of the pattern that most of their memory has. */
START_TEST(every_pattern_has_its_hint)
{
	struct recording_builder *builder = start_recording(true);
	struct mmt_report_options options;

	for (uint64_t i = 0; i < 16; i++)
		builder_mmap_exit(builder, START + i * SECOND + 1, PID, PID, ADDRESS + 2 * i * MEBIBYTE, MEBIBYTE,
				  CODE + NAMED + 1);
	name_code(builder, &(const char *){"_PyObject_ArenaMmap"}, 1);
	builder_finish(builder, START + 60 * SECOND);
	mmt_report_options_init(&options);
	for (int by = MMT_BY_STACK; by <= MMT_BY_PROCESS; by++) {
		options.by = (enum mmt_row_key)by;
		mmt_report_destroy(made);
		made = report_file_report(&options);
		ck_assert_uint_eq(made->row_count, 1);
		ck_assert_int_eq(made->rows[0].pattern, MMT_PATTERN_PYTHON);
		ck_assert_ptr_nonnull(made->rows[0].hint);
	}
}
END_TEST

/* Threads of a process, each of which makes 8 MiB of its malloc arena accessible. The code `caller` calls malloc. */
static void make_arenas(struct recording_builder *builder, int32_t pid, unsigned threads, const uint64_t *caller)
{
	for (unsigned i = 0; i < threads; i++) {
		uint64_t address = ADDRESS + 64 * i * MEBIBYTE;
		struct builder_call map = {
		    .call = CALL_MMAP,
		    .time_ns = START + (i + 1) * SECOND,
		    .pid = pid,
		    .tid = pid + (int32_t)i,
		    .result = (int64_t)address,
		    .arguments = {0, 64 * MEBIBYTE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1ULL, 0},
		    .callchain = caller,
		    .callchain_count = 1};
		struct builder_call grow = map;

		grow.call = CALL_MPROTECT;
		grow.time_ns++;
		grow.result = 0;
		memcpy(grow.arguments, (uint64_t[]){address, 8 * MEBIBYTE, PROT_READ | PROT_WRITE}, 24);
		builder_call(builder, &map);
		builder_call(builder, &grow);
	}
}

static void add_arena_limit(struct recording_builder *builder, uint64_t limit)
{
	const struct option_value value = {.pid = PID, .option = OPTION_MALLOC_ARENA_MAX, .value = limit};
	struct runtime_options options = {0};
	struct buffer buffer;

	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	ck_assert(vector_push(&options.values, value));
	ck_assert_ptr_null(runtime_options_encode(&options, &buffer));
	builder_section(builder, FEATURE_MMTRACE_OPTIONS, buffer.data, buffer.size);
	buffer_deinit(&buffer);
	section_options.deinit(&options);
}

/* A process whose arenas belong to three threads, and another with one. The first may have been started with a limit.
 */
START_TEST(limits_of_arenas_help_against_several)
{
	static const uint64_t limits[] = {64, 0, 2}; /* 0: none */
	const uint64_t of_three = CODE + NAMED + 1, of_one = of_three + 0x1000;
	struct recording_builder *builder = start_recording(true);

	make_arenas(builder, OTHER, 1, &of_one);
	make_arenas(builder, PID, 3, &of_three);
	add_arena_limit(builder, limits[_i]);
	name_code(builder, (const char *const[]){"new_heap", "alloc_new_heap"}, 2);
	(void)end_recording(builder);
	ck_assert_uint_eq(made->row_count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct mmt_row *row = &made->rows[i];

		ck_assert_int_eq(row->pattern, MMT_PATTERN_ARENA);
		ck_assert_ptr_nonnull(row->hint);
		ck_assert_int_eq(strstr(row->hint, "MALLOC_ARENA_MAX") != NULL, row->pids[0] == PID);
	}
}
END_TEST

/* One page is resident when recording ends. */
static void add_final_residency(struct recording_builder *builder)
{
	struct recording_residency residency = {0};
	struct process_residency *process = vector_append(&residency.processes);
	const struct resident_run run = {CODE, CODE + 4096};

	ck_assert_ptr_nonnull(process);
	process->pid = PID;
	process->time_ns = START + 60 * SECOND;
	process->resident_bytes = 100 * MEBIBYTE;
	ck_assert(vector_push(&process->runs, run));
	report_file_add_residency(builder, &residency);
}

static const struct mmt_report *report_of_untouched(bool residency, unsigned count, unsigned lifetime)
{
	struct recording_builder *builder = start_recording(false);

	allocate(builder, 0, count, 0, 60, lifetime);
	if (residency)
		add_final_residency(builder);
	return end_recording(builder);
}

/* Address space leaks without memory: nothing of it is resident. */
START_TEST(mappings_leak_while_rss_is_level)
{
	const struct mmt_report *whole = report_of_untouched(true, 60, 0);

	ck_assert_int_eq(whole->growth.verdict, MMT_VERDICT_STEADY);
	ck_assert_int_eq(whole->rows[0].verdict, MMT_ROW_LEAK);
	ck_assert_uint_ge(whole->growth.unfreed_growth_bytes, 57 * MEBIBYTE);
	ck_assert_uint_le(whole->growth.unfreed_growth_bytes, 60 * MEBIBYTE);
	/* A single reservation and temporary memory are not leaks. */
	ck_assert_uint_eq(report_of_untouched(true, 1, 0)->growth.unfreed_growth_bytes, 0);
	ck_assert_uint_eq(report_of_untouched(true, 60, 2)->growth.unfreed_growth_bytes, 0);
	/* Without resident pages this is unknown. */
	ck_assert_uint_eq(report_of_untouched(false, 60, 0)->growth.unfreed_growth_bytes, 0);
}
END_TEST

/* A stack that has freed everything still counts for the lifetimes of its cause. */
START_TEST(freed_stacks_show_lifetimes)
{
	for (int freed = 0; freed < 2; freed++) {
		struct recording_builder *builder = start_recording(true);
		const struct mmt_report *whole;

		/* In the order of their times. */
		for (uint64_t i = 0; freed && i < 100; i++)
			builder_mmap_exit(builder, START + i + 1, PID, PID, ADDRESS + (1000 + 2 * i) * MEBIBYTE,
					  MEBIBYTE, CODE + 0x1001);
		for (uint64_t i = 0; freed && i < 100; i++)
			builder_munmap_exit(builder, START + 24 * SECOND + i, PID, PID,
					    ADDRESS + (1000 + 2 * i) * MEBIBYTE, MEBIBYTE);
		allocate(builder, 0, 27, 25, 43, 0);
		allocate(builder, 2, 26, 43, 60, 0);
		whole = end_recording(builder);
		ck_assert_uint_eq(whole->cause_count, 1);
		ck_assert_int_eq(whole->causes[0].leaks_together, !freed);
	}
}
END_TEST

/* One stack maps private memory once and frees it. Its shared memory is traffic that lives for long, which is no leak,
 * nor does it hide a leak of private memory. */
START_TEST(kinds_of_memory_have_their_own_lifetimes)
{
	const uint64_t caller = CODE + 1, shared = ADDRESS + 1000 * MEBIBYTE;
	struct recording_builder *builder = start_recording(true);

	allocate(builder, 0, 1, 0, 1, 1);
	for (uint64_t i = 2; i < 60; i++) { /* in the order of their times */
		if (_i)
			builder_mmap_exit(builder, START + i * SECOND, PID, PID, ADDRESS + 2 * i * MEBIBYTE, MEBIBYTE,
					  caller);
		if (i >= 27)
			builder_munmap_exit(builder, START + i * SECOND + 1, PID, PID, shared + 2 * (i - 25) * MEBIBYTE,
					    MEBIBYTE);
		if (!_i || i < 35) {
			builder_mapping(builder, START + i * SECOND + 2, PID, PID,
					&(struct event_mapping){.start = shared + 2 * i * MEBIBYTE,
								.length = MEBIBYTE,
								.protection = PROT_READ | PROT_WRITE,
								.flags = MAP_SHARED,
								.path = "/memfd:pool"});
			builder_call(builder,
				     &(struct builder_call){.call = CALL_MMAP,
							    .time_ns = START + i * SECOND + 3,
							    .pid = PID,
							    .tid = PID,
							    .result = (int64_t)(shared + 2 * i * MEBIBYTE),
							    .arguments = {0, MEBIBYTE, PROT_READ | PROT_WRITE,
									  MAP_SHARED | MAP_ANONYMOUS, -1ULL, 0},
							    .callchain = &caller,
							    .callchain_count = 1});
		}
	}
	(void)end_recording(builder);
	ck_assert_uint_eq(made->row_count, 1);
	ck_assert_int_eq(mmt_row_leaks(made->rows[0].verdict), _i);
}
END_TEST

/* The places, in turn, make `count` MiB of reserved memory accessible between two seconds. */
static void make_accessible(struct recording_builder *builder, uint64_t bytes, unsigned places, unsigned count,
			    unsigned from, unsigned to)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t caller = CODE + 0x1000 * (i % places) + 1;

		builder_call(builder, &(struct builder_call){
					  .call = CALL_MPROTECT,
					  .time_ns = START + from * SECOND + (to - from) * SECOND * i / count + 1,
					  .pid = PID,
					  .tid = PID,
					  .arguments = {RESERVED + i * bytes, bytes, PROT_READ | PROT_WRITE},
					  .callchain = &caller,
					  .callchain_count = 1});
	}
}

static const struct mmt_report *report_of_commits(uint64_t bytes, unsigned places, unsigned count, unsigned from,
						  unsigned to)
{
	struct recording_builder *builder = start_recording(true);

	make_accessible(builder, bytes, places, count, from, to);
	return end_recording(builder);
}

/* Like a leak in an existing malloc arena: no mapping is made. */
START_TEST(memory_made_accessible_throughout_is_a_leak)
{
	const struct mmt_report *whole = report_of_commits(MEBIBYTE, 1, 30, 0, 60);

	ck_assert_uint_eq(whole->row_count, 1);
	ck_assert_uint_eq(whole->rows[0].unfreed_count, 0);
	ck_assert_uint_eq(whole->rows[0].committed_before_bytes, 30 * MEBIBYTE);
	ck_assert_int_eq(whole->rows[0].verdict, MMT_ROW_LEAK);
	ck_assert_int_eq(whole->causes[0].verdict, MMT_ROW_LEAK);
	ck_assert_uint_eq(whole->rows[0].committed_trend[MMT_TREND_POINTS - 1], 30 * MEBIBYTE);
	ck_assert_uint_gt(whole->rows[0].committed_trend[MMT_TREND_POINTS / 2 - 1], 13 * MEBIBYTE);
	ck_assert_uint_lt(whole->rows[0].committed_trend[MMT_TREND_POINTS / 2 - 1], 17 * MEBIBYTE);
	/* Memory excluded by the options at the end is no plateau. */
	whole = report_of_older(25 * SECOND);
	ck_assert_int_eq(whole->rows[0].verdict, MMT_ROW_LEAK);
	/* Too little for the RSS rule, but steady. */
	whole = report_of_commits(4096, 1, 40, 0, 60);
	ck_assert_int_eq(whole->rows[0].verdict, MMT_ROW_UNDECIDED);
	ck_assert_uint_eq(whole->rows[0].advised_ns, 120 * SECOND);
	whole = report_of_commits(MEBIBYTE, 1, 30, 0, 25);
	ck_assert_int_eq(whole->rows[0].verdict, MMT_ROW_MADE_EARLY);
	ck_assert_int_eq(whole->causes[0].verdict, MMT_ROW_MADE_EARLY);
}
END_TEST

/* The row of a process, in which both halves are: it has mappings, but they do not show that it grows. */
START_TEST(rows_with_both_halves)
{
	static const struct {
		unsigned mappings, commits, until;
		enum mmt_row_verdict verdict;
	} cases[] = {
	    {1, 30, 60, MMT_ROW_LEAK},
	    {1, 30, 25, MMT_ROW_MADE_EARLY},
	    {40, 30, 60, MMT_ROW_LEAK}, /* most memory is in mappings, which were made early; the rest leaks */
	};
	struct recording_builder *builder = start_recording(true);
	struct mmt_report_options options;
	struct mmt_report *by_process;

	allocate(builder, 0, cases[_i].mappings, 0, 1, 0);
	make_accessible(builder, MEBIBYTE, 1, cases[_i].commits, 1, cases[_i].until);
	(void)end_recording(builder);
	mmt_report_options_init(&options);
	options.by = MMT_BY_PROCESS;
	by_process = report_file_report(&options);
	ck_assert_uint_eq(by_process->row_count, 1);
	ck_assert_uint_eq(by_process->rows[0].unfreed_count, cases[_i].mappings);
	ck_assert_uint_eq(by_process->rows[0].committed_before_bytes, cases[_i].commits * MEBIBYTE);
	ck_assert_int_eq(by_process->rows[0].verdict, cases[_i].verdict);
	mmt_report_destroy(by_process);
}
END_TEST

/* A managed heap releases memory and allocates it again. */
START_TEST(memory_made_accessible_in_turns_is_no_leak)
{
	struct recording_builder *builder = start_recording(true);
	const uint64_t caller = CODE + 1;
	const struct mmt_report *whole;

	for (uint64_t i = 0; i < 60; i++) {
		for (unsigned given_back = 0; given_back < 2; given_back++)
			builder_call(builder, &(struct builder_call){
						  .call = CALL_MPROTECT,
						  .time_ns = START + i * SECOND + (given_back ? SECOND / 2 : 1),
						  .pid = PID,
						  .tid = PID,
						  .arguments = {RESERVED + i * MEBIBYTE / 2, MEBIBYTE / 2,
								given_back && i < 59 ? PROT_NONE : PROT_READ},
						  .callchain = &caller,
						  .callchain_count = 1});
	}
	whole = end_recording(builder);
	ck_assert_uint_eq(whole->rows[0].committed_before_bytes, MEBIBYTE / 2);
	ck_assert_int_eq(whole->rows[0].verdict, MMT_ROW_MADE_EARLY);
	ck_assert_int_eq(whole->causes[0].verdict, MMT_ROW_MADE_EARLY);
}
END_TEST

/* One call alone shows no growth. */
START_TEST(stacks_that_make_memory_accessible_leak_together)
{
	const struct mmt_report *whole = report_of_commits(MEBIBYTE, 14, 14, 0, 60);

	ck_assert_uint_eq(whole->row_count, 14);
	ck_assert_uint_eq(whole->cause_count, 1);
	for (size_t i = 0; i < whole->row_count; i++)
		ck_assert_int_ne(whole->rows[i].verdict, MMT_ROW_LEAK);
	ck_assert(whole->causes[0].leaks_together);
	ck_assert_int_eq(whole->causes[0].verdict, MMT_ROW_LEAK);
	ck_assert_uint_eq(whole->causes[0].memory_bytes, 14 * MEBIBYTE);
}
END_TEST

/* One of the places also reserved memory for most of the time, which hides neither its own nor the others' growth. */
START_TEST(freed_reservation_hides_no_leak)
{
	struct recording_builder *builder = start_recording(true);
	const uint64_t caller = CODE + 1;
	const struct mmt_report *whole;

	builder_call(builder, &(struct builder_call){
				  .call = CALL_MMAP,
				  .time_ns = START + SECOND / 2,
				  .pid = PID,
				  .tid = PID,
				  .result = (int64_t)ADDRESS,
				  .arguments = {0, 1024 * MEBIBYTE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1ULL, 0},
				  .callchain = &caller,
				  .callchain_count = 1});
	builder_munmap_exit(builder, START + 50 * SECOND, PID, PID, ADDRESS, 1024 * MEBIBYTE);
	make_accessible(builder, MEBIBYTE, 14, 14, 1, 60);
	whole = end_recording(builder);
	ck_assert_uint_eq(whole->row_count, 14);
	ck_assert_uint_eq(whole->cause_count, 1);
	ck_assert(whole->causes[0].leaks_together);
	ck_assert_uint_eq(whole->causes[0].memory_bytes, 14 * MEBIBYTE);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("row-causes");
	TCase *tcase = add_tcase(suite, "row-causes");

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_tests(tcase, one_cause_for_each_function, leaks_of_a_function_are_separate);
	tcase_add_loop_test(tcase, patterns_by_design_are_one_cause, MMT_PATTERN_ARENA, MMT_PATTERN_KINDS);
	tcase_add_tests(tcase, heaps_name_their_callers, runtimes_name_the_program, wrappers_name_their_callers,
			lost_calls_have_no_function, commits_belong_to_the_reservation,
			reservations_with_memory_are_not_joined, a_leak_of_a_sixteenth_decides, figures_are_sums);
	tcase_add_loop_test(tcase, only_stacks_have_causes, 0, 2);
	tcase_add_loop_test(tcase, a_heap_that_grows_by_little_is_not_the_first, 0, 4);
	tcase = add_tcase(suite, "together");
	tcase_add_checked_fixture(tcase, report_file_setup, free_report);
	tcase_add_tests(tcase, stacks_of_one_cause_leak_together, one_verdict_in_every_grouping,
			lines_make_no_other_path, inlining_makes_no_other_path,
			inlined_innermost_functions_make_no_other_path, functions_in_use_side_by_side_are_no_path,
			callers_of_a_heap_have_one_verdict, leak_beside_a_heap_has_one_verdict,
			every_pattern_has_its_hint, mappings_leak_while_rss_is_level, freed_stacks_show_lifetimes,
			memory_made_accessible_throughout_is_a_leak);
	tcase_add_loop_test(tcase, kinds_of_memory_have_their_own_lifetimes, 0, 2);
	tcase_add_loop_test(tcase, limits_of_arenas_help_against_several, 0, 3);
	tcase_add_loop_test(tcase, leak_beside_a_cache_has_one_verdict, 0, 2);
	tcase_add_loop_test(tcase, rows_with_both_halves, 0, 3);
	tcase_add_tests(tcase, memory_made_accessible_in_turns_is_no_leak,
			stacks_that_make_memory_accessible_leak_together, freed_reservation_hides_no_leak);
	return suite;
}
