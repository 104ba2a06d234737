// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/terminal.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/pager.h"

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

#define LIMIT_DEFAULT 10
#define STACK_FRAMES_DEFAULT 12

void display_init(struct display *display)
{
	*display = (struct display){
	    .colour = COLOUR_AUTO,
	    .text = {.limit = LIMIT_DEFAULT, .sort = MMT_SORT_UNFREED, .stack_frames = STACK_FRAMES_DEFAULT},
	};
}

const char *display_parse_stacks(const char *text, void *value)
{
	size_t *frames = value;

	if (strcmp(text, "all") == 0) {
		*frames = 0;
		return NULL;
	}
	return value_count(text, frames) ? "a number of frames or 'all'" : NULL;
}

bool display_check(const struct command *command, const struct display *display)
{
	if (!display->html)
		return true;
	if (!*display->html)
		message(command, "--html: the file's name is empty");
	else if (display->json)
		message(command, "--html and --json are two formats: give one");
	else
		return true;
	return false;
}

void display_start(const struct command *command, struct display *display)
{
	if (!display->limit_given)
		display->text.limit = display->html ? MMT_HTML_LIMIT_DEFAULT : display->json ? 0 : display->text.limit;
	if (display->html)
		return;
	display->text.width = terminal_width();
	display->text.colour = terminal_colour(display->colour);
	display->text.ascii = !terminal_utf8();
	pager_start(command, !display->no_pager);
}
