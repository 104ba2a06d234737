// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/ledger-rows.h"

#include <string.h>

#include "base/seldom.h"
#include "model/space.h"

static void double_buckets(struct ledger *ledger)
{
	for (size_t i = 0; i < ledger->rows.count; i++) {
		uint64_t *change = ledger->trends.items[i].change;

		for (unsigned bucket = 0; bucket < LEDGER_BUCKETS / 2; bucket++)
			change[bucket] = change[2 * bucket] + change[2 * bucket + 1];
		memset(change + LEDGER_BUCKETS / 2, 0, LEDGER_BUCKETS / 2 * sizeof(*change));
	}
	ledger->bucket_ns *= 2;
}

/* Time has left the latest bucket. */
static void keep_latest_changes(struct ledger *ledger)
{
	for (size_t i = 0; i < ledger->rows.count; i++) {
		struct row *row = &ledger->rows.items[i];

		if (!row->latest_change)
			continue;
		ledger->trends.items[i].change[ledger->latest_bucket] += row->latest_change;
		row->latest_change = 0;
	}
}

static uint64_t elapsed_ns(const struct ledger *ledger, uint64_t time_ns)
{
	return time_ns > ledger->options.from_ns ? time_ns - ledger->options.from_ns : 0;
}

static void begin_bucket(struct ledger *ledger, uint64_t time_ns)
{
	uint64_t start_ns = ledger->options.from_ns, elapsed = elapsed_ns(ledger, time_ns);

	keep_latest_changes(ledger);
	while (elapsed / ledger->bucket_ns >= LEDGER_BUCKETS)
		double_buckets(ledger);
	ledger->latest_bucket = (unsigned)(elapsed / ledger->bucket_ns);
	ledger->latest_from_ns = start_ns + ledger->latest_bucket * ledger->bucket_ns;
	/* The last of all ends where numbers do: a bound that wraps around would end each bucket at once. */
	ledger->latest_last_ns = ledger->latest_from_ns + (ledger->bucket_ns - 1);
	if (ledger->latest_last_ns < ledger->latest_from_ns)
		ledger->latest_last_ns = UINT64_MAX;
}

static SELDOM void add_elsewhere(struct ledger *ledger, uint32_t row, uint64_t time_ns, uint64_t bytes)
{
	if (time_ns > ledger->latest_last_ns)
		begin_bucket(ledger, time_ns);
	if (time_ns >= ledger->latest_from_ns)
		ledger->rows.items[row].latest_change += bytes;
	else
		ledger->trends.items[row].change[elapsed_ns(ledger, time_ns) / ledger->bucket_ns] += bytes;
}

static inline void add_change(struct ledger *ledger, uint32_t row, uint64_t time_ns, uint64_t bytes)
{
	if (time_ns >= ledger->latest_from_ns && time_ns <= ledger->latest_last_ns)
		ledger->rows.items[row].latest_change += bytes;
	else
		add_elsewhere(ledger, row, time_ns, bytes);
}

static SELDOM void add_step(struct ledger *ledger, struct steps_of_rows *steps, uint32_t row, uint64_t time_ns,
			    uint64_t bytes)
{
	uint64_t start_ns = ledger->options.from_ns;
	uint64_t step = time_ns > start_ns ? (time_ns - start_ns) / ledger->options.every_ns : 0;

	if (!steps_of_rows_add(steps, row, step < UINT32_MAX ? (uint32_t)step : UINT32_MAX, bytes))
		ledger->out_of_memory = true;
}

void ledger_rows_reserve(struct ledger *ledger, uint32_t row, uint64_t time_ns, uint64_t bytes)
{
	if (row != LEDGER_NO_ROW && ledger->options.every_ns)
		add_step(ledger, &ledger->reserved_steps, LEDGER_ROW_TOTAL, time_ns, bytes);
}

static inline void change_row(struct ledger *ledger, uint32_t number, const struct row_change *change)
{
	struct row *row = &ledger->rows.items[number];

	add_change(ledger, number, change->trend_ns, change->bytes);
	if (ledger->options.every_ns)
		add_step(ledger, &ledger->steps, number, change->step_ns, change->bytes);
	row->unfreed_bytes += change->bytes;
	if (row->unfreed_bytes > row->peak_bytes && (int64_t)change->bytes > 0) {
		row->peak_bytes = row->unfreed_bytes;
		row->peak_ns = change->time_ns;
	}
}

static void make_change(struct ledger *ledger, const struct row_change *change)
{
	if (change->row == LEDGER_NO_ROW)
		return;
	if (change->reserved)
		ledger_rows_reserve(ledger, change->row, change->step_ns, change->reserved);
	if (!change->bytes)
		return;
	change_row(ledger, change->row, change);
	change_row(ledger, LEDGER_ROW_TOTAL, change);
}

/* All changes before the first whose row is not known. */
static void make_changes(struct ledger *ledger)
{
	const struct row_change *change;

	while ((change = row_changes_first(&ledger->changes)) && !change->birth) {
		make_change(ledger, change);
		row_changes_remove_first(&ledger->changes);
	}
}

void ledger_rows_tell(struct ledger *ledger, struct birth *birth, uint32_t row)
{
	struct row_change only;

	if (birth->last_change && row_changes_take_only(&ledger->changes, &only)) {
		birth->last_change = 0;
		only.row = row;
		make_change(ledger, &only);
		return;
	}
	row_changes_tell(&ledger->changes, birth->last_change, row);
	birth->last_change = 0;
	make_changes(ledger);
}

/* The first is waited for no longer. */
static void limit_changes(struct ledger *ledger)
{
	struct birth *birth;

	if (row_changes_count(&ledger->changes) <= ROW_CHANGES_MAXIMUM)
		return;
	birth = &ledger->births.items[row_changes_first(&ledger->changes)->birth - BIRTH_FIRST];
	birth->unordered = true;
	ledger_rows_tell(ledger, birth, LEDGER_NO_ROW);
}

static void change_known(struct ledger *ledger, const struct row_change *change)
{
	if (change->row == LEDGER_NO_ROW)
		return;
	if (!row_changes_first(&ledger->changes))
		make_change(ledger, change);
	else if (!row_changes_add(&ledger->changes, change))
		ledger->out_of_memory = true;
	limit_changes(ledger);
}

void ledger_rows_change(struct ledger *ledger, uint32_t row, uint64_t trend_ns, uint64_t bytes)
{
	change_known(ledger, &(struct row_change){.time_ns = ledger->now_ns,
						  .trend_ns = trend_ns,
						  .step_ns = ledger->now_ns,
						  .bytes = bytes,
						  .row = row});
}

void ledger_rows_enter(struct ledger *ledger, uint32_t row, const struct birth *birth)
{
	change_known(ledger, &(struct row_change){.time_ns = ledger->now_ns,
						  .trend_ns = birth->time_ns,
						  .step_ns = birth->time_ns,
						  .bytes = birth->live_bytes,
						  .reserved = birth->reserved_bytes,
						  .row = row});
}

/* A change of a birth whose stack is not told. */
static void wait_for_row(struct ledger *ledger, struct birth *birth, uint64_t trend_ns, uint64_t bytes,
			 uint64_t reserved)
{
	const struct row_change change = {.time_ns = ledger->now_ns,
					  .trend_ns = trend_ns,
					  .step_ns = ledger->now_ns,
					  .bytes = bytes,
					  .reserved = reserved,
					  .previous = birth->last_change,
					  .birth = (uint32_t)(birth - ledger->births.items) + BIRTH_FIRST};

	if (birth->settled || birth->unordered || birth->side != LEDGER_INSIDE)
		return;
	birth->last_change = row_changes_add(&ledger->changes, &change);
	ledger->out_of_memory |= !birth->last_change;
	limit_changes(ledger);
}

void ledger_rows_change_waiting(struct ledger *ledger, struct birth *birth, uint64_t trend_ns, uint64_t bytes)
{
	wait_for_row(ledger, birth, trend_ns, bytes, 0);
}

void ledger_rows_reserve_waiting(struct ledger *ledger, struct birth *birth, uint64_t bytes)
{
	wait_for_row(ledger, birth, 0, 0, bytes);
}

void ledger_trend(const struct ledger *ledger, uint32_t row, uint64_t end_ns, uint64_t *points_ret, unsigned points)
{
	uint64_t start_ns = ledger->options.from_ns;
	uint64_t duration = end_ns > start_ns ? end_ns - start_ns : 0;
	const uint64_t *change = ledger->trends.items[row].change;
	uint64_t latest = ledger->rows.items[row].latest_change;
	unsigned bucket = 0;
	uint64_t unfreed = 0;

	for (unsigned point = 0; point < points; point++) {
		uint64_t until = point + 1 == points ? UINT64_MAX : duration / points * (point + 1);

		while (bucket < LEDGER_BUCKETS && bucket * ledger->bucket_ns < until) {
			unfreed += change[bucket] + (bucket == ledger->latest_bucket ? latest : 0);
			bucket++;
		}
		points_ret[point] = (int64_t)unfreed > 0 ? unfreed : 0;
	}
}
