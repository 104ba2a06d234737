// SPDX-License-Identifier: LGPL-2.1-or-later
#include <mmtrace/record.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/proc/proc.h"

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
