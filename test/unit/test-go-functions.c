// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tables of Go functions of every format, in stripped programs that are made here. */
#include "code/elf/go-functions.h"

#include <check.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "support/suite.h"

enum {
	TEXT = 0x401000,
	TABLE = 0x500000,
	DATA = 0x600000,
	FUNCTION_DATA = 0x700000,
	/* Functions, from TEXT on. */
	LEAF = 0,
	CALLER = 0x20,
	SWITCH = 0x60,
	C_CALL = 0x80,
	END = 0xc0,
	INLINED = 0x40,	    /* in CALLER, from here ... */
	INLINED_END = 0x50, /* ... to here */
	INLINED_AT = 0x38,
	MODULE_DATA = 16, /* in the data */
	IMAGE_MAX = 8192,
};

enum format { FORMAT_1_16, FORMAT_1_18, FORMAT_1_20, FORMATS };

/* How a program is linked. */
enum link {
	LINK_FIXED,
	LINK_RELOCATED,	 /* pointers are in relocations */
	LINK_NO_HEADER,	 /* the header of the table has no start of the code, as since Go 1.26 */
	LINK_MIXED_DATA, /* relocated, and the table has no section of its own */
	LINKS,
};

struct part {
	uint8_t bytes[1024];
	size_t size;
};

static void put(struct part *part, uint64_t value, size_t size)
{
	ck_assert_uint_le(part->size + size, sizeof(part->bytes));
	memcpy(part->bytes + part->size, &value, size);
	part->size += size;
}

static uint32_t put_text(struct part *part, const char *text)
{
	uint32_t offset = (uint32_t)part->size;

	for (; *text; text++)
		put(part, (uint8_t)*text, 1);
	put(part, 0, 1);
	return offset;
}

/* Pairs of value and number of bytes of code, to a length of 0. Returns the offset. */
static uint32_t put_values(struct part *part, const int (*values)[2])
{
	uint32_t offset = (uint32_t)part->size;
	int last = -1;

	for (; (*values)[1]; values++) {
		int change = (*values)[0] - last;

		last = (*values)[0];
		put(part, (uint64_t)(change < 0 ? -2 * change - 1 : 2 * change), 1);
		put(part, (uint64_t)(*values)[1], 1);
	}
	put(part, 0, 1);
	return offset;
}

struct program {
	enum format format;
	struct part text, names, units, files, values, functions, table, data, relocations, trees;
};

struct description {
	uint32_t start, name, depths, files, lines, inlined;
	uint8_t flags;
};

static size_t word(const struct program *program)
{
	return program->format == FORMAT_1_16 ? 8 : 4;
}

/* Descriptions follow the index of the functions. */
static void put_functions(struct program *program, const struct description *described, size_t count)
{
	struct part *part = &program->functions;
	uint64_t base = program->format == FORMAT_1_16 ? TEXT : 0;
	size_t index = word(program) * (2 * count + 1), size = 40 + 12 + 4 * 8 + 8;

	index = (index + 7) & ~7ull;
	for (size_t i = 0; i < count; i++) {
		put(part, base + described[i].start, word(program));
		put(part, index + i * size, word(program));
	}
	put(part, base + END, word(program));
	for (size_t i = 0; i < count; i++) {
		while (part->size < index + i * size)
			put(part, 0, 1);
		put(part, base + described[i].start, word(program));
		put(part, described[i].name, 4);
		put(part, 0, 8);
		put(part, described[i].depths, 4);
		put(part, described[i].files, 4);
		put(part, described[i].lines, 4);
		put(part, 3, 4);
		put(part, 0, 4);
		if (program->format == FORMAT_1_20)
			put(part, 1, 4);
		put(part, 0, 1);
		put(part, described[i].flags, 1);
		put(part, 0, 1);
		put(part, 4, 1);
		put(part, 0, 8);
		put(part, described[i].inlined, 4);
		if (program->format == FORMAT_1_16 && part->size % 8)
			put(part, 0, 4);
		for (unsigned j = 0; j < 3; j++)
			put(part, UINT64_MAX, word(program));
		put(part, program->format == FORMAT_1_16 ? FUNCTION_DATA : 0, word(program));
	}
	while (part->size < index + count * size)
		put(part, 0, 1);
}

static void put_tree(struct program *program, uint32_t name)
{
	if (program->format == FORMAT_1_20) {
		put(&program->trees, 0, 4);
		put(&program->trees, name, 4);
		put(&program->trees, INLINED_AT - CALLER, 4);
		put(&program->trees, 1, 4);
	} else {
		put(&program->trees, 0xffff, 4);
		put(&program->trees, 0, 8);
		put(&program->trees, name, 4);
		put(&program->trees, INLINED_AT - CALLER, 4);
	}
}

static void make_parts(struct program *program)
{
	static const uint8_t push_move[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10};
	uint32_t leaf, caller, inlined, stack_switch, c_call, lines, files, none;
	struct description described[4];

	put_text(&program->names, "");
	put_text(&program->values, "");
	leaf = put_text(&program->names, "main.leaf");
	caller = put_text(&program->names, "main.(*circle).draw");
	inlined = put_text(&program->names, "main.small");
	stack_switch = put_text(&program->names, "runtime.systemstack");
	c_call = put_text(&program->names, "runtime.callCgoMmap");
	put(&program->units, put_text(&program->files, "/src/main.go"), 4);
	put(&program->units, put_text(&program->files, "/src/small.go"), 4);
	none = put_values(&program->values, (const int[][2]){{0, 0x40}, {0, 0}});
	lines = put_values(&program->values, (const int[][2]){{7, 0x20}, {3, 0x10}, {9, 0x10}, {0, 0}});
	files = put_values(&program->values, (const int[][2]){{0, 0x20}, {1, 0x10}, {0, 0x10}, {0, 0}});
	described[0] = (struct description){LEAF, leaf, none, none, lines, 0, 0};
	described[1] = (struct description){
	    CALLER, caller, put_values(&program->values, (const int[][2]){{0, 1}, {8, 7}, {24, 0x38}, {0, 0}}),
	    files,  lines,  put_values(&program->values, (const int[][2]){{-1, 0x20}, {0, 0x10}, {-1, 0x10}, {0, 0}}),
	    0};
	described[2] = (struct description){SWITCH, stack_switch, none, files, lines, 0, 2};
	described[3] = (struct description){
	    C_CALL, c_call, put_values(&program->values, (const int[][2]){{0, 1}, {8, 0x3f}, {0, 0}}), files, lines,
	    0,	    2};
	put_tree(program, inlined);
	put_functions(program, described, 4);
	while (program->text.size < END)
		put(&program->text, 0x90, 1);
	memcpy(program->text.bytes + CALLER, push_move, sizeof(push_move));
	memcpy(program->text.bytes + C_CALL, push_move, sizeof(push_move));
}

static void append(struct part *part, const struct part *from)
{
	while (part->size % 8)
		put(part, 0, 1);
	ck_assert_uint_le(part->size + from->size, sizeof(part->bytes));
	memcpy(part->bytes + part->size, from->bytes, from->size);
	part->size += from->size;
}

static uint64_t aligned(uint64_t offset)
{
	return (offset + 7) & ~7ull;
}

static void put_pointer(struct program *program, enum link link, uint64_t field, uint64_t value)
{
	bool relocated = link == LINK_RELOCATED || link == LINK_MIXED_DATA;

	while (program->data.size < field)
		put(&program->data, 0, 1);
	put(&program->data, relocated ? 0 : value, 8);
	if (!relocated)
		return;
	put(&program->relocations, DATA + field, 8);
	put(&program->relocations, R_X86_64_RELATIVE, 8);
	put(&program->relocations, value, 8);
}

static void make_table(struct program *program, enum link link)
{
	static const uint32_t magics[FORMATS] = {0xfffffffa, 0xfffffff0, 0xfffffff1};
	struct part *table = &program->table;
	uint64_t offset = program->format == FORMAT_1_16 ? 64 : 72, names = offset;

	put(table, magics[program->format], 4);
	put(table, 0, 2);
	put(table, 1, 1);
	put(table, 8, 1);
	put(table, 4, 8);
	put(table, 2, 8);
	if (program->format != FORMAT_1_16)
		put(table, link == LINK_FIXED ? TEXT : 0, 8);
	put(table, offset, 8);
	put(table, offset = aligned(offset + program->names.size), 8);
	put(table, offset = aligned(offset + program->units.size), 8);
	put(table, offset = aligned(offset + program->files.size), 8);
	put(table, offset = aligned(offset + program->values.size), 8);
	append(table, &program->names);
	append(table, &program->units);
	append(table, &program->files);
	append(table, &program->values);
	append(table, &program->functions);
	put_pointer(program, link, MODULE_DATA, TABLE);
	put_pointer(program, link, MODULE_DATA + 8, TABLE + names);
	put_pointer(program, link, MODULE_DATA + 176, TEXT);
	put_pointer(program, link, MODULE_DATA + (program->format == FORMAT_1_18 ? 304 : 320), FUNCTION_DATA);
}

struct section {
	const char *name;
	const struct part *part;
	uint64_t address;
	uint32_t type;
	uint64_t flags;
};

/* Lays out the sections after the headers. Returns the size. */
static size_t make_image(const struct section *sections, size_t count, uint8_t *image)
{
	Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_EXEC,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_entry = TEXT,
			     .e_phoff = sizeof(header),
			     .e_ehsize = sizeof(header),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = 1,
			     .e_shentsize = sizeof(Elf64_Shdr)};
	Elf64_Phdr load = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = TEXT, .p_align = 8};
	Elf64_Shdr headers[10] = {0};
	struct part names = {.size = 1};
	size_t size = sizeof(header) + sizeof(load);

	for (size_t i = 0; i <= count; i++) {
		const struct section strings = {".shstrtab", &names, 0, SHT_STRTAB, 0};
		const struct section *section = i < count ? &sections[i] : &strings;
		uint32_t name = put_text(&names, section->name);

		size = aligned(size);
		headers[i + 1] = (Elf64_Shdr){.sh_name = name,
					      .sh_type = section->type,
					      .sh_flags = section->flags,
					      .sh_addr = section->address,
					      .sh_offset = size,
					      .sh_size = section->part->size,
					      .sh_addralign = 8,
					      .sh_entsize = section->type == SHT_RELA ? sizeof(Elf64_Rela) : 0};
		memcpy(image + size, section->part->bytes, section->part->size);
		size += section->part->size;
	}
	load.p_offset = headers[1].sh_offset;
	load.p_filesz = load.p_memsz = headers[1].sh_size;
	header.e_shoff = size = aligned(size);
	header.e_shnum = (uint16_t)(count + 2);
	header.e_shstrndx = (uint16_t)(count + 1);
	memcpy(image, &header, sizeof(header));
	memcpy(image + sizeof(header), &load, sizeof(load));
	memcpy(image + size, headers, header.e_shnum * sizeof(*headers));
	return size + header.e_shnum * sizeof(*headers);
}

static size_t make_program(enum format format, enum link link, uint8_t *image)
{
	struct program program = {.format = format};
	struct part mixed = {0};
	struct section sections[] = {
	    {".text", &program.text, TEXT, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR},
	    {".gopclntab", &program.table, TABLE, SHT_PROGBITS, SHF_ALLOC},
	    {".rodata", &program.trees, FUNCTION_DATA, SHT_PROGBITS, SHF_ALLOC},
	    {".go.buildinfo", &program.trees, FUNCTION_DATA + 0x1000, SHT_PROGBITS, SHF_ALLOC},
	    {".noptrdata", &program.data, DATA, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE},
	    {".rela.dyn", &program.relocations, 0x800000, SHT_RELA, SHF_ALLOC},
	};

	make_parts(&program);
	make_table(&program, link);
	if (link == LINK_MIXED_DATA) {
		for (unsigned i = 0; i < 64; i++)
			put(&mixed, i, 1);
		sections[1] = (struct section){".data.rel.ro", &mixed, TABLE - mixed.size, SHT_PROGBITS, SHF_ALLOC};
		append(&mixed, &program.table);
	}
	return make_image(sections, sizeof(sections) / sizeof(*sections), image);
}

static struct go_functions *open_image(uint8_t *image, size_t size, Elf **elf_ret)
{
	elf_version(EV_CURRENT);
	*elf_ret = elf_memory((char *)image, size);
	ck_assert_ptr_nonnull(*elf_ret);
	return go_functions_create(*elf_ret);
}

/* Position-independent programs of Go 1.16 have a relocation for each function, which nobody reads. */
static bool exists(enum format format, enum link link)
{
	return format != FORMAT_1_16 || link == LINK_FIXED;
}

static void expect_row(const struct go_functions *functions, uint64_t address, unsigned cfa_register, int cfa_offset,
		       bool frame_pointer)
{
	struct deduced_row deduced;
	bool found;

	ck_assert(go_functions_row(functions, address, &deduced, &found));
	ck_assert_uint_eq(deduced_row_get(&deduced)->cfa_register, cfa_register);
	ck_assert_int_eq(deduced_row_get(&deduced)->cfa_offset, cfa_offset);
	ck_assert_int_eq(cfi_row_rule(deduced_row_get(&deduced), 16)->offset, -8);
	ck_assert_int_eq(found, frame_pointer);
	ck_assert_int_eq(cfi_row_rule(deduced_row_get(&deduced), 6) != NULL, frame_pointer);
}

static void expect_frame(const struct go_frame *frame, const char *name, const char *file, unsigned line, bool inlined)
{
	ck_assert_str_eq(frame->name, name);
	ck_assert_str_eq(frame->source_file, file);
	ck_assert_uint_eq(frame->source_line, line);
	ck_assert_int_eq(frame->inlined, inlined);
}

START_TEST(every_format_is_read)
{
	enum format format = (enum format)(_i / LINKS);
	enum link link = (enum link)(_i % LINKS);
	uint8_t image[IMAGE_MAX];
	struct go_frame frames[4];
	struct deduced_row deduced;
	struct go_functions *functions;
	bool frame_pointer;
	Elf *elf;

	if (!exists(format, link))
		return;
	functions = open_image(image, make_program(format, link, image), &elf);
	ck_assert_ptr_nonnull(functions);
	ck_assert_uint_eq(go_functions_count(functions), 4);
	ck_assert_uint_eq(go_functions_frames(functions, TEXT + LEAF, frames, 4), 1);
	expect_frame(&frames[0], "main.leaf", "/src/main.go", 7, false);
	ck_assert_uint_eq(go_functions_frames(functions, TEXT + INLINED, frames, 4), 2);
	expect_frame(&frames[0], "main.small", "/src/small.go", 3, true);
	expect_frame(&frames[1], "main.(*circle).draw", "/src/main.go", 7, false);
	ck_assert_uint_eq(go_functions_frames(functions, TEXT + INLINED_END, frames, 4), 1);
	expect_frame(&frames[0], "main.(*circle).draw", "/src/main.go", 9, false);
	ck_assert_uint_eq(go_functions_frames(functions, TEXT + END, frames, 4), 0);
	ck_assert_uint_eq(go_functions_frames(functions, TEXT - 1, frames, 4), 0);
	expect_row(functions, TEXT + LEAF + 5, 7, 8, false);
	expect_row(functions, TEXT + CALLER, 7, 8, false);
	expect_row(functions, TEXT + CALLER + 1, 7, 16, false);
	expect_row(functions, TEXT + CALLER + 4, 7, 16, true);
	expect_row(functions, TEXT + INLINED, 7, 32, true);
	ck_assert(go_functions_row(functions, TEXT + SWITCH, &deduced, &frame_pointer));
	ck_assert(deduced.row.other_stack && !frame_pointer);
	expect_row(functions, TEXT + C_CALL + 8, 6, 16, true);
	ck_assert(!go_functions_row(functions, TEXT + END, &deduced, &frame_pointer));
	free(functions);
	elf_end(elf);
}
END_TEST

static void look_up_everywhere(const struct go_functions *functions)
{
	for (uint64_t address = TEXT; functions && address < TEXT + END; address += 8) {
		struct go_frame frames[4];
		struct deduced_row deduced;
		struct go_function function;
		bool frame_pointer;

		for (size_t i = 0; i < 5; i++)
			(void)go_functions_get(functions, i, &function);
		ck_assert_uint_le(go_functions_frames(functions, address, frames, 4), 4);
		(void)go_functions_row(functions, address, &deduced, &frame_pointer);
	}
}

START_TEST(damaged_tables_are_bounded)
{
	enum format format = (enum format)(_i / LINKS);
	enum link link = (enum link)(_i % LINKS);
	uint8_t good[IMAGE_MAX], image[IMAGE_MAX];
	size_t size;

	if (!exists(format, link))
		return;
	size = make_program(format, link, good);
	for (size_t i = sizeof(Elf64_Ehdr); i < size; i++) {
		struct go_functions *functions;
		Elf *elf;

		memcpy(image, good, size);
		image[i] ^= 0xff;
		functions = open_image(image, size, &elf);
		look_up_everywhere(functions);
		free(functions);
		elf_end(elf);
	}
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("go functions");
	TCase *tests = add_tcase(suite, "go functions");

	tcase_add_loop_test(tests, every_format_is_read, 0, FORMATS * LINKS);
	tcase_add_loop_test(tests, damaged_tables_are_bounded, 0, FORMATS * LINKS);
	return suite;
}
