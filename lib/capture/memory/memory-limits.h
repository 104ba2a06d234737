/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The limits that make memory calls fail, and how much of them is used: those of a process, and those of the machine.
 */
#ifndef CAPTURE_MEMORY_MEMORY_LIMITS_H
#define CAPTURE_MEMORY_MEMORY_LIMITS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"
#include "trace/format/format.h"

struct recorder;

struct memory_limit {
	uint64_t bytes; /* NO_LIMIT_BYTES: no limit */
	uint64_t used;	/* 0: not read */
};

#define NO_LIMIT_BYTES UINT64_MAX

/* Parse /proc/PID/limits and /proc/PID/status, and /proc/meminfo. `overcommit` is vm.overcommit_memory. The result is
 * by NOTE_LIMIT_* - NOTE_LIMIT_FIRST; limits that the texts do not describe are not changed. */
void limits_parse_process(const char *limits, const char *status, struct memory_limit parsed[NOTE_LIMITS]);
void limits_parse_machine(const char *meminfo, int64_t overcommit, struct memory_limit parsed[NOTE_LIMITS]);

/* Writes the limits of a process into the recording. */
struct mmt_error *limits_note_process(struct recorder *recorder, pid_t pid) MMT_MUST_CHECK;

/* Writes those limits of the machine that have changed since the last call. */
struct mmt_error *limits_note_machine(struct recorder *recorder, uint64_t now_ns) MMT_MUST_CHECK;

#endif
