// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/text-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
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
