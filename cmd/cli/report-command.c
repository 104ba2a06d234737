// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/report-command.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mmtrace/output.h>

#include "cli/message.h"

static volatile sig_atomic_t happened;

/* Other causes than a read beyond the end of a file still end the process. */
static void handle_bus_error(int number, siginfo_t *info, void *context)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	char *page = (char *)((uintptr_t)info->si_addr & ~(page_bytes - 1));

	(void)context;
	if (info->si_code == BUS_ADRERR &&
	    mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page) {
		happened = 1;
		return;
	}
	signal(number, SIG_DFL);
	raise(number);
}

void truncated_files_ignore(void)
{
	struct sigaction action = {.sa_sigaction = handle_bus_error, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	(void)sigaction(SIGBUS, &action, NULL);
}

void truncated_files_report(const struct command *command)
{
	if (happened)
		message(command, "warning: an ELF file was truncated while it was read: names may be missing, and "
				 "stacks may end early");
}

char *cache_directory(void)
{
	const char *base = getenv("XDG_CACHE_HOME");
	const char *below = "/mmtrace";
	char *directory = NULL;

	/* The XDG specification requires ignoring relative paths. */
	if (!base || *base != '/') {
		base = getenv("HOME");
		below = "/.cache/mmtrace";
	}
	if (!base || *base != '/' || asprintf(&directory, "%s%s", base, below) < 0)
		return NULL;
	return directory;
}

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
			    char **arguments)
{
	int status = options_take_recording(command, arguments, &selection->input);

	if (status >= 0)
		return status;
	if (selection->to_given && selection->at_given)
		return message_usage(command, "--at and --to are the same option: pass only one");
	selection->report.input = selection->input;
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

int result_file_write(const struct command *command, const char *path,
		      struct mmt_error *(*write)(const void *context, FILE *stream), const void *context)
{
	struct mmt_error *error = strcmp(path, "-") ? mmt_write_file(path, write, context) : write(context, stdout);

	if (error)
		return message_error(command, error);
	if (strcmp(path, "-") == 0 && (fflush(stdout) != 0 || ferror(stdout))) {
		message(command, "cannot write %s: %s", path, strerror(errno));
		return EXIT_UNUSABLE;
	}
	return EXIT_OK;
}
