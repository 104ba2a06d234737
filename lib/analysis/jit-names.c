// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/jit-names.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "code/perf-map.h"

struct jit_names {
	struct perf_map *perf_map; /* NULL: none recorded */
};

static struct mmt_error *load_perf_map(const struct perf_map_copy *copy, struct perf_map **map_ret)
{
	CLEANUP(free) struct perf_map_step *steps = malloc((copy->growth.count + 1) * sizeof(*steps));

	if (!steps)
		return &error_no_memory;
	for (size_t i = 0; i < copy->growth.count; i++)
		steps[i] = (struct perf_map_step){.time_ns = copy->growth.items[i].time_ns,
						  .length = copy->growth.items[i].length};
	return perf_map_create(copy->text, copy->text_size, steps, copy->growth.count, map_ret);
}

struct mmt_error *jit_names_create(const struct reader_metadata *metadata, int32_t pid, struct jit_names **names_ret)
{
	struct jit_names *names = calloc(1, sizeof(*names));
	struct mmt_error *error = names ? NULL : &error_no_memory;

	for (size_t i = 0; !error && i < metadata->perf_maps.maps.count; i++) {
		const struct perf_map_copy *copy = &metadata->perf_maps.maps.items[i];

		if (copy->pid == pid && !names->perf_map)
			error = load_perf_map(copy, &names->perf_map);
	}
	if (error)
		jit_names_destroy(names);
	else
		*names_ret = names;
	return error;
}

void jit_names_destroy(struct jit_names *names)
{
	if (!names)
		return;
	perf_map_destroy(names->perf_map);
	free(names);
}

uint32_t jit_names_find(struct jit_names *names, uint64_t address, uint64_t time_ns)
{
	uint32_t entry = names->perf_map ? perf_map_find(names->perf_map, address, time_ns) : PERF_MAP_NONE;

	return entry == PERF_MAP_NONE ? 0 : entry + 1;
}

uint64_t jit_names_epoch(struct jit_names *names, uint64_t time_ns)
{
	return names->perf_map ? perf_map_epoch(names->perf_map, time_ns) : 0;
}

const char *jit_names_name(const struct jit_names *names, uint32_t number)
{
	return perf_map_name(names->perf_map, number - 1, NULL);
}

bool jit_names_has_perf_map(const struct jit_names *names)
{
	return names->perf_map != NULL;
}

size_t jit_names_dropped(const struct jit_names *names)
{
	return names->perf_map ? perf_map_stats(names->perf_map).dropped : 0;
}
