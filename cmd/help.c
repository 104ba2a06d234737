// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmtrace help: opens a manual page. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/options.h"

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
	       "mmtrace COMMAND -h shows examples and options; mmtrace help COMMAND opens the manual.\n"
	       "mmtrace help examples shows the examples of all commands.\n");
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

int cmd_help(const struct command *command, int argc, char **argv)
{
	const struct option_entry table[] = {OPTIONS_END};
	char page[64], name[32], option[] = "--help";
	char *arguments[] = {name, option, NULL};
	const struct command *subject;
	int first = 0, status;

	status = options_parse(command, table, OPTIONS_ANYWHERE, argc, argv, &first);
	if (status >= 0)
		return status;
	if (argc - first > 1)
		return message_usage(command, "pass only one command");
	if (argc == first) {
		if (has_page("mmtrace"))
			execlp("man", "man", "mmtrace", (char *)NULL);
		help_print();
		return EXIT_OK;
	}
	if (!strcmp(argv[first], "examples")) {
		for (subject = commands; subject->name; subject++)
			for (const char *const *example = subject->examples; *example; example++)
				printf("mmtrace %s\n", *example);
		return EXIT_OK;
	}
	subject = command_find(argv[first]);
	if (!subject)
		return command_refuse(argv[first]);
	snprintf(page, sizeof(page), "mmtrace-%s", subject->name);
	if (has_page(page))
		execlp("man", "man", page, (char *)NULL);
	message(command, "the manual page %s is not installed; showing mmtrace %s --help", page, subject->name);
	snprintf(name, sizeof(name), "%s", subject->name);
	return subject->run(subject, 2, arguments);
}
