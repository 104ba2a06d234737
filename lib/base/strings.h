/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How strings and paths begin and end. Inline: often the first character already differs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool starts_with(const char *text, const char *start)
{
	return !*start || (*text == *start && !strncmp(text, start, strlen(start)));
}

static inline bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && !strcmp(text + length - end_length, end);
}

/* The last component of a path; the path itself if it ends with a slash. */
static inline const char *path_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* The length of a mapping's path without " (deleted)", which the kernel appends to the path of an unlinked file. */
static inline size_t mapped_path_length(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t length = strlen(path);

	return length >= sizeof(deleted) && ends_with(path, deleted) ? length - (sizeof(deleted) - 1) : length;
}

/* How much of the path of a member of a control group, in its hierarchy, names the group, whose path begins with where
 * that is mounted. The member may be in a group below. 0: it is in another group. */
static inline size_t group_part_of(const char *member, const char *group)
{
	size_t length = strlen(group), end = strlen(member);

	while (end > 1 && (!strchr("/", member[end]) || end > length || memcmp(group + length - end, member, end) != 0))
		end--;
	return end > 1 ? end : 0;
}
