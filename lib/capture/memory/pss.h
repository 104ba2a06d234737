/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads what a process shares with others, from /proc/PID/smaps_rollup, and decides when that is worth its price. */
#ifndef CAPTURE_PROCFS_PSS_H
#define CAPTURE_PROCFS_PSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

struct recorder;

struct pss_counts {
	uint64_t resident_bytes, pss_bytes, swap_pss_bytes;
	uint64_t private_bytes;	  /* of pages that no other process maps */
	uint64_t huge_bytes;	  /* in anonymous huge pages */
	uint64_t lazy_free_bytes; /* that the process freed with MADV_FREE, and the kernel has not reclaimed */
	uint64_t faults;	  /* page faults since the process started */
};

/* Fills in everything but the faults from the text of smaps_rollup. False: the kernel gave no Pss. */
bool pss_parse_rollup(const char *text, struct pss_counts *counts_ret);

/* Returns minor and major page faults from the text of /proc/PID/stat. */
uint64_t pss_parse_faults(const char *text);

/*
 * The kernel visits every page of the process for smaps_rollup, and holds its mmap_lock for reading while it is in one
 * mapping: calls that change mappings wait. So a process is not read if that would take longer than LIMIT_PSS_WALK_NS,
 * and all processes together take at most 1/PSS_COST_SHARE of one CPU.
 */
#define PSS_COST_SHARE 50

/* An estimate for a process of this size: from the last reading of it, or from what a page costs as a rule. */
uint64_t pss_expected_ns(uint64_t resident_bytes, uint64_t last_resident_bytes, uint64_t last_took_ns);

/*
 * Follows a reading of RSS, whose time and number it takes. Reads nothing if another reading would be too expensive
 * now, or only one process is recorded, unless it was one of several in the reading before. `last`: recording ends, so
 * that only the limit for each process applies, and all processes are read, for LazyFree, even if there is one. Lets
 * the ring reader work in between.
 */
struct mmt_error *pss_series_read(struct recorder *recorder, uint64_t time_ns, uint64_t number,
				  bool last) MMT_MUST_CHECK;

#endif
