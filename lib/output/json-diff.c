// SPDX-License-Identifier: LGPL-2.1-or-later
#include <mmtrace/output.h>

#include "output/document.h"
#include "output/json-report.h"
#include "output/selection.h"

/* Whole bytes; null when it is no rate. */
static void put_rate(struct document *document, const char *key, double bytes_per_second)
{
	bool usable = bytes_per_second >= 0 && bytes_per_second < 0x1p63;

	document_unsigned(document, key, usable ? (uint64_t)(bytes_per_second + 0.5) : MMT_UNKNOWN);
}

static void put_group(struct document *document, const char *key, const struct mmt_group *group)
{
	if (group)
		json_report_group(document, key, group);
	else
		document_null(document, key);
}

static void put_entry(struct document *document, const struct mmt_diff_entry *entry)
{
	document_open_object(document, NULL);
	document_string(document, "change", mmt_change_name(entry->change));
	document_signed(document, "bytes", entry->bytes);
	document_signed(document, "committed_bytes", entry->committed_bytes);
	document_signed(document, "count", entry->count);
	put_rate(document, "before_bytes_per_second", entry->before_bytes_per_second);
	put_rate(document, "after_bytes_per_second", entry->after_bytes_per_second);
	put_group(document, "before", entry->before);
	put_group(document, "after", entry->after);
	document_close(document);
}

static void put_diff(struct document *document, const struct mmt_diff *diff, const struct diff_selection *selection)
{
	document_string(document, "mmtrace", "diff");
	document_unsigned(document, "version", MMT_JSON_VERSION);
	document_open_object(document, "before");
	json_report_recording(document, diff->before);
	document_close(document);
	document_open_object(document, "after");
	json_report_recording(document, diff->after);
	document_close(document);
	document_signed(document, "bytes", diff->bytes);
	document_signed(document, "committed_bytes", diff->committed_bytes);
	document_unsigned(document, "entry_count", diff->entry_count);
	document_unsigned(document, "same_count", diff->same_count);
	document_unsigned(document, "hidden_count", selection->hidden_count);
	document_open_array(document, "entries");
	for (size_t i = 0; i < selection->count; i++)
		put_entry(document, selection->entries[i]);
	document_close(document);
}

struct mmt_error *mmt_diff_write_json(const struct mmt_diff *diff, const struct mmt_text_options *options, FILE *stream)
{
	struct diff_selection selection = {0};
	struct document *document = NULL;
	struct mmt_error *error = selection_of_diff(diff, options, &selection);

	if (!error)
		error = document_create(stream, &document);
	if (!error) {
		put_diff(document, diff, &selection);
		error = document_finish(document);
	}
	selection_of_diff_deinit(&selection);
	document_destroy(document);
	return error;
}
