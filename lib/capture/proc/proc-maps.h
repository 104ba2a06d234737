/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parsing /proc/PID/maps, and asking the kernel about single mappings (PROCMAP_QUERY, Linux 6.11). */
#ifndef CAPTURE_PROC_PROC_MAPS_H
#define CAPTURE_PROC_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format/format.h"

/* Lines of /proc/PID/maps. */

struct procmaps_line {
	uint64_t start, end;
	uint32_t protection; /* PROT_* */
	bool shared;
	uint64_t file_offset;
	uint32_t device_major, device_minor;
	uint64_t inode;
	char path[LIMIT_PATH_BYTES]; /* "//anon" for none; newlines unescaped; cut to fit */
};

/* Parses one line without its newline; false: not in the kernel's format. */
bool procmaps_parse(const char *line, size_t length, struct procmaps_line *line_ret);

/* What a process has mapped at an address, asked from the kernel without reading all of /proc/PID/maps. */

enum mapped_kind {
	MAPPED_NOTHING,
	MAPPED_DATA,  /* or the process has ended */
	MAPPED_CODE,  /* it is executable */
	MAPPED_UNTOLD /* Linux before 6.11 has no such query */
};

/* `maps`: an open /proc/PID/maps. The answer holds from `address` up to *end_ret, which is above `address`. */
enum mapped_kind mapping_query(int maps, uint64_t address, uint64_t *end_ret);

/* The equivalent of mapping_query() on kernels without that query: reads /proc/PID/maps line by line. */

struct mapping_scan {
	uint64_t begin_ns; /* mappings made later may be missing */
	char *text;	   /* read but not parsed yet; NULL: no scan in progress */
	size_t position, size;
	uint64_t start, end; /* of the last line; UINT64_MAX: no more lines */
	bool executable;
};

/* Starts at the first line of `maps`, which no other code may read during the scan. False: out of memory. */
bool mapping_scan_begin(struct mapping_scan *scan, int maps);

/*
 * Addresses must ascend from one query to the next. Reads at most *lines_left lines and subtracts them. If these are
 * not enough, the answer is MAPPED_UNTOLD; repeat the query to continue there.
 */
enum mapped_kind mapping_scan_query(struct mapping_scan *scan, int maps, uint64_t address, size_t *lines_left,
				    uint64_t *end_ret);

/* Accepts a zeroed value. */
void mapping_scan_end(struct mapping_scan *scan);

#endif
