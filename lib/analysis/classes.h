/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What kind of memory a mapping is, as far as the mapping itself tells; what its stack tells is added by groups. Pure.
 */
#ifndef ANALYSIS_CLASSES_H
#define ANALYSIS_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

#include <mmtrace/report.h>

#include "model/space.h"

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

#endif
