// SPDX-License-Identifier: LGPL-2.1-or-later
/* The public reader of events, one after another. A report reads a recording with replay/replay.c instead. */
#include <stdlib.h>

#include <mmtrace/events.h>

#include "analysis/replay/replay.h"
#include "analysis/resolver/resolver.h"
#include "base/errors.h"
#include "base/vector.h"
#include "base/saturating-sum.h"
#include "trace/read/decode.h"
#include "trace/read/reader.h"
#include "trace/read/records.h"

/* The stacks of all calls; the requested ones with their frames. */
struct event_stacks {
	bool found;
	struct replay replay;
	named_frames frames; /* of `stack` */
	struct mmt_stack stack;
};

struct mmt_events {
	struct reader *reader;
	const struct reader_metadata *metadata;
	struct mmt_recording recording;
	struct mmt_event_attribute *attributes;
	struct mmt_events_state state;
	struct mmt_progress progress;	  /* a copy of the caller's */
	struct mmt_report_options report; /* for the stacks; its `progress` is NULL if none is wanted */
	uint32_t until_progress;	  /* events */
	uint64_t calls;			  /* see call_stacks_counts() */
	bool ended;
	struct event_stacks stacks;

	/* The event returned last. */
	struct event internal;
	struct mmt_event event;
	struct mmt_event_call call;
	struct mmt_event_stack stack;
	struct mmt_register registers[REGISTER_NUMBERS];
};

static const char *name_snapshot(enum snapshot_kind kind)
{
	static const char *const names[SNAPSHOT_KINDS] = {
	    [SNAPSHOT_START] = "start",	      [SNAPSHOT_FIRST] = "first", [SNAPSHOT_EXEC] = "exec",
	    [SNAPSHOT_INTERVAL] = "interval", [SNAPSHOT_STOP] = "stop",
	};

	return names[kind];
}

static struct mmt_error *prepare(struct mmt_events *events, const struct mmt_progress *progress)
{
	static const char *const roles[] = {
	    [ROLE_OTHER] = "other",	    [ROLE_SYSCALL] = "syscall",
	    [ROLE_DUMP] = "stack-dump",	    [ROLE_NEW_TASK] = "new-task",
	    [ROLE_SIDE_BAND] = "side-band", [ROLE_SNAPSHOT] = "snapshot",
	    [ROLE_LOCK] = "lock",	    [ROLE_LARGE_DUMP] = "large-stack-dump",
	    [ROLE_FAULT] = "page-fault",
	};
	const struct reader_metadata *metadata = reader_metadata(events->reader);

	events->metadata = metadata;
	events->recording = (struct mmt_recording){
	    .by_mmtrace = metadata->ours,
	    .architecture = metadata->architecture->name,
	    .host = metadata->host,
	    .kernel = metadata->kernel,
	    .recorder = metadata->version,
	    .command_line = metadata->command_line,
	    .on_cpus = metadata->info.on_cpus,
	    .all_processes = metadata->info.all_processes,
	    .in_cgroups = metadata->info.in_cgroups,
	    .attribute_count = metadata->attribute_count,
	};
	mmt_report_options_init(&events->report);
	if (progress) {
		events->progress = *progress;
		events->report.progress = &events->progress;
	}
	events->until_progress = PROGRESS_EVENTS;
	events->attributes = calloc(metadata->attribute_count + 1, sizeof(*events->attributes));
	for (size_t i = 0; events->attributes && i < metadata->attribute_count; i++) {
		const struct reader_attribute *attribute = &metadata->attributes[i];
		bool has_lost = metadata->has_loss && i < metadata->loss.lost.count;

		events->attributes[i] = (struct mmt_event_attribute){
		    .name = attribute->name,
		    .role = roles[attribute->role],
		    .sample_type = attribute->sample_type,
		    .has_lost = has_lost,
		    .lost = has_lost ? metadata->loss.lost.items[i] : 0,
		};
	}
	return events->attributes ? NULL : &error_no_memory;
}

struct mmt_error *mmt_events_open(const char *path, const struct mmt_progress *progress, struct mmt_events **events_ret)
{
	struct mmt_events *events = calloc(1, sizeof(*events));
	struct mmt_error *error;

	if (!events)
		return &error_no_memory;
	error = reader_open(path, progress, &events->reader);
	if (!error)
		error = prepare(events, progress);
	if (error)
		mmt_events_close(events);
	else
		*events_ret = events;
	return error;
}

void mmt_events_close(struct mmt_events *events)
{
	if (!events)
		return;
	if (events->stacks.found)
		replay_deinit(&events->stacks.replay);
	vector_deinit(&events->stacks.frames);
	reader_close(events->reader);
	free(events->attributes);
	free(events);
}

const struct mmt_recording *mmt_events_get_recording(const struct mmt_events *events)
{
	return &events->recording;
}

const struct mmt_event_attribute *mmt_events_get_attribute(const struct mmt_events *events, size_t attribute)
{
	return attribute < events->recording.attribute_count ? &events->attributes[attribute] : NULL;
}

const struct mmt_heap_census *mmt_events_get_heap(const struct mmt_events *events, size_t index)
{
	const struct heap_censuses *heaps = &events->metadata->heaps;

	return index < heaps->items.count ? &heaps->items.items[index] : NULL;
}

static void convert_call(struct mmt_events *events)
{
	const struct event *event = &events->internal;
	const struct call_description *description = call_describe(event->call.call);
	bool enters = event->kind == EVENT_CALL_ENTER;
	bool at_result = description->place == CALL_AT_RESULT || event->call.call == CALL_MREMAP;
	int64_t result = enters ? 0 : event->call.result;

	events->call = (struct mmt_event_call){
	    .name = description->name,
	    .has_arguments = event->call.has_arguments,
	    .argument_count = description->arguments,
	    .advice = description->advice,
	    .arguments = event->call.arguments,
	    .result = result,
	    .failed = call_is_error(result),
	};
	if (event->call.has_arguments && !enters && !events->call.failed && description->length) {
		events->call.range_start = at_result ? (uint64_t)result : event->call.arguments[0];
		events->call.range_bytes = event->call.arguments[description->length - 1];
	}
	events->event.call = &events->call;
}

static void convert_stack(struct mmt_events *events)
{
	const struct event_stack *stack = &events->internal.call.stack;
	const char *const *names = events->metadata->architecture->register_names;
	size_t count = 0;

	for (size_t i = 0; stack->registers.known && i < REGISTER_NUMBERS; i++) {
		if (stack->registers.known >> i & 1 && names[i])
			events->registers[count++] =
			    (struct mmt_register){.name = names[i], .value = stack->registers.values[i]};
	}
	events->stack = (struct mmt_event_stack){
	    .callchain = stack->callchain,
	    .callchain_count = stack->callchain ? stack->callchain_count : 0,
	    .callchain_full = stack->callchain_full,
	    .registers = events->registers,
	    .register_count = count,
	    .bytes = stack->bytes,
	    .byte_count = stack->byte_count,
	    .wanted_bytes = stack->bytes_wanted,
	};
	events->event.stack = &events->stack;
}

static uint64_t sum_runs(const uint8_t *runs, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes = saturating_add(bytes, decode_word(runs, 2 * i + 1) - decode_word(runs, 2 * i), MMT_BYTES_MAX);
	return bytes;
}

/* Convert the fields specific to a kind of event. */
static void convert_details(struct mmt_events *events)
{
	const struct event *event = &events->internal;
	struct mmt_event *converted = &events->event;

	switch (event->kind) {
	case EVENT_CALL:
	case EVENT_CALL_ENTER:
	case EVENT_STACK_DUMP:
		convert_call(events);
		convert_stack(events);
		break;
	case EVENT_FAULT:
		converted->address = event->call.arguments[FAULT_ADDRESS];
		converted->page_bytes = event->call.arguments[FAULT_PAGE_BYTES];
		converted->count = event->call.arguments[FAULT_WEIGHT];
		convert_stack(events);
		break;
	case EVENT_SNAPSHOT_LINE:
		converted->snapshot = name_snapshot(event->snapshot);
		converted->mapping = &event->mapping;
		break;
	case EVENT_MAPPING:
		converted->mapping = &event->mapping;
		break;
	case EVENT_SNAPSHOT_BEGIN:
	case EVENT_SNAPSHOT_END:
		converted->snapshot = name_snapshot(event->snapshot);
		/* fall through */
	case EVENT_NEW_TASK:
	case EVENT_COMM:
	case EVENT_FORK:
	case EVENT_EXIT:
		converted->task = &event->task;
		break;
	case EVENT_LOST:
	case EVENT_LOST_DUMPS:
		converted->count = event->lost.count;
		break;
	case EVENT_MARK:
		converted->mark = event->note.value;
		break;
	case EVENT_RESIDENT:
		converted->resident_bytes = event->note.value;
		converted->resident_reading = event->note.number;
		break;
	case EVENT_RESIDENT_PAGES:
		converted->resident_bytes = sum_runs(event->pages.runs, event->pages.run_count);
		converted->resident_reading = event->pages.reading;
		converted->count = event->pages.run_count;
		break;
	case EVENT_LARGE_DUMPS:
		converted->enabled = event->note.value;
		break;
	default: /* MMT_EVENT_OTHER */
		break;
	}
}

struct mmt_error *mmt_events_next(struct mmt_events *events, const struct mmt_event **event_ret)
{
	const struct event *event = &events->internal;
	struct mmt_error *error;
	bool end;

	*event_ret = NULL;
	if (events->ended)
		return NULL;
	error = reader_next(events->reader, &events->internal, &end);
	events->ended = error || end;
	if (events->ended)
		return error;
	events->calls += call_stacks_counts(event);
	events->event = (struct mmt_event){
	    .kind = event->kind <= EVENT_FAULT ? (enum mmt_event_kind)event->kind : MMT_EVENT_OTHER,
	    .pid = event->pid,
	    .tid = event->tid,
	    .cpu = event->cpu,
	    .time_ns = event->time_ns,
	    .number = event->sequence,
	    .attribute = event->attribute == UINT32_MAX ? SIZE_MAX : event->attribute,
	    .record_name = record_type_name(event->record_type),
	    .record_type = event->record_type,
	    .record_bytes = event->record_size,
	};
	convert_details(events);
	if (events->report.progress && --events->until_progress == 0) {
		events->until_progress = PROGRESS_EVENTS;
		events->progress.tell(events->progress.context, events->internal.file_offset,
				      reader_file(events->reader)->data_end);
	}
	*event_ret = &events->event;
	return NULL;
}

const struct mmt_events_state *mmt_events_get_state(struct mmt_events *events)
{
	events->state = (struct mmt_events_state){
	    .incomplete = events->metadata->incomplete,
	    .unfinished_records = reader_unfinished(events->reader).records,
	    .out_of_order = reader_out_of_order(events->reader),
	    .damage = reader_damage(events->reader),
	};
	return &events->state;
}

struct mmt_error *mmt_events_symbolize(struct mmt_events *events, const struct mmt_stack **stack_ret)
{
	const struct replay_options options = {.report = &events->report, .recording = events->reader};
	struct event_stacks *stacks = &events->stacks;
	struct mmt_error *error = NULL;
	uint32_t number = 0;

	/* Read the recording from its start, as a report does. */
	if (!stacks->found) {
		error = replay_init(&stacks->replay, &options);
		if (error)
			return error;
		error = replay_find_stacks(&stacks->replay);
		stacks->found = !error;
		if (error) {
			replay_deinit(&stacks->replay);
			return error;
		}
	}
	if (call_stacks_counts(&events->internal))
		number = call_stacks_get(&stacks->replay.stacks, events->calls);
	stacks->frames.count = 0;
	stacks->stack = (struct mmt_stack){.end = MMT_STACK_END_NOT_RECORDED, .number = number};
	if (number)
		error = resolver_named_stack(stacks->replay.code, number - 1, &stacks->frames, &stacks->stack.end);
	if (error)
		return error;
	stacks->stack.frames = stacks->frames.items;
	stacks->stack.frame_count = stacks->frames.count;
	*stack_ret = &stacks->stack;
	return NULL;
}
