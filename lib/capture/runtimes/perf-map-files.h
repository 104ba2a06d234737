/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The perf maps of JIT compilers (/tmp/perf-PID.map), copied while they can be had. The file is in the process's own
 * root, named after its innermost PID, and written by an untrusted program.
 */
#ifndef CAPTURE_RUNTIMES_PERF_MAP_FILES_H
#define CAPTURE_RUNTIMES_PERF_MAP_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"
#include "capture/recorder.h"

struct stat;

/* Why a file that a target wrote about itself is not taken; NULL: it may be. */
const char *target_file_refusal(const struct stat *status, uid_t owner, uint64_t started_realtime_ns);

/* Open a file for reading below `directory`, the target's root or a part of it, which nothing leads out of; -1: errno
 * tells why. Never waits. */
int target_file_open(int directory, const char *path);

/* Remove a regular file of that user from a directory (-1: nowhere), where others may have theirs. False: it is there
 * still, perhaps somebody else's. */
bool target_file_remove(int directory, const char *name, uid_t owner);

/* The perf map of a process, opened; -1: none, or it must not be taken, which *refused_ret says. */
int perf_maps_open(const struct traced_process *process, struct stat *status, const char **refused_ret);

/* The length of the mark, if the file still begins with what had it; 0: begun again. */
uint64_t file_mark_check(const struct file_mark *mark, int fd, const struct stat *status);
void file_mark_set(struct file_mark *mark, int fd, uint64_t inode, uint64_t length);

/* Hold the process's /tmp, which outlives it. Notes the length that the map has now. Again after exec: it may have
 * moved to another root. `began_ns`: when its program began, 0 before the recording: its growth then begins with
 * nothing at that time. */
void perf_maps_watch(struct traced_process *process, uint64_t began_ns, uint64_t now_ns);

/* It has executed another program: keep the map of the one before, which is none of the new one's. Before it is watched
 * again. */
struct mmt_error *perf_maps_end_program(struct recorder *recorder, struct traced_process *process,
					uint64_t exec_ns) MMT_MUST_CHECK;

/* Note the file's length when it has grown; of one that was begun again, the growth since. */
void perf_maps_note_growth(struct traced_process *process, uint64_t now_ns);

/*
 * Copy the perf map of the process, when there is one, into its perf_map.text; one that cannot be taken is left out
 * with a warning. Keeps up with the rings. Errors: those of reading the rings.
 */
struct mmt_error *perf_maps_copy(struct recorder *recorder, struct traced_process *process) MMT_MUST_CHECK;

/* Whether there is one by now that could be copied. */
bool perf_maps_exists(const struct traced_process *process);

/* True: it is gone. */
bool perf_maps_remove(const struct traced_process *process);

/* The one that perf_maps_end_program() has seen, unless the program that runs now has written since. True: it is gone.
 */
bool perf_maps_remove_earlier(const struct traced_process *process);

#endif
