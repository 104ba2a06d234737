// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
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

/* The output begins when all is read: until then, messages and the progress need the terminal. */
static void __attribute__((noreturn)) run_pager(const char *program, int input)
{
	struct pollfd output = {.fd = input, .events = POLLIN};

	while (poll(&output, 1, -1) < 0 && errno == EINTR)
		;
	if (!(output.revents & POLLIN))
		_exit(EXIT_OK);
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
	progress_wipe();
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
		signal(SIGPIPE, SIG_IGN); /* quitting the pager early is not an error */
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

enum colour_choice { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

const char *const colour_choices[] = {"auto", "always", "never", NULL};

/* Columns; 0: standard output is not a terminal. */
static unsigned terminal_width(void)
{
	struct winsize size = {0};

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || !size.ws_col)
		return 80;
	return size.ws_col;
}

static bool terminal_colour(enum colour_choice choice)
{
	const char *no_colour = getenv("NO_COLOR");
	const char *kind = getenv("TERM");

	if (choice != COLOUR_AUTO)
		return choice == COLOUR_ALWAYS;
	return isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && kind && strcmp(kind, "dumb") != 0;
}

/* Whether the locale uses UTF-8. Call this after setlocale(). */
static bool terminal_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

#define LIMIT_DEFAULT 10
#define STACK_FRAMES_DEFAULT 12

void display_init(struct display *display)
{
	*display = (struct display){
	    .colour = COLOUR_AUTO,
	    .text = {.limit = LIMIT_DEFAULT, .sort = MMT_SORT_UNFREED, .stack_frames = STACK_FRAMES_DEFAULT},
	};
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

bool display_check(const struct command *command, const struct display *display)
{
	if (!display->html)
		return true;
	if (!*display->html)
		message(command, "--html: the file's name is empty");
	else if (display->json)
		message(command, "--html and --json cannot be combined");
	else
		return true;
	return false;
}

void display_start(const struct command *command, struct display *display, const char *const *inputs,
		   size_t input_count)
{
	if (!display->limit_given)
		display->text.limit = display->html ? MMT_HTML_LIMIT_DEFAULT : display->json ? 0 : display->text.limit;
	if (!display->html) {
		display->text.fold = !display->limit_given && !display->json;
		display->text.width = terminal_width();
		display->text.colour = terminal_colour(display->colour);
		display->text.ascii = !terminal_utf8();
		pager_start(command, !display->no_pager);
	}
	mmt_confine(inputs, input_count, display->html);
}
