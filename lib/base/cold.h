/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* COLD keeps a function out of line, so that the hot path does not save registers for it. */
#ifndef BASE_COLD_H
#define BASE_COLD_H

#define COLD __attribute__((noinline))

#endif
