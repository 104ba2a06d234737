/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The perf maps of JIT compilers (/tmp/perf-PID.map), copied while they are accessible. The file is in the process's
 * own root, named after its innermost PID, and written by an untrusted program.
 */
#ifndef CAPTURE_RUNTIMES_PERF_MAP_FILES_H
#define CAPTURE_RUNTIMES_PERF_MAP_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"
#include "capture/recorder.h"

struct stat;

/* Returns why a file that a target wrote about itself is refused; NULL: it is accepted. */
const char *target_file_refusal(const struct stat *status, uid_t owner, uint64_t started_realtime_ns);

/* Open a file for reading below `directory`, which is the target's root or below it; the path cannot leave it. -1: see
 * errno. Never blocks. */
int target_file_open(int directory, const char *path);

/* Remove a regular file owned by that user from a directory (-1: none) that others may write to. False: the file still
 * exists, perhaps owned by another user. */
bool target_file_remove(int directory, const char *name, uid_t owner);

/* Opens the perf map of a process; -1: none, or it is refused, with the reason in *refused_ret. */
int perf_maps_open(const struct traced_process *process, struct stat *status, const char **refused_ret);

/* The length of the mark, if the file still begins with the marked content; 0: rewritten. */
uint64_t file_mark_check(const struct file_mark *mark, int fd, const struct stat *status);
void file_mark_set(struct file_mark *mark, int fd, uint64_t inode, uint64_t length);

/* Open the process's /tmp, so that it remains accessible after the process has ended, and note the current length of
 * the map. Call this again after an exec: the process may have another root. `began_ns`: start of its program, 0 before
 * the recording; the growth of the map then begins with nothing at that time. */
void perf_maps_watch(struct traced_process *process, uint64_t began_ns, uint64_t now_ns);

/* The process has called exec: keep the map of the earlier program, which says nothing about the new one. Call this
 * before the process is watched again. */
struct mmt_error *perf_maps_end_program(struct recorder *recorder, struct traced_process *process,
					uint64_t exec_ns) MMT_MUST_CHECK;

/* Note the length of the file if it has grown; if it was rewritten, note the growth since then. */
void perf_maps_note_growth(struct traced_process *process, uint64_t now_ns);

/*
 * Copy the perf map of the process, if there is one, into its perf_map.text; a refused one is left out with a warning.
 * Keeps up with the rings. Errors: reading the rings failed.
 */
struct mmt_error *perf_maps_copy(struct recorder *recorder, struct traced_process *process) MMT_MUST_CHECK;

/* Whether there is a map by now that could be copied. */
bool perf_maps_exists(const struct traced_process *process);

/* Removes the map. True: it is gone. */
bool perf_maps_remove(const struct traced_process *process);

/* Removes the map seen by perf_maps_end_program(), unless the current program has written to it since. True: it is
 * gone. */
bool perf_maps_remove_earlier(const struct traced_process *process);

#endif
