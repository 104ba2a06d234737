// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/groups.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/names.h"
#include "base/map.h"
#include "base/vector.h"

#define NO_GROUP UINT32_MAX

/* A group under construction; `result.trend` and the sums grow account by account. */
struct draft {
	struct mmt_group result;
	bool resident_known;
};

struct grouping {
	struct replay *replay;
	const bool *selected;
	struct arena *arena;
	struct mmt_report *report;
	struct names names;
	VECTOR(struct draft) drafts; /* by names_stack() number */
	VECTOR(uint32_t) account_groups;
	struct map thread_bytes;	 /* group << 32 | thread -> unfreed bytes */
	VECTOR(struct mmt_frame) frames; /* scratch: of one stack */
	VECTOR(uint32_t) frame_names;	 /* scratch */
};

/* The functions in which threads begin: a frame-pointer chain that reaches one has reached the end. */
static bool is_entry_function(const char *function)
{
	static const char *const entries[] = {
	    "_start",  "__libc_start_main", "__libc_start_call_main", "start_thread", "clone", "clone3",
	    "__clone", "__clone3",	    "_dl_start_user"};

	for (size_t i = 0; function && i < sizeof(entries) / sizeof(*entries); i++) {
		if (!strcmp(function, entries[i]))
			return true;
	}
	return false;
}

static bool reaches_entry(const struct grouping *grouping)
{
	for (size_t i = 0; i < grouping->frames.count; i++) {
		if (grouping->frames.items[i].doubtful)
			return false;
	}
	return grouping->frames.count && is_entry_function(grouping->frames.items[grouping->frames.count - 1].function);
}

/* Names of a stack into the scratch vectors. */
static struct mmt_error *name_stack(struct grouping *grouping, uint32_t stack, enum mmt_stack_end *end_ret)
{
	size_t count;
	const uint32_t *numbers = code_view_stack(grouping->replay->code, stack, &count, end_ret);

	grouping->frames.count = 0;
	grouping->frame_names.count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct mmt_frame *frames;
		size_t frame_count;
		struct mmt_error *error =
		    code_view_names(grouping->replay->code, numbers[i], grouping->arena, &frames, &frame_count);

		if (error)
			return error;
		for (size_t j = 0; j < frame_count; j++) {
			uint32_t name = names_frame(&grouping->names, &frames[j]);

			if (name == NAMES_NONE || !vector_push(&grouping->frames, frames[j]) ||
			    !vector_push(&grouping->frame_names, name))
				return &error_no_memory;
		}
	}
	if (*end_ret != MMT_STACK_END_ENTRY && reaches_entry(grouping))
		*end_ret = MMT_STACK_END_ENTRY;
	return NULL;
}

static struct mmt_error *start_draft(struct grouping *grouping, enum mmt_stack_end end)
{
	size_t count = grouping->frames.count;
	struct mmt_frame *frames = arena_alloc(grouping->arena, count, sizeof(*frames));
	struct draft *draft = vector_append(&grouping->drafts);

	if (!frames || !draft)
		return &error_no_memory;
	if (count)
		memcpy(frames, grouping->frames.items, count * sizeof(*frames));
	draft->result.frames = frames;
	draft->result.frame_count = count;
	draft->result.stack_end = end;
	draft->result.smallest_bytes = UINT64_MAX;
	return NULL;
}

static struct mmt_error *group_account(struct grouping *grouping, const struct account *account, uint32_t *group_ret)
{
	enum mmt_stack_end end;
	struct mmt_group *group;
	uint64_t trend[MMT_TREND_POINTS];
	struct mmt_error *error = name_stack(grouping, account->stack, &end);

	if (error)
		return error;
	*group_ret = names_stack(&grouping->names, grouping->frame_names.items, grouping->frame_names.count);
	if (*group_ret == NAMES_NONE)
		return &error_no_memory;
	if (*group_ret == grouping->drafts.count) {
		error = start_draft(grouping, end);
		if (error)
			return error;
	}
	group = &grouping->drafts.items[*group_ret].result;
	group->allocated_bytes += account->allocated_bytes;
	group->allocated_count += account->allocated_count;
	group->freed_bytes += account->freed_bytes;
	group->freed_count += account->freed_count;
	ledger_trend(&grouping->replay->ledger, account, grouping->replay->last_ns, trend, MMT_TREND_POINTS);
	for (unsigned i = 0; i < MMT_TREND_POINTS; i++)
		group->trend[i] += trend[i];
	grouping->report->completeness.stacks_by_end[end] += account->allocated_count;
	return NULL;
}

static struct mmt_error *group_accounts(struct grouping *grouping)
{
	for (size_t i = 0; i < grouping->replay->ledger.accounts.count; i++) {
		const struct account *account = &grouping->replay->ledger.accounts.items[i];
		uint32_t group = NO_GROUP;

		if (grouping->selected[account->process]) {
			struct mmt_error *error = group_account(grouping, account, &group);

			if (error)
				return error;
		}
		if (!vector_push(&grouping->account_groups, group))
			return &error_no_memory;
	}
	return NULL;
}

static struct draft *draft_of(struct grouping *grouping, const struct birth *birth)
{
	uint32_t group =
	    birth && birth->account != LEDGER_NO_ACCOUNT ? grouping->account_groups.items[birth->account] : NO_GROUP;

	return group == NO_GROUP ? NULL : &grouping->drafts.items[group];
}

static const struct process_residency *find_residency(const struct replay *replay, const struct process *process)
{
	const struct recording_residency *residency = &replay->metadata->residency;

	if (!replay->metadata->has_residency || process->ended)
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

static void add_interval(struct draft *draft, const struct space_interval *interval)
{
	uint64_t bytes = interval->end - interval->start;

	draft->result.unfreed_bytes += bytes;
	if (interval->attributes.protection)
		draft->result.committed_bytes += bytes;
	else
		draft->result.reserved_bytes += bytes;
}

static void add_process(struct grouping *grouping, const struct process *process)
{
	const struct process_residency *residency = find_residency(grouping->replay, process);
	const struct space_interval *interval;
	uint64_t address = 0;
	size_t run = 0;

	while ((interval = space_next(process->space, address))) {
		struct draft *draft = draft_of(grouping, ledger_birth(&grouping->replay->ledger, interval->birth));

		address = interval->end;
		if (!draft)
			continue;
		add_interval(draft, interval);
		if (!residency)
			continue;
		draft->resident_known = true;
		draft->result.resident_bytes += resident_bytes(residency, &run, interval);
	}
}

static struct mmt_error *add_birth(struct grouping *grouping, const struct birth *birth)
{
	struct draft *draft = draft_of(grouping, birth);
	struct mmt_group *group = &draft->result;
	uint64_t key = (uint64_t)(draft - grouping->drafts.items) << 32 | birth->thread;
	const uint64_t *bytes = map_get(&grouping->thread_bytes, key);

	if (!group->unfreed_count || birth->time_ns < group->first_ns)
		group->first_ns = birth->time_ns;
	if (birth->time_ns > group->last_ns)
		group->last_ns = birth->time_ns;
	if (birth->live_bytes < group->smallest_bytes)
		group->smallest_bytes = birth->live_bytes;
	if (birth->live_bytes > group->largest_bytes)
		group->largest_bytes = birth->live_bytes;
	group->born_bytes += birth->born_bytes;
	group->unfreed_count++;
	if (!bytes)
		group->thread_count++;
	return map_put(&grouping->thread_bytes, key, (bytes ? *bytes : 0) + birth->live_bytes) ? NULL
											       : &error_no_memory;
}

static struct mmt_error *add_survivors(struct grouping *grouping)
{
	const struct replay *replay = grouping->replay;

	for (size_t i = 0; i < processes_count(replay->processes); i++) {
		const struct process *process = processes_at(replay->processes, (uint32_t)i);

		if (!process->borrows_space)
			add_process(grouping, process);
	}
	for (size_t i = 0; i < replay->ledger.births.count; i++) {
		const struct birth *birth = &replay->ledger.births.items[i];

		if (birth->in_use && draft_of(grouping, birth)) {
			struct mmt_error *error = add_birth(grouping, birth);

			if (error)
				return error;
		}
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
	size_t *filled = calloc(grouping->drafts.count + 1, sizeof(*filled));
	struct mmt_error *error = shares && filled ? NULL : &error_no_memory;
	uint64_t key, bytes;

	for (size_t i = 0; !error && i < grouping->drafts.count; i++) {
		filled[i] = first;
		first += grouping->drafts.items[i].result.thread_count;
	}
	while (!error && map_next(&grouping->thread_bytes, &position, &key, &bytes))
		shares[filled[key >> 32]++] = (struct thread_share){.thread = (uint32_t)key, .bytes = bytes};
	for (size_t i = 0; !error && i < grouping->drafts.count; i++) {
		struct mmt_group *group = &grouping->drafts.items[i].result;

		error = list_threads(grouping, group, shares + filled[i] - group->thread_count);
	}
	free(shares);
	free(filled);
	return error;
}

static int compare_groups(const void *left, const void *right)
{
	const struct mmt_group *a = left, *b = right;

	if (a->unfreed_bytes != b->unfreed_bytes)
		return a->unfreed_bytes < b->unfreed_bytes ? 1 : -1;
	if (a->allocated_bytes != b->allocated_bytes)
		return a->allocated_bytes < b->allocated_bytes ? 1 : -1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static void add_to_report(struct mmt_report *report, const struct mmt_group *group)
{
	report->unfreed_bytes += group->unfreed_bytes;
	report->committed_bytes += group->committed_bytes;
	report->reserved_bytes += group->reserved_bytes;
	report->allocated_bytes += group->allocated_bytes;
	report->freed_bytes += group->freed_bytes;
	if (group->resident_bytes != MMT_UNKNOWN)
		report->resident_bytes =
		    (report->resident_bytes == MMT_UNKNOWN ? 0 : report->resident_bytes) + group->resident_bytes;
	report->completeness.frames += group->frame_count;
	for (size_t i = 0; i < group->frame_count; i++)
		report->completeness.frames_without_name += !group->frames[i].function;
}

static struct mmt_error *publish(struct grouping *grouping)
{
	size_t count = grouping->drafts.count;
	struct mmt_group *groups = arena_alloc(grouping->arena, count, sizeof(*groups));

	if (!groups)
		return &error_no_memory;
	grouping->report->resident_bytes = grouping->replay->metadata->has_residency ? 0 : MMT_UNKNOWN;
	for (size_t i = 0; i < count; i++) {
		const struct draft *draft = &grouping->drafts.items[i];

		groups[i] = draft->result;
		groups[i].id = (uint32_t)i;
		if (!draft->resident_known)
			groups[i].resident_bytes = MMT_UNKNOWN;
		if (!groups[i].unfreed_count)
			groups[i].smallest_bytes = 0;
		add_to_report(grouping->report, &groups[i]);
	}
	qsort(groups, count, sizeof(*groups), compare_groups);
	for (size_t i = 0; i < count; i++)
		groups[i].id = (uint32_t)i + 1;
	grouping->report->groups = groups;
	grouping->report->group_count = count;
	return NULL;
}

struct mmt_error *groups_build(struct replay *replay, const bool *selected, struct arena *arena,
			       struct mmt_report *report)
{
	struct grouping grouping = {.replay = replay, .selected = selected, .arena = arena, .report = report};
	struct mmt_error *error = group_accounts(&grouping);

	if (!error)
		error = add_survivors(&grouping);
	if (!error)
		error = add_threads(&grouping);
	if (!error)
		error = publish(&grouping);
	names_deinit(&grouping.names);
	vector_deinit(&grouping.drafts);
	vector_deinit(&grouping.account_groups);
	vector_deinit(&grouping.frames);
	vector_deinit(&grouping.frame_names);
	map_deinit(&grouping.thread_bytes);
	return error;
}
