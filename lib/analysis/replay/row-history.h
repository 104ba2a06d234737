/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the ledger keeps of rows over time: steps, and the lifetimes of mappings. */
#pragma once

#include "base/map.h"
#include "base/vector.h"

/* Unfreed bytes of rows over time, in equal steps; steps without a change take no memory. */

struct row_step {
	uint32_t step;
	uint64_t change; /* modulo 2^64: a decrease is a large number */
};

struct row_steps {
	VECTOR(struct row_step) items; /* ascending, one entry per step */
};

/* By row number. An all-zero value is empty. */
struct steps_of_rows {
	VECTOR(struct row_steps) rows;
};

void steps_of_rows_deinit(struct steps_of_rows *steps);

/* False: out of memory. */
bool steps_of_rows_add(struct steps_of_rows *steps, uint32_t row, uint32_t step, uint64_t bytes);

/* The bytes at the start of steps 1, 2 ...; the last value is the final state. */
void steps_of_rows_get(const struct steps_of_rows *steps, uint32_t row, uint64_t *bytes_ret, size_t count);

/* Lifetimes of mappings: for each account and thread a sparse matrix of bytes, by the step of the allocation and the
 * step of the release. Steps start short; their length doubles when the recording becomes longer than all of them, or
 * when the matrices become too large. So memory use does not grow with the length of the recording. Sums of bytes are
 * exact; times are exact to one step. */

#define LIFETIME_STEPS_MAX (UINT16_MAX - 1)
#define LIFETIME_STEPS_MIN 16		 /* keep at least this many, however large the matrices are */
#define LIFETIME_NEVER_NS UINT64_MAX	 /* in place of the time of a release: still mapped */
#define LIFETIME_STILL_MAPPED UINT16_MAX /* in place of the step of a release */

struct lifetime_cell {
	uint32_t part; /* place in `parts` */
	uint16_t allocated_step, released_step;
	uint64_t bytes;
	uint64_t count; /* mappings whose last bytes these are */
};

/* What an account has at the end of the window, in bytes. `before`: in memory that was mapped before the window. */
enum held_kind {
	HELD_RESIDENT,
	HELD_RESIDENT_BEFORE,
	HELD_SWAPPED, /* of both */
	HELD_PAGES,   /* number of the kinds above, which come from readings of pages */
	HELD_COMMITTED = HELD_PAGES,
	HELD_COMMITTED_BEFORE,
	HELD_RESERVED,
	HELD_KINDS,
};

struct held_memory {
	uint64_t bytes[HELD_KINDS];
	bool resident_known;
};

/* What one thread mapped of one account; without swapped bytes. */
struct lifetime_part {
	uint32_t account, thread;
	struct held_memory held; /* row-figures.c adds it up */
};

/* An all-zero value keeps nothing. */
struct lifetimes {
	uint32_t steps_max; /* 0: nothing is kept */
	uint64_t from_ns, step_ns;
	uint64_t latest_ns; /* of all times so far */
	VECTOR(struct lifetime_part) parts;
	VECTOR(struct lifetime_cell) cells;
	struct map part_numbers; /* account << 32 | thread -> place in `parts` */
	struct map cells_by_key; /* part, allocated_step and released_step -> place in `cells` */
};

/* `steps_max`: from LIFETIME_STEPS_MIN to LIFETIME_STEPS_MAX, or 0. */
void lifetimes_init(struct lifetimes *lifetimes, uint32_t steps_max, uint64_t from_ns);

void lifetimes_deinit(struct lifetimes *lifetimes);

/* Valid until the next call. NULL: out of memory. */
struct lifetime_part *lifetimes_part(struct lifetimes *lifetimes, uint32_t account, uint32_t thread);

/* Add `bytes` of a mapping. `count`: mappings whose last bytes these are. False: out of memory. */
bool lifetimes_add(struct lifetimes *lifetimes, uint32_t account, uint32_t thread, uint64_t allocated_ns,
		   uint64_t released_ns, uint64_t bytes, uint64_t count);

/* Extend the steps to this time. Call it before the first lifetimes_add() if the end is known. False: out of memory. */
bool lifetimes_reach(struct lifetimes *lifetimes, uint64_t time_ns);

/* The number of steps so far. */
uint32_t lifetimes_steps(const struct lifetimes *lifetimes);

/* Changes of bytes over time, as many series as needed. The buckets of all of them start short; their length doubles
 * when the recording becomes longer than all buckets. */
struct trends {
	unsigned buckets;	  /* of each series */
	VECTOR(uint64_t) changes; /* by series and time since from_ns; modulo 2^64: a decrease is a large number */
	uint64_t from_ns, bucket_ns;
};

void trends_init(struct trends *trends, unsigned buckets, uint64_t from_ns);

/* Return the number of a new series, from 1; 0: out of memory. */
uint32_t trends_open(struct trends *trends);

void trends_add(struct trends *trends, uint32_t number, uint64_t time_ns, uint64_t bytes);

/* Add the bytes of a series (modulo 2^64: they may be negative) at `count` equal steps between from_ns and `end_ns` to
 * `points`, the last at the end. A step ends at a multiple of `bucket_ns`, so that they can be added to those of trends
 * with such buckets. Number 0 adds nothing. */
void trends_sum(const struct trends *trends, uint32_t number, uint64_t end_ns, uint64_t bucket_ns, uint64_t *points,
		unsigned count);

/* Lifetimes of an account's freed mappings, in steps of half an octave: bounded memory and cheap updates. */

#define LIFETIME_BUCKETS 64
#define LIFETIME_UNIT_BITS 13 /* the first bucket ends at two units, 2^14 ns; the last but one at nearly 10 hours */

struct lifetime_histogram {
	uint32_t counts[LIFETIME_BUCKETS]; /* saturate */
};

static inline unsigned lifetime_bucket(uint64_t lifetime_ns)
{
	uint64_t units = lifetime_ns >> LIFETIME_UNIT_BITS;
	unsigned octave, bucket;

	if (units < 2)
		return 0;
	octave = 63 - (unsigned)__builtin_clzll(units);
	bucket = 2 * octave - 1 + (units >> (octave - 1) & 1);
	return bucket < LIFETIME_BUCKETS ? bucket : LIFETIME_BUCKETS - 1;
}

static inline void lifetime_histogram_add(struct lifetime_histogram *histogram, uint64_t lifetime_ns)
{
	uint32_t *count = &histogram->counts[lifetime_bucket(lifetime_ns)];

	*count += *count != UINT32_MAX;
}

static inline void lifetime_histogram_join(struct lifetime_histogram *histogram, const struct lifetime_histogram *other)
{
	for (unsigned i = 0; i < LIFETIME_BUCKETS; i++) {
		uint64_t sum = (uint64_t)histogram->counts[i] + other->counts[i];

		histogram->counts[i] = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
	}
}

/* Lifetimes in the bucket are shorter than this. */
static inline uint64_t lifetime_bucket_end_ns(unsigned bucket)
{
	unsigned octave = (bucket + 1) / 2;

	if (!bucket)
		return 2ull << LIFETIME_UNIT_BITS;
	if (bucket == LIFETIME_BUCKETS - 1)
		return UINT64_MAX;
	return (bucket % 2 ? 3ull : 4ull) << (octave - 1) << LIFETIME_UNIT_BITS;
}
