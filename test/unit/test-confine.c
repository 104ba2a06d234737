// SPDX-License-Identifier: LGPL-2.1-or-later
/* A confined process does harm only where it may write. Each test runs in a process of its own. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ipc.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mmtrace/confine.h>
#include <mmtrace/machine.h>
#include <mmtrace/output.h>
#include <mmtrace/report.h>

#include "base/helper-process.h"
#include "support/suite.h"
#include "support/temporary.h"

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FILTERED 1
#else
#define FILTERED 0
#endif

static char directory[TEMPORARY_PATH_SIZE], inside[TEMPORARY_PATH_SIZE + 8], outside[TEMPORARY_PATH_SIZE];

static void make_places(void)
{
	unsetenv("DEBUGINFOD_URLS");
	temporary_directory(directory);
	snprintf(inside, sizeof(inside), "%s/file", directory);
	temporary_name(outside);
	ck_assert_int_ge(close(open(outside, O_WRONLY | O_CREAT | O_EXCL, 0600)), 0);
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */) > 0;
}

/* The descriptor is closed. */
static bool opens(const char *path, int flags)
{
	int fd = open(path, flags, 0600);

	return fd >= 0 && close(fd) == 0;
}

static bool is_traced(pid_t child)
{
	bool traced = ptrace(PTRACE_SEIZE, child, 0, 0) == 0;

	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return traced;
}

static void expect_no_harm(void)
{
	char *const nothing[] = {NULL};
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	ck_assert(!is_traced(child));
	ck_assert_int_eq(socket(AF_INET, SOCK_DGRAM, 0), -1);
	ck_assert_int_eq(socket(AF_UNIX, SOCK_STREAM, 0), -1);
	ck_assert_int_eq(execve("/bin/true", nothing, nothing), -1);
	ck_assert_int_eq((int)syscall(SYS_openat2, AT_FDCWD, outside, NULL, 0), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(unshare(CLONE_NEWUSER), -1);
	ck_assert_int_eq((int)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL), -1);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, (int[2]){0}), -1);
	ck_assert_int_eq((int)syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, O_WRONLY), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq((int)syscall(SYS_prlimit64, getppid(), RLIMIT_NOFILE, NULL, &(struct rlimit){0}), -1);
	ck_assert_int_eq(kill(-1, 0), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(shmget(IPC_PRIVATE, 1, IPC_CREAT), -1);
	ck_assert_int_eq(chmod(outside, 04755), -1);
	ck_assert_int_eq(symlink("/", inside), -1);
	ck_assert_int_eq(truncate(outside, 1), -1);
	ck_assert_int_eq(ioctl(STDIN_FILENO, TIOCSTI, "x"), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(ioctl(STDIN_FILENO, TIOCLINUX, "x"), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(fchown(STDIN_FILENO, 0, 0), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(fchmod(STDIN_FILENO, 04700), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert(!opens(outside, O_RDONLY | O_TRUNC));
	ck_assert_int_eq((int)syscall(SYS_fchmodat + 10000), -1);
	ck_assert_int_eq(errno, ENOSYS);
}

static void expect_no_writing(void)
{
	ck_assert(!opens(outside, O_WRONLY));
	ck_assert(!opens(outside, O_RDWR));
	ck_assert(!opens(inside, O_WRONLY | O_CREAT));
	ck_assert(!opens(directory, O_TMPFILE | O_RDWR));
	if (!FILTERED)
		return;
	ck_assert_int_eq(unlink(outside), -1);
	ck_assert_int_eq(rename(outside, inside), -1);
	ck_assert_int_eq(link(outside, inside), -1);
	ck_assert_int_eq(mkdir(inside, 0700), -1);
}

START_TEST(a_reader_does_no_harm)
{
	int kept;

	make_places();
	kept = open(outside, O_RDWR);
	ck_assert_int_ge(kept, 0);
	mmt_confine((const char *const[]){outside}, 1, NULL);
	ck_assert(opens(outside, O_RDONLY));
	ck_assert_int_eq(write(kept, "x", 1), 1);
	if (FILTERED || has_landlock())
		expect_no_writing();
	if (FILTERED)
		expect_no_harm();
}
END_TEST

/* Answer the calls of Landlock as an old kernel does. */
static void hide_landlock(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

START_TEST(a_kernel_without_landlock)
{
	struct mmt_check *check = NULL;
	const struct mmt_check_item *item;

	make_places();
	if (has_landlock())
		ck_assert_ptr_null(confine_missing());
	hide_landlock();
	ck_assert(!has_landlock());
	ck_assert_ptr_null(mmt_check_create(&check));
	item = &check->items[check->item_count - 1];
	ck_assert_str_eq(item->subject, "confinement");
	ck_assert_int_eq(item->state, MMT_CHECK_LIMITED);
	ck_assert_ptr_nonnull(strstr(item->finding, "without Landlock,"));
	mmt_check_destroy(check);
	mmt_confine((const char *const[]){outside}, 1, NULL);
	ck_assert(opens(outside, O_RDONLY));
	if (FILTERED) {
		expect_no_writing();
		expect_no_harm();
	}
}
END_TEST

static struct mmt_error *write_text(const void *context, FILE *stream)
{
	fputs(context, stream);
	return NULL;
}

static void expect_writing_inside(void)
{
	ck_assert(opens(inside, O_RDWR | O_CREAT | O_EXCL));
	ck_assert_int_eq(unlink(inside), 0);
	if (has_landlock()) {
		ck_assert(!opens(outside, O_WRONLY));
		ck_assert_int_eq(unlink(outside), -1);
	}
	if (FILTERED)
		expect_no_harm();
}

START_TEST(an_output_is_written)
{
	make_places();
	mmt_confine((const char *const[]){outside}, 1, inside);
	ck_assert_ptr_null(mmt_write_file(inside, write_text, "text"));
	ck_assert_int_eq(unlink(inside), 0);
	expect_writing_inside();
}
END_TEST

/* The output of the user's own link is written where the link leads. */
START_TEST(an_output_behind_a_link_is_written)
{
	char there[TEMPORARY_PATH_SIZE], target[TEMPORARY_PATH_SIZE + 8];

	make_places();
	temporary_directory(there);
	snprintf(target, sizeof(target), "%s/file", there);
	ck_assert_int_eq(symlink(target, inside), 0);
	mmt_confine((const char *const[]){outside}, 1, inside);
	ck_assert_ptr_null(mmt_write_file(inside, write_text, "text"));
	ck_assert(opens(target, O_RDONLY));
	if (has_landlock())
		ck_assert(!opens(outside, O_WRONLY));
}
END_TEST

START_TEST(a_device_is_written_and_not_its_directory)
{
	make_places();
	mmt_confine((const char *const[]){outside}, 1, "/dev/full");
	ck_assert(opens("/dev/full", O_WRONLY));
	if (has_landlock())
		ck_assert(!opens("/dev/zero", O_WRONLY));
}
END_TEST

START_TEST(a_recording_from_a_pipe_is_stored)
{
	make_places();
	setenv("TMPDIR", directory, 1);
	mmt_confine((const char *const[]){outside, "-"}, 2, NULL);
	expect_writing_inside();
}
END_TEST

START_TEST(debuginfod_has_its_cache_and_servers)
{
	char *const nothing[] = {NULL};
	char cache[sizeof(directory) + 32];

	make_places();
	setenv("DEBUGINFOD_URLS", "http://localhost", 1);
	snprintf(cache, sizeof(cache), "%s/new/cache", directory);
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	mmt_confine((const char *const[]){outside}, 1, NULL);
	snprintf(cache + strlen(cache), sizeof(cache) - strlen(cache), "/file");
	ck_assert(opens(cache, O_RDWR | O_CREAT | O_EXCL));
	if (has_landlock()) {
		ck_assert(!opens(inside, O_RDWR | O_CREAT | O_EXCL));
		ck_assert(!opens(outside, O_RDWR));
	}
	ck_assert_int_ge(close(socket(AF_INET, SOCK_STREAM, 0)), 0);
	if (FILTERED)
		ck_assert_int_eq(execve("/bin/true", nothing, nothing), -1);
}
END_TEST

/* A program that uses the library keeps its rights. */
START_TEST(the_library_does_not_confine)
{
	struct mmt_report_options options;
	struct mmt_report *report = NULL;

	make_places();
	mmt_report_options_init(&options);
	options.input = "data/leak.data";
	ck_assert_ptr_null(mmt_report_create(&options, &report));
	mmt_report_destroy(report);
	ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 0);
	ck_assert(opens(outside, O_RDWR));
	ck_assert_int_eq(unlink(outside), 0);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("confine");
	TCase *cases = add_tcase(suite, "confine");

	tcase_add_tests(cases, a_reader_does_no_harm, a_kernel_without_landlock, an_output_is_written,
			an_output_behind_a_link_is_written, a_device_is_written_and_not_its_directory,
			a_recording_from_a_pipe_is_stored, debuginfod_has_its_cache_and_servers,
			the_library_does_not_confine);
	return suite;
}
