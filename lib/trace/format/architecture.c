// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/format/architecture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

static const struct architecture *const architectures[] = {&architecture_x86_64, &architecture_aarch64};

const struct architecture *architecture_find(const char *name)
{
	for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++) {
		if (strcmp(architectures[i]->name, name) == 0)
			return architectures[i];
	}
	return NULL;
}

uint64_t architecture_argument_mask(const struct architecture *architecture, unsigned count)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < architecture->perf_register_count; i++) {
		for (unsigned argument = 0; argument < count; argument++) {
			if (architecture->perf_to_dwarf[i] == architecture->argument_registers[argument])
				mask |= 1ULL << i;
		}
	}
	return mask;
}

const struct architecture *architecture_host(void)
{
	struct utsname name;

	return uname(&name) == 0 ? architecture_find(name.machine) : NULL;
}
