// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/steps.h"

#include <inttypes.h>

#include "analysis/report/classes.h"

void steps_init(struct steps *steps, const struct mmt_report_options *options, const struct rows *rows)
{
	*steps = (struct steps){.every_ns = options->every_ns, .lifetime_steps = options->lifetime_steps, .rows = rows};
}

void steps_deinit(struct steps *steps)
{
	vector_deinit(&steps->items);
	vector_deinit(&steps->others_live);
}

/* A process that has ended holds nothing while another one lives, as in a report at that time. One that was selected by
 * PID counts as before its end. */
static bool find_living(const struct steps *steps, const struct replay *replay)
{
	bool living = replay->has_survivors;

	if (steps->rows->options->pids)
		return false;
	for (size_t i = 0; !living && i < processes_count(replay->processes); i++)
		living = !processes_at(replay->processes, (uint32_t)i)->ended;
	return living;
}

/* Note that other processes live at the next step. */
static bool note_living(struct steps *steps)
{
	struct step_range *last =
	    steps->others_live.count ? &steps->others_live.items[steps->others_live.count - 1] : NULL;
	const struct step_range next = {.start = steps->items.count, .end = steps->items.count + 1};

	if (!last || last->end != next.start)
		return vector_push(&steps->others_live, next);
	last->end = next.end;
	return true;
}

/* All events before `time_ns` have been applied: the steps up to it have the present state. */
static struct mmt_error *pass_timestamps(void *context, struct replay *replay, uint64_t time_ns)
{
	struct steps *steps = context;
	struct mmt_step step = {.resident_bytes = MMT_UNKNOWN,
				.process_resident_bytes = notes_resident(&replay->notes)};
	uint64_t stop_ns = replay->metadata->has_loss ? replay->metadata->loss.stop_ns : 0;
	uint64_t read_ns = steps->readings->latest_ns;
	bool others_live;

	/* Add no steps after the end if the clock jumps forward. */
	if (stop_ns && time_ns >= stop_ns)
		time_ns = stop_ns - 1;
	if (!replay->watch.timestamp_ns) {
		replay->watch.timestamp_ns = replay->ledger.options.from_ns + steps->every_ns;
	}
	if (time_ns < replay->watch.timestamp_ns)
		return NULL;
	others_live = find_living(steps, replay);
	while (replay->watch.timestamp_ns <= time_ns) {
		if (steps->items.count >= STEPS_MAX)
			return error_create(MMT_ERROR_INVALID, "--every: more than %d steps, ask for longer ones",
					    STEPS_MAX);
		step.to_ns = replay->watch.timestamp_ns;
		step.resident_bytes = read_ns < step.to_ns && read_ns >= step.to_ns - steps->every_ns
					  ? steps->readings->latest_bytes
					  : MMT_UNKNOWN;
		replay->watch.timestamp_ns += steps->every_ns;
		if ((others_live && !note_living(steps)) || !vector_push(&steps->items, step))
			return &error_no_memory;
	}
	return NULL;
}

/* Subtract bytes of a row at the steps from `step` on at which other processes lived. */
static bool take_back(const struct steps *steps, struct steps_of_rows *rows, uint32_t row, uint64_t step,
		      uint64_t bytes)
{
	for (size_t i = 0; i < steps->others_live.count; i++) {
		const struct step_range *range = &steps->others_live.items[i];
		size_t start = range->start > step ? range->start : step;

		if (start < range->end && (!steps_of_rows_add(rows, row, (uint32_t)start, -bytes) ||
					   !steps_of_rows_add(rows, row, (uint32_t)range->end, bytes)))
			return false;
	}
	return true;
}

static struct mmt_error *take_back_space(const struct steps *steps, struct replay *replay,
					 const struct process *process)
{
	uint64_t from_ns = replay->ledger.options.from_ns, total = 0, reserved = 0;
	struct ledger *ledger = &replay->ledger;
	uint64_t step = process->ended_ns > from_ns ? (process->ended_ns - from_ns) / steps->every_ns : 0;
	const struct space_interval *interval;

	for (uint64_t position = 0; (interval = space_next(process->space, position)); position = interval->end) {
		const struct account *account = process_totals_owner(replay, interval);
		uint64_t bytes = account ? interval->end - interval->start : 0;

		for (uint32_t row = account ? account->row : LEDGER_NO_ROW; row != LEDGER_NO_ROW;
		     row = ledger_outer_row(ledger, row)) {
			if (!take_back(steps, &ledger->steps, row, step, bytes))
				return &error_no_memory;
		}
		total += bytes;
		reserved += interval->attributes.protection ? 0 : bytes;
	}
	if (!take_back(steps, &ledger->steps, LEDGER_ROW_TOTAL, step, total) ||
	    !take_back(steps, &ledger->reserved_steps, LEDGER_ROW_TOTAL, step, reserved))
		return &error_no_memory;
	return NULL;
}

/* Ended processes that count in the report, because no process lives at its end, do not count at steps at which others
 * lived. */
static struct mmt_error *take_back_ended(const struct steps *steps, struct replay *replay)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < processes_count(replay->processes); i++) {
		const struct process *process = processes_at(replay->processes, (uint32_t)i);

		if (process->ended && !process->borrows_space)
			error = take_back_space(steps, replay, process);
	}
	return error;
}

#define CHOSEN_MAX 200 /* steps per report without --every; each group has this many figures */

/* With lifetimes, the report also has totals over time, in steps that divide the window. 0: its end is unknown before
 * it is read. */
static uint64_t choose_length(const struct steps *steps, const struct replay *replay)
{
	uint64_t stop_ns = replay->metadata->has_loss ? replay->metadata->loss.stop_ns : 0;
	uint64_t to_ns = replay->window.to_ns < stop_ns ? replay->window.to_ns : stop_ns;
	uint64_t from_ns = replay->ledger.options.from_ns;

	/* Callers that need only sums request LIFETIME_STEPS_MIN. */
	if (steps->lifetime_steps <= LIFETIME_STEPS_MIN || !from_ns || to_ns <= from_ns)
		return 0;
	return (to_ns - from_ns) / CHOSEN_MAX + 1;
}

void steps_watch(struct steps *steps, const struct page_readings *readings, struct replay *replay)
{
	steps->readings = readings;
	if (!steps->every_ns)
		steps->every_ns = choose_length(steps, replay);
	replay->ledger.options.every_ns = steps->every_ns;
	if (!steps->every_ns)
		return;
	replay->watch.timestamp = pass_timestamps;
	replay->watch.context = steps;
}

struct mmt_error *steps_end(struct steps *steps, struct replay *replay, struct mmt_report *report)
{
	struct mmt_error *error = NULL;

	report->every_ns = steps->every_ns;
	if (!steps->every_ns)
		return NULL;
	if (report->to_ns)
		error = pass_timestamps(steps, replay, report->to_ns - 1);
	report->step_count = steps->items.count + 1;
	return error ? error : take_back_ended(steps, replay);
}

struct mmt_error *steps_publish(const struct steps *steps, const struct replay *replay, struct arena *arena,
				struct mmt_report *report)
{
	uint64_t *unfreed = arena_alloc(arena, report->step_count, sizeof(*unfreed));
	uint64_t *reserved = arena_alloc(arena, report->step_count, sizeof(*reserved));
	struct mmt_step *published = arena_alloc(arena, report->step_count, sizeof(*published));

	if (!unfreed || !reserved || !published)
		return &error_no_memory;
	if (!report->step_count)
		return NULL;
	steps_of_rows_get(&replay->ledger.steps, LEDGER_ROW_TOTAL, unfreed, report->step_count);
	steps_of_rows_get(&replay->ledger.reserved_steps, LEDGER_ROW_TOTAL, reserved, report->step_count);
	for (size_t i = 0; i < steps->items.count; i++) {
		published[i] = steps->items.items[i];
		published[i].unfreed_bytes = unfreed[i];
		published[i].reserved_bytes = reserved[i];
		published[i].committed_bytes = unfreed[i] - published[i].reserved_bytes;
	}
	published[report->step_count - 1] = (struct mmt_step){.to_ns = report->to_ns,
							      .unfreed_bytes = report->unfreed_bytes,
							      .committed_bytes = report->committed_bytes,
							      .reserved_bytes = report->reserved_bytes,
							      .resident_bytes = report->resident_bytes,
							      .process_resident_bytes = notes_resident(&replay->notes)};
	report->steps = published;
	return NULL;
}
