// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/diff-match.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"

#define SEVERAL_CALLERS UINT64_MAX

#define RANK_SHIFT 33 /* above the numbers of names */

COMPARISON(compare_starts, const struct mmt_process *,
	   strcmp((*a)->name ?: "", (*b)->name ?: "") ?: order_of((*a)->start_boot_ns, (*b)->start_boot_ns)
	   ?: order_of((*a)->pid, (*b)->pid))

/* Number the processes of each name in the order in which they started: the first is usually the parent of others. */
static bool rank_processes(struct row_matcher *matcher, unsigned side)
{
	const struct mmt_report *report = matcher->reports[side];
	CLEANUP(free)
	const struct mmt_process **order = calloc(report->process_count + 1, sizeof(const struct mmt_process *));
	uint64_t rank = 0;
	bool ok = order;

	for (size_t i = 0; ok && i < report->process_count; i++)
		order[i] = &report->processes[i];
	if (ok)
		qsort(order, report->process_count, sizeof(const struct mmt_process *), compare_starts);
	for (size_t i = 0; ok && i < report->process_count; i++) {
		const char *name = order[i]->name, *previous = i ? order[i - 1]->name : NULL;

		rank = name && previous && !strcmp(name, previous) ? rank + 1 : 1;
		ok = map_put(&matcher->ranks[side], (uint32_t)order[i]->pid, rank);
	}
	return ok;
}

struct mmt_error *row_matcher_init(struct row_matcher *matcher, const struct mmt_report *const reports[DIFF_SIDES])
{
	*matcher = (struct row_matcher){.identities = {.anywhere = true}};
	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		matcher->reports[side] = reports[side];
		if (!build_id_paths_init(&matcher->paths[side], reports[side]) || !rank_processes(matcher, side))
			return &error_no_memory;
	}
	return NULL;
}

void row_matcher_deinit(struct row_matcher *matcher)
{
	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		build_id_paths_deinit(&matcher->paths[side]);
		map_deinit(&matcher->callers[side]);
		map_deinit(&matcher->ranks[side]);
	}
	identities_deinit(&matcher->identities);
	intern_deinit(&matcher->names);
}

bool row_holds_memory(const struct mmt_row *row)
{
	return row->unfreed_bytes || row->committed_bytes || row->committed_before_bytes;
}

/* The name without what differs between runs: "worker / pool" of "worker (123) / pool (124)". NULL: out of memory; the
 * caller frees it. */
static char *stable_name(const struct row_matcher *matcher, const char *name, const struct mmt_report *report)
{
	const enum mmt_row_key by[] = {report->by, report->then_by};
	char *stable = strdup(name), *end = stable;

	if (!stable || matcher->task_ids ||
	    (by[0] != MMT_BY_PROCESS && by[0] != MMT_BY_THREAD && by[1] != MMT_BY_PROCESS && by[1] != MMT_BY_THREAD))
		return stable;
	for (const char *next = name; *next;) {
		size_t digits = starts_with(next, " (") ? strspn(next + 2, "0123456789") : 0;
		const char *after = next + 2 + digits + 1;

		if (digits && after[-1] == ')' && (!*after || starts_with(after, " / ")))
			next = after;
		else
			*end++ = *next++;
	}
	*end = '\0';
	return stable;
}

/* The length of "module" in "module+0x1234", as a function without a name is called; 0: it has one. */
static size_t module_length(const char *name, enum mmt_row_key by)
{
	const char *place = by == MMT_BY_FUNCTION ? strrchr(name, '+') : NULL;

	return place && starts_with(place, "+0x") && !place[3 + strspn(place + 3, "0123456789abcdef")]
		   ? (size_t)(place - name)
		   : 0;
}

/* Numbers of stacks are even, those of names odd; of one process, its rank among those of its name is added. */
static bool number_row(struct row_matcher *matcher, unsigned side, const struct mmt_row *row, uint64_t *number_ret)
{
	uint32_t number;

	if (row->name) {
		CLEANUP(free) char *name = stable_name(matcher, row->name, matcher->reports[side]);

		const struct mmt_report *report = matcher->reports[side];
		bool by_process = report->by == MMT_BY_PROCESS || report->then_by == MMT_BY_PROCESS;
		const uint64_t *rank = by_process && row->pid_count == 1 && !matcher->task_ids
					   ? map_get(&matcher->ranks[side], (uint32_t)row->pids[0])
					   : NULL;

		number = name ? intern_put_string(&matcher->names, name) : INTERN_NONE;
		*number_ret = (rank ? *rank << RANK_SHIFT : 0) | (uint64_t)number << 1 | 1;
		return number != INTERN_NONE;
	}
	number =
	    identity_of_stack(&matcher->identities, &matcher->paths[side], row->frames, row->frame_count, row->lost);
	*number_ret = (uint64_t)number << 1;
	return number != IDENTITY_NONE;
}

/* The origin and its caller; IDENTITY_NONE: there is none. False: out of memory. */
static bool number_function(struct row_matcher *matcher, unsigned side, const struct mmt_row *row,
			    uint32_t numbers_ret[2])
{
	for (size_t i = 0; i < 2; i++) {
		numbers_ret[i] = IDENTITY_NONE;
		if (row->origin + i >= row->frame_count)
			continue;
		numbers_ret[i] =
		    identity_of_frame(&matcher->identities, &matcher->paths[side], row->frames[row->origin + i]);
		if (numbers_ret[i] == IDENTITY_NONE)
			return false;
	}
	return true;
}

bool row_matcher_function(struct row_matcher *matcher, unsigned side, const struct mmt_row *row, uint64_t *function_ret)
{
	uint32_t numbers[2];

	if (row->name) {
		*function_ret = intern_put(&matcher->names, row->name, strlen(row->name));
		return *function_ret != INTERN_NONE;
	}
	if (!number_function(matcher, side, row, numbers))
		return false;
	*function_ret = numbers[0];
	for (unsigned any = 0; any < DIFF_SIDES; any++) {
		const uint64_t *caller = map_get(&matcher->callers[any], numbers[0]);

		if (caller && *caller == SEVERAL_CALLERS)
			*function_ret = numbers[0] | ((uint64_t)numbers[1] + 1) << 32;
	}
	return true;
}

/* How many frames match by their places although they may be of different builds, because no build-id is known; or 1
 * for the place of a function without a name in a module that another build may have replaced. */
static size_t count_unproven(const struct row_matcher *matcher, const struct mmt_row *row)
{
	const struct build_id_paths *paths = matcher->paths;
	size_t length = row->name ? module_length(row->name, matcher->reports[DIFF_AFTER]->by) : 0, count = 0;
	CLEANUP(free) char *module = length ? strndup(row->name, length) : NULL;
	const char *before = build_id_paths_find(&paths[DIFF_BEFORE], module);
	const char *after = build_id_paths_find(&paths[DIFF_AFTER], module);

	for (size_t i = 0; i < row->frame_count; i++) {
		const struct mmt_frame *frame = row->frames[i];

		count += frame->kind == MMT_FRAME_NATIVE && !frame->function &&
			 !build_id_paths_find(&paths[DIFF_AFTER], frame->module_path);
	}
	return count + (length && (!before || !after || strcmp(before, after) != 0));
}

#define KEY_NONE UINT64_MAX

/* The key of rows that belong together. `by_module`: functions without a name are at other places in another build, so
 * match those of a module by rank. KEY_NONE: it has none of that kind. False: out of memory. */
static bool find_key(struct row_matcher *matcher, unsigned side, const struct mmt_row *row, bool by_module,
		     uint64_t *key_ret)
{
	size_t length = by_module ? module_length(row->name, matcher->reports[side]->by) : 0;
	uint64_t number;

	*key_ret = KEY_NONE;
	if (by_module && (!length || !row_holds_memory(row)))
		return true;
	if (by_module)
		number = intern_put(&matcher->names, row->name, length);
	else if (!number_row(matcher, side, row, &number))
		return false;
	*key_ret = number << 1 | (row_holds_memory(row) || number >> RANK_SHIFT);
	return number != INTERN_NONE;
}

/* Match rows that have no match yet by their keys. Several may have one key, because they differ only in addresses
 * without a name, or in IDs: the first ones of both reports belong together. */
static struct mmt_error *match_by_key(struct row_matcher *matcher, bool by_module,
				      struct row_match *const matches[DIFF_SIDES])
{
	const struct mmt_report *before = matcher->reports[DIFF_BEFORE], *after = matcher->reports[DIFF_AFTER];
	CLEANUP(free) size_t *chain = calloc(before->row_count + 1, sizeof(*chain)); /* row -> next of its key + 1 */
	struct map first = {0};							     /* key -> row + 1 */
	bool ok = chain;
	uint64_t key, *place;

	for (size_t i = before->row_count; ok && i-- > 0;) {
		ok = matches[DIFF_BEFORE][i].other || find_key(matcher, DIFF_BEFORE, &before->rows[i], by_module, &key);
		if (!ok || matches[DIFF_BEFORE][i].other || key == KEY_NONE)
			continue;
		place = map_get(&first, key);
		chain[i] = place ? (size_t)*place : 0;
		ok = map_put(&first, key, i + 1);
	}
	for (size_t i = 0; ok && i < after->row_count; i++) {
		const struct mmt_row *row = &after->rows[i];
		size_t differing, match;

		ok = matches[DIFF_AFTER][i].other || find_key(matcher, DIFF_AFTER, row, by_module, &key);
		if (!ok || matches[DIFF_AFTER][i].other || key == KEY_NONE)
			continue;
		place = map_get(&first, key);
		if (!place || !*place)
			continue;
		match = (size_t)*place - 1;
		*place = chain[match];
		differing = by_module ? 1 : count_unproven(matcher, row);
		matches[DIFF_BEFORE][match] = (struct row_match){row, NULL, differing};
		matches[DIFF_AFTER][i] = (struct row_match){&before->rows[match], NULL, differing};
	}
	map_deinit(&first);
	return ok ? NULL : &error_no_memory;
}

struct mmt_error *row_matcher_match(struct row_matcher *matcher, struct row_match *const matches[DIFF_SIDES])
{
	struct similar_stacks similar = {.matcher = matcher};
	bool by_function = true;
	struct mmt_error *error;

	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		by_function &= matcher->reports[side]->by == MMT_BY_FUNCTION;
		array_each(row, matcher->reports[side]->rows, matcher->reports[side]->row_count) {
			const uint64_t *known;
			uint32_t numbers[2];

			if (row->name || !row_holds_memory(row))
				continue;
			if (!number_function(matcher, side, row, numbers))
				return &error_no_memory;
			known = map_get(&matcher->callers[side], numbers[0]);
			if ((!known || *known != numbers[1]) &&
			    !map_put(&matcher->callers[side], numbers[0], known ? SEVERAL_CALLERS : numbers[1]))
				return &error_no_memory;
		}
	}
	error = match_by_key(matcher, false, matches);
	if (!error && by_function)
		error = match_by_key(matcher, true, matches);
	for (unsigned side = 0; !error && side < DIFF_SIDES; side++) {
		for (size_t i = 0; !error && i < matcher->reports[side]->row_count; i++) {
			const struct mmt_row *row = &matcher->reports[side]->rows[i];
			struct unmatched_stack stack = {.row = row, .place = i};
			uint64_t number;
			size_t size;

			if (matches[side][i].other || row->name || !row->frame_count || !row_holds_memory(row))
				continue;
			if (!number_row(matcher, side, row, &number)) {
				error = &error_no_memory;
				break;
			}
			stack.frames = intern_get(&matcher->identities.stacks, (uint32_t)(number >> 1), &size);
			stack.count = (uint32_t)(size / sizeof(*stack.frames));
			stack.origin = row->origin < stack.count ? (uint32_t)row->origin : stack.count;
			error = vector_push(&similar.stacks[side], stack) ? NULL : &error_no_memory;
		}
	}
	if (!error)
		error = similar_stacks_match(&similar, matches);
	for (unsigned side = 0; side < DIFF_SIDES; side++)
		vector_deinit(&similar.stacks[side]);
	return error;
}
