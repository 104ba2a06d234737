// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stop-condition.h"

#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

const char *stop_condition_parse(const char *text, void *conditions)
{
	static const char expected[] = "a condition such as rss>2G, growth>100M/10m or group>90%";
	struct stop_conditions *given = conditions;
	struct stop_condition condition = {.text = text};
	const char *number = strchr(text, '>'), *slash = strchr(text, '/');
	char size[32] = "", *end;

	if (!number || given->count == STOP_CONDITIONS_MAX)
		return number ? "fewer conditions" : expected;
	number++;
	if (!strncmp(text, "group>", strlen("group>"))) {
		condition.limit = strtoul(number, &end, 10);
		if (*number < '0' || *number > '9' || condition.limit < 1 || condition.limit > 100 ||
		    strcmp(end, "%") != 0)
			return "a share of the control group's limit such as group>90%";
	} else if (!strncmp(text, "growth>", strlen("growth>"))) {
		if (!slash || (size_t)(slash - number) >= sizeof(size) ||
		    value_duration(slash + 1, &condition.window_ns))
			return expected;
		memcpy(size, number, (size_t)(slash - number));
		number = size;
	} else if (strncmp(text, "rss>", strlen("rss>")) != 0) {
		return expected;
	}
	if (*text == 'r' || condition.window_ns) {
		if (value_size(number, &condition.limit))
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

	for (; count && last->time_ns - readings[count - 1].time_ns <= window_ns; count--) {
		const struct mmt_resident_reading *reading = &readings[count - 1];

		if (reading->resident_bytes + reading->swapped_bytes < least)
			least = reading->resident_bytes + reading->swapped_bytes;
	}
	return bytes - least;
}

const char *stop_condition_check(struct stop_conditions *conditions, const struct mmt_record_progress *progress,
				 const struct mmt_resident_reading *readings, size_t count)
{
	const char *text = NULL;

	for (size_t i = 0; i < conditions->count; i++) {
		struct stop_condition *condition = &conditions->items[i];
		bool is_group = !strncmp(condition->text, "group", strlen("group")), holds;

		if (condition->met || (is_group ? !progress->group_limit_bytes : !count))
			continue;
		if (is_group)
			holds = progress->group_bytes > progress->group_limit_bytes / 100 * condition->limit;
		else if (condition->window_ns)
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
