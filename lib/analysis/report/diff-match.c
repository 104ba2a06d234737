// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/diff-match.h"

#include "base/figures.h"
#include "base/limits.h"
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
	uint32_t previous = INTERN_NONE;
	uint64_t rank = 0;
	bool ok = order;

	for (size_t i = 0; ok && i < report->process_count; i++)
		order[i] = &report->processes[i];
	if (ok)
		qsort(order, report->process_count, sizeof(const struct mmt_process *), compare_starts);
	for (size_t i = 0; ok && i < report->process_count; i++) {
		uint32_t name = intern_put_string(&matcher->names, order[i]->name ?: "");

		rank = name == previous ? rank + 1 : 1;
		previous = name;
		ok = name != INTERN_NONE && map_put(&matcher->ranks[side], (uint32_t)order[i]->pid, rank << 32 | name);
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

/* The name without IDs: "worker / pool" of "worker (123) / pool (124)". NULL: out of memory; the caller frees it. */
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
		*number_ret = (rank ? *rank >> 32 << RANK_SHIFT : 0) | (uint64_t)number << 1 | 1;
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

bool row_is_pool(const struct mmt_row *row)
{
	return !row->name && (row->pattern == MMT_PATTERN_HEAP || row->pattern == MMT_PATTERN_ARENA ||
			      row->pattern == MMT_PATTERN_GC_HEAP || row->pattern == MMT_PATTERN_PYTHON);
}

bool row_matcher_function(struct row_matcher *matcher, unsigned side, const struct mmt_row *row, uint64_t *function_ret)
{
	const uint64_t *program;
	uint32_t numbers[2];

	if (row_is_pool(row)) {
		program = row->pid_count ? map_get(&matcher->ranks[side], (uint32_t)*row->pids) : NULL;
		*function_ret =
		    (uint64_t)(UINT32_MAX - row->pattern) << 32 | (program ? (uint32_t)*program : INTERN_NONE);
		return true;
	}
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
	if (by_module && (!length || !figures_held_bytes(row)))
		return true;
	if (by_module)
		number = intern_put(&matcher->names, row->name, length);
	else if (!number_row(matcher, side, row, &number))
		return false;
	*key_ret = number << 1 | (figures_held_bytes(row) || number >> RANK_SHIFT);
	return number != INTERN_NONE;
}

/* Match rows that have no match yet by their keys. Several may have one key, because they differ only in addresses
 * without a name, or in IDs: the first ones of both reports belong together. */
static struct mmt_error *match_by_key(struct row_matcher *matcher, bool by_module,
				      struct row_match *const matches[DIFF_SIDES])
{
	const struct mmt_report *before = matcher->reports[DIFF_BEFORE], *after = matcher->reports[DIFF_AFTER];
	CLEANUP(free) size_t *chain = calloc(before->row_count + 1, sizeof(*chain)); /* row -> next of its key + 1 */
	CLEANUP(map) struct map first = {0};					     /* key -> row + 1 */
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
	return ok ? NULL : &error_no_memory;
}

/* Similar stacks: candidates share the origin of one of them, and a bounded edit distance decides. */

/* A stack that no other one is equal to: the numbers of its frames. */
struct unmatched_stack {
	const struct mmt_row *row;
	size_t place; /* in its report */
	const uint32_t *frames;
	uint32_t count;
	uint32_t origin; /* place in `frames`; `count`: none */
};

/* The costs of the edit distance. Two stacks are similar if it is at most the number of frames of the longer one. */
#define GAP_COST 3 /* a frame that the other stack has not */
/* A frame of the same module without a name in one of them, or a function in another module, or with other arguments */
#define ALIKE_COST 1

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
	struct row_matcher *matcher;
	VECTOR(struct unmatched_stack) stacks[DIFF_SIDES];
	struct intern texts;
	VECTOR(struct frame_words) words; /* by the number of the frame */
	VECTOR(struct posting) postings;  /* of the stacks before, by word and stack */
	VECTOR(struct posting) nearest;	  /* scratch: what one stack may be similar to */
	VECTOR(struct candidate) candidates;
	struct distance *cells; /* scratch: two rows of states */
};

/* Whether brackets that follow are a part of the name: "<Vec as Trait>::new", "main.(*Server).load", "operator<". */
static bool begins_name(const char *plain, size_t size)
{
	static const char last[] = "operator";
	size_t length = strlen(last);

	return !size || plain[size - 1] == '.' || plain[size - 1] == ':' ||
	       (size >= length && !memcmp(plain + size - length, last, length));
}

/* Put a name without its arguments, which another version may change: those of functions, of templates, and the
 * addresses in Java's names of hidden classes. */
static uint32_t put_plain_name(struct intern *texts, const char *name, size_t length)
{
	CLEANUP(free) char *plain = malloc(length + 1);
	size_t size = 0, depth = 0;

	for (size_t i = 0; plain && i < length; i++) {
		bool opens = strchr("(<[", name[i]) && (depth || !begins_name(plain, size)),
		     closes = depth && strchr(")>]", name[i]);

		depth += opens;
		if (!depth && i + 2 < length && starts_with(name + i, "/0x"))
			i += 2 + strspn(name + i + 3, "0123456789abcdef");
		else if (!depth)
			plain[size++] = name[i];
		depth -= closes;
	}
	return plain ? intern_put(texts, plain, size) : INTERN_NONE;
}

static bool add_frame_words(struct similar_search *search, uint32_t number)
{
	const struct identities *identities = &search->matcher->identities;
	const struct mmt_frame *frame = identities->frames.items[number];
	const char *module = frame->module ? frame->module : "", *build = identity_build_id(identities, number);
	struct frame_words words = {INTERN_NONE, INTERN_NONE, INTERN_NONE};

	words.module = intern_put(&search->texts, module, strlen(module));
	if (build)
		words.build_id = intern_put(&search->texts, build, strlen(build));
	if (frame->function)
		words.function = put_plain_name(&search->texts, frame->function, identity_name_length(frame));
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
		const struct unmatched_stack *stack = &search->stacks[DIFF_BEFORE].items[i];

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
	const struct unmatched_stack *after = &search->stacks[DIFF_AFTER].items[stack];
	const struct posting *items = search->postings.items, wanted = {word, stack};
	size_t middle = partition_point(search->postings.count, i, compare_postings(&items[i], &wanted) < 0);
	size_t first = middle > LIMIT_DIFF_LISTED / 2 ? middle - LIMIT_DIFF_LISTED / 2 : 0;

	for (size_t i = first; i < search->postings.count && i < first + LIMIT_DIFF_LISTED; i++) {
		uint32_t place = items[i].stack, far = place > stack ? place - stack : stack - place, inner, outer;
		const struct unmatched_stack *before = &search->stacks[DIFF_BEFORE].items[place];

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
	if (a->module != b->module || search->matcher->identities.frames.items[before]->kind == MMT_FRAME_UNKNOWN)
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
		    search->matcher->identities.frames.items[comparison->frames[DIFF_AFTER][j - 1]]->function;

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
		search->matcher->work += last >= first ? last - first + 1 : 1;
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
		comparison.kept = smaller_of(origin, comparison.counts[side]);
		best = nearer(best, compare_parts(search, &comparison));
	}
	return best.cost <= comparison.limit ? best : (struct distance){FAR, 0};
}

/* Two stacks are similar only if the origin of one of them is in the other. */
static bool add_candidates(struct similar_search *search, uint32_t stack)
{
	const struct unmatched_stack *after = &search->stacks[DIFF_AFTER].items[stack];
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
	array_while(next, search->nearest.items, search->nearest.count, compared < CANDIDATES) {
		struct candidate candidate = {.stacks = {next->stack, stack}};

		if (last && last->stack == next->stack)
			continue;
		last = next;
		compared++;
		candidate.distance = compare_stacks(search, &search->stacks[DIFF_BEFORE].items[next->stack], after);
		if (candidate.distance.cost != FAR && !vector_push(&search->candidates, candidate))
			return false;
	}
	return true;
}

COMPARISON(compare_candidates, struct candidate,
	   order_of(a->distance.cost, b->distance.cost) ?: order_of(a->stacks[DIFF_AFTER], b->stacks[DIFF_AFTER])
	   ?: order_of(a->stacks[DIFF_BEFORE], b->stacks[DIFF_BEFORE]))

/* Pair stacks, each once. One that is left may be part of a similar one: inlining made both differ. */
static void choose_pairs(struct similar_search *search, bool joins, struct row_match *const matches[DIFF_SIDES])
{
	array_each(candidate, search->candidates.items, search->candidates.count) {
		const uint32_t *stacks = candidate->stacks;
		const struct unmatched_stack *before = &search->stacks[DIFF_BEFORE].items[stacks[DIFF_BEFORE]];
		const struct unmatched_stack *after = &search->stacks[DIFF_AFTER].items[stacks[DIFF_AFTER]];
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

/*
 * Match similar stacks of both sides. They differ in frames that only one of them has, as after a function was inlined
 * or a helper was added, or in names that only one of them knows. Stacks in which one function takes the place of
 * another are different, because that is how a new leak looks, too; so are those whose origin is not in the other one.
 */
static struct mmt_error *match_similar(struct similar_search *search, struct row_match *const matches[DIFF_SIDES])
{
	uint32_t counts[DIFF_SIDES];
	struct mmt_error *error;

	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		counts[side] = (uint32_t)(search->stacks[side].count < LIMIT_DIFF_STACKS ? search->stacks[side].count
											 : LIMIT_DIFF_STACKS);
		search->matcher->limited |= search->stacks[side].count > LIMIT_DIFF_STACKS;
	}
	if (!counts[DIFF_BEFORE] || !counts[DIFF_AFTER])
		return NULL;
	search->cells = malloc(2 * (LIMIT_DIFF_FRAMES + 1) * STATES * sizeof(*search->cells));
	error = search->cells ? NULL : &error_no_memory;
	for (uint32_t i = 0; !error && i < search->matcher->identities.frames.count; i++)
		error = add_frame_words(search, i) ? NULL : &error_no_memory;
	error = error ?: index_words(search, counts[DIFF_BEFORE]) ? NULL : &error_no_memory;
	for (uint32_t i = 0; !error && i < counts[DIFF_AFTER]; i++) {
		if (search->matcher->work > LIMIT_DIFF_WORK) {
			search->matcher->limited = true;
			break;
		}
		if (!add_candidates(search, i))
			error = &error_no_memory;
	}
	vector_sort(&search->candidates, compare_candidates);
	for (unsigned joins = 0; !error && joins < 2; joins++)
		choose_pairs(search, joins, matches);
	return error;
}

struct mmt_error *row_matcher_match(struct row_matcher *matcher, struct row_match *const matches[DIFF_SIDES])
{
	struct similar_search similar = {.matcher = matcher};
	bool by_function = true;
	struct mmt_error *error;

	for (unsigned side = 0; side < DIFF_SIDES; side++) {
		by_function &= matcher->reports[side]->by == MMT_BY_FUNCTION;
		array_each(row, matcher->reports[side]->rows, matcher->reports[side]->row_count) {
			const uint64_t *known;
			uint32_t numbers[2];

			if (row->name || !figures_held_bytes(row))
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

			if (matches[side][i].other || row->name || !row->frame_count || !figures_held_bytes(row))
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
	error = error ?: match_similar(&similar, matches);
	for (unsigned side = 0; side < DIFF_SIDES; side++)
		vector_deinit(&similar.stacks[side]);
	free(similar.cells);
	intern_deinit(&similar.texts);
	vector_deinit(&similar.words);
	vector_deinit(&similar.postings);
	vector_deinit(&similar.nearest);
	vector_deinit(&similar.candidates);
	return error;
}
