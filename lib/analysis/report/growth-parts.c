// SPDX-License-Identifier: LGPL-2.1-or-later
/* In which memory RSS grew: compares the resident pages of two readings, which resident-pages.c takes. */
#include "analysis/report/report-build.h"

#include "analysis/report/classes.h"
#include "analysis/report/verdict-rules.h"

#define PLACE_SHIFT 60
/* Keys of sums about a part, which are no parts: the size of its mappings that grew, what is resident of them, and how
 * much those of files grew to which only the process itself writes. */
#define MAPPED_OF ((uint64_t)(MMT_GROWTH_PLACES - MMT_GROWTH_BEFORE) << PLACE_SHIFT)
#define FILLED_OF (MAPPED_OF + (1ULL << PLACE_SHIFT))
#define COPIED_OF (MAPPED_OF + (2ULL << PLACE_SHIFT))
#define SIZE_MAX_COMPARED (1LL << 59) /* no real process is larger */
#define ARENA_BIT (1ULL << 59)
#define HEAP_SHIFT 56 /* enum gc_heap, 3 bits */
#define HEAP_MASK 7

/* The values of `parts` are int64_t as uint64_t. */
static struct mmt_error *add(struct map *parts, uint64_t key, int64_t bytes)
{
	return !bytes || map_add(parts, key, (uint64_t)bytes) ? NULL : &error_no_memory;
}

static uint64_t make_key(const struct replay *replay, const struct space_interval *interval,
			 const struct heap_finder *heaps)
{
	const struct allocation *allocation = ledger_allocation(&replay->ledger, interval->allocation);
	uint32_t kind = replay_calls_kind(replay, interval), path = interval->attributes.path;
	enum mmt_class memory_class = classes_kind_class(kind);
	uint64_t key = (uint64_t)MMT_GROWTH_BEFORE << PLACE_SHIFT;

	if (allocation && allocation->side != LEDGER_BEFORE)
		return (uint64_t)MMT_GROWTH_MADE << PLACE_SHIFT;
	if (interval->commit > LEDGER_OUTSIDE_COMMIT)
		return (uint64_t)MMT_GROWTH_COMMITTED << PLACE_SHIFT;
	if (interval->allocation == ALLOCATION_KERNEL)
		return (uint64_t)MMT_GROWTH_KERNEL << PLACE_SHIFT;
	if (heap_finder_is_arena(heaps, interval, memory_class))
		return key | ARENA_BIT;
	return key | kind |
	       (uint64_t)heap_finder_ask(heaps, interval, memory_class,
					 path ? resolver_path_name(replay->code, path) : "")
		   << HEAP_SHIFT;
}

struct heap_finder growth_parts_find_heaps(const struct replay *replay, const struct process *process)
{
	static const char *const glibc[] = {"libc.so.6", "libc-2.", NULL};
	static const char *const other_mallocs[] = {"libjemalloc", "libtcmalloc", "libmimalloc",
						    "ld-musl-",	   "libc.musl-",  NULL};
	const struct runtime *runtime = resolver_runtime(replay->code, process->space);
	struct heap_finder finder;

	if (!runtime && classes_may_have_go_heap(process->space) && resolver_is_go(replay->code, process->space))
		runtime = runtimes_find("go");
	finder = heap_finder_create(process->space, runtime, resolver_has_module(replay->code, process->space, glibc));
	finder.other_malloc = resolver_has_module(replay->code, process->space, other_mallocs);
	return finder;
}

/*
 * In the heaps of malloc and of runtimes, the code that touches memory is not the one that keeps it: it needs a new
 * page, because others keep the blocks that it freed before. Runtimes have anonymous memory that is no heap, but it
 * cannot be told apart, and so it is with allocators other than that of glibc.
 */
static enum mmt_pattern heap_of(const struct replay *replay, const struct space_interval *piece,
				enum mmt_class memory_class, const struct heap_finder *heaps)
{
	uint32_t path = piece->attributes.path;
	const struct account *owner = process_totals_owner(replay, piece);

	if (memory_class == MMT_CLASS_HEAP)
		return MMT_PATTERN_HEAP;
	if (heap_finder_is_arena(heaps, piece, memory_class))
		return MMT_PATTERN_ARENA;
	if (owner && mmt_pattern_is_by_design(owner->pattern) && owner->pattern != MMT_PATTERN_THREAD_STACK)
		return owner->pattern;
	return memory_class == MMT_CLASS_GC_RESERVE ||
		       (memory_class == MMT_CLASS_ANON && (heaps->runtime || heaps->other_malloc)) ||
		       heap_finder_ask(heaps, piece, memory_class, path ? resolver_path_name(replay->code, path) : "")
		   ? MMT_PATTERN_GC_HEAP
		   : MMT_PATTERN_NONE;
}

/* Add the changes from the pages of the start to those of the end, and what is left of those of the start as unmapped.
 */
static struct mmt_error *count_changes(struct process_pages *pages, struct page_changes *of, const struct rows *rows,
				       const resident_runs *end_pages, uint64_t *hugetlb_ret)
{
	/* By touch, of the pages that the process has alone, those that it shared before are its copies. */
	const resident_runs *copied = of == &pages->alone ? pages->all.start : NULL;
	const struct replay *replay = rows->replay;
	const struct process *process = pages->process;
	const struct heap_finder heaps = growth_parts_find_heaps(replay, process);
	const struct page_faults *faults = touched_pages_of(&replay->touched, process);
	struct page_cursor start = {.runs = of->start}, end = {.runs = end_pages}, resident = {.runs = copied};
	const struct space_interval *interval;
	struct space_interval piece;
	struct mmt_error *error = NULL;

	*hugetlb_ret = 0;
	for (uint64_t address = 0; !error && (interval = space_next(process->space, address)); address = piece.end) {
		enum mmt_class memory_class = classes_kind_class(replay_calls_kind(replay, interval));
		uint64_t arena = heap_finder_find_arena(&heaps, interval, memory_class);
		const struct allocation *allocation = ledger_allocation(&replay->ledger, interval->allocation);
		struct touch_sum all = {.stack = TOUCHED_BY_ANY};
		uint64_t before = 0, after, key;
		enum mmt_pattern heap;

		/* The kernel shows an arena and what lies right below it as one mapping. */
		piece = *interval;
		piece.start = larger_of(address, interval->start);
		piece.end = piece.start < arena ? arena : interval->end;
		/* Pages that were resident at the start can belong to the mapping only if it existed then. */
		if (!allocation || allocation->side == LEDGER_BEFORE || allocation->time_ns < pages->start_ns)
			before = page_cursor_count(&start, piece.start, piece.end);
		after = page_cursor_count(&end, piece.start, piece.end);
		if (pages_are_hugetlb(replay, interval)) {
			*hugetlb_ret += after;
			continue;
		}
		key = make_key(replay, &piece, &heaps);
		error = add(&of->parts, key, (int64_t)(after - before));
		if (!error && key >> PLACE_SHIFT == MMT_GROWTH_BEFORE && after > before)
			error = add(&of->parts, key + MAPPED_OF, (int64_t)(piece.end - piece.start))
				    ?: add(&of->parts, key + FILLED_OF, (int64_t)after);
		if (!error && key >> PLACE_SHIFT == MMT_GROWTH_BEFORE && memory_class == MMT_CLASS_FILE &&
		    !piece.attributes.shared && piece.attributes.protection & PROT_WRITE)
			error = add(&of->parts, key + COPIED_OF, (int64_t)(after - before));
		if (error || !replay->touched.recorded)
			continue;
		heap = heap_of(replay, &piece, memory_class, &heaps);
		all.part = key;
		all.bytes = (double)after - (double)before;
		if (!heap && (key >> PLACE_SHIFT == MMT_GROWTH_BEFORE || key >> PLACE_SHIFT == MMT_GROWTH_KERNEL))
			error = touchers_add(&of->touched, &all)
				    ?: touchers_count(&of->touched, faults, &piece, key, replay->touched.sampled, NULL,
						      of->start, end_pages);
		all.part = (uint64_t)heap << 32 | replay_calls_kind(replay, &piece);
		if (copied)
			all.bytes = smaller_of(all.bytes, (double)page_cursor_count(&resident, piece.start, piece.end) -
							      (double)before);
		if (!error && rows->options->by == MMT_BY_TOUCH && !(copied && piece.attributes.shared))
			error = touchers_add(&pages->touched, &all)
				    ?: touchers_count(&pages->touched, faults, &piece, all.part,
						      replay->touched.sampled, copied, of->start, end_pages);
	}
	return error ? error
		     : add(&of->parts, (uint64_t)MMT_GROWTH_UNMAPPED << PLACE_SHIFT,
			   (int64_t)(start.counted_bytes - page_runs_bytes(of->start) - of->displaced_bytes));
}

/* Append what `runs` have in START to END, moved by `shift`. */
static bool append_runs(resident_runs *list, const resident_runs *runs, uint64_t start, uint64_t end, uint64_t shift)
{
	size_t first = partition_point(runs->count, i, runs->items[i].end <= start);

	for (size_t i = first; i < runs->count && runs->items[i].start < end; i++) {
		struct resident_run run = runs->items[i];

		run.start = (run.start > start ? run.start : start) + shift;
		run.end = (run.end < end ? run.end : end) + shift;
		if (list->count && list->items[list->count - 1].end == run.start)
			list->items[list->count - 1].end = run.end;
		else if (!vector_push(list, run))
			return false;
	}
	return true;
}

uint64_t growth_parts_hugetlb_bytes(const struct replay *replay, const struct process *process,
				    const resident_runs *runs)
{
	struct page_cursor cursor = {.runs = runs};

	space_each(interval, process->space, true) {
		if (pages_are_hugetlb(replay, interval))
			(void)page_cursor_count(&cursor, interval->start, interval->end);
	}
	return cursor.counted_bytes;
}

/* Takes over the runs. */
static void set_start(struct page_changes *of, const resident_runs *runs)
{
	vector_deinit(&of->own_start);
	of->own_start = *runs;
	of->start = &of->own_start;
}

/* Append the pages that are not among those to leave out. */
static bool append_others(resident_runs *list, const resident_runs *runs, const resident_runs *left_out)
{
	uint64_t kept_to = 0;
	bool ok = true;

	for (size_t i = 0; ok && i < left_out->count; i++) {
		ok = append_runs(list, runs, kept_to, left_out->items[i].start, 0);
		kept_to = left_out->items[i].end;
	}
	return ok && append_runs(list, runs, kept_to, UINT64_MAX, 0);
}

struct mmt_error *growth_parts_leave_out_hugetlb(struct page_readings *readings, struct process_pages *pages)
{
	const struct replay *replay = readings->rows->replay;
	const struct process *process = pages->process;
	uint64_t bytes = growth_parts_hugetlb_bytes(replay, process, pages->all.start);
	resident_runs hugetlb = {0}, kept = {0};
	bool ok = true;

	pages->start_hugetlb_bytes += bytes;
	if (!bytes)
		return NULL;
	space_each(interval, process->space, ok) {
		if (pages_are_hugetlb(replay, interval))
			ok = vector_push(&hugetlb, ((struct resident_run){interval->start, interval->end}));
	}
	ok = ok && append_others(&kept, pages->all.start, &hugetlb);
	vector_deinit(&hugetlb);
	if (!ok) {
		vector_deinit(&kept);
		return &error_no_memory;
	}
	readings->run_count += kept.count - pages->all.own_start.count;
	set_start(&pages->all, &kept);
	return NULL;
}

struct mmt_error *growth_parts_leave_out_shared(struct process_pages *pages, const resident_runs *shared)
{
	resident_runs alone = {0};

	pages->alone.start_known = append_others(&alone, pages->all.start, shared);
	set_start(&pages->alone, &alone);
	pages->alone.start_bytes = page_runs_bytes(pages->alone.start);
	pages->alone.displaced_bytes = 0;
	return pages->alone.start_known ? NULL : &error_no_memory;
}

struct mmt_error *growth_parts_count(struct process_pages *pages, const struct rows *rows,
				     const resident_runs *end_pages, const resident_runs *shared)
{
	resident_runs alone = {0};
	uint64_t hugetlb_bytes;
	struct mmt_error *error = count_changes(pages, &pages->all, rows, end_pages, &hugetlb_bytes);

	pages->hugetlb_change_bytes = (int64_t)(hugetlb_bytes - pages->start_hugetlb_bytes);
	if (error || !shared || !pages->alone.start_known)
		return error;
	error = append_others(&alone, end_pages, shared)
		    ? count_changes(pages, &pages->alone, rows, &alone, &hugetlb_bytes)
		    : &error_no_memory;
	pages->alone.end_bytes = page_runs_bytes(&alone) - hugetlb_bytes;
	pages->alone.parts_known = !error;
	vector_deinit(&alone);
	return error;
}

bool growth_parts_move(struct process_pages *pages, uint64_t from, uint64_t to, uint64_t length)
{
	struct page_changes *const sets[] = {&pages->all, &pages->alone};
	/* Untrusted values: two ranges that do not overlap. */
	uint64_t low = from < to ? from : to, high = from < to ? to : from;

	if (!pages->all.start->count || !length || high - low < length || high > LIMIT_RESIDENT_BYTES - length ||
	    length > LIMIT_RESIDENT_BYTES)
		return true;
	pages->move_steps += pages->all.start->count + pages->alone.start->count;
	pages->moves_unknown |= pages->move_steps > LIMIT_MOVE_STEPS;
	for (unsigned i = 0; i < 2 && !pages->moves_unknown; i++) {
		const resident_runs *runs = sets[i]->start;
		struct page_cursor cursor = {.runs = runs};
		resident_runs moved = {0};

		if (!append_runs(&moved, runs, 0, low, 0) ||
		    (to < from && !append_runs(&moved, runs, from, from + length, to - from)) ||
		    !append_runs(&moved, runs, low + length, high, 0) ||
		    (to > from && !append_runs(&moved, runs, from, from + length, to - from)) ||
		    !append_runs(&moved, runs, high + length, UINT64_MAX, 0)) {
			vector_deinit(&moved);
			return false;
		}
		sets[i]->displaced_bytes += page_cursor_count(&cursor, to, to + length);
		set_start(sets[i], &moved);
	}
	return true;
}

/* Where RSS grew, of all selected processes */

struct sums {
	const struct replay *replay;
	struct map bytes; /* of a place and what is mapped there: int64_t as uint64_t */
	struct touch_sums touched;
	struct mmt_growth growth; /* its pages, of all processes; times are of the earliest reading of each */
};

static uint64_t earlier(uint64_t left, uint64_t right)
{
	return !left || (right && right < left) ? right : left;
}

static struct mmt_error *add_process(struct sums *sums, const struct process_pages *pages)
{
	const struct page_changes *of = sums->growth.parts_private ? &pages->alone : &pages->all;
	struct mmt_growth *growth = &sums->growth;
	struct mmt_error *error = NULL;

	growth->pages_start_bytes += of->start_bytes;
	growth->pages_end_bytes += of->end_bytes;
	growth->hugetlb_bytes += pages->hugetlb_change_bytes;
	growth->pages_start_ns = earlier(growth->pages_start_ns, pages->start_ns);
	growth->pages_end_ns = earlier(growth->pages_end_ns, pages->resident.time_ns);
	growth->pages_at_ends &= pages->resident.at_end;
	map_each(part, &of->parts, !error)
		error = add(&sums->bytes, part->key, (int64_t)part->value);
	array_while(sum, of->touched.items.items, of->touched.items.count, !error)
		error = touchers_add(&sums->touched, sum);
	return error;
}

/* A process of which only the RSS is known, or that ended: its pages are gone. */
static struct mmt_error *add_unread_process(struct sums *sums, const struct process *process,
					    const struct process_readings *readings)
{
	bool existed = process->started_ns <= sums->replay->window.from_ns;
	bool alone = sums->growth.parts_private;
	uint64_t start_bytes = !readings || !existed ? 0
			       : alone		     ? readings->of.start_private_bytes
						     : readings->of.start_resident_bytes;
	uint64_t end_bytes = !readings || process->ended ? 0
			     : alone			 ? readings->of.end_private_bytes
							 : readings->of.end_resident_bytes;
	enum mmt_growth_place place = process->ended ? MMT_GROWTH_ENDED : MMT_GROWTH_UNREAD;

	sums->growth.pages_start_bytes += start_bytes;
	sums->growth.pages_end_bytes += end_bytes;
	return add(&sums->bytes, (uint64_t)place << PLACE_SHIFT, (int64_t)(end_bytes - start_bytes));
}

/* What is known of a process that counts. */
struct known_process {
	const struct process *process;
	const struct process_readings *sizes;
	const struct process_pages *pages; /* NULL: its parts are not known */
};

/* The next process that has pages at one of the two times: one that ended before the window, or began after the last
 * reading, has none. False: there are no more. */
static bool next_process(const struct page_readings *readings, struct known_process *known)
{
	const struct replay *replay = readings->rows->replay;

	while ((known->process = rows_next(readings->rows, known->process))) {
		const struct process *process = known->process;
		struct process_pages *pages = map_get_pointer(&readings->processes, process->index);

		known->sizes = memory_readings_of(&replay->notes.memory, process);
		if ((known->sizes && known->sizes->of.brief) ||
		    (process->ended ? process->ended_ns <= replay->window.from_ns
				    : replay->window.ends_early && !pages && process->started_ns > readings->latest_ns))
			continue;
		known->pages = pages && pages->all.parts_known && page_readings_count(readings, process) ? pages : NULL;
		return true;
	}
	return false;
}

COMPARISON(compare_parts, struct mmt_growth_part,
	   order_of(magnitude_of(b->bytes), magnitude_of(a->bytes)) ?: order_of(a->place, b->place)
	   ?: order_of(a->order, b->order))

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
	uint64_t start_bytes = growth->parts_private ? growth->start_private_bytes : growth->start_bytes;
	uint64_t end_bytes = growth->parts_private ? growth->end_private_bytes : growth->end_bytes;
	bool sizes_known = growth->pages_at_ends && start_bytes != MMT_UNKNOWN && end_bytes != MMT_UNKNOWN;
	int64_t start_first = limit_size(sizes_known ? start_bytes : growth->pages_start_bytes);
	int64_t end_first = limit_size(sizes_known ? end_bytes : growth->pages_end_bytes);
	int64_t start_change = limit_size(growth->pages_start_bytes) - start_first;
	int64_t end_change = limit_size(growth->pages_end_bytes) - end_first;
	int64_t least = end_first - start_first + smaller_of(end_change, 0) - larger_of(start_change, 0);
	int64_t most = end_first - start_first + larger_of(end_change, 0) - smaller_of(start_change, 0);

	explained_bytes = larger_of(smaller_of(explained_bytes, SIZE_MAX_COMPARED), -SIZE_MAX_COMPARED);
	growth->unexplained_bytes = explained_bytes < least  ? least - explained_bytes
				    : explained_bytes > most ? most - explained_bytes
							     : 0;
	growth->changing_bytes = end_first - start_first - explained_bytes - growth->unexplained_bytes;
}

static struct mmt_error *publish(struct sums *sums, struct rows *rows, struct mmt_report *report)
{
	struct arena *arena = rows->arena;
	struct mmt_growth *growth = &sums->growth;
	struct mmt_growth_part *parts = arena_alloc(arena, sums->bytes.count, sizeof(*parts));
	uint64_t explained_bytes = 0; /* int64_t as uint64_t */
	enum arena_use arenas = ARENAS_LIMITED;
	struct mmt_error *error;

	if (!parts)
		return &error_no_memory;
	for (const struct process *process = NULL; (process = processes_next(sums->replay->processes, process));) {
		if (!row_limits_arenas(sums->replay, process))
			arenas = ARENAS_OF_SEVERAL_THREADS;
	}
	touchers_sort(&sums->touched);
	map_each(sum, &sums->bytes, true) {
		struct mmt_growth_part *part = &parts[growth->part_count];
		uint64_t key = sum->key, bytes = sum->value;

		if (!bytes || key >> PLACE_SHIFT >= MMT_GROWTH_PLACES)
			continue;
		*part = (struct mmt_growth_part){.place = (enum mmt_growth_place)(key >> PLACE_SHIFT),
						 .memory_class = MMT_CLASS_KINDS,
						 .bytes = (int64_t)bytes,
						 .order = key};
		if (part->place == MMT_GROWTH_BEFORE) {
			uint32_t path = key & ARENA_BIT ? 0 : classes_kind_path((uint32_t)key);
			const uint64_t *mapped = map_get(&sums->bytes, key + MAPPED_OF);
			const uint64_t *copied = map_get(&sums->bytes, key + COPIED_OF);

			part->arena = key & ARENA_BIT;
			part->memory_class = part->arena ? MMT_CLASS_ANON : classes_kind_class((uint32_t)key);
			part->name = path ? arena_string(arena, resolver_path_name(sums->replay->code, path)) : NULL;
			if (path && !part->name)
				return &error_no_memory;
			part->runtime = gc_heap_name((enum gc_heap)(key >> HEAP_SHIFT & HEAP_MASK));
			part->pattern = growth_pattern(part);
			part->copied_bytes = copied ? (int64_t)*copied : 0;
			part->mapped_bytes = mapped ? *mapped : 0;
			part->filled_bytes = mapped ? *map_get(&sums->bytes, key + FILLED_OF) : 0;
		}
		error = touchers_publish(&sums->touched, rows, part);
		if (error)
			return error;
		part->hint = hints_of_growth(
		    part, report->from_ns > report->start_ns ? HINTS_CALLS_UNKNOWN : sums->replay->made_writable_bytes,
		    arenas);
		if (growth->faults_recorded)
			part->hint = hints_with_faults(part->hint, part->unattributed_bytes > 0);
		if (heap_growth_known(report, NULL, 0))
			part->hint = hints_with_census(part->hint);
		explained_bytes += bytes;
		growth->part_count++;
	}
	compare_with_sizes(growth, (int64_t)explained_bytes);
	qsort(parts, growth->part_count, sizeof(*parts), compare_parts);
	growth->parts = parts;
	growth->parts_known = true;
	report->growth = *growth;
	return NULL;
}

struct mmt_error *growth_parts_build(const struct page_readings *readings, struct rows *rows, struct mmt_report *report)
{
	struct sums sums = {.replay = rows->replay};
	int64_t change = mmt_growth_change(&report->growth) -
			 (int64_t)(report->growth.end_swap_bytes - report->growth.start_swap_bytes);
	struct known_process process = {0};
	struct mmt_error *error = NULL;
	uint64_t alone_bytes = 0;
	bool known = false; /* the pages of any process */

	report->growth.faults_recorded = rows->replay->touched.recorded;
	report->growth.faults_sampled = rows->replay->touched.sampled;
	sums.growth = report->growth;
	/* The rows exclude recent mappings, so they do not show everything that was mapped. */
	if (!readings->known || rows->replay->window.allocations_to_ns != UINT64_MAX)
		return NULL;
	/* Growth may begin after a peak, where no pages were read. */
	sums.growth.pages_at_ends =
	    !report->windowed &&
	    !(report->resident_reading_count && report->growth.start_ns > report->resident_readings[0].time_ns);
	/* Compare the pages that each process has alone if these are known of all. */
	sums.growth.parts_private = report->growth.by_pss && sums.growth.pages_at_ends;
	while (next_process(readings, &process)) {
		if (!process.pages) {
			sums.growth.parts_private &= !process.sizes || process.sizes->of.private_known;
			if (process.sizes && process.sizes->of.private_known)
				alone_bytes += subtract(process.sizes->of.end_private_bytes,
							process.sizes->of.start_private_bytes);
			continue;
		}
		sums.growth.parts_private &= process.pages->alone.parts_known;
		map_each(part, &process.pages->alone.parts, true) {
			if (part->key >> PLACE_SHIFT < MMT_GROWTH_PLACES && (int64_t)part->value > 0)
				alone_bytes = saturating_add(alone_bytes, part->value, MMT_BYTES_MAX);
		}
	}
	/* Pages that a process has alone do not show growth in shared memory. Libraries are shared, too, by chance. */
	if (change > (int64_t)(report->growth.end_pss_bytes / 32 + magnitude_of(report->growth.outside_bytes)) &&
	    alone_bytes < (uint64_t)change / 2)
		sums.growth.parts_private = false;
	while (!error && next_process(readings, &process)) {
		known |= process.pages != NULL;
		error = process.pages ? add_process(&sums, process.pages)
				      : add_unread_process(&sums, process.process, process.sizes);
	}
	if (!error && known)
		error = publish(&sums, rows, report);
	map_deinit(&sums.bytes);
	touch_sums_deinit(&sums.touched);
	return error;
}
