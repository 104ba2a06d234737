// SPDX-License-Identifier: LGPL-2.1-or-later
/* The compressed text format of heaptrack, version 3; all numbers are hexadecimal. Strings, instructions and traces
 * count from 1, allocations (a size and a trace) from 0. A free refers to an allocation, so no addresses are needed. A
 * lifetime of several mappings becomes several allocations, and so does each piece of a mapping: heaptrack has no
 * partial unmapping. */
#include <inttypes.h>
#include <regex.h>

#include "output/escape.h"
#include "output/export/export-report.h"

#define HEAPTRACK_VERSION 0x10400
#define FILE_VERSION 3
#define PAGE_BYTES 4096

struct instruction_key {
	uint64_t address;
	uint64_t module, function, file; /* strings; 0: none */
	uint64_t line;
};

struct heaptrack {
	const struct export *export;
	FILE *stream;
	struct intern strings, instructions, traces, allocations;
	struct map stack_traces; /* row << 32 | process -> trace */
	struct buffer text;
	regex_t allocation; /* functions that are left out */
	size_t reading;	    /* the next of the report's resident readings */
	bool failed;
};

/* Control characters and invalid UTF-8 become \xNN. */
static uint64_t put_string(struct heaptrack *heaptrack, const char *text)
{
	struct buffer *escaped = &heaptrack->text;
	uint64_t id;

	buffer_clear(escaped);
	escape_put(text, ESCAPE_FOR_TERMINAL, escaped);
	if (export_is_new(&heaptrack->strings, escaped->data, escaped->size, &id, &heaptrack->failed)) {
		fprintf(heaptrack->stream, "s %zx ", escaped->size);
		fwrite(escaped->data, 1, escaped->size, heaptrack->stream);
		putc('\n', heaptrack->stream);
	}
	return id;
}

static uint64_t put_instruction(struct heaptrack *heaptrack, const char *name, const struct mmt_frame *frame)
{
	struct instruction_key key = {.function = put_string(heaptrack, name)};
	uint64_t id;

	if (frame) {
		key.address = frame->address;
		key.module = frame->module_path ? put_string(heaptrack, frame->module_path) : 0;
		key.file = frame->source_file ? put_string(heaptrack, frame->source_file) : 0;
		key.line = frame->source_line;
	}
	if (export_is_new(&heaptrack->instructions, &key, sizeof(key), &id, &heaptrack->failed))
		fprintf(heaptrack->stream, "i %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 "\n",
			key.address, key.module, key.function, key.file, key.line);
	return id;
}

static uint64_t put_trace(struct heaptrack *heaptrack, uint64_t instruction, uint64_t parent)
{
	const uint64_t key[] = {instruction, parent};
	uint64_t id;

	if (export_is_new(&heaptrack->traces, key, sizeof(key), &id, &heaptrack->failed))
		fprintf(heaptrack->stream, "t %" PRIx64 " %" PRIx64 "\n", instruction, parent);
	return id;
}

/* Write the process, then the frames, outermost first. The summary names the innermost one. */
static uint64_t put_stack(struct heaptrack *heaptrack, const struct mmt_part *part)
{
	const struct mmt_report *report = heaptrack->export->report;
	const struct mmt_row *row = &report->rows[part->row];
	uint64_t key = (uint64_t)part->row << 32 | (uint32_t)part->process, trace;
	const uint64_t *known = map_get(&heaptrack->stack_traces, key);
	struct export_stack stack;
	size_t first = row->frame_count;

	if (known)
		return *known;
	export_process_name(&report->processes[part->process], stack.text);
	trace = put_trace(heaptrack, put_instruction(heaptrack, stack.text, NULL), 0);
	/* Begin with the innermost frame that is not in an allocation function; the last frame counts in any case. */
	for (; first > 0; first--) {
		const char *function = row->frames[first - 1]->function;

		if (function && first < row->frame_count && regexec(&heaptrack->allocation, function, 0, NULL, 0) == 0)
			break;
	}
	export_stack_begin(&stack, row);
	while (stack.left > first && export_stack_next(&stack))
		trace = put_trace(heaptrack, put_instruction(heaptrack, stack.name, stack.frame), trace);
	heaptrack->failed |= !map_put(&heaptrack->stack_traces, key, trace);
	return trace;
}

static void put_allocation(struct heaptrack *heaptrack, char sign, uint64_t size, uint64_t trace, uint64_t count)
{
	const uint64_t key[] = {size, trace};
	char line[32];
	size_t size_of_line;
	uint64_t id;

	if (export_is_new(&heaptrack->allocations, key, sizeof(key), &id, &heaptrack->failed))
		fprintf(heaptrack->stream, "a %" PRIx64 " %" PRIx64 "\n", size, trace);
	/* "+ 1f", `count` times: most of the file. */
	size_of_line = (size_t)snprintf(line, sizeof(line), "%c %" PRIx64 "\n", sign, id - 1);
	for (; count; count--)
		fwrite(line, 1, size_of_line, heaptrack->stream);
}

/* Write the time, and the resident sizes that were read until then. */
static void put_time(struct heaptrack *heaptrack, uint64_t time_ns)
{
	const struct mmt_report *report = heaptrack->export->report;

	fprintf(heaptrack->stream, "c %" PRIx64 "\n", (time_ns - report->from_ns) / 1000000);
	for (; heaptrack->reading < report->resident_reading_count; heaptrack->reading++) {
		const struct mmt_resident_reading *reading = &report->resident_readings[heaptrack->reading];

		if (reading->time_ns > time_ns)
			return;
		fprintf(heaptrack->stream, "R %" PRIx64 "\n", reading->resident_bytes / PAGE_BYTES);
	}
}

struct mmt_error *export_heaptrack(const struct export *export, FILE *stream)
{
	struct heaptrack heaptrack = {.export = export, .stream = stream};
	struct buffer *text = &heaptrack.text;
	struct mmt_error *error;

	if (regcomp(&heaptrack.allocation, "^(" EXPORT_ALLOCATION_FUNCTIONS ")(\\(|$)", REG_EXTENDED | REG_NOSUB) != 0)
		return &error_no_memory;
	export_begin_buffers(&text, 1);
	fprintf(stream, "v %x %x\n", HEAPTRACK_VERSION, FILE_VERSION);
	fputs("X mmtrace export ", stream);
	escape_write(export->report->input, ESCAPE_FOR_TERMINAL, stream);
	putc('\n', stream);
	fprintf(stream, "I %x 0\n", PAGE_BYTES);
	for (size_t i = 0; i < export->events.count && !heaptrack.failed; i++) {
		const struct export_event *event = &export->events.items[i];
		const struct mmt_lifetime *lifetime = export_event_lifetime(export->report, event);
		uint64_t count = lifetime->count ? lifetime->count : 1, size = lifetime->bytes / count, trace;
		uint64_t larger = lifetime->bytes % count; /* this many of them are one byte larger */
		char sign = event->is_release ? '-' : '+';

		if (!i || event->step != event[-1].step)
			put_time(&heaptrack, export_step_ns(export->report, event->step));
		trace = put_stack(&heaptrack, &export->report->parts[event->part]);
		if (size && count > larger)
			put_allocation(&heaptrack, sign, size, trace, count - larger);
		if (larger)
			put_allocation(&heaptrack, sign, size + 1, trace, larger);
	}
	put_time(&heaptrack, export->report->to_ns);
	error = export_end_buffers(&text, 1, heaptrack.failed, NULL);
	regfree(&heaptrack.allocation);
	intern_deinit(&heaptrack.strings);
	intern_deinit(&heaptrack.instructions);
	intern_deinit(&heaptrack.traces);
	intern_deinit(&heaptrack.allocations);
	map_deinit(&heaptrack.stack_traces);
	return error;
}
