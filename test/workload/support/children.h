/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Children of a workload that stay until it ends: they report when they are done, and die with their parent. */
#pragma once

#include <sys/types.h>

/* In the parent, before the first child. */
void children_open(void);

/* In a child with its own address space: end with the parent. */
void children_begin(void);

/* In a child: report to the parent, and stay until it ends. */
void children_report_and_stay(void) __attribute__((noreturn));

/* In the parent: the next child that has reported; ends the program if none does. */
pid_t children_await(void);

/* For a program that a child executes: the descriptor to report through, instead of children_open(). */
int children_descriptor(void);
void children_open_as_child(int descriptor);

/* In the parent: end the children that have reported. */
void children_end(void);
