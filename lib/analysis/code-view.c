// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/code-view.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "analysis/jit-names.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "code/perf-map.h"
#include "code/program.h"
#include "code/unwind.h"
#include "model/stacks.h"

#define MEMO_ENTRIES (1u << 16)
#define NO_IMAGE UINT32_MAX
#define STACK_END_LOST MMT_STACK_END_KINDS

/* A mapped file: two processes may have different ones under one path. Interned, so without padding. */
struct image_key {
	uint64_t inode;
	uint32_t device_major, device_minor;
	uint32_t path;
	uint32_t unused;
};

/* Identity of a frame; interned, so without padding. */
struct frame_key {
	uint64_t address; /* native: in the file's numbering; else in the process */
	uint32_t image;	  /* NO_IMAGE: nothing is mapped there */
	uint32_t process; /* index; 0 for native frames, which processes share */
	uint8_t kind;	  /* enum mmt_frame_kind */
	uint8_t is_return_address;
	uint8_t doubtful;
	uint8_t readable;   /* native: `address` is an ELF address, else a file offset */
	uint32_t generated; /* number of jit_names_find() */
};

struct frame_names {
	const struct mmt_frame *frames; /* NULL: not asked for yet */
	size_t count;
	uint64_t address; /* in the process where the frame was first seen */
	uint32_t process; /* index */
};

struct image_state {
	bool opened;
	struct program *program;
};

struct process_state {
	int32_t pid;
	bool looked_up;
	struct jit_names *jit_names; /* NULL: not looked up, or out of memory */
	bool unnamed;		     /* has frames that a perf map would have named */
	const struct runtime *runtime;
	uint64_t looked_at;			 /* generation of the code in which no runtime was found; 0: none yet */
	const struct resolved_process *resolved; /* of a packed recording; else NULL */
};

struct code_view {
	const struct reader_metadata *metadata;
	const struct unwind_rules *rules;
	struct programs *programs;
	struct unwind_memo *memo;
	struct intern paths;
	struct intern images;
	VECTOR(struct image_state) image_states;
	VECTOR(struct process_state) processes;
	struct intern generations;
	struct intern frames;
	VECTOR(struct frame_names) names;
	struct stacks stacks;
	VECTOR(uint32_t) resolved;   /* packed recordings: number in their table -> number here */
	struct arena arena;	     /* of the names in their table */
	struct unwind_result result; /* scratch: too large for the C stack */
};

/* For the unwinder's callbacks. */
struct lookup {
	struct code_view *view;
	const struct process *process;
	uint64_t time_ns;
};

/* When recording ended, since the epoch; 0: not known. */
static uint64_t recorded_until(const struct reader_metadata *metadata)
{
	if (!metadata->ours || !metadata->has_loss || metadata->loss.stop_ns < metadata->info.start_ns)
		return 0;
	return metadata->info.start_realtime_ns + (metadata->loss.stop_ns - metadata->info.start_ns);
}

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
					    .count = frame->name_count,
					    .address = frames[frame->first_name].address,
					    .process = frame->process};

		if (!vector_push(&view->names, names))
			return &error_no_memory;
	}
	return NULL;
}

/* The tables of a packed recording take the place of all that is found out otherwise: nothing is unwound or opened. */
static struct mmt_error *take_resolved(struct code_view *view, bool demangle)
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
		state->runtime = runtime ? runtimes_find(runtime) : NULL;
	}
	return error;
}

struct mmt_error *code_view_create(const struct reader_metadata *metadata, bool demangle, struct code_view **view_ret)
{
	struct code_view *view = calloc(1, sizeof(*view));
	struct mmt_error *error;

	if (!view)
		return &error_no_memory;
	view->metadata = metadata;
	view->rules = unwind_rules_find(metadata->architecture->elf_machine);
	error = programs_create(metadata->architecture->elf_machine, demangle, &view->programs);
	if (!error) {
		programs_recorded_until(view->programs, recorded_until(metadata));
		error = unwind_memo_create(MEMO_ENTRIES, &view->memo);
	}
	if (!error) {
		uint32_t unnamed; /* 0: what the model gives to mappings that nothing named */

		error = code_view_path(view, "", &unnamed);
	}
	if (!error && metadata->packed)
		error = take_resolved(view, demangle);
	if (error) {
		code_view_destroy(view);
		return error;
	}
	*view_ret = view;
	return NULL;
}

void code_view_destroy(struct code_view *view)
{
	if (!view)
		return;
	for (size_t i = 0; i < view->processes.count; i++)
		jit_names_destroy(view->processes.items[i].jit_names);
	vector_deinit(&view->processes);
	vector_deinit(&view->image_states);
	vector_deinit(&view->names);
	vector_deinit(&view->resolved);
	arena_deinit(&view->arena);
	intern_deinit(&view->paths);
	intern_deinit(&view->images);
	intern_deinit(&view->generations);
	intern_deinit(&view->frames);
	stacks_deinit(&view->stacks);
	unwind_memo_destroy(view->memo);
	programs_destroy(view->programs);
	free(view);
}

struct mmt_error *code_view_path(struct code_view *view, const char *path, uint32_t *path_ret)
{
	uint32_t number = intern_put_string(&view->paths, path);

	if (number == INTERN_NONE)
		return &error_no_memory;
	*path_ret = number;
	return NULL;
}

static const struct build_id_entry *find_build_id(const struct code_view *view, const char *path)
{
	for (size_t i = 0; i < view->metadata->build_ids.entries.count; i++) {
		const struct build_id_entry *entry = &view->metadata->build_ids.entries.items[i];

		if (!strcmp(entry->path, path))
			return entry;
	}
	return NULL;
}

/* NO_IMAGE: out of memory, the code is then unreadable, which the stack says. */
static uint32_t find_image(struct code_view *view, const struct space_attributes *attributes)
{
	struct image_key key = {.inode = attributes->inode,
				.device_major = attributes->device_major,
				.device_minor = attributes->device_minor,
				.path = attributes->path};
	uint32_t image = intern_put(&view->images, &key, sizeof(key));

	while (image != NO_IMAGE && view->image_states.count <= image) {
		if (!vector_append(&view->image_states))
			return NO_IMAGE;
	}
	return image;
}

static const char *image_path(const struct code_view *view, uint32_t image)
{
	struct image_key key;

	memcpy(&key, intern_get(&view->images, image, NULL), sizeof(key));
	return intern_get(&view->paths, key.path, NULL);
}

/* The next record of the same file, counted on in *position; without a known inode the path decides. NULL: no more. */
static const struct image_copy *next_record(const struct code_view *view, const struct image_key *key, const char *path,
					    size_t *position)
{
	while (*position < view->metadata->images.images.count) {
		const struct image_copy *record = &view->metadata->images.images.items[(*position)++];

		if (key->inode == SPACE_INODE_UNKNOWN
			? !strcmp(record->path, path)
			: record->inode == key->inode && record->device_major == key->device_major &&
			      record->device_minor == key->device_minor)
			return record;
	}
	return NULL;
}

static struct program *open_copy(struct code_view *view, const struct image_copy *record)
{
	struct program *program = NULL;
	uint8_t *content;
	struct mmt_error *error = image_copies_extract(&view->metadata->images, record, &content);

	if (!error)
		error = programs_open_content(view->programs, record->path, content, record->size, record->build_id,
					      record->build_id_size, &program);
	mmt_error_destroy(error);
	return program;
}

/* The copy in the recording; else the first of the file's paths that leads to the recorded build. */
static struct program *open_recorded(struct code_view *view, const struct image_key *key, const char *path)
{
	const struct image_copy *record;
	struct program *program = NULL;

	for (size_t i = 0; (record = next_record(view, key, path, &i));) {
		if (record->size && (program = open_copy(view, record)))
			return program;
	}
	for (size_t i = 0; (record = next_record(view, key, path, &i));) {
		mmt_error_destroy(programs_open(view->programs, record->path,
						record->build_id_size ? record->build_id : NULL, record->build_id_size,
						&program));
		if (program && program_state(program) == PROGRAM_READABLE)
			break;
	}
	return program;
}

static struct program *open_program(struct code_view *view, uint32_t image)
{
	struct image_state *state = &view->image_states.items[image];
	const struct build_id_entry *build_id;
	struct image_key key;
	const char *path;

	if (state->opened)
		return state->program;
	state->opened = true;
	memcpy(&key, intern_get(&view->images, image, NULL), sizeof(key));
	path = intern_get(&view->paths, key.path, NULL);
	if (key.inode)
		state->program = open_recorded(view, &key, path);
	if (state->program)
		return state->program;
	build_id = find_build_id(view, path);
	mmt_error_destroy(programs_open(view->programs, path, build_id ? build_id->bytes : NULL,
					build_id ? build_id->size : 0, &state->program));
	return state->program;
}

/* The program file mapped at an address and the address in its own numbering; NULL: none that can be read. */
static struct program *find_program(struct code_view *view, const struct space_interval *interval, uint64_t address,
				    uint64_t *file_address_ret)
{
	uint32_t image = find_image(view, &interval->attributes);
	struct program *program = image == NO_IMAGE ? NULL : open_program(view, image);
	uint64_t file_offset = interval->attributes.file_offset + (address - interval->start);

	if (!program || program_state(program) != PROGRAM_READABLE)
		return NULL;
	return program_address(program, file_offset, file_address_ret) ? program : NULL;
}

/* Read when the first frame in generated code is met. Without memory for it there are no names. */
static struct jit_names *find_jit_names(struct code_view *view, uint32_t process)
{
	struct process_state *state = &view->processes.items[process];

	if (!state->looked_up)
		mmt_error_destroy(jit_names_create(view->metadata, state->pid, &state->jit_names));
	state->looked_up = true;
	return state->jit_names;
}

/* Generated code is looked up by its address in the process, whatever the mapping is called. */
static uint32_t find_generated(struct lookup *lookup, uint64_t address)
{
	struct jit_names *names = find_jit_names(lookup->view, lookup->process->index);

	return names ? jit_names_find(names, address, lookup->time_ns) : 0;
}

/* CPython's names for the code it generates to be seen in stacks. */
static bool is_python_trampoline(struct lookup *lookup, uint64_t address)
{
	uint32_t generated = find_generated(lookup, address);
	struct jit_names *names = find_jit_names(lookup->view, lookup->process->index);

	return generated && !strncmp(jit_names_describe(names, generated, address).name, "py::", 4);
}

/* Unwind rows that the runtime has written for its code. */
static const struct cfi_row *find_generated_row(struct lookup *lookup, uint64_t address)
{
	uint32_t number = find_generated(lookup, address);

	return number ? jit_names_cfi(find_jit_names(lookup->view, lookup->process->index), number, address) : NULL;
}

/* As program_follows_call(), for code that the runtime has written down. */
static int generated_follows_call(struct lookup *lookup, uint64_t return_address)
{
	uint32_t number = find_generated(lookup, return_address - 1);
	struct jit_name name;
	uint64_t before;

	if (!number)
		return -1;
	name = jit_names_describe(find_jit_names(lookup->view, lookup->process->index), number, return_address - 1);
	before = return_address - name.start;
	if (!name.code || before > name.code_size)
		return -1;
	return programs_ends_with_call(lookup->view->programs, name.code, (size_t)before);
}

static enum code_kind find_code(void *context, uint64_t address, bool is_return_address, struct code_place *place_ret)
{
	struct lookup *lookup = context;
	const struct space_interval *interval = space_find(lookup->process->space, address - is_return_address);
	struct program *program;
	uint64_t file_address;

	*place_ret = (struct code_place){0};
	if (!interval || !(interval->attributes.protection & PROT_EXEC))
		return CODE_NONE;
	program = find_program(lookup->view, interval, address - is_return_address, &file_address);
	if (program) {
		*place_ret = program_place(program, file_address + is_return_address, is_return_address);
		return CODE_NATIVE;
	}
	place_ret->row = find_generated_row(lookup, address - is_return_address);
	if (place_ret->row)
		return CODE_NATIVE;
	if (is_return_address && is_python_trampoline(lookup, address - 1))
		place_ret->stub = CODE_STUB_PYTHON_TRAMPOLINE;
	return CODE_OTHER;
}

static enum code_stub find_stub(void *context, uint64_t address, bool is_return_address)
{
	struct lookup *lookup = context;
	const struct space_interval *interval = space_find(lookup->process->space, address - is_return_address);
	struct program *program;
	uint64_t file_address;

	program = interval ? find_program(lookup->view, interval, address - is_return_address, &file_address) : NULL;
	return program ? program_stub(program, file_address + is_return_address, is_return_address) : CODE_STUB_NONE;
}

static int follows_call(void *context, uint64_t return_address)
{
	struct lookup *lookup = context;
	const struct space_interval *interval = space_find(lookup->process->space, return_address - 1);
	struct program *program;
	uint64_t file_address;

	if (!interval)
		return -1;
	program = find_program(lookup->view, interval, return_address - 1, &file_address);
	return program ? program_follows_call(program, file_address + 1)
		       : generated_follows_call(lookup, return_address);
}

/* Names that the kernel gives to memory which is no program file. */
static bool is_generated_code(const char *path)
{
	return !strncmp(path, "//anon", 6) || !strncmp(path, "/memfd:", 7) || !strncmp(path, "[anon", 5) ||
	       !strncmp(path, "/dev/zero", 9) || !strncmp(path, "/anon_hugepage", 14) || !strncmp(path, "/SYSV", 5) ||
	       !strcmp(path, "[heap]") || !strcmp(path, "");
}

static const char *path_name(const void *view, uint32_t path)
{
	return code_view_path_name(view, path);
}

/* The process has generated code: whose it is can be told while the files of the runtime are mapped. */
static void note_runtime(struct code_view *view, const struct process *process)
{
	struct process_state *state = &view->processes.items[process->index];
	uint64_t generation = space_code_generation(process->space) + 1;

	if (state->runtime || state->looked_at == generation)
		return;
	state->looked_at = generation;
	state->runtime = runtimes_of_space(process->space, path_name, view);
}

static void describe_frame(struct lookup *lookup, const struct process *process, const struct unwind_frame *frame,
			   struct frame_key *key)
{
	struct code_view *view = lookup->view;
	uint64_t address = frame->is_return_address ? frame->address - 1 : frame->address;
	const struct space_interval *interval = space_find(lookup->process->space, address);

	memset(key, 0, sizeof(*key));
	key->is_return_address = frame->is_return_address;
	key->doubtful = frame->doubtful;
	if (!interval) {
		key->kind = MMT_FRAME_UNKNOWN;
		key->image = NO_IMAGE;
		key->process = process->index;
		key->address = frame->address;
		return;
	}
	key->image = find_image(view, &interval->attributes);
	key->readable = find_program(view, interval, address, &key->address) != NULL;
	if (!key->readable && is_generated_code(code_view_path_name(view, interval->attributes.path))) {
		key->kind = MMT_FRAME_JIT;
		key->generated = find_generated(lookup, address);
		key->process = process->index;
		key->address = frame->address;
		note_runtime(view, process);
		return;
	}
	key->kind = MMT_FRAME_NATIVE;
	if (!key->readable) {
		key->address = interval->attributes.file_offset + (address - interval->start);
		key->generated = find_generated(lookup, address); /* .NET's precompiled code perhaps */
		key->process = process->index;
	}
	key->address += frame->is_return_address;
}

static struct mmt_error *put_frame(struct code_view *view, const struct frame_key *key, uint64_t address,
				   uint32_t process, uint32_t *frame_ret)
{
	uint32_t frame = intern_put(&view->frames, key, sizeof(*key));
	struct frame_names *names;

	if (frame == INTERN_NONE)
		return &error_no_memory;
	*frame_ret = frame;
	if (frame < view->names.count)
		return NULL;
	names = vector_append(&view->names);
	if (!names)
		return &error_no_memory;
	names->address = address;
	names->process = process;
	return NULL;
}

static enum mmt_stack_end stack_end(enum unwind_end end)
{
	static const enum mmt_stack_end ends[] = {
	    [UNWIND_END_ENTRY] = MMT_STACK_END_ENTRY,
	    [UNWIND_END_DUMP_EXHAUSTED] = MMT_STACK_END_DUMP_EXHAUSTED,
	    [UNWIND_END_DEPTH_LIMIT] = MMT_STACK_END_DEPTH_LIMIT,
	    [UNWIND_END_NO_UNWIND_DATA] = MMT_STACK_END_NO_UNWIND_DATA,
	    [UNWIND_END_CALLCHAIN] = MMT_STACK_END_CALLCHAIN,
	    [UNWIND_END_INVALID] = MMT_STACK_END_INVALID,
	    [UNWIND_END_NOT_RECORDED] = MMT_STACK_END_NOT_RECORDED,
	    [UNWIND_END_OTHER_STACK] = MMT_STACK_END_OTHER_STACK,
	    [UNWIND_END_COROUTINE] = MMT_STACK_END_COROUTINE,
	};

	return ends[end];
}

static struct mmt_error *put_process(struct code_view *view, const struct process *process)
{
	while (view->processes.count <= process->index) {
		if (!vector_append(&view->processes))
			return &error_no_memory;
	}
	view->processes.items[process->index].pid = process->pid;
	return NULL;
}

/*
 * A callchain alone lacks the caller of a function without frame, as the C library's mmap is one: what follows the
 * first frame is not known to be its caller.
 */
static void doubt_caller_of_leaf(struct unwind_result *result)
{
	if (result->frame_count > 1)
		result->frames[1].doubtful = true;
}

/* Turn the unwinder's addresses into frame numbers, and those into a stack number. */
static struct mmt_error *put_stack(struct lookup *lookup, const struct process *process, uint32_t *stack_ret)
{
	struct code_view *view = lookup->view;
	uint32_t frames[UNWIND_FRAMES_MAX];

	for (size_t i = 0; i < view->result.frame_count; i++) {
		const struct unwind_frame *frame = &view->result.frames[i];
		struct mmt_error *error;
		struct frame_key key;

		describe_frame(lookup, process, frame, &key);
		error = put_frame(view, &key, frame->address, process->index, &frames[i]);
		if (error)
			return error;
	}
	*stack_ret = stacks_put(&view->stacks, frames, view->result.frame_count, stack_end(view->result.end));
	return *stack_ret == STACKS_NONE ? &error_no_memory : NULL;
}

struct mmt_error *code_view_no_stack(struct code_view *view, uint32_t *stack_ret)
{
	*stack_ret = stacks_put(&view->stacks, NULL, 0, MMT_STACK_END_NOT_RECORDED);
	return *stack_ret == STACKS_NONE ? &error_no_memory : NULL;
}

struct mmt_error *code_view_lost_stack(struct code_view *view, uint32_t *stack_ret)
{
	*stack_ret = stacks_put(&view->stacks, NULL, 0, STACK_END_LOST);
	return *stack_ret == STACKS_NONE ? &error_no_memory : NULL;
}

const char *code_view_path_name(const struct code_view *view, uint32_t path)
{
	return intern_get(&view->paths, path, NULL);
}

/* A number for the code that is mapped in a process now, and for the names that generated code has. */
static struct mmt_error *find_generation(struct code_view *view, const struct process *process, uint64_t time_ns,
					 uint32_t *generation_ret)
{
	uint64_t key[] = {process->index, space_code_generation(process->space), 0};

	if (process->index < view->processes.count && view->processes.items[process->index].jit_names)
		key[2] = jit_names_epoch(view->processes.items[process->index].jit_names, time_ns);
	*generation_ret = intern_put(&view->generations, key, sizeof(key));
	return *generation_ret == INTERN_NONE ? &error_no_memory : NULL;
}

struct mmt_error *code_view_unwind(struct code_view *view, const struct process *process,
				   const struct event_stack *stack, uint32_t *stack_ret)
{
	struct lookup lookup = {.view = view, .process = process, .time_ns = stack->time_ns};
	struct unwind_callbacks callbacks = {
	    .find = find_code, .find_stub = find_stub, .follows_call = follows_call, .context = &lookup};
	struct unwind_registers registers = {.known = stack->registers.known};
	struct unwind_input input = {.registers = &registers,
				     .stack = stack->bytes,
				     .stack_size = stack->bytes ? stack->byte_count : 0,
				     .callchain = stack->callchain,
				     .callchain_count = stack->callchain ? stack->callchain_count : 0,
				     .callchain_full = stack->callchain_full};
	uint32_t generation;
	struct mmt_error *error;

	_Static_assert(UNWIND_REGISTERS == EVENT_REGISTERS, "one numbering");
	if (view->metadata->packed) {
		if (!stack->resolved || stack->resolved > view->resolved.count)
			return code_view_no_stack(view, stack_ret);
		*stack_ret = view->resolved.items[stack->resolved - 1];
		return NULL;
	}
	if (!input.callchain_count && (!registers.known || !input.stack_size))
		return code_view_no_stack(view, stack_ret);
	memcpy(registers.values, stack->registers.values, sizeof(registers.values));
	error = find_generation(view, process, stack->time_ns, &generation);
	if (error)
		return error;
	if (unwind_memo_get(view->memo, generation, &input, stack_ret))
		return NULL;
	error = put_process(view, process);
	if (error)
		return error;
	unwind(view->rules, &input, &callbacks, &view->result);
	if (!input.stack_size)
		doubt_caller_of_leaf(&view->result);
	error = put_stack(&lookup, process, stack_ret);
	if (!error)
		unwind_memo_put(view->memo, generation, &input, &view->result, *stack_ret);
	return error;
}

const uint32_t *code_view_stack(const struct code_view *view, uint32_t stack, size_t *count_ret,
				enum mmt_stack_end *end_ret)
{
	uint32_t end;
	const uint32_t *frames = stacks_get(&view->stacks, stack, count_ret, &end);

	*end_ret = end == STACK_END_LOST ? MMT_STACK_END_NOT_RECORDED : (enum mmt_stack_end)end;
	return frames;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool name_generated(struct code_view *view, const struct frame_key *key, uint64_t address, struct arena *arena,
			   struct mmt_frame *frame)
{
	char normalised[1024];
	struct jit_name name;

	if (!key->generated)
		return false;
	name = jit_names_describe(view->processes.items[key->process].jit_names, key->generated,
				  address - key->is_return_address);
	perf_map_normalise(name.name, normalised, sizeof(normalised));
	frame->kind = MMT_FRAME_JIT;
	frame->module = "[jit]";
	frame->raw_function = name.name;
	frame->function = arena_string(arena, normalised);
	frame->source_file = name.source_file;
	frame->source_line = name.source_line;
	return true;
}

static size_t name_native(struct code_view *view, const struct frame_key *key,
			  struct program_frame functions[PROGRAM_INLINE_MAX])
{
	struct program *program = key->image == NO_IMAGE ? NULL : open_program(view, key->image);

	size_t count = program ? program_names(program, key->address - key->is_return_address, functions) : 0;

	/* No call was there to return behind: a signal's trampoline, or what a coroutine is made to return to. */
	if (count && !functions[0].function && key->is_return_address &&
	    program_follows_call(program, key->address) == 0)
		count = program_names(program, key->address, functions);
	return count;
}

static struct mmt_frame *copy_frames(struct arena *arena, const struct mmt_frame *common,
				     const struct program_frame *functions, size_t count)
{
	struct mmt_frame *frames = arena_alloc(arena, count, sizeof(*frames));

	for (size_t i = 0; frames && i < count; i++) {
		frames[i] = *common;
		frames[i].function = functions[i].function;
		frames[i].raw_function = functions[i].raw_function;
		frames[i].source_file = functions[i].source_file;
		frames[i].source_line = functions[i].source_line;
		frames[i].inlined = functions[i].inlined;
	}
	return frames;
}

static struct mmt_frame *name_frame(struct code_view *view, const struct frame_key *key, uint64_t address,
				    struct arena *arena, size_t *count_ret)
{
	struct program_frame functions[PROGRAM_INLINE_MAX] = {{0}};
	struct mmt_frame frame = {.kind = key->kind, .doubtful = key->doubtful, .address = address};
	size_t count = 0;

	if (key->image != NO_IMAGE) {
		frame.module_path = arena_string(arena, image_path(view, key->image));
		frame.module = frame.module_path ? base_name(frame.module_path) : NULL;
	}
	if (key->kind == MMT_FRAME_NATIVE)
		frame.module_offset = key->address;
	if (key->readable)
		count = name_native(view, key, functions);
	if (count) {
		*count_ret = count;
		return copy_frames(arena, &frame, functions, count);
	}
	if (!key->readable && !name_generated(view, key, address, arena, &frame) && key->kind == MMT_FRAME_JIT)
		frame.module = "[jit]";
	functions[0] = (struct program_frame){.function = frame.function,
					      .raw_function = frame.raw_function,
					      .source_file = frame.source_file,
					      .source_line = frame.source_line};
	*count_ret = 1;
	return copy_frames(arena, &frame, functions, 1);
}

struct mmt_error *code_view_names(struct code_view *view, uint32_t frame, struct arena *arena,
				  const struct mmt_frame **frames_ret, size_t *count_ret)
{
	struct frame_names *names = &view->names.items[frame];

	if (!names->frames) {
		struct frame_key key;

		memcpy(&key, intern_get(&view->frames, frame, NULL), sizeof(key));
		names->frames = name_frame(view, &key, names->address, arena, &names->count);
		if (!names->frames)
			return &error_no_memory;
	}
	if (names->frames->kind == MMT_FRAME_JIT && !names->frames->function)
		view->processes.items[names->process].unnamed = true;
	*frames_ret = names->frames;
	*count_ret = names->count;
	return NULL;
}

static bool frame_key(const struct code_view *view, uint32_t frame, struct frame_key *key)
{
	const void *stored = frame < view->frames.count ? intern_get(&view->frames, frame, NULL) : NULL;

	if (stored)
		memcpy(key, stored, sizeof(*key));
	return stored;
}

bool code_view_code(struct code_view *view, uint32_t frame, struct viewed_code *code_ret)
{
	struct listed_code *code = &code_ret->code;
	struct frame_key key;

	*code_ret = (struct viewed_code){.disassembly = programs_disassembly(view->programs)};
	if (!frame_key(view, frame, &key))
		return false;
	code->site = key.address;
	code->is_return_address = key.is_return_address;
	if (key.readable) {
		code->size = program_code(open_program(view, key.image), key.address - key.is_return_address,
					  &code->address, &code->begins_with_instruction, &code->bytes);
	} else if (key.generated && key.kind == MMT_FRAME_JIT) {
		struct jit_name name = jit_names_describe(view->processes.items[key.process].jit_names, key.generated,
							  key.address - key.is_return_address);

		code->bytes = name.code;
		code->size = name.code_size;
		code->address = name.start;
		code->begins_with_instruction = true;
	}
	return code->size;
}

const char *code_view_line(struct code_view *view, uint32_t frame, uint64_t address, uint32_t *line_ret)
{
	struct program_frame functions[PROGRAM_INLINE_MAX] = {{0}};
	struct frame_key key;
	struct jit_name name;

	*line_ret = 0;
	if (!frame_key(view, frame, &key))
		return NULL;
	if (key.readable) {
		(void)program_names(open_program(view, key.image), address, functions);
		*line_ret = functions[0].source_line;
		return functions[0].source_file;
	}
	if (!key.generated || key.kind != MMT_FRAME_JIT)
		return NULL;
	name = jit_names_describe(view->processes.items[key.process].jit_names, key.generated, address);
	*line_ret = name.source_line;
	return name.source_file;
}

size_t code_view_stack_count(const struct code_view *view)
{
	return stacks_count(&view->stacks);
}

uint32_t code_view_frame_process(const struct code_view *view, uint32_t frame)
{
	return view->names.items[frame].process;
}

/* Why stacks could not use the image; PROGRAM_READABLE: they could, or it is no program at all. */
static enum program_state unusable_state(const struct code_view *view, size_t image)
{
	const struct program *program = view->image_states.items[image].program;
	const char *path = image_path(view, (uint32_t)image);
	enum program_state state;

	if (!program || is_generated_code(path) || path[0] != '/')
		return PROGRAM_READABLE;
	state = program_state(program);
	return state == PROGRAM_NOT_ELF ? PROGRAM_READABLE : state;
}

/* An earlier image of the same path has told it already. */
static bool is_told(const struct code_view *view, size_t image, enum program_state state)
{
	const char *path = image_path(view, (uint32_t)image);

	for (size_t i = 0; i < image; i++) {
		if (unusable_state(view, i) == state && !strcmp(image_path(view, (uint32_t)i), path))
			return true;
	}
	return false;
}

const char *code_view_unusable(const struct code_view *view, size_t *position, enum program_state *state_ret)
{
	const struct resolved_stacks *stacks = &view->metadata->stacks;

	if (view->metadata->packed) {
		const struct resolved_program *program;

		if (*position >= stacks->programs.count)
			return NULL;
		program = &stacks->programs.items[(*position)++];
		*state_ret = program->state >= PROGRAM_MISSING && program->state <= PROGRAM_CHANGED
				 ? (enum program_state)program->state
				 : PROGRAM_BROKEN;
		return resolved_stacks_text(stacks, program->path);
	}
	while (*position < view->image_states.count) {
		size_t image = (*position)++;

		*state_ret = unusable_state(view, image);
		if (*state_ret != PROGRAM_READABLE && !is_told(view, image, *state_ret))
			return image_path(view, (uint32_t)image);
	}
	return NULL;
}

static struct jit_names_state resolved_names(const struct code_view *view, const struct resolved_process *process)
{
	return (struct jit_names_state){
	    .has_perf_map = process->has_perf_map,
	    .has_jitdump = process->has_jitdump,
	    .dropped_lines = process->dropped_lines,
	    .other_clock = process->other_clock,
	    .jitdump_failure = resolved_stacks_text(&view->metadata->stacks, process->jitdump_failure),
	};
}

struct generated_code code_view_generated(struct code_view *view, uint32_t process)
{
	struct generated_code generated = {0};
	const struct jit_names *names;

	if (process >= view->processes.count)
		return generated;
	generated.runtime = view->processes.items[process].runtime;
	generated.unnamed = view->processes.items[process].unnamed;
	if (view->processes.items[process].resolved) {
		generated.names = resolved_names(view, view->processes.items[process].resolved);
		return generated;
	}
	names = find_jit_names(view, process);
	if (names)
		generated.names = jit_names_state(names);
	return generated;
}
