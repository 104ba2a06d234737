/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of generated code: what the recording holds of perf maps, by process, address and time. */
#ifndef ANALYSIS_JIT_NAMES_H
#define ANALYSIS_JIT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/reader.h"

struct jit_names;

/* Of one process; borrows the metadata. */
struct mmt_error *jit_names_create(const struct reader_metadata *metadata, int32_t pid,
				   struct jit_names **names_ret) MMT_MUST_CHECK;
void jit_names_destroy(struct jit_names *names);

/* What is at `address` at this time: a number, 0: nothing that is known. As code_timeline_find(). */
uint32_t jit_names_find(struct jit_names *names, uint64_t address, uint64_t time_ns);

/* A number that differs when some address may have another answer than at the last time. */
uint64_t jit_names_epoch(struct jit_names *names, uint64_t time_ns);

/* Name of a number other than 0, as the runtime wrote it. Borrowed. */
const char *jit_names_name(const struct jit_names *names, uint32_t number);

bool jit_names_has_perf_map(const struct jit_names *names);

/* Lines of the perf map that are more than can be held. */
size_t jit_names_dropped(const struct jit_names *names);

#endif
