/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CPU hotplug: which CPUs are online, and the hotplug events (dummy events on each CPU) that report changes.
 * targets_look_at_cpus() opens events on CPUs that come online.
 */
#ifndef CAPTURE_PERF_CPU_HOTPLUG_H
#define CAPTURE_PERF_CPU_HOTPLUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/vector.h"

/*
 * Which CPUs there are, and on which of them calls go unseen. Events of threads are opened for CPUs that are offline as
 * well, and wait for them. Events on CPUs are opened where one is online, are gone when it goes offline, and are opened
 * again when it is seen to be back: what is done there before that goes unseen.
 */

/* Zero initialisation makes an empty list; freed with vector_deinit(). */
typedef VECTOR(int) cpu_list;

/* Append those of a list like "0-3,5"; false: out of memory. */
bool cpus_parse(const char *text, cpu_list *cpus);

struct mmt_error *cpus_list_online(cpu_list *cpus) MMT_MUST_CHECK;

/*
 * The same, then those that may come online: they are there, and not switched off as siblings of others. A machine may
 * be laid out for many more than it has: of these there are no more than of those that are online. `online_ret`: how
 * many of them are online; `left_out_ret`: how many there would be besides.
 */
struct mmt_error *cpus_list_usable(cpu_list *cpus, size_t *online_ret, size_t *left_out_ret) MMT_MUST_CHECK;

/* Append what the list of those that are there has besides, as said above. False: out of memory. */
bool cpus_add_offline(const char *present, const char *smt_control, cpu_list *cpus, size_t *left_out_ret);

/* Zero initialisation makes an empty one. */
struct cpu_watch {
	cpu_list unseen; /* were online without events */
	uint64_t looked_ns;
	uint64_t looked_for_stopped_ns;
	cpu_list away; /* have no events: they are offline, or were when somebody looked */
};

void cpu_watch_deinit(struct cpu_watch *watch);

/* What is online now; `on_cpus`: the events are on CPUs. False: out of memory. */
bool cpu_watch_note(struct cpu_watch *watch, const cpu_list *recorded, const cpu_list *online, bool on_cpus);

/* Has no events. False: out of memory. */
bool cpu_watch_add_away(struct cpu_watch *watch, int cpu);

/* The events of these had gone before that list was read: whoever is on it was away for a moment. False: out of memory.
 */
bool cpu_watch_note_stopped(struct cpu_watch *watch, const cpu_list *stopped, const cpu_list *online);

/* One of those that had no events and is online: it is taken out. False: there is none. */
bool cpu_watch_take_back(struct cpu_watch *watch, const cpu_list *online, int *cpu_ret);

/*
 * The kernel switches the events of a CPU off when it goes offline, and not on again when it comes back, which no list
 * of CPUs shows where both happen between two looks. An event that counts nothing but the time since it was opened
 * shows it: on a CPU that has been offline it stands still.
 */

struct hotplug_event {
	int fd; /* -1: closed */
	int cpu;
	uint64_t enabled_ns; /* as of the last look at which it had gone on */
	uint64_t looked_ns;  /* when that was, or when it was opened */
};

/* Zero initialisation makes an empty one; one for each CPU at most. */
struct hotplug_events {
	VECTOR(struct hotplug_event) items;
};

/* Closes every descriptor. */
void hotplug_events_deinit(struct hotplug_events *hotplug_events);

/* For a CPU that is online, in place of the one that it had. 0, or why it cannot be: a value of errno, ENODEV where the
 * CPU is offline. */
int hotplug_events_open(struct hotplug_events *hotplug_events, int cpu);

/* Append the CPUs on which they stand still. Takes up to 40 ms for each that was looked at shortly before. */
struct mmt_error *hotplug_events_find_stopped(struct hotplug_events *hotplug_events, cpu_list *stopped) MMT_MUST_CHECK;

#endif
