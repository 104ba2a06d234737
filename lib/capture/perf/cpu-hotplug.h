/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CPU hotplug: which CPUs are online, the hotplug events (dummy events on each CPU) that report changes, and what
 * happens when a CPU comes online while recording.
 */
#ifndef CAPTURE_PERF_CPU_HOTPLUG_H
#define CAPTURE_PERF_CPU_HOTPLUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/vector.h"

/*
 * Which CPUs exist, and on which of them calls are missed. Per-thread events are also opened for offline CPUs and
 * become active when the CPU comes online. Per-CPU events can only be opened on online CPUs, stop when the CPU goes
 * offline, and are opened again when the recorder notices that the CPU is back: calls made there before that are
 * missed.
 */

/* Zero-initialise an empty list; free it with vector_deinit(). */
typedef VECTOR(int) cpu_list;

/* Append the CPUs of a list like "0-3,5"; false: out of memory. */
bool cpus_parse(const char *text, cpu_list *cpus);

struct mmt_error *cpus_list_online(cpu_list *cpus) MMT_MUST_CHECK;

/*
 * The same, then the CPUs that may come online: those that are present and are not disabled SMT siblings. A machine may
 * be laid out for many more CPUs than it has, so at most as many are added as are online. `online_ret`: how many are
 * online; `left_out_ret`: how many more could have been added.
 */
struct mmt_error *cpus_list_usable(cpu_list *cpus, size_t *online_ret, size_t *left_out_ret) MMT_MUST_CHECK;

/* Append the other CPUs of the list of present CPUs, under the conditions above. False: out of memory. */
bool cpus_add_offline(const char *present, const char *smt_control, cpu_list *cpus, size_t *left_out_ret);

/* Zero initialisation makes an empty one. */
struct cpu_watch {
	cpu_list unseen; /* were online without events */
	uint64_t looked_ns;
	uint64_t looked_for_stopped_ns;
	cpu_list away; /* have no events: they are offline, or were at the last check */
};

void cpu_watch_deinit(struct cpu_watch *watch);

/* The CPUs that are online now. `on_cpus`: the events are per CPU. False: out of memory. */
bool cpu_watch_note(struct cpu_watch *watch, const cpu_list *recorded, const cpu_list *online, bool on_cpus);

/* This CPU has no events. False: out of memory. */
bool cpu_watch_add_away(struct cpu_watch *watch, int cpu);

/* The events of these CPUs stopped before that list was read: those that are in it were offline for a short time.
 * False: out of memory. */
bool cpu_watch_note_stopped(struct cpu_watch *watch, const cpu_list *stopped, const cpu_list *online);

/* Take out a CPU that is online and had no events. False: there is none. */
bool cpu_watch_take_back(struct cpu_watch *watch, const cpu_list *online, int *cpu_ret);

/*
 * The kernel disables the events of a CPU that goes offline and does not enable them when it comes back. If both happen
 * between two checks, no list of CPUs shows it. An event that only counts the time since it was opened does: after its
 * CPU was offline, its count no longer advances.
 */

struct hotplug_event {
	int fd; /* -1: closed */
	int cpu;
	uint64_t enabled_ns; /* as of the last check at which it had advanced */
	uint64_t looked_ns;  /* time of that check, or when it was opened */
};

/* Zero-initialise an empty list; it has at most one event for each CPU. */
struct hotplug_events {
	VECTOR(struct hotplug_event) items;
};

/* Closes every descriptor. */
void hotplug_events_deinit(struct hotplug_events *hotplug_events);

/* Open one for an online CPU and close the previous one. Returns 0 or an errno value, ENODEV if the CPU is offline. */
int hotplug_events_open(struct hotplug_events *hotplug_events, int cpu);

/* Append the CPUs whose count stands still. Takes up to 40 ms for each CPU that was checked shortly before. */
struct mmt_error *hotplug_events_find_stopped(struct hotplug_events *hotplug_events, cpu_list *stopped) MMT_MUST_CHECK;

struct recorder;

/* Open events on CPUs that have come online, and note that they had none before. */
struct mmt_error *cpu_hotplug_check(struct recorder *recorder) MMT_MUST_CHECK;

#endif
