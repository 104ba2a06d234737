// SPDX-License-Identifier: LGPL-2.1-or-later
#include <mmtrace/output.h>

#include "base/errors.h"
#include "output/html/page-data.h"
#include "output/html/page.h"

static struct mmt_error *write_page(const struct page_source *source, FILE *stream)
{
	struct mmt_error *error;

	fwrite(page_head, 1, page_head_size, stream);
	error = page_data_write(source, stream);
	if (!error)
		fwrite(page_tail, 1, page_tail_size, stream);
	return error;
}

struct mmt_error *mmt_report_write_html(const struct mmt_report *report, const struct mmt_text_options *options,
					FILE *stream)
{
	const struct page_source source = {.after = report, .options = options};

	if (report->then_by != MMT_BY_STACK || (report->by != MMT_BY_STACK && report->by != MMT_BY_THREAD))
		return error_create(MMT_ERROR_INVALID, "an HTML page shows stacks: the report must not be grouped");
	return write_page(&source, stream);
}

struct mmt_error *mmt_diff_write_html(const struct mmt_diff *diff, const struct mmt_text_options *options, FILE *stream)
{
	const struct page_source source = {
	    .before = diff->before, .after = diff->after, .diff = diff, .options = options};

	return write_page(&source, stream);
}
