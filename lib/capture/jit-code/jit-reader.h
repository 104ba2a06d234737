/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the bytes of JIT code, needed to unwind code without frame pointers, while the process lives and when recording
 * ends, without stopping the process. Only resident pages are read: reading does not fault in any page. */
#pragma once

#include "base/compression.h"
#include "capture/memory/residency.h"
#include "capture/procfs/clock.h"

/* A page that is being written is read in every pass, an unchanged page less and less often. A 64-bit checksum detects
 * changes. It misses one change in 2^64; the stored bytes are then out of date until the page changes again. */

#define JIT_PAGE_AGAIN_NS 50000000ULL	   /* when to read a page again after it has changed */
#define JIT_PAGE_AGAIN_NS_MAX 800000000ULL /* the interval doubles up to this while the page does not change */

struct jit_page {
	uint64_t address;
	uint64_t checksum; /* of the stored content */
	uint8_t *frame;	   /* its latest bytes, compressed; NULL: it has always been blank, or there is no room */
	size_t frame_bytes;
	uint64_t due_ns, again_ns;
};

enum code_missing { CODE_COMPLETE, CODE_DENIED, CODE_WITHOUT_DESCRIPTORS, CODE_MISSING_KINDS };

/* One program that a process runs or ran: its memory, and which of its pages have been read. */
struct jit_program {
	pid_t pid;
	uint64_t noted_ns;  /* when its latest JIT code was mapped; 0: none is known, so its memory is not read */
	uint64_t until_ns;  /* when the program ended, as in struct jit_code_program */
	uint64_t from_ns;   /* do not read its code before this time */
	uint64_t opened_ns; /* when opening its memory was tried; 0: not yet */
	enum code_missing missing; /* why its memory could not be opened */
	bool ended;
	int memory, maps; /* of its address space, valid even after an exec; -1: not open */
	struct residency_reader pagemap;
	VECTOR(struct jit_page) pages; /* in order of addition */
	struct map page_of_address;
	uint64_t position; /* address at which the next pass begins */
};

struct jit_reader {
	VECTOR(struct jit_program) programs;
	struct map program_of_pid; /* index of the living program by PID */
	struct compressor compressor;
	struct buffer scratch;
	size_t page_bytes;
	size_t stored_pages, stored_bytes; /* of all programs, and their compressed size */
	size_t stored_pages_max, stored_bytes_max;
	size_t turn;	  /* index of the program that is read next */
	uint64_t next_ns; /* when the next pass is due */
	struct time_budget budget;
	bool full;			    /* a limit prevented a complete copy */
	bool out_of_time;		    /* at the end of the recording the time was not enough to read all code */
	size_t missing[CODE_MISSING_KINDS]; /* programs that have ended */
};

void jit_reader_deinit(struct jit_reader *reader);

/* The process made memory executable at this time, or still had it then; `path` is the kernel's name for it. `forked`:
 * a new child process inherits its parent's memory and discards most of it soon, so inherited memory is read later. */
struct mmt_error *jit_reader_note(struct recorder *recorder, pid_t pid, const char *path, uint64_t time_ns,
				  bool forked) MMT_MUST_CHECK;

/* A new program began at this time in the process with this PID, by exec or by fork. Records and snapshots do not
 * arrive in order of time, so code noted for a later time belongs to the new program. */
struct mmt_error *jit_reader_end_program(struct recorder *recorder, pid_t pid, uint64_t time_ns) MMT_MUST_CHECK;

/* The process has ended, and its PID has not been reused yet. */
void jit_reader_end_process(struct recorder *recorder, pid_t pid);

/* Read new JIT code if a pass is due. Use a small share of the time, read few bytes at once, and let the ring
 * reader work in between. Errors: reading the rings failed, or out of memory. */
struct mmt_error *jit_reader_read(struct recorder *recorder) MMT_MUST_CHECK;

/* Read the JIT code of living programs once more when recording ends, and warn about code that is missing. */
struct mmt_error *jit_reader_finish(struct recorder *recorder) MMT_MUST_CHECK;

/* Encode the section; append nothing if there is no code. Call this after jit_reader_finish(), and only once. */
struct mmt_error *jit_reader_encode(struct recorder *recorder, struct buffer *buffer) MMT_MUST_CHECK;
