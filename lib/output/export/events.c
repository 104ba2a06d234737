// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/export/events.h"

#include <stdlib.h>

/* The order of events within a step. */
enum phase { RELEASES_OF_OLDER, ALLOCATIONS, RELEASES_OF_NEW };

static size_t count_lifetimes(const struct mmt_report *report)
{
	size_t count = 0;

	for (size_t i = 0; i < report->part_count; i++)
		count += report->parts[i].lifetime_count;
	return count;
}

static enum phase phase_of(const struct mmt_report *report, const struct export_event *event)
{
	if (!event->is_release)
		return ALLOCATIONS;
	return export_event_lifetime(report, event)->allocated_step == event->step ? RELEASES_OF_NEW
										   : RELEASES_OF_OLDER;
}

/* `context`: the report. */
static int compare_events(const void *left, const void *right, void *context)
{
	const struct export_event *a = left, *b = right;
	enum phase phase, other;

	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	phase = phase_of(context, a);
	other = phase_of(context, b);
	if (phase != other)
		return phase < other ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

struct mmt_error *export_events_create(const struct mmt_report *report, struct export_events *events_ret)
{
	struct export_events events = {.lifetime_count = count_lifetimes(report)};
	uint32_t number = 0;

	events.items = calloc(2 * events.lifetime_count + 1, sizeof(*events.items));
	if (!events.items)
		return &error_no_memory;
	for (uint32_t part = 0; part < report->part_count; part++) {
		for (uint32_t i = 0; i < report->parts[part].lifetime_count; i++, number++) {
			const struct mmt_lifetime *lifetime = &report->parts[part].lifetimes[i];
			struct export_event event = {
			    .part = part, .lifetime = i, .number = number, .step = lifetime->allocated_step};

			events.items[events.count++] = event;
			if (lifetime->released_step == MMT_STILL_MAPPED)
				continue;
			event.is_release = true;
			event.step = lifetime->released_step;
			events.items[events.count++] = event;
		}
	}
	qsort_r(events.items, events.count, sizeof(*events.items), compare_events, (void *)report);
	*events_ret = events;
	return NULL;
}

void export_events_deinit(struct export_events *events)
{
	free(events->items);
	*events = (struct export_events){0};
}

struct mmt_error *export_levels_create(const struct mmt_report *report, const struct export_events *events,
				       struct export_levels *levels_ret)
{
	struct export_levels levels = {.items = calloc((size_t)report->lifetime_steps + 1, sizeof(*levels.items)),
				       .count = 1};

	if (!levels.items)
		return &error_no_memory;
	for (size_t i = 0; i < events->count; i++) {
		const struct export_event *event = &events->items[i];
		struct export_level *last = &levels.items[levels.count - 1];
		uint64_t bytes = export_event_lifetime(report, event)->bytes;

		if (last->step != event->step)
			levels.items[levels.count++] = (struct export_level){event->step, last->bytes};
		levels.items[levels.count - 1].bytes += event->is_release ? -bytes : bytes;
	}
	*levels_ret = levels;
	return NULL;
}

void export_levels_deinit(struct export_levels *levels)
{
	free(levels->items);
	*levels = (struct export_levels){0};
}

uint64_t export_step_ns(const struct mmt_report *report, uint32_t step)
{
	uint64_t since_ns = report->lifetime_step_ns * step;

	return since_ns < report->to_ns - report->from_ns ? report->from_ns + since_ns : report->to_ns;
}
