// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which code touched memory that was mapped before the recording: page faults whose pages are still resident. */
#include "analysis/report/report-build.h"

#include "base/cleanup.h"

#define AROUND_BYTES 65536	/* as fault_around_bytes of the kernel by default */
#define FOLIO_BYTES_MAX 2097152 /* Linux 6.18 and later map a folio of a file at once */
#define ROOT_STEPS 100		/* from any number that a variance can be */
#define CONFIDENCE 1.96		/* standard deviations that cover 95 % of errors */

void touch_sums_deinit(struct touch_sums *sums)
{
	intern_deinit(&sums->keys);
	vector_deinit(&sums->items);
	*sums = (struct touch_sums){0};
}

static struct mmt_error *add(struct touch_sums *sums, const struct touch_sum *sum)
{
	const uint64_t key[] = {sum->part, sum->stack};
	uint32_t number = intern_put(&sums->keys, key, sizeof(key));

	if (number == INTERN_NONE || (number == sums->items.count && !vector_append(&sums->items)))
		return &error_no_memory;
	sums->items.items[number].part = sum->part;
	sums->items.items[number].stack = sum->stack;
	sums->items.items[number].bytes += sum->bytes;
	sums->items.items[number].variance += sum->variance;
	return NULL;
}

struct mmt_error *touchers_add(struct touch_sums *sums, const struct touch_sums *more)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < more->items.count; i++)
		error = add(sums, &more->items.items[i]);
	return error;
}

static uint64_t count_within(const resident_runs *runs, uint64_t start, uint64_t end)
{
	struct page_cursor cursor = {.runs = runs};

	cursor.next = partition_point(runs->count, i, runs->items[i].end <= start);
	return page_cursor_count(&cursor, start, end);
}

/*
 * A sample stands for as many pages as its weight: the variance of their number is weight * (weight - 1). A read of a
 * file maps the pages around it, too, as far as they are in the page cache. If every fault was recorded, pages without
 * one were mapped so. Samples do not show whether pages that are writable had faults of their own.
 */
struct mmt_error *touchers_count(struct touch_sums *sums, const struct page_faults *faults,
				 const struct space_interval *piece, uint64_t part, bool sampled,
				 const resident_runs *start, const resident_runs *end)
{
	uint64_t position = piece->start, previous = piece->start;
	uint64_t most = !piece->attributes.inode		    ? 0
			: !sampled				    ? FOLIO_BYTES_MAX - 1
			: piece->attributes.protection & PROT_WRITE ? 0
								    : AROUND_BYTES - 1;
	struct mmt_error *error = NULL;
	struct page_fault fault;

	while (!error && page_faults_next(faults, &position, piece->end, &fault)) {
		struct page_fault next = {.start = piece->end};
		struct touch_sum sum = {.part = part, .stack = fault.stack};
		uint64_t peeked = position, from, before, after;

		(void)page_faults_next(faults, &peeked, piece->end, &next);
		from = fault.start - smaller_of(fault.start & most, fault.start - previous);
		previous = fault.end + smaller_of(-fault.end & most, next.start - fault.end);
		before = count_within(start, from, previous);
		after = count_within(end, from, previous);
		sum.bytes = after > before ? (double)(after - before) * fault.weight : 0;
		sum.variance = sum.bytes * sum.bytes / fault.weight * (fault.weight - 1.0);
		if (sum.bytes > 0)
			error = add(sums, &sum);
	}
	return error;
}

static double square_root(double value)
{
	double root = value > 1 ? value : 1;

	for (unsigned i = 0; i < ROOT_STEPS; i++)
		root = (root + value / root) / 2;
	return root;
}

COMPARISON(compare_touchers, struct mmt_toucher, order_of(b->bytes, a->bytes) ?: strcmp(a->name, b->name))

/* Functions, each with the stack that touched most. */
struct touchers {
	struct intern names; /* its ids are places in `items` */
	struct mmt_toucher *items;
	struct touched {
		double bytes, variance, largest_bytes;
	} * sums;
};

static struct mmt_error *add_stack(struct touchers *touchers, struct rows *rows, const struct touch_sum *sum)
{
	struct mmt_row stack = {0};
	struct mmt_error *error = rows_name_stack(rows, sum->stack, &stack);
	CLEANUP(free) char *name = NULL;
	struct mmt_toucher *toucher;
	struct touched *touched;
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
	touched->bytes += sum->bytes;
	touched->variance += sum->variance;
	if (toucher->name && sum->bytes <= touched->largest_bytes)
		return NULL;
	touched->largest_bytes = sum->bytes;
	*toucher = (struct mmt_toucher){.name = toucher->name ? toucher->name : arena_string(rows->arena, name),
					.frames = stack.frames,
					.frame_count = stack.frame_count,
					.hidden_frame_count = stack.hidden_frame_count,
					.origin = stack.origin,
					.stack_end = stack.stack_end};
	return toucher->name ? NULL : &error_no_memory;
}

/* 95 % of errors are smaller. Nobody touched more than `most`. */
static uint64_t limit_error(double variance, double more, double bytes, double most)
{
	double error = CONFIDENCE * square_root(variance) + more, possible = bytes > most / 2 ? bytes : most - bytes;

	return (uint64_t)(error < possible ? error : possible);
}

/*
 * No more was touched than the part grew. Of what the estimates exceed that, each has its share of the variance, so
 * that few samples of huge pages do not change the figures of small ones. If it is no error of sampling, pages had
 * several faults, such as a write after fork(2). Samples do not show which: then each has its share of the bytes, and
 * any function may have all of them.
 */
static void set_figures(const struct touchers *touchers, size_t count, struct touched unnamed,
			struct mmt_growth_part *part)
{
	double bytes = unnamed.bytes, variance = unnamed.variance, most = (double)part->bytes, excess, repeated;
	bool by_variance;

	for (size_t i = 0; i < count; i++) {
		bytes += touchers->sums[i].bytes;
		variance += touchers->sums[i].variance;
	}
	excess = bytes > most ? bytes - most : 0;
	by_variance = variance > 0 && excess <= CONFIDENCE * square_root(variance);
	for (size_t i = 0; i < count; i++)
		by_variance = by_variance && excess * touchers->sums[i].variance <= touchers->sums[i].bytes * variance;
	repeated = by_variance ? 0 : excess;
	for (size_t i = 0; i < count; i++) {
		const struct touched *sum = &touchers->sums[i];
		double less = excess * (by_variance ? sum->variance / variance : sum->bytes / bytes);
		double least = sum->bytes > repeated ? sum->bytes - repeated : 0, estimate = sum->bytes - less;

		touchers->items[i].bytes = (uint64_t)estimate;
		touchers->items[i].error_bytes =
		    limit_error(sum->variance, repeated > 0 ? (estimate - least > less ? estimate - least : less) : 0,
				estimate, most);
	}
	part->touched_bytes = (uint64_t)(bytes - excess);
	part->touched_error_bytes = limit_error(variance, 0, bytes - excess, most);
}

/* By part; the stacks that touched most come first. */
COMPARISON(compare_sums, struct touch_sum,
	   order_of(a->part, b->part) ?: order_of(b->bytes, a->bytes) ?: order_of(a->stack, b->stack))

void touchers_sort(struct touch_sums *sums)
{
	vector_sort(&sums->items, compare_sums);
}

struct mmt_error *touchers_publish(struct touch_sums *sums, struct rows *rows, struct mmt_growth_part *part)
{
	const struct touch_sum *first = sums->items.items;
	struct touchers touchers = {0};
	struct touched unnamed = {0};
	struct mmt_error *error = NULL;
	size_t count = 0, left = LIMIT_TOUCHERS - sums->named;

	if (!sums->items.count || part->bytes <= 0)
		return NULL;
	first += partition_point(sums->items.count, i, first[i].part < part->order);
	while (first + count < sums->items.items + sums->items.count && first[count].part == part->order)
		count++;
	if (!count)
		return NULL;
	for (size_t i = left; i < count; i++) {
		unnamed.bytes += first[i].bytes;
		unnamed.variance += first[i].variance;
	}
	count = smaller_of(count, left);
	sums->named += count;
	touchers.items = arena_alloc(rows->arena, count, sizeof(*touchers.items));
	touchers.sums = calloc(count, sizeof(*touchers.sums));
	if (!touchers.items || !touchers.sums)
		error = &error_no_memory;
	for (size_t i = 0; !error && i < count; i++)
		error = add_stack(&touchers, rows, &first[i]);
	if (!error) {
		count = touchers.names.count;
		set_figures(&touchers, count, unnamed, part);
		qsort(touchers.items, count, sizeof(*touchers.items), compare_touchers);
		part->touchers = touchers.items;
		part->toucher_count = count;
	}
	intern_deinit(&touchers.names);
	free(touchers.sums);
	return error;
}
