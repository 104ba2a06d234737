// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/resolver/resolver.h"

/* A number consists of the entry plus one and, in the upper bits, the index of its source. */
#define SOURCE_SHIFT 24
#define ENTRY_MASK ((1u << SOURCE_SHIFT) - 1)

_Static_assert(LIMIT_TIMELINE_RANGES < ENTRY_MASK, "every entry has a number");

/* Either a perf map or a jitdump. */
struct jit_name_source {
	struct perf_map *map;
	uint64_t seen_ns;  /* perf map: when it was first seen, 0: unknown; jitdump: when its program began */
	bool begins_empty; /* the file did not exist before that and has no information about earlier code */
	bool knows_program;
	struct jitdump *dump;
};

struct jit_names {
	VECTOR(struct jit_name_source) items; /* in ascending priority: perf maps by time, then jitdumps */
	struct mmt_error *jitdump_failure;
};

/* The map of a program that began during the recording starts out empty. */
static struct mmt_error *load_perf_map(struct jit_names *names, const struct perf_map_copy *copy)
{
	CLEANUP(free) struct perf_map_step *steps = malloc((copy->growth.count + 1) * sizeof(*steps));
	struct jit_name_source *source = steps ? vector_append(&names->items) : NULL;

	if (!source)
		return &error_no_memory;
	for (size_t i = 0; i < copy->growth.count; i++)
		steps[i] = (struct perf_map_step){.time_ns = copy->growth.items[i].time_ns,
						  .length = copy->growth.items[i].length};
	if (copy->growth.count) {
		source->seen_ns = steps[0].time_ns;
		source->begins_empty = !steps[0].length;
	}
	return perf_map_create(copy->text, copy->text_size, steps, copy->growth.count, &source->map);
}

/* An unreadable jitdump is skipped. */
static struct mmt_error *load_jitdump(struct jit_names *names, const struct reader_metadata *metadata,
				      const struct jitdump_copy *copy)
{
	uint64_t end_ns = metadata->has_loss ? metadata->loss.stop_ns : UINT64_MAX;
	struct jit_name_source *source = vector_append(&names->items);
	struct mmt_error *error;

	if (!source)
		return &error_no_memory;
	*source = (struct jit_name_source){
	    .seen_ns = copy->program_ns, .begins_empty = copy->program_ns > 0, .knows_program = copy->knows_program};
	error = jitdump_create(copy->data, copy->size, end_ns, &source->dump);
	if (!error || error == &error_no_memory)
		return error;
	names->items.count--;
	mmt_error_destroy(names->jitdump_failure);
	names->jitdump_failure = error;
	return NULL;
}

struct mmt_error *jit_names_create(const struct reader_metadata *metadata, int32_t pid, struct jit_names **names_ret)
{
	struct jit_names *names = calloc(1, sizeof(*names));
	struct mmt_error *error = names ? NULL : &error_no_memory;

	for (size_t i = 0; !error && i < metadata->perf_maps.maps.count; i++) {
		if (metadata->perf_maps.maps.items[i].pid == pid && names->items.count < LIMIT_JIT_NAME_SOURCES)
			error = load_perf_map(names, &metadata->perf_maps.maps.items[i]);
	}
	for (size_t i = 0; !error && i < metadata->jitdumps.dumps.count; i++) {
		if (metadata->jitdumps.dumps.items[i].pid == pid && names->items.count < LIMIT_JIT_NAME_SOURCES)
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
	for (size_t i = 0; i < names->items.count; i++) {
		perf_map_destroy(names->items.items[i].map);
		jitdump_destroy(names->items.items[i].dump);
	}
	vector_deinit(&names->items);
	mmt_error_destroy(names->jitdump_failure);
	free(names);
}

static const struct jit_name_source *source_of(const struct jit_names *names, uint32_t number)
{
	return &names->items.items[number >> SOURCE_SHIFT];
}

static uint32_t entry_of(uint32_t number)
{
	return (number & ENTRY_MASK) - 1;
}

static struct named_code code_of(const struct jit_name_source *source, uint32_t entry)
{
	return source->dump ? jitdump_code(source->dump, entry) : perf_map_entry(source->map, entry);
}

/* 0: nothing found, or the entry belongs to an earlier program. */
static uint32_t find_in(const struct jit_name_source *source, uint64_t address, uint64_t time_ns, uint64_t program_ns)
{
	uint64_t from_ns;
	uint32_t entry;

	if (source->begins_empty && time_ns < source->seen_ns)
		return 0;
	/* Independent of the jitdump's clock. */
	if (source->knows_program && source->seen_ns < program_ns)
		return 0;
	entry = source->dump ? jitdump_find(source->dump, address, time_ns)
			     : code_timeline_find(source->map->timeline, address, time_ns);
	if (entry == CODE_TIMELINE_NONE)
		return 0;
	from_ns = code_of(source, entry).from_ns;
	/* The entry was already there when the map was first seen. */
	if (!from_ns && source->map)
		from_ns = source->seen_ns;
	return from_ns && from_ns < program_ns ? 0 : entry + 1;
}

uint32_t jit_names_find(struct jit_names *names, uint64_t address, uint64_t time_ns, uint64_t program_ns)
{
	for (size_t i = names->items.count; i-- > 0;) {
		uint32_t found = find_in(&names->items.items[i], address, time_ns, program_ns);

		if (found)
			return (uint32_t)i << SOURCE_SHIFT | found;
	}
	return 0;
}

uint64_t jit_names_epoch(struct jit_names *names, uint64_t time_ns)
{
	uint64_t epoch = 0;

	array_each(source, names->items.items, names->items.count) {
		epoch += code_timeline_epoch(source->dump ? source->dump->timeline : source->map->timeline, time_ns);
		epoch += time_ns >= source->seen_ns;
	}
	return epoch;
}

struct named_code jit_names_describe(const struct jit_names *names, uint32_t number)
{
	return code_of(source_of(names, number), entry_of(number));
}

const char *jit_names_line(const struct jit_names *names, uint32_t number, uint64_t address, uint32_t *line_ret)
{
	const struct jitdump *dump = source_of(names, number)->dump;
	const char *file = NULL;

	*line_ret = 0;
	return dump && jitdump_line(dump, entry_of(number), address, &file, line_ret) ? file : NULL;
}

const struct cfi_row *jit_names_cfi(struct jit_names *names, uint32_t number, uint64_t address)
{
	struct jitdump *dump = source_of(names, number)->dump;

	return dump ? jitdump_cfi(dump, entry_of(number), address) : NULL;
}

struct jit_names_state jit_names_state(const struct jit_names *names)
{
	struct jit_names_state state = {
	    .jitdump_failure = names->jitdump_failure ? names->jitdump_failure->message : NULL,
	};

	array_each(source, names->items.items, names->items.count) {
		struct jitdump_stats stats = {0};

		state.has_perf_map |= source->map != NULL;
		state.has_jitdump |= source->dump != NULL;
		if (source->map)
			state.dropped_lines += source->map->dropped;
		else
			stats = source->dump->stats;
		state.other_clock |= stats.other_clock;
		state.lost_records += stats.refused + stats.dropped;
		state.unread_bytes += stats.unread;
	}
	return state;
}
