/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a process has mapped at a place now, asked of the kernel without reading all of /proc/PID/maps. */
#ifndef CAPTURE_MAPPING_QUERY_H
#define CAPTURE_MAPPING_QUERY_H

#include <stdint.h>

enum mapped_kind {
	MAPPED_NOTHING,
	MAPPED_DATA,  /* or the process has ended */
	MAPPED_CODE,  /* it is executable */
	MAPPED_UNTOLD /* Linux before 6.11 cannot be asked */
};

/* `maps`: an open /proc/PID/maps. It is the same from `address` up to *end_ret, which lies behind it. */
enum mapped_kind mapping_query(int maps, uint64_t address, uint64_t *end_ret);

#endif
