/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which known habit of an allocator or a runtime a stack belongs to: such memory grows and stays without being a leak.
 * Pure. */
#ifndef ANALYSIS_PATTERNS_H
#define ANALYSIS_PATTERNS_H

#include <mmtrace/report.h>

/* Of a stack, innermost frame first, that mapped or made accessible memory of this class (classes_of_interval()). */
enum mmt_pattern patterns_find(const struct mmt_frame *const *frames, size_t frame_count, enum mmt_class memory_class);

/* Whatever frames follow these, it finds the same. `origin`: 0 for a stack's first frames; how far they have been
 * looked at, so that asking again with more of them looks at these alone. */
bool patterns_are_decided(const struct mmt_frame *const *frames, size_t frame_count, size_t *origin);

#endif
