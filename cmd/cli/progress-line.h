/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A progress line on the terminal, with an estimate, while reading a recording takes more than a second. It is removed
 * before anything else is written. */
#ifndef CLI_PROGRESS_LINE_H
#define CLI_PROGRESS_LINE_H

#include <mmtrace/progress.h>
#include <stdbool.h>

struct progress {
	struct mmt_progress watch;
	const char *name; /* of the recording */
	uint64_t start_ns, told_ns;
	bool shown;
};

/* For the options of a report. NULL: standard error is no terminal, or another job owns it. */
const struct mmt_progress *progress_begin(struct progress *progress, const char *name);
void progress_end(struct progress *progress);

/* For signal handlers and when out of memory: removes the progress line. */
void progress_wipe(void);

#endif
