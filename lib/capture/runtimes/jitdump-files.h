/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The jitdumps of runtimes (jit-PID.dump, in any directory), found as perf finds them: the runtime maps the first page
 * of its file executable. Held open from then on, and copied when recording ends: each record in them has its time.
 */
#ifndef CAPTURE_RUNTIMES_JITDUMP_FILES_H
#define CAPTURE_RUNTIMES_JITDUMP_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/errors.h"
#include "base/vector.h"
#include "capture/modules/build-id-notes.h"

struct recorder;

struct noted_jitdump {
	pid_t pid, namespace_pid;
	uint32_t device_major, device_minor;
	uint64_t inode;
	int fd;		     /* -1: left out, or its program has ended */
	uint64_t in_pieces;  /* see metadata.h */
	uint64_t program_ns; /* when its program began: the last before it was mapped; 0: before the recording */
	uint64_t mapped_ns;  /* when it was last seen to be mapped */
	bool knows_program;  /* otherwise it may be of any of its process */
	bool ended;	     /* its program: another one has been executed */
	uint8_t *kept;	     /* what it had then; owned */
	size_t kept_bytes;
	bool cut;	  /* it had more */
	bool overwritten; /* by the next program, before what it had was kept */
};

struct jitdump_notes {
	VECTOR(struct noted_jitdump) items;
	uint64_t kept_bytes; /* of all of them: at most JITDUMPS_BYTES_MAX */
};

/* Accepts a zeroed value. */
void jitdumps_deinit(struct jitdump_notes *notes);

/* Whether an executable mapping, there at this time, is that of a jitdump; it is opened then. Only a file of the
 * process's own user, named after the process, not older than it, and the very one that is mapped is taken; another is
 * left out with a warning. */
struct mmt_error *jitdumps_note(struct recorder *recorder, const struct build_id_mapping *mapping,
				uint64_t time_ns) MMT_MUST_CHECK;

/* A program of the process began, which the recorder may be told of after what it has mapped. */
void jitdumps_note_begin(struct recorder *recorder, pid_t pid, uint64_t time_ns);

/* The process has executed another program, which may write to the same file: what the one before has written is kept,
 * unless the next may have written to it already. Keeps up with the rings. */
struct mmt_error *jitdumps_end_program(struct recorder *recorder, pid_t pid, uint64_t exec_ns) MMT_MUST_CHECK;

/* The number in the name of a jitdump; 0: the path is that of none. */
pid_t jitdumps_pid_of_name(const char *path);

/* The section; none when nothing was noted. What is beyond JITDUMPS_BYTES_MAX in all is cut off with a warning: what
 * ended programs had gives way. What was overwritten is told, too. */
struct mmt_error *jitdumps_encode(struct recorder *recorder, struct buffer *buffer) MMT_MUST_CHECK;

#endif
