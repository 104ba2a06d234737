// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stop-condition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

const char *stop_condition_parse(const char *text, void *conditions)
{
	static const char expected[] = "a condition such as rss>2G, growth>100M/10m or group>90%";
	static const char *const kinds[] = {"rss", "growth", "group", NULL}; /* enum stop_kind */
	struct stop_conditions *given = conditions;
	size_t length = strcspn(text, ">");
	int kind = text[length] ? value_choice(kinds, text, length) : -1;
	const char *number = text + length + 1;
	struct stop_condition condition = {.text = text, .kind = (enum stop_kind)kind};
	char size[32] = "", *end;

	if (kind < 0 || given->count == STOP_CONDITIONS_MAX)
		return kind < 0 ? expected : "fewer conditions";
	length = strcspn(number, "/");
	snprintf(size, sizeof(size), "%.*s", (int)length, number);
	if (kind == STOP_GROUP) {
		condition.limit = strtoul(number, &end, 10);
		if (*number < '0' || *number > '9' || condition.limit < 1 || condition.limit > 99 ||
		    strcmp(end, "%") != 0)
			return "a share of the control group's limit such as group>90%";
	} else if (value_size(size, &condition.limit) || (kind == STOP_GROWTH) != (number[length] == '/') ||
		   (number[length] && value_duration(number + length + 1, &condition.window_ns))) {
		return expected;
	}
	given->items[given->count++] = condition;
	return NULL;
}

/* By how much memory, with what is swapped, is above its least in the window before the last reading. */
static uint64_t growth_in(const struct mmt_resident_reading *readings, size_t count, uint64_t window_ns)
{
	const struct mmt_resident_reading *last = &readings[count - 1];
	uint64_t bytes = last->resident_bytes + last->swapped_bytes, least = bytes;

	for (size_t i = count; i-- > 0 && last->time_ns - readings[i].time_ns <= window_ns;)
		if (readings[i].resident_bytes + readings[i].swapped_bytes < least)
			least = readings[i].resident_bytes + readings[i].swapped_bytes;
	return bytes - least;
}

const char *stop_condition_check(struct stop_conditions *conditions, const struct mmt_record_progress *progress,
				 const struct mmt_resident_reading *readings, size_t count)
{
	const char *text = NULL;

	for (size_t i = 0; i < conditions->count; i++) {
		struct stop_condition *condition = &conditions->items[i];
		bool holds;

		if (condition->met || (condition->kind == STOP_GROUP ? !progress->group_limit_bytes : !count))
			continue;
		if (condition->kind == STOP_GROUP)
			holds = progress->group_bytes > progress->group_limit_bytes / 100 * condition->limit;
		else if (condition->kind == STOP_GROWTH)
			holds = growth_in(readings, count, condition->window_ns) > condition->limit;
		else
			holds = readings[count - 1].resident_bytes > condition->limit;
		condition->met = holds && condition->was_false && !text;
		if (condition->met)
			text = condition->text;
		condition->was_false |= !holds;
	}
	return text;
}
