// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/names/line-tables.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/vector.h"

#define NO_FILE UINT32_MAX

/* Applies from `address` up to the next row. */
struct line_row {
	uint64_t address;
	uint32_t file; /* index in the unit; NO_FILE: unknown */
	uint32_t line; /* 0: unknown */
};

struct unit_lines {
	bool readable;
	VECTOR(struct line_row) rows; /* sorted, with distinct addresses */
	VECTOR(const char *) files;   /* NULL: unknown */
};

struct line_tables {
	Dwarf *dwarf;	      /* of the units; borrowed */
	Dwarf *reading;	      /* second Dwarf of the same file, used for reading tables; NULL: not open */
	size_t held;	      /* lines in `reading` */
	size_t entries_left;  /* maximum number of rows and files left that the file can describe */
	bool limited;	      /* the limit was exceeded: no more tables are read */
	struct map by_offset; /* by offset of the table: units may share one */
	VECTOR(struct unit_lines *) units;
	struct intern names; /* file names: units share most of theirs */
	VECTOR(const char *) texts;
	struct arena arena;
};

/* Each row and each file takes at least one byte. Tables share bytes only in hostile files. */
static size_t section_bytes(Elf *elf)
{
	Elf_Scn *section = NULL;
	size_t bytes = 0, texts;

	if (elf_getshdrstrndx(elf, &texts))
		return 0;
	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data;
		GElf_Shdr header;
		const char *name;

		if (gelf_getshdr(section, &header) && (name = elf_strptr(elf, texts, header.sh_name)) &&
		    (!strcmp(name, ".debug_line") || !strcmp(name, ".zdebug_line")) &&
		    (data = elf_getdata(section, NULL)))
			bytes += data->d_size;
	}
	return bytes;
}

struct line_tables *line_tables_create(Dwarf *dwarf)
{
	struct line_tables *tables = calloc(1, sizeof(*tables));

	if (tables) {
		tables->dwarf = dwarf;
		tables->entries_left = section_bytes(dwarf_getelf(dwarf));
	}
	return tables;
}

bool line_tables_limited(const struct line_tables *tables)
{
	return tables->limited;
}

static void unit_destroy(struct unit_lines *lines)
{
	if (!lines)
		return;
	vector_deinit(&lines->rows);
	vector_deinit(&lines->files);
	free(lines);
}

static void close_reading(struct line_tables *tables)
{
	(void)dwarf_end(tables->reading);
	tables->reading = NULL;
	tables->held = 0;
}

void line_tables_destroy(struct line_tables *tables)
{
	if (!tables)
		return;
	for (size_t i = 0; i < tables->units.count; i++)
		unit_destroy(tables->units.items[i]);
	vector_deinit(&tables->units);
	map_deinit(&tables->by_offset);
	close_reading(tables);
	intern_deinit(&tables->names);
	vector_deinit(&tables->texts);
	arena_deinit(&tables->arena);
	free(tables);
}

/* False: out of memory. */
static bool keep_name(struct line_tables *tables, const char *name, const char **text_ret)
{
	uint32_t number;

	*text_ret = NULL;
	if (!name)
		return true;
	number = intern_put_string(&tables->names, name);
	if (number == INTERN_NONE)
		return false;
	if (number == tables->texts.count) {
		const char *text = arena_string(&tables->arena, name);

		if (!text || !vector_push(&tables->texts, text))
			return false;
	}
	*text_ret = number < tables->texts.count ? tables->texts.items[number] : NULL;
	return *text_ret;
}

static bool add_files(struct line_tables *tables, Dwarf_Files *files, size_t count, struct unit_lines *lines)
{
	for (size_t i = 0; i < count; i++) {
		const char *text;

		if (!keep_name(tables, dwarf_filesrc(files, i, NULL, NULL), &text) || !vector_push(&lines->files, text))
			return false;
	}
	return true;
}

/* Of several lines at one address keep the last one, and drop lines that change nothing. */
static bool add_row(struct unit_lines *lines, const struct line_row *row)
{
	const struct line_row *last;

	if (lines->rows.count && lines->rows.items[lines->rows.count - 1].address == row->address)
		lines->rows.count--;
	last = lines->rows.count ? &lines->rows.items[lines->rows.count - 1] : NULL;
	if (last && last->line == row->line && (!row->line || last->file == row->file))
		return true;
	return vector_push(&lines->rows, *row);
}

static bool add_line(Dwarf_Line *line, struct unit_lines *lines)
{
	struct line_row row = {.file = NO_FILE};
	Dwarf_Addr address;
	Dwarf_Files *files;
	bool end = false;
	size_t file;
	int number;

	if (dwarf_lineaddr(line, &address) || dwarf_lineendsequence(line, &end))
		return true;
	row.address = address;
	if (!end && !dwarf_lineno(line, &number) && number > 0) {
		row.line = (uint32_t)number;
		if (!dwarf_line_file(line, &files, &file) && file < lines->files.count)
			row.file = (uint32_t)file;
	}
	return add_row(lines, &row);
}

/* False: more than the file can have. */
static bool take_entries(struct line_tables *tables, size_t rows, size_t files)
{
	tables->limited |= rows > tables->entries_left || files > tables->entries_left - rows;
	if (!tables->limited)
		tables->entries_left -= rows + files;
	return !tables->limited;
}

/* False: out of memory. */
static bool read_lines(struct line_tables *tables, Dwarf_Die *unit, struct unit_lines *lines)
{
	Dwarf_Lines *table;
	Dwarf_Files *files;
	size_t count, file_count;

	if (dwarf_getsrclines(unit, &table, &count))
		return true;
	tables->held += count;
	if (dwarf_getsrcfiles(unit, &files, &file_count))
		file_count = 0;
	if (!take_entries(tables, count, file_count))
		return true;
	lines->readable = true;
	if (!add_files(tables, files, file_count, lines))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!add_line(dwarf_onesrcline(table, i), lines))
			return false;
	}
	vector_trim(&lines->rows);
	return true;
}

/* The same unit in the Dwarf whose memory can be freed. */
static bool find_unit(struct line_tables *tables, Dwarf_Die *unit, Dwarf_Die *unit_ret)
{
	if (!tables->reading)
		tables->reading = dwarf_begin_elf(dwarf_getelf(tables->dwarf), DWARF_C_READ, NULL);
	return dwarf_offdie(tables->reading, dwarf_dieoffset(unit), unit_ret) && dwarf_tag(unit_ret) == dwarf_tag(unit);
}

/* Initially empty; NULL: out of memory. */
static struct unit_lines *lines_at(struct line_tables *tables, uint64_t offset, bool *new_ret)
{
	const uint64_t *known = map_get(&tables->by_offset, offset);
	struct unit_lines *lines;

	*new_ret = !known;
	if (known)
		return tables->units.items[*known];
	lines = calloc(1, sizeof(*lines));
	if (!lines || !map_put(&tables->by_offset, offset, tables->units.count) ||
	    !vector_push(&tables->units, lines)) {
		(void)map_remove(&tables->by_offset, offset);
		free(lines);
		return NULL;
	}
	return lines;
}

const struct unit_lines *line_tables_of_unit(struct line_tables *tables, Dwarf_Die *unit)
{
	Dwarf_Attribute attribute;
	struct unit_lines *lines;
	Dwarf_Word offset;
	Dwarf_Die die;
	bool is_new;

	if (dwarf_formudata(dwarf_attr(unit, DW_AT_stmt_list, &attribute), &offset))
		return NULL;
	lines = lines_at(tables, offset, &is_new);
	if (lines && is_new && !tables->limited) {
		/* If the unit is not found there, read the table from `dwarf`, which keeps it. */
		if (!find_unit(tables, unit, &die))
			die = *unit;
		if (!read_lines(tables, &die, lines))
			lines->readable = false;
		if (tables->held >= LIMIT_LINES_HELD)
			close_reading(tables);
	}
	return lines && lines->readable ? lines : NULL;
}

bool unit_lines_find(const struct unit_lines *lines, uint64_t address, const char **file_ret, uint32_t *line_ret)
{
	size_t up_to = partition_point(lines->rows.count, i, lines->rows.items[i].address <= address);
	const struct line_row *row = up_to ? &lines->rows.items[up_to - 1] : NULL;

	if (!row || !row->line)
		return false;
	*file_ret = unit_lines_file(lines, row->file);
	*line_ret = row->line;
	return true;
}

const char *unit_lines_file(const struct unit_lines *lines, uint32_t number)
{
	return number < lines->files.count ? lines->files.items[number] : NULL;
}
