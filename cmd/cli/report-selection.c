// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/report-selection.h"

#include <stdlib.h>

#include "cli/message.h"
#include "cli/progress-line.h"
#include "cli/report-files.h"

const char *report_selection_parse_classes(const char *text, void *value)
{
	return value_classes(text, value);
}

const char *report_selection_parse_timestamp(const char *text, void *value)
{
	return value_timestamp(text, value);
}

const char *report_selection_parse_share(const char *text, void *value)
{
	return value_share(text, value);
}

const char *report_selection_parse_word(const char *text, void *value)
{
	return value_word(text, value);
}

void report_selection_init(struct report_selection *selection)
{
	*selection = (struct report_selection){0};
	mmt_report_options_init(&selection->report);
	value_class_words(selection->class_words);
}

void report_selection_deinit(struct report_selection *selection)
{
	free(selection->cache);
	value_pids_deinit(&selection->pids);
	value_words_deinit(&selection->focus);
	value_words_deinit(&selection->ignore);
	value_words_deinit(&selection->hide);
}

void report_selection_apply(struct report_selection *selection, bool no_cache)
{
	struct mmt_report_options *report = &selection->report;

	report->pids = selection->pids.count ? selection->pids.items : NULL;
	report->pid_count = selection->pids.count;
	report->focus = selection->focus.items;
	report->focus_count = selection->focus.count;
	report->ignore = selection->ignore.items;
	report->ignore_count = selection->ignore.count;
	report->hide = selection->hide.items;
	report->hide_count = selection->hide.count;
	selection->cache = no_cache ? NULL : cache_directory();
	report->cache_directory = selection->cache;
}

int report_selection_finish(const struct command *command, struct report_selection *selection, bool no_cache,
			    int argument_count, char **arguments)
{
	struct mmt_report_options *report = &selection->report;

	if (argument_count > 1)
		return message_usage(command, "unexpected argument '%s': pass only one recording", arguments[1]);
	if (argument_count && selection->input)
		return message_usage(command, "give the recording once: --input %s or %s", selection->input,
				     arguments[0]);
	if (selection->to_given && selection->at_given)
		return message_usage(command, "--at and --to both say where the window ends: give one");
	report->input = argument_count ? arguments[0] : selection->input ? selection->input : DEFAULT_FILE;
	report_selection_apply(selection, no_cache);
	return -1;
}

struct mmt_error *report_create(struct mmt_report_options *options, struct mmt_report **report_ret)
{
	struct progress progress;
	struct mmt_error *error;

	options->progress = progress_begin(&progress, options->input);
	error = mmt_report_create(options, report_ret);
	progress_end(&progress);
	return error;
}
