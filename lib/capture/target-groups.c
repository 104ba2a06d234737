// SPDX-License-Identifier: LGPL-2.1-or-later
/* Chooses where the events are opened, and finds processes that leave the control groups in which they are. */
#include "capture/record-loop.h"

#include <errno.h>
#include <limits.h>

#define GROUPS_MAX 8	 /* events are opened on every CPU if the targets are in more control groups */
#define COST_WARNED_US 5 /* as much as recording costs on a small machine */

size_t targets_count_threads(pid_t pid)
{
	CLEANUP(vector) proc_pids threads = {0};

	return proc_list_threads(pid, &threads, NULL) ? threads.count : 0;
}

/* Lists the processes of all groups with events, in `members` by PID. */
static struct mmt_error *list_members(const struct scope *scope, struct map *members)
{
	CLEANUP(vector) proc_pids pids = {0};

	for (size_t i = 0; i < scope->cgroups.count; i++)
		if (!cgroup_list_processes(scope->cgroups.items[i], &pids))
			return error_system(errno, "cannot list the processes to be recorded");
	return array_find(pid, pids.items, pids.count, !map_put(members, (uint32_t)*pid, 1)) ? &error_no_memory : NULL;
}

struct mmt_error *targets_find_in_group(const struct recorder *recorder, pid_t pid, bool *found_ret)
{
	CLEANUP(map) struct map members = {0};
	struct mmt_error *error = list_members(&recorder->reader.scope, &members);

	*found_ret = map_get(&members, (uint32_t)pid);
	return error;
}

static struct mmt_error *push_group(struct scope *scope, int group)
{
	if (vector_push(&scope->cgroups, group))
		return NULL;
	close(group);
	return &error_no_memory;
}

/* Adds the process's own group unless a group contains it. `group_ret`: the added one; -1: none. An event of a group
 * also records the groups below it, so that calls in a group and in another one that contains it would be recorded
 * twice. `has_events`: the groups have events, so that a containing group cannot replace them. */
static struct mmt_error *add_group_of(struct scope *scope, pid_t pid, bool has_events, int *group_ret)
{
	int group;
	struct mmt_error *error = cgroup_open_own(pid, &group);

	*group_ret = -1;
	if (error)
		return error;
	for (size_t i = scope->cgroups.count; !error && i-- > 0;) {
		if (cgroup_contains(scope->cgroups.items[i], group)) {
			close(group);
			return NULL;
		}
		if (!cgroup_contains(group, scope->cgroups.items[i]))
			continue;
		if (has_events) {
			error = error_create(MMT_ERROR_INVALID, "one control group of the processes contains another");
			break;
		}
		close(scope->cgroups.items[i]);
		scope->cgroups.items[i] = scope->cgroups.items[--scope->cgroups.count];
	}
	if (!error && scope->cgroups.count == GROUPS_MAX)
		error = error_create(MMT_ERROR_INVALID, "the processes are in more than %d control groups", GROUPS_MAX);
	if (error) {
		close(group);
		return error;
	}
	*group_ret = group;
	return push_group(scope, group);
}

static void leave_groups(struct scope *scope)
{
	while (scope->cgroups.count)
		close(scope->cgroups.items[--scope->cgroups.count]);
}

/* Requested processes, those below them with options->tree, and their number of threads. */
struct requested {
	proc_pids pids;
	size_t thread_count;
};

static bool is_gone(const struct mmt_error *error)
{
	return error && error->code == MMT_ERROR_NO_PROCESS;
}

/* Opens the groups of the requested processes. A command will be in the group of the recorder. */
static struct mmt_error *open_groups(struct recorder *recorder, const struct requested *requested)
{
	struct mmt_error *error = NULL;
	int group;

	if (recorder->options->command)
		return add_group_of(&recorder->reader.scope, getpid(), false, &group);
	for (size_t i = 0; !error && i < requested->pids.count; i++) {
		error = add_group_of(&recorder->reader.scope, requested->pids.items[i], false, &group);
		/* A process that has ended is reported later. */
		if (is_gone(error))
			mmt_error_destroy(TAKE(error));
	}
	return error;
}

/* Chooses the groups of the requested processes, or all CPUs if they have none of their own: if more than half of the
 * threads in the groups are others. */
static struct mmt_error *choose_groups(struct recorder *recorder, const struct requested *requested)
{
	CLEANUP(map) struct map members = {0};
	struct mmt_error *error = open_groups(recorder, requested) ?: list_members(&recorder->reader.scope, &members);
	size_t other_threads = 0;

	for (size_t i = 0; i < requested->pids.count; i++)
		(void)map_remove(&members, (uint32_t)requested->pids.items[i]);
	map_each(member, &members, !error) {
		pid_t waiting = getpid(), pid = (pid_t)member->key;

		/* The recorder, and a process that waits for it such as a shell, make few memory calls. */
		while (waiting > 1 && waiting != pid)
			waiting = proc_parent_of(waiting);
		if (waiting != pid && !recorder_has_helper(recorder, pid))
			other_threads += targets_count_threads(pid);
	}
	/* Other errors do not mean that the groups cannot be used. */
	if (error && error->code != MMT_ERROR_INVALID && !is_gone(error))
		return error;
	if (error || other_threads > requested->thread_count) {
		leave_groups(&recorder->reader.scope);
		recorder_message(recorder, false, "no events in the target's control group: %s",
				 error ? error->message : "most of its threads belong to other processes");
	}
	mmt_error_destroy(error);
	return NULL;
}

/* With MMT_SCOPE_AUTO. */
static struct mmt_error *choose_kind(struct recorder *recorder, const struct requested *requested)
{
	struct ring_reader *reader = &recorder->reader;
	size_t cpus = reader->rings.cpus.count;
	bool fits = requested->thread_count <= attach_threads_max(&reader->attachment, false);
	size_t events = events_count_of_threads(&reader->events);
	bool cheap = scope_threads_are_cheap(cpus, events);
	unsigned cost_us = scope_threads_cost_us(cpus, events);

	reader->scope.kind = SCOPE_THREADS;
	if (fits && cheap)
		return NULL;
	if (recorder->summary.restricted) {
		if (!cheap)
			recorder_message(recorder, cost_us >= COST_WARNED_US,
					 "without CAP_PERFMON, events can only be opened for each thread: with %zu "
					 "CPUs, each pair of mmap and munmap takes about %u us longer than with events "
					 "in a control group or on CPUs",
					 cpus, cost_us);
		return NULL;
	}
	reader->scope.kind = SCOPE_PROCESSES;
	recorder_message(recorder, false, "events for each of %zu threads on %zu CPUs would %s",
			 requested->thread_count, cpus,
			 fits ? "slow down every memory call" : "need too many open files");
	return choose_groups(recorder, requested);
}

/* Writes into the summary where the events are opened. */
static void describe_scope(struct recorder *recorder)
{
	struct mmt_record_summary *summary = &recorder->summary;
	const struct scope *scope = &recorder->reader.scope;
	char path[PATH_MAX] = "";

	summary->on_cpus = scope->kind != SCOPE_THREADS;
	if (scope->cgroups.count)
		(void)cgroup_path(scope->cgroups.items[0], path, sizeof(path));
	if (scope->cgroups.count > 1)
		snprintf(summary->scope, sizeof(summary->scope), "in %zu control groups", scope->cgroups.count);
	else
		snprintf(summary->scope, sizeof(summary->scope), "%s%s",
			 *path		    ? "in the control group "
			 : summary->on_cpus ? "on every CPU"
					    : "for each thread",
			 path);
}

struct mmt_error *targets_choose_scope(struct recorder *recorder)
{
	const struct mmt_record_options *options = recorder->options;
	struct scope *scope = &recorder->reader.scope;
	struct requested requested = {0};
	struct mmt_error *error = NULL;

	scope->recorder = getpid();
	if (options->all_cpus || options->cgroup) {
		scope->kind = SCOPE_ALL_PROCESSES;
		if (options->cgroup)
			error =
			    cgroup_open(options->cgroup, 0, &recorder->cgroup) ?: push_group(scope, recorder->cgroup);
		describe_scope(recorder);
		return error;
	}
	for (size_t i = 0; !error && i < options->pid_count; i++)
		error = vector_push(&requested.pids, options->pids[i]) ? NULL : &error_no_memory;
	if (!error && options->tree)
		error = children_list_below(options->pids, options->pid_count, &requested.pids);
	for (size_t i = 0; !error && i < requested.pids.count; i++)
		requested.thread_count += targets_count_threads(requested.pids.items[i]);
	/* The command. */
	if (!requested.thread_count)
		requested.thread_count = 1;
	scope->kind = options->scope == MMT_SCOPE_THREADS ? SCOPE_THREADS : SCOPE_PROCESSES;
	if (!error && options->scope == MMT_SCOPE_AUTO && !options->wait_name)
		error = choose_kind(recorder, &requested);
	else if (!error && options->scope == MMT_SCOPE_CGROUP)
		error = open_groups(recorder, &requested);
	/* If the limit of open files is too low for all events, leave out large stack dumps first. */
	if (scope->kind == SCOPE_THREADS &&
	    requested.thread_count > attach_threads_max(&recorder->reader.attachment, true))
		events_leave_out_large_dumps(&recorder->reader.events);
	vector_deinit(&requested.pids);
	describe_scope(recorder);
	return error;
}

/* Follows children that a target has forked since the recording began, although no FORK record reported them, and the
 * children of these, but none of a child that is not recorded. False: out of memory. */
static bool follow_missed_children(struct recorder *recorder, pid_t pid)
{
	struct process_event seen = {.kind = PROCESS_SEEN, .time_ns = clock_now_ns()};
	CLEANUP(map) struct map followed = {0};
	CLEANUP(vector) proc_pids below = {0};
	struct mmt_error *error = children_list_below(&pid, 1, &below);

	/* Parents come before their children. */
	for (size_t i = 0; !error && i < below.count; i++) {
		pid_t parent = proc_parent_of(below.items[i]);
		uint64_t start_ticks;

		seen.pid = below.items[i];
		if (process_table_find(&recorder->processes, seen.pid) ||
		    !proc_read_start(&recorder->calls, seen.pid, seen.pid, &start_ticks, NULL) ||
		    clock_from_ticks(start_ticks) < recorder->start_ns ||
		    (!process_table_find(&recorder->processes, parent) && !map_get(&followed, (uint32_t)parent)))
			continue;
		error = map_put(&followed, (uint32_t)seen.pid, 1) && scope_follow(&recorder->reader.scope, seen.pid, 0)
			    ? process_events_push(recorder, &seen, NULL)
			    : &error_no_memory;
	}
	mmt_error_destroy(error);
	return error != &error_no_memory;
}

/* Records a target that was moved to another control group there. If that is not possible, opens events on every CPU
 * instead of in groups. */
static struct mmt_error *follow_to_group(struct recorder *recorder, struct traced_process *process)
{
	struct attachment *attachment = &recorder->reader.attachment;
	struct scope *scope = &recorder->reader.scope;
	int group;
	struct mmt_error *error = add_group_of(scope, process->pid, true, &group);

	if (is_gone(error) || (!error && group < 0)) {
		mmt_error_destroy(error);
		return NULL;
	}
	error = error ?: attach_cpus(attachment, group);
	if (error) {
		mmt_error_destroy(error);
		attach_close_cpus(attachment);
		leave_groups(scope);
		error = attach_cpus(attachment, -1);
	}
	describe_scope(recorder);
	if (error)
		recorder_message(recorder, true, "process %d left the control group and is not recorded any more: %s",
				 process->pid, error->message);
	else
		recorder_message(recorder, true,
				 "process %d left the control group: its calls since then, for up to a second, are "
				 "missing; events are now %s%s",
				 process->pid, recorder->summary.scope,
				 scope->cgroups.count ? "" : ", which slows down other processes");
	mmt_error_destroy(error);
	/* Correct what its missing calls have changed. */
	if (!process->snapshot_wanted) {
		process->snapshot_wanted = true;
		process->snapshot_kind = SNAPSHOT_INTERVAL;
		process->snapshot_wanted_ns = clock_now_ns();
	}
	return follow_missed_children(recorder, process->pid) ? NULL : &error_no_memory;
}

struct mmt_error *targets_check_unrecorded(struct recorder *recorder)
{
	const struct scope *scope = &recorder->reader.scope;
	struct mmt_error *error = ring_reader_check_cpus(recorder);
	CLEANUP(map) struct map members = {0};

	if (error || !scope->cgroups.count || !cgroup_has_processes(scope->cgroups.items[0]))
		return error;
	error = list_members(scope, &members);
	process_table_each(process, &recorder->processes, !error) {
		bool first = !recorder->summary.left_processes;

		/* With -G, the command may run in any group. */
		if (process->ended || (recorder->cgroup >= 0 && (process->target || process->left)))
			continue;
		/* Call proc_is_ending() last: an exiting process leaves its group a while before it has ended. */
		if (map_get(&members, (uint32_t)process->pid) || proc_is_ending(process->pid))
			continue;
		recorder->summary.left_processes += !process->left;
		process->left = true;
		if (scope->kind == SCOPE_PROCESSES && !recorder->stop_ns)
			error = follow_to_group(recorder, process);
		else if (first)
			recorder_message(recorder, true,
					 "process %d left the control group: its calls since then are not recorded",
					 process->pid);
		if (error || !scope->cgroups.count)
			break;
		/* Others may be in the same group. */
		map_deinit(&members);
		error = list_members(scope, &members);
	}
	/* A group that is gone has no processes. */
	if (error != &error_no_memory)
		mmt_error_destroy(TAKE(error));
	return error;
}
