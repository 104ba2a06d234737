/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Convert texts of the command line to typed values. Each returns NULL, or a description of what is expected. */
#pragma once

#include <mmtrace/report.h>

#include "cmd.h"

struct value_pids {
	pid_t *items; /* without duplicates; the caller frees them */
	size_t count;
};

struct value_words {
	const char **items; /* the caller frees the array */
	size_t count;
};

const char *value_flag(const char *text, void *given_ret);    /* bool: true */
const char *value_string(const char *text, void *string_ret); /* const char * */
const char *value_count(const char *text, void *count_ret);   /* size_t */
/* uint64_t: 4096, 512K, 4M, 1.5G; KiB and the like too: always powers of 1024. */
const char *value_size(const char *text, void *bytes_ret);
/* uint64_t: 10s, 500ms, 2m, 1h; a plain number is seconds; fractions are allowed. */
const char *value_duration(const char *text, void *ns_ret);
/* struct mmt_timestamp: 10s, 500ms, 2m: after the start of the recording; -10s: before its end; 2026-11-21T10:12:03 (a
 * blank for the T, with or without seconds): local time; @NS: the recording's own clock. 10:12 and 10:12:03 are local
 * times of the day on which the recording began: MMT_TIMESTAMP_TIME_OF_DAY. */
const char *value_timestamp(const char *text, void *timestamp_ret);
/* uint32_t: "anon,heap" adds bits 1 << enum mmt_class. */
const char *value_classes(const char *text, void *classes_ret);
/* struct value_pids: "123,456", or "123 456" as pidof(1) and pgrep(1) print them, are added. */
const char *value_pids(const char *text, void *pids);
const char *value_pids_add(struct value_pids *pids, pid_t pid);

/* struct value_words, which does not own the text that is added. */
const char *value_word(const char *text, void *words);

/* The place of the word that these characters are; negative: it is none of them. NULL ends the words, which CHOICE
 * makes from a list of mmtrace/words.h. */
int value_choice(const char *const *words, const char *text, size_t length);
#define CHOICE(value, word, ...) word,

/* Edit distance: the number of letters to add, remove, change or swap. */
unsigned value_distance(const char *from, const char *to);

/* The options of a command as a table: it drives parsing, --help and --list-options, which shell completion reads.
 * Every command also has --help, -h and --list-options, which are not in its table. */

#define OPTIONS_MAX 64 /* of a command */

struct option_entry {
	char letter;	   /* 0: none */
	const char *name;  /* NULL ends the table */
	const char *alias; /* another spelling, which --help does not list; may be NULL */
	/* Returns NULL, or a description of what is expected: value_count() and the like. */
	const char *(*parse)(const char *text, void *value);
	void *value;
	/* NULL for flags. Shells complete files for "FILE", directories for "PATH", IDs for "PID", and the
	   words of "one|two"; with "]" at the end, as in "one|two[,...]", lists of them. */
	const char *argument;
	const char *help;
	/* NULL-terminated words: the value, an int or enum, is the place of the given one, and `parse` is NULL. */
	const char *const *choices;
	bool *given;	   /* set when the option was used; may be NULL */
	const char *group; /* the heading of this and the entries after it; NULL: none of its own */
	bool rare;	   /* -h only names it, as those of the group "More" */
	bool exact; /* an abbreviation of the name is refused: of a flag that does more than what one would guess */
};

/* A row of a table; optional fields follow as designated initialisers: OPTION(..., .choices = names). */
#define OPTION(letter_, name_, parse_, value_, argument_, help_, ...)                                                  \
	{                                                                                                              \
		.letter = (letter_), .name = (name_), .parse = (parse_), .value = (value_), .argument = (argument_),   \
		.help = (help_), __VA_ARGS__                                                                           \
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

/* For commands that read one recording: store it, or DEFAULT_FILE, in `*input`, which is that of --input or NULL.
 * Returns a negative number to continue; otherwise the exit status, after a message. `arguments` end with NULL. */
int options_take_recording(const struct command *command, char **arguments, const char **input);
