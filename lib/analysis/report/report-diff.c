// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares two finished reports: matches their stacks, and what one process did between the recordings. */

#include "analysis/report/diff-match.h"
#include "analysis/report/report-build.h"
#include "base/figures.h"

/* Shorter recordings have no rates: memory mapped once at the start would look like a leak. */
#define RATED_NS 10000000000ULL
#define MINUTE_NS 60000000000ULL
#define LENGTHS 3     /* what grows for some time need not grow for so many times as long */
#define RATE_NOISE 10 /* one part in so many of a rate, or of a duration, is no difference */
#define SIZE_NOISE 3  /* likewise of the largest size of a command; at least 1 MiB */

/* By how much all rows of one function grew. */
struct function_growth {
	uint64_t bytes, committed_bytes; /* modulo 2^64 */
};

struct diff {
	struct mmt_diff result;
	VECTOR(struct mmt_diff_entry) changed, unchanged;
	VECTOR(struct mmt_growth_part) between;
	uint64_t replaced_committed_bytes;
	struct row_matcher matcher;
	struct intern function_keys;
	VECTOR(struct function_growth) functions; /* by id of its key */
	struct arena arena;			  /* of the heaps */
};

static uint64_t committed_of(const struct mmt_row *row)
{
	return row ? row->committed_bytes + row->committed_before_bytes : 0;
}

static double bytes_per_second(const struct mmt_row *row, const struct mmt_report *report)
{
	double seconds = (double)(report->end_ns - report->start_ns) / 1e9;

	return row && seconds > 0 ? (double)row->unfreed_bytes / seconds : 0;
}

static int64_t growth(const struct mmt_diff_entry *entry)
{
	return entry->bytes ? entry->bytes : entry->committed_bytes;
}

static bool is_held(const struct mmt_diff_entry *entry)
{
	return (entry->before && figures_held_bytes(entry->before)) ||
	       (entry->after && figures_held_bytes(entry->after));
}

/* What grows by `bytes` in `duration_ns` grows by in the time that the second recording is longer. */
static int64_t extrapolate(const struct mmt_diff *diff, double bytes, uint64_t duration_ns)
{
	bool grows = diff->rated && duration_ns && bytes > 0;
	double growth = grows ? bytes / (double)duration_ns * (double)diff->longer_ns : 0;

	return growth >= 0x1p63 ? INT64_MAX : growth <= -0x1p63 ? INT64_MIN : (int64_t)growth;
}

/* What a leak of the first recording grows in that time. */
static int64_t expected_growth(const struct mmt_diff *diff, const struct mmt_row *row, const uint64_t *trend)
{
	double growth = (double)trend[MMT_TREND_POINTS - 1] - (double)trend[MMT_TREND_POINTS / 2 - 1];

	return mmt_row_leaks(row->verdict) ? extrapolate(diff, 2 * growth, diff->before->to_ns - diff->before->from_ns)
					   : 0;
}

/* Rates vary from one recording to the next. */
static int64_t leave_out(int64_t change, int64_t expected)
{
	int64_t rest;

	if (__builtin_sub_overflow(change, expected, &rest))
		rest = change < 0 ? INT64_MIN : INT64_MAX;
	return expected && magnitude_of(rest) <= magnitude_of(expected) / RATE_NOISE ? 0 : rest;
}

static struct mmt_error *add_entry(struct diff *diff, const struct mmt_row *before, const struct mmt_row *after,
				   const struct row_match *match)
{
	const struct mmt_row *base = diff->result.relation == MMT_DIFF_SAME_PROCESS ? NULL : before;
	struct mmt_diff_entry entry = {
	    .before = before,
	    .after = after,
	    .differing_frames = match->differing_frames,
	    .part_of = match->joined,
	    .bytes = (int64_t)((after ? after->unfreed_bytes : 0) - (base ? base->unfreed_bytes : 0)),
	    .committed_bytes = (int64_t)(committed_of(after) - committed_of(base)),
	    .count = (int64_t)((after ? after->unfreed_count : 0) - (base ? base->unfreed_count : 0)),
	    .before_bytes_per_second = bytes_per_second(before, diff->result.before),
	    .after_bytes_per_second = bytes_per_second(after, diff->result.after),
	};
	bool complete;

	if (base && after) {
		int64_t bytes = entry.bytes;

		entry.bytes = leave_out(bytes, expected_growth(&diff->result, base, base->trend));
		diff->result.left_out_bytes =
		    (int64_t)((uint64_t)diff->result.left_out_bytes + (uint64_t)bytes - (uint64_t)entry.bytes);
		entry.committed_bytes = leave_out(
		    entry.committed_bytes, expected_growth(&diff->result, base, base->committed_trend ?: base->trend));
	}
	if (!before || !after)
		entry.change = before ? MMT_CHANGE_GONE : MMT_CHANGE_NEW;
	else if (!growth(&entry))
		entry.change = MMT_CHANGE_SAME;
	else
		entry.change = growth(&entry) > 0 ? MMT_CHANGE_GROWN : MMT_CHANGE_SHRUNK;
	complete = is_held(&entry) && entry.change != MMT_CHANGE_SAME ? vector_push(&diff->changed, entry)
								      : vector_push(&diff->unchanged, entry);
	return complete ? NULL : &error_no_memory;
}

static struct mmt_error *add_to_function(struct diff *diff, const struct mmt_diff_entry *entry)
{
	/* What may be part of another stack counts for the function of that one. */
	const struct mmt_row *after = entry->part_of ? entry->part_of : entry->after;
	const struct mmt_row *row = after ?: entry->before;
	uint64_t key;
	uint32_t id;

	if (!row_matcher_function(&diff->matcher, after ? DIFF_AFTER : DIFF_BEFORE, row, &key))
		return &error_no_memory;
	id = intern_put(&diff->function_keys, &key, sizeof(key));
	if (id == INTERN_NONE || (id == diff->functions.count && !vector_append(&diff->functions)))
		return &error_no_memory;
	/* How much a pool reserves changes with the number of threads that meet in it. */
	diff->functions.items[id].bytes += (uint64_t)(row_is_pool(row) ? entry->committed_bytes : entry->bytes);
	diff->functions.items[id].committed_bytes += (uint64_t)entry->committed_bytes;
	return NULL;
}

static uint64_t add_growth(uint64_t sum, uint64_t change)
{
	return (int64_t)change > 0 ? saturating_add(sum, change, MMT_BYTES_MAX) : sum;
}

COMPARISON(compare_entries, struct mmt_diff_entry,
	   order_of(growth(b), growth(a)) ?: order_of((a->after ?: a->before)->id, (b->after ?: b->before)->id)
	   ?: !a->after - !b->after)

static struct mmt_error *compare_reports(struct diff *diff)
{
	struct mmt_diff *result = &diff->result;
	const struct mmt_report *before = result->before, *after = result->after;
	CLEANUP(free) struct row_match *before_matches = calloc(before->row_count + 1, sizeof(*before_matches));
	CLEANUP(free) struct row_match *after_matches = calloc(after->row_count + 1, sizeof(*after_matches));
	struct row_match *const matches[DIFF_SIDES] = {before_matches, after_matches};
	struct mmt_error *error =
	    before_matches && after_matches ? row_matcher_match(&diff->matcher, matches) : &error_no_memory;

	for (size_t i = 0; !error && i < after->row_count; i++)
		error = add_entry(diff, after_matches[i].other, &after->rows[i], &after_matches[i]);
	/* Whether the process still holds what the first recording shows is unknown for single rows. */
	for (size_t i = 0; !error && result->relation != MMT_DIFF_SAME_PROCESS && i < before->row_count; i++) {
		if (!before_matches[i].other)
			error = add_entry(diff, &before->rows[i], NULL, &before_matches[i]);
	}
	array_while(entry, diff->changed.items, diff->changed.count, !error) {
		result->bytes = (int64_t)((uint64_t)result->bytes + (uint64_t)entry->bytes);
		result->committed_bytes =
		    (int64_t)((uint64_t)result->committed_bytes + (uint64_t)entry->committed_bytes);
		result->uncertain_count += entry->differing_frames > 0;
		error = add_to_function(diff, entry);
	}
	array_each(function, diff->functions.items, diff->functions.count) {
		result->growth_bytes = add_growth(result->growth_bytes, function->bytes);
		result->committed_growth_bytes = add_growth(result->committed_growth_bytes, function->committed_bytes);
	}
	result->growth_bytes = subtract(result->growth_bytes, result->replaced_bytes);
	result->committed_growth_bytes = subtract(result->committed_growth_bytes, diff->replaced_committed_bytes);
	for (size_t i = 0; i < diff->unchanged.count; i++)
		result->same_count += is_held(&diff->unchanged.items[i]);
	vector_sort(&diff->changed, compare_entries);
	result->search_limited = diff->matcher.limited;
	result->entries = diff->changed.items;
	result->entry_count = diff->changed.count;
	result->unchanged = diff->unchanged.items;
	result->unchanged_count = diff->unchanged.count;
	return error;
}

static uint64_t mapped_bytes(const struct mmt_process *process)
{
	return process->unfreed_bytes + process->before_bytes + process->kernel_bytes;
}

struct process_key {
	uint64_t start_boot_ns;
	int64_t pid;
};

static struct process_key key_of(const struct mmt_process *process)
{
	return (struct process_key){process->start_boot_ns, process->pid};
}

/* Find the processes that are in both recordings. A PID and the time of its start identify a process on one host. */
static struct mmt_error *match_processes(struct diff *comparison)
{
	struct mmt_diff *diff = &comparison->result;
	const struct mmt_report *before = diff->before, *after = diff->after;
	CLEANUP(free)
	size_t *places = calloc(after->process_count + 1, sizeof(*places)); /* of the first with each key */
	struct intern keys = {0};
	/* Of processes that ended or started since. */
	uint64_t ended_bytes = 0, started_bytes = 0, unfreed_bytes = 0, committed_bytes = 0;
	bool ok = places;

	for (size_t i = 0; ok && i < after->process_count; i++) {
		struct process_key key = key_of(&after->processes[i]);
		size_t count = keys.count;
		uint32_t id = intern_put(&keys, &key, sizeof(key));

		ok = id != INTERN_NONE;
		if (id == count)
			places[id] = i;
		if (after->processes[i].released)
			continue;
		started_bytes += mapped_bytes(&after->processes[i]);
		unfreed_bytes += after->processes[i].unfreed_bytes;
		committed_bytes += after->processes[i].committed_bytes;
	}
	for (size_t i = 0; ok && i < before->process_count; i++) {
		struct process_key key = key_of(&before->processes[i]);
		uint32_t id = key.start_boot_ns ? intern_find(&keys, &key, sizeof(key)) : INTERN_NONE;
		const struct mmt_process *from, *to;

		ended_bytes += before->processes[i].released ? 0 : mapped_bytes(&before->processes[i]);
		if (id == INTERN_NONE)
			continue;
		from = &before->processes[i];
		to = &after->processes[places[id]];
		diff->relation = MMT_DIFF_SAME_PROCESS;
		diff->same_process_count++;
		/* The path of a program changes if its file is replaced, and its name if the process renames itself. */
		if (!diff->executed_after && from->program && to->program && strcmp(from->program, to->program) != 0 &&
		    strcmp(from->name ? from->name : "", to->name ? to->name : "") != 0) {
			diff->executed_before = from;
			diff->executed_after = to;
		}
		diff->between_ns = after->start_ns - before->end_ns;
		if (to->released)
			continue;
		diff->mapped_before_bytes += mapped_bytes(from);
		diff->mapped_after_bytes += mapped_bytes(to);
		unfreed_bytes = subtract(unfreed_bytes, to->unfreed_bytes);
		committed_bytes = subtract(committed_bytes, to->committed_bytes);
	}
	ended_bytes = subtract(ended_bytes, diff->mapped_before_bytes);
	started_bytes = subtract(started_bytes, diff->mapped_after_bytes);
	if (diff->relation == MMT_DIFF_SAME_PROCESS) {
		diff->replaced_bytes = subtract(unfreed_bytes, subtract(started_bytes, ended_bytes));
		comparison->replaced_committed_bytes = smaller_of(diff->replaced_bytes, committed_bytes);
	}
	intern_deinit(&keys);
	return ok ? NULL : &error_no_memory;
}

/* Processes of one name in one recording. The rest is of those that ended, and ran for less than three quarters of it:
 * what runs for longer is no command of a test, but the test, or a server. */
struct namesakes {
	bool any;
	uint64_t count, lasting, largest_bytes; /* lasting: ended, but ran for longer */
	uint64_t now, most;			/* at once: at a moment, and ever */
	uint64_t alike, bytes, committed_bytes; /* those no larger than the ones of the first recording */
	const struct mmt_process *largest;	/* at its largest size, as are the next two of all */
	double sum, squares;
};

struct moment {
	uint64_t time_ns;
	uint64_t change; /* modulo 2^64 */
	uint32_t name;
};

COMPARISON(compare_moments, struct moment, order_of(a->time_ns, b->time_ns) ?: order_of(a->change, b->change))

/* By how much the commands of a name were larger, if those that are missing or additional were as large as any before.
 * The size of each varies, whatever the others have. */
static void find_larger(struct mmt_diff *diff, const struct namesakes *before, const struct namesakes *after)
{
	double largest = before->largest ? before->largest->peak_kib * 1024.0 : 0, count = (double)after->count;
	double added = (double)subtract(after->count, before->count);
	double bytes = after->sum - smaller_of(before->sum + added * largest, count * largest);

	if (largest <= 0 || before->lasting != after->lasting || bytes <= 0x1p20 ||
	    bytes <= (double)diff->larger_bytes || bytes * bytes * SIZE_NOISE * SIZE_NOISE <= before->squares)
		return;
	diff->larger = after->largest;
	diff->larger_bytes = bytes < 0x1p63 ? (uint64_t)bytes : INT64_MAX;
	diff->larger_counts[DIFF_BEFORE] = before->count;
	diff->larger_counts[DIFF_AFTER] = after->count;
}

/* In the time of a test, more or fewer programs may run one after another: leave the additional ones out, as far as
 * they hold no more than those of the first recording. */
static void find_replaced(struct diff *diff, const struct namesakes *before, const struct namesakes *after)
{
	uint64_t added = subtract(after->count, before->count + subtract(after->most, before->most));

	if (!before->count || !after->alike)
		return;
	added = smaller_of(added, after->alike);
	diff->result.replaced_bytes += after->bytes / after->alike * added;
	diff->replaced_committed_bytes += after->committed_bytes / after->alike * added;
}

/* Whether a process of both reports has the same name, which may be any if unknown; and what additional ones hold. */
static struct mmt_error *match_names(struct diff *diff, bool *common_ret)
{
	const struct mmt_report *const reports[DIFF_SIDES] = {diff->result.before, diff->result.after};
	size_t room = reports[DIFF_BEFORE]->process_count + reports[DIFF_AFTER]->process_count + 1;
	CLEANUP(free) struct namesakes(*all)[DIFF_SIDES] = calloc(room, sizeof(*all));
	CLEANUP(free) struct moment *moments = calloc(2 * room, sizeof(*moments));
	bool ok = all && moments;
	struct intern names = {0};

	*common_ret = !reports[DIFF_BEFORE]->process_count || !reports[DIFF_AFTER]->process_count;
	for (unsigned side = 0; side < DIFF_SIDES && ok; side++) {
		uint64_t start_ns = reports[side]->start_ns, length_ns = reports[side]->end_ns - start_ns;
		size_t count = 0;

		array_while(process, reports[side]->processes, reports[side]->process_count, ok) {
			uint32_t name = intern_put_string(&names, process->name ?: "");
			struct namesakes *both = all[name == INTERN_NONE ? 0 : name], *of = &both[side];

			ok = name != INTERN_NONE;
			of->any = true;
			*common_ret |= !process->name || !*process->name || both[!side].any;
			if (!ok || !process->ended || process->released)
				continue;
			if (process->ended_ns - larger_of(process->started_ns, start_ns) >= length_ns - length_ns / 4) {
				of->lasting++;
				continue;
			}
			of->count++;
			of->sum += process->peak_kib * 1024.0;
			of->squares += process->peak_kib * 1024.0 * process->peak_kib * 1024.0;
			if (!of->largest || process->peak_kib > of->largest->peak_kib)
				of->largest = process;
			moments[count++] = (struct moment){process->started_ns, 1, name};
			moments[count++] = (struct moment){process->ended_ns, UINT64_MAX, name};
			if (side == DIFF_BEFORE)
				of->largest_bytes = larger_of(of->largest_bytes, process->unfreed_bytes);
			else if (process->unfreed_bytes / (RATE_NOISE + 1) <=
				 both[DIFF_BEFORE].largest_bytes / RATE_NOISE) {
				of->alike++;
				of->bytes = saturating_add(of->bytes, process->unfreed_bytes, MMT_BYTES_MAX);
				of->committed_bytes =
				    saturating_add(of->committed_bytes, process->committed_bytes, MMT_BYTES_MAX);
			}
		}
		qsort(moments, count, sizeof(*moments), compare_moments);
		array_each(moment, moments, count) {
			struct namesakes *of = &all[moment->name][side];

			of->now += moment->change;
			of->most = larger_of(of->now, of->most);
		}
	}
	for (size_t i = 0; i < names.count && ok; i++) {
		find_replaced(diff, &all[i][DIFF_BEFORE], &all[i][DIFF_AFTER]);
		find_larger(&diff->result, &all[i][DIFF_BEFORE], &all[i][DIFF_AFTER]);
	}
	intern_deinit(&names);
	return ok ? NULL : &error_no_memory;
}

static uint64_t duration_of(const struct mmt_report *report)
{
	uint64_t duration_ns = subtract(report->end_ns, report->start_ns);

	return duration_ns < INT64_MAX ? duration_ns : INT64_MAX;
}

bool mmt_report_has_ended(const struct mmt_report *report)
{
	return !array_find(process, report->processes, report->process_count, !process->ended);
}

/* Programs that end by themselves do the same work, however long it takes. */
static bool is_running(const struct mmt_report *report)
{
	return !mmt_report_has_ended(report) && !report->windowed && !report->options.keep_ended;
}

static void compare_durations(struct mmt_diff *diff)
{
	uint64_t before_ns = duration_of(diff->before), after_ns = duration_of(diff->after);
	uint64_t shorter_ns = smaller_of(before_ns, after_ns);
	int64_t longer_ns = (int64_t)(after_ns - before_ns);

	diff->rated = shorter_ns >= RATED_NS;
	if (diff->relation == MMT_DIFF_RUNS && is_running(diff->before) && is_running(diff->after) &&
	    magnitude_of(longer_ns) > shorter_ns / RATE_NOISE)
		diff->longer_ns = longer_ns;
	diff->counted_unlike = diff->relation != MMT_DIFF_SAME_PROCESS &&
			       diff->before->options.keep_ended != diff->after->options.keep_ended &&
			       (diff->before->options.keep_ended ? diff->after : diff->before)->ended_bytes;
	diff->incomparable =
	    diff->counted_unlike || (diff->longer_ns && (!diff->rated || after_ns / LENGTHS > before_ns));
	if (diff->before->growth.verdict == MMT_VERDICT_GROWING)
		diff->left_out_resident_bytes =
		    extrapolate(diff, (double)diff->before->growth.bytes_per_minute, MINUTE_NS);
}

/* Add what the kind has in one of the reports: what it has in both is one part. */
static struct mmt_error *add_between(struct diff *diff, struct intern *keys, const struct mmt_resident_kind *kind,
				     uint64_t bytes)
{
	CLEANUP(free) char *key = resident_kind_key(kind);
	uint32_t id = key ? intern_put_string(keys, key) : INTERN_NONE;
	struct mmt_growth_part part = {.place = MMT_GROWTH_BEFORE,
				       .memory_class = kind->memory_class,
				       .arena = kind->arena,
				       .name = kind->name,
				       .runtime = kind->runtime,
				       .order = id};

	if (id == INTERN_NONE || (id == diff->between.count && !vector_push(&diff->between, part)))
		return &error_no_memory;
	diff->between.items[id].bytes = (int64_t)((uint64_t)diff->between.items[id].bytes + bytes);
	return NULL;
}

COMPARISON(compare_between, struct mmt_growth_part,
	   order_of(magnitude_of(b->bytes), magnitude_of(a->bytes)) ?: order_of(a->order, b->order))

/* In which kinds of memory one process grew between the recordings. */
static struct mmt_error *attribute_between(struct diff *diff)
{
	const struct mmt_growth *before = &diff->result.before->growth, *after = &diff->result.after->growth;
	struct intern keys = {0};
	struct mmt_error *error = NULL;
	uint64_t explained = 0;

	if (diff->result.relation != MMT_DIFF_SAME_PROCESS || !before->kinds_at_end || !after->kinds_at_start ||
	    before->verdict == MMT_VERDICT_UNKNOWN || after->verdict == MMT_VERDICT_UNKNOWN)
		return NULL;
	for (size_t i = 0; !error && i < after->kind_count; i++)
		error = add_between(diff, &keys, &after->kinds[i], after->kinds[i].start_bytes);
	for (size_t i = 0; !error && i < before->kind_count; i++)
		error = add_between(diff, &keys, &before->kinds[i], -before->kinds[i].end_bytes);
	intern_deinit(&keys);
	vector_sort(&diff->between, compare_between);
	while (diff->between.count && !diff->between.items[diff->between.count - 1].bytes)
		diff->between.count--;
	array_each(part, diff->between.items, diff->between.count) {
		part->pattern = growth_pattern(part);
		part->hint = hints_of_growth(part, HINTS_BETWEEN, ARENAS_OF_SEVERAL_THREADS);
		if (diff->result.heap_count)
			part->hint = hints_with_census(part->hint);
		/* New threads and mappings are as likely as deeper calls and touched pages, which is all that a report
		 * of one recording can find: only these are no leak. */
		if (part->hint && (part->pattern == MMT_PATTERN_THREAD_STACK || part->pattern == MMT_PATTERN_FILE))
			part->hint = mmt_pattern_explanation(part->pattern);
		explained += (uint64_t)part->bytes;
	}
	diff->result.between_bytes = (int64_t)(after->start_bytes - before->end_bytes);
	diff->result.between_unexplained_bytes = (int64_t)((uint64_t)diff->result.between_bytes - explained);
	diff->result.between_parts = diff->between.items;
	diff->result.between_part_count = diff->between.count;
	diff->result.between_parts_known = true;
	return error;
}

struct mmt_error *mmt_diff_create(const struct mmt_report *before, const struct mmt_report *after,
				  struct mmt_diff **diff_ret)
{
	const struct mmt_report *const reports[DIFF_SIDES] = {before, after};
	struct diff *diff = calloc(1, sizeof(*diff));
	struct mmt_error *error;
	bool common = false;

	if (!diff)
		return &error_no_memory;
	diff->result.before = before;
	diff->result.after = after;
	error = row_matcher_init(&diff->matcher, reports) ?: match_names(diff, &common);
	diff->result.relation = common ? MMT_DIFF_RUNS : MMT_DIFF_OTHER_PROGRAM;
	if (!error && before->host && after->host && !strcmp(before->host, after->host) &&
	    after->start_ns >= before->end_ns)
		error = match_processes(diff);
	if (after->options.focus_count || after->options.ignore_count)
		diff->result.replaced_bytes = diff->replaced_committed_bytes = diff->result.larger_bytes = 0;
	compare_durations(&diff->result);
	diff->matcher.task_ids = diff->result.relation == MMT_DIFF_SAME_PROCESS;
	error = error ?: compare_reports(diff)
		      ?: heap_growth_compare(&diff->arena, &diff->result)
		      ?: attribute_between(diff);
	row_matcher_deinit(&diff->matcher);
	if (error) {
		mmt_diff_destroy(&diff->result);
		return error;
	}
	*diff_ret = &diff->result;
	return NULL;
}

void mmt_diff_destroy(struct mmt_diff *result)
{
	struct diff *diff = (struct diff *)result; /* its first member */

	if (!diff)
		return;
	vector_deinit(&diff->changed);
	vector_deinit(&diff->unchanged);
	vector_deinit(&diff->between);
	vector_deinit(&diff->functions);
	intern_deinit(&diff->function_keys);
	arena_deinit(&diff->arena);
	free(diff);
}
