// SPDX-License-Identifier: LGPL-2.1-or-later
/* The body of a sample, field by field in the order that the kernel writes (linux/perf_event.h, PERF_RECORD_SAMPLE). */
#include <string.h>
#include <sys/mman.h>

#include "trace/calls.h"
#include "trace/decode.h"

#define BRANCH_ENTRY_BYTES 24
#define BRANCH_COUNTERS (1ULL << 19) /* PERF_SAMPLE_BRANCH_COUNTERS, absent in older headers */
#define READ_LOST (1ULL << 4)	     /* PERF_FORMAT_LOST, likewise */

static void skip_read(struct bytes *bytes, uint64_t format)
{
	size_t times =
	    (format & PERF_FORMAT_TOTAL_TIME_ENABLED ? 1 : 0) + (format & PERF_FORMAT_TOTAL_TIME_RUNNING ? 1 : 0);
	size_t member = 1 + (format & PERF_FORMAT_ID ? 1 : 0) + (format & READ_LOST ? 1 : 0);
	uint64_t members = 1;

	if (format & PERF_FORMAT_GROUP)
		members = bytes_u64(bytes);
	bytes_skip(bytes, times * sizeof(uint64_t));
	members = bytes_count(bytes, members, member * sizeof(uint64_t), UINT16_MAX);
	bytes_skip(bytes, members * member * sizeof(uint64_t));
}

bool decode_is_plain_callchain(const uint8_t *data, uint64_t count)
{
	uint64_t largest = 0;

	if (!decode_begins_plainly(data, count))
		return false;
	for (uint64_t i = 1; i < count; i++) {
		uint64_t address = decode_word(data, i);

		largest = address > largest ? address : largest;
	}
	return largest < (uint64_t)PERF_CONTEXT_MAX;
}

/* User addresses only. Markers say whose addresses follow. */
static void read_callchain(struct decoder *decoder, struct bytes *bytes, struct event_stack *stack)
{
	uint64_t count = bytes_u64(bytes), entries = 0;
	uint32_t plain_count;
	const uint8_t *data;
	bool user = false;

	count = bytes_count(bytes, count, sizeof(uint64_t), LIMIT_CALLCHAIN);
	data = bytes_take(bytes, count * sizeof(uint64_t));
	if (data && decode_is_plain_callchain(data, count)) {
		stack->callchain = decode_plain_callchain(data, count, &plain_count);
		stack->callchain_count = entries = plain_count;
		count = 0;
	}
	for (uint64_t i = 0; data && i < count; i++) {
		uint64_t address = decode_word(data, i);

		if (address >= (uint64_t)PERF_CONTEXT_MAX) {
			user = address == (uint64_t)PERF_CONTEXT_USER;
			continue;
		}
		entries++;
		if (user)
			decoder->callchain[stack->callchain_count++] = address;
	}
	if (stack->callchain_count && !stack->callchain)
		stack->callchain = decoder->callchain;
	stack->callchain_full = decode_is_full_callchain(decoder, entries);
}

static struct bytes read_raw(struct bytes *bytes)
{
	return bytes_sub(bytes, bytes_u32(bytes));
}

static void skip_branches(struct bytes *bytes, uint64_t branch_type)
{
	uint64_t count = bytes_u64(bytes);
	size_t entry = BRANCH_ENTRY_BYTES + (branch_type & BRANCH_COUNTERS ? sizeof(uint64_t) : 0);

	if (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		bytes_u64(bytes);
	count = bytes_count(bytes, count, entry, UINT16_MAX);
	bytes_skip(bytes, count * entry);
}

static void read_registers(const struct decode_fields *fields, struct bytes *bytes, struct register_values *registers)
{
	uint64_t abi = bytes_u64(bytes);
	const uint8_t *values;

	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	values = bytes_take(bytes, fields->register_count * sizeof(uint64_t));
	if (!values || abi != PERF_SAMPLE_REGS_ABI_64)
		return;
	for (size_t i = 0; i < fields->register_count; i++) {
		if (fields->registers[i] >= 0)
			registers->values[fields->registers[i]] = decode_word(values, i);
	}
	registers->known = fields->registers_known;
}

/* The kernel writes the size asked for, cut to what fits into the record, and behind the bytes how many of them it
 * could copy. */
struct copied_stack decode_copied_stack(struct bytes *bytes)
{
	uint64_t size = bytes_u64(bytes), copied;
	const uint8_t *data;

	if (!size)
		return (struct copied_stack){0};
	size = bytes_count(bytes, size, 1, LIMIT_STACK_BYTES);
	data = bytes_take(bytes, size);
	copied = bytes_u64(bytes);
	if (copied > size) {
		bytes_fail(bytes, "more stack copied than there is");
		return (struct copied_stack){0};
	}
	return (struct copied_stack){
	    .bytes = copied ? data : NULL, .byte_count = (uint32_t)copied, .bytes_wanted = (uint32_t)size};
}

static void read_stack(struct bytes *bytes, struct event_stack *stack)
{
	struct copied_stack copied = decode_copied_stack(bytes);

	stack->bytes = copied.bytes;
	stack->byte_count = copied.byte_count;
	stack->bytes_wanted = copied.bytes_wanted;
}

static uint64_t read_field(struct bytes raw, const struct tracepoint_field *field)
{
	bytes_skip(&raw, field->offset);
	switch (field->size) {
	case 1:
		return field->is_signed ? (uint64_t)(int8_t)bytes_u8(&raw) : bytes_u8(&raw);
	case 2:
		return field->is_signed ? (uint64_t)(int16_t)bytes_u16(&raw) : bytes_u16(&raw);
	case 4:
		return field->is_signed ? (uint64_t)(int32_t)bytes_u32(&raw) : bytes_u32(&raw);
	default:
		return bytes_u64(&raw);
	}
}

static bool holds_field(const struct bytes *raw, const struct tracepoint_field *field)
{
	return field->offset + field->size <= bytes_left(raw);
}

static void take_arguments_from_registers(const struct architecture *architecture, struct event *event)
{
	const struct register_values *registers = &event->call.stack.registers;
	size_t count = call_describe(event->call.call)->arguments;

	if (architecture->first_argument_lost)
		return;
	for (size_t i = 0; i < count; i++) {
		if (!(registers->known >> architecture->argument_registers[i] & 1))
			return;
	}
	for (size_t i = 0; i < count; i++)
		event->call.arguments[i] = registers->values[architecture->argument_registers[i]];
	event->call.has_arguments = true;
}

/* Of plain perf's files, whose entries were not filtered, most are of no interest. */
static void complete_at_entry(struct event *event)
{
	int advice = (int)event->call.arguments[2];

	if (event->call.call == CALL_MADVISE && advice != MADV_DONTFORK && advice != MADV_DOFORK)
		event->kind = EVENT_OTHER;
	else
		event->kind = EVENT_CALL;
}

static void fill_call(const struct decoder *decoder, const struct decode_fields *fields, struct bytes *raw,
		      struct bytes *bytes, struct event *event)
{
	const struct reader_attribute *attribute = &decoder->metadata->attributes[event->attribute];

	event->call.call = attribute->call;
	if (attribute->is_enter) {
		event->kind = EVENT_CALL_ENTER;
		for (size_t i = 0; i < fields->argument_count; i++) {
			if (!holds_field(raw, &fields->arguments[i])) {
				bytes_fail(bytes, "raw data shorter than the tracepoint's fields");
				return;
			}
			event->call.arguments[i] = read_field(*raw, &fields->arguments[i]);
		}
		event->call.has_arguments = true;
		if (call_describe(attribute->call)->at_entry)
			complete_at_entry(event);
		return;
	}
	if (call_describe(attribute->call)->at_entry) {
		event->kind = EVENT_OTHER; /* its entry has told all */
		return;
	}
	take_arguments_from_registers(decoder->metadata->architecture, event);
	event->kind = role_is_dump(attribute->role) ? EVENT_STACK_DUMP : EVENT_CALL;
	if (!holds_field(raw, &fields->result)) {
		bytes_fail(bytes, "raw data shorter than the tracepoint's fields");
		return;
	}
	event->call.result = (int64_t)read_field(*raw, &fields->result);
}

static void fill_new_task(const struct decode_fields *fields, struct bytes *raw, struct bytes *bytes,
			  struct event *event)
{
	if (!holds_field(raw, &fields->task) || !holds_field(raw, &fields->clone_flags)) {
		bytes_fail(bytes, "raw data shorter than the tracepoint's fields");
		return;
	}
	event->kind = EVENT_NEW_TASK;
	event->new_task.tid = (int32_t)read_field(*raw, &fields->task);
	event->new_task.clone_flags = read_field(*raw, &fields->clone_flags);
}

static void fill_lock(const struct decode_fields *fields, struct bytes *raw, struct bytes *bytes, struct event *event)
{
	if (!holds_field(raw, &fields->space) || !holds_field(raw, &fields->write) ||
	    !holds_field(raw, &fields->success)) {
		bytes_fail(bytes, "raw data shorter than the tracepoint's fields");
		return;
	}
	/* Ours are filtered, those of plain perf need not be. */
	if (!read_field(*raw, &fields->write) || !read_field(*raw, &fields->success))
		return;
	event->kind = EVENT_LOCK;
	event->lock.space = read_field(*raw, &fields->space);
}

static void skip_callchain(struct bytes *bytes)
{
	uint64_t count = bytes_count(bytes, bytes_u64(bytes), sizeof(uint64_t), LIMIT_CALLCHAIN);

	bytes_skip(bytes, count * sizeof(uint64_t));
}

/* Up to the stack, or its number; what follows is of no use here. Without a place in `callchain_ret` the callchain is
 * read, else it is told where it is. */
static struct bytes read_body(struct decoder *decoder, const struct perf_event_attr *attr,
			      const struct decode_fields *fields, struct bytes *bytes, struct event_stack *stack,
			      struct bytes *callchain_ret)
{
	uint64_t type = attr->sample_type;
	struct bytes raw = bytes_over(NULL, 0);

	bytes_skip(bytes, fields->before_body);
	if (type & PERF_SAMPLE_READ)
		skip_read(bytes, attr->read_format);
	if (callchain_ret)
		*callchain_ret = *bytes;
	if (type & PERF_SAMPLE_CALLCHAIN && callchain_ret)
		skip_callchain(bytes);
	else if (type & PERF_SAMPLE_CALLCHAIN)
		read_callchain(decoder, bytes, stack);
	if (type & PERF_SAMPLE_RAW)
		raw = read_raw(bytes);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		skip_branches(bytes, attr->branch_sample_type);
	if (type & PERF_SAMPLE_REGS_USER)
		read_registers(fields, bytes, &stack->registers);
	if (type & PERF_SAMPLE_STACK_USER)
		read_stack(bytes, stack);
	if (type & PERF_SAMPLE_WEIGHT && decoder->metadata->packed)
		stack->resolved = (uint32_t)bytes_u64(bytes);
	return raw;
}

static void decode_call(struct decoder *decoder, const struct decode_fields *fields, struct bytes *bytes,
			struct event *event)
{
	const struct perf_event_attr *attr = &decoder->file->attributes.items[event->attribute].attr;
	bool skip = decoder->only_used_stacks && !fields->uses_stack;
	struct event_stack *stack = &event->call.stack;
	struct bytes callchain, raw = read_body(decoder, attr, fields, bytes, stack, skip ? &callchain : NULL);

	if (!fields->complete || !bytes_ok(bytes))
		return;
	stack->time_ns = event->time_ns;
	fill_call(decoder, fields, &raw, bytes, event);
	if (skip && event->call.result && attr->sample_type & PERF_SAMPLE_CALLCHAIN)
		read_callchain(decoder, &callchain, stack);
}

void decode_sample(struct decoder *decoder, const struct record_identity *identity, struct bytes *bytes,
		   struct event *event)
{
	const struct decode_fields *fields = &decoder->fields[identity->attribute];
	const struct reader_attribute *attribute = &decoder->metadata->attributes[identity->attribute];
	const struct perf_event_attr *attr = &decoder->file->attributes.items[identity->attribute].attr;
	struct event_stack other; /* of a sample that is no call's */
	struct bytes raw;

	if (attribute->is_call) {
		decode_call(decoder, fields, bytes, event);
		return;
	}
	memset(&other, 0, sizeof(other));
	raw = read_body(decoder, attr, fields, bytes, &other, NULL);
	if (!fields->complete || !bytes_ok(bytes))
		return;
	if (attribute->role == ROLE_LOCK)
		fill_lock(fields, &raw, bytes, event);
	else
		fill_new_task(fields, &raw, bytes, event);
}
