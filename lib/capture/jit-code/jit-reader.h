/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the bytes of JIT code, needed to unwind code without frame pointers, while the process lives and when recording
 * ends, without stopping the process. Only resident pages are read: reading does not fault in any page.
 */
#ifndef CAPTURE_JIT_CODE_JIT_READER_H
#define CAPTURE_JIT_CODE_JIT_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "capture/jit-code/jit-pages.h"
#include "capture/memory/residency.h"
#include "capture/procfs/blocking-calls.h"
#include "trace/sections/jit-code.h"

struct recorder;

/* One program that a process runs or ran: its memory, and which of its pages have been read. */
struct jit_program {
	struct blocking_calls *calls;
	pid_t pid;
	uint64_t noted_ns; /* when its latest JIT code was mapped; 0: none is known, so its memory is not read */
	uint64_t until_ns; /* when the program ended, as in struct jit_code_program */
	uint64_t from_ns;  /* do not read its code before this time */
	bool requested;	   /* the user requested its process: its code is not evicted while it is alive */
	bool opened;	   /* opening its memory was tried */
	uint64_t opened_ns;
	bool descriptors_short; /* its memory could not be opened because too many files were open */
	bool denied;		/* ... because the recorder may not read it */
	bool ended;
	bool evicted;	  /* its stored code was evicted */
	int memory, maps; /* of its address space, valid even after an exec; -1: not open */
	struct residency_reader pagemap;
	struct jit_pages pages;
	uint64_t position; /* address up to which the last pass has read */
};

struct jit_reader {
	VECTOR(struct jit_program) programs;
	struct map program_of_pid;	   /* index of the living program by PID */
	struct jit_store store;		   /* the code of all programs */
	const struct jit_program *reading; /* the program that is being read; NULL between two passes */
	bool nothing_to_evict;		   /* no code can be evicted until another program ends */
	uint64_t read_ns, next_ns;	   /* when the last pass ended; when the next is due */
	int64_t spent_ns;		   /* CPU time used beyond the allowed share, up to reckoned_ns */
	uint64_t reckoned_ns;
	size_t turns[2]; /* index of the program that is read next, among the other and among the requested ones */
	bool others_first;
	bool full;		 /* a limit prevented a complete copy for a program that has ended */
	size_t unopened, denied; /* programs whose memory was never opened, and that are no longer in the list */
	bool out_of_time;	 /* at the end of the recording the time was not enough to read all code */
	struct jit_code code;	 /* for the recording, filled when it ends; offsets are in the bytes of `stored` */
	VECTOR(const struct jit_page *) stored;
};

/* Accepts a zeroed value. */
void jit_reader_deinit(struct jit_reader *reader);

/* The process made memory executable at this time, or still had it then; `path` is the kernel's name for it. `forked`:
 * a new child process inherits its parent's memory and discards most of it soon, so inherited memory is read later. */
struct mmt_error *jit_reader_note(struct recorder *recorder, pid_t pid, const char *path, uint64_t time_ns,
				  bool forked) MMT_MUST_CHECK;

/* Has the process JIT code? Changes nothing, so that the ring reader may call it. */
bool jit_reader_knows(const struct recorder *recorder, pid_t pid);

/* A new program began at this time in the process with this PID, by exec or by fork. Records and snapshots do not
 * arrive in order of time, so code noted for a later time belongs to the new program. */
struct mmt_error *jit_reader_end_program(struct recorder *recorder, pid_t pid, uint64_t time_ns) MMT_MUST_CHECK;

/* The process has ended, and its PID has not been reused yet. */
void jit_reader_end_process(struct recorder *recorder, pid_t pid);

/* A thread of the process has exited. The others may follow soon, so its code is read early. */
void jit_reader_note_exit(struct recorder *recorder, pid_t pid);

/*
 * Reads new JIT code if a pass is due. Uses a small share of the time, reads few bytes at once, and lets the ring
 * reader work in between. Errors: reading the rings failed, or out of memory.
 */
struct mmt_error *jit_reader_read(struct recorder *recorder) MMT_MUST_CHECK;

/* Reads the JIT code of living programs once more when recording ends. Afterwards jit_reader.code describes all stored
 * code. */
struct mmt_error *jit_reader_finish(struct recorder *recorder) MMT_MUST_CHECK;

/* Encodes the section as jit_code_encode() does. Call this after jit_reader_finish(). */
struct mmt_error *jit_reader_encode(struct recorder *recorder, struct buffer *buffer) MMT_MUST_CHECK;

#endif
