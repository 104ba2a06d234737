// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <sys/mman.h>

#include "analysis/report/classes.h"
#include "support/suite.h"

#define MIB (1024ull * 1024)
#define RW (PROT_READ | PROT_WRITE)
#define RX (PROT_READ | PROT_EXEC)

static const struct {
	enum mmt_class expected;
	const char *path;
	uint64_t bytes;
	struct space_attributes attributes;
} cases[] = {
    {MMT_CLASS_ANON, "", MIB, {.protection = RW}},
    {MMT_CLASS_ANON, "//anon", MIB, {.protection = RW}},
    {MMT_CLASS_ANON, "[anon:my cache]", MIB, {.protection = RW}},
    {MMT_CLASS_ANON, "/dev/zero", MIB, {.protection = RW, .inode = 5, .device_minor = 6}},
    {MMT_CLASS_FILE, "/usr/lib/libc.so.6", MIB, {.protection = RX, .inode = 7, .device_major = 8}},
    {MMT_CLASS_FILE, "/usr/lib/libc.so.6", MIB, {.protection = PROT_READ}},
    {MMT_CLASS_FILE, "/data/shared", MIB, {.protection = RW, .shared = true, .inode = 7}},
    {MMT_CLASS_FILE, "", MIB, {.protection = RW, .inode = SPACE_INODE_UNKNOWN}},
    {MMT_CLASS_FILE, "/memfd:cache (deleted)", MIB, {.protection = RW, .shared = true, .inode = 9}},
    {MMT_CLASS_FILE, "anon_inode:[perf_event]", MIB, {.protection = RW, .shared = true, .inode = 1}},
    {MMT_CLASS_FILE, "/[aio] (deleted)", MIB, {.protection = RW, .shared = true, .inode = 9}},
    {MMT_CLASS_HEAP, "[heap]", MIB, {.protection = RW, .heap = true}},
    {MMT_CLASS_HEAP, "", MIB, {.protection = RW, .heap = true}},
    {MMT_CLASS_SHM, "/SYSV00001234", MIB, {.protection = RW, .shared = true, .shm = true, .inode = 3}},
    {MMT_CLASS_SHM, "", MIB, {.protection = RW, .shared = true, .shm = true}},
    {MMT_CLASS_SHM, "/dev/zero (deleted)", MIB, {.protection = RW, .shared = true, .inode = 3}},
    {MMT_CLASS_SHM, "", MIB, {.protection = RW, .shared = true}},
    {MMT_CLASS_THREAD_STACK, "", 8 * MIB, {.protection = 0, .thread_stack = true, .noreserve = true}},
    {MMT_CLASS_THREAD_STACK, "", 80 * MIB, {.protection = 0, .thread_stack = true, .noreserve = true}},
    {MMT_CLASS_THREAD_STACK, "[stack]", MIB, {.protection = RW, .growsdown = true}},
    {MMT_CLASS_THREAD_STACK, "[anon: glibc: pthread stack: 1234]", MIB, {.protection = RW}},
    {MMT_CLASS_HUGETLB, "", 4 * MIB, {.protection = RW, .hugetlb = 21}},
    {MMT_CLASS_HUGETLB, "/SYSV00001234", 4 * MIB, {.protection = RW, .shared = true, .shm = true, .hugetlbfs = true}},
    {MMT_CLASS_HUGETLB, "/anon_hugepage (deleted)", 4 * MIB, {.protection = RW, .inode = 2}},
    {MMT_CLASS_JIT, "", MIB, {.protection = RX}},
    {MMT_CLASS_JIT, "/memfd:doublemapper (deleted)", MIB, {.protection = RW, .shared = true, .inode = 4}},
    {MMT_CLASS_JIT, "/memfd:code (deleted)", MIB, {.protection = RX, .shared = true, .inode = 4}},
    {MMT_CLASS_GC_RESERVE, "", 256 * MIB, {.noreserve = true}},
    {MMT_CLASS_GC_RESERVE, "//anon", 32 * MIB, {.noreserve = true}},
    {MMT_CLASS_ANON, "", 31 * MIB, {.noreserve = true}},
    {MMT_CLASS_ANON, "", 256 * MIB, {.noreserve = false}},
    {MMT_CLASS_ANON, "", 256 * MIB, {.noreserve = true, .protection = RW}},
};

START_TEST(class_of_interval)
{
	struct space_interval interval = {
	    .start = 0x10000, .end = 0x10000 + cases[_i].bytes, .attributes = cases[_i].attributes};

	ck_assert_str_eq(mmt_class_name(classes_of_interval(&interval, cases[_i].path)),
			 mmt_class_name(cases[_i].expected));
}
END_TEST

START_TEST(stacks_refine_the_class)
{
	ck_assert_int_eq(classes_with_pattern(MMT_CLASS_GC_RESERVE, MMT_PATTERN_ARENA), MMT_CLASS_ANON);
	ck_assert_int_eq(classes_with_pattern(MMT_CLASS_GC_RESERVE, MMT_PATTERN_GC_HEAP), MMT_CLASS_GC_RESERVE);
	ck_assert_int_eq(classes_with_pattern(MMT_CLASS_ANON, MMT_PATTERN_THREAD_STACK), MMT_CLASS_THREAD_STACK);
	ck_assert_int_eq(classes_with_pattern(MMT_CLASS_FILE, MMT_PATTERN_THREAD_STACK), MMT_CLASS_FILE);
	ck_assert_int_eq(classes_with_pattern(MMT_CLASS_ANON, MMT_PATTERN_NONE), MMT_CLASS_ANON);
}
END_TEST

START_TEST(class_names)
{
	for (unsigned kind = 0; kind < MMT_CLASS_KINDS; kind++)
		for (unsigned other = 0; other <= MMT_CLASS_KINDS; other++)
			ck_assert_int_eq(!strcmp(mmt_class_name(kind), mmt_class_name(other)), kind == other);
	ck_assert_str_eq(mmt_class_name(MMT_CLASS_KINDS), "unknown");
}
END_TEST

/* Memory without a file is one account for each stack, whatever name the kernel shows for it. */
START_TEST(classes_have_kinds)
{
	struct space_interval interval = {.end = 256 * MIB, .attributes.path = 70000};
	uint32_t kind = classes_kind(MMT_CLASS_FILE, &interval);

	ck_assert_int_eq(classes_kind_class(kind), MMT_CLASS_FILE);
	ck_assert_uint_eq(classes_kind_path(kind), 70000);
	ck_assert(!classes_kind_is_range(kind));
	kind = classes_kind(MMT_CLASS_GC_RESERVE, &interval);
	ck_assert_int_eq(classes_kind_class(kind), MMT_CLASS_GC_RESERVE);
	ck_assert_uint_eq(classes_kind_path(kind), 0);
	/* Large and inaccessible: its stack may show more. */
	kind = classes_kind(MMT_CLASS_ANON, &interval);
	ck_assert_int_eq(classes_kind_class(kind), MMT_CLASS_ANON);
	ck_assert_uint_eq(classes_kind_path(kind), 0);
	ck_assert(classes_kind_is_range(kind));
	interval.attributes.protection = RW;
	ck_assert(!classes_kind_is_range(classes_kind(MMT_CLASS_ANON, &interval)));
	interval = (struct space_interval){.end = 31 * MIB};
	ck_assert(!classes_kind_is_range(classes_kind(MMT_CLASS_ANON, &interval)));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("classes");
	TCase *tcase = add_tcase(suite, "classes");

	tcase_add_loop_test(tcase, class_of_interval, 0, (int)(sizeof(cases) / sizeof(cases[0])));
	tcase_add_tests(tcase, stacks_refine_the_class, class_names, classes_have_kinds);
	return suite;
}
