/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Heap censuses: the chunks of a process's malloc heap, which mmtrace-record(1) counts from outside. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <mmtrace/figures.h>

/* These enums have the numbers of the file. */
enum mmt_heap_time { MMT_HEAP_AT_START = 0, MMT_HEAP_AT_SNAPSHOT = 1, MMT_HEAP_AT_STOP = 2 };

enum mmt_heap_allocator {
	MMT_ALLOCATOR_NONE = 0, /* no heap was found */
	MMT_ALLOCATOR_GLIBC = 1,
	MMT_ALLOCATOR_OTHER = 2 /* `allocator_name` is in use; its heap is not walked */
};

enum mmt_heap_result {
	MMT_HEAP_NOT_WALKED = 0,
	MMT_HEAP_COMPLETE = 1,
	MMT_HEAP_SAMPLED = 2,	 /* the limit of processor time was reached: parts were not read */
	MMT_HEAP_DAMAGED = 3,	 /* no valid chunk header at `stopped_at`, nor later: corrupted */
	MMT_HEAP_UNREADABLE = 4, /* no permission */
	MMT_HEAP_ENDED = 5,	 /* the process ended meanwhile, or the reading took too long and was given up */
	MMT_HEAP_CHANGING = 6	 /* no valid chunk header at `stopped_at`, where the process made changes meanwhile */
};

enum mmt_heap_content {
	MMT_HEAP_UNKNOWN = 0,
	MMT_HEAP_TYPE = 1,   /* a C++ object: `name` is the mangled name of its type, such as "N3app7SessionE" */
	MMT_HEAP_TEXT = 2,   /* begins with printable characters */
	MMT_HEAP_POINTER = 3 /* begins with a pointer into module `name`, `offset` bytes after its first mapping */
};

/* In-use chunks with the same content. Sizes include the chunk's header, as malloc_usable_size(3) does not. */
struct mmt_heap_group {
	enum mmt_heap_content content;
	uint64_t smallest_bytes, largest_bytes; /* of a chunk; different if the group sums many small groups */
	uint64_t count, bytes;
	uint64_t after_free_count; /* of these, chunks that keep a free chunk below them from being given back */
	uint64_t after_free_bytes; /* the free chunks; of all groups: free_bytes */
	char *name;		   /* "" if unknown */
	uint64_t offset;
};

/* Bytes of chunks that were walked, unless it says otherwise. `in_use_low` to `in_use_high` is the range for the whole
 * heap, including what was not walked. Bytes of the heap are mapped_bytes = walked_bytes + what was not walked; walked
 * bytes are in use (at least in_use_low), in free_bytes, tcache_bytes, fastbin_bytes or top_bytes. */
struct mmt_heap_census {
	int32_t pid;
	uint64_t time_ns; /* recording's clock, when it began */
	enum mmt_heap_time when;
	enum mmt_heap_allocator allocator;
	enum mmt_heap_result result;
	char *allocator_name; /* "glibc 2.36", "jemalloc", ...; "" if unknown */
	uint64_t stopped_at;  /* address; 0: nowhere */
	uint64_t elapsed_ns, processor_ns;
	uint64_t arenas;
	MMT_CENSUS_FIGURES(MMT_MEMBER)
	struct mmt_heap_group *groups; /* the largest, by bytes; sums of the others follow */
	size_t group_count;
};
