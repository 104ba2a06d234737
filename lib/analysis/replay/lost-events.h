/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lost events. The recorder reads the kernel's counts at the end (PERF_FORMAT_LOST; lib/capture/session.c) and writes
 * them into a section of the file. During the recording, a ring buffer that was full reports the loss in a
 * PERF_RECORD_LOST before the next record that fits: each CPU has its own buffer, so the records of other CPUs are not
 * affected. Reports warn of lost events in lib/output/text/text-header.c.
 */
#ifndef ANALYSIS_REPLAY_LOST_EVENTS_H
#define ANALYSIS_REPLAY_LOST_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <mmtrace/report.h>

#include "base/vector.h"

struct reader_metadata;

/* The PERF_RECORD_LOST of one kind of ring buffer. Zero-initialise an empty one. */
struct lost_events {
	VECTOR(uint64_t) latest; /* by CPU: sequence of the event that reported the loss; 0: none */
	uint64_t anywhere;	 /* latest loss on any CPU */
	uint64_t everywhere;	 /* latest loss on an unknown CPU */
};

void lost_events_deinit(struct lost_events *lost);

/* cpu -1: unknown. False: out of memory. */
bool lost_events_note(struct lost_events *lost, int32_t cpu, uint64_t sequence);

/* Whether records of this CPU (-1: any) were lost after the event with this sequence. */
bool lost_events_since(const struct lost_events *lost, int32_t cpu, uint64_t sequence);

/* Fills in the three counts of lost events and stack dumps. `reported`: the sum of the PERF_RECORD_LOST of syscall
 * events, for a recording without the kernel's counts. */
void lost_events_count(const struct reader_metadata *metadata, uint64_t reported, struct mmt_completeness *counts_ret);

#endif
