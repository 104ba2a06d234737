// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/diff-match.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"

#define SEVERAL_CALLERS UINT64_MAX

struct mmt_error *row_matcher_init(struct row_matcher *matcher, const struct mmt_report *const reports[DIFF_SIDES])
{
	*matcher = (struct row_matcher){.identities = {.anywhere = true}};
	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		matcher->reports[side] = reports[side];
		if (!build_id_paths_init(&matcher->paths[side], reports[side]))
			return &error_no_memory;
	}
	return NULL;
}

void row_matcher_deinit(struct row_matcher *matcher)
{
	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		build_id_paths_deinit(&matcher->paths[side]);
		map_deinit(&matcher->callers[side]);
	}
	identities_deinit(&matcher->identities);
	intern_deinit(&matcher->names);
	vector_deinit(&matcher->frame_names);
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

/* Numbers of stacks are even, those of names odd. */
static bool number_row(struct row_matcher *matcher, unsigned side, const struct mmt_row *row, uint64_t *number_ret)
{
	uint32_t number;

	if (row->name) {
		CLEANUP(free) char *name = stable_name(matcher, row->name, matcher->reports[side]);

		number = name ? intern_put_string(&matcher->names, name) : INTERN_NONE;
		*number_ret = (uint64_t)number << 1 | 1;
		return number != INTERN_NONE;
	}
	matcher->frame_names.count = 0;
	/* Lost calls and calls without a recorded stack both have no frames: distinguish them by a name that no frame
	 * has. */
	if (row->lost && !vector_push(&matcher->frame_names, IDENTITY_NONE))
		return false;
	for (size_t i = 0; i < row->frame_count; i++) {
		number = identity_of_frame(&matcher->identities, &matcher->paths[side], row->frames[i]);
		if (number == IDENTITY_NONE || !vector_push(&matcher->frame_names, number))
			return false;
	}
	number = identity_of_stack(&matcher->identities, matcher->frame_names.items, matcher->frame_names.count);
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

static bool note_caller(struct row_matcher *matcher, unsigned side, const struct mmt_row *row)
{
	uint32_t numbers[2];
	const uint64_t *known;

	if (row->name || !row_holds_memory(row))
		return true;
	if (!number_function(matcher, side, row, numbers))
		return false;
	known = map_get(&matcher->callers[side], numbers[0]);
	if (known && *known == numbers[1])
		return true;
	return map_put(&matcher->callers[side], numbers[0], known ? SEVERAL_CALLERS : numbers[1]);
}

static bool has_several_callers(const struct row_matcher *matcher, uint32_t function)
{
	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		const uint64_t *caller = map_get(&matcher->callers[side], function);

		if (caller && *caller == SEVERAL_CALLERS)
			return true;
	}
	return false;
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
	if (has_several_callers(matcher, numbers[0]))
		*function_ret |= ((uint64_t)numbers[1] + 1) << 32;
	return true;
}

/* The rows of `before` by number; several may differ only in addresses without a name, or in IDs. */
struct row_index {
	size_t *chain;	  /* row -> next one with the same number + 1 */
	struct map first; /* number << 1 | whether it holds memory -> row + 1 */
};

static uint64_t index_key(uint64_t number, const struct mmt_row *row)
{
	return number << 1 | row_holds_memory(row);
}

/* Insert from the last to the first, so that equal rows are found by rank. */
static struct mmt_error *index_rows(struct row_matcher *matcher, uint64_t *numbers, struct row_index *index)
{
	const struct mmt_report *before = matcher->reports[DIFF_BEFORE];

	for (size_t i = before->row_count; i-- > 0;) {
		uint64_t key;
		const uint64_t *next;

		if (!number_row(matcher, DIFF_BEFORE, &before->rows[i], &numbers[i]) ||
		    !note_caller(matcher, DIFF_BEFORE, &before->rows[i]))
			return &error_no_memory;
		key = index_key(numbers[i], &before->rows[i]);
		next = map_get(&index->first, key);
		index->chain[i] = next ? (size_t)*next : 0;
		if (!map_put(&index->first, key, i + 1))
			return &error_no_memory;
	}
	return NULL;
}

/* Take the first row of a chain. */
static void pair_first(const struct row_matcher *matcher, struct row_match *const matches[DIFF_SIDES], uint64_t *first,
		       const struct row_index *index, size_t j, size_t differing_frames)
{
	size_t i = (size_t)*first - 1;

	matches[DIFF_BEFORE][i] = (struct row_match){&matcher->reports[DIFF_AFTER]->rows[j], NULL, differing_frames};
	matches[DIFF_AFTER][j] = (struct row_match){&matcher->reports[DIFF_BEFORE]->rows[i], NULL, differing_frames};
	*first = index->chain[i];
}

/* How many frames match by their places although they may be of different builds, because no build-id is known. */
static size_t count_unproven(const struct row_matcher *matcher, const struct mmt_row *row)
{
	size_t count = 0;

	for (size_t i = 0; i < row->frame_count; i++) {
		const struct mmt_frame *frame = row->frames[i];

		count += frame->kind == MMT_FRAME_NATIVE && !frame->function &&
			 !build_id_paths_find(&matcher->paths[DIFF_AFTER], frame->module_path);
	}
	return count;
}

/* Whether this is the place of a function without a name, in a module that another build may have replaced. */
static bool is_other_build(const struct row_matcher *matcher, const char *name, enum mmt_row_key by)
{
	size_t length = name ? module_length(name, by) : 0;
	CLEANUP(free) char *module = length ? strndup(name, length) : NULL;
	const char *before = build_id_paths_find(&matcher->paths[DIFF_BEFORE], module);
	const char *after = build_id_paths_find(&matcher->paths[DIFF_AFTER], module);

	return length && (!before || !after || strcmp(before, after) != 0);
}

static struct mmt_error *match_equal(struct row_matcher *matcher, struct row_index *index, uint64_t *numbers,
				     struct row_match *const matches[DIFF_SIDES])
{
	const struct mmt_report *after = matcher->reports[DIFF_AFTER];

	for (size_t i = 0; i < after->row_count; i++) {
		uint64_t *first;

		if (!number_row(matcher, DIFF_AFTER, &after->rows[i], &numbers[i]) ||
		    !note_caller(matcher, DIFF_AFTER, &after->rows[i]))
			return &error_no_memory;
		first = map_get(&index->first, index_key(numbers[i], &after->rows[i]));
		if (!first || !*first)
			continue;
		pair_first(matcher, matches, first, index, i,
			   is_other_build(matcher, after->rows[i].name, after->by) +
			       count_unproven(matcher, &after->rows[i]));
	}
	return NULL;
}

static bool add_unmatched(const struct row_matcher *matcher, const struct mmt_row *row, size_t place, uint64_t number,
			  struct similar_stacks *similar, unsigned side)
{
	struct unmatched_stack stack = {.row = row, .place = place};
	size_t size;

	if (row->name || !row->frame_count || !row_holds_memory(row))
		return true;
	stack.frames = intern_get(&matcher->identities.stacks, (uint32_t)(number >> 1), &size);
	stack.count = (uint32_t)(size / sizeof(*stack.frames));
	stack.origin = row->origin < stack.count ? (uint32_t)row->origin : stack.count;
	return vector_push(&similar->stacks[side], stack);
}

/* Functions without a name are at other places in another build: match those of a module by rank. */
static struct mmt_error *match_unnamed(const struct row_matcher *matcher, struct row_index *index,
				       struct row_match *const matches[DIFF_SIDES])
{
	const struct mmt_report *before = matcher->reports[DIFF_BEFORE], *after = matcher->reports[DIFF_AFTER];
	struct intern modules = {0};
	struct mmt_error *error = NULL;

	map_deinit(&index->first);
	for (size_t i = before->row_count; !error && i-- > 0;) {
		size_t length = module_length(before->rows[i].name, before->by);
		uint32_t module;
		const uint64_t *next;

		if (!length || matches[DIFF_BEFORE][i].other || !row_holds_memory(&before->rows[i]))
			continue;
		module = intern_put(&modules, before->rows[i].name, length);
		next = map_get(&index->first, module);
		index->chain[i] = next ? (size_t)*next : 0;
		if (module == INTERN_NONE || !map_put(&index->first, module, i + 1))
			error = &error_no_memory;
	}
	for (size_t i = 0; !error && i < after->row_count; i++) {
		size_t length = module_length(after->rows[i].name, after->by);
		uint64_t *first =
		    length ? map_get(&index->first, intern_find(&modules, after->rows[i].name, length)) : NULL;

		if (first && *first && !matches[DIFF_AFTER][i].other && row_holds_memory(&after->rows[i]))
			pair_first(matcher, matches, first, index, i, 1);
	}
	intern_deinit(&modules);
	return error;
}

static struct mmt_error *match_similar(struct row_matcher *matcher, uint64_t *const numbers[DIFF_SIDES],
				       struct row_match *const matches[DIFF_SIDES])
{
	struct similar_stacks similar = {.matcher = matcher};
	struct mmt_error *error = NULL;
	bool complete = true;

	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		const struct mmt_report *report = matcher->reports[side];

		for (size_t i = 0; complete && i < report->row_count; i++)
			complete = matches[side][i].other ||
				   add_unmatched(matcher, &report->rows[i], i, numbers[side][i], &similar, side);
	}
	error = complete ? similar_stacks_match(&similar, matches) : &error_no_memory;
	for (unsigned side = 0; side < DIFF_SIDES; side++)
		vector_deinit(&similar.stacks[side]);
	return error;
}

struct mmt_error *row_matcher_match(struct row_matcher *matcher, struct row_match *const matches[DIFF_SIDES])
{
	const struct mmt_report *before = matcher->reports[DIFF_BEFORE], *after = matcher->reports[DIFF_AFTER];
	CLEANUP(free) uint64_t *before_numbers = calloc(before->row_count + 1, sizeof(*before_numbers));
	CLEANUP(free) uint64_t *after_numbers = calloc(after->row_count + 1, sizeof(*after_numbers));
	CLEANUP(free) size_t *chain = calloc(before->row_count + 1, sizeof(*chain));
	uint64_t *const numbers[DIFF_SIDES] = {before_numbers, after_numbers};
	struct row_index index = {.chain = chain};
	struct mmt_error *error = NULL;

	if (!before_numbers || !after_numbers || !chain)
		return &error_no_memory;
	error = index_rows(matcher, before_numbers, &index);
	if (!error)
		error = match_equal(matcher, &index, after_numbers, matches);
	if (!error && before->by == MMT_BY_FUNCTION && after->by == MMT_BY_FUNCTION)
		error = match_unnamed(matcher, &index, matches);
	if (!error)
		error = match_similar(matcher, numbers, matches);
	map_deinit(&index.first);
	return error;
}
