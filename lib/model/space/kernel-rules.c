// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space/kernel-rules.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>

#define VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))

struct kernel_rules kernel_rules_of(const char *release)
{
	unsigned major, minor;
	bool known = isdigit((unsigned char)*release) && sscanf(release, "%5u.%5u", &major, &minor) == 2 &&
		     major <= UINT16_MAX && minor <= UINT16_MAX;
	uint32_t version = known ? VERSION(major, minor) : UINT32_MAX;

	return (struct kernel_rules){
	    .mremap_finds_source_first = version >= VERSION(5, 16),
	    .mremap_sees_sealed_tail_late = version >= VERSION(6, 12),
	    .mremap_moves_several = version >= VERSION(6, 17),
	    .protects_rings = version >= VERSION(7, 0),
	    .shm_merging = version >= VERSION(6, 12)  ? SHM_MERGES_INTO_BOTH
			   : version >= VERSION(6, 4) ? SHM_MERGES_INTO_PREVIOUS
						      : SHM_NEVER_MERGES,
	};
}
