// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which memory is judged together. It depends on the stacks alone, not on what the rows of the report are or how they
 * are sorted, so the same bytes have the same verdict in every grouping.
 */
#include "analysis/report/row-verdicts.h"

#include <inttypes.h>

#define PATHS_COMPARED 64 /* with one stack: this bounds the time */
#define INLINED_MAX 4	  /* functions of a path, from the innermost on, by which its stacks are found */

/* What a stack has of one pattern. There may be very many. */
struct use {
	uint64_t key;		    /* of the innermost function: a path is found by it */
	uint64_t first_ns, last_ns; /* of its unfreed mappings; first_ns UINT64_MAX: there are none */
	uint32_t first, count;	    /* its functions in `names`, which tell its path from others */
	uint32_t inlinable;	    /* how many of them, from the innermost on, may be inlined */
	uint32_t identity, function, path;
	bool has_path;
};

/* Stacks of one function that differ only in how its code was compiled. */
struct call_path {
	uint32_t longest;	    /* use with most functions */
	uint64_t first_ns, last_ns; /* of the unfreed mappings of all its stacks */
};

/* A path that has the key. */
struct path_node {
	uint32_t path;
	uint32_t next; /* place plus 1; 0: none */
};

struct uses {
	struct rows *rows;
	uint64_t tolerated_ns; /* how long two stacks of a path may be in use side by side */
	struct intern keys, identities, functions;
	VECTOR(struct use) items; /* by id of its key */
	VECTOR(uint32_t) names;	  /* checksums */
	VECTOR(struct call_path) paths;
	VECTOR(struct path_node) nodes;
	struct map first_nodes; /* key -> place plus 1 */
};

static uint64_t join(uint64_t first, uint64_t second)
{
	return map_checksum((uint64_t[]){first, second}, 2 * sizeof(uint64_t));
}

/* Append the stack's functions from its origin on, without a runtime's, which vary. False: out of memory. */
static bool list_names(struct uses *uses, size_t origin, struct use *use)
{
	const struct mmt_frame *const *frames = uses->rows->frames.items;
	size_t count = uses->rows->frames.count;
	bool inlinable = true;

	use->first = (uint32_t)uses->names.count;
	for (size_t i = origin; i < count && !use->has_path; i++)
		use->has_path = frames[i]->kind == MMT_FRAME_JIT;
	for (size_t i = origin; i < count && use->has_path; i++) {
		bool jit = frames[i]->kind == MMT_FRAME_JIT;

		if ((jit && !identity_has_name(frames[i])) || mmt_frame_is_runtime(frames[i])) {
			inlinable &= i > origin;
			continue;
		}
		if (!vector_push(&uses->names, (uint32_t)identity_frame_checksum(0, &uses->rows->build_ids, frames[i])))
			return false;
		inlinable &= jit;
		use->inlinable += inlinable;
	}
	use->count = (uint32_t)uses->names.count - use->first;
	return true;
}

/*
 * JIT code that is compiled again has other addresses, and functions that were inlined have no frame: such a path has
 * several stacks one after another, each of which looks like a cache by itself. And which of its callers makes a heap
 * grow is chance. So stacks that differ only in that have one path; others have none.
 */
static struct mmt_error *describe_use(struct uses *uses, uint32_t scope, enum mmt_pattern pattern, bool lost,
				      struct use *use)
{
	const struct mmt_frame *const *frames = uses->rows->frames.items;
	size_t count = uses->rows->frames.count, origin = origin_of_stack(frames, count);
	CLEANUP(free) char *name = rows_function_name(origin < count ? frames[origin] : NULL);
	CLEANUP(free) char *function = NULL;
	bool by_design = mmt_pattern_is_by_design(pattern);
	uint64_t own;

	if (!name || asprintf(&function, "%" PRIu32 " %d %s", scope, by_design ? (int)pattern : 0,
			      by_design ? ""
			      : lost	? "[lost]"
					: name) < 0) {
		function = NULL;
		return &error_no_memory;
	}
	use->function = intern_put_string(&uses->functions, function);
	if (use->function == INTERN_NONE || (!by_design && !list_names(uses, origin, use)))
		return &error_no_memory;
	own = use->inlinable ? uses->names.items[use->first] : map_checksum(name, strlen(name));
	use->has_path |= by_design;
	use->key = join(own, by_design || !use->inlinable ? use->function : UINT64_MAX - scope);
	return NULL;
}

/* Find what the account's stack has of its pattern. *use_ret: place in `items`. */
static struct mmt_error *find_use(struct uses *uses, const struct account *account, uint32_t *use_ret)
{
	const struct mmt_report_options *options = uses->rows->options;
	bool by_process = options->by == MMT_BY_PROCESS || options->then_by == MMT_BY_PROCESS;
	bool by_thread = options->by == MMT_BY_THREAD || options->then_by == MMT_BY_THREAD;
	enum mmt_pattern pattern = account->pattern;
	bool lost = account->stack == uses->rows->replay->lost_stack;
	/* Memory of one process or thread is not judged by that of others if rows keep them apart. */
	uint32_t identity, scope = by_process					   ? account->process + 1
				   : by_thread && options->then_by != MMT_BY_STACK ? account->thread + 1
										   : 0;
	const uint32_t key[] = {scope, account->stack, pattern};
	struct use use = {.first_ns = UINT64_MAX};
	struct mmt_error *error;

	*use_ret = intern_put(&uses->keys, key, sizeof(key));
	if (*use_ret == INTERN_NONE)
		return &error_no_memory;
	if (*use_ret < uses->items.count)
		return NULL;
	error = rows_identify_stack(uses->rows, account->stack, &identity)
		    ?: describe_use(uses, scope, pattern, lost, &use);
	if (error)
		return error;
	use.identity =
	    intern_put(&uses->identities, (const uint32_t[]){scope, identity, pattern}, 3 * sizeof(uint32_t));
	return use.identity != INTERN_NONE && vector_push(&uses->items, use) ? NULL : &error_no_memory;
}

/* Places: first those with most functions, then the first to be used. */
COMPARISON_WITH(compare_uses, uint32_t, struct use,
		order_of(with[*b].count, with[*a].count) ?: order_of(with[*a].first_ns, with[*b].first_ns)
		?: order_of(with[*a].key, with[*b].key))

/* Whether the stack has what remains of the functions of the path if some are inlined. */
static bool is_part_of(const struct uses *uses, const struct use *use, const struct call_path *path)
{
	const struct use *longest = &uses->items.items[path->longest];
	const uint32_t *names = uses->names.items;
	size_t found = 0;

	for (size_t i = 0; i < longest->count && found < use->count; i++)
		found += names[use->first + found] == names[longest->first + i];
	return found == use->count;
}

/* The time between the mappings of a path and of a stack. Code that was compiled again runs from then on. */
static uint64_t find_gap(const struct call_path *path, const struct use *use)
{
	if (use->first_ns == UINT64_MAX || path->first_ns == UINT64_MAX)
		return 0;
	if (use->first_ns > path->last_ns)
		return use->first_ns - path->last_ns;
	return path->first_ns > use->last_ns ? path->first_ns - use->last_ns : 0;
}

/* Whether the innermost function of the path can have been inlined into that of the stack: only one of them is in use
 * at a time. Otherwise the function that has no frame may as well never have been called. */
static bool follows(const struct uses *uses, const struct use *use, const struct call_path *path)
{
	uint64_t first_ns = larger_of(use->first_ns, path->first_ns);
	uint64_t last_ns = smaller_of(use->last_ns, path->last_ns);

	return first_ns != UINT64_MAX && (first_ns >= last_ns || last_ns - first_ns <= uses->tolerated_ns);
}

/* Add the stack to the path that it can be a part of, or start one. False: out of memory. */
static bool add_to_path(struct uses *uses, struct use *use, uint32_t scope)
{
	const uint64_t *first = map_get(&uses->first_nodes, use->key);
	struct call_path *best = NULL;
	unsigned compared = 0;

	for (uint64_t next = first ? *first : 0; next && compared < PATHS_COMPARED; compared++) {
		struct call_path *other = &uses->paths.items[uses->nodes.items[next - 1].path];

		if (is_part_of(uses, use, other) &&
		    (uses->items.items[other->longest].key == use->key || follows(uses, use, other)) &&
		    (!best || find_gap(other, use) <= find_gap(best, use)))
			best = other;
		next = uses->nodes.items[next - 1].next;
	}
	use->path = (uint32_t)(best ? best - uses->paths.items : (ptrdiff_t)uses->paths.count);
	if (best && use->first_ns != UINT64_MAX) {
		best->first_ns = smaller_of(use->first_ns, best->first_ns);
		best->last_ns = larger_of(use->last_ns, best->last_ns);
	}
	/* A new path is found by each function that can be the innermost one. */
	for (size_t i = 0; !best && (i == 0 || (i < use->inlinable && i < INLINED_MAX)); i++) {
		uint64_t key = i ? join(uses->names.items[use->first + i], UINT64_MAX - scope) : use->key;
		struct path_node node = {.path = use->path};

		first = map_get(&uses->first_nodes, key);
		node.next = first ? (uint32_t)*first : 0;
		if (!vector_push(&uses->nodes, node) || !map_put(&uses->first_nodes, key, uses->nodes.count))
			return false;
	}
	return best ||
	       vector_push(&uses->paths,
			   ((struct call_path){(uint32_t)(use - uses->items.items), use->first_ns, use->last_ns}));
}

/* False: out of memory. */
static bool find_paths(struct uses *uses)
{
	size_t count = uses->items.count;
	CLEANUP(free) uint32_t *order = calloc(count + 1, sizeof(*order));

	if (!order)
		return false;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), compare_uses, uses->items.items);
	for (size_t i = 0; i < count; i++) {
		const uint32_t *key = intern_get(&uses->keys, order[i], NULL);

		if (uses->items.items[order[i]].has_path && !add_to_path(uses, &uses->items.items[order[i]], key[0]))
			return false;
	}
	return true;
}

/* Number the sets of each account. */
static struct mmt_error *number_sets(struct uses *uses, struct verdict_sets *sets)
{
	const struct ledger *ledger = &uses->rows->replay->ledger;
	uint32_t *const use_of = sets->of_accounts[VERDICT_LINES];
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < ledger->accounts.count; i++) {
		use_of[i] = VERDICT_NO_SET;
		if (ledger->accounts.items[i].row != LEDGER_NO_ROW)
			error = find_use(uses, &ledger->accounts.items[i], &use_of[i]);
	}
	if (error)
		return error;
	array_each(allocation, ledger->allocations.items, ledger->allocations.count) {
		struct use *use;

		if (verdict_row_of(ledger, allocation) == LEDGER_NO_ROW)
			continue;
		use = &uses->items.items[use_of[allocation->account]];
		use->first_ns = smaller_of(allocation->time_ns, use->first_ns);
		use->last_ns = larger_of(allocation->time_ns, use->last_ns);
	}
	if (!find_paths(uses))
		return &error_no_memory;
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct use *use = use_of[i] == VERDICT_NO_SET ? NULL : &uses->items.items[use_of[i]];

		sets->of_accounts[VERDICT_STACK][i] = use ? use->identity : VERDICT_NO_SET;
		sets->of_accounts[VERDICT_PATH][i] = use && use->has_path ? use->path : VERDICT_NO_SET;
		sets->of_accounts[VERDICT_FUNCTION][i] = use ? use->function : VERDICT_NO_SET;
	}
	sets->counts[VERDICT_LINES] = uses->items.count;
	sets->counts[VERDICT_STACK] = uses->identities.count;
	sets->counts[VERDICT_PATH] = uses->paths.count;
	sets->counts[VERDICT_FUNCTION] = uses->functions.count;
	return NULL;
}

struct mmt_error *verdict_sets_find(struct rows *rows, const struct mmt_report *report, struct verdict_sets *sets)
{
	struct uses uses = {.rows = rows, .tolerated_ns = (report->to_ns - report->from_ns) / VERDICT_PARTS};
	struct mmt_error *error = NULL;

	*sets = (struct verdict_sets){0};
	for (unsigned level = 0; !error && level < VERDICT_LEVELS; level++) {
		sets->of_accounts[level] = calloc(rows->replay->ledger.accounts.count + 1, sizeof(uint32_t));
		error = sets->of_accounts[level] ? NULL : &error_no_memory;
	}
	error = error ?: number_sets(&uses, sets);
	intern_deinit(&uses.keys);
	intern_deinit(&uses.identities);
	intern_deinit(&uses.functions);
	vector_deinit(&uses.items);
	vector_deinit(&uses.names);
	vector_deinit(&uses.paths);
	vector_deinit(&uses.nodes);
	map_deinit(&uses.first_nodes);
	return error;
}
