// SPDX-License-Identifier: LGPL-2.1-or-later
/* The processed profile format of Firefox Profiler, version 66. Each process is one thread with nativeAllocations,
 * because the viewer matches addresses within a thread to find what a selected range retains. Each lifetime has its
 * number as a unique address. */
#include <inttypes.h>

#include "base/vector.h"
#include "output/json/json-document.h"
#include "output/selection.h"

#define FORMAT_VERSION 66
#define GECKO_VERSION 24
#define ADDRESS_UNIT 4096
#define NO_STACK UINT32_MAX
#define OOM_KILL "OOM kill"
#define RESOURCE_LIBRARY "1"

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
	size_t next;							      /* event */
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

/* Arrays of one constant each. */
static void put_constants(struct document *document, size_t count, const char *constant, const char *const *keys)
{
	for (; *keys; keys++)
		document_each(document, *keys, i, count)
			document_raw(document, constant);
}

#define PUT_CONSTANTS(document, count, constant, ...)                                                                  \
	put_constants(document, count, constant, (const char *const[]){__VA_ARGS__, NULL})

/* An allocation or a release; as samples, what is still mapped, with an empty sample at each end. */
struct firefox_event {
	uint64_t time_ns, stack, address;
	int64_t bytes;
	int32_t tid;
};

typedef VECTOR(struct firefox_event) firefox_events;

static bool add_event(const struct firefox *firefox, const struct export_event *event, firefox_events *events)
{
	const struct mmt_report *report = firefox->export->report;
	const struct mmt_part *part = &report->parts[event->part];
	uint64_t size = export_event_lifetime(report, event)->bytes;
	int64_t bytes = size < INT64_MAX ? (int64_t)size : INT64_MAX;
	uint64_t time_ns = subtract(export_step_ns(report, event->step), report->from_ns);

	return vector_push(events, ((struct firefox_event){.time_ns = time_ns,
							   .stack = firefox->row_stacks[part->row],
							   .address = ((uint64_t)event->number + 1) * ADDRESS_UNIT,
							   .bytes = event->is_release ? -bytes : bytes,
							   .tid = part->thread.tid}));
}

static void close_table(struct document *document, size_t count)
{
	document_unsigned(document, "length", count);
	document_close(document);
}

/* Write the events of the process with this place, which are the next ones: what is still mapped as samples, which the
 * viewer opens on. The empty ones make it show the range of the window. False: out of memory. */
static bool put_events(struct firefox *firefox, size_t place)
{
	const struct mmt_report *report = firefox->export->report;
	const struct export_events *all = &firefox->export->events;
	struct firefox_event end = {.stack = MMT_UNKNOWN};
	struct document *document = firefox->document;
	firefox_events samples = {0}, events = {0};
	bool ok = vector_push(&samples, end);

	for (; firefox->next < all->count; firefox->next++) {
		const struct export_event *event = &all->items[firefox->next];

		if (report->parts[event->part].process != place)
			break;
		ok = ok && add_event(firefox, event, &events) &&
		     (!export_is_unfreed(report, event) || add_event(firefox, event, &samples));
	}
	end.time_ns = subtract(report->to_ns, report->from_ns);
	ok = ok && vector_push(&samples, end);
#define PUT_EVENTS(key, list, put, member)                                                                             \
	document_each(document, key, i, list.count)                                                                    \
		put(document, NULL, list.items[i].member);
	document_open_object(document, "samples");
	PUT_EVENTS("stack", samples, document_unsigned, stack)
	PUT_EVENTS("time", samples, document_milliseconds, time_ns)
	PUT_EVENTS("weight", samples, document_signed, bytes)
	document_string(document, "weightType", "bytes");
	close_table(document, samples.count);
	if (events.count) {
		document_open_object(document, "nativeAllocations");
		PUT_EVENTS("time", events, document_milliseconds, time_ns)
		PUT_EVENTS("weight", events, document_signed, bytes)
		document_string(document, "weightType", "bytes");
		PUT_EVENTS("stack", events, document_unsigned, stack)
		PUT_EVENTS("memoryAddress", events, document_unsigned, address)
		PUT_EVENTS("threadId", events, document_signed, tid)
		close_table(document, events.count);
	}
	vector_deinit(&samples);
	vector_deinit(&events);
	return ok;
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
	struct document *document = firefox->document;
	size_t first = place ? report->oom_kill_count : 0, count;

	document_raw(document, "\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
			       "\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],"
			       "\"showMarkersInTimeline\":true");
	document_string(document, "name", selection_process_name(process));
	document_bool(document, "isMainThread", true);
	document_string(document, "processName", process->name);
	put_pid(document, "pid", process->pid);
	put_pid(document, "tid", process->pid);
	firefox->failed |= !put_events(firefox, place);
	/* The OOM kills of the window, in the first thread only. */
	while (first < report->oom_kill_count && report->oom_kills[first].time_ns < report->from_ns)
		first++;
	count = report->oom_kill_count - first;
	document_open_object(document, "markers");
	document_each_object(document, "data", i, count)
		document_string(document, "type", OOM_KILL);
	document_each(document, "name", i, count)
		document_unsigned(document, NULL, intern_find(&firefox->strings, OOM_KILL, sizeof(OOM_KILL)));
	document_each(document, "startTime", i, count)
		document_milliseconds(document, NULL, subtract(report->oom_kills[first + i].time_ns, report->from_ns));
	PUT_CONSTANTS(document, count, "null", "endTime");
	PUT_CONSTANTS(document, count, "0", "phase", "category");
	close_table(document, count);
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
		     "\"markerSchema\":[{\"name\":\"" OOM_KILL "\","
		     "\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\",\"timeline-memory\"],"
		     "\"fields\":[]}]");
	document_close(document);
}

/* The format stores differences. */
static void put_track(const struct firefox *firefox, const struct export_track *track)
{
	const struct mmt_report *report = firefox->export->report;
	struct document *document = firefox->document;
	uint64_t before = 0;

	if (!track->count || !report->process_count)
		return;
	document_open_object(document, NULL);
	document_string(document, "name", track->name);
	document_string(document, "category", "Memory");
	document_string(document, "description", track->description);
	put_pid(document, "pid", report->processes[0].pid);
	document_unsigned(document, "mainThreadIndex", 0);
	document_open_object(document, "samples");
	document_each(document, "time", i, track->count)
		document_milliseconds(document, NULL,
				      subtract(export_track_value(track, i, track->time), report->from_ns));
	document_each(document, "count", i, track->count) {
		uint64_t bytes = export_track_value(track, i, track->bytes);

		document_signed(document, NULL, (int64_t)(bytes - before));
		before = bytes;
	}
	close_table(document, track->count);
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

static void put_shared(const struct firefox *firefox)
{
	struct document *document = firefox->document;
	size_t count = firefox->stacks.count;

#define PUT_KEYS(key, table, type, put, value)                                                                         \
	document_each(document, key, i, firefox->table.count) {                                                        \
		const type *item = intern_get(&firefox->table, i, NULL);                                               \
                                                                                                                       \
		put(document, NULL, value);                                                                            \
	}
	document_open_object(document, "shared");
	document_open_object(document, "stackTable");
	PUT_KEYS("frame", stacks, struct firefox_stack, document_unsigned, item->frame)
	PUT_KEYS("prefixOffset", stacks, struct firefox_stack, document_unsigned,
		 item->prefix ? i + 1 - item->prefix : 0)
	close_table(document, count);
	document_open_object(document, "frameTable");
	count = firefox->frames.count;
	PUT_CONSTANTS(document, count, "-1", "address");
	PUT_CONSTANTS(document, count, "0", "inlineDepth", "category", "subcategory");
	PUT_KEYS("func", frames, struct firefox_frame, document_unsigned, item->function)
	PUT_CONSTANTS(document, count, "null", "nativeSymbol");
	PUT_CONSTANTS(document, count, "0", "innerWindowID");
	PUT_KEYS("line", frames, struct firefox_frame, document_unsigned, item->line ? item->line : MMT_UNKNOWN)
	PUT_CONSTANTS(document, count, "null", "column", "originalLocation");
	close_table(document, count);
	document_open_object(document, "funcTable");
	count = firefox->functions.count;
	PUT_KEYS("name", functions, struct firefox_function, document_unsigned, item->name)
	PUT_CONSTANTS(document, count, "false", "isJS", "relevantForJS");
	PUT_KEYS("resource", functions, struct firefox_function, document_signed, item->resource - INT64_C(1))
	PUT_KEYS("source", functions, struct firefox_function, document_unsigned,
		 item->source ? item->source - UINT64_C(1) : MMT_UNKNOWN)
	PUT_CONSTANTS(document, count, "null", "lineNumber", "columnNumber", "originalLocation");
	close_table(document, count);
	document_open_object(document, "resourceTable");
	count = firefox->resources.count;
	PUT_CONSTANTS(document, count, "null", "lib");
	PUT_KEYS("name", resources, uint32_t, document_unsigned, *item)
	PUT_CONSTANTS(document, count, "null", "host");
	PUT_CONSTANTS(document, count, RESOURCE_LIBRARY, "type");
	close_table(document, count);
	document_open_object(document, "sources");
	count = firefox->sources.count;
	PUT_CONSTANTS(document, count, "null", "id");
	PUT_KEYS("filename", sources, uint32_t, document_unsigned, *item)
	PUT_CONSTANTS(document, count, "1", "startLine", "startColumn");
	PUT_CONSTANTS(document, count, "null", "sourceMapURL", "content");
	close_table(document, count);
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
	struct document document;
	struct firefox firefox = {.export = export, .document = &document};
	struct intern *tables[] = {&firefox.strings, &firefox.functions, &firefox.frames,
				   &firefox.stacks,  &firefox.resources, &firefox.sources};
	struct export_track tracks[EXPORT_TRACKS];

	firefox.row_stacks = calloc(report->row_count + 1, sizeof(*firefox.row_stacks));
	firefox.failed = !firefox.row_stacks;
	export_events_sort_by_process(report, &export->events);
	(void)put_text(&firefox, OOM_KILL);
	for (size_t i = 0; i < report->row_count && !firefox.failed; i++)
		put_row(&firefox, i);
	if (!firefox.failed) {
		document_start(&document, stream, DOCUMENT_COMPACT);
		put_meta(&firefox);
		document_open_array(firefox.document, "libs");
		document_close(firefox.document);
		put_shared(&firefox);
		document_each_object(firefox.document, "threads", i, report->process_count)
			put_thread(&firefox, i);
		export_tracks(report, tracks);
		document_each(firefox.document, "counters", i, EXPORT_TRACKS)
			put_track(&firefox, &tracks[i]);
		document_finish(&document);
	}
	free(firefox.row_stacks);
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		intern_deinit(tables[i]);
	return firefox.failed ? &error_no_memory : NULL;
}
