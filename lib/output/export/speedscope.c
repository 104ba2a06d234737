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
};

/* INTERN_NONE: out of memory. */
static uint32_t number_frame(struct speedscope_names *names, const char *name, const struct mmt_frame *frame)
{
	const char *file = frame ? frame->source_file : NULL;
	struct speedscope_frame key = {.name = intern_put_string(&names->strings, name),
				       .line = frame ? frame->source_line : 0};

	if (file)
		key.file = intern_put_string(&names->strings, file) + 1;
	if (key.name == INTERN_NONE || (file && !key.file))
		return INTERN_NONE;
	return intern_put(&names->frames, &key, sizeof(key));
}

static bool put_number(struct document *document, uint32_t number)
{
	document_unsigned(document, NULL, number);
	return number != INTERN_NONE;
}

static bool put_stack(const struct export *export, const struct mmt_part *sum, struct speedscope_names *names,
		      struct document *document)
{
	struct export_stack stack;
	bool good;

	export_process_name(&export->report->processes[sum->process], stack.text);
	document_open_array(document, NULL);
	good = put_number(document, number_frame(names, stack.text, NULL));
	export_stack_begin(&stack, &export->report->rows[sum->row]);
	while (export_stack_next(&stack))
		good &= put_number(document, number_frame(names, stack.name, stack.frame));
	document_close(document);
	return good;
}

static bool put_samples(const struct export *export, enum mmt_weight weight, struct speedscope_names *names,
			struct document *document)
{
	size_t position = 0, first;
	struct mmt_part sum;
	bool good = true;

	document_open_array(document, "samples");
	while (export_next(export->report, &position, &first, &sum)) {
		if (export_weight(&sum, weight))
			good &= put_stack(export, &sum, names, document);
	}
	document_close(document);
	return good;
}

/* Their sum. */
static uint64_t put_weights(const struct export *export, enum mmt_weight weight, struct document *document)
{
	size_t position = 0, first;
	struct mmt_part sum;
	uint64_t total = 0;

	document_open_array(document, "weights");
	while (export_next(export->report, &position, &first, &sum)) {
		uint64_t value = export_weight(&sum, weight);

		value = value < INT64_MAX ? value : INT64_MAX;
		if (value)
			document_unsigned(document, NULL, value);
		total = saturating_add(total, value, INT64_MAX);
	}
	document_close(document);
	return total;
}

static bool put_profile(const struct export *export, enum mmt_weight weight, struct speedscope_names *names,
			struct document *document)
{
	bool good;

	document_open_object(document, NULL);
	document_string(document, "type", "sampled");
	document_string(document, "name", mmt_weight_name(weight));
	document_string(document, "unit", weight == MMT_WEIGHT_COUNT ? "none" : "bytes");
	document_unsigned(document, "startValue", 0);
	good = put_samples(export, weight, names, document);
	document_unsigned(document, "endValue", put_weights(export, weight, document));
	document_close(document);
	return good;
}

static const char *get_string(const struct speedscope_names *names, uint32_t id)
{
	return intern_get(&names->strings, id, NULL);
}

static void put_frames(const struct speedscope_names *names, struct document *document)
{
	document_open_object(document, "shared");
	document_each(document, "frames", i, names->frames.count) {
		const struct speedscope_frame *key = intern_get(&names->frames, i, NULL);

		document_open_object(document, NULL);
		document_string(document, "name", get_string(names, key->name));
		if (key->file)
			document_string(document, "file", get_string(names, key->file - 1));
		if (key->line)
			document_unsigned(document, "line", key->line);
		document_close(document);
	}
	document_close(document);
}

static struct mmt_error *put_document(const struct export *export, struct speedscope_names *names,
				      struct document *document)
{
	bool good = true;

	document_string(document, "$schema", "https://www.speedscope.app/file-format-schema.json");
	document_string(document, "exporter", "mmtrace");
	document_string(document, "name", export->report->input);
	document_unsigned(document, "activeProfileIndex", MMT_WEIGHT_MEMORY);
	document_open_array(document, "profiles");
	for (enum mmt_weight weight = 0; weight < MMT_WEIGHT_KINDS; weight++)
		good &= put_profile(export, weight, names, document);
	document_close(document);
	put_frames(names, document);
	return good ? document_finish(document) : &error_no_memory;
}

struct mmt_error *export_speedscope(const struct export *export, FILE *stream)
{
	struct speedscope_names names = {0};
	struct document *document;
	struct mmt_error *error = document_create(stream, DOCUMENT_COMPACT, &document);

	if (error)
		return error;
	error = put_document(export, &names, document);
	document_destroy(document);
	intern_deinit(&names.strings);
	intern_deinit(&names.frames);
	return error;
}
