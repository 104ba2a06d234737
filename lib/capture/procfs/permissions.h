/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why the system refuses to record, and what permits it: one table for record and check. */
#pragma once

#include <stdint.h>

#include "base/errors.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

/* What was refused. */
enum permission {
	PERMISSION_EVENTS, /* of a thread */
	PERMISSION_CPU_EVENTS,
	PERMISSION_TRACEPOINTS, /* to read them */
	PERMISSION_PROCESS,	/* to read its maps */
};

const struct mmt_refusal *permission_explain(enum permission permission);

/* The effective capabilities of the caller, as bits 1 << CAP_... */
uint64_t permission_capabilities(void);

/* Is this the initial user namespace? In any other one, capabilities apply only to what belongs to that namespace: they
 * permit neither perf events nor access to processes of other users. */
bool permission_is_global(void);

/* Did perf_event_open() fail because it is not permitted? Filters of containers also return ENOSYS. */
bool permission_was_refused(int errno_value);
