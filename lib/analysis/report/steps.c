// SPDX-License-Identifier: LGPL-2.1-or-later
/* The figures of a report at equal steps of time, and the lifetimes of mappings in such steps. */
#include "analysis/report/report-build.h"

#include "analysis/replay/memory-classes.h"
#include "base/figures.h"

/* All events before `time_ns` have been applied: the steps up to it have the present state. */
static struct mmt_error *pass_timestamps(void *context, struct replay *replay, uint64_t time_ns)
{
	struct steps *steps = context;
	struct mmt_step step = {.resident_bytes = MMT_UNKNOWN,
				.process_resident_bytes = memory_readings_resident(&replay->notes.memory)};
	uint64_t stop_ns = replay->metadata->has_loss ? replay->metadata->loss.stop_ns : 0;
	uint64_t read_ns = steps->readings->latest_ns, latest_bytes;

	/* Add no steps after the end if the clock jumps forward. */
	if (stop_ns && time_ns >= stop_ns)
		time_ns = stop_ns - 1;
	if (!replay->watch.timestamp_ns)
		replay->watch.timestamp_ns = replay->ledger.options.from_ns + steps->every_ns;
	if (time_ns < replay->watch.timestamp_ns)
		return NULL;
	latest_bytes = page_readings_latest(steps->readings);
	while (replay->watch.timestamp_ns <= time_ns) {
		if (steps->items.count >= LIMIT_STEPS)
			return error_create(MMT_ERROR_INVALID, "--every: more than %d steps; use longer steps",
					    LIMIT_STEPS);
		step.to_ns = replay->watch.timestamp_ns;
		step.resident_bytes =
		    read_ns < step.to_ns && read_ns >= step.to_ns - steps->every_ns ? latest_bytes : MMT_UNKNOWN;
		replay->watch.timestamp_ns += steps->every_ns;
		if (!vector_push(&steps->items, step))
			return &error_no_memory;
	}
	return NULL;
}

/* The first step at whose end this time is over. */
static uint32_t step_after(const struct steps *steps, const struct replay *replay, uint64_t time_ns)
{
	uint64_t from_ns = replay->ledger.options.from_ns;
	uint64_t step = time_ns > from_ns ? (time_ns - from_ns) / steps->every_ns : 0;

	return step < steps->items.count ? (uint32_t)step : (uint32_t)steps->items.count;
}

/* Subtract bytes of a row at the steps from `start` to `end`. */
static bool take_back(struct steps_of_rows *rows, uint32_t row, uint32_t start, uint32_t end, uint64_t bytes)
{
	return steps_of_rows_add(rows, row, start, -bytes) && steps_of_rows_add(rows, row, end, bytes);
}

static bool take_back_space(struct replay *replay, const struct space *space, uint32_t start, uint32_t end)
{
	struct ledger *ledger = &replay->ledger;
	uint64_t total = 0, reserved = 0;

	space_each(interval, space, true) {
		const struct account *account = process_totals_owner(replay, interval);
		uint64_t bytes = account ? interval->end - interval->start : 0;

		if (account && account->row != LEDGER_NO_ROW &&
		    !take_back(&ledger->steps, account->row, start, end, bytes))
			return false;
		total += bytes;
		reserved += interval->attributes.protection ? 0 : bytes;
	}
	return take_back(&ledger->steps, LEDGER_ROW_TOTAL, start, end, total) &&
	       take_back(&ledger->reserved_steps, LEDGER_ROW_TOTAL, start, end, reserved);
}

#define CHOSEN_MAX 200 /* steps per report without --every; each row has this many figures */

void steps_watch(struct steps *steps, const struct page_readings *readings)
{
	const struct mmt_report_options *options = readings->rows->options;
	struct replay *replay = readings->rows->replay;
	uint64_t stop_ns = replay->metadata->has_loss ? replay->metadata->loss.stop_ns : 0;
	uint64_t to_ns = smaller_of(replay->window.to_ns, stop_ns);
	uint64_t from_ns = replay->ledger.options.from_ns;

	*steps = (struct steps){.every_ns = options->every_ns, .readings = readings};
	/* With lifetimes, the report also has totals over time, in steps that divide the window, if its end is known
	 * before it is read. Callers that need only sums request LIFETIME_STEPS_MIN. */
	if (!steps->every_ns && options->lifetime_steps > LIFETIME_STEPS_MIN && from_ns && to_ns > from_ns)
		steps->every_ns = (to_ns - from_ns) / CHOSEN_MAX + 1;
	replay->ledger.options.every_ns = steps->every_ns;
	if (!steps->every_ns)
		return;
	replay->watch.timestamp = pass_timestamps;
	replay->watch.context = steps;
}

struct mmt_error *steps_end(struct steps *steps, struct mmt_report *report)
{
	struct replay *replay = steps->readings->rows->replay;
	const struct process *process = NULL;
	struct mmt_error *error = NULL;
	uint64_t last_ns = 0;

	report->every_ns = steps->every_ns;
	if (!steps->every_ns)
		return NULL;
	if (report->to_ns)
		error = pass_timestamps(steps, replay, report->to_ns - 1);
	report->step_count = steps->items.count + 1;
	if (error)
		return error;
	/* Ended processes that count in the report, because no process lives at its end, do not count at steps at which
	 * others lived, unless they are selected by PID. */
	while (!steps->readings->rows->options->pids && (process = processes_next(replay->processes, process)))
		last_ns = larger_of(process->ended_ns, last_ns);
	while (last_ns && (process = processes_next(replay->processes, process))) {
		uint32_t start = step_after(steps, replay, process->ended_ns);
		uint32_t end = step_after(steps, replay, last_ns);

		if (start < end && !process->borrows_space && !take_back_space(replay, process->space, start, end))
			return &error_no_memory;
	}
	return NULL;
}

struct mmt_error *steps_publish(const struct steps *steps, struct mmt_report *report)
{
	const struct replay *replay = steps->readings->rows->replay;
	struct arena *arena = steps->readings->rows->arena;
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
	published[report->step_count - 1] =
	    (struct mmt_step){.to_ns = report->to_ns,
			      .unfreed_bytes = report->unfreed_bytes,
			      .committed_bytes = report->committed_bytes,
			      .reserved_bytes = report->reserved_bytes,
			      .resident_bytes = report->resident_bytes,
			      .process_resident_bytes = memory_readings_resident(&replay->notes.memory)};
	report->steps = published;
	return heap_growth_at_steps(steps->readings->rows, report, published);
}

/* The identity of a part. Several accounts can belong to one part, because they also differ in addresses and flags. */
struct part_key {
	uint32_t row, process, thread, path, memory_class;
};

struct parts {
	const struct rows *rows;
	struct mmt_report *report;
	size_t *processes;	/* by index of the replay, of those that are selected: place in the report */
	struct intern keys;	/* struct part_key; IDs are indexes into the arrays below, before sorting */
	uint32_t *numbers;	/* by place in the ledger's lifetimes: id */
	struct mmt_part *items; /* by id */
};

static struct mmt_error *find_part(struct parts *parts, const struct part_key *key, uint32_t *id_ret)
{
	const struct rows *rows = parts->rows;
	const struct thread *thread =
	    key->thread < rows->replay->threads.count ? rows->replay->threads.items[key->thread] : NULL;
	size_t count = parts->keys.count;
	struct mmt_part *part;

	*id_ret = intern_put(&parts->keys, key, sizeof(*key));
	if (*id_ret != count)
		return *id_ret == INTERN_NONE ? &error_no_memory : NULL;
	part = &parts->items[count];
	*part = (struct mmt_part){
	    .row = key->row,
	    .process = key->process,
	    .thread = {.pid = parts->report->processes[key->process].pid,
		       .tid = thread ? thread->tid : 0,
		       .name = arena_string(
			   rows->arena, thread ? intern_get(&rows->replay->processes->names, thread->name, NULL) : "")},
	    .file = key->path ? arena_string(rows->arena, resolver_path_name(rows->replay->code, key->path)) : NULL,
	    .memory_class = (enum mmt_class)key->memory_class,
	    .resident_bytes = MMT_UNKNOWN,
	    .resident_before_bytes = MMT_UNKNOWN};
	return part->thread.name && (part->file || !key->path) ? NULL : &error_no_memory;
}

/* By touch: what a process touched has no time, and so no lifetimes. */
static struct mmt_error *add_touch(struct parts *parts, const struct row_touch *touch)
{
	const struct part_key key = {.row = parts->rows->row_ids[touch->row] - 1,
				     .process = (uint32_t)parts->processes[touch->process],
				     .thread = LEDGER_NO_THREAD,
				     .path = classes_kind_path(touch->kind),
				     .memory_class = classes_kind_class(touch->kind)};
	uint32_t id;
	struct mmt_error *error = find_part(parts, &key, &id);

	if (!error)
		figure_add(&parts->items[id].resident_bytes, (uint64_t)touch->bytes);
	return error;
}

static struct mmt_error *add_part(struct parts *parts, size_t place)
{
	const struct ledger *ledger = &parts->rows->replay->ledger;
	const struct lifetime_part *kept = &ledger->lifetimes.parts.items[place];
	const struct account *account = &ledger->accounts.items[kept->account];
	const struct part_key key = {.row = parts->rows->row_ids[account->row - 1] - 1,
				     .process = (uint32_t)parts->processes[account->process],
				     .thread = kept->thread,
				     .path = classes_kind_path(account->kind),
				     .memory_class = account->memory_class};
	struct mmt_error *error = find_part(parts, &key, &parts->numbers[place]);
	struct mmt_part *part;

	if (error)
		return error;
	part = &parts->items[parts->numbers[place]];
	part->committed_bytes += kept->held.bytes[HELD_COMMITTED];
	part->committed_before_bytes += kept->held.bytes[HELD_COMMITTED_BEFORE];
	part->reserved_bytes += kept->held.bytes[HELD_RESERVED];
	if (kept->held.resident_known) {
		figure_add(&part->resident_bytes, kept->held.bytes[HELD_RESIDENT]);
		figure_add(&part->resident_before_bytes, kept->held.bytes[HELD_RESIDENT_BEFORE]);
	}
	return NULL;
}

/* Ids, by the parts that have them. */
COMPARISON_WITH(compare_parts, uint32_t, struct mmt_part,
		order_of(with[*a].row, with[*b].row) ?: order_of(with[*a].process, with[*b].process)
		?: order_of(with[*a].thread.tid, with[*b].thread.tid)
		?: order_of(with[*a].memory_class, with[*b].memory_class) ?: order_of(*a, *b))

/* By the ids of their places in the ledger's lifetimes. */
COMPARISON_WITH(compare_cells, struct lifetime_cell, uint32_t,
		order_of(with[a->part], with[b->part]) ?: order_of(a->allocated_step, b->allocated_step)
		?: order_of(a->released_step, b->released_step))

/* Merge the lifetimes of accounts that belong to one part; `cells` are sorted. */
static struct mmt_error *hand_out(struct parts *parts, const struct lifetime_cell *cells, size_t count)
{
	struct mmt_lifetime *lifetimes = arena_alloc(parts->rows->arena, count, sizeof(*lifetimes));
	size_t used = 0;

	if (!lifetimes)
		return &error_no_memory;
	for (size_t i = 0; i < count; i++) {
		struct mmt_part *part = &parts->items[parts->numbers[cells[i].part]];
		bool unfreed = cells[i].released_step == LIFETIME_STILL_MAPPED;
		const struct mmt_lifetime lifetime = {.allocated_step = cells[i].allocated_step,
						      .released_step =
							  unfreed ? MMT_STILL_MAPPED : cells[i].released_step,
						      .bytes = cells[i].bytes,
						      .count = cells[i].count};
		struct mmt_lifetime *last = used ? &lifetimes[used - 1] : NULL;

		figure_add(&part->allocated_bytes, lifetime.bytes);
		part->allocated_count += lifetime.count;
		figure_add(unfreed ? &part->unfreed_bytes : &part->freed_bytes, lifetime.bytes);
		*(unfreed ? &part->unfreed_count : &part->freed_count) += lifetime.count;
		if (part->lifetime_count && last->allocated_step == lifetime.allocated_step &&
		    last->released_step == lifetime.released_step) {
			last->bytes = saturating_add(last->bytes, lifetime.bytes, MMT_BYTES_MAX);
			last->count += lifetime.count;
			continue;
		}
		if (!part->lifetime_count++)
			part->lifetimes = &lifetimes[used];
		lifetimes[used++] = lifetime;
	}
	return NULL;
}

struct mmt_error *parts_build(const struct rows *rows, struct mmt_report *report)
{
	struct ledger *ledger = &rows->replay->ledger;
	struct lifetimes *lifetimes = &ledger->lifetimes;
	bool by_touch = report->by == MMT_BY_TOUCH;
	struct mmt_error *error = lifetimes->steps_max ? ledger_end_lifetimes(ledger) : NULL;
	CLEANUP(free) size_t *processes = calloc(rows->replay->processes->all.count + 1, sizeof(*processes));
	size_t most = by_touch ? rows->touches.count : lifetimes->parts.count;
	CLEANUP(free) uint32_t *numbers = calloc(most + 1, sizeof(*numbers));
	CLEANUP(free) struct mmt_part *items = calloc(most + 1, sizeof(*items));
	CLEANUP(free) uint32_t *order = calloc(most + 1, sizeof(*order));
	struct parts parts = {
	    .rows = rows, .report = report, .processes = processes, .numbers = numbers, .items = items};
	size_t place = 0, count;
	struct mmt_part *sorted;

	if (error || !lifetimes->steps_max)
		return error;
	if (!processes || !numbers || !items || !order || !lifetimes_reach(lifetimes, report->to_ns))
		return &error_no_memory;
	/* The report's processes are the selected ones of the replay, in the same order. */
	for (const struct process *process = NULL; (process = rows_next(rows, process));)
		processes[process->index] = place++;
	for (size_t i = 0; !error && i < most; i++)
		error = by_touch ? add_touch(&parts, &rows->touches.items[i]) : add_part(&parts, i);
	if (!error && !by_touch && lifetimes->cells.count)
		qsort_r(lifetimes->cells.items, lifetimes->cells.count, sizeof(*lifetimes->cells.items), compare_cells,
			numbers);
	report->lifetime_step_ns = lifetimes->step_ns;
	report->lifetime_steps = lifetimes_steps(lifetimes);
	error = error ?: hand_out(&parts, lifetimes->cells.items, by_touch ? 0 : lifetimes->cells.count);
	count = parts.keys.count;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), compare_parts, items);
	sorted = arena_alloc(rows->arena, count, sizeof(*sorted));
	for (size_t i = 0; sorted && i < count; i++)
		sorted[i] = items[order[i]];
	report->parts = sorted;
	report->part_count = count;
	intern_deinit(&parts.keys);
	/* The cells are no longer needed. */
	lifetimes_deinit(lifetimes);
	return error || sorted ? error : &error_no_memory;
}
