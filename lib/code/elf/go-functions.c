// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The first word shows the format. Every offset is relative to a part of the table; the parts follow each
 * other, but only their starts are known, so each read is bounded by the end of the section.
 *
 *   header: magic, 0, 0, instruction size, pointer size, number of functions, number of files, [start of the code],
 *           offsets of names, units, files, values and functions
 *   functions: {start, offset of its description from here} for each, then the end of the last one
 *   values: (change of the value, change of the address) pairs of variable-length integers, by function and kind
 */
#include "code/elf/go-functions.h"

#include <gelf.h>

#include "base/limits.h"

#define MAGIC_1_16 0xfffffffau
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u

/* Index of the inlining among the values and data of a function. */
#define INLINED_VALUES 2
#define INLINED_DATA 3

/* Fields of runtime.moduledata, which begins with the addresses of the table and of its names. */
#define MODULE_DATA_NAMES 8
#define MODULE_DATA_TEXT 176
#define MODULE_DATA_FUNCTION_DATA_1_18 304
#define MODULE_DATA_FUNCTION_DATA_1_20 320
#define MODULE_DATA_CANDIDATES 8

#define SWITCHES_STACK 2 /* flag of a function; Go 1.17 and later */

enum {
	WORD = 8,
	DEPTH_MAX = 1 << 30,
	PROLOGUE_MAX = 64, /* with the check of the stack's size */
	/* DWARF numbers. */
	RBP = 6,
	RSP = 7,
	RETURN_ADDRESS = 16,
	FRAME_POINTER = 29,
	LINK_REGISTER = 30,
	STACK_POINTER = 31,
};

struct go_functions {
	Elf *elf;
	const uint8_t *bytes;
	size_t size;
	uint64_t address; /* of the table */
	uint32_t magic;
	uint16_t machine;
	uint8_t instruction_size;
	size_t count;
	uint64_t text;		/* where the code begins; functions are relative to it since Go 1.18 */
	uint64_t function_data; /* start of the data of functions; 0: unknown, or absolute addresses */
	uint64_t names, units, files, values, functions; /* offsets of the parts */
};

/* From an offset in the table to its end. */
static struct bytes bytes_at(const struct go_functions *functions, uint64_t part, uint64_t offset)
{
	struct bytes bytes = bytes_over(functions->bytes, functions->size);

	if (part > functions->size || offset > functions->size - part)
		bytes_fail(&bytes, "offset beyond the end");
	bytes_skip(&bytes, (size_t)(part + offset));
	return bytes;
}

static const char *text_at(const struct go_functions *functions, uint64_t part, uint64_t offset)
{
	struct bytes rest = bytes_at(functions, part, offset);
	struct bytes bytes = bytes_sub(&rest, smaller_of(bytes_left(&rest), LIMIT_GO_NAME_BYTES));
	const char *text = bytes_string(&bytes);

	return *text ? text : NULL;
}

/* ---- where things are ---- */

static struct bytes section_bytes(Elf_Scn *section)
{
	Elf_Data *data = elf_rawdata(section, NULL);

	return data ? bytes_over(data->d_buf, data->d_buf ? data->d_size : 0) : bytes_over(NULL, 0);
}

/* The bytes from an address on, to the end of its section. */
static struct bytes bytes_at_address(Elf *elf, uint64_t address)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		struct bytes bytes;

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC) || header.sh_type == SHT_NOBITS ||
		    address - header.sh_addr >= header.sh_size)
			continue;
		bytes = section_bytes(section);
		bytes_skip(&bytes, (size_t)(address - header.sh_addr));
		return bytes;
	}
	return bytes_over(NULL, 0);
}

/* Relocations of a position-independent program. */
struct relocations {
	Elf *elf;
	Elf_Scn *section;
	struct bytes bytes;
};

/* All zero except `elf`: begin. False: no more. */
static bool next_relocation(struct relocations *relocations, uint64_t *place_ret, uint64_t *addend_ret)
{
	GElf_Shdr header;

	while (bytes_left(&relocations->bytes) < sizeof(Elf64_Rela)) {
		relocations->section = elf_nextscn(relocations->elf, relocations->section);
		if (!relocations->section)
			return false;
		if (gelf_getshdr(relocations->section, &header) && header.sh_type == SHT_RELA &&
		    header.sh_flags & SHF_ALLOC)
			relocations->bytes = section_bytes(relocations->section);
	}
	*place_ret = bytes_u64(&relocations->bytes);
	bytes_skip(&relocations->bytes, sizeof(uint64_t));
	*addend_ret = bytes_u64(&relocations->bytes);
	return true;
}

/* The pointer stored at an address: in the file, or in its relocation. */
static uint64_t stored_pointer(const struct go_functions *functions, uint64_t address)
{
	struct bytes bytes = bytes_at_address(functions->elf, address);
	struct relocations relocations = {.elf = functions->elf};
	uint64_t value = bytes_u64(&bytes), place, addend;

	while (!value && next_relocation(&relocations, &place, &addend)) {
		if (place == address)
			return addend;
	}
	return value;
}

/* If it is runtime.moduledata, use it. */
static bool use_module_data(struct go_functions *functions, uint64_t address)
{
	if (stored_pointer(functions, address + MODULE_DATA_NAMES) != functions->address + functions->names)
		return false;
	functions->text = stored_pointer(functions, address + MODULE_DATA_TEXT);
	if (functions->magic == MAGIC_1_18)
		functions->function_data = stored_pointer(functions, address + MODULE_DATA_FUNCTION_DATA_1_18);
	if (functions->magic == MAGIC_1_20)
		functions->function_data = stored_pointer(functions, address + MODULE_DATA_FUNCTION_DATA_1_20);
	return true;
}

/* Find runtime.moduledata, which has no symbol in a stripped program: it begins with the address of the table. */
static void find_module_data(struct go_functions *functions)
{
	struct relocations relocations = {.elf = functions->elf};
	unsigned candidates = 0;
	Elf_Scn *section = NULL;
	uint64_t place, value;
	GElf_Shdr header;

	while ((section = elf_nextscn(functions->elf, section))) {
		struct bytes bytes;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS ||
		    (header.sh_flags & (SHF_ALLOC | SHF_WRITE)) != (SHF_ALLOC | SHF_WRITE))
			continue;
		bytes = section_bytes(section);
		while (bytes_left(&bytes) >= sizeof(uint64_t)) {
			place = header.sh_addr + (uint64_t)(bytes.position - bytes.start);
			if (bytes_u64(&bytes) == functions->address && candidates++ < MODULE_DATA_CANDIDATES &&
			    use_module_data(functions, place))
				return;
		}
	}
	while (next_relocation(&relocations, &place, &value)) {
		if (value == functions->address && candidates++ < MODULE_DATA_CANDIDATES &&
		    use_module_data(functions, place))
			return;
	}
}

/* Read the header. False: not one of the known formats. */
static bool read_header(struct go_functions *functions)
{
	struct bytes bytes = bytes_over(functions->bytes, functions->size);
	uint64_t count;

	functions->magic = bytes_u32(&bytes);
	if (functions->magic != MAGIC_1_16 && functions->magic != MAGIC_1_18 && functions->magic != MAGIC_1_20)
		return false;
	if (bytes_u16(&bytes))
		return false;
	functions->instruction_size = bytes_u8(&bytes);
	if (bytes_u8(&bytes) != sizeof(uint64_t) || !functions->instruction_size)
		return false;
	count = bytes_u64(&bytes);
	bytes_skip(&bytes, sizeof(uint64_t));
	functions->text = functions->magic == MAGIC_1_16 ? 0 : bytes_u64(&bytes);
	functions->names = bytes_u64(&bytes);
	functions->units = bytes_u64(&bytes);
	functions->files = bytes_u64(&bytes);
	functions->values = bytes_u64(&bytes);
	functions->functions = bytes_u64(&bytes);
	if (!bytes_ok(&bytes))
		return false;
	bytes = bytes_at(functions, functions->functions, 0);
	functions->count =
	    (size_t)bytes_at_most(&bytes, bytes_count(&bytes, count, 2 * sizeof(uint32_t)), LIMIT_GO_FUNCTIONS);
	return functions->count > 0;
}

/* Find the table: a section of its own, or in position-independent programs that another linker has written, somewhere
 * in a section with other data. */
static bool find_table(struct go_functions *functions)
{
	struct bytes bytes = bytes_over(NULL, 0);
	bool has_section = false, is_go = false;
	Elf_Scn *section = NULL;
	uint64_t address = 0;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(functions->elf, &names))
		return false;
	while (!has_section && (section = elf_nextscn(functions->elf, section))) {
		const char *name;

		if (!gelf_getshdr(section, &header) || !(name = elf_strptr(functions->elf, names, header.sh_name)) ||
		    header.sh_type != SHT_PROGBITS)
			continue;
		has_section = strstr(name, ".gopclntab");
		is_go |= has_section || !strcmp(name, ".go.buildinfo");
		if (has_section || !strcmp(name, ".data.rel.ro")) {
			bytes = section_bytes(section);
			address = header.sh_addr;
		}
	}
	if (!is_go)
		return false;
	do {
		functions->bytes = bytes.position;
		functions->size = bytes_left(&bytes);
		functions->address = address + (uint64_t)(bytes.position - bytes.start);
		if (read_header(functions))
			return true;
		bytes_skip(&bytes, 2 * sizeof(uint64_t));
	} while (!has_section && bytes_left(&bytes));
	return false;
}

struct go_functions *go_functions_create(Elf *elf)
{
	struct go_functions found = {.elf = elf}, *functions;
	GElf_Ehdr header;

	if (!gelf_getehdr(elf, &header) || !find_table(&found))
		return NULL;
	found.machine = header.e_machine;
	find_module_data(&found);
	functions = malloc(sizeof(found));
	if (functions)
		*functions = found;
	return functions;
}

/* ---- functions ---- */

size_t go_functions_count(const struct go_functions *functions)
{
	return functions->count;
}

static size_t word_size(const struct go_functions *functions)
{
	return functions->magic == MAGIC_1_16 ? sizeof(uint64_t) : sizeof(uint32_t);
}

static uint64_t read_word(const struct go_functions *functions, struct bytes *bytes)
{
	return word_size(functions) == sizeof(uint64_t) ? bytes_u64(bytes) : bytes_u32(bytes);
}

/* The start of a function; of the number after the last one, the end of the last. */
static uint64_t start_of(const struct go_functions *functions, size_t number)
{
	struct bytes bytes = bytes_at(functions, functions->functions, 2 * word_size(functions) * number);
	uint64_t start = read_word(functions, &bytes);

	return start + (functions->magic == MAGIC_1_16 ? 0 : functions->text);
}

/* The rest of a function's description: values and data for the garbage collector and for inlining. */
static void read_inlining(const struct go_functions *functions, struct bytes bytes, uint32_t value_count,
			  uint8_t data_count, struct go_function *function)
{
	bool absolute = functions->magic == MAGIC_1_16;
	uint64_t offset;

	if (value_count <= INLINED_VALUES || value_count > LIMIT_GO_FUNCTION_DATA || data_count <= INLINED_DATA)
		return;
	bytes_skip(&bytes, INLINED_VALUES * sizeof(uint32_t));
	function->inlined = bytes_u32(&bytes);
	bytes_skip(&bytes, (value_count - INLINED_VALUES - 1) * sizeof(uint32_t));
	if (absolute && (size_t)(bytes.position - functions->bytes) % sizeof(uint64_t))
		bytes_skip(&bytes, sizeof(uint32_t));
	bytes_skip(&bytes, INLINED_DATA * word_size(functions));
	offset = read_word(functions, &bytes);
	if (!bytes_ok(&bytes) || (!absolute && (offset == UINT32_MAX || !functions->function_data)))
		return;
	function->inline_tree = absolute ? offset : functions->function_data + offset;
}

bool go_functions_get(const struct go_functions *functions, size_t number, struct go_function *function_ret)
{
	struct bytes bytes = bytes_at(functions, functions->functions, 2 * word_size(functions) * number);
	uint32_t name, value_count;
	uint64_t description;
	uint8_t data_count;

	(void)read_word(functions, &bytes);
	description = read_word(functions, &bytes);
	*function_ret =
	    (struct go_function){.start = start_of(functions, number), .end = start_of(functions, number + 1)};
	if (!bytes_ok(&bytes) || function_ret->end <= function_ret->start)
		return false;
	bytes = bytes_at(functions, functions->functions, description);
	(void)read_word(functions, &bytes); /* its start again */
	name = bytes_u32(&bytes);
	bytes_skip(&bytes, 2 * sizeof(uint32_t)); /* arguments, deferred return */
	function_ret->depths = bytes_u32(&bytes);
	function_ret->files = bytes_u32(&bytes);
	function_ret->lines = bytes_u32(&bytes);
	value_count = bytes_u32(&bytes);
	function_ret->units = bytes_u32(&bytes);
	if (functions->magic == MAGIC_1_20)
		bytes_skip(&bytes, sizeof(uint32_t)); /* its first line */
	bytes_skip(&bytes, 1);			      /* which function of the runtime */
	function_ret->switches_stack = bytes_u8(&bytes) & SWITCHES_STACK;
	bytes_skip(&bytes, 1);
	data_count = bytes_u8(&bytes);
	read_inlining(functions, bytes, value_count, data_count, function_ret);
	function_ret->name = text_at(functions, functions->names, name);
	return bytes_ok(&bytes);
}

/* The function at an address (ELF virtual). False: none. */
static bool find_function(const struct go_functions *functions, uint64_t address, struct go_function *function_ret)
{
	size_t next = partition_point(functions->count, i, start_of(functions, i) <= address);

	return next && go_functions_get(functions, next - 1, function_ret) && address >= function_ret->start &&
	       address < function_ret->end;
}

/* ---- what holds at an address ---- */

/* The value of the table at this offset of the values; -1: none. */
static int32_t value_at(const struct go_functions *functions, const struct go_function *function, uint32_t offset,
			uint64_t address)
{
	struct bytes bytes = bytes_at(functions, functions->values, offset);
	uint64_t until = function->start;
	uint32_t value = UINT32_MAX;

	for (unsigned i = 0; offset && i < LIMIT_GO_VALUES; i++) {
		uint64_t change = bytes_uleb128(&bytes);

		if (!change && i)
			break;
		value += (uint32_t)(change >> 1) ^ -(uint32_t)(change & 1);
		until += bytes_uleb128(&bytes) * functions->instruction_size;
		if (!bytes_ok(&bytes))
			break;
		if (address < until)
			return (int32_t)value;
	}
	return -1;
}

/* Whether the function at `start` has saved the frame pointer and set its own before `address`: mov %rsp, %rbp, or
 * lea OFFSET(%rsp), %rbp below the stack pointer that it has moved. */
static bool sets_frame_pointer(const struct go_functions *functions, uint64_t start, uint64_t address)
{
	static const uint8_t move[] = {0x48, 0x89, 0xe5}, here[] = {0x48, 0x8d, 0x2c, 0x24},
			     near[] = {0x48, 0x8d, 0x6c, 0x24}, far[] = {0x48, 0x8d, 0xac, 0x24};
	size_t size = address - start < PROLOGUE_MAX ? (size_t)(address - start) : PROLOGUE_MAX;
	struct bytes bytes = bytes_at_address(functions->elf, start);
	const uint8_t *code;

	size = size < bytes_left(&bytes) ? size : bytes_left(&bytes);
	code = bytes_take(&bytes, size);
	return code && (memmem(code, size, move, sizeof(move)) || memmem(code, size, here, sizeof(here)) ||
			memmem(code, size, near, sizeof(near)) || memmem(code, size, far, sizeof(far)));
}

static void set_rule(struct deduced_row *row, uint8_t number, int32_t offset)
{
	row->rules[row->row.rule_count++] =
	    (struct cfi_rule){.number = number, .kind = CFI_RULE_OFFSET, .offset = offset};
}

bool go_functions_row(const struct go_functions *functions, uint64_t address, struct deduced_row *deduced_ret,
		      bool *frame_pointer_ret)
{
	struct cfi_row *row = &deduced_ret->row;
	struct go_function function;
	int32_t depth;

	*deduced_ret = (struct deduced_row){0};
	*frame_pointer_ret = false;
	if (!find_function(functions, address, &function))
		return false;
	depth = value_at(functions, &function, function.depths, address);
	if (depth < 0 || depth > DEPTH_MAX || depth % WORD)
		return false;
	if (functions->machine == EM_X86_64) {
		bool kept = depth && sets_frame_pointer(functions, function.start, address);
		bool by_frame_pointer = function.switches_stack && kept;

		/* The return address is above the frame; the frame pointer is saved next to it. */
		row->cfa_register = by_frame_pointer ? RBP : RSP;
		row->cfa_offset = by_frame_pointer ? 2 * WORD : depth + WORD;
		row->other_stack = function.switches_stack && !kept;
		row->return_column = RETURN_ADDRESS;
		if (kept)
			set_rule(deduced_ret, RBP, -2 * WORD);
		set_rule(deduced_ret, RETURN_ADDRESS, -WORD);
		*frame_pointer_ret = kept;
	} else if (functions->machine == EM_AARCH64) {
		/* The return address is at the stack pointer, and the frame pointer is saved below it. */
		row->cfa_register = STACK_POINTER;
		row->cfa_offset = depth;
		row->other_stack = function.switches_stack;
		row->return_column = LINK_REGISTER;
		if (depth) {
			set_rule(deduced_ret, FRAME_POINTER, -depth - WORD);
			set_rule(deduced_ret, LINK_REGISTER, -depth);
		}
		*frame_pointer_ret = depth > 0;
	} else {
		return false;
	}
	return true;
}

/* The inlined function at the address, and the address in the caller that it was inlined at. False: none. */
static bool find_inlined(const struct go_functions *functions, const struct go_function *function, uint64_t *address,
			 const char **name_ret)
{
	size_t size = functions->magic == MAGIC_1_20 ? 16 : 20;
	int32_t index = function->inline_tree ? value_at(functions, function, function->inlined, *address) : -1;
	struct bytes bytes;
	uint32_t name, caller;

	if (index < 0)
		return false;
	bytes = bytes_at_address(functions->elf, function->inline_tree);
	bytes_skip(&bytes, (size_t)index * size);
	bytes_skip(&bytes, functions->magic == MAGIC_1_20 ? 4 : 12);
	name = bytes_u32(&bytes);
	caller = bytes_u32(&bytes);
	*name_ret = text_at(functions, functions->names, name);
	*address = function->start + caller;
	return bytes_ok(&bytes) && *name_ret && *address < function->end;
}

size_t go_functions_frames(const struct go_functions *functions, uint64_t address, struct go_frame *frames_ret,
			   size_t limit)
{
	struct go_function function;
	size_t count = 0;

	if (!find_function(functions, address, &function))
		return 0;
	for (bool inlined = true; inlined && count < limit; count++) {
		struct go_frame *frame = &frames_ret[count];
		uint64_t caller = address;
		int32_t file = value_at(functions, &function, function.files, address);
		int32_t line = value_at(functions, &function, function.lines, address);
		struct bytes bytes =
		    bytes_at(functions, functions->units, ((uint64_t)function.units + (uint32_t)file) * 4);
		uint32_t name = bytes_u32(&bytes);

		*frame = (struct go_frame){.name = function.name};
		if (file >= 0 && line >= 0 && bytes_ok(&bytes) && name != UINT32_MAX) {
			frame->source_file = text_at(functions, functions->files, name);
			frame->source_line = frame->source_file ? (uint32_t)line : 0;
		}
		frame->inlined = inlined =
		    count + 1 < limit && find_inlined(functions, &function, &caller, &frame->name);
		address = caller;
	}
	return count;
}
