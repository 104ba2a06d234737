// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/completion.h"
#include "cli/message.h"

#define VALUE_HELP 0x1000
#define VALUE_LIST 0x1001
#define VALUE_COMPLETION 0x1002
#define VALUE_FIRST 0x2000 /* plus the place in the table */

struct tables {
	struct option names[OPTIONS_MAX + 1];
	char letters[3 * OPTIONS_MAX];
};

static void add_name(struct tables *tables, size_t *count, const char *name, bool argument, int value)
{
	if (*count < OPTIONS_MAX)
		tables->names[(*count)++] =
		    (struct option){.name = name, .has_arg = argument ? required_argument : no_argument, .val = value};
}

/* The arguments for getopt_long(), made from the option table. */
static void build_tables(const struct option_entry *table, enum options_order order, struct tables *tables)
{
	size_t count = 0;
	char *letter = tables->letters;

	memset(tables, 0, sizeof(*tables));
	if (order == OPTIONS_FIRST)
		*letter++ = '+';
	*letter++ = ':'; /* distinguishes a missing argument from an unknown option */
	*letter++ = 'h';
	add_name(tables, &count, "help", false, VALUE_HELP);
	add_name(tables, &count, "list-options", false, VALUE_LIST);
	add_name(tables, &count, "list-completion", true, VALUE_COMPLETION); /* see completion_print() */
	for (int i = 0; table[i].name; i++) {
		bool argument = table[i].kind != OPTION_FLAG;

		add_name(tables, &count, table[i].name, argument, VALUE_FIRST + i);
		if (table[i].alias)
			add_name(tables, &count, table[i].alias, argument, VALUE_FIRST + i);
		if (table[i].letter) {
			*letter++ = table[i].letter;
			if (argument)
				*letter++ = ':';
		}
	}
}

static const struct option_entry *find_entry(const struct option_entry *table, int value)
{
	if (value >= VALUE_FIRST)
		return &table[value - VALUE_FIRST];
	for (; table->name; table++)
		if (table->letter && table->letter == value)
			return table;
	return NULL;
}

static const char *read_choice(const struct option_entry *entry, const char *text)
{
	for (int i = 0; entry->choices[i]; i++) {
		if (strcmp(entry->choices[i], text) == 0) {
			*(int *)entry->value = i;
			return NULL;
		}
	}
	return entry->argument;
}

/* Returns NULL, or a description of what is expected. */
static const char *read_value(const struct option_entry *entry, const char *text)
{
	if (entry->given)
		*entry->given = true;
	switch (entry->kind) {
	case OPTION_FLAG:
		*(bool *)entry->value = true;
		return NULL;
	case OPTION_STRING:
		*(const char **)entry->value = text;
		return NULL;
	case OPTION_COUNT:
		return value_count(text, entry->value);
	case OPTION_SIZE:
		return value_size(text, entry->value);
	case OPTION_DURATION:
		return value_duration(text, entry->value);
	case OPTION_PIDS:
		return value_pids(text, entry->value);
	case OPTION_CHOICE:
		return read_choice(entry, text);
	case OPTION_OTHER:
		break;
	}
	return entry->parse(text, entry->value);
}

/* The option with the most similar name, or NULL. */
static const char *suggest(const struct option_entry *table, const char *name)
{
	unsigned best = strlen(name) > 4 ? 3 : 2;
	const char *suggestion = NULL;

	for (; table->name; table++) {
		unsigned distance = value_distance(name, table->name);

		if (distance < best) {
			best = distance;
			suggestion = table->name;
		}
	}
	return suggestion;
}

static int refuse_long(const struct command *command, const struct option_entry *table, const char *word)
{
	char name[64] = "";
	const char *suggestion;
	size_t length;

	word += strspn(word, "-");
	length = strcspn(word, "=");
	snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name) - 1), word);
	for (const struct option_entry *entry = table; length && entry->name; entry++)
		if (strncmp(entry->name, name, length) == 0)
			return message_usage(command, "option --%s is ambiguous; write it out", name);
	suggestion = suggest(table, name);
	if (suggestion)
		return message_usage(command, "unknown option --%s; did you mean --%s?", name, suggestion);
	return message_usage(command, "unknown option --%s", name);
}

static int refuse(const struct command *command, const struct option_entry *table, int problem, char **argv)
{
	const struct option_entry *entry = find_entry(table, optopt);

	if (problem == ':')
		return message_usage(command, "option %s needs %s", argv[optind - 1],
				     entry ? entry->argument : COMPLETION_ARGUMENT);
	if (optopt >= VALUE_HELP)
		return message_usage(command, "option %s takes no value", argv[optind - 1]);
	if (optopt)
		return message_usage(command, "unknown option -%c", optopt);
	return refuse_long(command, table, argv[optind - 1]);
}

int options_parse(const struct command *command, const struct option_entry *table, enum options_order order, int argc,
		  char **argv, int *first_ret)
{
	struct tables tables;
	int value;

	build_tables(table, order, &tables);
	optind = 0; /* glibc: start again */
	opterr = 0;
	while ((value = getopt_long(argc, argv, tables.letters, tables.names, NULL)) != -1) {
		const struct option_entry *entry;
		const char *expected;

		if (value == '?' || value == ':')
			return refuse(command, table, value, argv);
		if (value == 'h' || value == VALUE_HELP)
			return options_help(command, table);
		if (value == VALUE_LIST)
			return options_list(table);
		if (value == VALUE_COMPLETION)
			return completion_print_command(command, table, optarg);
		entry = find_entry(table, value);
		expected = read_value(entry, optarg);
		if (expected)
			return message_usage(command, "--%s: '%s' is not %s", entry->name, optarg, expected);
	}
	*first_ret = optind;
	return -1;
}

#define HELP_COLUMN 32
#define HELP_WIDTH 100

const struct option_entry options_help_entry = {.letter = 'h', .name = "help", .help = "show this list"};

/* Print words from `column` on, where the cursor is; further lines are indented to it. */
static void put_wrapped(const char *words, int column)
{
	int at = column;

	while (*words) {
		int length = (int)strcspn(words, " ");

		if (at > column && at + 1 + length > HELP_WIDTH) {
			printf("\n%*s", column, "");
			at = column;
		} else if (at > column) {
			putchar(' ');
			at++;
		}
		printf("%.*s", length, words);
		at += length;
		words += length;
		words += strspn(words, " ");
	}
	putchar('\n');
}

static void put_entry(const struct option_entry *entry)
{
	int length;

	if (entry->letter)
		length = printf("  -%c, --%s", entry->letter, entry->name);
	else
		length = printf("      --%s", entry->name);
	if (entry->argument)
		length += printf(" %s", entry->argument);
	if (length + 2 > HELP_COLUMN) {
		putchar('\n');
		length = 0;
	}
	printf("%*s", HELP_COLUMN - length, "");
	put_wrapped(entry->help, HELP_COLUMN);
}

int options_help(const struct command *command, const struct option_entry *table)
{
	const char *lead = "Usage:";

	for (const char *const *usage = command->usage; *usage; usage++) {
		printf("%-6s mmtrace %s %s\n", lead, command->name, *usage);
		lead = "";
	}
	putchar('\n');
	put_wrapped(command->about, 0);
	printf("\nOptions:\n");
	for (; table->name; table++)
		put_entry(table);
	put_entry(&options_help_entry);
	printf("\nThe manual: mmtrace help %s\n", command->name);
	return EXIT_OK;
}

static void list_entry(const struct option_entry *entry)
{
	char letter[3] = "-";

	if (entry->letter)
		snprintf(letter, sizeof(letter), "-%c", entry->letter);
	printf("--%s %s %s\n", entry->name, letter, entry->argument ? entry->argument : "-");
}

int options_list(const struct option_entry *table)
{
	for (; table->name; table++)
		list_entry(table);
	list_entry(&options_help_entry);
	return EXIT_OK;
}
