/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lifetimes of a report's parts as events in time order, for formats that have events. A lifetime begins with an
 * allocation, and ends with a release unless it is still mapped at the end. In each step, releases of older memory come
 * first, then allocations, then releases of what the step allocated. */
#ifndef OUTPUT_EXPORT_EVENTS_H
#define OUTPUT_EXPORT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/export/export-report.h"

struct export_event {
	uint32_t part, lifetime; /* places; the latter within the part */
	uint32_t number;	 /* of the lifetime among all, from 0 */
	uint32_t step;
	bool is_release;
};

struct export_events {
	struct export_event *items; /* owned */
	size_t count;
	size_t lifetime_count;
};

struct mmt_error *export_events_create(const struct mmt_report *report,
				       struct export_events *events_ret) MMT_MUST_CHECK;
void export_events_deinit(struct export_events *events);

/* The unfreed bytes at the end of each step in which they change; at least one. */
struct export_level {
	uint32_t step;
	uint64_t bytes;
};

struct export_levels {
	struct export_level *items; /* owned */
	size_t count;
};

struct mmt_error *export_levels_create(const struct mmt_report *report, const struct export_events *events,
				       struct export_levels *levels_ret) MMT_MUST_CHECK;
void export_levels_deinit(struct export_levels *levels);

/* The start time of a step, at most the window's end, on the recording's clock. */
uint64_t export_step_ns(const struct mmt_report *report, uint32_t step);

static inline const struct mmt_lifetime *export_event_lifetime(const struct mmt_report *report,
							       const struct export_event *event)
{
	return &report->parts[event->part].lifetimes[event->lifetime];
}

#endif
