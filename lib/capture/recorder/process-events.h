/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The process events: forks, execs, exits and mappings of the recorded processes. The ring reader puts them into a
 * queue, and the record loop applies them to the process table.
 *
 * The rings must be read during slow jobs: reading the maps of a large process takes seconds. So reading the rings must
 * not change any state that a job uses. Effects of a record on the process table, JIT code and modules wait in this
 * queue until the loop applies them between two jobs.
 */
#ifndef CAPTURE_PROCESS_PROCESS_EVENTS_H
#define CAPTURE_PROCESS_PROCESS_EVENTS_H

#include <sys/types.h>

#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"

struct recorder;

enum process_event_kind {
	PROCESS_SEEN, /* a process made a call, and no record announced it */
	PROCESS_FORK,
	PROCESS_EXEC,
	PROCESS_FIRST_CALL, /* the first call after an exec */
	PROCESS_MAPPING,
};

struct process_event {
	enum process_event_kind kind;
	pid_t pid;
	uint64_t time_ns;
	bool recorded; /* FORK: after the recording has begun */
	bool waited;   /* EXEC: a round for the record that announces its process */

	/* MAPPING: */
	uint64_t start, end;
	uint64_t inode;
	uint32_t device_major, device_minor;
	uint32_t protection;
	size_t path; /* offset into the paths of the queue */
};

/* Zero-initialise an empty queue. */
struct process_events {
	VECTOR(struct process_event) items;
	VECTOR(char) paths;
	/* By PID: the time of an exec after which the process has made no call yet, in nanoseconds. */
	struct map executing;
};

void process_events_deinit(struct process_events *events);

/* Adds an event. `path`, only for mappings, is copied. A mapping that no job needs is left out. */
struct mmt_error *process_events_push(struct recorder *recorder, const struct process_event *event,
				      const char *path) MMT_MUST_CHECK;

/* Notes that the process made a call. Cheap while no process is in an exec. */
struct mmt_error *process_events_note_call(struct recorder *recorder, pid_t pid, uint64_t time_ns) MMT_MUST_CHECK;

/* Notes that a program has begun whose exec is over and which has made no call since: it may never make one. */
struct mmt_error *process_events_end_exec(struct recorder *recorder, pid_t pid) MMT_MUST_CHECK;

/* Will an event in the queue cause a snapshot of this process, or is it in an exec? */
bool process_events_want_snapshot(const struct recorder *recorder, pid_t pid);

#endif
