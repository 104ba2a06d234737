// SPDX-License-Identifier: LGPL-2.1-or-later
/* What one returned call does: to the model, by its arguments, and to the ledger, by its stack. replay.c calls it. */
#include "analysis/replay/replay-calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/replay/memory-classes.h"
#include "analysis/replay/refused-calls.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/syscall-table.h"
#include "base/saturating-sum.h"

/* The call gets its stack. */
static struct mmt_error *notify_stack(struct replay *replay, const struct outcome *outcome, uint32_t stack)
{
	uint64_t delay = replay->turn++ - outcome->turn;

	if (!replay->watch.stack)
		return NULL;
	return replay->watch.stack(replay->watch.context, outcome->sequence, stack,
				   delay < UINT32_MAX ? (uint32_t)delay : UINT32_MAX);
}

static struct mmt_error *fail(struct replay *replay, const struct failure *described, uint32_t stack)
{
	struct failure failure = *described;

	failure.stack = stack;
	return ledger_fail(&replay->ledger, &failure);
}

static struct mmt_error *credit(struct replay *replay, const struct outcome *outcome, uint32_t stack)
{
	struct mmt_error *error = outcome->unwound ? NULL : notify_stack(replay, outcome, stack);

	if (stack >= replay->stacks_max) {
		stack = replay->no_stack;
		replay->stacks_left_out++;
	}
	if (!error && outcome->allocation)
		error = ledger_resolve(&replay->ledger, outcome->allocation, stack);
	if (!error && outcome->commit)
		error = ledger_resolve_commit(&replay->ledger, outcome->commit, outcome->holder, outcome->thread,
					      outcome->commit_kind, stack);
	if (!error && outcome->failure.count)
		error = fail(replay, &outcome->failure, stack);
	return error;
}

static struct mmt_error *unwind_and_credit(struct replay *replay, const struct outcome *outcome,
					   const struct event_stack *stack)
{
	uint32_t number = 0;
	struct mmt_error *error =
	    resolver_unwind(replay->code, processes_at(replay->processes, outcome->process), stack, &number);

	return error ? error : credit(replay, outcome, number);
}

/* Append to the circular list of its process; the map holds the last item. */
static struct mmt_error *keep_early_sample(struct replay *replay, const struct outcome *outcome,
					   const struct event_stack *stack)
{
	struct early_sample *early = calloc(1, sizeof(*early));
	struct early_sample *before = map_get_pointer(&replay->early_samples, outcome->process);

	if (!early || !map_put_pointer(&replay->early_samples, outcome->process, early)) {
		free(early);
		return &error_no_memory;
	}
	early->next = before ? before->next : early;
	if (before)
		before->next = early;
	replay->early_count++;
	replay->early_bytes += stack->byte_count;
	early->sample.outcome = *outcome;
	return kept_sample_set_stack(&early->sample, stack);
}

struct mmt_error *replay_calls_credit_early(struct replay *replay, uint32_t process)
{
	const struct early_sample *last = map_get_pointer(&replay->early_samples, process);
	struct early_sample *early = last ? last->next : NULL, *first = early;
	struct mmt_error *error = NULL;

	while (!error && early) {
		error = unwind_and_credit(replay, &early->sample.outcome, &early->sample.stack);
		early = early->next == first ? NULL : early->next;
	}
	if (first)
		replay_calls_forget_early(replay, process);
	return error;
}

void replay_calls_forget_early(struct replay *replay, uint32_t process)
{
	struct early_sample *last = map_get_pointer(&replay->early_samples, process);
	struct early_sample *early = last ? last->next : NULL;

	map_remove(&replay->early_samples, process);
	while (early) {
		struct early_sample *next = early == last ? NULL : early->next;

		replay->early_bytes -= early->sample.stack.byte_count;
		kept_sample_deinit(&early->sample);
		free(early);
		replay->early_count--;
		early = next;
	}
}

/* Whether the code of a process is known, or no more samples can wait for it. */
static bool can_unwind(const struct replay *replay, const struct process *process)
{
	return !replay->metadata->ours || replay->without_dumps || space_is_described(process->space) ||
	       replay->early_count >= LIMIT_EARLY_SAMPLES || replay->early_bytes >= LIMIT_EARLY_BYTES;
}

static struct mmt_error *unwind_or_keep(struct replay *replay, const struct outcome *outcome,
					const struct event_stack *syscall_event, const struct event_stack *dump)
{
	struct event_stack joined;

	if (dump) {
		joined = event_stack_join(syscall_event, dump);
		syscall_event = &joined;
	}
	if (!can_unwind(replay, processes_at(replay->processes, outcome->process)))
		return keep_early_sample(replay, outcome, syscall_event);
	return unwind_and_credit(replay, outcome, syscall_event);
}

struct mmt_error *replay_calls_resolve_waiting(struct replay *replay, struct thread_state *state)
{
	struct mmt_error *error;

	if (!state->call.present)
		return NULL;
	error = unwind_or_keep(replay, &state->call.outcome, &state->call.stack, NULL);
	kept_sample_release(&state->call);
	return error;
}

/* Memory is bounded as in the recording that was packed: one call for each thread, and those of processes whose code
 * was not known yet. */
static bool may_wait(const struct replay *replay, uint64_t turn)
{
	return replay->waiting_calls.count < LIMIT_EARLY_SAMPLES + replay->threads.count &&
	       !map_get(&replay->waiting_calls, turn);
}

/* The call of a packed recording: its stack is known, but counts from a later turn. */
static struct mmt_error *credit_in_turn(struct replay *replay, const struct outcome *outcome,
					const struct event_stack *stack)
{
	uint64_t turn = outcome->turn + stack->delay + 1;
	struct outcome *waiting;
	struct mmt_error *error;
	uint32_t number;

	if (!stack->delay || !may_wait(replay, turn))
		return unwind_and_credit(replay, outcome, stack);
	error = resolver_unwind(replay->code, processes_at(replay->processes, outcome->process), stack, &number);
	if (error)
		return error;
	waiting = malloc(sizeof(*waiting));
	if (!waiting || !map_put_pointer(&replay->waiting_calls, turn, waiting)) {
		free(waiting);
		return &error_no_memory;
	}
	*waiting = *outcome;
	waiting->stack = number;
	return NULL;
}

struct mmt_error *replay_calls_credit_due(struct replay *replay)
{
	struct mmt_error *error = NULL;
	struct outcome *waiting;

	while (!error && replay->waiting_calls.count &&
	       (waiting = map_get_pointer(&replay->waiting_calls, replay->turn + 1))) {
		map_remove(&replay->waiting_calls, replay->turn + 1);
		error = credit(replay, waiting, waiting->stack);
		free(waiting);
	}
	return error;
}

static int compare_turns(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

struct mmt_error *replay_calls_credit_rest(struct replay *replay)
{
	size_t count = 0, room = replay->waiting_calls.count;
	CLEANUP(free) uint64_t *turns = calloc(room + 1, sizeof(*turns));
	struct mmt_error *error = turns ? NULL : &error_no_memory;
	uint64_t turn, waiting;

	for (size_t position = 0; !error && map_next(&replay->waiting_calls, &position, &turn, &waiting);)
		turns[count++] = turn;
	if (count)
		qsort(turns, count, sizeof(*turns), compare_turns);
	for (size_t i = 0; !error && i < count; i++) {
		replay->turn = turns[i] - 1;
		error = replay_calls_credit_due(replay);
	}
	return error;
}

static struct mmt_error *resolve_or_wait(struct replay *replay, struct thread_state *state, const struct event *event,
					 const struct outcome *outcome)
{
	bool dumped = kept_sample_is_of(&state->dump, event, &replay->lost_calls);

	if (outcome->unwound)
		return credit(replay, outcome, outcome->stack);
	/* The stack has its turn even if this window of the recording does not need it. */
	if (replay->without_dumps && event->call.stack.resolved)
		return credit_in_turn(replay, outcome, &event->call.stack);
	if (!outcome->allocation && !outcome->commit && !outcome->failure.count)
		return replay->watch.no_stack
			   ? replay->watch.no_stack(replay->watch.context, replay,
						    processes_at(replay->processes, outcome->process), event)
			   : NULL;
	if (dumped)
		return unwind_or_keep(replay, outcome, &event->call.stack, &state->dump.stack);
	if (!replay->has_dumps || !call_has_stack(event->call.call))
		return unwind_or_keep(replay, outcome, &event->call.stack, NULL);
	state->call.outcome = *outcome;
	return kept_sample_set(&state->call, event);
}

static struct failure describe_failure(const struct event *event, uint32_t process)
{
	enum call call = event->call.call;

	return (struct failure){.process = process,
				.call = call_describe(call)->counter,
				.error = call_errno(call, event->call.result),
				.count = 1,
				.asked_bytes = call_bytes_asked(call, event->call.arguments, event->call.result),
				.first_ns = event->time_ns,
				.last_ns = event->time_ns};
}

static bool has_failed(const struct event *event)
{
	return call_has_failed(event->call.call, event->call.arguments, event->call.result);
}

uint32_t replay_calls_kind(const struct replay *replay, const struct space_interval *interval)
{
	enum mmt_class class =
	    classes_of_interval(interval, resolver_path_name(replay->code, interval->attributes.path));

	return classes_kind(class, interval);
}

/* The first PROT_NONE interval that a call to mprotect would make accessible; NULL: none. */
static const struct space_interval *find_reserved(const struct space *space, const struct thread_state *state,
						  const struct event *event)
{
	uint64_t start = event->call.arguments[0], end = start + event->call.arguments[1];
	const struct space_interval *interval;

	if (!(event->call.arguments[2] & (PROT_READ | PROT_WRITE | PROT_EXEC)))
		return NULL;
	/* A call that failed has an effect only if an MMAP2 record shows it or if it failed with ENOMEM at a hole. */
	if (has_failed(event) && event->call.result != -ENOMEM && !state->mmap2_records.count)
		return NULL;
	for (uint64_t position = start; (interval = space_next(space, position)) && interval->start < end;
	     position = interval->end) {
		if (!interval->attributes.protection)
			return interval;
	}
	return NULL;
}

static void count_made_writable(struct replay *replay, const struct space *space, const struct event *event)
{
	const struct space_interval *first = space_find(space, event->call.arguments[0]);

	if (first && first->attributes.protection && !first->attributes.shared &&
	    !(first->attributes.protection & PROT_WRITE) && (event->call.arguments[2] & PROT_WRITE) &&
	    !has_failed(event))
		replay->made_writable_bytes =
		    saturating_add(replay->made_writable_bytes, event->call.arguments[1], UINT64_MAX);
}

/* The kind of reserved bytes after the call has made them accessible. */
static uint32_t kind_after(const struct replay *replay, const struct space_interval *reserved,
			   const struct allocation *allocation, const struct event *event)
{
	struct space_interval accessible = *reserved;
	uint32_t kind;

	accessible.attributes.protection = (uint32_t)event->call.arguments[2] & (PROT_READ | PROT_WRITE | PROT_EXEC);
	kind = replay_calls_kind(replay, &accessible);
	return !allocation || classes_kind_class(kind) == MMT_CLASS_JIT ? kind : allocation->kind;
}

static uint32_t own_commit(void *context, uint32_t commit)
{
	return ledger_own_commit(context, commit);
}

/* Replace resolved commit numbers in intervals. Outcomes hold only unresolved ones. */
static struct mmt_error *sweep_commits(struct replay *replay)
{
	size_t seen = 0;

	for (size_t i = 0; i < processes_count(replay->processes); i++) {
		const struct process *process = processes_at(replay->processes, (uint32_t)i);

		if (!process->borrows_space)
			seen += 1 + space_rename_commits(process->space, own_commit, &replay->ledger);
	}
	return ledger_end_sweep(&replay->ledger, seen);
}

/* The commit number must exist before the call makes the bytes accessible, so that equal neighbours merge. */
static struct mmt_error *open_commit(struct replay *replay, const struct thread_state *state, const struct event *event,
				     const struct process *process, struct outcome *outcome, uint32_t *commit_ret)
{
	const struct space_interval *reserved;
	const struct allocation *allocation;
	struct event_stack joined;
	struct mmt_error *error;
	uint32_t stack;

	*commit_ret = COMMIT_WITH_ALLOCATION;
	if (call_describe(event->call.call)->effect != CALL_PROTECTS)
		return NULL;
	count_made_writable(replay, process->space, event);
	reserved = find_reserved(process->space, state, event);
	if (!reserved)
		return NULL;
	allocation = ledger_allocation(&replay->ledger, reserved->allocation);
	outcome->commit_kind = kind_after(replay, reserved, allocation, event);
	if (event->call.stack.delay || !can_unwind(replay, process) ||
	    (replay->has_dumps && !kept_sample_is_of(&state->dump, event, &replay->lost_calls))) {
		error = ledger_wants_sweep(&replay->ledger) ? sweep_commits(replay) : NULL;
		if (!error)
			error = ledger_open_commit(&replay->ledger, &outcome->commit);
		*commit_ret = outcome->commit;
		return error;
	}
	joined = event_stack_join(&event->call.stack, replay->has_dumps ? &state->dump.stack : NULL);
	error = resolver_unwind(replay->code, process, &joined, &stack);
	if (!error)
		error = notify_stack(replay, outcome, stack);
	outcome->unwound = true;
	outcome->stack = stack;
	if (error)
		return error;
	return ledger_commit(&replay->ledger, outcome->holder, outcome->thread, outcome->commit_kind, stack,
			     commit_ret);
}

/* Anonymous memory that the call made executable becomes code; the rest of its mapping does not. */
static struct mmt_error *note_code(struct replay *replay, struct space *space, const struct event *event)
{
	uint64_t start = event->call.arguments[0], end = start + event->call.arguments[1], position = start;
	const struct space_interval *interval;

	if (call_describe(event->call.call)->effect != CALL_PROTECTS || !(event->call.arguments[2] & PROT_EXEC))
		return NULL;
	while ((interval = space_next(space, position)) && interval->start < end) {
		uint64_t code_start = interval->start, code_end = interval->end;
		uint32_t kind = replay_calls_kind(replay, interval), allocation = interval->allocation, part;
		uint64_t uncommitted = interval->commit == COMMIT_WITH_ALLOCATION ? 0 : code_end - code_start;
		struct mmt_error *error;

		position = code_end;
		if (!ledger_allocation(&replay->ledger, allocation) || classes_kind_class(kind) != MMT_CLASS_JIT)
			continue;
		ledger_uncommitted(&replay->ledger, allocation, -uncommitted, false);
		error = ledger_split(&replay->ledger, allocation, kind, code_end - code_start, &part);
		ledger_uncommitted(&replay->ledger, part, uncommitted, false);
		if (!error)
			error = space_set_allocation(space, code_start, code_end, part);
		if (error)
			return error;
	}
	return NULL;
}

/* The effect on the allocation that was opened for a call. */
static struct mmt_error *take_allocation(struct replay *replay, uint32_t number, struct outcome *outcome)
{
	const struct allocation *allocation = ledger_allocation(&replay->ledger, number);

	if (!allocation || !allocation->original_bytes) {
		ledger_drop(&replay->ledger, number);
		return NULL;
	}
	if (allocation->side == LEDGER_INSIDE) {
		outcome->allocation = number;
		return NULL;
	}
	return ledger_resolve(&replay->ledger, number, 0);
}

static struct mmt_error *apply_call(struct replay *replay, struct thread_state *state, const struct event *event)
{
	const struct replay_thread *thread = &replay->threads.items[state->number];
	struct process *process = processes_at(replay->processes, thread->process);
	struct outcome outcome = {.process = process->index,
				  .holder = processes_holder(replay->processes, process),
				  .thread = state->number,
				  .sequence = event->sequence,
				  .turn = replay->turn};
	const uint64_t *arguments = event->call.arguments;
	struct space_call call = {
	    .kind = event->call.call,
	    .arguments = {arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]},
	    .result = event->call.result,
	    .time_ns = event->time_ns,
	    .thread = event->tid,
	    .allocation = ALLOCATION_BEFORE,
	    .commit = COMMIT_NONE,
	    .mmap2_records = state->mmap2_records.items,
	    .mmap2_count = state->mmap2_records.count};
	struct mmt_error *error;

	if (has_failed(event)) {
		outcome.failure = describe_failure(event, process->index);
		error = refused_calls_describe(replay, process, event, &outcome.failure.refused);
		if (error)
			return error;
	}
	error = open_commit(replay, state, event, process, &outcome, &call.commit);
	if (!error && call_has_stack(event->call.call))
		error = ledger_open(&replay->ledger, outcome.holder, state->number, &call.allocation);
	if (error)
		return error;
	replay->applying_thread = state->number;
	error = space_apply(process->space, &call);
	replay_mmap2_forget(replay, state);
	if (!error)
		error = note_code(replay, process->space, event);
	if (!error)
		error = take_allocation(replay, call.allocation, &outcome);
	if (!error && replay->watch.call)
		replay->watch.call(replay->watch.context, replay, process, event);
	if (!error && replay->watch.moved && event->call.call == CALL_MREMAP && event->call.result > 0 &&
	    (uint64_t)event->call.result != event->call.arguments[0])
		error = replay->watch.moved(replay->watch.pages_context, replay, process, event);
	if (!error)
		error = resolve_or_wait(replay, state, event, &outcome);
	kept_sample_release(&state->dump);
	return error;
}

/* Plain perf: the exit has the result; the entry has the arguments and usually the better stack. */
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

static void count_call(struct replay *replay, uint32_t process, const struct event *event)
{
	if (replay->window.windowed && event->time_ns < replay->window.from_ns)
		return;
	if (notes_count(&replay->notes, processes_at(replay->processes, process)->pid))
		replay->call_counts[call_describe(event->call.call)->counter]++;
}

struct mmt_error *replay_calls_exit(struct replay *replay, struct thread_state *state, struct event *event)
{
	struct mmt_error *error = replay_calls_resolve_waiting(replay, state);

	if (error)
		return error;
	count_call(replay, replay->threads.items[state->number].process, event);
	if (!event->call.has_arguments && !join_enter(replay, state, event))
		return NULL;
	if (space_call_is_faked(event->call.call, event->call.arguments, event->call.result)) {
		replay->faked_calls++;
		return NULL;
	}
	return apply_call(replay, state, event);
}

/* If a call has two dumps, use the larger one, which may arrive later. */
static struct mmt_error *take_dump_of_waiting(struct replay *replay, struct thread_state *state,
					      const struct event *event)
{
	bool is_large = replay->metadata->attributes[event->attribute].role == ROLE_LARGE_DUMP;
	struct mmt_error *error;

	if (replay->large_dumps && !is_large)
		return kept_sample_extend(&state->call, &event->call.stack);
	error = unwind_or_keep(replay, &state->call.outcome, &state->call.stack, &event->call.stack);
	kept_sample_release(&state->call);
	return error;
}

struct mmt_error *replay_calls_dump(struct replay *replay, struct thread_state *state, const struct event *event)
{
	if (kept_sample_is_of(&state->call, event, &replay->lost_dumps))
		return take_dump_of_waiting(replay, state, event);
	if (kept_sample_is_of(&state->dump, event, &replay->lost_calls) &&
	    state->dump.stack.byte_count >= event->call.stack.byte_count)
		return NULL;
	return kept_sample_set(&state->dump, event);
}

#define PAGE_NUMBERS 512
#define PAGES 64 /* more than calls usually wait for their stack */

struct stack_numbers_page {
	uint64_t number; /* plus 1; 0: none */
	bool changed;
	struct stack_number items[PAGE_NUMBERS];
};

struct mmt_error *stack_numbers_create(struct stack_numbers *numbers, int directory)
{
	int fd = directory < 0 ? -1 : openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	numbers->pages = calloc(PAGES, sizeof(*numbers->pages));
	if (numbers->pages)
		numbers->file = fd < 0 ? tmpfile() : fdopen(fd, "w+");
	if (!numbers->file && fd >= 0)
		close(fd);
	if (!numbers->pages)
		return &error_no_memory;
	return numbers->file ? NULL : error_system(errno, "cannot create a temporary file");
}

void stack_numbers_deinit(struct stack_numbers *numbers)
{
	if (numbers->file)
		fclose(numbers->file);
	free(numbers->pages);
	*numbers = (struct stack_numbers){0};
}

/* Bring the page of an event into memory. */
static struct mmt_error *find_number(struct stack_numbers *numbers, uint64_t sequence,
				     struct stack_numbers_page **page_ret, struct stack_number **number_ret)
{
	uint64_t number = sequence / PAGE_NUMBERS;
	struct stack_numbers_page *page = &numbers->pages[number % PAGES];
	const size_t size = sizeof(page->items);

	*page_ret = page;
	*number_ret = &page->items[sequence % PAGE_NUMBERS];
	if (page->number == number + 1)
		return NULL;
	errno = ENOSPC; /* if only a part is written */
	if (page->changed &&
	    pwrite(fileno(numbers->file), page->items, size, (off_t)((page->number - 1) * size)) != (ssize_t)size)
		return error_system(errno, "cannot write a temporary file");
	/* Events after the end of the file have no number. */
	memset(page->items, 0, size);
	if (pread(fileno(numbers->file), page->items, size, (off_t)(number * size)) < 0)
		return error_system(errno, "cannot read a temporary file");
	page->number = number + 1;
	page->changed = false;
	return NULL;
}

struct mmt_error *stack_numbers_put(struct stack_numbers *numbers, uint64_t sequence, struct stack_number number)
{
	struct stack_numbers_page *page;
	struct stack_number *place;
	struct mmt_error *error = find_number(numbers, sequence, &page, &place);

	if (error)
		return error;
	*place = number;
	page->changed = true;
	return NULL;
}

struct mmt_error *stack_numbers_get(struct stack_numbers *numbers, uint64_t sequence, struct stack_number *number_ret)
{
	struct stack_numbers_page *page;
	struct stack_number *place;
	struct mmt_error *error = find_number(numbers, sequence, &page, &place);

	if (!error)
		*number_ret = *place;
	return error;
}
