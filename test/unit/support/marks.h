/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Check writes the place of every passed assertion to a file, for its message about a crash: millions of writes in
 * loops. Here each place is written once in a test, when it is first reached.
 */
#pragma once

#include <check.h>
#include <stdatomic.h>
#include <stdbool.h>

static inline void mark_once(const char *file, int line)
{
	static atomic_bool marked[4096]; /* by line; files are shorter */
	atomic_bool *mark = &marked[(unsigned int)line % 4096];

	if (atomic_load_explicit(mark, memory_order_relaxed))
		return;
	atomic_store_explicit(mark, true, memory_order_relaxed);
	_mark_point(file, line);
}

#define _mark_point(file, line) mark_once(file, line) /* in all macros of Check */
