/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The equivalent of mapping_query() on kernels without that query: reads /proc/PID/maps line by line. */
#ifndef CAPTURE_MAPPING_SCAN_H
#define CAPTURE_MAPPING_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/mapping-query.h"

struct mapping_scan {
	uint64_t begin_ns; /* mappings made later may be missing */
	char *text;	   /* read but not parsed yet; NULL: no scan in progress */
	size_t position, size;
	uint64_t start, end; /* of the last line; UINT64_MAX: no more lines */
	bool executable;
};

/* Starts at the first line of `maps`, which nothing else may read meanwhile. False: out of memory. */
bool mapping_scan_begin(struct mapping_scan *scan, int maps);

/*
 * Addresses must ascend from one query to the next. Reads at most *lines_left lines and subtracts them; if these are not
 * enough, the answer is MAPPED_UNTOLD, and repeating the query continues there.
 */
enum mapped_kind mapping_scan_query(struct mapping_scan *scan, int maps, uint64_t address, size_t *lines_left,
				    uint64_t *end_ret);

/* Accepts a zeroed value. */
void mapping_scan_end(struct mapping_scan *scan);

#endif
