// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmtrace diff: compares two reports, and whether more leaks than --fail-above permits. */
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/report-command.h"
#include "cli/message.h"

struct diff_settings {
	struct mmt_report_options before, after;
	const struct mmt_diff *diff;	   /* what is written */
	const struct mmt_report *ended[2]; /* of the ends of the recordings */
	struct report_selection selection;
	struct display display;
	uint64_t fail_above;
	bool fail_above_given;
};

#define RATE_NOISE 10			/* one part in so many of a rate is no difference */
#define RESIDENT_NOISE_BYTES (1u << 20) /* RSS varies by this much between runs; used if floor_bytes is unknown */

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

/* Others, such as those that a server forks, may have been read at any moment of their lives, or never. */
static bool lived_for_most(const struct mmt_report *report, const struct mmt_process *process)
{
	uint64_t length_ns = report->growth.end_ns - report->growth.start_ns;
	const struct mmt_process_readings *of = process->readings;

	return of && !process->released && of->end_ns - of->start_ns >= length_ns - length_ns / 4;
}

/* By how much the processes had grown that lived for most of a recording, as one of the same name did in the other.
 * Of a copy of another, only private memory counts, if that is known in both recordings. NAN: there is none. */
static double growth_of_lasting(const struct mmt_report *report, const struct mmt_report *other)
{
	bool by_pss = report->growth.by_pss && other->growth.by_pss;
	double bytes = NAN;

	for (size_t i = 0; i < report->process_count; i++) {
		const struct mmt_process *process = &report->processes[i];
		const struct mmt_process_readings *of = process->readings;
		bool paired = false, copied = false;

		if (!lived_for_most(report, process))
			continue;
		for (size_t j = 0; j < other->process_count && !paired; j++)
			paired = !strcmp(other->processes[j].name, process->name) &&
				 lived_for_most(other, &other->processes[j]);
		for (size_t j = 0; j < report->process_count && !copied; j++)
			copied = report->processes[j].pid == process->parent_pid &&
				 !strcmp(report->processes[j].name, process->name);
		if (!paired)
			continue;
		bytes = isnan(bytes) ? 0 : bytes;
		if (copied)
			bytes += by_pss ? (double)of->end_private_bytes : 0;
		else
			bytes += (double)of->late_bytes;
		if (!process->started_ns)
			bytes -= copied ? by_pss ? (double)of->start_private_bytes : 0
					: (double)of->start_resident_bytes + (double)of->start_swapped_bytes;
	}
	return bytes;
}

/* How much more memory was in use in the second recording than in the first or, of one process, since the end of the
 * first; beyond noise. By Pss only if both recordings have it. NAN if it cannot be compared. */
static double sum_resident_growth(const struct mmt_diff *diff)
{
	const struct mmt_growth *before = &diff->before->growth, *after = &diff->after->growth;
	bool same = diff->relation == MMT_DIFF_SAME_PROCESS, by_pss = before->by_pss && after->by_pss;
	bool ended = !same && diff->before->options.keep_ended && diff->after->options.keep_ended;
	uint64_t floor = before->floor_bytes > after->floor_bytes ? before->floor_bytes : after->floor_bytes;
	/* The floor is that of all processes together, which come and go. */
	uint64_t noise = floor > RESIDENT_NOISE_BYTES && !ended ? floor : RESIDENT_NOISE_BYTES;
	double expected = (double)diff->left_out_resident_bytes, unread = 0, growth;
	double length_ns = (double)(diff->before->to_ns - diff->before->from_ns);
	double later_ns = (double)diff->before->to_ns - (double)before->end_ns;
	double grown = ended ? growth_of_lasting(diff->before, diff->after) : growth_in_use(before, by_pss);

	if (before->verdict == MMT_VERDICT_UNKNOWN || after->verdict == MMT_VERDICT_UNKNOWN ||
	    (!same && before->end_ns <= before->start_ns))
		return NAN;
	growth = same	 ? end_in_use(after, by_pss) - end_in_use(before, by_pss)
		 : ended ? growth_of_lasting(diff->after, diff->before) - grown
			 : growth_in_use(after, by_pss) - grown - expected;
	/* A command may have grown after its last reading, and one that ran before, before the first one. */
	if (ended && before->bytes_per_minute != MMT_RATE_UNKNOWN)
		unread = (double)before->bytes_per_minute * later_ns / 60e9;
	else if (ended)
		unread = grown * later_ns / length_ns;
	else if (!same && grown > 0)
		unread = grown * length_ns / (double)(before->end_ns - before->start_ns) - grown;
	if (growth <= (double)noise + (unread > 0 ? unread : 0) + fabs(expected) / RATE_NOISE)
		return 0;
	return growth;
}

/* Why figures of this recording may be wrong; NULL: no reason is known. */
static const char *find_fault(const struct mmt_report *report)
{
	int status = report->command_end.status, number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (report->completeness.damaged)
		return "it is damaged";
	if (report->completeness.incomplete)
		return "the recorder did not finish";
	/* It may not have reached the code that leaks. Ctrl-C and SIGTERM end servers. */
	if (report->command_end.time_ns && number && number != SIGINT && number != SIGTERM)
		return "its command or target was killed by a signal";
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
	const struct mmt_growth *before = &diff->before->growth, *after = &diff->after->growth;
	bool swaps =
	    before->start_swap_bytes || before->end_swap_bytes || after->start_swap_bytes || after->end_swap_bytes;
	bool sound, exceeded, stacks = diff->after->by == MMT_BY_STACK;
	const char *which = "second", *why = "too short to compare";
	double resident;

	if (!settings->fail_above_given)
		return EXIT_OK;
	sound = is_sound(command, settings->ended[0]);
	sound &= is_sound(command, settings->ended[1]);
	if (diff->counted_unlike) {
		which = diff->after->options.keep_ended ? "first" : "second";
		why = "not of a command that ended, so its ended processes do not count";
	} else if (diff->rated) {
		why = "more than three times as long as the first";
	} else if (diff->longer_ns >= 0) {
		which = "first";
	}
	if (sound && diff->incomparable)
		message(command, "--fail-above: cannot decide: the %s recording is %s", which, why);
	if (!sound || diff->incomparable)
		return EXIT_UNUSABLE;
	exceeded = is_exceeded(command, stacks ? "functions that grew hold" : "rows that grew hold", diff->growth_bytes,
			       settings->fail_above);
	exceeded |=
	    is_exceeded(command, stacks ? "functions that grew made accessible" : "rows that grew made accessible",
			diff->committed_growth_bytes, settings->fail_above);
	/* RSS covers all memory, including what the options exclude. */
	if (diff->after->options.focus_count || diff->after->options.ignore_count)
		return exceeded ? EXIT_EXCEEDED : EXIT_OK;
	exceeded |= is_exceeded(command, "commands were larger by", diff->larger_bytes, settings->fail_above);
	resident = sum_resident_growth(diff);
	if (isnan(resident) && before->verdict != MMT_VERDICT_UNKNOWN)
		message(command, "--fail-above: RSS %s",
			before->end_ns <= before->start_ns
			    ? "was read only once in the first recording, and is not compared"
			    : "is not compared: no program ran for most of both recordings");
	else if (resident > 0)
		exceeded |= is_exceeded(command, swaps ? "RSS and swap grew by" : "RSS grew by",
					resident < 0x1p63 ? (uint64_t)resident : INT64_MAX, settings->fail_above);
	return exceeded ? EXIT_EXCEEDED : EXIT_OK;
}

static struct mmt_error *write_diff(const void *context, FILE *stream)
{
	const struct diff_settings *settings = context;
	const struct mmt_text_options *text = &settings->display.text;

	if (settings->display.html)
		return mmt_diff_write_html(settings->diff, text, stream);
	if (settings->display.json)
		return mmt_diff_write_json(settings->diff, text, stream);
	return mmt_diff_write_text(settings->diff, text, stream);
}

/* If one of the programs freed in its last moments what had grown, `shown` are both before that. Not if one ended in a
 * recording that cannot be read again: its end can only be compared with the end of the other. */
static struct mmt_error *create_reports(struct diff_settings *settings, struct mmt_report *ended[2],
					struct mmt_report *shown[2])
{
	struct mmt_report_options *options[] = {&settings->before, &settings->after};
	struct mmt_error *error = report_create(options[0], &ended[0]) ?: report_create(options[1], &ended[1]);
	uint64_t freed_ns[2] = {0};
	bool at_end = false;

	for (size_t i = 0; !error && i < 2; i++) {
		freed_ns[i] = report_freed_ns(ended[i]);
		at_end |= mmt_report_has_ended(ended[i]) && !report_is_repeatable(ended[i]);
	}
	for (size_t i = 0; !error && i < 2; i++) {
		/* A program that did not grow frees as late as one that did. */
		uint64_t last_ns = freed_ns[i] ?: freed_ns[!i];

		shown[i] = ended[i];
		if (!at_end && last_ns && mmt_report_has_ended(ended[i]) &&
		    ended[i]->end_ns - ended[i]->start_ns > last_ns)
			error = report_create_earlier(options[i], ended[i], last_ns, &shown[i]);
	}
	return error;
}

static int run_diff(const struct command *command, struct diff_settings *settings)
{
	const char *const inputs[] = {settings->before.input, settings->after.input};
	const struct display *display = &settings->display;
	struct mmt_report *ended[2] = {0}, *shown[2] = {0};
	struct mmt_diff *diff = NULL;
	struct mmt_error *error;
	int status;

	display_start(command, &settings->display, inputs, 2);
	error = create_reports(settings, ended, shown) ?: mmt_diff_create(shown[0], shown[1], &diff);
	/* The text output contains this warning itself. */
	if (!error && diff->relation == MMT_DIFF_OTHER_PROGRAM && (display->json || display->html))
		message(command, "warning: the recordings are of different programs: few of their stacks will match");
	settings->diff = diff;
	settings->ended[0] = ended[0];
	settings->ended[1] = ended[1];
	status = error ? message_error(command, error)
		       : result_file_write(command, display->html ?: "-", write_diff, settings);
	status = pager_finish(command, status);
	if (status == EXIT_OK)
		status = check_growth(command, settings, diff);
	mmt_diff_destroy(diff);
	for (size_t i = 0; i < 2; i++) {
		if (shown[i] != ended[i])
			mmt_report_destroy(shown[i]);
		mmt_report_destroy(ended[i]);
	}
	return status;
}

int cmd_diff(const struct command *command, int argc, char **argv)
{
	struct diff_settings settings = {.display = DISPLAY_DEFAULTS};
	const enum mmt_row_key *by = settings.selection.by;
	int first = 0, status;
	const struct option_entry table[] = {
	    OPTION(0, "fail-above", value_size, &settings.fail_above, "BYTES",
		   "exit 1 when memory grew by more than BYTES (10M, 1.5G): what functions that grew together hold or "
		   "commit, or RSS; 2 when the figures of a recording are not reliable",
		   .given = &settings.fail_above_given),
	    BY_OPTION(&settings.selection),
	    DISPLAY_OPTIONS(&settings.display),
	    NAME_OPTIONS(&settings.selection),
	    OPTIONS_END,
	};

	report_selection_init(&settings.selection);
	status = options_parse(command, table, OPTIONS_ANYWHERE, argc, argv, &first);
	if (status < 0 && argc - first != 2)
		status = message_usage(command, "pass two recordings, the earlier one first");
	if (status < 0)
		status = report_selection_check_html(command, &settings.selection, &settings.display);
	if (status < 0 && (by[0] == MMT_BY_THREAD || by[0] == MMT_BY_TOUCH) && by[1] == MMT_BY_STACK)
		status = message_usage(command,
				       "--by: a diff has no rows by touch or thread alone; pass --by thread,function");
	if (status < 0) {
		report_selection_apply(&settings.selection);
		settings.selection.report.merge_lines = settings.selection.report.keep_ended = true;
		settings.before = settings.after = settings.selection.report;
		settings.before.input = argv[first];
		settings.after.input = argv[first + 1];
		status = run_diff(command, &settings);
	}
	report_selection_deinit(&settings.selection);
	return status;
}
