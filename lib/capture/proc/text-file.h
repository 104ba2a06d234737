/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads small text files of /proc, sysfs and tracefs, and opens files of a target that must be regular files. */
#ifndef CAPTURE_PROC_TEXT_FILE_H
#define CAPTURE_PROC_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/errors.h"

/* Small text files of the kernel (/proc, tracefs), read completely. */

#define TEXT_FILE_BYTES_MAX (1u << 20)

/* The content with a NUL behind it; the caller frees it. -ENOENT, -EACCES ... on failure, -EFBIG beyond the maximum. */
int text_file_read(int directory, const char *path, char **text_ret);

/* The number at the start of the file; `fallback` if it cannot be read. */
int64_t text_file_number(int directory, const char *path, int64_t fallback);

/* The text after "NAME:" and blanks at the start of a line, up to its end, cut to fit. False: no such line. */
bool text_file_field(const char *text, const char *name, char *value, size_t value_size);

/*
 * Files whose path the target chose. Opening a device has side effects and opening a FIFO may block: check what a path
 * refers to before opening it.
 */

/* Opens for reading; returns -1 and errno, EINVAL if it is not a regular file. Symbolic links are followed. */
int regular_file_open(const char *path);

/* The same for the file of an O_PATH descriptor (-1: none, errno is preserved). Closes the descriptor. */
int regular_file_open_found(int found);

/*
 * Whether the file is the mapped one. On some file systems, such as btrfs and overlayfs, fstat() returns another device
 * than the kernel's MMAP2 records, and one of the two is anonymous (major number 0): then only the inodes are compared.
 */
bool regular_file_is_mapped(const struct stat *status, uint32_t device_major, uint32_t device_minor, uint64_t inode);

#endif
