// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rows of real code compared with readelf's and libdw's; tables written by hand. */
#include <check.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "code/unwind/cfi.h"
#include "code/elf/module.h"
#include "support/host.h"
#include "support/cfi-oracle.h"
#include "support/suite.h"

static const char *const columns[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
				      "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra"};

#define COLUMNS (sizeof(columns) / sizeof(*columns))

static struct modules *modules;
static struct module *module;

/* Register numbers of the columns of one FDE's table. */
struct table {
	unsigned numbers[COLUMNS];
	size_t count;
};

static unsigned find_column(const char *name)
{
	for (unsigned i = 0; i < COLUMNS; i++) {
		if (!strcmp(columns[i], name))
			return i;
	}
	ck_abort_msg("no register is called %s", name);
}

static void read_header(char *line, struct table *table)
{
	char *position = NULL;

	table->count = 0;
	strtok_r(line, " \n", &position); /* LOC */
	strtok_r(NULL, " \n", &position); /* CFA */
	for (char *name; (name = strtok_r(NULL, " \n", &position));)
		table->numbers[table->count++] = find_column(name);
}

static void compare_rule(const struct cfi_rule *rule, const char *text, unsigned long address)
{
	if (!strcmp(text, "u") || !strcmp(text, "s"))
		ck_assert_msg(!rule || rule->kind == CFI_RULE_SAME || rule->kind == CFI_RULE_UNDEFINED, "%#lx: %s",
			      address, text);
	else if (!rule)
		ck_abort_msg("%#lx: %s", address, text);
	else if (!strncmp(text, "c", 1)) {
		ck_assert_msg(rule->kind == CFI_RULE_OFFSET, "%#lx: %s", address, text);
		ck_assert_int_eq(rule->offset, atoi(text + 1));
	} else {
		ck_assert_msg(rule->kind == CFI_RULE_UNKNOWN || rule->kind == CFI_RULE_AT_REGISTER ||
				  rule->kind == CFI_RULE_REGISTER,
			      "%#lx: %s", address, text);
	}
}

/* False: the line is not a row. */
static bool compare_row(char *line, const struct table *table)
{
	char *position = NULL, *end;
	char *word = strtok_r(line, " \n", &position);
	unsigned long address = word ? strtoul(word, &end, 16) : 0;
	const struct cfi_row *row;

	if (!word || *end || strlen(word) != 16)
		return false;
	row = module_cfi(module, address);
	ck_assert_msg(row != NULL, "no row at %#lx", address);
	word = strtok_r(NULL, " \n", &position);
	if (!strcmp(word, "exp")) {
		ck_assert_int_ne(row->cfa_kind, CFI_CFA_REGISTER);
	} else {
		char expected[32];

		snprintf(expected, sizeof(expected), "%s+%d", columns[row->cfa_register], row->cfa_offset);
		ck_assert_int_eq(row->cfa_kind, CFI_CFA_REGISTER);
		ck_assert_str_eq(word, expected);
	}
	for (size_t i = 0; i < table->count; i++) {
		do { /* "r8 (r8)" is one rule */
			word = strtok_r(NULL, " \n", &position);
		} while (word && *word == '(');
		ck_assert_ptr_nonnull(word);
		compare_rule(cfi_row_rule(row, table->numbers[i]), word, address);
	}
	return true;
}

/* Number of rows compared; rows of a CIE, and empty ones, are skipped. */
static size_t compare_file(const char *path)
{
	char command[640], line[1024], previous[1024] = "";
	struct table table = {0}, previous_table = {0};
	bool in_fde = false;
	size_t count = 0;
	FILE *stream;

	snprintf(command, sizeof(command), "readelf --debug-dump=frames-interp -wN %s 2>/dev/null", path);
	ck_assert_ptr_null(modules_create(HOST_MACHINE, true, &modules));
	ck_assert_ptr_null(modules_open(modules, path, NULL, 0, 0, &module));
	stream = popen(command, "r");
	ck_assert_ptr_nonnull(stream);
	while (fgets(line, sizeof(line), stream)) {
		/* Of two rows with one address the later one counts. */
		if (*previous && strncmp(previous, line, 16))
			count += compare_row(previous, &previous_table);
		*previous = '\0';
		if (strstr(line, " FDE ") || strstr(line, " CIE "))
			in_fde = strstr(line, " FDE ");
		else if (!strncmp(line, "   LOC", 6))
			read_header(line, &table);
		else if (in_fde && *line != '\n') {
			strcpy(previous, line);
			previous_table = table;
		}
	}
	pclose(stream);
	modules_destroy(modules);
	return count;
}

static void find_c_library(char path[512])
{
	char line[512];
	CLEANUP(fclose) FILE *maps = fopen("/proc/self/maps", "r");

	*path = '\0';
	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, "/libc.so"))
			ck_assert_int_eq(sscanf(strchr(line, '/'), "%511s", path), 1);
	}
	ck_assert_str_ne(path, "");
}

START_TEST(test_rows_of_libc_match_readelf)
{
	char path[512];

	find_c_library(path);
	ck_assert_uint_gt(compare_file(path), 10000);
}
END_TEST

START_TEST(test_every_row_matches_libdw)
{
	struct cfi_oracle_result result;
	char path[512];

	find_c_library(path);
	ck_assert_int_eq(cfi_oracle_compare(path, 0, &result), 0);
	ck_assert_msg(!result.differences, "%zu differences of %zu, %s", result.differences, result.addresses,
		      result.first);
	ck_assert_uint_gt(result.addresses, 20000);
}
END_TEST

/* ---- tables written by hand ---- */

#define SECTION 0x10000
#define CIE_SIZE 24 /* of cie[], length field included */

static const uint8_t cie[] = {
    20,	  0,   0,   0,			     /* length */
    0,	  0,   0,   0,			     /* a CIE */
    1,	  'z', 'R', 0,	  1, 0x78, 16, 1, 0, /* version, augmentation, alignments 1 and -8, column, absolute pointers */
    0x0c, 7,   8,   0x90, 1,		     /* def_cfa rsp+8, ra at CFA-8 */
    0,	  0};

struct section {
	uint8_t bytes[1024];
	size_t size;
	struct cfi *cfi;
};

static void begin_table(struct section *table)
{
	ck_assert_uint_eq(sizeof(cie), CIE_SIZE);
	memcpy(table->bytes, cie, CIE_SIZE);
	table->size = CIE_SIZE;
}

static void add_entry(struct section *table, uint64_t start, uint64_t size, const uint8_t *instructions, size_t count)
{
	uint32_t length = (uint32_t)(4 + 8 + 8 + 1 + count), pointer = (uint32_t)table->size + 4;
	uint8_t *entry = table->bytes + table->size;

	ck_assert_uint_le(table->size + 4 + length, sizeof(table->bytes));
	memcpy(entry, &length, 4);
	memcpy(entry + 4, &pointer, 4);
	memcpy(entry + 8, &start, 8);
	memcpy(entry + 16, &size, 8);
	entry[24] = 0;
	memcpy(entry + 25, instructions, count);
	table->size += 4 + length;
}
#define ADD_ENTRY(table, start, size, ...)                                                                             \
	add_entry(table, start, size, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void end_table(struct section *table)
{
	table->cfi = cfi_create_from_memory(table->bytes, table->size, SECTION);
	ck_assert_ptr_nonnull(table->cfi);
}

/* Offset of the CFA at an address; -1: no row. */
static int cfa_at(const struct section *table, uint64_t address)
{
	const struct cfi_row *row = cfi_find(table->cfi, address);

	return row ? row->cfa_offset : -1;
}

START_TEST(test_rows_from_memory)
{
	struct section table;
	const struct cfi_row *row;

	begin_table(&table);
	/* push rbp; mov rbp, rsp; ...; leave, and again after a remembered state. */
	ADD_ENTRY(&table, 0x1000, 0x20, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x48, 0x0c, 7, 8, 0xc6, 0x41,
		  0x0b);
	end_table(&table);
	ck_assert_int_eq(cfa_at(&table, 0xfff), -1);
	ck_assert_int_eq(cfa_at(&table, 0x1000), 8);
	ck_assert_ptr_null(cfi_row_rule(cfi_find(table.cfi, 0x1000), 6));
	ck_assert_int_eq(cfa_at(&table, 0x1001), 16);
	row = cfi_find(table.cfi, 0x1004);
	ck_assert_int_eq(row->cfa_register, 6);
	ck_assert_int_eq(cfi_row_rule(row, 6)->offset, -16);
	ck_assert_int_eq(cfi_row_rule(row, 16)->offset, -8);
	ck_assert(!cfi_row_is_outermost(row));
	ck_assert_int_eq(cfa_at(&table, 0x100c), 8);
	ck_assert_ptr_null(cfi_row_rule(cfi_find(table.cfi, 0x100c), 6));
	ck_assert_ptr_eq(cfi_find(table.cfi, 0x100d), row);
	ck_assert_ptr_eq(cfi_find(table.cfi, 0x101f), row);
	ck_assert_int_eq(cfa_at(&table, 0x1020), -1);
	cfi_destroy(table.cfi);
}
END_TEST

/* Instructions with signed and scaled operands, which compilers rarely use; the scale is -8. */
START_TEST(test_scaled_instructions)
{
	struct section table;
	const struct cfi_row *row;

	begin_table(&table);
	ADD_ENTRY(&table, 0x1000, 0x20, 0x12, 6, 0x7e,		/* def_cfa_sf rbp, -2 */
		  0x41, 0x13, 0x7d,				/* def_cfa_offset_sf -3 */
		  0x41, 0x14, 3, 4, 0x15, 12, 0x7b,		/* val_offset rbx 4, val_offset_sf r12 -5 */
		  0x41, 0x11, 13, 0x7a, 0x2f, 14, 7, 0x0a,	/* offset_extended_sf r13 -6, negative_offset r14 7 */
		  0x42, 0x09, 3, 12, 0x07, 13, 0x08, 14, 0x0b); /* register rbx = r12, undefined r13, same r14 */
	end_table(&table);
	row = cfi_find(table.cfi, 0x1000);
	ck_assert_int_eq(row->cfa_register, 6);
	ck_assert_int_eq(row->cfa_offset, 16);
	ck_assert_int_eq(cfa_at(&table, 0x1001), 24);
	row = cfi_find(table.cfi, 0x1002);
	ck_assert_int_eq(cfi_row_rule(row, 3)->kind, CFI_RULE_VALUE);
	ck_assert_int_eq(cfi_row_rule(row, 3)->offset, -32);
	ck_assert_int_eq(cfi_row_rule(row, 12)->kind, CFI_RULE_VALUE);
	ck_assert_int_eq(cfi_row_rule(row, 12)->offset, 40);
	ck_assert_ptr_null(cfi_row_rule(row, 13));
	row = cfi_find(table.cfi, 0x1003);
	ck_assert_int_eq(cfi_row_rule(row, 13)->kind, CFI_RULE_OFFSET);
	ck_assert_int_eq(cfi_row_rule(row, 13)->offset, 48);
	ck_assert_int_eq(cfi_row_rule(row, 14)->kind, CFI_RULE_OFFSET);
	ck_assert_int_eq(cfi_row_rule(row, 14)->offset, 56);
	/* The saved state is restored before the next row. */
	ck_assert_int_eq(cfi_row_rule(cfi_find(table.cfi, 0x1005), 14)->offset, 56);
	cfi_destroy(table.cfi);
}
END_TEST

/* .eh_frame_hdr of entries at `offsets` for the addresses `starts`, at address 0. */
static size_t write_header(uint8_t *header, const uint32_t *starts, const uint32_t *offsets, uint32_t count)
{
	static const uint8_t formats[] = {1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0};

	memcpy(header, formats, sizeof(formats));
	memcpy(header + 8, &count, 4);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = SECTION + offsets[i];

		memcpy(header + 12 + 8 * i, &starts[i], 4);
		memcpy(header + 16 + 8 * i, &place, 4);
	}
	return 12 + 8 * count;
}

START_TEST(test_rows_are_found_by_the_header)
{
	struct section table;
	uint8_t header[64];
	uint32_t offsets[3];
	struct cfi_section section = {.address = SECTION, .header = header};
	struct cfi_rows *rows = NULL;

	begin_table(&table);
	for (int i = 0; i < 3; i++) {
		offsets[2 - i] = (uint32_t)table.size;
		ADD_ENTRY(&table, 0x3000 - 0x1000 * (unsigned)i, 0x20, 0x44, 0x0e, (uint8_t)(16 + 8 * i));
	}
	section.bytes = table.bytes;
	section.size = table.size;
	section.header_size = write_header(header, (const uint32_t[]){0x1000, 0x2000, 0x3000}, offsets, 3);
	ck_assert_ptr_null(cfi_rows_create(&section, &rows));
	ck_assert_ptr_null(cfi_rows_find(rows, 0xfff));
	ck_assert_int_eq(cfi_rows_find(rows, 0x2004)->cfa_offset, 24);
	ck_assert_ptr_null(cfi_rows_find(rows, 0x2020));
	ck_assert_int_eq(cfi_rows_find(rows, 0x101f)->cfa_offset, 32);
	cfi_rows_destroy(rows);
}
END_TEST

/* Of another table; not in order; nowhere; too short. */
START_TEST(test_false_headers_are_refused)
{
	static const uint32_t starts[][2] = {{0x2000, 0x1000}, {0x1000, 0x2000}, {0x1000, 0x2000}, {0x1000, 0x2000}};
	struct section table;
	uint8_t header[64];
	uint32_t first, second;

	begin_table(&table);
	first = (uint32_t)table.size;
	ADD_ENTRY(&table, 0x1000, 0x20, 0x44, 0x0e, 16);
	second = (uint32_t)table.size;
	ADD_ENTRY(&table, 0x2000, 0x20, 0x44, 0x0e, 24);
	for (unsigned i = 0; i < 4; i++) {
		uint32_t offsets[] = {i == 1 ? 0 : i == 2 ? 1u << 20 : first, i == 1 ? first : second};
		struct cfi_section section = {.bytes = table.bytes,
					      .size = table.size,
					      .address = SECTION,
					      .header = header,
					      .header_size = write_header(header, starts[i], offsets, 2)};
		struct cfi_rows *rows = NULL;

		section.header_size -= i == 3;
		ck_assert_ptr_null(cfi_rows_create(&section, &rows));
		ck_assert_int_eq(cfi_rows_find(rows, 0x1004)->cfa_offset, 16);
		ck_assert_int_eq(cfi_rows_find(rows, 0x2004)->cfa_offset, 24);
		ck_assert_ptr_null(cfi_rows_find(rows, 0x1020));
		cfi_rows_destroy(rows);
	}
}
END_TEST

/* Entries that each point to a CIE of their own, which is not one. */
START_TEST(test_many_invalid_cies_cost_little)
{
	enum { ENTRIES = 100000, ENTRY = 8 };
	uint8_t *bytes = calloc(ENTRIES, ENTRY);
	struct cfi_section section = {.bytes = bytes, .size = ENTRIES * ENTRY, .address = SECTION};
	struct cfi_rows *rows = NULL;

	ck_assert_ptr_nonnull(bytes);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		uint32_t words[] = {4, i * ENTRY / 2 + 1};

		memcpy(bytes + (size_t)i * ENTRY, words, sizeof(words));
	}
	ck_assert_ptr_null(cfi_rows_create(&section, &rows));
	for (uint64_t address = 0; address < ENTRIES; address++)
		ck_assert_ptr_null(cfi_rows_find(rows, address));
	cfi_rows_destroy(rows);
	free(bytes);
}
END_TEST

/* Each address of an entry needs all its instructions. Whether it gets a row depends on their number alone, not on what
 * was looked up before. */
START_TEST(test_long_entries_cost_little)
{
	enum { FDE = 4 + 4 + 8 + 8 + 1, LOOKUPS = 3000 }; /* 1: no augmentation data */
	const uint32_t instructions = LIMIT_CFI_ENTRY_BYTES + (uint32_t)_i;
	size_t size = CIE_SIZE + FDE + instructions;
	uint8_t *bytes = calloc(1, size);
	struct cfi_section section = {.bytes = bytes, .size = size, .address = SECTION};
	struct cfi_rows *rows = NULL;

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, cie, CIE_SIZE);
	memcpy(bytes + CIE_SIZE, (uint32_t[]){FDE - 4 + instructions, CIE_SIZE + 4}, 8);
	memcpy(bytes + CIE_SIZE + 8, (uint64_t[]){0x1000, LOOKUPS}, 16);
	ck_assert_ptr_null(cfi_rows_create(&section, &rows));
	for (uint64_t i = 0; i < LOOKUPS; i++)
		ck_assert((cfi_rows_find(rows, 0x1000 + i) != NULL) == (_i == 0));
	cfi_rows_destroy(rows);
	free(bytes);
}
END_TEST

/* More than 128 remembered states end their entry. */
START_TEST(test_remembered_states_are_limited)
{
	uint8_t instructions[256];
	struct section table;

	memset(instructions, 0x0a, sizeof(instructions));
	instructions[0] = instructions[129] = 0x44;
	begin_table(&table);
	add_entry(&table, 0x1000, 0x20, instructions, 130);
	add_entry(&table, 0x2000, 0x20, instructions, sizeof(instructions));
	instructions[129] = 0x0a;
	add_entry(&table, 0x3000, 0x20, instructions, 130);
	end_table(&table);
	ck_assert_int_eq(cfa_at(&table, 0x101f), 8);
	ck_assert_int_eq(cfa_at(&table, 0x2007), 8);
	ck_assert_int_eq(cfa_at(&table, 0x2008), -1);
	ck_assert_int_eq(cfa_at(&table, 0x3003), 8);
	ck_assert_int_eq(cfa_at(&table, 0x3004), -1);
	cfi_destroy(table.cfi);
}
END_TEST

START_TEST(test_overlapping_entries)
{
	struct section table;

	begin_table(&table);
	ADD_ENTRY(&table, 0x1000, 0x100, 0x48, 0x0e, 16);
	ADD_ENTRY(&table, 0x1010, 0x10, 0x44, 0x0e, 24);
	ADD_ENTRY(&table, 0x1010, 0x40, 0x44, 0x0e, 32); /* the first for an address holds */
	ADD_ENTRY(&table, 0x900000000, 0x10, 0x44, 0x0e, 40);
	end_table(&table);
	ck_assert_int_eq(cfa_at(&table, 0x100f), 16);
	ck_assert_int_eq(cfa_at(&table, 0x1010), 8);
	ck_assert_int_eq(cfa_at(&table, 0x1014), 24);
	ck_assert_int_eq(cfa_at(&table, 0x1020), -1);
	ck_assert_int_eq(cfa_at(&table, 0x900000004), 40);
	ck_assert_int_eq(cfa_at(&table, 0x800000004), -1);
	cfi_destroy(table.cfi);
}
END_TEST

START_TEST(test_many_rows_of_an_entry)
{
	enum { ROWS = 2000, HEAD = 25, STEP = 3 };
	size_t size = CIE_SIZE + HEAD + (size_t)ROWS * STEP;
	uint32_t length = HEAD - 4 + ROWS * STEP, pointer = CIE_SIZE + 4;
	uint64_t start = 0x1000, extent = ROWS + 1, end;
	uint8_t *bytes = calloc(1, size), *entry = bytes + CIE_SIZE;
	struct cfi_section section = {.bytes = bytes, .size = size, .address = SECTION};
	struct cfi_rows *rows = NULL;

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, cie, CIE_SIZE);
	memcpy(entry, &length, 4);
	memcpy(entry + 4, &pointer, 4);
	memcpy(entry + 8, &start, 8);
	memcpy(entry + 16, &extent, 8);
	for (uint32_t i = 0; i < ROWS; i++)
		memcpy(entry + HEAD + (size_t)i * STEP, (uint8_t[]){0x41, 0x0e, i % 2 ? 16 : 24}, STEP);
	ck_assert_ptr_null(cfi_rows_create(&section, &rows));
	for (uint64_t i = 0; i < ROWS; i++) {
		const struct cfi_row *row = cfi_rows_find(rows, start + 1 + i);

		ck_assert(row && row->cfa_offset == (i % 2 ? 16 : 24));
	}
	ck_assert_int_eq(cfi_rows_find(rows, start)->cfa_offset, 8);
	ck_assert_ptr_null(cfi_rows_find(rows, start + extent));
	ck_assert(cfi_rows_function_range(rows, start, &end));
	ck_assert_uint_eq(end, start + extent);
	cfi_rows_destroy(rows);
	free(bytes);
}
END_TEST

START_TEST(test_bad_instructions_end_their_entry)
{
	struct section table;

	begin_table(&table);
	ADD_ENTRY(&table, 0x1000, 0x20, 0x44, 0x0e, 16, 0x44, 0x3b, 0x44);
	ADD_ENTRY(&table, 0x2000, 0x20, 0x44, 0x0b, 0x44);
	ADD_ENTRY(&table, 0x3000, 0x20, 0x44, 0x0e, 24);
	end_table(&table);
	ck_assert_int_eq(cfa_at(&table, 0x1003), 8);
	ck_assert_int_eq(cfa_at(&table, 0x1007), 16);
	ck_assert_int_eq(cfa_at(&table, 0x1008), -1);
	ck_assert_int_eq(cfa_at(&table, 0x2003), 8);
	ck_assert_int_eq(cfa_at(&table, 0x2004), -1);
	ck_assert_int_eq(cfa_at(&table, 0x301f), 24);
	cfi_destroy(table.cfi);
}
END_TEST

START_TEST(test_expressions)
{
	struct section table;
	const struct cfi_row *row;

	begin_table(&table);
	ADD_ENTRY(&table, 0x1000, 0x40, 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0, /* [rbp - 8]; rbp at rbp + 0 */
		  0x50, 0x0f, 5, 0x77, 16, 0x06, 0x23, 8, 0x16, 3, 2, 0x70, 0,
		  /* rsp * 2; rbx at rsp + 24, without the CFA; rbp at the CFA, loaded */
		  0x50, 0x0f, 4, 0x77, 0, 0x32, 0x1e, 0x10, 3, 3, 0x13, 0x77, 24, 0x10, 6, 1, 0x06,
		  /* [rsp] + 8, and then a load; rsp + 8 */
		  0x50, 0x0f, 6, 0x77, 0, 0x06, 0x23, 8, 0x06, 0x48, 0x0c, 7, 8);
	end_table(&table);
	row = cfi_find(table.cfi, 0x1000);
	ck_assert_int_eq(row->cfa_kind, CFI_CFA_LOAD);
	ck_assert_int_eq(row->cfa_register, 6);
	ck_assert_int_eq(row->cfa_offset, -8);
	ck_assert_int_eq(cfi_row_rule(row, 6)->kind, CFI_RULE_AT_REGISTER);
	row = cfi_find(table.cfi, 0x1010);
	ck_assert_int_eq(row->cfa_kind, CFI_CFA_LOAD); /* [rsp + 16] + 8; rbx is value 7 */
	ck_assert_int_eq(row->cfa_register, 7);
	ck_assert_int_eq(row->cfa_offset, 16);
	ck_assert_uint_eq(row->cfa_addend, 8);
	ck_assert_int_eq(cfi_row_rule(row, 3)->kind, CFI_RULE_UNKNOWN);
	row = cfi_find(table.cfi, 0x1020);
	ck_assert_int_eq(row->cfa_kind, CFI_CFA_UNKNOWN);
	ck_assert_int_eq(cfi_row_rule(row, 3)->kind, CFI_RULE_AT_REGISTER);
	ck_assert_int_eq(cfi_row_rule(row, 3)->reg, 7);
	ck_assert_int_eq(cfi_row_rule(row, 3)->offset, 24);
	ck_assert_int_eq(cfi_row_rule(row, 6)->kind, CFI_RULE_UNKNOWN);
	ck_assert_int_eq(cfi_find(table.cfi, 0x1030)->cfa_kind, CFI_CFA_UNKNOWN);
	row = cfi_find(table.cfi, 0x1038);
	ck_assert_int_eq(row->cfa_kind, CFI_CFA_REGISTER);
	ck_assert_uint_eq(row->cfa_addend, 0);
	cfi_destroy(table.cfi);
}
END_TEST

START_TEST(test_addresses_outside_all_rows)
{
	ck_assert_ptr_null(modules_create(HOST_MACHINE, true, &modules));
	ck_assert_ptr_null(modules_open(modules, "/proc/self/exe", NULL, 0, 0, &module));
	ck_assert_ptr_null(module_cfi(module, 0));
	ck_assert_ptr_null(module_cfi(module, 1ULL << 40));
	ck_assert_ptr_null(module_cfi(module, UINT64_MAX));
	modules_destroy(modules);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("cfi");
	TCase *tests = add_tcase(suite, "cfi");

	tcase_set_timeout(tests, 600);
	if (HOST_MACHINE == EM_X86_64)
		tcase_add_test(tests, test_rows_of_libc_match_readelf);
	else
		skip_test("test_rows_of_libc_match_readelf", "it compares registers of x86-64");
	if (HOST_MACHINE == EM_X86_64)
		tcase_add_test(tests, test_every_row_matches_libdw);
	else
		skip_test("test_every_row_matches_libdw", "it compares registers of x86-64");
	tcase_add_tests(tests, test_rows_from_memory, test_scaled_instructions, test_rows_are_found_by_the_header,
			test_false_headers_are_refused, test_many_invalid_cies_cost_little,
			test_remembered_states_are_limited, test_overlapping_entries, test_many_rows_of_an_entry,
			test_bad_instructions_end_their_entry, test_expressions, test_addresses_outside_all_rows);
	tcase_add_loop_test(tests, test_long_entries_cost_little, 0, 2);
	return suite;
}
