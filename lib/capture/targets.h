/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the processes and threads to record, including existing children, and attaches to them while they create
 * others. mmt_find_processes() finds processes by name. */
#pragma once

#include "capture/recorder/recorder.h"

/* Chooses the scope for the options, opens the control groups in which events will be opened, and describes it in the
 * summary: see scope.h. The command, if any, need not have been started. */
struct mmt_error *targets_choose_scope(struct recorder *recorder) MMT_MUST_CHECK;

/* 0: the process is gone. */
size_t targets_count_threads(pid_t pid);

/* Is the process in a control group in which events are opened? */
struct mmt_error *targets_find_in_group(const struct recorder *recorder, pid_t pid, bool *found_ret) MMT_MUST_CHECK;

/*
 * Attaches to the requested processes. Afterwards every thread of options->pids, and every child created meanwhile, has
 * the complete event set, opened or inherited. The events are enabled; records are dropped until recorder->writing is
 * set.
 */
struct mmt_error *targets_attach(struct recorder *recorder) MMT_MUST_CHECK;

/* Begins to record the processes that exist now. Later ones are added by their FORK records. */
struct mmt_error *targets_follow(struct recorder *recorder) MMT_MUST_CHECK;

/* With options->wait_name: waits for the process, and adds it. *exec_ns_ret: when it executed its program. Its records
 * since then are in the rings. */
struct mmt_error *targets_wait(struct recorder *recorder, uint64_t *exec_ns_ret) MMT_MUST_CHECK;

/*
 * Counts in the summary the threads of known processes that are not known to have the event set; there should be none.
 * Nothing is counted if FORK records may have been lost. Call this before the recording ends.
 */
struct mmt_error *targets_count_missed(struct recorder *recorder) MMT_MUST_CHECK;

/* Checks whether calls are missing: on a CPU that came online, or of a process that left the control group. Opens
 * events in the new group of a target, or on every CPU. */
struct mmt_error *targets_check_unrecorded(struct recorder *recorder) MMT_MUST_CHECK;

/*
 * Appends the descendants of these processes, without the processes themselves and without mmtrace. Descendants of an
 * exited process have another parent and are not found.
 */
struct mmt_error *children_list_below(const pid_t *roots, size_t root_count, proc_pids *below) MMT_MUST_CHECK;

/* Counts the living children of targets that are not recorded, writes that into the recording, which has begun, and
 * warns the user, unless options->no_inherit excludes children. */
struct mmt_error *children_note_unrecorded(struct recorder *recorder) MMT_MUST_CHECK;
