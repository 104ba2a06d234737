// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds and attaches to the processes, threads and children that exist when recording starts. process-events.c follows
 * those that start later. */

#include <errno.h>
#include <poll.h>

#include "capture/record-loop.h"

#define PASS_PAUSE_MICROSECONDS 1000 /* lets new threads run and report inherited events */
#define WAIT_TICK_MILLISECONDS 20
#define WARNINGS_MAX 8
#define NAMES_SHOWN 8

/* Children that the processes have when recording begins. Later children are reported by events. */

struct family {
	pid_t pid, parent;
};

typedef VECTOR(struct family) families;

static struct mmt_error *list_families(families *all)
{
	CLEANUP(vector) proc_pids pids = {0};

	if (!proc_list_processes(&pids))
		return error_create(MMT_ERROR_SYSTEM, "cannot list the processes in /proc");
	for (size_t i = 0; i < pids.count; i++) {
		const struct family family = {pids.items[i], proc_parent_of(pids.items[i])};

		if (family.parent > 0 && family.pid != getpid() && !vector_push(all, family))
			return &error_no_memory;
	}
	return NULL;
}

struct mmt_error *children_list_below(const pid_t *roots, size_t root_count, proc_pids *below)
{
	CLEANUP(vector) families all = {0};
	CLEANUP(map) struct map inside = {0};
	struct mmt_error *error = list_families(&all);
	size_t before;

	if (error)
		return error;
	for (size_t i = 0; i < root_count; i++) {
		if (!map_put(&inside, (uint64_t)roots[i], 1))
			return &error_no_memory;
	}
	/* Repeat this until it adds none, because a child can have a lower PID than its parent. */
	do {
		before = below->count;
		array_each(family, all.items, all.count) {
			if (map_get(&inside, (uint64_t)family->parent) && !map_get(&inside, (uint64_t)family->pid) &&
			    (!map_put(&inside, (uint64_t)family->pid, 1) || !vector_push(below, family->pid)))
				return &error_no_memory;
		}
	} while (below->count != before);
	return NULL;
}

static bool is_recorded(const struct recorder *recorder, pid_t pid)
{
	const struct traced_process *process = process_table_find(&recorder->processes, pid);

	return process && !process->ended;
}

/* With options->tree: makes targets of all descendants of the known processes. *added_ret: some were not known before.
 * Processes that cannot be recorded are left out with a warning. */
static struct mmt_error *children_add(struct recorder *recorder, bool *added_ret)
{
	struct mmt_error *error;
	CLEANUP(vector) proc_pids roots = {0};
	CLEANUP(vector) proc_pids below = {0};

	*added_ret = false;
	if (!recorder->options->tree)
		return NULL;
	process_table_each(process, &recorder->processes, true) {
		/* The PID of an ended process may belong to another process by now. */
		if (!process->ended && !vector_push(&roots, process->pid))
			return &error_no_memory;
	}
	error = children_list_below(roots.items, roots.count, &below);
	array_while(pid, below.items, below.count, !error) {
		struct map *left_out = &recorder->left_out_children;
		struct traced_process *process;
		bool ok = true;

		if (is_recorded(recorder, *pid) || map_get(left_out, (uint64_t)*pid))
			continue;
		process = process_table_add(&recorder->processes, *pid, true);
		if (!process)
			return &error_no_memory;
		process->found = true;
		error = proc_check_target(&recorder->calls, *pid);
		if (!error) {
			*added_ret = true;
			continue;
		}
		process_table_drop_last(&recorder->processes);
		if (error->code != MMT_ERROR_NO_PROCESS) {
			ok = map_put(left_out, (uint64_t)*pid, 1);
			if (ok && left_out->count <= WARNINGS_MAX)
				recorder_message(recorder, true, "cannot record a child process: %s", error->message);
		}
		mmt_error_destroy(error);
		error = ok ? NULL : &error_no_memory;
	}
	return error;
}

/* The number of children of a target that are not recorded. */
struct unrecorded_children {
	pid_t parent;
	uint64_t count;
};

struct mmt_error *children_note_unrecorded(struct recorder *recorder)
{
	CLEANUP(vector) families all = {0};
	CLEANUP(vector) VECTOR(struct unrecorded_children) list = {0};
	const char *advice = recorder->options->tree ? "" : ": add --tree";
	struct mmt_error *error;

	if (!recorder->options->pid_count)
		return NULL;
	/* Of children that were forked meanwhile, there are records. */
	error = list_families(&all) ?: loop_drain(recorder);
	array_while(child, all.items, all.count, !error) {
		const struct traced_process *parent = process_table_find(&recorder->processes, child->parent);
		size_t k = 0;

		if (!parent || parent->ended || !parent->target || is_recorded(recorder, child->pid) ||
		    proc_has_ended(child->pid) || proc_is_kernel_thread(child->pid))
			continue;
		while (k < list.count && list.items[k].parent != child->parent)
			k++;
		if (k < list.count || vector_push(&list, ((struct unrecorded_children){child->parent, 0})))
			list.items[k].count++;
		else
			error = &error_no_memory;
	}
	for (size_t i = 0; !error && i < list.count; i++) {
		const struct unrecorded_children *children = &list.items[i];
		char name[PROC_NAME_BYTES] = "?";

		(void)proc_name(children->parent, children->parent, name);
		if (i < WARNINGS_MAX)
			recorder_message(recorder, true, "pid %d (%s) has %llu %s not recorded%s", children->parent,
					 name, (unsigned long long)children->count,
					 children->count == 1 ? "child that is" : "children that are", advice);
		error = recorder_note(recorder, NOTE_UNRECORDED_CHILDREN, children->parent, recorder->start_ns,
				      children->count, 0, NULL);
	}
	if (!error && list.count > WARNINGS_MAX)
		recorder_message(recorder, true, "%zu more processes have children that are not recorded%s",
				 list.count - WARNINGS_MAX, advice);
	return error;
}

/* The processes that the user requested. */

/* Open the pidfd before checking the process, so that it refers to the process that is checked. */
static struct mmt_error *add_process(struct recorder *recorder, pid_t pid)
{
	struct traced_process *process = process_table_find(&recorder->processes, pid);
	struct mmt_error *error;

	if (process)
		return NULL;
	if (pid > 0) {
		process = process_table_add(&recorder->processes, pid, true);
		if (!process)
			return &error_no_memory;
	}
	error = proc_check_target(&recorder->calls, pid);
	if (error && process)
		process_table_drop_last(&recorder->processes);
	return error;
}

/* Adds the requested processes and, with options->tree, their descendants. Warns about requested processes that have
 * ended if others are left to record; otherwise returns an error. */
static struct mmt_error *add_targets_and_children(struct recorder *recorder)
{
	const struct mmt_record_options *options = recorder->options;
	struct mmt_error *error = NULL, *first_gone = NULL;
	size_t gone_count = 0;
	bool added;

	for (size_t i = 0; !error && i < options->pid_count; i++) {
		error = add_process(recorder, options->pids[i]);
		if (!error || error->code != MMT_ERROR_NO_PROCESS)
			continue;
		if (gone_count++)
			mmt_error_destroy(error);
		else
			first_gone = error;
		error = NULL;
	}
	if (!error && !recorder->processes.items.count)
		error = TAKE(first_gone);
	else if (!error && gone_count == 1)
		recorder_message(recorder, true, "%s: only the others are recorded", first_gone->message);
	else if (!error && gone_count)
		recorder_message(recorder, true, "%s, nor %zu more of the requested ones: only the others are recorded",
				 first_gone->message, gone_count - 1);
	mmt_error_destroy(first_gone);
	return error ?: children_add(recorder, &added);
}

static struct mmt_error *refuse_ended(const struct recorder *recorder)
{
	return error_create(MMT_ERROR_NO_PROCESS, "process %d ended while mmtrace attached to it",
			    recorder->processes.items.items[0]->pid);
}

static struct mmt_error *refuse_stopped(void)
{
	return error_create(MMT_ERROR_STOPPED, "stopped before recording began: nothing was recorded");
}

struct listed_thread {
	pid_t pid, tid;
	uint64_t start_ticks;
};

/* One scan of the threads of all known processes. */
struct thread_scan {
	VECTOR(struct listed_thread) uncovered; /* threads that are not known to have the event set */
	proc_pids gone; /* threads that have exited and are not known to have had the event set */
	uint64_t begin_ns;
	size_t thread_count;
	size_t stuck_count; /* of these, threads to which nobody can attach */
	bool complete;	    /* all lists of threads were complete */
};

static void thread_scan_deinit(struct thread_scan *scan)
{
	vector_deinit(&scan->uncovered);
	vector_deinit(&scan->gone);
}

static bool is_covered(const struct recorder *recorder, const struct listed_thread *thread)
{
	return thread_coverage_has(&recorder->reader.attachment.coverage, thread->tid,
				   clock_from_ticks(thread->start_ticks));
}

static struct mmt_error *scan_processes(struct recorder *recorder, struct thread_scan *scan)
{
	bool ok = true;

	*scan = (struct thread_scan){.begin_ns = clock_now_ns(), .complete = true};
	process_table_each(process, &recorder->processes, ok) {
		CLEANUP(vector) proc_pids threads = {0};
		bool complete = true;

		if (process->ended)
			continue;
		if (!proc_list_threads(process->pid, &threads, &complete))
			threads.count = 0;
		scan->complete &= complete;
		array_while(tid, threads.items, threads.count, ok) {
			struct listed_thread thread = {.pid = process->pid, .tid = *tid};
			bool exiting;

			scan->thread_count++;
			if (!proc_read_start(&recorder->calls, thread.pid, *tid, &thread.start_ticks, &exiting)) {
				if (blocking_calls_would_fail(&recorder->calls, place_of_process(thread.pid)))
					scan->stuck_count++;
				else
					ok = vector_push(&scan->gone, *tid);
				continue;
			}
			if (is_covered(recorder, &thread))
				continue;
			/* A thread that has exited may have created another one since it was listed. */
			if (exiting)
				ok = vector_push(&scan->gone, *tid) &&
				     thread_coverage_put(&recorder->reader.attachment.coverage, *tid, clock_now_ns());
			else
				ok = vector_push(&scan->uncovered, thread);
		}
	}
	return ok ? NULL : &error_no_memory;
}

/* Handles everything that is in the rings now. The second drain resolves what the first one noted. */
static struct mmt_error *drain_twice(struct recorder *recorder)
{
	return loop_drain(recorder) ?: loop_drain(recorder);
}

/* Attaches to the threads that the scan found without the event set. Threads may start and exit meanwhile. */
static struct mmt_error *attach_uncovered(struct recorder *recorder, const struct thread_scan *scan)
{
	struct mmt_error *error = attach_reserve(&recorder->reader.attachment, scan->uncovered.count);

	array_while(thread, scan->uncovered.items, scan->uncovered.count, !error) {
		bool gone;

		if (recorder_is_stopped(recorder))
			return refuse_stopped();
		error = drain_twice(recorder);
		priority_pause_if_due(&recorder->priority);
		if (!error && !is_covered(recorder, thread))
			error = attach_thread(&recorder->reader.attachment, thread->pid, thread->tid, &gone);
	}
	return error;
}

static void note_complete(struct recorder *recorder, const struct thread_scan *scan)
{
	recorder->summary.threads = scan->thread_count;
	recorder->summary.missed_threads += scan->stuck_count;
	if (scan->stuck_count)
		recorder_message(
		    recorder, true,
		    "%zu threads cannot be attached to because processes do not answer: their calls are missing",
		    scan->stuck_count);
	thread_coverage_set_complete(&recorder->reader.attachment.coverage, scan->begin_ns);
}

/* Is no thread in a clone() that began before the thread had the event set? A parent that waits for its vfork() child
 * looks like one in clone() until the wait ends. */
static bool no_new_threads_are_pending(struct recorder *recorder)
{
	size_t count = recorder->reader.attachment.unseen_roots;

	if (!count)
		return true;
	if (clock_now_ns() - recorder->reader.attachment.unseen_since_ns < LIMIT_UNSEEN_NS)
		return false;
	recorder_message(
	    recorder, true,
	    "%zu threads were inside clone() at every check while mmtrace attached: calls of the threads that they "
	    "created then may be missing",
	    count);
	return true;
}

static struct mmt_error *attach_pass(struct recorder *recorder, bool *complete_ret)
{
	struct mmt_error *error = drain_twice(recorder);
	size_t process_count = recorder->processes.items.count;
	struct thread_scan scan = {0};
	bool added = false;

	attach_check_outside(&recorder->reader.attachment);
	error = error ?: scan_processes(recorder, &scan) ?: attach_uncovered(recorder, &scan);
	if (!error && (scan.uncovered.count || recorder->reader.attachment.unseen_roots))
		usleep(PASS_PAUSE_MICROSECONDS);
	else if (!error)
		error = drain_twice(recorder);
	/* A child that was created during the scan has not been scanned. */
	*complete_ret = !error && !scan.uncovered.count && scan.complete;
	/* A thread that exited unnoticed may have created one without the event set. */
	for (size_t i = 0; *complete_ret && i < scan.gone.count; i++)
		*complete_ret = thread_coverage_lasted_until(&recorder->reader.attachment.coverage, scan.gone.items[i],
							     scan.begin_ns);
	*complete_ret =
	    *complete_ret && recorder->processes.items.count == process_count && no_new_threads_are_pending(recorder);
	/* Children created so far may have been created before their parents had the set. Later children inherit it. */
	if (*complete_ret) {
		error = children_add(recorder, &added);
		*complete_ret = !error && !added;
	}
	if (*complete_ret)
		note_complete(recorder, &scan);
	thread_scan_deinit(&scan);
	if (!error && process_table_update(&recorder->processes))
		error = refuse_ended(recorder);
	return error;
}

static struct mmt_error *attach_threads(struct recorder *recorder)
{
	struct mmt_error *error =
	    add_targets_and_children(recorder) ?: attach_keep_tracepoints(&recorder->reader.attachment);
	uint64_t begin_ns = clock_now_ns();
	bool complete = false;

	while (!error && !complete && clock_now_ns() - begin_ns < LIMIT_ATTACH_NS)
		error = attach_pass(recorder, &complete);
	if (!error && !complete) {
		struct thread_scan scan;

		error = scan_processes(recorder, &scan);
		recorder->summary.missed_threads = scan.uncovered.count;
		recorder_message(recorder, true,
				 "the target creates threads faster than mmtrace can attach to them: calls of some "
				 "threads are missing; record the command from its start, or all processes with -a");
		note_complete(recorder, &scan);
		thread_scan_deinit(&scan);
	}
	if (!error && !recorder->reader.attachment.root_of_thread.count && recorder->summary.missed_threads)
		error = error_create(
		    MMT_ERROR_SYSTEM,
		    "cannot attach to process %d: it does not answer, perhaps because a file system does not",
		    recorder->processes.items.items[0]->pid);
	if (error)
		return error;
	attach_close_coverage_events(&recorder->reader.attachment);
	recorder_message(recorder, false, "attached to %llu threads in %.1f ms",
			 (unsigned long long)recorder->summary.threads, (double)(clock_now_ns() - begin_ns) / 1e6);
	return NULL;
}

/* Adds all processes that have an address space of their own, or all of them in the control group. */
static struct mmt_error *add_all_processes(struct recorder *recorder)
{
	CLEANUP(vector) proc_pids pids = {0};
	size_t foreign = 0;

	if (!(recorder->cgroup < 0 ? proc_list_processes(&pids) : cgroup_list_processes(recorder->cgroup, &pids)))
		return error_system(errno, "cannot list the processes to be recorded");
	array_each(pid, pids.items, pids.count) {
		if (*pid == getpid() || process_table_find(&recorder->processes, *pid) || proc_has_ended(*pid) ||
		    proc_is_kernel_thread(*pid) || recorder_has_helper(recorder, *pid))
			continue;
		foreign += proc_runs_32_bit_program(&recorder->calls, *pid);
		if (!process_table_add(&recorder->processes, *pid, false))
			return &error_no_memory;
	}
	if (foreign)
		recorder_message(recorder, true,
				 "%zu processes run 32-bit programs: their system calls cannot be recorded on a 64-bit "
				 "kernel",
				 foreign);
	return NULL;
}

struct mmt_error *targets_follow(struct recorder *recorder)
{
	process_table_each(process, &recorder->processes, true) {
		if (!scope_follow(&recorder->reader.scope, process->pid, 0))
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *attach_to_cpus(struct recorder *recorder)
{
	struct attachment *attachment = &recorder->reader.attachment;
	struct event_set *events = &recorder->reader.events;
	const struct scope *scope = &recorder->reader.scope;
	uint64_t begin_ns = clock_now_ns();
	struct mmt_error *error = attach_reserve(attachment, scope->cgroups.count ?: 1);
	bool added;

	/* Events on CPUs are not inherited. */
	array_each(event, events->items.items, events->items.count)
		event->attribute.inherit = event->on_cpus = 0;
	error = error ?: attach_keep_tracepoints(attachment);
	/* This scan finds processes that were created before the events were opened. FORK records report later ones. */
	if (!error && scope->kind == SCOPE_PROCESSES)
		error = add_targets_and_children(recorder) ?: targets_follow(recorder);
	if (!error && !scope->cgroups.count)
		error = attach_cpus(attachment, -1);
	for (size_t i = 0; !error && i < scope->cgroups.count; i++)
		error = attach_cpus(attachment, scope->cgroups.items[i]);
	if (!error && scope->kind == SCOPE_ALL_PROCESSES)
		error = add_all_processes(recorder);
	else if (!error)
		error = children_add(recorder, &added);
	error = error ?: targets_follow(recorder);
	if (!error && process_table_update(&recorder->processes))
		error = refuse_ended(recorder);
	if (error)
		return error;
	process_table_each(process, &recorder->processes, true)
		recorder->summary.threads += targets_count_threads(process->pid);
	recorder_message(recorder, false, "attached %s, for %llu threads, in %.1f ms",
			 scope->cgroups.count ? "in control groups" : "to every CPU",
			 (unsigned long long)recorder->summary.threads, (double)(clock_now_ns() - begin_ns) / 1e6);
	return NULL;
}

struct mmt_error *targets_attach(struct recorder *recorder)
{
	const struct mmt_record_options *options = recorder->options;
	char list[NAMES_SHOWN * (PROC_NAME_BYTES + 16)] = "";
	size_t count = 0, length = 0;
	char text[sizeof(list) + 128];
	struct mmt_error *error =
	    recorder->reader.scope.kind == SCOPE_THREADS ? attach_threads(recorder) : attach_to_cpus(recorder);

	if (error)
		return error;
	process_table_each(process, &recorder->processes, true) {
		if (process->ended && process->target)
			recorder_message(recorder, true, "process %d ended while mmtrace attached to it", process->pid);
	}
	/* The processes that --tree added. */
	if (!options->tree)
		return NULL;
	process_table_each(process, &recorder->processes, true) {
		char name[PROC_NAME_BYTES];

		if (process->ended || array_find(pid, options->pids, options->pid_count, *pid == process->pid))
			continue;
		if (count++ < NAMES_SHOWN && proc_name(process->pid, process->pid, name))
			length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%d (%s)",
						   length ? ", " : "", process->pid, name);
	}
	snprintf(text, sizeof(text), "--tree: %zu %s%s%s%s", count, count == 1 ? "child process" : "child processes",
		 length ? ": " : "", list, count > NAMES_SHOWN ? " ..." : "");
	recorder_inform(recorder, text);
	return NULL;
}

struct mmt_error *targets_wait(struct recorder *recorder, uint64_t *exec_ns_ret)
{
	const struct mmt_record_options *options = recorder->options;
	struct pollfd stop = {.fd = options->stop_fd, .events = POLLIN};
	struct traced_process *process;
	struct mmt_error *error;
	char text[128];
	pid_t pid;

	if (options->started)
		options->started(options->context);
	for (;;) {
		error = ring_reader_find_exec(recorder, options->wait_name, &pid, exec_ns_ret);
		if (error)
			return error;
		if (pid)
			break;
		if (poll(&stop, 1, WAIT_TICK_MILLISECONDS) > 0)
			return refuse_stopped();
		error = ring_reader_check_cpus(recorder);
		if (error)
			return error;
	}
	/* It may have ended by now. */
	error = proc_check_target(&recorder->calls, pid);
	if (error && error->code != MMT_ERROR_NO_PROCESS)
		return error;
	mmt_error_destroy(error);
	process = process_table_add(&recorder->processes, pid, true);
	if (!process || !scope_follow(&recorder->reader.scope, pid, *exec_ns_ret))
		return &error_no_memory;
	process->from_exec = true;
	snprintf(text, sizeof(text), "process %d has started: recording", (int)pid);
	recorder_inform(recorder, text);
	return NULL;
}

struct mmt_error *targets_count_missed(struct recorder *recorder)
{
	const struct ring_reader *reader = &recorder->reader;
	struct thread_scan scan;
	struct mmt_error *error;
	uint64_t missed = 0;
	bool forks_lost;

	/* Per-CPU events record all threads. */
	if (recorder->reader.scope.kind != SCOPE_THREADS)
		return NULL;
	/* The records up to the time after the scan are all in the rings: handle them. */
	error = scan_processes(recorder, &scan) ?: drain_twice(recorder);
	array_while(thread, scan.uncovered.items, scan.uncovered.count, !error) {
		uint64_t start_ticks;
		bool exiting;

		/* Check in this order: a thread that is not exiting at the second check still has its entry in the
		 * coverage. */
		missed += !is_covered(recorder, thread) &&
			  proc_read_start(&recorder->calls, thread->pid, thread->tid, &start_ticks, &exiting) &&
			  !exiting && start_ticks == thread->start_ticks;
	}
	thread_scan_deinit(&scan);
	/* FORK records are of the side band, the first event of the set. */
	forks_lost = attach_counts_lost(&reader->attachment)
			 ? attach_lost_of(&reader->attachment, 0) > reader->lost_before.items[0]
			 : reader->attachment.coverage.forks_missing;
	if (missed > recorder->summary.missed_threads && !forks_lost)
		recorder->summary.missed_threads = missed;
	return error;
}

/* Finding processes by name. */

COMPARISON(compare_pids, pid_t, order_of(*a, *b))

struct mmt_error *mmt_find_processes(const char *name, pid_t **pids_ret, size_t *count_ret)
{
	CLEANUP(vector) proc_pids all = {0};
	CLEANUP(vector) proc_pids found = {0};

	if (!proc_list_processes(&all))
		return error_create(MMT_ERROR_SYSTEM, "cannot list the processes in /proc");
	for (size_t i = 0; i < all.count; i++) {
		char command[PROC_NAME_BYTES];
		pid_t pid = all.items[i];

		if (pid != getpid() && proc_name(pid, pid, command) && proc_name_matches(command, name) &&
		    !proc_has_ended(pid) && !proc_is_kernel_thread(pid) && !vector_push(&found, pid))
			return &error_no_memory;
	}
	vector_sort(&found, compare_pids);
	*pids_ret = TAKE(found.items);
	*count_ret = found.count;
	return NULL;
}

pid_t mmt_pid_in_container(pid_t pid)
{
	return proc_namespace_pid(pid);
}
