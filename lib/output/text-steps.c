// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/text-steps.h"

#include <inttypes.h>
#include <string.h>

#define COLUMN 12
#define GROUPS_MAX 5 /* in columns of their own */

static void put_cell(struct text *text, uint64_t bytes)
{
	char size[MMT_SIZE_TEXT];

	text_format(text, TEXT_PLAIN, "%*s", COLUMN, bytes == MMT_UNKNOWN ? "-" : mmt_format_bytes(bytes, size));
}

/* As many as the terminal has room for. */
static size_t count_groups(const struct text *text, const struct selection *selection, size_t columns)
{
	size_t count = 0;

	while (count < selection->count && count < GROUPS_MAX && selection->groups[count]->step_count) {
		if (text->options->width && (columns + count + 1) * COLUMN > text->options->width)
			break;
		count++;
	}
	return count;
}

/* What the recording says of resident memory: of the committed bytes at its end, and of the processes on the way. */
struct residents {
	bool of_committed, of_processes;
};

static struct residents find_residents(const struct mmt_report *report)
{
	struct residents residents = {.of_committed = report->resident_bytes != MMT_UNKNOWN};

	for (size_t i = 0; i < report->step_count; i++)
		residents.of_processes |= report->steps[i].process_resident_bytes != MMT_UNKNOWN;
	return residents;
}

static void put_heads(struct text *text, const struct selection *selection, size_t group_count,
		      struct residents residents)
{
	text_format(text, TEXT_FAINT, "%*s%*s%*s%*s", COLUMN, "after", COLUMN, "unfreed", COLUMN, "committed", COLUMN,
		    "reserved");
	if (residents.of_committed)
		text_format(text, TEXT_FAINT, "%*s", COLUMN, "resident");
	if (residents.of_processes)
		text_format(text, TEXT_FAINT, "%*s", COLUMN, "in memory");
	for (size_t i = 0; i < group_count; i++) {
		char head[16];

		snprintf(head, sizeof(head), "#%" PRIu32, selection->groups[i]->id);
		text_format(text, TEXT_FAINT, "%*s", COLUMN, head);
	}
	text_end_line(text);
}

/* The end follows a full step so closely that both show the same time: the row of the end stands for both. */
static bool is_same_row_as_end(const struct mmt_report *report, size_t index)
{
	char after[MMT_SIZE_TEXT], end[MMT_SIZE_TEXT];

	if (index + 2 != report->step_count || report->steps[index].to_ns < report->from_ns)
		return false;
	mmt_format_duration(report->steps[index].to_ns - report->from_ns, after);
	mmt_format_duration(report->steps[index + 1].to_ns - report->from_ns, end);
	return strcmp(after, end) == 0;
}

void text_steps(struct text *text, const struct mmt_report *report, const struct selection *selection)
{
	struct residents residents = find_residents(report);
	size_t columns = 4 + (size_t)residents.of_committed + residents.of_processes;
	size_t group_count = count_groups(text, selection, columns);
	char after[MMT_SIZE_TEXT];

	if (!report->step_count)
		return;
	text->indent = 0;
	text_end_line(text);
	put_heads(text, selection, group_count, residents);
	for (size_t i = 0; i < report->step_count; i++) {
		const struct mmt_step *step = &report->steps[i];
		uint64_t elapsed = step->to_ns > report->from_ns ? step->to_ns - report->from_ns : 0;

		if (is_same_row_as_end(report, i))
			continue;
		text_format(text, TEXT_PLAIN, "%*s", COLUMN, mmt_format_duration(elapsed, after));
		put_cell(text, step->unfreed_bytes);
		put_cell(text, step->committed_bytes);
		put_cell(text, step->reserved_bytes);
		if (residents.of_committed)
			put_cell(text, step->resident_bytes);
		if (residents.of_processes)
			put_cell(text, step->process_resident_bytes);
		for (size_t j = 0; j < group_count; j++)
			put_cell(text, selection->groups[j]->step_bytes[i]);
		text_end_line(text);
	}
	if (!report->completeness.lost_events)
		return;
	text_put(text, TEXT_FAINT,
		 "events were lost: steps are without what only the end settles, so --at may say something else");
	text_end_line(text);
}
