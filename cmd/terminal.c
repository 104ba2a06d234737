// SPDX-License-Identifier: LGPL-2.1-or-later
#include "terminal.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char *const colour_choices[] = {"auto", "always", "never", NULL};

unsigned terminal_width(void)
{
	struct winsize size = {0};

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || !size.ws_col)
		return 80;
	return size.ws_col;
}

bool terminal_colour(enum colour_choice choice)
{
	const char *no_colour = getenv("NO_COLOR");
	const char *kind = getenv("TERM");

	if (choice != COLOUR_AUTO)
		return choice == COLOUR_ALWAYS;
	return isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && kind && strcmp(kind, "dumb") != 0;
}

bool terminal_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
