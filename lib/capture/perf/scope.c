// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/perf/scope.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <sys/vfs.h>

#include "base/strings.h"

#define CHEAP_EVENTS 192 /* a pair of mmap() and munmap() takes about a fifth longer than with those of two CPUs */
#define WALK_NS 10	 /* for each event and pair; more if they do not fit into the caches */

void scope_deinit(struct scope *scope)
{
	map_deinit(&scope->begins);
	map_deinit(&scope->ends);
	vector_deinit(&scope->forks);
	vector_deinit_each(&scope->cgroups, item, close(*item));
}

bool scope_threads_are_cheap(size_t cpus, size_t events)
{
	return cpus * events <= CHEAP_EVENTS;
}

unsigned scope_threads_cost_us(size_t cpus, size_t events)
{
	return (unsigned)(cpus * events * WALK_NS / 1000);
}

bool scope_follows(const struct scope *scope, pid_t pid, uint64_t time_ns)
{
	const uint64_t *begin_ns = map_get(&scope->begins, (uint32_t)pid);
	const uint64_t *end_ns = map_get(&scope->ends, (uint32_t)pid);

	return begin_ns && time_ns >= *begin_ns && (!end_ns || time_ns < *end_ns);
}

bool scope_follow(struct scope *scope, pid_t pid, uint64_t time_ns)
{
	(void)map_remove(&scope->ends, (uint32_t)pid);
	return map_put(&scope->begins, (uint32_t)pid, time_ns);
}

COMPARISON(compare_times, struct scope_fork, order_of(a->time_ns, b->time_ns))

bool scope_apply_forks(struct scope *scope, uint64_t until_ns)
{
	size_t applied = 0, count = scope->forks.count;
	bool ok = true;

	vector_sort(&scope->forks, compare_times);
	for (; ok && applied < count && scope->forks.items[applied].time_ns <= until_ns; applied++) {
		const struct scope_fork fork = scope->forks.items[applied];
		bool followed = scope_follows(scope, fork.parent, fork.time_ns);

		/* If its PID was used before, it is a new process now, and older records are not its own. */
		if (!scope_follows(scope, fork.pid, fork.time_ns))
			ok = !followed || scope_follow(scope, fork.pid, fork.time_ns);
		else
			ok = followed || map_put(&scope->ends, (uint32_t)fork.pid, fork.time_ns);
	}
	for (size_t i = applied; i < count; i++)
		scope->forks.items[i - applied] = scope->forks.items[i];
	scope->forks.count = count - applied;
	return ok;
}

void scope_forget(struct scope *scope, const struct process_table *known, uint64_t before_ns)
{
	map_each(begin, &scope->begins, true) {
		if (begin->value > before_ns || process_table_find(known, (pid_t)begin->key))
			continue;
		(void)map_remove(&scope->ends, begin->key);
		(void)map_remove(&scope->begins, begin->key);
	}
}

bool scope_admits(const struct scope *scope, pid_t pid, uint64_t time_ns)
{
	return scope->kind == SCOPE_THREADS || scope_follows(scope, pid, time_ns);
}

#define PROCESSES_FILE "cgroup.procs"
#define TRIED_MAX 8 /* a system mounts fewer hierarchies than this */
#define HEX_DIGITS "0123456789abcdefABCDEF"
#define ID_DIGITS 64
#define ID_DIGITS_MIN 12

/* What cgroup_open() found under the paths that it tried. */
struct cgroup_search {
	bool by_id;		     /* the path is the ID of a container or a pod */
	bool mounted;		     /* a hierarchy that perf events can use */
	pid_t member;		     /* 0, or a process in a group outside of this cgroup namespace */
	int fd;			     /* -1: no usable group found yet */
	struct mmt_error *error;     /* the ID is not unique */
	char tried[TRIED_MAX * 256]; /* the paths tried: "/sys/fs/cgroup/a, ..." */
	char other[PATH_MAX];	     /* a group of a hierarchy that perf events cannot use; "": none */
};

/* Read the process's group in the hierarchy that perf events use: the perf_event hierarchy of version 1 if there is
 * one, or else the unified one. NULL: not known. The caller frees it. */
static char *find_own_path(pid_t pid, bool *version_1)
{
	char *path = proc_group_path(pid, "perf_event");

	*version_1 = path;
	return path ?: proc_group_path(pid, "");
}

/* Can perf events use this hierarchy? */
static bool has_perf_events(const struct mntent *mount)
{
	bool version_1;

	free(find_own_path(getpid(), &version_1));
	return version_1 ? !strcmp(mount->mnt_type, "cgroup") && hasmntopt(mount, "perf_event")
			 : !strcmp(mount->mnt_type, "cgroup2");
}

/* `told`: the path is one of those in the message that nothing was found. */
static void try_group(struct cgroup_search *search, const char *path, bool told)
{
	size_t used = strlen(search->tried);
	CLEANUP(close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fclose) FILE *mounts = NULL;
	bool usable = false, known = false;
	struct stat own, root;
	struct mntent *mount;
	struct statfs state;
	/* Any directory may have a file with the name of the list of processes. */
	bool foreign = fd >= 0 && (fstatfs(fd, &state) < 0 ||
				   (state.f_type != CGROUP2_SUPER_MAGIC && state.f_type != CGROUP_SUPER_MAGIC));

	if (told)
		snprintf(search->tried + used, sizeof(search->tried) - used, "%s%s%s", used ? ", " : "", path,
			 foreign ? " (not in a cgroup file system)" : "");
	if (fd < 0 || foreign || faccessat(fd, PROCESSES_FILE, F_OK, 0) != 0)
		return;
	/* Is it in a hierarchy that perf events can use? If no mount shows its hierarchy, let the kernel decide. */
	mounts = setmntent("/proc/self/mounts", "re");
	while (mounts && !usable && (mount = getmntent(mounts))) {
		if (strncmp(mount->mnt_type, "cgroup", 6) != 0 || fstat(fd, &own) != 0 ||
		    stat(mount->mnt_dir, &root) != 0 || own.st_dev != root.st_dev)
			continue;
		known = true;
		usable = has_perf_events(mount);
	}
	if (known && !usable) {
		snprintf(search->other, sizeof(search->other), "%s", path);
		return;
	}
	search->fd = fd;
	fd = -1;
}

/* Can it be the ID of a container or the beginning of one, or the UID of a pod? */
static bool is_id(const char *text)
{
	size_t length = strspn(text, HEX_DIGITS "-_");

	return length >= ID_DIGITS_MIN && !text[length];
}

/* In the names of its groups, systemd uses '_' instead of '-'. Their digits are of lower case. */
static bool begins_with_id(const char *name, const char *id)
{
	while (*id && (*name == tolower((unsigned char)*id) || (*name && strchr("-_", *name) && strchr("-_", *id)))) {
		name++;
		id++;
	}
	return !*id;
}

/* Is this the group of the container or pod: ID, docker-ID.scope, cri-containerd-ID.scope, podUID,
 * kubepods-burstable-podUID.slice? Groups with "conmon" in their names have a program that waits for the container. */
static bool is_named_by(const char *name, const char *id)
{
	for (const char *at = name; *at && !strstr(name, "conmon"); at++) {
		bool pod = at - name >= 3 && !strncmp(at - 3, "pod", 3);

		if ((!pod && at > name && !strchr("-:", at[-1])) || !begins_with_id(at, id))
			continue;
		if (pod ? strchr(".", at[strlen(id)]) != NULL : strspn(at, HEX_DIGITS) == ID_DIGITS)
			return true;
	}
	return false;
}

static bool list_below(int cgroup, unsigned depth, proc_pids *pids)
{
	CLEANUP(closedir) DIR *directory = NULL;
	CLEANUP(free) char *text = NULL;
	const struct dirent *entry;
	const char *position;
	bool ok = true;
	char *end;
	int copy;

	/* A threaded control group has no list of processes: the kernel lists them in its domain. */
	position = text_file_read(cgroup, PROCESSES_FILE, &text) < 0 ? "" : text;
	for (; ok; position = end) {
		long pid = strtol(position, &end, 10);

		if (end == position)
			break;
		/* Processes in other PID namespaces are listed as PID 0. */
		ok = pid <= 0 || vector_push(pids, (pid_t)pid);
	}
	copy = openat(cgroup, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	directory = copy < 0 ? NULL : fdopendir(copy);
	if (!directory)
		close_descriptor(&copy);
	while (ok && directory && depth < LIMIT_GROUP_DEPTH && (entry = readdir(directory))) {
		CLEANUP(close) int below = -1;

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		below = openat(cgroup, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* The group was removed in the meantime, so it has no processes. */
		ok = below < 0 || list_below(below, depth + 1, pids);
	}
	return ok && (directory || cgroup_is_removed(cgroup));
}

/* Is the group at this path that of the process, whose path ends like this? */
static bool is_group_of(const char *path, const char *end, pid_t member)
{
	CLEANUP(vector) proc_pids pids = {0};
	CLEANUP(close) int fd = ends_with(path, end) ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	return fd >= 0 && list_below(fd, LIMIT_GROUP_DEPTH, &pids) &&
	       array_find(pid, pids.items, pids.count, *pid == member);
}

static void try_groups_below(struct cgroup_search *search, char *mount, const char *id, bool told)
{
	char *const roots[] = {mount, NULL};
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
	char found[PATH_MAX] = "";
	const FTSENT *entry;

	while (tree && !search->error && (entry = fts_read(tree))) {
		if (entry->fts_info != FTS_D || !(search->member ? is_group_of(entry->fts_path, id, search->member)
								 : is_named_by(entry->fts_name, id)))
			continue;
		if (*found)
			search->error = error_create(MMT_ERROR_INVALID,
						     "several control groups have the ID %s in their names: %s and %s; "
						     "pass more of it, or one of these paths",
						     id, found, entry->fts_path);
		snprintf(found, sizeof(found), "%s", entry->fts_path);
		/* Not those below it. */
		(void)fts_set(tree, (FTSENT *)entry, FTS_SKIP);
	}
	if (tree)
		fts_close(tree);
	if (*found && !search->error)
		try_group(search, found, told);
}

static struct mmt_error *no_group(const struct cgroup_search *search, const char *path)
{
	if (search->member)
		return error_create(MMT_ERROR_INVALID,
				    "process %d is in a control group not seen here: see mmtrace-containers(7)",
				    search->member);
	if (*search->other)
		return error_create(
		    MMT_ERROR_INVALID,
		    "the control group %s is of a version 1 hierarchy that perf events cannot use: pass "
		    "the group of the cgroup2 or perf_event hierarchy (/proc/PID/cgroup lists the groups of a "
		    "process), or record the processes of this one: -p \"$(paste -sd, %s/" PROCESSES_FILE ")\"",
		    search->other, search->other);
	if (!search->mounted)
		return error_create(MMT_ERROR_INVALID,
				    "no control group %s: there is no such directory with " PROCESSES_FILE
				    ", and no cgroup2 or perf_event hierarchy is mounted; record the processes with -p "
				    "PID --tree instead",
				    path);
	if (search->by_id)
		return error_create(
		    MMT_ERROR_INVALID,
		    "no container or pod %s: no control group has this ID in its name. It must run on this "
		    "machine, and another container sees it only if the machine's /sys/fs/cgroup is "
		    "mounted there",
		    path);
	return error_create(MMT_ERROR_INVALID,
			    "no control group %s: there is no " PROCESSES_FILE
			    " in %s. /proc/PID/cgroup shows the group "
			    "of a process, in the line with 0:: (cgroup2) or perf_event (version 1); for a container, "
			    "pass at least %d digits of its ID",
			    path, search->tried, ID_DIGITS_MIN);
}

struct mmt_error *cgroup_open(const char *path, pid_t member, int *fd_ret)
{
	struct cgroup_search search = {.fd = -1, .member = starts_with(path, "/..") ? member : 0};
	size_t digits = strspn(path, "0123456789");
	const char *colon = digits && path[digits] == ':' ? strchr(path + digits + 1, ':') : NULL;
	const char *scheme = strstr(path, "://");
	int last;

	/* What kubectl shows, such as "containerd://ID", or a line of /proc/PID/cgroup such as "0::/user.slice" or
	 * "4:perf_event:/user.slice". */
	if (scheme && is_id(scheme + 3))
		path = scheme + 3;
	else if (colon && colon[1] == '/')
		path = colon + 1;
	if (!*path)
		return error_create(MMT_ERROR_INVALID, "the path of the control group is empty");
	while (search.member && starts_with(path, "/.."))
		path += strlen("/..");
	if (!search.member)
		try_group(&search, path, true);
	last = search.member ? 3 : 2 + 2 * is_id(path);
	/* As a path, then as the ID of a group or the end of its path: where perf events can be used, and elsewhere. */
	for (int i = search.member ? 2 : 0; i < last && search.fd < 0 && !*search.other && !search.error; i++) {
		CLEANUP(fclose) FILE *mounts = setmntent("/proc/self/mounts", "re");
		bool usable = i % 2 == 0; /* by perf events */
		struct mntent *mount;

		search.by_id = i / 2;
		while (mounts && search.fd < 0 && !search.error && (mount = getmntent(mounts))) {
			char full_path[PATH_MAX];

			if (strncmp(mount->mnt_type, "cgroup", 6) != 0 || has_perf_events(mount) != usable)
				continue;
			search.mounted |= usable;
			if (search.by_id)
				try_groups_below(&search, mount->mnt_dir, path, usable);
			else if (snprintf(full_path, sizeof(full_path), "%s/%s", mount->mnt_dir,
					  path + (*path == '/')) < (int)sizeof(full_path))
				try_group(&search, full_path, usable);
		}
	}
	*fd_ret = search.fd;
	return search.fd >= 0 ? NULL : search.error ? search.error : no_group(&search, path);
}

struct mmt_error *cgroup_open_own(pid_t pid, int *fd_ret)
{
	bool version_1;
	CLEANUP(free) char *path = find_own_path(pid, &version_1);
	struct statfs state;
	struct mmt_error *error;
	const char *problem;
	bool root;

	if (!path)
		return error_create(MMT_ERROR_NO_PROCESS, "cannot read the control group of process %d", pid);
	error = cgroup_open(path, pid, fd_ret);
	if (error)
		return error;
	/* Version 1 has a file in the root only, version 2 has one in every other group. */
	if (fstatfs(*fd_ret, &state) == 0 && state.f_type == CGROUP2_SUPER_MAGIC)
		root = faccessat(*fd_ret, "cgroup.events", F_OK, 0) != 0;
	else
		root = faccessat(*fd_ret, "release_agent", F_OK, 0) == 0;
	if (!root && cgroup_has_processes(*fd_ret))
		return NULL;
	problem = root ? "which has every process" : "whose processes cannot be listed";
	close_descriptor(fd_ret);
	return error_create(MMT_ERROR_INVALID, "process %d is in the control group %s, %s: use --scope cpus", pid, path,
			    problem);
}

bool cgroup_path(int cgroup, char *path, size_t path_size)
{
	char link[64];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", cgroup);
	length = readlink(link, path, path_size - 1);
	path[length < 0 ? 0 : length] = '\0';
	return length > 0;
}

bool cgroup_contains(int cgroup, int other)
{
	char path[PATH_MAX], below[PATH_MAX];
	size_t length;

	if (!cgroup_path(cgroup, path, sizeof(path)) || !cgroup_path(other, below, sizeof(below)))
		return false;
	length = strlen(path);
	return !strncmp(path, below, length) && (!below[length] || below[length] == '/');
}

bool cgroup_has_processes(int cgroup)
{
	CLEANUP(free) char *text = NULL;
	int failure = text_file_read(cgroup, PROCESSES_FILE, &text);

	/* A group that was removed has no processes, but is no threaded group. */
	return failure >= 0 || failure == -ENODEV || failure == -ENOENT;
}

bool cgroup_is_removed(int cgroup)
{
	return cgroup >= 0 && faccessat(cgroup, PROCESSES_FILE, F_OK, 0) < 0 && (errno == ENOENT || errno == ENODEV);
}

bool cgroup_list_processes(int cgroup, proc_pids *pids)
{
	return list_below(cgroup, 0, pids);
}
