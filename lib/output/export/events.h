/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The lifetimes of a report's parts as a series of events in order of time, for formats that have one. A lifetime
 * begins with an allocation, and ends with a release unless it is still mapped at the end. In each step, allocations
 * come first, except that what is older and is released in the step goes before them.
 */
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

/* What is unfreed at the end of each step in which it changes; at least one. */
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

/* When a step begins, but not after the window's end. Clock of the recording. */
uint64_t export_step_ns(const struct mmt_report *report, uint32_t step);

static inline const struct mmt_lifetime *export_event_lifetime(const struct mmt_report *report,
							       const struct export_event *event)
{
	return &report->parts[event->part].lifetimes[event->lifetime];
}

#endif
