/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Forks, execs, exits and mappings of the recorded processes: the queue in which the ring reader puts them, and their
 * effects on the process table, which the record loop applies. A forked child is added to the recording here.
 *
 * The rings have to be read during slow work: reading the maps of a large process takes seconds. So reading the rings
 * changes no state that such work uses. The effects of a record on the process table, JIT code and modules wait in this
 * queue until the loop applies them between two steps of work.
 */
#ifndef CAPTURE_PROCESS_PROCESS_EVENTS_H
#define CAPTURE_PROCESS_PROCESS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"

struct recorder;

enum process_event_kind {
	PROCESS_SEEN, /* made a call without an earlier record about it */
	PROCESS_FORK,
	PROCESS_EXEC,
	PROCESS_FIRST_CALL, /* after its exec */
	PROCESS_MAPPING,
	PROCESS_EXIT, /* of a thread */
};

struct process_event {
	enum process_event_kind kind;
	pid_t pid;
	uint64_t time_ns;
	bool recorded; /* FORK: after the start of the recording */

	/* MAPPING */
	uint64_t start, end;
	uint64_t inode;
	uint32_t device_major, device_minor;
	uint32_t protection;
	size_t path; /* offset into the queue's paths */
};

/* Zero-initialise an empty queue. */
struct process_events {
	VECTOR(struct process_event) items;
	VECTOR(char) paths;
	struct map executing; /* time of the exec of each process that has made no call since, in nanoseconds */
	struct map code_pids; /* processes with an executable mapping in the queue */
};

void process_events_deinit(struct process_events *events);

/* Append an event. `path`, only for a mapping, is copied. A mapping that changes nothing is skipped. */
struct mmt_error *process_events_push(struct recorder *recorder, const struct process_event *event,
				      const char *path) MMT_MUST_CHECK;

/* The process made a call. Cheap while no process is in an exec. */
struct mmt_error *process_events_note_call(struct recorder *recorder, pid_t pid, uint64_t time_ns) MMT_MUST_CHECK;

/* Does an event in the queue ask for a snapshot of this process? */
bool process_events_want_snapshot(const struct recorder *recorder, pid_t pid);

/* Apply all events and empty the queue. Adds processes; entries that exist stay where they are. */
struct mmt_error *process_events_apply(struct recorder *recorder) MMT_MUST_CHECK;

/* Drain the rings: read them, and apply the events found. The loop does this between two jobs, and no job does. */
struct mmt_error *process_events_drain(struct recorder *recorder) MMT_MUST_CHECK;

#endif
