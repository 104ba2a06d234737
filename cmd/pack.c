// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmtrace pack: replaces the stacks of a recording by names. */
#include <mmtrace/output.h>
#include <mmtrace/pack.h>
#include <string.h>

#include "cli/message.h"
#include "cli/options.h"
#include "cli/stop-signals.h"

int pack_recording(const struct command *command, const struct pack_arguments *arguments)
{
	const char *input = arguments->input, *output = arguments->output;
	struct mmt_pack_options options = {.input = input, .output = output, .confine = true};
	char before[MMT_SIZE_TEXT], after[MMT_SIZE_TEXT], stacks[MMT_SIZE_TEXT], frames[MMT_SIZE_TEXT];
	char unnamed[MMT_SIZE_TEXT];
	struct mmt_pack_summary summary;
	struct progress progress;
	const struct mmt_progress *watch = progress_begin(&progress, input);
	struct mmt_error *error;

	options.progress = arguments->quiet ? NULL : watch;
	error = mmt_pack(&options, &summary);
	stop_signals_end_with("");
	progress_end();
	if (error)
		return message_input_error(command, input, error);
	if (arguments->quiet || arguments->no_summary)
		return EXIT_OK;
	mmt_write_escaped(output ? output : input, stderr);
	fprintf(stderr, ": packed to %s from %s; %s stacks of %s frames, %s of them without a name\n",
		mmt_format_bytes(summary.output_bytes, after), mmt_format_bytes(summary.input_bytes, before),
		mmt_format_count(summary.stacks, stacks), mmt_format_count(summary.frames, frames),
		mmt_format_count(summary.frames_without_name, unnamed));
	return EXIT_OK;
}

int cmd_pack(const struct command *command, int argc, char **argv)
{
	struct pack_arguments arguments = {0};
	int first = 0, status;
	const struct option_entry table[] = {
	    OPTION('i', "input", value_string, &arguments.input, "FILE", "the recording (default " DEFAULT_FILE ")"),
	    OPTION('o', "output", value_string, &arguments.output, "FILE",
		   "write to FILE, renaming an existing FILE to FILE.old; default: replace the recording"),
	    OPTION('q', "quiet", value_flag, &arguments.quiet, NULL, "print only errors"),
	    OPTIONS_END,
	};

	status = options_parse(command, table, OPTIONS_ANYWHERE, argc, argv, &first);
	if (status >= 0)
		return status;
	status = options_take_recording(command, argv + first, &arguments.input);
	if (status >= 0)
		return status;
	if (arguments.output && !*arguments.output)
		return message_usage(command, "--output: the file's name is empty");
	if (!strcmp(arguments.input, "-"))
		return message_usage(command, "cannot pack standard input: pass a file");
	return pack_recording(command, &arguments);
}
