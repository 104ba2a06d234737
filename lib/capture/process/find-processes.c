// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/process/find-processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mmtrace/record.h>

#include "base/map.h"
#include "capture/proc/proc.h"
#include "capture/recorder.h"

#define WARNINGS_MAX 8
#define NAMES_SHOWN 8

struct family {
	pid_t pid, parent;
};

typedef VECTOR(struct family) families;

static struct mmt_error *list_families(families *all)
{
	struct mmt_error *error = NULL;
	proc_pids pids = {0};

	if (!proc_list_processes(&pids))
		error = error_create(MMT_ERROR_SYSTEM, "cannot list the processes in /proc");
	for (size_t i = 0; !error && i < pids.count; i++) {
		const struct family family = {pids.items[i], proc_parent_of(pids.items[i])};

		if (family.parent > 0 && family.pid != getpid() && !vector_push(all, family))
			error = &error_no_memory;
	}
	vector_deinit(&pids);
	return error;
}

/* Repeat until nothing is added: a child can have a lower PID than its parent. */
static struct mmt_error *collect_below(const families *all, struct map *inside, proc_pids *below)
{
	size_t before;

	do {
		before = below->count;
		for (size_t i = 0; i < all->count; i++) {
			const struct family *family = &all->items[i];

			if (!map_get(inside, (uint64_t)family->parent) || map_get(inside, (uint64_t)family->pid))
				continue;
			if (!map_put(inside, (uint64_t)family->pid, 1) || !vector_push(below, family->pid))
				return &error_no_memory;
		}
	} while (below->count != before);
	return NULL;
}

struct mmt_error *children_list_below(const pid_t *roots, size_t root_count, proc_pids *below)
{
	families all = {0};
	struct map inside = {0};
	struct mmt_error *error = list_families(&all);

	for (size_t i = 0; !error && i < root_count; i++) {
		if (!map_put(&inside, (uint64_t)roots[i], 1))
			error = &error_no_memory;
	}
	if (!error)
		error = collect_below(&all, &inside, below);
	vector_deinit(&all);
	map_deinit(&inside);
	return error;
}

static bool is_recorded(const struct recorder *recorder, pid_t pid)
{
	const struct traced_process *process = process_table_find(&recorder->processes, pid);

	return process && !process->ended;
}

/* Open the pidfd first: it then refers to the process that is checked. */
static struct mmt_error *add_child(struct recorder *recorder, pid_t pid, bool *added_ret)
{
	struct mmt_error *error;

	if (is_recorded(recorder, pid) || map_get(&recorder->left_out_children, (uint64_t)pid))
		return NULL;
	if (!process_table_add(&recorder->processes, pid, true))
		return &error_no_memory;
	error = proc_check_target(pid);
	if (!error) {
		*added_ret = true;
		return NULL;
	}
	process_table_drop_last(&recorder->processes);
	if (mmt_error_get_code(error) != MMT_ERROR_NO_PROCESS) {
		if (!map_put(&recorder->left_out_children, (uint64_t)pid, 1)) {
			mmt_error_destroy(error);
			return &error_no_memory;
		}
		if (recorder->left_out_children.count <= WARNINGS_MAX)
			recorder_message(recorder, true, "a child is not recorded: %s", mmt_error_get_message(error));
	}
	mmt_error_destroy(error);
	return NULL;
}

struct mmt_error *children_add(struct recorder *recorder, bool *added_ret)
{
	struct mmt_error *error = NULL;
	proc_pids roots = {0}, below = {0};

	*added_ret = false;
	if (!recorder->options->tree)
		return NULL;
	for (size_t i = 0; !error && i < recorder->processes.items.count; i++) {
		const struct traced_process *process = recorder->processes.items.items[i];

		/* The PID of one that ended can be another process by now. */
		if (!process->ended && !vector_push(&roots, process->pid))
			error = &error_no_memory;
	}
	if (!error)
		error = children_list_below(roots.items, roots.count, &below);
	for (size_t i = 0; !error && i < below.count; i++)
		error = add_child(recorder, below.items[i], added_ret);
	vector_deinit(&roots);
	vector_deinit(&below);
	return error;
}

static bool is_asked_for(const struct recorder *recorder, pid_t pid)
{
	for (size_t i = 0; i < recorder->options->pid_count; i++) {
		if (recorder->options->pids[i] == pid)
			return true;
	}
	return false;
}

void children_inform(const struct recorder *recorder)
{
	char list[NAMES_SHOWN * (PROC_NAME_BYTES + 16)] = "";
	size_t count = 0, length = 0;
	char text[sizeof(list) + 128];

	if (!recorder->options->tree)
		return;
	for (size_t i = 0; i < recorder->processes.items.count; i++) {
		const struct traced_process *process = recorder->processes.items.items[i];
		char name[PROC_NAME_BYTES];

		if (process->ended || is_asked_for(recorder, process->pid))
			continue;
		if (count++ < NAMES_SHOWN && proc_name(process->pid, process->pid, name))
			length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%d (%s)",
						   length ? ", " : "", process->pid, name);
	}
	snprintf(text, sizeof(text), "--tree: %zu %s%s%s%s", count, count == 1 ? "child process" : "child processes",
		 length ? ": " : "", list, count > NAMES_SHOWN ? " ..." : "");
	recorder_inform(recorder, text);
}

/* Children of a process that was requested as a whole. */
static bool is_target(const struct recorder *recorder, pid_t pid)
{
	const struct traced_process *process = process_table_find(&recorder->processes, pid);

	return process && !process->ended && process->target && !process->partly;
}

static struct mmt_error *count_child(struct recorder *recorder, pid_t parent)
{
	unrecorded_children_list *list = &recorder->unrecorded_children;
	const struct unrecorded_children first = {parent, 1};

	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].parent == parent) {
			list->items[i].count++;
			return NULL;
		}
	}
	return vector_push(list, first) ? NULL : &error_no_memory;
}

static void warn_of_unrecorded(const struct recorder *recorder)
{
	const unrecorded_children_list *list = &recorder->unrecorded_children;
	const char *advice = recorder->options->tree ? "" : ": add --tree";

	for (size_t i = 0; i < list->count && i < WARNINGS_MAX; i++) {
		const struct unrecorded_children *children = &list->items[i];
		char name[PROC_NAME_BYTES] = "?";

		(void)proc_name(children->parent, children->parent, name);
		recorder_message(recorder, true, "pid %d (%s) has %llu %s not recorded%s", children->parent, name,
				 (unsigned long long)children->count,
				 children->count == 1 ? "child that is" : "children that are", advice);
	}
	if (list->count > WARNINGS_MAX)
		recorder_message(recorder, true, "%zu more processes have children that are not recorded%s",
				 list->count - WARNINGS_MAX, advice);
}

struct mmt_error *children_count_unrecorded(struct recorder *recorder)
{
	families all = {0};
	struct mmt_error *error;

	if (!recorder->options->pid_count)
		return NULL;
	error = list_families(&all);
	for (size_t i = 0; !error && i < all.count; i++) {
		const struct family *child = &all.items[i];

		if (is_target(recorder, child->parent) && !is_recorded(recorder, child->pid) &&
		    !proc_has_ended(child->pid) && !proc_is_kernel_thread(child->pid))
			error = count_child(recorder, child->parent);
	}
	vector_deinit(&all);
	if (!error && !recorder->options->no_inherit)
		warn_of_unrecorded(recorder);
	return error;
}

struct mmt_error *children_note_unrecorded(struct recorder *recorder)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < recorder->unrecorded_children.count; i++) {
		const struct unrecorded_children *children = &recorder->unrecorded_children.items[i];

		error = notes_add_unrecorded_children(recorder, children->parent, children->count);
	}
	return error;
}

#define STORED_NAME_BYTES 15 /* of a command name, by the kernel */

static bool has_name(pid_t pid, const char *name)
{
	char command[PROC_NAME_BYTES];

	return proc_name(pid, pid, command) &&
	       (strlen(name) > STORED_NAME_BYTES
		    ? strlen(command) == STORED_NAME_BYTES && !strncmp(name, command, STORED_NAME_BYTES)
		    : !strcmp(name, command));
}

static int compare_pids(const void *left, const void *right)
{
	pid_t a = *(const pid_t *)left, b = *(const pid_t *)right;

	return (a > b) - (a < b);
}

struct mmt_error *mmt_find_processes(const char *name, pid_t **pids_ret, size_t *count_ret)
{
	struct mmt_error *error = NULL;
	proc_pids all = {0}, found = {0};

	if (!proc_list_processes(&all))
		error = error_create(MMT_ERROR_SYSTEM, "cannot list the processes in /proc");
	for (size_t i = 0; !error && i < all.count; i++) {
		pid_t pid = all.items[i];

		if (pid != getpid() && has_name(pid, name) && !proc_has_ended(pid) && !proc_is_kernel_thread(pid) &&
		    !vector_push(&found, pid))
			error = &error_no_memory;
	}
	vector_deinit(&all);
	if (error) {
		vector_deinit(&found);
		return error;
	}
	if (found.count)
		qsort(found.items, found.count, sizeof(*found.items), compare_pids);
	*pids_ret = found.items;
	*count_ret = found.count;
	return NULL;
}
