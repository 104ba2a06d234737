// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/jit/code-timeline.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct perf_map *parse(const void *text, size_t size)
{
	struct perf_map *map = NULL;

	ck_assert_ptr_null(perf_map_create(text, size, NULL, 0, &map));
	return map;
}

static const char *find_name(struct perf_map *map, uint64_t address, uint64_t *start_ret)
{
	uint32_t number = code_timeline_find(map->timeline, address, UINT64_MAX);
	struct named_code entry;

	if (number == CODE_TIMELINE_NONE)
		return NULL;
	entry = perf_map_entry(map, number);
	if (start_ret)
		*start_ret = entry.start;
	return entry.name;
}

static const struct variant {
	const char *line;
	uint64_t start, size;
	const char *name;
} variants[] = {
    {"0x7f0010 dd void [t] P::Main(string[])[QuickJitted]\n", 0x7f0010, 0xdd,
     "void [t] P::Main(string[])[QuickJitted]"},
    {"00007F00ABCDEF00 1F void [t] P::Main()\n", 0x7f00abcdef00, 0x1f, "void [t] P::Main()"},
    {"0x00007f0010000000 0x0000000000000040 StubRoutines (1)\n", 0x7f0010000000, 0x40, "StubRoutines (1)"},
    {"3a0 20 JS:~loop /tmp/nt.js:1:92\n", 0x3a0, 0x20, "JS:~loop /tmp/nt.js:1:92"},
    {"7f0 b py::loop:/path/file.py\n", 0x7f0, 0xb, "py::loop:/path/file.py"},
    {"0x10 8 $global::apply_fun_shared\n", 0x10, 8, "$global::apply_fun_shared"},
    {"\t 10 \t 8 \t name\n", 0x10, 8, "name"},
    {"0X10 0X8 name\n", 0x10, 8, "name"},
    {"10 8 name\r\n", 0x10, 8, "name"},
    {"10 8 name", 0x10, 8, "name"},
    {"10 8 x\n", 0x10, 8, "x"},
    {"10 8 \033[31m\001\n", 0x10, 8, "\033[31m\001"},
    {"ffffffffffffff00 ff name\n", 0xffffffffffffff00, 0xff, "name"},
    {"000000000000000000000010 8 name\n", 0x10, 8, "name"},
};

START_TEST(test_other_formats)
{
	const struct variant *variant = &variants[_i];
	struct perf_map *map = parse(variant->line, strlen(variant->line));
	uint64_t start = 0;

	ck_assert_ptr_nonnull(find_name(map, variant->start, &start));
	ck_assert_str_eq(find_name(map, variant->start, NULL), variant->name);
	ck_assert_str_eq(find_name(map, variant->start + variant->size - 1, NULL), variant->name);
	ck_assert_uint_eq(start, variant->start);
	ck_assert_ptr_null(find_name(map, variant->start - 1, NULL));
	ck_assert_ptr_null(find_name(map, variant->start + variant->size, NULL));
	perf_map_destroy(map);
}
END_TEST

static const char *const garbage[] = {
    "name\n",
    "10\n",
    "10 \n",
    "10 8\n",
    "10 8 \n",
    "10 8 \r\n",
    "0x 8 name\n",
    "10 g name\n",
    "10-20 name\n",
    "-10 8 n\n",
    "10 ffffffffffffffff n\n",
    "10000000000000000 8 n\n",
    "1 10000000000000000 n\n",
};

START_TEST(test_garbage)
{
	struct perf_map *map = parse(garbage[_i], strlen(garbage[_i]));

	ck_assert_ptr_null(find_name(map, 0, NULL));
	ck_assert_ptr_null(find_name(map, 1, NULL));
	ck_assert_ptr_null(find_name(map, 0x10, NULL));
	perf_map_destroy(map);
}
END_TEST

START_TEST(truncated_and_empty_lines_have_no_name)
{
	static const char text[] = "10 8 a\n\n20 0 nothing\n30 1";
	struct perf_map *map = parse(text, sizeof(text) - 1);

	ck_assert_ptr_nonnull(find_name(map, 0x10, NULL));
	ck_assert_ptr_null(find_name(map, 0x20, NULL));
	ck_assert_ptr_null(find_name(map, 0x30, NULL));
	perf_map_destroy(map);
	map = parse(NULL, 0);
	ck_assert_ptr_null(find_name(map, 0, NULL));
	perf_map_destroy(map);
}
END_TEST

/* Random overlapping entries compared with a byte-by-byte model of the address space. */
START_TEST(test_later_lines_win)
{
	enum { SPACE = 512, LINES = 60 };

	for (unsigned round = 0; round < 200; round++) {
		char text[LINES * 32];
		int last[SPACE], starts[LINES];
		size_t used = 0;
		struct perf_map *map;

		srand(round);
		memset(last, -1, sizeof(last));
		for (int i = 0; i < LINES; i++) {
			int start = rand() % (SPACE - 64), size = rand() % 64;

			used += (size_t)sprintf(text + used, "%x %x f%d\n", start, size, i);
			starts[i] = start;
			for (int j = start; j < start + size; j++)
				last[j] = i;
		}
		map = parse(text, used);
		for (int i = 0; i < SPACE; i++) {
			uint64_t start = 0;
			const char *name = find_name(map, (uint64_t)i, &start);
			char expected[16];

			if (last[i] < 0) {
				ck_assert_ptr_null(name);
				continue;
			}
			snprintf(expected, sizeof(expected), "f%d", last[i]);
			ck_assert_ptr_nonnull(name);
			ck_assert_str_eq(name, expected);
			ck_assert_uint_eq(start, (uint64_t)starts[last[i]]);
		}
		perf_map_destroy(map);
	}
}
END_TEST

/* Five bytes are `10 8 `; the file was read when it had 7, 14 and 24 bytes. */
START_TEST(test_lines_are_found_by_time)
{
	static const char text[] = "10 8 a\n18 8 b\n14 8 between\n20 4 c";
	static const struct perf_map_step steps[] = {{100, 7}, {200, 14}, {300, 27}};
	static const struct {
		uint64_t address, time_ns;
		const char *name;
	} cases[] = {
	    {0x10, 0, "a"},	    {0x10, 400, "a"},	    {0x14, 0, "a"},   {0x14, 200, "a"},
	    {0x14, 201, "between"}, {0x14, 400, "between"}, {0x18, 0, "b"}, /* the first one */
	    {0x18, 200, "b"},	    {0x18, 201, "between"}, {0x1c, 400, "b"}, {0x20, 0, "c"},
	    {0x20, 400, "c"},	    {0x24, 400, NULL},	    {0x14, 150, "a"}, /* going back */
	    {0x14, 250, "between"},
	};
	struct perf_map *map = NULL;
	uint64_t epoch;

	ck_assert_ptr_null(perf_map_create(text, sizeof(text) - 1, steps, 3, &map));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t entry = code_timeline_find(map->timeline, cases[i].address, cases[i].time_ns);

		if (cases[i].name)
			ck_assert_str_eq(perf_map_entry(map, entry).name, cases[i].name);
		else
			ck_assert_uint_eq(entry, CODE_TIMELINE_NONE);
	}
	perf_map_destroy(map);
	/* The epoch changes if and only if the answers change. */
	ck_assert_ptr_null(perf_map_create(text, sizeof(text) - 1, steps, 3, &map));
	epoch = code_timeline_epoch(map->timeline, 0);
	ck_assert_uint_eq(code_timeline_epoch(map->timeline, 200), epoch);
	ck_assert_uint_ne(code_timeline_epoch(map->timeline, 201), epoch);
	epoch = code_timeline_epoch(map->timeline, 250);
	ck_assert_uint_eq(code_timeline_epoch(map->timeline, 400), epoch);
	ck_assert_uint_ne(code_timeline_epoch(map->timeline, 0), epoch);
	perf_map_destroy(map);
}
END_TEST

/* Random ranges at random times compared with a byte-by-byte model at each time. */
START_TEST(test_random_times_match_a_model)
{
	enum { SPACE = 256, LINES = 40 };

	for (unsigned round = 0; round < 20; round++) {
		struct perf_map_step steps[LINES];
		char text[LINES * 32];
		int starts[LINES], ends[LINES];
		size_t used = 0;
		struct perf_map *map = NULL;

		srand(round);
		for (int i = 0; i < LINES; i++) {
			starts[i] = rand() % (SPACE - 32);
			ends[i] = starts[i] + 1 + rand() % 31;
			used += (size_t)sprintf(text + used, "%x %x f%d\n", starts[i], ends[i] - starts[i], i);
			steps[i] = (struct perf_map_step){.time_ns = 10 * ((uint64_t)i + 1), .length = used};
		}
		ck_assert_ptr_null(perf_map_create(text, used, steps, LINES, &map));
		for (int time = 0; time <= LINES; time++) {
			for (int address = 0; address < SPACE; address++) {
				int expected = -1, first = -1;
				uint32_t entry =
				    code_timeline_find(map->timeline, (uint64_t)address, 10 * (uint64_t)time + 1);

				for (int i = 0; i < LINES; i++) {
					if (address < starts[i] || address >= ends[i])
						continue;
					first = first < 0 ? i : first;
					expected = i <= time ? i : expected;
				}
				expected = expected < 0 ? first : expected;
				ck_assert_int_eq(entry == CODE_TIMELINE_NONE ? -1 : (int)entry, expected);
			}
		}
		perf_map_destroy(map);
	}
}
END_TEST

START_TEST(test_descending_steps_are_ignored)
{
	static const struct perf_map_step shorter[] = {{100, 14}, {200, 7}}, earlier[] = {{200, 7}, {100, 14}};
	static const char text[] = "10 8 a\n10 8 b\n";
	struct perf_map *map = NULL;

	for (int i = 0; i < 2; i++) {
		ck_assert_ptr_null(perf_map_create(text, sizeof(text) - 1, i ? shorter : earlier, 2, &map));
		ck_assert_str_eq(perf_map_entry(map, code_timeline_find(map->timeline, 0x10, 0)).name, "b");
		perf_map_destroy(map);
	}
}
END_TEST

START_TEST(test_a_megabyte_of_random_bytes)
{
	size_t size = 1 << 20;
	char *text = malloc(size);
	struct perf_map *map;

	srand(1);
	for (size_t i = 0; i < size; i++)
		text[i] = "0123456789abcdef x\n"[rand() % 19];
	map = parse(text, size);
	ck_assert_uint_eq(map->dropped, 0);
	perf_map_destroy(map);
	for (size_t i = 0; i < size; i++)
		text[i] = (char)rand();
	map = parse(text, size);
	ck_assert_uint_eq(map->dropped, 0);
	perf_map_destroy(map);
	free(text);
}
END_TEST

static const struct {
	const char *name, *normal;
} names[] = {
    {"void [MyConsoleApp] MyConsoleApp.Program::Main(string[])[OptimizedTier1]",
     "MyConsoleApp.Program::Main(string[])"},
    {"native int [x] dynamicClass::IL_STUB_PInvoke(native int)[Optimized]", "IL_STUB_PInvoke(native int)"},
    {"System.H /* MT: 0x7f18b3d7df88 */ [System.Private.CoreLib] dynamicClass::IL_STUB_PInvoke(System.Q /* MT: "
     "0x7f18b3d07780 */,int32)[Optimized]",
     "IL_STUB_PInvoke(System.Q,int32)"},
    {"instance class [System.CommandLine]System.CommandLine.Command [Asm] "
     "A.B`1+<>c[System.__Canon]::<.cctor>b__6(class "
     "[R]S.F`2<class [S]S.P>)[QuickJitted]",
     "A.B`1+<>c[System.__Canon]::<.cctor>b__6(class [R]S.F`2<class [S]S.P>)"},
    {"void [t] P::Main(string[])", "P::Main(string[])"},
    {"void [t] P::Main()[PreJIT]", "P::Main()"},
    {"void [t] P::Get(int32[])[InstrumentedTier]", "P::Get(int32[])"},
    {"stub Link<DelegateShuffleThunk>", "stub Link<DelegateShuffleThunk>"},
    {"JS:~loop /tmp/nt.js:1:92", "JS:loop /tmp/nt.js:1:92"},
    {"JS:*loop /tmp/nt.js:1:92", "JS:loop /tmp/nt.js:1:92"},
    {"LazyCompile:^f /x.js:1", "LazyCompile:f /x.js:1"},
    {"JS:", "JS:"},
    {"py::loop:/path/a.py", "py::loop:/path/a.py"},
    {"py::loop:/a [b] c::d.py", "py::loop:/a [b] c::d.py"},
    {"void T.myTest(java.nio.channels.FileChannel)", "void T.myTest(java.nio.channels.FileChannel)"},
    {"(wrapper managed-to-native) P:mmap_allocation (intptr)",
     "(wrapper managed-to-native) P:mmap_allocation (intptr)"},
    {"[Optimized]", "[Optimized]"},
    {"f /* MT: 0x12", "f /* MT: 0x12"},
};

START_TEST(test_names_are_normalized)
{
	char text[512], cut[8];

	perf_map_normalise(names[_i].name, text, sizeof(text));
	ck_assert_str_eq(text, names[_i].normal);
	perf_map_normalise(names[_i].name, cut, sizeof(cut));
	ck_assert_uint_lt(strlen(cut), sizeof(cut));
	ck_assert_int_eq(strncmp(cut, names[_i].normal, strlen(cut)), 0);
}
END_TEST

/* No recursion for each of them. */
START_TEST(test_a_million_suffixes_cost_little)
{
	static const char suffix[] = "[PreJIT]";
	size_t length = sizeof(suffix) - 1, count = 1u << 20;
	char *name = calloc(count, length + 1);
	char text[64];

	for (size_t i = 0; i < count; i++)
		memcpy(name + i * length, suffix, length);
	perf_map_normalise(name, text, sizeof(text));
	ck_assert_str_eq(text, suffix);
	free(name);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("perf-map");
	TCase *tests = add_tcase(suite, "perf-map");

	tcase_set_timeout(tests, 600);
	tcase_add_loop_test(tests, test_other_formats, 0, sizeof(variants) / sizeof(*variants));
	tcase_add_loop_test(tests, test_garbage, 0, sizeof(garbage) / sizeof(*garbage));
	tcase_add_tests(tests, truncated_and_empty_lines_have_no_name, test_later_lines_win,
			test_lines_are_found_by_time, test_random_times_match_a_model,
			test_descending_steps_are_ignored, test_a_megabyte_of_random_bytes);
	tcase_add_loop_test(tests, test_names_are_normalized, 0, sizeof(names) / sizeof(*names));
	tcase_add_test(tests, test_a_million_suffixes_cost_little);
	return suite;
}
