/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which CPUs are online, and on which of them calls go unseen: events are opened on those that are online when
 * recording begins. Events of threads wait for a CPU that goes offline to come back; events on CPUs are gone with it.
 */
#ifndef CAPTURE_CPUS_H
#define CAPTURE_CPUS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/vector.h"

/* Zero initialisation makes an empty list; freed with vector_deinit(). */
typedef VECTOR(int) cpu_list;

/* Append those of a list like "0-3,5"; false: out of memory. */
bool cpus_parse(const char *text, cpu_list *cpus);

struct mmt_error *cpus_list_online(cpu_list *cpus) MMT_MUST_CHECK;

/* Zero initialisation makes an empty one. */
struct cpu_watch {
	cpu_list unseen; /* were online without events */
	cpu_list away;	 /* lost their events when they went offline */
};

void cpu_watch_deinit(struct cpu_watch *watch);

/* What is online now; `on_cpus`: the events are on CPUs. False: out of memory. */
bool cpu_watch_note(struct cpu_watch *watch, const cpu_list *recorded, const cpu_list *online, bool on_cpus);

#endif
