// SPDX-License-Identifier: LGPL-2.1-or-later
/* The text report: the figures above the rows, and the rows. text-header.c and text-sections.c print the rest. */
#include <inttypes.h>
#include <limits.h>

#include "output/text/text-parts.h"

#define ROW_INDENT 4
#define STACK_INDENT 6
#define COMMITTED_FLOOR_BYTES 262144 /* without other evidence, fewer bytes made accessible are not growth */
#define LABEL_COLUMNS 26
#define FILE_COLUMNS 48
#define TREND_FLOOR 1000 /* smaller parts of the bytes are not shown as a change */
#define MAPPINGS_SHARE 2 /* of vm.max_map_count: shown from this share on */
#define THREADS_NAMED 3

/* "thread main (12)", "threads a (1), b (2) and 3 more"; nothing for the main thread of the only process. */
static void put_threads(struct text *text, const struct mmt_report *report, const struct mmt_row *row)
{
	size_t named = row->thread_count < THREADS_NAMED ? row->thread_count : THREADS_NAMED;
	size_t more = row->thread_count - named;

	if (report->process_count > 1 && row->pid_count == 1)
		text_part(text, TEXT_PLAIN, "pid %" PRId32, row->pids[0]);
	else if (row->pid_count > 1)
		text_part(text, TEXT_PLAIN, "%zu processes", row->pid_count);
	if (!named ||
	    (report->process_count == 1 && row->thread_count == 1 && row->threads[0].tid == report->processes[0].pid))
		return;
	for (size_t i = 0; i < named; i++)
		text_add(text, "%s%s (%" PRId32 ")",
			 i			 ? i + 1 == named && !more ? " and " : ", "
			 : row->thread_count > 1 ? "threads "
						 : "thread ",
			 row->threads[i].name ? row->threads[i].name : "", row->threads[i].tid);
	if (more)
		text_add(text, " and %zu more", more);
	text_end_part(text, TEXT_PLAIN);
}

/* Do not report "no leak" for a process that grows in older memory, or may grow. */
static void add_doubts(struct text *text, const struct mmt_report *report)
{
	const struct mmt_growth *growth = &report->growth;
	/* What RSS may change without being a growth. */
	uint64_t floor_bytes = growth->floor_bytes ? growth->floor_bytes : COMMITTED_FLOOR_BYTES;
	bool grew = mmt_growth_change(growth) > 0 && (uint64_t)mmt_growth_change(growth) > floor_bytes;

	if (growth->verdict == MMT_VERDICT_UNKNOWN)
		text_add(text, "; RSS over time %s: memory mapped before may have grown",
			 report->windowed ? "is not known for this window" : "was not recorded");
	else if (grew && !text_growth_is_of_all(report))
		text_add(text, "; what grew is in no row of this report");
	else if (grew || growth->by_process || growth->verdict == MMT_VERDICT_GROWING)
		text_add(text, "; what grew was mapped before, see above");
	else if (growth->verdict == MMT_VERDICT_TOO_SHORT)
		text_add(text, "; memory mapped before may grow, see above");
	if (report->committed_before_bytes > floor_bytes)
		text_add(text, "; %s of memory mapped before were made accessible",
			 text_bytes(text, report->committed_before_bytes));
	if (!mmt_event_count_sum(report->events) && !report->windowed)
		text_add(text, "; no memory call was recorded: %s",
			 grew ? "touching memory that is already mapped needs none"
			      : "the process needed none, or other processes do its work");
	if (report->ended_bytes)
		text_add(text, "; processes that ended by themselves held %s until then",
			 text_bytes(text, report->ended_bytes));
}

static void put_nothing_unfreed(struct text *text, const struct mmt_report *report)
{
	struct checks checks = checks_sum(report);
	/* As far as the mappings of this recording go. */
	bool certain = text_figures_are_sound(report) && text_growth_is_of_all(report) && checks.checked.processes &&
		       !checks.checked.unverifiable_bytes && !report->completeness.ambiguous_events &&
		       !report->completeness.warning_count;
	size_t size;

	text_end_line(text);
	text_add(text, "Nothing %s is still mapped%s",
		 selection_has_patterns(report) || report->too_recent_bytes ? "selected"
									    : "that was mapped in this recording",
		 certain ? "" : ", as far as the recording can tell");
	size = text->sentence.count;
	add_doubts(text, report);
	certain &= text->sentence.count == size;
	if (certain)
		text_add(text, ": no leak of mappings, and %s did not grow", text_measure_with_swap(&report->growth));
	text_sentence(text, certain ? TEXT_GOOD : TEXT_STRONG, 2, ".");
}

static void put_sum(struct text *text, const char *label, const char *value)
{
	text_put(text, TEXT_PLAIN, label);
	text_pad_to(text, LABEL_COLUMNS);
	text_format(text, TEXT_STRONG, "%11s", value);
}

static void put_part_bytes(struct text *text, const char *label, uint64_t bytes)
{
	text_part(text, TEXT_PLAIN, "%s %s", label, bytes == MMT_UNKNOWN ? "unknown" : text_bytes(text, bytes));
}

/* "12,345 of 65,530 (vm.max_map_count)" for the process with most mappings, if it is near the limit or requested. */
static void put_mappings(struct text *text, const struct mmt_report *report, enum mmt_sort sort)
{
	const struct mmt_process *most = report->most_mappings;

	if (!most || (sort != MMT_SORT_MAPPINGS &&
		      (!report->mapping_limit || most->mapping_count < report->mapping_limit / MAPPINGS_SHARE)))
		return;
	put_sum(text, "mappings at the end", text_count(text, most->mapping_count));
	if (report->mapping_limit)
		text_format(text, TEXT_STRONG, " of %s (vm.max_map_count)", text_count(text, report->mapping_limit));
	if (report->process_count > 1) {
		text_add_process(text, most);
		text_end_part(text, TEXT_STRONG);
	}
	text_end_line(text);
}

static void put_sums(struct text *text, const struct mmt_report *report, enum mmt_sort sort)
{
	const struct {
		const char *label;
		uint64_t bytes;
		const char *what;
	} others[] = {
	    {"mapped by the kernel", report->kernel_bytes, "programs, stacks that grew"},
	    {"excluded as too recent", report->too_recent_bytes, NULL},
	    {"in processes that ended", report->ended_bytes, NULL},
	};

	text->indent = 0;
	put_sum(text, report->windowed ? "unfreed in this window" : "unfreed in this recording",
		text_bytes(text, report->unfreed_bytes));
	put_part_bytes(text, "committed", report->committed_bytes);
	put_part_bytes(text, "reserved", report->reserved_bytes);
	put_part_bytes(text, "resident", report->resident_bytes);
	if (report->resident_bytes != MMT_UNKNOWN && report->resident_ns && report->resident_ns < report->to_ns)
		text_format(text, TEXT_PLAIN, " (%s after the start)",
			    text_duration(text, report->resident_ns - report->start_ns));
	text_end_line(text);
	put_sum(text, report->windowed ? "mapped in this window" : "mapped in this recording",
		text_bytes(text, report->allocated_bytes));
	put_part_bytes(text, "freed", report->freed_bytes);
	text_end_line(text);
	put_sum(text, "mapped before it began", text_bytes(text, report->before_bytes));
	text_end_line(text);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		if (!others[i].bytes)
			continue;
		put_sum(text, others[i].label, text_bytes(text, others[i].bytes));
		if (others[i].what)
			text_part(text, TEXT_PLAIN, "%s", others[i].what);
		text_end_line(text);
	}
	put_mappings(text, report, sort);
}

static void put_verdict(struct text *text, const struct mmt_report *report, const struct mmt_row *row)
{
	struct verdict_word verdict = text_verdict_word(report, row->verdict);

	if (!verdict.word)
		return;
	/* The table above has the rate of the cause, which may be of several rows. */
	if (mmt_row_leaks(row->verdict) && row->verdict != MMT_ROW_PART_OF_LEAK && (text->below || !text->has_table) &&
	    row->bytes_per_minute != MMT_RATE_UNKNOWN && row->bytes_per_minute > 0 && row->memory_bytes)
		text_part(text, verdict.style, "%s %s per minute", verdict.word,
			  text_change(text, row->bytes_per_minute));
	else if (row->verdict == MMT_ROW_PART_OF_LEAK && row->cause && report->causes[row->cause - 1].row_count > 1)
		text_part(text, verdict.style, "%s of %s in %zu stacks", verdict.word,
			  text_bytes(text, report->causes[row->cause - 1].memory_bytes),
			  report->causes[row->cause - 1].row_count);
	else if (row->advised_ns && row->verdict == MMT_ROW_UNDECIDED && !report->growth.advised_ns)
		text_part(text, verdict.style, "%s: record for %s", verdict.word, text_duration(text, row->advised_ns));
	else
		text_part(text, verdict.style, "%s", verdict.word);
}

/* "anon", or the file. */
static void put_kind(struct text *text, const struct mmt_row *row)
{
	char more[MMT_SIZE_TEXT] = "";
	unsigned columns;

	if (!row->file) {
		text_part(text, TEXT_PLAIN, "%s", mmt_class_name(row->memory_class));
		return;
	}
	if (row->file_count > 1)
		snprintf(more, sizeof(more), " and %zu more %s", row->file_count - 1,
			 text_plural(row->file_count - 1, "file", "files"));
	columns = text_name_columns(text, row->file);
	text_begin_part(text, (columns < FILE_COLUMNS ? columns : FILE_COLUMNS) + (unsigned)strlen(more));
	text_put_name(text, TEXT_PLAIN, row->file, FILE_COLUMNS);
	text_put(text, TEXT_PLAIN, more);
}

/* Print the figures that the first line does not show. */
static void put_sizes_of_kinds(struct text *text, const struct mmt_report *report, const struct mmt_row *row,
			       enum mmt_sort sort)
{
	const struct mmt_row *reserver = row->reserved_by ? &report->rows[row->reserved_by - 1] : NULL;

	if (row->unfreed_bytes && row->memory_bytes &&
	    magnitude_of((int64_t)(row->unfreed_bytes - row->memory_bytes)) >
		(text->below ? 0 : row->memory_bytes / TEXT_NEGLIGIBLE))
		put_part_bytes(text, "unfreed", row->unfreed_bytes);
	if (row->unfreed_bytes && row->committed_bytes != row->unfreed_bytes &&
	    row->committed_bytes != row->memory_bytes)
		put_part_bytes(text, "committed", row->committed_bytes);
#define PUT_PART(name, unit, known, sum, csv, label, ...)                                                              \
	if ((label) && row->name && (uint64_t)row->name < row->memory_bytes)                                           \
		put_part_bytes(text, label, row->name);
	MMT_ROW_FIGURES(PUT_PART)
	/* If sorted by memory, rows that only reserve are not shown themselves, but with the row that uses most of it.
	 * Without unfreed bytes, all of it is accessible by now, or unmapped. */
	if (reserver && reserver->unfreed_bytes > row->memory_bytes) {
		const char *size = text_bytes(text, reserver->unfreed_bytes);

		if (sort != MMT_SORT_MEMORY || !reserver->joined_to)
			text_part(text, TEXT_PLAIN, "in %s that #%" PRIu32 " reserved", size, reserver->id);
		else if (reserver->joined_to == row->id)
			text_part(text, TEXT_PLAIN, "of %s reserved", size);
		else
			text_part(text, TEXT_PLAIN, "of the %s reserved for #%" PRIu32, size, reserver->joined_to);
	}
	if (row->committed_before_bytes)
		put_part_bytes(text, "committed in memory mapped before", row->committed_before_bytes);
	if (row->verdict == MMT_ROW_KEEPS_GROWING && !row->pattern && row->committed_bytes > row->memory_bytes)
		put_part_bytes(text, "untouched", row->committed_bytes - row->memory_bytes);
	if (row->reserved_bytes)
		put_part_bytes(text, "reserved", row->reserved_bytes);
	if (row->resident_bytes != MMT_UNKNOWN && !row->memory_bytes && row->committed_bytes)
		put_part_bytes(text, "resident", row->resident_bytes);
}

static void put_sort_key(struct text *text, const struct mmt_report *report, const struct mmt_row *row,
			 enum mmt_sort sort)
{
	uint64_t age_ns = report->end_ns > row->first_ns ? report->end_ns - row->first_ns : 0;

#define PUT_KEY(name, unit, known, sum, csv, text_, sorted, id, word, key, label, ...)                                 \
	MMT_IF_##sorted(if ((label) && sort == MMT_SORT_##id) put_part_bytes(text, label, row->name);)
	MMT_ROW_FIGURES(PUT_KEY)
	if (sort == MMT_SORT_AGE && row->unfreed_bytes)
		text_part(text, TEXT_PLAIN, "oldest %s", text_duration(text, age_ns));
	if (sort == MMT_SORT_MAPPINGS)
		text_part(text, TEXT_STRONG, "%s", text_counted(text, row->mapping_count, "mapping", "mappings"));
}

/* "24.00 KiB resident   12.5 %": the memory of the row, or else its address space. `memory_bytes`: of all rows. */
static void put_lead(struct text *text, const struct mmt_report *report, const struct mmt_row *row,
		     uint64_t memory_bytes)
{
	double error = row->memory_bytes ? (double)row->touched_error_bytes / (double)row->memory_bytes * 100 : 0;
	const char *what = report->by == MMT_BY_TOUCH		    ? row->pattern ? "of new pages needed" : "touched"
			   : row->resident_bytes == MMT_UNKNOWN	    ? "committed"
			   : !row->swapped_bytes		    ? "resident"
			   : row->swapped_bytes < row->memory_bytes ? "resident or swapped out"
								    : "swapped out";
	uint64_t bytes = row->memory_bytes;

	if (!bytes) {
		what = row->unfreed_bytes ? "mapped" : "committed";
		bytes = row->unfreed_bytes ? row->unfreed_bytes : row->committed_bytes + row->committed_before_bytes;
	}
	text_format(text, TEXT_STRONG, "%2" PRIu32 "  %9s", row->id, text_bytes(text, bytes));
	text_format(text, TEXT_PLAIN, " %s", what);
	if (row->touched_error_bytes)
		text_format(text, TEXT_PLAIN, " (+- %.0f %%)", error < 1 ? 1.0 : error);
	if (row->memory_bytes)
		text_part(text, TEXT_PLAIN, "%.1f %%", 100.0 * (double)row->memory_bytes / (double)memory_bytes);
}

/* "256 x 4.00 MiB" or "256, 4.00 KiB to 8.00 MiB"; what was unmapped of these, and how many were freed. A heap grows in
 * steps, which nobody frees one by one. */
static void put_counts(struct text *text, const struct mmt_row *row)
{
	const char *smallest = text_bytes(text, row->smallest_bytes), *largest = text_bytes(text, row->largest_bytes);
	const char *count = text_count(text, row->unfreed_count);
	bool equal = row->smallest_bytes == row->largest_bytes, steps = row->memory_class == MMT_CLASS_HEAP;

	if (row->unfreed_count && equal)
		text_part(text, TEXT_PLAIN, "%s %s %s", count,
			  !steps ? "x" : text_plural(row->unfreed_count, "step of", "steps of"), largest);
	else if (row->unfreed_count)
		text_part(text, TEXT_PLAIN, "%s%s, %s to %s", count, steps ? " steps" : "", smallest, largest);
	if (row->original_bytes > row->unfreed_bytes)
		text_part(text, TEXT_PLAIN, "%s of %s unmapped",
			  text_bytes(text, row->original_bytes - row->unfreed_bytes),
			  text_bytes(text, row->original_bytes));
	if (row->allocated_count && (!steps || row->freed_count))
		text_part(text, TEXT_PLAIN, "%s of %s freed", text_count(text, row->freed_count),
			  text_count(text, row->allocated_count));
}

/* When its oldest and its newest mapping were mapped, and the growth of the bytes that are unfreed at the end. */
static void put_history(struct text *text, const struct mmt_report *report, const struct mmt_row *row)
{
	const uint64_t *trend = row->unfreed_count ? row->survivor_trend : row->committed_trend;
	const char *first = text_since(text, report, row->first_ns), *last = text_since(text, report, row->last_ns);

	if (row->unfreed_count && !strcmp(first, last))
		text_part(text, TEXT_PLAIN, "made at %s", first);
	else if (row->unfreed_count)
		text_part(text, TEXT_PLAIN, "made from %s to %s", first, last);
	/* No trend: nothing was committed later, or it was at once and is kept. */
	if (trend && (trend != row->committed_trend || trend[0] != trend[MMT_TREND_POINTS - 1]))
		text_trend(text, trend, trend[MMT_TREND_POINTS - 1] / TREND_FLOOR);
}

static void put_line(struct text *text, const char *line)
{
	text_pad_to(text, STACK_INDENT);
	text_put_sentence(text, TEXT_FAINT, line, STACK_INDENT);
}

/* Print the name of the row, and its hints. */
static void put_identity(struct text *text, const struct mmt_report *report, const struct mmt_row *row,
			 struct text_explanations *explanations)
{
	const struct mmt_cause *cause = row->cause ? &report->causes[row->cause - 1] : NULL;

	/* Hints are static texts: print each one once. */
	if (row->hint && explanations->hints[row->pattern] != row->hint &&
	    (text->below || (text->room->hints && row->hint != text->next_hint))) {
		put_line(text, row->hint);
		explanations->hints[row->pattern] = row->hint;
	}
	if (row->name) {
		text_pad_to(text, STACK_INDENT);
		text_put_name(text, TEXT_PLAIN, row->name, 0);
		text_end_line(text);
	} else if (row->lost) {
		put_line(text, "mapped by calls that were lost: known only from the kernel's maps");
	} else {
		text_stack(text, row, cause ? cause->caller : NULL, STACK_INDENT, &explanations->marks);
	}
}

static void put_hidden(struct text *text, const struct selection *selection, const struct mmt_report *report,
		       enum mmt_sort sort)
{
	bool are_stacks = report->then_by == MMT_BY_STACK &&
			  (report->by == MMT_BY_STACK || report->by == MMT_BY_THREAD || report->by == MMT_BY_TOUCH);
	const struct hidden_rows *hidden = &selection->hidden;
	bool of_memory;

	if (sort == MMT_SORT_ALLOCATED || sort == MMT_SORT_FREED)
		hidden = sort == MMT_SORT_FREED ? &selection->hidden_by_freed : &selection->hidden_by_allocated;
	of_memory = sort == MMT_SORT_MEMORY && hidden->memory_bytes;
	if (!hidden->count)
		return;
	text_end_line(text);
	text_format(text, TEXT_PLAIN, "%s more %s %s %s", text_count(text, hidden->count),
		    are_stacks ? text_plural(hidden->count, "stack", "stacks")
			       : text_plural(hidden->count, "row", "rows"),
		    sort == MMT_SORT_FREED	 ? "that freed"
		    : sort == MMT_SORT_ALLOCATED ? "that mapped"
						 : "with",
		    text_bytes(text, of_memory ? hidden->memory_bytes : hidden->bytes));
	if (sort == MMT_SORT_MEMORY)
		text_put(text, TEXT_PLAIN, of_memory ? " of memory" : " of address space");
	text_line(text, TEXT_FAINT, " (--limit 0 --min-bytes 0 shows all)");
}

static void put_rows(struct text *text, const struct mmt_report *report, const struct selection *selection,
		     struct text_explanations *explanations)
{
	const struct mmt_text_options *options = text->options;
	const char *why = report->growth.end_swap_bytes && !report->swapped_known
			      ? " (reserved, never touched, or swapped out)"
			      : " (reserved, or never touched)";
	uint64_t memory_bytes = 0;
	size_t first = 0;

	for (size_t i = 0; i < report->row_count; i++)
		memory_bytes = saturating_add(memory_bytes, report->rows[i].memory_bytes, MMT_BYTES_MAX);
	for (size_t i = 0; report->by == MMT_BY_TOUCH && i < report->growth.part_count; i++)
		memory_bytes = saturating_add(memory_bytes, report->growth.parts[i].unattributed_bytes, MMT_BYTES_MAX);
	/* The row of the first cause stands first, unless older memory does. */
	for (size_t i = 0; options->sort == MMT_SORT_MEMORY && report->cause_count && i < selection->count; i++)
		first = selection->rows[i]->id == report->causes[0].rows[0] ? i : first;
	if (text_first_touched(text, report))
		first = selection->count;
	for (size_t i = 0; i < selection->count; i++) {
		const struct mmt_row *row = selection->rows[i];
		bool complete = text->room->extras && text_stack_is_complete(text, row) &&
				(!row->hint || row->hint != text->next_hint);

		/* The first row stands below, too, if something of it was left out. */
		if (text->below ? i == first && complete : i != first)
			continue;
		text_end_line(text);
		/* A heading above the first row without memory. */
		if (options->sort == MMT_SORT_MEMORY && !row->memory_bytes &&
		    (!i || selection->rows[i - 1]->memory_bytes)) {
			text_put(text, TEXT_STRONG, "address space without memory");
			text_line(text, TEXT_FAINT, "%s", why);
			text_end_line(text);
		}
		text->indent = ROW_INDENT;
		if (i == first && text->below) {
			text_format(text, TEXT_STRONG, "%2" PRIu32 "  complete", row->id);
		} else {
			put_lead(text, report, row, memory_bytes);
			put_sort_key(text, report, row, options->sort);
			put_verdict(text, report, row);
			explanations->verdicts[row->verdict] = true;
			put_kind(text, row);
			put_counts(text, row);
			put_sizes_of_kinds(text, report, row, options->sort);
		}
		if (text->room->extras || text->below) {
			put_history(text, report, row);
			put_threads(text, report, row);
		}
		text_end_line(text);
		put_identity(text, report, row, explanations);
	}
}

/* Each step takes something away, which must matter less than what is left. */
const struct text_room text_rooms[TEXT_ROOMS] = {
    {.frames = UINT_MAX, .causes = CAUSES_SHOWN, .notes = 2, .parts = 5, .extras = true, .hints = true},
    {10, 6, 2, 5, true, true},
    {9, 6, 1, 5, true, true},
    {8, 5, 1, 4, true, true},
    {7, 4, 1, 3, true, true},
    {6, 4, 1, 3, false, true},
    {5, 4, 1, 2, false, true},
    {5, 3, 1, 2, false, true},
    {4, 3, 1, 1, false, true},
    {3, 3, 1, 1, false, true},
    {3, 2, 1, 1, false, true},
    {2, 2, 1, 1, false, true},
    {4, 2, 1, 1, false, false},
    {3, 2, 1, 0, false, false},
    {2, 2, 1, 0, false, false},
    {2, 1, 1, 0, false, false},
    {2, 1, 0, 0, false, false},
};

#define SCREEN_LINES 23 /* 24 less one for the prompt */

/* Leave out what does not fit on the first screen of a terminal. */
static void put_first_screen(struct text *text, const struct mmt_report *report, const struct selection *selection,
			     struct text_explanations *explanations)
{
	const struct text_explanations empty = *explanations;
	FILE *stream = text->stream;
	bool sound = text_is_sound(report), fits = false;
	size_t lines = text->options->lines ?: SCREEN_LINES;

	for (size_t i = 0; !fits && i < TEXT_ROOMS; i++) {
		char *screen = NULL;
		size_t size = 0;

		text->room = &text_rooms[i];
		text->lines = 0;
		*explanations = empty;
		text->stream = open_memstream(&screen, &size);
		if (!text->stream) {
			text->no_memory = true;
			break;
		}
		text_summary(text, report);
		if (!sound)
			text_trust(text, report);
		text_causes(text, report);
		/* Memory mapped before can leak, too. */
		if (!report->unfreed_bytes && !mmt_report_has_leak(report) && !text_first_touched(text, report))
			put_nothing_unfreed(text, report);
		text_touchers(text, report, &explanations->marks);
		put_rows(text, report, selection, explanations);
		if (sound || text->next_hint)
			text_end_line(text);
		text_next(text);
		if (sound)
			text_trust(text, report);
		fits = !text->options->width || text->lines <= lines || i + 1 == TEXT_ROOMS;
		text->no_memory |= fclose(text->stream) != 0;
		if (fits && screen)
			fwrite(screen, 1, size, stream);
		free(screen);
	}
	text->stream = stream;
}

struct mmt_error *mmt_report_write_text(const struct mmt_report *report, const struct mmt_text_options *options,
					FILE *stream)
{
	bool freed_too =
	    options->sort == MMT_SORT_ALLOCATED || options->sort == MMT_SORT_FREED || options->sort == MMT_SORT_PEAK;
	struct text_explanations explanations = {.reserved = report->reserved_bytes > 0,
						 .touched = report->by == MMT_BY_TOUCH};
	struct selection selection;
	struct mmt_error *error = selection_create(report, options, freed_too, &selection);
	struct text text;

	if (error)
		return error;
	text_begin(&text, stream, options);
	text_find_next(&text, report);
	put_first_screen(&text, report, &selection, &explanations);
	text.below = true;
	put_rows(&text, report, &selection, &explanations);
	put_hidden(&text, &selection, report, options->sort);
	text_touchers(&text, report, &explanations.marks);
	text_failures(&text, report, &explanations.marks);
	text_heaps(&text, report, true);
	text_end_line(&text);
	text_details(&text, report);
	text_end_line(&text);
	put_sums(&text, report, options->sort);
	text_classes(&text, report);
	text_processes(&text, report);
	text_heaps(&text, report, false);
	text_steps(&text, report, &selection);
	if (report->by == MMT_BY_THREAD && report->then_by == MMT_BY_STACK)
		text_threads(&text, report);
	text_explanations_add(&explanations, report);
	text_explanations(&text, &explanations);
	free(selection.rows);
	return text_end(&text) ? NULL : &error_no_memory;
}
