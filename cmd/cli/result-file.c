// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/result-file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"

#define MODE 0666 /* and the umask */
#define RECORDING_MAGIC "PERFILE2"

static void deinit(struct result_file *file)
{
	free(file->target);
	free(file->temporary);
	file->target = file->temporary = NULL;
}

/* A new or regular file is replaced; anything else, such as a pipe, is written directly. */
static bool is_replaced(const char *path)
{
	struct stat status;

	return stat(path, &status) < 0 ? errno == ENOENT : S_ISREG(status.st_mode) != 0;
}

/* A recording cannot be made again, and its name can be given as that of the result by mistake. */
static bool is_recording(const char *path)
{
	char magic[sizeof(RECORDING_MAGIC) - 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool same = fd >= 0 && read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
		    !memcmp(magic, RECORDING_MAGIC, sizeof(magic));

	if (fd >= 0)
		close(fd);
	return same;
}

/* With O_TMPFILE, nothing is left behind if the process is killed. It gets its name through /proc. */
static int open_beside(struct result_file *file)
{
	char *directory = access("/proc/self/fd", X_OK) == 0 ? strdup(file->target) : NULL;
	int fd = directory ? open(dirname(directory), O_TMPFILE | O_WRONLY | O_CLOEXEC, MODE) : -1;

	free(directory);
	if (fd >= 0)
		return fd;
	file->named = true;
	return open(file->temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, MODE);
}

static int open_replacement(struct result_file *file)
{
	struct stat status;
	int fd;

	file->target = realpath(file->path, NULL);
	if (!file->target)
		file->target = strdup(file->path);
	if (!file->target || asprintf(&file->temporary, "%s.new-%d", file->target, (int)getpid()) < 0) {
		file->temporary = NULL;
		errno = ENOMEM;
		return -1;
	}
	fd = open_beside(file);
	if (fd >= 0 && stat(file->target, &status) == 0)
		(void)fchmod(fd, status.st_mode & 0777);
	return fd;
}

bool result_file_open(const struct command *command, const char *path, struct result_file *file_ret)
{
	struct result_file file = {.path = path};
	bool replaced;
	int fd;

	if (strcmp(path, "-") == 0) {
		file.stream = stdout;
		*file_ret = file;
		return true;
	}
	replaced = is_replaced(path);
	if (replaced && is_recording(path)) {
		message(command, "%s is a recording, which would be replaced: choose another name for the output",
			path);
		return false;
	}
	fd = replaced ? open_replacement(&file) : open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		file.stream = fdopen(fd, "w");
	if (!file.stream) {
		message(command, "cannot write %s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		deinit(&file);
		return false;
	}
	*file_ret = file;
	return true;
}

static bool take_name(struct result_file *file)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fileno(file->stream));
	if (!file->named && linkat(AT_FDCWD, link, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW) < 0)
		return false;
	file->named = true;
	return rename(file->temporary, file->target) == 0;
}

bool result_file_finish(const struct command *command, struct result_file *file, bool complete)
{
	bool written = fflush(file->stream) == 0 && !ferror(file->stream);

	if (complete && written && file->target) {
		written = take_name(file);
		file->named &= !written;
	}
	if (complete && !written)
		message(command, "cannot write %s: %s", file->path, strerror(errno));
	if (file->named)
		unlink(file->temporary);
	if (file->stream != stdout && fclose(file->stream) != 0 && complete && written) {
		message(command, "cannot write %s: %s", file->path, strerror(errno));
		written = false;
	}
	deinit(file);
	return !complete || written;
}
