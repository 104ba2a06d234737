// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/text/trend.h"

#define TREND_COLUMNS 16

/* The highest value of the points of a column, so that no peak is hidden. */
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

/* 0 to `levels` - 1; only the value 0 has level 0. */
static unsigned trend_level(uint64_t value, uint64_t lowest, uint64_t highest, unsigned levels)
{
	unsigned level;

	if (!value)
		return 0;
	if (highest == lowest || value <= lowest)
		return highest == lowest ? levels - 1 : 1;
	level = 1 + (unsigned)((long double)(value - lowest) / (long double)(highest - lowest) *
			       (long double)(levels - 1));
	return level < levels ? level : levels - 1;
}

void text_trend(struct text *text, const uint64_t points[MMT_TREND_POINTS], uint64_t floor)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	uint64_t highest = 0, lowest = UINT64_MAX;

	for (unsigned column = 0; column < TREND_COLUMNS; column++) {
		uint64_t value = trend_column(points, column);

		highest = value > highest ? value : highest;
		lowest = value && value < lowest ? value : lowest;
	}
	if (!highest)
		return;
	if (highest - lowest <= floor)
		lowest = highest;
	text_begin_part(text, TREND_COLUMNS);
	for (unsigned column = 0; column < TREND_COLUMNS; column++) {
		uint64_t value = trend_column(points, column);

		if (text->options->ascii)
			text_format(text, TEXT_PLAIN, "%u", trend_level(value, lowest, highest, 10));
		else
			text_put_wide(text, bars[trend_level(value, lowest, highest, 8)]);
	}
}
