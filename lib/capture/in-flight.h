/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that may be inside a call whose effect a reading of the maps has seen already. The rest of a call takes what
 * it takes: milliseconds to free a gigabyte, and on a busy machine longer to get a processor for it. So a thread has
 * returned only when it is seen outside: asleep where signals wake it, waiting in a call of another kind, at its end,
 * or told of by a record that nobody makes in the midst of a call.
 */
#ifndef CAPTURE_IN_FLIGHT_H
#define CAPTURE_IN_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "base/vector.h"

struct in_flight_thread {
	pid_t pid, tid;
};

/* Zero initialisation makes an empty one. */
struct in_flight {
	VECTOR(struct in_flight_thread) threads;
	struct map read_ns; /* of those not told of since, by number: when the maps had been read */
};

/* Empties it. Accepts a zeroed value. */
void in_flight_deinit(struct in_flight *in_flight);

/* Append the threads of a process that may be in a call, after its maps have been read; false: out of memory, or the
 * process is gone. */
bool in_flight_add(struct in_flight *in_flight, pid_t pid, uint64_t read_ns);

/* The thread made a record then: of a call's entry or exit, or because it was outside the kernel. */
void in_flight_note_outside(struct in_flight *in_flight, pid_t tid, uint64_t time_ns);

/* Remove those that have returned, or ended. */
void in_flight_remove_returned(struct in_flight *in_flight);

#endif
