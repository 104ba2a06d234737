// SPDX-License-Identifier: LGPL-2.1-or-later
/* `top`: starts the recorder, and shows reports of the recording while it grows. This process parses neither. */
#include "top.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/stop-signals.h"

#define NUMBER_TEXT 24
#define REPEAT_MILLISECONDS 2000 /* of a signal that had no effect */

struct top_recorder {
	struct top *top;
	pid_t pid;	     /* 0: none, or it has ended */
	int pidfd;	     /* readable when it has ended */
	int status;	     /* of its end */
	int output;	     /* of it and its command, while a screen is shown; -1: standard error */
	char directory[256]; /* "": none was created */
	char path[288];	     /* of the recording in it, and before of the output */
};

/* Or until the output is closed. */
static int show_blocks(struct top *top, int stop_fd, int recorder_fd, struct top_report *report)
{
	bool failed = false; /* the last one */

	/* The recorder writes after a second. */
	report->start_ns = clock_ns() + NS_PER_SECOND;
	for (size_t shown = 0;;) {
		uint64_t now_ns = clock_ns(), next_ns = top->replays ? now_ns : report->start_ns + top->interval_ns;
		struct pollfd ready[] = {
		    {.fd = stop_fd, .events = POLLIN},
		    {.fd = top->ended ? -1 : recorder_fd, .events = POLLIN},
		    {.fd = report->running ? report->fd : -1, .events = POLLIN},
		};
		int status;

		if (!report->running && (top->ended || now_ns >= next_ns)) {
			top->at_ns += top->interval_ns;
			if (!top_report_start(top, report, false)) {
				message(top->command, "cannot start a report: %s", strerror(errno));
				return EXIT_UNUSABLE;
			}
			continue;
		}
		if (poll(ready, 3, report->running ? -1 : top_milliseconds(next_ns - now_ns)) < 0)
			continue;
		if (ready[0].revents) {
			(void)top_report_end(report, true);
			status = stop_signals_number(stop_fd);
			return status == SIGINT ? EXIT_OK : EXIT_SIGNAL + status;
		}
		top->ended |= ready[1].revents != 0;
		if (!ready[2].revents || top_report_read(report))
			continue;
		status = top_report_end(report, false);
		if (status == TOP_AGAIN) {
			report->start_ns -= top->interval_ns;
			continue;
		}
		if (status == TOP_END)
			return EXIT_OK;
		/* A mapped file was truncated: another reporter opens it again. */
		if (status == EXIT_SIGNAL + SIGBUS && !failed && !report->last) {
			failed = true;
			(void)top_report_end(report, true);
			continue;
		}
		if (status > EXIT_SIGNAL && status != EXIT_SIGNAL + SIGPIPE)
			message(top->command, "the report was ended by signal %d", status - EXIT_SIGNAL);
		if (report->last || status > EXIT_SIGNAL || ++shown == top->count ||
		    (status && (failed || top->replays || status != EXIT_EXCEEDED)))
			return status == EXIT_EXCEEDED ? EXIT_UNUSABLE : status;
		failed = status != EXIT_OK;
	}
}

static void add_words(const char **line, size_t *count, const char *option, const struct value_words *values)
{
	for (size_t i = 0; i < values->count; i++) {
		line[(*count)++] = option;
		line[(*count)++] = values->items[i];
	}
}

static void complain(const struct top *top)
{
	message(top->command, "cannot start the recorder: %s", strerror(errno));
}

/* In the child: records. Its output and that of its command are not among the reports. */
static void __attribute__((noreturn)) run_recorder(const struct top_recorder *recorder, int ready, pid_t parent)
{
	const struct top *top = recorder->top;
	int output = recorder->output >= 0 ? recorder->output : STDERR_FILENO;
	/* A background process that reads the terminal is stopped. */
	int input = isatty(STDIN_FILENO) ? open("/dev/null", O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	size_t count = 0, words = 0;
	char ready_text[NUMBER_TEXT], bytes_text[NUMBER_TEXT];
	const char **line;

	while (top->words && top->words[words])
		words++;
	line = calloc(24 + 2 * (top->pids.count + top->names.count) + words, sizeof(*line));
	if (!line) {
		complain(top);
		_exit(EXIT_UNUSABLE);
	}
	snprintf(ready_text, sizeof(ready_text), "%d", ready);
	snprintf(bytes_text, sizeof(bytes_text), "%" PRIu64, top->max_bytes);
	for (const char *const *word =
		 (const char *const[]){"record", "--raw", "-q", "-o", top->path, "--max-size", bytes_text, "--ready-fd",
				       ready_text, "--faults", "none", NULL};
	     *word; word++)
		line[count++] = *word;
	if (!top->all_cpus && !top->make) {
		line[count++] = "--snapshot-interval";
		line[count++] = "5s";
	}
	if (top->tree)
		line[count++] = "--tree";
	add_words(line, &count, "-p", &top->pids);
	add_words(line, &count, "--comm", &top->names);
	if (top->all_cpus)
		line[count++] = "--all-cpus";
	if (top->cgroup) {
		line[count++] = "-G";
		line[count++] = top->cgroup;
	}
	line[count++] = "--";
	for (size_t i = 0; i < words; i++)
		line[count++] = top->words[i];
	if (!stop_signals_begin_child(parent))
		_exit(EXIT_UNUSABLE);
	if (dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
		_exit(pager_finish(top->command, cmd_record(top->command, (int)count, (char **)(uintptr_t)line)));
	complain(top);
	_exit(EXIT_UNUSABLE);
}

static void await_recorder(struct top_recorder *recorder)
{
	int status = 0;

	(void)TEMP_FAILURE_RETRY(waitpid(recorder->pid, &status, 0));
	recorder->pid = 0;
	recorder->status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL + WTERMSIG(status);
	if (recorder->top->ended && WIFSIGNALED(status))
		message(recorder->top->command, "the recorder was ended by signal %d", WTERMSIG(status));
}

static void stop_recorder(struct top_recorder *recorder)
{
	struct pollfd ended = {.fd = recorder->pidfd, .events = POLLIN};

	if (!recorder->pid)
		return;
	/* It may be stopped, and one that was just forked loses the signal. */
	do {
		if (kill(-recorder->pid, SIGTERM) != 0)
			kill(recorder->pid, SIGTERM);
		kill(-recorder->pid, SIGCONT);
	} while (recorder->pidfd >= 0 && poll(&ended, 1, REPEAT_MILLISECONDS) <= 0);
	await_recorder(recorder);
}

/* Starts the recorder and waits until it records. False: there is nothing to show, and `status` says why. */
static bool start_recorder(struct top_recorder *recorder, int stop_fd)
{
	struct pollfd ready[] = {{.events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
	pid_t parent = getpid();
	int ends[2], number;
	char byte;

	recorder->status = EXIT_UNUSABLE;
	if (pipe(ends) != 0 || (recorder->pid = fork()) < 0) {
		complain(recorder->top);
		recorder->pid = 0;
		return false;
	}
	if (recorder->pid == 0) {
		close(ends[0]);
		run_recorder(recorder, ends[1], parent);
	}
	close(ends[1]);
	ready[0].fd = ends[0];
	recorder->pidfd = (int)syscall(SYS_pidfd_open, recorder->pid, 0);
	if (recorder->pidfd < 0) {
		message(recorder->top->command, "cannot watch the recorder: %s", strerror(errno));
		stop_recorder(recorder);
	}
	while (recorder->pid && poll(ready, 2, -1) < 0)
		;
	if (recorder->pid && ready[1].revents) {
		number = stop_signals_number(stop_fd);
		stop_recorder(recorder);
		recorder->status = EXIT_SIGNAL + number;
	} else if (recorder->pid && read(ends[0], &byte, 1) != 1) {
		recorder->top->ended = true; /* it has closed the pipe because it ends */
		await_recorder(recorder);
	}
	close(ends[0]);
	return recorder->pid > 0;
}

/* For the recording, unless the user keeps it, and for the output. */
static bool create_files(struct top_recorder *recorder, bool has_screen)
{
	const char *parent = getenv("TMPDIR");
	bool created;

	snprintf(recorder->directory, sizeof(recorder->directory), "%s/mmtrace-%s-XXXXXX",
		 parent && *parent ? parent : "/var/tmp", recorder->top->command->name);
	created = mkdtemp(recorder->directory);
	snprintf(recorder->path, sizeof(recorder->path), "%s/mmtrace.data", recorder->directory);
	if (created && has_screen) {
		recorder->output = open(recorder->path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		created = recorder->output >= 0 && unlink(recorder->path) == 0;
	}
	if (!created)
		message(recorder->top->command, "cannot create %s: %s; set TMPDIR to another directory", recorder->path,
			strerror(errno));
	if (!recorder->top->path)
		recorder->top->path = recorder->path;
	return created;
}

int top_record(struct top *top, bool has_screen, top_show *show)
{
	struct top_recorder recorder = {.top = top, .output = -1};
	struct top_report report = {0};
	int stop_fd = stop_signals_catch(), status = EXIT_UNUSABLE;
	struct sigaction stop, quit;
	off_t left, offset = 0;
	char buffer[4096];
	ssize_t count;

	/* Ctrl-\ must not leave the recording behind. */
	if (sigaction(SIGTERM, NULL, &stop) == 0 && sigaction(SIGQUIT, NULL, &quit) == 0 && quit.sa_handler != SIG_IGN)
		(void)sigaction(SIGQUIT, &stop, NULL);
	if (stop_fd < 0)
		message(top->command, "cannot begin: %s", strerror(errno));
	else if (top->replays)
		status = show(top, stop_fd, -1, &report);
	else if ((top->path && !has_screen) || create_files(&recorder, has_screen))
		status =
		    start_recorder(&recorder, stop_fd) ? show(top, stop_fd, recorder.pidfd, &report) : recorder.status;
	(void)top_report_end(&report, true);
	free(report.text);
	stop_recorder(&recorder);
	/* Print what the recorder and its command have written while the screen was shown. Others may still write. */
	left = recorder.output >= 0 ? lseek(recorder.output, 0, SEEK_END) : 0;
	while (left > offset && (count = pread(recorder.output, buffer, sizeof(buffer), offset)) > 0) {
		fwrite(buffer, 1, (size_t)count, stderr);
		offset += count;
	}
	if (*recorder.directory) {
		(void)unlink(recorder.path);
		(void)rmdir(recorder.directory);
	}
	return top->ended && status == EXIT_OK ? recorder.status : status;
}

int top_take_arguments(struct top *top, char **arguments, bool is_command)
{
	bool selects = top->pids.count || top->names.count || top->cgroup || top->all_cpus;

	top->replays = *arguments && !is_command && !arguments[1] && !selects && !top->output && !top->tree;
	if (*arguments && !is_command && !top->replays)
		return message_usage(top->command, "unexpected argument '%s': pass -- before a command", *arguments);
	if (*arguments && is_command)
		top->words = arguments;
	else if (!selects && !top->replays)
		return message_usage(top->command, "nothing to record: pass -p PID or -- COMMAND");
	if (top->output && !strcmp(top->output, "-"))
		return message_usage(top->command, "--output needs a file");
	if (top->replays && !strcmp(*arguments, "-"))
		return message_usage(top->command, "a recording that comes from a pipe cannot be replayed");
	if (top->selection.by[0] == MMT_BY_TOUCH && !top->replays)
		return message_usage(top->command, "--by touch needs page faults, which top does not record");
	top->path = top->replays ? *arguments : top->output;
	report_selection_apply(&top->selection);
	return -1;
}

const char *top_parse_pids(const char *text, void *words)
{
	return *text ? value_word(text, words) : value_pids(text, NULL);
}

int cmd_top(const struct command *command, int argc, char **argv)
{
	struct top settings = {.command = command,
			       .display = DISPLAY_DEFAULTS,
			       .interval_ns = NS_PER_SECOND,
			       .guarded_fd = -1,
			       .max_bytes = TOP_MAX_BYTES};
	int first = 0, status;
	bool has_screen;
	const struct option_entry table[] = {
	    TOP_RECORD_OPTIONS(&settings),
	    OPTION(0, "interval", value_duration, &settings.interval_ns, "TIME", "time between reports (default 1s)",
		   .group = "What to show"),
	    OPTION(0, "count", value_count, &settings.count, "N",
		   "end after N reports (default 0: never), without a terminal", .rare = true),
	    NAME_OPTIONS(&settings.selection),
	    BY_OPTION(&settings.selection),
	    SORT_OPTION(&settings.display),
	    OPTION('n', "limit", value_count, &settings.display.text.limit, "N",
		   "show the first N stacks (default 10; with --json all; 0: all)",
		   .given = &settings.display.limit_given, .rare = true),
	    MIN_BYTES_OPTION(&settings.display),
	    OPTION(0, "json", value_flag, &settings.display.json, NULL, "write a line of JSON for each report"),
	    COLOUR_OPTION(&settings.display),
	    OPTIONS_END,
	};

	report_selection_init(&settings.selection);
	settings.display.text.sort = MMT_SORT_MEMORY;
	status = options_parse(command, table, OPTIONS_FIRST, argc, argv, &first);
	if (status < 0)
		status = top_take_arguments(&settings, argv + first, first > 1 && !strcmp(argv[first - 1], "--"));
	if (status < 0) {
		has_screen = top_screen_fits(&settings);
		status = top_record(&settings, has_screen, has_screen ? top_screen_show : show_blocks);
	}
	report_selection_deinit(&settings.selection);
	free(settings.pids.items);
	free(settings.names.items);
	return status;
}
