/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Small text files of the kernel (/proc, tracefs), read whole. */
#ifndef CAPTURE_TEXT_FILE_H
#define CAPTURE_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define TEXT_FILE_BYTES_MAX (1u << 20)

/* The content with a NUL behind it; the caller frees it. -ENOENT, -EACCES ... on failure, -EFBIG beyond the maximum. */
int text_file_read(int directory, const char *path, char **text_ret);

/* The number at the file's start; `fallback` when it cannot be read. */
int64_t text_file_number(int directory, const char *path, int64_t fallback);

/* The text after "NAME:" and blanks at a line's start, up to the line's end, cut to fit. False: no such line. */
bool text_file_field(const char *text, const char *name, char *value, size_t value_size);

#endif
