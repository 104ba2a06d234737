// SPDX-License-Identifier: LGPL-2.1-or-later
/* speedscope's file format: one sampled profile for each weight; a sample is a stack, root first, below its process.
 * Frames are numbered when they are first used, and listed after the samples. */
#include "base/map.h"
#include "base/saturating-sum.h"
#include "output/export/export-report.h"
#include "output/json/json-document.h"

/* Frames that the viewer treats as one. */
struct speedscope_frame {
	uint32_t name, file; /* of the strings, file plus 1; 0: none */
	uint32_t line;
};

struct speedscope_names {
	struct intern strings, frames; /* of the latter: struct speedscope_frame */
	bool failed;
};

static uint32_t number_frame(struct speedscope_names *names, const char *name, const struct mmt_frame *frame)
{
	const char *file = frame ? frame->source_file : NULL;
	struct speedscope_frame key = {.name = intern_put_string(&names->strings, name),
				       .line = frame ? frame->source_line : 0};
	uint32_t number;

	if (file)
		key.file = intern_put_string(&names->strings, file) + 1;
	number = intern_put(&names->frames, &key, sizeof(key));
	names->failed |= key.name == INTERN_NONE || (file && !key.file) || number == INTERN_NONE;
	return number;
}

/* Put it into the open object. */
static void put_profile(const struct export *export, enum mmt_weight weight, struct speedscope_names *names,
			struct document *document)
{
	size_t position = 0, first;
	struct export_stack stack;
	struct mmt_part sum;
	uint64_t total = 0;

	document_string(document, "type", "sampled");
	document_string(document, "name", mmt_weight_name(weight));
	document_string(document, "unit", weight == MMT_WEIGHT_COUNT ? "none" : "bytes");
	document_unsigned(document, "startValue", 0);
	document_open_array(document, "samples");
	while (export_next(export->report, &position, &first, &sum)) {
		if (!export_weight(&sum, weight))
			continue;
		export_process_name(&export->report->processes[sum.process], stack.text);
		document_open_array(document, NULL);
		document_unsigned(document, NULL, number_frame(names, stack.text, NULL));
		export_stack_begin(&stack, &export->report->rows[sum.row]);
		while (export_stack_next(&stack))
			document_unsigned(document, NULL, number_frame(names, stack.name, stack.frame));
		document_close(document);
	}
	document_close(document);
	document_open_array(document, "weights");
	for (position = 0; export_next(export->report, &position, &first, &sum);) {
		uint64_t value = export_weight(&sum, weight);

		value = value < INT64_MAX ? value : INT64_MAX;
		if (value)
			document_unsigned(document, NULL, value);
		total = saturating_add(total, value, INT64_MAX);
	}
	document_close(document);
	document_unsigned(document, "endValue", total);
}

struct mmt_error *export_speedscope(const struct export *export, FILE *stream)
{
	struct speedscope_names names = {0};
	struct document *document;
	struct mmt_error *error = document_create(stream, DOCUMENT_COMPACT, &document);

	if (error)
		return error;
	document_string(document, "$schema", "https://www.speedscope.app/file-format-schema.json");
	document_string(document, "exporter", "mmtrace");
	document_string(document, "name", export->report->input);
	document_unsigned(document, "activeProfileIndex", MMT_WEIGHT_MEMORY);
	document_each_object(document, "profiles", weight, MMT_WEIGHT_KINDS)
		put_profile(export, (enum mmt_weight)weight, &names, document);
	document_open_object(document, "shared");
	document_each_object(document, "frames", i, names.failed ? 0 : names.frames.count) {
		const struct speedscope_frame *key = intern_get(&names.frames, i, NULL);

		document_string(document, "name", intern_get(&names.strings, key->name, NULL));
		if (key->file)
			document_string(document, "file", intern_get(&names.strings, key->file - 1, NULL));
		if (key->line)
			document_unsigned(document, "line", key->line);
	}
	error = names.failed ? &error_no_memory : document_finish(document);
	document_destroy(document);
	intern_deinit(&names.strings);
	intern_deinit(&names.frames);
	return error;
}
