// SPDX-License-Identifier: LGPL-2.1-or-later
/* Attributes each reading of resident and huge pages to the rows whose memory they are in. */
#include "analysis/report/report-build.h"

#include "analysis/report/classes.h"
#include "base/strings.h"

#define UNREAD_SHARE 10		     /* of mapped memory: as much may be of processes without a reading */
#define RECENT_LIFE_NS 1000000000ULL /* a shorter process changes more than readings show */
#define RECENT_SHARE 5		     /* of its life: the reading of a process that ended is at most as old */

bool pages_are_hugetlb(const struct replay *replay, const struct space_interval *interval)
{
	uint32_t path = interval->attributes.path;

	return classes_is_hugetlb(&interval->attributes, path ? resolver_path_name(replay->code, path) : "");
}

/* Per row */

static void resident_sums_deinit(struct resident_sums *sums)
{
	for (unsigned kind = 0; kind < HELD_PAGES; kind++)
		map_deinit(&sums->held[kind]);
	map_deinit(&sums->read_ns);
	map_deinit(&sums->late);
	*sums = (struct resident_sums){0};
}

static bool add_to_map(struct map *map, uint64_t key, uint64_t bytes)
{
	const uint64_t *sum = map_get(map, key);

	return map_put(map, key, saturating_add(sum ? *sum : 0, bytes, MMT_BYTES_MAX));
}

static uint64_t start_of(const struct replay *replay)
{
	return replay->window.from_ns ? replay->window.from_ns : replay->first_ns;
}

/* Add the pages of a process that are resident or, if `use` is NULL, swapped out, as the model has its mappings now.
 * Zero counts, too: then the figure of an account is known. */
static struct mmt_error *resident_sums_add(struct resident_sums *sums, const struct rows *rows,
					   const struct process *process, const resident_runs *runs, struct map *use)
{
	bool swapped = !use;
	const struct replay *replay = rows->replay;
	uint64_t from_ns = start_of(replay), late_ns = from_ns + (sums->time_ns - from_ns) / 2;
	const struct space_check listed = space_check_result(process->space);
	struct page_cursor cursor = {.runs = runs};

	sums->rss_bytes += swapped ? 0 : page_runs_bytes(runs);
	space_each(interval, process->space, true) {
		const struct allocation *allocation = ledger_allocation(&replay->ledger, interval->allocation);
		const struct account *owner = process_totals_owner(replay, interval);
		const struct account *account = rows_holder(rows, interval, allocation, owner);
		uint64_t bytes = page_cursor_count(&cursor, interval->start, interval->end);
		uint32_t number = account ? (uint32_t)(account - replay->ledger.accounts.items) : 0;
		bool is_owner = owner && allocation && allocation->account == number;
		enum held_kind kind = swapped ? HELD_SWAPPED : owner ? HELD_RESIDENT : HELD_RESIDENT_BEFORE;

		/* The recorder lists the maps first, and reads only the pages of what was listed. */
		if (!bytes && listed.done && allocation && allocation->time_ns >= listed.began_ns)
			continue;
		if (!swapped && pages_are_hugetlb(replay, interval)) {
			sums->rss_bytes -= bytes;
			sums->owned_hugetlb_bytes += owner ? bytes : 0;
		}
		sums->owned_bytes += owner && !swapped ? bytes : 0;
		if (account &&
		    !add_to_map(&sums->held[kind],
				(uint64_t)number << 32 | (is_owner ? allocation->thread : LEDGER_NO_THREAD), bytes))
			return &error_no_memory;
		if (account && !swapped && account->row != LEDGER_NO_ROW &&
		    (!map_add(use, account->row, bytes) ||
		     (allocation && allocation->time_ns >= late_ns && !map_add(&sums->late, account->row, bytes))))
			return &error_no_memory;
	}
	return NULL;
}

void resident_sums_limit(const struct resident_sums *sums, uint64_t *resident_bytes, uint64_t mapped_bytes)
{
	if (sums && !sums->at_end && *resident_bytes > mapped_bytes)
		*resident_bytes = mapped_bytes;
}

/* Per kind of memory, when recording began and when it ended */

/* The class from the kernel's maps alone: attributes that only recorded calls show would differ between two recordings.
 */
static enum mmt_class class_in_maps(const struct space *space, const struct space_interval *interval, const char *path)
{
	struct space_interval plain = *interval;
	enum mmt_class memory_class;

	plain.attributes.thread_stack = false;
	plain.attributes.noreserve = false;
	plain.attributes.hugetlb = 0;
	memory_class = classes_of_interval(&plain, path);
	return memory_class == MMT_CLASS_ANON && classes_is_above_guard(space, interval) ? MMT_CLASS_THREAD_STACK
											 : memory_class;
}

char *resident_kind_key(const struct mmt_resident_kind *kind)
{
	char *key;

	return asprintf(&key, "%d %d %s %s", (int)kind->memory_class, kind->arena, kind->runtime ? kind->runtime : "-",
			kind->name ? kind->name : "") < 0
		   ? NULL
		   : key;
}

static struct mmt_error *hold_piece(struct page_readings *readings, struct mmt_resident_kind kind, const char *path,
				    uint64_t bytes, bool at_start)
{
	struct resident_kinds *kinds = &readings->kinds;
	/* A file may be deleted between two recordings. */
	size_t length = kind.memory_class == MMT_CLASS_FILE ? mapped_path_length(path) : 0;
	CLEANUP(free) char *name = strndup(path, length), *key = NULL;
	uint32_t id;

	if (!bytes)
		return NULL;
	kind.name = length ? name : NULL;
	key = name ? resident_kind_key(&kind) : NULL;
	id = key ? intern_put_string(&kinds->keys, key) : INTERN_NONE;
	if (id == INTERN_NONE)
		return &error_no_memory;
	if (id == kinds->items.count) {
		kind.name = length ? arena_string(readings->rows->arena, name) : NULL;
		if ((length && !kind.name) || !vector_push(&kinds->items, kind))
			return &error_no_memory;
	}
	*(at_start ? &kinds->items.items[id].start_bytes : &kinds->items.items[id].end_bytes) += bytes;
	return NULL;
}

static struct mmt_error *hold(struct page_readings *readings, const struct process *process,
			      const struct process_residency *residency, bool at_start)
{
	static const struct mmt_resident_kind arenas = {.memory_class = MMT_CLASS_ANON, .arena = true};
	const struct replay *replay = readings->rows->replay;
	const struct heap_finder heaps = growth_parts_find_heaps(replay, process);
	struct page_cursor pages = {.runs = &residency->runs};
	struct mmt_error *error = NULL;

	space_each(interval, process->space, !error) {
		uint32_t id = interval->attributes.path;
		const char *path = id ? resolver_path_name(replay->code, id) : "";
		struct mmt_resident_kind kind = {.memory_class = class_in_maps(process->space, interval, path)};
		uint64_t arena = heap_finder_find_arena(&heaps, interval, kind.memory_class);
		struct space_interval below = *interval;
		uint64_t bytes = page_cursor_count(&pages, interval->start, arena);
		uint64_t arena_bytes = page_cursor_count(&pages, arena, interval->end);

		if (pages_are_hugetlb(replay, interval))
			continue;
		below.end = arena;
		kind.memory_class = class_in_maps(process->space, &below, path);
		kind.runtime = gc_heap_name(heap_finder_ask(&heaps, &below, kind.memory_class, path));
		error = hold_piece(readings, kind, path, bytes, at_start)
			    ?: hold_piece(readings, arenas, path, arena_bytes, at_start);
	}
	return error;
}

/* The readings of a process */

/* A new value has the pages that the process had when the recording began, or none if the process began later. */
static struct mmt_error *find_pages(struct page_readings *readings, const struct process *process,
				    struct process_pages **pages_ret)
{
	const struct replay *replay = readings->rows->replay;
	const struct process_residency *residency =
	    recording_residency_of(&replay->metadata->residency, true, process->pid);
	struct process_pages *pages = map_get_pointer(&readings->processes, process->index);

	*pages_ret = pages;
	if (pages)
		return NULL;
	*pages_ret = pages = arena_alloc(readings->rows->arena, 1, sizeof(*pages));
	if (!pages || !map_put_pointer(&readings->processes, process->index, pages))
		return &error_no_memory;
	pages->process = process;
	pages->all.start = &pages->all.own_start;
	pages->alone.start = &pages->alone.own_start;
	if (residency && residency->resident_bytes && !process->started_ns) {
		pages->all.start = &residency->runs;
		pages->all.start_bytes = residency->resident_bytes;
		pages->start_ns = residency->time_ns;
		pages->all.start_known = true;
	} else if (process->parent_pid || replay->metadata->info.command) {
		pages->start_ns = process->started_ns ? process->started_ns : replay->first_ns;
		pages->all.start_known = pages->alone.start_known = true;
	}
	return NULL;
}

static void forget_end(struct process_pages *pages)
{
	map_deinit(&pages->all.parts);
	map_deinit(&pages->alone.parts);
	touch_sums_deinit(&pages->touched);
	touch_sums_deinit(&pages->all.touched);
	touch_sums_deinit(&pages->alone.touched);
	resident_sums_deinit(&pages->resident);
	pages->end_known = pages->all.parts_known = pages->alone.parts_known = false;
}

/* Take a complete reading: all pages of the process at `time_ns`, the time of the model, and which of them are shared
 * (NULL: not known). `is_replaced`: a reading of the end follows, so no parts are needed. */
static struct mmt_error *take_reading(struct page_readings *readings, struct process_pages *pages,
				      const resident_runs *runs, const resident_runs *shared, uint64_t time_ns,
				      uint64_t resident_bytes, bool is_replaced)
{
	struct map use = {0}, none = {0};
	struct mmt_error *error;
	uint64_t before_ns = pages->resident.time_ns;
	bool begins;

	forget_end(pages);
	pages->resident.time_ns = time_ns;
	error = resident_sums_add(&pages->resident, readings->rows, pages->process, runs, &use);
	begins = !error && row_uses_begin(&readings->uses, start_of(readings->rows->replay), time_ns, before_ns);
	error = error ?: row_uses_change(&readings->uses, &pages->use, &use);
	map_deinit(&use);
	/* Processes that ended have nothing. */
	map_each(slot, &readings->processes, !error && begins) {
		struct process_pages *other = slot->pointer;

		if (other->process->ended)
			error = row_uses_change(&readings->uses, &other->use, &none);
	}
	pages->end_known = true;
	pages->all.end_bytes = resident_bytes;
	pages->all.parts_known = !is_replaced && pages->all.start_known && resident_bytes && !pages->moves_unknown;
	if (!error && pages->all.parts_known)
		error = growth_parts_count(pages, readings->rows, runs, shared);
	return error;
}

/* The pages of the start belong to the present mappings. The recorder may read the maps of the start twice. */
static struct mmt_error *take_start(void *context, const struct replay *replay, const struct process *process)
{
	const struct process_residency *residency =
	    recording_residency_of(&replay->metadata->residency, true, process->pid);
	const struct process_residency *shared = recording_residency_of(&replay->metadata->shared, true, process->pid);
	struct page_readings *readings = context;
	struct process_pages *pages = NULL;
	struct mmt_error *error = NULL;

	if (!residency)
		return NULL;
	if (!process->borrows_space)
		error = find_pages(readings, process, &pages);
	if (!error && pages && pages->all.start_known)
		error = growth_parts_leave_out_hugetlb(readings, pages);
	if (!error && pages && pages->all.start_known && !pages->alone.start_known && shared)
		error = growth_parts_leave_out_shared(pages, &shared->runs);
	if (error || map_get(&readings->kinds.started, (uint32_t)process->pid))
		return error;
	return map_put(&readings->kinds.started, (uint32_t)process->pid, 1) ? hold(readings, process, residency, true)
									    : &error_no_memory;
}

/* Use the runs just received, which receive() has counted, as the start of the window. */
static struct mmt_error *use_as_start(struct page_readings *readings, struct process_pages *pages,
				      uint64_t resident_bytes)
{
	readings->run_count -= pages->all.own_start.count;
	vector_deinit(&pages->all.own_start);
	map_deinit(&pages->all.parts);
	touch_sums_deinit(&pages->all.touched);
	pages->all = (struct page_changes){.start_known = true,
					   .start = &pages->all.own_start,
					   .own_start = pages->incoming,
					   .start_bytes = resident_bytes,
					   .end_bytes = pages->all.end_bytes};
	pages->incoming = (resident_runs){0};
	pages->start_ns = pages->time_ns;
	pages->start_hugetlb_bytes = 0;
	pages->moves_unknown = pages->alone.start_known = false;
	return growth_parts_leave_out_hugetlb(readings, pages);
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

/* The reading of the end; NULL: none. Older recorders read ranges of the program before an exec: they say nothing. */
static const struct process_residency *find_final(const struct replay *replay, const struct process *process)
{
	if (!replay->metadata->has_residency || replay->window.ends_early || process->ended ||
	    (!process->borrows_space && space_check_result(process->space).earlier_program))
		return NULL;
	return recording_residency_of(&replay->metadata->residency, false, process->pid);
}

static struct mmt_error *take_event(void *context, struct replay *replay, const struct event *event)
{
	const struct process *process = processes_find(replay->processes, event->pid);
	struct page_readings *readings = context;
	uint64_t from_ns = replay->window.from_ns;
	struct process_pages *pages;
	struct space_check check;
	struct mmt_error *error;

	if (!process || process->ended || process->borrows_space)
		return NULL;
	error = find_pages(readings, process, &pages);
	if (error)
		return error;
	if (!receive(readings, pages, event))
		return &error_no_memory;
	if (!event->pages.last)
		return NULL;
	check = space_check_result(process->space);
	/* The recorder reads the pages of a process once after each interval snapshot of it. A recording with more
	 * readings is not the recorder's, and each costs as much as the process has mappings. */
	if (!pages->invalid && check.done && check.time_ns != pages->snapshot_ns) {
		uint64_t bytes = smaller_of(event->pages.resident_bytes, LIMIT_RESIDENT_BYTES);

		pages->snapshot_ns = check.time_ns;
		error = take_reading(readings, pages, &pages->incoming, NULL, pages->time_ns, bytes,
				     find_final(replay, process) != NULL);
		if (!error && readings->rows->options->from.kind != MMT_TIMESTAMP_DEFAULT &&
		    (!pages->all.start_known ||
		     (pages->start_ns < from_ns &&
		      magnitude_of((int64_t)(pages->time_ns - from_ns)) <= from_ns - pages->start_ns)))
			error = use_as_start(readings, pages, bytes);
		readings->latest_ns = pages->time_ns;
	}
	readings->run_count -= pages->incoming.count;
	pages->incoming.count = 0;
	pages->reading = 0;
	return error;
}

/* The pages of the start move with their memory, or they would seem to be unmapped, and those at the end new. With
 * MREMAP_DONTUNMAP the memory stays, without its pages, which are those of a new mapping. */
static struct mmt_error *take_move(void *context, const struct replay *replay, const struct process *caller,
				   const struct event *event)
{
	const struct process *process = processes_space_owner(replay->processes, caller);
	const uint64_t *arguments = event->call.arguments;
	uint64_t last = replay->metadata->info.page_bytes - 1;
	uint64_t length = ((arguments[1] < arguments[2] ? arguments[1] : arguments[2]) + last) & ~last;
	struct page_readings *readings = context;
	struct process_pages *pages;
	struct mmt_error *error;

	if (arguments[3] & MREMAP_DONTUNMAP)
		return NULL;
	error = find_pages(readings, process, &pages);
	if (error || !pages->all.start_known || event->time_ns < pages->start_ns)
		return error;
	readings->run_count -= pages->all.own_start.count;
	if (!growth_parts_move(pages, arguments[0], (uint64_t)event->call.result, length))
		error = &error_no_memory;
	readings->run_count += pages->all.own_start.count;
	return error;
}

uint64_t page_readings_latest(const struct page_readings *readings)
{
	uint64_t bytes = 0;

	if (readings->ended)
		return readings->latest_bytes;
	map_each(slot, &readings->processes, true) {
		const struct process_pages *pages = slot->pointer;

		bytes += pages->process->ended ? 0 : pages->resident.owned_bytes;
	}
	return bytes;
}

void page_readings_watch(struct page_readings *readings, const struct rows *rows)
{
	struct replay *replay = rows->replay;

	*readings = (struct page_readings){.rows = rows};
	replay->watch.pages = take_event;
	replay->watch.moved = take_move;
	replay->watch.pages_context = readings;
	replay->watch.started = take_start;
}

void page_readings_deinit(struct page_readings *readings)
{
	map_each(slot, &readings->processes, true) {
		struct process_pages *pages = slot->pointer;

		forget_end(pages);
		vector_deinit(&pages->incoming);
		vector_deinit(&pages->all.own_start);
		vector_deinit(&pages->alone.own_start);
		map_deinit(&pages->use);
	}
	map_deinit(&readings->processes);
	steps_of_rows_deinit(&readings->uses.steps);
	resident_sums_deinit(&readings->resident);
	intern_deinit(&readings->kinds.keys);
	vector_deinit(&readings->kinds.items);
	map_deinit(&readings->kinds.started);
}

/* The readings at the end of the recording are in a separate section. */
static struct mmt_error *take_final(struct page_readings *readings)
{
	const struct replay *replay = readings->rows->replay;
	struct mmt_error *error = NULL;

	for (const struct process *process = NULL; !error && (process = processes_next(replay->processes, process));) {
		const struct process_residency *final = find_final(replay, process), *shared, *swapped;
		struct process_pages *pages;

		if (!final)
			continue;
		error = find_pages(readings, process, &pages);
		if (error)
			break;
		if (process->borrows_space) {
			pages->resident.rss_bytes =
			    page_runs_bytes(&final->runs) - growth_parts_hugetlb_bytes(replay, process, &final->runs);
			pages->resident.time_ns = final->time_ns;
			pages->resident.at_end = pages->end_known = true;
			continue;
		}
		shared = recording_residency_of(&replay->metadata->shared, false, process->pid);
		swapped = recording_residency_of(&replay->metadata->swapped, false, process->pid);
		error = take_reading(readings, pages, &final->runs, shared ? &shared->runs : NULL, final->time_ns,
				     final->resident_bytes, false);
		if (!error && swapped)
			error = resident_sums_add(&pages->resident, readings->rows, process, &swapped->runs, NULL);
		pages->resident.at_end = true;
	}
	return error;
}

bool page_readings_count(const struct page_readings *readings, const struct process *process)
{
	return !process->ended ||
	       (readings->keeps_ended && !process_totals_are_released(readings->rows->replay, process));
}

/* Processes that ended count as just before their end if no other is alive. Their last readings stand for that time,
 * unless too much memory is of processes without a recent one. */
static bool keeps_ended(const struct page_readings *readings)
{
	const struct replay *replay = readings->rows->replay;
	uint64_t bytes = 0, unread_bytes = 0;

	if (replay->has_survivors && !replay_keeps_ended(replay))
		return false;
	for (const struct process *process = NULL; (process = rows_next(readings->rows, process));) {
		const struct process_pages *pages = map_get_pointer(&readings->processes, process->index);
		struct space_counts counts = space_counts(process->space);
		uint64_t held = process->borrows_space ? 0 : counts.mapped_bytes + counts.kernel_bytes + counts.before_bytes;
		uint64_t start_ns = larger_of(process->program_ns, replay->first_ns);
		uint64_t life_ns = process->ended_ns > start_ns ? process->ended_ns - start_ns : 0;

		bytes += held;
		/* A last reading stands for the end if little has changed since. */
		if (!pages || !pages->end_known || life_ns < RECENT_LIFE_NS ||
		    process->ended_ns - pages->resident.time_ns > life_ns / RECENT_SHARE)
			unread_bytes += held;
	}
	return unread_bytes < bytes / UNREAD_SHARE;
}

struct mmt_error *page_readings_end(struct page_readings *readings)
{
	const struct replay *replay = readings->rows->replay;
	struct resident_sums *sums = &readings->resident;
	struct mmt_error *error;

	readings->latest_bytes = page_readings_latest(readings);
	readings->ended = true;
	/* Discard readings from before the window, and of a program that the process has replaced since. */
	map_each(slot, &readings->processes, true) {
		struct process_pages *pages = slot->pointer;

		if (pages->end_known && (pages->resident.time_ns < replay->window.from_ns ||
					 space_check_result(pages->process->space).earlier_program))
			forget_end(pages);
	}
	readings->keeps_ended = keeps_ended(readings);
	error = take_final(readings);
	readings->known = replay->metadata->residency.processes.count && !replay->window.ends_early;
	sums->at_end = true;
	sums->uses = &readings->uses;
	map_each(slot, &readings->processes, !error) {
		const struct process_pages *pages = slot->pointer;

		if (!pages->end_known || !page_readings_count(readings, pages->process))
			continue;
		readings->known = true;
		for (unsigned kind = 0; kind < HELD_PAGES; kind++) {
			map_each(held, &pages->resident.held[kind], true) {
				if (!add_to_map(&sums->held[kind], held->key, held->value))
					return &error_no_memory;
			}
		}
		map_each(late, &pages->resident.late, true) {
			if (!map_add(&sums->late, late->key, late->value))
				return &error_no_memory;
		}
		sums->owned_hugetlb_bytes += pages->resident.owned_hugetlb_bytes;
		if (!map_put(&sums->read_ns, pages->process->index, pages->resident.time_ns))
			return &error_no_memory;
		if (!sums->time_ns || pages->resident.time_ns < sums->time_ns)
			sums->time_ns = pages->resident.time_ns;
		sums->at_end &= pages->resident.at_end;
	}
	return error;
}

const struct resident_sums *page_readings_of_process(const struct page_readings *readings,
						     const struct process *process)
{
	const struct process_pages *pages = map_get_pointer(&readings->processes, process->index);

	return pages && pages->end_known && page_readings_count(readings, process) ? &pages->resident : NULL;
}

/* A process that existed at the start must have a reading then, and one that is alive at the end a reading of that. */
struct mmt_error *resident_kinds_build(struct page_readings *readings, struct mmt_report *report)
{
	const struct replay *replay = readings->rows->replay;
	struct mmt_growth *growth = &report->growth;
	struct mmt_error *error = NULL;

	if (!replay->metadata->residency.processes.count || report->windowed)
		return NULL;
	growth->kinds_at_start = readings->kinds.started.count && !report->left_out_process_count;
	growth->kinds_at_end = true;
	for (const struct process *process = NULL; !error && (process = rows_next(readings->rows, process));) {
		const struct process_residency *end = find_final(replay, process);

		growth->kinds_at_start &=
		    process->parent_pid ||
		    recording_residency_of(&replay->metadata->residency, true, process->pid) != NULL;
		if (process->borrows_space || process->ended)
			continue;
		growth->kinds_at_end &= end != NULL;
		error = end ? hold(readings, process, end, false) : NULL;
	}
	growth->kinds = readings->kinds.items.items;
	growth->kind_count = readings->kinds.items.count;
	return error;
}

void huge_pages_build(const struct rows *rows, struct mmt_report *report)
{
	const struct reader_metadata *metadata = rows->replay->metadata;
	uint64_t process_bytes = report->growth.end_bytes != MMT_UNKNOWN ? report->growth.end_bytes : 0, estimate;
	struct mmt_huge_pages *sum = &report->huge_pages;

	sum->zero_bytes = MMT_UNKNOWN;
	if (!metadata->has_huge_pages || rows->replay->window.ends_early)
		return;
	report->huge_pages_known = true;
	for (const struct process *process = NULL; (process = rows_next(rows, process));) {
		const struct process_huge_pages *pages = recording_huge_pages_of(&metadata->huge_pages, process->pid);

		if (process->borrows_space || process->ended)
			continue;
		report->huge_pages_known &= pages != NULL;
		if (!pages)
			continue;
		sum->bytes = saturating_add(sum->bytes, pages->bytes, MMT_BYTES_MAX);
		if (!pages->sampled_bytes)
			continue;
		/* Processes have samples of different density. A double may be rounded up. */
		estimate = (uint64_t)((double)pages->zero_bytes / (double)pages->sampled_bytes * (double)pages->bytes);
		estimate = smaller_of(estimate, pages->bytes);
		sum->zero_bytes = saturating_add(sum->sampled_bytes ? sum->zero_bytes : 0, estimate, MMT_BYTES_MAX);
		sum->sampled_bytes = saturating_add(sum->sampled_bytes, pages->sampled_bytes, MMT_BYTES_MAX);
	}
	sum->hint = hints_of_huge_pages(sum, process_bytes, metadata->huge_pages.setting == HUGE_ALWAYS);
}
