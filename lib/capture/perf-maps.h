/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The perf maps of JIT compilers (/tmp/perf-PID.map), copied while they can be had. The file is in the process's own
 * root, named after its innermost PID, and written by an untrusted program.
 */
#ifndef CAPTURE_PERF_MAPS_H
#define CAPTURE_PERF_MAPS_H

#include <stdint.h>

#include "base/error.h"
#include "capture/known-processes.h"

/* Hold the process's /tmp, which outlives it. Notes the length that the map has now. Again after exec: it may have
 * moved to another root. */
void perf_maps_watch(struct known_process *process, uint64_t now_ns);

/* Note the file's length when it has grown. */
void perf_maps_note_growth(struct known_process *process, uint64_t now_ns);

/*
 * Copy the file, when there is one, into process->perf_map.text. `refused_ret`: NULL, or a static text saying why a
 * file that exists was not taken. Errors: no memory.
 */
struct mmt_error *perf_maps_copy(struct known_process *process, uint64_t now_ns,
				 const char **refused_ret) MMT_MUST_CHECK;

#endif
