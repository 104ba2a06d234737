// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/format/strip-sample.h"

#include "base/bytes.h"
#include "trace/format/sample-layout.h"

#define KNOWN_FIELDS                                                                                                   \
	(SAMPLE_FIXED_FIELDS | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER |                       \
	 PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT)
#define STRIPPED_FIELDS (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT)

/* Of perf's number: which argument of a call is in it; -1: none. */
static int find_argument(const struct architecture *architecture, unsigned number)
{
	int dwarf = number < architecture->perf_register_count ? architecture->perf_to_dwarf[number] : -1;

	for (int i = 0; dwarf >= 0 && i < 6; i++) {
		if (architecture->argument_registers[i] == dwarf)
			return i;
	}
	return -1;
}

static uint64_t argument_mask(const struct architecture *architecture, uint64_t mask)
{
	for (unsigned i = 0; i < 64; i++) {
		if (mask >> i & 1 && find_argument(architecture, i) < 0)
			mask &= ~(1ULL << i);
	}
	return mask;
}

struct perf_event_attr strip_attribute(const struct perf_event_attr *attr, const struct architecture *architecture,
				       bool numbered)
{
	struct perf_event_attr stripped = *attr;

	stripped.sample_type &= KNOWN_FIELDS & ~(uint64_t)STRIPPED_FIELDS;
	stripped.sample_stack_user = 0;
	stripped.sample_regs_user = 0;
	if (!numbered)
		return stripped;
	stripped.sample_type |= PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_WEIGHT;
	stripped.sample_regs_user = argument_mask(architecture, attr->sample_regs_user);
	if (attr->sample_type & PERF_SAMPLE_REGS_USER && stripped.sample_regs_user)
		stripped.sample_type |= PERF_SAMPLE_REGS_USER;
	return stripped;
}

static void put_callchain(const struct stripped_stack *stack, struct buffer *buffer)
{
	buffer_put_u64(buffer, stack->callchain_count ? stack->callchain_count + 1 : 0);
	if (stack->callchain_count)
		buffer_put_u64(buffer, (uint64_t)PERF_CONTEXT_USER);
	for (size_t i = 0; i < stack->callchain_count; i++)
		buffer_put_u64(buffer, stack->callchain[i]);
}

static void put_arguments(const struct perf_event_attr *attr, const struct architecture *architecture, enum call call,
			  const struct sample_parts *parts, struct buffer *buffer)
{
	int count = __builtin_popcountll(attr->sample_regs_user);
	struct bytes values = bytes_over(parts->registers, parts->registers ? (size_t)count * sizeof(uint64_t) : 0);
	uint64_t arguments[6] = {0};
	unsigned used;

	buffer_put_u64(buffer, parts->abi);
	if (!parts->registers)
		return;
	for (unsigned i = 0; i < 64; i++) {
		int argument = find_argument(architecture, i);
		uint64_t value = attr->sample_regs_user >> i & 1 ? bytes_u64(&values) : 0;

		if (argument >= 0)
			arguments[argument] = value;
	}
	used = call_arguments_used(call, arguments);
	for (unsigned i = 0; i < 64; i++) {
		int argument = find_argument(architecture, i);

		if (argument >= 0 && attr->sample_regs_user >> i & 1)
			buffer_put_u64(buffer, used >> argument & 1 ? arguments[argument] : 0);
	}
}

struct mmt_error *strip_sample(const struct perf_event_attr *attr, const struct architecture *architecture,
			       const void *record, enum call call, const struct stripped_stack *stack,
			       struct buffer *buffer)
{
	bool registers = stack && argument_mask(architecture, attr->sample_regs_user);
	struct sample_shape shape = sample_shape_of(attr);
	size_t start = buffer->size;
	struct perf_event_header header;
	struct sample_parts parts;
	struct bytes bytes;

	if (attr->sample_type & ~(uint64_t)KNOWN_FIELDS)
		return error_create(MMT_ERROR_UNSUPPORTED, "samples with fields that mmtrace does not record (0x%llx)",
				    (unsigned long long)(attr->sample_type & ~(uint64_t)KNOWN_FIELDS));
	bytes = bytes_over(record, sizeof(header));
	header.type = bytes_u32(&bytes);
	header.misc = bytes_u16(&bytes);
	bytes = bytes_over(record, bytes_u16(&bytes));
	bytes_skip(&bytes, sizeof(header));
	parts = sample_walk(&shape, &bytes);
	if (!bytes_ok(&bytes))
		return error_create(MMT_ERROR_FORMAT, "sample: %s", bytes.failure);
	buffer_put_u32(buffer, header.type);
	buffer_put_u16(buffer, header.misc);
	buffer_put_u16(buffer, 0);
	buffer_put(buffer, (const uint8_t *)record + sizeof(header), shape.fixed_bytes);
	if (stack)
		put_callchain(stack, buffer);
	if (attr->sample_type & PERF_SAMPLE_RAW) {
		buffer_put_u32(buffer, (uint32_t)parts.raw_bytes);
		buffer_put(buffer, parts.raw, parts.raw_bytes);
	}
	if (attr->sample_type & PERF_SAMPLE_REGS_USER && registers)
		put_arguments(attr, architecture, call, &parts, buffer);
	if (stack)
		buffer_put_u64(buffer, stack->number);
	buffer_align(buffer, sizeof(uint64_t));
	if (buffer->size - start > UINT16_MAX)
		return error_create(MMT_ERROR_FORMAT, "sample too large");
	if (!buffer->error)
		buffer_patch_u16(buffer, start + 6, (uint16_t)(buffer->size - start));
	return NULL;
}
