/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Censuses of the malloc heaps of recorded processes: when recording starts, at intervals that grow, and when it stops.
 * A helper process without rights reads a heap, so that a hostile one can neither hold up nor crash the recorder. The
 * target is not stopped. Pages that are not in memory are not read: that would bring them in. */
#pragma once

#include "base/helper-process.h"
#include "trace/sections/sections.h"

struct recorder;

/* Zero-initialise it. */
struct heap_jobs {
	struct heap_censuses done;
	size_t done_bytes;
	VECTOR(pid_t) waiting; /* processes of this round whose heaps have not been read yet */
	enum mmt_heap_time when;
	bool began;
	uint64_t next_ns;	 /* when the next round begins */
	uint64_t round_spent_ns; /* processor time of this one */
	uint64_t spent_ns;	 /* ... and of all */
	struct helper *helper;	 /* reads a heap */
	pid_t pid;		 /* of this process */
	enum mmt_heap_time helper_when;
	uint64_t since_ns;
	struct buffer answer;
};

void heap_jobs_deinit(struct heap_jobs *jobs);

/* Begin a round if one is due, and receive what the helper has read. Never wait. */
struct mmt_error *heap_census_continue(struct recorder *recorder) MMT_MUST_CHECK;

/* Begin the last round. */
struct mmt_error *heap_census_stop(struct recorder *recorder) MMT_MUST_CHECK;

/* Wait for the last round, and encode all censuses; nothing if there are none. */
struct mmt_error *heap_census_encode(struct recorder *recorder, struct buffer *buffer) MMT_MUST_CHECK;

/* The census of a process, as of now, by this process. `mem`: its open /proc/PID/mem. */
struct mmt_error *heap_census_take(pid_t pid, int mem, struct mmt_heap_census *census) MMT_MUST_CHECK;

/* Walks the chunks of a glibc heap (2.31 and later, 64-bit). Pure: the caller reads the memory. What it reads may be
 * hostile, and change meanwhile, so every step is checked, and the work is limited by the caller's clock. */

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
