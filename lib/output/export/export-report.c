// SPDX-License-Identifier: LGPL-2.1-or-later
/* The table of export formats, and what they share. export-report.h says how to add one. */
#include "output/export/export-report.h"

#include <inttypes.h>

#include "base/compression.h"
#include "base/figures.h"
#include "base/limits.h"
#include "output/escape.h"
#include "output/selection.h"

#define SUMS_ONLY 16 /* steps: the minimum */
#define TIMES MMT_LIFETIME_STEPS_MAX

static struct mmt_error *export_html(const struct export *export, FILE *stream)
{
	const struct mmt_text_options options = {.limit = MMT_HTML_LIMIT_DEFAULT, .sort = MMT_SORT_MEMORY};

	return mmt_report_write_html(export->report, &options, stream);
}

/* Folded stacks, as flamegraph.pl reads them: "process;main;leak 4096". Semicolons separate the frames, so those in
 * names become colons. Stacks without weight have no line: viewers reject a weight of 0. */
static struct mmt_error *export_folded(const struct export *export, FILE *stream)
{
	size_t position = 0, first;
	struct mmt_part sum;

	while (export_next(export->report, &position, &first, &sum)) {
		uint64_t weight = export_weight(&sum, export->weight);
		struct export_stack stack;

		if (!weight)
			continue;
		escape_write(export_process_name(&export->report->processes[sum.process], stack.text), ESCAPE_FOR_STACK,
			     stream);
		export_stack_begin(&stack, &export->report->rows[sum.row]);
		while (export_stack_next(&stack)) {
			putc(';', stream);
			escape_write(stack.name, ESCAPE_FOR_STACK, stream);
		}
		fprintf(stream, " %" PRIu64 "\n", weight);
	}
	return NULL;
}

/* Each format: its function is export_NAME(), and whether its output is compressed. */
#define FORMATS(FORMAT)                                                                                                \
	FORMAT(folded, false, "flamegraph.pl, inferno and speedscope.app", .suffix = ".folded", .weighted = true,      \
	       .lifetime_steps = SUMS_ONLY)                                                                            \
	FORMAT(pprof, true, "go tool pprof, Pyroscope, Perfetto, speedscope", .suffix = ".pb.gz",                      \
	       .viewer = "go tool pprof -http=:", .labelled = true, .binary = true, .lifetime_steps = SUMS_ONLY)       \
	FORMAT(firefox, false, "profiler.firefox.com", .suffix = ".firefox.json", .only_made = true,                   \
	       .lifetime_steps = TIMES)                                                                                \
	FORMAT(perfetto, false, "ui.perfetto.dev", .suffix = ".pftrace", .binary = true, .only_made = true,            \
	       .lifetime_steps = TIMES)                                                                                \
	FORMAT(rows, false, "databases: ClickHouse, DuckDB", .suffix = ".ndjson", .labelled = true,                    \
	       .lifetime_steps = SUMS_ONLY)                                                                            \
	FORMAT(html, false, "any browser", .suffix = ".html", .lifetime_steps = MMT_HTML_LIFETIME_STEPS)

#define DESCRIBE(name_, gzip_, opens_, ...) {#name_, opens_, __VA_ARGS__},
#define WRITE(name_, gzip_, ...) {export_##name_, gzip_},

static const struct mmt_export_format formats[] = {FORMATS(DESCRIBE)};
static const struct {
	export_function *write;
	bool gzip;
} writers[] = {FORMATS(WRITE)};

#define FORMAT_COUNT (sizeof(formats) / sizeof(*formats))

const struct mmt_export_format *mmt_export_formats(size_t *count_ret)
{
	if (count_ret)
		*count_ret = FORMAT_COUNT;
	return formats;
}

const char *export_frame_name(const struct mmt_frame *frame, char text[EXPORT_NAME_BYTES])
{
	if (frame->function)
		return frame->function;
	if (frame->kind == MMT_FRAME_NATIVE)
		snprintf(text, EXPORT_NAME_BYTES, "%s+0x%" PRIx64, frame->module ? frame->module : "",
			 frame->module_offset);
	else
		snprintf(text, EXPORT_NAME_BYTES, "%s0x%" PRIx64, frame->kind == MMT_FRAME_JIT ? "[jit] " : "",
			 frame->address);
	return text;
}

const char *export_process_name(const struct mmt_process *process, char text[EXPORT_NAME_BYTES])
{
	snprintf(text, EXPORT_NAME_BYTES, "%s (%" PRId32 ")", selection_process_name(process), process->pid);
	return text;
}

const char *export_no_frames(const struct mmt_row *row)
{
	if (row->lost)
		return "[calls that were lost]";
	return "[no stack]";
}

void export_stack_begin(struct export_stack *stack, const struct mmt_row *row)
{
	stack->row = row;
	stack->left = row->frame_count ? row->frame_count : 1;
}

bool export_stack_next(struct export_stack *stack)
{
	if (!stack->left)
		return false;
	stack->left--;
	stack->frame = stack->row->frame_count ? stack->row->frames[stack->left] : NULL;
	stack->name = stack->frame ? export_frame_name(stack->frame, stack->text) : export_no_frames(stack->row);
	return true;
}

bool export_next(const struct mmt_report *report, size_t *position, size_t *first_ret, struct mmt_part *sum_ret)
{
	const struct mmt_part *parts = report->parts;

	*first_ret = *position;
	if (*position == report->part_count)
		return false;
	*sum_ret = (struct mmt_part){.row = parts[*position].row,
				     .process = parts[*position].process,
				     .resident_bytes = MMT_UNKNOWN,
				     .resident_before_bytes = MMT_UNKNOWN};
	while (*position < report->part_count && parts[*position].row == sum_ret->row &&
	       parts[*position].process == sum_ret->process)
		figures_add_to_part(sum_ret, &parts[(*position)++]);
	return true;
}

uint64_t export_weight(const struct mmt_part *part, enum mmt_weight weight)
{
	uint64_t bytes = 0;

	switch (weight) {
	case MMT_WEIGHT_MEMORY:
		return export_weight(part,
				     part->resident_bytes == MMT_UNKNOWN ? MMT_WEIGHT_COMMITTED : MMT_WEIGHT_RESIDENT);
	case MMT_WEIGHT_RESIDENT:
		figure_add(&bytes, part->resident_bytes);
		figure_add(&bytes, part->resident_before_bytes);
		return bytes;
	case MMT_WEIGHT_COMMITTED:
		return saturating_add(part->committed_bytes, part->committed_before_bytes, MMT_BYTES_MAX);
	case MMT_WEIGHT_ALLOCATED:
		return part->allocated_bytes;
	case MMT_WEIGHT_COUNT:
		return part->unfreed_count;
	default:
		return part->unfreed_bytes;
	}
}

bool export_is_new(struct intern *table, const void *key, size_t size, uint64_t *number_ret, bool *failed)
{
	size_t count = table->count;
	uint32_t id = intern_put(table, key, size);

	*failed |= id == INTERN_NONE;
	*number_ret = (uint64_t)id + 1;
	return id == count;
}

void export_begin_buffers(struct buffer *const *buffers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buffer_init(buffers[i], LIMIT_EXPORT_BYTES);
}

struct mmt_error *export_end_buffers(struct buffer *const *buffers, size_t count, bool failed, struct mmt_error *error)
{
	for (size_t i = 0; i < count; i++) {
		struct mmt_error *next = buffer_finish(buffers[i]);

		if (error)
			mmt_error_destroy(next);
		else
			error = next;
		buffer_deinit(buffers[i]);
	}
	return !error && failed ? &error_no_memory : error;
}

static struct mmt_error *write_compressed(const struct export *export, export_function *write, FILE *below)
{
	FILE *stream = gzip_open(below);
	struct mmt_error *error;
	bool failed;

	if (!stream)
		return &error_no_memory;
	error = write(export, stream);
	failed = ferror(stream);
	failed |= fclose(stream) != 0;
	/* The caller detects errors of `below`. */
	if (!error && failed && !ferror(below))
		error = error_create(MMT_ERROR_INTERNAL, "the export could not be compressed");
	return error;
}

const char *export_build_id(const struct export *export, const char *path)
{
	uint32_t name = intern_find(&export->paths, path, strlen(path) + 1);
	const uint64_t *place = name == INTERN_NONE ? NULL : map_get(&export->modules, name);

	return place ? export->report->modules[*place].build_id : NULL;
}

void export_tracks(const struct mmt_report *report, struct export_track tracks[EXPORT_TRACKS])
{
#define POINTS(type, time, bytes) sizeof(type), offsetof(type, time), offsetof(type, bytes)
	const struct export_track all[EXPORT_TRACKS] = {
	    {"RSS", "resident size of all processes", "red", report->resident_readings, report->resident_reading_count,
	     POINTS(struct mmt_resident_reading, time_ns, resident_bytes)},
	    {"committed", "committed bytes of all processes", "blue", report->steps, report->step_count,
	     POINTS(struct mmt_step, to_ns, committed_bytes)},
	    {"unfreed", "bytes of all processes that are not unmapped", "orange", report->steps, report->step_count,
	     POINTS(struct mmt_step, to_ns, unfreed_bytes)},
	};

	memcpy(tracks, all, sizeof(all));
}

uint64_t export_track_value(const struct export_track *track, size_t point, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)track->points + track->size * point + offset, sizeof(value));
	return value;
}

struct mmt_error *mmt_export(const struct mmt_report *report, const char *format, enum mmt_weight weight,
			     const char *service, FILE *stream)
{
	struct export export = {.report = report, .weight = weight, .service = service};
	struct mmt_error *error = NULL;
	size_t number = 0;

	while (number < FORMAT_COUNT && strcmp(formats[number].name, format) != 0)
		number++;
	if (number == FORMAT_COUNT)
		return error_create(MMT_ERROR_INVALID, "unknown format '%s'", format);
	if (weight >= MMT_WEIGHT_KINDS)
		return error_create(MMT_ERROR_INVALID, "unknown weight %d", (int)weight);
	if ((report->by != MMT_BY_STACK && report->by != MMT_BY_TOUCH) || !report->lifetime_step_ns)
		return error_create(MMT_ERROR_INVALID,
				    "%s: only a report by stack or touch with lifetimes can be exported",
				    report->input);
	if (report->by == MMT_BY_TOUCH && formats[number].only_made)
		return error_create(MMT_ERROR_INVALID,
				    "%s shows what was mapped when: use folded, pprof, rows or html for what was "
				    "touched",
				    format);
	for (size_t i = 0; !error && i < report->module_count; i++) {
		uint32_t path = intern_put_string(&export.paths, report->modules[i].path);

		if (path == INTERN_NONE || (!map_get(&export.modules, path) && !map_put(&export.modules, path, i)))
			error = &error_no_memory;
	}
	if (!error && formats[number].lifetime_steps == TIMES)
		error = export_events_create(report, &export.events);
	if (!error)
		error = writers[number].gzip ? write_compressed(&export, writers[number].write, stream)
					     : writers[number].write(&export, stream);
	free(export.events.items);
	intern_deinit(&export.paths);
	map_deinit(&export.modules);
	return error;
}

/* The order of events within a step: releases of older memory, allocations, releases of what it allocated. */
static int phase_of(const struct mmt_report *report, const struct export_event *event)
{
	if (!event->is_release)
		return 0;
	return export_event_lifetime(report, event)->allocated_step == event->step ? 1 : -1;
}

COMPARISON_WITH(compare_events, struct export_event, struct mmt_report,
		order_of(a->step, b->step) ?: order_of(phase_of(with, a), phase_of(with, b))
		?: order_of(a->number, b->number))

struct mmt_error *export_events_create(const struct mmt_report *report, struct export_events *events_ret)
{
	struct export_events events = {0};
	size_t lifetime_count = 0;
	uint32_t number = 0;

	for (size_t i = 0; i < report->part_count; i++)
		lifetime_count += report->parts[i].lifetime_count;
	events.items = calloc(2 * lifetime_count + 1, sizeof(*events.items));
	if (!events.items)
		return &error_no_memory;
	for (uint32_t part = 0; part < report->part_count; part++) {
		for (uint32_t i = 0; i < report->parts[part].lifetime_count; i++, number++) {
			const struct mmt_lifetime *lifetime = &report->parts[part].lifetimes[i];
			struct export_event event = {
			    .part = part, .lifetime = i, .number = number, .step = lifetime->allocated_step};

			events.items[events.count++] = event;
			if (lifetime->released_step == MMT_STILL_MAPPED)
				continue;
			event.is_release = true;
			event.step = lifetime->released_step;
			events.items[events.count++] = event;
		}
	}
	qsort_r(events.items, events.count, sizeof(*events.items), compare_events, (void *)report);
	*events_ret = events;
	return NULL;
}

COMPARISON_WITH(compare_processes, struct export_event, struct mmt_report,
		order_of(with->parts[a->part].process, with->parts[b->part].process) ?: compare_events(a, b, with_))

void export_events_sort_by_process(const struct mmt_report *report, const struct export_events *events)
{
	qsort_r(events->items, events->count, sizeof(*events->items), compare_processes, (void *)report);
}

uint64_t export_step_ns(const struct mmt_report *report, uint32_t step)
{
	uint64_t since_ns = report->lifetime_step_ns * step;

	return since_ns < report->to_ns - report->from_ns ? report->from_ns + since_ns : report->to_ns;
}

enum wire_type { WIRE_VARINT = 0, WIRE_LENGTH_DELIMITED = 2 };

void protobuf_varint(struct buffer *buffer, uint64_t value)
{
	while (value >= 0x80) {
		buffer_put_u8(buffer, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	buffer_put_u8(buffer, (uint8_t)value);
}

void protobuf_number(struct buffer *buffer, uint32_t field, uint64_t value)
{
	protobuf_varint(buffer, field << 3 | WIRE_VARINT);
	protobuf_varint(buffer, value);
}

void protobuf_bytes(struct buffer *buffer, uint32_t field, const void *data, size_t size)
{
	protobuf_varint(buffer, field << 3 | WIRE_LENGTH_DELIMITED);
	protobuf_varint(buffer, size);
	buffer_put(buffer, data, size);
}

void protobuf_string(struct buffer *buffer, uint32_t field, const char *text)
{
	struct escape_piece piece;
	const char *position = text;
	size_t size = 0;

	while (escape_next(&position, ESCAPE_FOR_TERMINAL, &piece))
		size += piece.size;
	protobuf_varint(buffer, field << 3 | WIRE_LENGTH_DELIMITED);
	protobuf_varint(buffer, size);
	escape_put(text, ESCAPE_FOR_TERMINAL, buffer);
}

void protobuf_message(struct buffer *buffer, uint32_t field, struct buffer *message)
{
	protobuf_bytes(buffer, field, message->data, message->size);
	buffer_clear(message);
}
