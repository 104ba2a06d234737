// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/temporary.h"

#include <err.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/marks.h"

static char base[TEMPORARY_PATH_SIZE - 32];

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status;
	(void)kind;
	(void)place;
	return remove(path);
}

static int remove_tree(const char *path)
{
	return nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Wait until no process has the other end of the pipe: the program and all that it forked have ended. */
static _Noreturn void wait_and_remove(int pipe_end)
{
	char byte;

	while (read(pipe_end, &byte, 1) > 0)
		;
	(void)remove_tree(base);
	_exit(EXIT_SUCCESS);
}

/* In its own session and without a parent, so that a signal to the program and its children does not reach it;
 * without the program's output, for whose end a caller may wait. */
static void start_remover(void)
{
	int ends[2], status;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0 || (child = fork()) < 0)
		err(EXIT_FAILURE, "cannot watch over %s", base);
	if (child == 0) {
		int nowhere = open("/dev/null", O_RDWR);

		close(ends[1]);
		setsid();
		for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
			dup2(nowhere, fd);
		if (fork() == 0)
			wait_and_remove(ends[0]);
		_exit(EXIT_SUCCESS);
	}
	close(ends[0]);
	waitpid(child, &status, 0);
}

void temporary_begin(void)
{
	const char *parent = getenv("TMPDIR");
	int length = snprintf(base, sizeof(base), "%s/mmtrace-unit-XXXXXX", parent && *parent ? parent : "/tmp");

	if (length < 0 || (size_t)length >= sizeof(base))
		errx(EXIT_FAILURE, "TMPDIR is too long");
	if (!mkdtemp(base))
		err(EXIT_FAILURE, "cannot make %s", base);
	start_remover();
	setenv("TMPDIR", base, 1);
}

void temporary_end(void)
{
	if (remove_tree(base) < 0)
		err(EXIT_FAILURE, "cannot remove %s", base);
}

void temporary_directory(char path[TEMPORARY_PATH_SIZE])
{
	snprintf(path, TEMPORARY_PATH_SIZE, "%s/XXXXXX", base);
	ck_assert_ptr_nonnull(mkdtemp(path));
}

void temporary_name(char path[TEMPORARY_PATH_SIZE])
{
	temporary_directory(path);
	strcat(path, "/file");
}

void temporary_remove(const char *path)
{
	ck_assert_int_eq(remove_tree(path), 0);
}
