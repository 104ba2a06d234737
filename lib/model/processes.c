// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/processes.h"

#include <sched.h>

#include "model/space/space-state.h"

static struct mmt_error *create_space(const struct processes *processes, struct space **space_ret)
{
	const struct space_options options = {.page_bytes = processes->options.page_bytes,
					      .rules = &processes->rules,
					      .losses = processes->options.losses};

	return space_create(&options, space_ret);
}

struct mmt_error *processes_create(const struct processes_options *options, struct processes **processes_ret)
{
	struct processes *processes = calloc(1, sizeof(*processes));

	if (!processes || intern_put_string(&processes->names, "") == INTERN_NONE) {
		free(processes);
		return &error_no_memory;
	}
	processes->options = *options;
	processes->rules = options->rules ? *options->rules : kernel_rules_of("");
	processes->options.rules = &processes->rules;
	if (create_space(processes, &processes->let_go)) {
		processes_destroy(processes);
		return &error_no_memory;
	}
	space_exec(processes->let_go);
	*processes_ret = processes;
	return NULL;
}

void processes_destroy(struct processes *processes)
{
	if (!processes)
		return;
	array_each(process, processes->all.items, processes->all.count) {
		if (!(*process)->borrows_space && (*process)->space != processes->let_go)
			space_destroy((*process)->space);
	}
	vector_deinit_each(&processes->all, process, free(*process));
	vector_deinit_each(&processes->threads, thread, free(*thread));
	vector_deinit_each(&processes->retired, space, space_destroy(*space));
	for (size_t i = 0; i < PAGED_PIDS / PAGE_PIDS; i++)
		free(processes->latest[i]);
	space_destroy(processes->let_go);
	map_deinit(&processes->latest_odd);
	map_deinit(&processes->live);
	intern_deinit(&processes->names);
	free(processes);
}

struct process *processes_next(const struct processes *processes, const struct process *process)
{
	size_t next = process ? process->index + 1 : 0;

	return next < processes->all.count ? processes->all.items[next] : NULL;
}

uint32_t processes_holder(const struct processes *processes, const struct process *process)
{
	return processes->all.items[process->holder]->space == process->space ? process->holder : process->index;
}

struct process *processes_find(const struct processes *processes, int32_t pid)
{
	uint32_t place = (uint32_t)pid;
	const uint64_t *index;

	if (place < PAGED_PIDS) {
		const uint32_t *page = processes->latest[place / PAGE_PIDS];
		uint32_t latest = page ? page[place % PAGE_PIDS] : 0;

		return latest ? processes->all.items[latest - 1] : NULL;
	}
	index = map_get(&processes->latest_odd, place);
	return index ? processes->all.items[*index] : NULL;
}

static bool put_latest(struct processes *processes, const struct process *process)
{
	uint32_t place = (uint32_t)process->pid, **page;

	if (place >= PAGED_PIDS)
		return map_put(&processes->latest_odd, place, process->index);
	page = &processes->latest[place / PAGE_PIDS];
	if (!*page)
		*page = calloc(PAGE_PIDS, sizeof(**page));
	if (*page)
		(*page)[place % PAGE_PIDS] = process->index + 1;
	return *page;
}

static struct thread *find_live(const struct processes *processes, int32_t tid)
{
	return map_get_pointer(&processes->live, (uint32_t)tid);
}

#define SPACE_INTERVALS 32 /* as much memory as a space takes besides its intervals */

static uint64_t copy_size(const struct space *space)
{
	uint64_t intervals = space_counts(space).intervals;

	return intervals ? intervals + SPACE_INTERVALS : 0;
}

/* A fork takes a few bytes in a recording, and copies a space of any size. Returns false if that would take too much
 * memory or time: the child then has a space that is unknown. Intervals are counted again after many forks, because
 * spaces may have been released. */
static bool can_copy(struct processes *processes, const struct space *origin)
{
	const struct processes_options *options = &processes->options;
	uint64_t count = copy_size(origin);

	if (!options->intervals_max)
		return true;
	if (processes->copied + count > options->copies_max)
		return false;
	if (processes->held + count > options->intervals_max && processes->all.count >= processes->recount_at) {
		processes->held = 0;
		array_each(process, processes->all.items, processes->all.count) {
			if (!(*process)->borrows_space && (*process)->space != processes->let_go)
				processes->held += copy_size((*process)->space);
		}
		processes->recount_at = processes->all.count + processes->all.count / 8 + 1;
	}
	if (processes->held + count > options->intervals_max)
		return false;
	processes->copied += count;
	processes->held += count;
	return true;
}

/* Give the process a space, a copy of `origin` or a new one, and give the space its observer. */
static struct mmt_error *give_space(struct processes *processes, struct process *process, const struct space *origin)
{
	const struct processes_options *options = &processes->options;
	struct space_observer observer;
	struct space *space;
	struct mmt_error *error;

	if (origin && !can_copy(processes, origin)) {
		processes->not_copied++;
		origin = NULL;
	}
	error = origin ? space_fork(origin, &space) : create_space(processes, &space);
	if (error)
		return error;
	processes->released -= process->space == processes->let_go;
	process->space = space;
	process->borrows_space = false;
	space->owner = process;
	if (options->observe && options->observe(options->context, process, &observer))
		space->observer = observer;
	return NULL;
}

static void share_space(struct process *process, struct process *origin)
{
	process->space = origin->space;
	process->borrows_space = true;
	process->next_sharer = origin->next_sharer;
	process->previous_sharer = origin;
	origin->next_sharer->previous_sharer = process;
	origin->next_sharer = process;
}

/* Stop using the space. The next process that shares it inherits the rest of an owner's space. */
static void leave_space(struct process *process)
{
	struct process *heir = process->next_sharer;

	if (heir == process)
		return;
	process->previous_sharer->next_sharer = heir;
	heir->previous_sharer = process->previous_sharer;
	process->next_sharer = process->previous_sharer = process;
	if (process->borrows_space)
		return;
	process->borrows_space = true;
	heir->borrows_space = false;
	heir->space->owner = heir;
	heir->named_by_ended = process->named_by_ended;
	process->named_by_ended = false;
}

const struct process *processes_space_owner(const struct processes *processes, const struct process *process)
{
	const struct process *owner = process->space->owner;

	return process == processes->undecided || !owner ? process : owner;
}

void processes_release_space(struct processes *processes, struct process *process)
{
	if (!process->ended || process->borrows_space || process->next_sharer != process || process->named_by_ended ||
	    process == processes->undecided || process->space == processes->let_go)
		return;
	process->remains = (struct space_remains){.code_generation = process->space->code_generation,
						  .described = process->space->described};
	space_destroy(process->space);
	process->space = processes->let_go;
	processes->released++;
}

/* Another event arrived, so no clone flags will come: the space was copied. */
static struct mmt_error *resolve_fork(struct processes *processes)
{
	struct process *process = processes->undecided;

	if (!process)
		return NULL;
	processes->undecided = NULL;
	leave_space(process);
	/* The parent has ended, and the child already owns its space. */
	if (!process->borrows_space)
		return NULL;
	return give_space(processes, process, processes->all.items[process->forked_from]->space);
}

/* A process with a parent shares the parent's space. */
static struct mmt_error *add_process(struct processes *processes, int32_t pid, struct process *parent, uint64_t time_ns,
				     struct process **process_ret)
{
	const size_t max = processes->options.processes_max, count = processes->all.count;
	struct process *process;
	struct mmt_error *error;

	/* Processes whose spaces were released take less memory. */
	if (max && (count - processes->released >= max || count / 6 >= max))
		return error_create(MMT_ERROR_FORMAT, "more than %zu processes: too many for a recording of this size",
				    max);
	process = calloc(1, sizeof(*process));
	if (!process)
		return &error_no_memory;
	*process = (struct process){.index = (uint32_t)count,
				    .holder = (uint32_t)count,
				    .forked_from = (uint32_t)count,
				    .last_child = (uint32_t)count,
				    .pid = pid,
				    .started_ns = time_ns,
				    .ended_ns = UINT64_MAX,
				    .next_sharer = process,
				    .previous_sharer = process};
	if (parent) {
		process->parent_pid = parent->pid;
		process->recorded = parent->recorded;
		process->name = parent->name;
	}
	error = parent ? NULL : give_space(processes, process, NULL);
	if (error) {
		free(process);
		return error;
	}
	if (!vector_push(&processes->all, process)) {
		space_destroy(process->space);
		free(process);
		return &error_no_memory;
	}
	if (parent)
		share_space(process, parent);
	if (!put_latest(processes, process))
		return &error_no_memory;
	*process_ret = process;
	return NULL;
}

static void end_process(struct process *process, uint64_t time_ns)
{
	struct process *owner = process->space->owner;

	/* It still refers to the space that it shared. */
	if (process->next_sharer != process)
		owner->named_by_ended = true;
	leave_space(process);
	if (!process->borrows_space)
		space_end(process->space, time_ns);
	process->ended = true;
	process->ended_ns = time_ns;
}

static void end_thread(struct processes *processes, struct thread *thread, uint64_t time_ns)
{
	struct process *process = processes->all.items[thread->process];

	thread->ended = true;
	if (thread->previous)
		thread->previous->next = thread->next;
	else
		process->threads = thread->next;
	if (thread->next)
		thread->next->previous = thread->previous;
	thread->ended_ns = time_ns;
	map_remove(&processes->live, (uint32_t)thread->tid);
	if (!process->threads)
		end_process(process, time_ns);
}

/* End all threads except `kept`, which may be NULL. */
static void end_threads(struct processes *processes, const struct process *process, const struct thread *kept,
			uint64_t time_ns)
{
	struct thread *next;

	for (struct thread *thread = process->threads; thread; thread = next) {
		next = thread->next;
		if (thread != kept)
			end_thread(processes, thread, time_ns);
	}
}

/* An ended process is alive again: it had threads without any event. It uses the space that it had. */
static struct mmt_error *revive(struct processes *processes, struct process *process)
{
	struct process *owner = process->space->owner;
	bool let_go = process->space == processes->let_go;
	struct mmt_error *error;

	if (!owner) {
		error = give_space(processes, process, NULL);
		if (!error && let_go)
			space_go_on(process->space, &process->remains);
		return error;
	}
	if (owner != process)
		share_space(process, owner);
	return NULL;
}

/* Add the thread if there is none. */
static struct mmt_error *find_thread(struct processes *processes, int32_t pid, int32_t tid, uint64_t time_ns,
				     struct thread **thread_ret)
{
	const size_t max = processes->options.threads_max;
	struct thread *thread = find_live(processes, tid);
	struct process *process;
	struct mmt_error *error;

	if (pid == -1 || (thread && processes->all.items[thread->process]->pid == pid)) {
		*thread_ret = thread;
		return NULL;
	}
	/* The TID appears in another process: the thread's EXIT was lost. */
	if (thread)
		end_thread(processes, thread, time_ns);
	/* A reused PID starts with a FORK. */
	process = processes_find(processes, pid);
	error = !process	 ? add_process(processes, pid, NULL, 0, &process)
		: process->ended ? revive(processes, process)
				 : NULL;
	if (error)
		return error;
	if (max && processes->threads.count >= max)
		return error_create(MMT_ERROR_FORMAT, "more than %zu threads: too many for a recording of this size",
				    max);
	thread = calloc(1, sizeof(*thread));
	if (!thread || !vector_push(&processes->threads, thread)) {
		free(thread);
		return &error_no_memory;
	}
	thread->tid = tid;
	thread->process = process->index;
	if (!map_put_pointer(&processes->live, (uint32_t)tid, thread))
		return &error_no_memory;
	process->thread_count += process->thread_count < UINT32_MAX;
	thread->next = process->threads;
	if (thread->next)
		thread->next->previous = thread;
	process->threads = thread;
	process->ended = false;
	process->ended_ns = UINT64_MAX;
	*thread_ret = thread;
	return NULL;
}

struct mmt_error *processes_thread(struct processes *processes, int32_t pid, int32_t tid, uint64_t time_ns,
				   struct thread **thread_ret)
{
	struct mmt_error *error = resolve_fork(processes);

	return error ? error : find_thread(processes, pid, tid, time_ns, thread_ret);
}

struct mmt_error *processes_comm(struct processes *processes, struct thread *thread, const char *name, bool exec,
				 uint64_t time_ns)
{
	struct process *process = processes->all.items[thread->process];
	uint32_t number = intern_put_string(&processes->names, name);
	struct mmt_error *error = NULL;

	if (number == INTERN_NONE)
		return &error_no_memory;
	thread->name = number;
	if (thread->tid == process->pid)
		process->name = number;
	if (!exec)
		return NULL;
	/* exec ends all other threads. The calling thread may have had another TID, for which there is no EXIT. */
	end_threads(processes, process, thread, time_ns);
	process->program_ns = time_ns;
	leave_space(process);
	process->holder = process->index;
	if (process->borrows_space)
		error = give_space(processes, process, NULL);
	if (!error)
		space_exec(process->space);
	return error;
}

static struct mmt_error *fork_process(struct processes *processes, int32_t pid, int32_t parent_pid, int32_t parent_tid,
				      uint64_t time_ns)
{
	struct process *old = processes_find(processes, pid), *parent, *process;
	struct thread *parent_thread;
	struct mmt_error *error;

	if (old && !old->ended && (old->started_ns == time_ns || !time_ns))
		return NULL;
	error = find_thread(processes, parent_pid, parent_tid, time_ns, &parent_thread);
	if (error)
		return error;
	if (old && !old->ended) {
		end_threads(processes, old, NULL, time_ns);
		end_process(old, time_ns);
	}
	parent = processes->all.items[parent_thread->process];
	error = add_process(processes, pid, parent, time_ns, &process);
	if (error)
		return error;
	process->forked_from = parent->index;
	process->program_ns = time_ns;
	parent->last_child = process->index;
	processes->undecided = process;
	return NULL;
}

struct mmt_error *processes_fork(struct processes *processes, int32_t pid, int32_t tid, int32_t parent_pid,
				 int32_t parent_tid, uint64_t time_ns)
{
	struct thread *thread, *parent;
	struct mmt_error *error;

	/* -1 stands for a process that is not known: no FORK record of the kernel has it. */
	if (pid == -1 || parent_pid == -1)
		return NULL;
	error = resolve_fork(processes);
	if (!error && pid != parent_pid)
		error = fork_process(processes, pid, parent_pid, parent_tid, time_ns);
	if (error)
		return error;
	thread = find_live(processes, tid);
	if (thread && processes->all.items[thread->process]->pid == pid && time_ns && pid == parent_pid)
		end_thread(processes, thread, time_ns);
	error = find_thread(processes, pid, tid, time_ns, &thread);
	if (error)
		return error;
	parent = find_live(processes, parent_tid);
	if (parent && !thread->name)
		thread->name = parent->name;
	return NULL;
}

struct mmt_error *processes_new_task(struct processes *processes, int32_t tid, uint64_t clone_flags)
{
	struct thread *thread = find_live(processes, tid);
	struct process *process = thread ? processes->all.items[thread->process] : NULL;
	struct process *origin;

	if (process && process == processes->undecided && !(clone_flags & CLONE_VM))
		return resolve_fork(processes);
	if (!process || !(clone_flags & CLONE_VM))
		return NULL;
	if (process == processes->undecided) {
		processes->undecided = NULL;
	} else {
		origin = processes->all.items[process->forked_from]->space->owner;
		if (process->pid != tid || process->borrows_space || process->next_sharer != process ||
		    (clone_flags & CLONE_THREAD) || !origin || origin->space == process->space ||
		    origin->space == processes->let_go)
			return NULL;
		if (process->named_by_ended && !vector_push(&processes->retired, process->space))
			return &error_no_memory;
		if (process->named_by_ended) {
			space_release(process->space);
			process->space->owner = NULL;
		} else {
			space_destroy(process->space);
		}
		process->named_by_ended = false;
		share_space(process, origin);
	}
	/* vfork: the parent waits until the child no longer needs the space. */
	if (clone_flags & CLONE_VFORK)
		process->holder = processes->all.items[process->forked_from]->holder;
	return NULL;
}

struct mmt_error *processes_exit(struct processes *processes, int32_t pid, int32_t tid, uint64_t time_ns)
{
	struct mmt_error *error = resolve_fork(processes);
	struct thread *thread = find_live(processes, tid);
	struct process *process = processes_find(processes, pid);

	if (error)
		return error;
	if (thread) {
		end_thread(processes, thread, time_ns);
	} else if (process && !process->ended && !process->threads) {
		end_process(process, time_ns);
	}
	return NULL;
}
