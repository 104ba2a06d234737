// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/memory/group-memory.h"

#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "capture/procfs/proc.h"

#define NO_LIMIT_BYTES (1ULL << 62) /* version 1 has a number near 2^63 where there is no limit */

/* Returns the number of a file that contains only a number; GROUP_MEMORY_NONE: none, or "max". */
static uint64_t read_number(int directory, const char *name)
{
	return (uint64_t)text_file_number(directory, name, (int64_t)GROUP_MEMORY_NONE);
}

/* Returns the number in the line "KEY NUMBER". */
static uint64_t find_number(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, length) && line[length] == ' ')
			return strtoull(line + length, NULL, 10);
	}
	return GROUP_MEMORY_NONE;
}

bool group_memory_read(const struct group_memory *memory, uint64_t figures[NOTE_GROUP_FIGURES])
{
	/* Files of a number, and keys in memory.stat, in the order of the figures. */
	static const char *const names[][NOTE_GROUP_FIGURES] = {
	    {"memory.current", "anon", "file", "shmem", "kernel", "memory.max"},
	    {"memory.usage_in_bytes", "total_rss", "total_cache", "total_shmem", "memory.kmem.usage_in_bytes",
	     "memory.limit_in_bytes"},
	};
	uint64_t *limit = &figures[NOTE_GROUP_LIMIT - NOTE_GROUP_FIRST];
	CLEANUP(free) char *text = NULL;

	if (memory->directory < 0 || text_file_read(memory->directory, "memory.stat", &text) < 0)
		return false;
	for (unsigned i = 0; i < NOTE_GROUP_FIGURES; i++) {
		const char *name = names[memory->version_1][i];

		figures[i] =
		    starts_with(name, "memory.") ? read_number(memory->directory, name) : find_number(text, name);
	}
	if (*limit > NO_LIMIT_BYTES)
		*limit = GROUP_MEMORY_NONE;
	return figures[0] != GROUP_MEMORY_NONE;
}

const char *group_memory_find(char *text, const char *controller)
{
	char *rest = text, *line, *name, *path, *next;

	while ((line = strsep(&rest, "\n"))) {
		name = strchr(line, ':');
		path = name ? strchr(name + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		for (name++; name; name = next) {
			next = strchr(name, ',');
			if (next)
				*next++ = '\0';
			if (!strcmp(name, controller))
				return path;
		}
	}
	return NULL;
}

char *group_memory_path(pid_t pid)
{
	static const char *const controllers[] = {"", "memory"};

	for (size_t i = 0; i < sizeof(controllers) / sizeof(*controllers); i++) {
		CLEANUP(free) char *text = proc_text(pid, "cgroup");
		const char *path = text ? group_memory_find(text, controllers[i]) : NULL;

		if (path && strcmp(path, "/") != 0)
			return strdup(path);
	}
	return NULL;
}

/* The mount of the version 1 hierarchy may show only a part of it, as in a container: its root is then the group. */
static int open_version_1(const char *path)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *mount;
	int directory = -1;

	while (mounts && directory < 0 && (mount = getmntent(mounts))) {
		char full_path[PATH_MAX];

		if (strcmp(mount->mnt_type, "cgroup") != 0 || !hasmntopt(mount, "memory") ||
		    snprintf(full_path, sizeof(full_path), "%s%s", mount->mnt_dir, path) >= (int)sizeof(full_path))
			continue;
		directory = open(full_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (directory < 0)
			directory = open(mount->mnt_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (mounts)
		endmntent(mounts);
	return directory;
}

bool group_memory_open(int group, pid_t member, struct group_memory *memory)
{
	CLEANUP(free) char *text = NULL;
	const char *path;

	*memory = (struct group_memory){.directory = -1};
	if (faccessat(group, "memory.current", F_OK, 0) == 0) {
		memory->directory = openat(group, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return memory->directory >= 0;
	}
	text = proc_text(member, "cgroup");
	path = text ? group_memory_find(text, "memory") : NULL;
	if (!path || !strcmp(path, "/"))
		return false;
	memory->directory = open_version_1(path);
	memory->version_1 = true;
	return memory->directory >= 0;
}

void group_memory_close(struct group_memory *memory)
{
	if (memory->directory >= 0)
		close(memory->directory);
	memory->directory = -1;
}
