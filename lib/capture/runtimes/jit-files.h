/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files that JIT compilers write for profilers, and how they are copied: perf maps and jitdumps. To add a runtime,
 * see lib/analysis/resolver/known-runtimes.h. */
#ifndef CAPTURE_RUNTIMES_JIT_FILES_H
#define CAPTURE_RUNTIMES_JIT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/errors.h"
#include "base/vector.h"
#include "capture/build-id-notes.h"

struct file_mark;
struct recorder;
struct stat;
struct traced_process;

/*
 * The perf maps of JIT compilers (/tmp/perf-PID.map), copied while they are accessible. The file is in the process's
 * own root, named after its innermost PID, and written by an untrusted program.
 */

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

/*
 * The jitdumps of runtimes (jit-PID.dump, in any directory), found in the same way as perf finds them: the runtime maps
 * the first page of the file executable. The file is kept open and copied when recording ends; each record in it has a
 * timestamp.
 */

struct noted_jitdump {
	pid_t pid, namespace_pid;
	uint32_t device_major, device_minor;
	uint64_t inode;
	int fd;		     /* -1: refused, or its program has ended */
	uint64_t in_pieces;  /* see recorder.h */
	uint64_t program_ns; /* start of its program: the last start before the mapping; 0: before the recording */
	uint64_t mapped_ns;  /* when it was last seen mapped */
	bool knows_program;  /* else it may belong to any program of its process */
	bool ended;	     /* its program has ended with an exec */
	uint8_t *kept;	     /* content at the end of its program; owned */
	size_t kept_bytes;
	bool cut;	  /* the content was longer */
	bool overwritten; /* by the next program, before the content was copied */
};

struct jitdump_notes {
	VECTOR(struct noted_jitdump) items;
	uint64_t kept_bytes; /* total: at most JITDUMPS_BYTES_MAX */
};

/* Accepts a zeroed value. */
void jitdumps_deinit(struct jitdump_notes *notes);

/* Checks whether an executable mapping, present at this time, is a jitdump, and opens it if so. Accepts only the very
 * file that is mapped, and only if the process's user owns it, its name contains the process's PID, and it is not older
 * than the process; others are refused with a warning. */
struct mmt_error *jitdumps_note(struct recorder *recorder, const struct build_id_mapping *mapping,
				uint64_t time_ns) MMT_MUST_CHECK;

/* A program of the process began. Its mappings may have been noted before. */
void jitdumps_note_begin(struct recorder *recorder, pid_t pid, uint64_t time_ns);

/* The process has called exec, and the next program may write to the same file: keep what the earlier program has
 * written, unless the next one may have overwritten it already. Keeps up with the rings. */
struct mmt_error *jitdumps_end_program(struct recorder *recorder, pid_t pid, uint64_t exec_ns) MMT_MUST_CHECK;

/* Encodes the section; empty if no jitdump was noted. Content beyond JITDUMPS_BYTES_MAX in total is cut off with a
 * warning, that of ended programs first. Also warns about overwritten jitdumps. */
struct mmt_error *jitdumps_encode(struct recorder *recorder, struct buffer *buffer) MMT_MUST_CHECK;

#endif
