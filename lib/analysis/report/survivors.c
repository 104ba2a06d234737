// SPDX-License-Identifier: LGPL-2.1-or-later
/* Whether the unfreed mappings of a row are a leak, from the times when they were mapped and how long others lived. */
#include "analysis/report/row-verdicts.h"

#define ADVISED_MAX_NS (24 * 3600 * 1000000000ull)
#define OUTLIVED_PERCENT 99
#define TOLERATED_PERCENT 5 /* of the survivors: freed mappings that lived longer, and mappings made before a leak */
/* What lasts for a third of the window, or of the time since a leak began, is long: freed mappings must have lived for
 * less, and a leak must have lasted for more. Start-up or a burst is shorter. */
#define LONG_SHARE 3
#define TRAFFIC_RATIO 10 /* freed mappings per survivor that show lifetimes well even if they vary */
#define THIRD_PERCENT 12 /* of the old survivors of a leak: the minimum in each third of the time */
#define SLOWING_SHARE 2	 /* of what the first third has: with less in the last third, the growth slows down */
#define FREED_SHARE 4	 /* for each long-lived mapping that was freed, this many are left */
#define OLD_PERCENT                                                                                                    \
	10 /* of the survivors of a cache, and at most as many of these are late; traffic has less than half */

static uint64_t percent_of(uint64_t count, unsigned percent)
{
	return count / 100 * percent + count % 100 * percent / 100;
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
	survivors->long_lived_freed = count_freed(freed, survivors_length(window) / LONG_SHARE);
	tolerated = percent_of(survivors->freed_count, 100 - OUTLIVED_PERCENT);
	if (percent_of(count, TOLERATED_PERCENT) > tolerated)
		tolerated = percent_of(count, TOLERATED_PERCENT);
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
	survivors->long_lived_count += age >= length / LONG_SHARE;
	if (age <= survivors->outlived_ns)
		return;
	survivors->old_count++;
	survivors->old_early_count += early;
	time = time_of_old(survivors, window);
	part = since < time ? (unsigned)((double)since * SURVIVOR_PARTS / (double)time) : SURVIVOR_PARTS - 1;
	survivors->old_parts[part < SURVIVOR_PARTS ? part : SURVIVOR_PARTS - 1]++;
}

/* The part in which a leak would have begun: hardly any old survivor is older. */
static unsigned find_beginning(const struct survivors *survivors)
{
	uint64_t earlier = 0, tolerated = percent_of(survivors->old_count, TOLERATED_PERCENT);
	unsigned part = 0;

	while (part < SURVIVOR_PARTS - 1 && earlier + survivors->old_parts[part] <= tolerated)
		earlier += survivors->old_parts[part++];
	return part;
}

/* A leak: since it began, old survivors were mapped throughout and do not become fewer, and mappings of their age are
 * hardly ever freed. */
static bool is_leak(const struct survivors *survivors, const struct survivors_window *window)
{
	uint64_t least = percent_of(survivors->old_count, THIRD_PERCENT), thirds[3] = {0}, long_lived = 0;
	double part_ns = (double)time_of_old(survivors, window) / SURVIVOR_PARTS;
	unsigned first = find_beginning(survivors);
	uint64_t lasted_ns = survivors_length(window) - (uint64_t)(part_ns * first);

	if (survivors->old_count < SURVIVORS_COUNT_MIN || lasted_ns < SURVIVORS_SHORTEST_NS ||
	    lasted_ns < survivors_length(window) / LONG_SHARE || survivors->outlived_ns > lasted_ns / LONG_SHARE)
		return false;
	for (unsigned part = 0; part < SURVIVOR_PARTS; part++) {
		if (part >= first)
			thirds[(part - first) * 3 / (SURVIVOR_PARTS - first)] += survivors->old_parts[part];
		if (part_ns * (part + 1) <= (double)(survivors_length(window) - lasted_ns / LONG_SHARE))
			long_lived += survivors->old_parts[part];
	}
	for (unsigned i = 0; i < 3; i++) {
		if (!thirds[i] || thirds[i] < least)
			return false;
	}
	return thirds[2] >= thirds[0] / SLOWING_SHARE &&
	       count_freed(survivors->freed, lasted_ns / LONG_SHARE) <= long_lived / FREED_SHARE;
}

/* A cache: many survivors are old, and hardly any of these was mapped after the first half. */
static bool is_cache(const struct survivors *survivors)
{
	return survivors->old_count && survivors->old_count >= percent_of(survivors->count, OLD_PERCENT) &&
	       survivors->old_count - survivors->old_early_count <= percent_of(survivors->old_count, OLD_PERCENT);
}

/* Traffic: mappings of the first half are gone, and hardly any survivor is older than freed mappings became. If
 * lifetimes vary, survivors are mostly long-lived; some old ones then do not count if many mappings have been freed. */
static bool is_traffic(const struct survivors *survivors)
{
	uint64_t few = percent_of(survivors->count, OLD_PERCENT / 2);
	uint64_t long_lived = survivors->long_lived_freed > few ? survivors->long_lived_freed : few;

	if (!survivors->freed_count || survivors->early_count > few)
		return false;
	return survivors->old_count <= few || (survivors->freed_count / TRAFFIC_RATIO >= survivors->count &&
					       survivors->long_lived_count <= long_lived);
}

enum mmt_lifetime_verdict survivors_judge(const struct survivors *survivors, const struct survivors_window *window)
{
	bool outlived = survivors->outlived_ns <= survivors_length(window) / LONG_SHARE;

	if (!survivors->count)
		return MMT_LIFETIME_UNKNOWN;
	if (survivors_length(window) < SURVIVORS_SHORTEST_NS)
		return MMT_LIFETIME_TOO_SHORT;
	if (is_leak(survivors, window))
		return MMT_LIFETIME_LEAK;
	if (outlived && is_cache(survivors))
		return MMT_LIFETIME_CACHE;
	return is_traffic(survivors) ? MMT_LIFETIME_TRAFFIC : MMT_LIFETIME_TOO_SHORT;
}

uint64_t survivors_advise(const struct survivors *survivors, const struct survivors_window *window)
{
	uint64_t length = survivors_length(window), advised = length * 2;
	uint64_t count = survivors->outlived_ns <= length / LONG_SHARE ? survivors->old_count : survivors->count;

	if (advised < SURVIVORS_SHORTEST_NS)
		advised = SURVIVORS_SHORTEST_NS;
	/* The lifetime is not known if the longest bucket is reached. */
	if (survivors->outlived_ns < ADVISED_MAX_NS / LONG_SHARE && survivors->outlived_ns * LONG_SHARE > advised)
		advised = survivors->outlived_ns * LONG_SHARE;
	if (count && count < SURVIVORS_COUNT_MIN && length / count * SURVIVORS_COUNT_MIN > advised)
		advised = length / count * SURVIVORS_COUNT_MIN;
	return advised < ADVISED_MAX_NS ? advised : ADVISED_MAX_NS;
}
