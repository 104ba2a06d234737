// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/process/process-table.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "capture/procfs/clock.h"
#include "capture/procfs/proc.h"

#define SPARE_DESCRIPTORS 32 /* for temporary use, such as reading maps and modules */
#define ALIVE_CHECK_NS 1000000000ULL
#define FORGET_NS 1000000000ULL /* the last records of an ended process have been read by then */

void traced_process_drop_ranges(struct traced_process *process)
{
	close_descriptor(&process->pagemap);
	process->pagemap = -EBADF;
	vector_deinit(&process->ranges);
}

/* Free a process that was released. */
static void destroy(struct traced_process *process)
{
	traced_process_drop_ranges(process);
	vector_deinit(&process->perf_map.growth);
	free(process->perf_map.text);
	free(process);
}

void process_table_release(struct traced_process *process)
{
	close_descriptor(&process->pidfd);
	close_descriptor(&process->tmp_directory);
	(void)helper_end(&process->helper, 0);
}

void process_table_deinit(struct process_table *processes)
{
	for (size_t i = 0; i < processes->items.count; i++) {
		struct traced_process *process = processes->items.items[i];

		process_table_release(process);
		destroy(process);
	}
	vector_deinit(&processes->items);
	map_deinit(&processes->index_of_pid);
}

struct traced_process *process_table_add(struct process_table *processes, pid_t pid, bool target)
{
	struct traced_process *process = calloc(1, sizeof(*process));

	if (!process || !vector_push(&processes->items, process)) {
		free(process);
		return NULL;
	}
	process->place = processes->items.count - 1;
	process->pid = pid;
	process->target = target;
	process->tmp_directory = -1;
	process->pagemap = -EBADF;
	process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	process->ended = process->pidfd < 0 && errno == ESRCH;
	process->pidfd = process_table_spare(process->pidfd);
	processes->descriptors_short |= process->pidfd < 0 && !process->ended;
	if (map_put(&processes->index_of_pid, (uint64_t)pid, processes->items.count - 1))
		return process;
	process_table_drop_last(processes);
	return NULL;
}

void process_table_drop_last(struct process_table *processes)
{
	struct traced_process *process = processes->items.items[processes->items.count - 1];

	(void)map_remove(&processes->index_of_pid, (uint64_t)process->pid);
	process_table_release(process);
	processes->items.count--;
	destroy(process);
}

struct traced_process *process_table_find(const struct process_table *processes, pid_t pid)
{
	const uint64_t *index = map_get(&processes->index_of_pid, (uint64_t)pid);

	return index ? processes->items.items[*index] : NULL;
}

int process_table_spare(int fd)
{
	struct rlimit limit;

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0 || (rlim_t)fd + SPARE_DESCRIPTORS < limit.rlim_cur)
		return fd;
	close(fd);
	return -1;
}

bool process_table_update(struct process_table *processes)
{
	bool all_ended = true, any_target = false;
	uint64_t now_ns = clock_now_ns();

	process_table_each(process, processes, true) {
		struct pollfd poll_fd = {.fd = process->pidfd, .events = POLLIN};

		helper_reap(&process->helper);
		if (!process->ended && process->pidfd >= 0) {
			process->ended = poll(&poll_fd, 1, 0) > 0;
		} else if (!process->ended && now_ns - process->alive_check_ns >= ALIVE_CHECK_NS) {
			process->alive_check_ns = now_ns;
			process->ended = proc_has_ended(process->pid);
		}
		if (process->ended && !process->ended_ns)
			process->ended_ns = now_ns;
		any_target |= process->target;
		all_ended &= process->ended || !process->target;
	}
	return any_target && all_ended;
}

void process_table_forget_ended(struct process_table *processes)
{
	uint64_t now_ns = clock_now_ns();
	size_t kept = 0;

	for (size_t i = 0; i < processes->items.count; i++) {
		struct traced_process *process = processes->items.items[i];
		uint64_t *index = map_get(&processes->index_of_pid, (uint64_t)process->pid);
		bool youngest = index && *index == i;

		if (process->ended && process->ended_ns && now_ns - process->ended_ns > FORGET_NS && !process->target &&
		    process->pidfd < 0 && process->tmp_directory < 0 && !process->perf_map.text &&
		    !process->helper.dying) {
			if (youngest)
				(void)map_remove(&processes->index_of_pid, (uint64_t)process->pid);
			destroy(process);
			processes->forgotten++;
			continue;
		}
		if (youngest)
			*index = kept;
		process->place = kept;
		processes->items.items[kept++] = process;
	}
	processes->items.count = kept;
}

bool in_flight_add(struct in_flight *in_flight, struct blocking_calls *calls, pid_t pid, uint64_t read_ns)
{
	CLEANUP(vector) proc_pids tids = {0};

	return proc_list_threads(pid, &tids, NULL) &&
	       !array_find(tid, tids.items, tids.count,
			   proc_may_be_in_memory_call(calls, pid, *tid) &&
			       !map_put(&in_flight->threads, THREAD_KEY(pid, *tid), read_ns));
}

void in_flight_note_outside(struct in_flight *in_flight, pid_t pid, pid_t tid, uint64_t time_ns)
{
	const uint64_t *read_ns = in_flight->threads.count ? map_get(&in_flight->threads, THREAD_KEY(pid, tid)) : NULL;

	if (read_ns && time_ns > *read_ns)
		(void)map_remove(&in_flight->threads, THREAD_KEY(pid, tid));
}

void in_flight_remove_returned(struct in_flight *in_flight, struct blocking_calls *calls)
{
	map_each(thread, &in_flight->threads, true) {
		if (!proc_may_be_in_memory_call(calls, THREAD_PID(thread->key), THREAD_TID(thread->key)))
			(void)map_remove(&in_flight->threads, thread->key);
	}
}
