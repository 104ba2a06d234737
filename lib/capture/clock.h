/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CAPTURE_CLOCK_H
#define CAPTURE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* CLOCK_MONOTONIC, the clock of the recording. */
uint64_t clock_now_ns(void);

/* Whether that is the clock of the kernel's events too; in a time namespace it may be another one. */
bool clock_is_of_events(void);

/* The same of a time in /proc, in clock ticks since boot: the tick's beginning. */
uint64_t clock_from_ticks(uint64_t ticks);

/* How long this thread has run. */
uint64_t clock_thread_ns(void);

#endif
