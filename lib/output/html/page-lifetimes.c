// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/html/page-lifetimes.h"

#include <stdlib.h>

#define LIFETIMES_MAX 20000 /* of about 12 bytes each; or twice the number of parts, if that is more */
#define STEPS_MIN 16
#define UNIT_MAX 65536

static int compare_lifetimes(const void *left, const void *right)
{
	const struct mmt_lifetime *a = left, *b = right;

	if (a->allocated_step != b->allocated_step)
		return a->allocated_step < b->allocated_step ? -1 : 1;
	if (a->released_step != b->released_step)
		return a->released_step < b->released_step ? -1 : 1;
	return 0;
}

/* Merge the part's lifetimes into longer steps; those with the same two steps become one. */
static bool merge(struct page_lifetimes *lifetimes, const struct mmt_part *part)
{
	struct mmt_lifetime *items;
	size_t kept = 0;

	lifetimes->current.count = 0;
	for (size_t i = 0; i < part->lifetime_count; i++) {
		struct mmt_lifetime lifetime = part->lifetimes[i];

		lifetime.allocated_step /= lifetimes->merged;
		if (lifetime.released_step != MMT_STILL_MAPPED)
			lifetime.released_step /= lifetimes->merged;
		if (!vector_push(&lifetimes->current, lifetime))
			return false;
	}
	items = lifetimes->current.items;
	if (!lifetimes->current.count)
		return true;
	qsort(items, lifetimes->current.count, sizeof(*items), compare_lifetimes);
	for (size_t i = 1; i < lifetimes->current.count; i++) {
		if (compare_lifetimes(&items[kept], &items[i]) != 0) {
			items[++kept] = items[i];
			continue;
		}
		items[kept].bytes += items[i].bytes;
		items[kept].count += items[i].count;
	}
	lifetimes->current.count = kept + 1;
	return true;
}

bool page_lifetimes_init(struct page_lifetimes *lifetimes, const struct mmt_report *report)
{
	size_t limit = 2 * report->part_count > LIFETIMES_MAX ? 2 * report->part_count : LIFETIMES_MAX;
	bool fits = false;

	*lifetimes = (struct page_lifetimes){.merged = 1, .unit = 1};
	while (!fits) {
		size_t count = 0;

		for (size_t i = 0; i < report->part_count; i++) {
			if (!merge(lifetimes, &report->parts[i]))
				return false;
			count += lifetimes->current.count;
		}
		fits = count <= limit || report->lifetime_steps / lifetimes->merged <= STEPS_MIN;
		if (!fits)
			lifetimes->merged *= 2;
	}
	lifetimes->step_ns = report->lifetime_step_ns * lifetimes->merged;
	lifetimes->step_count = (report->lifetime_steps + lifetimes->merged - 1) / lifetimes->merged;
	return true;
}

void page_lifetimes_deinit(struct page_lifetimes *lifetimes)
{
	vector_deinit(&lifetimes->current);
}

uint64_t page_lifetimes_unit(const struct mmt_report *report)
{
	uint64_t bits = UNIT_MAX;

	if (!report->part_count)
		return 1;
	for (size_t i = 0; i < report->part_count; i++) {
		for (size_t j = 0; j < report->parts[i].lifetime_count; j++)
			bits |= report->parts[i].lifetimes[j].bytes;
	}
	return bits & -bits;
}

bool page_lifetimes_put(struct page_lifetimes *lifetimes, const struct mmt_part *part, struct document *document)
{
	uint32_t step = 0;

	if (!merge(lifetimes, part))
		return false;
	for (size_t i = 0; i < lifetimes->current.count; i++) {
		const struct mmt_lifetime *lifetime = &lifetimes->current.items[i];
		bool mapped = lifetime->released_step == MMT_STILL_MAPPED;

		document_unsigned(document, NULL, lifetime->allocated_step - step);
		step = lifetime->allocated_step;
		document_signed(document, NULL, mapped ? -1 : (int64_t)(lifetime->released_step - step));
		document_unsigned(document, NULL, lifetime->bytes / lifetimes->unit);
		document_unsigned(document, NULL, lifetime->count);
	}
	return true;
}
