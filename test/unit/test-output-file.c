// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/write/output-file.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mmtrace/output.h>

#include "support/suite.h"
#include "support/temporary.h"

static bool no_nameless_files, no_proc;
static const char *late_link;			  /* "file" becomes a link to this when it has been looked for */
static unsigned renamings, signal_at, failure_at; /* counted from 1; 0: none */

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
__typeof__(openat) __real_openat, __wrap_openat;
__typeof__(access) __real_access, __wrap_access;
__typeof__(renameat) __real_renameat, __wrap_renameat;

int __wrap_openat(int place, const char *name, int flags, ...)
{
	va_list arguments;
	mode_t mode = 0;
	int fd, failure;

	if (flags & (O_CREAT | __O_TMPFILE)) {
		va_start(arguments, flags);
		mode = va_arg(arguments, mode_t);
		va_end(arguments);
	}
	if (no_nameless_files && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	fd = __real_openat(place, name, flags, mode);
	failure = errno;
	if (late_link && symlinkat(late_link, place, "file") == 0)
		late_link = NULL;
	errno = failure;
	return fd;
}

int __wrap_access(const char *path, int mode)
{
	if (no_proc && !strncmp(path, "/proc/", 6)) {
		errno = ENOENT;
		return -1;
	}
	return __real_access(path, mode);
}

int __wrap_renameat(int from_place, const char *from, int to_place, const char *to)
{
	renamings++;
	if (renamings == signal_at)
		(void)kill(getpid(), SIGTERM);
	if (renamings == failure_at) {
		errno = EIO;
		return -1;
	}
	return __real_renameat(from_place, from, to_place, to);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static char directory[TEMPORARY_PATH_SIZE], path[TEMPORARY_PATH_SIZE + 16];

static void set_up(void)
{
	temporary_directory(directory);
	snprintf(path, sizeof(path), "%s/file", directory);
	no_nameless_files = no_proc = false;
	late_link = NULL;
	renamings = signal_at = failure_at = 0;
}

static unsigned count_files(void)
{
	DIR *stream = opendir(directory);
	const struct dirent *entry;
	unsigned count = 0;

	ck_assert_ptr_nonnull(stream);
	while ((entry = readdir(stream)))
		count += entry->d_name[0] != '.';
	closedir(stream);
	return count;
}

static void put(const char *name, const char *content)
{
	FILE *stream = fopen(name, "w");

	ck_assert_ptr_nonnull(stream);
	ck_assert_int_ge(fputs(content, stream), 0);
	ck_assert_int_eq(fclose(stream), 0);
}

static bool holds(const char *suffix, const char *content)
{
	char name[sizeof(path) + 16], text[16] = "";
	FILE *stream;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	stream = fopen(name, "r");
	if (!stream)
		return false;
	if (!fgets(text, sizeof(text), stream))
		text[0] = '\0';
	fclose(stream);
	return !strcmp(text, content);
}

static void begin(struct output_file *file)
{
	ck_assert_ptr_null(output_file_open(path, file));
	ck_assert_ptr_null(output_file_write(file, "new", 3, 0, NULL));
	ck_assert_ptr_null(output_file_check(file));
}

/* 0: normal; 1: unnamed files cannot be created; 2: they cannot be linked. */
static void lack(int what)
{
	no_nameless_files = what == 1;
	no_proc = what == 2;
}

START_TEST(file_appears_under_its_name_when_complete)
{
	struct output_file file;
	struct stat status;

	put(path, "old");
	lack(_i);
	(void)umask(0);
	begin(&file);
	ck_assert(holds("", "old"));
	ck_assert_int_eq(file.nameless, _i == 0);
	ck_assert_uint_eq(count_files(), _i ? 2 : 1);
	ck_assert_ptr_null(output_file_take_name(&file));
	output_file_close(&file);
	ck_assert_uint_eq(count_files(), 2);
	ck_assert(holds("", "new"));
	ck_assert(holds(".old", "old"));
	ck_assert_int_eq(lstat(path, &status), 0);
	ck_assert_uint_eq(status.st_mode, S_IFREG | 0600);
}
END_TEST

/* What happened to earlier files, and where this one is if another has taken its name. */
START_TEST(earlier_files_keep_a_name)
{
	struct output_file first, second, third;
	char old[sizeof(path) + 8];

	lack(_i);
	snprintf(old, sizeof(old), "%s.old", path);
	begin(&first);
	ck_assert_ptr_null(output_file_take_name(&first));
	ck_assert(!first.kept && !first.replaced);
	ck_assert_int_eq(output_file_find(&first), MMT_RECORD_AT_OUTPUT);
	begin(&second);
	ck_assert_ptr_null(output_file_take_name(&second));
	ck_assert(second.kept && !second.replaced);
	ck_assert_int_eq(output_file_find(&first), MMT_RECORD_AT_OLD);
	begin(&third);
	ck_assert_ptr_null(output_file_take_name(&third));
	ck_assert(third.kept && third.replaced);
	ck_assert_int_eq(output_file_find(&first), MMT_RECORD_ELSEWHERE);
	ck_assert_int_eq(output_file_find(&second), MMT_RECORD_AT_OLD);
	ck_assert_int_eq(output_file_find(&third), MMT_RECORD_AT_OUTPUT);
	output_file_close(&first);
	output_file_close(&second);
	/* Two names of one file: nothing is replaced. */
	ck_assert_int_eq(unlink(old), 0);
	ck_assert_int_eq(link(path, old), 0);
	begin(&first);
	ck_assert_ptr_null(output_file_take_name(&first));
	ck_assert(first.kept && !first.replaced);
	ck_assert_int_eq(rename(path, old), 0);
	ck_assert_int_eq(output_file_find(&first), MMT_RECORD_AT_OLD);
	ck_assert_int_eq(output_file_find(&third), MMT_RECORD_ELSEWHERE);
	output_file_close(&first);
	output_file_close(&third);
}
END_TEST

START_TEST(abandoned_file_leaves_nothing)
{
	struct output_file file;

	put(path, "old");
	lack(_i);
	begin(&file);
	output_file_close(&file);
	ck_assert_uint_eq(count_files(), 1);
	ck_assert(holds("", "old"));
}
END_TEST

/* A killed process leaves nothing, if the system permits that. */
START_TEST(killed_writer_leaves_nothing)
{
	struct output_file file;
	pid_t child = fork();
	int status;

	if (child == 0) {
		lack(_i);
		begin(&file);
		(void)raise(SIGKILL);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	ck_assert_uint_eq(count_files(), _i ? 1 : 0);
}
END_TEST

/* Its name is free, but not the longer temporary name. By the time that is reported there is nothing left to write. */
START_TEST(name_too_long_for_the_suffix)
{
	struct output_file file = {.directory = -1, .fd = -1};
	char name[NAME_MAX + 1], long_path[sizeof(directory) + sizeof(name)];
	struct mmt_error *error;

	lack(_i);
	memset(name, 'n', sizeof(name));
	name[NAME_MAX - 4] = '\0';
	snprintf(long_path, sizeof(long_path), "%s/%s", directory, name);
	error = output_file_open(long_path, &file);
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_nonnull(strstr(error->message, "choose a shorter name"));
	mmt_error_destroy(error);
	ck_assert_uint_eq(count_files(), 0);
	name[NAME_MAX - 40] = '\0';
	snprintf(long_path, sizeof(long_path), "%s/%s", directory, name);
	ck_assert_ptr_null(output_file_open(long_path, &file));
	ck_assert_ptr_null(output_file_take_name(&file));
	output_file_close(&file);
	ck_assert_uint_eq(count_files(), 1);
}
END_TEST

START_TEST(links_are_not_followed)
{
	struct output_file file;
	struct mmt_error *error;

	lack(_i);
	begin(&file);
	ck_assert_int_eq(symlink("elsewhere", path), 0);
	error = output_file_take_name(&file);
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_nonnull(strstr(error->message, "symbolic link"));
	mmt_error_destroy(error);
	output_file_close(&file);
	ck_assert_uint_eq(count_files(), 1);
	error = output_file_open(path, &file);
	ck_assert_ptr_nonnull(error);
	mmt_error_destroy(error);
	ck_assert_uint_eq(count_files(), 1);
}
END_TEST

/* The rename of the new file, when the earlier one already has its other name. */
START_TEST(failed_rename_is_reported)
{
	struct output_file file;
	struct mmt_error *error;

	put(path, "old");
	lack(_i);
	begin(&file);
	failure_at = 2;
	error = output_file_take_name(&file);
	ck_assert_ptr_nonnull(error);
	mmt_error_destroy(error);
	ck_assert_uint_eq(count_files(), 1);
	ck_assert(holds("", "old"));
	output_file_close(&file);
	ck_assert_uint_eq(count_files(), 1);
}
END_TEST

/* A signal between the steps kills the process after them: no file is left over, whether they succeed or not. */
START_TEST(signal_between_the_steps)
{
	bool fails = _i >= 2;
	struct output_file file;
	pid_t child;
	int status;

	put(path, "old");
	child = fork();
	if (child == 0) {
		(void)signal(SIGTERM, SIG_DFL);
		begin(&file);
		signal_at = (unsigned)_i % 2 + 1;
		failure_at = fails ? 2 : 0;
		mmt_error_destroy(output_file_take_name(&file));
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	ck_assert_uint_eq(count_files(), fails ? 1 : 2);
	ck_assert(holds("", fails ? "old" : "new"));
}
END_TEST

static struct mmt_error *write_text(const void *text, FILE *stream)
{
	ck_assert_int_ge(fputs(text, stream), 0);
	return NULL;
}

static struct mmt_error *write_half(const void *text, FILE *stream)
{
	ck_assert_int_ge(fputs(text, stream), 0);
	return error_create(MMT_ERROR_SYSTEM, "only half");
}

static void fails(struct mmt_error *error, const char *message)
{
	ck_assert_ptr_nonnull(error);
	ck_assert_ptr_nonnull(strstr(error->message, message));
	mmt_error_destroy(error);
}

/* A report: the usual mode, or that of the earlier file, which is not kept. */
START_TEST(result_replaces_a_regular_file)
{
	struct stat status;

	lack(_i);
	(void)umask(022);
	fails(mmt_write_file(path, write_half, "new"), "only half");
	ck_assert_uint_eq(count_files(), 0);
	ck_assert_ptr_null(mmt_write_file(path, write_text, "old"));
	ck_assert_int_eq(lstat(path, &status), 0);
	ck_assert_uint_eq(status.st_mode, S_IFREG | 0644);
	ck_assert_int_eq(chmod(path, 0640), 0);
	fails(mmt_write_file(path, write_half, "new"), "only half");
	ck_assert(holds("", "old"));
	ck_assert_ptr_null(mmt_write_file(path, write_text, "new"));
	ck_assert(holds("", "new"));
	ck_assert_uint_eq(count_files(), 1);
	ck_assert_int_eq(lstat(path, &status), 0);
	ck_assert_uint_eq(status.st_mode, S_IFREG | 0640);
}
END_TEST

/* The file that a link points to is replaced; a pipe stays a pipe; a recording is not replaced. */
START_TEST(result_follows_links_and_pipes)
{
	char target[sizeof(path) + 8];
	struct stat status;
	int fd;

	lack(_i);
	snprintf(target, sizeof(target), "%s.target", path);
	put(target, "old");
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_ptr_null(mmt_write_file(path, write_text, "new"));
	ck_assert(holds(".target", "new"));
	ck_assert_int_eq(lstat(path, &status), 0);
	ck_assert(S_ISLNK(status.st_mode));
	ck_assert_int_eq(unlink(path), 0);
	put(path, "PERFILE2");
	fails(mmt_write_file(path, write_text, "new"), "is a recording");
	ck_assert(holds("", "PERFILE2"));
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_ptr_null(mmt_write_file(path, write_text, "new"));
	ck_assert_int_eq(read(fd, target, sizeof(target)), 3);
	close(fd);
	ck_assert_int_eq(lstat(path, &status), 0);
	ck_assert(S_ISFIFO(status.st_mode));
	ck_assert_uint_eq(count_files(), 2);
	fails(mmt_write_file("/dev/full", write_text, "new"), "No space left on device");
	fails(mmt_write_file("/nonexistent/file", write_text, "new"), "cannot write /nonexistent/file: No such file");
}
END_TEST

/* The target of a link is created where the link points, through a second, relative link. */
START_TEST(result_of_dangling_link)
{
	char link[sizeof(path) + 8], target[sizeof(path) + 8];
	struct stat status;

	lack(_i);
	snprintf(link, sizeof(link), "%s.link", path);
	snprintf(target, sizeof(target), "%s.target", strrchr(path, '/') + 1);
	ck_assert_int_eq(symlink(link, path), 0);
	ck_assert_int_eq(symlink(target, link), 0);
	fails(mmt_write_file(path, write_half, "new"), "only half");
	ck_assert_uint_eq(count_files(), 2);
	ck_assert_ptr_null(mmt_write_file(path, write_text, "new"));
	ck_assert(holds(".target", "new"));
	ck_assert_int_eq(lstat(path, &status), 0);
	ck_assert(S_ISLNK(status.st_mode));
	ck_assert_int_eq(lstat(link, &status), 0);
	ck_assert(S_ISLNK(status.st_mode));
	ck_assert_uint_eq(count_files(), 3);
	ck_assert_int_eq(unlink(link), 0);
	ck_assert_int_eq(symlink("/nonexistent/file", link), 0);
	fails(mmt_write_file(path, write_text, "new"), "cannot write /nonexistent/file: No such file");
}
END_TEST

#define ANOTHER_USER 12345

/* Neither an existing file nor a new one is written through a link of another user, and a mode is not changed. */
START_TEST(link_of_another_user_is_refused)
{
	char target[sizeof(path) + 8];
	struct stat status;

	if (geteuid())
		SKIP_TEST("only root can make files of another user");
	lack(_i);
	snprintf(target, sizeof(target), "%s.target", path);
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_int_eq(lchown(path, ANOTHER_USER, ANOTHER_USER), 0);
	fails(mmt_write_file(path, write_text, "new"), "symbolic link that belongs to another user");
	ck_assert_uint_eq(count_files(), 1);
	put(target, "old");
	ck_assert_int_eq(chmod(target, 0600), 0);
	fails(mmt_write_file(path, write_text, "new"), "symbolic link that belongs to another user");
	ck_assert(holds(".target", "old"));
	ck_assert_int_eq(lstat(target, &status), 0);
	ck_assert_uint_eq(status.st_mode, S_IFREG | 0600);
	ck_assert_uint_eq(count_files(), 2);
}
END_TEST

/* There, the link /dev/stdout belongs to nobody that the user namespace knows. */
START_TEST(standard_output_in_a_user_namespace)
{
	uid_t user = geteuid() ? geteuid() : ANOTHER_USER;
	char text[32];
	int fds[2], map;

	ck_assert(setresuid(user, user, user) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
	if (unshare(CLONE_NEWUSER))
		SKIP_TEST("no user namespaces");
	snprintf(text, sizeof(text), "0 %u 1", (unsigned)user);
	map = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(write(map, text, strlen(text)), (ssize_t)strlen(text));
	close(map);
	ck_assert(pipe2(fds, O_CLOEXEC) == 0 && dup2(fds[1], STDOUT_FILENO) == STDOUT_FILENO);
	ck_assert_ptr_null(mmt_write_file("/dev/stdout", write_text, "new"));
	ck_assert_int_eq(read(fds[0], text, sizeof(text)), 3);
}
END_TEST

/* The link appears after mmtrace found nothing at its path, so it is replaced. */
START_TEST(link_that_appears_late_is_replaced)
{
	char target[sizeof(path) + 8];
	struct stat status;

	lack(_i);
	snprintf(target, sizeof(target), "%s.target", path);
	put(target, "old");
	late_link = target;
	ck_assert_ptr_null(mmt_write_file(path, write_text, "new"));
	ck_assert_ptr_null(late_link);
	ck_assert(holds(".target", "old"));
	ck_assert(holds("", "new"));
	ck_assert_int_eq(lstat(path, &status), 0);
	ck_assert(S_ISREG(status.st_mode));
	ck_assert_uint_eq(count_files(), 2);
}
END_TEST

/* Another user reads a pipe of his own, and chose the mode of a file of his own. */
START_TEST(pipe_and_mode_of_another_user)
{
	struct stat status;

	if (geteuid())
		SKIP_TEST("only root can make files of another user");
	lack(_i);
	(void)umask(022);
	put(path, "old");
	ck_assert_int_eq(chmod(path, 0666), 0);
	ck_assert_int_eq(chown(path, ANOTHER_USER, ANOTHER_USER), 0);
	ck_assert_ptr_null(mmt_write_file(path, write_text, "new"));
	ck_assert_int_eq(lstat(path, &status), 0);
	ck_assert_uint_eq(status.st_mode, S_IFREG | 0644);
	ck_assert_uint_eq(status.st_uid, geteuid());
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkfifo(path, 0622), 0);
	ck_assert_int_eq(chown(path, ANOTHER_USER, ANOTHER_USER), 0);
	fails(mmt_write_file(path, write_text, "new"), "pipe that belongs to another user");
}
END_TEST

/* The directory is the one that was opened, whatever its path leads to later. */
START_TEST(directory_is_kept)
{
	char moved[sizeof(directory) + 8];
	struct output_file file;

	lack(_i);
	snprintf(moved, sizeof(moved), "%s.moved", directory);
	begin(&file);
	ck_assert_int_eq(rename(directory, moved), 0);
	ck_assert_int_eq(mkdir(directory, 0700), 0);
	ck_assert_ptr_null(output_file_take_name(&file));
	output_file_close(&file);
	ck_assert_uint_eq(count_files(), 0);
	ck_assert_int_eq(rmdir(directory), 0);
	ck_assert_int_eq(rename(moved, directory), 0);
	ck_assert(holds("", "new"));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("output file");
	TCase *tests = add_tcase(suite, "output file");

	tcase_add_checked_fixture(tests, set_up, NULL);
	tcase_add_loop_test(tests, file_appears_under_its_name_when_complete, 0, 3);
	tcase_add_loop_test(tests, abandoned_file_leaves_nothing, 0, 3);
	tcase_add_loop_test(tests, earlier_files_keep_a_name, 0, 3);
	tcase_add_loop_test(tests, killed_writer_leaves_nothing, 0, 3);
	tcase_add_loop_test(tests, name_too_long_for_the_suffix, 0, 3);
	tcase_add_loop_test(tests, links_are_not_followed, 0, 3);
	tcase_add_loop_test(tests, result_replaces_a_regular_file, 0, 3);
	tcase_add_loop_test(tests, result_follows_links_and_pipes, 0, 3);
	tcase_add_loop_test(tests, result_of_dangling_link, 0, 3);
	tcase_add_loop_test(tests, link_of_another_user_is_refused, 0, 3);
	tcase_add_test(tests, standard_output_in_a_user_namespace);
	tcase_add_loop_test(tests, link_that_appears_late_is_replaced, 0, 3);
	tcase_add_loop_test(tests, pipe_and_mode_of_another_user, 0, 3);
	tcase_add_loop_test(tests, directory_is_kept, 0, 3);
	tcase_add_loop_test(tests, failed_rename_is_reported, 0, 3);
	tcase_add_loop_test(tests, signal_between_the_steps, 0, 4);
	return suite;
}
