// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory that earlier recordings saw being mapped. The previous recording ended while this one already ran, so both
 * describe that moment: what was mapped there by an earlier call is memory from before this recording here. */
#include "analysis/replay/replay.h"

/* By account of the section. */
struct taken {
	uint32_t account; /* of the ledger; LEDGER_NO_ACCOUNT: none of its memory is mapped */
	uint32_t commit;  /* COMMIT_NONE: none */
	uint64_t points[EARLIER_POINTS];
};

struct taking {
	struct replay *replay;
	const struct earlier_mappings *earlier;
	struct taken *taken;
	struct map calls; /* number of a call -> allocation */
};

static const struct earlier_account *account_of(const struct taking *taking, uint32_t number)
{
	return &taking->earlier->accounts.items[number - 1];
}

static uint32_t find_stack(const struct taking *taking, uint32_t number)
{
	return resolver_packed_stack(taking->replay->code, account_of(taking, number)->stack, taking->replay->no_stack);
}

static struct mmt_error *find_call(struct taking *taking, const struct earlier_range *range, uint32_t process,
				   uint32_t *allocation_ret)
{
	const uint64_t *known = map_get(&taking->calls, range->call);
	struct mmt_error *error;

	*allocation_ret = known ? (uint32_t)*known : ALLOCATION_BEFORE;
	if (known || !range->account)
		return NULL;
	error = ledger_open(&taking->replay->ledger, process, LEDGER_NO_THREAD, find_stack(taking, range->account),
			    allocation_ret);
	return error || map_put(&taking->calls, range->call, *allocation_ret) ? error : &error_no_memory;
}

static struct mmt_error *find_commit(struct taking *taking, const struct earlier_range *range, uint32_t process,
				     const struct space_interval *part, uint32_t *commit_ret)
{
	uint32_t *known = range->commit ? &taking->taken[range->commit - 1].commit : NULL;
	struct mmt_error *error = NULL;

	*commit_ret = COMMIT_NONE;
	if (!known || part->commit != COMMIT_WITH_ALLOCATION)
		return NULL;
	if (!*known)
		error =
		    ledger_commit(&taking->replay->ledger, process, LEDGER_NO_THREAD,
				  replay_calls_kind(taking->replay, part), find_stack(taking, range->commit), known);
	*commit_ret = *known;
	return error;
}

static struct mmt_error *take_part(struct taking *taking, const struct earlier_range *range,
				   const struct process *process, struct space_interval *part)
{
	const struct earlier_mappings *earlier = taking->earlier;
	struct replay *replay = taking->replay;
	const struct allocation *allocation;
	struct taken *taken = range->account ? &taking->taken[range->account - 1] : NULL;
	uint32_t commit;
	struct mmt_error *error;

	replay->ledger.now_ns = range->time_ns;
	error = find_call(taking, range, process->index, &part->allocation)
		    ?: find_commit(taking, range, process->index, part, &commit);
	part->commit = commit ? commit : part->commit;
	error = error ?: space_set_allocation(process->space, part->start, part->end, part->allocation, commit);
	if (error)
		return error;
	replay_mapped(replay, part);
	ledger_committed(&replay->ledger, part->commit, part->end - part->start);
	allocation = ledger_allocation(&replay->ledger, part->allocation);
	if (!allocation || !taken)
		return NULL;
	taken->account = allocation->account;
	for (uint64_t i = (range->time_ns - earlier->began_ns) / earlier->step_ns; i < EARLIER_POINTS; i++)
		taken->points[i] += part->end - part->start;
	return NULL;
}

/* Whatever else is there now was mapped since. */
static struct mmt_error *take_range(struct taking *taking, const struct earlier_range *range)
{
	const struct earlier_account *account = account_of(taking, range->account ? range->account : range->commit);
	const struct process *process = processes_find(taking->replay->processes, account->pid);
	const struct space_interval *interval;
	struct mmt_error *error = NULL;

	if (!process || process->ended || process->borrows_space)
		return NULL;
	for (uint64_t position = range->start;
	     !error && (interval = space_next(process->space, position)) && interval->start < range->end;) {
		struct space_interval part = *interval;

		position = part.end;
		part.start = larger_of(part.start, range->start);
		part.end = smaller_of(part.end, range->end);
		if (part.allocation == ALLOCATION_BEFORE)
			error = take_part(taking, range, process, &part);
	}
	return error;
}

/* Add what was freed before, which is not in the ledger: its sums, and what the rows had over time. */
static void add_freed(struct ledger *ledger, const struct earlier_mappings *earlier, size_t number,
		      const struct taken *taken)
{
	const struct earlier_account *from = &earlier->accounts.items[number];
	struct account *account = &ledger->accounts.items[taken->account];
	uint64_t before = 0, last = (earlier->end_ns - earlier->began_ns) / earlier->step_ns;

	account->freed_bytes = saturating_add(account->freed_bytes, from->freed_bytes, MMT_BYTES_MAX);
	account->allocated_bytes = saturating_add(account->allocated_bytes, from->freed_bytes, MMT_BYTES_MAX);
	account->freed_count += from->freed_count;
	account->allocated_count += from->freed_count;
	/* The steps are those of the trends, so that they do not move from recording to recording. */
	for (unsigned i = 0; i < EARLIER_POINTS && account->row != LEDGER_NO_ROW; i++) {
		uint64_t freed = i >= last ? 0 : subtract(from->points[i], taken->points[i]);
		uint64_t time_ns = earlier->began_ns + earlier->step_ns * i;

		trends_add(&ledger->trends, account->row + 1, time_ns, freed - before);
		trends_add(&ledger->trends, LEDGER_ROW_TOTAL + 1, time_ns, freed - before);
		before = freed;
	}
}

struct mmt_error *earlier_calls_take(struct replay *replay)
{
	const struct earlier_mappings *earlier = &replay->metadata->earlier;
	struct ledger *ledger = &replay->ledger;
	CLEANUP(free) struct taken *taken = calloc(earlier->accounts.count + 1, sizeof(*taken));
	struct taking taking = {.replay = replay, .earlier = earlier, .taken = taken};
	uint64_t now_ns = ledger->now_ns;
	struct mmt_error *error = taken ? NULL : &error_no_memory;

	for (size_t i = 0; !error && i < earlier->accounts.count; i++)
		taken[i].account = LEDGER_NO_ACCOUNT;
	/* What this recording has of that time is in the sums of the previous one. */
	array_each(account, ledger->accounts.items, ledger->accounts.count) {
		account->allocated_bytes -= account->freed_bytes;
		account->allocated_count -= account->freed_count;
		account->freed_bytes = account->freed_count = 0;
	}
	array_while(range, earlier->ranges.items, earlier->ranges.count, !error)
		error = take_range(&taking, range);
	map_each(call, &taking.calls, true)
		(void)ledger_close(ledger, (uint32_t)call->value);
	for (size_t i = 0; !error && i < earlier->accounts.count; i++) {
		if (taken[i].account != LEDGER_NO_ACCOUNT)
			add_freed(ledger, earlier, i, &taken[i]);
	}
	ledger->now_ns = now_ns;
	map_deinit(&taking.calls);
	return error;
}

struct mmt_error *earlier_calls_read(struct replay *replay)
{
	const struct earlier_mappings *earlier = &replay->metadata->earlier;
	struct mmt_error *error = NULL;

	replay->notes.earlier_end_ns = earlier->end_ns;
	array_while(reading, earlier->readings.items, earlier->readings.count, !error) {
		/* Other numbers than those of this recording. */
		struct event event = {.kind = EVENT_NOTE,
				      .time_ns = smaller_of(reading->time_ns, earlier->end_ns),
				      .pid = reading->pid,
				      .note = {.kind = NOTE_RESIDENT,
					       .value = reading->resident_bytes,
					       .number = UINT64_MAX - reading->number,
					       .text = ""}};

		error = notes_take(&replay->notes, &event);
		event.note.kind = NOTE_SWAPPED;
		event.note.value = reading->swapped_bytes;
		error = error ?: notes_take(&replay->notes, &event);
	}
	return error;
}

/* Collecting it for the next recording. */

_Static_assert(EARLIER_POINTS == LEDGER_BUCKETS, "the points of an account are the buckets of its row");

struct collecting {
	const struct replay *replay, *next;
	struct earlier_mappings *earlier;
	struct map numbers; /* process << 32 | account -> number of the section's account, from 1 */
};

struct mmt_error *earlier_calls_find_row(void *context, struct account *account)
{
	account->row = ++*(uint32_t *)context;
	return NULL;
}

static bool collect_account(struct collecting *collecting, const struct process *process, uint32_t number,
			    uint32_t *number_ret)
{
	const struct ledger *ledger = &collecting->replay->ledger;
	struct earlier_mappings *earlier = collecting->earlier;
	uint64_t key = (uint64_t)process->index << 32 | number;
	const uint64_t *known = map_get(&collecting->numbers, key);
	const struct account *account = ledger_counted(ledger, number);
	struct earlier_account *collected;

	*number_ret = known ? (uint32_t)*known : 0;
	if (known || !account)
		return true;
	collected = vector_append(&earlier->accounts);
	*number_ret = (uint32_t)earlier->accounts.count;
	if (!collected || !map_put(&collecting->numbers, key, *number_ret))
		return false;
	collected->pid = process->pid;
	collected->stack = account->stack;
	collected->freed_bytes = smaller_of(account->freed_bytes, LIMIT_RESIDENT_BYTES);
	collected->freed_count = smaller_of(account->freed_count, LIMIT_RESIDENT_BYTES);
	ledger_trend(ledger, account->row, earlier->began_ns + EARLIER_POINTS * earlier->step_ns, collected->points,
		     EARLIER_POINTS);
	return true;
}

static bool collect_range(struct collecting *collecting, const struct process *process,
			  const struct space_interval *interval)
{
	const struct ledger *ledger = &collecting->replay->ledger;
	const struct allocation *allocation = ledger_allocation(ledger, interval->allocation);
	struct earlier_range range = {.start = interval->start,
				      .end = interval->end,
				      .time_ns = collecting->earlier->end_ns,
				      .call = interval->allocation};

	/* The next recording has that call, or knows as little of the memory. */
	if (allocation ? allocation->time_ns >= collecting->next->metadata->info.start_ns
		       : interval->allocation != ALLOCATION_BEFORE)
		return true;
	/* What the last snapshot showed is later. */
	if (allocation)
		range.time_ns = smaller_of(allocation->time_ns, range.time_ns);
	if (!collect_account(collecting, process, allocation ? allocation->account : LEDGER_NO_ACCOUNT,
			     &range.account) ||
	    !collect_account(collecting, process, ledger_commit_account(ledger, interval->commit), &range.commit))
		return false;
	return (!range.account && !range.commit) || vector_push(&collecting->earlier->ranges, range);
}

/* At most EARLIER_POINTS readings, and the last one of a process if it is not among them. */
static bool collect_readings(struct collecting *collecting, const struct process *process)
{
	const struct memory_readings *memory = &collecting->replay->notes.memory;
	const struct process_readings *readings = memory_readings_of(memory, process);
	size_t step = memory->readings.count / EARLIER_POINTS + 1;

	array_each(point, readings ? readings->points.items : NULL, readings ? readings->points.count : 0) {
		struct earlier_reading reading = {.pid = process->pid,
						  .number = point->reading,
						  .time_ns = memory->readings.items[point->reading].time_ns,
						  .resident_bytes = point->resident_bytes,
						  .swapped_bytes = point->swapped_bytes};

		if (point->reading % step == 0 && reading.time_ns < collecting->next->metadata->info.start_ns &&
		    !vector_push(&collecting->earlier->readings, reading))
			return false;
	}
	return true;
}

COMPARISON(compare_readings, struct earlier_reading, order_of(a->number, b->number) ?: order_of(a->pid, b->pid))

struct mmt_error *earlier_calls_collect(struct replay *replay, const struct replay *next,
					struct earlier_mappings *earlier)
{
	struct collecting collecting = {.replay = replay, .next = next, .earlier = earlier};
	struct mmt_error *error = memory_readings_sort(&replay->notes.memory);
	bool done = !error;

	for (const struct process *process = NULL; done && (process = processes_next(replay->processes, process));) {
		if (process->ended || process->borrows_space || !processes_find(next->processes, process->pid))
			continue;
		done = collect_readings(&collecting, process);
		space_each(interval, process->space, done)
			done = collect_range(&collecting, process, interval);
	}
	map_deinit(&collecting.numbers);
	if (done && earlier->readings.count)
		qsort(earlier->readings.items, earlier->readings.count, sizeof(*earlier->readings.items),
		      compare_readings);
	return error || done ? error : &error_no_memory;
}
