/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel switches the events of a CPU off when it goes offline, and not on again when it comes back, which no list
 * of CPUs shows where both happen between two looks. An event that counts nothing but the time since it was opened
 * shows it: on a CPU that has been offline it stands still.
 */
#ifndef CAPTURE_SENTINELS_H
#define CAPTURE_SENTINELS_H

#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"
#include "capture/cpus.h"

struct sentinel {
	int fd; /* -1: closed */
	int cpu;
	uint64_t enabled_ns; /* as of the last look at which it had gone on */
	uint64_t looked_ns;  /* when that was, or when it was opened */
};

/* Zero initialisation makes an empty one; one for each CPU at most. */
struct sentinels {
	VECTOR(struct sentinel) items;
};

/* Closes every descriptor. */
void sentinels_deinit(struct sentinels *sentinels);

/* For a CPU that is online, in place of the one that it had. 0, or why it cannot be: a value of errno, ENODEV where the
 * CPU is offline. */
int sentinels_open(struct sentinels *sentinels, int cpu);

/* Append the CPUs on which they stand still. Takes up to 40 ms for each that was looked at shortly before. */
struct mmt_error *sentinels_find_stopped(struct sentinels *sentinels, cpu_list *stopped) MMT_MUST_CHECK;

#endif
