/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chooses and sorts the rows of a report, or the entries of a diff, that are shown. */
#pragma once

#include <mmtrace/output.h>

#include "output/export/export-report.h"

/* Words of several formats, by enum mmt_heap_result and enum mmt_heap_content. */
extern const char *const selection_heap_results[], *const selection_heap_contents[];

/* Rows omitted by the limit or by min_bytes. */
struct hidden_rows {
	size_t count;
	uint64_t bytes, memory_bytes;
};

struct selection {
	const struct mmt_row **rows; /* the caller frees the array */
	size_t count;
	struct hidden_rows hidden; /* number of omitted rows with unfreed bytes, and these bytes */
	/* All omitted rows, with the bytes that they mapped; those that freed memory, with these bytes. */
	struct hidden_rows hidden_by_allocated, hidden_by_freed;
};

/* Whether the user chose some of the memory by --focus or --ignore. */
static inline bool selection_has_patterns(const struct mmt_report *report)
{
	return report->options.focus_count || report->options.ignore_count;
}

/* Whether most of the memory was given back after its peak. That of memory that falls again and again, as a server's may
 * with each request, says little. */
bool selection_fell(const struct mmt_report *report);

#define CAUSES_SHOWN 6 /* at most, in the table of causes of text and page */

/* A table shows the first `shown` causes with memory. */
struct cause_selection {
	size_t shown, count;
	uint64_t rest_bytes;	       /* of those that it does not show */
	int64_t rest_bytes_per_minute; /* the same; unknown rates are 0 */
};

/* Choose at most `most`: the first one, and others until one is minor. */
struct cause_selection selection_of_causes(const struct mmt_report *report, size_t most);

/* `freed_too`: also rows without unfreed bytes and, by memory, rows that only reserved what another one shows. */
struct mmt_error *selection_create(const struct mmt_report *report, const struct mmt_text_options *options,
				   bool freed_too, struct selection *selection_ret) MMT_MUST_CHECK;
/* The name of a row or, of a stack, its innermost function of the program. */
const char *selection_row_name(const struct mmt_row *row, char room[EXPORT_NAME_BYTES]);

static inline const char *selection_process_name(const struct mmt_process *process)
{
	return process->name && *process->name ? process->name : "process";
}

struct diff_selection {
	const struct mmt_diff_entry **entries; /* the caller frees the array */
	size_t count, hidden_count;
};

struct mmt_error *selection_of_diff(const struct mmt_diff *diff, const struct mmt_text_options *options,
				    struct diff_selection *selection_ret) MMT_MUST_CHECK;
