// SPDX-License-Identifier: LGPL-2.1-or-later
/* The reports of `top`: each is made in a process that is confined, as `report` is. */
#include "top.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/message.h"

#define READ_BYTES 65536
#define KILL_TICKS 100
#define KILL_TICK_MILLISECONDS 10

uint64_t top_now_ns(const struct top *top)
{
	return top->replays ? top->at_ns : clock_ns();
}

int top_milliseconds(uint64_t ns)
{
	return ns / 1000000 < INT_MAX ? (int)(ns / 1000000 + 1) : INT_MAX;
}

static struct mmt_error *write_block(const struct mmt_report *report, const struct mmt_text_options *text, bool replays)
{
	time_t now = time(NULL);
	char time_text[MMT_SIZE_TEXT] = "";
	struct mmt_error *error;
	struct tm local;

	if (replays)
		mmt_format_duration(report->to_ns - report->start_ns, time_text);
	else if (localtime_r(&now, &local))
		strftime(time_text, sizeof(time_text), "%H:%M:%S", &local);
	printf("[%s]\n", time_text);
	error = mmt_report_write_text(report, text, stdout);
	putchar('\n');
	return error;
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

struct reporter {
	const struct command *command;
	int fd;
	uint64_t start_ns, answer_ns; /* when it began, and when it could first answer; 0: not yet */
};

/* All that has been recorded was read. A copy of this process reports it; this one waits until it is asked again. */
static bool follow(void *context, bool new_names)
{
	struct reporter *reporter = context;
	char answer[2] = {0}, request;
	pid_t self = getpid(), child;
	int status;

	/* Only a replay from the start has new names: that gets a tenth of the time. */
	if (!reporter->answer_ns)
		reporter->answer_ns = clock_ns();
	else if (new_names && clock_ns() - reporter->answer_ns > 9 * (reporter->answer_ns - reporter->start_ns))
		_exit(TOP_AGAIN);
	child = fork();
	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(EXIT_UNUSABLE);
		return false;
	}
	if (child < 0)
		message(reporter->command, "cannot start a report: %s", strerror(errno));
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	answer[1] = (char)(child > 0 ? exit_status(status) : EXIT_UNUSABLE);
	if (write(reporter->fd, answer, sizeof(answer)) != sizeof(answer) || read(reporter->fd, &request, 1) != 1)
		_exit(EXIT_UNUSABLE);
	return true;
}

/* In the child. Returns the exit status; EXIT_EXCEEDED: it may have met a half-written record. */
static int make(struct top *top, bool captured, int fd)
{
	struct reporter reporter = {.command = top->command, .fd = fd, .start_ns = clock_ns()};
	const char *pattern = top->filter;
	struct mmt_report_options *options = &top->selection.report;
	struct display *display = &top->display;
	bool ended = top->ended, replays = top->replays;
	struct mmt_report *report;
	uint64_t last_ns;
	struct mmt_error *error;

	options->input = top->path;
	if (*pattern) {
		*(top->excludes ? &options->ignore : &options->focus) = &pattern;
		*(top->excludes ? &options->ignore_count : &options->focus_count) = 1;
	}
	if (top->baseline_ns)
		options->from =
		    (struct mmt_timestamp){replays ? MMT_TIMESTAMP_SINCE_START : MMT_TIMESTAMP_CLOCK, top->baseline_ns};
	if (replays)
		options->to = (struct mmt_timestamp){MMT_TIMESTAMP_SINCE_START, top->at_ns};
	display->text.in_progress = !ended && !replays;
	display->text.one_line = true;
	options->follow = ended || replays ? NULL : follow;
	options->follow_context = &reporter;
	error = ended && !replays ? NULL : mmt_report_create(options, &report);
	if (error && replays && !strncmp(error->message, "--to lies", strlen("--to lies"))) {
		mmt_error_destroy(error);
		error = NULL;
		options->to = (struct mmt_timestamp){0};
		ended = true;
	}
	/* At the end, show what `report` shows: the moment before the processes freed what grew. */
	if (ended && !error)
		error = display->json || top->baseline_ns ? mmt_report_create(options, &report)
							  : report_create_before_end(options, &report, &last_ns);
	if (error && top->baseline_ns &&
	    (!strncmp(error->message, "--from must", strlen("--from must")) ||
	     !strncmp(error->message, "--from lies", strlen("--from lies")))) {
		mmt_error_destroy(error);
		puts("nothing has been recorded since the baseline yet");
		return EXIT_OK;
	}
	if (error) {
		(void)message_input_error(top->command, top->path, error);
		if (replays)
			message(top->command, "%s was taken for a recording: pass -- before a command", top->path);
		return EXIT_EXCEEDED;
	}
	error = captured	? mmt_report_write_text(report, &display->text, stdout)
		: display->json ? mmt_report_write_json(report, &display->text, stdout)
				: write_block(report, &display->text, replays);
	/* Behind the text, where the recording ends. */
	if (captured && replays && ended)
		printf("\f%" PRIu64, report->end_ns - report->start_ns);
	return error ? message_error(top->command, error) : replays && ended ? TOP_END : EXIT_OK;
}

bool top_report_start(struct top *top, struct top_report *report, bool captured)
{
	pid_t parent = getpid(), child;
	int ends[2];

	report->start_ns = clock_ns();
	report->size = 0;
	report->last = top->ended;
	report->running = report->pid && !top->ended && send(report->fd, "", 1, MSG_NOSIGNAL) == 1;
	if (report->running)
		return true;
	(void)top_report_end(report, true);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return false;
	child = fork();
	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_UNUSABLE);
		close(top->guarded_fd);
		if (captured)
			(void)setpgid(0, 0);
		top->display.no_pager = true;
		display_start(top->command, &top->display, &top->path, 1);
		if (captured && (dup2(ends[1], STDOUT_FILENO) < 0 || dup2(ends[1], STDERR_FILENO) < 0))
			_exit(EXIT_UNUSABLE);
		_exit(pager_finish(top->command, top->make ? top->make(top, ends[1]) : make(top, captured, ends[1])));
	}
	/* A process that helps it is killed with it. */
	if (child > 0 && captured)
		(void)setpgid(child, child);
	close(ends[1]);
	report->fd = ends[0];
	report->pid = child < 0 ? 0 : child;
	report->running = child > 0;
	if (child < 0)
		close(ends[0]);
	return report->running;
}

/* Behind a report, which has no zeros, are a zero and the status. */
static bool answered(const struct top_report *report)
{
	return report->size >= 2 && !report->text[report->size - 2];
}

bool top_report_read(struct top_report *report)
{
	char *larger = realloc(report->text, report->size + READ_BYTES + 1);
	ssize_t count;

	if (!larger)
		return false;
	report->text = larger;
	count = read(report->fd, larger + report->size, READ_BYTES);
	if (count > 0)
		report->size += (size_t)count;
	larger[report->size] = '\0';
	return count > 0 ? !answered(report) : count < 0 && errno == EINTR;
}

int top_report_end(struct top_report *report, bool early)
{
	int status = 0;

	report->running = false;
	if (!report->pid)
		return 0;
	if (!early && answered(report))
		return (uint8_t)report->text[report->size - 1];
	if (early && kill(-report->pid, SIGKILL) != 0)
		kill(report->pid, SIGKILL);
	close(report->fd);
	/* A file system that does not answer may keep it in the kernel. */
	for (int i = 0; early && i < KILL_TICKS && waitpid(report->pid, &status, WNOHANG) == 0; i++)
		(void)poll(NULL, 0, KILL_TICK_MILLISECONDS);
	while (!early && waitpid(report->pid, &status, 0) < 0 && errno == EINTR)
		;
	report->pid = 0;
	return exit_status(status);
}
