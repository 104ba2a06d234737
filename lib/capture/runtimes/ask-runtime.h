/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --ask-runtime: have a runtime that runs without a perf map write one, and leave things as they were afterwards. .NET
 * is asked when it is first seen and asked to stop when recording ends; Java, whose map shows one moment, is asked when
 * recording ends. Nothing here waits, except for the end. Whatever fails is a warning.
 */
#ifndef CAPTURE_RUNTIMES_ASK_RUNTIME_H
#define CAPTURE_RUNTIMES_ASK_RUNTIME_H

#include <stdint.h>
#include <sys/types.h>

#include "capture/process/process-table.h"
#include "capture/runtimes/runtime-helper.h"

struct recorder;

/* Processes without a perf map: how many, and one of them. */
struct unasked {
	uint64_t count;
	pid_t first;
};

void unasked_count(struct unasked *unasked, pid_t pid);

/* A file that is mapped executable tells which runtime this is; memory that is no file, that code is generated. */
void ask_runtime_note_image(struct traced_process *process, const char *path);

/* The process executes another program. */
void ask_runtime_forget(struct traced_process *process);

/* Go on with asking those that can be asked by now; often. Only with the option, as below. */
void ask_runtimes(struct recorder *recorder);

/* Recording has ended: ask those that are asked late, tell the others to stop. Before the maps are copied. Says which
 * processes were not asked. */
void ask_runtimes_at_end(struct recorder *recorder);

/* The map of a process has been copied: remove it if it was made for us. */
void ask_runtime_clean_up(struct recorder *recorder, struct traced_process *process);

/* The same for the program before an exec; what the one that runs now has written stays. */
void ask_runtime_end_program(struct recorder *recorder, struct traced_process *process);

/* A process has ended, and its map has been copied. */
void ask_runtime_ended(struct recorder *recorder, struct traced_process *process);

/*
 * A runtime that can be asked for a perf map. Each is defined in a file of its own and listed in ask-runtime.c; nothing
 * else knows one from the other.
 */
struct askable_runtime {
	const char *name;   /* in messages */
	const char *module; /* file name of the module that every process of the runtime maps */
	bool at_end;	    /* its map shows one moment: it is asked when recording ends */
	helper_ask *begin;  /* ask for a perf map */
	helper_ask *end;    /* ask it to stop writing; NULL: it writes the map once */
	/* Before the process is asked, and when the question is given up; NULL: nothing to do. */
	void (*prepare)(struct traced_process *process);
	void (*give_up)(const struct traced_process *process);
};

extern const struct askable_runtime runtime_dotnet, runtime_java;

#endif
