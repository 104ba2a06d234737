/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The origin of a stack, which stands for it in one line: the innermost frame of the program itself. Pure. */
#pragma once

#include <mmtrace/report.h>

/* Whether the name begins as the rule does; with '$' at the end of the rule: whether it is the rest of the rule. */
bool origin_matches(const char *name, const char *rule);

/* malloc and its kind in any module, such as an allocator that is linked statically or that replaces it. May be NULL.
 */
bool origin_is_allocator(const char *function);

bool origin_is_loader(const struct mmt_frame *frame);

/* Of the C library (its threads too) or the loader; in static programs the wrappers of the memory calls count as well.
 */
bool origin_is_c_library(const struct mmt_frame *frame);

/* Place of the innermost frame outside these and the libraries of languages, such as the containers of C++, which are
 * compiled into the program; frame_count: there is none. */
size_t origin_find(const struct mmt_frame *const *frames, size_t frame_count);

/* The same for struct mmt_row and --by function: if that frame has no name, and is in a runtime or in JIT code, the
 * innermost named function of the program; if it is in an interpreter, the function that is interpreted. */
size_t origin_of_stack(const struct mmt_frame *const *frames, size_t frame_count);

/* JIT or interpreted code whose function is not known. */
bool origin_is_unnamed_code(const struct mmt_frame *frame);

/* The innermost function of the program, where the origin is the runtime's, or unnamed code; frame_count: neither. */
size_t origin_of_runtime(const struct mmt_row *row);
