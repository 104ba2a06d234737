/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The memory counters of a control group: also of what no process maps, such as files on tmpfs, and the pressure that
 * its limit causes. */
#pragma once

#include <sys/types.h>

#include "base/map.h"
#include "base/vector.h"
#include "trace/format/format.h"

/* The memory controller's directory of a group. */
struct group_memory {
	int directory; /* owned; -1: not found, or the group is gone */
	bool version_1;
	dev_t device; /* for group_memories_find() */
	ino_t inode;  /* likewise */
	/* By the user of this: its counters are in the recording; OOM kills at the first reading, and how long its
	 * processes had waited at the last one, each plus 1; 0: not read, or not known. */
	bool noted;
	uint64_t first_kills, stalled_us;
};

/* Groups of the targets, and groups above them. Zero-initialise one without groups. */
struct group_memories {
	VECTOR(struct group_memory) items;
	struct map known; /* by checksum of /proc/PID/cgroup: index in `items`, or GROUP_MEMORY_NONE */
	bool left_out;	  /* there were too many groups, those that are gone included */
	/* By the user of this: when to read the counters next, whose groups to look up then, and what was said. */
	uint64_t next_ns;
	size_t next_process;
	bool reported;
	uint64_t stalled_us; /* of the machine, as of a group */
};

/* Not known, or no limit. */
#define GROUP_MEMORY_NONE UINT64_MAX

/* Open the memory controller's directory. `group`: the recorded group, if its hierarchy has the controller; otherwise
 * the controller has a hierarchy of version 1, in which the group with the same path is used: the process `member` is
 * in it. -1: no group is recorded, use that of `member`. False: there is no controller, or the group is the root of
 * the machine. */
bool group_memory_open(int group, pid_t member, struct group_memory *memory);

/* Find the group that the process is in at present, as group_memory_open() does. Return its index; GROUP_MEMORY_NONE:
 * there is none, or there are too many. */
uint64_t group_memories_find(struct group_memories *groups, int group, pid_t member);

/* Find the group whose limit is the nearest: this one, or one above it. */
uint64_t group_memories_find_limit(struct group_memories *groups, uint64_t index);

/* Close a group that is gone: another one may get its path. */
void group_memories_close(struct group_memories *groups, uint64_t index);
void group_memories_deinit(struct group_memories *groups);

/* Read the counters, by NOTE_GROUP_* - NOTE_GROUP_FIRST. False: the group is gone. */
bool group_memory_read(const struct group_memory *memory, uint64_t figures[NOTE_GROUP_FIGURES]);

/* Microseconds for which some process of the group waited for memory so far; of the machine: "/proc/pressure/memory" in
 * any directory. GROUP_MEMORY_NONE: the kernel does not say. */
uint64_t group_memory_stalled(int directory, const char *file);

/* Return the path of the process's group in the hierarchy of version 2 or, if that is the root, in that of the memory
 * controller. The caller frees it. NULL: it is the root of both. */
char *group_memory_path(pid_t pid);
