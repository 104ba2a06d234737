// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/text/text-steps.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define COLUMN 12
#define GROUPS_MAX 5 /* in columns of their own */
#define NS_PER_SECOND UINT64_C(1000000000)
#define DIGITS_MAX 9

/* The start of a line of the table. */
struct moment {
	char elapsed[32]; /* since the start of the recording */
	char clock[16];	  /* local time of day; "": not known */
};

struct table {
	const struct mmt_report *report;
	unsigned digits; /* of a second, enough to distinguish the steps */
	bool clock, rss;
};

static unsigned find_digits(uint64_t every_ns)
{
	unsigned digits = 0;

	for (uint64_t unit_ns = NS_PER_SECOND; digits < DIGITS_MAX && every_ns % unit_ns; unit_ns /= 10)
		digits++;
	return digits;
}

static void format_fraction(char *text, size_t size, uint64_t ns, unsigned digits)
{
	uint64_t fraction = ns % NS_PER_SECOND;

	for (unsigned i = digits; i < DIGITS_MAX; i++)
		fraction /= 10;
	if (digits)
		snprintf(text, size, ".%0*" PRIu64, (int)digits, fraction);
	else
		*text = '\0';
}

/* Times of the day have at most milliseconds. */
static struct moment find_moment(const struct table *table, uint64_t ns)
{
	const struct mmt_report *report = table->report;
	uint64_t since_ns = ns > report->start_ns ? ns - report->start_ns : 0;
	uint64_t realtime_ns = report->start_realtime_ns + since_ns;
	time_t seconds = (time_t)(realtime_ns / NS_PER_SECOND);
	struct moment moment = {0};
	char fraction[DIGITS_MAX + 2];
	struct tm local;
	size_t length;

	format_fraction(fraction, sizeof(fraction), since_ns, table->digits);
	snprintf(moment.elapsed, sizeof(moment.elapsed), "%" PRIu64 "%s s", since_ns / NS_PER_SECOND, fraction);
	if (!report->start_realtime_ns || !localtime_r(&seconds, &local))
		return moment;
	length = strftime(moment.clock, sizeof(moment.clock), "%H:%M:%S", &local);
	format_fraction(fraction, sizeof(fraction), realtime_ns, table->digits < 3 ? table->digits : 3);
	snprintf(moment.clock + length, sizeof(moment.clock) - length, "%s", fraction);
	return moment;
}

static void put_cell(struct text *text, uint64_t bytes)
{
	char size[MMT_SIZE_TEXT];

	text_format(text, TEXT_PLAIN, "%*s", COLUMN, bytes == MMT_UNKNOWN ? "-" : mmt_format_bytes(bytes, size));
}

static bool has_rss(const struct mmt_report *report)
{
	for (size_t i = 0; i < report->step_count; i++) {
		if (report->steps[i].process_resident_bytes != MMT_UNKNOWN)
			return true;
	}
	return false;
}

/* The number of groups that fit on the terminal. */
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

static void put_heads(struct text *text, const struct table *table, const struct selection *selection,
		      size_t group_count)
{
	text_format(text, TEXT_FAINT, "%*s", COLUMN, "after");
	if (table->clock)
		text_format(text, TEXT_FAINT, "%*s", COLUMN + 2, "time");
	if (table->rss)
		text_format(text, TEXT_FAINT, "%*s", COLUMN, "RSS");
	text_format(text, TEXT_FAINT, "%*s%*s", COLUMN, "committed", COLUMN, "unfreed");
	for (size_t i = 0; i < group_count; i++) {
		char head[16];

		snprintf(head, sizeof(head), "#%" PRIu32, selection->groups[i]->id);
		text_format(text, TEXT_FAINT, "%*s", COLUMN, head);
	}
	text_end_line(text);
}

/* The end follows a full step so closely that both show the same time: the line of the end stands for both. */
static bool is_line_of_end(const struct table *table, size_t index)
{
	const struct mmt_report *report = table->report;

	return index + 2 == report->step_count && !strcmp(find_moment(table, report->steps[index].to_ns).elapsed,
							  find_moment(table, report->steps[index + 1].to_ns).elapsed);
}

void text_steps(struct text *text, const struct mmt_report *report, const struct selection *selection)
{
	struct table table = {.report = report,
			      .digits = find_digits(report->every_ns),
			      .clock = report->start_realtime_ns != 0,
			      .rss = has_rss(report)};
	size_t group_count = count_groups(text, selection, 3 + (table.clock ? 2 : 0) + table.rss);

	if (!report->step_count || !report->every_ns)
		return;
	text->indent = 0;
	text_end_line(text);
	put_heads(text, &table, selection, group_count);
	for (size_t i = 0; i < report->step_count; i++) {
		const struct mmt_step *step = &report->steps[i];
		struct moment moment = find_moment(&table, step->to_ns);

		if (is_line_of_end(&table, i))
			continue;
		text_format(text, TEXT_PLAIN, "%*s", COLUMN, moment.elapsed);
		if (table.clock)
			text_format(text, TEXT_PLAIN, "%*s", COLUMN + 2, moment.clock);
		if (table.rss)
			put_cell(text, step->process_resident_bytes);
		put_cell(text, step->committed_bytes);
		put_cell(text, step->unfreed_bytes);
		for (size_t j = 0; j < group_count; j++)
			put_cell(text, selection->groups[j]->step_bytes[i]);
		text_end_line(text);
	}
	if (!report->completeness.lost_events)
		return;
	text_put(text, TEXT_FAINT,
		 "events were lost: steps lack corrections from the end of the recording, so --at may differ");
	text_end_line(text);
}
