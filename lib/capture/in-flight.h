/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that may be inside a call whose effect a reading of the maps has seen already: at work, or waiting for a
 * processor, which on a busy machine takes longer than any call. A thread that was seen to sleep, or that has run
 * since, has returned.
 */
#ifndef CAPTURE_IN_FLIGHT_H
#define CAPTURE_IN_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vector.h"

struct in_flight_thread {
	pid_t tid;
	uint64_t ran_ns; /* when it was first seen */
};

/* Zero initialisation makes an empty one; it is freed with vector_deinit(). */
typedef VECTOR(struct in_flight_thread) in_flight_threads;

/* Append the threads of a process that are at work now; false: out of memory, or the process is gone. */
bool in_flight_add(in_flight_threads *threads, pid_t pid);

/* Remove those that have returned, or ended. */
void in_flight_remove_returned(in_flight_threads *threads);

#endif
