/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Histogram of the lifetimes of a row's freed mappings, in steps of half an octave. Memory is bounded and an update is
 * cheap. */
#ifndef ANALYSIS_REPLAY_LIFETIME_HISTOGRAM_H
#define ANALYSIS_REPLAY_LIFETIME_HISTOGRAM_H

#include <stdint.h>

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

#endif
