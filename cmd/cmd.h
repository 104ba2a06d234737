/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The commands of the tool. To add one: write cmd/NAME.c with its option table, declare it here, add a row to
 * commands[] in main.c, write man/mmtrace-NAME.1 and name it in mmtrace(1). test/lint/options.sh compares table, --help
 * and page. */
#pragma once

#include <mmtrace/error.h>

enum {
	EXIT_OK = 0,
	EXIT_EXCEEDED = 1, /* a threshold was exceeded, a check failed, a recording ended early */
	EXIT_UNUSABLE = 2, /* usage, or input that cannot be used */
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
	EXIT_SIGNAL = 128, /* plus its number */
};

#define DEFAULT_FILE "mmtrace.data"

struct command;

/* argv[0] is the name of the command; gives the exit status. */
typedef int command_function(const struct command *command, int argc, char **argv);

struct command {
	const char *name;
	command_function *run;
	const char *summary;
	const char *const *usage;    /* what may follow "mmtrace NAME", one form a line; NULL-terminated */
	const char *about;	     /* a sentence or two for --help */
	const char *const *examples; /* what may follow "mmtrace", and what it does; NULL-terminated */
	bool reads;		     /* recordings, and ELF files that they name */
};

/* NULL-terminated by an entry without name. */
extern const struct command commands[];

const struct command *command_find(const char *name);
/* Print that there is no such command, and the most similar one. Returns the exit status. */
int command_refuse(const char *name);

command_function cmd_record, cmd_report, cmd_top, cmd_trace, cmd_watch, cmd_export, cmd_diff, cmd_dump, cmd_pack,
    cmd_check, cmd_setup, cmd_help;

/* Print the list of commands on standard output. */
void help_print(void);

struct pack_arguments {
	const char *input;
	const char *output; /* NULL: replace the input */
	bool quiet;
	bool no_summary; /* but progress, unless quiet */
};

/* Prints what pack did, unless `quiet`; returns the exit status. `record` calls it, too. */
int pack_recording(const struct command *command, const struct pack_arguments *arguments);
