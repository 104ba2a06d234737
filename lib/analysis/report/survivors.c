// SPDX-License-Identifier: LGPL-2.1-or-later
/* Whether the unfreed mappings of a row are a leak, from the times when they were mapped and how long others lived. */
#include "analysis/report/row-verdicts.h"

#define ADVISED_MAX_NS (24 * 3600 * 1000000000ull)

static uint64_t share_of(uint64_t count, double share)
{
	return (uint64_t)((double)count * share);
}

/* The freed mappings that lived for this long or longer. */
static uint64_t count_freed(const struct lifetime_histogram *freed, uint64_t age_ns)
{
	uint64_t count = 0;

	for (unsigned i = lifetime_bucket(age_ns); i < LIFETIME_BUCKETS; i++)
		count += freed->counts[i];
	return count;
}

/* The time in which mappings could be made that are old now. */
static uint64_t time_of_old(const struct survivors *survivors, const struct survivors_window *window)
{
	uint64_t length = survivors_length(window),
		 time = window->to_ns > window->from_ns ? window->to_ns - window->from_ns : 0;
	uint64_t old = length > survivors->outlived_ns ? length - survivors->outlived_ns : 0;

	return old < time ? old : time;
}

void survivors_begin(struct survivors *survivors, const struct survivors_window *window,
		     const struct lifetime_histogram *freed, uint64_t count)
{
	uint64_t longer = 0, tolerated;
	unsigned bucket = LIFETIME_BUCKETS;

	*survivors = (struct survivors){.freed = freed};
	for (unsigned i = 0; i < LIFETIME_BUCKETS; i++)
		survivors->freed_count += freed->counts[i];
	survivors->long_lived_freed = count_freed(freed, share_of(survivors_length(window), VERDICT_LONG));
	tolerated = share_of(survivors->freed_count, VERDICT_NEGLIGIBLE);
	tolerated = larger_of(tolerated, share_of(count, VERDICT_FEW));
	while (bucket && longer + freed->counts[bucket - 1] <= tolerated)
		longer += freed->counts[--bucket];
	survivors->outlived_ns = bucket ? lifetime_bucket_end_ns(bucket - 1) : 0;
}

void survivors_add(struct survivors *survivors, const struct survivors_window *window, uint64_t allocated_ns)
{
	uint64_t length = survivors_length(window),
		 age = window->end_ns > allocated_ns ? window->end_ns - allocated_ns : 0;
	uint64_t since = allocated_ns > window->from_ns ? allocated_ns - window->from_ns : 0, time;
	bool early = since < length / 2;
	unsigned part;

	survivors->count++;
	survivors->early_count += early;
	survivors->long_lived_count += age >= share_of(length, VERDICT_LONG);
	if (age <= survivors->outlived_ns)
		return;
	survivors->old_count++;
	survivors->old_early_count += early;
	time = time_of_old(survivors, window);
	part = since < time ? (unsigned)((double)since * SURVIVOR_PARTS / (double)time) : SURVIVOR_PARTS - 1;
	survivors->old_parts[part < SURVIVOR_PARTS ? part : SURVIVOR_PARTS - 1]++;
}

/* A leak: since it began, old survivors came throughout, not fewer in the end, and hardly any of that age was freed. */
static bool is_leak(const struct survivors *survivors, const struct survivors_window *window)
{
	uint64_t least = share_of(survivors->old_count, VERDICT_SMALL), thirds[3] = {0}, long_lived = 0;
	double part_ns = (double)time_of_old(survivors, window) / SURVIVOR_PARTS;
	uint64_t earlier = 0, tolerated = share_of(survivors->old_count, VERDICT_FEW), lasted_ns;
	unsigned first = 0; /* the part in which a leak would have begun: hardly any old survivor is older */

	while (first < SURVIVOR_PARTS - 1 && earlier + survivors->old_parts[first] <= tolerated)
		earlier += survivors->old_parts[first++];
	lasted_ns = survivors_length(window) - (uint64_t)(part_ns * first);
	if (survivors->old_count < VERDICT_COUNT || lasted_ns < VERDICT_SPAN_NS ||
	    lasted_ns < share_of(survivors_length(window), VERDICT_LONG) ||
	    survivors->outlived_ns > share_of(lasted_ns, VERDICT_LONG))
		return false;
	for (unsigned part = 0; part < SURVIVOR_PARTS; part++) {
		if (part >= first)
			thirds[(part - first) * 3 / (SURVIVOR_PARTS - first)] += survivors->old_parts[part];
		if (part_ns * (part + 1) <= (double)(survivors_length(window) - share_of(lasted_ns, VERDICT_LONG)))
			long_lived += survivors->old_parts[part];
	}
	for (unsigned i = 0; i < 3; i++) {
		if (!thirds[i] || thirds[i] < least)
			return false;
	}
	return thirds[2] >= share_of(thirds[0], VERDICT_HALF) &&
	       count_freed(survivors->freed, share_of(lasted_ns, VERDICT_LONG)) <= share_of(long_lived, VERDICT_LARGE);
}

enum mmt_row_verdict survivors_judge(const struct survivors *survivors, const struct survivors_window *window)
{
	bool outlived = survivors->outlived_ns <= share_of(survivors_length(window), VERDICT_LONG);
	uint64_t old_count = survivors->old_count;
	uint64_t few = share_of(survivors->count, VERDICT_FEW);
	uint64_t long_lived = larger_of(survivors->long_lived_freed, few);

	if (!survivors->count)
		return MMT_ROW_UNKNOWN;
	if (survivors_length(window) < VERDICT_SPAN_NS)
		return MMT_ROW_UNDECIDED;
	if (is_leak(survivors, window))
		return MMT_ROW_LEAK;
	/* A cache: many survivors are old, and hardly any of these was mapped after the first half. */
	if (outlived && old_count && old_count >= share_of(survivors->count, VERDICT_SMALL) &&
	    old_count - survivors->old_early_count <= share_of(old_count, VERDICT_SMALL))
		return MMT_ROW_CACHE;
	/* Traffic: mappings of the first half are gone, and hardly any survivor is older than freed mappings became. If
	 * lifetimes vary, survivors are mostly long-lived: a few old ones do not count if many have been freed. */
	if (survivors->freed_count && survivors->early_count <= few &&
	    (old_count <= few || (share_of(survivors->freed_count, VERDICT_SMALL) >= survivors->count &&
				  survivors->long_lived_count <= long_lived)))
		return MMT_ROW_TRAFFIC;
	return MMT_ROW_UNDECIDED;
}

uint64_t survivors_advise(const struct survivors *survivors, const struct survivors_window *window)
{
	uint64_t length = survivors_length(window), advised = length * 2;
	uint64_t count =
	    survivors->outlived_ns <= share_of(length, VERDICT_LONG) ? survivors->old_count : survivors->count;

	advised = larger_of(advised, VERDICT_SPAN_NS);
	/* The lifetime is not known if the longest bucket is reached. */
	if (survivors->outlived_ns < share_of(ADVISED_MAX_NS, VERDICT_LONG) &&
	    (uint64_t)((double)survivors->outlived_ns / VERDICT_LONG) > advised)
		advised = (uint64_t)((double)survivors->outlived_ns / VERDICT_LONG);
	if (count && count < VERDICT_COUNT && length / count * VERDICT_COUNT > advised)
		advised = length / count * VERDICT_COUNT;
	return advised < ADVISED_MAX_NS ? advised : ADVISED_MAX_NS;
}
