// SPDX-License-Identifier: LGPL-2.1-or-later
/* The memory counters of control groups of both versions, in directories with such files. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "capture/memory/group-memory.h"
#include "capture/procfs/proc.h"
#include "support/suite.h"
#include "support/temporary.h"

static void write_file(const char *directory, const char *name, const char *text)
{
	char path[2 * TEMPORARY_PATH_SIZE];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(fputs(text, file), 0);
	ck_assert_int_eq(fclose(file), 0);
}

static uint64_t figure(const uint64_t *figures, enum note_kind kind)
{
	return figures[kind < NOTE_GROUP_HIGH ? kind - NOTE_GROUP_FIRST
					      : NOTE_GROUP_FIGURES - 1 - NOTE_GROUP_THROTTLED + kind];
}

/* The directory of the recorded group has the counters. */
START_TEST(version_2)
{
	char directory[TEMPORARY_PATH_SIZE];
	uint64_t figures[NOTE_GROUP_FIGURES];
	struct group_memory memory;
	int fd;

	temporary_directory(directory);
	write_file(directory, "memory.current", "126000\n");
	write_file(directory, "memory.max", _i ? "max\n" : "512000\n");
	write_file(directory, "memory.high", _i ? "max\n" : "400000\n");
	/* Linux before 5.18 has no sum of kernel memory. */
	write_file(directory, "memory.stat",
		   _i ? "anon 1000\nfile 90000\nshmem 80000\nfile_mapped 7\n"
		      : "anon 1000\nfile 90000\nkernel 5000\nkernel_stack 16\nshmem 80000\n");
	write_file(directory, "memory.events", "low 0\nhigh 7\nmax 9\noom 5\noom_kill 3\n");
	if (!_i)
		write_file(directory, "memory.pressure",
			   "some avg10=0.00 avg60=0.00 avg300=0.00 total=8224\nfull avg10=0.00 total=2327\n");
	fd = open(directory, O_RDONLY | O_DIRECTORY);
	ck_assert(group_memory_open(fd, getpid(), &memory));
	ck_assert(!memory.version_1);
	ck_assert(group_memory_read(&memory, figures));
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_CURRENT), 126000);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_ANON), 1000);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_FILE), 90000);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_SHMEM), 80000);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_KERNEL), _i ? GROUP_MEMORY_NONE : 5000);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_LIMIT), _i ? GROUP_MEMORY_NONE : 512000);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_OOM_KILLS), 3);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_STALLED), _i ? GROUP_MEMORY_NONE : 8224);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_HIGH), _i ? GROUP_MEMORY_NONE : 400000);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_THROTTLED), 7);
	for (unsigned i = 0; i < NOTE_GROUP_FIGURES; i++)
		ck_assert_uint_eq(figure(figures, (enum note_kind)NOTE_GROUP_KIND(i)), figures[i]);
	close_descriptor(&memory.directory);
	close(fd);
}
END_TEST

START_TEST(version_1)
{
	char directory[TEMPORARY_PATH_SIZE];
	uint64_t figures[NOTE_GROUP_FIGURES];
	struct group_memory memory = {.version_1 = true};

	temporary_directory(directory);
	write_file(directory, "memory.usage_in_bytes", "126000\n");
	write_file(directory, "memory.limit_in_bytes", _i ? "9223372036854771712\n" : "512000\n");
	write_file(directory, "memory.kmem.usage_in_bytes", "5000\n");
	/* Those of the group alone come first, then those with the groups below. */
	write_file(directory, "memory.stat",
		   "cache 1\nrss 2\nshmem 3\ntotal_cache 90000\ntotal_rss 1000\ntotal_rss_huge 4\ntotal_shmem 80000\n");
	write_file(directory, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	memory.directory = open(directory, O_RDONLY | O_DIRECTORY);
	ck_assert(group_memory_read(&memory, figures));
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_CURRENT), 126000);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_ANON), 1000);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_FILE), 90000);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_SHMEM), 80000);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_KERNEL), 5000);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_LIMIT), _i ? GROUP_MEMORY_NONE : 512000);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_OOM_KILLS), 2);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_STALLED), GROUP_MEMORY_NONE);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_HIGH), GROUP_MEMORY_NONE);
	ck_assert_uint_eq(figure(figures, NOTE_GROUP_THROTTLED), GROUP_MEMORY_NONE);
	close_descriptor(&memory.directory);
}
END_TEST

/* The limit that is the nearest may be that of a group above; a group is found once. */
START_TEST(limits_above)
{
	static const struct {
		const char *outer_limit, *outer_high, *outer_current, *inner_limit;
		uint64_t found;
	} cases[] = {{"1000", "max", "900", "300", 1},
		     {"1000", "max", "900", "150", 0},
		     {"max", "max", "900", "200", 0},
		     {"max", "950", "900", "200", 1},
		     {"900", "max", "950", "max", 1}};
	char directory[TEMPORARY_PATH_SIZE], inner[TEMPORARY_PATH_SIZE + 2];
	struct group_memories groups = {0};
	uint64_t found;
	int fd;

	temporary_directory(directory);
	snprintf(inner, sizeof(inner), "%s/a", directory);
	ck_assert_int_eq(mkdir(inner, 0700), 0);
	write_file(inner, "memory.current", "100\n");
	write_file(inner, "memory.max", cases[_i].inner_limit);
	write_file(directory, "memory.current", cases[_i].outer_current);
	write_file(directory, "memory.max", cases[_i].outer_limit);
	write_file(directory, "memory.high", cases[_i].outer_high);
	fd = open(inner, O_RDONLY | O_DIRECTORY);
	found = group_memories_find(&groups, fd, getpid());
	ck_assert_uint_eq(found, 0);
	ck_assert_uint_eq(group_memories_find(&groups, fd, getpid()), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(group_memories_find_limit(&groups, 0), cases[_i].found);
	ck_assert_uint_eq(groups.items.count, 2);
	group_memories_close(&groups, 0);
	ck_assert_uint_eq(group_memories_find(&groups, fd, getpid()), 2);
	ck_assert_uint_eq(group_memories_find(&groups, -1, -1), GROUP_MEMORY_NONE);
	ck_assert(!groups.left_out);
	while (groups.items.count < LIMIT_GROUPS)
		ck_assert(vector_push(&groups.items, ((struct group_memory){.directory = -1})));
	group_memories_close(&groups, 2);
	ck_assert_uint_eq(group_memories_find(&groups, fd, getpid()), GROUP_MEMORY_NONE);
	ck_assert(groups.left_out);
	group_memories_deinit(&groups);
	close(fd);
}
END_TEST

/* Each controller of version 1 has a path of its own; controllers may share a hierarchy. */
START_TEST(paths)
{
	static const struct {
		const char *text, *path, *unified;
	} cases[] = {
	    {"9:name=systemd:/a\n5:cpu,cpuacct:/b\n4:memory:/c/d:e\n0::/f\n", "/c/d:e", "/f"},
	    {"3:cpuset,memory,pids:/x\n0::/\n", "/x", "/"},
	    {"2:kmemory:/x\n1:name=memory:/y\n0::/z\n", NULL, "/z"},
	    {"0::/user.slice\n", NULL, "/user.slice"},
	    {"", NULL, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[128];
		const char *path;

		snprintf(text, sizeof(text), "%s", cases[i].text);
		path = proc_group_find(text, "memory");
		ck_assert_int_eq(!path, !cases[i].path);
		if (path)
			ck_assert_str_eq(path, cases[i].path);
		snprintf(text, sizeof(text), "%s", cases[i].text);
		path = proc_group_find(text, "");
		ck_assert_int_eq(!path, !cases[i].unified);
		if (path)
			ck_assert_str_eq(path, cases[i].unified);
	}
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("group-memory");
	TCase *cases = add_tcase(suite, "counters");

	tcase_add_loop_test(cases, version_2, 0, 2);
	tcase_add_loop_test(cases, version_1, 0, 2);
	tcase_add_loop_test(cases, limits_above, 0, 5);
	tcase_add_tests(cases, paths);
	return suite;
}
