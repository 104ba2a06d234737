/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CPU hotplug: which CPUs are online, the hotplug events that report changes (one dummy event on each CPU), and what to
 * do when a CPU comes online while recording.
 */
#ifndef CAPTURE_PERF_CPU_HOTPLUG_H
#define CAPTURE_PERF_CPU_HOTPLUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/vector.h"

/*
 * Which CPUs exist, and on which of them calls are missed. The kernel also accepts per-thread events for offline CPUs
 * and enables them when the CPU comes online. It accepts per-CPU events only for online CPUs, and stops them when the
 * CPU goes offline. The recorder opens them again when it notices that the CPU is back; calls made there in between are
 * missed.
 */

typedef VECTOR(int) cpu_list;

/* Appends the CPUs of a list like "0-3,5". False: out of memory. */
bool cpus_parse(const char *text, cpu_list *cpus);

struct mmt_error *cpus_list_online(cpu_list *cpus) MMT_MUST_CHECK;

/*
 * Lists the online CPUs, then the CPUs that may come online: those that are present and are not disabled SMT siblings.
 * Firmware may announce many more CPUs than the machine has, so at most as many are added as are online. `online_ret`:
 * how many are online. `left_out_ret`: how many offline CPUs were not added.
 */
struct mmt_error *cpus_list_usable(cpu_list *cpus, size_t *online_ret, size_t *left_out_ret) MMT_MUST_CHECK;

/* Appends the offline CPUs of the list of present CPUs, with the limits of cpus_list_usable(). False: out of memory. */
bool cpus_add_offline(const char *present, const char *smt_control, cpu_list *cpus, size_t *left_out_ret);

/*
 * What is known of a CPU. The kernel disables the per-CPU events of a CPU that goes offline and does not enable them
 * when the CPU comes back. If both happen between two checks, no list of CPUs shows it. A hotplug event does: it only
 * counts the time since it was opened, and its count stops for good when its CPU goes offline.
 */
struct watched_cpu {
	int cpu;
	bool lacks_events;   /* per-CPU events have to be opened when it is online */
	bool missed;	     /* it was online without events */
	int fd;		     /* its hotplug event; -1: none */
	uint64_t enabled_ns; /* the count at the last check that found it advanced */
	uint64_t counted_ns; /* time of that check, or when the event was opened */
};

/* Zero-initialise one without CPUs. */
struct cpu_watch {
	VECTOR(struct watched_cpu) items;
	size_t missed_count;
	int first_missed;
	uint64_t checked_ns;
	uint64_t stopped_check_ns;
};

void cpu_watch_deinit(struct cpu_watch *watch);

/* Opens a hotplug event for an online CPU and closes the previous one. Returns 0 or an errno value; ENODEV: the CPU is
 * offline. */
int cpu_watch_open(struct cpu_watch *watch, int cpu);

/* Finds CPUs whose hotplug event no longer advances: they have no events. Takes up to 40 ms for each CPU that was also
 * checked a moment ago. */
void cpu_watch_find_stopped(struct cpu_watch *watch);

/* Notes that this CPU has no events. False: out of memory. */
bool cpu_watch_add_without_events(struct cpu_watch *watch, int cpu);

/* Notes which CPUs are online now. `recorded`: the CPUs for which events were opened. `on_cpus`: they are per-CPU
 * events. False: out of memory. */
bool cpu_watch_note(struct cpu_watch *watch, const cpu_list *recorded, const cpu_list *online, bool on_cpus);

/* Finds a CPU without events that is online again, once. False: there is none. */
bool cpu_watch_pop_online(struct cpu_watch *watch, const cpu_list *online, int *cpu_ret);

#endif
