// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/report-command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/message.h"

void report_selection_init(struct report_selection *selection)
{
	*selection = (struct report_selection){0};
	mmt_report_options_init(&selection->report);
	selection->report.input = NULL;
}

void report_selection_deinit(struct report_selection *selection)
{
	free(selection->pids.items);
	free(selection->focus.items);
	free(selection->ignore.items);
}

void report_selection_apply(struct report_selection *selection)
{
	struct mmt_report_options *report = &selection->report;

	report->by = selection->by[0];
	report->then_by = selection->by[1];
	report->pids = selection->pids.count ? selection->pids.items : NULL;
	report->pid_count = selection->pids.count;
	report->focus = selection->focus.items;
	report->focus_count = selection->focus.count;
	report->ignore = selection->ignore.items;
	report->ignore_count = selection->ignore.count;
}

int report_selection_finish(const struct command *command, struct report_selection *selection, char **arguments)
{
	int status = options_take_recording(command, arguments, &selection->report.input);

	if (status < 0)
		report_selection_apply(selection);
	return status;
}

int report_selection_check_html(const struct command *command, struct report_selection *selection,
				const struct display *display)
{
	if (!display->html)
		return -1;
	if (selection->by[0] != MMT_BY_STACK && selection->by[0] != MMT_BY_TOUCH)
		return message_usage(command, "--html shows stacks and cannot be combined with --by, except touch; "
					      "the page merges them by function");
	selection->report.lifetime_steps = MMT_HTML_LIFETIME_STEPS;
	if (*display->html && !display->json)
		return -1;
	message(command, *display->html ? "--html and --json cannot be combined" : "--html: the file's name is empty");
	return EXIT_UNUSABLE;
}

#define WORD(name, unit, known, sum, csv, text, sorted, id, word, ...) MMT_IF_##sorted(word, )
#define OR_WORD(name, unit, known, sum, csv, text, sorted, id, word, ...) MMT_IF_##sorted("|" word)
const char *const sort_choices[] = {"unfreed", MMT_ROW_FIGURES(WORD) NULL};
const char sort_words[] = "unfreed" MMT_ROW_FIGURES(OR_WORD);

/* "function", or "function,thread". */
const char *report_selection_parse_by(const char *text, void *value)
{
	static const char *const keys[] = {MMT_ROW_KEY_WORDS(CHOICE) NULL};
	size_t length = strcspn(text, ",");
	int first = value_choice(keys, text, length), second;
	enum mmt_row_key *by = value;

	by[0] = (enum mmt_row_key)first;
	by[1] = MMT_BY_STACK;
	if (first < 0)
		return REPORT_BY_ARGUMENT;
	if (!text[length])
		return NULL;
	text += length + 1;
	if (strchr(text, ','))
		return "one key or two";
	second = value_choice(keys, text, strlen(text));
	if (second < 0)
		return REPORT_BY_ARGUMENT;
	if (first == MMT_BY_STACK || second == MMT_BY_STACK || first == MMT_BY_TOUCH || second == MMT_BY_TOUCH)
		return "a pair of function|module|file|class|process|thread: stack and touch are used alone";
	if (first == second)
		return "two different keys";
	by[1] = (enum mmt_row_key)second;
	return NULL;
}

struct mmt_error *report_create(struct mmt_report_options *options, struct mmt_report **report_ret)
{
	struct progress progress;
	struct mmt_error *error;

	options->progress = progress_begin(&progress, options->input);
	error = mmt_report_create(options, report_ret);
	progress_end();
	return error;
}

bool report_is_repeatable(const struct mmt_report *report)
{
	struct stat status;

	return !stat(report->input, &status) && S_ISREG(status.st_mode);
}

uint64_t report_freed_ns(const struct mmt_report *report)
{
	uint64_t since_ns;

	return mmt_report_freed_at_end(report, &since_ns) && report_is_repeatable(report) ? report->end_ns - since_ns
											  : 0;
}

struct mmt_error *report_create_earlier(struct mmt_report_options *options, const struct mmt_report *ended,
					uint64_t last_ns, struct mmt_report **report_ret)
{
	struct mmt_error *error;

	options->to = (struct mmt_timestamp){.kind = MMT_TIMESTAMP_CLOCK, .ns = ended->end_ns - last_ns + 1};
	error = report_create(options, report_ret);
	/* How the command ended is known nevertheless. */
	if (!error)
		(*report_ret)->command_end = ended->command_end;
	return error;
}

struct mmt_error *report_create_before_end(struct mmt_report_options *options, struct mmt_report **report_ret,
					   uint64_t *last_ns_ret)
{
	struct mmt_report *ended;
	struct mmt_error *error = report_create(options, &ended);

	*last_ns_ret = error ? 0 : report_freed_ns(ended);
	if (!error && *last_ns_ret) {
		error = report_create_earlier(options, ended, *last_ns_ret, report_ret);
		mmt_report_destroy(ended);
	} else if (!error) {
		*report_ret = ended;
	}
	return error;
}

int result_file_write(const struct command *command, const char *path,
		      struct mmt_error *(*write)(const void *context, FILE *stream), const void *context)
{
	struct mmt_error *error = strcmp(path, "-") ? mmt_write_file(path, write, context) : write(context, stdout);

	/* main() checks standard output. */
	return error ? message_error(command, error) : EXIT_OK;
}

/* The check is not meaningful if more than one part in UNREAD_SHARE of the mapped bytes moved while the first maps were
 * read. Calls in flight during the last reading do not matter: their effect is recorded. */
#define UNREAD_SHARE 10

bool report_is_unchecked(const struct mmt_process *process, bool any_checked)
{
	return process->checked ? process->unread_bytes > process->compared_bytes / UNREAD_SHARE
				: !process->ended || !any_checked;
}

void report_say_unchecked(const struct command *command, const char *option, const char *file,
			  const struct mmt_process *process)
{
	char unread[MMT_SIZE_TEXT], compared[MMT_SIZE_TEXT];
	char moved[2 * MMT_SIZE_TEXT + 64];
	const char *reason = process->checked ? moved
			     : process->ended ? "it ended before its maps could be read"
					      : "no final map of the kernel";

	snprintf(moved, sizeof(moved), "%s of %s moved while its first maps were read",
		 mmt_format_bytes(process->unread_bytes, unread), mmt_format_bytes(process->compared_bytes, compared));
	message(command, "%s: %s%spid %" PRId32 " (%s) cannot be checked: %s", option, file ? file : "",
		file ? ": " : "", process->pid, process->name ? process->name : "", reason);
}
