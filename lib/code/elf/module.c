// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/elf/module.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/vector.h"
#include "code/unwind/cfi.h"
#include "code/elf/disassembly.h"
#include "code/elf/elf-file.h"
#include "code/unwind/instruction-analysis.h"
#include "code/dwarf/name-cache.h"
#include "code/unwind/special-functions.h"
#include "code/dwarf/symbols.h"

/* Size of the cache of program_follows_call(); each address has one slot. */
#define CALLS_KEPT (1u << 17)
#define CALL_ADDRESS_BITS 46 /* larger addresses are not cached */
#define CALL_PROGRAM_BITS 16

#define CODE_BEFORE_BYTES 256 /* of a function with an unknown start */

struct program {
	struct programs *programs;
	size_t number; /* from 1 */
	char *path;
	struct elf_file file;
	struct cfi *cfi; /* NULL: not loaded yet */
	struct symbols *symbols;
	bool symbols_opened;
	struct map places; /* address and is_return_address -> index into `known_places` */
	VECTOR(struct code_place) known_places;
	VECTOR(struct epilogue *) epilogues; /* owners of the rows in `known_places` */
};

struct known_call {
	uint64_t address : CALL_ADDRESS_BITS;
	uint64_t program : CALL_PROGRAM_BITS; /* number of the program; 0: unused */
	uint64_t answer : 2;		      /* plus 1 */
};

struct programs {
	uint16_t machine;
	bool demangle;
	uint64_t recorded_until_ns; /* 0: unknown */
	bool other_kernel;	    /* recorded on a different kernel from the running one */
	struct disassembly *disassembly;
	struct name_cache *cache; /* NULL: none */
	struct intern keys;	  /* path and build-id, or inode */
	struct map by_key;	  /* id -> program */
	struct known_call *calls; /* CALLS_KEPT slots; NULL: not used yet */
	VECTOR(struct program *) items;
};

struct mmt_error *programs_create(uint16_t elf_machine, bool demangle, struct programs **programs_ret)
{
	struct programs *programs = calloc(1, sizeof(*programs));
	struct mmt_error *error;

	if (!programs)
		return &error_no_memory;
	programs->machine = elf_machine;
	programs->demangle = demangle;
	error = disassembly_create(elf_machine, &programs->disassembly);
	if (error) {
		programs_destroy(programs);
		return error;
	}
	*programs_ret = programs;
	return NULL;
}

static void program_destroy(struct program *program)
{
	if (!program)
		return;
	symbols_destroy(program->symbols);
	cfi_destroy(program->cfi);
	elf_file_close(&program->file);
	map_deinit(&program->places);
	vector_deinit(&program->known_places);
	for (size_t i = 0; i < program->epilogues.count; i++)
		free(program->epilogues.items[i]);
	vector_deinit(&program->epilogues);
	free(program->path);
	free(program);
}

void programs_destroy(struct programs *programs)
{
	if (!programs)
		return;
	for (size_t i = 0; i < programs->items.count; i++)
		program_destroy(programs->items.items[i]);
	vector_deinit(&programs->items);
	intern_deinit(&programs->keys);
	map_deinit(&programs->by_key);
	free(programs->calls);
	disassembly_destroy(programs->disassembly);
	name_cache_close(programs->cache);
	free(programs);
}

void programs_use_cache(struct programs *programs, const char *directory)
{
	name_cache_close(programs->cache);
	programs->cache = directory ? name_cache_open(directory, NAME_CACHE_BYTES) : NULL;
}

void programs_recorded_until(struct programs *programs, uint64_t realtime_ns)
{
	programs->recorded_until_ns = realtime_ns;
}

void programs_recorded_on(struct programs *programs, const char *kernel)
{
	struct utsname running;

	programs->other_kernel = *kernel && !uname(&running) && strcmp(running.release, kernel) != 0;
}

/* Without a recorded build-id, the modification time and the inode show that the file has changed. Do not compare the
 * device: on overlayfs and btrfs the kernel's mappings and stat() report different devices. */
static void refuse_other_file(const struct programs *programs, uint64_t inode, struct elf_file *file)
{
	const struct timespec *time = &file->identity.st_mtim;
	uint64_t written_ns = (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;

	if (file->state != PROGRAM_READABLE)
		return;
	if (file->image) { /* of the vdso */
		if (programs->other_kernel) {
			elf_file_close(file);
			file->state = PROGRAM_OTHER_BUILD;
		}
		return;
	}
	if ((!programs->recorded_until_ns || written_ns <= programs->recorded_until_ns) &&
	    (!inode || inode == file->identity.st_ino))
		return;
	elf_file_close(file);
	file->state = PROGRAM_CHANGED;
}

/* Add an opened module to the cache. Takes ownership of `error` and of the program's contents. */
static struct mmt_error *add_program(struct programs *programs, const char *path, struct program *program,
				     struct mmt_error *error, struct program **program_ret)
{
	if (!error) {
		program->path = strdup(path);
		program->programs = programs;
	}
	if (!error && (!program->path || !vector_push(&programs->items, program)))
		error = &error_no_memory;
	if (error) {
		program_destroy(program);
		return error;
	}
	program->number = programs->items.count;
	*program_ret = program;
	return NULL;
}

static struct mmt_error *open_program(struct programs *programs, const char *path, const uint8_t *build_id,
				      size_t build_id_size, uint64_t inode, struct program **program_ret)
{
	struct program *program = calloc(1, sizeof(*program));
	struct mmt_error *error = &error_no_memory;

	if (program)
		error = elf_file_open(path, programs->machine, build_id, build_id_size, &program->file);
	if (!error && !build_id_size)
		refuse_other_file(programs, inode, &program->file);
	return add_program(programs, path, program, error, program_ret);
}

struct mmt_error *programs_open_content(struct programs *programs, const char *path, void *content, size_t size,
					const uint8_t *build_id, size_t build_id_size, struct program **program_ret)
{
	struct program *program = calloc(1, sizeof(*program));
	struct mmt_error *error = &error_no_memory;

	if (program)
		error =
		    elf_file_open_content(content, size, programs->machine, build_id, build_id_size, &program->file);
	else
		free(content);
	return add_program(programs, path, program, error, program_ret);
}

struct mmt_error *programs_open_mapped(struct programs *programs, const char *path, const uint8_t *build_id,
				       size_t build_id_size, uint64_t inode, struct program **program_ret)
{
	size_t path_size = strlen(path) + 1;
	const void *identity = build_id ? (const void *)build_id : &inode;
	size_t identity_size = build_id ? build_id_size : sizeof(inode);
	size_t key_size = path_size + identity_size;
	CLEANUP(free) char *key = malloc(key_size);
	struct mmt_error *error;
	const uint64_t *known;
	uint32_t id;

	if (!key)
		return &error_no_memory;
	memcpy(key, path, path_size);
	memcpy(key + path_size, identity, identity_size);
	id = intern_put(&programs->keys, key, key_size);
	if (id == INTERN_NONE)
		return &error_no_memory;
	known = map_get(&programs->by_key, id);
	if (known) {
		*program_ret = (struct program *)(uintptr_t)*known;
		return NULL;
	}
	error = open_program(programs, path, build_id, build_id_size, inode, program_ret);
	if (!error && !map_put(&programs->by_key, id, (uint64_t)(uintptr_t)*program_ret))
		return &error_no_memory;
	return error_context(error, "%s", path);
}

struct mmt_error *programs_open(struct programs *programs, const char *path, const uint8_t *build_id,
				size_t build_id_size, struct program **program_ret)
{
	return programs_open_mapped(programs, path, build_id, build_id_size, 0, program_ret);
}

enum program_state program_state(const struct program *program)
{
	return program->file.state;
}

enum program_state program_known_state(const struct program *program)
{
	if (program->file.state != PROGRAM_READABLE || !program->symbols)
		return program->file.state;
	return symbols_debug_state(program->symbols);
}

char *program_missing_part(const struct program *program, size_t *others_ret)
{
	return program->symbols ? symbols_missing_part(program->symbols, others_ret) : NULL;
}

bool program_address(const struct program *program, uint64_t file_offset, uint64_t *address_ret)
{
	return elf_file_address(&program->file, file_offset, address_ret);
}

/* NULL: none, or out of memory. */
static struct cfi *cfi_of(struct program *program)
{
	if (program->file.state != PROGRAM_READABLE)
		return NULL;
	if (!program->cfi)
		mmt_error_destroy(cfi_create(program->file.elf, &program->cfi));
	return program->cfi;
}

const struct cfi_row *program_cfi(struct program *program, uint64_t address)
{
	struct cfi *cfi = cfi_of(program);

	return cfi ? cfi_find(cfi, address) : NULL;
}

static size_t read_code(void *context, uint64_t address, size_t size, const uint8_t **code_ret)
{
	const struct program *program = context;

	return elf_file_code_at(&program->file, address, size, code_ret);
}

/* Use the function's end from the unwind table, or else from its instructions. */
static uint64_t measure_function(void *context, uint64_t start, uint64_t end)
{
	struct program *program = context;
	const struct epilogue_code code = {.read = read_code, .context = program};
	struct cfi *cfi = cfi_of(program);
	uint64_t described_end = UINT64_MAX;
	bool described = cfi && cfi_function_range(cfi, start, &described_end);

	if (described_end < end)
		end = described_end;
	return described ? end : function_range_find(program->programs->disassembly, &code, start, end);
}

/* Never cache names of a copy in the recording: it could claim the build-id of any module. */
static void use_cache(struct program *program)
{
	const struct elf_file *file = &program->file;
	struct name_cache_key key = {.demangled = program->programs->demangle, .program = file->identity};

	key.build_id_size = elf_file_build_id(file, key.build_id);
	if (key.build_id_size)
		symbols_use_cache(program->symbols, program->programs->cache, &key);
}

/* Load symbols on first use; a file whose symbols cannot be read has no names. */
static void open_symbols(struct program *program)
{
	const struct elf_file *file = &program->file;
	bool demangle_names = program->programs->demangle;
	struct mmt_error *error = NULL;

	if (program->symbols_opened || file->state != PROGRAM_READABLE)
		return;
	program->symbols_opened = true;
	if (file->image) {
		error = symbols_create_from_memory(program->path, file->image, file->image_size, demangle_names,
						   &program->symbols);
	} else {
		CLEANUP(close) int fd = elf_file_reopen(file, program->path);

		if (fd >= 0)
			error = symbols_create(program->path, fd, demangle_names, &program->symbols);
		if (program->symbols)
			use_cache(program);
	}
	mmt_error_destroy(error);
	if (program->symbols)
		symbols_use_measure(program->symbols, measure_function, program);
}

/* A program's entry function is shorter than this, and its callee never returns. */
#define ENTRY_SIZE 64

static enum code_special_function special_function_by_code(const struct program *program, uint64_t address)
{
	const uint8_t *code = NULL, *before = NULL;
	size_t size = elf_file_code_at(&program->file, address, SPECIAL_FUNCTIONS_CODE_MAX, &code);
	size_t before_size = elf_file_code_before(&program->file, address, SPECIAL_FUNCTIONS_CODE_BEFORE, &before);

	return size ? special_functions_by_code(program->programs->machine, code, size, before, before_size)
		    : CODE_SPECIAL_FUNCTION_NONE;
}

/* Whether a function at `address` with a libc name is really libc's. A statically linked program contains libc, but
 * also code of its own with such names: only code that starts or ends a thread itself counts. */
static bool is_of_c_library(struct program *program, uint64_t address, const char *function)
{
	const uint8_t *code = NULL;
	uint64_t start, end;
	size_t size;

	if (special_functions_is_c_library(program->path))
		return true;
	if (!program->file.entry || program->file.has_interpreter)
		return false;
	if (function[0] == '_' || !symbols_function_range(program->symbols, address, &start, &end))
		return function[0] == '_';
	size = elf_file_code_at(&program->file, start, end - start, &code);
	return special_functions_has_system_call(program->programs->machine, code, size);
}

enum code_special_function program_special_function(struct program *program, uint64_t address, bool is_return_address)
{
	const char *function;

	if (program->file.state != PROGRAM_READABLE)
		return CODE_SPECIAL_FUNCTION_NONE;
	open_symbols(program);
	function = program->symbols ? symbols_function(program->symbols, address - is_return_address) : NULL;
	if (function)
		return special_functions_by_name(function,
						 is_of_c_library(program, address - is_return_address, function));
	return program->file.entry && address - program->file.entry < ENTRY_SIZE ? CODE_SPECIAL_FUNCTION_ENTRY
										 : CODE_SPECIAL_FUNCTION_NONE;
}

const struct cfi_row *program_frame_row(struct program *program, const char *function)
{
	uint64_t start, end;

	open_symbols(program);
	if (!program->symbols || !symbols_named_range(program->symbols, function, &start, &end))
		return NULL;
	return program_cfi(program, start + (end - start) / 2);
}

static bool function_begins(void *context, uint64_t address)
{
	struct program *program = context;
	uint64_t start, end;

	open_symbols(program);
	return program->symbols && symbols_function_range(program->symbols, address, &start, &end) && start == address;
}

/* Code without an unwind table. */
static const struct cfi_row *deduce_row(struct program *program, uint64_t address, bool is_return_address)
{
	const struct epilogue_code code = {.read = read_code, .begins = function_begins, .context = program};
	struct epilogue *epilogue;

	if (program->file.state != PROGRAM_READABLE)
		return NULL;
	epilogue = malloc(sizeof(*epilogue));
	if (epilogue &&
	    epilogue_find(program->programs->disassembly, &code, address, is_return_address, false, epilogue) &&
	    vector_push(&program->epilogues, epilogue))
		return epilogue_row(epilogue);
	free(epilogue);
	return NULL;
}

/* Go functions are named package.function. C code in a Go program may have no frame pointers. */
static bool is_go_function(struct program *program, uint64_t address)
{
	const char *name;

	if (!program->file.is_go)
		return false;
	open_symbols(program);
	name = program->symbols ? symbols_function(program->symbols, address) : NULL;
	return name && strchr(name, '.') && !strstr(name, ".part.") && !strstr(name, ".constprop.") &&
	       !strstr(name, ".isra.") && !strstr(name, ".cold");
}

struct code_place program_place(struct program *program, uint64_t address, bool is_return_address)
{
	uint64_t key = address << 1 | is_return_address;
	const uint64_t *known = map_get(&program->places, key);
	struct code_place place = {0};

	if (known)
		return program->known_places.items[*known];
	place.row = program_cfi(program, address - is_return_address);
	if (!place.row)
		place.row = deduce_row(program, address, is_return_address);
	if (is_return_address)
		place.special_function = special_function_by_code(program, address);
	place.frame_pointer = is_go_function(program, address - is_return_address);
	if (place.special_function == CODE_SPECIAL_FUNCTION_NONE && program->file.is_go)
		place.special_function = program_special_function(program, address, is_return_address);
	if (vector_push(&program->known_places, place))
		(void)map_put(&program->places, key, program->known_places.count - 1);
	return place;
}

struct disassembly *programs_disassembly(struct programs *programs)
{
	return programs->disassembly;
}

int programs_ends_with_call(struct programs *programs, const uint8_t *code, size_t size)
{
	size_t used = size < DISASSEMBLY_INSTRUCTION_MAX ? size : DISASSEMBLY_INSTRUCTION_MAX;

	return disassembly_ends_with_call(programs->disassembly, code + size - used, used);
}

/* The cache slot of an address; NULL: it is not cached. */
static struct known_call *find_call(const struct program *program, uint64_t address)
{
	struct programs *programs = program->programs;
	uint64_t place = address ^ address / CALLS_KEPT ^ program->number << 8;

	if (address >> CALL_ADDRESS_BITS || program->number >> CALL_PROGRAM_BITS)
		return NULL;
	if (!programs->calls)
		programs->calls = calloc(CALLS_KEPT, sizeof(*programs->calls));
	return programs->calls ? &programs->calls[place % CALLS_KEPT] : NULL;
}

int program_follows_call(struct program *program, uint64_t address)
{
	struct known_call *known = find_call(program, address);
	const uint8_t *code = NULL;
	size_t size;
	int answer;

	if (known && known->program == program->number && known->address == address)
		return (int)known->answer - 1;
	size = elf_file_code_before(&program->file, address, DISASSEMBLY_INSTRUCTION_MAX, &code);
	answer = size ? disassembly_ends_with_call(program->programs->disassembly, code, size) : -1;
	if (known)
		*known = (struct known_call){.address = address & ((1ULL << CALL_ADDRESS_BITS) - 1),
					     .program = program->number & ((1ULL << CALL_PROGRAM_BITS) - 1),
					     .answer = (uint64_t)(answer + 1) & 3};
	return answer;
}

size_t program_code(struct program *program, uint64_t address, uint64_t *start_ret, const uint8_t **code_ret)
{
	const uint8_t *before;
	uint64_t end;
	size_t size;

	open_symbols(program);
	if (program->symbols && symbols_function_range(program->symbols, address, start_ret, &end)) {
		size = elf_file_code_at(&program->file, *start_ret, SIZE_MAX, code_ret);
		if (size > address - *start_ret)
			return size;
	}
	*start_ret = address - elf_file_code_before(&program->file, address, CODE_BEFORE_BYTES, &before);
	return elf_file_code_at(&program->file, *start_ret, SIZE_MAX, code_ret);
}

size_t program_names(struct program *program, uint64_t for_lookup, struct program_frame frames_ret[PROGRAM_INLINE_MAX])
{
	open_symbols(program);
	if (program->symbols)
		return symbols_find(program->symbols, for_lookup, frames_ret);
	frames_ret[0] = (struct program_frame){0};
	return 1;
}

const char *program_library_version(void)
{
	return symbols_library_version();
}
