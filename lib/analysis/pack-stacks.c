// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/pack-stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/pack-code.h"
#include "base/cleanup.h"
#include "trace/format.h"

/* In the temporary file; 0: none. */
struct numbers {
	uint32_t stack, callchain; /* plus 1 */
};

void pack_stacks_deinit(struct pack_stacks *stacks)
{
	if (stacks->numbers)
		fclose(stacks->numbers);
	intern_deinit(&stacks->callchains);
	resolved_stacks_deinit(&stacks->resolved);
	arena_deinit(&stacks->arena);
	*stacks = (struct pack_stacks){0};
}

static struct mmt_error *put_number(struct pack_stacks *stacks, uint64_t sequence, size_t place, uint32_t number)
{
	off_t offset = (off_t)(sequence * sizeof(struct numbers) + place);

	if (pwrite(fileno(stacks->numbers), &number, sizeof(number), offset) == sizeof(number))
		return NULL;
	return error_system(errno ? errno : ENOSPC, "cannot write a temporary file");
}

static struct mmt_error *note_stack(void *context, uint64_t sequence, uint32_t stack)
{
	return put_number(context, sequence, offsetof(struct numbers, stack), stack + 1);
}

/* A walk along frame pointers that are none reads any words: what is not in code now is not told. */
static size_t keep_code(const struct space *space, const struct event_stack *stack, uint64_t *kept)
{
	size_t count = 0;

	for (size_t i = 0; i < stack->callchain_count && i < LIMIT_CALLCHAIN; i++) {
		const struct space_interval *interval = space_find(space, stack->callchain[i]);

		if (interval && interval->attributes.protection & PROT_EXEC)
			kept[count++] = stack->callchain[i];
	}
	return count;
}

static struct mmt_error *note_callchain(struct pack_stacks *stacks, const struct process *process,
					const struct event *event)
{
	uint64_t *kept = malloc(LIMIT_CALLCHAIN * sizeof(*kept));
	uint32_t number = INTERN_NONE;
	size_t count;

	if (!kept)
		return &error_no_memory;
	count = event->call.stack.callchain ? keep_code(process->space, &event->call.stack, kept) : 0;
	if (count)
		number = intern_put(&stacks->callchains, kept, count * sizeof(*kept));
	free(kept);
	if (!count)
		return NULL;
	if (number == INTERN_NONE)
		return &error_no_memory;
	return put_number(stacks, event->sequence, offsetof(struct numbers, callchain), number + 1);
}

static void note_call(void *context, struct replay *replay, struct process *process, const struct event *event)
{
	struct mmt_error *error = note_callchain(context, process, event);

	if (replay->observer_error)
		mmt_error_destroy(error);
	else
		replay->observer_error = error;
}

static bool resolve_name(struct resolved_stacks *resolved, const struct mmt_frame *frame)
{
	struct resolved_name name = {.address = frame->address,
				     .module_offset = frame->module_offset,
				     .source_line = frame->source_line,
				     .kind = (uint8_t)frame->kind,
				     .inlined = frame->inlined,
				     .doubtful = frame->doubtful};

	return resolved_stacks_put_text(resolved, frame->function, &name.function) &&
	       resolved_stacks_put_text(resolved, frame->raw_function, &name.raw_function) &&
	       resolved_stacks_put_text(resolved, frame->module, &name.module) &&
	       resolved_stacks_put_text(resolved, frame->module_path, &name.module_path) &&
	       resolved_stacks_put_text(resolved, frame->source_file, &name.source_file) &&
	       vector_push(&resolved->names, name);
}

/* All frames up to this one: numbers are given out in the order of stacks. */
static struct mmt_error *resolve_frames(struct pack_stacks *stacks, struct code_view *code, uint32_t last)
{
	while (stacks->resolved.frames.count <= last) {
		uint32_t number = (uint32_t)stacks->resolved.frames.count;
		struct resolved_frame frame = {.first_name = (uint32_t)stacks->resolved.names.count,
					       .process = code_view_frame_process(code, number)};
		const struct mmt_frame *names;
		size_t count;
		struct mmt_error *error = code_view_names(code, number, &stacks->arena, NULL, &names, &count);

		if (error)
			return error;
		if (!stacks->resolved.code_left_out)
			error = pack_code(&stacks->resolved, code, number, &frame.code);
		if (error)
			return error;
		frame.name_count = (uint32_t)count;
		for (size_t i = 0; i < count; i++) {
			if (!resolve_name(&stacks->resolved, &names[i]))
				return &error_no_memory;
		}
		if (!vector_push(&stacks->resolved.frames, frame))
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *resolve_stack(struct pack_stacks *stacks, const struct replay *replay, uint32_t number)
{
	enum mmt_stack_end end;
	size_t count;
	const uint32_t *frames = code_view_stack(replay->code, number, &count, &end);
	struct resolved_stack stack = {.end = number == replay->lost_stack ? RESOLVED_END_LOST : end,
				       .first_frame = (uint32_t)stacks->resolved.stack_frames.count,
				       .frame_count = (uint32_t)count};

	for (size_t i = 0; i < count; i++) {
		struct mmt_error *error = resolve_frames(stacks, replay->code, frames[i]);

		if (error)
			return error;
		if (!vector_push(&stacks->resolved.stack_frames, frames[i]))
			return &error_no_memory;
	}
	return vector_push(&stacks->resolved.stacks, stack) ? NULL : &error_no_memory;
}

static struct mmt_error *resolve_facts(struct resolved_stacks *resolved, const struct replay *replay)
{
	struct order_unfinished unfinished = reader_unfinished(replay->reader);
	const char *damage = reader_damage(replay->reader), *path;
	enum program_state state;
	size_t position = 0;
	char *missing;

	for (size_t i = 0; i < processes_count(replay->processes); i++) {
		struct generated_code code = code_view_generated(replay->code, (uint32_t)i);
		struct resolved_process process = {.has_perf_map = code.names.has_perf_map,
						   .has_jitdump = code.names.has_jitdump,
						   .other_clock = code.names.other_clock,
						   .unchecked_frames = code.unchecked_frames,
						   .stacks_end_there = code.stacks_end_there,
						   .changed_too_often = code.changed_too_often,
						   .dropped_lines = code.names.dropped_lines,
						   .lost_records = code.names.lost_records,
						   .unread_bytes = code.names.unread_bytes};

		if (!resolved_stacks_put_text(resolved, code.runtime ? code.runtime->name : NULL, &process.runtime) ||
		    !resolved_stacks_put_text(resolved, code.names.jitdump_failure, &process.jitdump_failure) ||
		    !vector_push(&resolved->processes, process))
			return &error_no_memory;
	}
	while ((path = code_view_unusable(replay->code, &position, &state, &missing))) {
		CLEANUP(free) char *part = missing;
		struct resolved_program program = {.state = state};

		if (!resolved_stacks_put_text(resolved, path, &program.path) ||
		    !resolved_stacks_put_text(resolved, part, &program.missing) ||
		    !vector_push(&resolved->programs, program))
			return &error_no_memory;
	}
	resolved->unfinished_records = unfinished.records;
	resolved->unfinished_ns = unfinished.span_ns;
	return resolved_stacks_put_text(resolved, damage, &resolved->damage) ? NULL : &error_no_memory;
}

static struct mmt_error *run(struct pack_stacks *stacks, struct replay *replay)
{
	struct mmt_error *error;

	replay->watch = (struct replay_watch){.call = note_call, .stack = note_stack, .context = stacks};
	error = replay_run(replay);
	for (size_t i = 0; !error && i < code_view_stack_count(replay->code); i++)
		error = resolve_stack(stacks, replay, (uint32_t)i);
	return error ? error : resolve_facts(&stacks->resolved, replay);
}

struct mmt_error *pack_stacks_find(struct pack_stacks *stacks, const char *input, const struct mmt_progress *progress,
				   struct reader **reader_ret)
{
	struct mmt_report_options options;
	struct replay_options replay_options = {.report = &options};
	struct replay replay;
	struct mmt_error *error;

	mmt_report_options_init(&options);
	options.input = input;
	options.progress = progress;
	stacks->numbers = tmpfile();
	if (!stacks->numbers)
		return error_system(errno, "cannot make a temporary file");
	error = replay_init(&replay, &replay_options);
	if (error)
		return error;
	stacks->resolved.code_left_out |= replay.metadata->stacks.code_left_out;
	if (replay.metadata->ours)
		error = run(stacks, &replay);
	else
		error = error_create(MMT_ERROR_UNSUPPORTED,
				     "%s: was not recorded by mmtrace: only its own recordings can be packed", input);
	if (!error)
		error = reader_open_again(replay.reader, reader_ret);
	replay_deinit(&replay);
	return error;
}

struct mmt_error *pack_stacks_get(const struct pack_stacks *stacks, uint64_t sequence, uint32_t *number_ret,
				  const uint64_t **callchain_ret, size_t *callchain_count_ret)
{
	struct numbers numbers = {0};
	size_t size = 0;

	/* Behind the end of the file nothing was noted. */
	if (pread(fileno(stacks->numbers), &numbers, sizeof(numbers), (off_t)(sequence * sizeof(numbers))) < 0)
		return error_system(errno, "cannot read a temporary file");
	*number_ret = numbers.stack;
	*callchain_ret = numbers.callchain ? intern_get(&stacks->callchains, numbers.callchain - 1, &size) : NULL;
	*callchain_count_ret = size / sizeof(**callchain_ret);
	return NULL;
}
