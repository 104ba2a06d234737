// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "analysis/thread-state.h"
#include "trace/calls.h"

#define PAGE_BYTES_DEFAULT 4096
#define EARLY_SAMPLES_MAX 20000

static void on_born(void *context, const struct space_interval *interval)
{
	ledger_born(context, interval->birth, interval->end - interval->start);
}

static void on_released(void *context, const struct space_interval *interval, uint64_t bytes,
			const struct space_call *by)
{
	(void)by;
	ledger_released(context, interval->birth, bytes);
}

static bool observe(void *context, struct process *process, struct space_observer *observer_ret)
{
	(void)process;
	*observer_ret = (struct space_observer){.born = on_born, .released = on_released, .context = context};
	return true;
}

struct mmt_error *replay_init(struct replay *replay, const char *input, bool demangle)
{
	struct processes_options options = {
	    .page_bytes = PAGE_BYTES_DEFAULT, .observe = observe, .context = &replay->ledger};
	struct mmt_error *error;

	*replay = (struct replay){0};
	error = reader_open(input, &replay->reader);
	if (error)
		return error;
	replay->metadata = reader_metadata(replay->reader);
	if (replay->metadata->ours) {
		replay->first_ns = replay->metadata->info.start_ns;
		options.page_bytes = replay->metadata->info.page_bytes;
	}
	for (size_t i = 0; i < replay->metadata->attribute_count; i++)
		replay->has_dumps |= replay->metadata->attributes[i].role == ROLE_DUMP;
	ledger_init(&replay->ledger, replay->first_ns);
	error = processes_create(&options, &replay->processes);
	if (!error)
		error = code_view_create(replay->metadata, demangle, &replay->code);
	if (error)
		replay_deinit(replay);
	return error;
}

void replay_deinit(struct replay *replay)
{
	processes_destroy(replay->processes);
	for (size_t i = 0; i < replay->thread_states.count; i++) {
		thread_state_deinit(replay->thread_states.items[i]);
		free(replay->thread_states.items[i]);
	}
	for (size_t i = 0; i < replay->early_samples.count; i++) {
		struct early_sample *early = replay->early_samples.items[i];

		if (early)
			kept_sample_deinit(&early->sample);
		free(early);
	}
	vector_deinit(&replay->early_samples);
	vector_deinit(&replay->witness_counts);
	vector_deinit(&replay->thread_states);
	vector_deinit(&replay->threads);
	code_view_destroy(replay->code);
	ledger_deinit(&replay->ledger);
	reader_close(replay->reader);
	*replay = (struct replay){0};
}

static struct mmt_error *find_state(struct replay *replay, struct thread *thread, struct thread_state **state_ret)
{
	struct replay_thread number = {.tid = thread->tid, .process = thread->process, .thread = thread};
	struct thread_state *state = thread->context;

	if (!state) {
		state = calloc(1, sizeof(*state));
		if (!state || !vector_push(&replay->thread_states, (void *)state)) {
			free(state);
			return &error_no_memory;
		}
		thread->context = state;
		state->number = (uint32_t)replay->threads.count;
		if (!vector_push(&replay->threads, number))
			return &error_no_memory;
	}
	*state_ret = state;
	return NULL;
}

static struct mmt_error *describe_mapping(struct replay *replay, const struct event_mapping *mapping,
					  struct space_attributes *attributes_ret)
{
	uint32_t path;
	struct mmt_error *error = code_view_path(replay->code, mapping->path, &path);

	if (error)
		return error;
	*attributes_ret = (struct space_attributes){
	    .protection = mapping->protection & (PROT_READ | PROT_WRITE | PROT_EXEC),
	    .shared = mapping->flags & MAP_SHARED,
	    .heap = !strcmp(mapping->path, "[heap]"),
	    .stack = !strcmp(mapping->path, "[stack]"),
	    .shm = !strncmp(mapping->path, "/SYSV", 5),
	    .device_major = mapping->device_major,
	    .device_minor = mapping->device_minor,
	    .inode = mapping->inode,
	    .file_offset = mapping->file_offset,
	    .path = path,
	};
	return NULL;
}

static struct mmt_error *count_witness(struct replay *replay, const struct thread_state *state)
{
	uint32_t process = replay->threads.items[state->number].process;

	while (replay->witness_counts.count <= process) {
		if (!vector_push(&replay->witness_counts, 0))
			return &error_no_memory;
	}
	replay->witness_counts.items[process]++;
	return NULL;
}

static void forget_witnesses(struct replay *replay, struct thread_state *state)
{
	if (state->witnesses.count)
		replay->witness_counts.items[replay->threads.items[state->number].process] -=
		    (uint32_t)state->witnesses.count;
	state->witnesses.count = 0;
}

static struct mmt_error *keep_witness(struct replay *replay, struct thread_state *state,
				      const struct event_mapping *mapping)
{
	struct space_witness witness = {.start = mapping->start, .end = mapping->start + mapping->length};
	struct mmt_error *error = describe_mapping(replay, mapping, &witness.attributes);

	if (error || witness.end <= witness.start)
		return error;
	return vector_push(&state->witnesses, witness) ? count_witness(replay, state) : &error_no_memory;
}

/* What no call of the thread has claimed the kernel did by itself. */
static struct mmt_error *flush_witnesses(struct replay *replay, struct thread_state *state)
{
	const struct replay_thread *thread = &replay->threads.items[state->number];
	struct space *space = processes_at(replay->processes, thread->process)->space;

	for (size_t i = 0; i < state->witnesses.count; i++) {
		struct mmt_error *error = space_witness(space, &state->witnesses.items[i]);

		if (error)
			return error;
	}
	forget_witnesses(replay, state);
	return NULL;
}

static struct mmt_error *flush_process_witnesses(struct replay *replay, uint32_t process)
{
	if (process >= replay->witness_counts.count || !replay->witness_counts.items[process])
		return NULL;
	for (size_t i = 0; i < replay->threads.count; i++) {
		struct mmt_error *error;

		if (replay->threads.items[i].process != process)
			continue;
		error = flush_witnesses(replay, replay->thread_states.items[i]);
		if (error)
			return error;
	}
	return NULL;
}

static bool same_sample(const struct replay *replay, const struct kept_sample *kept, const struct event *event)
{
	const struct architecture *architecture = replay->metadata->architecture;
	const uint8_t numbers[] = {architecture->instruction_pointer, architecture->stack_pointer,
				   architecture->frame_pointer};

	if (!kept->present || kept->call != event->call.call || kept->result != event->call.result)
		return false;
	for (size_t i = 0; i < sizeof(numbers); i++) {
		if (kept->stack.registers.values[numbers[i]] != event->call.stack.registers.values[numbers[i]])
			return false;
	}
	return true;
}

/* The truth sample's callchain with the dump's registers and bytes, where there is a dump. */
static struct event_stack join_stacks(const struct event_stack *truth, const struct event_stack *dump)
{
	struct event_stack joined = *truth;

	if (!dump || dump->byte_count < truth->byte_count)
		return joined;
	joined.bytes = dump->bytes;
	joined.byte_count = dump->byte_count;
	joined.bytes_wanted = dump->bytes_wanted;
	for (unsigned i = 0; i < EVENT_REGISTERS; i++) {
		if (dump->registers.known >> i & 1)
			joined.registers.values[i] = dump->registers.values[i];
	}
	joined.registers.known |= dump->registers.known;
	return joined;
}

static struct mmt_error *unwind_and_settle(struct replay *replay, const struct process *process, uint32_t birth,
					   const struct event_stack *stack)
{
	uint32_t number = 0;
	struct mmt_error *error = code_view_unwind(replay->code, process, stack, &number);

	return error ? error : ledger_settle(&replay->ledger, birth, number);
}

static struct mmt_error *keep_early_sample(struct replay *replay, uint32_t process, uint32_t birth,
					   const struct event_stack *stack)
{
	struct early_sample *early = calloc(1, sizeof(*early));

	if (!early || !vector_push(&replay->early_samples, (void *)early)) {
		free(early);
		return &error_no_memory;
	}
	early->process = process;
	early->birth = birth;
	return kept_sample_set_stack(&early->sample, stack);
}

/* The code of the process is known now, or never will be. */
static struct mmt_error *settle_early_samples(struct replay *replay, uint32_t process)
{
	size_t kept = 0;

	for (size_t i = 0; i < replay->early_samples.count; i++) {
		struct early_sample *early = replay->early_samples.items[i];
		struct mmt_error *error;

		if (early->process != process) {
			replay->early_samples.items[i] = NULL;
			replay->early_samples.items[kept++] = early;
			continue;
		}
		error = unwind_and_settle(replay, processes_at(replay->processes, process), early->birth,
					  &early->sample.stack);
		kept_sample_deinit(&early->sample);
		free(early);
		replay->early_samples.items[i] = NULL;
		if (error)
			return error;
	}
	replay->early_samples.count = kept;
	return NULL;
}

static struct mmt_error *settle(struct replay *replay, const struct thread_state *state, uint32_t birth,
				const struct event_stack *truth, const struct event_stack *dump)
{
	const struct process *process = processes_at(replay->processes, replay->threads.items[state->number].process);
	struct event_stack joined = join_stacks(truth, dump);

	if (replay->metadata->ours && !space_is_described(process->space) &&
	    replay->early_samples.count < EARLY_SAMPLES_MAX)
		return keep_early_sample(replay, process->index, birth, &joined);
	return unwind_and_settle(replay, process, birth, &joined);
}

/* A call whose dump never came: lost, and the thread has gone on. */
static struct mmt_error *settle_waiting_call(struct replay *replay, struct thread_state *state)
{
	if (!state->call.present)
		return NULL;
	state->call.present = false;
	return settle(replay, state, state->call.birth, &state->call.stack, NULL);
}

static struct mmt_error *settle_or_wait(struct replay *replay, struct thread_state *state, const struct event *event,
					uint32_t birth)
{
	const struct birth *entry = ledger_birth(&replay->ledger, birth);
	bool dumped = same_sample(replay, &state->dump, event);

	state->dump.present = false;
	if (!entry || !entry->born_bytes) {
		ledger_drop(&replay->ledger, birth);
		return NULL;
	}
	if (dumped)
		return settle(replay, state, birth, &event->call.stack, &state->dump.stack);
	if (!replay->has_dumps)
		return settle(replay, state, birth, &event->call.stack, NULL);
	state->call.birth = birth;
	return kept_sample_set(&state->call, event);
}

static const enum mmt_event_count count_kinds[CALL_KINDS] = {
    [CALL_MMAP] = MMT_COUNT_MMAP,
    [CALL_MUNMAP] = MMT_COUNT_MUNMAP,
    [CALL_MREMAP] = MMT_COUNT_MREMAP,
    [CALL_BRK] = MMT_COUNT_BRK,
    [CALL_MPROTECT] = MMT_COUNT_MPROTECT,
    [CALL_PKEY_MPROTECT] = MMT_COUNT_MPROTECT,
    [CALL_SHMAT] = MMT_COUNT_SHMAT,
    [CALL_SHMDT] = MMT_COUNT_SHMDT,
    [CALL_REMAP_FILE_PAGES] = MMT_COUNT_OTHER_CALLS,
    [CALL_IO_DESTROY] = MMT_COUNT_OTHER_CALLS,
    [CALL_MADVISE] = MMT_COUNT_OTHER_CALLS,
};

static const enum space_call_kind space_kinds[CALL_KINDS] = {
    [CALL_MMAP] = SPACE_MMAP,
    [CALL_MUNMAP] = SPACE_MUNMAP,
    [CALL_MREMAP] = SPACE_MREMAP,
    [CALL_BRK] = SPACE_BRK,
    [CALL_MPROTECT] = SPACE_MPROTECT,
    [CALL_PKEY_MPROTECT] = SPACE_MPROTECT,
    [CALL_SHMAT] = SPACE_SHMAT,
    [CALL_SHMDT] = SPACE_SHMDT,
    [CALL_REMAP_FILE_PAGES] = SPACE_REMAP_FILE_PAGES,
    [CALL_IO_DESTROY] = SPACE_IO_DESTROY,
    [CALL_MADVISE] = SPACE_MADVISE,
};

static struct mmt_error *apply_call(struct replay *replay, struct thread_state *state, const struct event *event)
{
	const struct replay_thread *thread = &replay->threads.items[state->number];
	struct space *space = processes_at(replay->processes, thread->process)->space;
	struct space_call call = {.kind = space_kinds[event->call.call],
				  .result = event->call.result,
				  .time_ns = event->time_ns,
				  .thread = event->tid};
	struct mmt_error *error = ledger_open(&replay->ledger, thread->process, state->number, &call.birth);

	if (error)
		return error;
	memcpy(call.arguments, event->call.arguments, sizeof(call.arguments));
	call.witnesses = state->witnesses.items;
	call.witness_count = state->witnesses.count;
	error = space_apply(space, &call);
	forget_witnesses(replay, state);
	if (!error)
		error = settle_or_wait(replay, state, event, call.birth);
	if (error || !replay->watch)
		return error;
	return replay->watch(replay->watch_context, replay, processes_at(replay->processes, thread->process),
			     thread->thread, event);
}

/* Plain perf: the exit has the result, the entry the arguments and, usually, the better stack. */
static bool join_enter(struct replay *replay, struct thread_state *state, struct event *event)
{
	struct kept_sample *enter = &state->enter;

	if (!enter->present || enter->call != event->call.call) {
		replay->calls_without_entry++;
		return false;
	}
	enter->present = false;
	memcpy(event->call.arguments, enter->arguments, sizeof(enter->arguments));
	event->call.has_arguments = true;
	if (enter->stack.callchain_count >= event->call.stack.callchain_count || enter->stack.bytes)
		event->call.stack = enter->stack;
	return true;
}

static struct mmt_error *replay_call(struct replay *replay, struct thread_state *state, struct event *event)
{
	struct mmt_error *error = settle_waiting_call(replay, state);

	if (error)
		return error;
	replay->events[count_kinds[event->call.call]]++;
	replay->failed_calls += event->call.result < 0 && event->call.call != CALL_BRK;
	if (!event->call.has_arguments && !join_enter(replay, state, event))
		return NULL;
	return apply_call(replay, state, event);
}

static struct mmt_error *replay_dump(struct replay *replay, struct thread_state *state, const struct event *event)
{
	if (same_sample(replay, &state->call, event)) {
		state->call.present = false;
		return settle(replay, state, state->call.birth, &state->call.stack, &event->call.stack);
	}
	return kept_sample_set(&state->dump, event);
}

static struct mmt_error *replay_comm(struct replay *replay, struct thread *thread, struct thread_state *state,
				     const struct event *event)
{
	if (event->comm.exec) {
		struct mmt_error *error = settle_waiting_call(replay, state);

		if (!error)
			error = settle_early_samples(replay, thread->process);
		if (error)
			return error;
		forget_witnesses(replay, state);
	}
	return processes_comm(replay->processes, thread, event->comm.name, event->comm.exec, event->time_ns);
}

static struct mmt_error *replay_exit(struct replay *replay, const struct event *event)
{
	struct thread_state *state;
	struct thread *thread;
	struct mmt_error *error = processes_thread(replay->processes, event->task.pid, event->task.tid, &thread);

	if (error || !thread)
		return error;
	error = find_state(replay, thread, &state);
	if (!error)
		error = settle_waiting_call(replay, state);
	if (!error)
		error = flush_witnesses(replay, state);
	if (error)
		return error;
	thread_state_deinit(state);
	return processes_exit(replay->processes, event->task.pid, event->task.tid, event->time_ns);
}

static struct mmt_error *replay_fork(struct replay *replay, const struct event *event)
{
	struct process *parent = processes_find(replay->processes, event->task.parent_pid);

	/* What the kernel made in the parent belongs into the copy. */
	if (parent && event->task.pid != event->task.parent_pid) {
		struct mmt_error *error = flush_process_witnesses(replay, parent->index);

		if (error)
			return error;
	}
	return processes_fork(replay->processes, event->task.pid, event->task.tid, event->task.parent_pid,
			      event->task.parent_tid, event->time_ns);
}

static struct mmt_error *replay_snapshot(struct replay *replay, struct thread *thread, const struct event *event)
{
	const struct process *process = processes_at(replay->processes, thread->process);
	bool check = event->snapshot == SNAPSHOT_STOP || event->snapshot == SNAPSHOT_INTERVAL;
	struct space_attributes attributes;
	struct mmt_error *error;

	replay->has_snapshots = true;
	if (process->borrows_space)
		return NULL;
	switch (event->kind) {
	case EVENT_SNAPSHOT_BEGIN:
		error = flush_process_witnesses(replay, process->index);
		if (!error)
			error = processes_comm(replay->processes, thread, event->comm.name, false, event->time_ns);
		if (error)
			return error;
		return space_snapshot_begin(process->space, check ? SPACE_SNAPSHOT_CHECK : SPACE_SNAPSHOT_DEFINE,
					    event->snapshot == SNAPSHOT_EXEC ? BIRTH_KERNEL : BIRTH_BEFORE,
					    event->time_ns);
	case EVENT_SNAPSHOT_LINE:
		error = describe_mapping(replay, &event->mapping, &attributes);
		if (error)
			return error;
		return space_snapshot_line(process->space, event->time_ns, event->mapping.start,
					   event->mapping.start + event->mapping.length, &attributes);
	default:
		error = space_snapshot_end(process->space, event->time_ns);
		return error ? error : settle_early_samples(replay, process->index);
	}
}

/* The maps of a process that is ending are read as they vanish: its state is the one just before. */
static bool is_of_ended_process(const struct replay *replay, const struct event *event)
{
	const struct process *process = processes_find(replay->processes, event->pid);

	return process && process->ended;
}

static struct mmt_error *replay_threadless(struct replay *replay, const struct event *event, bool *done_ret)
{
	*done_ret = true;
	switch (event->kind) {
	case EVENT_SNAPSHOT_BEGIN:
	case EVENT_SNAPSHOT_LINE:
	case EVENT_SNAPSHOT_END:
		*done_ret = is_of_ended_process(replay, event);
		return NULL;
	case EVENT_FORK:
		return replay_fork(replay, event);
	case EVENT_EXIT:
		return replay_exit(replay, event);
	case EVENT_NEW_TASK:
		return processes_new_task(replay->processes, event->new_task.tid, event->new_task.clone_flags);
	case EVENT_LOST:
		replay->lost_events += event->lost.count;
		return NULL;
	case EVENT_OTHER:
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
	struct mmt_error *error = replay_threadless(replay, event, &done);

	if (error || done)
		return error;
	error = processes_thread(replay->processes, event->pid, event->tid, &thread);
	if (error || !thread)
		return error;
	error = find_state(replay, thread, &state);
	if (error)
		return error;
	switch (event->kind) {
	case EVENT_CALL:
		return replay_call(replay, state, event);
	case EVENT_CALL_ENTER:
		return kept_sample_set(&state->enter, event);
	case EVENT_STACK_DUMP:
		return replay_dump(replay, state, event);
	case EVENT_MAPPING:
		return keep_witness(replay, state, &event->mapping);
	case EVENT_COMM:
		return replay_comm(replay, thread, state, event);
	default:
		return replay_snapshot(replay, thread, event);
	}
}

static struct mmt_error *finish(struct replay *replay)
{
	for (size_t i = 0; i < replay->thread_states.count; i++) {
		struct thread_state *state = replay->thread_states.items[i];
		struct mmt_error *error = settle_waiting_call(replay, state);

		if (!error)
			error = flush_witnesses(replay, state);
		if (error)
			return error;
	}
	for (size_t i = 0; i < processes_count(replay->processes); i++) {
		struct mmt_error *error = settle_early_samples(replay, (uint32_t)i);

		if (error)
			return error;
		replay->has_survivors |= !processes_at(replay->processes, (uint32_t)i)->ended;
		space_finish(processes_at(replay->processes, (uint32_t)i)->space);
	}
	if (replay->metadata->has_loss && replay->metadata->loss.stop_ns)
		replay->last_ns = replay->metadata->loss.stop_ns;
	return replay->ledger.out_of_memory ? &error_no_memory : NULL;
}

struct mmt_error *replay_run(struct replay *replay)
{
	for (;;) {
		struct event event;
		bool end;
		struct mmt_error *error = reader_next(replay->reader, &event, &end);

		if (error)
			return error;
		if (end)
			return finish(replay);
		/* perf gives what it makes up at its start the time 0. */
		if (event.time_ns) {
			if (!replay->first_ns) {
				replay->first_ns = event.time_ns;
				replay->ledger.start_ns = event.time_ns;
			}
			if (event.time_ns > replay->last_ns)
				replay->last_ns = event.time_ns;
			replay->ledger.now_ns = event.time_ns;
		}
		error = replay_event(replay, &event);
		if (error)
			return error;
	}
}

uint64_t replay_end_process(struct replay *replay, const struct process *process)
{
	const struct space_interval *interval;
	uint64_t bytes = 0;

	if (process->borrows_space)
		return 0;
	replay->ledger.now_ns = process->ended_ns;
	for (uint64_t position = 0; (interval = space_next(process->space, position)); position = interval->end) {
		if (!ledger_birth(&replay->ledger, interval->birth))
			continue;
		bytes += interval->end - interval->start;
		ledger_released(&replay->ledger, interval->birth, interval->end - interval->start);
	}
	return bytes;
}
