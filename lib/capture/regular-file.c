// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/regular-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

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
