// SPDX-License-Identifier: LGPL-2.1-or-later
/* The causes of a report: which rows have one cause, and which of them leak together. */
#include "analysis/report/row-verdicts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/stack-identity.h"
#include "base/cleanup.h"
#include "base/figures.h"
#include "base/map.h"
#include "base/saturating-sum.h"

#define LEAK_PREFIX "leak "
#define LOST_NAME "[lost calls]"
#define LEAK_SHARE 16	  /* a cause is a leak if at least 1/16 of its memory leaks */
#define PATHS_COMPARED 64 /* of one function */

/* The functions of a stack that tell its path from others. */
struct named_stack {
	uint32_t place;	     /* of the row */
	uint64_t key;	     /* stacks with different keys have different paths */
	size_t first, count; /* in `path_names` */
};

/* Stacks of one function that get one verdict. */
struct call_path {
	size_t first, count;	    /* of its stack with most functions */
	uint64_t first_ns, last_ns; /* of their unfreed mappings */
	uint32_t next;		    /* path of the same function, plus 1; 0: none */
};

struct causes {
	struct mmt_report *report;
	struct mmt_row *rows;
	struct intern names; /* its ids are those of causes */
	struct intern function_names;
	uint32_t *functions;		     /* by place of the row: id in function_names */
	enum mmt_lifetime_verdict *together; /* by id: on the mappings of all rows of the function */
	struct build_id_paths build_ids;
	VECTOR(struct named_stack) named_stacks;
	VECTOR(struct call_path) paths;
	VECTOR(uint64_t) path_names;
	struct map first_paths;		     /* key of stacks -> their first path, plus 1 */
	uint32_t *row_paths;		     /* by place of the row: place in `paths`; or ROW_NO_SET */
	enum mmt_lifetime_verdict *of_paths; /* by id */
	uint32_t *of_rows;		     /* by place of the row: its cause */
	struct mmt_cause *items;
	size_t count;
	uint64_t *leaking_bytes, *largest_bytes; /* by cause */
};

/* Show a row that only reserved memory together with the row that committed most of it. */
static void join_halves(struct mmt_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct mmt_row *reserver = rows[i].reserved_by ? &rows[rows[i].reserved_by - 1] : NULL;

		if (!reserver || !rows[i].memory_bytes || reserver->memory_bytes || reserver->joined_to)
			continue;
		reserver->joined_to = rows[i].id;
		/* Only the reserving row has the number of mappings. */
		if (!rows[i].hint)
			rows[i].hint = reserver->hint;
	}
}

static const struct mmt_row *find_cause_row(const struct causes *causes, const struct mmt_row *row)
{
	if (row->unfreed_bytes || !row->reserved_by)
		return row;
	return &causes->rows[row->reserved_by - 1];
}

static char *function_of_row(const struct mmt_row *row)
{
	return rows_function_name(row->origin < row->frame_count ? row->frames[row->origin] : NULL);
}

/* NULL: out of memory. The caller frees it. */
static char *name_function(const struct mmt_row *origin)
{
	const char pattern[] = {(char)origin->pattern, 0};

	if (mmt_pattern_is_by_design(origin->pattern))
		return strdup(pattern);
	return origin->lost ? strdup(LOST_NAME) : function_of_row(origin);
}

/* All interpreted functions have the same frame. */
static bool has_name(const struct mmt_frame *frame)
{
	return frame->function && (frame->kind != MMT_FRAME_JIT || strcmp(frame->function, "Interpreter") != 0);
}

/* Append the functions of the program that the stack has from its origin on. Those of a runtime depend on how the code
 * is run. *jit_ret: some of the code is JIT code. False: out of memory. */
static bool list_names(struct causes *causes, const struct mmt_row *row, bool *jit_ret)
{
	*jit_ret = false;
	for (size_t i = row->origin; i < row->frame_count; i++) {
		const struct mmt_frame *frame = row->frames[i];
		bool jit = frame->kind == MMT_FRAME_JIT;

		*jit_ret |= jit;
		if ((jit && !has_name(frame)) || mmt_frame_is_runtime(frame))
			continue;
		if (!vector_push(&causes->path_names, identity_frame_checksum(&causes->build_ids, frame)))
			return false;
	}
	return true;
}

/*
 * JIT code that is compiled again has other addresses, and functions that were inlined have no frame: such a path has
 * several stacks one after another, each of which looks like a cache by itself. And which of its callers makes a heap
 * grow is chance. So stacks that differ only in that have one path; others have none. False: out of memory.
 */
static bool name_stack(struct causes *causes, size_t place)
{
	const struct mmt_row *row = &causes->rows[place], *origin = find_cause_row(causes, row);
	struct named_stack stack = {
	    .place = (uint32_t)place, .key = causes->functions[place], .first = causes->path_names.count};
	bool has_path = true;

	causes->row_paths[place] = ROW_NO_SET;
	if (mmt_pattern_is_by_design(origin->pattern)) {
		CLEANUP(free) char *name = function_of_row(row);
		uint64_t both[] = {stack.key, name ? map_checksum(name, strlen(name)) : 0};

		if (!name)
			return false;
		stack.key = map_checksum(both, sizeof(both));
	} else if (!list_names(causes, row, &has_path)) {
		return false;
	}
	stack.count = causes->path_names.count - stack.first;
	return !has_path || vector_push(&causes->named_stacks, stack);
}

static int compare_named_stacks(const void *left, const void *right)
{
	const struct named_stack *a = left, *b = right;

	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	return a->place < b->place ? -1 : a->place > b->place;
}

/* Whether the path is what remains of the functions of the other if some are inlined. */
static bool is_part_of(const struct causes *causes, const struct named_stack *stack, const struct call_path *path)
{
	const uint64_t *names = causes->path_names.items;
	size_t found = 0;

	for (size_t i = 0; i < path->count && found < stack->count; i++)
		found += names[stack->first + found] == names[path->first + i];
	return found == stack->count;
}

/* The time between the mappings of a path and of a row. Code that was compiled again runs from then on. */
static uint64_t find_gap(const struct call_path *path, const struct mmt_row *row)
{
	if (!row->unfreed_count || row->first_ns > path->last_ns)
		return row->unfreed_count ? row->first_ns - path->last_ns : 0;
	return path->first_ns > row->last_ns ? path->first_ns - row->last_ns : 0;
}

/* Add the stack to the path of its function that it can be a part of, or start one. False: out of memory. */
static bool add_to_path(struct causes *causes, const struct named_stack *stack)
{
	const struct mmt_row *row = &causes->rows[stack->place];
	const uint64_t *first = map_get(&causes->first_paths, stack->key);
	struct call_path path = {stack->first, stack->count, row->first_ns, row->last_ns, first ? (uint32_t)*first : 0};
	struct call_path *best = NULL;
	unsigned compared = 0;

	for (uint32_t next = path.next; next && compared < PATHS_COMPARED; compared++) {
		struct call_path *other = &causes->paths.items[next - 1];

		if (is_part_of(causes, stack, other) && (!best || find_gap(other, row) <= find_gap(best, row)))
			best = other;
		next = other->next;
	}
	if (!best) {
		causes->row_paths[stack->place] = (uint32_t)causes->paths.count;
		return vector_push(&causes->paths, path) &&
		       map_put(&causes->first_paths, stack->key, causes->paths.count);
	}
	causes->row_paths[stack->place] = (uint32_t)(best - causes->paths.items);
	if (row->unfreed_count) {
		best->first_ns = row->first_ns < best->first_ns ? row->first_ns : best->first_ns;
		best->last_ns = row->last_ns > best->last_ns ? row->last_ns : best->last_ns;
	}
	return true;
}

/* Number the function or the pattern of each row, and its path. */
static struct mmt_error *find_functions(struct causes *causes)
{
	for (size_t i = 0; i < causes->report->row_count; i++) {
		CLEANUP(free) char *name = name_function(find_cause_row(causes, &causes->rows[i]));

		causes->functions[i] = name ? intern_put_string(&causes->function_names, name) : INTERN_NONE;
		if (causes->functions[i] == INTERN_NONE || !name_stack(causes, i))
			return &error_no_memory;
	}
	vector_sort(&causes->named_stacks, compare_named_stacks);
	for (size_t i = 0; i < causes->named_stacks.count; i++) {
		if (!add_to_path(causes, &causes->named_stacks.items[i]))
			return &error_no_memory;
	}
	return NULL;
}

/* Judge the mappings of all rows with the same number together. Stacks that have freed everything show how long these
 * mappings live. */
static struct mmt_error *judge_numbered(const struct causes *causes, const struct ledger *ledger,
					const struct rows *rows, const uint32_t *numbers, size_t count,
					enum mmt_lifetime_verdict *verdicts_ret)
{
	CLEANUP(free) uint32_t *sets = calloc(rows->items.count + 1, sizeof(*sets));

	if (!sets)
		return &error_no_memory;
	for (size_t i = 0; i < rows->items.count; i++)
		sets[i] = rows->row_ids[i] ? numbers[rows->row_ids[i] - 1] : ROW_NO_SET;
	return row_verdicts_judge_sets(ledger, rows, causes->report, sets, count, verdicts_ret);
}

static struct mmt_error *judge_functions(struct causes *causes, const struct ledger *ledger, const struct rows *rows)
{
	struct mmt_error *error =
	    judge_numbered(causes, ledger, rows, causes->functions, causes->function_names.count, causes->together);

	return error ? error
		     : judge_numbered(causes, ledger, rows, causes->row_paths, causes->paths.count, causes->of_paths);
}

static bool path_leaks(const struct causes *causes, size_t place)
{
	uint32_t path = causes->row_paths[place];

	return path != ROW_NO_SET && causes->of_paths[path] == MMT_LIFETIME_LEAK;
}

/* Memory of allocators and runtimes has one cause, whatever function needed it, so each row of it has its own verdict.
 */
static void judge_by_design(struct causes *causes)
{
	for (size_t i = 0; i < causes->report->row_count; i++) {
		struct mmt_row *row = &causes->rows[i];

		if (!path_leaks(causes, i) || !mmt_pattern_is_by_design(find_cause_row(causes, row)->pattern) ||
		    !verdict_is_open(row->verdict))
			continue;
		row_verdicts_set_leak(row);
	}
}

/* Leaks of a function are a separate cause from its other memory: it may be a wrapper that others call. */
static uint32_t find_cause(struct causes *causes, size_t place)
{
	const struct mmt_row *origin = find_cause_row(causes, &causes->rows[place]);
	const char *function = intern_get(&causes->function_names, causes->functions[place], NULL);
	bool leaks = (origin->verdict == MMT_LIFETIME_LEAK || path_leaks(causes, place)) &&
		     !mmt_pattern_is_by_design(origin->pattern) && !origin->lost;
	CLEANUP(free) char *key = NULL;

	if (asprintf(&key, "%s%s", leaks ? LEAK_PREFIX : "", function) < 0) {
		key = NULL;
		return INTERN_NONE;
	}
	return intern_put_string(&causes->names, key);
}

/* Start a cause with its first row, which is the largest. */
static struct mmt_error *start_cause(struct causes *causes, const struct mmt_row *row, struct arena *arena)
{
	const struct mmt_row *origin = find_cause_row(causes, row);
	struct mmt_cause *cause = &causes->items[causes->count++];
	CLEANUP(free) char *name = NULL;

	*cause = (struct mmt_cause){.pattern =
					mmt_pattern_is_by_design(origin->pattern) ? origin->pattern : MMT_PATTERN_NONE,
				    .memory_class = row->memory_class,
				    .file = row->file,
				    .resident_bytes = MMT_UNKNOWN,
				    .first_ns = UINT64_MAX};
	if (mmt_pattern_is_by_design(origin->pattern))
		return NULL;
	name = origin->lost ? strdup(LOST_NAME) : function_of_row(origin);
	cause->name = name ? arena_string(arena, name) : NULL;
	return cause->name ? NULL : &error_no_memory;
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
		cause->first_ns = row->first_ns < cause->first_ns ? row->first_ns : cause->first_ns;
		cause->last_ns = row->last_ns > cause->last_ns ? row->last_ns : cause->last_ns;
	}
	if (row->verdict == MMT_LIFETIME_LEAK)
		figure_add(&causes->leaking_bytes[number], size);
	if (row->verdict && size >= causes->largest_bytes[number]) {
		causes->largest_bytes[number] = size;
		cause->verdict = row->verdict;
	}
}

/* A leak decides unless it is a small part; otherwise the largest row with a verdict does. */
static void decide(struct causes *causes)
{
	for (size_t i = 0; i < causes->count; i++) {
		struct mmt_cause *cause = &causes->items[i];
		uint64_t size = cause->memory_bytes ? cause->memory_bytes : cause->unfreed_bytes;

		if (causes->leaking_bytes[i] && causes->leaking_bytes[i] >= size / LEAK_SHARE)
			cause->verdict = MMT_LIFETIME_LEAK;
		if (!cause->unfreed_count)
			cause->first_ns = cause->last_ns = MMT_UNKNOWN;
	}
}

static struct mmt_error *add_rows(struct causes *causes, struct arena *arena)
{
	size_t count = causes->report->row_count;

	for (size_t i = 0; i < count; i++) {
		const struct mmt_row *row = &causes->rows[i];
		struct mmt_error *error = NULL;

		causes->of_rows[i] = INTERN_NONE;
		if (!row->unfreed_bytes && !row->memory_bytes)
			continue;
		causes->of_rows[i] = find_cause(causes, i);
		if (causes->of_rows[i] == INTERN_NONE)
			return &error_no_memory;
		if (causes->of_rows[i] == causes->count)
			error = start_cause(causes, row, arena);
		if (error)
			return error;
		add_row(causes, causes->of_rows[i], row);
	}
	return NULL;
}

/* True if a leak of the same function is a separate cause. */
static int has_leaking_sibling(const struct causes *causes, const struct mmt_cause *cause)
{
	CLEANUP(free) char *key = NULL;

	if (!cause->name)
		return false;
	if (asprintf(&key, LEAK_PREFIX "%s", cause->name) < 0) {
		key = NULL;
		return -1;
	}
	return intern_find(&causes->names, key, strlen(key) + 1) != INTERN_NONE;
}

/* The rows of a cause are a leak together; not if the leaks of the same function are a separate cause. */
static struct mmt_error *set_leaks_together(const struct causes *causes, struct mmt_cause *cause)
{
	int leaking_sibling = has_leaking_sibling(causes, cause);

	if (leaking_sibling < 0)
		return &error_no_memory;
	if (!leaking_sibling && cause->verdict != MMT_LIFETIME_LEAK) {
		cause->verdict = MMT_LIFETIME_LEAK;
		cause->leaks_together = true;
	}
	return NULL;
}

/* A function leaks if all of its memory together does and no stack of it leaks by itself, or if a path does. */
static struct mmt_error *set_leaking_functions(struct causes *causes)
{
	for (size_t i = 0; i < causes->report->row_count; i++) {
		struct mmt_cause *cause = causes->of_rows[i] == INTERN_NONE ? NULL : &causes->items[causes->of_rows[i]];
		struct mmt_error *error = NULL;

		if (!cause)
			continue;
		if (causes->together[causes->functions[i]] == MMT_LIFETIME_LEAK)
			error = set_leaks_together(causes, cause);
		if (error)
			return error;
		if (path_leaks(causes, i) && verdict_is_open(causes->rows[i].verdict)) {
			cause->verdict = MMT_LIFETIME_LEAK;
			cause->leaks_together = true;
		}
	}
	return NULL;
}

/*
 * RSS is level, but mappings that are hardly touched can leak, for instance the stacks of threads: find how much the
 * unfreed bytes of such causes grew since then.
 */
static void find_unfreed_growth(struct causes *causes)
{
	struct mmt_report *report = causes->report;
	uint64_t length_ns = report->to_ns > report->from_ns ? report->to_ns - report->from_ns : 0;
	uint64_t level_ns =
	    report->growth.settled_ns > report->from_ns ? report->growth.settled_ns - report->from_ns : 0;
	double point = length_ns ? (double)level_ns / (double)length_ns * MMT_TREND_POINTS : 0;
	unsigned first = point < MMT_TREND_POINTS - 1 ? (unsigned)point : MMT_TREND_POINTS - 1;
	uint64_t grown = 0;

	for (size_t i = 0; i < report->row_count; i++) {
		const struct mmt_row *row = &causes->rows[i];
		uint32_t number = causes->of_rows[i];
		const struct mmt_cause *cause = number == INTERN_NONE ? NULL : &causes->items[number];
		uint64_t at_end = row->trend[MMT_TREND_POINTS - 1];

		if (!cause || cause->verdict != MMT_LIFETIME_LEAK || cause->resident_bytes == MMT_UNKNOWN ||
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
	for (size_t i = 0; i < causes->report->row_count; i++) {
		struct mmt_cause *cause;

		if (causes->of_rows[i] == INTERN_NONE)
			continue;
		cause = &causes->items[causes->of_rows[i]];
		((uint32_t *)cause->rows)[cause->row_count++] = causes->rows[i].id;
	}
	return NULL;
}

/* Which caller made a heap grow, or a function map memory. */
struct callers {
	size_t *depths; /* by id in function_names: how many frames all stacks have in common, from their origin on */
	const struct mmt_row **firsts; /* likewise: the first of its rows */
	struct map bytes;	       /* of one cause: checksum of a caller -> memory */
};

static bool names_caller(enum mmt_pattern pattern)
{
	return pattern == MMT_PATTERN_ARENA || pattern == MMT_PATTERN_HEAP || pattern == MMT_PATTERN_JVM_NATIVE ||
	       pattern == MMT_PATTERN_THREAD_STACK;
}

/* How many frames the stacks have in common from their origin on. A frame without a name can be that of any function.
 */
static size_t common_depth(const struct mmt_row *left, const struct mmt_row *right)
{
	size_t depth = 0;

	for (; left->origin + depth < left->frame_count && right->origin + depth < right->frame_count; depth++) {
		const struct mmt_frame *a = left->frames[left->origin + depth];
		const struct mmt_frame *b = right->frames[right->origin + depth];

		if (!has_name(a) || !has_name(b))
			return SIZE_MAX;
		if (strcmp(a->function, b->function) != 0)
			break;
	}
	return depth;
}

static void find_depths(const struct causes *causes, struct callers *callers)
{
	for (size_t i = 0; i < causes->report->row_count; i++) {
		uint32_t function = causes->functions[i];
		const struct mmt_row *row = &causes->rows[i];

		if (causes->of_rows[i] == INTERN_NONE)
			continue;
		if (!callers->firsts[function]) {
			callers->firsts[function] = row;
			callers->depths[function] = SIZE_MAX;
		} else {
			size_t depth = common_depth(callers->firsts[function], row);

			if (depth < callers->depths[function])
				callers->depths[function] = depth;
		}
	}
}

/* NULL: all stacks have the same callers, or the caller has no name. */
static const struct mmt_frame *find_caller(const struct causes *causes, const struct callers *callers, size_t place)
{
	const struct mmt_row *row = &causes->rows[place];
	enum mmt_pattern pattern = find_cause_row(causes, row)->pattern;
	size_t depth = mmt_pattern_is_by_design(pattern) ? 0 : callers->depths[causes->functions[place]];

	if (mmt_pattern_is_by_design(pattern) ? !names_caller(pattern) : !depth)
		return NULL;
	if (depth >= row->frame_count || row->origin + depth >= row->frame_count ||
	    !has_name(row->frames[row->origin + depth]))
		return NULL;
	return row->frames[row->origin + depth];
}

#define CALLER_SHARE 4 /* of the memory: a caller with less than 1/CALLER_SHARE explains little */

static struct mmt_error *name_caller(const struct causes *causes, struct callers *callers, struct arena *arena,
				     struct mmt_cause *cause)
{
	const struct mmt_frame *most = NULL;
	CLEANUP(free) char *name = NULL;

	map_deinit(&callers->bytes);
	for (size_t i = 0; i < cause->row_count; i++) {
		const struct mmt_row *row = &causes->rows[cause->rows[i] - 1];
		const struct mmt_frame *caller = find_caller(causes, callers, cause->rows[i] - 1);
		uint64_t checksum = caller ? identity_frame_checksum(&causes->build_ids, caller) : 0, bytes;

		if (!caller || !row->memory_bytes)
			continue;
		if (!map_add(&callers->bytes, checksum, row->memory_bytes))
			return &error_no_memory;
		bytes = *map_get(&callers->bytes, checksum);
		if (bytes > cause->caller_bytes) {
			cause->caller_bytes = bytes;
			most = caller;
		}
	}
	if (!most || cause->caller_bytes < cause->memory_bytes / CALLER_SHARE) {
		cause->caller_bytes = 0;
		return NULL;
	}
	name = rows_function_name(most);
	cause->caller = name ? arena_string(arena, name) : NULL;
	return cause->caller ? NULL : &error_no_memory;
}

static struct mmt_error *name_callers(struct causes *causes, struct arena *arena)
{
	CLEANUP(free) size_t *depths = calloc(causes->function_names.count + 1, sizeof(*depths));
	CLEANUP(free) const struct mmt_row **firsts = calloc(causes->function_names.count + 1, sizeof(*firsts));
	struct callers callers = {.depths = depths, .firsts = firsts};
	struct mmt_error *error = NULL;

	if (!depths || !firsts)
		return &error_no_memory;
	find_depths(causes, &callers);
	for (size_t i = 0; !error && i < causes->count; i++)
		error = name_caller(causes, &callers, arena, &causes->items[i]);
	map_deinit(&callers.bytes);
	return error;
}

static int compare_causes(const void *left, const void *right)
{
	const struct mmt_cause *a = left, *b = right;

	bool a_leaks = a->verdict == MMT_LIFETIME_LEAK && a->memory_bytes,
	     b_leaks = b->verdict == MMT_LIFETIME_LEAK && b->memory_bytes;

	if (a_leaks != b_leaks)
		return a_leaks ? -1 : 1;
	if (a->memory_bytes != b->memory_bytes)
		return a->memory_bytes < b->memory_bytes ? 1 : -1;
	if (a->unfreed_bytes != b->unfreed_bytes)
		return a->unfreed_bytes < b->unfreed_bytes ? 1 : -1;
	return a->rows[0] < b->rows[0] ? -1 : a->rows[0] > b->rows[0];
}

/* `ledger` NULL: there are no mappings to judge. */
static struct mmt_error *judge_causes(struct causes *causes, const struct ledger *ledger, const struct rows *rows,
				      struct arena *arena)
{
	const struct mmt_growth *growth = &causes->report->growth;
	enum mmt_verdict verdict = growth->by_process ? growth->sum_verdict : growth->verdict;
	struct mmt_error *error = find_functions(causes);

	if (!error && ledger)
		error = judge_functions(causes, ledger, rows);
	if (!error)
		judge_by_design(causes);
	if (!error)
		error = add_rows(causes, arena);
	if (!error)
		error = list_rows(causes, arena);
	if (!error)
		error = name_callers(causes, arena);
	if (error)
		return error;
	decide(causes);
	error = set_leaking_functions(causes);
	if (verdict == MMT_VERDICT_PLATEAU || verdict == MMT_VERDICT_STEADY)
		find_unfreed_growth(causes);
	return error;
}

struct mmt_error *row_causes_build(struct mmt_report *report, struct mmt_row *figures, const struct ledger *ledger,
				   const struct rows *rows, struct arena *arena)
{
	size_t count = report->row_count;
	CLEANUP(free) uint32_t *of_rows = calloc(count + 1, sizeof(*of_rows));
	CLEANUP(free) uint64_t *leaking_bytes = calloc(count + 1, sizeof(*leaking_bytes));
	CLEANUP(free) uint64_t *largest_bytes = calloc(count + 1, sizeof(*largest_bytes));
	CLEANUP(free) struct mmt_cause *items = calloc(count + 1, sizeof(*items));
	CLEANUP(free) uint32_t *functions = calloc(count + 1, sizeof(*functions));
	CLEANUP(free) enum mmt_lifetime_verdict *together = calloc(count + 1, sizeof(*together));
	CLEANUP(free) uint32_t *row_paths = calloc(count + 1, sizeof(*row_paths));
	CLEANUP(free) enum mmt_lifetime_verdict *of_paths = calloc(count + 1, sizeof(*of_paths));
	struct causes causes = {.report = report,
				.rows = figures,
				.of_rows = of_rows,
				.items = items,
				.functions = functions,
				.together = together,
				.row_paths = row_paths,
				.of_paths = of_paths,
				.leaking_bytes = leaking_bytes,
				.largest_bytes = largest_bytes};
	struct mmt_cause *kept;
	struct mmt_error *error;

	if (report->then_by != MMT_BY_STACK || (report->by != MMT_BY_STACK && report->by != MMT_BY_THREAD))
		return NULL;
	if (!of_rows || !leaking_bytes || !largest_bytes || !items || !functions || !together || !row_paths ||
	    !of_paths)
		return &error_no_memory;
	join_halves(figures, count);
	error = build_id_paths_init(&causes.build_ids, report) ? judge_causes(&causes, ledger, rows, arena)
							       : &error_no_memory;
	intern_deinit(&causes.names);
	intern_deinit(&causes.function_names);
	build_id_paths_deinit(&causes.build_ids);
	vector_deinit(&causes.named_stacks);
	vector_deinit(&causes.paths);
	vector_deinit(&causes.path_names);
	map_deinit(&causes.first_paths);
	if (error)
		return error;
	kept = arena_alloc(arena, causes.count, sizeof(*kept));
	if (!kept)
		return &error_no_memory;
	qsort(items, causes.count, sizeof(*items), compare_causes);
	if (causes.count)
		memcpy(kept, items, causes.count * sizeof(*items));
	for (size_t i = 0; i < causes.count; i++) {
		for (size_t j = 0; j < kept[i].row_count; j++)
			figures[kept[i].rows[j] - 1].cause = (uint32_t)i + 1;
	}
	report->causes = kept;
	report->cause_count = causes.count;
	return NULL;
}
