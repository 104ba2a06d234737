// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/selection.h"

#include "base/figures.h"

#define MINOR_SHARE 100
#define LAST_MOMENTS_SHARE 16	     /* of the window */
#define LAST_MOMENTS_NS 100000000ull /* of a shorter one: two readings */
#define COMMAND_BYTES (8u << 20)     /* a command that did little has less when it ends, all of it programs */

const char *const selection_heap_results[] = {"not-walked", "complete", "sampled", "damaged",
					      "unreadable", "ended",	"changing"};
const char *const selection_heap_contents[] = {"unknown", "type", "text", "pointer"};

bool selection_fell(const struct mmt_report *report)
{
	const struct mmt_growth *growth = &report->growth;
	const struct mmt_resident_reading *readings = report->judged_readings;
	uint64_t most = growth->by_pss ? growth->peak_pss_bytes : growth->peak_bytes;
	uint64_t end = growth->by_pss ? growth->end_pss_bytes : growth->end_bytes, middle = end / 2 + most / 2;
	size_t falls = 0;

	if (report->windowed || growth->verdict == MMT_VERDICT_UNKNOWN || growth->pss_missing ||
	    growth->outside_bytes || most / 2 <= end || most - end <= growth->floor_bytes)
		return false;
	for (size_t i = 1; i < report->judged_reading_count; i++)
		falls += readings[i - 1].resident_bytes > middle && readings[i].resident_bytes <= middle;
	return falls < 2;
}

/* What was resident of memory that was mapped in the window, when pages were last read, and is not any more. */
static uint64_t unmapped_since_reading(const struct mmt_report *report)
{
	const struct mmt_growth *growth = &report->growth;
	uint64_t made = 0, held = 0;

	array_each(part, growth->parts, growth->parts_known && !growth->parts_private ? growth->part_count : 0) {
		if (part->bytes > 0 && (part->place == MMT_GROWTH_MADE || part->place == MMT_GROWTH_COMMITTED))
			made = saturating_add(made, (uint64_t)part->bytes, MMT_BYTES_MAX);
	}
	array_each(row, report->rows, report->row_count)
		held = saturating_add(held, row->memory_bytes, MMT_BYTES_MAX);
	return subtract(made, held);
}

/* `freed` if it is more than `least` and was freed in the last moments; 0 otherwise. */
static uint64_t freed_since(const struct mmt_report *report, uint64_t since_ns, uint64_t freed, uint64_t least)
{
	uint64_t last_ns = larger_of((report->to_ns - report->from_ns) / LAST_MOMENTS_SHARE, LAST_MOMENTS_NS);

	return freed > least && since_ns <= report->to_ns && report->to_ns - since_ns <= last_ns ? freed : 0;
}

uint64_t mmt_report_freed_at_end(const struct mmt_report *report, uint64_t *since_ns_ret)
{
	const struct mmt_growth *growth = &report->growth;
	uint64_t since_ns = report->peak_ns, freed = 0, held_by_ended = 0;
	int64_t growth_bytes = mmt_growth_change(growth);

	/* The last reading may have come after that. */
	if (growth_bytes <= 0 && subtract(growth->peak_bytes, growth->start_bytes) > COMMAND_BYTES)
		growth_bytes = (int64_t)(growth->peak_bytes - growth->start_bytes);
	if (mmt_report_has_ended(report) && growth_bytes > 0 &&
	    (growth->verdict == MMT_VERDICT_GROWING || growth->verdict == MMT_VERDICT_TOO_SHORT)) {
		uint64_t least = (uint64_t)growth_bytes / 2;

		freed = freed_since(report, since_ns, subtract(report->peak_bytes, report->unfreed_bytes), least);
		/* What a runtime reserves may have been more before. */
		if (!freed)
			freed =
			    freed_since(report, since_ns = growth->pages_end_ns, unmapped_since_reading(report), least);
	} else if (!mmt_report_has_ended(report) && !report->options.keep_ended && selection_fell(report) &&
		   array_find(code, report->completeness.warning_codes, report->completeness.warning_count,
			      *code == MMT_WARNING_STILL_RUNNING)) {
		freed = freed_since(report, since_ns = growth->peak_ns,
				    growth->by_pss ? growth->peak_pss_bytes - growth->end_pss_bytes
						   : growth->peak_bytes - growth->end_bytes,
				    COMMAND_BYTES);
		/* What runs on may have given it back. */
		array_each(process, report->processes, report->process_count) {
			if (process->ended && process->readings)
				held_by_ended =
				    saturating_add(held_by_ended, process->readings->end_resident_bytes, MMT_BYTES_MAX);
		}
		freed = held_by_ended > freed / 2 ? freed : 0;
	}
	if (freed)
		*since_ns_ret = since_ns;
	return freed;
}

#define KEY_CASE(name, unit, known, sum, csv, text, sorted, id, word, key, ...)                                        \
	MMT_IF_##sorted(case MMT_SORT_##id : return key;)

/* Larger comes first. */
static uint64_t sort_key(const struct mmt_row *it, enum mmt_sort sort)
{
	switch (sort) {
		MMT_ROW_FIGURES(KEY_CASE)
	default:
		return figures_held_bytes(it);
	}
}

COMPARISON_WITH(compare_rows, const struct mmt_row *, enum mmt_sort,
		order_of(sort_key(*b, *with), sort_key(*a, *with)) ?: order_of((*a)->id, (*b)->id))

static void add_hidden(struct hidden_rows *hidden, const struct mmt_row *row, uint64_t bytes)
{
	hidden->count++;
	hidden->bytes = saturating_add(hidden->bytes, bytes, MMT_BYTES_MAX);
	hidden->memory_bytes = saturating_add(hidden->memory_bytes, row->memory_bytes, MMT_BYTES_MAX);
}

static void hide_row(struct selection *selection, const struct mmt_row *row)
{
	if (row->unfreed_bytes || row->memory_bytes)
		add_hidden(&selection->hidden, row, row->unfreed_bytes);
	add_hidden(&selection->hidden_by_allocated, row, row->allocated_bytes);
	if (row->freed_bytes)
		add_hidden(&selection->hidden_by_freed, row, row->freed_bytes);
}

/* Whether a row or cause has less than 1 % of the memory, or is of the loader, and does not leak. */
static bool is_minor(enum mmt_row_verdict verdict, enum mmt_pattern pattern, uint64_t bytes, uint64_t all_bytes)
{
	return !mmt_row_leaks(verdict) && (pattern == MMT_PATTERN_CODE || bytes < all_bytes / MINOR_SHARE);
}

struct cause_selection selection_of_causes(const struct mmt_report *report, size_t most)
{
	bool by_name = !report->cause_count && report->row_count && report->rows[0].name;
	size_t all = by_name ? report->row_count : report->cause_count;
	struct cause_selection selection = {0};
	struct mmt_cause cause;
	uint64_t memory_bytes = 0;

	for (; selection.count < all; selection.count++) {
		cause = mmt_report_cause(report, selection.count);
		if (!cause.memory_bytes)
			break;
		memory_bytes = saturating_add(memory_bytes, cause.memory_bytes, MMT_BYTES_MAX);
	}
	for (; selection.shown < selection.count && selection.shown < most; selection.shown++) {
		cause = mmt_report_cause(report, selection.shown);
		if (selection.shown && is_minor(cause.verdict, cause.pattern, cause.memory_bytes, memory_bytes))
			break;
	}
	for (size_t i = selection.shown; i < selection.count; i++) {
		uint64_t sum = (uint64_t)selection.rest_bytes_per_minute;

		cause = mmt_report_cause(report, i);
		selection.rest_bytes = saturating_add(selection.rest_bytes, cause.memory_bytes, MMT_BYTES_MAX);
		if (cause.bytes_per_minute != MMT_RATE_UNKNOWN)
			selection.rest_bytes_per_minute = (int64_t)(sum + (uint64_t)cause.bytes_per_minute);
	}
	return selection;
}

struct mmt_error *selection_create(const struct mmt_report *report, const struct mmt_text_options *options,
				   bool freed_too, struct selection *selection_ret)
{
	struct selection selection = {.rows = calloc(report->row_count + 1, sizeof(const struct mmt_row *))};
	enum mmt_sort sort = options->sort;
	uint64_t memory_bytes = 0;

	if (!selection.rows)
		return &error_no_memory;
	for (size_t i = 0; options->fold && sort == MMT_SORT_MEMORY && i < report->row_count; i++)
		memory_bytes = saturating_add(memory_bytes, report->rows[i].memory_bytes, MMT_BYTES_MAX);
	array_each(row, report->rows, report->row_count) {
		if (!freed_too && (!figures_held_bytes(row) || (sort == MMT_SORT_MEMORY && row->joined_to)))
			continue;
		if (figures_held_bytes(row) >= options->min_bytes &&
		    !(memory_bytes && is_minor(row->verdict, row->pattern, row->memory_bytes, memory_bytes)))
			selection.rows[selection.count++] = row;
		else
			hide_row(&selection, row);
	}
	qsort_r(selection.rows, selection.count, sizeof(*selection.rows), compare_rows, &sort);
	while (options->limit && selection.count > options->limit)
		hide_row(&selection, selection.rows[--selection.count]);
	*selection_ret = selection;
	return NULL;
}

const char *selection_row_name(const struct mmt_row *row, char room[EXPORT_NAME_BYTES])
{
	if (row->name)
		return row->name;
	if (!row->frame_count)
		return row->lost ? "[lost]" : "[no stack]";
	return export_frame_name(row->frames[row->origin < row->frame_count ? row->origin : 0], room);
}

struct mmt_error *selection_of_diff(const struct mmt_diff *diff, const struct mmt_text_options *options,
				    struct diff_selection *selection_ret)
{
	struct diff_selection selection = {
	    .entries = calloc(diff->entry_count + 1, sizeof(const struct mmt_diff_entry *)),
	};

	if (!selection.entries)
		return &error_no_memory;
	array_each(entry, diff->entries, diff->entry_count) {
		/* A committed change counts only where the bytes did not change. */
		if (magnitude_of(entry->bytes ? entry->bytes : entry->committed_bytes) >= options->min_bytes &&
		    (!options->limit || selection.count < options->limit))
			selection.entries[selection.count++] = entry;
		else
			selection.hidden_count++;
	}
	*selection_ret = selection;
	return NULL;
}
