// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/pager.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/message.h"

static struct {
	pid_t pid; /* 0: none runs */
	const char *program;
	bool finished;
} pager;

static bool is_installed(const char *program, int length)
{
	const char *path = getenv("PATH");
	char file[4096];

	while (path && *path) {
		int directory = (int)strcspn(path, ":");

		if (snprintf(file, sizeof(file), "%.*s/%.*s", directory, path, length, program) < (int)sizeof(file) &&
		    access(file, X_OK) == 0)
			return true;
		path += directory;
		path += *path == ':';
	}
	return false;
}

/* Whether the shell can find the program. Also true for paths and shell syntax, which only the shell can check. */
static bool can_run(const char *program)
{
	int length = (int)strcspn(program, " \t");

	return strcspn(program, "/;|&()<>$`\\\"'*?[#~=%{}!\n") < strlen(program) || is_installed(program, length);
}

/* NULL: none. */
static const char *choose_pager(void)
{
	const char *program = getenv("MMTRACE_PAGER");

	if (!program)
		program = getenv("PAGER");
	if (!program)
		program = is_installed("less", 4) ? "less" : "";
	return *program && strcmp(program, "cat") != 0 ? program : NULL;
}

static void __attribute__((noreturn)) run_pager(const char *program, int input)
{
	if (dup2(input, STDIN_FILENO) < 0)
		_exit(EXIT_NOT_FOUND);
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	execl("/bin/sh", "sh", "-c", program, (char *)NULL);
	_exit(EXIT_NOT_FOUND);
}

static void __attribute__((noreturn)) die_of(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	signal(number, SIG_DFL);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	_exit(EXIT_SIGNAL + number);
}

void pager_end(void)
{
	if (pager.pid)
		close(STDOUT_FILENO);
	while (pager.pid && waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Ctrl-C ends the output. The pager, which gets the signal too, keeps the terminal until its user quits, so mmtrace
 * must not exit before. Only this thread receives signals, and it waits here. */
static void end_with_pager(int number)
{
	pager_end();
	die_of(number);
}

static void take_interrupts(void)
{
	struct sigaction action = {.sa_handler = end_with_pager, .sa_flags = SA_RESTART}, before;

	sigemptyset(&action.sa_mask);
	if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		(void)sigaction(SIGINT, &action, NULL);
}

void pager_start(const struct command *command, bool wanted)
{
	const char *program = choose_pager();
	int ends[2];
	pid_t child;

	if (!wanted || !program || !isatty(STDOUT_FILENO))
		return;
	if (!can_run(program)) {
		message(command, "continuing without the pager '%s', which is not installed", program);
		return;
	}
	if (pipe(ends) != 0)
		return;
	fflush(stdout);
	child = fork();
	if (child == 0) {
		close(ends[1]);
		run_pager(program, ends[0]);
	}
	close(ends[0]);
	if (child > 0 && dup2(ends[1], STDOUT_FILENO) >= 0) {
		pager.pid = child;
		pager.program = program;
		take_interrupts();
		signal(SIGPIPE, SIG_IGN); /* it is no error to quit the pager early */
	} else {
		message(command, "cannot start the pager '%s': %s", program, strerror(errno));
	}
	close(ends[1]);
}

static int wait_for_pager(const struct command *command, int status)
{
	int how = 0;

	while (waitpid(pager.pid, &how, 0) < 0 && errno == EINTR)
		;
	pager.pid = 0;
	if (!WIFEXITED(how) || WEXITSTATUS(how) < EXIT_CANNOT_RUN)
		return status;
	message(command, "the pager '%s' cannot be run; set PAGER, or use --no-pager", pager.program);
	return EXIT_UNUSABLE;
}

int pager_finish(const struct command *command, int status)
{
	bool failed = ferror(stdout) != 0;
	int reason = errno;

	if (pager.finished)
		return status;
	pager.finished = true;
	if (fflush(stdout) != 0 || (pager.pid && fclose(stdout) != 0)) {
		reason = errno;
		failed = true;
	}
	if (pager.pid)
		return wait_for_pager(command, status);
	if (!failed)
		return status;
	if (reason == EPIPE)
		return EXIT_SIGNAL + SIGPIPE;
	message(command, "cannot write to standard output: %s", strerror(reason));
	return EXIT_UNUSABLE;
}
