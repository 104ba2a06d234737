// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cache-directory.h"

#include <stdio.h>
#include <stdlib.h>

char *cache_directory(void)
{
	const char *base = getenv("XDG_CACHE_HOME");
	const char *below = "/mmtrace";
	char *directory = NULL;

	/* A relative one is to be ignored. */
	if (!base || *base != '/') {
		base = getenv("HOME");
		below = "/.cache/mmtrace";
	}
	if (!base || *base != '/' || asprintf(&directory, "%s%s", base, below) < 0)
		return NULL;
	return directory;
}
