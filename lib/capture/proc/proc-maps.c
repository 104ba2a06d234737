// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/proc/proc-maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/perf/clock.h"

/* The rest of the line. Every parser advances `position` and returns false on unexpected input. */
struct maps_text {
	const char *position;
	const char *end;
};

static bool parse_number(struct maps_text *text, unsigned base, uint64_t *value_ret)
{
	const char *start = text->position;
	uint64_t value = 0;

	for (; text->position < text->end; text->position++) {
		unsigned char character = (unsigned char)*text->position;
		unsigned digit = character - '0';

		if (digit > 9)
			digit = character >= 'a' && character <= 'f' ? character - 'a' + 10u : 16;
		if (digit >= base)
			break;
		if (value > (UINT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	*value_ret = value;
	return text->position > start;
}

static bool parse_character(struct maps_text *text, char character)
{
	if (text->position == text->end || *text->position != character)
		return false;
	text->position++;
	return true;
}

static bool parse_permissions(struct maps_text *text, struct procmaps_line *line)
{
	const char *permissions = text->position;

	if (text->end - text->position < 4)
		return false;
	line->protection = (permissions[0] == 'r' ? PROT_READ : 0) | (permissions[1] == 'w' ? PROT_WRITE : 0) |
			   (permissions[2] == 'x' ? PROT_EXEC : 0);
	line->shared = permissions[3] == 's';
	text->position += 4;
	return true;
}

/* The kernel escapes a newline in a path as \012, and escapes nothing else. */
static void copy_path(const struct maps_text *text, char path[LIMIT_PATH_BYTES])
{
	const char *position = text->position;
	size_t length = 0;

	while (position < text->end && length < LIMIT_PATH_BYTES - 1) {
		if (text->end - position >= 4 && !memcmp(position, "\\012", 4)) {
			path[length++] = '\n';
			position += 4;
		} else {
			path[length++] = *position++;
		}
	}
	path[length] = '\0';
	if (length == 0)
		snprintf(path, LIMIT_PATH_BYTES, "//anon");
}

bool procmaps_parse(const char *line, size_t length, struct procmaps_line *line_ret)
{
	struct maps_text text = {.position = line, .end = line + length};
	uint64_t major, minor;

	if (!parse_number(&text, 16, &line_ret->start) || !parse_character(&text, '-') ||
	    !parse_number(&text, 16, &line_ret->end) || !parse_character(&text, ' ') ||
	    !parse_permissions(&text, line_ret) || !parse_character(&text, ' ') ||
	    !parse_number(&text, 16, &line_ret->file_offset) || !parse_character(&text, ' ') ||
	    !parse_number(&text, 16, &major) || !parse_character(&text, ':') || !parse_number(&text, 16, &minor) ||
	    !parse_character(&text, ' ') || !parse_number(&text, 10, &line_ret->inode) ||
	    line_ret->start >= line_ret->end || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	line_ret->device_major = (uint32_t)major;
	line_ret->device_minor = (uint32_t)minor;
	while (parse_character(&text, ' '))
		;
	copy_path(&text, line_ret->path);
	return true;
}

/* From linux/fs.h of Linux 6.11, for older headers. */
#define QUERY_IS_EXECUTABLE 4ull
#define QUERY_THIS_OR_NEXT 16ull

struct query {
	uint64_t size, flags, address;
	uint64_t start, end, mapping_flags, page_bytes, file_offset, inode;
	uint32_t device_major, device_minor, name_size, build_id_size;
	uint64_t name_address, build_id_address;
};

#define QUERY_IOCTL _IOWR('f', 17, struct query)

enum mapped_kind mapping_query(int maps, uint64_t address, uint64_t *end_ret)
{
	struct query query = {.size = sizeof(query), .flags = QUERY_THIS_OR_NEXT, .address = address};

	*end_ret = UINT64_MAX;
	if (ioctl(maps, QUERY_IOCTL, &query) < 0) {
		if (errno == ENOENT)
			return MAPPED_NOTHING;
		return errno == ENOTTY || errno == EINVAL ? MAPPED_UNTOLD : MAPPED_DATA;
	}
	*end_ret = query.start > address ? query.start : query.end;
	if (query.start > address)
		return MAPPED_NOTHING;
	return query.mapping_flags & QUERY_IS_EXECUTABLE ? MAPPED_CODE : MAPPED_DATA;
}

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
