// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/completion.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"

const char *const completion_shells[] = {"bash", "zsh", "fish", NULL};

static const struct completion_writer *const writers[] = {&completion_bash, &completion_zsh, &completion_fish};

static void add_word(char words[COMPLETION_WORDS_MAX], const char *word, size_t length)
{
	size_t used = strlen(words);

	snprintf(words + used, COMPLETION_WORDS_MAX - used, "%s%.*s", used ? " " : "", (int)length, word);
}

/* "auto|fp|dwarf[,SIZE]|N": alternatives in lower case are words to complete. */
static void add_alternatives(char words[COMPLETION_WORDS_MAX], const char *argument)
{
	for (;;) {
		if (islower((unsigned char)*argument))
			add_word(words, argument, strcspn(argument, "|["));
		argument += strcspn(argument, "|");
		if (!*argument++)
			return;
	}
}

static bool is_named(const char *argument, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(argument, name, length) && !isalpha((unsigned char)argument[length]);
}

enum completion_kind completion_classify(const struct option_entry *entry, char words_ret[COMPLETION_WORDS_MAX])
{
	*words_ret = '\0';
	for (int i = 0; entry->choices && entry->choices[i]; i++)
		add_word(words_ret, entry->choices[i], strlen(entry->choices[i]));
	if (entry->choices)
		return entry->kind == OPTION_CHOICE ? COMPLETION_WORDS : COMPLETION_WORD_LIST;
	if (strchr(entry->argument, '|')) {
		add_alternatives(words_ret, entry->argument);
		return COMPLETION_WORDS;
	}
	if (is_named(entry->argument, "FILE"))
		return COMPLETION_FILES;
	if (is_named(entry->argument, "PATH"))
		return COMPLETION_DIRECTORIES;
	if (is_named(entry->argument, "PID"))
		return COMPLETION_PROCESSES;
	if (is_named(entry->argument, "TID"))
		return COMPLETION_THREADS;
	return COMPLETION_NONE;
}

int completion_print_command(const struct command *command, const struct option_entry *table, const char *shell)
{
	struct option_entry entries[OPTIONS_MAX + 2];
	size_t count = 0;

	for (; table->name && count < OPTIONS_MAX; table++)
		entries[count++] = *table;
	entries[count++] = options_help_entry;
	entries[count] = (struct option_entry)OPTIONS_END;
	for (int i = 0; completion_shells[i]; i++)
		if (!strcmp(completion_shells[i], shell))
			writers[i]->add_command(command, entries);
	return EXIT_OK;
}

void completion_print(int shell)
{
	char option[] = "--list-completion", name[32], shell_name[8];
	char *arguments[] = {name, option, shell_name, NULL};

	snprintf(shell_name, sizeof(shell_name), "%s", completion_shells[shell]);
	writers[shell]->begin();
	for (const struct command *command = commands; command->name; command++) {
		snprintf(name, sizeof(name), "%s", command->name);
		(void)command->run(command, 3, arguments);
	}
	writers[shell]->end();
}
