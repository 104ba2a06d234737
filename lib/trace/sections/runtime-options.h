/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* FEATURE_MMTRACE_OPTIONS: options with which the programs of recorded processes were started, as far as they are in
 * the table of runtime-options.c. Command lines and environments contain passwords, so nothing else of them is
 * recorded, and of these options only numbers. Collect only those that a report uses. To add one, add its number here,
 * and a row there. */
#pragma once

#include "trace/sections/section-codec.h"

/* Numbers in the file. */
enum runtime_option {
	OPTIONS_READ = 0, /* not an option: those of this program that are missing were not given */
	OPTION_JAVA_FRAME_POINTERS = 1,
	OPTION_JAVA_COMPILED = 2,
	OPTION_MONO_FRAME_POINTERS = 8,
	OPTION_MALLOC_ARENA_MAX = 18,
	OPTION_DOTNET_PERF_MAP = 19,
	OPTION_NODE_PERF_MAP = 20,
	OPTION_NODE_INTERPRETED_FRAMES = 21,
	OPTION_PYTHON_PERF_MAP = 22
};

struct option_value {
	int32_t pid;
	uint32_t option;   /* enum runtime_option, or one that this version does not know */
	uint64_t began_ns; /* start of the program: its fork or exec; 0: before the recording */
	uint64_t value;
};

struct runtime_options {
	VECTOR(struct option_value) values; /* ascending by pid, began_ns and option, if decoded */
};

extern const struct section_kind section_options; /* for section_read() */

void runtime_options_deinit(void *value);

/* Adds the known options in the arguments and variables of a program, each of which ends with a zero byte. Of several
 * values of an option, the one that the runtime uses is added. `variables` NULL: these are not known, and so neither
 * is which options were not given. Call this once for each program. False: out of memory. */
bool runtime_options_scan(struct runtime_options *options, int32_t pid, uint64_t began_ns, const char *arguments,
			  size_t arguments_size, const char *variables, size_t variables_size) MMT_MUST_CHECK;

/* Compressed with zstd inside. Sorts the values, and drops further values of an option. */
struct mmt_error *runtime_options_encode(struct runtime_options *options, struct buffer *buffer) MMT_MUST_CHECK;

/* The value of an option of decoded options; NULL: not given, or not known. */
const uint64_t *runtime_options_find(const struct runtime_options *options, int32_t pid, uint64_t began_ns,
				     enum runtime_option option);
