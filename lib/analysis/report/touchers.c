// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which code touched memory: page faults whose pages are new and still resident. */
#include "analysis/report/report-build.h"

#include <math.h>

#include "analysis/report/classes.h"
#include "base/figures.h"

#define AROUND_BYTES 65536	/* as fault_around_bytes of the kernel by default */
#define FOLIO_BYTES_MAX 2097152 /* Linux 6.18 and later map a folio of a file at once */
#define CONFIDENCE 1.96		/* standard deviations that cover 95 % of errors */
#define ERROR_MAX 0x1p62	/* of a hostile recording */

void touch_sums_deinit(struct touch_sums *sums)
{
	intern_deinit(&sums->keys);
	vector_deinit(&sums->items);
	*sums = (struct touch_sums){0};
}

static void add(struct touch_sum *sum, const struct touch_sum *more)
{
	sum->bytes += more->bytes;
	sum->variance += more->variance;
	sum->near_bytes += more->near_bytes;
	sum->repeated_bytes += more->repeated_bytes;
}

struct mmt_error *touchers_add(struct touch_sums *sums, const struct touch_sum *sum)
{
	const uint64_t key[] = {sum->part, sum->stack};
	uint32_t number = intern_put(&sums->keys, key, sizeof(key));

	if (number == INTERN_NONE || (number == sums->items.count && !vector_append(&sums->items)))
		return &error_no_memory;
	sums->items.items[number].part = sum->part;
	sums->items.items[number].stack = sum->stack;
	add(&sums->items.items[number], sum);
	return NULL;
}

static double count_within(const resident_runs *runs, uint64_t start, uint64_t end)
{
	struct page_cursor cursor = {.runs = runs};

	cursor.next = partition_point(runs->count, i, runs->items[i].end <= start);
	return (double)page_cursor_count(&cursor, start, end);
}

/* The new pages FROM to TO in the aligned ranges of MASK + 1 bytes of a fault, for as many faults as it stands for. */
static double count_around(const resident_runs *before, const resident_runs *after, const struct page_fault *fault,
			   uint64_t from, uint64_t to, uint64_t mask)
{
	from = larger_of(from, fault->start & ~mask);
	to = smaller_of(to, (fault->end + mask) & ~mask);
	return larger_of(count_within(after, from, to) - count_within(before, from, to), 0) * fault->weight;
}

/* A sample stands for as many pages as its weight: the variance of their number is weight * (weight - 1). A read of a
 * file maps the pages around it, too, as far as they are in the page cache. If every fault was recorded, pages without
 * one were mapped so. Samples do not show whether pages in the same folio, or that are writable, had faults of their
 * own: they may count. */
struct mmt_error *touchers_count(struct touch_sums *sums, const struct page_faults *faults,
				 const struct space_interval *piece, uint64_t part, bool sampled,
				 const resident_runs *copied, const resident_runs *start, const resident_runs *end)
{
	uint64_t position = piece->start, previous = piece->start;
	uint64_t most = piece->attributes.inode ? FOLIO_BYTES_MAX - 1 : 0;
	uint64_t near = sampled ? most & (AROUND_BYTES - 1) : 0;
	uint64_t sure = !sampled ? most : piece->attributes.protection & PROT_WRITE ? 0 : near;
	struct mmt_error *error = NULL;
	struct page_fault fault;

	while (!error && faults && page_faults_next(faults, &position, piece->end, &fault)) {
		struct page_fault next = {.start = piece->end};
		struct touch_sum sum = {.part = part, .stack = fault.stack};
		uint64_t peeked = position, from;

		(void)page_faults_next(faults, &peeked, piece->end, &next);
		from = fault.start - smaller_of(fault.start & most, fault.start - previous);
		previous = fault.end + smaller_of(-fault.end & most, next.start - fault.end);
		if (copied && !count_within(copied, fault.start, fault.end))
			continue;
		sum.bytes = count_around(start, end, &fault, from, previous, sure);
		sum.near_bytes = count_around(start, end, &fault, piece->start, piece->end, near) - sum.bytes;
		sum.variance = sum.bytes * sum.bytes / fault.weight * (fault.weight - 1.0);
		sum.repeated_bytes = count_around(start, end, &fault, from, previous, most) - sum.bytes;
		if (sum.bytes > 0)
			error = touchers_add(sums, &sum);
	}
	return error;
}

COMPARISON(compare_touchers, struct mmt_toucher, order_of(b->bytes, a->bytes) ?: strcmp(a->name, b->name))

/* Functions, each with the stack that touched most. */
struct touchers {
	struct intern names; /* its ids are places in `items` */
	struct mmt_toucher *items;
	struct touch_sum *sums;
};

static struct mmt_error *add_stack(struct touchers *touchers, struct rows *rows, const struct touch_sum *sum)
{
	struct mmt_row stack = {0};
	struct mmt_error *error = rows_name_stack(rows, sum->stack, &stack);
	CLEANUP(free) char *name = NULL;
	struct mmt_toucher *toucher;
	struct touch_sum *touched;
	uint32_t number;

	if (error)
		return error;
	stack.origin = origin_of_stack(stack.frames, stack.frame_count);
	/* Of library functions alone, the one that touched it is named. */
	name = stack.frame_count ? rows_function_name(stack.frames[stack.origin < stack.frame_count ? stack.origin : 0])
				 : strdup("[no stack]");
	number = name ? intern_put_string(&touchers->names, name) : INTERN_NONE;
	if (number == INTERN_NONE)
		return &error_no_memory;
	toucher = &touchers->items[number];
	touched = &touchers->sums[number];
	add(touched, sum);
	if (toucher->name && sum->bytes <= touched->largest_bytes)
		return NULL;
	touched->largest_bytes = sum->bytes;
	*toucher = (struct mmt_toucher){.name = toucher->name ? toucher->name : arena_string(rows->arena, name),
					FIGURES_STACK(&stack)};
	return toucher->name ? NULL : &error_no_memory;
}

/* Nobody touched more than `most`. */
static uint64_t limit_error(const struct touch_sum *sum, double most)
{
	double error = CONFIDENCE * sqrt(sum->variance) + sum->repeated_bytes;
	double possible = sum->bytes > most / 2 ? sum->bytes : most - sum->bytes;

	return (uint64_t)(error < possible ? error : possible);
}

/* Pages that are missing beyond the error of sampling were mapped around others. If so many are missing as lie near
 * those with samples, each brought in all of these; else faults of their own may have, so that they count as errors,
 * too. */
static void add_neighbours(struct touch_sum *sums, size_t count, struct touch_sum *all, double missing)
{
	double least = CONFIDENCE * sqrt(all->variance);
	double share = missing > least && all->near_bytes > 0 ? smaller_of(missing / all->near_bytes, 1) : 0;
	bool certain = all->near_bytes <= missing + least * (1 + missing / all->bytes);

	for (size_t i = 0; i < count; i++) {
		double more = sums[i].near_bytes * share, rest = missing - (certain ? all->near_bytes * share : more);
		double factor = more > 0 ? 1 + more / sums[i].bytes : 1;

		sums[i].repeated_bytes = larger_of(smaller_of(sums[i].repeated_bytes - more, rest), certain ? 0 : more);
		all->variance += sums[i].variance * (factor * factor - 1);
		sums[i].variance *= factor * factor;
		sums[i].bytes += more;
	}
	all->bytes += all->near_bytes * share;
}

/* No more was touched than `most`, by which a part grew. Of what the estimates exceed that, each has its share of the
 * variance, so that few samples of huge pages do not change the figures of small ones. If it is no error of sampling,
 * pages had several faults, such as a write after fork(2). Samples do not show which: then each has its share of the
 * bytes, and any function may have all of them. Nobody has more neighbours than are missing. Returns the sum of all. */
static struct touch_sum fit_sums(struct touch_sum *sums, size_t count, double most)
{
	struct touch_sum all = {0};
	double excess, repeated;
	bool by_variance;

	for (size_t i = 0; i < count; i++)
		add(&all, &sums[i]);
	excess = all.bytes > most ? all.bytes - most : 0;
	by_variance = all.variance > 0 && excess <= CONFIDENCE * sqrt(all.variance);
	for (size_t i = 0; i < count; i++)
		by_variance = by_variance && excess * sums[i].variance <= sums[i].bytes * all.variance;
	repeated = by_variance ? 0 : excess;
	if (excess <= 0)
		add_neighbours(sums, count, &all, most - all.bytes);
	for (size_t i = 0; excess > 0 && i < count; i++) {
		double less = excess * (by_variance ? sums[i].variance / all.variance : sums[i].bytes / all.bytes);
		double least = sums[i].bytes > repeated ? sums[i].bytes - repeated : 0;

		sums[i].bytes -= less;
		sums[i].repeated_bytes = repeated > 0 ? larger_of(sums[i].bytes - least, less) : 0;
	}
	return (struct touch_sum){.bytes = all.bytes - excess, .variance = all.variance};
}

static bool is_of_any(const struct touch_sum *sum)
{
	return sum->stack == TOUCHED_BY_ANY;
}

/* By part; its sum comes first, then the stacks that touched most. */
COMPARISON(compare_sums, struct touch_sum,
	   order_of(a->part, b->part) ?: order_of(is_of_any(b), is_of_any(a)) ?: order_of(b->bytes, a->bytes)
	   ?: order_of(a->stack, b->stack))

void touchers_sort(struct touch_sums *sums)
{
	vector_sort(&sums->items, compare_sums);
}

struct mmt_error *touchers_publish(struct touch_sums *sums, struct rows *rows, struct mmt_growth_part *part)
{
	const struct touch_sum *first = sums->items.items;
	struct touchers touchers = {0};
	struct touch_sum unnamed = {0}, all;
	struct mmt_error *error = NULL;
	size_t count = 0, left = LIMIT_TOUCHERS - sums->named;
	const struct touch_sum *end = first + sums->items.count;

	if (!sums->items.count || part->bytes <= 0)
		return NULL;
	first += partition_point(sums->items.count, i, first[i].part < part->order);
	if (first < end && first->part == part->order && first->bytes > 0 && is_of_any(first))
		part->unattributed_bytes = (uint64_t)smaller_of(first->bytes, (double)part->bytes);
	first += first < end && is_of_any(first);
	while (first + count < end && first[count].part == part->order)
		count++;
	if (!count)
		return NULL;
	for (size_t i = left; i < count; i++)
		add(&unnamed, &first[i]);
	count = smaller_of(count, left);
	sums->named += count;
	touchers.items = arena_alloc(rows->arena, count, sizeof(*touchers.items));
	touchers.sums = calloc(count + 1, sizeof(*touchers.sums));
	if (!touchers.items || !touchers.sums)
		error = &error_no_memory;
	for (size_t i = 0; !error && i < count; i++)
		error = add_stack(&touchers, rows, &first[i]);
	if (!error) {
		count = touchers.names.count;
		touchers.sums[count] = unnamed;
		all = fit_sums(touchers.sums, count + 1, (double)part->bytes);
		part->touched_bytes = (uint64_t)all.bytes;
		part->touched_error_bytes = limit_error(&all, (double)part->bytes);
		part->unattributed_bytes -= smaller_of(part->touched_bytes, part->unattributed_bytes);
		for (size_t i = 0; i < count; i++) {
			touchers.items[i].bytes = (uint64_t)touchers.sums[i].bytes;
			touchers.items[i].error_bytes = limit_error(&touchers.sums[i], (double)part->bytes);
		}
		qsort(touchers.items, count, sizeof(*touchers.items), compare_touchers);
		part->touchers = touchers.items;
		part->toucher_count = count;
	}
	intern_deinit(&touchers.names);
	free(touchers.sums);
	return error;
}

/* Rows by touch */

static const char needed_pages[] =
    "needed new pages: in a heap, that is not the code that keeps memory, since others keep the blocks that it freed";

static struct mmt_error *add_to_row(struct rows *rows, const struct touch_sum *sum, const struct process *process)
{
	struct account account = {.stack = sum->stack,
				  .process = process->index,
				  .kind = (uint32_t)sum->part,
				  .thread = LEDGER_NO_THREAD,
				  .pattern = (uint32_t)(sum->part >> 32)};
	struct mmt_error *error = rows_find(rows, &account);
	struct touch_sum *row;

	if (error || account.row == LEDGER_NO_ROW)
		return error;
	/* The first row, of all accounts, is not in the report. */
	if (rows->options->lifetime_steps &&
	    !vector_push(&rows->touches,
			 ((struct row_touch){account.row - 2, account.process, account.kind, sum->bytes})))
		return &error_no_memory;
	row = &rows->items.items[account.row - 1].touched;
	add(row, sum);
	if (sum->bytes > row->largest_bytes) {
		row->largest_bytes = sum->bytes;
		row->part = sum->part;
	}
	return NULL;
}

/* Each process by itself: what one estimate exceeds, another one does not lack. */
static struct mmt_error *add_process(struct rows *rows, struct process_pages *pages)
{
	struct touch_sum *sums = pages->touched.items.items;
	size_t count = pages->touched.items.count, end = 0;
	struct mmt_error *error = NULL;

	touchers_sort(&pages->touched);
	for (size_t first = 0; !error && first < count; first = end) {
		double most = 0;

		for (; end < count && sums[end].part == sums[first].part; end++) {
			if (is_of_any(&sums[end])) {
				most = sums[end].bytes;
				sums[end].bytes = 0;
			}
		}
		(void)fit_sums(&sums[first], end - first, most);
		for (size_t i = first; !error && i < end; i++)
			error = sums[i].bytes > 0 ? add_to_row(rows, &sums[i], pages->process) : NULL;
	}
	return error;
}

struct mmt_error *touchers_build_rows(const struct page_readings *readings, struct rows *rows)
{
	struct mmt_error *error = NULL;
	bool known = false;

	if (rows->options->by != MMT_BY_TOUCH)
		return NULL;
	rows->touching = true;
	rows->items.items[0].stack = rows->replay->no_stack;
	map_each(slot, &readings->processes, !error) {
		struct process_pages *pages = slot->pointer;

		if (!pages->all.parts_known || !rows_selects_pid(rows, pages->process->pid) ||
		    !page_readings_count(readings, pages->process))
			continue;
		known = true;
		error = add_process(rows, pages);
	}
	return known ? error
		     : error_create(MMT_ERROR_INVALID,
				    "%s: rows by touch need the pages that were resident when recording began and "
				    "later, which were not read, for instance because the program ended",
				    rows->options->input);
}

struct mmt_error *touchers_fill_row(const struct rows *rows, const struct touch_sum *touched, struct mmt_row *row)
{
	uint32_t path = classes_kind_path((uint32_t)touched->part);

	row->memory_bytes = row->resident_bytes = row->committed_bytes = (uint64_t)touched->bytes;
	row->touched_error_bytes = limit_error(touched, ERROR_MAX);
	row->resident_before_bytes = 0;
	row->bytes_per_minute = MMT_RATE_UNKNOWN;
	row->verdict = MMT_ROW_UNKNOWN;
	row->hint = row->pattern ? needed_pages : NULL;
	row->memory_class = classes_kind_class((uint32_t)touched->part);
	row->file = path ? arena_string(rows->arena, resolver_path_name(rows->replay->code, path)) : NULL;
	return !path || row->file ? NULL : &error_no_memory;
}
