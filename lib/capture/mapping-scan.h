/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The same questions as mapping_query(), on kernels that have no such query: /proc/PID/maps is read line by line. */
#ifndef CAPTURE_MAPPING_SCAN_H
#define CAPTURE_MAPPING_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/mapping-query.h"

struct mapping_scan {
	uint64_t begin_ns; /* what was mapped later may be missing */
	char *text;	   /* what was read and not parsed yet; NULL: no scan is under way */
	size_t position, size;
	uint64_t start, end; /* of the last line; UINT64_MAX: there are no more */
	bool executable;
};

/* From the first line of `maps`, which nothing else may read meanwhile. False: out of memory. */
bool mapping_scan_begin(struct mapping_scan *scan, int maps);

/*
 * Addresses must ascend from one question to the next. Reads *lines_left lines at most and takes them off; where these
 * are not enough the answer is MAPPED_UNTOLD, and the same question goes on there the next time.
 */
enum mapped_kind mapping_scan_query(struct mapping_scan *scan, int maps, uint64_t address, size_t *lines_left,
				    uint64_t *end_ret);

/* Accepts a zeroed value. */
void mapping_scan_end(struct mapping_scan *scan);

#endif
