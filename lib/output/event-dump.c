// SPDX-License-Identifier: LGPL-2.1-or-later
/* A line is "SECONDS.NANOSECONDS PID/TID [CPU] KIND event=ATTRIBUTE NAME=VALUE ...", with "-" for unknown values; calls
 * are "mmap(ARGUMENTS) = RESULT". Addresses, lengths and arguments are hexadecimal, numbers decimal, texts escaped in
 * double quotes; the name of the attribute has no quotes, and its spaces are escaped, too. Lines that begin with "#"
 * are about the recording: its attributes come before the events, missing data after them. */
#include <inttypes.h>

#include "output/escape.h"
#include "output/selection.h"
#include "trace/read/reader.h"

#define STACK_WORDS 4 /* of the dump that are shown */

static void print_text(FILE *stream, const char *label, const char *text)
{
	fprintf(stream, "%s\"", label);
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

static void print_stack(FILE *stream, const char *const *names, const struct event_stack *stack)
{
	uint64_t hash = 0xcbf29ce484222325ULL; /* FNV-1a, to compare two dumps */

	for (size_t i = 0; stack->registers.known && i < REGISTER_NUMBERS; i++) {
		if (stack->registers.known >> i & 1 && names[i])
			fprintf(stream, " %s=%#" PRIx64, names[i], stack->registers.values[i]);
	}
	if (stack->callchain) {
		fputs(" callchain=", stream);
		for (size_t i = 0; i < stack->callchain_count; i++)
			fprintf(stream, "%s%#" PRIx64, i ? "," : "", stack->callchain[i]);
		fprintf(stream, " callchain_full=%s", stack->callchain_full ? "yes" : "no");
	}
	if (!stack->bytes_wanted)
		return;
	for (size_t i = 0; i < stack->byte_count; i++)
		hash = (hash ^ stack->bytes[i]) * 0x100000001b3ULL;
	fprintf(stream, " stack_bytes=%zu/%zu stack_hash=%016" PRIx64, stack->byte_count, stack->bytes_wanted, hash);
	for (size_t i = 0; i < STACK_WORDS && (i + 1) * sizeof(uint64_t) <= stack->byte_count; i++) {
		uint64_t word;

		memcpy(&word, stack->bytes + i * sizeof(word), sizeof(word));
		fprintf(stream, "%s%#" PRIx64, i ? "," : " stack_words=", word);
	}
}

static void print_call(FILE *stream, const struct event *event)
{
	const struct call_description *description = call_describe(event->call.call);

	fprintf(stream, " %s(", description->name);
	for (unsigned i = 0; event->call.has_arguments && i < description->arguments; i++) {
		uint64_t argument = event->call.arguments[i];
		const char *name = description->advice == i + 1 ? call_advice_name(argument) : NULL;

		fputs(i ? ", " : "", stream);
		if (name)
			fputs(name, stream);
		else
			fprintf(stream, "%#" PRIx64, argument);
	}
	if (!event->call.has_arguments)
		putc('-', stream);
	putc(')', stream);
	if (event->kind == EVENT_CALL_ENTER)
		return;
	if (call_is_error(event->call.result))
		fprintf(stream, " = %" PRId64, event->call.result);
	else
		fprintf(stream, " = %#" PRIx64, (uint64_t)event->call.result);
}

static void print_fields(FILE *stream, const char *const *registers, const struct event *event)
{
	static const char *const snapshots[] = {
	    [SNAPSHOT_START] = "start",	      [SNAPSHOT_FIRST] = "first", [SNAPSHOT_EXEC] = "exec",
	    [SNAPSHOT_INTERVAL] = "interval", [SNAPSHOT_STOP] = "stop",
	};
	const struct event_task *task = &event->task;
	const struct event_mapping *mapping = &event->mapping;
	uint64_t bytes = 0;

	switch (event->kind) {
	case EVENT_CALL:
	case EVENT_CALL_ENTER:
	case EVENT_STACK_DUMP:
		print_call(stream, event);
		print_stack(stream, registers, &event->call.stack);
		break;
	case EVENT_NEW_TASK:
		fprintf(stream, " new_tid=%d clone_flags=%#" PRIx64, task->tid, task->clone_flags);
		break;
	case EVENT_COMM:
		print_text(stream, " name=", task->name);
		fprintf(stream, " exec=%s", task->exec ? "yes" : "no");
		break;
	case EVENT_FORK:
	case EVENT_EXIT:
		fprintf(stream, " pid=%d tid=%d parent_pid=%d parent_tid=%d", task->pid, task->tid, task->parent_pid,
			task->parent_tid);
		break;
	case EVENT_LOST:
	case EVENT_LOST_DUMPS:
		fprintf(stream, " count=%" PRIu64, event->lost.count);
		break;
	case EVENT_SNAPSHOT_BEGIN:
	case EVENT_SNAPSHOT_END:
		fprintf(stream, " snapshot=%s name=", snapshots[event->snapshot]);
		print_text(stream, "", task->name);
		break;
	case EVENT_SNAPSHOT_LINE:
		fprintf(stream, " snapshot=%s", snapshots[event->snapshot]);
		/* fall through */
	case EVENT_MAPPING:
		fprintf(stream,
			" start=%#" PRIx64 " length=%#" PRIx64 " offset=%#" PRIx64 " device=%u:%u inode=%" PRIu64
			" protection=%#x flags=%#x path=",
			mapping->start, mapping->length, mapping->file_offset, mapping->device_major,
			mapping->device_minor, mapping->inode, mapping->protection, mapping->flags);
		print_text(stream, "", mapping->path);
		if (mapping->code_only)
			fputs(" data_mappings=no", stream);
		break;
	case EVENT_FAULT:
		print_stack(stream, registers, &event->call.stack);
		fprintf(stream, " address=%#" PRIx64 " page_bytes=%" PRIu64 " weight=%" PRIu64,
			event->call.arguments[FAULT_ADDRESS], event->call.arguments[FAULT_PAGE_BYTES],
			event->call.arguments[FAULT_WEIGHT]);
		break;
	case EVENT_RESIDENT_PAGES:
		for (const uint8_t *runs = event->pages.runs, *end = runs + event->pages.run_count * 16; runs < end; runs += 16)
			bytes = saturating_add(bytes, decode_word(runs, 1) - decode_word(runs, 0), MMT_BYTES_MAX);
		fprintf(stream, " bytes=%" PRIu64 " runs=%zu reading=%" PRIu32, bytes, event->pages.run_count,
			event->pages.reading);
		break;
	case EVENT_NOTE:
		if (event->note.kind == NOTE_RESIDENT)
			fprintf(stream, " bytes=%" PRIu64 " reading=%" PRIu64, event->note.value, event->note.number);
		if (event->note.kind == NOTE_LARGE_DUMPS)
			fprintf(stream, " on=%s", event->note.value ? "yes" : "no");
		if (event->note.kind <= NOTE_LARGE_DUMPS)
			break;
		/* fall through */
	default:
		fprintf(stream, " record=%s type=%u size=%u", record_type_name(event->record_type), event->record_type,
			event->record_size);
		break;
	}
}

static void print_event(FILE *stream, const struct reader_metadata *metadata, const struct event *event)
{
	static const char *const kinds[] = {
	    [EVENT_CALL] = "call",
	    [EVENT_CALL_ENTER] = "enter",
	    [EVENT_STACK_DUMP] = "stack-dump",
	    [EVENT_NEW_TASK] = "new-task",
	    [EVENT_MAPPING] = "mapping",
	    [EVENT_COMM] = "comm",
	    [EVENT_FORK] = "fork",
	    [EVENT_EXIT] = "exit",
	    [EVENT_LOST] = "lost",
	    [EVENT_LOST_DUMPS] = "lost-dumps",
	    [EVENT_SNAPSHOT_BEGIN] = "snapshot-begin",
	    [EVENT_SNAPSHOT_LINE] = "snapshot-line",
	    [EVENT_SNAPSHOT_END] = "snapshot-end",
	    [EVENT_OTHER] = "other",
	    [EVENT_RESIDENT_PAGES] = "resident-pages",
	    [EVENT_FAULT] = "fault",
	};
	static const char *const notes[] = {"mark", "resident", "large-dumps"};
	const char *kind = event->kind <= EVENT_FAULT					       ? kinds[event->kind]
			   : event->kind == EVENT_NOTE && event->note.kind <= NOTE_LARGE_DUMPS ? notes[event->note.kind]
											       : "other";

	fprintf(stream, "%" PRIu64 ".%09" PRIu64 " ", event->time_ns / 1000000000, event->time_ns % 1000000000);
	print_number(stream, event->pid);
	putc('/', stream);
	print_number(stream, event->tid);
	fputs(" [", stream);
	if (event->cpu < 0)
		putc('-', stream);
	else
		fprintf(stream, "%03d", event->cpu);
	fprintf(stream, "] %s event=", kind);
	escape_write(event->attribute < metadata->attribute_count ? metadata->attributes[event->attribute].name : "-",
		     ESCAPE_FOR_WORD, stream);
	print_fields(stream, metadata->architecture->register_names, event);
	putc('\n', stream);
}

static void print_heap(FILE *stream, const struct mmt_heap_census *census)
{
	static const char *const times[] = {"start", "snapshot", "stop"};

	fprintf(stream, "# heap time=%" PRIu64 ".%09" PRIu64 " pid=%d when=%s allocator=", census->time_ns / 1000000000,
		census->time_ns % 1000000000, census->pid, times[census->when]);
	print_text(stream, "", census->allocator_name);
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
		print_text(stream, "", group->name);
		putc('\n', stream);
	}
}

static void print_head(FILE *stream, const struct reader_metadata *metadata)
{
	static const char *const roles[] = {
	    [ROLE_OTHER] = "other",	    [ROLE_SYSCALL] = "syscall",
	    [ROLE_DUMP] = "stack-dump",	    [ROLE_NEW_TASK] = "new-task",
	    [ROLE_SIDE_BAND] = "side-band", [ROLE_SNAPSHOT] = "snapshot",
	    [ROLE_LOCK] = "lock",	    [ROLE_LARGE_DUMP] = "large-stack-dump",
	    [ROLE_FAULT] = "page-fault",    [ROLE_RECLAIM] = "reclaim",
	};

	fprintf(stream, "# %s, architecture %s, host ", metadata->ours ? "mmtrace recording" : "perf recording",
		metadata->architecture->name);
	print_text(stream, "", metadata->host);
	print_text(stream, ", kernel ", metadata->kernel);
	print_text(stream, ", version ", metadata->version);
	print_text(stream, ", command line ", metadata->command_line);
	if (metadata->info.on_cpus)
		fprintf(stream, ", events %s%s", metadata->info.in_cgroups ? "in control groups" : "on CPUs",
			metadata->info.all_processes ? " of all processes" : "");
	putc('\n', stream);
	for (size_t i = 0; i < metadata->attribute_count; i++) {
		const struct reader_attribute *attribute = &metadata->attributes[i];

		fprintf(stream, "# attribute %zu: name ", i);
		print_text(stream, "", attribute->name);
		fprintf(stream, ", role %s, sample type %#" PRIx64, roles[attribute->role], attribute->sample_type);
		if (metadata->has_loss && i < metadata->loss.lost.count)
			fprintf(stream, ", lost %" PRIu64, metadata->loss.lost.items[i]);
		putc('\n', stream);
	}
	array_each(census, metadata->heaps.items.items, metadata->heaps.items.count)
		print_heap(stream, census);
}

struct mmt_error *mmt_dump(const char *input, const struct mmt_progress *progress, FILE *stream)
{
	const struct reader_metadata *metadata;
	struct reader *reader;
	struct mmt_error *error = reader_open(input, progress, &reader);
	bool end = false;

	if (error)
		return error;
	metadata = &reader->metadata.values;
	print_head(stream, metadata);
	while (!ferror(stream)) {
		struct event event;

		error = reader_next(reader, &event, &end);
		if (error || end)
			break;
		print_event(stream, metadata, &event);
		if (progress && event.sequence % PROGRESS_EVENTS == 0)
			progress->tell(progress->context, event.file_offset, reader->file->data_end);
	}
	if (!error && metadata->incomplete)
		fputs("# incomplete: the recorder did not finish, or the file was truncated\n", stream);
	if (!error && reader_unfinished(reader).records)
		fprintf(stream, "# discarded: %" PRIu64 " records of an incomplete round\n",
			reader_unfinished(reader).records);
	if (!error && reader->out_of_order)
		fprintf(stream, "# out of order: %" PRIu64 " events\n", reader->out_of_order);
	if (!error && reader_damage(reader))
		error = error_create(MMT_ERROR_FORMAT, "%s: %s", input, reader_damage(reader));
	reader_close(reader);
	return error;
}
