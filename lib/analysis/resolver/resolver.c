// SPDX-License-Identifier: LGPL-2.1-or-later
/* Unwinds the stacks of samples with the code that was mapped at their time. code-names.c names the frames. */
#include "analysis/resolver/resolver.h"

#include "analysis/resolver/resolver-state.h"
#include "base/strings.h"
#include "code/elf/disassembly.h"

/* Stored as the end, followed by the frames. */
uint32_t stacks_put(struct intern *stacks, const uint32_t *frames, size_t count, uint32_t end)
{
	CLEANUP(free) uint32_t *words = malloc((count + 1) * sizeof(*words));

	if (!words)
		return INTERN_NONE;
	words[0] = end;
	if (count)
		memcpy(words + 1, frames, count * sizeof(*frames));
	return intern_put(stacks, words, (count + 1) * sizeof(*words));
}

const uint32_t *stacks_get(const struct intern *stacks, uint32_t stack, size_t *count_ret, uint32_t *end_ret)
{
	size_t size;
	const uint32_t *words = intern_get(stacks, stack, &size);

	*count_ret = size / sizeof(*words) - 1;
	if (end_ret)
		*end_ret = words[0];
	return words + 1;
}

/* Context of the unwinder's callbacks. */
struct lookup {
	struct resolver *resolver;
	const struct process *process;
	uint64_t time_ns;
	uint32_t generation; /* for everything that may be at an address; not 0 */
};

struct mmt_error *resolver_create(const struct reader_metadata *metadata, bool demangle, uint64_t stacks_max,
				  struct resolver **resolver_ret)
{
	struct resolver *resolver = malloc(sizeof(*resolver));
	struct mmt_error *error;

	if (!resolver)
		return &error_no_memory;
	memset(resolver, 0, offsetof(struct resolver, result)); /* the result is large */
	resolver->metadata = metadata;
	resolver->stacks_max = stacks_max;
	resolver->memory_failures = memory_failures();
	resolver->rules = unwind_rules_find(metadata->architecture->elf_machine);
	error = mapped_modules_init(&resolver->mapped, metadata, demangle)
		    ?: unwind_cache_create(LIMIT_UNWIND_CACHE, &resolver->unwind_cache);
	if (!error && metadata->packed)
		error = resolver_take_resolved(resolver, demangle);
	if (error) {
		resolver_destroy(resolver);
		return error;
	}
	*resolver_ret = resolver;
	return NULL;
}

void resolver_destroy(struct resolver *resolver)
{
	if (!resolver)
		return;
	vector_deinit_each(&resolver->processes, item, jit_names_destroy(item->jit_names));
	vector_deinit_each(&resolver->rows, item, jit_rows_destroy(*item));
	vector_deinit(&resolver->resolved);
	map_deinit(&resolver->improved);
	arena_deinit(&resolver->arena);
	intern_deinit(&resolver->generations);
	id_table_deinit(&resolver->frames_by_key);
	vector_deinit(&resolver->frames);
	intern_deinit(&resolver->stacks);
	unwind_cache_destroy(resolver->unwind_cache);
	mapped_modules_deinit(&resolver->mapped);
	free(resolver);
}

struct mmt_error *resolver_path(struct resolver *resolver, const char *path, uint32_t *path_ret)
{
	*path_ret = intern_put_string(&resolver->mapped.paths, path);
	return *path_ret == INTERN_NONE ? &error_no_memory : NULL;
}

const char *resolver_path_name(const struct resolver *resolver, uint32_t path)
{
	return intern_get(&resolver->mapped.paths, path, NULL);
}

/* The one way from an address to what is there. Valid until the next call. */
static struct location *locate(struct lookup *lookup, uint64_t address)
{
	struct resolver *resolver = lookup->resolver;
	struct location *location = &resolver->locations[hash_number(address) >> (64 - LOCATION_BITS)];
	const struct space_interval *interval;
	uint64_t file_offset;

	if (location->generation == lookup->generation && location->address == address)
		return location;
	interval = space_find(lookup->process->space, address);
	*location = (struct location){.address = address, .generation = lookup->generation, .image = NO_IMAGE};
	if (!interval)
		return location;
	location->mapped = true;
	location->executable = interval->attributes.protection & PROT_EXEC;
	location->image = mapped_modules_image(&resolver->mapped, &interval->attributes);
	file_offset = interval->attributes.file_offset + (address - interval->start);
	location->module =
	    mapped_modules_find(&resolver->mapped, location->image, file_offset, &location->file_address);
	if (!location->module) {
		location->file_address = file_offset;
		location->in_jit_memory = jit_code_is_path(resolver_path_name(resolver, interval->attributes.path));
	}
	return location;
}

/* JIT code is found by its address in the process; the name of the mapping does not matter. */
static uint32_t find_jit(struct lookup *lookup, uint64_t address)
{
	struct location *location = locate(lookup, address);
	struct jit_names *names;

	if (!location->jit_looked_up) {
		names = resolver_jit_names(lookup->resolver, lookup->process->index);
		location->jit_looked_up = true;
		location->jit =
		    names ? jit_names_find(names, address, lookup->time_ns, lookup->process->program_ns) : 0;
	}
	return location->jit;
}

/* The JIT code there, from a perf map or jitdump; unknown: its name is "" and the rest 0. */
static struct named_code describe_jit(struct lookup *lookup, uint64_t address)
{
	uint32_t number = find_jit(lookup, address);

	return number ? jit_names_describe(resolver_jit_names(lookup->resolver, lookup->process->index), number)
		      : (struct named_code){.name = ""};
}

static bool is_code_of_file(const struct space_interval *interval)
{
	return interval->attributes.protection & PROT_EXEC && interval->attributes.inode;
}

/* The module of a mapping; NULL: no readable one. */
static struct module *find_module(struct resolver *resolver, const struct space_attributes *attributes)
{
	uint64_t ignored;

	return mapped_modules_find(&resolver->mapped, mapped_modules_image(&resolver->mapped, attributes),
				   attributes->file_offset, &ignored);
}

/* In a packed recording: whether a process runs the runtime. */
static bool has_packed_runtime(const struct resolver *resolver, const struct runtime *runtime)
{
	return array_find(process, resolver->processes.items, resolver->processes.count,
			  process->code.runtime == runtime);
}

/* The module of the program, which is below its libraries; NULL: not readable. */
static struct module *find_program(struct resolver *resolver, const struct space *space)
{
	struct module *module = NULL;

	/* The assemblies in a .NET program are no part of its module. */
	space_each(interval, space, !module)
		module = is_code_of_file(interval) ? find_module(resolver, &interval->attributes) : NULL;
	return module;
}

const struct runtime *resolver_runtime(struct resolver *resolver, const struct space *space)
{
	const struct runtime *runtime = NULL, *dotnet = runtimes_find("dotnet");
	struct module *program;

	space_each(interval, space, !runtime) {
		if (is_code_of_file(interval))
			runtime = runtimes_of_file(resolver_path_name(resolver, interval->attributes.path));
	}
	if (runtime)
		return runtime;
	if (resolver->metadata->packed)
		return has_packed_runtime(resolver, dotnet) ? dotnet : NULL;
	program = find_program(resolver, space);
	return program && module_contains_coreclr(program) ? dotnet : NULL;
}

struct modules *resolver_modules(const struct resolver *resolver)
{
	return resolver->mapped.modules;
}

const char *resolver_vtable_type(struct resolver *resolver, const struct space *space, const char *path,
				 uint64_t offset)
{
	const struct space_interval *interval = space_next(space, 0);
	struct module_frame frames[LIMIT_INLINED_FRAMES];
	struct module *module;
	uint64_t address;

	while (interval && (!interval->attributes.inode ||
			    strcmp(resolver_path_name(resolver, interval->attributes.path), path) != 0))
		interval = space_next(space, interval->end);
	module =
	    interval && !resolver->metadata->packed
		? mapped_modules_find(&resolver->mapped, mapped_modules_image(&resolver->mapped, &interval->attributes),
				      interval->attributes.file_offset, &address)
		: NULL;
	if (!module || !module_names(module, address + offset, frames) || !frames->raw_function ||
	    !starts_with(frames->raw_function, VTABLE_PREFIX))
		return NULL;
	return frames->raw_function + strlen(VTABLE_PREFIX);
}

bool resolver_is_go(struct resolver *resolver, const struct space *space)
{
	struct module *program;

	if (resolver->metadata->packed) {
		if (has_packed_runtime(resolver, runtimes_find("go")))
			return true;
		return array_find(frame, resolver->frames.items, resolver->frames.count,
				  frame->name_count && frame->names[0].function &&
				      starts_with(frame->names[0].function, "runtime."));
	}
	program = find_program(resolver, space);
	return program && module_go(program);
}

bool resolver_has_module(const struct resolver *resolver, const struct space *space, const char *const *names)
{
	space_each(interval, space, true) {
		const char *slash = strrchr(resolver_path_name(resolver, interval->attributes.path), '/');

		for (size_t i = 0; is_code_of_file(interval) && slash && names[i]; i++) {
			if (starts_with(slash + 1, names[i]))
				return true;
		}
	}
	return false;
}

/* The row of the function in a module in whose frame the runtime's code runs; NULL: none. */
static const struct cfi_row *find_host(struct lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;
	const struct space *space = lookup->process->space;
	const struct runtime *runtime = resolver_runtime(resolver, space);
	const struct cfi_row *row = NULL;
	struct module *module, *last = NULL;

	if (!runtime || !runtime->interpreter)
		return NULL;
	space_each(interval, space, !row) {
		if (!is_code_of_file(interval) ||
		    runtimes_of_file(resolver_path_name(resolver, interval->attributes.path)) != runtime)
			continue;
		module = find_module(resolver, &interval->attributes);
		if (module && module != last)
			row = module_frame_row(module, runtime->interpreter);
		last = module ? module : last;
	}
	return row;
}

/* The recorded bytes of the JIT code of the process's program; NULL: none. */
static struct jit_rows *find_rows(struct lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;
	struct process_state *state = &resolver->processes.items[lookup->process->index];
	bool known = state->code_looked_up && state->code_ns == lookup->process->program_ns;
	struct jit_rows *rows = resolver_jit_rows(resolver, lookup->process->index, lookup->process->program_ns);

	/* An earlier program without recorded code may have been first to look up this code, without a host. */
	if (rows && !known)
		jit_rows_use_host(rows, find_host(lookup));
	return rows;
}

/* module_follows_call() for JIT code. Code that the runtime recorded is the code of this timestamp. Bytes read later
 * may be other code: a call found there proves a call, but a missing one proves nothing. */
static int generated_follows_call(struct lookup *lookup, uint64_t return_address)
{
	struct named_code code = describe_jit(lookup, return_address - 1);
	uint64_t before = return_address - code.start;
	int answer = -1;

	if (code.bytes && before <= code.size)
		answer = disassembly_ends_with_call(modules_disassembly(lookup->resolver->mapped.modules), code.bytes,
						    (size_t)before);
	/* Java's interpreter calls with a return address from a table: no call instruction precedes it. */
	if (answer < 0 &&
	    (jit_rows_follow_call(find_rows(lookup), return_address) == 1 || !strcmp(code.name, "Interpreter")))
		answer = 1;
	return answer;
}

/* The process has JIT code: identify its runtime while the runtime's files are mapped. NULL: unknown. */
static const struct runtime *note_runtime(struct lookup *lookup)
{
	struct process_state *state = &lookup->resolver->processes.items[lookup->process->index];
	uint64_t generation = space_code_generation(lookup->process->space) + 1;

	if (!state->code.runtime && state->looked_at != generation)
		state->code.runtime = resolver_runtime(lookup->resolver, lookup->process->space);
	state->looked_at = generation;
	return state->code.runtime;
}

/* Code that was replaced or freed before it was copied has no prologue: only the runtime's option shows whether it kept
 * frame pointers. If the option is not known, a method whose code was copied since is more likely to omit them. */
static bool may_omit_frame_pointers(struct lookup *lookup, const struct jit_rows *rows, uint64_t address)
{
	const struct runtime *runtime = note_runtime(lookup);
	int started_with =
	    !runtime || !runtime->frame_pointers
		? 1
		: runtimes_started_with(lookup->resolver->metadata, lookup->process->pid, lookup->process->program_ns,
					runtime->frame_pointers_option, runtime->frame_pointers);

	return started_with == 0 || (started_with < 0 && jit_rows_follow_call(rows, address) >= 0);
}

/* The row of a return address in recorded JIT code, and whether the method keeps its frame pointer. The function's
 * prologue is more reliable than an analysis of the code after a call that may not return. */
static void find_generated_place(struct lookup *lookup, uint64_t address, struct code_place *place)
{
	struct named_code code = describe_jit(lookup, address - 1);
	struct jit_rows *rows = find_rows(lookup);
	bool known_prologue = lookup->resolver->rules == &unwind_rules_x86_64;
	bool interpreted = known_prologue && !strcmp(code.name, "Interpreter");
	/* Methods have signatures; what the runtime itself generates, such as its interpreter, keeps frame pointers. */
	const char *signature = strchr(code.name, '(');
	bool is_method = signature && signature > code.name && signature[-1] != ' ';
	/* The register is stale below a virtual thread that was resumed, whose first frame needs only its size. */
	bool keeps = !interpreted && jit_rows_keep_frame_pointer(rows, code.start, address) &&
		     !strstr(code.name, ".Continuation.enterSpecial(");

	place->row = interpreted ? &jit_rows_interpreter
				 : jit_rows_find(rows, known_prologue ? code.start : 0, address, true);
	if (place->row && !place->row->other_stack && keeps)
		place->row = NULL;
	else if (!place->row && (!*code.name || is_method) && !keeps && may_omit_frame_pointers(lookup, rows, address))
		place->frame_pointer = CODE_FRAME_POINTER_NONE;
}

static enum code_kind find_code(void *context, uint64_t address, bool is_return_address, struct code_place *place_ret)
{
	struct lookup *lookup = context;
	const struct location *location = locate(lookup, address - is_return_address);
	const struct space_interval *interval;
	uint32_t number;

	*place_ret = (struct code_place){0};
	if (!location->executable) {
		/* Functions return to the start of this page while a return probe on them is open. */
		interval = is_return_address ? space_find(lookup->process->space, address) : NULL;
		if (interval && !strcmp(resolver_path_name(lookup->resolver, interval->attributes.path), "[uprobes]"))
			place_ret->special_function = CODE_SPECIAL_FUNCTION_RETURN_PROBE;
		return CODE_NONE;
	}
	if (location->module) {
		*place_ret =
		    module_place(location->module, location->file_address + is_return_address, is_return_address);
		return CODE_NATIVE;
	}
	/* The runtime may have written rows for its code. */
	number = find_jit(lookup, address - is_return_address);
	if (number)
		place_ret->row = jit_names_cfi(resolver_jit_names(lookup->resolver, lookup->process->index), number,
					       address - is_return_address);
	if (place_ret->row)
		return CODE_NATIVE;
	/* CPython names the trampolines that it generates to make Python frames visible to profilers. */
	if (is_return_address && starts_with(describe_jit(lookup, address - 1).name, "py::")) {
		place_ret->special_function = CODE_SPECIAL_FUNCTION_PYTHON_TRAMPOLINE;
		return CODE_OTHER;
	}
	if (is_return_address)
		find_generated_place(lookup, address, place_ret);
	else
		place_ret->row = jit_rows_find(find_rows(lookup), 0, address, false);
	return place_ret->row ? CODE_NATIVE : CODE_OTHER;
}

static enum code_special_function find_special_function(void *context, uint64_t address, bool is_return_address)
{
	const struct location *location = locate(context, address - is_return_address);

	return location->module ? module_special_function(location->module, location->file_address + is_return_address,
							  is_return_address)
				: CODE_SPECIAL_FUNCTION_NONE;
}

static int follows_call(void *context, uint64_t return_address)
{
	const struct location *location = locate(context, return_address - 1);

	if (!location->mapped)
		return -1;
	return location->module ? module_follows_call(location->module, location->file_address + 1)
				: generated_follows_call(context, return_address);
}

static void describe_frame(struct lookup *lookup, const struct unwind_frame *frame, struct frame_key *key)
{
	uint64_t address = frame->address - frame->is_return_address;
	const struct location *location = locate(lookup, address);

	memset(key, 0, sizeof(*key));
	key->is_return_address = frame->is_return_address;
	key->doubtful = frame->doubtful;
	key->image = location->image;
	if (location->module) {
		key->kind = MMT_FRAME_NATIVE;
		key->readable = true;
		key->address = location->file_address + frame->is_return_address;
		return;
	}
	key->process = lookup->process->index;
	key->address = frame->address;
	if (!location->mapped) {
		key->kind = MMT_FRAME_UNKNOWN;
		return;
	}
	key->generated = find_jit(lookup, address); /* may be precompiled .NET code, too */
	if (location->in_jit_memory) {
		key->kind = MMT_FRAME_JIT;
		(void)note_runtime(lookup);
		return;
	}
	key->kind = MMT_FRAME_NATIVE;
	key->address = location->file_address + frame->is_return_address;
}

static struct mmt_error *put_frame(struct resolver *resolver, const struct frame_key *key, uint64_t address,
				   uint32_t process, uint32_t *frame_ret)
{
	uint64_t hash = id_table_hash(&resolver->frames_by_key, key, sizeof(*key));
	struct frame_record record = {.key = *key, .address = address, .process = process};
	size_t position = 0;

	while ((*frame_ret = id_table_next(&resolver->frames_by_key, hash, &position)) != ID_NONE) {
		if (!memcmp(&resolver->frames.items[*frame_ret].key, key, sizeof(*key)))
			return NULL;
	}
	if (!vector_push(&resolver->frames, record))
		return &error_no_memory;
	*frame_ret = id_table_add(&resolver->frames_by_key, hash);
	if (*frame_ret != ID_NONE)
		return NULL;
	resolver->frames.count--;
	return &error_no_memory;
}

/* Note what the callers of a frame in JIT code, or their absence, show about the code: a caller found by frame pointer
 * is unchecked if nothing shows that the code keeps one, or if it does not. */
static void check_caller(struct lookup *lookup, const struct unwind_frame *frame, bool is_last)
{
	enum mmt_stack_end end = lookup->resolver->result.end;
	struct jit_code_state *code = &lookup->resolver->processes.items[lookup->process->index].code;

	if (is_last) {
		code->stacks_end_there |= end == MMT_STACK_END_NO_UNWIND_DATA || end == MMT_STACK_END_INVALID;
		code->unchecked_frames |= code->stacks_end_there;
	} else if (frame[1].origin == UNWIND_BY_FRAME_POINTER || frame[1].origin == UNWIND_BY_CALLCHAIN) {
		code->unchecked_frames |= (frame[1].doubtful && frame[1].origin == UNWIND_BY_FRAME_POINTER) ||
					  generated_follows_call(lookup, frame->address) < 0;
	}
}

/* Convert the unwinder's addresses to frame numbers, and those to a stack number. */
static struct mmt_error *put_stack(struct lookup *lookup, uint32_t *stack_ret)
{
	struct resolver *resolver = lookup->resolver;
	uint32_t frames[LIMIT_UNWIND_FRAMES];

	for (size_t i = 0; i < resolver->result.frame_count; i++) {
		struct unwind_frame *frame = &resolver->result.frames[i];
		struct mmt_error *error;
		struct frame_key key;

		describe_frame(lookup, frame, &key);
		if (key.kind == MMT_FRAME_JIT)
			check_caller(lookup, frame, i + 1 == resolver->result.frame_count);
		error = put_frame(resolver, &key, frame->address, lookup->process->index, &frames[i]);
		if (error)
			return error;
	}
	*stack_ret = stacks_put(&resolver->stacks, frames, resolver->result.frame_count, resolver->result.end);
	return *stack_ret == INTERN_NONE ? &error_no_memory : NULL;
}

struct mmt_error *resolver_empty_stack(struct resolver *resolver, uint32_t end, uint32_t *stack_ret)
{
	*stack_ret = stacks_put(&resolver->stacks, NULL, 0, end);
	return *stack_ret == INTERN_NONE ? &error_no_memory : NULL;
}

/* A number for the code that is mapped in a process now, including the names of its JIT code. */
static struct mmt_error *find_generation(struct resolver *resolver, const struct process *process, uint64_t time_ns,
					 uint32_t *generation_ret)
{
	const struct process_state *state =
	    process->index < resolver->processes.count ? &resolver->processes.items[process->index] : NULL;
	uint64_t key[] = {process->index, space_code_generation(process->space), process->program_ns,
			  state && state->jit_names ? jit_names_epoch(state->jit_names, time_ns) : 0};

	*generation_ret = intern_put(&resolver->generations, key, sizeof(key));
	return *generation_ret == INTERN_NONE ? &error_no_memory : NULL;
}

void resolver_keep_callchains(struct resolver *resolver, struct intern *callchains)
{
	resolver->callchains = callchains;
}

/* Its number; INTERN_NONE: out of memory. */
static uint32_t put_callchain(struct resolver *resolver, uint32_t stack, size_t frame_count)
{
	uint64_t words[LIMIT_UNWIND_FRAMES + 1] = {stack + 1};

	for (size_t i = 0; i < frame_count; i++)
		words[i + 1] = resolver->result.frames[i].address;
	return intern_put(resolver->callchains, words, (frame_count + 1) * sizeof(*words));
}

/* Unwind a stack that is not in the cache. */
static struct mmt_error *unwind_again(struct resolver *resolver, const struct process *process, uint32_t generation,
				      uint64_t time_ns, const struct unwind_input *input, uint32_t *value_ret)
{
	struct lookup lookup = {
	    .resolver = resolver, .process = process, .time_ns = time_ns, .generation = generation + 1};
	struct unwind_callbacks callbacks = {.find = find_code,
					     .find_special_function = find_special_function,
					     .follows_call = follows_call,
					     .context = &lookup};
	struct mmt_error *error;

	if (!vector_extend(&resolver->processes, process->index + 1))
		return &error_no_memory;
	resolver->processes.items[process->index].pid = process->pid;
	unwind(resolver->rules, input, &callbacks, &resolver->result);
	if (resolver_lacks_memory(resolver))
		return &error_no_memory;
	/* A bare callchain omits the caller of a frameless first function, such as mmap in glibc. */
	if (!input->stack_size && resolver->result.frame_count > 1)
		resolver->result.frames[1].doubtful = true;
	error = put_stack(&lookup, value_ret);
	if (!error && resolver->callchains)
		*value_ret = put_callchain(resolver, *value_ret, resolver->result.frame_count);
	if (!error && (*value_ret == INTERN_NONE || resolver_lacks_memory(resolver)))
		return &error_no_memory;
	if (!error)
		unwind_cache_put(resolver->unwind_cache, generation, input, &resolver->result, *value_ret);
	return error;
}

struct mmt_error *resolver_unwind(struct resolver *resolver, const struct process *process,
				  const struct event_stack *stack, uint32_t *stack_ret)
{
	static const uint8_t nothing[1];
	/* A dump is empty if the page of the stack pointer was not present. */
	const struct unwind_input input = {.registers = &stack->registers,
					   .stack = stack->bytes || !stack->bytes_wanted ? stack->bytes : nothing,
					   .stack_size = stack->bytes ? stack->byte_count : 0,
					   .callchain = stack->callchain,
					   .callchain_count = stack->callchain ? stack->callchain_count : 0,
					   .callchain_full = stack->callchain_full};
	uint32_t generation, value;
	struct mmt_error *error = NULL;

	if (resolver->metadata->packed || (!input.callchain_count && (!stack->registers.known || !input.stack_size))) {
		if (stack->resolved && stack->resolved <= resolver->resolved.count)
			*stack_ret = resolver->resolved.items[stack->resolved - 1];
		else
			error = resolver_empty_stack(resolver, MMT_STACK_END_NOT_RECORDED, stack_ret);
		if (!error && resolver->callchains)
			*stack_ret = put_callchain(resolver, *stack_ret, 0);
		return !error && *stack_ret == INTERN_NONE ? &error_no_memory : error;
	}
	error = find_generation(resolver, process, stack->time_ns, &generation);
	if (!error && !unwind_cache_get(resolver->unwind_cache, generation, &input, &value)) {
		value = (uint32_t)resolver->stacks_max;
		if (resolver->callchains || resolver->stacks.count <= resolver->stacks_max)
			error = unwind_again(resolver, process, generation, stack->time_ns, &input, &value);
	}
	if (!error)
		*stack_ret = value;
	return error;
}

const uint32_t *resolver_stack(const struct resolver *resolver, uint32_t stack, size_t *count_ret,
			       enum mmt_stack_end *end_ret)
{
	uint32_t end;
	const uint32_t *frames = stacks_get(&resolver->stacks, stack, count_ret, &end);

	*end_ret = end == STACK_END_LOST ? MMT_STACK_END_NOT_RECORDED : (enum mmt_stack_end)end;
	return frames;
}

struct mmt_error *resolver_named_stack(struct resolver *resolver, uint32_t stack, named_frames *list,
				       enum mmt_stack_end *end_ret)
{
	size_t count, name_count;
	const uint32_t *numbers = resolver_stack(resolver, stack, &count, end_ret);
	const struct mmt_frame *frames;

	list->count = 0;
	for (size_t i = 0; i < count; i++) {
		struct mmt_error *error = resolver_names(resolver, numbers[i], &frames, &name_count);

		for (size_t j = 0; !error && j < name_count; j++) {
			if (!vector_push(list, &frames[j]))
				error = &error_no_memory;
		}
		if (error)
			return error;
	}
	return NULL;
}

bool resolver_stack_is_doubtful(const struct resolver *resolver, uint32_t stack)
{
	enum mmt_stack_end end;
	size_t count;
	const uint32_t *frames = resolver_stack(resolver, stack, &count, &end);

	return array_find(frame, frames, count, resolver->frames.items[*frame].key.doubtful);
}

size_t resolver_stack_count(const struct resolver *resolver)
{
	return resolver->stacks.count;
}

struct packed_frame resolver_packed_frame(const struct resolver *resolver, uint32_t frame)
{
	const struct frame_record *record = &resolver->frames.items[frame];
	enum packed_lookup readable =
	    record->key.is_return_address ? PACKED_LOOKUP_RETURN_ADDRESS : PACKED_LOOKUP_ADDRESS;

	return (struct packed_frame){.process = record->process,
				     .lookup = record->key.readable ? readable : PACKED_LOOKUP_NONE};
}
