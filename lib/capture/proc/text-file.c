// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/proc/text-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

static int read_all(int fd, char **text_ret)
{
	CLEANUP(free) char *text = NULL;
	size_t size = 0;
	size_t capacity = 0;

	for (;;) {
		ssize_t count;

		if (size + 1 >= capacity) {
			char *larger;

			if (capacity > TEXT_FILE_BYTES_MAX)
				return -EFBIG;
			capacity = capacity ? 2 * capacity : 4096;
			larger = realloc(text, capacity);
			if (!larger)
				return -ENOMEM;
			text = larger;
		}
		count = read(fd, text + size, capacity - size - 1);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (count == 0)
			break;
		size += (size_t)count;
	}
	text[size] = '\0';
	*text_ret = TAKE(text);
	return 0;
}

int text_file_read(int directory, const char *path, char **text_ret)
{
	CLEANUP(close) int fd = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	return read_all(fd, text_ret);
}

int64_t text_file_number(int directory, const char *path, int64_t fallback)
{
	CLEANUP(free) char *text = NULL;
	int64_t value;

	if (text_file_read(directory, path, &text) < 0 || sscanf(text, "%" SCNd64, &value) != 1)
		return fallback;
	return value;
}

bool text_file_field(const char *text, const char *name, char *value, size_t value_size)
{
	size_t name_length = strlen(name);

	for (const char *line = text; line && *line;) {
		const char *end = strchrnul(line, '\n');

		if (!strncmp(line, name, name_length) && line[name_length] == ':') {
			const char *start = line + name_length + 1;
			size_t length;

			start += strspn(start, " \t");
			length = start < end ? (size_t)(end - start) : 0;
			if (length >= value_size)
				length = value_size - 1;
			memcpy(value, start, length);
			value[length] = '\0';
			return true;
		}
		line = *end ? end + 1 : NULL;
	}
	return false;
}

int regular_file_open_found(int found)
{
	int fd = -1, errno_value;
	struct stat status;
	char name[64];

	if (found < 0)
		return -1;
	if (fstat(found, &status) == 0) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", found);
		errno = EINVAL;
		if (S_ISREG(status.st_mode))
			fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	errno_value = errno;
	close(found);
	errno = errno_value;
	return fd;
}

int regular_file_open(const char *path)
{
	return regular_file_open_found(open(path, O_PATH | O_CLOEXEC));
}

bool regular_file_is_mapped(const struct stat *status, uint32_t device_major, uint32_t device_minor, uint64_t inode)
{
	bool same_device = major(status->st_dev) == device_major && minor(status->st_dev) == device_minor;

	return status->st_ino == inode && (same_device || device_major == 0 || major(status->st_dev) == 0);
}
