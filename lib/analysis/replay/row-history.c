// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/ledger.h"

#include <mmtrace/report.h>

#include "base/limits.h"

#define ALL_BUCKETS_NS 64000000 /* before the first doubling */

void trends_init(struct trends *trends, unsigned buckets, uint64_t from_ns)
{
	*trends = (struct trends){.buckets = buckets, .from_ns = from_ns, .bucket_ns = ALL_BUCKETS_NS / buckets};
}

uint32_t trends_open(struct trends *trends)
{
	size_t size = trends->buckets * sizeof(uint64_t);

	if (!vector_reserve_bytes((void **)&trends->changes.items, &trends->changes.capacity,
				  trends->changes.count + trends->buckets, sizeof(uint64_t)))
		return 0;
	memset(trends->changes.items + trends->changes.count, 0, size);
	trends->changes.count += trends->buckets;
	return (uint32_t)(trends->changes.count / trends->buckets);
}

static COLD void double_buckets(struct trends *trends)
{
	unsigned half = trends->buckets / 2;

	for (size_t i = 0; i < trends->changes.count; i += trends->buckets) {
		uint64_t *change = &trends->changes.items[i];

		for (unsigned bucket = 0; bucket < half; bucket++)
			change[bucket] = change[2 * bucket] + change[2 * bucket + 1];
		memset(change + half, 0, half * sizeof(*change));
	}
	trends->bucket_ns *= 2;
}

void trends_add(struct trends *trends, uint32_t number, uint64_t time_ns, uint64_t bytes)
{
	uint64_t elapsed_ns = time_ns > trends->from_ns ? time_ns - trends->from_ns : 0, bucket;

	while ((bucket = elapsed_ns / trends->bucket_ns) >= trends->buckets)
		double_buckets(trends);
	trends->changes.items[(size_t)(number - 1) * trends->buckets + bucket] += bytes;
}

void trends_sum(const struct trends *trends, uint32_t number, uint64_t end_ns, uint64_t bucket_ns, uint64_t *points,
		unsigned count)
{
	uint64_t duration = end_ns > trends->from_ns ? end_ns - trends->from_ns : 0, bytes = 0;
	const uint64_t *change = number ? &trends->changes.items[(size_t)(number - 1) * trends->buckets] : NULL;
	unsigned bucket = 0;

	for (unsigned point = 0; change && point < count; point++) {
		uint64_t until = point + 1 == count ? UINT64_MAX : duration / count * (point + 1);

		if (until <= duration)
			until = (until + bucket_ns - 1) / bucket_ns * bucket_ns;
		while (bucket < trends->buckets && bucket * trends->bucket_ns < until)
			bytes += change[bucket++];
		points[point] += bytes;
	}
}

void steps_of_rows_deinit(struct steps_of_rows *steps)
{
	vector_deinit_each(&steps->rows, row, vector_deinit(&row->items));
}

bool steps_of_rows_add(struct steps_of_rows *steps, uint32_t row, uint32_t step, uint64_t bytes)
{
	struct row_steps *changes;
	size_t place;

	if (!vector_extend(&steps->rows, (size_t)row + 1))
		return false;
	changes = &steps->rows.items[row];
	/* Changes are in time order, but for the records of damaged rounds. */
	for (place = changes->items.count; place && changes->items.items[place - 1].step > step;)
		place--;
	if (place && changes->items.items[place - 1].step == step) {
		changes->items.items[place - 1].change += bytes;
		return true;
	}
	if (!vector_append(&changes->items))
		return false;
	for (size_t i = changes->items.count - 1; i > place; i--)
		changes->items.items[i] = changes->items.items[i - 1];
	changes->items.items[place] = (struct row_step){.step = step, .change = bytes};
	return true;
}

void steps_of_rows_get(const struct steps_of_rows *steps, uint32_t row, uint64_t *bytes_ret, size_t count)
{
	const struct row_steps *changes = row < steps->rows.count ? &steps->rows.items[row] : NULL;
	uint64_t bytes = 0;
	size_t next = 0;

	for (size_t i = 0; i < count; i++) {
		while (changes && next < changes->items.count &&
		       (changes->items.items[next].step <= i || i + 1 == count))
			bytes += changes->items.items[next++].change;
		/* Callers compute with differences of double precision: 2^63 would be too large for these. */
		bytes_ret[i] = (int64_t)bytes > 0 ? smaller_of(bytes, 1ULL << 62) : 0;
	}
}

#define FIRST_STEP_NS 1000

void lifetimes_init(struct lifetimes *lifetimes, uint32_t steps_max, uint64_t from_ns)
{
	*lifetimes = (struct lifetimes){.steps_max = steps_max, .from_ns = from_ns, .step_ns = FIRST_STEP_NS};
}

void lifetimes_deinit(struct lifetimes *lifetimes)
{
	vector_deinit(&lifetimes->parts);
	vector_deinit(&lifetimes->cells);
	map_deinit(&lifetimes->part_numbers);
	map_deinit(&lifetimes->cells_by_key);
}

struct lifetime_part *lifetimes_part(struct lifetimes *lifetimes, uint32_t account, uint32_t thread)
{
	uint64_t key = (uint64_t)account << 32 | thread;
	const uint64_t *place = map_get(&lifetimes->part_numbers, key);
	const struct lifetime_part part = {.account = account, .thread = thread};

	if (place)
		return &lifetimes->parts.items[*place];
	if (!map_put(&lifetimes->part_numbers, key, lifetimes->parts.count) || !vector_push(&lifetimes->parts, part))
		return NULL;
	return &lifetimes->parts.items[lifetimes->parts.count - 1];
}

static bool add_cell(struct lifetimes *lifetimes, const struct lifetime_cell *cell)
{
	uint64_t key = (uint64_t)cell->part << 32 | (uint32_t)cell->allocated_step << 16 | cell->released_step;
	const uint64_t *place = map_get(&lifetimes->cells_by_key, key);
	struct lifetime_cell *sum;

	if (!place)
		return vector_push(&lifetimes->cells, *cell) &&
		       map_put(&lifetimes->cells_by_key, key, lifetimes->cells.count - 1);
	sum = &lifetimes->cells.items[*place];
	sum->bytes = saturating_add(sum->bytes, cell->bytes, MMT_BYTES_MAX);
	sum->count += cell->count;
	return true;
}

static bool double_steps(struct lifetimes *lifetimes)
{
	size_t count = lifetimes->cells.count;

	lifetimes->step_ns = lifetimes->step_ns > UINT64_MAX / 2 ? UINT64_MAX : lifetimes->step_ns * 2;
	map_deinit(&lifetimes->cells_by_key);
	lifetimes->cells.count = 0;
	/* Merged cells never overwrite cells that are still to be read: there are at most as many. */
	for (size_t i = 0; i < count; i++) {
		struct lifetime_cell cell = lifetimes->cells.items[i];

		cell.allocated_step /= 2;
		if (cell.released_step != LIFETIME_STILL_MAPPED)
			cell.released_step /= 2;
		if (!add_cell(lifetimes, &cell))
			return false;
	}
	return true;
}

static uint64_t step_of(const struct lifetimes *lifetimes, uint64_t time_ns)
{
	return time_ns > lifetimes->from_ns ? (time_ns - lifetimes->from_ns) / lifetimes->step_ns : 0;
}

bool lifetimes_reach(struct lifetimes *lifetimes, uint64_t time_ns)
{
	size_t cells_max = LIMIT_LIFETIME_CELLS;
	uint64_t steps;

	lifetimes->latest_ns = larger_of(lifetimes->latest_ns, time_ns);
	while ((steps = step_of(lifetimes, lifetimes->latest_ns)) >= lifetimes->steps_max ||
	       (lifetimes->cells.count >= cells_max && steps / 2 >= LIFETIME_STEPS_MIN)) {
		if (!double_steps(lifetimes))
			return false;
		/* Each doubling goes through all cells: make room for many more. */
		cells_max = LIMIT_LIFETIME_CELLS / 2;
	}
	return true;
}

uint32_t lifetimes_steps(const struct lifetimes *lifetimes)
{
	return (uint32_t)step_of(lifetimes, lifetimes->latest_ns) + 1;
}

bool lifetimes_add(struct lifetimes *lifetimes, uint32_t account, uint32_t thread, uint64_t allocated_ns,
		   uint64_t released_ns, uint64_t bytes, uint64_t count)
{
	bool released = released_ns != LIFETIME_NEVER_NS;
	uint64_t end_ns = released && released_ns > allocated_ns ? released_ns : allocated_ns;
	const struct lifetime_part *part = lifetimes_part(lifetimes, account, thread);
	struct lifetime_cell cell = {.bytes = bytes, .count = count};

	if (!part || !lifetimes_reach(lifetimes, end_ns))
		return false;
	cell.part = (uint32_t)(part - lifetimes->parts.items);
	cell.allocated_step = (uint16_t)step_of(lifetimes, allocated_ns);
	cell.released_step = released ? (uint16_t)step_of(lifetimes, end_ns) : LIFETIME_STILL_MAPPED;
	return add_cell(lifetimes, &cell);
}

/* The rows of the ledger */

static COLD void add_step(struct ledger *ledger, struct steps_of_rows *steps, uint32_t row, uint64_t bytes)
{
	uint64_t start_ns = ledger->options.from_ns, now_ns = ledger->now_ns;
	uint64_t step = now_ns > start_ns ? (now_ns - start_ns) / ledger->options.every_ns : 0;

	if (!steps_of_rows_add(steps, row, step < UINT32_MAX ? (uint32_t)step : UINT32_MAX, bytes))
		ledger->out_of_memory = true;
}

void ledger_reserved(struct ledger *ledger, uint32_t number, uint64_t bytes)
{
	const struct allocation *allocation = ledger->options.every_ns ? ledger_allocation(ledger, number) : NULL;

	if (allocation && ledger_counted(ledger, allocation->account))
		add_step(ledger, &ledger->reserved_steps, LEDGER_ROW_TOTAL, bytes);
}

static inline void change_row(struct ledger *ledger, uint32_t number, uint64_t trend_ns, uint64_t bytes)
{
	struct row *row = &ledger->rows.items[number];

	trends_add(&ledger->trends, number + 1, trend_ns, bytes);
	if (ledger->options.every_ns)
		add_step(ledger, &ledger->steps, number, bytes);
	row->unfreed_bytes += bytes;
	if (row->unfreed_bytes > row->peak_bytes && (int64_t)bytes > 0) {
		row->peak_bytes = row->unfreed_bytes;
		row->peak_ns = ledger->now_ns;
	}
}

void ledger_rows_change(struct ledger *ledger, uint32_t row, uint64_t trend_ns, uint64_t bytes)
{
	if (row == LEDGER_NO_ROW || !bytes)
		return;
	change_row(ledger, row, trend_ns, bytes);
	change_row(ledger, LEDGER_ROW_TOTAL, trend_ns, bytes);
}

void ledger_trend(const struct ledger *ledger, uint32_t row, uint64_t end_ns, uint64_t *points_ret, unsigned points)
{
	memset(points_ret, 0, points * sizeof(*points_ret));
	trends_sum(&ledger->trends, row + 1, end_ns, 1, points_ret, points);
	for (unsigned point = 0; point < points; point++)
		points_ret[point] = (int64_t)points_ret[point] > 0 ? points_ret[point] : 0;
}
