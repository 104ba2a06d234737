/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Walks the chunks of a glibc heap (2.31 and later, 64-bit). Pure: the caller reads the memory. What it reads may be
 * hostile, and change meanwhile, so every step is checked, and the work is limited by the caller's clock.
 */
#ifndef CAPTURE_HEAP_HEAP_WALK_H
#define CAPTURE_HEAP_HEAP_WALK_H

#include <mmtrace/heap.h>

#include "base/errors.h"

/* A line of /proc/PID/maps. */
struct heap_mapping {
	uint64_t start, end;
	bool writable, executable;
	char *path;			   /* owned; "" for anonymous memory */
	const struct heap_mapping *module; /* its first mapping, for a file and the .bss behind it; NULL: no module */
};

struct heap_source {
	void *context;
	const struct heap_mapping *mappings; /* ascending */
	size_t mapping_count;
	/* Reads what is in memory of these bytes, up to the first page that is not. Returns the number of bytes. */
	size_t (*read)(void *context, uint64_t address, void *data, size_t size);
	/* How many bytes of this range are in memory? */
	uint64_t (*resident_bytes)(void *context, uint64_t start, uint64_t end);
	/* Where the first page begins that is in memory, at or above `start`; `end`: there is none below that. */
	uint64_t (*find_resident)(void *context, uint64_t start, uint64_t end);
	/* Is the time for the walk over? */
	bool (*is_over)(void *context);
	/* Waits until each thread of the process that wants to run has probably run; NULL: they do not run. */
	void (*wait)(void *context);
};

/* The mapping that contains the address; NULL: none. */
const struct heap_mapping *heap_mapping_find(const struct heap_source *source, uint64_t address);

/* Is this the file of glibc? */
bool heap_is_glibc(const char *path);

/* Fills in the census, whose allocator must be glibc. The caller calls heap_census_deinit(), after an error, too. */
struct mmt_error *heap_walk(const struct heap_source *source, struct mmt_heap_census *census) MMT_MUST_CHECK;

#endif
