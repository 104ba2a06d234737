/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ring reader: reads the ring buffers into the file, and parses only what the recorder itself needs to know. */
#pragma once

#include "capture/perf/attach.h"
#include "capture/perf/scope.h"

struct recorder;
struct sample_parts;

/*
 * Large stack dumps, taken in addition to the small ones while the call rate is low. A large dump costs its call up to
 * 15 microseconds: negligible at a thousand calls a second, but twice the cost of recording at full speed. While they
 * are off, only the outer frames of deep stacks are lost.
 */

#define LARGE_DUMPS_RATE 1000  /* sustained rate of calls a second up to which large dumps are on */
#define LARGE_DUMPS_BURST 2000 /* calls in a burst after a pause: a starting program makes hundreds of calls */

/* Decides whether large dumps are on. Pure. Calls fill a leaky bucket: large dumps go off when it is full, and on again
 * when it has drained to a quarter. */
struct large_dumps_rule {
	uint64_t level_ns; /* fill level, as the time in which it drains */
	uint64_t time_ns;  /* when level_ns was computed; at first, when it begins */
	bool on;	   /* true at first */
};

/* Add `calls` made since the last update. Return whether large dumps should be on. */
bool large_dumps_rule_update(struct large_dumps_rule *rule, uint64_t calls, uint64_t now_ns);

struct large_dumps {
	struct large_dumps_rule rule;
	uint64_t calls;	      /* calls since the last update of the rule, without those that never have a large dump */
	bool discard;	      /* discard the large dumps in the rings, because other rings are filling up */
	bool on;	      /* whether large dumps should be on */
	unsigned passes_left; /* how many times all events still have to be switched */
	uint64_t pass_ns;     /* do not begin the next pass before */
	bool switching;	      /* a pass is in progress */
	uint64_t off_ns;      /* when large dumps were switched off */
	uint64_t off_total_ns;
	uint64_t switches;
};

/* Update the rule and switch the events. The ring reader calls this between two readings of the rings. */
struct mmt_error *large_dumps_step(struct recorder *recorder) MMT_MUST_CHECK;

/* Note when the recording begins whether large dumps are off: only time within the recording counts. */
struct mmt_error *large_dumps_begin(struct recorder *recorder) MMT_MUST_CHECK;

/* The thread that reads the rings while the recorder's own thread runs a job. */
struct ring_thread {
	pthread_t thread;
	/* Held by the recorder's own thread, except while that thread waits and this one may read the rings. */
	pthread_mutex_t lock;
	/* Signalled when the recorder's own thread begins to wait or requests a reading, or when this one must end. */
	pthread_cond_t wake;
	pthread_cond_t done; /* signalled when the requested reading of the rings is complete */
	bool started;
	bool waiting;	/* the recorder's own thread is inside a system call that may take long */
	unsigned waits; /* ring_reader_begin_wait() without ring_reader_end_wait(); only of the recorder's own thread */
	bool requested; /* the recorder's own thread waits until the rings have been read */
	bool asleep;	/* this thread sleeps until `wake` is signalled */
	bool must_end;
	struct mmt_error *error;
};

/* The events and rings of a recording, and the state of reading them. */
struct ring_reader {
	struct event_set events;
	struct rings rings;
	struct ring_thread thread;
	struct attachment attachment;
	struct scope scope;
	struct large_dumps large_dumps;
	struct large_dumps_rule fault_dumps; /* whether samples of page faults keep their stack dumps */
	bool faults_on_cpus;		     /* page faults of all processes are sampled, to be filtered */
	bool reads_faults;		     /* the ring that is read has page faults */
	struct in_flight in_flight;	     /* used while recording stops */
	uint32_t callchain_limit;
	bool drained; /* all rings were read since the round began and the recorder appended a record */
	int64_t bytes_until_clock_check; /* bytes to read until the next check of the clock */
	bool lost_waiting;		 /* events were lost while a process was waited for */
	VECTOR(uint64_t) lost_before;	 /* by event: records lost before start_ns */
	VECTOR(uint64_t) lost;		 /* by event: records lost since start_ns, counted at the end */
	/* Buffer for a record that is modified before it is written. */
	_Alignas(8) uint8_t changed[RINGS_RECORD_BYTES_MAX];
};

/* Reads every ring up to its present head. Nothing is written while recorder->writing is unset, or for records before
 * start_ns; records after stop_ns are skipped. Process events (fork, exec, exit, mapping) are queued: the process
 * table, modules, jitdumps and JIT code do not change, and no job is called. Only loop_drain() and the thread
 * of the ring reader call this; test/lint/reentry.sh checks all of this. */
struct mmt_error *ring_reader_read(struct recorder *recorder) MMT_MUST_CHECK;

/*
 * Discard all records up to now, unless they show that a process has executed a program whose name matches `name`.
 * Then *pid_ret and *exec_ns_ret are those of the first one, and all records since then stay in the rings; *pid_ret is
 * 0 otherwise.
 */
struct mmt_error *ring_reader_find_exec(struct recorder *recorder, const char *name, pid_t *pid_ret,
					uint64_t *exec_ns_ret) MMT_MUST_CHECK;

/* Start the thread of the ring reader, and end it when no record can be lost any more. While it is not running, the
 * functions below do nothing. An error of the thread is returned by the next one of these functions that is called, or
 * passed to recorder_keep_failure() at the end. */
struct mmt_error *ring_reader_start(struct recorder *recorder) MMT_MUST_CHECK;
void ring_reader_end(struct recorder *recorder);

/* Let the ring reader work if a ring is filling; otherwise pauses for the targets when a pause is due. A job calls
 * this between two steps of bounded time. */
struct mmt_error *ring_reader_give_way(struct recorder *recorder) MMT_MUST_CHECK;

/* Read all rings up to now. Afterwards all process events that have happened are in the queue. */
struct mmt_error *ring_reader_catch_up(struct recorder *recorder) MMT_MUST_CHECK;

/* Call these around a system call that may take long, such as one that waits for the target's mmap_lock: threads that
 * hold the lock may get no CPU for seconds. The thread reads filling rings in the meantime. Between the two calls, use
 * only state that reading the rings does not touch: not the writer, messages, events or rings. errno is preserved.
 * Pairs may be nested. */
void ring_reader_begin_wait(void *recorder);
void ring_reader_end_wait(void *recorder);

/* Start the helper that makes blocking calls, during which the rings are read. */
struct mmt_error *ring_reader_start_helper(struct recorder *recorder) MMT_MUST_CHECK;

/* Open events on CPUs that have come online, and note that these CPUs had no events before. */
struct mmt_error *ring_reader_check_cpus(struct recorder *recorder) MMT_MUST_CHECK;

/* Find the parts of a sample. Pure. False: the record does not have the layout that the attribute requests. */
bool ring_reader_parse_sample(const struct perf_event_attr *attribute, const void *record, size_t size,
			      struct sample_parts *parts_ret);

/* Find the victim in a sample of the event of OOM kills. Linux before 6.9 gives its PID without its name, which is ""
 * then. Pure. False: the sample is too short. */
bool ring_reader_parse_victim(const void *record, size_t size, pid_t *pid_ret, char name_ret[16]);

/* Keep only the first `kept_bytes` of the sample's stack dump, followed by a few zeros that mark the end of the stack,
 * and by the rest of the record: most of the space that a large dump reserves is unused. Return the new size of the
 * record. */
size_t ring_reader_cut_dump(uint8_t *record, const struct sample_parts *parts, size_t kept_bytes);
