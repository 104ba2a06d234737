/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CPU hotplug: which CPUs exist, and on which of them calls are missed.
 */
#ifndef CAPTURE_PERF_CPU_HOTPLUG_H
#define CAPTURE_PERF_CPU_HOTPLUG_H

#include "base/errors.h"
#include "base/vector.h"

typedef VECTOR(int) cpu_list;

/* Appends the CPUs of a list like "0-3,5". False: out of memory. */
bool cpus_parse(const char *text, cpu_list *cpus);

struct mmt_error *cpus_list_online(cpu_list *cpus) MMT_MUST_CHECK;

/*
 * Events are opened for the CPUs that are online when recording begins. When a CPU goes offline, the kernel keeps its
 * per-thread events for later, but closes its per-CPU events for good. While the machine is suspended, all CPUs but the
 * first are offline. Zero-initialise one without CPUs.
 */
struct cpu_watch {
	cpu_list away;	 /* went offline, and so has no per-CPU events any more */
	cpu_list missed; /* online without events */
	bool checked;
	uint64_t asleep_ns; /* at the last check */
	uint64_t checked_ns;
};

/* Notes which CPUs are online now. `recorded`: the CPUs for which events were opened. `on_cpus`: they are per-CPU
 * events. `asleep_ns`: how long the machine has been suspended since it was booted. False: out of memory. */
bool cpu_watch_note(struct cpu_watch *watch, const cpu_list *recorded, const cpu_list *online, bool on_cpus,
		    uint64_t asleep_ns);

#endif
