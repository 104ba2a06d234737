// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/text-group.h"

#include <inttypes.h>
#include <string.h>

#define THREADS_NAMED 3
#define TREND_COLUMNS 16

void text_group_sizes(struct text *text, const struct mmt_group *group)
{
	char count[MMT_SIZE_TEXT], smallest[MMT_SIZE_TEXT], largest[MMT_SIZE_TEXT];

	mmt_format_count(group->unfreed_count, count);
	mmt_format_bytes(group->smallest_bytes, smallest);
	mmt_format_bytes(group->largest_bytes, largest);
	if (!group->unfreed_count)
		return;
	if (group->smallest_bytes == group->largest_bytes)
		text_part(text, TEXT_PLAIN, "%s x %s", count, smallest);
	else
		text_part(text, TEXT_PLAIN, "%s, %s to %s", count, smallest, largest);
}

void text_group_given_back(struct text *text, const struct mmt_group *group)
{
	char given_back[MMT_SIZE_TEXT], born[MMT_SIZE_TEXT];

	if (group->born_bytes > group->unfreed_bytes)
		text_part(text, TEXT_PLAIN, "%s of %s given back",
			  mmt_format_bytes(group->born_bytes - group->unfreed_bytes, given_back),
			  mmt_format_bytes(group->born_bytes, born));
}

/* The highest value of a column's share of the points, so that no peak is hidden. */
static uint64_t trend_column(const uint64_t *points, unsigned column)
{
	unsigned first = column * MMT_TREND_POINTS / TREND_COLUMNS,
		 last = (column + 1) * MMT_TREND_POINTS / TREND_COLUMNS;
	uint64_t highest = 0;

	for (unsigned point = first; point < last; point++)
		if (points[point] > highest)
			highest = points[point];
	return highest;
}

/* 0 to `levels` - 1; only nothing at all is level 0. */
static unsigned trend_level(uint64_t value, uint64_t highest, unsigned levels)
{
	unsigned level;

	if (!value)
		return 0;
	level = 1 + (unsigned)((long double)value / (long double)highest * (long double)(levels - 1));
	return level < levels ? level : levels - 1;
}

void text_trend(struct text *text, const uint64_t points[MMT_TREND_POINTS])
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	uint64_t highest = 0;

	for (unsigned column = 0; column < TREND_COLUMNS; column++)
		if (trend_column(points, column) > highest)
			highest = trend_column(points, column);
	if (!highest)
		return;
	text_begin_part(text, TREND_COLUMNS);
	for (unsigned column = 0; column < TREND_COLUMNS; column++) {
		uint64_t value = trend_column(points, column);

		if (text->options->ascii)
			text_format(text, TEXT_PLAIN, "%u", trend_level(value, highest, 10));
		else
			text_put_wide(text, bars[trend_level(value, highest, 8)]);
	}
}

void text_group_trend(struct text *text, const struct mmt_group *group)
{
	text_trend(text, group->trend);
}

static unsigned thread_columns(const struct text *text, const struct mmt_thread *thread)
{
	char number[16];

	return text_name_columns(text, thread->name ? thread->name : "") +
	       (unsigned)snprintf(number, sizeof(number), " (%" PRId32 ")", thread->tid);
}

void text_group_threads(struct text *text, const struct mmt_report *report, const struct mmt_group *group)
{
	size_t named = group->thread_count < THREADS_NAMED ? group->thread_count : THREADS_NAMED;
	size_t more = group->thread_count - named;
	unsigned columns = (unsigned)strlen("threads ") + (more ? 16 : 0);

	if (report->process_count > 1 && group->pid_count == 1)
		text_part(text, TEXT_PLAIN, "pid %" PRId32, group->pids[0]);
	else if (group->pid_count > 1)
		text_part(text, TEXT_PLAIN, "%zu processes", group->pid_count);
	if (!named)
		return;
	for (size_t i = 0; i < named; i++)
		columns += thread_columns(text, &group->threads[i]) + 2;
	text_begin_part(text, columns);
	text_put(text, TEXT_PLAIN, group->thread_count > 1 ? "threads " : "thread ");
	for (size_t i = 0; i < named; i++) {
		if (i)
			text_put(text, TEXT_PLAIN, i + 1 == named && !more ? " and " : ", ");
		text_put_name(text, TEXT_PLAIN, group->threads[i].name ? group->threads[i].name : "", 0);
		text_format(text, TEXT_PLAIN, " (%" PRId32 ")", group->threads[i].tid);
	}
	if (more)
		text_format(text, TEXT_PLAIN, " and %zu more", more);
}
