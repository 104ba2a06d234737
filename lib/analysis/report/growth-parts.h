/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which pages were resident, attributed: the readings that the recorder made at its start, at each interval snapshot
 * and at its end. A report shows what its rows have of the last reading in its window, and where RSS grew: the pages of
 * that reading that are not resident in the reading nearest to the start of the window, by what they belong to.
 */
#ifndef ANALYSIS_REPORT_GROWTH_PARTS_H
#define ANALYSIS_REPORT_GROWTH_PARTS_H

#include <mmtrace/report.h>

#include "analysis/replay/replay.h"
#include "analysis/report/groups.h"
#include "analysis/report/rows.h"

struct page_runs {
	const struct resident_run *items;
	size_t count;
};

/* The readings of one process that the report needs. */
struct process_pages {
	uint32_t process; /* index */

	/* A reading whose records follow each other, until its last one. */
	uint32_t reading;
	bool invalid;
	uint64_t time_ns;
	VECTOR(struct resident_run) incoming;

	/* Nearest to the start of the window. Empty for a process that began later. */
	bool start_known;
	struct page_runs start; /* in the metadata, or in own_start */
	VECTOR(struct resident_run) own_start;
	uint64_t start_ns, start_bytes; /* time, and RSS in statm */

	/* The latest reading. */
	bool end_known, parts_known;
	uint64_t end_bytes;
	struct resident_sums resident;
	struct map parts; /* since the start: place and what is mapped there -> int64_t as uint64_t */
};

struct page_readings {
	const struct rows *rows;
	VECTOR(struct process_pages) items;
	struct map places;     /* process index -> place in `items` */
	size_t run_count;      /* in all `incoming` and `own_start` */
	uint64_t latest_ns;    /* time of the latest reading during the recording; 0: none */
	uint64_t latest_bytes; /* what the rows had of it, as far as their stacks were known */

	/* Set by page_readings_end(). */
	bool known;
	struct resident_sums resident; /* of all processes */
};

/* Have the replay report readings. The rows must be initialised before the pass. */
void page_readings_watch(struct page_readings *readings, const struct rows *rows, struct replay *replay);
void page_readings_deinit(struct page_readings *readings);

/* After the pass: takes the reading of the recording's end if the window includes it. */
struct mmt_error *page_readings_end(struct page_readings *readings, const struct replay *replay) MMT_MUST_CHECK;

/* After the end: NULL if not known. */
const struct resident_sums *page_readings_of_process(const struct page_readings *readings,
						     const struct process *process);

/*
 * Into report->growth. No parts where one of the two readings is missing, or equal to the other; where a target has
 * ended; or where the options leave recent mappings out.
 */
struct mmt_error *growth_parts_build(const struct page_readings *readings, const struct replay *replay,
				     struct arena *arena, struct mmt_report *report) MMT_MUST_CHECK;

/* Of a part of MMT_GROWTH_BEFORE, from its class, file and runtime. */
enum mmt_pattern growth_pattern(const struct mmt_growth_part *part);

/* What was resident by kind when recording began and when it ended. An all-zero value is empty. */
struct resident_kinds {
	struct intern keys; /* class, heap of a runtime and name of the file; its ids are places in `items` */
	VECTOR(struct mmt_resident_kind) items;
	struct map started; /* PIDs: the recorder may read the maps of the start twice */
};

void resident_kinds_deinit(struct resident_kinds *kinds);

/* For struct replay_watch. */
struct mmt_error *resident_kinds_start(void *kinds, const struct replay *replay, const struct process *process);

/* Into report->growth. `kinds` must live as long as the report. */
struct mmt_error *resident_kinds_build(struct resident_kinds *kinds, const struct replay *replay,
				       const struct rows *rows, struct mmt_report *report) MMT_MUST_CHECK;

#endif
