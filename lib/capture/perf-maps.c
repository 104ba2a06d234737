// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/perf-maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/proc.h"
#include "trace/format.h"

#define START_SLACK_NS 100000000ULL /* start times are known to a hundredth of a second */

static void format_name(const struct known_process *process, char name[32])
{
	snprintf(name, 32, "perf-%d.map", process->namespace_pid);
}

/* NULL: may be taken. */
static const char *refuse_file(const struct known_process *process, const struct stat *status)
{
	uint64_t changed_ns = (uint64_t)status->st_mtim.tv_sec * 1000000000 + (uint64_t)status->st_mtim.tv_nsec;

	if (!S_ISREG(status->st_mode))
		return "it is not a regular file";
	if (status->st_uid != process->owner && status->st_uid != 0)
		return "it belongs to another user";
	if (status->st_size > (off_t)LIMIT_PERF_MAP_BYTES)
		return "it is larger than 1 GiB";
	if (changed_ns + START_SLACK_NS < process->started_realtime_ns)
		return "it is older than the process";
	return NULL;
}

static void add_growth(struct known_process *process, uint64_t now_ns, uint64_t length)
{
	struct perf_map_growth growth = {.time_ns = now_ns, .length = length};
	size_t count = process->perf_map.growth.count;

	if (length && (!count || length > process->perf_map.growth.items[count - 1].length)) {
		/* Out of memory: lines only seem to be older. */
		if (!vector_push(&process->perf_map.growth, growth))
			return;
	}
}

void perf_maps_note_growth(struct known_process *process, uint64_t now_ns)
{
	struct stat status;
	char name[32];

	if (process->tmp_directory < 0)
		return;
	format_name(process, name);
	if (fstatat(process->tmp_directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !refuse_file(process, &status))
		add_growth(process, now_ns, (uint64_t)status.st_size);
}

void perf_maps_watch(struct known_process *process, uint64_t now_ns)
{
	char path[64];
	int directory;

	snprintf(path, sizeof(path), "/proc/%d/root/tmp", process->pid);
	directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return;
	if (process->tmp_directory >= 0)
		close(process->tmp_directory);
	process->tmp_directory = directory;
	process->namespace_pid = proc_namespace_pid(process->pid);
	process->started_realtime_ns = proc_start_realtime_ns(process->pid);
	if (!proc_owner(process->pid, &process->owner))
		process->owner = 0;
	perf_maps_note_growth(process, now_ns);
}

static struct mmt_error *read_text(struct known_process *process, int fd, size_t size)
{
	CLEANUP(free) uint8_t *text = malloc(size);
	size_t length = 0;

	if (!text)
		return &error_no_memory;
	while (length < size) {
		ssize_t count = read(fd, text + length, size - length);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			break;
		length += (size_t)count;
	}
	free(process->perf_map.text);
	process->perf_map.text = TAKE(text);
	process->perf_map.text_size = length;
	return NULL;
}

struct mmt_error *perf_maps_copy(struct known_process *process, uint64_t now_ns, const char **refused_ret)
{
	CLEANUP(close) int fd = -1;
	struct stat status;
	char name[32];

	*refused_ret = NULL;
	if (process->tmp_directory < 0)
		return NULL;
	format_name(process, name);
	fd = openat(process->tmp_directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0) {
		if (errno == ELOOP)
			*refused_ret = "it is a symbolic link";
		return NULL;
	}
	*refused_ret = refuse_file(process, &status);
	if (*refused_ret || status.st_size == 0)
		return NULL;
	process->perf_map.pid = process->pid;
	process->perf_map.namespace_pid = process->namespace_pid;
	add_growth(process, now_ns, (uint64_t)status.st_size);
	return read_text(process, fd, (size_t)status.st_size);
}
