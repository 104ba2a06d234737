/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What report, diff and export share: the options that select memory, and the files that they read and write. */
#pragma once

#include "cli/terminal.h"

/* The options that select a part of the recording, which all commands that make reports share. */
struct report_selection {
	struct mmt_report_options report; /* its `input` is NULL until an option or argument gives it */
	struct value_pids pids;
	struct value_words focus, ignore;
	enum mmt_row_key by[2]; /* keys; the second is MMT_BY_STACK if there is only one */
};

/* The entries of an option table; more may stand before and after. */
#define REPORT_SELECTION_OPTIONS(selection)                                                                            \
	OPTION('i', "input", value_string, &(selection)->report.input, "FILE",                                         \
	       "the recording (default " DEFAULT_FILE "); -: standard input", .group = "Which memory"),                \
	    OPTION('p', "pid", value_pids, &(selection)->pids, "PID[,PID...]", "only these processes"),                \
	    OPTION(0, "class", value_classes, &(selection)->report.classes,                                            \
		   "anon|file|heap|shm|thread-stack|hugetlb|jit|gc-reserve[,...]", "only memory of these classes"),    \
	    OPTION(0, "from", value_timestamp, &(selection)->report.from, "TIME",                                      \
		   "only mappings made since TIME: 10s (after the start), -10s (before the end), 10:12:03"),           \
	    OPTION(0, "to", value_timestamp, &(selection)->report.to, "TIME",                                          \
		   "show the state at TIME instead of the end"),                                                       \
	    OPTION(0, "min-age", value_duration, &(selection)->report.min_age_ns, "TIME",                              \
		   "ignore mappings younger than TIME at the end (10s, 5m)", .rare = true),                            \
	    NAME_OPTIONS(selection)

/* The options among these that select by name, for commands with several recordings. */
#define NAME_OPTIONS(selection)                                                                                        \
	OPTION(0, "focus", value_word, &(selection)->focus, "[KEY=]PATTERN",                                           \
	       "only memory mapped through this function or module ('std::*'), or whose KEY (function, "               \
	       "module, file, class, thread) matches; may be repeated"),                                               \
	    OPTION(0, "ignore", value_word, &(selection)->ignore, "[KEY=]PATTERN",                                     \
		   "exclude memory that matches, as with --focus; may be repeated", .rare = true),                     \
	    OPTION(0, "no-demangle", value_flag, &(selection)->report.no_demangle, NULL,                               \
		   "show mangled C++ and Rust names", .rare = true)

#define REPORT_BY_ARGUMENT "stack|touch|function|module|file|class|process|thread[,KEY]"

#define BY_OPTION(selection)                                                                                           \
	OPTION(0, "by", report_selection_parse_by, (selection)->by, REPORT_BY_ARGUMENT,                                \
	       "group by this key (default stack); with two, such as function,thread, a row for each pair",            \
	       .group = "Rows and output")

extern const char *const sort_choices[]; /* in the order of enum mmt_sort */
extern const char sort_words[];		 /* the same for --help */

#define SORT_OPTION(display)                                                                                           \
	OPTION('s', "sort", NULL, &(display)->text.sort, sort_words,                                                   \
	       "sort by this figure, largest first (default memory); age: oldest first", .choices = sort_choices)

/* Call this before using the table, which points into the selection. */
void report_selection_init(struct report_selection *selection);
void report_selection_deinit(struct report_selection *selection);

/* Call this after parsing: fills in `report` except for its input. It is valid until report_selection_deinit(). */
void report_selection_apply(struct report_selection *selection);

/* The same with the arguments after the options: at most one, the recording. Returns a negative number to continue;
 * otherwise the exit status, after a message. */
int report_selection_finish(const struct command *command, struct report_selection *selection, char **arguments);

/* What does not go with --html; sets what the page needs of a report. Returns as report_selection_finish(). */
int report_selection_check_html(const struct command *command, struct report_selection *selection,
				const struct display *display);

/* mmt_report_create() with a progress line. `options` are those of one report. */
struct mmt_error *report_create(struct mmt_report_options *options, struct mmt_report **report_ret);

/* Whether the recording is a regular file, which can be read again to show an earlier moment. */
bool report_is_repeatable(const struct mmt_report *report);

/* When the processes began to free what had grown, before the end; 0: they did not, or that cannot be shown. */
uint64_t report_freed_ns(const struct mmt_report *report);

/* Of the moment `last_ns` before the end of the report `ended`, which has the same options otherwise. */
struct mmt_error *report_create_earlier(struct mmt_report_options *options, const struct mmt_report *ended,
					uint64_t last_ns, struct mmt_report **report_ret);

/* report_create(), but if the processes grew and freed that at their end, of the moment before: `last_ns_ret` before
 * the end; 0: of the end. */
struct mmt_error *report_create_before_end(struct mmt_report_options *options, struct mmt_report **report_ret,
					   uint64_t *last_ns_ret);

const char *report_selection_parse_by(const char *text, void *value);

/* For --check and --fail-above. A process that ended by itself may have no maps. Usually it is a short-lived child,
 * which does not count if others were checked. */
bool report_is_unchecked(const struct mmt_process *process, bool any_checked);

/* `file`: NULL where only one recording is read. */
void report_say_unchecked(const struct command *command, const char *option, const char *file,
			  const struct mmt_process *process);

/* mmt_write_file(), where "-" is standard output. Returns EXIT_OK, or EXIT_UNUSABLE after a message. */
int result_file_write(const struct command *command, const char *path,
		      struct mmt_error *(*write)(const void *context, FILE *stream), const void *context);
