// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A line is "SECONDS.NANOSECONDS PID/TID [CPU] KIND event=ATTRIBUTE NAME=VALUE ...", with "-" for unknown values; calls
 * are "mmap(ARGUMENTS) = RESULT". Addresses, lengths and arguments are hexadecimal, numbers decimal, texts escaped in
 * double quotes; the name of the attribute has no quotes, and its spaces are escaped, too. Lines that begin with "#"
 * are about the recording: its attributes come before the events, missing data after them.
 */
#include <inttypes.h>
#include <mmtrace/events.h>
#include <mmtrace/output.h>
#include <string.h>

#include "base/errors.h"
#include "base/vector.h"
#include "output/escape.h"
#include "output/selection.h"

#define STACK_WORDS 4 /* of the dump that are shown */

static void print_text(FILE *stream, const char *text)
{
	putc('"', stream);
	escape_write(text, ESCAPE_FOR_QUOTES, stream);
	putc('"', stream);
}

static void print_number(FILE *stream, int32_t number)
{
	if (number == -1)
		putc('-', stream);
	else
		fprintf(stream, "%" PRId32, number);
}

static void print_stack(FILE *stream, const struct mmt_event_stack *stack)
{
	uint64_t hash = 0xcbf29ce484222325ULL; /* FNV-1a, to compare two dumps */

	for (size_t i = 0; i < stack->register_count; i++)
		fprintf(stream, " %s=%#" PRIx64, stack->registers[i].name, stack->registers[i].value);
	if (stack->callchain) {
		fputs(" callchain=", stream);
		for (size_t i = 0; i < stack->callchain_count; i++)
			fprintf(stream, "%s%#" PRIx64, i ? "," : "", stack->callchain[i]);
		fprintf(stream, " callchain_full=%s", stack->callchain_full ? "yes" : "no");
	}
	if (!stack->wanted_bytes)
		return;
	for (size_t i = 0; i < stack->byte_count; i++)
		hash = (hash ^ stack->bytes[i]) * 0x100000001b3ULL;
	fprintf(stream, " stack_bytes=%zu/%zu stack_hash=%016" PRIx64, stack->byte_count, stack->wanted_bytes, hash);
	for (size_t i = 0; i < STACK_WORDS && (i + 1) * sizeof(uint64_t) <= stack->byte_count; i++) {
		uint64_t word;

		memcpy(&word, stack->bytes + i * sizeof(word), sizeof(word));
		fprintf(stream, "%s%#" PRIx64, i ? "," : " stack_words=", word);
	}
}

static const char *name_advice(uint64_t advice)
{
	static const char *const names[] = {
	    [0] = "MADV_NORMAL",	   [1] = "MADV_RANDOM",		[2] = "MADV_SEQUENTIAL",
	    [3] = "MADV_WILLNEED",	   [4] = "MADV_DONTNEED",	[8] = "MADV_FREE",
	    [9] = "MADV_REMOVE",	   [10] = "MADV_DONTFORK",	[11] = "MADV_DOFORK",
	    [12] = "MADV_MERGEABLE",	   [13] = "MADV_UNMERGEABLE",	[14] = "MADV_HUGEPAGE",
	    [15] = "MADV_NOHUGEPAGE",	   [16] = "MADV_DONTDUMP",	[17] = "MADV_DODUMP",
	    [18] = "MADV_WIPEONFORK",	   [19] = "MADV_KEEPONFORK",	[20] = "MADV_COLD",
	    [21] = "MADV_PAGEOUT",	   [22] = "MADV_POPULATE_READ", [23] = "MADV_POPULATE_WRITE",
	    [24] = "MADV_DONTNEED_LOCKED", [25] = "MADV_COLLAPSE",	[102] = "MADV_GUARD_INSTALL",
	    [103] = "MADV_GUARD_REMOVE",
	};

	return advice < sizeof(names) / sizeof(*names) ? names[advice] : NULL;
}

static void print_call(FILE *stream, const struct mmt_event *event)
{
	const struct mmt_event_call *call = event->call;

	fprintf(stream, " %s(", call->name);
	for (unsigned i = 0; call->has_arguments && i < call->argument_count; i++) {
		const char *name = call->advice == i + 1 ? name_advice((uint32_t)call->arguments[i]) : NULL;

		fputs(i ? ", " : "", stream);
		if (name)
			fputs(name, stream);
		else
			fprintf(stream, "%#" PRIx64, call->arguments[i]);
	}
	if (!call->has_arguments)
		putc('-', stream);
	putc(')', stream);
	if (event->kind == MMT_EVENT_CALL_ENTER)
		return;
	if (call->failed)
		fprintf(stream, " = %" PRId64, call->result);
	else
		fprintf(stream, " = %#" PRIx64, (uint64_t)call->result);
}

static void print_mapping(FILE *stream, const struct mmt_event_mapping *mapping)
{
	fprintf(stream,
		" start=%#" PRIx64 " length=%#" PRIx64 " offset=%#" PRIx64 " device=%u:%u inode=%" PRIu64
		" protection=%#x flags=%#x path=",
		mapping->start, mapping->length, mapping->file_offset, mapping->device_major, mapping->device_minor,
		mapping->inode, mapping->protection, mapping->flags);
	print_text(stream, mapping->path);
	if (mapping->code_only)
		fputs(" data_mappings=no", stream);
}

static void print_fields(FILE *stream, const struct mmt_event *event)
{
	if (event->snapshot)
		fprintf(stream, " snapshot=%s", event->snapshot);
	if (event->call)
		print_call(stream, event);
	if (event->stack)
		print_stack(stream, event->stack);
	if (event->mapping)
		print_mapping(stream, event->mapping);
	switch (event->kind) {
	case MMT_EVENT_NEW_TASK:
		fprintf(stream, " new_tid=%d clone_flags=%#" PRIx64, event->task->tid, event->task->clone_flags);
		break;
	case MMT_EVENT_COMM:
		fputs(" name=", stream);
		print_text(stream, event->task->name);
		fprintf(stream, " exec=%s", event->task->exec ? "yes" : "no");
		break;
	case MMT_EVENT_FORK:
	case MMT_EVENT_EXIT:
		fprintf(stream, " pid=%d tid=%d parent_pid=%d parent_tid=%d", event->task->pid, event->task->tid,
			event->task->parent_pid, event->task->parent_tid);
		break;
	case MMT_EVENT_LOST:
	case MMT_EVENT_LOST_DUMPS:
		fprintf(stream, " count=%" PRIu64, event->count);
		break;
	case MMT_EVENT_SNAPSHOT_BEGIN:
	case MMT_EVENT_SNAPSHOT_END:
		fputs(" name=", stream);
		print_text(stream, event->task->name);
		break;
	case MMT_EVENT_FAULT:
		fprintf(stream, " address=%#" PRIx64 " page_bytes=%" PRIu64 " weight=%" PRIu64, event->address,
			event->page_bytes, event->count);
		break;
	case MMT_EVENT_MARK:
		fprintf(stream, " number=%" PRIu64, event->mark);
		break;
	case MMT_EVENT_RESIDENT:
		fprintf(stream, " bytes=%" PRIu64 " reading=%" PRIu64, event->resident_bytes, event->resident_reading);
		break;
	case MMT_EVENT_RESIDENT_PAGES:
		fprintf(stream, " bytes=%" PRIu64 " runs=%" PRIu64 " reading=%" PRIu64, event->resident_bytes,
			event->count, event->resident_reading);
		break;
	case MMT_EVENT_LARGE_DUMPS:
		fprintf(stream, " on=%s", event->enabled ? "yes" : "no");
		break;
	case MMT_EVENT_OTHER:
		fprintf(stream, " record=%s type=%u size=%u", event->record_name, event->record_type,
			event->record_bytes);
		break;
	default:
		break;
	}
}

static void print_event(FILE *stream, const struct mmt_events *events, const struct mmt_event *event)
{
	const struct mmt_event_attribute *attribute = mmt_events_get_attribute(events, event->attribute);

	fprintf(stream, "%" PRIu64 ".%09" PRIu64 " ", event->time_ns / 1000000000, event->time_ns % 1000000000);
	print_number(stream, event->pid);
	putc('/', stream);
	print_number(stream, event->tid);
	fputs(" [", stream);
	if (event->cpu < 0)
		putc('-', stream);
	else
		fprintf(stream, "%03d", event->cpu);
	fprintf(stream, "] %s event=", mmt_event_kind_name(event->kind));
	escape_write(attribute ? attribute->name : "-", ESCAPE_FOR_WORD, stream);
	print_fields(stream, event);
	putc('\n', stream);
}

static void print_heap(FILE *stream, const struct mmt_heap_census *census)
{
	static const char *const times[] = {"start", "snapshot", "stop"};

	fprintf(stream, "# heap time=%" PRIu64 ".%09" PRIu64 " pid=%d when=%s allocator=", census->time_ns / 1000000000,
		census->time_ns % 1000000000, census->pid, times[census->when]);
	print_text(stream, census->allocator_name);
	fprintf(stream,
		" result=%s stopped_at=%#" PRIx64 " elapsed_ns=%" PRIu64 " processor_ns=%" PRIu64 " arenas=%" PRIu64,
		selection_heap_results[census->result], census->stopped_at, census->elapsed_ns, census->processor_ns,
		census->arenas);
#define PRINT_FIGURE(name, ...) fprintf(stream, " " #name "=%" PRIu64, census->name);
	MMT_CENSUS_FIGURES(PRINT_FIGURE)
	putc('\n', stream);
	array_each(group, census->groups, census->group_count) {
		fprintf(stream,
			"# heap-group content=%s smallest_bytes=%" PRIu64 " largest_bytes=%" PRIu64 " count=%" PRIu64
			" bytes=%" PRIu64 " after_free_count=%" PRIu64 " after_free_bytes=%" PRIu64 " offset=%#" PRIx64
			" name=",
			selection_heap_contents[group->content], group->smallest_bytes, group->largest_bytes,
			group->count, group->bytes, group->after_free_count, group->after_free_bytes, group->offset);
		print_text(stream, group->name);
		putc('\n', stream);
	}
}

static void print_head(FILE *stream, const struct mmt_events *events)
{
	const struct mmt_recording *recording = mmt_events_get_recording(events);

	fprintf(stream, "# %s, architecture %s, host ", recording->by_mmtrace ? "mmtrace recording" : "perf recording",
		recording->architecture);
	print_text(stream, recording->host);
	fputs(", kernel ", stream);
	print_text(stream, recording->kernel);
	fputs(", version ", stream);
	print_text(stream, recording->recorder);
	fputs(", command line ", stream);
	print_text(stream, recording->command_line);
	if (recording->on_cpus)
		fprintf(stream, ", events %s%s", recording->in_cgroups ? "in control groups" : "on CPUs",
			recording->all_processes ? " of all processes" : "");
	putc('\n', stream);
	for (size_t i = 0; i < recording->attribute_count; i++) {
		const struct mmt_event_attribute *attribute = mmt_events_get_attribute(events, i);

		fprintf(stream, "# attribute %zu: name ", i);
		print_text(stream, attribute->name);
		fprintf(stream, ", role %s, sample type %#" PRIx64, attribute->role, attribute->sample_type);
		if (attribute->has_lost)
			fprintf(stream, ", lost %" PRIu64, attribute->lost);
		putc('\n', stream);
	}
	for (size_t i = 0; mmt_events_get_heap(events, i); i++)
		print_heap(stream, mmt_events_get_heap(events, i));
}

struct mmt_error *mmt_dump(const char *input, const struct mmt_progress *progress, FILE *stream)
{
	const struct mmt_events_state *state;
	const struct mmt_event *event;
	struct mmt_events *events;
	struct mmt_error *error = mmt_events_open(input, progress, &events);

	if (error)
		return error;
	print_head(stream, events);
	while (!ferror(stream) && !(error = mmt_events_next(events, &event)) && event)
		print_event(stream, events, event);
	if (!error) {
		state = mmt_events_get_state(events);
		if (state->incomplete)
			fputs("# incomplete: the recorder did not finish, or the file was truncated\n", stream);
		if (state->unfinished_records)
			fprintf(stream, "# discarded: %" PRIu64 " records of an incomplete round\n",
				state->unfinished_records);
		if (state->out_of_order)
			fprintf(stream, "# out of order: %" PRIu64 " events\n", state->out_of_order);
		if (state->damage)
			error = error_create(MMT_ERROR_FORMAT, "%s: %s", input, state->damage);
	}
	mmt_events_close(events);
	return error;
}
