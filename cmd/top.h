/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of `top`, and `trace`, share: settings, and processes that read the recording while it grows. */
#pragma once

#include "cli/report-command.h"

#define NS_PER_SECOND 1000000000ULL

struct top {
	const struct command *command;
	struct report_selection selection;
	struct display display;
	struct value_words pids, names;
	const char *cgroup, *output;
	char *const *words; /* the command to record and its arguments; NULL: none */
	const char *path;   /* of the recording */
	bool all_cpus, tree;
	uint64_t interval_ns, max_bytes;
	size_t count;
	bool ended;	      /* the recorder has ended */
	bool replays;	      /* a recording, which `path` names, instead of recording */
	uint64_t at_ns;	      /* then: after its start, what is shown */
	uint64_t baseline_ns; /* show what was mapped since this time, as top_now_ns() has it; 0: everything */
	char filter[128];     /* a pattern instead of those of --focus; "": none */
	bool excludes;	      /* the filter replaces those of --ignore, not of --focus */
	int guarded_fd;	      /* the terminal is restored when no process has this open; -1: none */
	int (*make)(struct top *top, int fd); /* instead of reports */
};

struct top_report;

/* Show what is recorded until the recorder ends or `stop_fd` is readable. Returns the exit status. */
typedef int top_show(struct top *top, int stop_fd, int recorder_fd, struct top_report *report);

/* The entries of an option table that select what is recorded. */
#define TOP_RECORD_OPTIONS(top)                                                                                        \
	OPTION('p', "pid", top_parse_pids, &(top)->pids, "PID[,PID...]", "attach to these processes",                  \
	       .group = "What to record"),                                                                             \
	    OPTION(0, "comm", value_word, &(top)->names, "COMM",                                                       \
		   "attach to every process with this command name; may be a pattern, and repeated"),                  \
	    OPTION(0, "tree", value_flag, &(top)->tree, NULL,                                                          \
		   "also record existing children, and the children of these; with -p or --comm", .rare = true),       \
	    OPTION('G', "cgroup", value_string, &(top)->cgroup, "PATH|ID",                                             \
		   "record every process of this control group"),                                                      \
	    OPTION('a', "all-cpus", value_flag, &(top)->all_cpus, NULL, "record every process, now and later",         \
		   .exact = true),                                                                                     \
	    OPTION('o', "output", value_string, &(top)->output, "FILE", "keep the recording in FILE", .rare = true),   \
	    OPTION(0, "max-size", value_size, &(top)->max_bytes, "SIZE",                                               \
		   "stop recording when SIZE is written (default 4G)", .rare = true)

#define TOP_MAX_BYTES (4ULL << 30)

/* For PIDs, which the recorder parses. */
const char *top_parse_pids(const char *text, void *words);

/* Takes the command, or a recording to replay, after the options. Returns the exit status; negative: continue. */
int top_take_arguments(struct top *top, char **arguments, bool is_command);

/* Record, and show that, on a screen or not. Returns the exit status. */
int top_record(struct top *top, bool has_screen, top_show *show);

/* The time that is shown: of the clock, or since the start of the recording that is replayed. */
uint64_t top_now_ns(const struct top *top);

/* How long to wait, for poll(). */
int top_milliseconds(uint64_t ns);

/* A process without rights that reads the recording, and reports it as often as it is asked. */
struct top_report {
	pid_t pid;	   /* 0: none */
	int fd;		   /* a socket, on which it is asked and answers */
	bool running;	   /* a report is in the making */
	bool last;	   /* it began after the end of the recording */
	uint64_t start_ns; /* of the last one */
	char *text;	   /* what it has written, if it was captured */
	size_t size;
};

/* Exit status of such a process: names came too late for it, and a new one must begin; or it has shown the end of a
 * recording that is replayed. */
enum { TOP_AGAIN = 64, TOP_END };

/* Start a report, on standard output or, `captured`, into `fd`. False: see errno. */
bool top_report_start(struct top *top, struct top_report *report, bool captured);

/* Read when `fd` is readable. False: the report is complete. */
bool top_report_read(struct top_report *report);

/* Returns the exit status of the process that made the report. The text stays until it is freed. `early`: end all. */
int top_report_end(struct top_report *report, bool early);

/* Whether standard output is a terminal that can show a screen. */
bool top_screen_fits(const struct top *top);

/* Show reports until the user quits. */
top_show top_screen_show;
