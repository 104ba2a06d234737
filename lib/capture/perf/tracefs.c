// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/perf/perf-events.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

#include "capture/procfs/permissions.h"
#include "capture/procfs/proc.h"

/* Return a file descriptor or -errno. */
static int open_directory(void)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	CLEANUP(close) int context = -1;
	bool refused = false;
	int fd;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* If tracefs is not mounted, the mount point is an empty directory. AT_EACCESS takes capabilities into
		 * account, which a check for the real user ignores. */
		if (fd >= 0 && faccessat(fd, "events", F_OK, AT_EACCESS) == 0)
			return fd;
		refused |= errno == EACCES || errno == EPERM;
		close_descriptor(&fd);
	}
	context = fsopen("tracefs", FSOPEN_CLOEXEC);
	fd = context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0
		 ? -1
		 : fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd >= 0 ? fd : refused ? -EACCES : -errno;
}

void tracefs_close(struct tracepoint_source *source)
{
	close_descriptor(&source->directory);
	tracepoints_deinit(&source->saved);
}

/* Read a file that every supported kernel has. */
static struct mmt_error *read_file(int directory, const char *path, char **text_ret)
{
	int result = text_file_read(directory, path, text_ret);

	if (result == -EMFILE || result == -ENFILE)
		return error_system(-result, "cannot read tracefs file %s (raise the limit with `ulimit -n`)", path);
	return result < 0 ? error_system(-result, "cannot read tracefs file %s", path) : NULL;
}

/* Read a tracepoint. Its format stays NULL if there is none; the caller frees it. */
static struct mmt_error *read_tracepoint(int directory, const char *system, const char *name, struct tracepoint *found)
{
	static const char mark[] = "\nID: ";
	struct mmt_error *error;
	const char *id;
	char path[256];

	snprintf(path, sizeof(path), "events/%s/%s/format", system, name);
	if (faccessat(directory, path, F_OK, AT_EACCESS) < 0 && errno == ENOENT)
		return NULL;
	error = read_file(directory, path, &found->format);
	id = error ? NULL : strstr(found->format, mark);
	found->id = id ? (uint32_t)strtoul(id + strlen(mark), NULL, 10) : 0;
	return error;
}

struct mmt_error *tracefs_add_tracepoint(const struct tracepoint_source *source, const char *system, const char *name,
					 struct tracepoints *tracepoints, bool *found_ret)
{
	const struct tracepoints *saved = &source->saved;
	struct tracepoint found = {0}, *added;
	struct mmt_error *error = NULL;

	if (source->directory >= 0)
		error = read_tracepoint(source->directory, system, name, &found);
	array_while(item, saved->items.items, saved->items.count, source->directory < 0 && !found.format) {
		if (strcmp(item->system, system) != 0 || strcmp(item->name, name) != 0)
			continue;
		found.id = item->id;
		found.format = strdup(item->format);
		if (!found.format)
			return &error_no_memory;
	}
	*found_ret = found.format;
	if (error || !found.format)
		return error;
	added = vector_append(&tracepoints->items);
	if (!added) {
		free(found.format);
		return &error_no_memory;
	}
	*added = found;
	added->system = strdup(system);
	added->name = strdup(name);
	return added->system && added->name ? NULL : &error_no_memory;
}

struct mmt_error *tracefs_add_headers(const struct tracepoint_source *source, struct tracepoints *tracepoints)
{
	if (source->directory < 0) {
		tracepoints->header_page = strdup(source->saved.header_page);
		tracepoints->header_event = strdup(source->saved.header_event);
		return tracepoints->header_page && tracepoints->header_event ? NULL : &error_no_memory;
	}
	return read_file(source->directory, "events/header_page", &tracepoints->header_page)
		   ?: read_file(source->directory, "events/header_event", &tracepoints->header_event);
}

/* The file that `mmtrace setup` writes for users who may not read tracefs. */

#define SAVED_MAGIC 0x3053505452544d4dULL /* "MMTRTPS0" */
#define BOOT_ID_BYTES 40		  /* 36 characters, NUL, padding */
#define DIRECTORY_MODE 0755
#define FILE_MODE 0644
#define NOT_ROOTS "it does not belong to root, or root is not known in this user namespace"

/* Read the boot ID. Tracepoint IDs may change with the next boot. */
static struct mmt_error *read_boot_id(char boot_id[BOOT_ID_BYTES])
{
	CLEANUP(free) char *text = NULL;
	int result = text_file_read(-1, "/proc/sys/kernel/random/boot_id", &text);

	memset(boot_id, 0, BOOT_ID_BYTES);
	if (result < 0)
		return error_system(-result, "cannot read /proc/sys/kernel/random/boot_id");
	snprintf(boot_id, BOOT_ID_BYTES, "%.36s", text);
	return NULL;
}

static struct mmt_error *collect(struct tracepoints *tracepoints)
{
	struct tracepoint_source source;
	struct mmt_error *error = tracefs_open(&source);
	bool found;

	if (error)
		return error;
	error = tracefs_add_headers(&source, tracepoints);
	for (unsigned i = 0; !error && i < 2 * CALL_KINDS; i++) {
		const struct call_description *description = call_describe((enum call)(i / 2));
		char name[64];

		if (description->unrecorded)
			continue;
		snprintf(name, sizeof(name), "sys_%s_%s", i % 2 ? "enter" : "exit", description->name);
		error = tracefs_add_tracepoint(&source, "syscalls", name, tracepoints, &found);
	}
	/* Users with CAP_PERFMON but no access to tracefs need these, too. */
	error = error ?: tracefs_add_tracepoint(&source, "task", "task_newtask", tracepoints, &found);
	for (unsigned i = 0; !error && i < EVENTS_RECLAIM; i++)
		error = tracefs_add_tracepoint(&source, "vmscan", events_reclaim_names[i], tracepoints, &found);
	tracefs_close(&source);
	return error;
}

/* Open the file only if it is not a symbolic link and only its owner can write it. */
static struct mmt_error *open_safely(const char *directory, uid_t owner, int *fd_ret)
{
	CLEANUP(close) int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (fd < 0)
		return error_system(errno, "cannot open %s", directory);
	if (fstat(fd, &status) < 0)
		return error_system(errno, "cannot read the owner and the mode of %s", directory);
	if (status.st_uid != owner || status.st_mode & (S_IWGRP | S_IWOTH))
		return error_create(MMT_ERROR_PERMISSION, "cannot use %s: %s", directory,
				    status.st_uid != owner
					? NOT_ROOTS
					: "users other than root can write there; run `chmod go-w` on it as root");
	*fd_ret = fd;
	fd = -1;
	return NULL;
}

/* Write under a temporary name and then rename the file, so that no reader sees a partial file. */
static struct mmt_error *write_file(int directory, const struct buffer *content)
{
	static const char temporary[] = TRACEFS_SAVED_NAME ".new";
	CLEANUP(close) int fd = -1;
	ssize_t written;

	if (unlinkat(directory, temporary, 0) < 0 && errno != ENOENT)
		return error_system(errno, "cannot remove an earlier %s", temporary);
	fd = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	if (fd < 0)
		return error_system(errno, "cannot write %s", temporary);
	written = write(fd, content->data, content->size);
	if (written != (ssize_t)content->size || fchmod(fd, FILE_MODE) < 0 ||
	    renameat(directory, temporary, directory, TRACEFS_SAVED_NAME) < 0) {
		int errno_value = written >= 0 && written < (ssize_t)content->size ? ENOSPC : errno;

		unlinkat(directory, temporary, 0);
		return error_system(errno_value, "cannot write %s", temporary);
	}
	return NULL;
}

static struct mmt_error *save(const char *directory, const struct tracepoints *tracepoints)
{
	CLEANUP(close) int fd = -1;
	char boot_id[BOOT_ID_BYTES];
	struct mmt_error *error = read_boot_id(boot_id);
	CLEANUP(buffer) struct buffer content = {.maximum = LIMIT_SAVED_FORMATS_BYTES};

	if (error)
		return error;
	if (mkdir(directory, DIRECTORY_MODE) < 0 && errno != EEXIST)
		return error_system(errno, "cannot create %s", directory);
	error = open_safely(directory, geteuid(), &fd);
	/* The umask may have removed permissions of the new directory. */
	if (!error && fchmod(fd, DIRECTORY_MODE) < 0)
		error = error_system(errno, "cannot change the mode of %s", directory);
	if (error)
		return error;
	buffer_put_u64(&content, SAVED_MAGIC);
	buffer_put(&content, boot_id, sizeof(boot_id));
	tracepoints_encode(tracepoints, (uint32_t)sysconf(_SC_PAGESIZE), &content);
	return buffer_finish(&content) ?: error_context(write_file(fd, &content), "%s", directory);
}

struct mmt_error *tracefs_save(const char *directory)
{
	struct tracepoints tracepoints = {0};
	struct mmt_error *error;

	if (geteuid() != 0)
		return error_create(MMT_ERROR_PERMISSION,
				    "cannot save the tracepoints: only root may do this; run `sudo mmtrace setup`");
	error = collect(&tracepoints) ?: save(directory, &tracepoints);
	tracepoints_deinit(&tracepoints);
	return error;
}

static struct mmt_error *read_content(int directory, uint8_t **data_ret, size_t *size_ret)
{
	CLEANUP(close) int fd = openat(directory, TRACEFS_SAVED_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	CLEANUP(free) uint8_t *data = NULL;
	struct stat status;
	ssize_t size;

	if (fd < 0 || fstat(fd, &status) < 0)
		return error_system(errno, "cannot open " TRACEFS_SAVED_NAME);
	if (status.st_uid != 0)
		return error_create(MMT_ERROR_PERMISSION, "cannot use the file " TRACEFS_SAVED_NAME ": " NOT_ROOTS);
	if (!S_ISREG(status.st_mode) || status.st_mode & (S_IWGRP | S_IWOTH))
		return error_create(MMT_ERROR_PERMISSION,
				    "cannot use the file " TRACEFS_SAVED_NAME
				    ": users other than root can write it; run `mmtrace setup` again as root");
	if (status.st_size > LIMIT_SAVED_FORMATS_BYTES)
		return error_create(MMT_ERROR_FORMAT, TRACEFS_SAVED_NAME " is too large");
	data = malloc((size_t)status.st_size + 1);
	if (!data)
		return &error_no_memory;
	size = read(fd, data, (size_t)status.st_size);
	if (size < 0)
		return error_system(errno, "cannot read " TRACEFS_SAVED_NAME);
	*data_ret = TAKE(data);
	*size_ret = (size_t)size;
	return NULL;
}

static struct mmt_error *decode(const uint8_t *data, size_t size, struct tracepoints *tracepoints_ret)
{
	struct bytes bytes = bytes_over(data, size);
	char boot_id[BOOT_ID_BYTES];
	struct mmt_error *error = read_boot_id(boot_id);
	uint64_t magic = bytes_u64(&bytes);
	const void *saved_id = bytes_take(&bytes, BOOT_ID_BYTES);

	if (error)
		return error;
	if (!bytes_ok(&bytes) || magic != SAVED_MAGIC)
		return error_create(MMT_ERROR_FORMAT,
				    TRACEFS_SAVED_NAME " is not of this version; run `mmtrace setup` again as root");
	if (memcmp(saved_id, boot_id, BOOT_ID_BYTES) != 0)
		return error_create(MMT_ERROR_FORMAT,
				    TRACEFS_SAVED_NAME " is of an earlier boot; run `mmtrace setup` again as root");
	error = tracepoints_decode(&bytes, tracepoints_ret);
	if (error || (tracepoints_ret->header_page && tracepoints_ret->header_event))
		return error;
	tracepoints_deinit(tracepoints_ret);
	return error_create(MMT_ERROR_FORMAT, TRACEFS_SAVED_NAME " is damaged; run `mmtrace setup` again as root");
}

struct mmt_error *tracefs_open(struct tracepoint_source *source_ret)
{
	struct tracepoint_source source = {.directory = open_directory()};
	CLEANUP(free) uint8_t *data = NULL;
	CLEANUP(close) int fd = -1;
	struct mmt_error *error = NULL;
	int errno_value = -source.directory;
	size_t size = 0;

	/* Read the saved file if it is from this boot and only root can have written it. */
	if (source.directory < 0) {
		source.directory = -1;
		error = open_safely(TRACEFS_SAVED_DIRECTORY, 0, &fd)
			    ?: error_context(read_content(fd, &data, &size) ?: decode(data, size, &source.saved), "%s",
					     TRACEFS_SAVED_DIRECTORY);
	}
	if (!error) {
		*source_ret = source;
		return NULL;
	}
	/* If a file exists but cannot be read, report why, and not that it is missing. */
	if (error->errno_value != ENOENT)
		return error;
	mmt_error_destroy(error);
	if (errno_value == EACCES || errno_value == EPERM)
		return error_refused(permission_explain(PERMISSION_TRACEPOINTS), "cannot read the tracepoints");
	return error_system(errno_value,
			    "cannot read the tracepoints: no tracefs in /sys/kernel/tracing and none can be mounted");
}
