/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The class of a mapping (heap, file, thread stack, JIT code ...), from its attributes and path. Pure. A report refines
 * it by stack. */
#pragma once

#include <mmtrace/report.h>

#include "model/space/space.h"

/* `path`: the name of interval->attributes.path, "" for none. */
enum mmt_class classes_of_interval(const struct space_interval *interval, const char *path);

/* Whether its pages are huge pages of hugetlbfs, which RSS does not include. */
bool classes_is_hugetlb(const struct space_attributes *attributes, const char *path);

/* The ledger's `kind`: a class and, for files, the number of the path. */
uint32_t classes_kind(enum mmt_class memory_class, const struct space_interval *interval);

enum mmt_class classes_kind_class(uint32_t kind);

uint32_t classes_kind_path(uint32_t kind); /* 0: no file */

/* Whether the memory is anonymous, PROT_NONE and as large as a managed heap's range; the stack decides whether it is
 * one. */
bool classes_kind_is_range(uint32_t kind);
