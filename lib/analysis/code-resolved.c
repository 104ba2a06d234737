// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packed recordings: stacks and names as they were found out when it was packed. */
#include "analysis/code-view-state.h"

#include <string.h>

static struct mmt_frame name_resolved(const struct resolved_stacks *stacks, const struct resolved_name *name,
				      bool demangle)
{
	struct mmt_frame frame = {.kind = name->kind,
				  .inlined = name->inlined,
				  .doubtful = name->doubtful,
				  .function = resolved_stacks_text(stacks, name->function),
				  .raw_function = resolved_stacks_text(stacks, name->raw_function),
				  .module = resolved_stacks_text(stacks, name->module),
				  .module_path = resolved_stacks_text(stacks, name->module_path),
				  .source_file = resolved_stacks_text(stacks, name->source_file),
				  .source_line = name->source_line,
				  .address = name->address,
				  .module_offset = name->module_offset};

	if (!demangle && frame.kind == MMT_FRAME_NATIVE)
		frame.function = frame.raw_function;
	return frame;
}

static struct mmt_error *take_resolved_frames(struct code_view *view, bool demangle)
{
	const struct resolved_stacks *stacks = &view->metadata->stacks;
	struct mmt_frame *frames = arena_alloc(&view->arena, stacks->names.count, sizeof(*frames));

	if (!frames)
		return &error_no_memory;
	for (size_t i = 0; i < stacks->names.count; i++)
		frames[i] = name_resolved(stacks, &stacks->names.items[i], demangle);
	for (size_t i = 0; i < stacks->frames.count; i++) {
		const struct resolved_frame *frame = &stacks->frames.items[i];
		struct frame_names names = {.frames = frames + frame->first_name,
					    .address = frames[frame->first_name].address,
					    .process = frame->process,
					    .count = frame->name_count};

		for (uint32_t j = 0; j < frame->name_count; j++)
			frames[frame->first_name + j].code = (uint32_t)i + 1;

		if (!vector_push(&view->names, names))
			return &error_no_memory;
	}
	return NULL;
}

struct mmt_error *code_view_take_resolved(struct code_view *view, bool demangle)
{
	const struct resolved_stacks *stacks = &view->metadata->stacks;
	struct mmt_error *error = take_resolved_frames(view, demangle);

	for (size_t i = 0; !error && i < stacks->stacks.count; i++) {
		const struct resolved_stack *stack = &stacks->stacks.items[i];
		uint32_t end = stack->end == RESOLVED_END_LOST ? STACK_END_LOST : stack->end;
		uint32_t number = STACKS_NONE;

		if (end > STACK_END_LOST)
			end = MMT_STACK_END_INVALID;
		number =
		    stacks_put(&view->stacks, stacks->stack_frames.items + stack->first_frame, stack->frame_count, end);
		if (number == STACKS_NONE || !vector_push(&view->resolved, number))
			error = &error_no_memory;
	}
	for (size_t i = 0; !error && i < stacks->processes.count; i++) {
		const struct resolved_process *resolved = &stacks->processes.items[i];
		const char *runtime = resolved_stacks_text(stacks, resolved->runtime);
		struct process_state *state = vector_append(&view->processes);

		if (!state)
			return &error_no_memory;
		state->resolved = resolved;
		state->unchecked_frames = resolved->unchecked_frames;
		state->stacks_end_there = resolved->stacks_end_there;
		state->changed_too_often = resolved->changed_too_often;
		state->runtime = runtime ? runtimes_find(runtime) : NULL;
	}
	for (size_t i = 0; !error && i < view->names.count; i++) {
		const struct frame_names *names = &view->names.items[i];

		if (names->process < view->processes.count)
			code_view_note_runtime(&view->processes.items[names->process], names->frames);
	}
	return error;
}

bool code_view_resolved_code(const struct code_view *view, uint32_t frame, struct viewed_code *viewed)
{
	const struct resolved_code *resolved = resolved_stacks_code(&view->metadata->stacks, frame);

	if (!resolved)
		return false;
	viewed->is_copy = resolved->is_copy;
	viewed->code = (struct listed_code){.bytes = resolved->bytes,
					    .size = resolved->size,
					    .address = resolved->address,
					    .site = resolved->site,
					    .is_return_address = resolved->is_return_address};
	return resolved->size;
}

const char *code_view_resolved_line(const struct code_view *view, uint32_t frame, uint64_t address, uint32_t *line_ret)
{
	const struct resolved_stacks *stacks = &view->metadata->stacks;
	const struct resolved_code *resolved = resolved_stacks_code(stacks, frame);
	const struct resolved_line *line =
	    resolved ? resolved_codes_line(&stacks->read_codes, resolved, address) : NULL;

	*line_ret = line ? line->source_line : 0;
	return line ? resolved_stacks_text(stacks, line->source_file) : NULL;
}

const char *code_view_resolved_unusable(const struct code_view *view, size_t *position, enum program_state *state_ret,
					char **missing_ret)
{
	const struct resolved_stacks *stacks = &view->metadata->stacks;
	const struct resolved_program *program;
	const char *missing;

	if (missing_ret)
		*missing_ret = NULL;
	if (*position >= stacks->programs.count)
		return NULL;
	program = &stacks->programs.items[(*position)++];
	*state_ret = program->state >= PROGRAM_MISSING && program->state <= PROGRAM_LACKING_NAMES
			 ? (enum program_state)program->state
			 : PROGRAM_BROKEN;
	missing = resolved_stacks_text(stacks, program->missing);
	if (missing_ret && missing)
		*missing_ret = strdup(missing);
	return resolved_stacks_text(stacks, program->path);
}

struct jit_names_state code_view_resolved_names(const struct code_view *view, uint32_t index)
{
	const struct resolved_process *process = view->processes.items[index].resolved;

	return (struct jit_names_state){
	    .has_perf_map = process->has_perf_map,
	    .has_jitdump = process->has_jitdump,
	    .dropped_lines = process->dropped_lines,
	    .lost_records = process->lost_records,
	    .unread_bytes = process->unread_bytes,
	    .other_clock = process->other_clock,
	    .jitdump_failure = resolved_stacks_text(&view->metadata->stacks, process->jitdump_failure),
	};
}
