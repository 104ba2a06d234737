// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/text-file.h"

/* Returns a descriptor or -errno. */
static int open_mounted(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	/* The mount point exists, empty, where nothing is mounted. AT_EACCESS: with the capabilities, which a question
	   for the real user leaves out. */
	if (faccessat(fd, "events", F_OK, AT_EACCESS) < 0) {
		int errno_value = errno;

		close(fd);
		return -errno_value;
	}
	return fd;
}

static int open_detached(void)
{
	CLEANUP(close) int context = fsopen("tracefs", FSOPEN_CLOEXEC);
	int fd;

	if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_directory(void)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	bool refused = false;
	int fd;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		fd = open_mounted(places[i]);
		if (fd >= 0)
			return fd;
		refused |= fd == -EACCES || fd == -EPERM;
	}
	fd = open_detached();
	return fd < 0 && refused ? -EACCES : fd;
}

struct mmt_error *tracefs_open(struct tracepoint_source *source_ret)
{
	struct tracepoint_source source = {.directory = open_directory()};
	struct mmt_error *error = NULL;
	int errno_value = -source.directory;

	if (source.directory < 0) {
		source.directory = -1;
		error = tracefs_load(TRACEFS_SAVED_DIRECTORY, &source.saved);
	}
	if (!error) {
		*source_ret = source;
		return NULL;
	}
	/* A file that is there and cannot be used is worth more words than one that is not. */
	if (mmt_error_get_errno(error) != ENOENT)
		return error;
	mmt_error_destroy(error);
	if (errno_value == EACCES || errno_value == EPERM)
		return error_create(
		    MMT_ERROR_PERMISSION,
		    "cannot read the tracepoints in /sys/kernel/tracing: permission denied; run `mmtrace "
		    "setup` once as root, or record as root or with CAP_PERFMON, CAP_SYS_PTRACE and "
		    "CAP_DAC_READ_SEARCH (kernel.perf_event_paranoid is %" PRId64 ")",
		    text_file_number(-1, "/proc/sys/kernel/perf_event_paranoid", -1));
	return error_system(errno_value,
			    "cannot read the tracepoints: no tracefs in /sys/kernel/tracing and none can be mounted");
}

void tracefs_close(struct tracepoint_source *source)
{
	if (source->directory >= 0)
		close(source->directory);
	source->directory = -1;
	tracepoints_deinit(&source->saved);
}

/* A file that must exist. */
static struct mmt_error *read_file(int directory, const char *path, char **text_ret)
{
	int result = text_file_read(directory, path, text_ret);

	if (result == -EMFILE || result == -ENFILE)
		return error_system(-result, "cannot read tracefs file %s (raise the limit with `ulimit -n`)", path);
	return result < 0 ? error_system(-result, "cannot read tracefs file %s", path) : NULL;
}

static struct mmt_error *add_saved(const struct tracepoints *saved, const char *system, const char *name,
				   struct tracepoints *tracepoints, bool *found_ret)
{
	*found_ret = false;
	for (size_t i = 0; i < saved->items.count && !*found_ret; i++) {
		const struct tracepoint *item = &saved->items.items[i];
		struct tracepoint *added;

		if (strcmp(item->system, system) != 0 || strcmp(item->name, name) != 0)
			continue;
		added = vector_append(&tracepoints->items);
		if (!added)
			return &error_no_memory;
		*added = (struct tracepoint){
		    .id = item->id, .system = strdup(system), .name = strdup(name), .format = strdup(item->format)};
		if (!added->system || !added->name || !added->format)
			return &error_no_memory;
		*found_ret = true;
	}
	return NULL;
}

struct mmt_error *tracefs_add_tracepoint(const struct tracepoint_source *source, const char *system, const char *name,
					 struct tracepoints *tracepoints, bool *found_ret)
{
	int directory = source->directory;
	char path[256];
	CLEANUP(free) char *format = NULL, *number = NULL;
	CLEANUP(free) char *system_copy = strdup(system);
	CLEANUP(free) char *name_copy = strdup(name);
	struct mmt_error *error;
	struct tracepoint *tracepoint;
	int64_t id;

	if (!system_copy || !name_copy)
		return &error_no_memory;
	if (directory < 0)
		return add_saved(&source->saved, system, name, tracepoints, found_ret);
	snprintf(path, sizeof(path), "events/%s/%s/id", system, name);
	if (faccessat(directory, path, F_OK, AT_EACCESS) < 0 && errno == ENOENT) {
		*found_ret = false;
		return NULL;
	}
	error = read_file(directory, path, &number);
	if (error && mmt_error_get_code(error) == MMT_ERROR_PERMISSION && geteuid() != 0) {
		mmt_error_destroy(error);
		return error_create(MMT_ERROR_PERMISSION, "cannot read tracefs file %s: run as root", path);
	}
	if (error)
		return error;
	if (sscanf(number, "%" SCNd64, &id) != 1 || id < 0 || id > UINT32_MAX)
		return error_create(MMT_ERROR_SYSTEM, "tracefs file %s holds no number", path);
	snprintf(path, sizeof(path), "events/%s/%s/format", system, name);
	error = read_file(directory, path, &format);
	if (error)
		return error;
	tracepoint = vector_append(&tracepoints->items);
	if (!tracepoint)
		return &error_no_memory;
	tracepoint->id = (uint32_t)id;
	tracepoint->system = TAKE(system_copy);
	tracepoint->name = TAKE(name_copy);
	tracepoint->format = TAKE(format);
	*found_ret = true;
	return NULL;
}

struct mmt_error *tracefs_add_headers(const struct tracepoint_source *source, struct tracepoints *tracepoints)
{
	struct mmt_error *error;

	if (source->directory < 0) {
		tracepoints->header_page = strdup(source->saved.header_page);
		tracepoints->header_event = strdup(source->saved.header_event);
		return tracepoints->header_page && tracepoints->header_event ? NULL : &error_no_memory;
	}
	error = read_file(source->directory, "events/header_page", &tracepoints->header_page);
	return error ? error : read_file(source->directory, "events/header_event", &tracepoints->header_event);
}
