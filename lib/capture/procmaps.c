// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/procmaps.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* What is left of the line; every parser moves `position` and returns false on what it does not expect. */
struct text {
	const char *position;
	const char *end;
};

static bool parse_number(struct text *text, unsigned base, uint64_t *value_ret)
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

static bool parse_character(struct text *text, char character)
{
	if (text->position == text->end || *text->position != character)
		return false;
	text->position++;
	return true;
}

static bool parse_permissions(struct text *text, struct procmaps_line *line)
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

/* The kernel writes a newline in a path as \012, and nothing else so. */
static void copy_path(const struct text *text, char path[LIMIT_PATH_BYTES])
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
	struct text text = {.position = line, .end = line + length};
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
