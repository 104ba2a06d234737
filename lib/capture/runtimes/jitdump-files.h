/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The jitdumps of runtimes (jit-PID.dump, in any directory), found in the same way as perf finds them: the runtime maps
 * the first page of the file executable. The file is kept open and copied when recording ends; each record in it has a
 * timestamp.
 */
#ifndef CAPTURE_RUNTIMES_JITDUMP_FILES_H
#define CAPTURE_RUNTIMES_JITDUMP_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/errors.h"
#include "base/vector.h"
#include "capture/modules/build-id-notes.h"

struct recorder;

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

/* The number in the file name of a jitdump; 0: the path is not a jitdump's. */
pid_t jitdumps_pid_of_name(const char *path);

/* Encodes the section; empty if no jitdump was noted. Content beyond JITDUMPS_BYTES_MAX in total is cut off with a
 * warning, that of ended programs first. Also warns about overwritten jitdumps. */
struct mmt_error *jitdumps_encode(struct recorder *recorder, struct buffer *buffer) MMT_MUST_CHECK;

#endif
