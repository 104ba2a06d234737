// SPDX-License-Identifier: LGPL-2.1-or-later
#include "display.h"

#include <string.h>

#include "pager.h"
#include "terminal.h"

#define LIMIT_DEFAULT 10
#define STACK_FRAMES_DEFAULT 32

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

void display_start(const struct command *command, struct display *display)
{
	if (display->json && !display->limit_given)
		display->text.limit = 0;
	display->text.width = terminal_width();
	display->text.colour = terminal_colour(display->colour);
	display->text.ascii = !terminal_utf8();
	pager_start(command, !display->no_pager);
}
