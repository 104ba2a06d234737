// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmtrace report: writes a report as text, JSON, CSV or HTML. */
#include <inttypes.h>

#include "cli/report-command.h"
#include "cli/message.h"

struct report_settings {
	struct report_selection selection;
	const struct mmt_report *report; /* what is written */
	struct display display;
	bool check, csv;
};

#define CHECK_LINES 3 /* processes named, of those that differ and of those not checked */

static void report_omitted(const struct command *command, size_t count, const char *what)
{
	char text[MMT_SIZE_TEXT];

	if (count > CHECK_LINES)
		message(command, "--check: %s more %s %s", mmt_format_count(count - CHECK_LINES, text),
			count - CHECK_LINES == 1 ? "process" : "processes", what);
}

/* Whether calls are missing in the recording; prints which. */
static bool say_missing_calls(const struct command *command, const struct mmt_completeness *completeness)
{
	const struct {
		uint64_t count;
		const char *what;
	} lines[] = {
	    {completeness->lost_events, "events were lost: their effects are known only from the kernel's maps, if at "
					"all; record with a larger --ring-size"},
	    {completeness->missed_threads, "threads were missed: their calls are not in the recording"},
	    {completeness->missed_cpus,
	     "CPUs came online during recording: some or all of the calls made there are missing"},
	    {completeness->left_processes, "processes left the control group: their calls outside it are missing"},
	};
	bool missing = completeness->damaged;

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		if (lines[i].count)
			message(command, "--check: %" PRIu64 " %s", lines[i].count, lines[i].what);
		missing |= lines[i].count > 0;
	}
	if (completeness->damaged)
		message(command, "--check: the recording is damaged: the figures do not include the unreadable parts");
	return missing;
}

/* Exit status of --check; prints what is wrong. */
static int check_report(const struct command *command, const struct mmt_report *report)
{
	bool any_checked = false;
	size_t unchecked = 0, wrong = 0;
	const char *problem = NULL;
	char size[MMT_SIZE_TEXT];

	for (size_t i = 0; i < report->process_count; i++)
		any_checked |= report->processes[i].checked && !report_is_unchecked(&report->processes[i], true);
	if (!report->process_count)
		problem = "the recording contains no process";
	else if (report->windowed && report->to_ns < report->end_ns)
		problem = "the kernel's final map shows the end of the recording, not the time of --to";
	if (problem) {
		message(command, "--check: %s", problem);
		return EXIT_UNUSABLE;
	}
	for (size_t i = 0; i < report->process_count; i++) {
		const struct mmt_process *process = &report->processes[i];

		if (process->checked && (process->mismatch_bytes || process->reconciled_bytes)) {
			if (++wrong > CHECK_LINES)
				continue;
			message(command, "--check: pid %" PRId32 " (%s) %s%s", process->pid,
				process->name ? process->name : "",
				process->mismatch_bytes ? "differs from the kernel's maps by "
							: "was reconciled with the kernel's maps: ",
				mmt_format_bytes(process->mismatch_bytes ? process->mismatch_bytes
									 : process->reconciled_bytes,
						 size));
		} else if (report_is_unchecked(process, any_checked) && ++unchecked <= CHECK_LINES) {
			report_say_unchecked(command, "--check", NULL, process);
		}
	}
	report_omitted(command, unchecked, "cannot be checked");
	report_omitted(command, wrong, "differing from the kernel's final maps");
	if (say_missing_calls(command, &report->completeness) || wrong)
		return EXIT_EXCEEDED;
	return unchecked ? EXIT_UNUSABLE : EXIT_OK;
}

static struct mmt_error *write_report(const void *context, FILE *stream)
{
	const struct report_settings *settings = context;
	const struct mmt_text_options *text = &settings->display.text;

	if (settings->display.html)
		return mmt_report_write_html(settings->report, text, stream);
	if (settings->display.json)
		return mmt_report_write_json(settings->report, text, stream);
	if (settings->csv)
		return mmt_report_write_csv(settings->report, text, stream);
	return mmt_report_write_text(settings->report, text, stream);
}

static int run_report(const struct command *command, struct report_settings *settings)
{
	struct mmt_report_options *options = &settings->selection.report;
	bool json = settings->display.json;
	bool chosen =
	    options->from.kind || options->to.kind || options->every_ns || settings->csv || (settings->check && !json);
	char last[MMT_SIZE_TEXT];
	uint64_t last_ns = 0;
	struct mmt_report *report = NULL, *earlier = NULL;
	struct mmt_error *error;
	int status;

	display_start(command, &settings->display, &options->input, 1);
	error = report_create(options, &report);
	/* People get the moment before the processes freed what grew. Programs get the end, and JSON both answers. */
	if (!error && !chosen && (last_ns = report_freed_ns(report)))
		error = report_create_earlier(options, report, last_ns, &earlier);
	if (error) {
		mmt_report_destroy(report);
		return message_input_error(command, options->input, error);
	}
	if (last_ns && !json && !settings->display.html) {
		/* It takes one of the lines of the first screen. */
		if (settings->display.text.lines > 1)
			settings->display.text.lines--;
		printf("As of %s before the end, before memory was freed; --to -0s shows the end\n",
		       mmt_format_duration(last_ns, last));
	}
	report->before_end = earlier;
	settings->report = last_ns && !json ? earlier : report;
	status = result_file_write(command, settings->display.html ?: "-", write_report, settings);
	status = pager_finish(command, status);
	if (settings->check && status == EXIT_OK)
		status = check_report(command, report);
	mmt_report_destroy(earlier);
	mmt_report_destroy(report);
	return status;
}

/* Returns the exit status; negative: continue. */
static int take_arguments(const struct command *command, struct report_settings *settings, char **arguments)
{
	int status = report_selection_finish(command, &settings->selection, arguments);

	if (status >= 0)
		return status;
	if (settings->csv && (settings->display.json || settings->display.html))
		return message_usage(command, "--csv cannot be combined with --json or --html");
	if (settings->selection.by[0] == MMT_BY_TOUCH && settings->display.text.sort != MMT_SORT_MEMORY)
		return message_usage(command, "--sort: rows by touch have only memory");
	if (settings->csv && !settings->selection.report.every_ns && !settings->display.limit_given) {
		settings->display.text.limit = 0;
		settings->display.limit_given = true;
	}
	return report_selection_check_html(command, &settings->selection, &settings->display);
}

int cmd_report(const struct command *command, int argc, char **argv)
{
	struct report_settings settings = {.display = DISPLAY_DEFAULTS};
	int first = 0, status;
	const struct option_entry table[] = {
	    REPORT_SELECTION_OPTIONS(&settings.selection),
	    BY_OPTION(&settings.selection),
	    OPTION(0, "every", value_duration, &settings.selection.report.every_ns, "TIME",
		   "also show the totals over time, in steps of TIME (10s, 5m)", .rare = true),
	    SORT_OPTION(&settings.display),
	    OPTION(0, "csv", value_flag, &settings.csv, NULL,
		   "write CSV for spreadsheets: a record for each row or, with --every, for each step", .rare = true),
	    DISPLAY_OPTIONS(&settings.display),
	    OPTION(0, "check", value_flag, &settings.check, NULL,
		   "check the result: exit 1 when it differs from the kernel's final maps or calls are missing, 2 when "
		   "it cannot be "
		   "checked",
		   .rare = true),
	    OPTIONS_END,
	};

	report_selection_init(&settings.selection);
	settings.display.text.sort = MMT_SORT_MEMORY;
	status = options_parse(command, table, OPTIONS_ANYWHERE, argc, argv, &first);
	if (status < 0)
		status = take_arguments(command, &settings, argv + first);
	if (status < 0)
		status = run_report(command, &settings);
	report_selection_deinit(&settings.selection);
	return status;
}
