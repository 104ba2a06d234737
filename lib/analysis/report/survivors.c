// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/survivors.h"

#define SHORTEST_NS 2000000000u /* as for the verdict about RSS */
#define LEAK_COUNT_MIN 8	/* fewer survivors show no pattern */
#define ADVISED_MAX_NS (24 * 3600 * 1000000000ull)
#define OUTLIVED_PERCENT 99
#define TOLERATED_PERCENT 5 /* of the survivors: this many freed mappings may have lived longer */
#define WINDOW_SHARE 3	    /* freed mappings must have lived for less than this share of the window */
#define LONG_LIVED_SHARE 3
#define TRAFFIC_RATIO 10 /* freed mappings per survivor that show lifetimes well even if they vary */
#define THIRD_PERCENT 12 /* of the old survivors: the minimum in each third of the time */
#define LAST_THIRD_PERCENT 16
#define FREED_SHARE 4	/* for each long-lived mapping that was freed, this many are left */
#define LATE_PERCENT 10 /* of the old survivors of a cache */
#define OLD_PERCENT 10	/* of the survivors of a cache; traffic has fewer than half of that */

static uint64_t length_of(const struct survivors_window *window)
{
	return window->end_ns > window->from_ns ? window->end_ns - window->from_ns : 0;
}

static uint64_t percent_of(uint64_t count, unsigned percent)
{
	return count / 100 * percent + count % 100 * percent / 100;
}

void survivors_begin(struct survivors *survivors, const struct survivors_window *window,
		     const struct lifetime_histogram *freed, uint64_t count)
{
	uint64_t longer = 0, tolerated;
	unsigned bucket = LIFETIME_BUCKETS, third = lifetime_bucket(length_of(window) / LONG_LIVED_SHARE);

	*survivors = (struct survivors){0};
	for (unsigned i = 0; i < LIFETIME_BUCKETS; i++) {
		survivors->freed_count += freed->counts[i];
		if (i >= third)
			survivors->long_lived_freed += freed->counts[i];
	}
	tolerated = percent_of(survivors->freed_count, 100 - OUTLIVED_PERCENT);
	if (percent_of(count, TOLERATED_PERCENT) > tolerated)
		tolerated = percent_of(count, TOLERATED_PERCENT);
	while (bucket && longer + freed->counts[bucket - 1] <= tolerated)
		longer += freed->counts[--bucket];
	survivors->outlived_ns = bucket ? lifetime_bucket_end_ns(bucket - 1) : 0;
}

void survivors_add(struct survivors *survivors, const struct survivors_window *window, uint64_t allocated_ns)
{
	uint64_t length = length_of(window), age = window->end_ns > allocated_ns ? window->end_ns - allocated_ns : 0;
	uint64_t since = allocated_ns > window->from_ns ? allocated_ns - window->from_ns : 0;
	uint64_t time = window->to_ns > window->from_ns ? window->to_ns - window->from_ns : 0;
	bool early = since < length / 2;
	unsigned third;

	survivors->count++;
	survivors->early_count += early;
	survivors->long_lived_count += age >= length / LONG_LIVED_SHARE;
	if (age <= survivors->outlived_ns)
		return;
	survivors->old_count++;
	survivors->old_early_count += early;
	if (length - survivors->outlived_ns < time)
		time = length - survivors->outlived_ns;
	third = time ? (unsigned)((double)since * 3 / (double)time) : 0;
	survivors->old_thirds[third < 3 ? third : 2]++;
}

/* A leak: old survivors were mapped throughout the window and do not become fewer; mappings of their age are hardly
 * ever freed. */
static bool is_leak(const struct survivors *survivors)
{
	uint64_t least = percent_of(survivors->old_count, THIRD_PERCENT);

	if (survivors->old_count < LEAK_COUNT_MIN)
		return false;
	for (unsigned i = 0; i < 3; i++) {
		if (!survivors->old_thirds[i] || survivors->old_thirds[i] < least)
			return false;
	}
	return survivors->old_thirds[2] >= percent_of(survivors->old_count, LAST_THIRD_PERCENT) &&
	       survivors->long_lived_freed <= survivors->long_lived_count / FREED_SHARE;
}

/* A cache: many survivors are old, and hardly any of these was mapped after the first half. */
static bool is_cache(const struct survivors *survivors)
{
	return survivors->old_count && survivors->old_count >= percent_of(survivors->count, OLD_PERCENT) &&
	       survivors->old_count - survivors->old_early_count <= percent_of(survivors->old_count, LATE_PERCENT);
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
	bool outlived = survivors->outlived_ns <= length_of(window) / WINDOW_SHARE;

	if (!survivors->count)
		return MMT_LIFETIME_UNKNOWN;
	if (length_of(window) < SHORTEST_NS)
		return MMT_LIFETIME_TOO_SHORT;
	if (outlived && is_leak(survivors))
		return MMT_LIFETIME_LEAK;
	if (outlived && is_cache(survivors))
		return MMT_LIFETIME_CACHE;
	return is_traffic(survivors) ? MMT_LIFETIME_TRAFFIC : MMT_LIFETIME_TOO_SHORT;
}

uint64_t survivors_advise(const struct survivors *survivors, const struct survivors_window *window)
{
	uint64_t length = length_of(window), advised = length * 2;
	uint64_t count = survivors->outlived_ns <= length / WINDOW_SHARE ? survivors->old_count : survivors->count;

	if (advised < SHORTEST_NS)
		advised = SHORTEST_NS;
	/* The lifetime is not known if the longest bucket is reached. */
	if (survivors->outlived_ns < ADVISED_MAX_NS / WINDOW_SHARE && survivors->outlived_ns * WINDOW_SHARE > advised)
		advised = survivors->outlived_ns * WINDOW_SHARE;
	if (count && count < LEAK_COUNT_MIN && length / count * LEAK_COUNT_MIN > advised)
		advised = length / count * LEAK_COUNT_MIN;
	return advised < ADVISED_MAX_NS ? advised : ADVISED_MAX_NS;
}
