// SPDX-License-Identifier: LGPL-2.1-or-later
#include <mmtrace/diff.h>
#include <mmtrace/output.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/report-command.h"
#include "cli/terminal.h"
#include "cli/message.h"

struct diff_settings {
	struct mmt_report_options before, after;
	struct report_selection selection;
	struct display display;
	uint64_t fail_above;
	bool fail_above_given;
};

#define RESIDENT_NOISE_BYTES (1u << 20) /* RSS varies by this much between runs; used if floor_bytes is unknown */

static uint64_t resident_noise(const struct mmt_growth *growth)
{
	return growth->floor_bytes > RESIDENT_NOISE_BYTES ? growth->floor_bytes : RESIDENT_NOISE_BYTES;
}

/* Swapped memory has not been given back. */
static double end_in_use(const struct mmt_growth *growth, bool by_pss)
{
	return (double)(by_pss ? growth->end_pss_bytes : growth->end_bytes) + (double)growth->end_swap_bytes;
}

static double growth_in_use(const struct mmt_growth *growth, bool by_pss)
{
	double start = (double)(by_pss ? growth->start_pss_bytes : growth->start_bytes);

	return end_in_use(growth, by_pss) - start - (double)growth->start_swap_bytes -
	       (by_pss ? (double)growth->outside_bytes : 0);
}

/* How much more memory was in use in the second recording than in the first or, of one process, since the end of the
 * first; beyond noise. By Pss only if both recordings have it. 0 if RSS is unknown in either recording. */
static uint64_t sum_resident_growth(const struct mmt_diff *diff)
{
	const struct mmt_growth *before = &diff->before->growth, *after = &diff->after->growth;
	uint64_t noise =
	    resident_noise(before) > resident_noise(after) ? resident_noise(before) : resident_noise(after);
	bool by_pss = before->by_pss && after->by_pss;
	double growth = diff->relation == MMT_DIFF_SAME_PROCESS
			    ? end_in_use(after, by_pss) - end_in_use(before, by_pss)
			    : growth_in_use(after, by_pss) - growth_in_use(before, by_pss);

	if (before->verdict == MMT_VERDICT_UNKNOWN || after->verdict == MMT_VERDICT_UNKNOWN || growth <= (double)noise)
		return 0;
	return growth < (double)INT64_MAX ? (uint64_t)growth : INT64_MAX;
}

static bool swaps(const struct mmt_growth *growth)
{
	return growth->start_swap_bytes || growth->end_swap_bytes;
}

/* Why figures of this recording may be wrong; NULL: no reason is known. */
static const char *find_fault(const struct mmt_report *report)
{
	if (report->completeness.damaged)
		return "it is damaged";
	if (report->completeness.incomplete)
		return "the recorder did not finish";
	if (report->completeness.lost_events)
		return "events were lost";
	if (report->completeness.missed_threads)
		return "threads were missed";
	if (report->completeness.missed_cpus)
		return "CPUs came online during recording";
	if (report->completeness.left_processes)
		return "processes left the control group";
	for (size_t i = 0; i < report->process_count; i++)
		if (report->processes[i].checked && report->processes[i].mismatch_bytes)
			return "the result differs from the kernel's final maps";
	return NULL;
}

/* Unreliable figures cannot pass the threshold. */
static bool is_sound(const struct command *command, const struct mmt_report *report)
{
	const char *fault = find_fault(report);

	if (fault)
		message(command, "--fail-above: %s is not reliable: %s", report->input, fault);
	for (size_t i = 0; !fault && i < report->process_count; i++) {
		/* A command that ended by itself leaves no final maps, so its figures cannot be more reliable. */
		if (!report_is_unchecked(&report->processes[i], true))
			continue;
		report_say_unchecked(command, "--fail-above", report->input, &report->processes[i]);
		return false;
	}
	return !fault;
}

static bool is_exceeded(const struct command *command, const char *what, uint64_t bytes, uint64_t limit_bytes)
{
	char growth[MMT_SIZE_TEXT], limit[MMT_SIZE_TEXT];

	if (bytes <= limit_bytes)
		return false;
	message(command, "%s %s more, which is above %s", what, mmt_format_bytes(bytes, growth),
		mmt_format_bytes(limit_bytes, limit));
	return true;
}

static int check_growth(const struct command *command, const struct diff_settings *settings,
			const struct mmt_diff *diff)
{
	bool sound, exceeded, stacks = diff->after->by == MMT_BY_STACK;

	if (!settings->fail_above_given)
		return EXIT_OK;
	sound = is_sound(command, diff->before);
	sound &= is_sound(command, diff->after);
	if (!sound)
		return EXIT_UNUSABLE;
	exceeded = is_exceeded(command, stacks ? "functions that grew hold" : "rows that grew hold", diff->growth_bytes,
			       settings->fail_above);
	exceeded |=
	    is_exceeded(command, stacks ? "functions that grew made accessible" : "rows that grew made accessible",
			diff->committed_growth_bytes, settings->fail_above);
	/* RSS covers all memory, including what the options exclude. */
	if (!diff->after->options.focus_count && !diff->after->options.ignore_count)
		exceeded |=
		    is_exceeded(command,
				swaps(&diff->before->growth) || swaps(&diff->after->growth) ? "RSS and swap grew by"
											    : "RSS grew by",
				sum_resident_growth(diff), settings->fail_above);
	return exceeded ? EXIT_EXCEEDED : EXIT_OK;
}

/* What the page is made from. */
struct diff_page {
	const struct mmt_diff *diff;
	const struct mmt_text_options *options;
};

static struct mmt_error *write_page(const void *context, FILE *stream)
{
	const struct diff_page *page = context;

	return mmt_diff_write_html(page->diff, page->options, stream);
}

static struct mmt_error *write_diff(const struct diff_settings *settings, const struct mmt_diff *diff)
{
	if (settings->display.json)
		return mmt_diff_write_json(diff, &settings->display.text, stdout);
	return mmt_diff_write_text(diff, &settings->display.text, stdout);
}

/* The text output contains this warning itself. */
static void warn_of_programs(const struct command *command, const struct diff_settings *settings,
			     const struct mmt_diff *diff)
{
	if (diff->relation == MMT_DIFF_OTHER_PROGRAM && (settings->display.json || settings->display.html))
		message(command, "warning: the recordings are of different programs: few of their stacks will match");
}

static int run_diff(const struct command *command, struct diff_settings *settings)
{
	const char *const inputs[] = {settings->before.input, settings->after.input};
	struct mmt_report *before = NULL, *after = NULL;
	struct mmt_diff *diff = NULL;
	struct mmt_error *error;
	int status = EXIT_OK;

	truncated_files_ignore();
	display_start(command, &settings->display, inputs, 2);
	error = report_create(&settings->before, &before);
	if (!error)
		error = report_create(&settings->after, &after);
	if (!error)
		error = mmt_diff_create(before, after, &diff);
	if (!error)
		warn_of_programs(command, settings, diff);
	if (!error && settings->display.html)
		status = result_file_write(command, settings->display.html, write_page,
					   &(struct diff_page){diff, &settings->display.text});
	else if (!error)
		error = write_diff(settings, diff);
	if (error)
		status = message_error(command, error);
	truncated_files_report(command);
	status = pager_finish(command, status);
	if (status == EXIT_OK)
		status = check_growth(command, settings, diff);
	mmt_diff_destroy(diff);
	mmt_report_destroy(after);
	mmt_report_destroy(before);
	return status;
}

/* Negative: continue. */
static int check_keys(const struct command *command, const struct diff_settings *settings)
{
	const enum mmt_row_key *by = settings->selection.by;

	if (settings->display.html && by[0] != MMT_BY_STACK)
		return message_usage(
		    command, "--html shows stacks and cannot be combined with --by; the page merges them by function");
	if (by[0] == MMT_BY_THREAD && by[1] == MMT_BY_STACK)
		return message_usage(command, "--by: a diff has no rows of threads alone; pass --by thread,function");
	return -1;
}

int cmd_diff(const struct command *command, int argc, char **argv)
{
	struct diff_settings settings = {0};
	int first = 0, status;
	const struct option_entry table[] = {
	    OPTION(0, "fail-above", SIZE, &settings.fail_above, "BYTES",
		   "exit 1 when the functions that grew together hold or commit more than BYTES (10M, 1.5G), or RSS "
		   "grew by more, 2 when the figures of a recording are not reliable",
		   .given = &settings.fail_above_given),
	    BY_OPTION(&settings.selection),
	    DISPLAY_OPTIONS(&settings.display),
	    NAME_OPTIONS(&settings.selection),
	    OPTIONS_END,
	};

	report_selection_init(&settings.selection);
	display_init(&settings.display);
	status = options_parse(command, table, OPTIONS_ANYWHERE, argc, argv, &first);
	if (status < 0 && argc - first != 2)
		status = message_usage(command, "pass two recordings, the earlier one first");
	if (status < 0)
		status = check_keys(command, &settings);
	if (status < 0 && !display_check(command, &settings.display))
		status = EXIT_UNUSABLE;
	if (status < 0) {
		report_selection_apply(&settings.selection);
		if (settings.display.html)
			settings.selection.report.lifetime_steps = MMT_HTML_LIFETIME_STEPS;
		settings.selection.report.merge_lines = true;
		settings.before = settings.after = settings.selection.report;
		settings.before.input = argv[first];
		settings.after.input = argv[first + 1];
		status = run_diff(command, &settings);
	}
	report_selection_deinit(&settings.selection);
	return status;
}
