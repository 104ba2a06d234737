/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Standard output: what the terminal can show, the pager, and the options that report and diff share. */
#pragma once

#include <mmtrace/output.h>

#include "cli/options.h"

/* Send standard output through a pager if it is a terminal: MMTRACE_PAGER, PAGER, less. Call this before mmt_confine()
 * and the first output, with which the pager begins to run. Does nothing if no pager is wanted or installed. */
void pager_start(const struct command *command, bool wanted);

/* Flush standard output and wait for the pager. Returns `status`, or EXIT_UNUSABLE after a message if the output could
 * not be written; quitting the pager early is not a failure. */
int pager_finish(const struct command *command, int status);

/* Columns of the terminal; 0: the descriptor is none. */
unsigned terminal_width(int fd);

extern const char *const colour_choices[];

/* Options that report and diff share, and how their result reaches standard output. */
struct display {
	bool json, no_pager, limit_given;
	const char *html; /* file for a page; NULL: not asked for */
	int colour;	  /* enum colour_choice */
	struct mmt_text_options text;
};

#define MIN_BYTES_OPTION(display)                                                                                      \
	OPTION(0, "min-bytes", value_size, &(display)->text.min_bytes, "SIZE", "hide stacks with less than SIZE",      \
	       .rare = true)

#define COLOUR_OPTION(display)                                                                                         \
	OPTION(0, "colour", NULL, &(display)->colour, "auto|always|never",                                             \
	       "when to use colour: auto (on a terminal, unless NO_COLOR is set), always or never", .alias = "color",  \
	       .choices = colour_choices, .rare = true)

/* The entries of an option table; more may stand before and after. */
#define DISPLAY_OPTIONS(display)                                                                                       \
	OPTION(0, "json", value_flag, &(display)->json, NULL, "write JSON; every stack unless --limit is given"),      \
	    OPTION(0, "html", value_string, &(display)->html, "FILE",                                                  \
		   "write a self-contained page for a browser to FILE"),                                               \
	    OPTION('n', "limit", value_count, &(display)->text.limit, "N",                                             \
		   "show the first N stacks (default 10; with --html 10000; with --json all; 0: all)",                 \
		   .given = &(display)->limit_given),                                                                  \
	    MIN_BYTES_OPTION(display),                                                                                 \
	    OPTION(0, "stacks", display_parse_stacks, &(display)->text.stack_frames, "N|all",                          \
		   "show at most N frames of a stack (default 12); all or 0: every frame, runtime frames too",         \
		   .rare = true),                                                                                      \
	    OPTION(0, "no-pager", value_flag, &(display)->no_pager, NULL, "write straight to the terminal",            \
		   .rare = true),                                                                                      \
	    COLOUR_OPTION(display)

#define DISPLAY_DEFAULTS                                                                                               \
	{                                                                                                              \
		.text = {.limit = 10, .stack_frames = 12 }                                                             \
	}

const char *display_parse_stacks(const char *text, void *value);

/* After parsing: fill in what depends on the terminal, start the pager, confine the process. */
void display_start(const struct command *command, struct display *display, const char *const *inputs,
		   size_t input_count);
