// SPDX-License-Identifier: LGPL-2.1-or-later
/* The causes of a report: which rows have one cause. */
#include "analysis/report/row-verdicts.h"

#include "base/figures.h"

#define LOST_NAME "[lost calls]"

struct causes {
	struct mmt_report *report;
	struct mmt_row *rows;
	struct intern names; /* its ids are those of causes */
	struct intern function_names;
	const struct build_id_paths *build_ids;
	uint32_t *functions; /* by place of the row: id in function_names */
	struct mmt_cause *items;
	size_t count;
	struct cause_sums {
		uint64_t leaking_bytes, largest_bytes; /* of its rows, of the largest row with a verdict */
		bool leaks;			       /* one of its rows does more than grow */
		uint64_t pattern_bytes[MMT_PATTERN_KINDS];
	} * sums; /* by cause */
};

static const struct mmt_row *find_cause_row(const struct causes *causes, const struct mmt_row *row)
{
	if (row->unfreed_bytes || !row->reserved_by)
		return row;
	return &causes->rows[row->reserved_by - 1];
}

static void add_row(struct causes *causes, uint32_t number, const struct mmt_row *row)
{
	struct mmt_cause *cause = &causes->items[number];
	uint64_t size = row->memory_bytes ? row->memory_bytes : row->unfreed_bytes;

	figures_add_to_cause(cause, row);
	cause->row_count++;
	if (row->bytes_per_minute == MMT_RATE_UNKNOWN || cause->bytes_per_minute == MMT_RATE_UNKNOWN)
		cause->bytes_per_minute = MMT_RATE_UNKNOWN;
	else
		cause->bytes_per_minute =
		    bytes_per_minute((double)cause->bytes_per_minute + (double)row->bytes_per_minute, 60e9);
	if (row->unfreed_count) {
		cause->first_ns = smaller_of(row->first_ns, cause->first_ns);
		cause->last_ns = larger_of(row->last_ns, cause->last_ns);
	}
	if (mmt_row_leaks(row->verdict))
		figure_add(&causes->sums[number].leaking_bytes, size);
	figure_add(&causes->sums[number].pattern_bytes[find_cause_row(causes, row)->pattern], size);
	cause->leaks_together |= row->verdict == MMT_ROW_PART_OF_LEAK;
	causes->sums[number].leaks |= mmt_row_leaks(row->verdict) && row->verdict != MMT_ROW_KEEPS_GROWING;
	if (row->verdict && size >= causes->sums[number].largest_bytes) {
		causes->sums[number].largest_bytes = size;
		cause->verdict = row->verdict;
	}
}

/* A leak decides unless it is small, or else the largest row with a verdict. The pattern is that of most bytes. */
static void decide(struct causes *causes)
{
	for (size_t i = 0; i < causes->count; i++) {
		struct mmt_cause *cause = &causes->items[i];
		uint64_t size = cause->memory_bytes ? cause->memory_bytes : cause->unfreed_bytes;
		double least = (double)size * VERDICT_LEAK_SHARE;

		if (mmt_row_leaks(cause->verdict) ||
		    (causes->sums[i].leaking_bytes && (double)causes->sums[i].leaking_bytes >= least))
			cause->verdict = mmt_pattern_is_by_design(cause->pattern) || !causes->sums[i].leaks
					     ? MMT_ROW_KEEPS_GROWING
					     : MMT_ROW_LEAK;
		else if (cause->verdict == MMT_ROW_MADE_EARLY && cause->unfreed_count >= VERDICT_COUNT)
			cause->verdict = MMT_ROW_CACHE;
		for (unsigned pattern = 1; pattern < MMT_PATTERN_KINDS; pattern++) {
			if (causes->sums[i].pattern_bytes[pattern] > size / 2)
				cause->pattern = (enum mmt_pattern)pattern;
		}
		if (!cause->unfreed_count)
			cause->first_ns = cause->last_ns = MMT_UNKNOWN;
	}
}

static struct mmt_error *add_rows(struct causes *causes, struct arena *arena)
{
	for (size_t i = 0; i < causes->report->row_count; i++) {
		const struct mmt_row *row = &causes->rows[i], *origin = find_cause_row(causes, row);
		uint32_t number;
		const struct mmt_frame *frame =
		    origin->origin < origin->frame_count ? origin->frames[origin->origin] : NULL;
		const char pattern[] = {(char)origin->pattern, 0};
		CLEANUP(free)
		char *name = mmt_pattern_is_by_design(origin->pattern) ? strdup(pattern)
			     : origin->lost			       ? strdup(LOST_NAME)
								       : rows_function_name(frame);
		struct mmt_cause *cause = &causes->items[causes->count];
		bool by_design = mmt_pattern_is_by_design(origin->pattern);
		/* Leaks of a function are a separate cause from its other memory: it may be a wrapper that others call.
		 */
		uint32_t key[] = {0, mmt_row_leaks(origin->verdict) && !origin->lost && !by_design};

		causes->functions[i] = key[0] = name ? intern_put_string(&causes->function_names, name) : INTERN_NONE;
		if (key[0] == INTERN_NONE)
			return &error_no_memory;
		if (!row->unfreed_bytes && !row->memory_bytes)
			continue;
		number = intern_put(&causes->names, key, sizeof(key));
		if (number == INTERN_NONE)
			return &error_no_memory;
		causes->rows[i].cause = number + 1;
		if (number == causes->count) {
			causes->count++;
			/* The first row is the largest. */
			*cause = (struct mmt_cause){.name = by_design ? NULL : arena_string(arena, name),
						    .pattern = by_design ? origin->pattern : MMT_PATTERN_NONE,
						    .memory_class = row->memory_class,
						    .file = row->file,
						    .resident_bytes = MMT_UNKNOWN,
						    .first_ns = UINT64_MAX};
			if (!by_design && !cause->name)
				return &error_no_memory;
		}
		add_row(causes, number, row);
	}
	return NULL;
}

/* RSS is level, but mappings that are hardly touched can leak, for instance the stacks of threads: find how much the
 * unfreed bytes of such causes grew since then. */
static void find_unfreed_growth(struct causes *causes)
{
	struct mmt_report *report = causes->report;
	uint64_t length_ns = report->to_ns > report->from_ns ? report->to_ns - report->from_ns : 0;
	uint64_t level_ns =
	    report->growth.settled_ns > report->from_ns ? report->growth.settled_ns - report->from_ns : 0;
	double point = length_ns ? (double)level_ns / (double)length_ns * MMT_TREND_POINTS : 0;
	unsigned first = point < MMT_TREND_POINTS - 1 ? (unsigned)point : MMT_TREND_POINTS - 1;
	uint64_t grown = 0;

	array_each(row, causes->rows, report->row_count) {
		const struct mmt_cause *cause = row->cause ? &causes->items[row->cause - 1] : NULL;
		uint64_t at_end = row->trend[MMT_TREND_POINTS - 1];

		if (!cause || !mmt_row_leaks(cause->verdict) || cause->resident_bytes == MMT_UNKNOWN ||
		    cause->memory_bytes > cause->unfreed_bytes / 2)
			continue;
		if (at_end > row->trend[first])
			grown = saturating_add(grown, at_end - row->trend[first], MMT_BYTES_MAX);
	}
	if (grown > report->growth.floor_bytes)
		report->growth.unfreed_growth_bytes = grown;
}

/* List the IDs of the rows of each cause. */
static struct mmt_error *list_rows(struct causes *causes, struct arena *arena)
{
	for (size_t i = 0; i < causes->count; i++) {
		causes->items[i].rows = arena_alloc(arena, causes->items[i].row_count, sizeof(uint32_t));
		if (!causes->items[i].rows)
			return &error_no_memory;
		causes->items[i].row_count = 0;
	}
	array_each(row, causes->rows, causes->report->row_count) {
		struct mmt_cause *cause = row->cause ? &causes->items[row->cause - 1] : NULL;

		if (cause)
			((uint32_t *)cause->rows)[cause->row_count++] = row->id;
	}
	return NULL;
}

/* Which caller made a heap grow, or a function map memory. */
struct callers {
	uint32_t *firsts, *nexts; /* rows of one function, by id in function_names and by place of the row, from 1 */
	struct map bytes;	  /* of one cause: checksum of a caller -> memory */
};

/* The stacks that have the first `depth` frames of a row in common, from their origin on. */
struct stem {
	size_t place, depth;
};

/* How many frames the stacks have in common from their origin on. A frame without a name can be that of any function.
 */
static size_t common_depth(const struct mmt_row *left, const struct mmt_row *right)
{
	size_t depth = 0;

	for (; left->origin + depth < left->frame_count && right->origin + depth < right->frame_count; depth++) {
		const struct mmt_frame *a = left->frames[left->origin + depth];
		const struct mmt_frame *b = right->frames[right->origin + depth];

		if (!identity_has_name(a) || !identity_has_name(b))
			return SIZE_MAX;
		if (strcmp(a->function, b->function) != 0)
			break;
	}
	return depth;
}

/* Find how many frames the stacks of a stem have in common. False: the stem has one stack. */
static bool find_common_depth(const struct causes *causes, const struct callers *callers, const struct stem *stem,
			      size_t *depth_ret, bool *several_causes_ret)
{
	const struct mmt_row *row = &causes->rows[stem->place];

	*depth_ret = SIZE_MAX;
	*several_causes_ret = false;
	for (uint32_t i = callers->firsts[causes->functions[stem->place]]; i; i = callers->nexts[i - 1]) {
		size_t depth = i == stem->place + 1 ? SIZE_MAX : common_depth(row, &causes->rows[i - 1]);

		if (depth < stem->depth)
			continue;
		*several_causes_ret |= causes->rows[i - 1].cause != row->cause;
		*depth_ret = smaller_of(depth, *depth_ret);
	}
	return *depth_ret != SIZE_MAX;
}

#define OF_PROGRAM SIZE_MAX /* depth of the function for which a runtime maps memory */

/* The caller with most memory of the cause, of those of the stem's function; its place is that of a row. */
static struct mmt_error *find_caller(const struct causes *causes, struct callers *callers,
				     const struct mmt_cause *cause, const struct stem *stem, size_t depth,
				     struct stem *caller_ret, uint64_t *bytes_ret)
{
	map_deinit(&callers->bytes);
	*bytes_ret = 0;
	for (size_t i = 0; i < cause->row_count; i++) {
		size_t place = cause->rows[i] - 1;
		const struct mmt_row *row = &causes->rows[place];
		size_t frame = depth == OF_PROGRAM ? origin_of_runtime(row) : row->origin + depth;
		uint64_t checksum, *bytes;

		if (!row->memory_bytes || frame >= row->frame_count ||
		    (depth != OF_PROGRAM && !identity_has_name(row->frames[frame])) ||
		    (stem->depth && common_depth(&causes->rows[stem->place], row) < stem->depth))
			continue;
		checksum = origin_is_unnamed_code(row->frames[frame])
			       ? 0
			       : identity_frame_checksum(0, causes->build_ids, row->frames[frame]);
		if (!map_add(&callers->bytes, checksum, row->memory_bytes))
			return &error_no_memory;
		bytes = map_get(&callers->bytes, checksum);
		if (*bytes > *bytes_ret) {
			*bytes_ret = *bytes;
			*caller_ret = (struct stem){place, frame - row->origin + 1};
		}
	}
	return NULL;
}

/* NULL: out of memory. The caller frees it. */
static char *name_frame(const struct mmt_row *row, size_t place)
{
	const struct runtime *runtime = NULL;
	char *name;

	if (!origin_is_unnamed_code(row->frames[place]))
		return row->frames[place]->kind == MMT_FRAME_JIT ? strdup(row->frames[place]->function)
								 : rows_function_name(row->frames[place]);
	for (size_t i = 0; i < row->frame_count && !runtime; i++)
		runtime = row->frames[i]->module_path ? runtimes_of_file(row->frames[i]->module_path) : NULL;
	return asprintf(&name, "[%s code without names]", runtime ? runtime->label : "JIT") < 0 ? NULL : name;
}

#define CALLER_SHARE 4 /* of the memory: a caller with less than 1/CALLER_SHARE explains little */

/* Name the caller of a function that several call, and the caller of that if other causes have it in common, too; of a
 * runtime's own function, the program's. */
static struct mmt_error *name_caller(const struct causes *causes, struct callers *callers, struct arena *arena,
				     struct mmt_cause *cause)
{
	struct stem stem = {.place = cause->rows[0] - 1}, caller = {0};
	enum mmt_pattern pattern = find_cause_row(causes, &causes->rows[stem.place])->pattern;
	const struct mmt_row *row = &causes->rows[stem.place];
	bool by_design = mmt_pattern_is_by_design(pattern), several;
	const struct mmt_frame *origin = row->origin < row->frame_count ? row->frames[row->origin] : NULL;
	bool of_runtime =
	    origin && pattern != MMT_PATTERN_JVM_NATIVE && pattern != MMT_PATTERN_THREAD_STACK &&
	    (mmt_frame_is_runtime(origin) || (pattern == MMT_PATTERN_GC_HEAP && origin->kind == MMT_FRAME_JIT));
	CLEANUP(free) char *name = NULL;
	struct mmt_error *error;
	uint64_t bytes, caller_bytes = 0;
	size_t depth = 0;

	if (of_runtime) {
		error = find_caller(causes, callers, cause, &stem, OF_PROGRAM, &caller, &caller_bytes);
		if (error)
			return error;
		if (caller_bytes < cause->memory_bytes / CALLER_SHARE)
			caller.depth = 0;
	}
	if (!caller.depth && (pattern == MMT_PATTERN_CODE || pattern == MMT_PATTERN_METASPACE ||
			      (pattern == MMT_PATTERN_GC_HEAP && of_runtime)))
		return NULL;
	while (!of_runtime || !caller.depth) {
		struct stem next;

		if (!by_design || caller.depth) {
			if (!find_common_depth(causes, callers, &stem, &depth, &several) || !depth)
				break;
			/* In a heap, what its callers share is a wrapper, such as xmalloc(), if one has most. */
			if (caller.depth && (by_design ? depth > caller.depth : !several))
				break;
		}
		error = find_caller(causes, callers, cause, &stem, depth, &next, &bytes);
		if (error)
			return error;
		if (!bytes || bytes < cause->memory_bytes / CALLER_SHARE ||
		    (by_design && bytes < caller_bytes - caller_bytes / CALLER_SHARE))
			break;
		caller_bytes = bytes;
		caller = stem = next;
	}
	if (!caller.depth)
		return NULL;
	row = &causes->rows[caller.place];
	name = name_frame(row, row->origin + caller.depth - 1);
	cause->caller = name ? arena_string(arena, name) : NULL;
	if (!cause->caller)
		return &error_no_memory;
	cause->caller_bytes = caller_bytes;
	/* The loop of an interpreter says nothing more than its only function. */
	if (cause->name && caller_bytes == cause->memory_bytes && origin_is_unnamed_code(row->frames[row->origin])) {
		cause->name = cause->caller;
		cause->caller = NULL;
		cause->caller_bytes = 0;
	}
	return NULL;
}

static struct mmt_error *name_callers(struct causes *causes, struct arena *arena)
{
	CLEANUP(free) uint32_t *firsts = calloc(causes->function_names.count + 1, sizeof(*firsts));
	CLEANUP(free) uint32_t *nexts = calloc(causes->report->row_count + 1, sizeof(*nexts));
	struct callers callers = {.firsts = firsts, .nexts = nexts};
	struct mmt_error *error = NULL;

	if (!firsts || !nexts)
		return &error_no_memory;
	for (uint32_t i = 0; i < causes->report->row_count; i++) {
		if (!causes->rows[i].cause)
			continue;
		nexts[i] = firsts[causes->functions[i]];
		firsts[causes->functions[i]] = i + 1;
	}
	for (size_t i = 0; !error && i < causes->count; i++)
		error = name_caller(causes, &callers, arena, &causes->items[i]);
	map_deinit(&callers.bytes);
	return error;
}

COMPARISON_WITH(compare_causes, struct mmt_cause, struct mmt_growth,
		order_of(growth_has_leak(with, b), growth_has_leak(with, a)) ?: order_of(b->memory_bytes, a->memory_bytes)
		?: order_of(b->unfreed_bytes, a->unfreed_bytes) ?: order_of(a->rows[0], b->rows[0]))

struct mmt_error *row_causes_build(struct mmt_report *report, struct mmt_row *rows,
				   const struct build_id_paths *build_ids, struct arena *arena)
{
	const struct mmt_growth *growth = &report->growth;
	enum mmt_verdict verdict = growth->by_process ? growth->sum_verdict : growth->verdict;
	size_t count = report->row_count;
	CLEANUP(free) uint32_t *functions = calloc(count + 1, sizeof(*functions));
	CLEANUP(free) struct cause_sums *sums = calloc(count + 1, sizeof(*sums));
	struct causes causes = {.report = report,
				.rows = rows,
				.build_ids = build_ids,
				.functions = functions,
				.items = arena_alloc(arena, count, sizeof(*causes.items)),
				.sums = sums};
	struct mmt_error *error;

	if (report->then_by != MMT_BY_STACK || (report->by != MMT_BY_STACK && report->by != MMT_BY_THREAD))
		return NULL;
	if (!functions || !sums || !causes.items)
		return &error_no_memory;
	/* Show a row that only reserved memory together with the row that committed most of it. */
	for (size_t i = 0; i < count; i++) {
		struct mmt_row *reserver = rows[i].reserved_by ? &rows[rows[i].reserved_by - 1] : NULL;

		if (!reserver || !rows[i].memory_bytes || reserver->memory_bytes || reserver->joined_to)
			continue;
		reserver->joined_to = rows[i].id;
		/* Only the reserving row has the number of mappings. */
		if (!rows[i].hint)
			rows[i].hint = reserver->hint;
	}
	error = add_rows(&causes, arena) ?: list_rows(&causes, arena) ?: name_callers(&causes, arena);
	intern_deinit(&causes.names);
	intern_deinit(&causes.function_names);
	if (error)
		return error;
	decide(&causes);
	if (verdict == MMT_VERDICT_PLATEAU || verdict == MMT_VERDICT_STEADY)
		find_unfreed_growth(&causes);
	qsort_r(causes.items, causes.count, sizeof(*causes.items), compare_causes, &report->growth);
	for (size_t i = 0; i < causes.count; i++) {
		for (size_t j = 0; j < causes.items[i].row_count; j++)
			rows[causes.items[i].rows[j] - 1].cause = (uint32_t)i + 1;
	}
	report->causes = causes.items;
	report->cause_count = causes.count;
	return NULL;
}
