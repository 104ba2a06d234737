/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The event set: which perf events are opened for a thread, and what their samples contain. */
#pragma once

#include "trace/format/architecture.h"
#include "trace/format/tracepoint.h"
#include "trace/sections/sections.h"

/* Reads identifiers and formats of tracepoints. If tracefs is not mounted, a detached mount is used, which does not
 * change the system. For users who may not read tracefs, `mmtrace setup` saves the same data to a file. */

#define TRACEFS_SAVED_DIRECTORY "/run/mmtrace"
#define TRACEFS_SAVED_NAME "tracepoints"

/* The source of tracepoints: a directory with the layout of tracefs, or the saved file. */
struct tracepoint_source {
	int directory; /* -1: use `saved` */
	struct tracepoints saved;
};

/* Call tracefs_close() after success. */
struct mmt_error *tracefs_open(struct tracepoint_source *source_ret) MMT_MUST_CHECK;

void tracefs_close(struct tracepoint_source *source);

/* Append a tracepoint to `tracepoints`. *found_ret is false if the kernel has no tracepoint of this name. */
struct mmt_error *tracefs_add_tracepoint(const struct tracepoint_source *source, const char *system, const char *name,
					 struct tracepoints *tracepoints, bool *found_ret) MMT_MUST_CHECK;

/* Append the files header_page and header_event. */
struct mmt_error *tracefs_add_headers(const struct tracepoint_source *source,
				      struct tracepoints *tracepoints) MMT_MUST_CHECK;

/* Saves everything that users who may not read tracefs need for recording, until the next boot. `directory` is normally
 * TRACEFS_SAVED_DIRECTORY; it is created if it does not exist. */
struct mmt_error *tracefs_save(const char *directory) MMT_MUST_CHECK;

/* Rings from RING_LARGE_DUMP on are read last. RING_KINDS: those that share the memory of -m. */
enum ring_kind { RING_SYSCALL, RING_DUMP, RING_LARGE_DUMP, RING_KINDS, RING_FAULT = RING_KINDS };

struct event_description {
	struct perf_event_attr attribute;
	char name[64];
	const char *filter; /* set on each event; NULL: no filter. Static. */
	enum attribute_role role;
	enum call call; /* for ROLE_SYSCALL, ROLE_DUMP and ROLE_LARGE_DUMP */
	bool is_enter;	/* it records the call's entry, beside the event of its exit */
	enum ring_kind ring;
	bool has_dump;	     /* of more of the stack than the direct caller needs */
	bool has_large_dump; /* another event takes a large dump while the call rate is low */
	bool on_cpus;	     /* one on each CPU, for all processes, although the other events are those of threads */
	bool in_turn;	     /* with dumps, or without them while there are many page faults */
};

/* Events in the order in which they are opened. The cheapest comes first, so that a thread that has exited costs
 * little. */
struct event_set {
	VECTOR(struct event_description) items;
	struct tracepoints tracepoints;
};

/* May only the system calls of own processes be recorded? That is what kernel.perf_event_paranoid 2 permits all users:
 * no kernel-internal tracepoint such as the one of new tasks, which has their clone flags. */
struct mmt_error *events_are_restricted(const struct tracepoint_source *source, bool *restricted_ret) MMT_MUST_CHECK;

/* Create the event set for these options. Call events_deinit() even after an error. */
struct mmt_error *events_create(const struct mmt_record_options *options, const struct tracepoint_source *source,
				bool restricted, const struct architecture *architecture,
				struct event_set *set) MMT_MUST_CHECK;
void events_deinit(struct event_set *set);

/* Change sampled page faults to per-CPU events, if that is permitted on this CPU: the kernel counts inherited events
 * for each thread and CPU apart, so that short threads would give no samples. Call this before any event is opened. */
bool events_put_faults_on_cpus(struct event_set *set, int cpu);
/* Remove from the set what only events on CPUs can do, or all page faults. Call this before any event is opened. Return
 * whether any page faults are left. */
bool events_leave_out_faults(struct event_set *set, bool all);
/* Tracepoints of the system "vmscan": a thread begins or ends to free memory. */
#define EVENTS_RECLAIM 4
extern const char *const events_reclaim_names[EVENTS_RECLAIM];
/* Return the number of events that each thread has on each CPU. */
size_t events_count_of_threads(const struct event_set *set);

/* Return the size of the stack dump in each sample that has one, in bytes, and that of the large dumps, which calls
 * have in addition while the call rate is low; 0: none. */
uint32_t events_dump_bytes(const struct mmt_record_options *options);
uint32_t events_large_dump_bytes(const struct mmt_record_options *options);
/* Remove large dumps from the set if there is no ring for them. Call this before any event is opened. */
void events_leave_out_large_dumps(struct event_set *set);
/* Return the number of events for large dumps, which are the last of the set. Those of page faults, if any, come just
 * before them. */
size_t events_count_large_dumps(const struct event_set *set);

/* Is this release of the kernel new enough? Parts that kernels of these versions may lack are optional. */
#define KERNEL_SUPPORTED "Linux 5.10 or later"
bool kernel_is_supported(const char *release);

/* Does the system permit events at all? */
struct mmt_error *events_check_permitted(void) MMT_MUST_CHECK;

/* Describe an event that counts nothing. */
void events_describe_dummy(struct perf_event_attr *attribute);

/* Describe the coverage event of a thread: a dummy event, opened after all others while attaching. A thread that
 * reports a context switch through it has inherited the complete event set. It also samples the thread's time in user
 * space. */
void events_describe_coverage_event(struct event_description *description);

/* Describe the event of OOM kills, for all processes on a CPU. *found_ret is false if the kernel has no such event. */
struct mmt_error *events_describe_oom_kill(const struct tracepoint_source *source, struct perf_event_attr *attribute,
					   bool *found_ret) MMT_MUST_CHECK;

/* Bytes of the stack that contain the return address of a frameless function, such as a system call wrapper. The
 * kernel's callchain skips this frame. */
#define EVENTS_LEAF_BYTES 64

/* Every record has these fields in this order, perhaps with others between; samples begin with the identifier and the
 * instruction pointer. */
#define EVENTS_SAMPLE_TYPE                                                                                             \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)
