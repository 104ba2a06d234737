// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "capture/procfs/proc.h"
#include "support/suite.h"
#include "support/temporary.h"

static char directory[TEMPORARY_PATH_SIZE], path[TEMPORARY_PATH_SIZE + 32], link_path[TEMPORARY_PATH_SIZE + 32];

static void create(void)
{
	temporary_directory(directory);
	snprintf(path, sizeof(path), "%s/file", directory);
	snprintf(link_path, sizeof(link_path), "%s/link", directory);
	ck_assert_int_eq(symlink("file", link_path), 0);
}

static void destroy(void)
{
	unlink(path);
	unlink(link_path);
	ck_assert_int_eq(rmdir(directory), 0);
}

static void assert_refused(const char *name, int errno_value)
{
	errno = 0;
	ck_assert_int_eq(regular_file_open(name), -1);
	ck_assert_int_eq(errno, errno_value);
}

START_TEST(a_file_and_a_link_to_it)
{
	const char *const names[] = {path, link_path};
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	char text[8];

	ck_assert_int_eq(write(fd, "inside", 6), 6);
	close(fd);
	for (size_t i = 0; i < 2; i++) {
		fd = regular_file_open(names[i]);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(read(fd, text, sizeof(text)), 6);
		ck_assert_mem_eq(text, "inside", 6);
		ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
		close(fd);
	}
}
END_TEST

/* Opening a FIFO would be noticed: its writer would no longer be refused. */
START_TEST(other_file_types_are_not_opened)
{
	assert_refused(path, ENOENT);
	assert_refused(directory, EINVAL);
	assert_refused("/dev/null", EINVAL);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	assert_refused(path, EINVAL);
	assert_refused(link_path, EINVAL);
	ck_assert_int_eq(open(path, O_WRONLY | O_NONBLOCK), -1);
	ck_assert_int_eq(errno, ENXIO);
}
END_TEST

START_TEST(mapped_file_by_device_and_inode)
{
	const struct stat on_disk = {.st_dev = makedev(8, 1), .st_ino = 77};
	const struct stat on_overlay = {.st_dev = makedev(0, 45), .st_ino = 77};

	ck_assert(regular_file_is_mapped(&on_disk, 8, 1, 77));
	ck_assert(!regular_file_is_mapped(&on_disk, 8, 1, 78));
	ck_assert(!regular_file_is_mapped(&on_disk, 8, 2, 77));
	ck_assert(!regular_file_is_mapped(&on_disk, 9, 1, 77));
	ck_assert(regular_file_is_mapped(&on_disk, 0, 45, 77));
	ck_assert(regular_file_is_mapped(&on_overlay, 8, 1, 77));
	ck_assert(!regular_file_is_mapped(&on_overlay, 8, 1, 78));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("regular-file");
	TCase *tests = add_tcase(suite, "regular-file");

	tcase_add_checked_fixture(tests, create, destroy);
	tcase_add_tests(tests, a_file_and_a_link_to_it, other_file_types_are_not_opened,
			mapped_file_by_device_and_inode);
	return suite;
}
