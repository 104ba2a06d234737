/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Scope guards: `CLEANUP(free) char *text = NULL;` frees when the scope ends, on every path. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(name) __attribute__((cleanup(cleanup_##name)))

static inline void cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

/* A negative descriptor is not open. */
static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **stream)
{
	if (*stream)
		fclose(*stream);
}

static inline void cleanup_closedir(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

/* Closes a descriptor, if it is open, which then is -1. */
static inline void close_descriptor(int *fd)
{
	cleanup_close(fd);
	*fd = -1;
}

/* Move the value out of the scope: `*text_ret = TAKE(text);` leaves NULL for the guard. */
#define TAKE(pointer)                                                                                                  \
	({                                                                                                             \
		__typeof__(pointer) taken_ = (pointer);                                                                \
		(pointer) = NULL;                                                                                      \
		taken_;                                                                                                \
	})
