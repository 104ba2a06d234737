/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdio.h>

#include <mmtrace/report.h>

/* What `record` knows when recording has ended. */
struct record_end {
	const struct mmt_record_options *options;
	const struct mmt_record_summary *summary;
	struct mmt_growth growth; /* of the readings, as in the status line, or of the report */
	const char *growth_of;	  /* "RSS", "sum of RSS" or "Pss" */
	const char *headline;	  /* of the report; NULL: the figures are those of the readings */
	bool growth_known;
	uint64_t oom_kills;				 /* in the control group of the targets, by the report */
	uint64_t group_used, group_limit, group_full_ns; /* of a control group; limit 0: it is not near */
	int stop_signal;				 /* that ended the recording; 0: none */
};

/* Prints how recording ended. */
void record_end_put_reason(const struct record_end *end);

/* `file` is NULL if its name is not known. Prints what memory did, what the file contains, what is wrong with it, and
 * the next command. `packed`: the figures are those of the report. */
void record_end_put_answer(struct record_end *end, const char *file, bool packed);

/* Prints a word quoted for the shell; with $'...' if it has control characters or invalid UTF-8. */
void put_shell_word(const char *word, FILE *stream);
