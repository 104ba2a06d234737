/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The jitdumps of runtimes (jit-PID.dump, in any directory), found as perf finds them: the runtime maps the first page
 * of its file executable. Held open from then on, and copied when recording ends: each record in them has its time.
 */
#ifndef CAPTURE_JITDUMPS_H
#define CAPTURE_JITDUMPS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/vector.h"
#include "capture/build-id-notes.h"

struct recorder;

struct noted_jitdump {
	pid_t pid, namespace_pid;
	uint64_t inode;
	int fd;		    /* -1: left out */
	uint64_t in_pieces; /* see name-pieces.h */
};

struct jitdump_notes {
	VECTOR(struct noted_jitdump) items;
};

/* Accepts a zeroed value. */
void jitdumps_deinit(struct jitdump_notes *notes);

/* Whether an executable mapping is that of a jitdump; it is opened then. Only a file of the process's own user, named
 * after the process, not older than it, and the very one that is mapped is taken; another is left out with a warning.
 */
struct mmt_error *jitdumps_note(struct recorder *recorder, const struct build_id_mapping *mapping) MMT_MUST_CHECK;

/* The number in the name of a jitdump; 0: the path is that of none. */
pid_t jitdumps_pid_of_name(const char *path);

/* The section; none when nothing was noted. What is beyond JITDUMPS_BYTES_MAX in all is cut off with a warning. */
struct mmt_error *jitdumps_encode(struct recorder *recorder, struct buffer *buffer) MMT_MUST_CHECK;

#endif
