// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/groups.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <mmtrace/report.h>

#include "analysis/replay/replay.h"
#include "analysis/report/group-details.h"
#include "analysis/report/hints.h"
#include "analysis/report/row-causes.h"
#include "analysis/report/rows.h"
#include "base/cleanup.h"
#include "base/map.h"

/* What is mapped at the end, added up by row: who mapped it, who made it accessible, what of it is resident. */

struct survivor_sums {
	uint64_t unfreed_bytes, committed_bytes; /* of all classes, functions and threads */
	struct mmt_group *groups;		 /* by row number - 1; figures are added */
	bool *resident_known;			 /* likewise */
	struct map reservers; /* (row of who made accessible) << 32 | row of who had reserved -> bytes */
};

/* `sums` has room for every row. Adds to the parts of the ledger's lifetimes, too, where they are kept. */
static struct mmt_error *add_unfreed_sums(struct replay *replay, const struct rows *rows, struct survivor_sums *sums);

#define SECOND_NS 1000000000u
#define STEP_FIGURES_MAX (1u << 24)

struct grouping {
	struct replay *replay;
	struct rows *rows;
	struct arena *arena;
	struct mmt_report *report;
	struct mmt_group *groups; /* by row number - 1 */
	size_t row_count;
	struct survivor_sums sums;
	size_t step_figures;	 /* of all groups so far */
	struct map thread_bytes; /* (row - 1) << 32 | thread -> unfreed bytes */
};

/* The calls that mapped memory or made it accessible. Lost calls have bytes, but neither a count nor a stack. */
static void count_stacks(const struct grouping *grouping, const struct account *account)
{
	struct mmt_completeness *completeness = &grouping->report->completeness;
	enum mmt_stack_end end = rows_stack_end(grouping->rows, account);
	uint64_t count = account->allocated_count + account->committed_count;

	if (!count)
		count = account->allocated_bytes.low > 0;
	completeness->stacks_by_end[end] += count;
	if (!mmt_stack_end_is_complete(end))
		completeness->truncated_stacks += count;
	else if (rows_stack_is_doubtful(grouping->rows, account))
		completeness->doubtful_stacks += count;
	else
		completeness->complete_stacks += count;
}

static void add_bytes(uint64_t *sum, uint64_t bytes)
{
	*sum = saturating_add(*sum, bytes, MMT_BYTES_MAX);
}

static void add_account(struct grouping *grouping, const struct account *account)
{
	struct mmt_group *group;

	if (account->row == LEDGER_NO_ROW)
		return;
	group = &grouping->groups[account->row - 1];
	add_bytes(&group->allocated_bytes, wide_sum_get(&account->allocated_bytes, MMT_BYTES_MAX));
	group->allocated_count += account->allocated_count;
	add_bytes(&group->freed_bytes, wide_sum_get(&account->freed_bytes, MMT_BYTES_MAX));
	group->freed_count += account->freed_count;
	count_stacks(grouping, account);
}

/* What the ledger and the rows know of each group. */
static struct mmt_error *start_groups(struct grouping *grouping)
{
	const struct ledger *ledger = &grouping->replay->ledger;

	for (size_t i = 0; i < grouping->row_count; i++) {
		struct mmt_group *group = &grouping->groups[i];
		struct row_description description;
		struct mmt_error *error = rows_describe(grouping->rows, i, &description);

		if (error)
			return error;
		group->name = description.name;
		group->frames = description.frames;
		group->frame_count = description.frame_count;
		group->hidden_frame_count = description.hidden_frame_count;
		group->stack_end = description.stack_end;
		group->pattern = description.pattern;
		group->lost = description.lost;
		group->smallest_bytes = UINT64_MAX;
		if (i + 1 >= ledger->rows.count)
			continue;
		group->peak_bytes = ledger->rows.items[i + 1].peak_bytes;
		group->peak_ns = ledger->rows.items[i + 1].peak_ns;
		ledger_trend(ledger, (uint32_t)i + 1, grouping->report->to_ns, group->trend, MMT_TREND_POINTS);
	}
	for (size_t i = 0; i < ledger->accounts.count; i++)
		add_account(grouping, &ledger->accounts.items[i]);
	return NULL;
}

static struct mmt_error *name_processes(struct grouping *grouping)
{
	const struct replay *replay = grouping->replay;

	for (size_t i = 0; i < grouping->row_count; i++) {
		const struct process *process = processes_at(replay->processes, grouping->rows->items.items[i].process);
		const char *name = process_name(replay->processes, process);
		CLEANUP(free) char *text = NULL;

		if (asprintf(&text, "%s (%" PRId32 ")", *name ? name : "process", process->pid) < 0) {
			text = NULL;
			return &error_no_memory;
		}
		grouping->groups[i].name = arena_string(grouping->arena, text);
		if (!grouping->groups[i].name)
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *add_allocation(struct grouping *grouping, const struct allocation *allocation, uint32_t row)
{
	struct mmt_group *group = &grouping->groups[row - 1];
	uint64_t key = (uint64_t)(row - 1) << 32 | allocation->thread;
	const uint64_t *bytes = map_get(&grouping->thread_bytes, key);

	if (!group->unfreed_count || allocation->time_ns < group->first_ns)
		group->first_ns = allocation->time_ns;
	if (allocation->time_ns > group->last_ns)
		group->last_ns = allocation->time_ns;
	if (allocation->live_bytes < group->smallest_bytes)
		group->smallest_bytes = allocation->live_bytes;
	if (allocation->live_bytes > group->largest_bytes)
		group->largest_bytes = allocation->live_bytes;
	group->original_bytes += allocation->original_bytes;
	group->unfreed_count++;
	if (!bytes)
		group->thread_count++;
	return map_put(&grouping->thread_bytes, key, (bytes ? *bytes : 0) + allocation->live_bytes) ? NULL
												    : &error_no_memory;
}

static struct mmt_error *add_allocations(struct grouping *grouping)
{
	const struct ledger *ledger = &grouping->replay->ledger;

	for (size_t i = 0; i < ledger->allocations.count; i++) {
		const struct allocation *allocation = &ledger->allocations.items[i];
		struct mmt_error *error;
		uint32_t row;

		/* Of what was found nobody knows how many calls it was, when and whose. */
		if (!allocation->in_use || allocation->account == LEDGER_NO_ACCOUNT || !allocation->live_bytes ||
		    allocation->found)
			continue;
		row = ledger->accounts.items[allocation->account].row;
		if (row == LEDGER_NO_ROW)
			continue;
		error = add_allocation(grouping, allocation, row);
		if (error)
			return error;
	}
	return NULL;
}

struct thread_share {
	uint32_t thread;
	uint64_t bytes;
};

static int compare_shares(const void *left, const void *right)
{
	const struct thread_share *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

static struct mmt_error *list_pids(struct grouping *grouping, struct mmt_group *group)
{
	int32_t *pids = arena_alloc(grouping->arena, group->thread_count, sizeof(*pids));
	struct map seen = {0};

	if (!pids)
		return &error_no_memory;
	for (size_t i = 0; i < group->thread_count; i++) {
		int32_t pid = group->threads[i].pid;

		if (map_get(&seen, (uint32_t)pid))
			continue;
		pids[group->pid_count++] = pid;
		if (!map_put(&seen, (uint32_t)pid, 1)) {
			map_deinit(&seen);
			return &error_no_memory;
		}
	}
	map_deinit(&seen);
	group->pids = pids;
	return NULL;
}

static struct mmt_error *list_threads(struct grouping *grouping, struct mmt_group *group, struct thread_share *shares)
{
	struct mmt_thread *threads = arena_alloc(grouping->arena, group->thread_count, sizeof(*threads));

	if (!threads)
		return &error_no_memory;
	qsort(shares, group->thread_count, sizeof(*shares), compare_shares);
	for (size_t i = 0; i < group->thread_count; i++) {
		const struct replay *replay = grouping->replay;
		const struct replay_thread *thread = &replay->threads.items[shares[i].thread];

		threads[i].pid = processes_at(replay->processes, thread->process)->pid;
		threads[i].tid = thread->tid;
		threads[i].name =
		    arena_string(grouping->arena, processes_name(replay->processes, thread->thread->name));
		if (!threads[i].name)
			return &error_no_memory;
	}
	group->threads = threads;
	return list_pids(grouping, group);
}

/* Hand the (group, thread) sums out to their groups. */
static struct mmt_error *add_threads(struct grouping *grouping)
{
	size_t total = grouping->thread_bytes.count, first = 0, position = 0;
	struct thread_share *shares = calloc(total + 1, sizeof(*shares));
	size_t *filled = calloc(grouping->row_count + 1, sizeof(*filled));
	struct mmt_error *error = shares && filled ? NULL : &error_no_memory;
	uint64_t key, bytes;

	for (size_t i = 0; !error && i < grouping->row_count; i++) {
		filled[i] = first;
		first += grouping->groups[i].thread_count;
	}
	while (!error && map_next(&grouping->thread_bytes, &position, &key, &bytes))
		shares[filled[key >> 32]++] = (struct thread_share){.thread = (uint32_t)key, .bytes = bytes};
	for (size_t i = 0; !error && i < grouping->row_count; i++) {
		struct mmt_group *group = &grouping->groups[i];

		error = list_threads(grouping, group, shares + filled[i] - group->thread_count);
	}
	free(shares);
	free(filled);
	return error;
}

/* Of groups with equal memory, mostly none: what they hold, or use of the memory that others reserved. */
static uint64_t rank_bytes(const struct mmt_group *group)
{
	uint64_t committed = group->committed_bytes + group->committed_before_bytes;

	return group->unfreed_bytes > committed ? group->unfreed_bytes : committed;
}

/* Of groups by their numbers. */
static int compare_groups(const void *left, const void *right, void *context)
{
	const struct mmt_group *groups = context;
	const struct mmt_group *a = &groups[*(const uint32_t *)left], *b = &groups[*(const uint32_t *)right];

	if (a->memory_bytes != b->memory_bytes)
		return a->memory_bytes < b->memory_bytes ? 1 : -1;
	if (rank_bytes(a) != rank_bytes(b))
		return rank_bytes(a) < rank_bytes(b) ? 1 : -1;
	if (a->allocated_bytes != b->allocated_bytes)
		return a->allocated_bytes < b->allocated_bytes ? 1 : -1;
	return a < b ? -1 : a > b;
}

static void count_unnamed(struct mmt_completeness *completeness, const struct mmt_frame *frame)
{
	if (frame->function)
		return;
	completeness->frames_without_name++;
	completeness->jit_frames_without_name += frame->kind == MMT_FRAME_JIT;
	completeness->runtime_frames_without_name += mmt_frame_is_runtime(frame);
}

static void add_to_report(struct mmt_report *report, const struct mmt_group *group)
{
	add_bytes(&report->unfreed_bytes, group->unfreed_bytes);
	add_bytes(&report->committed_bytes, group->committed_bytes);
	add_bytes(&report->committed_before_bytes, group->committed_before_bytes);
	add_bytes(&report->reserved_bytes, group->reserved_bytes);
	add_bytes(&report->allocated_bytes, group->allocated_bytes);
	add_bytes(&report->freed_bytes, group->freed_bytes);
	if (group->resident_bytes != MMT_UNKNOWN)
		report->resident_bytes =
		    (report->resident_bytes == MMT_UNKNOWN ? 0 : report->resident_bytes) + group->resident_bytes;
	report->completeness.frames += group->frame_count;
	for (size_t i = 0; i < group->frame_count; i++)
		count_unnamed(&report->completeness, group->frames[i]);
}

struct mmt_error *groups_verify(const struct mmt_group *group)
{
	/* The difference is unknown if a sum has reached its maximum. */
	if (group->allocated_bytes == MMT_BYTES_MAX ||
	    group->allocated_bytes - group->freed_bytes == group->unfreed_bytes)
		return NULL;
	return error_create(MMT_ERROR_INTERNAL,
			    "a fault of mmtrace: %" PRIu64 " bytes mapped, %" PRIu64 " freed, but %" PRIu64
			    " unfreed%s%s; please report it",
			    group->allocated_bytes, group->freed_bytes, group->unfreed_bytes,
			    group->frame_count && group->frames[0]->function ? " by a stack that begins with " : "",
			    group->frame_count && group->frames[0]->function ? group->frames[0]->function : "");
}

/* The row that had reserved most of what each row made accessible; row_count: none. */
static struct mmt_error *link_reservers(struct grouping *grouping, const uint32_t *ids)
{
	uint64_t *most = calloc(grouping->row_count + 1, sizeof(*most));
	size_t position = 0;
	uint64_t key, bytes;

	if (!most)
		return &error_no_memory;
	while (map_next(&grouping->sums.reservers, &position, &key, &bytes)) {
		size_t row = (size_t)(key >> 32) - 1;
		uint32_t id = ids[(uint32_t)key - 1];

		if (bytes < most[row] || (bytes == most[row] && grouping->groups[row].reserved_by < id))
			continue;
		most[row] = bytes;
		grouping->groups[row].reserved_by = id;
	}
	free(most);
	return NULL;
}

/* Those of the largest groups, when all would be too many. */
static struct mmt_error *copy_steps(struct grouping *grouping, struct mmt_group *group, uint32_t row)
{
	size_t count = grouping->report->step_count;
	uint64_t *bytes;

	if (!count || grouping->step_figures + count > STEP_FIGURES_MAX)
		return NULL;
	grouping->step_figures += count;
	bytes = arena_alloc(grouping->arena, count, sizeof(*bytes));
	if (!bytes)
		return &error_no_memory;
	steps_of_rows_get(&grouping->replay->ledger.steps, row, bytes, count);
	group->step_bytes = bytes;
	group->step_count = count;
	return NULL;
}

/* Each to the place that its id says, one for one: there may be many, and they are large. */
static void sort_groups(struct mmt_group *groups, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		while (groups[i].id != i + 1) {
			struct mmt_group *place = &groups[groups[i].id - 1], group = *place;

			*place = groups[i];
			groups[i] = group;
		}
	}
}

static struct mmt_error *rank(struct grouping *grouping)
{
	size_t count = grouping->row_count;
	CLEANUP(free) uint32_t *order = calloc(count + 1, sizeof(*order));
	uint32_t *ids = arena_alloc(grouping->arena, count + 1, sizeof(*ids));
	struct mmt_error *error;

	if (!order || !ids)
		return &error_no_memory;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), compare_groups, grouping->groups);
	for (size_t i = 0; i < count; i++)
		ids[order[i]] = (uint32_t)i + 1;
	grouping->rows->group_ids = ids;
	error = link_reservers(grouping, ids);
	for (size_t i = 0; !error && i < count; i++)
		error = copy_steps(grouping, &grouping->groups[order[i]], order[i] + 1);
	for (size_t i = 0; i < count; i++)
		grouping->groups[i].id = ids[i];
	sort_groups(grouping->groups, count);
	grouping->report->groups = grouping->groups;
	grouping->report->group_count = count;
	return error ? error : row_causes_build(grouping->report, grouping->groups, grouping->arena);
}

static void set_residency_unknown(struct mmt_group *group)
{
	group->memory_bytes = group->committed_bytes;
	add_bytes(&group->memory_bytes, group->committed_before_bytes);
	group->resident_bytes = group->resident_before_bytes = MMT_UNKNOWN;
}

static uint64_t per_minute(const struct mmt_report *report, uint64_t bytes)
{
	uint64_t length_ns = report->to_ns > report->from_ns ? report->to_ns - report->from_ns : 0;

	if (length_ns < SECOND_NS)
		return MMT_UNKNOWN;
	return (uint64_t)((double)bytes * 60 * SECOND_NS / (double)length_ns);
}

static uint64_t count_live_threads(const struct replay *replay, const struct mmt_group *group)
{
	uint64_t count = 0;

	for (size_t i = 0; i < processes_count(replay->processes); i++) {
		const struct process *process = processes_at(replay->processes, (uint32_t)i);

		for (size_t j = 0; j < group->pid_count; j++) {
			if (group->pids[j] == process->pid)
				count += process->live_threads;
		}
	}
	return count;
}

static struct mmt_error *publish(struct grouping *grouping)
{
	const struct ledger *ledger = &grouping->replay->ledger;
	struct mmt_report *report = grouping->report;
	bool resident = grouping->replay->metadata->has_residency && !grouping->replay->window.ends_early;

	report->resident_bytes = resident ? 0 : MMT_UNKNOWN;
	report->unfiltered_unfreed_bytes = grouping->sums.unfreed_bytes;
	report->unfiltered_committed_bytes = grouping->sums.committed_bytes;
	if (ledger->rows.count) {
		report->peak_bytes = ledger->rows.items[LEDGER_ROW_TOTAL].peak_bytes;
		report->peak_ns = ledger->rows.items[LEDGER_ROW_TOTAL].peak_ns;
	}
	for (size_t i = 0; i < grouping->row_count; i++) {
		struct mmt_group *group = &grouping->groups[i];
		struct mmt_error *error = groups_verify(group);

		if (error)
			return error;
		if (grouping->sums.resident_known[i])
			group->memory_bytes = group->resident_bytes + group->resident_before_bytes;
		else
			set_residency_unknown(group);
		if (!group->unfreed_count)
			group->smallest_bytes = 0;
		group->bytes_per_minute = per_minute(report, group->memory_bytes);
		if (group->pattern)
			group->hint = hints_of_group(group, count_live_threads(grouping->replay, group));
		add_to_report(report, group);
	}
	return rank(grouping);
}

struct mmt_error *groups_build(struct replay *replay, struct rows *rows, struct arena *arena, struct mmt_report *report)
{
	struct grouping grouping = {
	    .replay = replay, .rows = rows, .arena = arena, .report = report, .row_count = rows->items.count};
	struct mmt_error *error;

	grouping.groups = arena_alloc(arena, grouping.row_count, sizeof(*grouping.groups));
	grouping.sums.groups = grouping.groups;
	grouping.sums.resident_known = arena_alloc(arena, grouping.row_count, sizeof(bool));
	if (!grouping.groups || !grouping.sums.resident_known)
		return &error_no_memory;
	error = start_groups(&grouping);
	if (!error && report->by == MMT_BY_PROCESS)
		error = name_processes(&grouping);
	if (!error)
		error = add_unfreed_sums(replay, rows, &grouping.sums);
	if (!error)
		error = add_allocations(&grouping);
	if (!error)
		error = group_details_add(replay, rows, arena, report, grouping.groups);
	if (!error)
		error = add_threads(&grouping);
	if (!error)
		error = publish(&grouping);
	map_deinit(&grouping.sums.reservers);
	map_deinit(&grouping.thread_bytes);
	return error;
}

static const struct process_residency *find_residency(const struct replay *replay, const struct process *process)
{
	const struct recording_residency *residency = &replay->metadata->residency;

	if (!replay->metadata->has_residency || process->ended || replay->window.ends_early)
		return NULL;
	for (size_t i = 0; i < residency->processes.count; i++) {
		if (residency->processes.items[i].pid == process->pid)
			return &residency->processes.items[i];
	}
	return NULL;
}

/* Both ascend, so `*run` only moves forward. */
static uint64_t resident_bytes(const struct process_residency *residency, size_t *run,
			       const struct space_interval *interval)
{
	uint64_t bytes = 0;

	for (size_t i = *run; i < residency->runs.count; i++) {
		const struct resident_run *resident = &residency->runs.items[i];
		uint64_t start = resident->start > interval->start ? resident->start : interval->start;
		uint64_t end = resident->end < interval->end ? resident->end : interval->end;

		if (resident->end <= interval->start)
			*run = i + 1;
		if (resident->start >= interval->end)
			break;
		if (start < end)
			bytes += end - start;
	}
	return bytes;
}

/* Who made it accessible, where that is not the call that mapped it. */
static const struct account *find_committer(const struct replay *replay, const struct space_interval *interval)
{
	uint32_t commit = interval->commit;

	if (commit < COMMIT_FIRST || commit - COMMIT_FIRST >= replay->ledger.commits.count)
		return NULL;
	return ledger_counted(&replay->ledger, replay->ledger.commits.items[commit - COMMIT_FIRST]);
}

/* Whose figures the accessible bytes of an interval, and what is resident of them, belong to: who made them so. Where
 * rows are kinds of memory, they are the memory's. */
static const struct account *find_holder(const struct replay *replay, const struct rows *rows,
					 const struct space_interval *interval, const struct account *owner)
{
	bool by_kind = rows->options->by == MMT_BY_CLASS || rows->options->by == MMT_BY_FILE;
	const struct account *committer = by_kind ? NULL : find_committer(replay, interval);

	return committer ? committer : owner;
}

static bool add_reserver(struct survivor_sums *sums, uint32_t row, uint32_t reserver, uint64_t bytes)
{
	uint64_t key = (uint64_t)row << 32 | reserver;
	const uint64_t *sum = map_get(&sums->reservers, key);

	return row == reserver || map_put(&sums->reservers, key, (sum ? *sum : 0) + bytes);
}

/* The part that accessible bytes of an interval belong to, or NULL: none are kept. False: out of memory. */
static bool find_part(struct replay *replay, const struct account *account, const struct allocation *allocation,
		      struct lifetime_part **part_ret)
{
	struct ledger *ledger = &replay->ledger;
	uint32_t number = (uint32_t)(account - ledger->accounts.items);
	bool is_owner = allocation && allocation->account == number;

	*part_ret = NULL;
	if (!ledger->lifetimes.steps_max)
		return true;
	*part_ret = lifetimes_part(&ledger->lifetimes, number, is_owner ? allocation->thread : LEDGER_NO_THREAD);
	return *part_ret;
}

static bool add_owned(struct replay *replay, const struct rows *rows, struct survivor_sums *sums,
		      const struct space_interval *interval, const struct account *owner,
		      const struct allocation *allocation)
{
	uint64_t bytes = interval->end - interval->start;
	struct mmt_group *group = &sums->groups[owner->row - 1];
	const struct account *committer = find_holder(replay, rows, interval, owner);
	const struct account *reserver = allocation ? ledger_counted(&replay->ledger, allocation->reserver) : NULL;
	bool is_reserved = !interval->attributes.protection;
	struct lifetime_part *part;

	if (!find_part(replay, is_reserved ? owner : committer, allocation, &part))
		return false;
	group->unfreed_bytes += bytes;
	group->class_bytes[rows_class(rows, owner)] += bytes;
	if (part && is_reserved)
		part->reserved_bytes += bytes;
	else if (part)
		part->committed_bytes += bytes;
	if (is_reserved) {
		group->reserved_bytes += bytes;
		return true;
	}
	sums->groups[committer->row - 1].committed_bytes += bytes;
	if (!add_reserver(sums, committer->row, owner->row, bytes))
		return false;
	return !reserver || add_reserver(sums, owner->row, reserver->row, bytes);
}

/* The mapping itself is not in this report: it was made before the window, or the options exclude it. */
static bool is_of_others(const struct replay *replay, const struct rows *rows, const struct space_interval *interval,
			 const struct allocation *allocation)
{
	if (interval->allocation < ALLOCATION_FIRST || (allocation && allocation->side == LEDGER_BEFORE))
		return true;
	if (allocation && allocation->account != LEDGER_NO_ACCOUNT && rows_are_filtered(rows))
		return true;
	return allocation && !rows_selects(rows, processes_at(replay->processes, allocation->process));
}

/* Made accessible in the window by a stack of this report. */
static bool add_unowned(struct replay *replay, const struct rows *rows, struct survivor_sums *sums,
			const struct space_interval *interval, const struct allocation *allocation,
			const struct process_residency *residency, size_t *run)
{
	const struct account *committer = find_committer(replay, interval);
	struct lifetime_part *part;

	if (!committer || !interval->attributes.protection || !is_of_others(replay, rows, interval, allocation))
		return true;
	if (!find_part(replay, committer, NULL, &part))
		return false;
	sums->groups[committer->row - 1].committed_before_bytes += interval->end - interval->start;
	if (part)
		part->committed_before_bytes += interval->end - interval->start;
	if (residency) {
		uint64_t bytes = resident_bytes(residency, run, interval);

		sums->resident_known[committer->row - 1] = true;
		sums->groups[committer->row - 1].resident_before_bytes += bytes;
		if (part) {
			part->resident_known = true;
			part->resident_before_bytes += bytes;
		}
	}
	return true;
}

/* Of an interval that is in a group: what of it is resident. */
static bool add_resident(struct replay *replay, const struct rows *rows, struct survivor_sums *sums,
			 const struct space_interval *interval, uint64_t bytes)
{
	const struct account *owner = process_totals_owner(replay, interval);
	const struct account *holder = find_holder(replay, rows, interval, owner);
	struct lifetime_part *part;

	if (!find_part(replay, holder, ledger_allocation(&replay->ledger, interval->allocation), &part))
		return false;
	sums->resident_known[holder->row - 1] = true;
	sums->groups[holder->row - 1].resident_bytes += bytes;
	if (part) {
		part->resident_known = true;
		part->resident_bytes += bytes;
	}
	return true;
}

static bool is_account_of(const struct replay *replay, const struct rows *rows, uint32_t number)
{
	const struct ledger *ledger = &replay->ledger;

	return number < ledger->accounts.count &&
	       rows_selects(rows, processes_at(replay->processes, ledger->accounts.items[number].process));
}

/* To the sums without classes, focus and ignore. */
static void add_unfiltered(const struct replay *replay, const struct rows *rows, struct survivor_sums *sums,
			   const struct space_interval *interval, const struct allocation *allocation)
{
	uint64_t bytes = interval->end - interval->start;
	uint32_t commit = interval->commit - COMMIT_FIRST;
	bool counts = allocation && is_account_of(replay, rows, allocation->account);

	if (counts)
		sums->unfreed_bytes += bytes;
	if (!interval->attributes.protection)
		return;
	if (!counts && interval->commit >= COMMIT_FIRST && commit < replay->ledger.commits.count)
		counts = is_of_others(replay, rows, interval, allocation) &&
			 is_account_of(replay, rows, replay->ledger.commits.items[commit]);
	if (counts)
		sums->committed_bytes += bytes;
}

static struct mmt_error *add_process(struct replay *replay, const struct rows *rows, struct survivor_sums *sums,
				     const struct process *process)
{
	const struct process_residency *residency = find_residency(replay, process);
	const struct space_interval *interval, *previous = NULL;
	size_t run = 0;

	for (uint64_t address = 0; (interval = space_next(process->space, address)); address = interval->end) {
		const struct allocation *allocation = ledger_allocation(&replay->ledger, interval->allocation);
		const struct account *owner = process_totals_owner(replay, interval);
		bool continues = previous && continues_mapping(previous, interval);

		previous = interval;
		add_unfiltered(replay, rows, sums, interval, allocation);
		if (!owner) {
			if (!add_unowned(replay, rows, sums, interval, allocation, residency, &run))
				return &error_no_memory;
			continue;
		}
		sums->groups[owner->row - 1].mapping_count += !continues;
		if (!add_owned(replay, rows, sums, interval, owner, allocation))
			return &error_no_memory;
		if (residency && !add_resident(replay, rows, sums, interval, resident_bytes(residency, &run, interval)))
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *add_unfreed_sums(struct replay *replay, const struct rows *rows, struct survivor_sums *sums)
{
	struct mmt_error *error = NULL;

	/* A space may hold bytes of any process that ever shared it: the rows know whose are asked for. */
	for (size_t i = 0; !error && i < processes_count(replay->processes); i++) {
		const struct process *process = processes_at(replay->processes, (uint32_t)i);

		if (!process->borrows_space)
			error = add_process(replay, rows, sums, process);
	}
	return error;
}
