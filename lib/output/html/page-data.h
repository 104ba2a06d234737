/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The data of an HTML page: one JSON object, which page/model.js reads. Its form is private to these two; other
 * programs read report --json.
 *
 *     unit         bytes; sizes of lifetimes are multiples of it
 *     relation     of a diff: mmt_diff_relation_name(); of one process, the values before count as 0
 *     relationLines   lines of the text diff that say so
 *     recordings   one, or before and after. Times are nanoseconds since the start of the window.
 *       growth     lines of the text report: headline, verdict, what the growth consists of
 *       trust      [tone, line]; tone: good, wait, bad
 *       rss, committed   [time, bytes, time, bytes ...]
 *       parts      stack, process, thread or -1, class, file as place in strings or -1, committed less unfreed bytes,
 *                  resident bytes or -1, both also of memory mapped before the window; then its lifetimes, four
 *                  numbers each: steps since the previous allocation, steps until the release or -1, bytes in
 *                  units, count
 *     stacks       verdictWord as the text report has it; title: the place in the stack of the frame that stands for
 *                  it, if not 0; truncated: why callers are missing, as place in strings; frames from the innermost to the outermost, as places in frames, each less the one before
 *     frames       three numbers each: name as place in strings, less the one before; place in origins; line
 *     origins      three numbers each: module and source as places in strings, flags
 *     strings      names, control characters as \xNN
 */
#ifndef OUTPUT_HTML_PAGE_DATA_H
#define OUTPUT_HTML_PAGE_DATA_H

#include <mmtrace/output.h>

/* `before` NULL: a page of one report. `diff` belongs to both, or is NULL. `limit` and `min_bytes` of the options
 * apply. */
struct page_source {
	const struct mmt_report *before, *after;
	const struct mmt_diff *diff;
	const struct mmt_text_options *options;
};

struct mmt_error *page_data_write(const struct page_source *source, FILE *stream) MMT_MUST_CHECK;

#endif
