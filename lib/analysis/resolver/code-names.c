// SPDX-License-Identifier: LGPL-2.1-or-later
/* Symbolizes frames: looks up the function names and lines of an address, native or JIT; return addresses minus one.
 * resolver.c unwinds the stacks that the frames are in. */

#include "analysis/resolver/resolver-state.h"
#include "base/strings.h"

struct jit_names *resolver_jit_names(struct resolver *resolver, uint32_t process)
{
	struct process_state *state = &resolver->processes.items[process];

	if (!state->looked_up)
		mapped_modules_note(jit_names_create(resolver->metadata, state->pid, &state->jit_names));
	state->looked_up = true;
	return state->jit_names;
}

struct jit_rows *resolver_jit_rows(struct resolver *resolver, uint32_t process, uint64_t program_ns)
{
	struct process_state *state = &resolver->processes.items[process];
	const struct jit_code *code = &resolver->metadata->code;
	const struct jit_code_program *recorded;
	size_t place;

	if (state->code_looked_up && state->code_ns == program_ns)
		return state->rows;
	state->rows = NULL;
	state->code_ns = program_ns;
	state->code_looked_up = true;
	recorded = jit_code_find(code, state->pid, program_ns);
	if (!recorded)
		return NULL;
	/* Programs without recorded code share the code of the next program that has some. */
	place = (size_t)(recorded - code->programs.items);
	if (vector_extend(&resolver->rows, place + 1)) {
		if (!resolver->rows.items[place])
			resolver->rows.items[place] = jit_rows_create(code, recorded, resolver->mapped.modules);
		state->rows = resolver->rows.items[place];
	}
	mapped_modules_note(state->rows ? NULL : &error_no_memory);
	return state->rows;
}

static bool is_native(const struct frame_record *record)
{
	return !record->name_count && record->key.readable && record->key.image != NO_IMAGE;
}

static size_t name_native(struct resolver *resolver, const struct frame_key *key,
			  struct module_frame functions[LIMIT_INLINED_FRAMES])
{
	struct module *module = mapped_modules_open(&resolver->mapped, key->image);
	size_t count = module ? module_names(module, key->address - key->is_return_address, functions) : 0;

	/* The return address of a signal trampoline or of a coroutine's first function does not follow a call. */
	if (count && !functions[0].function && key->is_return_address && module_follows_call(module, key->address) == 0)
		count = module_names(module, key->address, functions);
	return count;
}

/* False: out of memory. */
static bool put_names(struct resolver *resolver, struct frame_record *record, const struct mmt_frame *common,
		      const struct module_frame *functions, size_t count)
{
	struct mmt_frame *frames = arena_alloc(&resolver->arena, count, sizeof(*frames));

	if (!frames)
		return false;
	for (size_t i = 0; i < count; i++) {
		frames[i] = *common;
		frames[i].function = functions[i].function;
		frames[i].raw_function = functions[i].raw_function;
		frames[i].source_file = functions[i].source_file;
		frames[i].source_line = functions[i].source_line;
		frames[i].inlined = functions[i].inlined;
	}
	record->names = frames;
	record->name_count = (uint32_t)count;
	return true;
}

/* A .NET program in a single file has the runtime and, outside of segments, precompiled code. NULL: out of memory. */
static const char *name_module(struct resolver *resolver, const struct frame_key *key)
{
	const char *name = path_file_name(resolver->mapped.image_states.items[key->image].path);
	struct module *module =
	    key->kind == MMT_FRAME_NATIVE ? mapped_modules_open(&resolver->mapped, key->image) : NULL;
	char part[256];

	if (!module || starts_with(name, "libcoreclr") || !module_contains_coreclr(module))
		return name;
	(void)snprintf(part, sizeof(part), "%s%s", key->readable ? "libcoreclr.so in " : BUNDLED_ASSEMBLIES, name);
	return arena_string(&resolver->arena, part);
}

/* False: out of memory. */
static bool name_frame(struct resolver *resolver, uint32_t number)
{
	struct module_frame functions[LIMIT_INLINED_FRAMES];
	struct frame_record *record = &resolver->frames.items[number];
	const struct frame_key *key = &record->key;
	struct mmt_frame frame = {.kind = key->kind, .doubtful = key->doubtful, .address = record->address};
	size_t count = is_native(record) ? name_native(resolver, key, functions) : 0;
	const struct jit_names *names;
	char normalised[1024];
	struct named_code code;

	if (key->image != NO_IMAGE) {
		frame.module_path = resolver->mapped.image_states.items[key->image].path;
		frame.module = name_module(resolver, key);
	}
	if (key->kind == MMT_FRAME_NATIVE)
		frame.module_offset = key->address;
	if (count)
		return put_names(resolver, record, &frame, functions, count);
	functions[0] = (struct module_frame){0};
	if (!key->readable && (key->generated || key->kind == MMT_FRAME_JIT))
		frame.module = "[jit]";
	if (!key->readable && key->generated) {
		names = resolver->processes.items[key->process].jit_names;
		code = jit_names_describe(names, key->generated);
		perf_map_normalise(code.name, normalised, sizeof(normalised));
		frame.kind = MMT_FRAME_JIT;
		functions->raw_function = code.name;
		functions->function =
		    strcmp(normalised, code.name) ? arena_string(&resolver->arena, normalised) : code.name;
		functions->source_file = jit_names_line(names, key->generated, record->address - key->is_return_address,
							&functions->source_line);
		if (!functions->function)
			return false;
	}
	return put_names(resolver, record, &frame, functions, 1);
}

/* Native frames get their names in batches: a report needs nearly all of them. False: out of memory. */
static bool name_frames(struct resolver *resolver, uint32_t number)
{
	struct module_query queries[MODULE_FETCH_MAX];
	uint32_t numbers[MODULE_FETCH_MAX];
	size_t count = 0;

	for (uint32_t i = number; i < resolver->frames.count && count < MODULE_FETCH_MAX; i++) {
		const struct frame_key *key = &resolver->frames.items[i].key;
		struct module *module =
		    is_native(&resolver->frames.items[i]) ? mapped_modules_open(&resolver->mapped, key->image) : NULL;

		if (module) {
			queries[count] = (struct module_query){module, key->address - key->is_return_address};
			numbers[count++] = i;
		}
	}
	if (!count)
		return name_frame(resolver, number);
	modules_fetch_names(resolver->mapped.modules, queries, count);
	return !array_find(other, numbers, count, !name_frame(resolver, *other)) &&
	       (resolver->frames.items[number].name_count || name_frame(resolver, number));
}

static bool is_named(const struct mmt_frame *frame, const char *start)
{
	return frame->raw_function && starts_with(frame->raw_function, start);
}

/* Call this after a frame of the process has been symbolized: the name may identify the runtime. An interpreter runs
 * code in frames of its own functions; in Java these are JIT code too. */
static void note_runtime(struct process_state *state, const struct mmt_frame *frame)
{
	const struct runtime *runtime = state->code.runtime;

	if (frame->kind == MMT_FRAME_JIT) {
		if (runtime && runtime->interpreted_named)
			state->interpreted_named |= is_named(frame, runtime->interpreted_named);
		if (runtime && runtime->interpreted && *runtime->interpreted && is_named(frame, runtime->interpreted))
			state->code.interpreter = runtime;
		return;
	}
	if (state->code.interpreter || !frame->module_path)
		return;
	runtime = runtimes_of_file(frame->module_path);
	if (runtime && runtime->interpreted && (!*runtime->interpreted || is_named(frame, runtime->interpreted)))
		state->code.interpreter = runtime;
}

struct mmt_error *resolver_names(struct resolver *resolver, uint32_t frame, const struct mmt_frame **frames_ret,
				 size_t *count_ret)
{
	struct frame_record *record = &resolver->frames.items[frame];
	struct process_state *state = &resolver->processes.items[record->process];

	if (!record->name_count && !(is_native(record) ? name_frames(resolver, frame) : name_frame(resolver, frame)))
		return &error_no_memory;
	if (resolver_lacks_memory(resolver))
		return &error_no_memory;
	if (!record->noted) {
		record->noted = true;
		note_runtime(state, record->names);
	}
	if (record->names->kind == MMT_FRAME_JIT) {
		state->code.has_code = true;
		state->code.unnamed |= !record->names->function;
	}
	*frames_ret = record->names;
	*count_ret = record->name_count;
	return NULL;
}

const char *resolver_unusable(const struct resolver *resolver, size_t *position, enum module_state *state_ret,
			      char **missing_ret)
{
	const struct packed_stacks *stacks = &resolver->metadata->stacks;
	const struct packed_module *module;
	const char *missing;

	if (!resolver->metadata->packed)
		return mapped_modules_unusable(&resolver->mapped, position, state_ret, missing_ret);
	if (missing_ret)
		*missing_ret = NULL;
	do {
		if (*position >= stacks->modules.count)
			return NULL;
		module = &stacks->modules.items[(*position)++];
	} while (map_get(&resolver->improved, module->path));
	/* Numbers that this version does not know become MODULE_BROKEN. */
	*state_ret = module->state >= MODULE_MISSING && module->state <= MODULE_SILENT
			 ? (enum module_state)module->state
			 : MODULE_BROKEN;
	missing = packed_stacks_text(stacks, module->missing);
	if (missing_ret && missing)
		*missing_ret = strdup(missing);
	return packed_stacks_text(stacks, module->path);
}

struct jit_code_state resolver_jit(struct resolver *resolver, uint32_t process)
{
	const struct jit_names *names;
	struct jit_code_state code;

	if (process >= resolver->processes.count)
		return (struct jit_code_state){0};
	code = resolver->processes.items[process].code;
	if (resolver->processes.items[process].interpreted_named)
		code.interpreter = NULL;
	names = resolver->metadata->packed ? NULL : resolver_jit_names(resolver, process);
	if (names)
		code.names = jit_names_state(names);
	return code;
}

/* Packed recordings: their tables hold the stacks and names resolved by mmtrace pack. */

static struct mmt_error *take_resolved_frames(struct resolver *resolver, bool demangle)
{
	const struct packed_stacks *stacks = &resolver->metadata->stacks;
	struct mmt_frame *frames = arena_alloc(&resolver->arena, stacks->names.count, sizeof(*frames));

	if (!frames)
		return &error_no_memory;
	for (size_t i = 0; i < stacks->names.count; i++) {
		const struct packed_name *name = &stacks->names.items[i];

		frames[i] = (struct mmt_frame){.kind = name->kind,
					       .inlined = name->inlined,
					       .doubtful = name->doubtful,
					       .function = packed_stacks_text(stacks, name->function),
					       .raw_function = packed_stacks_text(stacks, name->raw_function),
					       .module = packed_stacks_text(stacks, name->module),
					       .module_path = packed_stacks_text(stacks, name->module_path),
					       .source_file = packed_stacks_text(stacks, name->source_file),
					       .source_line = name->source_line,
					       .address = name->address,
					       .module_offset = name->module_offset};
		if (!demangle && frames[i].kind == MMT_FRAME_NATIVE)
			frames[i].function = frames[i].raw_function;
	}
	array_each(frame, stacks->frames.items, stacks->frames.count) {
		const struct mmt_frame *names = frames + frame->first_name;
		struct frame_record record = {
		    .key = {.address = names->module_offset,
			    .image = NO_IMAGE,
			    .kind = names->kind,
			    .is_return_address = frame->lookup == PACKED_LOOKUP_RETURN_ADDRESS,
			    .doubtful = names->doubtful,
			    .readable = frame->lookup != PACKED_LOOKUP_NONE},
		    .names = names,
		    .process = frame->process,
		    .name_count = frame->name_count};

		if (!vector_push(&resolver->frames, record))
			return &error_no_memory;
	}
	return NULL;
}

/* Which names of a module the recording has, and where better ones may be; by the text of the module's path. */
struct known_names {
	bool has_lines, lacks_functions, looked_up;
	uint32_t image;
};

/* Replace the recorded names of frames, which are in modules that may have better ones. False: out of memory. */
static bool improve_names(struct resolver *resolver, const struct module_query *queries, const uint32_t *numbers,
			  size_t count)
{
	const struct packed_stacks *stacks = &resolver->metadata->stacks;
	struct module_frame functions[LIMIT_INLINED_FRAMES];

	modules_fetch_names(resolver->mapped.modules, queries, count);
	for (size_t i = 0; i < count; i++) {
		struct frame_record *record = &resolver->frames.items[numbers[i]];
		const struct packed_name *name = &stacks->names.items[stacks->frames.items[numbers[i]].first_name];
		const struct mmt_frame recorded = *record->names;
		size_t found = name_native(resolver, &record->key, functions);
		bool adds_line = found && functions->source_line && !recorded.source_line;

		if (!found || !functions->function || (!adds_line && recorded.function))
			continue;
		if (!put_names(resolver, record, &recorded, functions, found) ||
		    !map_put(&resolver->improved, name->module_path, 1))
			return false;
	}
	return true;
}

/* Look up frames without lines or names where debug information with the build-id appeared since packing. */
static struct mmt_error *improve_resolved_frames(struct resolver *resolver)
{
	const struct packed_stacks *stacks = &resolver->metadata->stacks;
	CLEANUP(free) struct known_names *modules = calloc(stacks->read_texts.count + 1, sizeof(*modules));
	struct module_query queries[MODULE_FETCH_MAX];
	uint32_t numbers[MODULE_FETCH_MAX];
	size_t count = 0;

	if (!modules)
		return &error_no_memory;
	for (size_t i = 0; i < stacks->frames.count; i++) {
		const struct packed_name *name = &stacks->names.items[stacks->frames.items[i].first_name];

		if (name->module_path == RESOLVED_NO_TEXT)
			continue;
		modules[name->module_path].has_lines |= name->source_line != 0;
		modules[name->module_path].lacks_functions |= name->function == RESOLVED_NO_TEXT;
	}
	for (uint32_t i = 0; i < resolver->frames.count; i++) {
		struct frame_key *key = &resolver->frames.items[i].key;
		uint32_t path = stacks->names.items[stacks->frames.items[i].first_name].module_path;
		struct known_names *known = path == RESOLVED_NO_TEXT || !key->readable ? NULL : &modules[path];

		if (!known || known->has_lines)
			continue;
		if (!known->looked_up)
			known->image = mapped_modules_improved(&resolver->mapped, packed_stacks_text(stacks, path),
							       known->lacks_functions);
		known->looked_up = true;
		key->image = known->image;
		if (key->image == NO_IMAGE)
			continue;
		queries[count] = (struct module_query){mapped_modules_open(&resolver->mapped, key->image),
						       key->address - key->is_return_address};
		numbers[count++] = i;
		if (count < MODULE_FETCH_MAX)
			continue;
		if (!improve_names(resolver, queries, numbers, count))
			return &error_no_memory;
		count = 0;
	}
	return improve_names(resolver, queries, numbers, count) ? NULL : &error_no_memory;
}

struct mmt_error *resolver_take_resolved(struct resolver *resolver, bool demangle)
{
	const struct packed_stacks *stacks = &resolver->metadata->stacks;
	struct mmt_error *error = take_resolved_frames(resolver, demangle) ?: improve_resolved_frames(resolver);

	array_while(stack, stacks->stacks.items, stacks->stacks.count, !error) {
		uint32_t number = stacks_put(&resolver->stacks, stacks->stack_frames.items + stack->first_frame,
					     stack->frame_count, stack->end);

		if (number == INTERN_NONE || !vector_push(&resolver->resolved, number))
			error = &error_no_memory;
	}
	array_while(process, stacks->processes.items, stacks->processes.count, !error) {
		const char *runtime = packed_stacks_text(stacks, process->runtime);
		struct jit_code_state code = {
		    .runtime = runtime ? runtimes_find(runtime) : NULL,
		    .unchecked_frames = process->unchecked_frames,
		    .stacks_end_there = process->stacks_end_there,
		    .names = process->names,
		};

		if (!vector_push(&resolver->processes, (struct process_state){.code = code}))
			return &error_no_memory;
	}
	array_while(record, resolver->frames.items, resolver->frames.count, !error)
		note_runtime(&resolver->processes.items[record->process], record->names);
	return error;
}
