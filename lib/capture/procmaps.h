/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of /proc/PID/maps. */
#ifndef CAPTURE_PROCMAPS_H
#define CAPTURE_PROCMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

struct procmaps_line {
	uint64_t start, end;
	uint32_t protection; /* PROT_* */
	bool shared;
	uint64_t file_offset;
	uint32_t device_major, device_minor;
	uint64_t inode;
	char path[LIMIT_PATH_BYTES]; /* "//anon" for none; a newline is one again; cut to fit */
};

/* One line without its newline; false: not as the kernel writes it. */
bool procmaps_parse(const char *line, size_t length, struct procmaps_line *line_ret);

#endif
