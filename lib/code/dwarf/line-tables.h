/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Source lines by address, unit by unit. libdw keeps each table that it has read until its Dwarf is closed, at some 60
 * bytes for a line; here a change of the line takes 16, and what libdw keeps is given back time and again.
 */
#ifndef CODE_DWARF_LINE_TABLES_H
#define CODE_DWARF_LINE_TABLES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line_tables;

/* Borrows `dwarf`. NULL when out of memory. */
struct line_tables *line_tables_create(Dwarf *dwarf);
/* Accepts NULL. */
void line_tables_destroy(struct line_tables *tables);

/* Tables have more rows and files than the file has bytes for: those read from then on are left out. */
bool line_tables_limited(const struct line_tables *tables);

struct unit_lines;

/* The table of `unit`, read when it is first asked for. NULL: there is none, it cannot be read, or it is left
 * out. */
const struct unit_lines *line_tables_of_unit(struct line_tables *tables, Dwarf_Die *unit);

/* The line in which the code at `address` was written; false: not known. The file lives as long as the tables, NULL:
 * it is none that the table names. */
bool unit_lines_find(const struct unit_lines *lines, uint64_t address, const char **file_ret, uint32_t *line_ret);

/* The file that the unit calls so; NULL: there is none. */
const char *unit_lines_file(const struct unit_lines *lines, uint32_t number);

#endif
