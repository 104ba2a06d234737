// SPDX-License-Identifier: LGPL-2.1-or-later
/* Similar stacks of two recordings: candidates share the origin of one of them, and a bounded edit distance decides. */
#include <string.h>

#include "analysis/report/diff-match.h"
#include "base/cleanup.h"
#include "base/limits.h"

/* The costs of the edit distance. Two stacks are similar if it is at most the number of frames of the longer one. */
#define GAP_COST 3   /* a frame that the other stack has not */
#define ALIKE_COST 1 /* a frame of the same module without a name in one of them, or a function in another module */

#define CANDIDATES 8 /* edit distances for a stack */

/* What is compared of a frame, by its number. */
struct frame_words {
	uint32_t function; /* INTERN_NONE: no name */
	uint32_t module;
	uint32_t build_id; /* INTERN_NONE: unknown */
};

/* A stack before, by a word that it has: see make_word(); or by how far it is from another one. */
struct posting {
	uint64_t word;
	uint32_t stack;
};

/* A value of the distance: the cost, and how many frames differ. */
struct distance {
	uint32_t cost;
	uint32_t frames;
};

struct candidate {
	struct distance distance;
	uint32_t stacks[DIFF_SIDES];
};

struct similar_search {
	const struct similar_stacks *similar;
	struct intern texts;
	VECTOR(struct frame_words) words; /* by the number of the frame */
	VECTOR(struct posting) postings;  /* of the stacks before, by word and stack */
	VECTOR(struct posting) nearest;	  /* scratch: what one stack may be similar to */
	VECTOR(struct candidate) candidates;
	struct distance *cells; /* scratch: two rows of states */
};

static bool add_frame_words(struct similar_search *search, uint32_t number)
{
	const struct identities *identities = &search->similar->matcher->identities;
	const struct mmt_frame *frame = identities->frames.items[number];
	const char *module = frame->module ? frame->module : "", *build = identity_build_id(identities, number);
	struct frame_words words = {INTERN_NONE, INTERN_NONE, INTERN_NONE};

	words.module = intern_put(&search->texts, module, strlen(module));
	if (build)
		words.build_id = intern_put(&search->texts, build, strlen(build));
	if (frame->function)
		words.function = intern_put(&search->texts, frame->function, identity_name_length(frame));
	return words.module != INTERN_NONE && (!build || words.build_id != INTERN_NONE) &&
	       (!frame->function || words.function != INTERN_NONE) && vector_push(&search->words, words);
}

/* By which a frame is found: a function; a module, by its functions that have no name; or a module, by all of them. */
enum { WORD_FUNCTION, WORD_UNNAMED, WORD_MODULE, WORD_KINDS };

/* Origins have words of their own. */
static uint64_t make_word(const struct frame_words *frame, unsigned kind, bool as_origin)
{
	return ((uint64_t)(kind == WORD_FUNCTION ? frame->function : frame->module) * WORD_KINDS + kind) * 2 +
	       as_origin;
}

COMPARISON(compare_postings, struct posting, order_of(a->word, b->word) ?: order_of(a->stack, b->stack))

static bool index_words(struct similar_search *search, uint32_t stack_count)
{
	for (uint32_t i = 0; i < stack_count; i++) {
		const struct unmatched_stack *stack = &search->similar->stacks[DIFF_BEFORE].items[i];

		for (uint32_t j = 0; j < stack->count && j < LIMIT_DIFF_WORDS; j++) {
			const struct frame_words *frame = &search->words.items[stack->frames[j]];
			unsigned kind = frame->function == INTERN_NONE ? WORD_UNNAMED : WORD_FUNCTION;

			for (unsigned as_origin = 0; as_origin <= (j == stack->origin); as_origin++) {
				struct posting own = {make_word(frame, kind, as_origin), i};
				struct posting module = {make_word(frame, WORD_MODULE, as_origin), i};

				if (!vector_push(&search->postings, own) || !vector_push(&search->postings, module))
					return false;
			}
		}
	}
	vector_sort(&search->postings, compare_postings);
	return true;
}

/* How many frames two stacks have in common, from the innermost on and from the outermost on. */
static void count_common(const struct unmatched_stack *before, const struct unmatched_stack *after, uint32_t *first_ret,
			 uint32_t *last_ret)
{
	uint32_t shorter = before->count < after->count ? before->count : after->count, first = 0, last = 0;

	while (first < shorter && before->frames[first] == after->frames[first])
		first++;
	while (last < shorter - first &&
	       before->frames[before->count - 1 - last] == after->frames[after->count - 1 - last])
		last++;
	*first_ret = first;
	*last_ret = last;
}

/* Add stacks before that have the word to `nearest`, from those of about the same rank: of equally similar ones, these
 * are the best guess. */
static bool look_at_word(struct similar_search *search, uint64_t word, uint32_t stack)
{
	const struct unmatched_stack *after = &search->similar->stacks[DIFF_AFTER].items[stack];
	const struct posting *items = search->postings.items, wanted = {word, stack};
	size_t middle = partition_point(search->postings.count, i, compare_postings(&items[i], &wanted) < 0);
	size_t first = middle > LIMIT_DIFF_LISTED / 2 ? middle - LIMIT_DIFF_LISTED / 2 : 0;

	for (size_t i = first; i < search->postings.count && i < first + LIMIT_DIFF_LISTED; i++) {
		uint32_t place = items[i].stack, far = place > stack ? place - stack : stack - place, inner, outer;
		const struct unmatched_stack *before = &search->similar->stacks[DIFF_BEFORE].items[place];

		if (items[i].word != word)
			continue;
		count_common(before, after, &inner, &outer);
		if (!vector_push(
			&search->nearest,
			((struct posting){(uint64_t)(before->count + after->count - 2 * (inner + outer)) << 32 | far,
					  place})))
			return false;
	}
	return true;
}

/* Look for a frame that can be that of the stack, in which a name may be missing. */
static bool look_at_frame(struct similar_search *search, uint32_t stack, uint32_t number, bool as_origin)
{
	const struct frame_words *frame = &search->words.items[number];

	if (frame->function == INTERN_NONE)
		return look_at_word(search, make_word(frame, WORD_MODULE, as_origin), stack);
	return look_at_word(search, make_word(frame, WORD_FUNCTION, as_origin), stack) &&
	       look_at_word(search, make_word(frame, WORD_UNNAMED, as_origin), stack);
}

/* The edit distance */

enum { MATCHED, GAP_BEFORE, GAP_AFTER, STATES }; /* what the last step was */

#define FAR UINT32_MAX

static struct distance longer(struct distance distance, uint32_t cost)
{
	if (distance.cost == FAR)
		return distance;
	return (struct distance){distance.cost + cost, distance.frames + (cost > 0)};
}

static struct distance nearer(struct distance left, struct distance right)
{
	return right.cost < left.cost ? right : left;
}

/* FAR: different functions. */
static uint32_t cost_of(const struct similar_search *search, uint32_t before, uint32_t after)
{
	const struct frame_words *a = &search->words.items[before], *b = &search->words.items[after];

	if (before == after)
		return 0;
	if (a->function != INTERN_NONE && b->function != INTERN_NONE)
		return a->function == b->function ? ALIKE_COST : FAR;
	if (a->module != b->module ||
	    search->similar->matcher->identities.frames.items[before]->kind == MMT_FRAME_UNKNOWN)
		return FAR;
	/* In one build, different places without names are different functions. */
	return a->function == b->function && a->build_id == b->build_id && a->build_id != INTERN_NONE ? FAR
												      : ALIKE_COST;
}

/* The parts of two stacks between their common beginning and their common end. */
struct compared_parts {
	const uint32_t *frames[DIFF_SIDES];
	uint32_t counts[DIFF_SIDES];
	uint32_t kept; /* frame of `kept_side` that must not be left out; its count: any may be */
	unsigned kept_side;
	uint32_t limit;
};

static void clear_cell(struct distance *cell)
{
	for (unsigned state = 0; state < STATES; state++)
		cell[state] = (struct distance){FAR, 0};
}

/* Frames of both sides must not be left out at one place: that is another function. */
static void fill_cell(const struct similar_search *search, const struct compared_parts *comparison, uint32_t i,
		      uint32_t j, const struct distance *above, struct distance *row)
{
	struct distance *cell = row + (size_t)j * STATES;
	bool keeps_before = comparison->kept_side == DIFF_BEFORE && i && comparison->kept == i - 1;
	bool keeps_after = comparison->kept_side == DIFF_AFTER && j && comparison->kept == j - 1;

	clear_cell(cell);
	if (i && j) {
		const struct distance *last = above + (size_t)(j - 1) * STATES;
		uint32_t cost =
		    cost_of(search, comparison->frames[DIFF_BEFORE][i - 1], comparison->frames[DIFF_AFTER][j - 1]);
		const char *function =
		    search->similar->matcher->identities.frames.items[comparison->frames[DIFF_AFTER][j - 1]]->function;

		/* Every program has a main function. */
		if (cost && (keeps_before || keeps_after) && function && !strcmp(function, "main"))
			cost = FAR;
		if (cost != FAR)
			cell[MATCHED] = longer(nearer(nearer(last[MATCHED], last[GAP_BEFORE]), last[GAP_AFTER]), cost);
	}
	if (i && !keeps_before) {
		const struct distance *last = above + (size_t)j * STATES;

		cell[GAP_BEFORE] = longer(nearer(last[MATCHED], last[GAP_BEFORE]), GAP_COST);
	}
	if (j && !keeps_after) {
		const struct distance *last = row + (size_t)(j - 1) * STATES;

		cell[GAP_AFTER] = longer(nearer(last[MATCHED], last[GAP_AFTER]), GAP_COST);
	}
}

/* Fill in only cells whose distance can be within the limit, and clear those beside them. */
static struct distance compare_parts(const struct similar_search *search, const struct compared_parts *comparison)
{
	uint32_t before = comparison->counts[DIFF_BEFORE], after = comparison->counts[DIFF_AFTER];
	uint32_t band = comparison->limit / GAP_COST;
	struct distance *rows[2] = {search->cells, search->cells + (size_t)(LIMIT_DIFF_FRAMES + 1) * STATES};
	struct distance *end;

	for (uint32_t i = 0; i <= before; i++) {
		struct distance *row = rows[i % 2];
		uint32_t first = i > band ? i - band : 0, last = i + band < after ? i + band : after;

		if (first)
			clear_cell(row + (size_t)(first - 1) * STATES);
		if (i + band + 1 <= after)
			clear_cell(row + (size_t)(i + band + 1) * STATES);
		for (uint32_t j = first; j <= last; j++) {
			fill_cell(search, comparison, i, j, rows[(i + 1) % 2], row);
			if (!i && !j)
				row[MATCHED].cost = 0;
		}
		search->similar->matcher->work += last >= first ? last - first + 1 : 1;
	}
	end = rows[before % 2] + (size_t)after * STATES;
	return nearer(nearer(end[MATCHED], end[GAP_BEFORE]), end[GAP_AFTER]);
}

static struct distance compare_stacks(const struct similar_search *search, const struct unmatched_stack *before,
				      const struct unmatched_stack *after)
{
	uint32_t first, last;
	struct compared_parts comparison = {.limit = before->count > after->count ? before->count : after->count};
	const struct unmatched_stack *stacks[DIFF_SIDES] = {before, after};
	struct distance best = {FAR, 0};
	bool uneven;

	count_common(before, after, &first, &last);
	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		comparison.frames[side] = stacks[side]->frames + first;
		comparison.counts[side] = stacks[side]->count - first - last;
	}
	uneven = (before->count > after->count ? before->count - after->count : after->count - before->count) >
		 comparison.limit / GAP_COST;
	if (uneven || comparison.counts[DIFF_BEFORE] > LIMIT_DIFF_FRAMES ||
	    comparison.counts[DIFF_AFTER] > LIMIT_DIFF_FRAMES)
		return best;
	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		uint32_t origin = stacks[side]->origin - first; /* in the part that is compared, if it is in that */

		comparison.kept_side = side;
		comparison.kept = origin < comparison.counts[side] ? origin : comparison.counts[side];
		best = nearer(best, compare_parts(search, &comparison));
	}
	return best.cost <= comparison.limit ? best : (struct distance){FAR, 0};
}

/* Two stacks are similar only if the origin of one of them is in the other. */
static bool add_candidates(struct similar_search *search, uint32_t stack)
{
	const struct unmatched_stack *after = &search->similar->stacks[DIFF_AFTER].items[stack];
	const struct posting *last = NULL;
	unsigned compared = 0;

	search->nearest.count = 0;
	if (after->origin < after->count && !look_at_frame(search, stack, after->frames[after->origin], false))
		return false;
	for (uint32_t i = 0; i < after->count && i < LIMIT_DIFF_WORDS; i++) {
		if (!look_at_frame(search, stack, after->frames[i], true))
			return false;
	}
	vector_sort(&search->nearest, compare_postings);
	for (size_t i = 0; i < search->nearest.count && compared < CANDIDATES; i++) {
		const struct posting *next = &search->nearest.items[i];
		struct candidate candidate = {.stacks = {next->stack, stack}};

		if (last && last->stack == next->stack)
			continue;
		last = next;
		compared++;
		candidate.distance =
		    compare_stacks(search, &search->similar->stacks[DIFF_BEFORE].items[next->stack], after);
		if (candidate.distance.cost != FAR && !vector_push(&search->candidates, candidate))
			return false;
	}
	return true;
}

COMPARISON(compare_candidates, struct candidate,
	   order_of(a->distance.cost, b->distance.cost) ?: order_of(a->stacks[DIFF_AFTER], b->stacks[DIFF_AFTER])
	   ?: order_of(a->stacks[DIFF_BEFORE], b->stacks[DIFF_BEFORE]))

/* Pair stacks, each once. Then one that is left may be part of one that it is similar to: another build has inlined the
 * functions in which both differ. */
static void choose_pairs(struct similar_search *search, bool joins, struct row_match *const matches[DIFF_SIDES])
{
	array_each(candidate, search->candidates.items, search->candidates.count) {
		const uint32_t *stacks = candidate->stacks;
		const struct unmatched_stack *before = &search->similar->stacks[DIFF_BEFORE].items[stacks[DIFF_BEFORE]];
		const struct unmatched_stack *after = &search->similar->stacks[DIFF_AFTER].items[stacks[DIFF_AFTER]];
		struct row_match *before_match = &matches[DIFF_BEFORE][before->place];
		struct row_match *after_match = &matches[DIFF_AFTER][after->place];
		size_t frames = candidate->distance.frames;

		if (!joins && !before_match->other && !after_match->other) {
			*before_match = (struct row_match){after->row, NULL, frames};
			*after_match = (struct row_match){before->row, NULL, frames};
		} else if (joins && !before_match->other && !before_match->joined) {
			*before_match = (struct row_match){NULL, after->row, frames};
		} else if (joins && !after_match->other && !after_match->joined && before_match->other) {
			*after_match = (struct row_match){NULL, before_match->other, frames};
		}
	}
}

struct mmt_error *similar_stacks_match(struct similar_stacks *similar, struct row_match *const matches[DIFF_SIDES])
{
	CLEANUP(free) struct distance *cells = malloc(2 * (LIMIT_DIFF_FRAMES + 1) * STATES * sizeof(*cells));
	struct similar_search search = {.similar = similar, .cells = cells};
	uint32_t counts[DIFF_SIDES];
	struct mmt_error *error;

	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		counts[side] = (uint32_t)(similar->stacks[side].count < LIMIT_DIFF_STACKS ? similar->stacks[side].count
											  : LIMIT_DIFF_STACKS);
		similar->matcher->limited |= similar->stacks[side].count > LIMIT_DIFF_STACKS;
	}
	if (!counts[DIFF_BEFORE] || !counts[DIFF_AFTER])
		return NULL;
	error = cells ? NULL : &error_no_memory;
	for (uint32_t i = 0; !error && i < similar->matcher->identities.frames.count; i++)
		error = add_frame_words(&search, i) ? NULL : &error_no_memory;
	if (!error && !index_words(&search, counts[DIFF_BEFORE]))
		error = &error_no_memory;
	for (uint32_t i = 0; !error && i < counts[DIFF_AFTER]; i++) {
		if (similar->matcher->work > LIMIT_DIFF_WORK) {
			similar->matcher->limited = true;
			break;
		}
		if (!add_candidates(&search, i))
			error = &error_no_memory;
	}
	vector_sort(&search.candidates, compare_candidates);
	for (unsigned joins = 0; !error && joins < 2; joins++)
		choose_pairs(&search, joins, matches);
	intern_deinit(&search.texts);
	vector_deinit(&search.words);
	vector_deinit(&search.postings);
	vector_deinit(&search.nearest);
	vector_deinit(&search.candidates);
	return error;
}
