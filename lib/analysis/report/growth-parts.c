// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/report-build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/replay/replay-calls.h"
#include "analysis/report/classes.h"
#include "analysis/report/hints.h"
#include "analysis/report/known-runtimes.h"
#include "analysis/resolver/code-view.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "trace/format/format.h"
#include "trace/read/decode.h"

#define GUARD_BYTES_MAX (64u << 10) /* below a thread's stack */
#define STACK_BYTES_MAX (16u << 20) /* larger ones are merged with what lies above, or no stacks */
#define ARENA_BYTES (64ULL << 20)   /* glibc's malloc reserves this much for an arena, aligned to it */
#define PLACE_SHIFT 60
#define SIZE_MAX_COMPARED (1LL << 59) /* larger ones are not the sizes of real processes */
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

/* Iterates over resident runs; requested addresses ascend. */
struct runs {
	const struct resident_run *items;
	size_t count, next;
	uint64_t counted_bytes; /* in all requested ranges */
};

static uint64_t count_resident(struct runs *runs, uint64_t start, uint64_t end)
{
	uint64_t bytes = 0;

	while (runs->next < runs->count && runs->items[runs->next].end <= start)
		runs->next++;
	for (size_t i = runs->next; i < runs->count && runs->items[i].start < end; i++) {
		uint64_t from = runs->items[i].start > start ? runs->items[i].start : start;
		uint64_t to = runs->items[i].end < end ? runs->items[i].end : end;

		bytes += to - from;
	}
	runs->counted_bytes += bytes;
	return bytes;
}

static uint64_t count_all(const struct runs *runs)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < runs->count; i++)
		bytes += runs->items[i].end - runs->items[i].start;
	return bytes;
}

/* The values of `parts` are int64_t as uint64_t. */
static struct mmt_error *add(struct map *parts, uint64_t key, int64_t bytes)
{
	const uint64_t *sum = map_get(parts, key);

	if (!bytes)
		return NULL;
	return map_put(parts, key, (sum ? *sum : 0) + (uint64_t)bytes) ? NULL : &error_no_memory;
}

static enum mmt_growth_place find_place(const struct replay *replay, const struct space_interval *interval)
{
	const struct allocation *allocation = ledger_allocation(&replay->ledger, interval->allocation);

	if (allocation && allocation->side != LEDGER_BEFORE)
		return MMT_GROWTH_MADE;
	if (interval->commit >= COMMIT_FIRST && interval->commit != replay->ledger.outside_commit)
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

/* Whether its pages that were resident at the start can have been those of this mapping. */
static bool is_older(const struct replay *replay, const struct space_interval *interval, uint64_t start_ns)
{
	const struct allocation *allocation = ledger_allocation(&replay->ledger, interval->allocation);

	return !allocation || allocation->side == LEDGER_BEFORE || allocation->time_ns < start_ns;
}

/* From the start's pages to those of `end`, by what they belong to in the model as it is now. */
static struct mmt_error *count_parts(struct process_pages *pages, const struct replay *replay,
				     const struct process *process, struct runs end)
{
	const struct runtime *runtime = runtimes_of_space(process->space, name_path, replay->code);
	struct runs start = {.items = pages->start.items, .count = pages->start.count};
	const struct space_interval *interval;
	struct mmt_error *error = NULL;

	for (uint64_t address = 0; !error && (interval = space_next(process->space, address));
	     address = interval->end) {
		enum mmt_growth_place place = find_place(replay, interval);
		uint64_t before = is_older(replay, interval, pages->start_ns)
				      ? count_resident(&start, interval->start, interval->end)
				      : 0;
		uint64_t after = count_resident(&end, interval->start, interval->end);

		/* The kernel does not count huge pages of hugetlbfs. */
		if (!interval->attributes.hugetlb)
			error = add(&pages->parts, make_key(replay, process->space, interval, runtime, place),
				    (int64_t)(after - before));
	}
	return error ? error
		     : add(&pages->parts, (uint64_t)MMT_GROWTH_UNMAPPED << PLACE_SHIFT,
			   (int64_t)(start.counted_bytes - count_all(&start)));
}

/* The readings of a process */

static uint64_t distance(uint64_t left, uint64_t right)
{
	return left > right ? left - right : right - left;
}

/* What it had when the recording, or the process itself, began. */
static void set_first_start(struct process_pages *pages, const struct replay *replay, const struct process *process)
{
	const struct process_residency *residency =
	    recording_residency_at_start(&replay->metadata->residency, process->pid);

	if (residency && residency->resident_bytes && !process->started_ns) {
		pages->start = (struct page_runs){residency->runs.items, residency->runs.count};
		pages->start_bytes = residency->resident_bytes;
		pages->start_ns = residency->time_ns;
		pages->start_known = true;
	} else if (process->parent_pid || replay->metadata->info.command) {
		pages->start_ns = process->started_ns ? process->started_ns : replay->first_ns;
		pages->start_known = true;
	}
}

static struct mmt_error *find_pages(struct page_readings *readings, const struct replay *replay,
				    const struct process *process, struct process_pages **pages_ret)
{
	const uint64_t *place = map_get(&readings->places, process->index);
	struct process_pages *pages;

	*pages_ret = place ? &readings->items.items[*place] : NULL;
	if (place)
		return NULL;
	if (!map_put(&readings->places, process->index, readings->items.count))
		return &error_no_memory;
	pages = vector_append(&readings->items);
	if (!pages)
		return &error_no_memory;
	pages->process = process->index;
	set_first_start(pages, replay, process);
	*pages_ret = pages;
	return NULL;
}

static void forget_end(struct process_pages *pages)
{
	map_deinit(&pages->parts);
	resident_sums_deinit(&pages->resident);
	pages->end_known = pages->parts_known = false;
}

static bool is_nearer_start(const struct page_readings *readings, const struct replay *replay,
			    const struct process_pages *pages, uint64_t time_ns)
{
	uint64_t from_ns = replay->window.from_ns;

	return readings->rows->options->from.kind != MMT_TIMESTAMP_DEFAULT &&
	       (!pages->start_known ||
		(pages->start_ns < from_ns && distance(time_ns, from_ns) <= distance(pages->start_ns, from_ns)));
}

/* A complete reading: all pages of the process at `time_ns`, up to which the model is. `is_replaced`: no parts are
 * needed, as there is a reading of the end, too. */
static struct mmt_error *take_reading(struct page_readings *readings, struct process_pages *pages,
				      const struct replay *replay, struct page_runs runs, uint64_t time_ns,
				      uint64_t resident_bytes, bool is_replaced)
{
	const struct process *process = processes_at(replay->processes, pages->process);
	struct mmt_error *error;

	forget_end(pages);
	error = resident_sums_add(&pages->resident, replay, readings->rows, process, runs.items, runs.count);
	pages->resident.time_ns = time_ns;
	pages->end_known = true;
	pages->end_bytes = resident_bytes;
	pages->parts_known = !is_replaced && pages->start_known && resident_bytes;
	if (!error && pages->parts_known)
		error = count_parts(pages, replay, process, (struct runs){.items = runs.items, .count = runs.count});
	return error;
}

/* The runs that were received become the start of the window. */
static void use_as_start(struct page_readings *readings, struct process_pages *pages, uint64_t time_ns,
			 uint64_t resident_bytes)
{
	readings->run_count -= pages->own_start.count;
	vector_deinit(&pages->own_start);
	/* receive() has counted them. */
	pages->own_start.items = pages->incoming.items;
	pages->own_start.count = pages->incoming.count;
	pages->own_start.capacity = pages->incoming.capacity;
	pages->incoming.items = NULL;
	pages->incoming.count = pages->incoming.capacity = 0;
	pages->start = (struct page_runs){pages->own_start.items, pages->own_start.count};
	pages->start_bytes = resident_bytes;
	pages->start_ns = time_ns;
	pages->start_known = true;
	map_deinit(&pages->parts);
	pages->parts_known = false;
}

/* The records are untrusted: ignore a reading whose runs do not ascend or exceed the limit. */
static bool receive(struct page_readings *readings, struct process_pages *pages, const struct event *event)
{
	const uint8_t *runs = event->pages.runs;

	if (event->pages.reading != pages->reading) {
		readings->run_count -= pages->incoming.count;
		pages->incoming.count = 0;
		pages->invalid = false;
		pages->reading = event->pages.reading;
		pages->time_ns = event->time_ns;
	}
	for (size_t i = 0; !pages->invalid && i < event->pages.run_count; i++) {
		size_t count = pages->incoming.count;
		struct resident_run run = {decode_word(runs, 2 * i), decode_word(runs, 2 * i + 1)};

		pages->invalid = run.start >= run.end || run.end > LIMIT_RESIDENT_BYTES ||
				 readings->run_count >= LIMIT_RESIDENT_RUNS ||
				 (count && run.start < pages->incoming.items[count - 1].end);
		if (!pages->invalid && !vector_push(&pages->incoming, run))
			return false;
		readings->run_count += !pages->invalid;
	}
	return true;
}

/* What the rows have of the latest readings of the processes that are alive. */
static uint64_t sum_latest(const struct page_readings *readings, const struct replay *replay)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < readings->items.count; i++) {
		if (!processes_at(replay->processes, readings->items.items[i].process)->ended)
			bytes += resident_sums_bytes(&readings->items.items[i].resident, replay, readings->rows);
	}
	return bytes;
}

static bool has_final(const struct replay *replay, const struct process *process)
{
	return replay->metadata->has_residency && !replay->window.ends_early &&
	       recording_residency_at_end(&replay->metadata->residency, process->pid);
}

static struct mmt_error *take_event(void *context, struct replay *replay, const struct event *event)
{
	const struct process *process = processes_find(replay->processes, event->pid);
	struct page_readings *readings = context;
	struct process_pages *pages;
	struct mmt_error *error;

	if (!process || process->ended || process->borrows_space)
		return NULL;
	error = find_pages(readings, replay, process, &pages);
	if (error)
		return error;
	if (!receive(readings, pages, event))
		return &error_no_memory;
	if (!event->pages.last)
		return NULL;
	if (!pages->invalid) {
		uint64_t bytes = event->pages.resident_bytes < LIMIT_RESIDENT_BYTES ? event->pages.resident_bytes
										    : LIMIT_RESIDENT_BYTES;

		error = take_reading(readings, pages, replay,
				     (struct page_runs){pages->incoming.items, pages->incoming.count}, pages->time_ns,
				     bytes, has_final(replay, process));
		if (is_nearer_start(readings, replay, pages, pages->time_ns))
			use_as_start(readings, pages, pages->time_ns, bytes);
		readings->latest_ns = pages->time_ns;
		readings->latest_bytes = sum_latest(readings, replay);
	}
	readings->run_count -= pages->incoming.count;
	pages->incoming.count = 0;
	pages->reading = 0;
	return error;
}

void page_readings_watch(struct page_readings *readings, const struct rows *rows, struct replay *replay)
{
	*readings = (struct page_readings){.rows = rows};
	replay->watch.pages = take_event;
	replay->watch.pages_context = readings;
}

void page_readings_deinit(struct page_readings *readings)
{
	for (size_t i = 0; i < readings->items.count; i++) {
		struct process_pages *pages = &readings->items.items[i];

		forget_end(pages);
		vector_deinit(&pages->incoming);
		vector_deinit(&pages->own_start);
	}
	vector_deinit(&readings->items);
	map_deinit(&readings->places);
	resident_sums_deinit(&readings->resident);
}

/* Those of the end of the recording are in a section of their own. */
static struct mmt_error *take_final(struct page_readings *readings, const struct replay *replay)
{
	struct mmt_error *error = NULL;

	if (!replay->metadata->has_residency || replay->window.ends_early)
		return NULL;
	for (size_t i = 0; !error && i < processes_count(replay->processes); i++) {
		const struct process *process = processes_at(replay->processes, (uint32_t)i);
		const struct process_residency *final =
		    process->ended ? NULL : recording_residency_at_end(&replay->metadata->residency, process->pid);
		struct process_pages *pages;

		if (!final)
			continue;
		error = find_pages(readings, replay, process, &pages);
		if (error)
			break;
		if (process->borrows_space) {
			pages->resident.pages_bytes =
			    count_all(&(struct runs){.items = final->runs.items, .count = final->runs.count});
			pages->resident.time_ns = final->time_ns;
			pages->resident.at_end = pages->end_known = true;
			continue;
		}
		error = take_reading(readings, pages, replay, (struct page_runs){final->runs.items, final->runs.count},
				     final->time_ns, final->resident_bytes, false);
		pages->resident.at_end = true;
	}
	return error;
}

/* A reading from before the window does not show what was resident in it. */
static void forget_earlier(struct page_readings *readings, const struct replay *replay)
{
	for (size_t i = 0; i < readings->items.count; i++) {
		struct process_pages *pages = &readings->items.items[i];

		if (pages->end_known && pages->resident.time_ns < replay->window.from_ns)
			forget_end(pages);
	}
}

struct mmt_error *page_readings_end(struct page_readings *readings, const struct replay *replay)
{
	struct mmt_error *error;
	bool at_end = true;

	forget_earlier(readings, replay);
	error = take_final(readings, replay);
	readings->known = replay->metadata->has_residency && !replay->window.ends_early;
	for (size_t i = 0; !error && i < readings->items.count; i++) {
		const struct process_pages *pages = &readings->items.items[i];

		if (!pages->end_known || processes_at(replay->processes, pages->process)->ended)
			continue;
		readings->known = true;
		at_end &= pages->resident.at_end;
		error = resident_sums_merge(&readings->resident, &pages->resident);
	}
	readings->resident.at_end = at_end;
	return error;
}

const struct resident_sums *page_readings_of_process(const struct page_readings *readings,
						     const struct process *process)
{
	const uint64_t *place = process->ended ? NULL : map_get(&readings->places, process->index);

	return place && readings->items.items[*place].end_known ? &readings->items.items[*place].resident : NULL;
}

void resident_sums_limit(const struct resident_sums *sums, uint64_t *resident_bytes, uint64_t committed_bytes)
{
	if (sums && !sums->at_end && *resident_bytes > committed_bytes)
		*resident_bytes = committed_bytes;
}

void resident_sums_limit_parts(const struct resident_sums *sums, struct lifetimes *lifetimes)
{
	for (size_t i = 0; i < lifetimes->parts.count; i++) {
		struct lifetime_part *part = &lifetimes->parts.items[i];

		resident_sums_limit(sums, &part->resident_bytes, part->committed_bytes);
		resident_sums_limit(sums, &part->resident_before_bytes, part->committed_before_bytes);
	}
}

/* Where RSS grew, of all selected processes */

struct sums {
	const struct replay *replay;
	struct map bytes; /* of a place and what is mapped there: int64_t as uint64_t */
	uint64_t start_bytes, end_bytes;
	uint64_t start_ns, end_ns; /* of the earliest reading of each; 0: not known */
	bool at_end;		   /* the pages of all processes were read when recording ended */
};

static uint64_t earlier(uint64_t left, uint64_t right)
{
	return !left || (right && right < left) ? right : left;
}

static struct mmt_error *add_process(struct sums *sums, const struct process_pages *pages)
{
	struct mmt_error *error = NULL;
	size_t position = 0;
	uint64_t key, bytes;

	sums->start_bytes += pages->start_bytes;
	sums->end_bytes += pages->end_bytes;
	sums->start_ns = earlier(sums->start_ns, pages->start_ns);
	sums->end_ns = earlier(sums->end_ns, pages->resident.time_ns);
	sums->at_end &= pages->resident.at_end;
	while (!error && map_next(&pages->parts, &position, &key, &bytes))
		error = add(&sums->bytes, key, (int64_t)bytes);
	return error;
}

/* A process that began and ended during the recording, or began after the last reading, has no pages at either time; a
 * child of vfork shares those of its parent. */
static bool is_nothing(const struct page_readings *readings, const struct replay *replay, const struct process *process,
		       const struct process_pages *pages)
{
	if (process->borrows_space)
		return true;
	if (process->ended)
		return process->ended_ns <= replay->window.from_ns ||
		       !(pages ? pages->start.count != 0
			       : recording_residency_at_start(&replay->metadata->residency, process->pid) != NULL);
	return replay->window.ends_early && !pages && process->started_ns > readings->latest_ns;
}

static struct mmt_error *add_processes(struct sums *sums, const struct page_readings *readings, bool *known_ret)
{
	struct mmt_error *error = NULL;

	*known_ret = false;
	for (size_t i = 0; !error && i < processes_count(sums->replay->processes); i++) {
		const struct process *process = processes_at(sums->replay->processes, (uint32_t)i);
		const uint64_t *place = map_get(&readings->places, process->index);
		const struct process_pages *pages = place ? &readings->items.items[*place] : NULL;

		if (!rows_selects(readings->rows, process) || is_nothing(readings, sums->replay, process, pages))
			continue;
		*known_ret = !process->ended && pages && pages->parts_known;
		if (!*known_ret)
			break;
		error = add_process(sums, pages);
	}
	return error;
}

uint64_t growth_part_size(const struct mmt_growth_part *part)
{
	return part->bytes < 0 ? -(uint64_t)part->bytes : (uint64_t)part->bytes;
}

static int compare_parts(const void *left, const void *right)
{
	const struct mmt_growth_part *a = left, *b = right;
	uint64_t first = growth_part_size(a), second = growth_part_size(b);

	if (first != second)
		return first < second ? 1 : -1;
	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

enum mmt_pattern growth_pattern(const struct mmt_growth_part *part)
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
	part->pattern = growth_pattern(part);
}

/* No sum of a few of these overflows. */
static int64_t limit_size(uint64_t bytes)
{
	return bytes < SIZE_MAX_COMPARED ? (int64_t)bytes : SIZE_MAX_COMPARED;
}

/*
 * A running process changes between the reading of its size and that of its pages, which may find new pages in known
 * mappings and miss new mappings. So its growth is known as an interval: what lies outside of it is unexplained.
 */
static void compare_with_sizes(struct mmt_growth *growth, int64_t explained_bytes)
{
	bool sizes_known =
	    growth->pages_at_ends && growth->start_bytes != MMT_UNKNOWN && growth->end_bytes != MMT_UNKNOWN;
	int64_t start_first = limit_size(sizes_known ? growth->start_bytes : growth->pages_start_bytes);
	int64_t end_first = limit_size(sizes_known ? growth->end_bytes : growth->pages_end_bytes);
	int64_t start_change = limit_size(growth->pages_start_bytes) - start_first;
	int64_t end_change = limit_size(growth->pages_end_bytes) - end_first;
	int64_t least =
	    end_first - start_first + (end_change < 0 ? end_change : 0) - (start_change > 0 ? start_change : 0);
	int64_t most =
	    end_first - start_first + (end_change > 0 ? end_change : 0) - (start_change < 0 ? start_change : 0);

	if (explained_bytes > SIZE_MAX_COMPARED || explained_bytes < -SIZE_MAX_COMPARED)
		explained_bytes = explained_bytes < 0 ? -SIZE_MAX_COMPARED : SIZE_MAX_COMPARED;
	growth->unexplained_bytes = explained_bytes < least  ? least - explained_bytes
				    : explained_bytes > most ? most - explained_bytes
							     : 0;
	growth->changing_bytes = end_first - start_first - explained_bytes - growth->unexplained_bytes;
}

static struct mmt_error *publish(const struct sums *sums, struct arena *arena, bool windowed, struct mmt_growth *growth)
{
	struct mmt_growth_part *parts = arena_alloc(arena, sums->bytes.count, sizeof(*parts));
	uint64_t key, bytes;
	uint64_t explained_bytes = 0; /* int64_t as uint64_t */

	if (!parts)
		return &error_no_memory;
	growth->pages_start_bytes = sums->start_bytes;
	growth->pages_end_bytes = sums->end_bytes;
	growth->pages_start_ns = sums->start_ns;
	growth->pages_end_ns = sums->end_ns;
	growth->pages_at_ends = !windowed && sums->at_end;
	for (size_t i = 0; map_next(&sums->bytes, &i, &key, &bytes);) {
		struct mmt_growth_part *part = &parts[growth->part_count];

		if (!bytes)
			continue;
		name_part(sums->replay, key, part);
		if (part->name && !(part->name = arena_string(arena, part->name)))
			return &error_no_memory;
		part->bytes = (int64_t)bytes;
		part->hint = hints_of_growth(part);
		explained_bytes += bytes;
		growth->part_count++;
	}
	compare_with_sizes(growth, (int64_t)explained_bytes);
	qsort(parts, growth->part_count, sizeof(*parts), compare_parts);
	growth->parts = parts;
	growth->parts_known = true;
	return NULL;
}

struct mmt_error *growth_parts_build(const struct page_readings *readings, const struct replay *replay,
				     struct arena *arena, struct mmt_report *report)
{
	struct sums sums = {.replay = replay, .at_end = true};
	struct mmt_error *error;
	bool known;

	/* The rows leave out what is too recent, so they do not show all of what was made. */
	if (!readings->known || replay->window.allocations_to_ns != UINT64_MAX)
		return NULL;
	error = add_processes(&sums, readings, &known);
	if (!error && known)
		error = publish(&sums, arena, report->windowed, &report->growth);
	map_deinit(&sums.bytes);
	return error;
}

void resident_kinds_deinit(struct resident_kinds *kinds)
{
	intern_deinit(&kinds->keys);
	for (size_t i = 0; i < kinds->items.count; i++)
		free((char *)kinds->items.items[i].name);
	vector_deinit(&kinds->items);
	map_deinit(&kinds->started);
}

/* Accessible memory above an inaccessible page or a few, which libraries put below a thread's stack. */
static bool is_above_guard(const struct space_interval *interval, const struct space_interval *below)
{
	return below && below->end == interval->start && !below->attributes.protection && !below->attributes.inode &&
	       !below->attributes.shared && below->end - below->start <= GUARD_BYTES_MAX &&
	       interval->attributes.protection && !interval->attributes.shared &&
	       interval->end - interval->start <= STACK_BYTES_MAX;
}

/* What the calls of one recording show must not count: the other recording has not seen them. */
static enum mmt_class class_in_maps(const struct space_interval *interval, const struct space_interval *below,
				    const char *path)
{
	struct space_interval plain = *interval;
	enum mmt_class memory_class;

	plain.attributes.thread_stack = false;
	plain.attributes.noreserve = false;
	plain.attributes.hugetlb = 0;
	memory_class = classes_of_interval(&plain, path);
	return memory_class == MMT_CLASS_ANON && is_above_guard(interval, below) ? MMT_CLASS_THREAD_STACK
										 : memory_class;
}

/* A file may be deleted between two recordings. */
static char *copy_name(const char *path)
{
	const char *deleted = strstr(path, " (deleted)");

	return deleted && !strcmp(deleted, " (deleted)") ? strndup(path, (size_t)(deleted - path)) : strdup(path);
}

static struct mmt_resident_kind *find_kind(struct resident_kinds *kinds, const struct mmt_resident_kind *kind,
					   const char *path)
{
	CLEANUP(free) char *name = copy_name(path);
	CLEANUP(free) char *key = NULL;
	struct mmt_resident_kind *held;
	uint32_t id;

	if (!name || asprintf(&key, "%d %d %s %s", (int)kind->memory_class, kind->arena,
			      kind->runtime ? kind->runtime : "-", name) < 0) {
		key = NULL;
		return NULL;
	}
	id = intern_put_string(&kinds->keys, key);
	if (id == INTERN_NONE)
		return NULL;
	if (id < kinds->items.count)
		return &kinds->items.items[id];
	held = vector_append(&kinds->items);
	if (!held)
		return NULL;
	*held = *kind;
	if (*name) {
		held->name = name;
		name = NULL;
	}
	return held;
}

/* Where an arena begins in the interval; its end: nowhere. Other memory may lie right below, in one interval with it.
 */
static uint64_t find_arena(const struct space *space, const struct space_interval *interval,
			   enum mmt_class memory_class)
{
	struct space_interval last = *interval;

	last.start = (interval->end - 1) / ARENA_BYTES * ARENA_BYTES;
	if (memory_class == MMT_CLASS_THREAD_STACK)
		memory_class = MMT_CLASS_ANON;
	return last.start >= interval->start && is_arena(space, &last, memory_class) ? last.start : interval->end;
}

static struct mmt_error *hold_piece(struct resident_kinds *kinds, const struct mmt_resident_kind *kind,
				    const char *path, uint64_t bytes, bool at_start)
{
	struct mmt_resident_kind *held;

	if (!bytes)
		return NULL;
	held = find_kind(kinds, kind, kind->memory_class == MMT_CLASS_FILE ? path : "");
	if (!held)
		return &error_no_memory;
	*(at_start ? &held->start_bytes : &held->end_bytes) += bytes;
	return NULL;
}

static struct mmt_error *hold(struct resident_kinds *kinds, const struct replay *replay, const struct process *process,
			      const struct process_residency *residency, bool at_start)
{
	static const struct mmt_resident_kind arenas = {.memory_class = MMT_CLASS_ANON, .arena = true};
	const struct runtime *runtime = runtimes_of_space(process->space, name_path, replay->code);
	const struct space_interval *interval, *below = NULL;
	struct runs runs = {.items = residency->runs.items, .count = residency->runs.count};
	struct mmt_error *error = NULL;

	for (uint64_t address = 0; !error && (interval = space_next(process->space, address));
	     address = interval->end) {
		const char *path =
		    interval->attributes.path ? code_view_path_name(replay->code, interval->attributes.path) : "";
		struct mmt_resident_kind kind = {.memory_class = class_in_maps(interval, below, path)};
		uint64_t arena = find_arena(process->space, interval, kind.memory_class);
		uint64_t heap = find_heap(interval, kind.memory_class, runtime);
		uint64_t bytes = count_resident(&runs, interval->start, arena);
		uint64_t arena_bytes = count_resident(&runs, arena, interval->end);

		below = interval;
		if (interval->attributes.hugetlb)
			continue;
		kind.runtime = !heap ? NULL : heap == JAVA_BIT ? "Java" : "Go";
		error = hold_piece(kinds, &kind, path, bytes, at_start);
		if (!error)
			error = hold_piece(kinds, &arenas, path, arena_bytes, at_start);
	}
	return error;
}

struct mmt_error *resident_kinds_start(void *context, const struct replay *replay, const struct process *process)
{
	const struct process_residency *residency =
	    recording_residency_at_start(&replay->metadata->residency, process->pid);
	struct resident_kinds *kinds = context;

	if (!residency || map_get(&kinds->started, (uint32_t)process->pid))
		return NULL;
	if (!map_put(&kinds->started, (uint32_t)process->pid, 1))
		return &error_no_memory;
	return hold(kinds, replay, process, residency, true);
}

/* A process that existed when recording began must have a reading of the start; one that is alive at the end must have
 * a reading of the end. */
static struct mmt_error *hold_end(struct resident_kinds *kinds, const struct replay *replay, const struct rows *rows,
				  struct mmt_growth *growth)
{
	growth->kinds_at_start = growth->kinds_at_end = true;
	for (size_t i = 0; i < processes_count(replay->processes); i++) {
		const struct process *process = processes_at(replay->processes, (uint32_t)i);
		const struct process_residency *end =
		    recording_residency_at_end(&replay->metadata->residency, process->pid);
		struct mmt_error *error;

		if (!rows_selects(rows, process))
			growth->kinds_at_start = false;
		else if (!process->parent_pid &&
			 !recording_residency_at_start(&replay->metadata->residency, process->pid))
			growth->kinds_at_start = false;
		if (process->borrows_space || process->ended || !rows_selects(rows, process))
			continue;
		growth->kinds_at_end &= end != NULL;
		error = end ? hold(kinds, replay, process, end, false) : NULL;
		if (error)
			return error;
	}
	return NULL;
}

struct mmt_error *resident_kinds_build(struct resident_kinds *kinds, const struct replay *replay,
				       const struct rows *rows, struct mmt_report *report)
{
	struct mmt_error *error;

	if (!replay->metadata->has_residency || report->windowed)
		return NULL;
	error = hold_end(kinds, replay, rows, &report->growth);
	report->growth.kinds_at_start &= kinds->started.count > 0;
	report->growth.kinds = kinds->items.items;
	report->growth.kind_count = kinds->items.count;
	return error;
}
