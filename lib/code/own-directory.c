// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/own-directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LINKS_MAX 16

struct walk {
	int directory;	/* O_PATH */
	char *rest;	/* of the path; owned */
	unsigned links; /* followed so far */
};

bool own_directory_is_own(int fd, mode_t kind, struct stat *status_ret)
{
	return !fstat(fd, status_ret) && (status_ret->st_mode & S_IFMT) == kind && status_ret->st_uid == geteuid() &&
	       !(status_ret->st_mode & (S_IWGRP | S_IWOTH));
}

static const char *skip_slashes(const char *path)
{
	return path + strspn(path, "/");
}

static unsigned count_names(const char *path)
{
	unsigned count = 0;

	for (path = skip_slashes(path); *path; path = skip_slashes(path + strcspn(path, "/")))
		count++;
	return count;
}

/* Opens the name without following a link; creates a missing directory if that is allowed. */
static int open_name(int directory, const char *name, bool may_make)
{
	const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(directory, name, flags);
	struct stat status;

	if (fd >= 0 || errno != ENOENT || !may_make || !own_directory_is_own(directory, S_IFDIR, &status) ||
	    (mkdirat(directory, name, 0700) && errno != EEXIST))
		return fd;
	return openat(directory, name, flags);
}

/* Replaces the link by its target in the rest of the path. The last component must not be a link. */
static bool follow(struct walk *walk, int link, const char *rest)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(link, "", target, sizeof(target) - 1);
	char *path;

	if (length <= 0 || !*skip_slashes(rest) || ++walk->links > LINKS_MAX)
		return false;
	target[length] = '\0';
	if (asprintf(&path, "%s/%s", target, rest) < 0)
		return false;
	free(walk->rest);
	walk->rest = path;
	if (*target != '/')
		return true;
	close(walk->directory);
	walk->directory = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return walk->directory >= 0;
}

/* Walks one component of the path. */
static bool step(struct walk *walk, unsigned levels)
{
	const char *name = skip_slashes(walk->rest);
	size_t length = strcspn(name, "/");
	CLEANUP(free) char *copy = strndup(name, length);
	CLEANUP(close) int fd = -1;
	struct stat status;
	char *rest;
	int above;

	if (!copy)
		return false;
	fd = open_name(walk->directory, copy, count_names(name) <= levels);
	if (fd < 0 || fstat(fd, &status) || (status.st_uid != geteuid() && status.st_uid != 0))
		return false;
	if (S_ISLNK(status.st_mode))
		return follow(walk, fd, name + length);
	rest = S_ISDIR(status.st_mode) ? strdup(name + length) : NULL;
	if (!rest)
		return false;
	free(walk->rest);
	walk->rest = rest;
	above = walk->directory;
	walk->directory = fd;
	fd = above;
	return true;
}

int own_directory_open(const char *path, unsigned levels)
{
	struct walk walk = {.directory = -1};
	bool reached = false;
	int fd = -1;

	if (*path != '/')
		return -1;
	walk.directory = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	walk.rest = walk.directory >= 0 ? strdup(path) : NULL;
	while (walk.rest && !reached && (!*skip_slashes(walk.rest) || step(&walk, levels)))
		reached = !*skip_slashes(walk.rest);
	if (reached)
		fd = openat(walk.directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(walk.rest);
	if (walk.directory >= 0)
		close(walk.directory);
	return fd;
}
