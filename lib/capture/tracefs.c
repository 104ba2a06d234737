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

struct mmt_error *tracefs_open(int *directory_ret)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	bool refused = false;
	int fd;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		fd = open_mounted(places[i]);
		if (fd >= 0) {
			*directory_ret = fd;
			return NULL;
		}
		refused |= fd == -EACCES || fd == -EPERM;
	}
	fd = open_detached();
	if (fd >= 0) {
		*directory_ret = fd;
		return NULL;
	}
	if (refused || fd == -EACCES || fd == -EPERM)
		return error_create(MMT_ERROR_PERMISSION,
				    "cannot read the tracepoints in /sys/kernel/tracing: permission denied; run as "
				    "root or with CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH "
				    "(kernel.perf_event_paranoid is %" PRId64 ")",
				    text_file_number(-1, "/proc/sys/kernel/perf_event_paranoid", -1));
	return error_system(-fd,
			    "cannot read the tracepoints: no tracefs in /sys/kernel/tracing and none can be mounted");
}

/* A file that must exist. */
static struct mmt_error *read_file(int directory, const char *path, char **text_ret)
{
	int result = text_file_read(directory, path, text_ret);

	return result < 0 ? error_system(-result, "cannot read tracefs file %s", path) : NULL;
}

struct mmt_error *tracefs_add_tracepoint(int directory, const char *system, const char *name,
					 struct tracepoints *tracepoints, bool *found_ret)
{
	char path[256];
	CLEANUP(free) char *format = NULL;
	CLEANUP(free) char *system_copy = strdup(system);
	CLEANUP(free) char *name_copy = strdup(name);
	struct mmt_error *error;
	struct tracepoint *tracepoint;
	int64_t id;

	if (!system_copy || !name_copy)
		return &error_no_memory;
	snprintf(path, sizeof(path), "events/%s/%s/id", system, name);
	if (faccessat(directory, path, F_OK, AT_EACCESS) < 0 && errno == ENOENT) {
		*found_ret = false;
		return NULL;
	}
	id = text_file_number(directory, path, -1);
	if (id < 0 || id > UINT32_MAX)
		return error_create(MMT_ERROR_PERMISSION, "cannot read tracefs file %s: run as root", path);
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

struct mmt_error *tracefs_add_headers(int directory, struct tracepoints *tracepoints)
{
	struct mmt_error *error = read_file(directory, "events/header_page", &tracepoints->header_page);

	return error ? error : read_file(directory, "events/header_event", &tracepoints->header_event);
}
