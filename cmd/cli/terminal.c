// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mmtrace/confine.h>

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

/* The output begins when all is read: until then, messages and the progress need the terminal. */
static void __attribute__((noreturn)) run_pager(const char *program, int input)
{
	struct pollfd output = {.fd = input, .events = POLLIN};

	(void)TEMP_FAILURE_RETRY(poll(&output, 1, -1));
	if (!(output.revents & POLLIN))
		_exit(EXIT_OK);
	if (dup2(input, STDIN_FILENO) < 0)
		_exit(EXIT_NOT_FOUND);
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	execl("/bin/sh", "sh", "-c", program, (char *)NULL);
	_exit(EXIT_NOT_FOUND);
}

/* Ctrl-C ends the output. The pager, which gets the signal too, keeps the terminal until its user quits, so mmtrace
 * must not exit before. Only this thread receives signals, and it waits here. */
static void end_with_pager(int number)
{
	sigset_t set;

	progress_wipe();
	if (pager.pid)
		close(STDOUT_FILENO);
	while (pager.pid && waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
		;
	sigemptyset(&set);
	sigaddset(&set, number);
	signal(number, SIG_DFL);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	_exit(EXIT_SIGNAL + number);
}

void pager_start(const struct command *command, bool wanted)
{
	struct sigaction action = {.sa_handler = end_with_pager, .sa_flags = SA_RESTART}, before;
	const char *program = getenv("MMTRACE_PAGER");
	int ends[2];
	pid_t child;

	if (!program)
		program = getenv("PAGER");
	if (!program)
		program = is_installed("less", 4) ? "less" : "";
	if (!wanted || !*program || !strcmp(program, "cat") || !isatty(STDOUT_FILENO))
		return;
	/* Only the shell can find paths and programs in shell syntax. */
	if (!program[strcspn(program, "/;|&()<>$`\\\"'*?[#~=%{}!\n")] &&
	    !is_installed(program, (int)strcspn(program, " \t"))) {
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
		if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			(void)sigaction(SIGINT, &action, NULL);
		signal(SIGPIPE, SIG_IGN); /* quitting the pager early is not an error */
	} else {
		message(command, "cannot start the pager '%s': %s", program, strerror(errno));
	}
	close(ends[1]);
}

int pager_finish(const struct command *command, int status)
{
	bool failed = ferror(stdout) != 0;
	int reason = errno, how = 0;

	if (pager.finished)
		return status;
	pager.finished = true;
	if (fflush(stdout) != 0 || (pager.pid && fclose(stdout) != 0)) {
		reason = errno;
		failed = true;
	}
	if (pager.pid) {
		(void)TEMP_FAILURE_RETRY(waitpid(pager.pid, &how, 0));
		pager.pid = 0;
		if (!WIFEXITED(how) || WEXITSTATUS(how) < EXIT_CANNOT_RUN)
			return status;
		message(command, "the pager '%s' cannot be run; set PAGER, or use --no-pager", pager.program);
		return EXIT_UNUSABLE;
	}
	if (!failed)
		return status;
	if (reason == EPIPE)
		return EXIT_SIGNAL + SIGPIPE;
	message(command, "cannot write to standard output: %s", strerror(reason));
	return EXIT_UNUSABLE;
}

enum colour_choice { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

const char *const colour_choices[] = {"auto", "always", "never", NULL};

unsigned terminal_width(int fd)
{
	struct winsize size = {0};

	if (!isatty(fd))
		return 0;
	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

const char *display_parse_stacks(const char *text, void *value)
{
	size_t *frames = value;

	if (strcmp(text, "all") == 0) {
		*frames = 0;
		return NULL;
	}
	return value_count(text, frames) ? "a number of frames or 'all'" : NULL;
}

void display_start(const struct command *command, struct display *display, const char *const *inputs,
		   size_t input_count)
{
	const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
	struct winsize size = {0};

	if (!display->limit_given)
		display->text.limit = display->html ? MMT_HTML_LIMIT_DEFAULT : display->json ? 0 : display->text.limit;
	if (!display->html) {
		display->text.fold = !display->limit_given && !display->json;
		display->text.width = terminal_width(STDOUT_FILENO);
		/* Lines above the prompt. */
		if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row)
			display->text.lines = size.ws_row - 1u;
		display->text.colour = display->colour == COLOUR_ALWAYS ||
				       (display->colour == COLOUR_AUTO && isatty(STDOUT_FILENO) &&
					!(no_colour && *no_colour) && terminal && strcmp(terminal, "dumb") != 0);
		display->text.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
		pager_start(command, !display->no_pager);
	}
	mmt_confine(inputs, input_count, display->html);
}
