/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which language runtime a process runs, recognised by the files that it maps, and how that runtime names its code. To
 * add a runtime that writes a perf map or a jitdump, add a row to the tables of known-runtimes.c: what it is, and its
 * files. A new format of names needs a parser in lib/code/jit, a copier in lib/capture/runtimes, a section in
 * lib/trace/sections, and a source in lib/analysis/resolver/jit-names.c. Hints about its memory are in hints.c. */
#pragma once

#include "trace/read/reader.h"

struct runtime {
	const char *name;	    /* for machine-readable output: "dotnet" */
	const char *label;	    /* for people: ".NET" */
	const char *advice;	    /* how to get a perf map from it, as the end of a sentence: "start it with ..." */
	const char *frame_pointers; /* option that makes its code keep frame pointers; NULL: it always does, or has no
				       such option */
	enum runtime_option frame_pointers_option; /* its number */
	bool in_environment;			   /* that option is an environment variable */
	/* The options in `advice` and `interpreted_advice`, and their numbers; NULL: they are not recorded. */
	const char *perf_map, *interpreted_frames;
	enum runtime_option perf_map_option, interpreted_frames_option;
	const char *interpreter; /* function in whose frame its code runs; NULL: its code has frames of its own */
	const char *
	    complete_stacks; /* how to unwind past its code, or why that is impossible; NULL: stacks do not end there */
	/* Frames of its interpreter, which do not show the program's functions. `interpreted`: prefix of the function
	 * names of such frames, "" for any function in its files; NULL: not known. `interpreted_advice`: how to get
	 * names for these frames. `interpreted_named`: prefix of these names in the perf map; "" for any name. */
	const char *interpreted, *interpreted_named, *interpreted_advice;
	const char *loop; /* prefix of the name of the function that interprets code; NULL: none, or not known */
};

/* The runtime that a file belongs to; NULL: none of the known ones. */
const struct runtime *runtimes_of_file(const char *path);

/* Whether the file belongs to an interpreter written in C; loop_ret: struct runtime's `loop`. */
bool runtimes_interpret_in(const char *path, const char **loop_ret);

/* Whether every function in the module (a file name) is a runtime's own. */
bool runtimes_own_library(const char *module);

/* Whether the module is a program whose main function starts a runtime; the rest of its code is the runtime's own. */
bool runtimes_start_in(const char *module);

/* Whether a program was started with an option: 1 or 0; -1: not known. `text`: the option itself, which the command
 * line of a recorder that started the program contains. */
int runtimes_started_with(const struct reader_metadata *metadata, int32_t pid, uint64_t program_ns,
			  enum runtime_option option, const char *text);

/* The option with which a program of the runtime was started although a report advises it, for names of its JIT code,
 * or of interpreted functions; NULL: none, or not known. */
const char *runtimes_names_option(const struct runtime *runtime, bool interpreted,
				  const struct reader_metadata *metadata, int32_t pid, uint64_t program_ns);

/* The runtime with this `name`; NULL: unknown. */
const struct runtime *runtimes_find(const char *name);
