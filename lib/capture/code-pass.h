/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One pass over the programs that generate code: what they have of it now is read, and kept in recorder->generated. */
#ifndef CAPTURE_CODE_PASS_H
#define CAPTURE_CODE_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct recorder;

struct code_pass {
	struct recorder *recorder;
	uint64_t now_ns;
	uint64_t due_ns;   /* pages that are to be read by then are */
	uint64_t spent_ns; /* this thread's time, without that of draining */
	uint64_t spent_ns_max;
	bool at_end;
	bool trust_ranges; /* where the kernel does not tell whether they are executable still */
	/* Its own. */
	uint64_t work_ns; /* when the work began that is not in `spent_ns` yet */
	uint8_t *piece;
};

/* All programs that have their turn, until `spent_ns_max` is spent; the next pass goes on there. Drains the rings when
 * they fill meanwhile. Errors: those of draining, and no memory. */
struct mmt_error *code_pass_read(struct code_pass *pass) MMT_MUST_CHECK;

#endif
