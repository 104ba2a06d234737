// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/read/decode-ahead.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/syscall-table.h"
#include "base/map.h"
#include "trace/format/format.h"
#include "trace/read/reorder.h"

#define HEADER_BYTES sizeof(struct perf_event_header)
#define FETCH_AHEAD_RECORDS 4
#define NEEDED_FIELDS (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER)
#define UNUSUAL_FIELDS (PERF_SAMPLE_READ | PERF_SAMPLE_BRANCH_STACK)

bool decode_ahead_is_usual(const struct reader_attribute *attribute, const struct perf_event_attr *attr,
			   const struct decode_fields *fields)
{
	return attribute->is_call && !attribute->is_enter && fields->complete &&
	       fields->result.size == sizeof(uint64_t) && fields->arguments_known &&
	       (attr->sample_type & NEEDED_FIELDS) == NEEDED_FIELDS && !(attr->sample_type & UNUSUAL_FIELDS);
}

/* Accepts only a plain callchain, which need not be copied. A callchain that already has a number was checked
 * before. */
static bool take_callchain(const struct decoder *decoder, struct callchain_numbers *numbers, const uint8_t *data,
			   uint64_t count, struct ahead_call *call)
{
	uint64_t hash = 0;

	if (!count)
		return true;
	if (!decode_begins_plainly(data, count))
		return false;
	call->callchain = decode_plain_callchain(data, count, &call->callchain_count);
	call->callchain_number = callchain_numbers_find(numbers, call->callchain, call->callchain_count, &hash);
	if (!call->callchain_number) {
		if (!decode_is_plain_callchain(data, count))
			return false;
		call->callchain_number = callchain_numbers_add(numbers, call->callchain, call->callchain_count, hash);
	}
	call->callchain_full = decode_is_full_callchain(decoder, call->callchain_count);
	return true;
}

/* The record was accepted as a sample of its attribute, which has these. */
static bool take_identity(const struct decoder *decoder, const struct order_item *item, struct ahead_call *call)
{
	const struct sample_layout *layout = &decoder->layouts->items[item->attribute];
	uint64_t task = layout_word(item->record, layout->sample_task);

	call->pid = (int32_t)(uint32_t)task;
	call->tid = (int32_t)(task >> 32);
	call->cpu = -1;
	if (layout->sample_cpu != LAYOUT_ABSENT)
		call->cpu = (int32_t)(uint32_t)layout_word(item->record, layout->sample_cpu);
	if (decoder->layouts->items[0].sample_id != LAYOUT_ABSENT)
		call->id = layout_word(item->record, decoder->layouts->items[0].sample_id);
	return item->time_ns && layout_word(item->record, layout->sample_time) == item->time_ns;
}

/* For a call that takes effect when it returns. */
static bool take_result(const struct sample_parts *parts, const struct decode_fields *fields, struct ahead_call *call)
{
	if (fields->result.offset + sizeof(uint64_t) > parts->raw_bytes)
		return false;
	call->result = (int64_t)decode_word(parts->raw + fields->result.offset, 0);
	return true;
}

/* False: the sample has an unusual shape or is damaged. */
static bool decode_body(const struct decoder *decoder, struct callchain_numbers *numbers, const struct order_item *item,
			struct ahead_call *call)
{
	const struct decode_fields *fields = &decoder->fields[item->attribute];
	struct bytes bytes = bytes_over(item->record, item->size);
	struct sample_parts parts;

	bytes_skip(&bytes, HEADER_BYTES);
	parts = sample_walk(&decoder->layouts->items[item->attribute].shape, &bytes);
	if (!bytes_ok(&bytes) || parts.abi != PERF_SAMPLE_REGS_ABI_64 || !take_result(&parts, fields, call))
		return false;
	call->registers = parts.registers;
	for (size_t i = 0; i < fields->arguments_known; i++)
		call->arguments[i] = decode_word(call->registers, fields->argument_places[i]);
	call->bytes = parts.copied_bytes ? parts.stack : NULL;
	call->byte_count = (uint32_t)parts.copied_bytes;
	call->bytes_wanted = (uint32_t)parts.stack_bytes;
	if (decoder->metadata->packed)
		call->resolved = (uint32_t)parts.weight;
	/* Registers are needed to unwind a copied stack, and to check whether a dump belongs to this call. */
	if (decoder->only_used_stacks && !call->bytes_wanted && !decoder->has_dumps)
		call->registers = NULL;
	if (!decoder->only_used_stacks || fields->uses_stack || call->result)
		return take_callchain(decoder, numbers, parts.callchain, parts.callchain_count, call);
	/* Without a callchain, only stack bytes give more information than registers. */
	if (!call->bytes)
		call->registers = NULL;
	return true;
}

static void decode_item(const struct decoder *decoder, struct callchain_numbers *numbers, const struct order_item *item,
			struct ahead_call *call)
{
	struct perf_event_header header;

	call->ready = false;
	memcpy(&header, item->record, sizeof(header));
	if (header.type != PERF_RECORD_SAMPLE || item->attribute == UINT32_MAX ||
	    !decoder->fields[item->attribute].usual)
		return;
	*call = (struct ahead_call){0};
	call->ready = take_identity(decoder, item, call) && decode_body(decoder, numbers, item, call);
}

void decode_ahead(const struct decoder *decoder, struct callchain_numbers *numbers, const struct order_item *items,
		  size_t count, struct ahead_call *calls_ret)
{
	for (size_t i = 0; i < count; i++) {
		if (i + FETCH_AHEAD_RECORDS < count)
			fetch_record(items[i + FETCH_AHEAD_RECORDS].record, items[i + FETCH_AHEAD_RECORDS].size);
		decode_item(decoder, numbers, &items[i], &calls_ret[i]);
	}
}

static void expand_stack(const struct decode_fields *fields, const struct ahead_call *call, uint64_t time_ns,
			 struct event_stack *stack)
{
	stack->time_ns = time_ns;
	stack->resolved = call->resolved;
	stack->callchain = call->callchain;
	stack->callchain_count = call->callchain_count;
	stack->callchain_number = call->callchain_number;
	stack->callchain_full = call->callchain_full;
	stack->bytes = call->bytes;
	stack->byte_count = call->byte_count;
	stack->bytes_wanted = call->bytes_wanted;
	stack->registers.known = 0;
	if (!call->registers)
		return;
	for (size_t i = 0; i < fields->register_count; i++) {
		if (fields->registers[i] >= 0)
			stack->registers.values[fields->registers[i]] = decode_word(call->registers, i);
	}
	stack->registers.known = fields->registers_known;
}

void decode_ahead_expand(const struct decoder *decoder, const struct order_item *item, const struct ahead_call *call,
			 struct event *event_ret)
{
	const struct reader_attribute *attribute = &decoder->metadata->attributes[item->attribute];
	struct event *event = event_ret;

	event->kind = role_is_dump(attribute->role) ? EVENT_STACK_DUMP : EVENT_CALL;
	event->time_ns = item->time_ns;
	event->pid = call->pid;
	event->tid = call->tid;
	event->cpu = call->cpu;
	event->attribute = item->attribute;
	event->record_type = PERF_RECORD_SAMPLE;
	event->record_size = item->size;
	event->snapshot = 0;
	event->call.call = attribute->call;
	event->call.has_arguments = true;
	event->call.at_entry = false;
	event->call.result = call->result;
	memcpy(event->call.arguments, call->arguments, sizeof(event->call.arguments));
	expand_stack(&decoder->fields[item->attribute], call, item->time_ns, &event->call.stack);
}

#define PLACES 16384  /* a power of two */
#define TRIES 4	      /* slots that a callchain may be in */
#define COUNT_MAX 256 /* limits their total size to 32 MiB */

struct numbered_callchain {
	uint64_t hash, number; /* number 0: the slot is free */
	uint64_t *callchain;
	uint32_t count;
};

struct callchain_numbers {
	uint64_t last;
	struct id_table hashing; /* only its seed is used */
	struct numbered_callchain places[PLACES];
};

struct mmt_error *callchain_numbers_create(struct callchain_numbers **numbers_ret)
{
	*numbers_ret = calloc(1, sizeof(**numbers_ret));
	return *numbers_ret ? NULL : &error_no_memory;
}

void callchain_numbers_destroy(struct callchain_numbers *numbers)
{
	if (!numbers)
		return;
	for (size_t i = 0; i < PLACES; i++)
		free(numbers->places[i].callchain);
	free(numbers);
}

static uint64_t enter(struct callchain_numbers *numbers, struct numbered_callchain *place, uint64_t hash,
		      const uint64_t *callchain, size_t count)
{
	uint64_t *copy = realloc(place->callchain, count * sizeof(*copy));

	if (!copy)
		return 0;
	memcpy(copy, callchain, count * sizeof(*copy));
	*place = (struct numbered_callchain){
	    .hash = hash, .number = ++numbers->last, .callchain = copy, .count = (uint32_t)count};
	return place->number;
}

uint64_t callchain_numbers_find(struct callchain_numbers *numbers, const uint64_t *callchain, size_t count,
				uint64_t *hash_ret)
{
	uint64_t hash;

	if (!count || count > COUNT_MAX)
		return 0;
	*hash_ret = hash = id_table_hash(&numbers->hashing, callchain, count * sizeof(*callchain));
	for (size_t i = 0; i < TRIES; i++) {
		const struct numbered_callchain *place = &numbers->places[(hash + i) & (PLACES - 1)];

		if (!place->number)
			return 0;
		if (place->hash == hash && place->count == count &&
		    !memcmp(place->callchain, callchain, count * sizeof(*callchain)))
			return place->number;
	}
	return 0;
}

uint64_t callchain_numbers_add(struct callchain_numbers *numbers, const uint64_t *callchain, size_t count,
			       uint64_t hash)
{
	/* If no slot is free, the hash of the new callchain selects the one to replace; the others stay. */
	struct numbered_callchain *place = &numbers->places[(hash + (hash >> 32) % TRIES) & (PLACES - 1)];

	if (!count || count > COUNT_MAX)
		return 0;
	for (size_t i = TRIES; i-- > 0;) {
		struct numbered_callchain *free_one = &numbers->places[(hash + i) & (PLACES - 1)];

		if (!free_one->number)
			place = free_one;
	}
	return enter(numbers, place, hash, callchain, count);
}
