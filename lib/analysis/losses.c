// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/losses.h"

#define CPUS_MAXIMUM 8192 /* a file that names higher ones lies */

void losses_deinit(struct losses *losses)
{
	vector_deinit(&losses->latest);
}

bool losses_note(struct losses *losses, int32_t cpu, uint64_t sequence)
{
	losses->anywhere = sequence;
	if (cpu < 0 || cpu >= CPUS_MAXIMUM) {
		losses->everywhere = sequence;
		return true;
	}
	while (losses->latest.count <= (size_t)cpu) {
		if (!vector_push(&losses->latest, 0))
			return false;
	}
	losses->latest.items[cpu] = sequence;
	return true;
}

bool losses_since(const struct losses *losses, int32_t cpu, uint64_t sequence)
{
	if (losses->anywhere <= sequence)
		return false;
	if (cpu < 0 || losses->everywhere > sequence)
		return true;
	return (size_t)cpu < losses->latest.count && losses->latest.items[cpu] > sequence;
}
