/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The class of a mapping (heap, file, thread stack, JIT code ...), from its attributes and path. Pure. rows.c
 * refines it by stack.
 */
#ifndef ANALYSIS_REPORT_CLASSES_H
#define ANALYSIS_REPORT_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

#include <mmtrace/report.h>

#include "model/space/space.h"

/* `path`: the name of interval->attributes.path, "" for none. */
enum mmt_class classes_of_interval(const struct space_interval *interval, const char *path);

/* The class, knowing the pattern of the stack that mapped it. */
enum mmt_class classes_with_pattern(enum mmt_class memory_class, enum mmt_pattern pattern);

/* Place of the word of mmt_class_name() in enum mmt_class; MMT_CLASS_KINDS: no such word. */
enum mmt_class classes_find(const char *word);

/* The kinds of the ledger: a class, and for files which one (number of the path). */
uint32_t classes_kind(enum mmt_class memory_class, const struct space_interval *interval);

enum mmt_class classes_kind_class(uint32_t kind);

uint32_t classes_kind_path(uint32_t kind); /* 0: no file */

/* Anonymous, mapped without access rights and as large as the range of a managed heap: its stack tells whether it is
 * one. */
bool classes_kind_is_range(uint32_t kind);

/* Which known habit of an allocator or a runtime a stack belongs to: such memory grows and stays without being a leak.
 * Pure. */

/* Of a stack, innermost frame first, that mapped or made accessible memory of this class (classes_of_interval()). */
enum mmt_pattern patterns_find(const struct mmt_frame *const *frames, size_t frame_count, enum mmt_class memory_class);

/* What a mapping of a file or shared memory is, where its stack does not show a pattern. `path`: as above. */
enum mmt_pattern patterns_of_shared(enum mmt_class memory_class, const char *path);

/* Whatever frames follow these, it finds the same. `origin`: 0 for a stack's first frames; how far they have been
 * looked at, so that asking again with more of them looks at these alone. */
bool patterns_are_decided(const struct mmt_frame *const *frames, size_t frame_count, size_t *origin);

#endif
