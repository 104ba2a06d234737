// SPDX-License-Identifier: LGPL-2.1-or-later
/* The text of report --annotate: the instructions around each frame of a function. */
#include <mmtrace/output.h>

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/errors.h"
#include "base/map.h"
#include "output/selection.h"
#include "output/text/text-stack.h"
#include "output/text/text.h"

#define GROUPS_NAMED 8 /* of the stacks that contain a frame */
#define ADDRESS_INDENT 4

static bool is_meant(const struct mmt_frame *frame, const char *pattern)
{
	char room[TEXT_FRAME_NAME_BYTES];

	return !fnmatch(pattern, text_frame_name(frame, room), 0) ||
	       (frame->raw_function && !fnmatch(pattern, frame->raw_function, 0));
}

static bool has_frame(const struct mmt_group *group, uint32_t code)
{
	for (size_t i = 0; i < group->frame_count; i++) {
		if (group->frames[i]->code == code)
			return true;
	}
	return false;
}

/* Print the numbers of the stacks that contain the frame. */
static void put_groups(struct text *text, const struct selection *selection, uint32_t code)
{
	size_t count = 0;

	for (size_t i = 0; i < selection->count; i++) {
		if (!has_frame(selection->groups[i], code) || ++count > GROUPS_NAMED)
			continue;
		text_format(text, TEXT_FAINT, "%s%" PRIu32, count == 1 ? "   in stack " : ", ",
			    selection->groups[i]->id);
	}
	if (count > GROUPS_NAMED)
		text_format(text, TEXT_FAINT, " and %zu more", count - GROUPS_NAMED);
}

static void put_place(struct text *text, const char *file, uint32_t line)
{
	text_put_name(text, TEXT_FAINT, file, 0);
	text_format(text, TEXT_FAINT, ":%" PRIu32, line);
}

static void put_title(struct text *text, const struct selection *selection, const struct mmt_frame *frame)
{
	char room[TEXT_FRAME_NAME_BYTES];

	text_put_name(text, TEXT_STRONG, text_frame_name(frame, room), 0);
	if (frame->module) {
		text_put(text, TEXT_PLAIN, "   ");
		text_put_name(text, TEXT_PLAIN, frame->module, 0);
	}
	put_groups(text, selection, frame->code);
	text_end_line(text);
}

static void put_instructions(struct text *text, const struct mmt_annotation *annotation)
{
	const char *file = NULL;
	uint32_t line = 0;

	if (annotation->is_copy) {
		text_line(text, TEXT_FAINT, "as it was last seen");
	}
	for (size_t i = 0; i < annotation->instruction_count; i++) {
		const struct mmt_instruction *instruction = &annotation->instructions[i];

		if (instruction->source_file &&
		    (!file || strcmp(file, instruction->source_file) != 0 || line != instruction->source_line)) {
			put_place(text, instruction->source_file, instruction->source_line);
			text_end_line(text);
		}
		file = instruction->source_file ? instruction->source_file : file;
		line = instruction->source_file ? instruction->source_line : line;
		text_put(text, TEXT_STRONG, instruction->here ? "-->" : "");
		text_pad_to(text, ADDRESS_INDENT);
		text_line(text, instruction->here ? TEXT_STRONG : TEXT_PLAIN, "%12" PRIx64 ":  %s",
			  instruction->address, instruction->text);
	}
}

static void put_no_instructions(struct text *text, const struct mmt_report *report, bool left_out)
{
	const char *reason =
	    "its code is not available: it is not in the recorded build of its file, a jitdump or a copy";

	if (left_out)
		reason = "its code was left out when the recording was packed (mmtrace pack --no-code)";
	else if (report->to_ns < report->end_ns)
		reason = "its code is not available: it is not in the recorded build of its file or a jitdump, and "
			 "copies may be newer than the report";
	text_put(text, TEXT_PLAIN, "    ");
	text_put(text, TEXT_PLAIN, reason);
	text_end_line(text);
}

static struct mmt_error *put_frame(struct text *text, struct mmt_report *report, const struct selection *selection,
				   const struct mmt_frame *frame)
{
	struct mmt_annotation annotation;
	struct mmt_error *error = mmt_report_annotate(report, frame, MMT_ANNOTATION_AROUND, &annotation);

	if (error)
		return error;
	put_title(text, selection, frame);
	if (annotation.instruction_count)
		put_instructions(text, &annotation);
	else
		put_no_instructions(text, report, annotation.left_out);
	return NULL;
}

/* Visit every matching frame once. */
static struct mmt_error *put_frames(struct text *text, struct mmt_report *report, const struct selection *selection,
				    const char *pattern, size_t *count_ret)
{
	struct mmt_error *error = NULL;
	struct map seen = {0};

	for (size_t i = 0; !error && i < selection->count; i++) {
		const struct mmt_group *group = selection->groups[i];

		for (size_t j = 0; !error && j < group->frame_count; j++) {
			const struct mmt_frame *frame = group->frames[j];

			if (!is_meant(frame, pattern) || map_get(&seen, frame->code))
				continue;
			if (*count_ret)
				text_end_line(text);
			error = map_put(&seen, frame->code, 1) ? put_frame(text, report, selection, frame)
							       : &error_no_memory;
			++*count_ret;
		}
	}
	map_deinit(&seen);
	return error;
}

struct mmt_error *mmt_report_write_annotation(struct mmt_report *report, const char *pattern,
					      const struct mmt_text_options *options, FILE *stream)
{
	struct selection selection;
	struct mmt_error *error = selection_create(report, options, true, &selection);
	size_t count = 0;
	struct text text;

	if (error)
		return error;
	text_begin(&text, stream, options);
	error = put_frames(&text, report, &selection, pattern, &count);
	text_end(&text);
	selection_deinit(&selection);
	if (!error && !count)
		return error_create(MMT_ERROR_INVALID, "no function '%s' in the stacks shown", pattern);
	return error;
}
