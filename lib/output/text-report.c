// SPDX-License-Identifier: LGPL-2.1-or-later
#include <mmtrace/output.h>

#include <inttypes.h>

#include "output/selection.h"
#include "output/text-explanations.h"
#include "output/text-group.h"
#include "output/text-header.h"
#include "output/text-nothing.h"
#include "output/text-sections.h"
#include "output/text-steps.h"

#define ROW_INDENT 4
#define STACK_INDENT 6
#define LABEL_COLUMNS 26

static void put_sum(struct text *text, const char *label, uint64_t bytes)
{
	char size[MMT_SIZE_TEXT];

	text_put(text, TEXT_PLAIN, label);
	text_pad_to(text, LABEL_COLUMNS);
	text_format(text, TEXT_STRONG, "%11s", mmt_format_bytes(bytes, size));
}

static void put_part_bytes(struct text *text, const char *label, uint64_t bytes)
{
	char size[MMT_SIZE_TEXT];

	if (bytes == MMT_UNKNOWN)
		text_part(text, TEXT_PLAIN, "%s unknown", label);
	else
		text_part(text, TEXT_PLAIN, "%s %s", label, mmt_format_bytes(bytes, size));
}

/* How it went: the last, the first and the largest of what was read, and all of it as bars. */
static void put_resident(struct text *text, const struct mmt_report *report)
{
	const struct mmt_resident_reading *readings = report->resident_readings;
	size_t count = report->resident_reading_count;
	uint64_t points[MMT_TREND_POINTS] = {0}, largest = 0, span_ns;

	if (count < 2)
		return;
	span_ns = readings[count - 1].time_ns - readings[0].time_ns;
	for (size_t i = 0; i < count; i++) {
		uint64_t since_ns = readings[i].time_ns - readings[0].time_ns;
		size_t point = span_ns ? (size_t)((double)since_ns / (double)span_ns * (MMT_TREND_POINTS - 1)) : 0;

		if (readings[i].resident_bytes > points[point])
			points[point] = readings[i].resident_bytes;
		if (readings[i].resident_bytes > largest)
			largest = readings[i].resident_bytes;
	}
	/* Between two readings it is what it was. */
	for (size_t i = 1; i < MMT_TREND_POINTS; i++)
		points[i] = points[i] ? points[i] : points[i - 1];
	put_sum(text, "in memory at last", readings[count - 1].resident_bytes);
	put_part_bytes(text, "at first", readings[0].resident_bytes);
	put_part_bytes(text, "at most", largest);
	text_trend(text, points);
	text_end_line(text);
}

static void put_sums(struct text *text, const struct mmt_report *report)
{
	text->indent = 0;
	put_sum(text, report->windowed ? "unfreed in this window" : "unfreed in this recording", report->unfreed_bytes);
	put_part_bytes(text, "committed", report->committed_bytes);
	put_part_bytes(text, "reserved", report->reserved_bytes);
	put_part_bytes(text, "resident", report->resident_bytes);
	text_end_line(text);
	put_sum(text, report->windowed ? "mapped in this window" : "mapped in this recording", report->allocated_bytes);
	put_part_bytes(text, "freed again", report->freed_bytes);
	text_end_line(text);
	put_sum(text, "mapped before it began", report->before_bytes);
	text_end_line(text);
	if (report->kernel_bytes) {
		put_sum(text, "mapped by the kernel", report->kernel_bytes);
		text_part(text, TEXT_PLAIN, "programs, stacks that grew");
		text_end_line(text);
	}
	put_resident(text, report);
	if (report->younger_bytes) {
		put_sum(text, "too young to count", report->younger_bytes);
		text_end_line(text);
	}
	if (report->ended_bytes) {
		put_sum(text, "in processes that ended", report->ended_bytes);
		text_end_line(text);
	}
}

static void put_share(struct text *text, const struct mmt_report *report, const struct mmt_group *group)
{
	if (group->unfreed_bytes && report->unfreed_bytes)
		text_part(text, TEXT_PLAIN, "%.1f %%",
			  100.0 * (double)group->unfreed_bytes / (double)report->unfreed_bytes);
}

static void put_figures(struct text *text, const struct mmt_report *report, const struct mmt_group *group,
			enum mmt_sort sort)
{
	char size[MMT_SIZE_TEXT], count[MMT_SIZE_TEXT], of[MMT_SIZE_TEXT];
	uint64_t age_ns = report->end_ns > group->first_ns ? report->end_ns - group->first_ns : 0;

	text->indent = ROW_INDENT;
	text_format(text, TEXT_STRONG, "%2" PRIu32 "  %9s", group->id, mmt_format_bytes(group->unfreed_bytes, size));
	put_share(text, report, group);
	text_group_sizes(text, group);
	text_group_given_back(text, group);
	if (group->allocated_count)
		text_part(text, TEXT_PLAIN, "%s of %s freed", mmt_format_count(group->freed_count, count),
			  mmt_format_count(group->allocated_count, of));
	if (group->committed_bytes != group->unfreed_bytes)
		put_part_bytes(text, "committed", group->committed_bytes);
	if (group->reserved_by)
		text_part(text, TEXT_PLAIN, "in memory that #%" PRIu32 " reserved", group->reserved_by);
	if (group->committed_before_bytes)
		put_part_bytes(text, "committed in memory mapped before", group->committed_before_bytes);
	if (group->reserved_bytes)
		put_part_bytes(text, "reserved", group->reserved_bytes);
	if (group->resident_bytes != MMT_UNKNOWN)
		put_part_bytes(text, "resident", group->resident_bytes);
	if (sort == MMT_SORT_ALLOCATED)
		put_part_bytes(text, "mapped", group->allocated_bytes);
	if (sort == MMT_SORT_FREED)
		put_part_bytes(text, "freed", group->freed_bytes);
	if (sort == MMT_SORT_PEAK)
		put_part_bytes(text, "peak", group->peak_bytes);
	if (sort == MMT_SORT_AGE && group->unfreed_bytes)
		text_part(text, TEXT_PLAIN, "oldest %s", mmt_format_duration(age_ns, size));
	text_group_trend(text, group);
	text_group_threads(text, report, group);
	text_end_line(text);
}

static void put_line(struct text *text, const char *line)
{
	text_pad_to(text, STACK_INDENT);
	text_put_sentence(text, TEXT_FAINT, line, STACK_INDENT);
	text_end_line(text);
}

/* What the row stands for, and what is known of its kind. */
static void put_identity(struct text *text, const struct mmt_group *group, struct text_stack_marks *marks)
{
	const char *explanation = mmt_pattern_explanation(group->pattern);

	if (explanation)
		put_line(text, explanation);
	if (group->name) {
		text_pad_to(text, STACK_INDENT);
		text_put_name(text, TEXT_PLAIN, group->name, 0);
		text_end_line(text);
	} else if (group->lost) {
		put_line(text, "mapped by calls that were lost: known from the kernel's maps alone");
	} else {
		text_stack(text, group, STACK_INDENT, marks);
	}
}

static void put_hidden(struct text *text, const struct selection *selection, enum mmt_sort sort)
{
	const struct hidden_groups *hidden = &selection->hidden;
	char size[MMT_SIZE_TEXT], count[MMT_SIZE_TEXT];

	if (sort == MMT_SORT_ALLOCATED || sort == MMT_SORT_FREED)
		hidden = sort == MMT_SORT_FREED ? &selection->hidden_by_freed : &selection->hidden_by_allocated;
	if (!hidden->count)
		return;
	text_end_line(text);
	text_format(text, TEXT_PLAIN, "%s more %s %s %s", mmt_format_count(hidden->count, count),
		    text_plural(hidden->count, "stack", "stacks"),
		    sort == MMT_SORT_FREED	 ? "that freed"
		    : sort == MMT_SORT_ALLOCATED ? "that mapped"
						 : "with",
		    mmt_format_bytes(hidden->bytes, size));
	text_put(text, TEXT_FAINT, " (--limit 0 --min-bytes 0 shows all)");
	text_end_line(text);
}

struct mmt_error *mmt_report_write_text(const struct mmt_report *report, const struct mmt_text_options *options,
					FILE *stream)
{
	bool freed_too =
	    options->sort == MMT_SORT_ALLOCATED || options->sort == MMT_SORT_FREED || options->sort == MMT_SORT_PEAK;
	struct text_explanations explanations = {.reserved = report->reserved_bytes > 0};
	struct selection selection;
	struct mmt_error *error;
	struct text text;

	error = selection_create(report, options, freed_too, &selection);
	if (error)
		return error;
	text_begin(&text, stream, options);
	text_warnings(&text, report);
	text_header(&text, report, false);
	text_end_line(&text);
	put_sums(&text, report);
	text_classes(&text, report);
	text_processes(&text, report);
	text_steps(&text, report, &selection);
	if (report->by == MMT_BY_THREAD)
		text_threads(&text, report);
	for (size_t i = 0; i < selection.count; i++) {
		text_end_line(&text);
		put_figures(&text, report, selection.groups[i], options->sort);
		put_identity(&text, selection.groups[i], &explanations.marks);
	}
	if (!report->unfreed_bytes)
		text_nothing_unfreed(&text, report);
	put_hidden(&text, &selection, options->sort);
	text_failures(&text, report, &explanations.marks);
	text_explanations_add(&explanations, report);
	text_explanations(&text, &explanations);
	text_end(&text);
	selection_deinit(&selection);
	return NULL;
}
