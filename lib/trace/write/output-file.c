// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/write/output-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include <mmtrace/output.h>

#include "base/cleanup.h"
#include "trace/format/format.h"

#define TEMPORARY_ATTEMPTS 100
#define LINKS_MAX 40   /* as the kernel follows */
#define READER_MS 2000 /* for a reader that does not read, after the stop */

/* Open the directory of the path. All names below are looked up there, so that no other user can redirect the output
 * by replacing a directory or link of the path later. */
static struct mmt_error *open_directory(struct output_file *file)
{
	const char *slash = strrchr(file->path, '/');
	CLEANUP(free) char *directory = slash ? strndup(file->path, (size_t)(slash - file->path) + 1) : strdup(".");

	if (!directory)
		return &error_no_memory;
	file->name = slash ? slash + 1 : file->path;
	cleanup_close(&file->directory);
	file->directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (file->directory >= 0 && *file->name)
		return NULL;
	return error_system(file->directory < 0 ? errno : EISDIR, "cannot write %s", file->path);
}

static bool is_same_file(const struct stat *one, const struct stat *other)
{
	return one->st_ino == other->st_ino && one->st_dev == other->st_dev;
}

static bool find(const struct output_file *file, const char *name, struct stat *status)
{
	return fstatat(file->directory, name, status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Only a regular file is replaced, if there is something at all. */
static struct mmt_error *check_target(const struct output_file *file)
{
	struct stat status;

	if (!find(file, file->name, &status)) {
		return errno == ENOENT ? NULL : error_system(errno, "cannot write %s", file->path);
	}
	if (S_ISREG(status.st_mode))
		return NULL;
	return error_create(MMT_ERROR_INVALID, "cannot write %s: it is a %s; choose another name with -o", file->path,
			    S_ISLNK(status.st_mode)   ? "symbolic link"
			    : S_ISDIR(status.st_mode) ? "directory"
						      : "special file");
}

static char *old_name(const char *name)
{
	char *old;

	return asprintf(&old, "%s.old", name) < 0 ? NULL : old;
}

static char *temporary_name(const struct output_file *file, unsigned attempt)
{
	char *name;

	return asprintf(&name, "%s.new-%d-%u", file->name, (int)getpid(), attempt) < 0 ? NULL : name;
}

/* Create a new file with a temporary name, or give one to the unnamed file. */
static struct mmt_error *make_temporary(struct output_file *file)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

	for (unsigned attempt = 0; attempt < TEMPORARY_ATTEMPTS; attempt++) {
		CLEANUP(free) char *name = temporary_name(file, attempt);
		int result;

		if (!name)
			return &error_no_memory;
		result = file->nameless ? linkat(AT_FDCWD, file->link, file->directory, name, AT_SYMLINK_FOLLOW)
					: (file->fd = openat(file->directory, name, flags, file->mode));
		if (result >= 0) {
			file->temporary = TAKE(name);
			file->nameless = false;
			return NULL;
		}
		if (errno != EEXIST)
			break;
	}
	return error_system(errno, "cannot write %s", file->path);
}

static struct mmt_error *open_new(struct output_file *file)
{
	/* The longest name needed later, possibly after a long recording. */
	CLEANUP(free) char *longest = temporary_name(file, TEMPORARY_ATTEMPTS - 1);
	struct stat status;

	if (!longest)
		return &error_no_memory;
	if (!find(file, longest, &status) && errno == ENAMETOOLONG)
		return error_create(
		    MMT_ERROR_INVALID,
		    "cannot write %s: its temporary name, %zu characters longer, would be too long; choose "
		    "a shorter name",
		    file->path, strlen(longest) - strlen(file->name));
	file->fd = openat(file->directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, file->mode);
	if (file->fd < 0)
		return make_temporary(file);
	/* linkat() on /proc/self/fd is the only way to name the file later without privileges. */
	snprintf(file->link, sizeof(file->link), "/proc/self/fd/%d", file->fd);
	file->nameless = access(file->link, F_OK) == 0;
	if (file->nameless)
		return NULL;
	close(file->fd);
	file->fd = -1;
	return make_temporary(file);
}

struct mmt_error *output_file_open(const char *path, struct output_file *file_ret)
{
	struct output_file file = {.path = strdup(path), .mode = 0600, .directory = -1, .fd = -1};
	struct mmt_error *error = file.path ? open_directory(&file) : &error_no_memory;
	CLEANUP(free) char *old = error ? NULL : old_name(file.name);
	struct stat status;

	error = error ?: old ? check_target(&file) : &error_no_memory;
	/* PATH.old is replaced by PATH; a directory is not. */
	if (!error && find(&file, file.name, &status) && find(&file, old, &status) && S_ISDIR(status.st_mode))
		error = error_create(MMT_ERROR_INVALID,
				     "cannot rename %s to %s.old: it is a directory; choose another name with -o", path,
				     path);
	error = error ?: open_new(&file);
	if (error)
		output_file_close(&file);
	else
		*file_ret = file;
	return error;
}

struct mmt_error *output_file_open_stream(struct output_file *file_ret)
{
	struct output_file file = {.path = strdup("standard output"),
				   .directory = -1,
				   .fd = -1,
				   .stream = true,
				   .stop_fd = -1,
				   .until_ns = UINT64_MAX};
	struct mmt_error *error = NULL;
	struct stat status;
	bool terminal;

	if (!file.path)
		return &error_no_memory;
	terminal = isatty(STDOUT_FILENO);
	file.fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	if (terminal)
		error = error_create(MMT_ERROR_INVALID,
				     "standard output is a terminal: pipe it into a command, or choose a file with -o");
	/* If standard output was closed, its number may now belong to another descriptor that is only readable. */
	else if (file.fd < 0 || fstat(file.fd, &status) < 0 || (fcntl(file.fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		error = error_system(file.fd < 0 ? errno : EBADF, "cannot write standard output");
	if (error) {
		output_file_close(&file);
		return error;
	}
	file.type = status.st_mode & S_IFMT;
	*file_ret = file;
	return NULL;
}

/* Timeout for poll(); -1: none. */
static int milliseconds_until(uint64_t until_ns)
{
	struct timespec now;
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (until_ns <= now_ns)
		return 0;
	return (until_ns - now_ns) / 1000000 < INT_MAX ? (int)((until_ns - now_ns) / 1000000) + 1 : -1;
}

/* Afterwards there is room, or a write() will report an error. False: not in time. */
static bool wait_for_reader(const struct output_file *file)
{
	struct pollfd items[] = {{.fd = file->fd, .events = POLLOUT}, {.fd = file->stop_fd, .events = POLLIN}};
	int result = TEMP_FAILURE_RETRY(poll(items, 2, milliseconds_until(file->until_ns)));

	return items[0].revents || result < 0 || TEMP_FAILURE_RETRY(poll(items, 1, READER_MS)) != 0;
}

/* Write as much as possible without blocking: a writable pipe has room for PIPE_BUF bytes. */
static ssize_t write_some(struct output_file *file, const void *data, size_t size)
{
	if (file->type != S_IFIFO && file->type != S_IFSOCK)
		return write(file->fd, data, size);
	if (file->given_up || !wait_for_reader(file)) {
		file->given_up = true;
		errno = ETIMEDOUT;
		return -1;
	}
	if (file->type == S_IFSOCK)
		return send(file->fd, data, size, MSG_DONTWAIT);
	return write(file->fd, data, size < PIPE_BUF ? size : PIPE_BUF);
}

struct mmt_error *output_file_write(struct output_file *file, const void *data, size_t size, uint64_t offset,
				    size_t *written_ret)
{
	size_t written = 0;
	struct mmt_error *error = NULL;

	while (!error && written < size) {
		const uint8_t *next = (const uint8_t *)data + written;
		ssize_t result = file->stream ? write_some(file, next, size - written)
					      : pwrite(file->fd, next, size - written, (off_t)(offset + written));

		if (result > 0)
			written += (size_t)result;
		else if (result == 0 || (errno != EINTR && errno != EAGAIN))
			error = error_system(result < 0 ? errno : ENOSPC, "cannot write %s", file->path);
	}
	if (written_ret)
		*written_ret = written;
	return error;
}

struct mmt_error *output_file_check(const struct output_file *file)
{
	struct pollfd reader = {.fd = file->fd};
	struct stat status;

	if (file->stream) {
		if (poll(&reader, 1, 0) > 0 && reader.revents & POLLERR)
			return error_system(EPIPE, "cannot write %s", file->path);
		return NULL;
	}
	if (fstat(file->fd, &status) < 0)
		return error_system(errno, "cannot stat %s", file->path);
	if (status.st_nlink || file->nameless)
		return NULL;
	return error_create(MMT_ERROR_SYSTEM, "%s was removed while it was written, and is lost", file->path);
}

struct mmt_error *output_file_cut(struct output_file *file, uint64_t size)
{
	if (file->stream)
		return NULL;
	return ftruncate(file->fd, (off_t)size) < 0 ? error_system(errno, "cannot truncate %s", file->path) : NULL;
}

struct mmt_error *output_file_check_room(const struct output_file *file, uint64_t bytes)
{
	struct statfs system;
	uint64_t free_bytes;

	/* Some file systems do not report their size. */
	if (fstatfs(file->fd, &system) < 0 || !system.f_blocks)
		return NULL;
	free_bytes = (uint64_t)system.f_bavail * (uint64_t)system.f_bsize;
	if (free_bytes >= bytes)
		return NULL;
	return error_create(MMT_ERROR_SYSTEM,
			    "cannot write %s: its file system has %" PRIu64 " KiB free, and %" PRIu64
			    " KiB may be needed",
			    file->path, free_bytes >> 10, (bytes + 1023) >> 10);
}

struct mmt_error *output_file_sync(struct output_file *file)
{
	return fsync(file->fd) < 0 && errno != EINVAL ? error_system(errno, "cannot write %s", file->path) : NULL;
}

static void remove_temporary(struct output_file *file)
{
	if (file->temporary)
		(void)unlinkat(file->directory, file->temporary, 0);
	free(TAKE(file->temporary));
}

static struct mmt_error *take_name(struct output_file *file)
{
	CLEANUP(free) char *old = old_name(file->name);
	struct mmt_error *error = file->replaces ? NULL : check_target(file);
	int in = file->directory;
	char aside[NAME_MAX + 1]; /* no allocation: if one fails, the tool ends and leaves the temporary file behind */
	bool kept = false, another, linked = false;
	struct stat at_old, at_path;

	if (!error && file->nameless)
		error = make_temporary(file);
	if (error)
		return error;
	if (!old)
		return &error_no_memory;
	another = find(file, old, &at_old) && find(file, file->name, &at_path) && !is_same_file(&at_old, &at_path);
	/* The file must have a name at every time, even if the process is killed. So OLD first becomes another link to
	 * it. If the file system has no hard links, the file is renamed. */
	if (!file->replaces) {
		if (snprintf(aside, sizeof(aside), "%s-old", file->temporary) < (int)sizeof(aside) &&
		    linkat(in, file->name, in, aside, 0) == 0) {
			linked = renameat(in, aside, in, old) == 0;
			(void)unlinkat(in, aside, 0); /* still exists if OLD was a link to the same file */
		}
		kept = linked || renameat(in, file->name, in, old) == 0;
	}
	if (!file->replaces && !kept && errno != ENOENT)
		return error_system(errno, "cannot rename %s to %s.old", file->path, file->path);
	if (renameat(in, file->temporary, in, file->name) < 0) {
		error = error_system(errno, "cannot write %s", file->path);
		if (linked)
			(void)unlinkat(in, old, 0);
		else if (kept && renameat(in, old, in, file->name) < 0)
			return error_context(error, "%s is now %s.old", file->path, file->path);
		return error;
	}
	file->kept = kept;
	file->replaced = kept && another;
	free(TAKE(file->temporary));
	return NULL;
}

struct mmt_error *output_file_take_name(struct output_file *file)
{
	struct mmt_error *error;
	sigset_t all, before;
	bool held;

	if (file->stream)
		return NULL;
	sigfillset(&all);
	held = pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
	error = take_name(file);
	if (error) /* pending signals may end the process after this */
		remove_temporary(file);
	if (held)
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

static bool is_at(const struct output_file *file, const char *path)
{
	struct stat own, there;

	return fstat(file->fd, &own) == 0 && lstat(path, &there) == 0 && is_same_file(&own, &there);
}

enum mmt_record_place output_file_find(const struct output_file *file)
{
	CLEANUP(free) char *old = old_name(file->path);

	if (file->stream || is_at(file, file->path))
		return MMT_RECORD_AT_OUTPUT;
	return old && is_at(file, old) ? MMT_RECORD_AT_OLD : MMT_RECORD_ELSEWHERE;
}

void output_file_close(struct output_file *file)
{
	remove_temporary(file);
	cleanup_close(&file->fd);
	cleanup_close(&file->directory);
	free(file->path);
	*file = (struct output_file){.directory = -1, .fd = -1};
}

/* Results that can be made again, such as a report */

/* Only the user and root may choose another file by a link or a pipe of their own. The kernel's fs.protected_symlinks
 * covers only directories such as /tmp. */
static bool is_trusted(const struct stat *status)
{
	return status->st_uid == geteuid() || status->st_uid == 0;
}

/* Replace the path by that which the link contains. `found`: the link itself, so that its owner cannot exchange it. */
static struct mmt_error *follow_link(struct output_file *file, int found)
{
	char target[PATH_MAX], *next;
	ssize_t length = readlinkat(found, "", target, sizeof(target));
	int kept = target[0] == '/' ? 0 : (int)(file->name - file->path);

	if (length < 0 || (size_t)length == sizeof(target))
		return error_system(length < 0 ? errno : ENAMETOOLONG, "cannot write %s", file->path);
	if (asprintf(&next, "%.*s%.*s", kept, file->path, (int)length, target) < 0)
		return &error_no_memory;
	free(file->path);
	file->path = next;
	return open_directory(file);
}

/* Open what stands at the path (O_PATH), and follow links of the user and of root. *found_ret: -1: there is nothing;
 * a link: it leads to a stream. */
static struct mmt_error *find_result(struct output_file *file, int *found_ret, struct stat *status)
{
	struct mmt_error *error = open_directory(file);

	for (unsigned links = 0; !error; links++) {
		CLEANUP(close) int found = openat(file->directory, file->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct statfs system;
		struct stat target;
		bool to_stream;

		if (found < 0 && errno == ENOENT)
			return NULL;
		if (found < 0 || fstat(found, status) < 0)
			return error_system(errno, "cannot write %s", file->path);
		if ((S_ISLNK(status->st_mode) || S_ISFIFO(status->st_mode)) && !is_trusted(status))
			return error_create(MMT_ERROR_INVALID,
					    "cannot write %s: it is a %s that belongs to another user; choose another "
					    "name for the output",
					    file->path, S_ISLNK(status->st_mode) ? "symbolic link" : "pipe");
		/* A link in /proc to an open pipe, socket, terminal or similar, such as /dev/stdout, has no path. */
		to_stream = S_ISLNK(status->st_mode) && fstatfs(found, &system) == 0 &&
			    system.f_type == PROC_SUPER_MAGIC &&
			    fstatat(file->directory, file->name, &target, 0) == 0 && !S_ISREG(target.st_mode);
		if (!S_ISLNK(status->st_mode) || to_stream) {
			*found_ret = found;
			found = -1;
			return NULL;
		}
		error =
		    links == LINKS_MAX ? error_system(ELOOP, "cannot write %s", file->path) : follow_link(file, found);
	}
	return error;
}

/* In a user namespace, the owner of the link /dev/stdout may be unknown. */
static char *copy_path(const char *path)
{
	return strdup(strcmp(path, "/dev/stdout") != 0 ? path : "/proc/self/fd/1");
}

int output_file_place(const char *path)
{
	struct output_file file = {.path = copy_path(path), .directory = -1, .fd = -1};
	CLEANUP(close) int found = -1;
	struct stat status;
	struct mmt_error *error = file.path ? find_result(&file, &found, &status) : &error_no_memory;
	bool stream = found >= 0 && !S_ISREG(status.st_mode);
	int place = error ? -1 : openat(file.directory, stream ? file.name : ".", O_PATH | O_CLOEXEC);

	mmt_error_destroy(error);
	output_file_close(&file);
	return place;
}

/* A new or regular file gets its name late; anything else, such as a pipe, is written directly. */
static struct mmt_error *open_result(struct output_file *file)
{
	CLEANUP(close) int found = -1, fd = -1;
	char reopened[32];
	uint64_t magic;
	struct stat status, now;
	struct mmt_error *error = find_result(file, &found, &status);

	if (error)
		return error;
	if (found >= 0 && !S_ISREG(status.st_mode)) {
		bool link = S_ISLNK(status.st_mode);

		file->stream = true;
		file->fd = openat(file->directory, file->name, O_WRONLY | O_CLOEXEC | (link ? 0 : O_NOFOLLOW));
		if (file->fd < 0 || fstat(file->fd, &now) < 0)
			return error_system(errno, "cannot write %s", file->path);
		if (link || is_same_file(&now, &status))
			return NULL;
		return error_create(MMT_ERROR_SYSTEM, "cannot write %s: it was replaced meanwhile", file->path);
	}
	/* A user may pass the recording as the output by mistake, and it cannot be made again. */
	if (found >= 0) {
		snprintf(reopened, sizeof(reopened), "/proc/self/fd/%d", found);
		fd = open(reopened, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, &magic, sizeof(magic)) == sizeof(magic) && le64toh(magic) == FORMAT_MAGIC)
			error = error_create(
			    MMT_ERROR_INVALID,
			    "%s is a recording and is not replaced: choose another name for the output", file->path);
	}
	error = error ?: open_new(file);
	if (!error && found >= 0 && is_trusted(&status))
		(void)fchmod(file->fd, status.st_mode & 0777);
	return error;
}

struct mmt_error *mmt_write_file(const char *path, struct mmt_error *(*write)(const void *context, FILE *stream),
				 const void *context)
{
	struct output_file file = {.path = copy_path(path), .mode = 0666, .replaces = true, .directory = -1, .fd = -1};
	struct mmt_error *error = file.path ? open_result(&file) : &error_no_memory;
	/* The stream has its own descriptor: the file gets its name once all errors of writing are known. */
	int fd = error ? -1 : fcntl(file.fd, F_DUPFD_CLOEXEC, 0);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");

	if (!error && !stream)
		error = error_system(errno, "cannot write %s", path);
	if (!stream && fd >= 0)
		close(fd);
	error = error ?: write(context, stream);
	if (!error && (fflush(stream) != 0 || ferror(stream)))
		error = error_system(errno, "cannot write %s", path);
	if (stream && fclose(stream) != 0 && !error)
		error = error_system(errno, "cannot write %s", path);
	error = error ?: output_file_take_name(&file);
	output_file_close(&file);
	return error;
}
