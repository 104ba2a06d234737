// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space/kernel-rules.h"

#include <ctype.h>
#include <stdint.h>

#define VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))
#define NUMBER_MAX UINT16_MAX

/* UINT32_MAX: the release does not start with a version number. */
static uint32_t read_version(const char *release)
{
	uint32_t numbers[2] = {0};

	for (int i = 0; i < 2; i++, release++) {
		if (!isdigit((unsigned char)*release))
			return UINT32_MAX;
		for (; isdigit((unsigned char)*release) && numbers[i] <= NUMBER_MAX; release++)
			numbers[i] = numbers[i] * 10 + (uint32_t)(*release - '0');
		if (numbers[i] > NUMBER_MAX || (i == 0 && *release != '.'))
			return UINT32_MAX;
	}
	return VERSION(numbers[0], numbers[1]);
}

struct kernel_rules kernel_rules_of(const char *release)
{
	uint32_t version = read_version(release);

	return (struct kernel_rules){
	    .mremap_finds_source_first = version >= VERSION(5, 16),
	    .mremap_sees_sealed_tail_late = version >= VERSION(6, 12),
	    .mremap_moves_several = version >= VERSION(6, 17),
	    .mremap_moves_whole_rings = version >= VERSION(7, 0),
	    .shm_merging = version >= VERSION(6, 12)  ? SHM_MERGES_INTO_BOTH
			   : version >= VERSION(6, 4) ? SHM_MERGES_INTO_PREVIOUS
						      : SHM_NEVER_MERGES,
	};
}
