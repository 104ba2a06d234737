// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stop-condition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

static const char expected_condition[] =
    "a condition such as rss>2G, growth>100M/10m, group>90%, psi>20%, mappings>90% or oom";

/* What stands behind ">". */
static const char *parse_limit(const char *number, struct stop_condition *condition)
{
	size_t length = strcspn(number, "/");
	char size[32] = "", *end;

	if (condition->kind == STOP_RSS || condition->kind == STOP_GROWTH) {
		snprintf(size, sizeof(size), "%.*s", (int)length, number);
		return value_size(size, &condition->limit) ||
			       (condition->kind == STOP_GROWTH) != (number[length] == '/') ||
			       (number[length] && value_duration(number + length + 1, &condition->window_ns))
			   ? expected_condition
			   : NULL;
	}
	condition->limit = strtoul(number, &end, 10);
	return *number < '0' || *number > '9' || condition->limit < 1 || condition->limit > 99 || strcmp(end, "%") != 0
		   ? "a share from 1% to 99%, such as group>90%, psi>20% or mappings>90%"
		   : NULL;
}

const char *stop_condition_parse(const char *text, void *conditions)
{
	static const char *const kinds[] = {"rss",	"growth", "group", "psi",
					    "mappings", "oom",	  NULL}; /* enum stop_kind */
	struct stop_conditions *given = conditions;
	size_t length = strcspn(text, ">");
	int kind = value_choice(kinds, text, length);
	struct stop_condition condition = {.text = text, .kind = (enum stop_kind)kind};
	const char *refused;

	if (given->count == STOP_CONDITIONS_MAX)
		return "fewer conditions";
	if (kind < 0 || (kind == STOP_OOM) != !text[length])
		return expected_condition;
	refused = text[length] ? parse_limit(text + length + 1, &condition) : NULL;
	if (!refused)
		given->items[given->count++] = condition;
	return refused;
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

/* The time in which memory was short, of the time since the oldest check that is kept; 0 of 0 at the first one. */
static void compare_pressure(struct stop_condition *condition, const struct mmt_record_progress *progress,
			     uint64_t *stalled_ns_ret, uint64_t *elapsed_ns_ret)
{
	struct memory_pressure *now = &condition->earlier[condition->checks % STOP_PSI_CHECKS];
	const struct memory_pressure *oldest = condition->checks < STOP_PSI_CHECKS ? condition->earlier : now;

	if (condition->checks++) {
		*stalled_ns_ret = progress->stalled_ns - oldest->stalled_ns;
		*elapsed_ns_ret = progress->elapsed_ns - oldest->elapsed_ns;
	}
	*now = (struct memory_pressure){progress->elapsed_ns, progress->stalled_ns};
}

/* *known_ret: whether there are figures for it. */
static bool holds(struct stop_condition *condition, const struct mmt_record_progress *progress,
		  const struct mmt_resident_reading *readings, size_t count, bool *known_ret)
{
	uint64_t value = 0, whole = 0;

	*known_ret = condition->kind == STOP_OOM || count;
	switch (condition->kind) {
	case STOP_OOM:
		return progress->oom_killed;
	case STOP_RSS:
		return count && readings[count - 1].resident_bytes > condition->limit;
	case STOP_GROWTH:
		return count && growth_in(readings, count, condition->window_ns) > condition->limit;
	case STOP_GROUP:
		value = progress->group_bytes;
		whole = progress->group_limit_bytes;
		break;
	case STOP_MAPPINGS:
		value = progress->mappings;
		whole = progress->mapping_limit;
		break;
	case STOP_PSI:
		if (progress->stalled_known)
			compare_pressure(condition, progress, &value, &whole);
	}
	*known_ret = whole > 0;
	return value > whole / 100 * condition->limit;
}

const char *stop_condition_check(struct stop_conditions *conditions, const struct mmt_record_progress *progress,
				 const struct mmt_resident_reading *readings, size_t count)
{
	const char *text = NULL;

	for (size_t i = 0; i < conditions->count; i++) {
		struct stop_condition *condition = &conditions->items[i];
		bool known, now = holds(condition, progress, readings, count, &known);

		condition->unknown = !known;
		if (condition->met || !known)
			continue;
		condition->met = now && (condition->was_false || condition->kind == STOP_OOM);
		/* Of several, the OOM kill tells most. */
		if (condition->met && (!text || condition->kind == STOP_OOM))
			text = condition->text;
		condition->was_false |= !now;
	}
	return text;
}
