// SPDX-License-Identifier: LGPL-2.1-or-later
/* The section of heap censuses, and what the dump prints of it. */
#include <check.h>
#include <mmtrace/output.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "support/recording-builder.h"
#include "support/section.h"
#include "support/suite.h"
#include "support/temporary.h"
#include "trace/format/format.h"
#include "trace/sections/sections.h"

static struct buffer buffer;

static void create(void)
{
	buffer_init(&buffer, LIMIT_SECTION_BYTES);
}

static void destroy(void)
{
	buffer_deinit(&buffer);
}

static char type_name[] = "N3app7SessionE", no_name[] = "", module[] = "/lib/a \"b\".so", version[] = "glibc 2.36";

static struct mmt_heap_group groups[] = {
    {MMT_HEAP_TYPE, 928, 928, 20, 18560, 1, 4096, type_name, 0},
    {MMT_HEAP_POINTER, 64, 64, 10, 640, 0, 0, module, 0x1000},
    {MMT_HEAP_UNKNOWN, 32, 1024, 5, 2000, 2, 64, no_name, 0},
};

static const struct mmt_heap_census example = {
    .pid = 42,
    .time_ns = 5000000007,
    .when = MMT_HEAP_AT_SNAPSHOT,
    .allocator = MMT_ALLOCATOR_GLIBC,
    .result = MMT_HEAP_DAMAGED,
    .allocator_name = version,
    .stopped_at = 0x7f0000001000,
    .elapsed_ns = 11,
    .processor_ns = 10,
    .arenas = 3,
    .mapped_bytes = 135168,
    .walked_bytes = 131072,
    .in_use_count = 35,
    .in_use_low = 21200,
    .in_use_high = 25296,
    .free_count = 4,
    .free_bytes = 4160,
    .tcache_bytes = 96,
    .fastbin_bytes = 64,
    .top_bytes = 100000,
    .trimmable_bytes = 98304,
    .mmapped_count = 2,
    .mmapped_bytes = 8192,
    .groups = groups,
    .group_count = 3,
};

static struct mmt_error *pass(const struct mmt_heap_census *census, struct heap_censuses *read)
{
	struct mmt_heap_census copy = *census;
	const struct heap_censuses heaps = {.items = {.items = &copy, .count = 1}};
	struct bytes bytes;

	buffer_clear(&buffer);
	ck_assert_ptr_null(section_write(&section_heap, &heaps, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	return section_read(&section_heap, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, read);
}

START_TEST(a_census_round_trips)
{
	struct heap_censuses read = {0};
	struct mmt_heap_census *census;

	ck_assert_ptr_null(pass(&example, &read));
	ck_assert_uint_eq(read.items.count, 1);
	census = read.items.items;
	ck_assert_str_eq(census->allocator_name, "glibc 2.36");
	ck_assert_uint_eq(census->group_count, 3);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_str_eq(census->groups[i].name, groups[i].name);
		free(census->groups[i].name);
		census->groups[i].name = groups[i].name;
		ck_assert_mem_eq(&census->groups[i], &groups[i], sizeof(groups[i]));
	}
	free(census->groups);
	free(census->allocator_name);
	census->groups = groups;
	census->allocator_name = version;
	ck_assert_mem_eq(census, &example, sizeof(example));
	vector_deinit(&read.items);
}
END_TEST

static void refuse(const struct mmt_heap_census *census, const char *why)
{
	struct heap_censuses read = {0};
	struct mmt_error *error = pass(census, &read);

	ck_assert_ptr_nonnull(error);
	ck_assert_msg(strstr(error->message, why), "%s", error->message);
	mmt_error_destroy(error);
	ck_assert_uint_eq(read.items.count, 0);
}

START_TEST(contradictions_are_damage)
{
	struct mmt_heap_census census = example;
	struct mmt_heap_group group = groups[0];

	census.in_use_low = census.in_use_high + 1;
	refuse(&census, "contradict");
	census = example;
	census.walked_bytes = census.mapped_bytes + 1;
	refuse(&census, "contradict");
	census = example;
	census.result = MMT_HEAP_CHANGING + 1;
	refuse(&census, "unknown kind");
	census = example;
	census.mmapped_bytes = LIMIT_RESIDENT_BYTES + 1;
	refuse(&census, "more bytes than a process has");
	census = example;
	census.groups = &group;
	census.group_count = 1;
	group.smallest_bytes++;
	refuse(&census, "contradict");
	group = groups[0];
	group.after_free_count = group.count + 1;
	refuse(&census, "contradict");
	group = groups[0];
	group.content = MMT_HEAP_POINTER + 1;
	refuse(&census, "unknown content");
}
END_TEST

START_TEST(more_groups_than_the_limit_are_damage)
{
	struct mmt_heap_census census = example;
	struct heap_censuses read = {0};

	census.groups = calloc(LIMIT_HEAP_GROUPS + 1, sizeof(*groups));
	census.group_count = LIMIT_HEAP_GROUPS + 1;
	for (size_t i = 0; i <= LIMIT_HEAP_GROUPS; i++)
		census.groups[i].name = no_name;
	refuse(&census, "count beyond the limit");
	census.group_count--;
	ck_assert_ptr_null(pass(&census, &read));
	ck_assert_uint_eq(read.items.items[0].group_count, LIMIT_HEAP_GROUPS);
	section_heap.deinit(&read);
	free(census.groups);
}
END_TEST

START_TEST(the_dump_prints_them)
{
	char path[TEMPORARY_PATH_SIZE];
	struct recording_builder *builder;
	struct heap_censuses read = {0};
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	temporary_name(path);
	builder = builder_create(path);
	ck_assert_ptr_null(pass(&example, &read));
	section_heap.deinit(&read);
	builder_section(builder, FEATURE_MMTRACE_HEAP, buffer.data, buffer.size);
	builder_finish(builder, 9);
	ck_assert_ptr_null(mmt_dump(path, NULL, stream));
	fclose(stream);
	ck_assert_ptr_nonnull(strstr(text, "# heap time=5.000000007 pid=42 when=snapshot allocator=\"glibc 2.36\" "
					   "result=damaged stopped_at=0x7f0000001000 elapsed_ns=11 processor_ns=10 "
					   "arenas=3 mapped_bytes=135168 walked_bytes=131072 in_use_count=35 "
					   "in_use_low=21200 in_use_high=25296 free_count=4 free_bytes=4160 "
					   "tcache_bytes=96 fastbin_bytes=64 top_bytes=100000 trimmable_bytes=98304 "
					   "mmapped_count=2 mmapped_bytes=8192\n"
					   "# heap-group content=type smallest_bytes=928 largest_bytes=928 count=20 "
					   "bytes=18560 after_free_count=1 after_free_bytes=4096 offset=0 "
					   "name=\"N3app7SessionE\"\n"));
	ck_assert_ptr_nonnull(strstr(text, "offset=0x1000 name=\"/lib/a \\x22b\\x22.so\"\n"));
	free(text);
	temporary_remove(path);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("heap section");
	TCase *cases = add_tcase(suite, "censuses");

	tcase_add_checked_fixture(cases, create, destroy);
	tcase_add_tests(cases, a_census_round_trips, contradictions_are_damage, more_groups_than_the_limit_are_damage,
			the_dump_prints_them);
	return suite;
}
