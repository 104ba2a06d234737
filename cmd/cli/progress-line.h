/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One line on the terminal while a recording is read that takes more than a second, with an estimate; it is wiped out
 * before anything else is written. */
#ifndef CLI_PROGRESS_LINE_H
#define CLI_PROGRESS_LINE_H

#include <mmtrace/progress.h>
#include <stdbool.h>

struct progress {
	struct mmt_progress watch;
	const char *name; /* of what is read */
	uint64_t start_ns, told_ns;
	bool shown;
};

/* For the options of a report: NULL where nobody looks, standard error is no terminal or belongs to another job. */
const struct mmt_progress *progress_begin(struct progress *progress, const char *name);
void progress_end(struct progress *progress);

/* For signal handlers and when out of memory: removes the progress line. */
void progress_wipe(void);

#endif
