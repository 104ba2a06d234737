/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a mapping is, in more detail than its class: the pattern of its stack (known behaviour of allocators and
 * runtimes whose memory grows and stays without being a leak), arenas of malloc, heaps of runtimes. Pure. */
#pragma once

#include "analysis/replay/memory-classes.h"
#include "analysis/resolver/known-runtimes.h"

/* The class, knowing the pattern of the stack that mapped it. */
enum mmt_class classes_with_pattern(enum mmt_class memory_class, enum mmt_pattern pattern);

/* Whether the interval is accessible memory above inaccessible pages, which libraries put below a thread's stack. */
bool classes_is_above_guard(const struct space *space, const struct space_interval *interval);

/* The pattern of a stack (innermost frame first) that mapped or committed memory of this class. */
enum mmt_pattern patterns_find(const struct mmt_frame *const *frames, size_t frame_count, enum mmt_class memory_class);

/* The pattern of a file or shared mapping whose stack has none. `path`: the name of the mapping, "" for none. */
enum mmt_pattern patterns_of_shared(enum mmt_class memory_class, const char *path);

/* Managed heaps that are recognised by their addresses or names. */
enum gc_heap { GC_HEAP_NONE, GC_HEAP_GO, GC_HEAP_JAVA, GC_HEAP_DOTNET, GC_HEAP_NODE };

/* Where a process can have such a heap, or arenas of glibc's malloc. */
struct heap_finder {
	const struct space *space;
	const struct runtime *runtime; /* that runs there; NULL: none that is known */
	uint64_t start, end;	       /* addresses that it has reserved for its heap; equal: not known */
	bool has_arenas;
	bool other_malloc; /* an allocator other than that of glibc is in use */
};

/* Whether the space has memory where the heap of a Go program usually is. Other programs may have theirs there. */
bool classes_may_have_go_heap(const struct space *space);

/* Takes time for each mapping of the space. `glibc`: its malloc may have arenas there. */
struct heap_finder heap_finder_create(const struct space *space, const struct runtime *runtime, bool glibc);

/* Whether the interval is the accessible start of an arena: of 64 MiB of anonymous memory, at a multiple of that, whose
 * rest is reserved. Some arenas are full: they have no rest. */
bool heap_finder_is_arena(const struct heap_finder *finder, const struct space_interval *interval,
			  enum mmt_class memory_class);

/* Where an arena begins in the interval; its end: nowhere. Other memory may lie right below, in one interval with it.
 */
uint64_t heap_finder_find_arena(const struct heap_finder *finder, const struct space_interval *interval,
				enum mmt_class memory_class);

enum gc_heap heap_finder_ask(const struct heap_finder *finder, const struct space_interval *interval,
			     enum mmt_class memory_class, const char *path);

const char *gc_heap_name(enum gc_heap heap); /* for people; NULL for none */
