// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/mapping-scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/clock.h"
#include "capture/procmaps.h"

/* Longer than any line; the kernel returns up to a page of lines per read. */
#define TEXT_BYTES (64u << 10)

bool mapping_scan_begin(struct mapping_scan *scan, int maps)
{
	char *text = scan->text ? scan->text : malloc(TEXT_BYTES);

	if (!text)
		return false;
	*scan = (struct mapping_scan){.begin_ns = clock_now_ns(), .text = text};
	(void)lseek(maps, 0, SEEK_SET);
	return true;
}

void mapping_scan_end(struct mapping_scan *scan)
{
	free(scan->text);
	*scan = (struct mapping_scan){0};
}

/* False: end of the file, or the process has ended. */
static bool read_more(struct mapping_scan *scan, int maps)
{
	ssize_t count;

	scan->size -= scan->position;
	memmove(scan->text, scan->text + scan->position, scan->size);
	scan->position = 0;
	do
		count = read(maps, scan->text + scan->size, TEXT_BYTES - scan->size);
	while (count < 0 && errno == EINTR);
	if (count <= 0)
		return false;
	scan->size += (size_t)count;
	return true;
}

static void next_line(struct mapping_scan *scan, int maps)
{
	const char *text, *newline;
	struct procmaps_line line;

	do {
		text = scan->text + scan->position;
		newline = memchr(text, '\n', scan->size - scan->position);
	} while (!newline && read_more(scan, maps));
	if (!newline || !procmaps_parse(text, (size_t)(newline - text), &line)) {
		scan->start = scan->end = UINT64_MAX;
		return;
	}
	scan->position += (size_t)(newline - text) + 1;
	scan->start = line.start;
	scan->end = line.end;
	scan->executable = line.protection & PROT_EXEC;
}

enum mapped_kind mapping_scan_query(struct mapping_scan *scan, int maps, uint64_t address, size_t *lines_left,
				    uint64_t *end_ret)
{
	*end_ret = UINT64_MAX;
	for (; scan->end <= address && scan->end != UINT64_MAX; --*lines_left) {
		if (!*lines_left)
			return MAPPED_UNTOLD;
		next_line(scan, maps);
	}
	*end_ret = scan->start > address ? scan->start : scan->end;
	if (scan->start > address)
		return MAPPED_NOTHING;
	return scan->executable ? MAPPED_CODE : MAPPED_DATA;
}
