// SPDX-License-Identifier: LGPL-2.1-or-later
/* Any bytes are a perf map: parse it, look up every name at both ends of its range, normalize it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "code/jit/code-timeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct perf_map_step steps[] = {{1000, size / 3}, {2000, size / 2}};
	struct perf_map *map = NULL;
	struct mmt_error *error = perf_map_create(data, size, steps, 2, &map);

	if (error) {
		mmt_error_destroy(error);
		return 0;
	}
	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t address;
		const char *name;
		char text[64];

		memcpy(&address, data + i, sizeof(address));
		for (int j = 0; j < 2; j++, address &= 0xfff) {
			uint32_t entry = code_timeline_find(map->timeline, address, 1500 * (uint64_t)j);

			if (entry == CODE_TIMELINE_NONE)
				continue;
			name = perf_map_entry(map, entry).name;
			if (perf_map_entry(map, entry).start > address || !*name)
				abort();
			perf_map_normalise(name, text, sizeof(text));
			if (strlen(text) >= sizeof(text) || strlen(text) > strlen(name))
				abort();
		}
	}
	perf_map_destroy(map);
	return 0;
}
