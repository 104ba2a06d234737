/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The layout of the samples of an attribute, and the only parser of a sample: the recorder, the reader and pack find
 * the parts of a sample with sample_walk(). */
#pragma once

#include "base/limits.h"
#include "base/map.h"
#include "trace/format/architecture.h"
#include "trace/read/recording-file.h"

/* 8-byte fields at the start of a sample, in the kernel's order (linux/perf_event.h, PERF_RECORD_SAMPLE). */
#define SAMPLE_FIXED_FIELDS                                                                                            \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |             \
	 PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)

/* Fields between those that sample_walk() finds and the last two, which are then not found. */
#define SAMPLE_FIELDS_BEFORE_PAGE_SIZE                                                                                 \
	(PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_CGROUP |                 \
	 PERF_SAMPLE_WEIGHT_STRUCT)

/* What sample_walk() needs from the attribute. */
struct sample_shape {
	uint64_t fields; /* sample_type */
	uint64_t read_format, branch_fields;
	uint8_t fixed_bytes; /* of SAMPLE_FIXED_FIELDS, behind the record's header */
	uint8_t registers;   /* number of user registers in a sample */
};

static inline struct sample_shape sample_shape_of(const struct perf_event_attr *attr)
{
	return (struct sample_shape){.fields = attr->sample_type,
				     .read_format = attr->read_format,
				     .branch_fields = attr->branch_sample_type,
				     .fixed_bytes =
					 (uint8_t)(8 * __builtin_popcountll(attr->sample_type & SAMPLE_FIXED_FIELDS)),
				     .registers = (uint8_t)__builtin_popcountll(attr->sample_regs_user)};
}

/* The parts of a sample behind its fixed fields, borrowed from the record. An absent part is NULL, its count 0. */
struct sample_parts {
	const uint8_t *fixed; /* the fixed fields */
	const uint8_t *callchain;
	uint64_t callchain_count; /* including the context markers */
	const uint8_t *raw;
	size_t raw_bytes;
	uint64_t abi; /* PERF_SAMPLE_REGS_ABI_* of the registers */
	const uint8_t *registers;
	const uint8_t *stack;
	size_t stack_bytes;  /* as requested by the attribute, limited to the size of a record */
	size_t copied_bytes; /* bytes copied by the kernel; the rest is old content of the ring */
	uint64_t weight;
	const uint8_t *physical; /* the physical address: 0 if it has none */
	uint64_t page_bytes;	 /* 0: not known */
};

/* Fields that mmtrace does not record but perf may. */
void sample_skip_read(const struct sample_shape *shape, struct bytes *bytes);
void sample_skip_branches(const struct sample_shape *shape, struct bytes *bytes);

/* Inlined into every caller, because it runs for every event and the used parts then stay in registers. */
#define SAMPLE_WALK static inline __attribute__((always_inline))

/* The kernel writes the number of copied bytes after the bytes, if there are any. */
SAMPLE_WALK void sample_walk_stack(struct bytes *bytes, struct sample_parts *parts)
{
	uint64_t size = bytes_count(bytes, bytes_u64(bytes), 1);

	if (!size)
		return;
	parts->stack = bytes_take(bytes, size);
	parts->stack_bytes = size;
	parts->copied_bytes = bytes_u64(bytes);
	if (parts->copied_bytes > size)
		bytes_fail(bytes, "more stack bytes copied than the dump has");
}

/* `bytes` must be behind the record's header. Afterwards it has failed if the record does not match the shape. */
SAMPLE_WALK struct sample_parts sample_walk(const struct sample_shape *shape, struct bytes *bytes)
{
	struct sample_parts parts = {0};
	uint64_t fields = shape->fields;

	parts.fixed = bytes_take(bytes, shape->fixed_bytes);
	if (__builtin_expect(fields & PERF_SAMPLE_READ, 0))
		sample_skip_read(shape, bytes);
	if (fields & PERF_SAMPLE_CALLCHAIN) {
		parts.callchain_count =
		    bytes_at_most(bytes, bytes_count(bytes, bytes_u64(bytes), sizeof(uint64_t)), LIMIT_CALLCHAIN);
		parts.callchain = bytes_take(bytes, parts.callchain_count * sizeof(uint64_t));
	}
	if (fields & PERF_SAMPLE_RAW) {
		uint32_t raw_bytes = bytes_u32(bytes);

		parts.raw = bytes_take(bytes, raw_bytes);
		parts.raw_bytes = parts.raw ? raw_bytes : 0;
	}
	if (__builtin_expect(fields & PERF_SAMPLE_BRANCH_STACK, 0))
		sample_skip_branches(shape, bytes);
	if (fields & PERF_SAMPLE_REGS_USER) {
		parts.abi = bytes_u64(bytes);
		if (parts.abi != PERF_SAMPLE_REGS_ABI_NONE)
			parts.registers = bytes_take(bytes, shape->registers * sizeof(uint64_t));
	}
	if (fields & PERF_SAMPLE_STACK_USER)
		sample_walk_stack(bytes, &parts);
	if (fields & PERF_SAMPLE_WEIGHT)
		parts.weight = bytes_u64(bytes);
	if (fields & SAMPLE_FIELDS_BEFORE_PAGE_SIZE)
		return parts;
	if (fields & PERF_SAMPLE_PHYS_ADDR)
		parts.physical = bytes_take(bytes, sizeof(uint64_t));
	if (fields & PERF_SAMPLE_DATA_PAGE_SIZE)
		parts.page_bytes = bytes_u64(bytes);
	return parts;
}

/* Offsets in a sample count from the start of the record, those in a trailer from the start of the trailer. */
#define LAYOUT_ABSENT UINT16_MAX

struct sample_layout {
	struct sample_shape shape;
	uint16_t sample_id, sample_task, sample_time, sample_address, sample_cpu;
	uint16_t trailer_size; /* of records other than samples; 0: they have none */
	uint16_t trailer_id, trailer_task, trailer_time, trailer_cpu;
	bool may_come_twice; /* it may be a copy, inherited from several roots */
};

struct layouts {
	struct sample_layout *items; /* by attribute */
	size_t count;
	struct map by_id; /* index of the attribute */
};

/* The identification of a record. */
struct record_identity {
	uint32_t attribute;    /* UINT32_MAX: not known */
	uint64_t id;	       /* 0: synthesized by perf, or none */
	uint64_t time_ns;      /* 0: none */
	int32_t pid, tid, cpu; /* -1: not known */
};

struct mmt_error *layouts_create(const struct recording_file *file, struct layouts *layouts_ret) MMT_MUST_CHECK;
void layouts_deinit(struct layouts *layouts);

/* False: the record is too short for the fields that its attribute requires. */
bool layouts_identify(const struct layouts *layouts, const struct perf_event_header *header, const uint8_t *record,
		      struct record_identity *identity_ret);

/* The same for a record that layouts_identify() has accepted, with the attribute that it returned. */
void layouts_read(const struct layouts *layouts, const struct perf_event_header *header, const uint8_t *record,
		  uint32_t attribute, struct record_identity *identity_ret);

/* Read a field of an accepted record, at an offset that its layout has. */
static inline uint64_t layout_word(const uint8_t *record, size_t place)
{
	uint64_t value;

	memcpy(&value, record + place, sizeof(value));
	return le64toh(value);
}

/* Samples for packed recordings: without stack bytes, and only with the registers that hold the arguments of the call.
 * Instead, the lower half of the field that perf calls weight has the number of the stack. */

/* The attribute for such samples; `numbered`: they are calls that have stacks. */
struct perf_event_attr strip_attribute(const struct perf_event_attr *attr, const struct architecture *architecture,
				       bool numbered);

/* The stack of such a sample. */
struct stripped_stack {
	uint32_t number;     /* number of its stack, plus 1; 0: none */
	bool keep_callchain; /* as it is; else replace it by the next one, without context markers */
	const uint64_t *callchain;
	size_t callchain_count;
};

/* Append a sample of `attr` as one of strip_attribute(attr, ..., stack != NULL). Unused arguments become zero. */
struct mmt_error *strip_sample(const struct perf_event_attr *attr, const struct architecture *architecture,
			       const void *record, enum call call, const struct stripped_stack *stack,
			       struct buffer *buffer) MMT_MUST_CHECK;
