/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Not inlined: the common way saves no registers for what is seldom done. */
#ifndef BASE_COLD_H
#define BASE_COLD_H

#define COLD __attribute__((noinline))

#endif
