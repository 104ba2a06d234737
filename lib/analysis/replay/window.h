/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The part of a recording that a report is about. */
#ifndef ANALYSIS_REPLAY_WINDOW_H
#define ANALYSIS_REPLAY_WINDOW_H

#include <mmtrace/report.h>

#include "base/errors.h"

/* Mappings of [from_ns, allocations_to_ns) count; the reported state is that of to_ns. */
struct window {
	uint64_t from_ns, allocations_to_ns, to_ns;
	bool windowed;	 /* the window excludes a part of the recording */
	bool ends_early; /* to_ns lies before the end of the recording */
};

/* `start_realtime_ns` 0: unknown. Error messages list the accepted timestamps. */
struct mmt_error *window_resolve(const struct mmt_report_options *options, uint64_t start_ns, uint64_t end_ns,
				 uint64_t start_realtime_ns, struct window *window_ret) MMT_MUST_CHECK;

#endif
