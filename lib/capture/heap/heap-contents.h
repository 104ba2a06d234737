/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the chunks of a heap contain, judged by their first word, and how many of each kind and size there are. */
#ifndef CAPTURE_HEAP_HEAP_CONTENTS_H
#define CAPTURE_HEAP_HEAP_CONTENTS_H

#include "base/map.h"
#include "base/vector.h"
#include "capture/heap/heap-walk.h"

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

/* Counts a chunk in use that begins with these words; `below`: the free bytes directly below it. */
struct mmt_error *heap_contents_add(struct heap_contents *contents, uint64_t bytes, const uint64_t words[2],
				    uint64_t below) MMT_MUST_CHECK;

/* Moves the largest groups into the census, and sums of the others. */
struct mmt_error *heap_contents_finish(struct heap_contents *contents, struct mmt_heap_census *census) MMT_MUST_CHECK;

#endif
