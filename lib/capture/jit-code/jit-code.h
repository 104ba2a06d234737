/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bytes of JIT code, for stacks of code that keeps no frame pointers: read while its process lives and when
 * recording ends, without stopping the process. Only pages that are in memory are read: no page is made for it.
 */
#ifndef CAPTURE_JIT_CODE_JIT_CODE_H
#define CAPTURE_JIT_CODE_JIT_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "capture/jit-code/code-pages.h"
#include "capture/jit-code/code-reader.h"

struct recorder;

struct jit_code {
	VECTOR(struct generating_program) programs;
	struct map program_of_pid;		  /* of those that have not ended */
	struct code_store store;		  /* of all their pages */
	const struct generating_program *reading; /* during a pass */
	bool nothing_gives_way;			  /* until another program ends */
	uint64_t read_ns, next_ns;		  /* when pages were read last, and are to be again */
	int64_t spent_ns;			  /* on it, beyond the share of the time that had passed at ... */
	uint64_t reckoned_ns;
	size_t turns[2]; /* whose pages come first then: of the others, and of what was asked for */
	bool others_first;
	bool full, cut;	  /* a program that has ended was not copied as a whole, because of the limits */
	size_t unopened;  /* programs that are not among them any more */
	bool out_of_time; /* when recording ended */
};

/* Accepts a zeroed value. */
void jit_code_deinit(struct jit_code *generated);

/* What was mapped then; of a process that has just been forked: what it has of its parent, and will mostly leave behind
 * soon. */
struct generated_mapping {
	pid_t pid;
	uint64_t start, end, time_ns;
	uint32_t protection;
	const char *path;
	bool forked;
};

struct mmt_error *jit_code_note(struct recorder *recorder, const struct generated_mapping *mapping) MMT_MUST_CHECK;

/* Is executable memory of the process watched in this range? Changes nothing. */
bool jit_code_overlaps(const struct recorder *recorder, pid_t pid, uint64_t start, uint64_t end);

/* Another program, or another process of this number, began then. What has been noted of a later time is its own: the
 * rings, and snapshots, do not come in the order of time. */
struct mmt_error *jit_code_end_program(struct recorder *recorder, pid_t pid, uint64_t time_ns) MMT_MUST_CHECK;

/* The process has ended; its number is not given again yet. */
void jit_code_end_process(struct recorder *recorder, pid_t pid);

/* A thread of it has: perhaps the others end, too. */
void jit_code_note_exit(struct recorder *recorder, pid_t pid);

/* All its mappings are about to be noted. */
void jit_code_begin_snapshot(struct recorder *recorder, pid_t pid);

/*
 * Now and then, while recording: what has been generated since. Takes a small part of the time, few bytes at once.
 * Keeps up with the rings. Errors: those of reading them, and no memory.
 */
struct mmt_error *jit_code_read(struct recorder *recorder) MMT_MUST_CHECK;

/* When recording ends: what the programs that live have now; then recorder->code tells of all that was ever read. */
struct mmt_error *jit_code_finish(struct recorder *recorder) MMT_MUST_CHECK;

/* As code_copies_encode(), after the above. */
struct mmt_error *jit_code_encode(struct recorder *recorder, struct buffer *buffer) MMT_MUST_CHECK;

#endif
