// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/sections/packed-stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compression.h"
#include "base/limits.h"
#include "trace/format/format.h"
#include "trace/sections/sections.h"

#define STACKS_VERSION                                                                                                 \
	6 /* 5 has samples of stack dumps, 4 names no missing files, 3 has no flags, 2 no code, 1 no losses */
#define PIECE_BYTES (1u << 20)
#define NAME_BYTES 44
#define FRAME_BYTES_MIN 8
#define STACK_BYTES_MIN 8
#define PROCESS_BYTES 20
#define PROGRAM_BYTES 8
#define NAME_INLINED 1u
#define NAME_DOUBTFUL 2u
#define PROCESS_HAS_PERF_MAP 1u
#define PROCESS_HAS_JITDUMP 2u
#define PROCESS_OTHER_CLOCK 4u
#define PROCESS_UNCHECKED_FRAMES 8u
#define PROCESS_STACKS_END_THERE 16u
#define PROCESS_CODE_REPLACED 32u
#define STACKS_WITHOUT_DUMPS 2u

void packed_stacks_deinit(struct packed_stacks *stacks)
{
	intern_deinit(&stacks->texts);
	free(stacks->content);
	vector_deinit(&stacks->read_texts);
	vector_deinit(&stacks->names);
	vector_deinit(&stacks->frames);
	vector_deinit(&stacks->stack_frames);
	vector_deinit(&stacks->stacks);
	vector_deinit(&stacks->processes);
	vector_deinit(&stacks->modules);
	*stacks = (struct packed_stacks){0};
}

bool packed_stacks_put_text(struct packed_stacks *stacks, const char *text, uint32_t *number_ret)
{
	*number_ret = text ? intern_put_string(&stacks->texts, text) : RESOLVED_NO_TEXT;
	return !text || *number_ret != INTERN_NONE;
}

const char *packed_stacks_text(const struct packed_stacks *stacks, uint32_t number)
{
	return number < stacks->read_texts.count ? stacks->read_texts.items[number] : NULL;
}

static void encode_names(const struct packed_stacks *stacks, struct buffer *plain)
{
	buffer_put_u32(plain, (uint32_t)stacks->texts.count);
	for (uint32_t i = 0; i < stacks->texts.count; i++)
		buffer_put_string(plain, intern_get(&stacks->texts, i, NULL));
	buffer_put_u32(plain, (uint32_t)stacks->names.count);
	for (size_t i = 0; i < stacks->names.count; i++) {
		const struct packed_name *name = &stacks->names.items[i];

		buffer_put_u64(plain, name->address);
		buffer_put_u64(plain, name->module_offset);
		buffer_put_u32(plain, name->function);
		buffer_put_u32(plain, name->raw_function);
		buffer_put_u32(plain, name->module);
		buffer_put_u32(plain, name->module_path);
		buffer_put_u32(plain, name->source_file);
		buffer_put_u32(plain, name->source_line);
		buffer_put_u16(plain, name->kind);
		buffer_put_u16(plain,
			       (uint16_t)((name->inlined ? NAME_INLINED : 0) | (name->doubtful ? NAME_DOUBTFUL : 0)));
	}
}

static void encode_stacks(const struct packed_stacks *stacks, struct buffer *plain)
{
	buffer_put_u32(plain, (uint32_t)stacks->frames.count);
	for (size_t i = 0; i < stacks->frames.count; i++) {
		buffer_put_u32(plain, stacks->frames.items[i].name_count);
		buffer_put_u32(plain, stacks->frames.items[i].process);
		buffer_put_u32(plain, stacks->frames.items[i].lookup);
	}
	buffer_put_u32(plain, (uint32_t)stacks->stacks.count);
	for (size_t i = 0; i < stacks->stacks.count; i++) {
		const struct packed_stack *stack = &stacks->stacks.items[i];

		buffer_put_u32(plain, stack->end);
		buffer_put_u32(plain, stack->frame_count);
		for (uint32_t j = 0; j < stack->frame_count; j++)
			buffer_put_u32(plain, stacks->stack_frames.items[stack->first_frame + j]);
	}
}

static void encode_facts(const struct packed_stacks *stacks, struct buffer *plain)
{
	buffer_put_u32(plain, (uint32_t)stacks->processes.count);
	for (size_t i = 0; i < stacks->processes.count; i++) {
		const struct packed_process *process = &stacks->processes.items[i];

		buffer_put_u32(plain, process->runtime);
		buffer_put_u32(plain, (process->has_perf_map ? PROCESS_HAS_PERF_MAP : 0) |
					  (process->has_jitdump ? PROCESS_HAS_JITDUMP : 0) |
					  (process->other_clock ? PROCESS_OTHER_CLOCK : 0) |
					  (process->unchecked_frames ? PROCESS_UNCHECKED_FRAMES : 0) |
					  (process->stacks_end_there ? PROCESS_STACKS_END_THERE : 0) |
					  (process->code_replaced ? PROCESS_CODE_REPLACED : 0));
		buffer_put_u64(plain, process->dropped_lines);
		buffer_put_u32(plain, process->jitdump_failure);
		buffer_put_u64(plain, process->lost_records);
		buffer_put_u64(plain, process->unread_bytes);
	}
	buffer_put_u32(plain, (uint32_t)stacks->modules.count);
	for (size_t i = 0; i < stacks->modules.count; i++) {
		buffer_put_u32(plain, stacks->modules.items[i].path);
		buffer_put_u32(plain, stacks->modules.items[i].state);
		buffer_put_u32(plain, stacks->modules.items[i].missing);
	}
	buffer_put_u32(plain, stacks->damage);
	buffer_put_u32(plain, STACKS_WITHOUT_DUMPS);
	buffer_put_u64(plain, stacks->unfinished_records);
	buffer_put_u64(plain, stacks->unfinished_ns);
}

struct mmt_error *packed_stacks_encode(const struct packed_stacks *stacks, struct buffer *buffer)
{
	struct section_packing packing;
	struct buffer *plain = &packing.plain;
	struct mmt_error *error = packing_begin(&packing, STACKS_VERSION, buffer);

	encode_names(stacks, plain);
	buffer_put_u32(plain, 0); /* instructions, which older versions wrote */
	encode_stacks(stacks, plain);
	encode_facts(stacks, plain);
	for (size_t offset = 0; !error && offset < plain->size; offset += PIECE_BYTES) {
		size_t left = plain->size - offset;

		error = compressor_frame(packing.compressor, plain->data + offset,
					 left < PIECE_BYTES ? left : PIECE_BYTES, buffer);
	}
	buffer_clear(plain);
	error = packing_end(&packing, error);
	return error ? error : buffer_finish(buffer);
}

static uint32_t read_text_number(struct bytes *bytes, const struct packed_stacks *stacks)
{
	uint32_t number = bytes_u32(bytes);

	if (number != RESOLVED_NO_TEXT && number >= stacks->read_texts.count)
		bytes_fail(bytes, "number of a text that does not exist");
	return number;
}

static struct mmt_error *decode_texts(struct bytes *bytes, struct packed_stacks *stacks)
{
	uint64_t count = bytes_count_u32(bytes, 1);

	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		if (!vector_push(&stacks->read_texts, bytes_string(bytes)))
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *decode_names(struct bytes *bytes, struct packed_stacks *stacks)
{
	uint64_t count = bytes_count_u32(bytes, NAME_BYTES);

	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct packed_name name = {.address = bytes_u64(bytes)};
		uint32_t kind, flags;

		name.module_offset = bytes_u64(bytes);
		name.function = read_text_number(bytes, stacks);
		name.raw_function = read_text_number(bytes, stacks);
		name.module = read_text_number(bytes, stacks);
		name.module_path = read_text_number(bytes, stacks);
		name.source_file = read_text_number(bytes, stacks);
		name.source_line = bytes_u32(bytes);
		kind = bytes_u16(bytes);
		flags = bytes_u16(bytes);
		if (kind > WIRE_FRAME_UNKNOWN)
			bytes_fail(bytes, "unknown kind of frame");
		name.kind = (enum wire_frame_kind)kind;
		name.inlined = flags & NAME_INLINED;
		name.doubtful = flags & NAME_DOUBTFUL;
		if (!vector_push(&stacks->names, name))
			return &error_no_memory;
	}
	return NULL;
}

#define INSTRUCTIONS_BYTES_MIN 28
#define LINE_BYTES 12

/* Skip the instructions around frames that older versions wrote. */
static void skip_instructions(struct bytes *bytes)
{
	uint64_t count = bytes_count_u32(bytes, INSTRUCTIONS_BYTES_MIN);

	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		bytes_skip(bytes, 2 * sizeof(uint64_t) + sizeof(uint32_t)); /* address, site, flags */
		bytes_skip(bytes, bytes_u32(bytes));
		bytes_skip(bytes, LINE_BYTES * (uint64_t)bytes_u32(bytes));
	}
}

static struct mmt_error *decode_frames(struct bytes *bytes, uint32_t version, struct packed_stacks *stacks)
{
	uint64_t count = bytes_count_u32(bytes, FRAME_BYTES_MIN), names = 0;

	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct packed_frame frame = {.first_name = (uint32_t)names, .name_count = bytes_u32(bytes)};
		uint32_t lookup = PACKED_LOOKUP_NONE;

		frame.process = bytes_u32(bytes);
		if (version >= 3)
			lookup = bytes_u32(bytes); /* before version 6, the number of instructions */
		if (version >= 6 && lookup <= PACKED_LOOKUP_RETURN_ADDRESS)
			frame.lookup = (enum packed_lookup)lookup;
		names += frame.name_count;
		if (!frame.name_count || names > stacks->names.count)
			bytes_fail(bytes, "number of a name that does not exist");
		if (!vector_push(&stacks->frames, frame))
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *decode_stacks(struct bytes *bytes, struct packed_stacks *stacks)
{
	uint64_t count = bytes_count_u32(bytes, STACK_BYTES_MIN);

	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct packed_stack stack = {.end = bytes_u32(bytes),
					     .first_frame = (uint32_t)stacks->stack_frames.count};
		uint64_t frames = bytes_count_u32(bytes, sizeof(uint32_t));

		stack.frame_count = (uint32_t)frames;
		for (uint64_t j = 0; j < frames; j++) {
			uint32_t frame = bytes_u32(bytes);

			if (frame >= stacks->frames.count)
				bytes_fail(bytes, "number of a frame that does not exist");
			if (!vector_push(&stacks->stack_frames, frame))
				return &error_no_memory;
		}
		if (!vector_push(&stacks->stacks, stack))
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *decode_facts(struct bytes *bytes, uint32_t version, struct packed_stacks *stacks)
{
	uint64_t count = bytes_at_most(bytes, bytes_count_u32(bytes, PROCESS_BYTES), LIMIT_PROCESSES);

	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct packed_process process = {.runtime = read_text_number(bytes, stacks)};
		uint32_t flags;

		flags = bytes_u32(bytes);
		process.has_perf_map = flags & PROCESS_HAS_PERF_MAP;
		process.has_jitdump = flags & PROCESS_HAS_JITDUMP;
		process.other_clock = flags & PROCESS_OTHER_CLOCK;
		process.unchecked_frames = flags & PROCESS_UNCHECKED_FRAMES;
		process.stacks_end_there = flags & PROCESS_STACKS_END_THERE;
		process.code_replaced = flags & PROCESS_CODE_REPLACED;
		process.dropped_lines = bytes_u64(bytes);
		process.jitdump_failure = read_text_number(bytes, stacks);
		process.lost_records = version >= 2 ? bytes_u64(bytes) : 0;
		process.unread_bytes = version >= 2 ? bytes_u64(bytes) : 0;
		if (!vector_push(&stacks->processes, process))
			return &error_no_memory;
	}
	count = bytes_count_u32(bytes, PROGRAM_BYTES);
	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct packed_module module = {.path = read_text_number(bytes, stacks)};

		module.state = bytes_u32(bytes);
		module.missing = version >= 5 ? read_text_number(bytes, stacks) : RESOLVED_NO_TEXT;
		if (module.path == RESOLVED_NO_TEXT)
			bytes_fail(bytes, "ELF file without a path");
		if (!vector_push(&stacks->modules, module))
			return &error_no_memory;
	}
	stacks->damage = read_text_number(bytes, stacks);
	if (version >= 4) {
		uint32_t flags = bytes_u32(bytes);

		stacks->without_dumps = flags & STACKS_WITHOUT_DUMPS;
		stacks->unfinished_records = bytes_u64(bytes);
		stacks->unfinished_ns = bytes_u64(bytes);
	}
	for (size_t i = 0; i < stacks->frames.count; i++) {
		if (stacks->frames.items[i].process >= stacks->processes.count)
			bytes_fail(bytes, "number of a process that does not exist");
	}
	return NULL;
}

static struct mmt_error *decode_plain(struct bytes *bytes, uint32_t version, struct packed_stacks *stacks)
{
	struct mmt_error *error = decode_texts(bytes, stacks);

	if (!error)
		error = decode_names(bytes, stacks);
	if (version >= 3)
		skip_instructions(bytes);
	if (!error)
		error = decode_frames(bytes, version, stacks);
	if (!error)
		error = decode_stacks(bytes, stacks);
	return error ? error : decode_facts(bytes, version, stacks);
}

struct mmt_error *packed_stacks_decode(struct bytes *bytes, size_t *room, struct packed_stacks *stacks_ret)
{
	struct unpacked_section section;
	struct mmt_error *error =
	    section_begin(&section, bytes, "stacks section", STACKS_VERSION, LIMIT_SECTION_BYTES, room);

	*stacks_ret = (struct packed_stacks){.content = TAKE(section.plain.data)};
	if (!error)
		error = decode_plain(&section.bytes, section.version, stacks_ret);
	error = section_end(&section, error);
	if (error)
		packed_stacks_deinit(stacks_ret);
	return error;
}
