// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/options.h"
#include "cmd.h"

void help_print(void)
{
	printf("Usage: mmtrace COMMAND [OPTIONS]\n"
	       "       mmtrace --version | --help\n"
	       "\n"
	       "Find the call stacks that map memory and never unmap it.\n"
	       "\n"
	       "Commands:\n");
	for (const struct command *command = commands; command->name; command++)
		printf("  %-8s%s\n", command->name, command->summary);
	printf("\n"
	       "To begin:\n"
	       "  mmtrace record -p PID     record a running process; Ctrl-C stops\n"
	       "  mmtrace report            unfreed bytes by stack\n"
	       "\n"
	       "mmtrace COMMAND -h shows examples and options, mmtrace help COMMAND opens the manual.\n");
}

static bool has_page(const char *page)
{
	int status = 0, null;
	pid_t child = fork();

	if (child == 0) {
		null = open("/dev/null", O_WRONLY);
		if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
			_exit(EXIT_NOT_FOUND);
		execlp("man", "man", "-w", page, (char *)NULL);
		_exit(EXIT_NOT_FOUND);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Show the manual page, or the output of --help if it is not installed. */
static int show_command(const struct command *command, const struct command *subject)
{
	char page[64];
	char name[32], option[] = "--help";
	char *arguments[] = {name, option, NULL};

	snprintf(page, sizeof(page), "mmtrace-%s", subject->name);
	if (has_page(page))
		execlp("man", "man", page, (char *)NULL);
	message(command, "the manual page %s is not installed; showing mmtrace %s --help", page, subject->name);
	snprintf(name, sizeof(name), "%s", subject->name);
	return subject->run(subject, 2, arguments);
}

static int show_overview(void)
{
	if (has_page("mmtrace"))
		execlp("man", "man", "mmtrace", (char *)NULL);
	help_print();
	return EXIT_OK;
}

static int show_examples(void)
{
	for (const struct command *command = commands; command->name; command++)
		for (const char *const *example = command->examples; example && *example; example++)
			printf("mmtrace %s\n", *example);
	return EXIT_OK;
}

int cmd_help(const struct command *command, int argc, char **argv)
{
	const struct option_entry table[] = {OPTIONS_END};
	const struct command *subject;
	int first = 0, status;

	status = options_parse(command, table, OPTIONS_ANYWHERE, argc, argv, &first);
	if (status >= 0)
		return status;
	if (argc - first > 1)
		return message_usage(command, "pass only one command");
	if (argc == first)
		return show_overview();
	if (!strcmp(argv[first], "examples"))
		return show_examples();
	subject = command_find(argv[first]);
	return subject ? show_command(command, subject) : command_refuse(argv[first]);
}
