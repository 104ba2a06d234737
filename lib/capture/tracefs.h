/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Identifiers and formats of tracepoints. Where tracefs is not mounted a detached mount is used; the system is not
 * changed. */
#ifndef CAPTURE_TRACEFS_H
#define CAPTURE_TRACEFS_H

#include <stdbool.h>

#include "base/error.h"
#include "trace/tracepoint.h"

/* A directory descriptor of tracefs' root, which the caller closes. */
struct mmt_error *tracefs_open(int *directory_ret) MMT_MUST_CHECK;

/* Append a tracepoint to `tracepoints`. `found_ret` is false when the kernel has none of this name. */
struct mmt_error *tracefs_add_tracepoint(int directory, const char *system, const char *name,
					 struct tracepoints *tracepoints, bool *found_ret) MMT_MUST_CHECK;

/* header_page and header_event. */
struct mmt_error *tracefs_add_headers(int directory, struct tracepoints *tracepoints) MMT_MUST_CHECK;

#endif
