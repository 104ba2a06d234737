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
#include "output/selection.h"

#define FORMAT_VERSION 66
#define GECKO_VERSION 24
#define ADDRESS_UNIT 4096
#define NO_STACK UINT32_MAX
#define OOM_KILL "OOM kill"

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
	size_t first, end;						      /* events of the current process */
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
	return put(firefox, &firefox->strings, text, strlen(text) + 1);
}

/* A prefix has a smaller number than the stacks that it is a prefix of. */
static void put_row(struct firefox *firefox, size_t place)
{
	uint32_t stack = NO_STACK, text;
	struct export_stack frames;

	export_stack_begin(&frames, &firefox->export->report->rows[place]);
	while (!firefox->failed && export_stack_next(&frames)) {
		const struct mmt_frame *frame = frames.frame;
		struct firefox_function function = {.name = put_text(firefox, frames.name)};
		struct firefox_frame key = {.line = frame ? frame->source_line : 0};
		struct firefox_stack stack_key = {.prefix = stack == NO_STACK ? 0 : stack + 1};

		if (frame && frame->module) {
			text = put_text(firefox, frame->module);
			function.resource = put(firefox, &firefox->resources, &text, sizeof(text)) + 1;
		}
		if (frame && frame->source_file) {
			text = put_text(firefox, frame->source_file);
			function.source = put(firefox, &firefox->sources, &text, sizeof(text)) + 1;
		}
		key.function = put(firefox, &firefox->functions, &function, sizeof(function));
		stack_key.frame = put(firefox, &firefox->frames, &key, sizeof(key));
		stack = put(firefox, &firefox->stacks, &stack_key, sizeof(stack_key));
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

static void put_empty_cell(const struct firefox *firefox, enum column column, uint64_t time_ns)
{
	if (column == COLUMN_TIME)
		document_milliseconds(firefox->document, NULL, since_start(firefox, time_ns));
	else
		document_unsigned(firefox->document, NULL, column == COLUMN_STACK ? MMT_UNKNOWN : 0);
}

/* Write the column of the process's events; or, as samples, of what is still mapped, with an empty sample at each end.
 * Returns the number of cells. */
static size_t put_column(const struct firefox *firefox, const char *key, enum column column, bool samples)
{
	const struct mmt_report *report = firefox->export->report;
	size_t count = 0;

	document_open_array(firefox->document, key);
	if (samples)
		put_empty_cell(firefox, column, report->from_ns);
	for (size_t i = firefox->first; i < firefox->end; i++) {
		const struct export_event *event = &firefox->export->events.items[i];

		if (samples && !export_is_unfreed(report, event))
			continue;
		put_cell(firefox, column, event);
		count++;
	}
	if (samples)
		put_empty_cell(firefox, column, report->to_ns);
	document_close(firefox->document);
	return count + (samples ? 2 : 0);
}

/* Write the marks of the window, in the first thread only. */
static void put_markers(const struct firefox *firefox, bool wanted)
{
	const struct mmt_report *report = firefox->export->report;
	struct document *document = firefox->document;
	size_t first = wanted ? 0 : report->mark_count, count;

	while (first < report->mark_count && report->marks[first].time_ns < report->from_ns)
		first++;
	count = report->mark_count - first;
	document_open_object(document, "markers");
	document_each_object(document, "data", i, count) {
		document_string(document, "type", "mark");
		document_unsigned(document, "number", report->marks[first + i].number);
	}
	document_each(document, "name", i, count) {
		const char *name = report->marks[first + i].number ? "mark" : OOM_KILL;

		document_unsigned(document, NULL, intern_find(&firefox->strings, name, strlen(name) + 1));
	}
	document_each(document, "startTime", i, count)
		document_milliseconds(document, NULL, since_start(firefox, report->marks[first + i].time_ns));
	document_each(document, "endTime", i, count)
		document_null(document, NULL);
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

/* Put the process, which follows the one before it, into the open object. */
static void put_thread(struct firefox *firefox, size_t place)
{
	const struct mmt_report *report = firefox->export->report;
	const struct mmt_process *process = &report->processes[place];
	const struct export_events *events = &firefox->export->events;
	struct document *document = firefox->document;
	size_t count;

	for (firefox->first = firefox->end; firefox->end < events->count; firefox->end++) {
		if (report->parts[events->items[firefox->end].part].process != place)
			break;
	}
	document_raw(document, "\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
			       "\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],"
			       "\"showMarkersInTimeline\":true");
	document_string(document, "name", selection_process_name(process));
	document_bool(document, "isMainThread", true);
	document_string(document, "processName", process->name);
	put_pid(document, "pid", process->pid);
	put_pid(document, "tid", process->pid);
	/* What is still mapped as samples, which the viewer opens on. The empty ones make it show the range of the
	 * window. */
	document_open_object(document, "samples");
	put_column(firefox, "stack", COLUMN_STACK, true);
	put_column(firefox, "time", COLUMN_TIME, true);
	count = put_column(firefox, "weight", COLUMN_WEIGHT, true);
	document_string(document, "weightType", "bytes");
	document_unsigned(document, "length", count);
	document_close(document);
	if (firefox->end > firefox->first) {
		document_open_object(document, "nativeAllocations");
		put_column(firefox, "time", COLUMN_TIME, false);
		put_column(firefox, "weight", COLUMN_WEIGHT, false);
		document_string(document, "weightType", "bytes");
		put_column(firefox, "stack", COLUMN_STACK, false);
		put_column(firefox, "memoryAddress", COLUMN_ADDRESS, false);
		document_unsigned(document, "length", put_column(firefox, "threadId", COLUMN_THREAD, false));
		document_close(document);
	}
	put_markers(firefox, !place);
}

static void put_meta(const struct firefox *firefox)
{
	const struct mmt_report *report = firefox->export->report;
	char text[EXPORT_NAME_BYTES] = "mmtrace", title[2 * EXPORT_NAME_BYTES], others[32] = "";
	struct document *document = firefox->document;

	document_open_object(document, "meta");
	document_unsigned(document, "interval", 1);
	document_milliseconds(
	    document, "startTime",
	    report->start_realtime_ns ? report->start_realtime_ns + (report->from_ns - report->start_ns) : 0);
	document_unsigned(document, "version", GECKO_VERSION);
	document_unsigned(document, "preprocessedProfileVersion", FORMAT_VERSION);
	document_unsigned(document, "processType", 0);
	/* The title of the page: the first program, how many others there are, and the host. */
	if (report->process_count)
		export_process_name(&report->processes[0], text);
	if (report->process_count > 1)
		snprintf(others, sizeof(others), " and %zu more", report->process_count - 1);
	snprintf(title, sizeof(title), "%s%s%s%s", text, others, *report->host ? " on " : "", report->host);
	document_string(document, "product", title);
	document_raw(document,
		     "\"importedFrom\":\"mmtrace\",\"stackwalk\":1,\"debug\":0,\"symbolicated\":true,"
		     "\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,"
		     "\"categories\":[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}],"
		     "\"markerSchema\":[{\"name\":\"mark\","
		     "\"chartLabel\":\"mark {marker.data.number}\","
		     "\"tableLabel\":\"mark {marker.data.number}\","
		     "\"tooltipLabel\":\"mark {marker.data.number}\","
		     "\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\",\"timeline-memory\"],"
		     "\"fields\":[{\"key\":\"number\",\"label\":\"Number\",\"format\":\"integer\"}]}]");
	document_close(document);
}

/* The format stores differences. */
static void put_track(const struct firefox *firefox, const struct export_track *track)
{
	struct document *document = firefox->document;
	uint64_t before = 0;

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
		document_milliseconds(document, NULL, since_start(firefox, export_track_value(track, i, track->time)));
	document_each(document, "count", i, track->count) {
		uint64_t bytes = export_track_value(track, i, track->bytes);

		document_signed(document, NULL, (int64_t)(bytes - before));
		before = bytes;
	}
	document_unsigned(document, "length", track->count);
	document_close(document);
	document_open_object(document, "display");
	document_raw(document, "\"graphType\":\"line-accumulated\",\"unit\":\"bytes\",\"sortWeight\":20,"
			       "\"markerSchemaLocation\":\"timeline-memory\"");
	document_string(document, "color", track->color);
	document_string(document, "label", track->name);
	document_open_array(document, "tooltipRows");
	document_open_object(document, NULL);
	document_raw(document, "\"type\":\"value\",\"source\":\"accumulated\",\"format\":{\"unit\":\"bytes\"}");
	document_string(document, "label", track->description);
	document_close(document);
	document_close(document);
	document_close(document);
	document_close(document);
}

enum cell { CELL_NULL, CELL_FALSE, CELL_NUMBER, CELL_MEMBER, CELL_MEMBER_OR_NULL, CELL_DISTANCE };

struct table_column {
	const char *name; /* NULL: the end */
	enum cell cell;
	int64_t number; /* CELL_NUMBER: itself; CELL_MEMBER: subtracted from the uint32_t at `offset` of each key */
	size_t offset;
};

static void put_table(struct document *document, const char *name, const struct intern *table,
		      const struct table_column *column)
{
	document_open_object(document, name);
	for (; column->name; column++) {
		document_each(document, column->name, i, table->count) {
			uint32_t value;

			memcpy(&value, (const char *)intern_get(table, i, NULL) + column->offset, sizeof(value));
			if (column->cell == CELL_FALSE)
				document_bool(document, NULL, false);
			else if (column->cell == CELL_NUMBER)
				document_signed(document, NULL, column->number);
			else if (column->cell == CELL_DISTANCE)
				document_signed(document, NULL, value ? (int64_t)i + 1 - value : 0);
			else if (column->cell == CELL_MEMBER || (column->cell == CELL_MEMBER_OR_NULL && value))
				document_signed(document, NULL, value - column->number);
			else
				document_null(document, NULL);
		}
	}
	document_unsigned(document, "length", table->count);
	document_close(document);
}

static const struct table_column stack_columns[] = {
    {"frame", CELL_MEMBER, 0, offsetof(struct firefox_stack, frame)},
    {"prefixOffset", CELL_DISTANCE, 0, offsetof(struct firefox_stack, prefix)},
    {.name = NULL},
};

static const struct table_column frame_columns[] = {
    {"address", CELL_NUMBER, -1, 0},
    {"inlineDepth", CELL_NUMBER, 0, 0},
    {"category", CELL_NUMBER, 0, 0},
    {"subcategory", CELL_NUMBER, 0, 0},
    {"func", CELL_MEMBER, 0, offsetof(struct firefox_frame, function)},
    {.name = "nativeSymbol", .cell = CELL_NULL},
    {"innerWindowID", CELL_NUMBER, 0, 0},
    {"line", CELL_MEMBER_OR_NULL, 0, offsetof(struct firefox_frame, line)},
    {.name = "column", .cell = CELL_NULL},
    {.name = "originalLocation", .cell = CELL_NULL},
    {.name = NULL},
};

static const struct table_column function_columns[] = {
    {"name", CELL_MEMBER, 0, offsetof(struct firefox_function, name)},
    {.name = "isJS", .cell = CELL_FALSE},
    {.name = "relevantForJS", .cell = CELL_FALSE},
    {"resource", CELL_MEMBER, 1, offsetof(struct firefox_function, resource)},
    {"source", CELL_MEMBER_OR_NULL, 1, offsetof(struct firefox_function, source)},
    {.name = "lineNumber", .cell = CELL_NULL},
    {.name = "columnNumber", .cell = CELL_NULL},
    {.name = "originalLocation", .cell = CELL_NULL},
    {.name = NULL},
};

static const struct table_column resource_columns[] = {
    {.name = "lib", .cell = CELL_NULL},
    {.name = "name", .cell = CELL_MEMBER},
    {.name = "host", .cell = CELL_NULL},
    {"type", CELL_NUMBER, RESOURCE_LIBRARY, 0},
    {.name = NULL},
};

static const struct table_column source_columns[] = {
    {.name = "id", .cell = CELL_NULL},
    {.name = "filename", .cell = CELL_MEMBER},
    {"startLine", CELL_NUMBER, 1, 0},
    {"startColumn", CELL_NUMBER, 1, 0},
    {.name = "sourceMapURL", .cell = CELL_NULL},
    {.name = "content", .cell = CELL_NULL},
    {.name = NULL},
};

static void put_shared(const struct firefox *firefox)
{
	struct document *document = firefox->document;

	document_open_object(document, "shared");
	put_table(document, "stackTable", &firefox->stacks, stack_columns);
	put_table(document, "frameTable", &firefox->frames, frame_columns);
	put_table(document, "funcTable", &firefox->functions, function_columns);
	put_table(document, "resourceTable", &firefox->resources, resource_columns);
	put_table(document, "sources", &firefox->sources, source_columns);
	document_raw(document,
		     "\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0},"
		     "\"sourceLocationTable\":{\"source\":[],\"line\":[],\"column\":[],\"length\":0}");
	document_each(document, "stringArray", i, firefox->strings.count)
		document_string(document, NULL, intern_get(&firefox->strings, i, NULL));
	document_close(document);
}

struct mmt_error *export_firefox(const struct export *export, FILE *stream)
{
	const struct mmt_report *report = export->report;
	struct firefox firefox = {.export = export};
	struct intern *tables[] = {&firefox.strings, &firefox.functions, &firefox.frames,
				   &firefox.stacks,  &firefox.resources, &firefox.sources};
	struct export_track tracks[EXPORT_TRACKS];
	struct mmt_error *error = document_create(stream, DOCUMENT_COMPACT, &firefox.document);

	firefox.row_stacks = calloc(report->row_count + 1, sizeof(*firefox.row_stacks));
	firefox.failed = error || !firefox.row_stacks;
	export_events_sort_by_process(report, &export->events);
	(void)put_text(&firefox, "mark");
	(void)put_text(&firefox, OOM_KILL);
	for (size_t i = 0; i < report->row_count && !firefox.failed; i++)
		put_row(&firefox, i);
	if (!error && firefox.failed)
		error = &error_no_memory;
	if (!error) {
		put_meta(&firefox);
		document_open_array(firefox.document, "libs");
		document_close(firefox.document);
		put_shared(&firefox);
		document_each_object(firefox.document, "threads", i, report->process_count)
			put_thread(&firefox, i);
		export_tracks(export, tracks);
		document_each(firefox.document, "counters", i, EXPORT_TRACKS)
			put_track(&firefox, &tracks[i]);
		error = document_finish(firefox.document);
	}
	document_destroy(firefox.document);
	free(firefox.row_stacks);
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		intern_deinit(tables[i]);
	return error;
}
