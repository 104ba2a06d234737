// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space/kernel-rules.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#define VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))

/* UINT32_MAX: the release does not start with a version number. */
static uint32_t read_version(const char *release)
{
	char *end;
	unsigned long major = isdigit((unsigned char)*release) ? strtoul(release, &end, 10) : ULONG_MAX, minor;

	if (major > UINT16_MAX || *end != '.' || !isdigit((unsigned char)end[1]))
		return UINT32_MAX;
	minor = strtoul(end + 1, NULL, 10);
	return minor > UINT16_MAX ? UINT32_MAX : VERSION(major, minor);
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
