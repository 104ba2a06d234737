// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmtrace export: writes a report in the formats of other viewers. */
#include <mmtrace/confine.h>
#include <mmtrace/export.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/report-command.h"

#define FORMATS_MAX 32

struct export_settings {
	struct report_selection selection;
	const struct mmt_report *report; /* what is written */
	const struct mmt_export_format *format;
	enum mmt_weight weight;
	int by;		     /* place in its words */
	const char *output;  /* NULL: standard output */
	const char *service; /* NULL: not given */
	char *own_output;    /* a name that the user did not choose; owned */
	int format_place;
	bool format_given, weight_given;
	const char *format_names[FORMATS_MAX + 1];
	char format_words[256]; /* for --help: "folded|pprof" */
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ".html"; "" if there is none. A name that begins with a dot has none there. */
static const char *extension(const char *path)
{
	const char *base = base_name(path), *dot = *base ? strrchr(base + 1, '.') : NULL;

	return dot ? dot : "";
}

static struct mmt_error *write_exported(const void *context, FILE *stream)
{
	const struct export_settings *settings = context;

	return mmt_export(settings->report, settings->format->name, settings->weight, settings->service, stream);
}

static int run_export(const struct command *command, struct export_settings *settings)
{
	const struct mmt_export_format *format = settings->format;
	struct mmt_report *report = NULL;
	struct mmt_error *error;
	char text[MMT_SIZE_TEXT];
	int status;

	mmt_confine(&settings->selection.report.input, 1, settings->output);
	error = report_create(&settings->selection.report, &report);
	if (error)
		return message_input_error(command, settings->selection.report.input, error);
	if (report->completeness.damaged)
		message(command, "warning: the recording is damaged: %s; what cannot be read is not in the result",
			report->completeness.damage);
	if (settings->weight == MMT_WEIGHT_RESIDENT && report->resident_bytes == MMT_UNKNOWN)
		message(command, "warning: the recording has no resident sizes of this time: every weight is 0");
	if (settings->format->only_made && report->committed_before_bytes)
		message(
		    command,
		    "warning: %s shows only what was mapped in the window: it leaves out %s that was mapped earlier "
		    "and made accessible in it, which folded, pprof and html show",
		    settings->format->name, mmt_format_bytes(report->committed_before_bytes, text));
	settings->report = report;
	status = result_file_write(command, settings->output ?: "-", write_exported, settings);
	if (!settings->output)
		status = pager_finish(command, status);
	/* The user did not choose the name: say how to open it. */
	if (settings->own_output && status == EXIT_OK && format->viewer)
		message(command, "wrote %s; to open it: %s %s", settings->output, format->viewer, settings->output);
	else if (settings->own_output && status == EXIT_OK)
		message(command, "wrote %s; open it with %s", settings->output, format->description);
	mmt_report_destroy(report);
	return status;
}

/* The first format whose files' names end as this one, in its suffix or, `whole` false, in the extension alone; NULL:
 * none. */
static const struct mmt_export_format *format_of_name(const char *path, bool whole)
{
	size_t count, length = strlen(path);
	const struct mmt_export_format *formats = mmt_export_formats(&count);

	for (size_t i = 0; i < count; i++) {
		const char *suffix = whole ? formats[i].suffix : strrchr(formats[i].suffix, '.');

		if (length > strlen(suffix) && !strcmp(path + length - strlen(suffix), suffix))
			return &formats[i];
	}
	return NULL;
}

/* A name for another viewer is a mistake, except that of a device or a pipe. Returns as take_arguments(). */
static int check_name(const struct command *command, const struct export_settings *settings)
{
	const struct mmt_export_format *format = settings->format, *of_suffix, *other;
	const char *path = settings->output, *end = extension(path), *right = strrchr(format->suffix, '.');
	size_t stem, own = strlen(format->suffix);
	struct stat status;

	of_suffix = format_of_name(path, true);
	other = of_suffix ? of_suffix : format_of_name(path, false);
	if (!other || other == format || (!of_suffix && !strcmp(end, right)) ||
	    (stat(path, &status) == 0 && !S_ISREG(status.st_mode)))
		return -1;
	stem = strlen(path) - strlen(of_suffix ? of_suffix->suffix : end);
	if (stem > own && !strncmp(path + stem - own, format->suffix, own))
		stem -= own;
	return message_usage(command, "%s is no name for %s: use --format %s, or --output %.*s%s", path, format->name,
			     other->name, (int)stem, path, format->suffix);
}

/* In the working directory, after the recording; an existing file stays. Returns as take_arguments(). */
static int choose_name(const struct command *command, struct export_settings *settings)
{
	const char *input = settings->selection.report.input;
	const char *base = strcmp(input, "-") ? base_name(input) : "mmtrace";
	struct stat status;

	if (asprintf(&settings->own_output, "%.*s%s", (int)(extension(base) - base), base, settings->format->suffix) <
	    0) {
		settings->own_output = NULL;
		message(command, "out of memory");
		return EXIT_UNUSABLE;
	}
	settings->output = settings->own_output;
	if (lstat(settings->output, &status) == 0)
		return message_usage(command, "%s exists; to replace it, add --output %s", settings->output,
				     settings->output);
	return -1;
}

/* Returns the exit status; negative: continue. */
static int take_arguments(const struct command *command, struct export_settings *settings, char **arguments)
{
	int status = report_selection_finish(command, &settings->selection, arguments);
	bool to_stdout;

	if (status >= 0)
		return status;
	settings->format = settings->format_given ? &mmt_export_formats(NULL)[settings->format_place]
			   : settings->output	  ? format_of_name(settings->output, true)
						  : NULL;
	if (!settings->format)
		return message_usage(command, "%s%schoose a format: --format %s",
				     settings->output && *settings->output ? settings->output : "",
				     settings->output && *settings->output ? ": the name tells no format; " : "",
				     settings->format_words);
	settings->selection.report.lifetime_steps = settings->format->lifetime_steps;
	settings->selection.report.by = settings->by ? MMT_BY_TOUCH : MMT_BY_STACK;
	if (settings->by && settings->weight_given)
		return message_usage(command, "--by touch has one figure: leave out --weight");
	if (settings->output && !*settings->output)
		return message_usage(command, "--output: the file's name is empty");
	to_stdout = settings->output && !strcmp(settings->output, "-");
	if (to_stdout)
		settings->output = NULL;
	if (settings->weight_given && !settings->format->weighted)
		return message_usage(command, "--weight needs --format folded: %s contains all figures",
				     settings->format->name);
	if (settings->service && !*settings->service)
		return message_usage(command, "--service: the name is empty");
	if (settings->service && !settings->format->labelled)
		return message_usage(command, "--service needs --format rows or pprof: %s does not name services",
				     settings->format->name);
	if (settings->output)
		return check_name(command, settings);
	if (!isatty(STDOUT_FILENO))
		return -1;
	if (!to_stdout)
		return choose_name(command, settings);
	if (settings->format->binary)
		return message_usage(command, "%s is not text: choose a file with --output FILE",
				     settings->format->name);
	return -1;
}

int cmd_export(const struct command *command, int argc, char **argv)
{
	static const char *const weights[] = {MMT_WEIGHT_WORDS(CHOICE) NULL};
	static const char *const keys[] = {"stack", "touch", NULL};
	struct export_settings settings = {0};
	size_t count, size = 0;
	const struct mmt_export_format *formats = mmt_export_formats(&count);
	int first = 0, status;
	const struct option_entry table[] = {
	    OPTION('f', "format", NULL, &settings.format_place, settings.format_words, "the format of the file",
		   .choices = settings.format_names, .given = &settings.format_given),
	    OPTION('o', "output", value_string, &settings.output, "FILE",
		   "write to FILE (default: on a terminal, a file named after the recording; else standard output)"),
	    OPTION(0, "weight", NULL, &settings.weight, "memory|unfreed|resident|committed|allocated|count",
		   "the figure of each stack in folded (default memory, as in reports)", .choices = weights,
		   .given = &settings.weight_given),
	    OPTION(0, "by", NULL, &settings.by, "stack|touch",
		   "who mapped memory (default), or whose page faults brought it in", .choices = keys),
	    OPTION(0, "service", value_string, &settings.service, "NAME",
		   "the name of the service in rows and pprof (default: the unit of systemd)"),
	    REPORT_SELECTION_OPTIONS(&settings.selection),
	    OPTIONS_END,
	};

	for (size_t i = 0; i < count && i < FORMATS_MAX; i++) {
		settings.format_names[i] = formats[i].name;
		size += (size_t)snprintf(settings.format_words + size, sizeof(settings.format_words) - size, "%s%s",
					 i ? "|" : "", formats[i].name);
	}
	report_selection_init(&settings.selection);
	status = options_parse(command, table, OPTIONS_ANYWHERE, argc, argv, &first);
	if (status < 0)
		status = take_arguments(command, &settings, argv + first);
	if (status < 0)
		status = run_export(command, &settings);
	report_selection_deinit(&settings.selection);
	free(settings.own_output);
	return status;
}
