/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options of a command as a table: it drives parsing, --help, --list-options and shell completion. Every command
 * also has --help, -h and --list-options, which are not in its table. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>

#include "cli/values.h"
#include "cmd.h"

#define OPTIONS_MAX 64 /* of a command */

enum option_kind {
	OPTION_FLAG,	 /* bool: true when given */
	OPTION_STRING,	 /* const char * */
	OPTION_COUNT,	 /* size_t */
	OPTION_SIZE,	 /* uint64_t */
	OPTION_DURATION, /* uint64_t, nanoseconds */
	OPTION_PIDS,	 /* struct value_pids */
	OPTION_CHOICE,	 /* int: the word's place in `choices` */
	OPTION_OTHER,	 /* read by `parse` */
};

struct option_entry {
	char letter;	   /* 0: none */
	const char *name;  /* NULL ends the table */
	const char *alias; /* another spelling, which --help does not list; may be NULL */
	enum option_kind kind;
	void *value;
	/* NULL for flags. Shells complete files for "FILE", directories for "PATH", IDs for "PID" and "TID", and the
	   words of "one|two"; with "[,...]" behind, lists of them. */
	const char *argument;
	const char *help;
	const char *const *choices; /* NULL-terminated; OPTION_OTHER: the words of a list, for completion */
	const char *(*parse)(const char *text, void *value); /* returns NULL, or a description of what is expected */
	bool *given;					     /* set when the option was used; may be NULL */
};

/* A row of a table; optional fields follow as designated initialisers: OPTION(..., .choices = names). */
#define OPTION(letter_, name_, kind_, value_, argument_, help_, ...)                                                   \
	{                                                                                                              \
		.letter = (letter_), .name = (name_), .kind = OPTION_##kind_, .value = (value_),                       \
		.argument = (argument_), .help = (help_), __VA_ARGS__                                                  \
	}
#define OPTIONS_END                                                                                                    \
	{                                                                                                              \
		.name = NULL                                                                                           \
	}

enum options_order {
	OPTIONS_ANYWHERE, /* before, between and after the arguments */
	OPTIONS_FIRST,	  /* the first argument ends them */
};

/* Parse argv. Returns a negative number to continue: the arguments after the options start at argv[*first_ret].
 * Otherwise help or an error has been printed, and the exit status is returned. */
int options_parse(const struct command *command, const struct option_entry *table, enum options_order order, int argc,
		  char **argv, int *first_ret);

/* Print an option table, for people and for programs. Both return the exit status. */

extern const struct option_entry options_help_entry; /* of --help */

int options_help(const struct command *command, const struct option_entry *table);

/* One line an option: "--pid -p PID[,PID...]"; "-" stands for no letter or no argument. */
int options_list(const struct option_entry *table);

#endif
