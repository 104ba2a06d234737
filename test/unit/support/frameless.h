/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shapes of stacks in functions compiled without frame pointers, in programs that otherwise have them. */
#pragma once

#include <stddef.h>

/* Calls itself `depth` times, then `at_bottom`. */
__attribute__((noinline)) int frameless_recurse(int depth, void (*at_bottom)(void));

/* Calls `at_bottom` with this many bytes of alloca() and an aligned variable on the stack. */
__attribute__((noinline)) size_t frameless_allocate(size_t bytes, void (*at_bottom)(void));
