/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files whose path the target chose. Opening a device has effects and opening a FIFO may wait: what a path leads to is
 * looked at before it is opened.
 */
#ifndef CAPTURE_REGULAR_FILE_H
#define CAPTURE_REGULAR_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* For reading; -1 and errno, EINVAL where the path leads to something else. Symbolic links are followed. */
int regular_file_open(const char *path);

/* The same for what an O_PATH descriptor (-1: none, errno is kept) stands for. Closes it. */
int regular_file_open_found(int found);

/*
 * Whether the file is the mapped one. On some file systems, such as btrfs and overlayfs, fstat() returns another device
 * than the kernel's MMAP2 records, and one of the two is anonymous (major number 0): then only the inodes are compared.
 */
bool regular_file_is_mapped(const struct stat *status, uint32_t device_major, uint32_t device_minor, uint64_t inode);

#endif
