/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Identifiers and formats of tracepoints. If tracefs is not mounted, a detached mount is used; the system is not
 * changed. Users who may not read tracefs get them from the file that `mmtrace setup` writes.
 */
#ifndef CAPTURE_PERF_TRACEFS_H
#define CAPTURE_PERF_TRACEFS_H

#include <stdbool.h>

#include "base/errors.h"
#include "trace/format/tracepoint.h"

#define TRACEFS_SAVED_DIRECTORY "/run/mmtrace"
#define TRACEFS_SAVED_NAME "tracepoints"

/* Where they come from: a directory with the layout of tracefs, or the saved file. */
struct tracepoint_source {
	int directory; /* -1: `saved` */
	struct tracepoints saved;
};

/* Call tracefs_close() after success. */
struct mmt_error *tracefs_open(struct tracepoint_source *source_ret) MMT_MUST_CHECK;

void tracefs_close(struct tracepoint_source *source);

/* Append a tracepoint to `tracepoints`. *found_ret is false if the kernel has no tracepoint of this name. */
struct mmt_error *tracefs_add_tracepoint(const struct tracepoint_source *source, const char *system, const char *name,
					 struct tracepoints *tracepoints, bool *found_ret) MMT_MUST_CHECK;

/* header_page and header_event. */
struct mmt_error *tracefs_add_headers(const struct tracepoint_source *source,
				      struct tracepoints *tracepoints) MMT_MUST_CHECK;

/*
 * Save all that recording needs for users who may not read tracefs, until the next boot: in `directory`, normally
 * TRACEFS_SAVED_DIRECTORY, which is created if it does not exist.
 */
struct mmt_error *tracefs_save(const char *directory) MMT_MUST_CHECK;

/* Read the saved file if it is from this boot and only root can have written it. */
struct mmt_error *tracefs_load(const char *directory, struct tracepoints *tracepoints_ret) MMT_MUST_CHECK;

#endif
