// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/sections/sections.h"

#include "base/limits.h"

#define NAME_BYTES 44
#define FRAME_ENTRY_BYTES 12
#define STACK_BYTES_MIN 8
#define PROCESS_BYTES 36
#define MODULE_BYTES 12
#define NAME_INLINED (1u << 16)
#define NAME_DOUBTFUL (2u << 16)
#define STACKS_WITHOUT_DUMPS 2u /* for older readers */

/* The numbers of enum mmt_stack_end are in recordings. */
_Static_assert(MMT_STACK_END_CALLCHAIN == 4 && MMT_STACK_END_NOT_RECORDED == 6 && MMT_STACK_END_RETURN_PROBE == 9,
	       "the order of the reasons cannot change");

static void packed_stacks_deinit(void *value)
{
	struct packed_stacks *stacks = value;

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

static void code_text_number(struct codec *codec, const struct packed_stacks *stacks, uint32_t *number)
{
	codec_u32(codec, *number);
	if (*number != RESOLVED_NO_TEXT && *number >= stacks->read_texts.count)
		codec_fail(codec, "number of a text that does not exist");
}

static void code_names(struct codec *codec, struct packed_stacks *stacks)
{
	uint64_t count = codec_count(codec, stacks->names.count, NAME_BYTES, UINT32_MAX);
	struct packed_name *name;

	codec_each(codec, &stacks->names, count, name) {
		/* Two fields of 16 bits. */
		uint32_t word =
		    (uint32_t)name->kind | (name->inlined ? NAME_INLINED : 0) | (name->doubtful ? NAME_DOUBTFUL : 0);

		codec_u64(codec, name->address);
		codec_u64(codec, name->module_offset);
		code_text_number(codec, stacks, &name->function);
		code_text_number(codec, stacks, &name->raw_function);
		code_text_number(codec, stacks, &name->module);
		code_text_number(codec, stacks, &name->module_path);
		code_text_number(codec, stacks, &name->source_file);
		codec_u32(codec, name->source_line);
		codec_u32(codec, word);
		if (codec->to)
			continue;
		name->kind = (enum mmt_frame_kind)(word & UINT16_MAX);
		name->inlined = word & NAME_INLINED;
		name->doubtful = word & NAME_DOUBTFUL;
		if (name->kind > MMT_FRAME_UNKNOWN)
			codec_fail(codec, "unknown kind of frame");
	}
}

static void code_frames(struct codec *codec, struct packed_stacks *stacks)
{
	uint64_t count = codec_count(codec, stacks->frames.count, FRAME_ENTRY_BYTES, UINT32_MAX), names = 0;
	struct packed_frame *frame;

	codec_each(codec, &stacks->frames, count, frame) {
		uint32_t lookup = frame->lookup;

		codec_u32(codec, frame->name_count);
		codec_u32(codec, frame->process);
		codec_u32(codec, lookup); /* before version 6, the number of instructions */
		if (codec->to)
			continue;
		frame->first_name = (uint32_t)names;
		if (codec->version >= 6 && lookup <= PACKED_LOOKUP_RETURN_ADDRESS)
			frame->lookup = (enum packed_lookup)lookup;
		names += frame->name_count;
		if (!frame->name_count || names > stacks->names.count)
			codec_fail(codec, "number of a name that does not exist");
	}
}

static void code_stacks(struct codec *codec, struct packed_stacks *stacks)
{
	uint64_t count = codec_count(codec, stacks->stacks.count, STACK_BYTES_MIN, UINT32_MAX);
	struct packed_stack *stack;

	codec_each(codec, &stacks->stacks, count, stack) {
		uint64_t frames;

		codec_u32(codec, stack->end);
		frames = codec_count(codec, stack->frame_count, sizeof(uint32_t), UINT32_MAX);
		if (!codec->to) {
			if (stack->end >= MMT_STACK_END_KINDS && stack->end != STACK_END_LOST)
				stack->end = MMT_STACK_END_INVALID;
			stack->first_frame = (uint32_t)stacks->stack_frames.count;
			stack->frame_count = (uint32_t)frames;
		}
		for (uint64_t i = 0; i < frames && codec_ok(codec); i++) {
			uint32_t frame = codec->to ? stacks->stack_frames.items[stack->first_frame + i] : 0;

			codec_u32(codec, frame);
			if (frame >= stacks->frames.count)
				codec_fail(codec, "number of a frame that does not exist");
			if (!codec->to && !vector_push(&stacks->stack_frames, frame))
				codec->error = &error_no_memory;
		}
	}
}

static void code_processes(struct codec *codec, struct packed_stacks *stacks)
{
	uint64_t count = codec_count(codec, stacks->processes.count, PROCESS_BYTES, LIMIT_PROCESSES);
	struct packed_process *process;

	codec_each(codec, &stacks->processes, count, process) {
		struct jit_names_state *names = &process->names;

		code_text_number(codec, stacks, &process->runtime);
		codec_flags(codec,
			    (bool *const[]){&names->has_perf_map, &names->has_jitdump, &names->other_clock,
					    &process->unchecked_frames, &process->stacks_end_there, &process->released,
					    &process->released_known},
			    7);
		codec_u64(codec, names->dropped_lines);
		code_text_number(codec, stacks, &process->jitdump_failure);
		codec_u64(codec, names->lost_records);
		codec_u64(codec, names->unread_bytes);
		if (!codec->to)
			names->jitdump_failure = packed_stacks_text(stacks, process->jitdump_failure);
	}
}

static void code_modules(struct codec *codec, struct packed_stacks *stacks)
{
	uint64_t count = codec_count(codec, stacks->modules.count, MODULE_BYTES, UINT32_MAX);
	struct packed_module *module;

	codec_each(codec, &stacks->modules, count, module) {
		code_text_number(codec, stacks, &module->path);
		codec_u32(codec, module->state);
		code_text_number(codec, stacks, &module->missing);
		if (module->path == RESOLVED_NO_TEXT)
			codec_fail(codec, "ELF file without a path");
	}
}

static void code_packed_stacks(struct codec *codec, void *value)
{
	struct packed_stacks *stacks = value;
	uint32_t flags = STACKS_WITHOUT_DUMPS;
	uint64_t count;

	if (!codec->to)
		stacks->content = TAKE(codec->plain->data); /* the texts are in it */
	count = codec_count(codec, stacks->texts.count, 1, UINT32_MAX);
	for (uint32_t i = 0; i < count && codec_ok(codec); i++) {
		if (codec->to)
			buffer_put_string(codec->to, intern_get(&stacks->texts, i, NULL));
		else if (!vector_push(&stacks->read_texts, bytes_string(codec->from)))
			codec->error = &error_no_memory;
	}
	code_names(codec, stacks);
	if (codec_word(codec, 0))
		codec_fail(codec, "instructions, which a report does not show any more");
	code_frames(codec, stacks);
	code_stacks(codec, stacks);
	code_processes(codec, stacks);
	code_modules(codec, stacks);
	code_text_number(codec, stacks, &stacks->damage);
	codec_u32(codec, flags);
	codec_u64(codec, stacks->unfinished_records);
	codec_u64(codec, stacks->unfinished_ns);
	for (size_t i = 0; i < stacks->frames.count; i++) {
		if (stacks->frames.items[i].process >= stacks->processes.count)
			codec_fail(codec, "number of a process that does not exist");
	}
}

/* 5 has samples of stack dumps. */
const struct section_kind section_stacks = {
    "stacks section",	 5, 6, LIMIT_SECTION_BYTES, sizeof(struct packed_stacks), code_packed_stacks,
    packed_stacks_deinit};
