/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes reports, diffs and events to a stream. The caller owns the stream, flushes it, and checks it for write errors
 * with ferror(). Several threads may write the same report or diff to different streams. */
#pragma once

#include <stdio.h>

#include <mmtrace/diff.h>
#include <mmtrace/progress.h>
#include <mmtrace/report.h>

/* The "version" field of JSON documents. It increases when a field is removed or changes its meaning. */
#define MMT_JSON_VERSION 5

/* What reports are sorted by: MMT_SORT_MEMORY and the others of mmtrace/figures.h, or MMT_SORT_UNFREED, by
 * unfreed_bytes, or the bytes that a row uses in memory that others reserved. */
#define MMT_SORT_ID(name, unit, known, sum, csv, text, sorted, id, ...) MMT_IF_##sorted(MMT_SORT_##id, )
enum mmt_sort { MMT_SORT_UNFREED, MMT_ROW_FIGURES(MMT_SORT_ID) };

struct mmt_text_options {
	size_t limit;	    /* number of rows or entries; 0: all */
	uint64_t min_bytes; /* omit rows with fewer unfreed bytes (diff: entries with a smaller change) */
	bool fold;	    /* omit stacks with less than 1 % of the memory and those of the loader, unless they leak */
	enum mmt_sort sort; /* of reports only */
	size_t stack_frames; /* in text: frames per stack, after sequences of runtime frames were folded; 0: all
				frames, not folded */
	unsigned width;	     /* in columns; 0: unlimited */
	unsigned lines;	     /* of the first screen; 0: those of a terminal of 24 lines */
	bool colour;
	bool ascii;	  /* ASCII characters only; trends are digits */
	bool one_line;	  /* a report in JSON is one line */
	bool in_progress; /* the recorder still runs: do not warn that the recording is incomplete */
};

MMT_PUBLIC struct mmt_error *mmt_report_write_text(const struct mmt_report *report,
						   const struct mmt_text_options *options, FILE *stream) MMT_MUST_CHECK;
MMT_PUBLIC struct mmt_error *mmt_report_write_json(const struct mmt_report *report,
						   const struct mmt_text_options *options, FILE *stream) MMT_MUST_CHECK;
MMT_PUBLIC struct mmt_error *mmt_diff_write_text(const struct mmt_diff *diff, const struct mmt_text_options *options,
						 FILE *stream) MMT_MUST_CHECK;
MMT_PUBLIC struct mmt_error *mmt_diff_write_json(const struct mmt_diff *diff, const struct mmt_text_options *options,
						 FILE *stream) MMT_MUST_CHECK;

/* For spreadsheets: RFC 4180 with a header line, bytes and seconds as plain numbers, unknown figures empty. A record
 * for each of the report's `steps` if `every_ns` was set, otherwise for each row; see mmtrace-report(1). */
MMT_PUBLIC struct mmt_error *mmt_report_write_csv(const struct mmt_report *report,
						  const struct mmt_text_options *options, FILE *stream) MMT_MUST_CHECK;

#define MMT_HTML_LIMIT_DEFAULT 10000 /* stacks; a browser still draws that many at once */
#define MMT_HTML_LIFETIME_STEPS 400  /* enough for selecting ranges */

/* Write a self-contained HTML page with the stacks that `limit` and `min_bytes` select. The report, or both reports of
 * a diff, must be grouped by stack and have lifetimes (MMT_HTML_LIFETIME_STEPS): else MMT_ERROR_INVALID. */
MMT_PUBLIC struct mmt_error *mmt_report_write_html(const struct mmt_report *report,
						   const struct mmt_text_options *options, FILE *stream) MMT_MUST_CHECK;
MMT_PUBLIC struct mmt_error *mmt_diff_write_html(const struct mmt_diff *diff, const struct mmt_text_options *options,
						 FILE *stream) MMT_MUST_CHECK;

/* Write one line per event, in time order: mmtrace-dump(1) has the format, which is stable. `progress` may be NULL. */
MMT_PUBLIC struct mmt_error *mmt_dump(const char *input, const struct mmt_progress *progress,
				      FILE *stream) MMT_MUST_CHECK;

/* Write untrusted text safely for terminals: control and bidirectional characters and invalid UTF-8 become \xNN. */
MMT_PUBLIC void mmt_write_escaped(const char *text, FILE *stream);

/* The following functions store a string such as "1.50 GiB", "4.00 KiB" or "12 B" in `text` and return it. */
#define MMT_SIZE_TEXT 32
MMT_PUBLIC const char *mmt_format_bytes(uint64_t bytes, char text[MMT_SIZE_TEXT]);

/* "+1.50 GiB", "-12 B", "0 B". */
MMT_PUBLIC const char *mmt_format_change(int64_t bytes, char text[MMT_SIZE_TEXT]);

/* "1,338". */
MMT_PUBLIC const char *mmt_format_count(uint64_t count, char text[MMT_SIZE_TEXT]);

/* "62.1 s", "5 min 3 s", "350 ms". */
MMT_PUBLIC const char *mmt_format_duration(uint64_t duration_ns, char text[MMT_SIZE_TEXT]);

/* "was killed by SIGSEGV (Segmentation fault)", "exited with status 3". */
#define MMT_STATUS_TEXT 96
MMT_PUBLIC const char *mmt_format_status(int status, char text[MMT_STATUS_TEXT]);

/* Writes to the file `path` what `write` writes to the stream. The file gets its name when it is complete: until then
 * an existing file stays as it is, and nothing is left behind if the process is killed. Symbolic links of the user and
 * of root are followed; a pipe or a device is written directly. MMT_ERROR_INVALID: the file is a recording, which would
 * be lost, or a symbolic link or named pipe of another user. Returns the errors of `write`, too. */
MMT_PUBLIC struct mmt_error *mmt_write_file(const char *path,
					    struct mmt_error *(*write)(const void *context, FILE *stream),
					    const void *context) MMT_MUST_CHECK;
