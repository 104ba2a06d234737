// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/memory/group-memory.h"

#include <fcntl.h>
#include <limits.h>
#include <mntent.h>

#include "base/strings.h"
#include "capture/perf/scope.h"

#define NO_LIMIT_BYTES (1ULL << 62) /* version 1 has a number near 2^63 where there is no limit */

/* Return the number of a file that contains only a number; GROUP_MEMORY_NONE: none, or "max". */
static uint64_t read_number(int directory, const char *name)
{
	return (uint64_t)text_file_number(directory, name, (int64_t)GROUP_MEMORY_NONE);
}

uint64_t group_memory_stalled(int directory, const char *file)
{
	CLEANUP(free) char *text = NULL;
	const char *total;

	/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=8224" */
	(void)text_file_read(directory, file, &text);
	total = text ? strstr(text, "total=") : NULL;
	return total ? strtoull(total + strlen("total="), NULL, 10) : GROUP_MEMORY_NONE;
}

bool group_memory_read(const struct group_memory *memory, uint64_t figures[NOTE_GROUP_FIGURES])
{
	/* Files of a number, and keys in memory.stat, in the order of the figures. */
	static const char *const names[][NOTE_GROUP_FIGURES] = {
	    {"memory.current", "anon", "file", "shmem", "kernel", "memory.max", "oom_kill", "", "memory.high", "high"},
	    {"memory.usage_in_bytes", "total_rss", "total_cache", "total_shmem", "memory.kmem.usage_in_bytes",
	     "memory.limit_in_bytes", "oom_kill", "", "", ""},
	};
	uint64_t *limit = &figures[NOTE_GROUP_LIMIT - NOTE_GROUP_FIRST];
	CLEANUP(free) char *text = NULL, *events = NULL;

	if (memory->directory < 0 || text_file_read(memory->directory, "memory.stat", &text) < 0)
		return false;
	(void)text_file_read(memory->directory, memory->version_1 ? "memory.oom_control" : "memory.events", &events);
	for (unsigned i = 0; i < NOTE_GROUP_FIGURES; i++) {
		const char *name = names[memory->version_1][i];
		const char *lines = !strcmp(name, "oom_kill") || !strcmp(name, "high") ? events : text;
		char value[32];

		if (starts_with(name, "memory."))
			figures[i] = read_number(memory->directory, name);
		else
			figures[i] = text_file_field(lines, name, value, sizeof(value)) ? strtoull(value, NULL, 10)
											: GROUP_MEMORY_NONE;
	}
	figures[NOTE_GROUP_STALLED - NOTE_GROUP_FIRST] = group_memory_stalled(memory->directory, "memory.pressure");
	if (*limit > NO_LIMIT_BYTES)
		*limit = GROUP_MEMORY_NONE;
	return figures[0] != GROUP_MEMORY_NONE;
}

char *group_memory_path(pid_t pid)
{
	static const char *const controllers[] = {"", "memory"};

	for (size_t i = 0; i < sizeof(controllers) / sizeof(*controllers); i++) {
		CLEANUP(free) char *path = proc_group_path(pid, controllers[i]);

		if (path && strcmp(path, "/") != 0)
			return TAKE(path);
	}
	return NULL;
}

static const char *limit_name(const struct group_memory *memory)
{
	return memory->version_1 ? "memory.limit_in_bytes" : "memory.max";
}

/* Open the group of a path in the memory hierarchy of version 1, or in that of version 2. */
static int open_mounted(const char *path, bool version_1)
{
	CLEANUP(fclose) FILE *mounts = setmntent("/proc/self/mounts", "re");
	CLEANUP(free) char *own = proc_group_path(getpid(), version_1 ? "memory" : "");
	const struct mntent *mount;
	int directory = -1;

	/* A path that is outside of this cgroup namespace is found below none. */
	while (mounts && directory < 0 && !starts_with(path, "/..") && (mount = getmntent(mounts))) {
		char full_path[PATH_MAX];

		if (!strcmp(mount->mnt_type, version_1 ? "cgroup" : "cgroup2") &&
		    (!version_1 || hasmntopt(mount, "memory")) &&
		    snprintf(full_path, sizeof(full_path), "%s%s", mount->mnt_dir, path) < (int)sizeof(full_path))
			directory = open(full_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		else
			continue;
		/* In a container, the mount may begin at the recorder's own group. */
		if (directory < 0 && own && own[1] && starts_with(path, own) && strchr("/", path[strlen(own)]) &&
		    snprintf(full_path, sizeof(full_path), "%s%s", mount->mnt_dir, path + strlen(own)) > 0)
			directory = open(full_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return directory;
}

/* Cut the member's path off where the group's ends: it may be in a group below. False: it is in another group. */
static bool cut_to_group(char *member, int group)
{
	char path[PATH_MAX];
	size_t part;

	(void)cgroup_path(group, path, sizeof(path));
	part = group_part_of(member, path);
	member[part ?: strlen(member)] = '\0';
	return part;
}

bool group_memory_open(int group, pid_t member, struct group_memory *memory)
{
	*memory = (struct group_memory){.directory = -1, .version_1 = true};
	if (group >= 0 && faccessat(group, "memory.current", F_OK, 0) == 0) {
		memory->version_1 = false;
		memory->directory = openat(group, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return memory->directory >= 0;
	}
	for (int version = 1; version <= (group < 0 ? 2 : 1) && memory->directory < 0; version++) {
		CLEANUP(free) char *text = proc_text(member, "cgroup");
		char *path = text ? proc_group_find(text, version == 1 ? "memory" : "") : NULL;

		/* In another hierarchy, the process may be in a group with other members, such as that of a shell. */
		if (!path || (version == 1 && !strcmp(path, "/")) || (group >= 0 && !cut_to_group(path, group)))
			continue;
		memory->version_1 = version == 1;
		memory->directory = open_mounted(path, memory->version_1);
		if (!memory->version_1 && starts_with(path, "/.."))
			mmt_error_destroy(cgroup_open(path, member, &memory->directory));
		/* The root of the machine has none; that of a container's namespace has one. */
		if (faccessat(memory->directory, limit_name(memory), F_OK, 0) != 0)
			close_descriptor(&memory->directory);
	}
	return memory->directory >= 0;
}

/* Take the open group. */
static uint64_t add_group(struct group_memories *groups, struct group_memory memory)
{
	struct stat status;
	bool ok = fstat(memory.directory, &status) == 0;

	memory.device = status.st_dev;
	memory.inode = status.st_ino;
	for (size_t i = 0; ok && i < groups->items.count; i++) {
		const struct group_memory *known = &groups->items.items[i];

		if (known->directory < 0 || known->device != memory.device || known->inode != memory.inode)
			continue;
		close_descriptor(&memory.directory);
		return i;
	}
	groups->left_out |= groups->items.count == LIMIT_GROUPS;
	if (ok && groups->items.count < LIMIT_GROUPS && vector_push(&groups->items, memory))
		return groups->items.count - 1;
	close_descriptor(&memory.directory);
	return GROUP_MEMORY_NONE;
}

uint64_t group_memories_find(struct group_memories *groups, int group, pid_t member)
{
	CLEANUP(free) char *text = proc_text(member, "cgroup");
	uint64_t key = text ? map_checksum(text, strlen(text)) : 0, index = GROUP_MEMORY_NONE;
	const uint64_t *known = text ? map_get(&groups->known, key) : NULL;
	struct group_memory memory;

	if (known || !text)
		return known ? *known : index;
	if (group_memory_open(group, member, &memory))
		index = add_group(groups, memory);
	/* Without memory for this, the search is repeated. */
	(void)map_put(&groups->known, key, index);
	return index;
}

static uint64_t read_room(const struct group_memory *memory)
{
	uint64_t limit = read_number(memory->directory, limit_name(memory));
	uint64_t high = memory->version_1 ? limit : read_number(memory->directory, "memory.high");
	uint64_t used = read_number(memory->directory, memory->version_1 ? "memory.usage_in_bytes" : "memory.current");

	limit = high < limit ? high : limit;
	if (limit > NO_LIMIT_BYTES || used == GROUP_MEMORY_NONE)
		return GROUP_MEMORY_NONE;
	return used < limit ? limit - used : 0;
}

uint64_t group_memories_find_limit(struct group_memories *groups, uint64_t index)
{
	uint64_t found = index, least = read_room(&groups->items.items[index]);

	while (index != GROUP_MEMORY_NONE) {
		struct group_memory above = groups->items.items[index];
		uint64_t room;

		above.noted = false;
		above.directory = openat(above.directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (above.directory >= 0 && faccessat(above.directory, limit_name(&above), F_OK, 0) != 0)
			close_descriptor(&above.directory);
		index = above.directory < 0 ? GROUP_MEMORY_NONE : add_group(groups, above);
		room = index == GROUP_MEMORY_NONE ? index : read_room(&groups->items.items[index]);
		if (room < least) {
			found = index;
			least = room;
		}
	}
	return found;
}

void group_memories_close(struct group_memories *groups, uint64_t index)
{
	close_descriptor(&groups->items.items[index].directory);
	map_deinit(&groups->known);
	groups->known = (struct map){0};
}

void group_memories_deinit(struct group_memories *groups)
{
	vector_deinit_each(&groups->items, item, close_descriptor(&item->directory));
	map_deinit(&groups->known);
}
