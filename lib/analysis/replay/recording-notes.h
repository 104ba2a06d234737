/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Notes of the recorder: OOM kills, resident sizes, and whether large stack dumps are on. */
#pragma once

#include "analysis/replay/memory-readings.h"

/* Children that a process had when recording began and that are not in the recording. */
struct missing_children {
	int32_t parent;
	uint64_t count;
};

struct process_start {
	int32_t pid, inside, parent; /* 0: unknown, or the parent is not recorded */
	uint64_t boot_ns;
	uint32_t control_group; /* in notes->control_groups */
};

/* A limit as it was last, and how much of it was used at most. */
struct noted_limit {
	uint64_t bytes, used;
};

struct noted_group {
	struct mmt_control_group counters; /* end_ns 0: none */
	uint32_t path;			   /* in notes->control_groups */
};

/* All-zero notes are empty. Whatever the recording contains, the times of OOM kills and readings ascend. */
struct notes {
	const int32_t *pids; /* processes whose RSS counts; NULL: all. Borrowed. */
	size_t pid_count;
	VECTOR(struct mmt_oom_kill) oom_kills;
	struct memory_readings memory; /* of these processes */
	VECTOR(struct missing_children) unrecorded_children;
	VECTOR(struct process_start) starts;
	struct intern control_groups; /* paths */
	VECTOR(struct noted_limit) limits;
	struct map limit_places;	   /* see notes_limit() */
	uint64_t latest_ns;		   /* time of the last note */
	bool group_selected;		   /* the first group is the recorded one */
	VECTOR(struct noted_group) groups; /* by their numbers */
	struct mmt_command_end command_end;
	bool large_dumps_off;
	uint64_t large_dumps_off_since_ns, large_dumps_off_ns;
};

void notes_deinit(struct notes *notes);

/* Handles EVENT_NOTE, but for NOTE_BREAK, and EVENT_PSS. */
struct mmt_error *notes_take(struct notes *notes, const struct event *event) MMT_MUST_CHECK;

/* Whether the readings of this process count. */
bool notes_count(const struct notes *notes, int32_t pid);

/* Start of the latest process with this PID; NULL: unknown. */
const struct process_start *notes_start(const struct notes *notes, int32_t pid);

/* A limit of a process, or of the machine if `pid` is 0: NOTE_LIMIT_*. NULL: there is none, or it was not recorded. */
const struct noted_limit *notes_limit(const struct notes *notes, int32_t pid, enum note_kind kind);

/* How long large stack dumps were off, up to `end_ns`. */
uint64_t notes_large_dumps_off_ns(const struct notes *notes, uint64_t end_ns);

/* Add all OOM kills, and the readings from `from_ns` on, to the report, which borrows them. */
void notes_describe(const struct notes *notes, uint64_t from_ns, struct mmt_report *report);

/* Set-user-ID execs: the kernel does not allow recording their calls. When a thread executes a program with the
 * permissions of another user or group, the kernel ends the thread's events, even those opened by root: the recording
 * has an exec, then an EXIT, and no mapping of the program in between. Per-CPU events continue, and show the mappings
 * after that EXIT. */

struct setuid_execs_count {
	uint64_t programs;
	uint32_t name; /* name of the first such program in the recording; undefined if there are none */
};

struct setuid_execs {
	struct map programs; /* by TID: name of the executed program, set by exec, until an event of it is seen */
	struct setuid_execs_count gone; /* programs whose events have ended and whose TID was reused */
};

/* An exit, mapping or fork: from a fork on, another thread uses the TID. */
void setuid_execs_note(struct setuid_execs *setuid_execs, const struct event *event);

/* Programs whose events ended before any event of them was seen. */
struct setuid_execs_count setuid_execs_count(const struct setuid_execs *setuid_execs);

/* The part of a recording that a report is about. */

/* Mappings of [from_ns, allocations_to_ns) count; the reported state is that of to_ns. */
struct window {
	uint64_t from_ns, allocations_to_ns, to_ns;
	bool windowed;	 /* the window excludes a part of the recording */
	bool ends_early; /* to_ns lies before the end of the recording */
};

/* `start_realtime_ns` 0: unknown. Error messages list the accepted timestamps. */
struct mmt_error *window_resolve(const struct mmt_report_options *options, uint64_t start_ns, uint64_t end_ns,
				 uint64_t start_realtime_ns, struct window *window_ret) MMT_MUST_CHECK;
