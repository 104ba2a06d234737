/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conditions on memory that end a recording: --until of `record`, --when of `watch`. */
#pragma once

#include <mmtrace/record.h>

#define STOP_CONDITIONS_MAX 16
#define STOP_PSI_CHECKS 10 /* one a second */

enum stop_kind { STOP_RSS, STOP_GROWTH, STOP_GROUP, STOP_PSI, STOP_MAPPINGS, STOP_OOM };

struct stop_condition {
	const char *text; /* as given, which is not owned */
	enum stop_kind kind;
	uint64_t limit; /* bytes or percent */
	uint64_t window_ns;
	struct memory_pressure {
		uint64_t elapsed_ns, stalled_ns;
	} earlier[STOP_PSI_CHECKS]; /* a ring of the last checks */
	unsigned checks;
	bool was_false; /* in this recording: a condition that holds from the start is not met, but for OOM kills */
	bool met;
	bool unknown, warned; /* the figures for it were not known at the last check; the user was told */
};

struct stop_conditions {
	struct stop_condition items[STOP_CONDITIONS_MAX];
	size_t count;
};

/* For an option table; `conditions` gets another one. */
const char *stop_condition_parse(const char *text, void *conditions);

/* Return the text of a condition that is met now and was not at the last call; NULL if none is. `readings`: the RSS or
 * Pss readings of `progress`. */
const char *stop_condition_check(struct stop_conditions *conditions, const struct mmt_record_progress *progress,
				 const struct mmt_resident_reading *readings, size_t count);
