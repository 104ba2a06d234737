// SPDX-License-Identifier: LGPL-2.1-or-later
/* What `mmtrace setup` leaves for users who may not read tracefs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "capture/text-file.h"
#include "capture/tracefs.h"
#include "trace/calls.h"

#define SAVED_MAGIC 0x3053505452544d4dULL /* "MMTRTPS0" */
#define BOOT_ID_BYTES 40		  /* 36 characters, NUL, padding */
#define SAVED_BYTES_MAX (1u << 20)
#define DIRECTORY_MODE 0755
#define FILE_MODE 0644
#define NOT_ROOTS "it does not belong to root, or root is not known in this user namespace"

/* The numbers of tracepoints may be others after the next boot. */
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
	for (unsigned call = 0; !error && call < CALL_KINDS; call++) {
		const struct call_description *description = call_describe((enum call)call);
		char name[64];

		snprintf(name, sizeof(name), "sys_%s_%s", description->at_entry ? "enter" : "exit", description->name);
		error = tracefs_add_tracepoint(&source, "syscalls", name, tracepoints, &found);
	}
	/* For users with CAP_PERFMON and nothing else. */
	if (!error)
		error = tracefs_add_tracepoint(&source, "task", "task_newtask", tracepoints, &found);
	if (!error)
		error = tracefs_add_tracepoint(&source, "mmap_lock", "mmap_lock_acquire_returned", tracepoints, &found);
	tracefs_close(&source);
	return error;
}

/* Not a link, and nobody but its owner writes there. */
static struct mmt_error *open_safely(const char *directory, uid_t owner, int *fd_ret)
{
	struct stat status;
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return error_system(errno, "cannot open %s", directory);
	if (fstat(fd, &status) < 0) {
		struct mmt_error *error = error_system(errno, "cannot look at %s", directory);

		close(fd);
		return error;
	}
	if (status.st_uid != owner || status.st_mode & (S_IWGRP | S_IWOTH)) {
		close(fd);
		return error_create(MMT_ERROR_PERMISSION, "%s is not used: %s", directory,
				    status.st_uid != owner ? NOT_ROOTS : "others than root can write there");
	}
	*fd_ret = fd;
	return NULL;
}

/* Beside its name, then renamed: whoever reads it reads all of it. */
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
	struct mmt_error *error;
	CLEANUP(close) int fd = -1;
	char boot_id[BOOT_ID_BYTES];
	struct buffer content;

	error = read_boot_id(boot_id);
	if (error)
		return error;
	if (mkdir(directory, DIRECTORY_MODE) < 0 && errno != EEXIST)
		return error_system(errno, "cannot make %s", directory);
	error = open_safely(directory, geteuid(), &fd);
	/* The umask may have taken something away from a directory made just now. */
	if (!error && fchmod(fd, DIRECTORY_MODE) < 0)
		error = error_system(errno, "cannot change the mode of %s", directory);
	if (error)
		return error;
	buffer_init(&content, SAVED_BYTES_MAX);
	buffer_put_u64(&content, SAVED_MAGIC);
	buffer_put(&content, boot_id, sizeof(boot_id));
	tracepoints_encode(tracepoints, (uint32_t)sysconf(_SC_PAGESIZE), &content);
	error = buffer_finish(&content);
	if (!error)
		error = error_context(write_file(fd, &content), "%s", directory);
	buffer_deinit(&content);
	return error;
}

struct mmt_error *tracefs_save(const char *directory)
{
	struct tracepoints tracepoints = {0};
	struct mmt_error *error;

	if (geteuid() != 0)
		return error_create(MMT_ERROR_PERMISSION, "only root can let others record; use sudo");
	error = collect(&tracepoints);
	if (!error)
		error = save(directory, &tracepoints);
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
		return error_create(MMT_ERROR_PERMISSION, TRACEFS_SAVED_NAME " is not used: " NOT_ROOTS);
	if (!S_ISREG(status.st_mode) || status.st_mode & (S_IWGRP | S_IWOTH))
		return error_create(MMT_ERROR_PERMISSION,
				    TRACEFS_SAVED_NAME " is not used: others than root can write it");
	if (status.st_size > SAVED_BYTES_MAX)
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

struct mmt_error *tracefs_load(const char *directory, struct tracepoints *tracepoints_ret)
{
	CLEANUP(free) uint8_t *data = NULL;
	CLEANUP(close) int fd = -1;
	struct mmt_error *error = open_safely(directory, 0, &fd);
	size_t size = 0;

	if (error)
		return error;
	error = read_content(fd, &data, &size);
	if (!error)
		error = decode(data, size, tracepoints_ret);
	return error_context(error, "%s", directory);
}
