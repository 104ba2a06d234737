/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Walks the chunks of a glibc heap (2.31 and later, 64-bit). Pure: the caller reads the memory. What it reads may be
 * hostile, and change meanwhile, so every step is checked, and the work is limited by the caller's clock.
 */
#pragma once

#include <mmtrace/heap.h>

#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"

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

/* Fill in the census, whose allocator must be glibc. The caller calls heap_census_deinit(), after an error, too. */
struct mmt_error *heap_walk(const struct heap_source *source, struct mmt_heap_census *census) MMT_MUST_CHECK;

/* What the chunks of a heap contain, judged by their first word, and how many of each kind and size there are:
 * heap-contents.c. */

/* What chunks begin with. */
struct heap_content {
	enum mmt_heap_content content;
	char *name; /* owned; NULL: none */
	uint64_t offset;
};

#define HEAP_RECENT_GROUPS 64

struct heap_recent {
	uint64_t key, group;
};

struct heap_contents {
	const struct heap_source *source;
	uint64_t lowest, highest; /* addresses of modules */
	struct map known;	  /* first word -> place in `found` */
	VECTOR(struct heap_content) found;
	struct map places;			       /* size and place in `found` -> place in `groups` */
	VECTOR(struct mmt_heap_group) groups;	       /* `offset`: place in `found` */
	struct heap_recent recent[HEAP_RECENT_GROUPS]; /* of `places` */
};

struct mmt_error *heap_contents_init(struct heap_contents *contents, const struct heap_source *source) MMT_MUST_CHECK;
void heap_contents_deinit(struct heap_contents *contents);

/* Count a chunk in use that begins with these words; `below`: the free bytes directly below it. */
struct mmt_error *heap_contents_add(struct heap_contents *contents, uint64_t bytes, const uint64_t words[2],
				    uint64_t below) MMT_MUST_CHECK;

/* Move the largest groups into the census, and sums of the others. */
struct mmt_error *heap_contents_finish(struct heap_contents *contents, struct mmt_heap_census *census) MMT_MUST_CHECK;
