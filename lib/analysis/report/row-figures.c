// SPDX-License-Identifier: LGPL-2.1-or-later
/* The figures of each row: bytes, counts, trends, times (mmtrace/figures.h). row-verdicts.c judges them. */
#include "analysis/report/report-build.h"

#include <inttypes.h>

#include "analysis/replay/memory-classes.h"
#include "analysis/report/row-verdicts.h"
#include "base/figures.h"

#define EXIT_GAP_NS 100000000 /* between two threads that the end of their process ends, at most */

struct grouping {
	struct replay *replay; /* that of the rows */
	struct rows *rows;
	struct mmt_report *report;
	struct mmt_row *figures; /* by row number - 1 */
	size_t row_count;
	const struct resident_sums *resident; /* NULL: not known */
	struct held_memory *accounts;	      /* by account number */
	struct map reservers;		      /* (row that committed) << 32 | row that had reserved -> bytes */
	struct map thread_bytes;	      /* (row - 1) << 32 | thread -> unfreed bytes */
};

/* For lost calls, the number of calls, their times and their threads are unknown. */
static struct mmt_error *add_allocations(struct grouping *grouping)
{
	const struct ledger *ledger = &grouping->replay->ledger;

	array_each(allocation, ledger->allocations.items, ledger->allocations.count) {
		uint32_t number = verdict_row_of(ledger, allocation);
		struct mmt_row *row;

		if (number == LEDGER_NO_ROW)
			continue;
		row = &grouping->figures[number - 1];
		if (!row->unfreed_count || allocation->time_ns < row->first_ns)
			row->first_ns = allocation->time_ns;
		row->last_ns = larger_of(row->last_ns, allocation->time_ns);
		row->smallest_bytes = smaller_of(row->smallest_bytes, allocation->live_bytes);
		row->largest_bytes = larger_of(row->largest_bytes, allocation->live_bytes);
		row->original_bytes += allocation->original_bytes;
		row->unfreed_count++;
		if (!map_add(&grouping->thread_bytes, (uint64_t)(number - 1) << 32 | allocation->thread,
			     allocation->live_bytes))
			return &error_no_memory;
	}
	return NULL;
}

uint64_t account_committed(const struct held_memory *memory)
{
	return memory->bytes[HELD_COMMITTED] + memory->bytes[HELD_COMMITTED_BEFORE];
}

/* Add to what an account has and, if the ledger keeps lifetimes, to the thread's part of it. False: out of memory. */
static bool add_held(struct grouping *grouping, uint32_t account, uint32_t thread, enum held_kind kind, uint64_t bytes)
{
	struct lifetimes *lifetimes = &grouping->replay->ledger.lifetimes;
	bool known = kind == HELD_RESIDENT || kind == HELD_RESIDENT_BEFORE;
	struct held_memory *held = &grouping->accounts[account];
	struct lifetime_part *part;

	figure_add(&held->bytes[kind], bytes);
	held->resident_known |= known;
	if (!lifetimes->steps_max || kind == HELD_SWAPPED)
		return true;
	part = lifetimes_part(lifetimes, account, thread);
	if (!part)
		return false;
	figure_add(&part->held.bytes[kind], bytes);
	part->held.resident_known |= known;
	return true;
}

/* The bytes of an interval. */
static bool add_interval(struct grouping *grouping, const struct account *account, const struct allocation *allocation,
			 enum held_kind kind, uint64_t bytes)
{
	uint32_t number = (uint32_t)(account - grouping->replay->ledger.accounts.items);
	bool is_owner = allocation && allocation->account == number;

	return add_held(grouping, number, is_owner ? allocation->thread : LEDGER_NO_THREAD, kind, bytes);
}

static bool add_reserver(struct grouping *grouping, uint32_t row, uint32_t reserver, uint64_t bytes)
{
	return row == reserver || map_add(&grouping->reservers, (uint64_t)row << 32 | reserver, bytes);
}

static bool is_account_of(const struct grouping *grouping, uint32_t number)
{
	const struct ledger *ledger = &grouping->replay->ledger;

	return number < ledger->accounts.count &&
	       rows_selects_pid(grouping->rows,
				grouping->replay->processes->all.items[ledger->accounts.items[number].process]->pid);
}

/* Add to the sums that ignore --class, --focus and --ignore. */
static void add_unfiltered(struct grouping *grouping, const struct space_interval *interval,
			   const struct allocation *allocation)
{
	uint64_t bytes = interval->end - interval->start;
	bool counts = allocation && is_account_of(grouping, allocation->account);

	if (counts)
		grouping->report->unfiltered_unfreed_bytes += bytes;
	if (!interval->attributes.protection)
		return;
	if (!counts)
		counts = rows_exclude_mapping(grouping->rows, interval, allocation) &&
			 is_account_of(grouping, ledger_commit_account(&grouping->replay->ledger, interval->commit));
	if (counts)
		grouping->report->unfiltered_committed_bytes += bytes;
}

static bool add_space(struct grouping *grouping, const struct space *space)
{
	const struct space_interval *previous = NULL;
	bool ok = true;

	space_each(interval, space, ok) {
		const struct allocation *allocation =
		    ledger_allocation(&grouping->replay->ledger, interval->allocation);
		const struct account *owner = process_totals_owner(grouping->replay, interval), *reserver;
		const struct account *holder = rows_holder(grouping->rows, interval, allocation, owner);
		uint64_t bytes = interval->end - interval->start;

		add_unfiltered(grouping, interval, allocation);
		if (owner) {
			struct mmt_row *row = &grouping->figures[owner->row - 1];

			row->mapping_count += !previous || !space_continues_mapping(previous, interval);
			row->unfreed_bytes += bytes;
			row->class_bytes[owner->memory_class] += bytes;
		}
		previous = interval;
		if (!owner) {
			ok = !holder || add_interval(grouping, holder, NULL, HELD_COMMITTED_BEFORE, bytes);
		} else if (!interval->attributes.protection) {
			ok = add_interval(grouping, owner, allocation, HELD_RESERVED, bytes);
		} else {
			reserver = ledger_counted(&grouping->replay->ledger, allocation->reserver);
			ok = add_interval(grouping, holder, allocation, HELD_COMMITTED, bytes) &&
			     add_reserver(grouping, holder->row, owner->row, bytes) &&
			     (!reserver || add_reserver(grouping, owner->row, reserver->row, bytes));
		}
	}
	return ok;
}

/* Add what is mapped at the end to the accounts and, if the ledger keeps lifetimes, to their parts. A space may contain
 * bytes of any process that ever shared it; the rows decide which are selected. */
static struct mmt_error *add_memory(struct grouping *grouping)
{
	const struct ledger *ledger = &grouping->replay->ledger;
	const struct resident_sums *resident = grouping->resident;
	bool ok = true;

	for (const struct process *process = NULL;
	     ok && (process = processes_next(grouping->replay->processes, process));) {
		ok = process->borrows_space || add_space(grouping, process->space);
	}
	for (unsigned kind = 0; resident && kind < HELD_PAGES; kind++) {
		map_each(held, &resident->held[kind], ok) {
			uint32_t account = (uint32_t)(held->key >> 32);

			if (ledger_counted(ledger, account))
				ok = add_held(grouping, account, (uint32_t)held->key, kind, held->value);
		}
	}
	for (size_t i = 0; i < ledger->lifetimes.parts.count; i++) {
		uint64_t *held = ledger->lifetimes.parts.items[i].held.bytes;

		resident_sums_limit(resident, &held[HELD_RESIDENT], held[HELD_COMMITTED] + held[HELD_RESERVED]);
		resident_sums_limit(resident, &held[HELD_RESIDENT_BEFORE], held[HELD_COMMITTED_BEFORE]);
	}
	return ok ? NULL : &error_no_memory;
}

/* Add the accounts to their rows. */
static void add_accounts(struct grouping *grouping)
{
	const struct ledger *ledger = &grouping->replay->ledger;
	struct mmt_completeness *completeness = &grouping->report->completeness;

	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];
		const struct held_memory *held = &grouping->accounts[i];
		/* The calls that mapped memory or made it accessible. Lost calls have bytes, but no count and stack. */
		uint64_t count = account->allocated_count + account->committed_count;
		struct mmt_row *row;

		if (account->row == LEDGER_NO_ROW)
			continue;
		row = &grouping->figures[account->row - 1];
		figure_add(&row->allocated_bytes, account->allocated_bytes);
		row->allocated_count += account->allocated_count;
		figure_add(&row->freed_bytes, account->freed_bytes);
		row->freed_count += account->freed_count;
		if (!count)
			count = account->allocated_bytes > 0;
		completeness->stacks_by_end[account->stack_end] += count;
		if (!mmt_stack_end_is_complete(account->stack_end))
			completeness->truncated_stacks += count;
		else if (account->doubtful)
			completeness->doubtful_stacks += count;
		else
			completeness->complete_stacks += count;
		row->committed_bytes += held->bytes[HELD_COMMITTED];
		row->committed_before_bytes += held->bytes[HELD_COMMITTED_BEFORE];
		row->reserved_bytes += held->bytes[HELD_RESERVED];
		figure_add(&row->swapped_bytes, held->bytes[HELD_SWAPPED]);
		if (held->resident_known) {
			figure_add(&row->resident_bytes, held->bytes[HELD_RESIDENT]);
			figure_add(&row->resident_before_bytes, held->bytes[HELD_RESIDENT_BEFORE]);
		}
	}
}

/* What a thread of a process has of a row, or a process that only made its memory accessible. */
struct row_share {
	uint64_t bytes; /* unfreed; 0: of a process */
	uint32_t row;	/* number - 1 */
	uint32_t thread;
	int32_t pid;
};

COMPARISON(compare_shares, struct row_share,
	   order_of(a->row, b->row) ?: order_of(b->bytes, a->bytes) ?: order_of(a->thread, b->thread)
	   ?: order_of(a->pid, b->pid))

/* List the threads of each row with the sums of (row, thread) pairs. Stacks that only made memory accessible that
 * others had mapped have no threads, but processes. */
static struct mmt_error *add_threads(struct grouping *grouping)
{
	const struct replay *replay = grouping->replay;
	const struct ledger *ledger = &replay->ledger;
	size_t room = grouping->thread_bytes.count + ledger->accounts.count, count = 0;
	CLEANUP(free) struct row_share *shares = calloc(room + 1, sizeof(*shares));
	struct mmt_thread *threads = arena_alloc(grouping->rows->arena, grouping->thread_bytes.count, sizeof(*threads));
	int32_t *pids = arena_alloc(grouping->rows->arena, room, sizeof(*pids));
	struct map seen = {0}; /* row << 32 | PID: two processes may have had it, one after the other */
	bool ok = shares && threads && pids;

	map_each(thread, &grouping->thread_bytes, ok) {
		uint32_t process = replay->threads.items[(uint32_t)thread->key]->process;

		shares[count++] = (struct row_share){thread->value, (uint32_t)(thread->key >> 32),
						     (uint32_t)thread->key, replay->processes->all.items[process]->pid};
	}
	for (size_t i = 0; ok && i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];

		if (account->row != LEDGER_NO_ROW && account_committed(&grouping->accounts[i]))
			shares[count++] = (struct row_share){0, account->row - 1, LEDGER_NO_THREAD,
							     replay->processes->all.items[account->process]->pid};
	}
	if (count)
		qsort(shares, count, sizeof(*shares), compare_shares);
	for (size_t i = 0; ok && i < count; i++) {
		struct mmt_row *row = &grouping->figures[shares[i].row];
		uint64_t key = (uint64_t)shares[i].row << 32 | (uint32_t)shares[i].pid;

		if (!shares[i].bytes && row->thread_count)
			continue;
		if (shares[i].bytes) {
			const struct thread *thread = replay->threads.items[shares[i].thread];

			*threads = (struct mmt_thread){
			    .pid = shares[i].pid,
			    .tid = thread->tid,
			    .name = arena_string(grouping->rows->arena,
						 intern_get(&replay->processes->names, thread->name, NULL))};
			ok = threads->name;
			row->threads = row->thread_count++ ? row->threads : threads;
			threads++;
		}
		if (map_get(&seen, key))
			continue;
		ok = ok && map_put(&seen, key, 1);
		row->pids = row->pid_count++ ? row->pids : pids;
		*pids++ = shares[i].pid;
	}
	map_deinit(&seen);
	return ok ? NULL : &error_no_memory;
}

/* Row numbers, by their figures. */
COMPARISON_WITH(compare_rows, uint32_t, struct mmt_row,
		order_of(with[*b].memory_bytes, with[*a].memory_bytes)
		?: order_of(figures_held_bytes(&with[*b]), figures_held_bytes(&with[*a]))
		?: order_of(with[*b].allocated_bytes, with[*a].allocated_bytes) ?: order_of(*a, *b))

struct mmt_error *row_figures_verify(const struct mmt_row *row)
{
	/* A sum that has reached its maximum cannot be verified. */
	if (row->allocated_bytes == MMT_BYTES_MAX || row->allocated_bytes - row->freed_bytes == row->unfreed_bytes)
		return NULL;
	return error_create(MMT_ERROR_INTERNAL,
			    "a bug in mmtrace: %" PRIu64 " bytes mapped, %" PRIu64 " freed, but %" PRIu64
			    " unfreed%s%s; please report it",
			    row->allocated_bytes, row->freed_bytes, row->unfreed_bytes,
			    row->frame_count && row->frames[0]->function ? " by a stack that begins with " : "",
			    row->frame_count && row->frames[0]->function ? row->frames[0]->function : "");
}

static struct mmt_error *rank(struct grouping *grouping)
{
	size_t count = grouping->row_count;
	CLEANUP(free) uint32_t *order = calloc(count + 1, sizeof(*order));
	CLEANUP(free) uint64_t *most = calloc(count + 1, sizeof(*most)); /* of reserved bytes */
	uint32_t *ids = arena_alloc(grouping->rows->arena, count + 1, sizeof(*ids));
	size_t step_count = grouping->report->step_count;
	struct mmt_row *figures = grouping->figures;
	uint64_t *steps;

	if (!order || !most || !ids)
		return &error_no_memory;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), compare_rows, figures);
	for (size_t i = 0; i < count; i++) {
		struct mmt_row *row = &figures[order[i]];

		row->id = ids[order[i]] = (uint32_t)i + 1;
		/* Only the largest rows have steps if there are too many rows for all. */
		if (!step_count || step_count * (i + 1) > LIMIT_STEP_FIGURES)
			continue;
		row->step_count = step_count;
		row->step_bytes = steps = arena_alloc(grouping->rows->arena, step_count, sizeof(*steps));
		if (!steps)
			return &error_no_memory;
		steps_of_rows_get(&grouping->replay->ledger.steps, order[i] + 1, steps, step_count);
	}
	grouping->rows->row_ids = ids;
	/* Link each row to the row that had reserved most of the bytes it committed. */
	map_each(reserver, &grouping->reservers, true) {
		size_t row = (size_t)(reserver->key >> 32) - 1;
		uint32_t id = ids[(uint32_t)reserver->key - 1];

		if (reserver->value < most[row] || (reserver->value == most[row] && figures[row].reserved_by < id))
			continue;
		most[row] = reserver->value;
		figures[row].reserved_by = id;
	}
	/* Move each row to the place of its id, one at a time: there may be many, and they are large. */
	for (size_t i = 0; i < count; i++) {
		while (figures[i].id != i + 1) {
			struct mmt_row *place = &figures[figures[i].id - 1], row = *place;

			*place = figures[i];
			figures[i] = row;
		}
	}
	grouping->report->rows = figures;
	grouping->report->row_count = count;
	return row_causes_build(grouping->report, figures, &grouping->rows->build_ids, grouping->rows->arena);
}

static uint64_t kind_key(const struct account *account)
{
	return (uint64_t)(account->row - 1) << 32 | account->kind;
}

/* Each row has the class and file of most of its bytes. */
static struct mmt_error *add_kinds(struct grouping *grouping)
{
	const struct rows *rows = grouping->rows;
	const struct ledger *ledger = &grouping->replay->ledger;
	CLEANUP(free) uint64_t *most = calloc(rows->items.count + 1, sizeof(*most)); /* plus 1; 0: none yet */
	struct map sums = {0};
	bool ok = most;

	array_while(account, ledger->accounts.items, ledger->accounts.count, ok) {
		ok = account->row == LEDGER_NO_ROW || map_add(&sums, kind_key(account),
							      account->allocated_bytes > account->freed_bytes
								  ? account->allocated_bytes - account->freed_bytes
								  : 0);
	}
	map_each(sum, &sums, ok)
		grouping->figures[sum->key >> 32].file_count += sum->value && classes_kind_path((uint32_t)sum->key);
	array_while(account, ledger->accounts.items, ledger->accounts.count, ok) {
		uint32_t path = classes_kind_path(account->kind);
		uint64_t bytes;
		struct mmt_row *row;

		if (account->row == LEDGER_NO_ROW)
			continue;
		bytes = *map_get(&sums, kind_key(account));
		if (bytes < most[account->row - 1])
			continue;
		most[account->row - 1] = bytes + 1;
		row = &grouping->figures[account->row - 1];
		row->memory_class = account->memory_class;
		row->file = path ? arena_string(rows->arena, resolver_path_name(rows->replay->code, path)) : NULL;
		ok = !path || row->file;
	}
	map_deinit(&sums);
	return ok ? NULL : &error_no_memory;
}

#define ONE_ARENA_PERCENT 75
#define ARENAS_ADVISED 2

/* Accessible memory in the malloc arenas of a process: all of it, and that of the thread that has most. */
struct arena_bytes {
	uint64_t all, largest;
};

/* `bytes_ret`: by index of the process. False: out of memory. */
static bool measure_arenas(const struct replay *replay, struct arena_bytes *bytes_ret)
{
	bool ok = true;

	for (const struct process *process = NULL; ok && (process = processes_next(replay->processes, process));) {
		struct arena_bytes *of_process = &bytes_ret[process->index];
		struct map threads = {0}; /* -> bytes */

		if (process->borrows_space)
			continue;
		space_each(interval, process->space, ok) {
			const struct account *owner = process_totals_owner(replay, interval);
			bool is_used = interval->attributes.noreserve && interval->attributes.protection;

			if (is_used && owner && owner->pattern == MMT_PATTERN_ARENA)
				ok = map_add(&threads, ledger_allocation(&replay->ledger, interval->allocation)->thread,
					     interval->end - interval->start);
		}
		map_each(thread, &threads, true) {
			of_process->largest = larger_of(thread->value, of_process->largest);
			of_process->all += thread->value;
		}
		map_deinit(&threads);
	}
	return ok;
}

bool row_limits_arenas(const struct replay *replay, const struct process *process)
{
	const uint64_t *limit = runtime_options_find(&replay->metadata->options, process->pid, process->program_ns,
						     OPTION_MALLOC_ARENA_MAX);

	return limit && *limit && *limit <= ARENAS_ADVISED;
}

static enum arena_use find_arena_use(const struct replay *replay, const struct arena_bytes *bytes,
				     const struct mmt_row *row)
{
	uint64_t largest = 0, all = 0;
	bool limited = true;

	for (size_t i = 0; i < row->pid_count; i++) {
		const struct process *process = processes_find(replay->processes, row->pids[i]);

		if (!process)
			continue;
		largest += bytes[process->index].largest;
		all += bytes[process->index].all;
		limited &= row_limits_arenas(replay, process);
	}
	if (limited && row->pid_count)
		return ARENAS_LIMITED;
	return all && largest >= all / 100 * ONE_ARENA_PERCENT ? ARENAS_OF_ONE_THREAD : ARENAS_OF_SEVERAL_THREADS;
}

struct thread_end {
	uint32_t process;
	uint64_t time_ns;
};

COMPARISON(compare_ends, struct thread_end, order_of(a->process, b->process) ?: order_of(b->time_ns, a->time_ns))

/* By process: the threads that live at the end, or that the end of their process ended, one right after the other. The
 * caller frees it. NULL: out of memory. */
static uint32_t *count_live_threads(const struct replay *replay)
{
	uint32_t *counts = calloc(replay->processes->all.count + 1, sizeof(*counts));
	CLEANUP(free) struct thread_end *ends = calloc(replay->threads.count + 1, sizeof(*ends));
	uint64_t later_ns = 0;
	size_t count = 0;

	if (!counts || !ends) {
		free(counts);
		return NULL;
	}
	for (const struct process *process = NULL; (process = processes_next(replay->processes, process));) {
		for (const struct thread *thread = process->threads; thread; thread = thread->next)
			counts[process->index]++;
	}
	array_each(thread, replay->threads.items, replay->threads.count) {
		if ((*thread)->ended && replay->processes->all.items[(*thread)->process]->ended)
			ends[count++] = (struct thread_end){(*thread)->process, (*thread)->ended_ns};
	}
	qsort(ends, count, sizeof(*ends), compare_ends);
	for (size_t i = 0; i < count; i++) {
		bool is_last = !i || ends[i].process != ends[i - 1].process;

		later_ns = is_last ? ends[i].time_ns : later_ns;
		if (later_ns - ends[i].time_ns > EXIT_GAP_NS)
			continue;
		later_ns = ends[i].time_ns;
		counts[ends[i].process]++;
	}
	return counts;
}

/* Rows other than stacks have the pattern that most of their memory has, so that an allocator's memory is not called a
 * leak of the function that called it. All rows have the hint of their pattern. */
static struct mmt_error *find_patterns(struct grouping *grouping)
{
	const struct replay *replay = grouping->replay;
	const struct ledger *ledger = &replay->ledger;
	CLEANUP(free) uint64_t(*bytes)[MMT_PATTERN_KINDS] = calloc(grouping->row_count + 1, sizeof(*bytes));
	CLEANUP(free)
	struct arena_bytes *arenas = calloc(replay->processes->all.count + 1, sizeof(*arenas));
	CLEANUP(free) uint32_t *live_counts = NULL;

	if (!bytes || !arenas || !measure_arenas(replay, arenas))
		return &error_no_memory;
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];

		if (account->row != LEDGER_NO_ROW)
			bytes[account->row - 1][account->pattern] += account_committed(&grouping->accounts[i]);
	}
	for (size_t i = 0; i < grouping->row_count; i++) {
		struct mmt_row *row = &grouping->figures[i];
		uint64_t committed = row->committed_bytes + row->committed_before_bytes, live_threads = 0;

		for (unsigned pattern = 1; pattern < MMT_PATTERN_KINDS; pattern++) {
			if (row->name && bytes[i][pattern] > committed / 2)
				row->pattern = (enum mmt_pattern)pattern;
		}
		if (row->pattern == MMT_PATTERN_THREAD_STACK && !live_counts &&
		    !(live_counts = count_live_threads(replay)))
			return &error_no_memory;
		for (size_t j = 0; row->pattern == MMT_PATTERN_THREAD_STACK && j < row->pid_count; j++) {
			const struct process *process = processes_find(replay->processes, row->pids[j]);

			live_threads += process ? live_counts[process->index] : 0;
		}
		if (row->pattern)
			row->hint = hints_of_row(row, live_threads, find_arena_use(replay, arenas, row));
		if (hints_with_census(row->hint) != row->hint &&
		    heap_growth_known(grouping->report, row->pids, row->pid_count))
			row->hint = hints_with_census(row->hint);
	}
	return NULL;
}

/* Figures that are computed from the sums. */
static struct mmt_error *complete_rows(struct grouping *grouping)
{
	array_each(row, grouping->figures, grouping->row_count) {
		struct mmt_error *error = row_figures_verify(row);

		if (error)
			return error;
		if (row->resident_bytes == MMT_UNKNOWN) {
			row->memory_bytes = row->committed_bytes;
			figure_add(&row->memory_bytes, row->committed_before_bytes);
		} else {
			resident_sums_limit(grouping->resident, &row->resident_bytes,
					    row->committed_bytes + row->reserved_bytes);
			resident_sums_limit(grouping->resident, &row->resident_before_bytes,
					    row->committed_before_bytes);
			row->memory_bytes = row->resident_bytes + row->resident_before_bytes + row->swapped_bytes;
		}
		if (!row->unfreed_count)
			row->smallest_bytes = 0;
	}
	return find_patterns(grouping)
		   ?: row_verdicts_add(grouping->rows, grouping->report, grouping->resident, grouping->accounts,
				       grouping->figures)
		   ?: row_rates_add(grouping->rows, grouping->report, grouping->resident, grouping->accounts,
				    grouping->figures);
}

static struct mmt_error *publish(struct grouping *grouping)
{
	const struct ledger *ledger = &grouping->replay->ledger;
	struct mmt_report *report = grouping->report;
	struct mmt_completeness *completeness = &report->completeness;
	struct mmt_error *error;
	bool by_touch = report->by == MMT_BY_TOUCH;
	/* No pages are known of processes that ended, or called exec before they could be read, nor of memory mapped
	 * since. */
	bool known = !report->process_count || array_find(process, report->processes, report->process_count,
							  process->resident_bytes != MMT_UNKNOWN);
	bool holds = array_find(row, grouping->figures, grouping->row_count, figures_held_bytes(row) > 0);

	report->resident_bytes = grouping->resident && known && !holds ? 0 : MMT_UNKNOWN;
	report->swapped_known = grouping->replay->metadata->has_swapped && !grouping->replay->window.ends_early;
	report->resident_hugetlb_bytes = grouping->resident ? grouping->resident->owned_hugetlb_bytes : 0;
	report->resident_ns = grouping->resident ? grouping->resident->time_ns : 0;
	if (ledger->rows.count) {
		report->peak_bytes = ledger->rows.items[LEDGER_ROW_TOTAL].peak_bytes;
		report->peak_ns = ledger->rows.items[LEDGER_ROW_TOTAL].peak_ns;
	}
	error = complete_rows(grouping);
	for (size_t i = 0; !error && i < grouping->row_count; i++) {
		struct mmt_row *row = &grouping->figures[i];

		/* By touch, the first row has all accounts, and the others are of the same memory. */
		if (by_touch && i)
			error = touchers_fill_row(grouping->rows, &grouping->rows->items.items[i].touched, row);
		else
			figures_add_to_report(report, row);
		completeness->frames += row->frame_count;
		for (size_t j = 0; j < row->frame_count; j++) {
			if (row->frames[j]->function)
				continue;
			completeness->frames_without_name++;
			completeness->jit_frames_without_name += row->frames[j]->kind == MMT_FRAME_JIT;
			completeness->runtime_frames_without_name += mmt_frame_is_runtime(row->frames[j]);
		}
	}
	grouping->figures += by_touch;
	grouping->row_count -= by_touch;
	return error ? error : rank(grouping);
}

struct mmt_error *row_figures_build(struct rows *rows, const struct resident_sums *resident, struct mmt_report *report)
{
	const struct ledger *ledger = &rows->replay->ledger;
	CLEANUP(free) struct held_memory *accounts = calloc(ledger->accounts.count + 1, sizeof(*accounts));
	struct grouping grouping = {.replay = rows->replay,
				    .rows = rows,
				    .report = report,
				    .figures = arena_alloc(rows->arena, rows->items.count, sizeof(*grouping.figures)),
				    .accounts = accounts,
				    .row_count = rows->items.count,
				    .resident = resident};
	bool complete = grouping.figures && accounts && build_id_paths_init(&rows->build_ids, report);
	struct mmt_error *error = complete ? NULL : &error_no_memory;

	/* Fill in what is known about each row without its accounts. */
	for (size_t i = 0; !error && i < grouping.row_count; i++) {
		struct mmt_row *row = &grouping.figures[i];

		error = rows_describe(rows, i, row);
		if (error)
			break;
		row->origin = origin_of_stack(row->frames, row->frame_count);
		row->identity = row->name ? 0 : identity_checksum(&rows->build_ids, row);
		row->smallest_bytes = UINT64_MAX;
		row->resident_bytes = row->resident_before_bytes = MMT_UNKNOWN;
		if (i + 1 >= ledger->rows.count)
			continue;
		row->peak_bytes = ledger->rows.items[i + 1].peak_bytes;
		row->peak_ns = ledger->rows.items[i + 1].peak_ns;
		ledger_trend(ledger, (uint32_t)i + 1, report->to_ns, row->trend, MMT_TREND_POINTS);
	}
	error = error ?: add_memory(&grouping);
	if (!error)
		add_accounts(&grouping);
	if (!error)
		error = add_allocations(&grouping)
			    ?: add_kinds(&grouping) ?: add_threads(&grouping) ?: publish(&grouping);
	map_deinit(&grouping.reservers);
	map_deinit(&grouping.thread_bytes);
	return error;
}
