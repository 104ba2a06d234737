// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/jit-names.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vector.h"
#include "code/code-timeline.h"
#include "code/jitdump.h"
#include "code/perf-map.h"

/* A number is an entry plus one, and above it the source: 0 the perf map, others the jitdumps. */
#define SOURCE_SHIFT 24
#define ENTRY_MASK ((1u << SOURCE_SHIFT) - 1)
#define JITDUMPS_MAX 255

_Static_assert(CODE_TIMELINE_RANGES_MAX < ENTRY_MASK, "every entry has a number");

struct jit_names {
	struct perf_map *perf_map; /* NULL: none recorded */
	VECTOR(struct jitdump *) jitdumps;
	struct mmt_error *jitdump_failure;
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

/* One that cannot be read is done without. */
static struct mmt_error *load_jitdump(struct jit_names *names, const struct reader_metadata *metadata,
				      const struct jitdump_copy *copy)
{
	uint64_t end_ns = metadata->has_loss ? metadata->loss.stop_ns : UINT64_MAX;
	struct jitdump *dump = NULL;
	struct mmt_error *error;

	if (names->jitdumps.count == JITDUMPS_MAX)
		return NULL;
	error = jitdump_create(copy->data, copy->size, end_ns, &dump);
	if (error && error != &error_no_memory) {
		mmt_error_destroy(names->jitdump_failure);
		names->jitdump_failure = error;
		return NULL;
	}
	if (!error && !vector_push(&names->jitdumps, dump)) {
		jitdump_destroy(dump);
		error = &error_no_memory;
	}
	return error;
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
	for (size_t i = 0; !error && i < metadata->jitdumps.dumps.count; i++) {
		if (metadata->jitdumps.dumps.items[i].pid == pid)
			error = load_jitdump(names, metadata, &metadata->jitdumps.dumps.items[i]);
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
	for (size_t i = 0; i < names->jitdumps.count; i++)
		jitdump_destroy(names->jitdumps.items[i]);
	vector_deinit(&names->jitdumps);
	mmt_error_destroy(names->jitdump_failure);
	free(names);
}

/* The jitdump that a number is of; NULL: the perf map. */
static struct jitdump *dump_of(const struct jit_names *names, uint32_t number)
{
	return number >> SOURCE_SHIFT ? names->jitdumps.items[(number >> SOURCE_SHIFT) - 1] : NULL;
}

static uint32_t entry_of(uint32_t number)
{
	return (number & ENTRY_MASK) - 1;
}

uint32_t jit_names_find(struct jit_names *names, uint64_t address, uint64_t time_ns)
{
	uint32_t entry;

	for (size_t i = names->jitdumps.count; i-- > 0;) {
		entry = jitdump_find(names->jitdumps.items[i], address, time_ns);
		if (entry != JITDUMP_NONE)
			return (uint32_t)(i + 1) << SOURCE_SHIFT | (entry + 1);
	}
	entry = names->perf_map ? perf_map_find(names->perf_map, address, time_ns) : PERF_MAP_NONE;
	return entry == PERF_MAP_NONE ? 0 : entry + 1;
}

uint64_t jit_names_epoch(struct jit_names *names, uint64_t time_ns)
{
	uint64_t epoch = names->perf_map ? perf_map_epoch(names->perf_map, time_ns) : 0;

	for (size_t i = 0; i < names->jitdumps.count; i++)
		epoch += jitdump_epoch(names->jitdumps.items[i], time_ns);
	return epoch;
}

struct jit_name jit_names_describe(const struct jit_names *names, uint32_t number)
{
	const struct jitdump *dump = dump_of(names, number);
	struct jit_name name = {0};
	struct jitdump_code code;

	if (!dump) {
		name.name = perf_map_name(names->perf_map, entry_of(number), &name.start);
		return name;
	}
	code = jitdump_code(dump, entry_of(number));
	name.name = code.name;
	name.start = code.start;
	name.code = code.bytes;
	name.code_size = code.bytes ? (size_t)code.size : 0;
	return name;
}

const char *jit_names_line(const struct jit_names *names, uint32_t number, uint64_t address, uint32_t *line_ret)
{
	const struct jitdump *dump = dump_of(names, number);
	const char *file = NULL;

	*line_ret = 0;
	return dump && jitdump_line(dump, entry_of(number), address, &file, line_ret) ? file : NULL;
}

const struct cfi_row *jit_names_cfi(struct jit_names *names, uint32_t number, uint64_t address)
{
	struct jitdump *dump = dump_of(names, number);

	return dump ? jitdump_cfi(dump, entry_of(number), address) : NULL;
}

struct jit_names_state jit_names_state(const struct jit_names *names)
{
	struct jit_names_state state = {
	    .has_perf_map = names->perf_map,
	    .has_jitdump = names->jitdumps.count,
	    .dropped_lines = names->perf_map ? perf_map_stats(names->perf_map).dropped : 0,
	    .jitdump_failure = names->jitdump_failure ? mmt_error_get_message(names->jitdump_failure) : NULL,
	};

	for (size_t i = 0; i < names->jitdumps.count; i++) {
		const struct jitdump_stats stats = jitdump_stats(names->jitdumps.items[i]);

		state.other_clock |= stats.other_clock;
		state.lost_records += stats.refused + stats.dropped;
		state.unread_bytes += stats.unread;
	}
	return state;
}
