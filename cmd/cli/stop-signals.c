// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/stop-signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/message.h"

#define STUCK_MILLISECONDS 1000

static int write_end = -1;
static pid_t catcher; /* a signal to its process group also reaches its children, which have the pipe */
int stop_signals_ignored[NSIG], stop_signals_blocked[NSIG];
static const char *last_words;

void stop_signals_note_inherited(void)
{
	size_t ignored_count = 0, blocked_count = 0;
	struct sigaction action;
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int number = 1; number < NSIG; number++) {
		if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			stop_signals_ignored[ignored_count++] = number;
		if (sigismember(&mask, number) == 1)
			stop_signals_blocked[blocked_count++] = number;
	}
	/* A process that ignores SIGCHLD does not get the status of its children. */
	signal(SIGCHLD, SIG_DFL);
}

static void handle_signal(int number)
{
	int saved = errno;

	if (getpid() == catcher)
		(void)!write(write_end, &(char){(char)number}, 1); /* if the pipe is full, it is readable already */
	errno = saved;
}

static const int stop_numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/* A pipe and handlers instead of a signalfd, whose blocked signals an executed program would inherit. */
int stop_signals_catch(void)
{
	struct sigaction action = {.sa_handler = handle_signal, .sa_flags = SA_RESTART}, before;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return -1;
	write_end = ends[1];
	catcher = getpid();
	for (size_t i = 0; i < sizeof(stop_numbers) / sizeof(stop_numbers[0]); i++) {
		if (sigaction(stop_numbers[i], NULL, &before) != 0)
			return -1;
		if (before.sa_handler != SIG_IGN && sigaction(stop_numbers[i], &action, NULL) != 0)
			return -1;
	}
	return ends[0];
}

void stop_signals_reset(void)
{
	for (size_t i = 0; i < sizeof(stop_numbers) / sizeof(stop_numbers[0]); i++)
		signal(stop_numbers[i], SIG_DFL);
}

bool stop_signals_begin_child(pid_t parent)
{
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGTERM, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	return getppid() == parent;
}

void stop_signals_stop(void)
{
	handle_signal(SIGTERM);
}

static void write_last_words(int number)
{
	progress_wipe();
	(void)!write(STDERR_FILENO, last_words, strlen(last_words));
	signal(number, SIG_DFL);
	raise(number); /* delivered when this returns */
}

void stop_signals_end_with(const char *text)
{
	struct sigaction action = {.sa_handler = write_last_words}, before;

	last_words = text;
	for (size_t i = 0; i < sizeof(stop_numbers) / sizeof(stop_numbers[0]); i++) {
		if (sigaction(stop_numbers[i], NULL, &before) == 0 && before.sa_handler == handle_signal)
			(void)sigaction(stop_numbers[i], &action, NULL);
	}
}

bool stop_signals_catch_also(int number)
{
	struct sigaction action = {.sa_handler = handle_signal, .sa_flags = SA_RESTART};

	return sigaction(number, &action, NULL) == 0;
}

static void pass_over(int number)
{
	(void)number;
}

/* Not SIG_IGN, which executed programs would inherit. */
void stop_signals_survive(int number)
{
	struct sigaction action = {.sa_handler = pass_over, .sa_flags = SA_RESTART}, before;

	if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		(void)sigaction(number, &action, NULL);
}

int stop_signals_number(int stop_fd)
{
	char number = 0;

	return read(stop_fd, &number, 1) == 1 ? number : 0;
}

/* As it is while the user reads its output in a pager. */
static bool is_asleep(pid_t pid)
{
	char path[64], text[128] = "", *name;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	name = fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
	fclose(file);
	return name && !strncmp(name, ") S", strlen(") S"));
}

int stop_signals_await(pid_t child, int stop_fd, const char *text)
{
	struct pollfd items[] = {{.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN},
				 {.fd = stop_fd, .events = POLLIN}};
	struct sigaction before;
	int status = 0, number = 0, ready = 0;

	/* Without the descriptor, a signal ends this process, and that ends the child. */
	for (size_t i = 0; items[0].fd < 0 && i < sizeof(stop_numbers) / sizeof(stop_numbers[0]); i++) {
		if (sigaction(stop_numbers[i], NULL, &before) == 0 && before.sa_handler == handle_signal)
			signal(stop_numbers[i], SIG_DFL);
	}
	while (items[0].fd >= 0 && child && !items[0].revents) {
		ready = poll(items, 2, number ? STUCK_MILLISECONDS : -1);
		if (ready > 0 && items[1].revents && !items[0].revents) {
			number = stop_signals_number(stop_fd);
			kill(child, number);
		} else if (ready == 0 && !is_asleep(child)) {
			kill(child, SIGKILL);
			fputs(text ? text : "", stderr);
			child = 0;
		}
	}
	close(items[0].fd);
	while (child && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child)
		number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (number == SIGINT || number == SIGTERM || number == SIGHUP) {
		signal(number, SIG_DFL);
		raise(number);
	}
	return status;
}
