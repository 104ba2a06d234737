/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the children that processes have when recording begins; later ones are reported by events. The same file finds
 * processes by name: mmt_find_processes(). */
#ifndef CAPTURE_PROCESS_FIND_PROCESSES_H
#define CAPTURE_PROCESS_FIND_PROCESSES_H

#include "base/errors.h"
#include "base/vector.h"
#include "capture/proc/proc.h"

struct recorder;

/* The children of a target that are not recorded. */
struct unrecorded_children {
	pid_t parent;
	uint64_t count;
};

typedef VECTOR(struct unrecorded_children) unrecorded_children_list;

/*
 * Append the descendants of these processes, without the roots themselves. mmtrace, which may be one of them, is left
 * out. A process whose parent has exited has been reparented and is not found.
 */
struct mmt_error *children_list_below(const pid_t *roots, size_t root_count, proc_pids *below) MMT_MUST_CHECK;

/*
 * With options->tree: make targets of all descendants of the known processes. *added_ret: some were not known before. A
 * process that cannot be recorded is left out with a warning.
 */
struct mmt_error *children_add(struct recorder *recorder, bool *added_ret) MMT_MUST_CHECK;

/* With options->tree: report to the user what was added. */
void children_inform(const struct recorder *recorder);

/* Count the living children of targets that are not recorded, and warn the user, unless options->no_inherit shows that
 * children are not wanted. */
struct mmt_error *children_count_unrecorded(struct recorder *recorder) MMT_MUST_CHECK;

/* Write these counts into the recording, which has begun. */
struct mmt_error *children_note_unrecorded(struct recorder *recorder) MMT_MUST_CHECK;

#endif
