// SPDX-License-Identifier: LGPL-2.1-or-later
/* How malloc heaps grew between two censuses, and which kinds of blocks did. */
#include "analysis/report/report-build.h"

#define ONE_SIZE_SHARE 0.75	    /* of the growth of near sizes: one size with more stands for itself */
#define ONE_BLOCK_BYTES (64u << 10) /* smaller blocks are not taken for a growing table */
#define LEVEL_SHARE 20		    /* changes of less than 1/this of a heap are noise */
#define LEVEL_BYTES (256u << 10)    /* as are smaller ones */
#define CENSUSES_MIN 3		    /* fewer show no trend */
#define PIDS_CHECKED 16		    /* of a row */

/* A program that starts in the recording has an empty heap. */
static const struct mmt_heap_census empty;

static bool is_walked(const struct mmt_heap_census *census)
{
	return (census->result >= MMT_HEAP_COMPLETE && census->result <= MMT_HEAP_DAMAGED) ||
	       census->result == MMT_HEAP_CHANGING;
}

static int64_t growth_of(const struct mmt_heap_kind *kind)
{
	return (int64_t)(kind->end_bytes - kind->start_bytes);
}

/* Text, and blocks of which nothing but the size is known. */
static bool has_sizes_only(const struct mmt_heap_kind *kind)
{
	return kind->content == MMT_HEAP_UNKNOWN || kind->content == MMT_HEAP_TEXT;
}

/* The octave of the size, which near sizes share. */
static unsigned octave(const struct mmt_heap_kind *kind)
{
	return 64 - (unsigned)__builtin_clzll(kind->largest_bytes | 1);
}

/* Objects of one type or module are together, and of the others those of one octave. */
COMPARISON(compare_near, struct mmt_heap_kind,
	   order_of(a->content, b->content)
	   ?: has_sizes_only(a)
		  ? order_of(octave(a), octave(b))
		  : strcmp(a->name ?: "", b->name ?: "") ?: order_of(a->offset, b->offset))

COMPARISON(compare_sizes, struct mmt_heap_kind,
	   compare_near(a, b) ?: order_of(a->smallest_bytes, b->smallest_bytes)
	   ?: order_of(a->largest_bytes, b->largest_bytes))

COMPARISON(compare_growth, struct mmt_heap_kind,
	   order_of(growth_of(b), growth_of(a)) ?: order_of(b->end_bytes, a->end_bytes) ?: compare_sizes(a, b))

static void add_kind(struct mmt_heap_kind *sum, const struct mmt_heap_kind *kind)
{
	sum->smallest_bytes = smaller_of(sum->smallest_bytes, kind->smallest_bytes);
	sum->largest_bytes = larger_of(sum->largest_bytes, kind->largest_bytes);
	sum->start_count += kind->start_count;
	sum->start_bytes += kind->start_bytes;
	sum->end_count += kind->end_count;
	sum->end_bytes += kind->end_bytes;
	sum->after_free_count += kind->after_free_count;
	sum->after_free_bytes += kind->after_free_bytes;
}

static void add_group(struct mmt_heap_kind *kinds, size_t *count, const struct mmt_heap_group *group, bool at_end)
{
	struct mmt_heap_kind *kind = &kinds[(*count)++];

	*kind = (struct mmt_heap_kind){.content = group->content,
				       .name = group->name,
				       .offset = group->offset,
				       .smallest_bytes = group->smallest_bytes,
				       .largest_bytes = group->largest_bytes};
	*(at_end ? &kind->end_count : &kind->start_count) = group->count;
	*(at_end ? &kind->end_bytes : &kind->start_bytes) = group->bytes;
	if (at_end) {
		kind->after_free_count = group->after_free_count;
		kind->after_free_bytes = group->after_free_bytes;
	}
}

/* Join near sizes, but for one that most of their growth has. */
static size_t join_near(struct mmt_heap_kind *kinds, size_t count)
{
	size_t joined = 0, next;

	for (size_t first = 0; first < count; first = next) {
		uint64_t sum = 0;
		size_t most = first;

		for (next = first; next < count && !compare_near(&kinds[first], &kinds[next]); next++) {
			sum += magnitude_of(growth_of(&kinds[next]));
			if (magnitude_of(growth_of(&kinds[next])) > magnitude_of(growth_of(&kinds[most])))
				most = next;
		}
		if (has_sizes_only(&kinds[first]) &&
		    (double)magnitude_of(growth_of(&kinds[most])) >= ONE_SIZE_SHARE * (double)sum) {
			struct mmt_heap_kind alone = kinds[most];

			kinds[most] = kinds[first];
			kinds[joined++] = alone;
			first++;
		}
		if (first == next)
			continue;
		kinds[joined] = kinds[first];
		while (++first < next)
			add_kind(&kinds[joined], &kinds[first]);
		joined++;
	}
	return joined;
}

/* A table is reallocated as it grows: one large block that is new, and one of the largest that are gone. */
static size_t find_tables(struct mmt_heap_kind *kinds, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct mmt_heap_kind *grown = &kinds[i], *before = NULL;

		if (grown->content != MMT_HEAP_UNKNOWN || grown->end_count != 1 || grown->start_count > 1 ||
		    grown->end_bytes < grown->start_bytes + ONE_BLOCK_BYTES)
			continue;
		grown->is_one_block = true;
		for (size_t j = 0; !grown->start_count && j < count; j++) {
			if (kinds[j].content == MMT_HEAP_UNKNOWN && !kinds[j].end_count && kinds[j].start_count == 1 &&
			    kinds[j].start_bytes < grown->end_bytes &&
			    (!before || kinds[j].start_bytes > before->start_bytes))
				before = &kinds[j];
		}
		if (!before)
			continue;
		grown->start_count = 1;
		grown->start_bytes = before->start_bytes;
		*before = kinds[--count];
		i = (size_t)-1; /* the last one may have moved before this one */
	}
	return count;
}

/* `space`: of the process; NULL: unknown. */
static struct mmt_error *find_kinds(struct resolver *code, const struct space *space, struct mmt_heap *heap,
				    struct arena *arena)
{
	size_t most = heap->end->group_count + (heap->start ? heap->start->group_count : 0), count = 0, joined = 0;
	struct mmt_heap_kind *kinds = arena_alloc(arena, most, sizeof(*kinds));

	if (!kinds)
		return &error_no_memory;
	for (size_t i = 0; i < heap->end->group_count; i++)
		add_group(kinds, &count, &heap->end->groups[i], true);
	for (size_t i = 0; heap->start && i < heap->start->group_count; i++)
		add_group(kinds, &count, &heap->start->groups[i], false);
	qsort(kinds, count, sizeof(*kinds), compare_sizes);
	for (size_t i = 0; i < count; i++) {
		if (joined && !compare_sizes(&kinds[joined - 1], &kinds[i]))
			add_kind(&kinds[joined - 1], &kinds[i]);
		else
			kinds[joined++] = kinds[i];
	}
	count = find_tables(kinds, join_near(kinds, joined));
	qsort(kinds, count, sizeof(*kinds), compare_growth);
	for (size_t i = 0; i < count; i++) {
		const char *name = kinds[i].name, *type = NULL;

		/* Without type information, a vtable may have a symbol. */
		if (kinds[i].content == MMT_HEAP_POINTER && space && i < LIMIT_HEAP_TYPES)
			type = resolver_vtable_type(code, space, name, kinds[i].offset);
		if (type) {
			kinds[i].content = MMT_HEAP_TYPE;
			kinds[i].offset = 0;
			name = type;
		}
		if (kinds[i].content == MMT_HEAP_TYPE)
			name = modules_type_name(resolver_modules(code), name);
		kinds[i].name = *name ? arena_string(arena, name) : NULL;
		if (*name && !kinds[i].name)
			return &error_no_memory;
	}
	heap->kinds = kinds;
	heap->kind_count = count;
	return NULL;
}

/* A process whose censuses are compared. */
struct heap_trend {
	size_t in_use_grew, free_grew;
	uint64_t free_low, free_high, in_use_low, in_use_high;
};

static enum mmt_heap_verdict judge(const struct mmt_heap *heap, const struct heap_trend *trend)
{
	uint64_t noise = heap->end->mapped_bytes / LEVEL_SHARE;
	uint64_t in_use = trend->in_use_high - trend->in_use_low, free_bytes = trend->free_high - trend->free_low;

	noise = larger_of(noise, LEVEL_BYTES);
	if (heap->census_count < CENSUSES_MIN)
		return MMT_HEAP_NO_VERDICT;
	if (in_use <= noise && free_bytes <= noise)
		return MMT_HEAP_LEVEL;
	if (in_use > noise && trend->in_use_grew == heap->census_count - 1)
		return MMT_HEAP_IN_USE_GROWS;
	if (free_bytes > noise && trend->free_grew == heap->census_count - 1)
		return MMT_HEAP_FREE_GROWS;
	return MMT_HEAP_NO_VERDICT;
}

typedef VECTOR(const struct mmt_heap_census *) censuses;

/* Those of a process follow each other. */
COMPARISON(compare_processes, const struct mmt_heap_census *,
	   order_of((*a)->pid, (*b)->pid) ?: order_of((*a)->time_ns, (*b)->time_ns))

/* A census that belongs to another program of the process does not count. */
static bool is_of(const struct process *process, const struct mmt_heap_census *census)
{
	return census->time_ns >= process->program_ns && !(process->ended && census->time_ns > process->ended_ns);
}

static size_t first_of(const censuses *sorted, const struct process *process)
{
	return partition_point(sorted->count, i, sorted->items[i]->pid < process->pid);
}

static struct mmt_error *sort_censuses(const struct rows *rows, censuses *sorted)
{
	const struct heap_censuses *recorded = &rows->replay->metadata->heaps;

	if (array_find(census, recorded->items.items, recorded->items.count, !vector_push(sorted, census)))
		return &error_no_memory;
	vector_sort(sorted, compare_processes);
	return NULL;
}

static void add_to_steps(const censuses *sorted, const struct process *process, const struct mmt_report *report,
			 struct mmt_step *steps)
{
	const struct mmt_heap_census *last = NULL;
	size_t next = first_of(sorted, process);

	if (next == sorted->count || sorted->items[next]->pid != process->pid || process->borrows_space)
		return;
	for (size_t i = 0; i < report->step_count; i++) {
		/* The last census is taken when recording has stopped. */
		bool all = i + 1 == report->step_count && !report->windowed;

		for (; next < sorted->count && sorted->items[next]->pid == process->pid &&
		       (all || sorted->items[next]->time_ns <= steps[i].to_ns);
		     next++)
			last = is_of(process, sorted->items[next]) && is_walked(sorted->items[next])
				   ? sorted->items[next]
				   : last;
		if (!last || (process->ended && process->ended_ns <= steps[i].to_ns))
			continue;
		if (steps[i].heap_in_use_bytes == MMT_UNKNOWN)
			steps[i].heap_in_use_bytes = steps[i].heap_free_bytes = 0;
		steps[i].heap_in_use_bytes += last->in_use_low;
		steps[i].heap_free_bytes += mmt_heap_free_bytes(last);
	}
}

struct mmt_error *heap_growth_at_steps(const struct rows *rows, const struct mmt_report *report, struct mmt_step *steps)
{
	censuses sorted = {0};
	struct mmt_error *error = sort_censuses(rows, &sorted);

	for (size_t i = 0; i < report->step_count; i++)
		steps[i].heap_in_use_bytes = steps[i].heap_free_bytes = MMT_UNKNOWN;
	for (const struct process *process = NULL; !error && (process = rows_next(rows, process));)
		add_to_steps(&sorted, process, report, steps);
	vector_deinit(&sorted);
	return error;
}

/* Leaves `end` NULL if there is no census. */
static void compare_censuses(const censuses *sorted, const struct process *process, const struct mmt_report *report,
			     struct mmt_heap *heap)
{
	/* A child that only forks has inherited its heap. */
	bool is_new = process->program_ns > process->started_ns && process->program_ns > report->from_ns;
	struct heap_trend trend = {.free_low = UINT64_MAX, .in_use_low = UINT64_MAX};

	heap->start = is_new && !report->windowed ? &empty : NULL;
	for (size_t i = first_of(sorted, process); i < sorted->count && sorted->items[i]->pid == process->pid; i++) {
		const struct mmt_heap_census *census = sorted->items[i];
		uint64_t free_bytes = mmt_heap_free_bytes(census);

		if (!is_of(process, census) ||
		    (report->windowed && (census->time_ns < report->from_ns || census->time_ns > report->to_ns)))
			continue;
		if (!is_walked(census)) {
			heap->end = heap->end ? heap->end : census;
			continue;
		}
		if (heap->census_count++) {
			trend.in_use_grew += census->in_use_low > heap->end->in_use_high;
			trend.free_grew += free_bytes > mmt_heap_free_bytes(heap->end);
			heap->start = heap->start ? heap->start : heap->end;
		}
		trend.in_use_low = smaller_of(trend.in_use_low, census->in_use_low);
		trend.in_use_high = larger_of(trend.in_use_high, census->in_use_high);
		trend.free_low = smaller_of(trend.free_low, free_bytes);
		trend.free_high = larger_of(trend.free_high, free_bytes);
		heap->end = census;
	}
	if (heap->census_count)
		heap->verdict = judge(heap, &trend);
}

/* By how much it changed, or its size. Heaps of which only that is known come last. */
static uint64_t rank(const struct mmt_heap *heap)
{
	return magnitude_of((int64_t)(heap->end->mapped_bytes - (heap->start ? heap->start->mapped_bytes : 0)));
}

COMPARISON(compare_heaps, struct mmt_heap,
	   order_of(b->start != NULL, a->start != NULL) ?: order_of(rank(b), rank(a))
	   ?: order_of(a->process, b->process))

struct mmt_error *heap_growth_build(const struct rows *rows, struct mmt_report *report)
{
	struct mmt_heap *heaps = arena_alloc(rows->arena, report->process_count, sizeof(*heaps));
	const struct mmt_process *described = report->processes;
	censuses sorted = {0};
	struct mmt_error *error = heaps ? sort_censuses(rows, &sorted) : &error_no_memory;

	for (const struct process *process = NULL; !error && (process = rows_next(rows, process)); described++) {
		struct mmt_heap *heap = &heaps[report->heap_count];

		*heap = (struct mmt_heap){.process = described};
		if (!process->borrows_space)
			compare_censuses(&sorted, process, report, heap);
		if (!heap->end)
			continue;
		if (heap->census_count)
			error = find_kinds(rows->replay->code, process->space, heap, rows->arena);
		report->heap_count++;
	}
	qsort(heaps, report->heap_count, sizeof(*heaps), compare_heaps);
	report->heaps = heaps;
	vector_deinit(&sorted);
	return error;
}

/* The heap of the process, or of the only one with its name; NULL: there is none, or there are several. A process that
 * has executed another program has another heap. */
static const struct mmt_heap *find_heap(const struct mmt_report *report, const struct mmt_process *process,
					bool same_process)
{
	const struct mmt_heap *found = NULL;

	for (size_t i = 0; i < report->heap_count && i < LIMIT_DIFF_HEAPS; i++) {
		const struct mmt_process *other = report->heaps[i].process;

		if (!report->heaps[i].census_count || !process->name || !*process->name || !other->name ||
		    strcmp(process->name, other->name) != 0 ||
		    (same_process && (process->pid != other->pid || !process->start_boot_ns ||
				      process->start_boot_ns != other->start_boot_ns)))
			continue;
		if (found)
			return NULL;
		found = &report->heaps[i];
	}
	return found;
}

struct mmt_error *heap_growth_compare(struct arena *arena, struct mmt_diff *diff)
{
	bool same_process = diff->relation == MMT_DIFF_SAME_PROCESS;
	size_t count = smaller_of(diff->after->heap_count, LIMIT_DIFF_HEAPS);
	struct mmt_heap *heaps = arena_alloc(arena, count + 1, sizeof(*heaps));
	struct mmt_error *error = heaps ? NULL : &error_no_memory;

	for (size_t i = 0; !error && i < count; i++) {
		const struct mmt_process *process = diff->after->heaps[i].process;
		const struct mmt_heap *before = find_heap(diff->before, process, same_process);
		const struct mmt_heap *after = find_heap(diff->after, process, same_process);

		if (!before || !after)
			continue;
		heaps[diff->heap_count] =
		    (struct mmt_heap){.process = process, .start = before->end, .end = after->end, .census_count = 2};
		error = find_kinds(report_code(diff->after), NULL, &heaps[diff->heap_count++], arena);
	}
	if (!error)
		qsort(heaps, diff->heap_count, sizeof(*heaps), compare_heaps);
	diff->heaps = heaps;
	return error;
}

bool heap_growth_known(const struct mmt_report *report, const int32_t *pids, size_t count)
{
	size_t known = 0;

	count = smaller_of(count, PIDS_CHECKED);
	for (size_t i = 0; i < report->heap_count; i++) {
		bool chosen = !pids;

		for (size_t j = 0; !chosen && j < count; j++)
			chosen = report->heaps[i].process->pid == pids[j];
		known += chosen && report->heaps[i].start;
	}
	return pids ? count && known == count : known;
}

uint64_t mmt_heap_free_bytes(const struct mmt_heap_census *census)
{
	return census->free_bytes + census->tcache_bytes + census->fastbin_bytes + census->top_bytes;
}
