/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Source lines by address, unit by unit. libdw keeps each table that it has read until its Dwarf is closed, at some 60
 * bytes per line. Here each change of the line takes 16 bytes, and libdw's memory is freed regularly. */
#ifndef CODE_NAMES_LINE_TABLES_H
#define CODE_NAMES_LINE_TABLES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line_tables;

/* Borrows `dwarf`. NULL when out of memory. */
struct line_tables *line_tables_create(Dwarf *dwarf);
/* Accepts NULL. */
void line_tables_destroy(struct line_tables *tables);

/* Whether some tables were left out because tables had more rows and files than the file has bytes for. */
bool line_tables_limited(const struct line_tables *tables);

struct unit_lines;

/* The table of `unit`, read on first use. NULL: none, unreadable, or left out. */
const struct unit_lines *line_tables_of_unit(struct line_tables *tables, Dwarf_Die *unit);

/*
 * The source line of the code at `address`; false: unknown. The file name lives as long as the tables, NULL: unknown.
 */
bool unit_lines_find(const struct unit_lines *lines, uint64_t address, const char **file_ret, uint32_t *line_ret);

/* The file that has this number in the unit; NULL: none. */
const char *unit_lines_file(const struct unit_lines *lines, uint32_t number);

#endif
