// SPDX-License-Identifier: LGPL-2.1-or-later
/* Generated line tables: far more of them than a compiler produces in the same number of bytes. */
#include <check.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "code/names/dwarf-names.h"
#include "support/suite.h"

#define UNITS 50
#define ROWS 4000
#define UNIT_BYTES 16 /* of code */
#define USER_OPCODE 0x80
#define LINE_BASE (-1)
#define LINE_RANGE 4
#define OPCODE_BASE 13
#define TABLE_HEADER_BYTES 29
/* Next byte of code, this many lines further down. */
#define ROW_OPCODE(lines) ((uint8_t)((lines)-LINE_BASE + LINE_RANGE + OPCODE_BASE))

enum { SECTION_NONE, SECTION_INFO, SECTION_ABBREVIATIONS, SECTION_LINES, SECTION_NAMES, SECTIONS };

static struct buffer info, lines, file;

static void put(struct buffer *buffer, uint64_t value, size_t size)
{
	buffer_put(buffer, &value, size);
}

static void put_table_header(uint32_t table_bytes)
{
	static const uint8_t operands[OPCODE_BASE - 1] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};

	put(&lines, table_bytes - 4, 4);
	put(&lines, 3, 2);
	put(&lines, TABLE_HEADER_BYTES - 10, 4);
	put(&lines, 1, 1); /* byte an instruction */
	put(&lines, 1, 1); /* is a statement */
	put(&lines, (uint8_t)LINE_BASE, 1);
	put(&lines, LINE_RANGE, 1);
	put(&lines, OPCODE_BASE, 1);
	buffer_put(&lines, operands, sizeof(operands));
	put(&lines, 0, 2); /* no directories, no files */
}

static void put_rows(void)
{
	for (size_t i = 0; i < ROWS; i++)
		put(&lines, i % 2 ? ROW_OPCODE(-1) : ROW_OPCODE(1), 1);
	put(&lines, 0x010100, 3); /* the sequence ends */
}

/* Each has rows of its own. */
static void put_separate_tables(uint32_t *offsets)
{
	for (size_t i = 0; i < UNITS; i++) {
		offsets[i] = (uint32_t)lines.size;
		put_table_header(TABLE_HEADER_BYTES + ROWS + 3);
		put_rows();
	}
}

/* For each table the headers of the following ones are an operation to skip, and the rows of the last one are its
 * own, too. */
static void put_nested_tables(uint32_t *offsets)
{
	const uint32_t step = TABLE_HEADER_BYTES + 3;

	for (uint32_t i = 0; i < UNITS; i++) {
		offsets[i] = (uint32_t)lines.size;
		put_table_header((UNITS - i) * step - 3 + ROWS + 3);
		if (i + 1 == UNITS)
			break;
		put(&lines, 0, 1);
		put(&lines, 1 + TABLE_HEADER_BYTES, 1);
		put(&lines, USER_OPCODE, 1);
	}
	put_rows();
}

static void put_units(const uint32_t *offsets)
{
	for (size_t i = 0; i < UNITS; i++) {
		put(&info, 7 + 1 + 8 + 8 + 4, 4);
		put(&info, 4, 2);
		put(&info, 0, 4); /* abbreviations */
		put(&info, 8, 1); /* bytes of an address */
		put(&info, 1, 1);
		put(&info, i * UNIT_BYTES, 8);
		put(&info, UNIT_BYTES, 8);
		put(&info, offsets[i], 4);
	}
}

static void put_section(Elf64_Shdr *section, uint32_t name, uint32_t type, const void *bytes, size_t size)
{
	*section =
	    (Elf64_Shdr){.sh_name = name, .sh_type = type, .sh_offset = file.size, .sh_size = size, .sh_addralign = 1};
	buffer_put(&file, bytes, size);
}

static void put_file(void)
{
	static const uint8_t abbreviations[] = {1,
						DW_TAG_compile_unit,
						DW_CHILDREN_no,
						DW_AT_low_pc,
						DW_FORM_addr,
						DW_AT_high_pc,
						DW_FORM_data8,
						DW_AT_stmt_list,
						DW_FORM_sec_offset,
						0,
						0,
						0};
	static const char names[] = "\0.debug_info\0.debug_abbrev\0.debug_line\0.shstrtab";
	Elf64_Shdr sections[SECTIONS] = {{0}};
	Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_EXEC,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_ehsize = sizeof(header),
			     .e_shentsize = sizeof(*sections),
			     .e_shnum = SECTIONS,
			     .e_shstrndx = SECTION_NAMES};

	buffer_put(&file, &header, sizeof(header));
	put_section(&sections[SECTION_INFO], 1, SHT_PROGBITS, info.data, info.size);
	put_section(&sections[SECTION_ABBREVIATIONS], 13, SHT_PROGBITS, abbreviations, sizeof(abbreviations));
	put_section(&sections[SECTION_LINES], 27, SHT_PROGBITS, lines.data, lines.size);
	put_section(&sections[SECTION_NAMES], 39, SHT_STRTAB, names, sizeof(names));
	buffer_put(&file, sections, file.size % 8 ? 8 - file.size % 8 : 0);
	header.e_shoff = file.size;
	buffer_put(&file, sections, sizeof(sections));
	ck_assert(!file.error && !info.error && !lines.error);
	memcpy(file.data, &header, sizeof(header));
}

/* Number of units whose lines are known. */
static size_t count_units_with_lines(void (*put_tables)(uint32_t *offsets), enum dwarf_names_state *state_ret)
{
	uint32_t offsets[UNITS];
	struct dwarf_names *names;
	size_t count = 0;
	Dwarf *dwarf;
	Elf *elf;

	buffer_init(&info, SIZE_MAX);
	buffer_init(&lines, SIZE_MAX);
	buffer_init(&file, SIZE_MAX);
	put_tables(offsets);
	put_units(offsets);
	put_file();
	(void)elf_version(EV_CURRENT);
	elf = elf_memory((char *)file.data, file.size);
	dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	ck_assert_ptr_nonnull(dwarf);
	ck_assert_ptr_null(dwarf_names_create(dwarf, "/made", &names));
	for (uint64_t i = 0; i < UNITS; i++) {
		struct debug_frame frames[DWARF_NAMES_INLINE_MAX];

		if (!dwarf_names_find(names, i * UNIT_BYTES + 1, frames, DWARF_NAMES_INLINE_MAX) ||
		    !frames[0].source_line)
			continue;
		ck_assert_uint_eq(frames[0].source_line, 2);
		count++;
	}
	*state_ret = dwarf_names_state(names);
	dwarf_names_destroy(names);
	dwarf_end(dwarf);
	elf_end(elf);
	buffer_deinit(&info);
	buffer_deinit(&lines);
	buffer_deinit(&file);
	return count;
}

START_TEST(rows_in_proportion_to_bytes_are_read)
{
	enum dwarf_names_state state;

	ck_assert_uint_eq(count_units_with_lines(put_separate_tables, &state), UNITS);
	ck_assert_int_eq(state, DWARF_NAMES_SOUND);
}
END_TEST

/* Rows shared by many tables let a file claim far more rows than it has bytes. */
START_TEST(excess_rows_are_refused)
{
	enum dwarf_names_state state;

	ck_assert_uint_eq(count_units_with_lines(put_nested_tables, &state), 1);
	ck_assert_int_eq(state, DWARF_NAMES_LIMITED);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("line-tables");
	TCase *tests = add_tcase(suite, "line-tables");

	tcase_add_tests(tests, rows_in_proportion_to_bytes_are_read, excess_rows_are_refused);
	return suite;
}
