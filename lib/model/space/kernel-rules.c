// SPDX-License-Identifier: LGPL-2.1-or-later
#include "model/space/kernel-rules.h"

#include <ctype.h>
#include <stdint.h>

#define VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))
#define NUMBER_MAX UINT16_MAX

/* False: `*text` does not start with a version number. */
static bool read_number(const char **text, uint32_t *number_ret)
{
	const char *digit = *text;
	uint32_t number = 0;

	for (; isdigit((unsigned char)*digit) && number <= NUMBER_MAX; digit++)
		number = number * 10 + (uint32_t)(*digit - '0');
	if (digit == *text || number > NUMBER_MAX)
		return false;
	*text = digit;
	*number_ret = number;
	return true;
}

static uint32_t read_version(const char *release)
{
	uint32_t major, minor;

	if (!read_number(&release, &major) || *release++ != '.' || !read_number(&release, &minor))
		return UINT32_MAX;
	return VERSION(major, minor);
}

static struct kernel_rules rules_of(uint32_t version)
{
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

struct kernel_rules kernel_rules_newest(void)
{
	return rules_of(UINT32_MAX);
}

struct kernel_rules kernel_rules_of(const char *release)
{
	return rules_of(read_version(release));
}
