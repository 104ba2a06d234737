/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies the files that JIT compilers write for profilers: perf maps and jitdumps. To add a runtime, see
 * lib/analysis/resolver/known-runtimes.h. */
#pragma once

#include "capture/recorder/build-id-notes.h"

struct file_mark;
struct recorder;
struct stat;
struct traced_process;

/*
 * Perf maps (/tmp/perf-PID.map), copied while they are accessible. The file is below the root directory of the process,
 * has its innermost PID in its name, and is written by a program that is not trusted.
 */

/* Finds the perf map of a process (O_PATH). -1: there is none, or it is refused; then *refused_ret is the reason. */
int perf_maps_open(struct recorder *recorder, const struct traced_process *process, struct stat *status,
		   const char **refused_ret);

/* *length_ret: the length of the mark if the perf map still begins with the marked content; 0: the file was rewritten.
 * False: the file system does not answer, so nothing is known. */
bool file_mark_check(struct recorder *recorder, const struct traced_process *process, const struct file_mark *mark,
		     int fd, const struct stat *status, uint64_t *length_ret);
/* False: the file system does not answer, and the mark is unchanged. */
bool file_mark_set(struct recorder *recorder, const struct traced_process *process, struct file_mark *mark, int fd,
		   uint64_t inode, uint64_t length);

/* Opens the process's /tmp, so that it remains accessible after the process has ended, and notes the current length of
 * the map. Call this again after an exec, because the process may have another root directory. `began_ns`: when its
 * program began; the growth of the map then starts at this time with an empty map. 0: before the recording. */
void perf_maps_watch(struct recorder *recorder, struct traced_process *process, uint64_t began_ns, uint64_t now_ns);

/* The process has called exec: copies the map of the earlier program, whose names do not apply to the new one. Call
 * this before perf_maps_watch(). */
struct mmt_error *perf_maps_end_program(struct recorder *recorder, struct traced_process *process,
					uint64_t exec_ns) MMT_MUST_CHECK;

/* Notes the length of the map if it has grown. If the file was rewritten, notes its growth since then. */
void perf_maps_note_growth(struct recorder *recorder, struct traced_process *process, uint64_t now_ns);

/* Copies the perf map of the process, if there is one, into its perf_map.text. A refused map is left out with a
 * warning. Lets the ring reader work in between. Errors: reading the rings failed. */
struct mmt_error *perf_maps_copy(struct recorder *recorder, struct traced_process *process) MMT_MUST_CHECK;

bool perf_maps_exists(struct recorder *recorder, const struct traced_process *process);

/* Removes the map. `earlier`: the one seen by perf_maps_end_program(), unless the current program has written to it
 * since. True: it does not exist any more. */
bool perf_maps_remove(struct recorder *recorder, const struct traced_process *process, bool earlier);

/*
 * Jitdumps (jit-PID.dump in any directory), found as perf finds them: the runtime maps the first page of the file
 * executable. The file is kept open and copied when recording ends. Each record in it has a timestamp.
 */

struct noted_jitdump {
	struct jitdump_copy copy;
	uint32_t device_major, device_minor;
	uint64_t inode;
	int fd;		    /* O_PATH; -1: the dump was refused */
	uint64_t place;	    /* see blocking-calls.h */
	uint64_t in_pieces; /* bytes already written as incremental metadata */
	uint64_t mapped_ns; /* when the file was last seen mapped */
	bool cut;	    /* the content was too long and was cut */
};

struct jitdump_notes {
	VECTOR(struct noted_jitdump) items;
	uint64_t kept_bytes; /* size of all copies; at most LIMIT_RECORDED_JITDUMPS_BYTES */
};

void jitdumps_deinit(struct jitdump_notes *notes);

/* Checks whether an executable mapping, present at this time, is a jitdump, and opens it. Accepts only the mapped file
 * itself, and only if the process's user owns it, its name contains the process's PID, and it is not older than the
 * process. Others are refused with a warning. */
struct mmt_error *jitdumps_note(struct recorder *recorder, const struct build_id_mapping *mapping,
				uint64_t time_ns) MMT_MUST_CHECK;

/* Notes that a program of the process began. Its mappings may have been noted before. */
void jitdumps_note_begin(struct recorder *recorder, pid_t pid, uint64_t time_ns);

/* Encodes the section, which is empty if no jitdump was noted. Content beyond LIMIT_RECORDED_JITDUMPS_BYTES in total is
 * left out with a warning. */
struct mmt_error *jitdumps_encode(struct recorder *recorder, struct buffer *buffer) MMT_MUST_CHECK;
