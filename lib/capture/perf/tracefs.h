/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads identifiers and formats of tracepoints. If tracefs is not mounted, a detached mount is used, which does not
 * change the system. For users who may not read tracefs, `mmtrace setup` saves the same data to a file.
 */
#pragma once

#include "trace/format/tracepoint.h"

#define TRACEFS_SAVED_DIRECTORY "/run/mmtrace"
#define TRACEFS_SAVED_NAME "tracepoints"

/* The source of tracepoints: a directory with the layout of tracefs, or the saved file. */
struct tracepoint_source {
	int directory; /* -1: use `saved` */
	struct tracepoints saved;
};

/* Call tracefs_close() after success. */
struct mmt_error *tracefs_open(struct tracepoint_source *source_ret) MMT_MUST_CHECK;

void tracefs_close(struct tracepoint_source *source);

/* Append a tracepoint to `tracepoints`. *found_ret is false if the kernel has no tracepoint of this name. */
struct mmt_error *tracefs_add_tracepoint(const struct tracepoint_source *source, const char *system, const char *name,
					 struct tracepoints *tracepoints, bool *found_ret) MMT_MUST_CHECK;

/* Append the files header_page and header_event. */
struct mmt_error *tracefs_add_headers(const struct tracepoint_source *source,
				      struct tracepoints *tracepoints) MMT_MUST_CHECK;

/*
 * Saves everything that users who may not read tracefs need for recording, until the next boot. `directory` is normally
 * TRACEFS_SAVED_DIRECTORY; it is created if it does not exist.
 */
struct mmt_error *tracefs_save(const char *directory) MMT_MUST_CHECK;
