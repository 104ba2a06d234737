/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests that compile cmd/cli/options.c: completion needs every command, which lint-completion tests. */
#ifndef SUPPORT_NO_COMPLETION_H
#define SUPPORT_NO_COMPLETION_H

#include <stdlib.h>

#include "../../../cmd/cli/completion.h"

int completion_print_command(const struct command *command, const struct option_entry *table, const char *shell)
{
	(void)command, (void)table, (void)shell;
	return EXIT_FAILURE;
}

#endif
