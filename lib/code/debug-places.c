// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/debug-places.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define DEBUG_DIRECTORY "/usr/lib/debug"
#define BUILD_ID_BYTES_MAX 64

bool debug_place_blocks(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* Without memory nothing is opened either. */
__attribute__((format(printf, 1, 2))) static bool place_blocks(const char *format, ...)
{
	CLEANUP(free) char *path = NULL;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(&path, format, arguments);
	va_end(arguments);
	if (length < 0) {
		path = NULL;
		return true;
	}
	return debug_place_blocks(path);
}

/* Below the common directory each end of the program's own is tried. */
static bool name_blocks(const char *directory, const char *name)
{
	if (place_blocks("%s/%s", directory, name) || place_blocks("%s/.debug/%s", directory, name))
		return true;
	for (const char *end = directory; end; end = strchr(end + (*end == '/'), '/')) {
		if (place_blocks(DEBUG_DIRECTORY "/%s/%s", end, name))
			return true;
	}
	return place_blocks(DEBUG_DIRECTORY "/%s", name);
}

static bool program_blocks(const char *program, const char *link)
{
	const char *slash = strrchr(program, '/');
	CLEANUP(free) char *directory = slash ? strndup(program, (size_t)(slash - program)) : NULL;
	CLEANUP(free) char *made = NULL;

	if (!directory || asprintf(&made, "%s.debug", slash + 1) < 0) {
		made = NULL;
		return true;
	}
	return name_blocks(directory, link ? link : made) || (!link && name_blocks(directory, slash + 1));
}

bool debug_places_block(const char *program, const char *link)
{
	CLEANUP(free) char *resolved = realpath(program, NULL);

	return program_blocks(program, link) ||
	       (resolved && strcmp(resolved, program) != 0 && program_blocks(resolved, link));
}

bool debug_place_of_id_blocks(const uint8_t *build_id, size_t size)
{
	char hex[2 * BUILD_ID_BYTES_MAX + 1] = "";

	if (size < 2 || size > BUILD_ID_BYTES_MAX)
		return false;
	for (size_t i = 0; i < size; i++)
		snprintf(&hex[2 * i], 3, "%02x", build_id[i]);
	return place_blocks(DEBUG_DIRECTORY "/.build-id/%.2s/%s.debug", hex, hex + 2);
}

/* As the library finds it from the real place of the file. */
static bool beside_blocks(const char *file, const char *directory, const char *name)
{
	const char *slash = strrchr(file, '/');
	int length = slash ? (int)(slash - file) : 0;

	if (!slash)
		return false;
	return place_blocks("%.*s/%s", length, file, name) ||
	       (directory && place_blocks("%.*s/%s/%s", length, file, directory, name));
}

bool debug_place_of_parts_blocks(const char *file)
{
	CLEANUP(free) char *resolved = realpath(file, NULL);

	return place_blocks("%s.dwp", resolved ? resolved : file);
}

bool debug_places_of_part_block(const char *file, const char *directory, const char *name)
{
	CLEANUP(free) char *resolved = realpath(file, NULL);

	if (*name == '/')
		return debug_place_blocks(name);
	if (directory && *directory == '/' && place_blocks("%s/%s", directory, name))
		return true;
	return beside_blocks(resolved ? resolved : file, directory, name);
}
