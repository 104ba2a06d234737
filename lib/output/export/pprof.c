// SPDX-License-Identifier: LGPL-2.1-or-later
/* The profile.proto of pprof, compressed. Items are numbered and written when they are first used; the strings come
 * last. Values: allocations and bytes since the start of the window, committed and resident bytes, and unfreed mappings
 * and bytes. The default value is the last one, because some viewers show that. Field 15 (doc_url) makes Perfetto
 * reject a file. */
#include <inttypes.h>

#include "base/limits.h"
#include "output/export/export-report.h"

/* clang-format off */
enum pprof_field {
	PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_MAPPING = 3, PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5, PROFILE_STRING_TABLE = 6, PROFILE_DROP_FRAMES = 7, PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10, PROFILE_PERIOD_TYPE = 11, PROFILE_PERIOD = 12, PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14
};

enum value_type_field { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum pprof_sample_field { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum label_field { LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3 };

enum pprof_mapping_field {
	MAPPING_ID = 1, MAPPING_MEMORY_LIMIT = 3, MAPPING_FILENAME = 5, MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7, MAPPING_HAS_FILENAMES = 8, MAPPING_HAS_LINE_NUMBERS = 9,
	MAPPING_HAS_INLINE_FRAMES = 10
};
/* clang-format on */

enum location_field { LOCATION_ID = 1, LOCATION_MAPPING_ID = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum line_field { LINE_FUNCTION_ID = 1, LINE_LINE = 2 };
enum function_field { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILENAME = 4 };

#define MEMORY_LIMIT (1ull << 47) /* addresses are those of the file, so all mappings are one as large */

struct pprof {
	const struct export *export;
	FILE *stream;
	struct intern strings;	 /* ids are places in the table */
	struct intern mappings;	 /* string id of the path; ids are one less than in the profile, as in these: */
	struct intern functions; /* struct pprof_function */
	struct intern locations; /* a mapping, an address, then pairs of function and line */
	struct map unnamed;	 /* mappings with a frame that has no name */
	struct buffer message, inner, key, names;
	bool failed;
};

struct pprof_function {
	uint32_t name, system_name, file;
};

static uint64_t string_id(struct pprof *pprof, const char *text)
{
	uint32_t id = intern_put_string(&pprof->strings, text);

	pprof->failed |= id == INTERN_NONE;
	return id;
}

static void write_names(struct pprof *pprof)
{
	fwrite(pprof->names.data, 1, pprof->names.size, pprof->stream);
	buffer_clear(&pprof->names);
}

/* Write a field of the profile that contains a message. */
static void put_field(struct pprof *pprof, enum pprof_field field, struct buffer *message)
{
	protobuf_message(&pprof->names, field, message);
	write_names(pprof);
}

static void put_number(struct pprof *pprof, enum pprof_field field, uint64_t value)
{
	protobuf_number(&pprof->names, field, value);
	write_names(pprof);
}

static uint64_t mapping_id(struct pprof *pprof, const char *path)
{
	uint32_t name = (uint32_t)string_id(pprof, path);
	uint64_t id;

	(void)export_is_new(&pprof->mappings, &name, sizeof(name), &id, &pprof->failed);
	return id;
}

/* Write the mappings by number. Viewers that have the modules symbolize those with unnamed frames by build-id. */
static void put_mappings(struct pprof *pprof)
{
	struct buffer *message = &pprof->inner;

	for (uint32_t i = 0; i < pprof->mappings.count; i++) {
		uint32_t name;
		const char *build_id;

		memcpy(&name, intern_get(&pprof->mappings, i, NULL), sizeof(name));
		build_id = export_build_id(pprof->export, intern_get(&pprof->strings, name, NULL));
		protobuf_number(message, MAPPING_ID, i + 1);
		protobuf_number(message, MAPPING_MEMORY_LIMIT, MEMORY_LIMIT);
		protobuf_number(message, MAPPING_FILENAME, name);
		if (build_id)
			protobuf_number(message, MAPPING_BUILD_ID, string_id(pprof, build_id));
		for (uint32_t has = MAPPING_HAS_FUNCTIONS; has <= MAPPING_HAS_INLINE_FRAMES; has++)
			protobuf_number(message, has, !map_get(&pprof->unnamed, i + 1));
		put_field(pprof, PROFILE_MAPPING, message);
	}
}

static uint64_t put_function(struct pprof *pprof, const struct mmt_frame *frame)
{
	char text[EXPORT_NAME_BYTES];
	struct pprof_function key = {.name = (uint32_t)string_id(pprof, export_frame_name(frame, text))};
	struct buffer *message = &pprof->inner;
	uint64_t id;

	key.system_name = frame->raw_function ? (uint32_t)string_id(pprof, frame->raw_function) : key.name;
	key.file = (uint32_t)string_id(pprof, frame->source_file ? frame->source_file : "");
	if (!export_is_new(&pprof->functions, &key, sizeof(key), &id, &pprof->failed))
		return id;
	protobuf_number(message, FUNCTION_ID, id);
	protobuf_number(message, FUNCTION_NAME, key.name);
	protobuf_number(message, FUNCTION_SYSTEM_NAME, key.system_name);
	if (key.file)
		protobuf_number(message, FUNCTION_FILENAME, key.file);
	put_field(pprof, PROFILE_FUNCTION, message);
	return id;
}

/* Put the location of one instruction: its function, and those that it was inlined into. Returns the number of these
 * frames. */
static size_t put_location(struct pprof *pprof, const struct mmt_frame *const *frames, size_t count, uint64_t *id_ret)
{
	const struct mmt_frame *first = frames[0];
	const char *path = first->module_path ? first->module_path : first->module;
	uint64_t mapping; /* 0: none */
	struct buffer *message = &pprof->message, *line = &pprof->inner;
	const uint64_t *words;
	size_t used = 0;

	buffer_clear(&pprof->key);
	mapping = path ? mapping_id(pprof, path) : 0;
	/* Viewers look up native frames. JIT code they cannot: name it by its address. */
	if (mapping && !first->function && first->kind == MMT_FRAME_NATIVE)
		pprof->failed |= !map_put(&pprof->unnamed, mapping, true);
	buffer_put_u64(&pprof->key, mapping);
	buffer_put_u64(&pprof->key, first->kind == MMT_FRAME_NATIVE ? first->module_offset : first->address);
	do {
		if (!frames[used]->function && first->kind == MMT_FRAME_NATIVE)
			continue;
		buffer_put_u64(&pprof->key, put_function(pprof, frames[used]));
		buffer_put_u64(&pprof->key, frames[used]->source_line);
	} while (frames[used++]->inlined && used < count);
	if (export_is_new(&pprof->locations, pprof->key.data, pprof->key.size, id_ret, &pprof->failed) &&
	    !pprof->failed && !pprof->key.error) {
		words = (const uint64_t *)pprof->key.data;
		protobuf_number(message, LOCATION_ID, *id_ret);
		if (words[0])
			protobuf_number(message, LOCATION_MAPPING_ID, words[0]);
		protobuf_number(message, LOCATION_ADDRESS, words[1]);
		for (size_t i = 2; i < pprof->key.size / sizeof(*words); i += 2) {
			protobuf_number(line, LINE_FUNCTION_ID, words[i]);
			if (words[i + 1])
				protobuf_number(line, LINE_LINE, words[i + 1]);
			protobuf_message(message, LOCATION_LINE, line);
		}
		put_field(pprof, PROFILE_LOCATION, message);
	}
	return used;
}

/* Put the packed numbers of a row's locations, innermost first. Without frames, one says why. */
static void put_locations(struct pprof *pprof, const struct mmt_row *row, struct buffer *locations)
{
	const struct mmt_frame reason = {.kind = MMT_FRAME_UNKNOWN, .function = export_no_frames(row)};
	const struct mmt_frame *const reasons[] = {&reason}, *const *frames = row->frame_count ? row->frames : reasons;
	size_t count = row->frame_count ? row->frame_count : 1, used = 0;

	buffer_clear(locations);
	while (used < count) {
		uint64_t id;

		used += put_location(pprof, frames + used, count - used, &id);
		protobuf_varint(locations, id);
	}
}

/* `text` NULL: the label is a number. */
static void put_label(struct pprof *pprof, const char *key, const char *text, int64_t number)
{
	protobuf_number(&pprof->inner, LABEL_KEY, string_id(pprof, key));
	if (text)
		protobuf_number(&pprof->inner, LABEL_STR, string_id(pprof, text));
	else
		protobuf_number(&pprof->inner, LABEL_NUM, (uint64_t)number);
	protobuf_message(&pprof->message, SAMPLE_LABEL, &pprof->inner);
}

static void put_group_labels(struct pprof *pprof, const struct mmt_process *process)
{
	const char *service = pprof->export->service;
	struct export_group_labels labels;

	export_group_labels(process->control_group ? process->control_group : "", &labels);
	if (service || *labels.service)
		put_label(pprof, "service_name", service ? service : labels.service, 0);
	if (*labels.container)
		put_label(pprof, "container_id", labels.container, 0);
	if (*labels.pod)
		put_label(pprof, "k8s_pod_uid", labels.pod, 0);
}

static void put_value(struct buffer *values, uint64_t value)
{
	protobuf_varint(values, value < INT64_MAX ? value : INT64_MAX);
}

static void put_samples(struct pprof *pprof)
{
	const struct mmt_report *report = pprof->export->report;
	struct buffer locations, *values = &pprof->inner;

	buffer_init(&locations, LIMIT_EXPORT_BYTES);
	for (size_t i = 0; i < report->part_count; i++) {
		const struct mmt_part *part = &report->parts[i];
		const struct mmt_process *process = &report->processes[part->process];

		if (!i || part->row != part[-1].row)
			put_locations(pprof, &report->rows[part->row], &locations);
		pprof->failed |= locations.error != NULL;
		protobuf_bytes(&pprof->message, SAMPLE_LOCATION_ID, locations.data, locations.size);
		put_value(values, part->allocated_count);
		put_value(values, part->allocated_bytes);
		put_value(values, export_weight(part, MMT_WEIGHT_COMMITTED));
		if (report->resident_bytes != MMT_UNKNOWN)
			put_value(values, export_weight(part, MMT_WEIGHT_RESIDENT));
		put_value(values, part->unfreed_count);
		put_value(values, part->unfreed_bytes);
		protobuf_message(&pprof->message, SAMPLE_VALUE, values);
		/* PIDs are numbers, so that viewers which make a series of each text do not make one of each process.
		 */
		put_label(pprof, "comm", process->name ? process->name : "", 0);
		put_label(pprof, "pid", NULL, process->pid);
		put_group_labels(pprof, process);
		if (part->thread.tid) {
			put_label(pprof, "thread", part->thread.name ? part->thread.name : "", 0);
			put_label(pprof, "tid", NULL, part->thread.tid);
		}
		put_label(pprof, "class", mmt_class_name(part->memory_class), 0);
		put_label(pprof, "verdict", mmt_row_verdict_name(report->rows[part->row].verdict), 0);
		if (part->file)
			put_label(pprof, "file", part->file, 0);
		put_field(pprof, PROFILE_SAMPLE, &pprof->message);
	}
	buffer_deinit(&locations);
}

static void put_type(struct pprof *pprof, enum pprof_field field, const char *type, const char *unit)
{
	protobuf_number(&pprof->message, VALUE_TYPE_TYPE, string_id(pprof, type));
	protobuf_number(&pprof->message, VALUE_TYPE_UNIT, string_id(pprof, unit));
	put_field(pprof, field, &pprof->message);
}

static void put_head(struct pprof *pprof)
{
	const struct mmt_report *report = pprof->export->report;
	const struct mmt_completeness *completeness = &report->completeness;
	char text[128];

	(void)string_id(pprof, "");
	put_type(pprof, PROFILE_SAMPLE_TYPE, "alloc_objects", "count");
	put_type(pprof, PROFILE_SAMPLE_TYPE, "alloc_space", "bytes");
	put_type(pprof, PROFILE_SAMPLE_TYPE, "committed_space", "bytes");
	if (report->resident_bytes != MMT_UNKNOWN)
		put_type(pprof, PROFILE_SAMPLE_TYPE, "resident_space", "bytes");
	put_type(pprof, PROFILE_SAMPLE_TYPE, "inuse_objects", "count");
	put_type(pprof, PROFILE_SAMPLE_TYPE, "inuse_space", "bytes");
	/* What reports are sorted by: unfreed bytes include address space that is only reserved. */
	put_number(pprof, PROFILE_DEFAULT_SAMPLE_TYPE,
		   string_id(pprof, report->resident_bytes != MMT_UNKNOWN ? "resident_space" : "committed_space"));
	put_number(pprof, PROFILE_DROP_FRAMES, string_id(pprof, EXPORT_ALLOCATION_FUNCTIONS));
	put_type(pprof, PROFILE_PERIOD_TYPE, "space", "bytes");
	put_number(pprof, PROFILE_PERIOD, 1);
	if (report->start_realtime_ns)
		put_number(pprof, PROFILE_TIME_NANOS, report->start_realtime_ns + (report->to_ns - report->start_ns));
	put_number(pprof, PROFILE_DURATION_NANOS, report->to_ns - report->from_ns);
	put_number(pprof, PROFILE_COMMENT, string_id(pprof, report->input));
	if (report->host && *report->host) {
		snprintf(text, sizeof(text), "host_name=%s", report->host);
		put_number(pprof, PROFILE_COMMENT, string_id(pprof, text));
	}
	if (completeness->lost_events) {
		snprintf(text, sizeof(text), "%" PRIu64 " events were lost", completeness->lost_events);
		put_number(pprof, PROFILE_COMMENT, string_id(pprof, text));
	}
	if (report->resident_bytes == MMT_UNKNOWN)
		put_number(pprof, PROFILE_COMMENT, string_id(pprof, "resident sizes are not known at this time"));
	for (size_t i = 0; i < completeness->warning_count; i++)
		put_number(pprof, PROFILE_COMMENT, string_id(pprof, completeness->warnings[i]));
}

struct mmt_error *export_pprof(const struct export *export, FILE *stream)
{
	struct pprof pprof = {.export = export, .stream = stream};
	struct buffer *buffers[] = {&pprof.message, &pprof.inner, &pprof.key, &pprof.names};
	size_t count = sizeof(buffers) / sizeof(*buffers);
	const struct mmt_report *report = export->report;
	struct mmt_error *error;

	export_begin_buffers(buffers, count);
	put_head(&pprof);
	/* Viewers take the first mapping for the program: that of the process with the largest stack. */
	for (size_t i = 0; i < report->part_count && !pprof.mappings.count; i++) {
		const char *path = report->processes[report->parts[i].process].program;

		if (path)
			(void)mapping_id(&pprof, path);
	}
	put_samples(&pprof);
	put_mappings(&pprof);
	for (uint32_t i = 0; i < pprof.strings.count; i++) {
		protobuf_string(&pprof.names, PROFILE_STRING_TABLE, intern_get(&pprof.strings, i, NULL));
		write_names(&pprof);
	}
	error = export_end_buffers(buffers, count, pprof.failed, NULL);
	intern_deinit(&pprof.strings);
	intern_deinit(&pprof.mappings);
	intern_deinit(&pprof.functions);
	intern_deinit(&pprof.locations);
	map_deinit(&pprof.unnamed);
	return error;
}
