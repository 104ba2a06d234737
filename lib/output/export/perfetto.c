// SPDX-License-Identifier: LGPL-2.1-or-later
/* A trace for Perfetto, packet by packet. Stacks appear twice: as heap profiles, one for each class, which every
 * version of the viewer shows as flame graphs; and as samples weighted by the unfreed bytes of each allocation, which
 * version 58 and later show for any selected time range. Each heap has its own packet sequence, because the viewer
 * confuses heaps in one sequence. All times are of CLOCK_MONOTONIC. */
#include <mmtrace/output.h>

#include "base/figures.h"
#include "base/limits.h"
#include "output/export/export-report.h"

#define TRACE_PACKET 1 /* the only field of a trace */
#define MAPPING_END (1ull << 47)
#define HEAP_NAME_BYTES 32

/* clang-format off */
enum packet_field {
	PACKET_PROCESS_TREE = 2, PACKET_CLOCK_SNAPSHOT = 6, PACKET_TIMESTAMP = 8, PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11, PACKET_INTERNED_DATA = 12, PACKET_SEQUENCE_FLAGS = 13, PACKET_PROFILE = 37,
	PACKET_TIMESTAMP_CLOCK_ID = 58, PACKET_TRACK_DESCRIPTOR = 60, PACKET_STACK_SAMPLE = 135
};

enum sequence_flag { SEQUENCE_STATE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };
enum clock_id { CLOCK_ID_REALTIME = 1, CLOCK_ID_MONOTONIC = 3, CLOCK_ID_MONOTONIC_COARSE = 4, CLOCK_ID_BOOTTIME = 6 };
enum snapshot_field { SNAPSHOT_CLOCKS = 1, SNAPSHOT_PRIMARY_CLOCK = 2 };
enum clock_field { CLOCK_CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };

enum interned_field {
	INTERNED_FUNCTION_NAMES = 5, INTERNED_FRAMES = 6, INTERNED_CALLSTACKS = 7, INTERNED_BUILD_IDS = 16,
	INTERNED_MAPPING_PATHS = 17, INTERNED_MAPPINGS = 19
};

enum string_field { STRING_IID = 1, STRING_STR = 2 };

enum perfetto_mapping_field {
	MAPPING_IID = 1, MAPPING_BUILD_ID = 2, MAPPING_END_ADDRESS = 5, MAPPING_PATH_STRING_IDS = 7
};

enum perfetto_frame_field { FRAME_IID = 1, FRAME_FUNCTION_NAME_ID = 2, FRAME_MAPPING_ID = 3, FRAME_REL_PC = 4 };
enum callstack_field { CALLSTACK_IID = 1, CALLSTACK_FRAME_IDS = 2 };
enum perfetto_profile_field { PROFILE_PROCESS_DUMPS = 5, PROFILE_INDEX = 7 };
enum dump_field { DUMP_PID = 1, DUMP_SAMPLES = 2, DUMP_TIMESTAMP = 9, DUMP_HEAP_NAME = 11, DUMP_INTERVAL_BYTES = 12 };

enum heap_sample_field {
	HEAP_SAMPLE_CALLSTACK_ID = 1, HEAP_SAMPLE_SELF_ALLOCATED = 2, HEAP_SAMPLE_SELF_FREED = 3,
	HEAP_SAMPLE_ALLOC_COUNT = 5, HEAP_SAMPLE_FREE_COUNT = 6
};

/* Field 5 is a different message, of frames with texts. */
enum stack_sample_field {
	STACK_SAMPLE_TASK_CONTEXT = 1, STACK_SAMPLE_CALLSTACK_IID = 6, STACK_SAMPLE_PRIMARY_DESCRIPTOR = 9,
	STACK_SAMPLE_PRIMARY_WEIGHT = 11
};

enum task_field { TASK_PID = 2, TASK_TID = 3 };
enum descriptor_field { DESCRIPTOR_NAME = 2, DESCRIPTOR_UNIT = 3 };
#define DESCRIPTOR_UNIT_BYTES 4
enum tree_field { TREE_PROCESSES = 1, TREE_THREADS = 2 };
enum process_field { PROCESS_PID = 1, PROCESS_PPID = 2, PROCESS_CMDLINE = 3 };
enum thread_field { THREAD_TID = 1, THREAD_NAME = 2, THREAD_TGID = 3 };
enum track_field { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_COUNTER = 8 };
enum counter_field { COUNTER_UNIT = 3 };
#define COUNTER_UNIT_BYTES 3

enum event_field {
	EVENT_TYPE = 9, EVENT_TRACK_UUID = 11, EVENT_CATEGORIES = 22, EVENT_NAME = 23, EVENT_COUNTER_VALUE = 30
};
/* clang-format on */

enum event_type { EVENT_INSTANT = 3, EVENT_COUNTER = 4 };

/* Packet sequences; those of heaps start with the last one. */
enum sequence { SEQUENCE_COMMON = 1, SEQUENCE_SAMPLES = 2, SEQUENCE_HEAPS = 16 };

/* Tracks */
enum track_uuid { UUID_COUNTERS = 1, UUID_OOM_KILLS = UUID_COUNTERS + EXPORT_TRACKS };

struct perfetto_frame {
	uint64_t function, mapping, rel_pc;
};

/* Parts [first, end) of the report, which are of one row and process. */
struct part_run {
	size_t first, end, process;
};

struct perfetto {
	const struct export *export;
	FILE *stream;
	VECTOR(struct part_run) runs; /* sorted by process */
	struct intern strings, mappings, frames,
	    stacks; /* the interned data of the current sequence; stacks: of rows */
	struct buffer packet, message, inner, interned, callstack, profile, out;
	bool failed;
};

/* Write a packet with a message, which is cleared. `flags`: 0: none. */
static void put_packet(struct perfetto *perfetto, uint32_t sequence, uint64_t time_ns, enum sequence_flag flags,
		       enum packet_field field, struct buffer *message)
{
	struct buffer *packet = &perfetto->packet;

	protobuf_number(packet, PACKET_TIMESTAMP, time_ns);
	protobuf_number(packet, PACKET_TIMESTAMP_CLOCK_ID, CLOCK_ID_MONOTONIC);
	protobuf_number(packet, PACKET_SEQUENCE_ID, sequence);
	if (flags)
		protobuf_number(packet, PACKET_SEQUENCE_FLAGS, flags);
	protobuf_message(packet, field, message);
	protobuf_message(&perfetto->out, TRACE_PACKET, packet);
	fwrite(perfetto->out.data, 1, perfetto->out.size, perfetto->stream);
	buffer_clear(&perfetto->out);
}

/* The same of SEQUENCE_COMMON, with perfetto->message. */
static void put_common(struct perfetto *perfetto, uint64_t time_ns, enum packet_field field)
{
	put_packet(perfetto, SEQUENCE_COMMON, time_ns, 0, field, &perfetto->message);
}

/* Add a string to the interned data. All kinds of strings are numbered in one table. */
static uint64_t put_string(struct perfetto *perfetto, enum interned_field field, const char *text)
{
	uint64_t id;
	bool is_new;

	buffer_clear(&perfetto->inner);
	buffer_put_u8(&perfetto->inner, (uint8_t)field);
	buffer_put_string(&perfetto->inner, text);
	is_new = export_is_new(&perfetto->strings, perfetto->inner.data, perfetto->inner.size, &id, &perfetto->failed);
	buffer_clear(&perfetto->inner);
	if (!is_new)
		return id;
	protobuf_number(&perfetto->inner, STRING_IID, id);
	protobuf_string(&perfetto->inner, STRING_STR, text);
	protobuf_message(&perfetto->interned, field, &perfetto->inner);
	return id;
}

static uint64_t put_mapping(struct perfetto *perfetto, const struct mmt_frame *frame)
{
	const char *path = !frame		? "[mmtrace]"
			   : frame->module_path ? frame->module_path
			   : frame->module	? frame->module
						: "[unknown]";
	uint64_t name = put_string(perfetto, INTERNED_MAPPING_PATHS, path), build_id = 0, id;
	const char *text;

	if (!export_is_new(&perfetto->mappings, &name, sizeof(name), &id, &perfetto->failed))
		return id;
	text = export_build_id(perfetto->export, path);
	build_id = put_string(perfetto, INTERNED_BUILD_IDS, text ? text : "");
	protobuf_number(&perfetto->inner, MAPPING_IID, id);
	protobuf_number(&perfetto->inner, MAPPING_BUILD_ID, build_id);
	protobuf_number(&perfetto->inner, MAPPING_END_ADDRESS, MAPPING_END);
	protobuf_number(&perfetto->inner, MAPPING_PATH_STRING_IDS, name);
	protobuf_message(&perfetto->interned, INTERNED_MAPPINGS, &perfetto->inner);
	return id;
}

static uint64_t put_frame(struct perfetto *perfetto, const char *name, const struct mmt_frame *frame)
{
	struct perfetto_frame key = {.function = put_string(perfetto, INTERNED_FUNCTION_NAMES, name),
				     .mapping = put_mapping(perfetto, frame)};
	uint64_t id;

	if (frame)
		key.rel_pc = frame->kind == MMT_FRAME_NATIVE ? frame->module_offset : frame->address;
	if (!export_is_new(&perfetto->frames, &key, sizeof(key), &id, &perfetto->failed))
		return id;
	protobuf_number(&perfetto->inner, FRAME_IID, id);
	protobuf_number(&perfetto->inner, FRAME_FUNCTION_NAME_ID, key.function);
	protobuf_number(&perfetto->inner, FRAME_MAPPING_ID, key.mapping);
	protobuf_number(&perfetto->inner, FRAME_REL_PC, key.rel_pc);
	protobuf_message(&perfetto->interned, INTERNED_FRAMES, &perfetto->inner);
	return id;
}

static uint64_t put_callstack(struct perfetto *perfetto, size_t row)
{
	struct export_stack stack;
	uint64_t id;

	if (!export_is_new(&perfetto->stacks, &row, sizeof(row), &id, &perfetto->failed))
		return id;
	buffer_clear(&perfetto->callstack);
	protobuf_number(&perfetto->callstack, CALLSTACK_IID, id);
	export_stack_begin(&stack, &perfetto->export->report->rows[row]);
	while (export_stack_next(&stack)) /* outermost first */
		protobuf_number(&perfetto->callstack, CALLSTACK_FRAME_IDS,
				put_frame(perfetto, stack.name, stack.frame));
	protobuf_message(&perfetto->interned, INTERNED_CALLSTACKS, &perfetto->callstack);
	return id;
}

static void begin_sequence(struct perfetto *perfetto)
{
	intern_deinit(&perfetto->strings);
	intern_deinit(&perfetto->mappings);
	intern_deinit(&perfetto->frames);
	intern_deinit(&perfetto->stacks);
	buffer_clear(&perfetto->interned);
}

static void put_processes(struct perfetto *perfetto)
{
	const struct mmt_report *report = perfetto->export->report;

	array_each(process, report->processes, report->process_count) {
		protobuf_number(&perfetto->inner, PROCESS_PID, (uint64_t)process->pid);
		protobuf_number(&perfetto->inner, PROCESS_PPID, (uint64_t)process->parent_pid);
		protobuf_string(&perfetto->inner, PROCESS_CMDLINE, process->name ? process->name : "");
		protobuf_message(&perfetto->message, TREE_PROCESSES, &perfetto->inner);
	}
	for (size_t i = 0; i < report->thread_total_count; i++) {
		const struct mmt_thread *thread = &report->thread_totals[i].thread;

		protobuf_number(&perfetto->inner, THREAD_TID, (uint64_t)thread->tid);
		protobuf_string(&perfetto->inner, THREAD_NAME, thread->name);
		protobuf_number(&perfetto->inner, THREAD_TGID, (uint64_t)thread->pid);
		protobuf_message(&perfetto->message, TREE_THREADS, &perfetto->inner);
	}
	put_common(perfetto, report->start_ns, PACKET_PROCESS_TREE);
}

/* Put the heap of the process that the run `first` is of. Returns the first run of the next process. */
static size_t put_dump(struct perfetto *perfetto, size_t first, enum mmt_class memory_class)
{
	const struct mmt_report *report = perfetto->export->report;
	size_t process = perfetto->runs.items[first].process, i = first;
	struct buffer *message = &perfetto->message, *inner = &perfetto->inner;
	char text[HEAP_NAME_BYTES];

	buffer_clear(message);
	for (; i < perfetto->runs.count && perfetto->runs.items[i].process == process; i++) {
		const struct part_run *run = &perfetto->runs.items[i];
		struct mmt_part sum = {.row = report->parts[run->first].row};
		bool uncounted;

		for (size_t j = run->first; j < run->end; j++) {
			if (report->parts[j].memory_class == memory_class)
				figures_add_to_part(&sum, &report->parts[j]);
		}
		if (!sum.allocated_bytes)
			continue;
		/* The viewer hides stacks without a live allocation; lost calls have no count, so count one. */
		uncounted = sum.unfreed_bytes && !sum.unfreed_count;
		protobuf_number(inner, HEAP_SAMPLE_CALLSTACK_ID, put_callstack(perfetto, sum.row));
		protobuf_number(inner, HEAP_SAMPLE_SELF_ALLOCATED, sum.allocated_bytes);
		protobuf_number(inner, HEAP_SAMPLE_SELF_FREED, sum.freed_bytes);
		protobuf_number(inner, HEAP_SAMPLE_ALLOC_COUNT, sum.allocated_count + uncounted);
		protobuf_number(inner, HEAP_SAMPLE_FREE_COUNT, sum.freed_count);
		protobuf_message(message, DUMP_SAMPLES, inner);
	}
	if (!message->size)
		return i;
	protobuf_number(message, DUMP_PID, (uint64_t)report->processes[process].pid);
	protobuf_number(message, DUMP_TIMESTAMP, report->to_ns);
	/* Use only letters and dots: the viewer puts the name into a query. */
	snprintf(text, sizeof(text), "%s", mmt_class_name(memory_class));
	for (char *position = text; *position; position++) {
		if (*position == '-')
			*position = '.';
	}
	protobuf_string(message, DUMP_HEAP_NAME, text);
	protobuf_number(message, DUMP_INTERVAL_BYTES, 1);
	protobuf_message(&perfetto->profile, PROFILE_PROCESS_DUMPS, message);
	return i;
}

/* Interned data must precede the packets that refer to it, in a separate packet. */
static void put_interned(struct perfetto *perfetto, uint32_t sequence, enum sequence_flag flags)
{
	put_packet(perfetto, sequence, perfetto->export->report->start_ns, flags, PACKET_INTERNED_DATA,
		   &perfetto->interned);
}

COMPARISON(compare_runs, struct part_run, order_of(a->process, b->process) ?: order_of(a->first, b->first))

static struct mmt_error *put_heaps(struct perfetto *perfetto)
{
	const struct mmt_report *report = perfetto->export->report;
	struct part_run run = {0};
	struct mmt_part sum;

	while (export_next(report, &run.end, &run.first, &sum)) {
		run.process = sum.process;
		if (!vector_push(&perfetto->runs, run))
			return &error_no_memory;
	}
	vector_sort(&perfetto->runs, compare_runs);
	for (enum mmt_class memory_class = 0; memory_class < MMT_CLASS_KINDS; memory_class++) {
		begin_sequence(perfetto);
		for (size_t i = 0; i < perfetto->runs.count;)
			i = put_dump(perfetto, i, memory_class);
		if (!perfetto->profile.size)
			continue;
		protobuf_number(&perfetto->profile, PROFILE_INDEX, 0);
		put_interned(perfetto, SEQUENCE_HEAPS + memory_class, SEQUENCE_STATE_CLEARED);
		put_packet(perfetto, SEQUENCE_HEAPS + memory_class, report->to_ns, SEQUENCE_NEEDS_STATE, PACKET_PROFILE,
			   &perfetto->profile);
	}
	return NULL;
}

static void put_stack_sample(struct perfetto *perfetto, const struct export_event *event)
{
	const struct mmt_report *report = perfetto->export->report;
	const struct mmt_thread *thread = &report->parts[event->part].thread;
	struct buffer *message = &perfetto->message, *inner = &perfetto->inner;
	uint64_t callstack = put_callstack(perfetto, report->parts[event->part].row);

	if (perfetto->interned.size)
		put_interned(perfetto, SEQUENCE_SAMPLES, SEQUENCE_NEEDS_STATE);
	protobuf_number(inner, TASK_PID, (uint64_t)thread->pid);
	protobuf_number(inner, TASK_TID, (uint64_t)(thread->tid ? thread->tid : thread->pid));
	protobuf_message(message, STACK_SAMPLE_TASK_CONTEXT, inner);
	protobuf_number(message, STACK_SAMPLE_CALLSTACK_IID, callstack);
	protobuf_string(inner, DESCRIPTOR_NAME, "unfreed");
	protobuf_number(inner, DESCRIPTOR_UNIT, DESCRIPTOR_UNIT_BYTES);
	protobuf_message(message, STACK_SAMPLE_PRIMARY_DESCRIPTOR, inner);
	protobuf_number(message, STACK_SAMPLE_PRIMARY_WEIGHT, export_event_lifetime(report, event)->bytes);
	put_packet(perfetto, SEQUENCE_SAMPLES, export_step_ns(report, event->step), SEQUENCE_NEEDS_STATE,
		   PACKET_STACK_SAMPLE, message);
}

/* Write a track. `field`: that of the message in perfetto->inner; 0: there is none. */
static void put_track(struct perfetto *perfetto, uint64_t uuid, const char *name, uint32_t field)
{
	protobuf_number(&perfetto->message, TRACK_UUID, uuid);
	protobuf_string(&perfetto->message, TRACK_NAME, name);
	if (field)
		protobuf_message(&perfetto->message, field, &perfetto->inner);
	put_common(perfetto, perfetto->export->report->start_ns, PACKET_TRACK_DESCRIPTOR);
}

/* `bytes`: of EVENT_COUNTER. */
static void put_event(struct perfetto *perfetto, uint64_t time_ns, uint64_t track, enum event_type type,
		      const char *name, uint64_t bytes)
{
	protobuf_number(&perfetto->message, EVENT_TYPE, type);
	protobuf_number(&perfetto->message, EVENT_TRACK_UUID, track);
	if (name) {
		protobuf_string(&perfetto->message, EVENT_CATEGORIES, "mmtrace");
		protobuf_string(&perfetto->message, EVENT_NAME, name);
	}
	if (type == EVENT_COUNTER)
		protobuf_number(&perfetto->message, EVENT_COUNTER_VALUE, bytes);
	put_common(perfetto, time_ns, PACKET_TRACK_EVENT);
}

struct mmt_error *export_perfetto(const struct export *export, FILE *stream)
{
	static const enum clock_id clocks[] = {CLOCK_ID_REALTIME, CLOCK_ID_MONOTONIC, CLOCK_ID_MONOTONIC_COARSE,
					       CLOCK_ID_BOOTTIME};
	struct perfetto perfetto = {.export = export, .stream = stream};
	struct buffer *buffers[] = {&perfetto.packet,	 &perfetto.message, &perfetto.inner, &perfetto.interned,
				    &perfetto.callstack, &perfetto.profile, &perfetto.out};
	size_t count = sizeof(buffers) / sizeof(*buffers);
	const struct mmt_report *report = export->report;
	struct export_track tracks[EXPORT_TRACKS];
	struct mmt_error *error;
	char text[MMT_OOM_KILL_TEXT];

	export_begin_buffers(buffers, count);
	for (size_t i = report->start_realtime_ns ? 0 : 1; i < sizeof(clocks) / sizeof(*clocks); i++) {
		protobuf_number(&perfetto.inner, CLOCK_CLOCK_ID, clocks[i]);
		protobuf_number(&perfetto.inner, CLOCK_TIMESTAMP, i ? report->start_ns : report->start_realtime_ns);
		protobuf_message(&perfetto.message, SNAPSHOT_CLOCKS, &perfetto.inner);
	}
	protobuf_number(&perfetto.message, SNAPSHOT_PRIMARY_CLOCK, CLOCK_ID_MONOTONIC);
	put_common(&perfetto, report->start_ns, PACKET_CLOCK_SNAPSHOT);
	put_processes(&perfetto);
	error = put_heaps(&perfetto);
	begin_sequence(&perfetto);
	put_interned(&perfetto, SEQUENCE_SAMPLES, SEQUENCE_STATE_CLEARED);
	for (size_t i = 0; i < export->events.count; i++) {
		if (export_is_unfreed(export->report, &export->events.items[i]))
			put_stack_sample(&perfetto, &export->events.items[i]);
	}
	export_tracks(report, tracks);
	for (unsigned i = 0; i < EXPORT_TRACKS; i++) {
		const struct export_track *track = &tracks[i];

		if (!track->count)
			continue;
		protobuf_number(&perfetto.inner, COUNTER_UNIT, COUNTER_UNIT_BYTES);
		put_track(&perfetto, UUID_COUNTERS + i, track->name, TRACK_COUNTER);
		for (size_t j = 0; j < track->count; j++)
			put_event(&perfetto, export_track_value(track, j, track->time), UUID_COUNTERS + i,
				  EVENT_COUNTER, NULL, export_track_value(track, j, track->bytes));
	}
	if (report->oom_kill_count)
		put_track(&perfetto, UUID_OOM_KILLS, "OOM kills", 0);
	for (size_t i = 0; i < report->oom_kill_count; i++) {
		put_event(&perfetto, report->oom_kills[i].time_ns, UUID_OOM_KILLS, EVENT_INSTANT,
			  mmt_oom_kill_describe(&report->oom_kills[i], text), 0);
	}
	error = export_end_buffers(buffers, count, perfetto.failed, error);
	begin_sequence(&perfetto);
	vector_deinit(&perfetto.runs);
	return error;
}
