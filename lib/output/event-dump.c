// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A line is "SECONDS.NANOSECONDS PID/TID [CPU] KIND event=ATTRIBUTE NAME=VALUE ...", "-" standing for what is not
 * known; calls are "mmap(ARGUMENTS) = RESULT". Addresses, lengths and arguments are hexadecimal, numbers decimal, texts
 * in double quotes, escaped; the attribute's name stands without quotes, its spaces escaped too. Lines that begin with
 * "#" are about the whole recording: its attributes before the events, what it lacks behind them.
 */
#include <inttypes.h>
#include <mmtrace/output.h>
#include <string.h>

#include "base/calls.h"
#include "output/escape.h"
#include "trace/read/reader.h"
#include "trace/read/records.h"

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

static const char *name_kind(enum event_kind kind)
{
	static const char *const names[] = {
	    [EVENT_CALL] = "call",
	    [EVENT_CALL_ENTER] = "enter",
	    [EVENT_STACK_DUMP] = "stack-dump",
	    [EVENT_NEW_TASK] = "new-task",
	    [EVENT_MAPPING] = "mapping",
	    [EVENT_COMM] = "comm",
	    [EVENT_FORK] = "fork",
	    [EVENT_EXIT] = "exit",
	    [EVENT_LOCK] = "lock",
	    [EVENT_LOST] = "lost",
	    [EVENT_LOST_DUMPS] = "lost-dumps",
	    [EVENT_SNAPSHOT_BEGIN] = "snapshot-begin",
	    [EVENT_SNAPSHOT_LINE] = "snapshot-line",
	    [EVENT_SNAPSHOT_END] = "snapshot-end",
	    [EVENT_MARK] = "mark",
	    [EVENT_RESIDENT] = "resident",
	    [EVENT_LARGE_DUMPS] = "large-dumps",
	    [EVENT_OTHER] = "other",
	};

	return names[kind];
}

static const char *name_snapshot(enum snapshot_kind kind)
{
	static const char *const names[SNAPSHOT_KINDS] = {
	    [SNAPSHOT_START] = "start",	      [SNAPSHOT_FIRST] = "first", [SNAPSHOT_EXEC] = "exec",
	    [SNAPSHOT_INTERVAL] = "interval", [SNAPSHOT_STOP] = "stop",
	};

	return names[kind];
}

static const char *name_role(enum attribute_role role)
{
	static const char *const names[] = {
	    [ROLE_OTHER] = "other",	  [ROLE_SYSCALL] = "truth",	    [ROLE_DUMP] = "dump",
	    [ROLE_NEW_TASK] = "new-task", [ROLE_SIDE_BAND] = "side-band",   [ROLE_SNAPSHOT] = "snapshot",
	    [ROLE_LOCK] = "lock",	  [ROLE_LARGE_DUMP] = "large-dump",
	};

	return names[role];
}

static void print_registers(FILE *stream, const struct architecture *architecture,
			    const struct register_values *registers)
{
	for (size_t i = 0; i < REGISTER_NUMBERS; i++) {
		if (registers->known >> i & 1 && architecture->register_names[i])
			fprintf(stream, " %s=%#" PRIx64, architecture->register_names[i], registers->values[i]);
	}
}

/* FNV-1a: tells whether two dumps are equal. */
static uint64_t hash_stack(const struct event_stack *stack)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < stack->byte_count; i++)
		hash = (hash ^ stack->bytes[i]) * 0x100000001b3ULL;
	return hash;
}

static void print_stack(FILE *stream, const struct architecture *architecture, const struct event_stack *stack)
{
	print_registers(stream, architecture, &stack->registers);
	if (stack->callchain) {
		fputs(" callchain=", stream);
		for (size_t i = 0; i < stack->callchain_count; i++)
			fprintf(stream, "%s%#" PRIx64, i ? "," : "", stack->callchain[i]);
		fprintf(stream, " callchain_full=%s", stack->callchain_full ? "yes" : "no");
	}
	if (!stack->bytes_wanted)
		return;
	fprintf(stream, " stack_bytes=%zu/%zu stack_hash=%016" PRIx64, stack->byte_count, stack->bytes_wanted,
		hash_stack(stack));
	for (size_t i = 0; i < STACK_WORDS && (i + 1) * sizeof(uint64_t) <= stack->byte_count; i++) {
		uint64_t word;

		memcpy(&word, stack->bytes + i * sizeof(word), sizeof(word));
		fprintf(stream, "%s%#" PRIx64, i ? "," : " stack_words=", word);
	}
}

static const char *name_advice(uint64_t advice)
{
	static const struct {
		uint64_t advice;
		const char *name;
	} names[] = {
	    {0, "MADV_NORMAL"},		  {1, "MADV_RANDOM"},	      {2, "MADV_SEQUENTIAL"},
	    {3, "MADV_WILLNEED"},	  {4, "MADV_DONTNEED"},	      {8, "MADV_FREE"},
	    {9, "MADV_REMOVE"},		  {10, "MADV_DONTFORK"},      {11, "MADV_DOFORK"},
	    {12, "MADV_MERGEABLE"},	  {13, "MADV_UNMERGEABLE"},   {14, "MADV_HUGEPAGE"},
	    {15, "MADV_NOHUGEPAGE"},	  {16, "MADV_DONTDUMP"},      {17, "MADV_DODUMP"},
	    {18, "MADV_WIPEONFORK"},	  {19, "MADV_KEEPONFORK"},    {20, "MADV_COLD"},
	    {21, "MADV_PAGEOUT"},	  {22, "MADV_POPULATE_READ"}, {23, "MADV_POPULATE_WRITE"},
	    {24, "MADV_DONTNEED_LOCKED"}, {25, "MADV_COLLAPSE"},      {102, "MADV_GUARD_INSTALL"},
	    {103, "MADV_GUARD_REMOVE"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (names[i].advice == advice)
			return names[i].name;
	}
	return NULL;
}

static void print_argument(FILE *stream, const struct call_description *description, unsigned number, uint64_t argument)
{
	const char *name = description->advice == number ? name_advice((uint32_t)argument) : NULL;

	if (name)
		fputs(name, stream);
	else
		fprintf(stream, "%#" PRIx64, argument);
}

static void print_call(FILE *stream, const struct architecture *architecture, const struct event *event)
{
	const struct call_description *description = call_describe(event->call.call);

	fprintf(stream, " %s(", description->name);
	for (unsigned i = 0; event->call.has_arguments && i < description->arguments; i++) {
		fputs(i ? ", " : "", stream);
		print_argument(stream, description, i + 1, event->call.arguments[i]);
	}
	if (!event->call.has_arguments)
		putc('-', stream);
	putc(')', stream);
	if (event->kind != EVENT_CALL_ENTER) {
		if (call_is_error(event->call.result))
			fprintf(stream, " = %" PRId64, event->call.result);
		else
			fprintf(stream, " = %#" PRIx64, (uint64_t)event->call.result);
	}
	print_stack(stream, architecture, &event->call.stack);
}

static void print_mapping(FILE *stream, const struct event_mapping *mapping)
{
	fprintf(stream,
		" start=%#" PRIx64 " length=%#" PRIx64 " offset=%#" PRIx64 " device=%u:%u inode=%" PRIu64
		" protection=%#x flags=%#x path=",
		mapping->start, mapping->length, mapping->file_offset, mapping->device_major, mapping->device_minor,
		mapping->inode, mapping->protection, mapping->flags);
	print_text(stream, mapping->path);
	if (mapping->executable_only_record)
		fputs(" data_mappings=no", stream);
}

static void print_fields(FILE *stream, const struct architecture *architecture, const struct event *event)
{
	switch (event->kind) {
	case EVENT_CALL:
	case EVENT_CALL_ENTER:
	case EVENT_STACK_DUMP:
		print_call(stream, architecture, event);
		break;
	case EVENT_NEW_TASK:
		fprintf(stream, " new_tid=%d clone_flags=%#" PRIx64, event->new_task.tid, event->new_task.clone_flags);
		break;
	case EVENT_SNAPSHOT_LINE:
		fprintf(stream, " snapshot=%s", name_snapshot(event->snapshot));
		print_mapping(stream, &event->mapping);
		break;
	case EVENT_MAPPING:
		print_mapping(stream, &event->mapping);
		break;
	case EVENT_COMM:
		fputs(" name=", stream);
		print_text(stream, event->comm.name);
		fprintf(stream, " exec=%s", event->comm.exec ? "yes" : "no");
		break;
	case EVENT_FORK:
	case EVENT_EXIT:
		fprintf(stream, " pid=%d tid=%d parent_pid=%d parent_tid=%d", event->task.pid, event->task.tid,
			event->task.parent_pid, event->task.parent_tid);
		break;
	case EVENT_LOCK:
		fprintf(stream, " space=%#" PRIx64, event->lock.space);
		break;
	case EVENT_LOST:
	case EVENT_LOST_DUMPS:
		fprintf(stream, " count=%" PRIu64, event->lost.count);
		break;
	case EVENT_SNAPSHOT_BEGIN:
	case EVENT_SNAPSHOT_END:
		fprintf(stream, " snapshot=%s name=", name_snapshot(event->snapshot));
		print_text(stream, event->comm.name);
		break;
	case EVENT_MARK:
		fprintf(stream, " number=%" PRIu64, event->mark.number);
		break;
	case EVENT_RESIDENT:
		fprintf(stream, " bytes=%" PRIu64 " reading=%" PRIu64, event->resident.bytes, event->resident.reading);
		break;
	case EVENT_LARGE_DUMPS:
		fprintf(stream, " on=%s", event->large_dumps.on ? "yes" : "no");
		break;
	case EVENT_OTHER:
		fprintf(stream, " record=%s type=%u size=%u", record_type_name(event->record_type), event->record_type,
			event->record_size);
		break;
	}
}

static void print_event(FILE *stream, const struct reader_metadata *metadata, const struct event *event)
{
	fprintf(stream, "%" PRIu64 ".%09" PRIu64 " ", event->time_ns / 1000000000, event->time_ns % 1000000000);
	print_number(stream, event->pid);
	putc('/', stream);
	print_number(stream, event->tid);
	fputs(" [", stream);
	if (event->cpu < 0)
		putc('-', stream);
	else
		fprintf(stream, "%03d", event->cpu);
	fprintf(stream, "] %s event=", name_kind(event->kind));
	escape_write(event->attribute < metadata->attribute_count ? metadata->attributes[event->attribute].name : "-",
		     ESCAPE_FOR_WORD, stream);
	print_fields(stream, metadata->architecture, event);
	putc('\n', stream);
}

static void print_head(FILE *stream, const struct reader_metadata *metadata)
{
	fprintf(stream, "# %s, architecture %s, host ", metadata->ours ? "mmtrace recording" : "perf recording",
		metadata->architecture->name);
	print_text(stream, metadata->host);
	fputs(", kernel ", stream);
	print_text(stream, metadata->kernel);
	fputs(", version ", stream);
	print_text(stream, metadata->version);
	fputs(", command line ", stream);
	print_text(stream, metadata->command_line);
	if (metadata->info.on_cpus)
		fprintf(stream, ", events on CPUs%s", metadata->info.everybody ? " for everybody" : "");
	putc('\n', stream);
	for (size_t i = 0; i < metadata->attribute_count; i++) {
		const struct reader_attribute *attribute = &metadata->attributes[i];

		fprintf(stream, "# attribute %zu: name ", i);
		print_text(stream, attribute->name);
		fprintf(stream, ", role %s, sample type %#" PRIx64, name_role(attribute->role), attribute->sample_type);
		if (metadata->has_loss && i < metadata->loss.lost.count)
			fprintf(stream, ", lost %" PRIu64, metadata->loss.lost.items[i]);
		putc('\n', stream);
	}
}

static struct mmt_error *print_events(FILE *stream, struct reader *reader, const struct mmt_progress *progress)
{
	const struct reader_metadata *metadata = reader_metadata(reader);
	struct event event;
	bool end;

	for (uint32_t count = 1;; count++) {
		struct mmt_error *error = reader_next(reader, &event, &end);

		if (error || end)
			return error;
		print_event(stream, metadata, &event);
		if (ferror(stream))
			return NULL;
		if (progress && count % PROGRESS_EVENTS == 0)
			progress->tell(progress->context, event.file_offset, reader_data_end(reader));
	}
}

struct mmt_error *mmt_dump(const char *input, const struct mmt_progress *progress, FILE *stream)
{
	struct reader *reader;
	struct mmt_error *error = reader_open_watched(input, progress, &reader);

	if (error)
		return error;
	print_head(stream, reader_metadata(reader));
	error = print_events(stream, reader, progress);
	if (!error && reader_metadata(reader)->incomplete)
		fputs("# incomplete: the recorder did not finish, or the file was cut short\n", stream);
	if (!error && reader_unfinished(reader).records)
		fprintf(stream, "# left out: %" PRIu64 " records of an unfinished round\n",
			reader_unfinished(reader).records);
	if (!error && reader_out_of_order(reader))
		fprintf(stream, "# out of order: %" PRIu64 " events\n", reader_out_of_order(reader));
	if (!error && reader_damage(reader))
		error = error_create(MMT_ERROR_FORMAT, "%s: %s", input, reader_damage(reader));
	reader_close(reader);
	return error;
}
