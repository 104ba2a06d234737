// SPDX-License-Identifier: LGPL-2.1-or-later
/* The processed profile format of Firefox Profiler, version 66. Each process is one thread with nativeAllocations,
 * because the viewer matches addresses within a thread to find what a selected range retains. Each lifetime has its
 * number as a unique address. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "output/export/export-report.h"
#include "output/json/json-document.h"

#define FORMAT_VERSION 66
#define GECKO_VERSION 24
#define ADDRESS_UNIT 4096
#define NO_STACK UINT32_MAX

enum resource_type { RESOURCE_LIBRARY = 1 };

struct firefox_frame {
	uint32_t function, line;
};

struct firefox_function {
	uint32_t name, resource, source; /* resource and source plus 1; 0: none */
};

struct firefox_stack {
	uint32_t prefix, frame; /* prefix plus 1; 0: none */
};

struct firefox {
	const struct export *export;
	struct document *document;
	struct export_events events;
	struct export_levels levels;
	struct export_by_process by_process;				      /* events */
	struct intern strings, functions, frames, stacks, resources, sources; /* the last two: of string ids */
	uint32_t *row_stacks;						      /* the innermost of each row */
	bool failed;
};

static uint32_t put(struct firefox *firefox, struct intern *table, const void *key, size_t size)
{
	uint32_t id = intern_put(table, key, size);

	firefox->failed |= id == INTERN_NONE;
	return id;
}

static uint32_t put_text(struct firefox *firefox, const char *text)
{
	uint32_t id = intern_put_string(&firefox->strings, text);

	firefox->failed |= id == INTERN_NONE;
	return id;
}

static uint32_t put_frame(struct firefox *firefox, const char *name, const struct mmt_frame *frame)
{
	struct firefox_function function = {.name = put_text(firefox, name)};
	struct firefox_frame key = {.line = frame ? frame->source_line : 0};
	uint32_t text;

	if (frame && frame->module) {
		text = put_text(firefox, frame->module);
		function.resource = put(firefox, &firefox->resources, &text, sizeof(text)) + 1;
	}
	if (frame && frame->source_file) {
		text = put_text(firefox, frame->source_file);
		function.source = put(firefox, &firefox->sources, &text, sizeof(text)) + 1;
	}
	key.function = put(firefox, &firefox->functions, &function, sizeof(function));
	return put(firefox, &firefox->frames, &key, sizeof(key));
}

static uint32_t put_stack(struct firefox *firefox, uint32_t prefix, uint32_t frame)
{
	const struct firefox_stack key = {.prefix = prefix == NO_STACK ? 0 : prefix + 1, .frame = frame};

	return put(firefox, &firefox->stacks, &key, sizeof(key));
}

/* A prefix has a smaller number than the stacks that it is a prefix of. */
static void put_row(struct firefox *firefox, size_t place)
{
	const struct mmt_row *row = &firefox->export->report->rows[place];
	uint32_t stack = NO_STACK;
	char text[EXPORT_NAME_BYTES];

	if (!row->frame_count)
		stack = put_stack(firefox, NO_STACK, put_frame(firefox, export_no_frames(row), NULL));
	for (size_t i = row->frame_count; i && !firefox->failed; i--) {
		const struct mmt_frame *frame = row->frames[i - 1];

		stack = put_stack(firefox, stack, put_frame(firefox, export_frame_name(frame, text), frame));
	}
	firefox->row_stacks[place] = stack;
}

static uint64_t since_start(const struct firefox *firefox, uint64_t time_ns)
{
	uint64_t from_ns = firefox->export->report->from_ns;

	return time_ns > from_ns ? time_ns - from_ns : 0;
}

/* An array with the same value in each element. */
static void put_repeated(struct document *document, const char *key, size_t count, int64_t value)
{
	document_each(document, key, i, count)
		document_signed(document, NULL, value);
}

static void put_nulls(struct document *document, const char *key, size_t count)
{
	document_each(document, key, i, count)
		document_null(document, NULL);
}

static void put_falses(struct document *document, const char *key, size_t count)
{
	document_each(document, key, i, count)
		document_bool(document, NULL, false);
}

/* The columns of a process's events, which are written one after the other. */
enum column { COLUMN_TIME, COLUMN_WEIGHT, COLUMN_STACK, COLUMN_ADDRESS, COLUMN_THREAD };

static void put_cell(const struct firefox *firefox, enum column column, const struct export_event *event)
{
	const struct mmt_report *report = firefox->export->report;
	const struct mmt_part *part = &report->parts[event->part];
	uint64_t size = export_event_lifetime(report, event)->bytes;
	int64_t bytes = size < INT64_MAX ? (int64_t)size : INT64_MAX;

	switch (column) {
	case COLUMN_TIME:
		document_milliseconds(firefox->document, NULL,
				      since_start(firefox, export_step_ns(report, event->step)));
		break;
	case COLUMN_WEIGHT:
		document_signed(firefox->document, NULL, event->is_release ? -bytes : bytes);
		break;
	case COLUMN_STACK:
		document_unsigned(firefox->document, NULL, firefox->row_stacks[part->row]);
		break;
	case COLUMN_ADDRESS:
		document_unsigned(firefox->document, NULL, ((uint64_t)event->number + 1) * ADDRESS_UNIT);
		break;
	case COLUMN_THREAD:
		document_signed(firefox->document, NULL, part->thread.tid);
		break;
	}
}

/* Which events of a process a table has. */
typedef bool event_filter(const struct mmt_report *report, const struct export_event *event);

static bool is_any(const struct mmt_report *report, const struct export_event *event)
{
	(void)report, (void)event;
	return true;
}

/* Write the cells of a column. Returns their number. */
static size_t put_cells(const struct firefox *firefox, size_t process, enum column column, event_filter *filter)
{
	const struct export_by_process *events = &firefox->by_process;
	size_t count = 0;

	for (size_t i = events->starts[process]; i < events->starts[process + 1]; i++) {
		const struct export_event *event = &firefox->events.items[events->places[i]];

		if (!filter(firefox->export->report, event))
			continue;
		put_cell(firefox, column, event);
		count++;
	}
	return count;
}

static void put_column(const struct firefox *firefox, size_t process, const char *key, enum column column)
{
	document_open_array(firefox->document, key);
	put_cells(firefox, process, column, is_any);
	document_close(firefox->document);
}

static void put_allocations(const struct firefox *firefox, size_t process, size_t count)
{
	document_open_object(firefox->document, "nativeAllocations");
	put_column(firefox, process, "time", COLUMN_TIME);
	put_column(firefox, process, "weight", COLUMN_WEIGHT);
	document_string(firefox->document, "weightType", "bytes");
	put_column(firefox, process, "stack", COLUMN_STACK);
	put_column(firefox, process, "memoryAddress", COLUMN_ADDRESS);
	put_column(firefox, process, "threadId", COLUMN_THREAD);
	document_unsigned(firefox->document, "length", count);
	document_close(firefox->document);
}

/* Write what is still mapped as samples, which the viewer opens on. An empty sample at each end makes it show the range
 * of the window. */
static void put_samples(const struct firefox *firefox, size_t process)
{
	struct document *document = firefox->document;
	size_t count;

	document_open_object(document, "samples");
	document_open_array(document, "stack");
	document_null(document, NULL);
	count = put_cells(firefox, process, COLUMN_STACK, export_is_unfreed);
	document_null(document, NULL);
	document_close(document);
	document_open_array(document, "time");
	document_milliseconds(document, NULL, 0);
	put_cells(firefox, process, COLUMN_TIME, export_is_unfreed);
	document_milliseconds(document, NULL, since_start(firefox, firefox->export->report->to_ns));
	document_close(document);
	document_open_array(document, "weight");
	document_unsigned(document, NULL, 0);
	put_cells(firefox, process, COLUMN_WEIGHT, export_is_unfreed);
	document_unsigned(document, NULL, 0);
	document_close(document);
	document_string(document, "weightType", "bytes");
	document_unsigned(document, "length", count + 2);
	document_close(document);
}

/* The index of the first mark in the window. */
static size_t first_mark(const struct mmt_report *report)
{
	size_t first = 0;

	while (first < report->mark_count && report->marks[first].time_ns < report->from_ns)
		first++;
	return first;
}

/* Write the marks of the window, in the first thread only. */
static void put_markers(const struct firefox *firefox, bool wanted)
{
	const struct mmt_report *report = firefox->export->report;
	size_t first = wanted ? first_mark(report) : report->mark_count, count = report->mark_count - first;
	struct document *document = firefox->document;

	document_open_object(document, "markers");
	document_each(document, "data", i, count) {
		document_open_object(document, NULL);
		document_string(document, "type", "mark");
		document_unsigned(document, "number", report->marks[first + i].number);
		document_close(document);
	}
	put_repeated(document, "name", count, intern_find(&firefox->strings, "mark", sizeof("mark")));
	document_each(document, "startTime", i, count)
		document_milliseconds(document, NULL, since_start(firefox, report->marks[first + i].time_ns));
	put_nulls(document, "endTime", count);
	put_repeated(document, "phase", count, 0);
	put_repeated(document, "category", count, 0);
	document_unsigned(document, "length", count);
	document_close(document);
}

static void put_pid(struct document *document, const char *key, int32_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%" PRId32, pid);
	document_string(document, key, text);
}

static void put_thread(const struct firefox *firefox, size_t place)
{
	const struct mmt_report *report = firefox->export->report;
	const struct mmt_process *process = &report->processes[place];
	size_t count = firefox->by_process.starts[place + 1] - firefox->by_process.starts[place];
	struct document *document = firefox->document;

	document_open_object(document, NULL);
	document_string(document, "processType", "default");
	document_unsigned(document, "processStartupTime", 0);
	document_null(document, "processShutdownTime");
	document_unsigned(document, "registerTime", 0);
	document_null(document, "unregisterTime");
	document_open_array(document, "pausedRanges");
	document_close(document);
	document_bool(document, "showMarkersInTimeline", true);
	document_string(document, "name", process->name && *process->name ? process->name : "process");
	document_bool(document, "isMainThread", true);
	document_string(document, "processName", process->name);
	put_pid(document, "pid", process->pid);
	put_pid(document, "tid", process->pid);
	put_samples(firefox, place);
	if (count)
		put_allocations(firefox, place, count);
	put_markers(firefox, !place);
	document_close(document);
}

/* The title of the page: the first program, how many others there are, and the host. */
static void put_product(const struct firefox *firefox)
{
	const struct mmt_report *report = firefox->export->report;
	char text[EXPORT_NAME_BYTES] = "mmtrace", title[2 * EXPORT_NAME_BYTES], others[32] = "";

	if (report->process_count)
		export_process_name(&report->processes[0], text);
	if (report->process_count > 1)
		snprintf(others, sizeof(others), " and %zu more", report->process_count - 1);
	snprintf(title, sizeof(title), "%s%s%s%s", text, others, *report->host ? " on " : "", report->host);
	document_string(firefox->document, "product", title);
}

static void put_meta(const struct firefox *firefox)
{
	const struct mmt_report *report = firefox->export->report;
	struct document *document = firefox->document;

	document_open_object(document, "meta");
	document_unsigned(document, "interval", 1);
	document_milliseconds(
	    document, "startTime",
	    report->start_realtime_ns ? report->start_realtime_ns + (report->from_ns - report->start_ns) : 0);
	document_unsigned(document, "version", GECKO_VERSION);
	document_unsigned(document, "preprocessedProfileVersion", FORMAT_VERSION);
	document_unsigned(document, "processType", 0);
	put_product(firefox);
	document_string(document, "importedFrom", "mmtrace");
	document_unsigned(document, "stackwalk", 1);
	document_unsigned(document, "debug", 0);
	document_bool(document, "symbolicated", true);
	document_bool(document, "usesOnlyOneStackType", true);
	document_bool(document, "sourceCodeIsNotOnSearchfox", true);
	document_open_array(document, "categories");
	document_open_object(document, NULL);
	document_string(document, "name", "Other");
	document_string(document, "color", "grey");
	document_open_array(document, "subcategories");
	document_string(document, NULL, "Other");
	document_close(document);
	document_close(document);
	document_close(document);
	document_open_array(document, "markerSchema");
	document_open_object(document, NULL);
	document_string(document, "name", "mark");
	document_string(document, "chartLabel", "mark {marker.data.number}");
	document_string(document, "tableLabel", "mark {marker.data.number}");
	document_string(document, "tooltipLabel", "mark {marker.data.number}");
	document_open_array(document, "display");
	document_string(document, NULL, "marker-chart");
	document_string(document, NULL, "marker-table");
	document_string(document, NULL, "timeline-overview");
	document_string(document, NULL, "timeline-memory");
	document_close(document);
	document_open_array(document, "fields");
	document_open_object(document, NULL);
	document_string(document, "key", "number");
	document_string(document, "label", "Number");
	document_string(document, "format", "integer");
	document_close(document);
	document_close(document);
	document_close(document);
	document_close(document);
	document_close(document);
}

/* A memory track, from absolute figures at ascending times. The format stores differences. */
struct track {
	const char *name, *description, *color;
	size_t count;
	uint64_t (*time_ns)(const struct firefox *firefox, size_t place);
	uint64_t (*bytes)(const struct firefox *firefox, size_t place);
};

static uint64_t reading_ns(const struct firefox *firefox, size_t place)
{
	return firefox->export->report->resident_readings[place].time_ns;
}

static uint64_t reading_bytes(const struct firefox *firefox, size_t place)
{
	return firefox->export->report->resident_readings[place].resident_bytes;
}

static uint64_t step_ns(const struct firefox *firefox, size_t place)
{
	return firefox->export->report->steps[place].to_ns;
}

static uint64_t level_ns(const struct firefox *firefox, size_t place)
{
	return export_step_ns(firefox->export->report, firefox->levels.items[place].step);
}

static uint64_t level_bytes(const struct firefox *firefox, size_t place)
{
	return firefox->levels.items[place].bytes;
}

static uint64_t committed_bytes(const struct firefox *firefox, size_t place)
{
	return firefox->export->report->steps[place].committed_bytes;
}

static void put_differences(const struct firefox *firefox, const struct track *track)
{
	uint64_t before = 0;

	document_each(firefox->document, "count", i, track->count) {
		uint64_t bytes = track->bytes(firefox, i);

		document_signed(firefox->document, NULL, (int64_t)(bytes - before));
		before = bytes;
	}
}

static void put_display(struct document *document, const struct track *track)
{
	document_open_object(document, "display");
	document_string(document, "graphType", "line-accumulated");
	document_string(document, "unit", "bytes");
	document_string(document, "color", track->color);
	document_string(document, "markerSchemaLocation", "timeline-memory");
	document_unsigned(document, "sortWeight", 20);
	document_string(document, "label", track->name);
	document_open_array(document, "tooltipRows");
	document_open_object(document, NULL);
	document_string(document, "type", "value");
	document_string(document, "source", "accumulated");
	document_open_object(document, "format");
	document_string(document, "unit", "bytes");
	document_close(document);
	document_string(document, "label", track->description);
	document_close(document);
	document_close(document);
	document_close(document);
}

static void put_track(const struct firefox *firefox, const struct track *track)
{
	struct document *document = firefox->document;

	if (!track->count || !firefox->export->report->process_count)
		return;
	document_open_object(document, NULL);
	document_string(document, "name", track->name);
	document_string(document, "category", "Memory");
	document_string(document, "description", track->description);
	put_pid(document, "pid", firefox->export->report->processes[0].pid);
	document_unsigned(document, "mainThreadIndex", 0);
	document_open_object(document, "samples");
	document_each(document, "time", i, track->count)
		document_milliseconds(document, NULL, since_start(firefox, track->time_ns(firefox, i)));
	put_differences(firefox, track);
	document_unsigned(document, "length", track->count);
	document_close(document);
	put_display(document, track);
	document_close(document);
}

static void put_tracks(const struct firefox *firefox)
{
	const struct mmt_report *report = firefox->export->report;
	const struct track tracks[] = {
	    {"RSS", "resident size of all processes", "red", report->resident_reading_count, reading_ns, reading_bytes},
	    {"committed", "committed bytes of all processes", "blue", report->step_count, step_ns, committed_bytes},
	    {"unfreed", "bytes of all processes that are not unmapped", "orange", firefox->levels.count, level_ns,
	     level_bytes},
	};

	document_each(firefox->document, "counters", i, sizeof(tracks) / sizeof(*tracks))
		put_track(firefox, &tracks[i]);
}

enum zero { ZERO_IS_NUMBER, ZERO_IS_NULL };

/* A column of a table: the uint32_t at `offset` of each key, less `base`. */
static void put_members(struct document *document, const char *key, const struct intern *table, size_t offset,
			int64_t base, enum zero zero)
{
	document_each(document, key, i, table->count) {
		const char *members = intern_get(table, i, NULL);
		uint32_t value;

		memcpy(&value, members + offset, sizeof(value));
		if (!value && zero == ZERO_IS_NULL)
			document_null(document, NULL);
		else
			document_signed(document, NULL, value - base);
	}
}

static void put_stacks(const struct firefox *firefox)
{
	struct document *document = firefox->document;
	uint32_t count = (uint32_t)firefox->stacks.count;

	document_open_object(document, "stackTable");
	put_members(document, "frame", &firefox->stacks, offsetof(struct firefox_stack, frame), 0, ZERO_IS_NUMBER);
	document_each(document, "prefixOffset", i, count) {
		const struct firefox_stack *key = intern_get(&firefox->stacks, i, NULL);

		document_unsigned(document, NULL, key->prefix ? i + 1 - key->prefix : 0);
	}
	document_unsigned(document, "length", count);
	document_close(document);
}

static void put_frames(const struct firefox *firefox)
{
	struct document *document = firefox->document;
	uint32_t count = (uint32_t)firefox->frames.count;

	document_open_object(document, "frameTable");
	put_repeated(document, "address", count, -1);
	put_repeated(document, "inlineDepth", count, 0);
	put_repeated(document, "category", count, 0);
	put_repeated(document, "subcategory", count, 0);
	put_members(document, "func", &firefox->frames, offsetof(struct firefox_frame, function), 0, ZERO_IS_NUMBER);
	put_nulls(document, "nativeSymbol", count);
	put_repeated(document, "innerWindowID", count, 0);
	put_members(document, "line", &firefox->frames, offsetof(struct firefox_frame, line), 0, ZERO_IS_NULL);
	put_nulls(document, "column", count);
	put_nulls(document, "originalLocation", count);
	document_unsigned(document, "length", count);
	document_close(document);
}

static void put_functions(const struct firefox *firefox)
{
	struct document *document = firefox->document;
	const struct intern *functions = &firefox->functions;
	size_t count = functions->count;

	document_open_object(document, "funcTable");
	put_members(document, "name", functions, offsetof(struct firefox_function, name), 0, ZERO_IS_NUMBER);
	put_falses(document, "isJS", count);
	put_falses(document, "relevantForJS", count);
	put_members(document, "resource", functions, offsetof(struct firefox_function, resource), 1, ZERO_IS_NUMBER);
	put_members(document, "source", functions, offsetof(struct firefox_function, source), 1, ZERO_IS_NULL);
	put_nulls(document, "lineNumber", count);
	put_nulls(document, "columnNumber", count);
	put_nulls(document, "originalLocation", count);
	document_unsigned(document, "length", count);
	document_close(document);
}

static void put_resources(const struct firefox *firefox)
{
	struct document *document = firefox->document;
	size_t count = firefox->resources.count;

	document_open_object(document, "resourceTable");
	put_nulls(document, "lib", count);
	put_members(document, "name", &firefox->resources, 0, 0, ZERO_IS_NUMBER);
	put_nulls(document, "host", count);
	put_repeated(document, "type", count, RESOURCE_LIBRARY);
	document_unsigned(document, "length", count);
	document_close(document);
}

static void put_sources(const struct firefox *firefox)
{
	struct document *document = firefox->document;
	size_t count = firefox->sources.count;

	document_open_object(document, "sources");
	put_nulls(document, "id", count);
	put_members(document, "filename", &firefox->sources, 0, 0, ZERO_IS_NUMBER);
	put_repeated(document, "startLine", count, 1);
	put_repeated(document, "startColumn", count, 1);
	put_nulls(document, "sourceMapURL", count);
	put_nulls(document, "content", count);
	document_unsigned(document, "length", count);
	document_close(document);
}

/* Columns of a table without rows. */
static void put_empty(struct document *document, const char *key, const char *const *columns)
{
	document_open_object(document, key);
	for (; *columns; columns++)
		put_nulls(document, *columns, 0);
	document_unsigned(document, "length", 0);
	document_close(document);
}

static void put_shared(const struct firefox *firefox)
{
	static const char *const symbols[] = {"libIndex", "address", "name", "functionSize", NULL};
	static const char *const locations[] = {"source", "line", "column", NULL};
	struct document *document = firefox->document;

	document_open_object(document, "shared");
	put_stacks(firefox);
	put_frames(firefox);
	put_functions(firefox);
	put_resources(firefox);
	put_sources(firefox);
	put_empty(document, "nativeSymbols", symbols);
	put_empty(document, "sourceLocationTable", locations);
	document_each(document, "stringArray", i, firefox->strings.count)
		document_string(document, NULL, intern_get(&firefox->strings, i, NULL));
	document_close(document);
}

static size_t process_of_event(const void *context, size_t place)
{
	const struct firefox *firefox = context;

	return firefox->export->report->parts[firefox->events.items[place].part].process;
}

static struct mmt_error *put_document(struct firefox *firefox)
{
	const struct mmt_report *report = firefox->export->report;

	firefox->failed |=
	    !export_by_process_create(report, firefox->events.count, process_of_event, firefox, &firefox->by_process);
	(void)put_text(firefox, "mark");
	for (size_t i = 0; i < report->row_count; i++)
		put_row(firefox, i);
	if (firefox->failed)
		return &error_no_memory;
	document_compact(firefox->document);
	put_meta(firefox);
	document_open_array(firefox->document, "libs");
	document_close(firefox->document);
	put_shared(firefox);
	document_each(firefox->document, "threads", i, report->process_count)
		put_thread(firefox, i);
	put_tracks(firefox);
	return document_finish(firefox->document);
}

struct mmt_error *export_firefox(const struct export *export, FILE *stream)
{
	struct firefox firefox = {.export = export};
	struct intern *tables[] = {&firefox.strings, &firefox.functions, &firefox.frames,
				   &firefox.stacks,  &firefox.resources, &firefox.sources};
	struct mmt_error *error = document_create(stream, &firefox.document);

	if (!error)
		error = export_events_create(export->report, &firefox.events);
	if (!error)
		error = export_levels_create(export->report, &firefox.events, &firefox.levels);
	firefox.row_stacks = calloc(export->report->row_count + 1, sizeof(*firefox.row_stacks));
	if (!error)
		error = firefox.row_stacks ? put_document(&firefox) : &error_no_memory;
	export_by_process_deinit(&firefox.by_process);
	export_levels_deinit(&firefox.levels);
	export_events_deinit(&firefox.events);
	document_destroy(firefox.document);
	free(firefox.row_stacks);
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		intern_deinit(tables[i]);
	return error;
}
