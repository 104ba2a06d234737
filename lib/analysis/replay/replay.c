// SPDX-License-Identifier: LGPL-2.1-or-later
/* The pass over a recording: which event goes to which process, in which order. replay-calls.c applies calls. */
#include "analysis/replay/replay.h"

#include <malloc.h>

#include "base/strings.h"

#define FOLLOWED_BYTES (1ULL << 32) /* limits are those of a file of this size */
#define PAGE_BYTES_DEFAULT 4096

/* Context of a space's observer. */
struct observed {
	struct replay *replay;
	uint32_t process; /* index */
};

static void keep_error(struct replay *replay, struct mmt_error *error)
{
	if (!replay->observer_error)
		replay->observer_error = error;
	else
		mmt_error_destroy(error);
}

static inline void watch_change(const struct replay *replay, enum replay_change change,
				const struct space_interval *interval, uint64_t bytes)
{
	if (replay->watch.change && replay->applying)
		replay->watch.change(replay->watch.context, replay, change, interval, bytes);
}

static uint32_t on_found(void *context, const struct space_interval *interval)
{
	const struct observed *observed = context;
	struct replay *replay = observed->replay;
	uint32_t allocation = ALLOCATION_UNKNOWN;

	keep_error(replay, ledger_found(&replay->ledger, observed->process, replay_calls_kind(replay, interval),
					replay->lost_stack, &allocation));
	return allocation;
}

static void on_allocated(void *context, const struct space_interval *interval)
{
	const struct observed *observed = context;
	struct replay *replay = observed->replay;

	if (interval->allocation >= ALLOCATION_FIRST)
		keep_error(replay, ledger_born(&replay->ledger, interval->allocation,
					       replay_calls_kind(replay, interval), interval->end - interval->start));
	if (!interval->attributes.protection)
		ledger_reserved(&replay->ledger, interval->allocation, interval->end - interval->start);
	if (interval->commit != COMMIT_WITH_ALLOCATION)
		ledger_uncommitted(&replay->ledger, interval->allocation, interval->end - interval->start, true);
	watch_change(replay, REPLAY_MAPPED, interval, interval->end - interval->start);
}

static void on_protected(void *context, const struct space_interval *interval, uint32_t commit_before)
{
	const struct observed *observed = context;
	struct ledger *ledger = &observed->replay->ledger;
	uint64_t bytes = interval->end - interval->start;

	ledger_reserved(ledger, interval->allocation, interval->attributes.protection ? -bytes : bytes);
	ledger_committed(ledger, interval->commit, bytes);
	ledger_committed(ledger, commit_before, -bytes);
	if (interval->commit == COMMIT_WITH_ALLOCATION)
		ledger_uncommitted(ledger, interval->allocation, -bytes, false);
	else if (commit_before == COMMIT_WITH_ALLOCATION)
		ledger_uncommitted(ledger, interval->allocation, bytes, false);
	watch_change(observed->replay, REPLAY_PROTECTED, interval, bytes);
}

static void on_released(void *context, const struct space_interval *interval, uint64_t bytes,
			const struct space_call *by)
{
	const struct observed *observed = context;
	struct replay *replay = observed->replay;
	uint32_t releaser = by && by->thread != -1 ? replay->applying_thread : LEDGER_NO_THREAD;

	if (replay->ending)
		keep_error(replay, process_totals_add(replay, replay->ending, interval));
	watch_change(replay, REPLAY_RELEASED, interval, bytes);
	if (by && by->kind == CALL_MMAP && !interval->attributes.protection)
		ledger_replaces(&replay->ledger, by->allocation, interval->allocation);
	if (!interval->attributes.protection)
		ledger_reserved(&replay->ledger, interval->allocation, -bytes);
	if (interval->commit != COMMIT_WITH_ALLOCATION) {
		ledger_uncommitted(&replay->ledger, interval->allocation, -bytes, false);
		ledger_committed(&replay->ledger, interval->commit, -bytes);
	}
	if (replay->touched.spaces.count &&
	    !touched_pages_forget(&replay->touched, replay->processes->all.items[observed->process], interval->start,
				  interval->end))
		replay->ledger.out_of_memory = true;
	ledger_released(&replay->ledger, interval->allocation, bytes, releaser);
}

static bool observe(void *context, struct process *process, struct space_observer *observer_ret)
{
	struct replay *replay = context;
	struct observed *observed = arena_alloc(&replay->arena, 1, sizeof(*observed));

	if (!observed) {
		replay->ledger.out_of_memory = true;
		return false;
	}
	*observed = (struct observed){.replay = replay, .process = process->index};
	*observer_ret = (struct space_observer){.found = on_found,
						.allocated = on_allocated,
						.released = on_released,
						.protected = on_protected,
						.context = observed};
	return true;
}

/* Find the first and last timestamp, for files without them. */
static struct mmt_error *measure(const struct reader *recording, uint64_t *first_ns_ret, uint64_t *last_ns_ret)
{
	struct reader *reader;
	struct mmt_error *error = reader_open_again(recording, &reader);
	bool end = false, says_end = *last_ns_ret != 0;

	*first_ns_ret = 0;
	if (error)
		return error;
	while (!error && !end && !(says_end && *first_ns_ret)) {
		struct event event;

		error = reader_next(reader, &event, &end);
		if (error || end || !event.time_ns)
			continue;
		if (!*first_ns_ret)
			*first_ns_ret = event.time_ns;
		*last_ns_ret = larger_of(*last_ns_ret, event.time_ns);
	}
	reader_close(reader);
	return error;
}

static struct mmt_error *find_window(struct replay *replay, const struct mmt_report_options *asked)
{
	const struct reader_metadata *metadata = replay->metadata;
	uint64_t first_ns = replay->first_ns, last_ns = metadata->has_loss ? metadata->loss.stop_ns : 0;
	struct mmt_error *error = NULL;

	replay->window =
	    (struct window){.from_ns = replay->first_ns, .allocations_to_ns = UINT64_MAX, .to_ns = UINT64_MAX};
	if (asked->from.kind == MMT_TIMESTAMP_DEFAULT && asked->to.kind == MMT_TIMESTAMP_DEFAULT && !asked->min_age_ns)
		return NULL;
	if (!first_ns || !last_ns) {
		uint64_t measured_first_ns, measured_last_ns = last_ns;

		error = measure(replay->reader, &measured_first_ns, &measured_last_ns);
		first_ns = first_ns ? first_ns : measured_first_ns;
		last_ns = last_ns ? last_ns : measured_last_ns;
	}
	if (error)
		return error;
	return window_resolve(asked, first_ns, last_ns, metadata->ours ? metadata->info.start_realtime_ns : 0,
			      &replay->window);
}

/* The state that a pass changes. */
static struct mmt_error *start_pass(struct replay *replay, const struct ledger_options *options)
{
	const struct reader_metadata *metadata = replay->metadata;
	const struct kernel_rules rules = kernel_rules_of(metadata->kernel);
	uint64_t file_bytes = replay->reader->file->follows ? FOLLOWED_BYTES : replay->reader->file->size;
	uint64_t more = file_bytes > LIMIT_SMALL_FILE_BYTES ? file_bytes - LIMIT_SMALL_FILE_BYTES : 0;
	struct processes_options spaces = {
	    .page_bytes = metadata->ours ? metadata->info.page_bytes : PAGE_BYTES_DEFAULT,
	    .rules = &rules,
	    .losses = &replay->losses,
	    .processes_max = LIMIT_PROCESSES_ANYWHERE + (size_t)((file_bytes + more) / LIMIT_PROCESS_BYTES),
	    .threads_max = LIMIT_THREADS_ANYWHERE + (size_t)(file_bytes / LIMIT_THREAD_BYTES + more),
	    .intervals_max = LIMIT_INTERVALS_ANYWHERE + file_bytes / LIMIT_INTERVAL_BYTES + more,
	    .observe = observe,
	    .context = replay};
	struct ledger_options accounts = *options;

	spaces.copies_max = spaces.intervals_max * LIMIT_COPIES_PER_INTERVAL;
	replay->stacks_max = LIMIT_STACKS_ANYWHERE + file_bytes / LIMIT_STACK_BYTES + more;
	for (size_t i = 0; i < metadata->attribute_count; i++) {
		replay->has_dumps |= role_is_dump(metadata->attributes[i].role);
		replay->large_dumps |= metadata->attributes[i].role == ROLE_LARGE_DUMP;
		replay->reclaim_recorded |= metadata->attributes[i].role == ROLE_RECLAIM;
		if (metadata->attributes[i].role == ROLE_FAULT) {
			replay->touched.recorded = true;
			replay->touched.sampled |= metadata->attributes[i].period > 1;
		}
	}
	replay->notes.memory.from_ns = replay->window.from_ns;
	replay->notes.group_selected = replay->metadata->info.all_processes;
	replay->notes.memory.page_bytes = spaces.page_bytes;
	accounts.from_ns = replay->window.from_ns;
	accounts.allocations_max = LIMIT_LIVE_ANYWHERE + (size_t)(file_bytes / LIMIT_LIVE_BYTES + more);
	accounts.allocations_to_ns = replay->window.allocations_to_ns;
	ledger_init(&replay->ledger, &accounts);
	return processes_create(&spaces, &replay->processes);
}

static struct mmt_error *prepare(struct replay *replay, const struct replay_options *options)
{
	const struct recording_residency *residency = &replay->metadata->residency;
	const struct packed_stacks *packed = &replay->metadata->stacks;
	const struct ledger_options accounts = {.find_row = options->find_row,
						.context = options->context,
						.by_thread = options->by_thread,
						.lifetime_steps = options->report->lifetime_steps};
	uint64_t stop_ns = replay->metadata->has_loss ? replay->metadata->loss.stop_ns : 0;
	struct mmt_error *error;

	if (replay->metadata->ours)
		replay->first_ns = replay->metadata->info.start_ns;
	replay->classes = options->report->classes;
	replay->notes.pids = options->report->pids;
	replay->notes.pid_count = options->report->pid_count;
	for (size_t i = 0; i < residency->processes.count; i++) {
		if (!map_put(&replay->survivors, (uint32_t)residency->processes.items[i].pid, 1))
			return &error_no_memory;
	}
	replay->has_survivors = replay->survivors.count > 0;
	replay->keep_ended = options->report->keep_ended;
	replay->command_ended = replay->metadata->info.command && replay->metadata->has_loss &&
				replay->metadata->loss.end == MMT_RECORD_END_TARGET_ENDED;
	replay->releases_ended = replay->has_survivors && !replay_keeps_ended(replay);
	error = find_window(replay, options->report) ?: start_pass(replay, &accounts);
	/* A packed recording says what a report of all of it, which keeps no more processes than usual, releases. */
	replay->two_passes = !replay->metadata->packed ||
			     (!replay->releases_ended && !replay->notes.pids && packed->processes.count != 1 &&
			      (replay->keep_ended || replay->window.ends_early || !packed->processes.count ||
			       !packed->processes.items[0].released_known));
	/* If the end is known, lifetimes need no larger step later. */
	if (!error && accounts.lifetime_steps && replay->window.from_ns &&
	    !lifetimes_reach(&replay->ledger.lifetimes,
			     stop_ns < replay->window.to_ns ? stop_ns : replay->window.to_ns))
		error = &error_no_memory;
	return error ?: resolver_create(replay->metadata, !options->report->no_demangle, replay->stacks_max, &replay->code)
		     ?: resolver_empty_stack(replay->code, STACK_END_LOST, &replay->lost_stack)
		     ?: resolver_empty_stack(replay->code, MMT_STACK_END_NOT_RECORDED, &replay->no_stack);
}

struct mmt_error *replay_init(struct replay *replay, const struct replay_options *options)
{
	struct mmt_error *error;

	*replay = (struct replay){.progress = options->report->progress, .passes = 1};
	error = reader_open(options->report->input, options->report->progress, &replay->reader);
	if (error)
		return error;
	replay->reader->decoder.only_used_stacks = true;
	replay->metadata = &replay->reader->metadata.values;
	if (options->report->follow)
		error = reader_follow(replay->reader, true);
	error = error ?: prepare(replay, options);
	if (error)
		replay_deinit(replay);
	return error;
}

/* Drop all state; `number` stays. */
static void thread_state_deinit(struct thread_state *state)
{
	vector_deinit(&state->mmap2_records);
	kept_sample_deinit(&state->call);
	kept_sample_deinit(&state->dump);
	kept_sample_deinit(&state->enter);
}

static void end_pass(struct replay *replay)
{
	touched_pages_deinit(&replay->touched);
	processes_destroy(replay->processes);
	for (size_t i = 0; i < replay->thread_states.count; i++) {
		thread_state_deinit(replay->thread_states.items[i]);
		free(replay->thread_states.items[i]);
	}
	call_stacks_deinit(&replay->stacks);
	vector_deinit(&replay->mmap2_counts);
	vector_deinit(&replay->thread_states);
	vector_deinit(&replay->threads);
	mmt_error_destroy(replay->observer_error);
	ledger_deinit(&replay->ledger);
	notes_deinit(&replay->notes);
	map_deinit(&replay->reclaims);
	map_deinit(&replay->refusal_places);
	vector_deinit(&replay->refusals);
	vector_deinit(&replay->process_totals);
	vector_deinit(&replay->lost_calls.latest);
	vector_deinit(&replay->lost_dumps.latest);
	map_deinit(&replay->setuid_execs.programs);
	arena_deinit(&replay->arena);
}

void replay_deinit(struct replay *replay)
{
	end_pass(replay);
	map_deinit(&replay->survivors);
	resolver_destroy(replay->code); /* late, because it allocates memory for names */
	reader_close(replay->reader);
	*replay = (struct replay){0};
}

static struct mmt_error *find_state(struct replay *replay, struct thread *thread, struct thread_state **state_ret)
{
	struct thread_state *state = thread->context;

	*state_ret = state;
	if (state)
		return NULL;
	*state_ret = state = calloc(1, sizeof(*state));
	if (!state || !vector_push(&replay->thread_states, state)) {
		free(state);
		return &error_no_memory;
	}
	thread->context = state;
	state->place = replay->thread_states.count - 1;
	state->number = (uint32_t)replay->threads.count;
	return vector_push(&replay->threads, thread) ? NULL : &error_no_memory;
}

/* Convert a mapping record to the model's attributes. */
static struct mmt_error *describe_mapping(struct replay *replay, const struct event_mapping *mapping,
					  struct space_attributes *attributes_ret)
{
	const struct recording_info *info = &replay->metadata->info;
	uint32_t path;
	struct mmt_error *error = resolver_path(replay->code, mapping->path, &path);

	if (error)
		return error;
	*attributes_ret = (struct space_attributes){
	    .protection = mapping->protection & (PROT_READ | PROT_WRITE | PROT_EXEC),
	    .shared = mapping->flags & MAP_SHARED,
	    .heap = !strcmp(mapping->path, "[heap]"),
	    .stack = !strcmp(mapping->path, "[stack]"),
	    .shm = starts_with(mapping->path, "/SYSV"),
	    .ring = starts_with(mapping->path, "/[aio]"),
	    .zero = !(mapping->flags & MAP_SHARED) && !strcmp(mapping->path, "/dev/zero"),
	    .device_major = mapping->device_major,
	    .device_minor = mapping->device_minor,
	    .inode = mapping->inode,
	    .file_offset = mapping->file_offset,
	    .path = path,
	};
	for (size_t i = 0; mapping->inode && i < info->hugetlb_devices.count; i++)
		attributes_ret->hugetlbfs |= info->hugetlb_devices.items[i].major == mapping->device_major &&
					     info->hugetlb_devices.items[i].minor == mapping->device_minor;
	return NULL;
}

/* MMAP2 records wait for their call. Those that no call claims are the kernel's own mappings. */

void replay_mmap2_forget(struct replay *replay, struct thread_state *state)
{
	if (state->mmap2_records.count)
		replay->mmap2_counts.items[replay->threads.items[state->number]->process] -=
		    (uint32_t)state->mmap2_records.count;
	state->mmap2_records.count = 0;
}

/* Keep a record for the thread's next call, unless the record shows which call it belongs to. */
static struct mmt_error *keep_mmap2(struct replay *replay, struct thread_state *state,
				    const struct event_mapping *mapping, uint64_t time_ns)
{
	const struct thread *thread = replay->threads.items[state->number];
	struct space_mmap2 mmap2_record = {.start = mapping->start, .end = mapping->start + mapping->length};
	struct mmt_error *error = describe_mapping(replay, mapping, &mmap2_record.attributes);
	bool made = false;

	if (error || mmap2_record.end <= mmap2_record.start)
		return error;
	if (mmap2_record.attributes.ring)
		error = space_mmap2_ring(replay->processes->all.items[thread->process]->space, &mmap2_record,
					 thread->tid, time_ns, &made);
	if (error || made)
		return error;
	if (!vector_push(&state->mmap2_records, mmap2_record))
		return &error_no_memory;
	if (!vector_extend(&replay->mmap2_counts, thread->process + 1))
		return &error_no_memory;
	replay->mmap2_counts.items[thread->process]++;
	return NULL;
}

/* Keep the records: they describe the call in flight, which may still claim them. */
static struct mmt_error *apply_mmap2_records(struct replay *replay, struct thread_state *state)
{
	const struct thread *thread = replay->threads.items[state->number];
	struct space *space = replay->processes->all.items[thread->process]->space;

	array_each(mmap2_record, state->mmap2_records.items, state->mmap2_records.count) {
		struct mmt_error *error = mmap2_record->applied ? NULL : space_mmap2(space, mmap2_record);

		if (error)
			return error;
		mmap2_record->applied = true;
	}
	return NULL;
}

static struct mmt_error *flush_mmap2(struct replay *replay, struct thread_state *state)
{
	struct mmt_error *error = apply_mmap2_records(replay, state);

	if (!error)
		replay_mmap2_forget(replay, state);
	return error;
}

/* The kernel's maps have the pending records of the process's threads, which stay pending for calls in flight. */
static struct mmt_error *apply_mmap2_of_process(struct replay *replay, uint32_t process)
{
	struct mmt_error *error = NULL;

	if (process >= replay->mmap2_counts.count || !replay->mmap2_counts.items[process])
		return NULL;
	for (size_t i = 0; !error && i < replay->thread_states.count; i++) {
		struct thread_state *state = replay->thread_states.items[i];

		if (replay->threads.items[state->number]->process == process)
			error = apply_mmap2_records(replay, state);
	}
	return error;
}

static struct mmt_error *replay_exec(struct replay *replay, struct thread *thread, struct thread_state *state,
				     const struct event *event)
{
	struct mmt_error *error =
	    call_stacks_give_up(replay, state) ?: call_stacks_unwind_early(replay, thread->process);

	if (error)
		return error;
	replay_mmap2_forget(replay, state);
	error = processes_comm(replay->processes, thread, event->task.name, true, event->time_ns);
	if (!error && !map_put(&replay->setuid_execs.programs, (uint32_t)thread->tid, thread->name))
		error = &error_no_memory;
	return error;
}

static struct mmt_error *replay_exit(struct replay *replay, const struct event *event)
{
	struct thread_state *state, *last;
	struct process *process;
	struct thread *thread;
	struct mmt_error *error =
	    processes_thread(replay->processes, event->task.pid, event->task.tid, event->time_ns, &thread);

	if (error || !thread)
		return error;
	error = find_state(replay, thread, &state) ?: call_stacks_give_up(replay, state) ?: flush_mmap2(replay, state);
	if (error)
		return error;
	last = replay->thread_states.items[--replay->thread_states.count];
	replay->thread_states.items[state->place] = last;
	last->place = state->place;
	thread->context = NULL;
	thread_state_deinit(state);
	free(state);
	setuid_execs_note(&replay->setuid_execs, event);
	error = processes_exit(replay->processes, event->task.pid, event->task.tid, event->time_ns);
	if (error)
		return error;
	process = replay->processes->all.items[thread->process];
	return process->ended ? process_totals_end(replay, process) : NULL;
}

static struct mmt_error *replay_fork(struct replay *replay, const struct event *event)
{
	struct process *parent = processes_find(replay->processes, event->task.parent_pid);

	setuid_execs_note(&replay->setuid_execs, event);
	/* The copy also contains what the kernel mapped in the parent. */
	if (parent && event->task.pid != event->task.parent_pid) {
		struct mmt_error *error = apply_mmap2_of_process(replay, parent->index);

		if (error)
			return error;
	}
	return processes_fork(replay->processes, event->task.pid, event->task.tid, event->task.parent_pid,
			      event->task.parent_tid, event->time_ns);
}

/* `thread`: the main thread of the process; NULL: it ended before other threads. */
static struct mmt_error *replay_snapshot(struct replay *replay, const struct process *process, struct thread *thread,
					 const struct event *event)
{
	bool check = event->snapshot == SNAPSHOT_STOP || event->snapshot == SNAPSHOT_INTERVAL;
	struct space_attributes attributes;
	struct mmt_error *error;

	replay->has_snapshots = true;
	if (process->borrows_space)
		return NULL;
	switch (event->kind) {
	case EVENT_SNAPSHOT_BEGIN:
		error = apply_mmap2_of_process(replay, process->index);
		if (!error && thread)
			error = processes_comm(replay->processes, thread, event->task.name, false, event->time_ns);
		if (!error)
			error = space_snapshot_begin(
			    process->space, check ? SPACE_SNAPSHOT_CHECK : SPACE_SNAPSHOT_DEFINE,
			    event->snapshot == SNAPSHOT_EXEC ? ALLOCATION_KERNEL : ALLOCATION_BEFORE, event->time_ns);
		if (!error && event->snapshot == SNAPSHOT_STOP)
			space_snapshot_is_last(process->space);
		return error;
	case EVENT_SNAPSHOT_LINE:
		return describe_mapping(replay, &event->mapping, &attributes)
			   ?: space_snapshot_line(process->space, event->time_ns, event->mapping.start,
						  event->mapping.start + event->mapping.length, &attributes);
	default:
		error = space_snapshot_end(process->space, event->time_ns);
		if (!error && event->snapshot == SNAPSHOT_START && replay->watch.started)
			error = replay->watch.started(replay->watch.pages_context, replay, process);
		return error ? error : call_stacks_unwind_early(replay, process->index);
	}
}

/* The maps of an ending process shrink while they are read: keep the state from just before. Snapshots of a process
 * whose main thread has ended must not create that thread again. */
static struct mmt_error *replay_later_snapshot(struct replay *replay, const struct event *event, bool *done_ret)
{
	const struct process *process = processes_find(replay->processes, event->pid);
	struct thread *thread = NULL;
	struct mmt_error *error;

	*done_ret = process && process->ended;
	if (*done_ret || !process || !process->threads)
		return NULL;
	error = processes_thread(replay->processes, -1, event->pid, event->time_ns, &thread);
	*done_ret = !error && (!thread || thread->process != process->index);
	return *done_ret ? replay_snapshot(replay, process, NULL, event) : error;
}

/* The stack is that of the end. Which thread began it, and in which program, may be unknown when recording began. */
static struct mmt_error *replay_reclaim(struct replay *replay, const struct process *process, const struct event *event,
					uint32_t stack)
{
	const uint64_t *begun_ns = map_get(&replay->reclaims, (uint32_t)event->tid);
	struct stall stall = {.stack = stack, .process = process->index, .count = 1};

	if (event->call.result && (begun_ns || replay->reclaims.count < LIMIT_THREADS_ANYWHERE))
		return map_put(&replay->reclaims, (uint32_t)event->tid, event->time_ns) ? NULL : &error_no_memory;
	if (event->call.result || !begun_ns || *begun_ns > event->time_ns)
		return NULL;
	stall.total_ns = stall.longest_ns = subtract(event->time_ns, larger_of(*begun_ns, replay->window.from_ns));
	map_remove(&replay->reclaims, (uint32_t)event->tid);
	return ledger_stall(&replay->ledger, &stall, replay->no_stack);
}

/* Faults of a process of which no other event is known, such as those before its exec, say nothing. */
static struct mmt_error *replay_paging(struct replay *replay, const struct event *event)
{
	const struct process *process = processes_find(replay->processes, event->pid);
	struct mmt_error *error;
	uint32_t stack;

	if (!process || process->ended)
		return NULL;
	if (replay->finds_stacks)
		return call_stacks_fault(replay, process, event);
	error = replay_calls_stack(replay, event, &stack);
	if (error)
		return error;
	return event->kind == EVENT_RECLAIM ? replay_reclaim(replay, process, event, stack)
					    : touched_pages_note(replay, process, event, stack);
}

/* The sizes of a child of clone(CLONE_VM) or vfork are those of the process whose space it uses now. This is the only
 * place that drops them: later it may have a space of its own, by exec or because it outlived the other process. */
static bool is_counted_already(const struct replay *replay, const struct event *event)
{
	const struct process *process = processes_find(replay->processes, event->pid);
	const struct process *owner;

	if (!process || process->ended || !process->borrows_space)
		return false;
	owner = processes_space_owner(replay->processes, process);
	return owner != process && notes_count(&replay->notes, owner->pid);
}

static struct mmt_error *replay_note(struct replay *replay, const struct event *event)
{
	enum note_kind kind = event->note.kind;
	bool of_memory = kind == NOTE_RESIDENT || kind == NOTE_SWAPPED || kind == NOTE_LAZY_FREE;

	if (kind == NOTE_LARGE_DUMPS)
		replay->large_dumps = event->note.value;
	return kind == NOTE_BREAK || (of_memory && is_counted_already(replay, event))
		   ? NULL
		   : notes_take(&replay->notes, event);
}

static COLD struct mmt_error *replay_threadless(struct replay *replay, const struct event *event, bool *done_ret)
{
	*done_ret = true;
	switch (event->kind) {
	case EVENT_SNAPSHOT_BEGIN:
	case EVENT_SNAPSHOT_LINE:
	case EVENT_SNAPSHOT_END:
		return replay_later_snapshot(replay, event, done_ret);
	case EVENT_FAULT:
	case EVENT_RECLAIM:
		return replay_paging(replay, event);
	case EVENT_FORK:
		return replay_fork(replay, event);
	case EVENT_EXIT:
		return replay_exit(replay, event);
	case EVENT_NEW_TASK:
		return processes_new_task(replay->processes, event->task.tid, event->task.clone_flags);
	case EVENT_LOST:
		/* The record names the CPU of the loss, but not the process. */
		replay->lost_events += event->lost.count;
		replay->losses++;
		return lost_events_note(&replay->lost_calls, event->cpu, event->sequence) ? NULL : &error_no_memory;
	case EVENT_LOST_DUMPS:
		return lost_events_note(&replay->lost_dumps, event->cpu, event->sequence) ? NULL : &error_no_memory;
	case EVENT_RESIDENT_PAGES:
		return replay->watch.pages ? replay->watch.pages(replay->watch.pages_context, replay, event) : NULL;
	case EVENT_NOTE:
		*done_ret = event->note.kind != NOTE_BREAK;
		return replay_note(replay, event);
	case EVENT_PSS:
		return is_counted_already(replay, event) ? NULL : notes_take(&replay->notes, event);
	case EVENT_OTHER:
		/* Of page faults or reclaim: a begin may be without its end. */
		if (event->record_type == PERF_RECORD_LOST || event->record_type == PERF_RECORD_LOST_SAMPLES)
			map_deinit(&replay->reclaims);
		return NULL;
	default:
		*done_ret = false;
		return NULL;
	}
}

static struct mmt_error *replay_event(struct replay *replay, struct event *event)
{
	struct thread_state *state;
	struct thread *thread;
	bool done;
	struct mmt_error *error;

	replay->calls += call_stacks_counts(event);
	if (event->kind != EVENT_CALL) {
		error = replay_threadless(replay, event, &done);
		if (error || done)
			return error;
	}
	error = processes_thread(replay->processes, event->pid, event->tid, event->time_ns, &thread);
	if (error || !thread)
		return error;
	if (event->kind == EVENT_COMM && !event->task.exec)
		return processes_comm(replay->processes, thread, event->task.name, false, event->time_ns);
	error = find_state(replay, thread, &state);
	if (error)
		return error;
	if (event->kind == EVENT_CALL)
		return replay_calls_exit(replay, state, event);
	switch (event->kind) {
	case EVENT_CALL_ENTER:
		return kept_sample_set(&state->enter, event);
	case EVENT_STACK_DUMP:
		return replay->finds_stacks ? call_stacks_dump(replay, state, event) : NULL;
	case EVENT_MAPPING:
		setuid_execs_note(&replay->setuid_execs, event);
		return keep_mmap2(replay, state, &event->mapping, event->time_ns);
	case EVENT_COMM:
		return replay_exec(replay, thread, state, event);
	case EVENT_NOTE:
		space_break_before(replay->processes->all.items[thread->process]->space, event->note.value);
		return NULL;
	default:
		return replay_snapshot(replay, replay->processes->all.items[thread->process], thread, event);
	}
}

bool replay_is_alive(const struct replay *replay, const struct process *process)
{
	const struct reader_metadata *metadata = replay->metadata;

	/* Recording ended with the command, and then read the pages of those that still ran: none before the end. */
	return !process->ended && (!replay->losses || replay->window.ends_early || !metadata->has_loss ||
				   !metadata->info.command || map_get(&replay->survivors, (uint32_t)process->pid));
}

bool replay_keeps_ended(const struct replay *replay)
{
	/* Who lived to the end of a window may have ended, too. */
	bool lives = replay->window.ends_early ? replay->survivors.count > 0 : replay->has_survivors;

	return replay->notes.pids || (replay->keep_ended && (replay->command_ended || !lives));
}

struct mmt_error *replay_take_error(struct replay *replay)
{
	struct mmt_error *error = replay->observer_error;

	replay->observer_error = NULL;
	return !error && replay->ledger.out_of_memory ? &error_no_memory : error;
}

static struct mmt_error *take_event(struct replay *replay, struct event *event, bool *end)
{
	const struct replay_watch *watch = &replay->watch;
	struct mmt_error *error = NULL;

	/* perf gives its synthesized events the timestamp 0. */
	if (replay->window.ends_early && event->time_ns >= replay->window.to_ns) {
		*end = true;
		return NULL;
	}
	if (event->time_ns) {
		if (!replay->first_ns)
			replay->first_ns = event->time_ns;
		/* Without a window, a perf.data file begins with its first event. */
		if (!replay->ledger.options.from_ns)
			ledger_begin(&replay->ledger, replay->first_ns);
		replay->last_ns = larger_of(replay->last_ns, event->time_ns);
		replay->ledger.now_ns = event->time_ns;
		/* Events after a clock jump to before the recording's start still belong to the recording. */
		if (event->time_ns < replay->ledger.options.from_ns && !replay->window.windowed &&
		    replay->reader->out_of_order)
			replay->ledger.now_ns = replay->ledger.options.from_ns;
		if (watch->timestamp && event->time_ns >= watch->timestamp_ns)
			error = watch->timestamp(watch->context, replay, event->time_ns);
		if (error)
			return error;
	}
	return replay_event(replay, event) ?: replay_take_error(replay);
}

/* Take the events before this call. */
static struct mmt_error *take_events(struct replay *replay, uint64_t calls)
{
	for (uint32_t count = 1;; count++) {
		struct event *event = &replay->event;
		struct mmt_error *error = NULL;
		bool end = false;

		if (!replay->waits)
			error = reader_next(replay->reader, event, &end);
		replay->waits = !error && !end && replay->calls >= calls && call_stacks_counts(event);
		if (!error && !end && !replay->waits)
			error = take_event(replay, event, &end);
		if (error || end || replay->waits)
			return error;
		if (count % PROGRESS_EVENTS == 0 && replay->progress) {
			uint64_t total = replay->reader->file->data_end;

			replay->progress->tell(replay->progress->context, replay->pass * total + event->file_offset,
					       replay->passes * total);
		}
	}
}

static struct mmt_error *run_pass(struct replay *replay)
{
	struct mmt_error *error = take_events(replay, UINT64_MAX);

	for (size_t i = 0; !error && i < replay->thread_states.count; i++) {
		struct thread_state *state = replay->thread_states.items[i];

		error = call_stacks_give_up(replay, state) ?: flush_mmap2(replay, state);
	}
	for (struct process *process = NULL; !error && (process = processes_next(replay->processes, process));) {
		error = call_stacks_unwind_early(replay, process->index);
		replay->has_survivors |= replay_is_alive(replay, process);
		if (!error)
			space_finish(process->space);
	}
	if (!error && replay->finds_stacks)
		error = process_totals_find_followed(replay, true);
	if (error)
		return error;
	if (replay->metadata->has_loss && replay->metadata->loss.stop_ns)
		replay->last_ns = replay->metadata->loss.stop_ns;
	replay->last_ns = smaller_of(replay->last_ns, replay->window.to_ns);
	return replay_take_error(replay);
}

struct mmt_error *replay_find_stacks(struct replay *replay)
{
	replay->finds_stacks = true;
	return run_pass(replay);
}

/* Begin a pass that finds the stacks for another one. */
static struct mmt_error *start_finding(const struct replay *replay, struct reader *reader, struct replay *first)
{
	const struct ledger_options accounts = {0};

	*first = (struct replay){.reader = reader,
				 .metadata = replay->metadata,
				 .code = replay->code,
				 .finds_stacks = true,
				 .two_passes = replay->two_passes,
				 .window = replay->window,
				 .lost_stack = replay->lost_stack,
				 .no_stack = replay->no_stack,
				 .first_ns = replay->first_ns,
				 .progress = replay->progress,
				 .passes = 2,
				 .survivors = replay->survivors, /* borrowed */
				 .keep_ended = replay->keep_ended,
				 .command_ended = replay->command_ended,
				 .releases_ended = replay->releases_ended};
	return start_pass(first, &accounts);
}

struct mmt_error *replay_follow(struct replay *replay, bool (*follow)(void *context, bool new_names), void *context)
{
	struct replay ahead; /* what it finds is lent to the other pass */
	struct reader *reader;
	struct mmt_error *error = reader_open_again(replay->reader, &reader);

	if (error)
		return error;
	reader->decoder.only_used_stacks = true;
	error = start_finding(replay, reader, &ahead);
	do {
		error = error ?: reader_follow(reader, true) ?: take_events(&ahead, UINT64_MAX)
			      ?: process_totals_find_followed(&ahead, false);
		replay->stacks = ahead.stacks;
		error = error ?: take_events(replay, call_stacks_settled(&ahead)) ?: process_totals_release_followed(replay);
		call_stacks_forget(&ahead.stacks, replay->calls);
	} while (!error && follow(context, reader->names_offset >= replay->metadata->names_end));
	error = error ?: reader_follow(reader, false) ?: run_pass(&ahead);
	replay->stacks = ahead.stacks;
	error = error ?: run_pass(replay) ?: process_totals_release_followed(replay) ?: replay_take_error(replay);
	replay->stacks = (struct call_stacks){0};
	end_pass(&ahead);
	reader_close(reader);
	return error;
}

struct mmt_error *replay_run(struct replay *replay)
{
	struct mmt_error *error = NULL;
	struct replay first;

	/* Give the pass the stacks that one before it finds. */
	if (replay->two_passes) {
		error = start_finding(replay, replay->reader, &first) ?: run_pass(&first);
		replay->stacks = first.stacks;
		first.stacks = (struct call_stacks){0};
		replay->pass = 1;
		replay->passes = 2;
		end_pass(&first);
		/* Return free memory to the kernel: what the second pass allocates does not fit into the gaps. */
		(void)malloc_trim(0);
		error = error ? error : reader_rewind(replay->reader);
	}
	return error ? error : run_pass(replay);
}
