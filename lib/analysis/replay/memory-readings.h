/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much memory the processes had over time: the recorder's readings of RSS, swap and Pss. */
#pragma once

#include <mmtrace/report.h>

#include "model/processes.h"
#include "trace/format/event.h"

/* One process in one reading. */
struct memory_point {
	uint32_t reading; /* place in memory_readings.readings */
	bool has_pss; /* the figures below were read; otherwise they are estimates from the readings before and after */
	uint64_t resident_bytes, swapped_bytes;
	uint64_t pss_bytes, swap_pss_bytes;
	uint64_t private_bytes;	  /* of pages that no other process maps */
	uint64_t anonymous_bytes; /* 0: not known, as before the first reading of Pss */
	uint64_t lent_bytes;	  /* anonymous memory that is not in Pss, because other processes map it, too */
	uint64_t brief_bytes;	  /* of lent_bytes: lent to brief children; see growth-processes.c */
	/* Sums since the first reading of the process: what its own page faults and mappings can have added at most,
	 * and what it can have given back. Other changes of Pss and private bytes are the doing of processes that share
	 * its memory. */
	uint64_t gained_bytes, lost_bytes;
};

struct process_readings {
	int32_t pid;
	struct mmt_process_readings of; /* the first and the last one of the window */
	bool over;			/* another process has the PID */
	uint64_t most_bytes;		/* of RSS and swap, after memory_readings_sort() */
	VECTOR(struct memory_point) points;
	bool has_pss, has_brief; /* has_brief: children that do not count, because they are `of.brief` */
	union pss_counts last;	 /* that were read */
};

/* All-zero readings are empty. */
struct memory_readings {
	uint64_t from_ns; /* of the window; earlier points only show what processes shared then */
	uint64_t page_bytes;
	VECTOR(struct mmt_resident_reading) readings; /* sums over the processes */
	VECTOR(struct process_readings) processes;
	struct map latest;	 /* by PID: index of the latest process in `processes` */
	VECTOR(uint32_t) sorted; /* indexes in `processes`, by PID and start; made by memory_readings_sort() */
	size_t point_count;
	uint64_t number; /* of the last reading; 0: none */
	bool has_pss;	 /* of some process */
};

void memory_readings_deinit(struct memory_readings *memory);

/* Handles NOTE_RESIDENT, NOTE_SWAPPED, NOTE_LAZY_FREE and EVENT_PSS. */
struct mmt_error *memory_readings_take(struct memory_readings *memory, const struct event *event) MMT_MUST_CHECK;

/* A process with this PID starts: later readings are not those of an earlier process. */
void memory_readings_end_process(struct memory_readings *memory, int32_t pid);

/* The place of the first reading at or after this time. */
size_t memory_readings_first(const struct memory_readings *memory, uint64_t from_ns);

/* RSS in the latest reading; MMT_UNKNOWN: there is no reading. */
uint64_t memory_readings_resident(const struct memory_readings *memory);

/* Call this after the last event, and before memory_readings_of(). */
struct mmt_error *memory_readings_sort(struct memory_readings *memory) MMT_MUST_CHECK;

/* The readings of a process; NULL: none in the window, or its space was that of another process in all of them. */
struct process_readings *memory_readings_of(const struct memory_readings *memory, const struct process *process);
