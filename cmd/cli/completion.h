/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shell completion scripts, generated from the command table and the option tables. cmd/completion/ contains the
 * generated scripts; test/lint/completion.sh checks that they are up to date.
 */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/options.h"

#define COMPLETION_ARGUMENT "bash|zsh|fish"
extern const char *const completion_shells[]; /* in that order */

/* Prints the script for completion_shells[shell] to standard output. */
void completion_print(int shell);

/* Prints the part of one command; completion_print() runs each command for this. Returns the exit status. */
int completion_print_command(const struct command *command, const struct option_entry *table, const char *shell);

/* How to complete the value of an option. */
enum completion_kind {
	COMPLETION_NONE, /* sizes, times, names: there is no list of them */
	COMPLETION_WORDS,
	COMPLETION_WORD_LIST, /* of words, with commas between */
	COMPLETION_FILES,
	COMPLETION_DIRECTORIES,
	COMPLETION_PROCESSES, /* separated by commas, like threads */
	COMPLETION_THREADS,
};

#define COMPLETION_WORDS_MAX 256

enum completion_kind completion_classify(const struct option_entry *entry, char words_ret[COMPLETION_WORDS_MAX]);

struct completion_writer {
	void (*begin)(void);
	/* The last entry of the table is --help. */
	void (*add_command)(const struct command *command, const struct option_entry *table);
	void (*end)(void);
};

extern const struct completion_writer completion_bash, completion_zsh, completion_fish;

#endif
