/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of `top` share: its settings, and the reports that it makes one after another. */
#ifndef TOP_H
#define TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/report-command.h"
#include "cli/terminal.h"
#include "cmd.h"

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
	uint64_t baseline_ns; /* show what was mapped since this time of the clock; 0: everything */
	char filter[128];     /* a pattern instead of those of --focus; "": none */
	int guarded_fd;	      /* the terminal is restored when no process has this open; -1: none */
};

uint64_t top_now_ns(void);

/* How long to wait, for poll(). */
int top_milliseconds(uint64_t ns);

/* A report in a process of its own, which has no rights. */
struct top_report {
	pid_t pid; /* 0: none */
	int fd;	   /* readable when it is complete */
	bool last; /* it began after the end of the recording */
	uint64_t start_ns, end_ns;
	char *text; /* what it has written, if it was captured */
	size_t size;
};

/* Start a process that writes a report on standard output or, `captured`, into `fd`. False: see errno. */
bool top_report_start(struct top *top, struct top_report *report, bool captured);

/* When to start the next one: reports of large recordings take long, and get at most a fifth of the time. */
uint64_t top_report_next_ns(const struct top *top, const struct top_report *report);

/* Read the text that was captured when `fd` is readable. False: it is complete. */
bool top_report_read(struct top_report *report);

/* Returns the status of waitpid(). `early`: kills it. The text stays until it is freed. */
int top_report_end(struct top_report *report, bool early);

/* Whether standard output is a terminal that can show a screen. */
bool top_screen_fits(const struct top *top);

/* Show reports until the user quits or `stop_fd` is readable. Returns the exit status. */
int top_screen_show(struct top *top, int stop_fd, int recorder_fd);

#endif
