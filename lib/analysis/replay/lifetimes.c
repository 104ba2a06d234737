// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/lifetimes.h"

#include <mmtrace/report.h>

#include "base/wide-sum.h"

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
	id_table_deinit(&lifetimes->cells_by_key);
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

static uint64_t cell_key(const struct lifetime_cell *cell)
{
	return (uint64_t)cell->part << 32 | (uint32_t)cell->allocated_step << 16 | cell->released_step;
}

/* Place of the cell; ID_NONE: there is none. Releases come in the order of time, so most are of a recent cell. */
static uint32_t find_cell(struct lifetimes *lifetimes, uint64_t key, uint64_t hash)
{
	uint32_t *recent = &lifetimes->recent_cells[hash % LIFETIME_RECENT_CELLS], place = *recent;
	size_t position = 0;

	if (place < lifetimes->cells.count && cell_key(&lifetimes->cells.items[place]) == key)
		return place;
	do
		place = id_table_next(&lifetimes->cells_by_key, hash, &position);
	while (place != ID_NONE && cell_key(&lifetimes->cells.items[place]) != key);
	*recent = place;
	return place;
}

static bool add_cell(struct lifetimes *lifetimes, const struct lifetime_cell *cell)
{
	uint64_t key = cell_key(cell), hash = id_table_hash(&lifetimes->cells_by_key, &key, sizeof(key));
	uint32_t place = find_cell(lifetimes, key, hash);
	struct lifetime_cell *sum;

	if (place == ID_NONE)
		return id_table_add(&lifetimes->cells_by_key, hash) != ID_NONE && vector_push(&lifetimes->cells, *cell);
	sum = &lifetimes->cells.items[place];
	sum->bytes = saturating_add(sum->bytes, cell->bytes, MMT_BYTES_MAX);
	sum->count += cell->count;
	return true;
}

static bool double_steps(struct lifetimes *lifetimes)
{
	size_t count = lifetimes->cells.count;

	lifetimes->step_ns = lifetimes->step_ns > UINT64_MAX / 2 ? UINT64_MAX : lifetimes->step_ns * 2;
	id_table_deinit(&lifetimes->cells_by_key);
	lifetimes->cells.count = 0;
	/* No cell moves past the cells that are still to be read. */
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

static bool has_too_many(const struct lifetimes *lifetimes, size_t cells_max)
{
	uint64_t steps = step_of(lifetimes, lifetimes->latest_ns);

	return steps >= lifetimes->steps_max ||
	       (lifetimes->cells.count >= cells_max && steps / 2 >= LIFETIME_STEPS_MIN);
}

bool lifetimes_reach(struct lifetimes *lifetimes, uint64_t time_ns)
{
	size_t cells_max = LIFETIME_CELLS_MAX;

	if (time_ns > lifetimes->latest_ns)
		lifetimes->latest_ns = time_ns;
	while (has_too_many(lifetimes, cells_max)) {
		if (!double_steps(lifetimes))
			return false;
		/* Each doubling goes through all cells: make room for many more. */
		cells_max = LIFETIME_CELLS_MAX / 2;
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

	if (!part)
		return false;
	if (!lifetimes_reach(lifetimes, end_ns))
		return false;
	cell.part = (uint32_t)(part - lifetimes->parts.items);
	cell.allocated_step = (uint16_t)step_of(lifetimes, allocated_ns);
	cell.released_step = released ? (uint16_t)step_of(lifetimes, end_ns) : LIFETIME_STILL_MAPPED;
	return add_cell(lifetimes, &cell);
}
