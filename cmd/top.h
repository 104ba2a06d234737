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
	bool all_cpus;
	uint64_t interval_ns, max_bytes;
	size_t count;
	bool ended; /* the recorder has ended */
};

uint64_t top_now_ns(void);

/* A report in a process of its own, which has no rights. */
struct top_report {
	pid_t pid; /* 0: none */
	int fd;	   /* readable when it is complete */
	bool last; /* it began after the end of the recording */
	uint64_t start_ns;
};

/* Start a process that writes a report on standard output. False: see errno. */
bool top_report_start(struct top *top, struct top_report *report);

/* Returns the status of waitpid(). */
int top_report_end(struct top_report *report, bool early);

#endif
