/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --ask-runtime: makes a runtime that runs without a perf map write one, and restores the previous state afterwards.
 * .NET is asked when it is first seen and asked to stop when recording ends. Java, whose map is a snapshot, is asked
 * when recording ends. Only the end of the recording waits for answers. Failures are warnings.
 */
#ifndef CAPTURE_RUNTIMES_ASK_RUNTIME_H
#define CAPTURE_RUNTIMES_ASK_RUNTIME_H

#include <stdint.h>
#include <sys/types.h>

#include "capture/process/process-table.h"
#include "capture/runtimes/runtime-helper.h"

struct recorder;

/* Number of processes without a perf map, and the PID of one of them. */
struct unasked {
	uint64_t count;
	pid_t first;
};

void unasked_count(struct unasked *unasked, pid_t pid);

/* An executable mapping: a file shows which runtime the process runs; anonymous memory shows that it generates code. */
void ask_runtime_note_image(struct traced_process *process, const char *path);

/* The process has called exec. */
void ask_runtime_forget(struct traced_process *process);

/* Call this often: asks the processes that can be asked by now. Does nothing without --ask-runtime; so do the functions
 * below. */
void ask_runtimes(struct recorder *recorder);

/* Recording has ended: ask the runtimes whose map is a snapshot, and ask the others to stop. Call this before the maps
 * are copied. Warns about processes that were not asked. */
void ask_runtimes_at_end(struct recorder *recorder);

/* The map of a process has been copied: remove it if it was created for mmtrace. */
void ask_runtime_clean_up(struct recorder *recorder, struct traced_process *process);

/* The same for the program before an exec; a map written by the current program is kept. */
void ask_runtime_end_program(struct recorder *recorder, struct traced_process *process);

/* A process has ended, and its map has been copied. */
void ask_runtime_ended(struct recorder *recorder, struct traced_process *process);

/*
 * A runtime that can be asked for a perf map. Each is defined in a file of its own and listed in ask-runtime.c; other
 * code does not distinguish between them.
 */
struct askable_runtime {
	const char *name;   /* in messages */
	const char *module; /* file name of the module that every process of the runtime maps */
	bool at_end;	    /* its map is a snapshot: it is asked when recording ends */
	helper_ask *begin;  /* ask for a perf map */
	helper_ask *end;    /* ask it to stop writing; NULL: it writes the map once */
	/* Called before the process is asked and when the attempt ends; NULL: nothing to do. */
	void (*prepare)(struct traced_process *process);
	void (*give_up)(const struct traced_process *process);
};

extern const struct askable_runtime runtime_dotnet, runtime_java;

#endif
