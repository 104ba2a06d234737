// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/format/sample-layout.h"

#define BRANCH_ENTRY_BYTES 24
#define BRANCH_COUNTERS (1ULL << 19) /* PERF_SAMPLE_BRANCH_COUNTERS, absent in older headers */
#define READ_LOST (1ULL << 4)	     /* PERF_FORMAT_LOST, also absent in older headers */

void sample_skip_read(const struct sample_shape *shape, struct bytes *bytes)
{
	uint64_t format = shape->read_format;
	size_t times =
	    (format & PERF_FORMAT_TOTAL_TIME_ENABLED ? 1 : 0) + (format & PERF_FORMAT_TOTAL_TIME_RUNNING ? 1 : 0);
	size_t member = 1 + (format & PERF_FORMAT_ID ? 1 : 0) + (format & READ_LOST ? 1 : 0);
	uint64_t members = 1;

	if (format & PERF_FORMAT_GROUP)
		members = bytes_u64(bytes);
	bytes_skip(bytes, times * sizeof(uint64_t));
	members = bytes_count(bytes, members, member * sizeof(uint64_t));
	bytes_skip(bytes, members * member * sizeof(uint64_t));
}

void sample_skip_branches(const struct sample_shape *shape, struct bytes *bytes)
{
	uint64_t count = bytes_u64(bytes);
	size_t entry = BRANCH_ENTRY_BYTES + (shape->branch_fields & BRANCH_COUNTERS ? sizeof(uint64_t) : 0);

	if (shape->branch_fields & PERF_SAMPLE_BRANCH_HW_INDEX)
		bytes_u64(bytes);
	count = bytes_count(bytes, count, entry);
	bytes_skip(bytes, count * entry);
}

/* The offset of the next 8-byte field, if the samples have it. */
static uint16_t place(uint64_t sample_type, uint64_t field, uint16_t *offset)
{
	uint16_t here = *offset;

	if (!(sample_type & field))
		return LAYOUT_ABSENT;
	*offset = (uint16_t)(here + sizeof(uint64_t));
	return here;
}

static struct sample_layout describe(const struct perf_event_attr *attr, size_t id_count)
{
	uint64_t type = attr->sample_type;
	struct sample_layout layout = {.shape = sample_shape_of(attr)};
	uint16_t offset = RECORD_HEADER_BYTES, id;

	layout.sample_id = place(type, PERF_SAMPLE_IDENTIFIER, &offset);
	place(type, PERF_SAMPLE_IP, &offset);
	layout.sample_task = place(type, PERF_SAMPLE_TID, &offset);
	layout.sample_time = place(type, PERF_SAMPLE_TIME, &offset);
	layout.sample_address = place(type, PERF_SAMPLE_ADDR, &offset);
	id = place(type, PERF_SAMPLE_ID, &offset);
	place(type, PERF_SAMPLE_STREAM_ID, &offset);
	layout.sample_cpu = place(type, PERF_SAMPLE_CPU, &offset);
	if (layout.sample_id == LAYOUT_ABSENT)
		layout.sample_id = id;

	offset = 0;
	layout.trailer_task = place(type, PERF_SAMPLE_TID, &offset);
	layout.trailer_time = place(type, PERF_SAMPLE_TIME, &offset);
	layout.trailer_id = place(type, PERF_SAMPLE_ID, &offset);
	place(type, PERF_SAMPLE_STREAM_ID, &offset);
	layout.trailer_cpu = place(type, PERF_SAMPLE_CPU, &offset);
	id = place(type, PERF_SAMPLE_IDENTIFIER, &offset);
	if (id != LAYOUT_ABSENT)
		layout.trailer_id = id;
	layout.trailer_size = attr->sample_id_all ? offset : 0;

	layout.may_come_twice = attr->inherit && id_count > 1 && layout.sample_cpu != LAYOUT_ABSENT &&
				layout.sample_task != LAYOUT_ABSENT && layout.sample_id != LAYOUT_ABSENT;
	return layout;
}

struct mmt_error *layouts_create(const struct recording_file *file, struct layouts *layouts_ret)
{
	struct layouts layouts = {0};

	layouts.items = calloc(file->attributes.count, sizeof(*layouts.items));
	if (!layouts.items)
		return &error_no_memory;
	layouts.count = file->attributes.count;
	for (size_t i = 0; i < layouts.count; i++) {
		const struct file_attribute *attribute = &file->attributes.items[i];

		layouts.items[i] = describe(&attribute->attr, attribute->ids.count);
		for (size_t j = 0; j < attribute->ids.count; j++) {
			if (map_put(&layouts.by_id, attribute->ids.items[j], i))
				continue;
			layouts_deinit(&layouts);
			return &error_no_memory;
		}
	}
	*layouts_ret = layouts;
	return NULL;
}

void layouts_deinit(struct layouts *layouts)
{
	free(layouts->items);
	map_deinit(&layouts->by_id);
	*layouts = (struct layouts){0};
}

/* The id must be read before the attribute is known: all attributes of a file have it at the same offset, because of
 * IDENTIFIER or of equal sample types, so use the first attribute. 0: none; false: the record is too short for it. */
static inline bool read_id(const struct layouts *layouts, const struct perf_event_header *header, const uint8_t *record,
			   uint64_t *id_ret)
{
	const struct sample_layout *first = &layouts->items[0];
	bool sample = header->type == PERF_RECORD_SAMPLE;
	size_t offset = sample ? first->sample_id : first->trailer_id;

	*id_ret = 0;
	if (offset == LAYOUT_ABSENT || (!sample && first->trailer_size == 0))
		return true;
	if (!sample) {
		if (header->size < RECORD_HEADER_BYTES + first->trailer_size)
			return false;
		/* IDENTIFIER is always last in the trailer. */
		offset += header->size - first->trailer_size;
	}
	if (offset + sizeof(uint64_t) > header->size)
		return false;
	*id_ret = layout_word(record, offset);
	return true;
}

static bool has_field(uint16_t place, size_t size)
{
	return place == LAYOUT_ABSENT || place + sizeof(uint64_t) <= size;
}

/* Whether the record has the fields that its attribute requires. */
static inline bool has_fields(const struct sample_layout *layout, const struct perf_event_header *header)
{
	if (header->type == PERF_RECORD_SAMPLE)
		return has_field(layout->sample_task, header->size) && has_field(layout->sample_time, header->size) &&
		       has_field(layout->sample_cpu, header->size);
	return layout->trailer_size == 0 || header->size >= RECORD_HEADER_BYTES + layout->trailer_size;
}

static inline void read_fields(const uint8_t *start, uint16_t task_place, uint16_t time_place, uint16_t cpu_place,
			       struct record_identity *identity)
{
	if (task_place != LAYOUT_ABSENT) {
		uint64_t task = layout_word(start, task_place);

		identity->pid = (int32_t)(uint32_t)task;
		identity->tid = (int32_t)(task >> 32);
	}
	if (time_place != LAYOUT_ABSENT)
		identity->time_ns = layout_word(start, time_place);
	if (cpu_place != LAYOUT_ABSENT)
		identity->cpu = (int32_t)(uint32_t)layout_word(start, cpu_place);
}

static inline void read_known(const struct layouts *layouts, const struct perf_event_header *header,
			      const uint8_t *record, struct record_identity *identity)
{
	const struct sample_layout *layout;

	identity->pid = identity->tid = identity->cpu = -1;
	if (identity->attribute == UINT32_MAX)
		return;
	layout = &layouts->items[identity->attribute];
	if (header->type == PERF_RECORD_SAMPLE)
		read_fields(record, layout->sample_task, layout->sample_time, layout->sample_cpu, identity);
	else if (layout->trailer_size)
		read_fields(record + header->size - layout->trailer_size, layout->trailer_task, layout->trailer_time,
			    layout->trailer_cpu, identity);
}

bool layouts_identify(const struct layouts *layouts, const struct perf_event_header *header, const uint8_t *record,
		      struct record_identity *identity_ret)
{
	const uint64_t *source = NULL;

	*identity_ret = (struct record_identity){.attribute = UINT32_MAX};
	if (header->type < RECORD_HEADER_ATTR) {
		if (!read_id(layouts, header, record, &identity_ret->id))
			return false;
		if (identity_ret->id)
			source = map_get(&layouts->by_id, identity_ret->id);
		if (source) {
			identity_ret->attribute = (uint32_t)*source;
		} else if (!identity_ret->id || layouts->count == 1) { /* 0: synthesized by perf */
			identity_ret->attribute = 0;
		}
		if (identity_ret->attribute != UINT32_MAX &&
		    !has_fields(&layouts->items[identity_ret->attribute], header))
			return false;
	}
	read_known(layouts, header, record, identity_ret);
	return true;
}

void layouts_read(const struct layouts *layouts, const struct perf_event_header *header, const uint8_t *record,
		  uint32_t attribute, struct record_identity *identity_ret)
{
	*identity_ret = (struct record_identity){.attribute = attribute};
	if (header->type < RECORD_HEADER_ATTR)
		(void)read_id(layouts, header, record, &identity_ret->id);
	read_known(layouts, header, record, identity_ret);
}

/* ---- samples without what pack removes ---- */

#define KNOWN_FIELDS                                                                                                   \
	(SAMPLE_FIXED_FIELDS | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER |                       \
	 PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE)
#define STRIPPED_FIELDS (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT)

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
	stripped.sample_regs_user = attr->sample_regs_user & architecture_argument_mask(architecture, 6);
	if (attr->sample_type & PERF_SAMPLE_REGS_USER && stripped.sample_regs_user)
		stripped.sample_type |= PERF_SAMPLE_REGS_USER;
	return stripped;
}

static void put_arguments(const struct perf_event_attr *attr, const struct architecture *architecture, enum call call,
			  const struct sample_parts *parts, struct buffer *buffer)
{
	int count = __builtin_popcountll(attr->sample_regs_user), kept[64], kept_count = 0;
	struct bytes values = bytes_over(parts->registers, parts->registers ? (size_t)count * sizeof(uint64_t) : 0);
	uint64_t arguments[6] = {0};
	unsigned used;

	buffer_put_u64(buffer, parts->abi);
	if (!parts->registers)
		return;
	for (uint64_t left = attr->sample_regs_user; left; left &= left - 1) {
		unsigned number = (unsigned)__builtin_ctzll(left);
		int dwarf = number < architecture->perf_register_count ? architecture->perf_to_dwarf[number] : -1;
		uint64_t value = bytes_u64(&values);

		for (int i = 0; i < 6; i++) {
			if (architecture->argument_registers[i] != dwarf)
				continue;
			arguments[i] = value;
			kept[kept_count++] = i;
		}
	}
	used = call_arguments_used(call, arguments);
	for (int i = 0; i < kept_count; i++)
		buffer_put_u64(buffer, used >> kept[i] & 1 ? arguments[kept[i]] : 0);
}

#define RAW_ARGUMENTS 16 /* offset, in the raw data of a call's entry */

static void put_raw(const struct sample_parts *parts, enum call call, struct buffer *buffer)
{
	size_t bytes = call_describe(call)->arguments * sizeof(uint64_t);
	uint64_t arguments[6] = {0};
	unsigned used;

	buffer_put_u32(buffer, (uint32_t)parts->raw_bytes);
	if (parts->raw_bytes < RAW_ARGUMENTS + bytes) { /* an exit: the arguments are in registers */
		buffer_put(buffer, parts->raw, parts->raw_bytes);
		return;
	}
	memcpy(arguments, parts->raw + RAW_ARGUMENTS, bytes);
	used = call_arguments_used(call, arguments);
	buffer_put(buffer, parts->raw, RAW_ARGUMENTS);
	for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
		buffer_put_u64(buffer, used >> i & 1 ? arguments[i] : 0);
	buffer_put(buffer, parts->raw + RAW_ARGUMENTS + bytes, parts->raw_bytes - RAW_ARGUMENTS - bytes);
}

struct mmt_error *strip_sample(const struct perf_event_attr *attr, const struct architecture *architecture,
			       const void *record, enum call call, const struct stripped_stack *stack,
			       struct buffer *buffer)
{
	bool registers = stack && attr->sample_regs_user & architecture_argument_mask(architecture, 6);
	struct sample_shape shape = sample_shape_of(attr);
	size_t start = buffer->size;
	struct perf_event_header header = record_header(record);
	struct sample_parts parts;
	struct bytes bytes;

	if (attr->sample_type & ~(uint64_t)KNOWN_FIELDS)
		return error_create(MMT_ERROR_UNSUPPORTED, "samples with fields that mmtrace does not support (0x%llx)",
				    (unsigned long long)(attr->sample_type & ~(uint64_t)KNOWN_FIELDS));
	bytes = bytes_over(record, header.size);
	bytes_skip(&bytes, sizeof(header));
	parts = sample_walk(&shape, &bytes);
	if (!bytes_ok(&bytes))
		return error_create(MMT_ERROR_FORMAT, "sample: %s", bytes.failure);
	buffer_put_u32(buffer, header.type);
	buffer_put_u16(buffer, header.misc);
	buffer_put_u16(buffer, 0);
	buffer_put(buffer, (const uint8_t *)record + sizeof(header), shape.fixed_bytes);
	if (stack && stack->keep_callchain) {
		buffer_put_u64(buffer, parts.callchain_count);
		buffer_put(buffer, parts.callchain, parts.callchain_count * sizeof(uint64_t));
	} else if (stack) {
		buffer_put_u64(buffer, stack->callchain_count ? stack->callchain_count + 1 : 0);
		if (stack->callchain_count)
			buffer_put_u64(buffer, (uint64_t)PERF_CONTEXT_USER);
		buffer_put(buffer, stack->callchain, stack->callchain_count * sizeof(uint64_t));
	}
	if (attr->sample_type & PERF_SAMPLE_RAW)
		put_raw(&parts, call, buffer);
	if (attr->sample_type & PERF_SAMPLE_REGS_USER && registers)
		put_arguments(attr, architecture, call, &parts, buffer);
	if (stack)
		buffer_put_u64(buffer, stack->number);
	if (attr->sample_type & PERF_SAMPLE_PHYS_ADDR)
		buffer_put(buffer, parts.physical, sizeof(uint64_t));
	if (attr->sample_type & PERF_SAMPLE_DATA_PAGE_SIZE)
		buffer_put_u64(buffer, parts.page_bytes);
	buffer_align(buffer, sizeof(uint64_t));
	if (buffer->size - start > UINT16_MAX)
		return error_create(MMT_ERROR_FORMAT, "sample too large");
	buffer_patch(buffer, start + 6, buffer->size - start, sizeof(uint16_t));
	return NULL;
}
