/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CMD_RECORD_SUMMARY_H
#define CMD_RECORD_SUMMARY_H

#include <mmtrace/record.h>
#include <stdbool.h>

/* -o -: the recording goes to standard output. */
bool record_summary_is_stream(const struct mmt_record_options *options);

/* The one summary of a recording, which is `file` by now, on standard error. */
void record_summary_print(const struct mmt_record_options *options, const struct mmt_record_summary *summary,
			  const char *file);

#endif
