/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the recorder itself said in the course of a recording: marks of the user, resident sizes. */
#ifndef ANALYSIS_NOTES_H
#define ANALYSIS_NOTES_H

#include <mmtrace/report.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/vector.h"
#include "trace/event.h"

/* Zero initialisation makes empty ones. */
struct notes {
	const int32_t *pids; /* whose size counts; NULL: everybody's. Borrowed. */
	size_t pid_count;
	VECTOR(struct mmt_mark) marks;
	VECTOR(struct mmt_resident_reading) readings; /* sums over the processes */
	uint64_t reading;			      /* number of the last; 0: none */
};

void notes_deinit(struct notes *notes);

/* EVENT_MARK and EVENT_RESIDENT; others are passed over. */
struct mmt_error *notes_take(struct notes *notes, const struct event *event) MMT_MUST_CHECK;

/* What the last reading so far says; MMT_UNKNOWN: there was none. */
uint64_t notes_resident(const struct notes *notes);

/* A moment that names a mark becomes one of the clock; others stay. */
struct mmt_error *notes_resolve(const struct notes *notes, const char *option,
				struct mmt_moment *moment) MMT_MUST_CHECK;

/* Into the report: every mark, and the readings from `from_ns` on. */
struct mmt_error *notes_describe(const struct notes *notes, uint64_t from_ns, struct arena *arena,
				 struct mmt_report *report) MMT_MUST_CHECK;

#endif
