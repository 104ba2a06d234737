// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "capture/text-file.h"

#define DEPTH_MAX 64
#define PROCESSES_FILE "cgroup.procs"

/* -1: no control group. */
static int open_group(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && faccessat(fd, PROCESSES_FILE, F_OK, 0) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The unified hierarchy; where perf events have one of their own, that. */
static bool has_perf_events(const struct mntent *mount)
{
	return !strcmp(mount->mnt_type, "cgroup2") ||
	       (!strcmp(mount->mnt_type, "cgroup") && hasmntopt(mount, "perf_event"));
}

static int find_under_mounts(const char *path)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *mount;
	int fd = -1;

	while (mounts && fd < 0 && (mount = getmntent(mounts))) {
		char whole[PATH_MAX];

		if (has_perf_events(mount) &&
		    snprintf(whole, sizeof(whole), "%s/%s", mount->mnt_dir, path) < (int)sizeof(whole))
			fd = open_group(whole);
	}
	if (mounts)
		endmntent(mounts);
	return fd;
}

struct mmt_error *cgroup_open(const char *path, int *fd_ret)
{
	*fd_ret = open_group(path);
	if (*fd_ret < 0)
		*fd_ret = find_under_mounts(path);
	if (*fd_ret >= 0)
		return NULL;
	return error_create(MMT_ERROR_INVALID,
			    "no control group %s: neither a directory with " PROCESSES_FILE
			    " nor a path under a mounted hierarchy that perf events know (cgroup2)",
			    path);
}

bool cgroup_has_processes(int cgroup)
{
	CLEANUP(free) char *text = NULL;

	return text_file_read(cgroup, PROCESSES_FILE, &text) >= 0;
}

/* Numbers of other PID namespaces are 0 here. */
static bool add_processes(int directory, proc_pids *pids)
{
	CLEANUP(free) char *text = NULL;
	const char *position;
	char *end;
	long pid;

	/* A group of threads has its processes where its domain is. */
	if (text_file_read(directory, PROCESSES_FILE, &text) < 0)
		return true;
	for (position = text; (pid = strtol(position, &end, 10)), end != position; position = end) {
		if (pid > 0 && !vector_push(pids, (pid_t)pid))
			return false;
	}
	return true;
}

static bool list_below(int cgroup, unsigned depth, proc_pids *pids)
{
	bool ok = add_processes(cgroup, pids);
	int copy = openat(cgroup, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	while (ok && directory && depth < DEPTH_MAX && (entry = readdir(directory))) {
		CLEANUP(close) int below = -1;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		below = openat(cgroup, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* Gone meanwhile: with its processes. */
		ok = below < 0 || list_below(below, depth + 1, pids);
	}
	if (directory)
		closedir(directory);
	else if (copy >= 0)
		close(copy);
	return ok && copy >= 0;
}

bool cgroup_list_processes(int cgroup, proc_pids *pids)
{
	return list_below(cgroup, 0, pids);
}
