/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Renderings of a report, a diff and the events of a recording, written to a stream that the caller owns. The stream is
 * not flushed. Several threads may render the same report or diff, each to a stream of its own, except for annotations.
 */
#ifndef MMTRACE_OUTPUT_H
#define MMTRACE_OUTPUT_H

#include <stdio.h>

#include <mmtrace/diff.h>
#include <mmtrace/progress.h>
#include <mmtrace/report.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the JSON documents, in their "version" field; raised when a field changes its meaning or goes away. */
#define MMT_JSON_VERSION 3

enum mmt_sort {
	MMT_SORT_UNFREED,
	MMT_SORT_COUNT,
	MMT_SORT_RESIDENT,
	MMT_SORT_COMMITTED,
	MMT_SORT_ALLOCATED,
	MMT_SORT_FREED,
	MMT_SORT_AGE, /* oldest first */
	MMT_SORT_PEAK,
	MMT_SORT_MEMORY, /* resident bytes, or committed ones where those are not known */
	MMT_SORT_MAPPINGS, /* as the kernel counts them */
};

struct mmt_text_options {
	size_t limit;	     /* groups or entries shown; 0: all */
	uint64_t min_bytes;  /* groups with fewer unfreed bytes (diff: a smaller change) are left out */
	enum mmt_sort sort;  /* report only */
	size_t stack_frames; /* text only: frames shown per stack, after runs of runtime frames are folded; 0: all,
				unfolded */
	unsigned width;	     /* columns of the terminal; 0: unlimited */
	bool colour;
	bool ascii; /* no characters beyond ASCII (trend as a row of digits) */
};

/* A write error is found by the caller with ferror(). */
MMT_PUBLIC struct mmt_error *mmt_report_write_text(const struct mmt_report *report,
						   const struct mmt_text_options *options, FILE *stream) MMT_MUST_CHECK;
MMT_PUBLIC struct mmt_error *mmt_report_write_json(const struct mmt_report *report,
						   const struct mmt_text_options *options, FILE *stream) MMT_MUST_CHECK;
/*
 * The instructions around each frame whose function (as shown, or raw) matches the shell pattern, of the groups that
 * the options select. MMT_ERROR_INVALID: there is none.
 */
MMT_PUBLIC struct mmt_error *mmt_report_write_annotation(struct mmt_report *report, const char *pattern,
							 const struct mmt_text_options *options,
							 FILE *stream) MMT_MUST_CHECK;
MMT_PUBLIC struct mmt_error *mmt_diff_write_text(const struct mmt_diff *diff, const struct mmt_text_options *options,
						 FILE *stream) MMT_MUST_CHECK;
MMT_PUBLIC struct mmt_error *mmt_diff_write_json(const struct mmt_diff *diff, const struct mmt_text_options *options,
						 FILE *stream) MMT_MUST_CHECK;

/*
 * One HTML page that contains everything it shows and loads nothing, with the stacks that `limit` and `min_bytes` select.
 * Ranges of time can be selected in it if the report was made with `lifetime_steps`; some hundreds are enough.
 * MMT_ERROR_INVALID: the groups of the report are no stacks.
 */
MMT_PUBLIC struct mmt_error *mmt_report_write_html(const struct mmt_report *report,
						   const struct mmt_text_options *options, FILE *stream) MMT_MUST_CHECK;
MMT_PUBLIC struct mmt_error *mmt_diff_write_html(const struct mmt_diff *diff, const struct mmt_text_options *options,
						 FILE *stream) MMT_MUST_CHECK;

/*
 * One line per event in time order, every field; the format is stable, see mmtrace-dump(1). `progress` may be NULL:
 * nobody waits.
 */
MMT_PUBLIC struct mmt_error *mmt_dump(const char *input, const struct mmt_progress *progress,
				      FILE *stream) MMT_MUST_CHECK;

/*
 * Text that others chose, made safe for a terminal or a log: control characters, invisible changes of direction and
 * bytes that are no UTF-8 as \xNN.
 */
MMT_PUBLIC void mmt_write_escaped(const char *text, FILE *stream);

/* "1.50 GiB", "4.00 KiB", "12 B" into `text`, which is returned. */
#define MMT_SIZE_TEXT 32
MMT_PUBLIC const char *mmt_format_bytes(uint64_t bytes, char text[MMT_SIZE_TEXT]);

/* "+1.50 GiB", "-12 B", "0 B". */
MMT_PUBLIC const char *mmt_format_change(int64_t bytes, char text[MMT_SIZE_TEXT]);

/* "1,338". */
MMT_PUBLIC const char *mmt_format_count(uint64_t count, char text[MMT_SIZE_TEXT]);

/* "62.1 s", "5 min 3 s", "350 ms". */
MMT_PUBLIC const char *mmt_format_duration(uint64_t duration_ns, char text[MMT_SIZE_TEXT]);

#ifdef __cplusplus
}
#endif

#endif
