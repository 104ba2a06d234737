// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmtrace trace: prints calls as they happen. As for `top`, a confined process reads what the recorder writes. */
#include "top.h"

#include <errno.h>
#include <inttypes.h>
#include <mmtrace/trace.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/stop-signals.h"

#define WAIT_MILLISECONDS 100
#define BEHIND_NS (5 * NS_PER_SECOND) /* what was read at once is printed in this time, or left out */

struct tracer {
	struct top top;
	struct mmt_trace_options options;
	struct value_words calls;
	bool stacks;
	struct pollfd end; /* of the recorder */
	uint64_t begun_ns; /* to print what was read last */
	uint64_t left_out; /* calls since the last line */
};

static void print_left_out(struct tracer *tracer)
{
	if (tracer->left_out)
		printf(tracer->top.display.json ? "{\"left_out\":%" PRIu64 "}\n"
						: "%" PRIu64 " calls are left out, to keep up\n",
		       tracer->left_out);
	tracer->left_out = 0;
	fflush(stdout);
}

static bool follow(void *context, bool new_names)
{
	struct tracer *tracer = context;
	bool ended = tracer->top.ended;

	(void)new_names;
	print_left_out(tracer);
	tracer->top.ended = ended || poll(&tracer->end, 1, WAIT_MILLISECONDS) > 0;
	tracer->begun_ns = clock_ns();
	return !ended;
}

static void print_call(void *context, const struct mmt_traced_call *call)
{
	struct tracer *tracer = context;
	const struct display *display = &tracer->top.display;
	struct mmt_error *error = NULL;

	if (!tracer->top.ended && clock_ns() - tracer->begun_ns > BEHIND_NS && poll(&tracer->end, 1, 0) == 0) {
		tracer->left_out++;
		return;
	}
	if (display->json)
		mmt_traced_call_write_json(call, tracer->stacks, stdout);
	else
		error = mmt_traced_call_write_text(call, &display->text, tracer->stacks, stdout);
	if (error)
		_exit(message_error(tracer->top.command, error));
	if (ferror(stdout))
		_exit(pager_finish(tracer->top.command, EXIT_OK));
}

/* In the child. */
static int make(struct top *top, int fd)
{
	struct tracer *tracer = (struct tracer *)top; /* its first member */
	struct mmt_trace_options *options = &tracer->options;
	struct mmt_trace_summary summary = {0};
	struct mmt_error *error;

	tracer->end = (struct pollfd){.fd = fd, .events = POLLIN};
	tracer->begun_ns = clock_ns();
	options->report = top->selection.report;
	options->report.input = top->path;
	options->report.follow = top->ended ? NULL : follow;
	options->report.follow_context = options->context = tracer;
	options->calls = tracer->calls.items;
	options->call_count = tracer->calls.count;
	options->call = print_call;
	error = mmt_trace(options, &summary);
	print_left_out(tracer);
	if (summary.lost_events)
		message(top->command, "%" PRIu64 " events were lost: calls are missing", summary.lost_events);
	if (summary.incomplete && !options->report.follow)
		message(top->command, "%s: the recorder did not finish: the last calls may be missing", top->path);
	if (summary.processes_ended && options->report.follow)
		message(top->command, "all processes have ended");
	return error ? message_input_error(top->command, top->path, error) : EXIT_OK;
}

/* Until all that was recorded is printed. A signal after the end of the recorder ends that, too: timeout(1) sends two.
 */
static int show(struct top *top, int stop_fd, int recorder_fd, struct top_report *report)
{
	int status = EXIT_UNUSABLE, stopped = 0;

	if (!top_report_start(top, report, false))
		message(top->command, "cannot start: %s", strerror(errno));
	while (report->pid) {
		struct pollfd ready[] = {
		    {.fd = report->fd, .events = POLLIN},
		    {.fd = top->ended ? -1 : recorder_fd, .events = POLLIN},
		    {.fd = stop_fd, .events = POLLIN},
		};

		if (poll(ready, 3, -1) < 0)
			continue;
		if (ready[1].revents) {
			top->ended = true;
			(void)shutdown(report->fd, SHUT_WR);
		}
		if (ready[0].revents || (ready[2].revents && top->ended))
			status = top_report_end(report, !ready[0].revents);
		if (ready[2].revents) {
			stopped = stop_signals_number(stop_fd);
			(void)syscall(SYS_pidfd_send_signal, recorder_fd, SIGTERM, NULL, 0);
		}
	}
	if (status > EXIT_SIGNAL && status != EXIT_SIGNAL + SIGPIPE && !stopped)
		message(top->command, "reading was ended by signal %d", status - EXIT_SIGNAL);
	return !stopped ? status : stopped == SIGINT ? EXIT_OK : EXIT_SIGNAL + stopped;
}

/* Returns the exit status. */
static int trace(struct top *top, char **arguments, bool is_command)
{
	struct report_selection *selection = &top->selection;
	struct top_report report = {0};
	const char *expected;
	int status;

	if (is_command && selection->report.input)
		return message_usage(top->command, "--input prints a recording, which runs no command");
	if (is_command || (!*arguments && !selection->report.input)) {
		if (selection->report.from.kind || selection->report.to.kind)
			return message_usage(top->command, "--from and --to select calls of a recording: pass one");
		status = top_take_arguments(top, arguments, is_command);
		return status < 0 ? top_record(top, false, show) : status;
	}
	for (size_t i = 0; i < top->pids.count; i++) {
		expected = value_pids(top->pids.items[i], &selection->pids);
		if (expected)
			return message_usage(top->command, "--pid: '%s' is not %s", top->pids.items[i], expected);
	}
	status = report_selection_finish(top->command, selection, arguments);
	if (status < 0 && (top->names.count || top->cgroup || top->all_cpus || top->tree || top->output))
		return message_usage(top->command, "'%s' is a recording: only -p can select processes of it",
				     selection->report.input);
	top->path = selection->report.input;
	top->ended = true;
	return status < 0 ? show(top, stop_signals_catch(), -1, &report) : status;
}

int cmd_trace(const struct command *command, int argc, char **argv)
{
	struct tracer tracer = {.top = {.command = command,
					.display = DISPLAY_DEFAULTS,
					.guarded_fd = -1,
					.make = make,
					.max_bytes = TOP_MAX_BYTES}};
	struct top *top = &tracer.top;
	int first = 0, status;
	const struct option_entry table[] = {
	    TOP_RECORD_OPTIONS(top),
	    OPTION(0, "call", value_word, &tracer.calls, "NAME",
		   "only these calls (mmap); may be a pattern, and repeated", .group = "What to show"),
	    OPTION('i', "input", value_string, &top->selection.report.input, "FILE",
		   "print this recording; -: standard input", .rare = true),
	    OPTION(0, "failed", value_flag, &tracer.options.failed_only, NULL, "only calls that fail"),
	    OPTION(0, "min-bytes", value_size, &tracer.options.min_bytes, "SIZE",
		   "only calls that change or ask for SIZE"),
	    OPTION(0, "min-age", value_duration, &top->selection.report.min_age_ns, "TIME",
		   "only calls that free or change memory this old (10s, 5m)", .rare = true),
	    OPTION(0, "class", value_classes, &top->selection.report.classes,
		   "anon|file|heap|shm|thread-stack|hugetlb|jit|gc-reserve[,...]", "only memory of these classes"),
	    OPTION(0, "from", value_timestamp, &top->selection.report.from, "TIME",
		   "only calls of a recording since TIME: 10s (after the start), -10s (before the end), 10:12:03",
		   .rare = true),
	    OPTION(0, "to", value_timestamp, &top->selection.report.to, "TIME", "only calls of a recording before TIME",
		   .rare = true),
	    NAME_OPTIONS(&top->selection),
	    OPTION(0, "stacks", display_parse_stacks, &top->display.text.stack_frames, "N|all",
		   "show N frames of each stack, or all", .given = &tracer.stacks),
	    OPTION(0, "json", value_flag, &top->display.json, NULL, "write a line of JSON for each call", .rare = true),
	    COLOUR_OPTION(&top->display),
	    OPTIONS_END,
	};

	report_selection_init(&top->selection);
	status = options_parse(command, table, OPTIONS_ANYWHERE, argc, argv, &first);
	if (status < 0)
		status = trace(top, argv + first, first > 1 && !strcmp(argv[first - 1], "--"));
	report_selection_deinit(&top->selection);
	free(top->pids.items);
	free(top->names.items);
	free(tracer.calls.items);
	return status;
}
