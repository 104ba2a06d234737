// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/growth-parts.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/replay/replay-calls.h"
#include "analysis/report/classes.h"
#include "analysis/report/hints.h"
#include "analysis/report/known-runtimes.h"
#include "analysis/resolver/code-view.h"
#include "base/map.h"

#define ARENA_BYTES (64ULL << 20) /* glibc's malloc reserves this much for an arena, aligned to it */
#define PLACE_SHIFT 60
#define ARENA_BIT (1ULL << 59)
#define JAVA_BIT (1ULL << 58)
#define GO_BIT (1ULL << 57)

/* Address ranges of heaps: HotSpot's with compressed pointers (32 bits), and Go's first TiB. */
#define JAVA_HEAP_START (2ULL << 30)
#define JAVA_HEAP_END (32ULL << 30)
#define GO_HEAP_START 0xc000000000ULL
#define GO_HEAP_END (GO_HEAP_START + (1ULL << 40))

const char *mmt_growth_place_name(enum mmt_growth_place place)
{
	static const char *const names[MMT_GROWTH_PLACES] = {
	    [MMT_GROWTH_MADE] = "made",	    [MMT_GROWTH_COMMITTED] = "committed", [MMT_GROWTH_BEFORE] = "before",
	    [MMT_GROWTH_KERNEL] = "kernel", [MMT_GROWTH_UNMAPPED] = "unmapped",
	};

	return place < MMT_GROWTH_PLACES ? names[place] : "unknown";
}

struct sums {
	const struct replay *replay;
	struct map bytes; /* place and what is mapped there -> int64_t as uint64_t */
	uint64_t start_bytes, end_bytes;
};

/* Iterates over resident runs; requested addresses ascend. */
struct runs {
	const struct process_residency *residency; /* NULL: nothing is resident */
	size_t next;
	uint64_t counted_bytes; /* in all requested ranges */
};

static uint64_t count_resident(struct runs *runs, uint64_t start, uint64_t end)
{
	const struct resident_run *items = runs->residency ? runs->residency->runs.items : NULL;
	size_t count = runs->residency ? runs->residency->runs.count : 0;
	uint64_t bytes = 0;

	while (runs->next < count && items[runs->next].end <= start)
		runs->next++;
	for (size_t i = runs->next; i < count && items[i].start < end; i++) {
		uint64_t from = items[i].start > start ? items[i].start : start;
		uint64_t to = items[i].end < end ? items[i].end : end;

		bytes += to - from;
	}
	runs->counted_bytes += bytes;
	return bytes;
}

static uint64_t count_all(const struct process_residency *residency)
{
	uint64_t bytes = 0;

	for (size_t i = 0; residency && i < residency->runs.count; i++)
		bytes += residency->runs.items[i].end - residency->runs.items[i].start;
	return bytes;
}

static struct mmt_error *add(struct sums *sums, uint64_t key, int64_t bytes)
{
	const uint64_t *sum = map_get(&sums->bytes, key);

	if (!bytes)
		return NULL;
	return map_put(&sums->bytes, key, (sum ? *sum : 0) + (uint64_t)bytes) ? NULL : &error_no_memory;
}

static enum mmt_growth_place find_place(const struct replay *replay, const struct space_interval *interval)
{
	const struct allocation *allocation = ledger_allocation(&replay->ledger, interval->allocation);

	if (allocation && allocation->side != LEDGER_BEFORE)
		return MMT_GROWTH_MADE;
	if (interval->commit >= COMMIT_FIRST)
		return MMT_GROWTH_COMMITTED;
	return interval->allocation == ALLOCATION_KERNEL ? MMT_GROWTH_KERNEL : MMT_GROWTH_BEFORE;
}

/* Whether the interval is the accessible start of 64 MiB of anonymous memory whose rest is reserved. */
static bool is_arena(const struct space *space, const struct space_interval *interval, enum mmt_class memory_class)
{
	uint64_t end = interval->start + ARENA_BYTES;
	const struct space_interval *next;

	if (memory_class != MMT_CLASS_ANON || interval->start % ARENA_BYTES || interval->end > end)
		return false;
	if (interval->end == end)
		return true;
	next = space_next(space, interval->end);
	return next && next->start == interval->end && !next->attributes.protection && next->end >= end;
}

/* A bit of the key; 0: not recognized as the heap of a runtime. */
static uint64_t find_heap(const struct space_interval *interval, enum mmt_class memory_class,
			  const struct runtime *runtime)
{
	if (memory_class != MMT_CLASS_ANON)
		return 0;
	if (interval->start >= GO_HEAP_START && interval->end <= GO_HEAP_END && !runtime)
		return GO_BIT;
	if (interval->start >= JAVA_HEAP_START && interval->end <= JAVA_HEAP_END && runtime &&
	    !strcmp(runtime->name, "java"))
		return JAVA_BIT;
	return 0;
}

static uint64_t make_key(const struct replay *replay, const struct space *space, const struct space_interval *interval,
			 const struct runtime *runtime, enum mmt_growth_place place)
{
	uint32_t kind = replay_calls_kind(replay, interval);
	uint64_t key = (uint64_t)place << PLACE_SHIFT;

	if (place != MMT_GROWTH_BEFORE)
		return key;
	if (is_arena(space, interval, classes_kind_class(kind)))
		return key | ARENA_BIT;
	return key | find_heap(interval, classes_kind_class(kind), runtime) | kind;
}

static const char *name_path(const void *context, uint32_t path)
{
	return code_view_path_name(context, path);
}

static struct mmt_error *add_space(struct sums *sums, const struct process *process, struct runs *start,
				   struct runs *end)
{
	const struct runtime *runtime = runtimes_of_space(process->space, name_path, sums->replay->code);
	const struct space_interval *interval;
	struct mmt_error *error = NULL;

	for (uint64_t address = 0; !error && (interval = space_next(process->space, address));
	     address = interval->end) {
		enum mmt_growth_place place = find_place(sums->replay, interval);
		uint64_t before = place == MMT_GROWTH_MADE ? 0 : count_resident(start, interval->start, interval->end);
		uint64_t after = count_resident(end, interval->start, interval->end);

		/* The kernel does not count huge pages of hugetlbfs. */
		if (!interval->attributes.hugetlb)
			error = add(sums, make_key(sums->replay, process->space, interval, runtime, place),
				    (int64_t)(after - before));
	}
	return error;
}

static const struct process_residency *find_residency(const process_residencies *processes, int32_t pid)
{
	for (size_t i = 0; i < processes->count; i++) {
		if (processes->items[i].pid == pid && processes->items[i].resident_bytes)
			return &processes->items[i];
	}
	return NULL;
}

/* `*known_ret` false: its resident pages at the start or the end are unknown. */
static struct mmt_error *add_process(struct sums *sums, const struct process *process, bool *known_ret)
{
	const struct reader_metadata *metadata = sums->replay->metadata;
	struct runs start = {.residency = find_residency(&metadata->residency.at_start, process->pid)};
	struct runs end = {.residency = find_residency(&metadata->residency.processes, process->pid)};
	bool began_meanwhile = process->parent_pid || metadata->info.command;
	struct mmt_error *error;

	*known_ret = end.residency && (start.residency || began_meanwhile);
	if (!*known_ret)
		return NULL;
	sums->start_bytes += start.residency ? start.residency->resident_bytes : 0;
	sums->end_bytes += end.residency->resident_bytes;
	error = add_space(sums, process, &start, &end);
	return error ? error
		     : add(sums, (uint64_t)MMT_GROWTH_UNMAPPED << PLACE_SHIFT,
			   -(int64_t)(count_all(start.residency) - start.counted_bytes));
}

/* A process that began and ended during the recording has no pages at either time; a child of vfork shares those of its
 * parent. */
static bool is_nothing(const struct replay *replay, const struct process *process)
{
	return process->borrows_space ||
	       (process->ended && !find_residency(&replay->metadata->residency.at_start, process->pid));
}

static struct mmt_error *add_processes(struct sums *sums, const struct rows *rows, bool *known_ret)
{
	struct mmt_error *error = NULL;

	*known_ret = false;
	for (size_t i = 0; !error && i < processes_count(sums->replay->processes); i++) {
		const struct process *process = processes_at(sums->replay->processes, (uint32_t)i);

		if (!rows_selects(rows, process) || is_nothing(sums->replay, process))
			continue;
		*known_ret = !process->ended;
		if (*known_ret)
			error = add_process(sums, process, known_ret);
		if (!*known_ret)
			break;
	}
	return error;
}

static int compare_parts(const void *left, const void *right)
{
	const struct mmt_growth_part *a = left, *b = right;
	int64_t first = a->bytes < 0 ? -a->bytes : a->bytes, second = b->bytes < 0 ? -b->bytes : b->bytes;

	if (first != second)
		return first < second ? 1 : -1;
	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

static enum mmt_pattern find_pattern(const struct mmt_growth_part *part)
{
	if (part->arena)
		return MMT_PATTERN_ARENA;
	if (part->runtime)
		return MMT_PATTERN_GC_HEAP;
	if (part->memory_class == MMT_CLASS_HEAP)
		return MMT_PATTERN_HEAP;
	if (part->memory_class == MMT_CLASS_THREAD_STACK)
		return MMT_PATTERN_THREAD_STACK;
	return patterns_of_shared(part->memory_class, part->name ? part->name : "");
}

static void name_part(const struct replay *replay, uint64_t key, struct mmt_growth_part *part)
{
	uint32_t kind = (uint32_t)key;

	part->place = (enum mmt_growth_place)(key >> PLACE_SHIFT);
	part->order = key;
	part->memory_class = MMT_CLASS_KINDS;
	if (part->place != MMT_GROWTH_BEFORE)
		return;
	part->arena = key & ARENA_BIT;
	part->memory_class = part->arena ? MMT_CLASS_ANON : classes_kind_class(kind);
	if (!part->arena && classes_kind_path(kind))
		part->name = code_view_path_name(replay->code, classes_kind_path(kind));
	if (key & (JAVA_BIT | GO_BIT))
		part->runtime = key & JAVA_BIT ? "Java" : "Go";
	part->pattern = find_pattern(part);
}

/*
 * A running process changes between the reading of its size and that of its pages, which may find new pages in known
 * mappings and miss new mappings. So its growth is known as an interval: what lies outside of it is unexplained.
 */
static void compare_with_sizes(struct mmt_growth *growth, int64_t explained_bytes)
{
	bool sizes_known = growth->start_bytes != MMT_UNKNOWN && growth->end_bytes != MMT_UNKNOWN;
	int64_t start_first = (int64_t)(sizes_known ? growth->start_bytes : growth->pages_start_bytes);
	int64_t end_first = (int64_t)(sizes_known ? growth->end_bytes : growth->pages_end_bytes);
	int64_t start_change = (int64_t)growth->pages_start_bytes - start_first;
	int64_t end_change = (int64_t)growth->pages_end_bytes - end_first;
	int64_t least =
	    end_first - start_first + (end_change < 0 ? end_change : 0) - (start_change > 0 ? start_change : 0);
	int64_t most =
	    end_first - start_first + (end_change > 0 ? end_change : 0) - (start_change < 0 ? start_change : 0);

	growth->unexplained_bytes = explained_bytes < least  ? least - explained_bytes
				    : explained_bytes > most ? most - explained_bytes
							     : 0;
	growth->changing_bytes = end_first - start_first - explained_bytes - growth->unexplained_bytes;
}

static struct mmt_error *publish(const struct sums *sums, struct arena *arena, struct mmt_growth *growth)
{
	struct mmt_growth_part *parts = arena_alloc(arena, sums->bytes.count, sizeof(*parts));
	uint64_t key, bytes;
	int64_t explained_bytes = 0;

	if (!parts)
		return &error_no_memory;
	growth->pages_start_bytes = sums->start_bytes;
	growth->pages_end_bytes = sums->end_bytes;
	for (size_t i = 0; map_next(&sums->bytes, &i, &key, &bytes);) {
		struct mmt_growth_part *part = &parts[growth->part_count];

		if (!bytes)
			continue;
		name_part(sums->replay, key, part);
		if (part->name && !(part->name = arena_string(arena, part->name)))
			return &error_no_memory;
		part->bytes = (int64_t)bytes;
		part->hint = hints_of_growth(part);
		explained_bytes += part->bytes;
		growth->part_count++;
	}
	compare_with_sizes(growth, explained_bytes);
	qsort(parts, growth->part_count, sizeof(*parts), compare_parts);
	growth->parts = parts;
	growth->parts_known = true;
	return NULL;
}

struct mmt_error *growth_parts_build(const struct replay *replay, const struct rows *rows, struct arena *arena,
				     struct mmt_report *report)
{
	struct sums sums = {.replay = replay};
	struct mmt_error *error;
	bool known;

	if (!replay->metadata->has_residency || report->windowed)
		return NULL;
	error = add_processes(&sums, rows, &known);
	if (!error && known)
		error = publish(&sums, arena, &report->growth);
	map_deinit(&sums.bytes);
	return error;
}
