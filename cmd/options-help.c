// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options-help.h"

#include <stdio.h>
#include <string.h>

#define HELP_COLUMN 32
#define HELP_WIDTH 100

const struct option_entry options_help_entry = {.letter = 'h', .name = "help", .help = "show this list"};

/* Words from `column` on, wrapped and indented to it; the cursor stands there. */
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
