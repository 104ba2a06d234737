// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/read/reader.h"

#define NOTE_OFFSET 12	  /* u64 address, u16 old size, u16 new size */
#define BUILD_ID_BYTES 24 /* replaces device and inode */

static void find_fields(const struct reader_metadata *metadata, const struct perf_event_attr *attr,
			const struct reader_attribute *attribute, struct decode_fields *fields)
{
	const struct tracepoint *tracepoint = NULL;

	for (unsigned i = 0; i < 64; i++) {
		bool known = i < metadata->architecture->perf_register_count;
		int8_t number = known ? metadata->architecture->perf_to_dwarf[i] : -1;

		if (!(attr->sample_regs_user >> i & 1))
			continue;
		if (number < 0 || number >= REGISTER_NUMBERS)
			number = -1;
		else
			fields->registers_known |= 1ULL << number;
		fields->registers[fields->register_count++] = number;
	}
	fields->major_faults = attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ;
	/* Reports show no stacks of calls that release memory, unless they failed. */
	fields->uses_stack = role_is_paging(attribute->role) ||
			     (attribute->is_call && (call_has_stack(attribute->call) || attribute->is_enter ||
						     role_is_dump(attribute->role)));
	/* The format text must have the fields that the role of the attribute needs. */
	if (attr->type == PERF_TYPE_TRACEPOINT)
		tracepoint = tracepoints_find(&metadata->tracepoints, (uint32_t)attr->config);
	if (!tracepoint || !(attr->sample_type & PERF_SAMPLE_RAW))
		return;
	if (attribute->is_call && attribute->is_enter) {
		fields->argument_count = tracepoint_arguments(tracepoint, fields->arguments);
		fields->complete = fields->argument_count >= call_describe(attribute->call)->arguments;
	} else if (attribute->is_call) {
		fields->complete = tracepoint_field(tracepoint, "ret", &fields->result);
	} else if (attribute->role == ROLE_NEW_TASK) {
		fields->complete = tracepoint_field(tracepoint, "pid", &fields->task) &&
				   tracepoint_field(tracepoint, "clone_flags", &fields->clone_flags);
	}
}

struct mmt_error *decoder_init(struct decoder *decoder, const struct recording_file *file,
			       const struct layouts *layouts, const struct reader_metadata *metadata)
{
	*decoder = (struct decoder){.layouts = layouts, .metadata = metadata, .no_data_mappings = true};
	decoder->fields = calloc(layouts->count, sizeof(*decoder->fields));
	if (!decoder->fields)
		return &error_no_memory;
	for (size_t i = 0; i < layouts->count; i++) {
		const struct perf_event_attr *attr = &file->attributes.items[i].attr;
		const struct reader_attribute *attribute = &metadata->attributes[i];

		find_fields(metadata, attr, attribute, &decoder->fields[i]);
		if (attribute->is_call && !attribute->is_enter)
			decoder->exits |= 1u << attribute->call;
		if (attr->mmap_data)
			decoder->no_data_mappings = false;
	}
	return NULL;
}

static void read_task(struct bytes *bytes, struct event *event)
{
	event->pid = (int32_t)bytes_u32(bytes);
	event->tid = (int32_t)bytes_u32(bytes);
}

static void decode_mmap(struct decoder *decoder, const struct perf_event_header *header, struct bytes *bytes,
			struct event *event)
{
	struct event_mapping *mapping = &event->mapping;

	/* perf synthesizes mappings of the kernel itself for its own use. */
	event->kind =
	    (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL ? EVENT_OTHER : EVENT_MAPPING;
	read_task(bytes, event);
	mapping->start = bytes_u64(bytes);
	mapping->length = bytes_u64(bytes);
	mapping->file_offset = bytes_u64(bytes);
	if (mapping->length > UINT64_MAX - mapping->start)
		bytes_fail(bytes, "mapping beyond the end of the address space");
	if (header->type == PERF_RECORD_MMAP) {
		mapping->protection = PROT_READ | (header->misc & PERF_RECORD_MISC_MMAP_DATA ? 0 : PROT_EXEC);
		mapping->flags = MAP_PRIVATE;
	} else {
		if (header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
			bytes_skip(bytes, BUILD_ID_BYTES);
		} else {
			mapping->device_major = bytes_u32(bytes);
			mapping->device_minor = bytes_u32(bytes);
			mapping->inode = bytes_u64(bytes);
			bytes_u64(bytes); /* generation */
		}
		mapping->protection = bytes_u32(bytes);
		mapping->flags = bytes_u32(bytes);
	}
	mapping->code_only = decoder->no_data_mappings;
	mapping->path = bytes_string(bytes);
	if (strlen(mapping->path) >= LIMIT_PATH_BYTES)
		bytes_fail(bytes, "path too long");
}

static void decode_task(const struct perf_event_header *header, struct bytes *bytes, struct event *event)
{
	bool fork = header->type == PERF_RECORD_FORK;
	uint64_t time_ns;

	event->kind = fork ? EVENT_FORK : EVENT_EXIT;
	event->task.name = "";
	event->task.pid = (int32_t)bytes_u32(bytes);
	event->task.parent_pid = (int32_t)bytes_u32(bytes);
	event->task.tid = (int32_t)bytes_u32(bytes);
	event->task.parent_tid = (int32_t)bytes_u32(bytes);
	time_ns = bytes_u64(bytes);
	if (event->time_ns == 0)
		event->time_ns = time_ns;
	event->pid = fork ? event->task.parent_pid : event->task.pid;
	event->tid = fork ? event->task.parent_tid : event->task.tid;
}

/* Losses in the ring of stack dumps shorten stacks but lose no syscall events. */
static void decode_lost(const struct decoder *decoder, const struct perf_event_header *header, struct bytes *bytes,
			struct event *event)
{
	bool dump =
	    event->attribute != UINT32_MAX && role_is_dump(decoder->metadata->attributes[event->attribute].role);

	event->kind = dump ? EVENT_LOST_DUMPS : EVENT_LOST;
	if (event->attribute != UINT32_MAX && role_is_paging(decoder->metadata->attributes[event->attribute].role))
		event->kind = EVENT_OTHER;
	if (header->type == PERF_RECORD_LOST)
		bytes_u64(bytes); /* id */
	event->lost.count = bytes_u64(bytes);
	if (event->lost.count > LIMIT_LOST)
		bytes_fail(bytes, "more lost events than possible");
}

static void decode_note(struct bytes *bytes, struct event *event)
{
	uint32_t kind;

	bytes_skip(bytes, NOTE_OFFSET);
	kind = bytes_u32(bytes);
	if (kind >= NOTE_KINDS)
		return;
	event->kind = EVENT_NOTE;
	event->note.kind = (enum note_kind)kind;
	event->note.value = bytes_u64(bytes);
	event->note.number = bytes_u64(bytes);
	event->note.text = "";
	if (kind == NOTE_STARTED || kind == NOTE_OOM_KILL || NOTE_GROUP_FIGURE(kind) < NOTE_GROUP_FIGURES)
		event->note.text = bytes_left(bytes) ? bytes_string(bytes) : "";
	if (kind == NOTE_UNRECORDED_CHILDREN && event->note.value > LIMIT_PROCESSES)
		bytes_fail(bytes, "more children than a system can have");
}

/* The runs stay in the record; the consumer of the event checks their order. */
static void decode_pages(struct bytes *bytes, struct event *event)
{
	size_t size;

	bytes_skip(bytes, NOTE_OFFSET - sizeof(uint16_t));
	size = bytes_u16(bytes);
	if (size < RESIDENT_PAGES_FIXED_BYTES || (size - RESIDENT_PAGES_FIXED_BYTES) % RESIDENT_RUN_BYTES) {
		bytes_fail(bytes, "size of resident pages is not a multiple of a run");
		return;
	}
	size -= RESIDENT_PAGES_FIXED_BYTES;
	event->pages.reading = bytes_u32(bytes);
	event->pages.last = bytes_u32(bytes) & RESIDENT_PAGES_LAST;
	event->pages.resident_bytes = bytes_u64(bytes);
	event->pages.runs = bytes_take(bytes, size);
	event->pages.run_count = bytes_ok(bytes) ? size / RESIDENT_RUN_BYTES : 0;
	event->kind = EVENT_RESIDENT_PAGES;
}

static void decode_pss(struct bytes *bytes, struct event *event)
{
	size_t size;

	bytes_skip(bytes, NOTE_OFFSET - sizeof(uint16_t));
	size = bytes_u16(bytes);
	for (unsigned i = 0; i < PSS_FIELDS; i++)
		event->pss.fields[i] = size / sizeof(uint64_t) > i ? bytes_u64(bytes) : 0;
	event->kind = EVENT_PSS;
}

/* A snapshot of /proc/PID/maps that the recorder inserted. */
static void make_snapshot(const struct record_identity *identity, struct event *event)
{
	static const enum event_kind kinds[SNAPSHOT_PARTS] = {EVENT_SNAPSHOT_BEGIN, EVENT_SNAPSHOT_LINE,
							      EVENT_SNAPSHOT_END};
	uint64_t number = identity->id - SNAPSHOT_ID_FIRST;
	enum event_kind kind;

	if (identity->id < SNAPSHOT_ID_FIRST || number >= (uint64_t)SNAPSHOT_KINDS * SNAPSHOT_PARTS)
		return;
	kind = kinds[number % SNAPSHOT_PARTS];
	if (event->kind != (kind == EVENT_SNAPSHOT_LINE ? EVENT_MAPPING : EVENT_COMM))
		return;
	event->kind = kind;
	event->snapshot = (enum snapshot_kind)(number / SNAPSHOT_PARTS);
	if (kind == EVENT_SNAPSHOT_LINE)
		event->mapping.code_only = false;
	else
		event->task.exec = false;
}

static void start_event(const struct perf_event_header *header, const struct record_identity *identity,
			struct event *event)
{
	/* Of a sample, no register is marked as known, so their values need no clearing. */
	if (header->type == PERF_RECORD_SAMPLE)
		memset(&event->call, 0,
		       offsetof(struct event, call.stack.registers.values) - offsetof(struct event, call));
	else
		memset(event, 0, sizeof(*event));
	event->kind = EVENT_OTHER;
	event->time_ns = identity->time_ns;
	event->pid = identity->pid;
	event->tid = identity->tid;
	event->cpu = identity->cpu;
	event->attribute = identity->attribute;
	event->sequence = event->file_offset = 0;
	event->record = NULL;
	event->record_type = header->type;
	event->record_size = header->size;
	event->snapshot = 0;
}

/* Fails `bytes` if the raw data is shorter. */
static uint64_t read_field(struct bytes *bytes, struct bytes raw, const struct tracepoint_field *field)
{
	if (field->offset + field->size > bytes_left(&raw))
		bytes_fail(bytes, "raw data shorter than the tracepoint's fields");
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

static void take_arguments_from_registers(const struct architecture *architecture, struct event *event)
{
	const struct register_values *registers = &event->call.stack.registers;
	size_t count = call_describe(event->call.call)->arguments, first = architecture->first_argument_lost ? 1 : 0;
	uint64_t arguments[6] = {0};

	for (size_t i = first; i < count; i++) {
		if (!(registers->known >> architecture->argument_registers[i] & 1))
			return;
		arguments[i] = registers->values[architecture->argument_registers[i]];
	}
	if (first && call_reads_first_argument(event->call.call, arguments))
		return;
	memcpy(event->call.arguments, arguments, sizeof(arguments));
	event->call.has_arguments = true;
}

/* Keep only user addresses. Context markers separate them from others. */
static void read_callchain(struct decoder *decoder, const struct sample_parts *parts, struct event_stack *stack)
{
	uint64_t count = parts->callchain_count, entries = 0, limit = decoder->metadata->info.callchain_limit;
	const uint8_t *data = parts->callchain;
	bool user = false;

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
	stack->callchain = stack->callchain_count ? decoder->callchain : NULL;
	/* The kernel may have truncated it. */
	stack->callchain_full = entries >= (limit ? limit : CALLCHAIN_LIMIT_DEFAULT);
}

/* What a sample has of the stack beside the callchain. */
static inline void read_stack(const struct decoder *decoder, const struct sample_parts *parts, struct event *event)
{
	const struct decode_fields *fields = &decoder->fields[event->attribute];
	struct event_stack *stack = &event->call.stack;

	if (parts->registers && parts->abi == PERF_SAMPLE_REGS_ABI_64) {
		for (size_t i = 0; i < fields->register_count; i++) {
			if (fields->registers[i] >= 0)
				stack->registers.values[fields->registers[i]] = decode_word(parts->registers, i);
		}
		stack->registers.known = fields->registers_known;
	}
	stack->bytes = parts->copied_bytes ? parts->stack : NULL;
	stack->byte_count = parts->copied_bytes;
	stack->bytes_wanted = parts->stack_bytes;
	if (decoder->metadata->packed)
		stack->resolved = (uint32_t)parts->weight;
}

static void decode_call(struct decoder *decoder, const struct sample_parts *parts, struct bytes *bytes,
			struct event *event)
{
	const struct reader_attribute *attribute = &decoder->metadata->attributes[event->attribute];
	const struct call_description *call = call_describe(attribute->call);
	const struct decode_fields *fields = &decoder->fields[event->attribute];
	bool unused = decoder->only_used_stacks && !fields->uses_stack;
	struct event_stack *stack = &event->call.stack;
	struct bytes raw = bytes_over(parts->raw, parts->raw_bytes);
	int advice;

	if (!unused)
		read_callchain(decoder, parts, stack);
	read_stack(decoder, parts, event);
	if (!fields->complete)
		return;
	stack->time_ns = event->time_ns;
	event->call.call = attribute->call;
	if (attribute->is_enter) {
		event->kind = EVENT_CALL_ENTER;
		for (size_t i = 0; i < fields->argument_count; i++)
			event->call.arguments[i] = read_field(bytes, raw, &fields->arguments[i]);
		event->call.has_arguments = true;
		if (call->place == CALL_AT_ARGUMENT)
			event->call.arguments[0] &= decoder->metadata->architecture->address_mask;
		if (!call->at_entry || decoder->exits >> attribute->call & 1)
			return;
		/* Entries in plain perf's files are unfiltered; most are of no interest. */
		advice = call->advice ? (int)event->call.arguments[call->advice - 1] : MADV_DONTFORK;
		event->kind = advice == MADV_DONTFORK || advice == MADV_DOFORK ? EVENT_CALL : EVENT_OTHER;
		event->call.at_entry = true;
		return;
	}
	take_arguments_from_registers(decoder->metadata->architecture, event);
	event->kind = role_is_dump(attribute->role) ? EVENT_STACK_DUMP : EVENT_CALL;
	event->call.result = (int64_t)read_field(bytes, raw, &fields->result);
	if (unused && event->call.result)
		read_callchain(decoder, parts, stack);
}

/* `bytes` is positioned behind the record's header. */
static void decode_sample(struct decoder *decoder, const struct record_identity *identity, struct bytes *bytes,
			  struct event *event)
{
	const struct decode_fields *fields = &decoder->fields[identity->attribute];
	const struct reader_attribute *attribute = &decoder->metadata->attributes[identity->attribute];
	struct sample_parts parts = sample_walk(&decoder->layouts->items[identity->attribute].shape, bytes);
	struct bytes raw;

	if (!bytes_ok(bytes))
		return;
	if (role_is_paging(attribute->role)) {
		size_t address = decoder->layouts->items[identity->attribute].sample_address;

		read_callchain(decoder, &parts, &event->call.stack);
		if (attribute->role == ROLE_RECLAIM) {
			read_stack(decoder, &parts, event);
			event->call.stack.time_ns = event->time_ns;
			event->call.result = strstr(attribute->name, "_begin") ? 1 : 0;
			event->kind = EVENT_RECLAIM;
			return;
		}
		if (address == LAYOUT_ABSENT || !attribute->period || attribute->period > LIMIT_FAULT_PERIOD)
			return;
		read_stack(decoder, &parts, event);
		event->call.stack.time_ns = event->time_ns;
		event->call.arguments[FAULT_ADDRESS] = layout_word(parts.fixed, address - RECORD_HEADER_BYTES);
		event->call.arguments[FAULT_PAGE_BYTES] = parts.page_bytes;
		event->call.arguments[FAULT_WEIGHT] = attribute->period;
		event->call.arguments[FAULT_ZERO_PAGE] = parts.physical && !decode_word(parts.physical, 0);
		event->call.result = fields->major_faults;
		event->kind = EVENT_FAULT;
		return;
	}
	if (attribute->is_call) {
		decode_call(decoder, &parts, bytes, event);
		return;
	}
	if (!fields->complete)
		return;
	raw = bytes_over(parts.raw, parts.raw_bytes);
	event->kind = EVENT_NEW_TASK;
	event->task = (struct event_task){.pid = -1, .parent_pid = -1, .parent_tid = -1, .name = ""};
	event->task.tid = (int32_t)read_field(bytes, raw, &fields->task);
	event->task.clone_flags = read_field(bytes, raw, &fields->clone_flags);
}

bool decoder_decode(struct decoder *decoder, const struct perf_event_header *header, const uint8_t *record,
		    const struct record_identity *identity, struct event *event, struct bytes *bytes)
{
	bool trailer = header->type < RECORD_HEADER_ATTR && header->type != PERF_RECORD_SAMPLE &&
		       identity->attribute != UINT32_MAX;
	size_t trailer_size = trailer ? decoder->layouts->items[identity->attribute].trailer_size : 0;

	start_event(header, identity, event);
	*bytes = bytes_over(record, header->size - trailer_size);
	bytes_skip(bytes, RECORD_HEADER_BYTES);
	switch (header->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		decode_mmap(decoder, header, bytes, event);
		break;
	case RECORD_TEXT_POKE:
		if (decoder->metadata->ours && identity->id == NOTE_ID)
			decode_note(bytes, event);
		else if (decoder->metadata->ours && identity->id == RESIDENT_PAGES_ID)
			decode_pages(bytes, event);
		else if (decoder->metadata->ours && identity->id == PSS_ID)
			decode_pss(bytes, event);
		break;
	case PERF_RECORD_COMM:
		event->kind = EVENT_COMM;
		read_task(bytes, event);
		event->task = (struct event_task){.pid = event->pid,
						  .tid = event->tid,
						  .parent_pid = -1,
						  .parent_tid = -1,
						  .name = bytes_string(bytes),
						  .exec = header->misc & PERF_RECORD_MISC_COMM_EXEC};
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		decode_task(header, bytes, event);
		break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		decode_lost(decoder, header, bytes, event);
		break;
	case PERF_RECORD_SAMPLE:
		if (identity->attribute != UINT32_MAX)
			decode_sample(decoder, identity, bytes, event);
		break;
	default:
		break;
	}
	if (decoder->metadata->ours)
		make_snapshot(identity, event);
	return bytes_ok(bytes);
}
