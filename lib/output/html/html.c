// SPDX-License-Identifier: LGPL-2.1-or-later
/* The page of --html: its data, and the lifetimes of the parts in steps that are long enough for a page. */
#include <mmtrace/version.h>

#include "base/limits.h"
#include "base/strings.h"
#include "output/html/page.h"
#include "output/json/json-document.h"
#include "output/text/text-parts.h"

struct page_lifetimes {
	uint32_t merged; /* number of steps of the report in a step of the page */
	uint64_t step_ns, step_count;
	VECTOR(struct mmt_lifetime) current; /* of one part */
};

#define STEPS_MIN 16
#define UNIT_MAX 65536

COMPARISON(compare_lifetimes, struct mmt_lifetime,
	   order_of(a->allocated_step, b->allocated_step) ?: order_of(a->released_step, b->released_step))

/* Merge the part's lifetimes into longer steps; those with the same two steps become one. */
static bool merge(struct page_lifetimes *lifetimes, const struct mmt_part *part)
{
	struct mmt_lifetime *items;
	size_t kept = 0;

	lifetimes->current.count = 0;
	for (size_t i = 0; i < part->lifetime_count; i++) {
		struct mmt_lifetime lifetime = part->lifetimes[i];

		lifetime.allocated_step /= lifetimes->merged;
		if (lifetime.released_step != MMT_STILL_MAPPED)
			lifetime.released_step /= lifetimes->merged;
		if (!vector_push(&lifetimes->current, lifetime))
			return false;
	}
	items = lifetimes->current.items;
	if (!lifetimes->current.count)
		return true;
	qsort(items, lifetimes->current.count, sizeof(*items), compare_lifetimes);
	for (size_t i = 1; i < lifetimes->current.count; i++) {
		if (compare_lifetimes(&items[kept], &items[i]) != 0) {
			items[++kept] = items[i];
			continue;
		}
		items[kept].bytes += items[i].bytes;
		items[kept].count += items[i].count;
	}
	lifetimes->current.count = kept + 1;
	return true;
}

/* False: out of memory. */
static bool page_lifetimes_init(struct page_lifetimes *lifetimes, const struct mmt_report *report)
{
	size_t limit = 2 * report->part_count > LIMIT_HTML_LIFETIMES ? 2 * report->part_count : LIMIT_HTML_LIFETIMES;
	bool fits = false;

	*lifetimes = (struct page_lifetimes){.merged = 1};
	while (!fits) {
		size_t count = 0;

		for (size_t i = 0; i < report->part_count; i++) {
			if (!merge(lifetimes, &report->parts[i]))
				return false;
			count += lifetimes->current.count;
		}
		fits = count <= limit || report->lifetime_steps / lifetimes->merged <= STEPS_MIN;
		if (!fits)
			lifetimes->merged *= 2;
	}
	lifetimes->step_ns = report->lifetime_step_ns * lifetimes->merged;
	lifetimes->step_count = (report->lifetime_steps + lifetimes->merged - 1) / lifetimes->merged;
	return true;
}

/* clang-format off */
/*
 * The data of an HTML page: one JSON object, which page/model.js reads. Its form is private to these two; other
 * programs read report --json.
 *
 *     unit         bytes; sizes of lifetimes are multiples of it
 *     relation     of a diff: mmt_diff_relation_name(); of one process, the values before count as 0
 *     relationLines   lines of the text diff that say so
 *     recordings   one, or before and after. Times are nanoseconds since the start of the window.
 *       growth     lines of the text report: headline, verdict, what the growth consists of
 *       heaps      lines of the text report: blocks in malloc heaps
 *       trust      [tone, line]; tone: good, wait, bad
 *       causes     those of the text report: bytes, rate per minute or null, the rest in words
 *       otherCauses, otherBytes     how many it does not show, and their memory
 *       rss, committed   [time, bytes, time, bytes ...]
 *       parts      stack, process, thread or -1, class, file as place in strings or -1, committed less unfreed bytes,
 *                  resident bytes or -1, both also of memory mapped before the window; then its lifetimes, four
 *                  numbers each: steps since the previous allocation, steps until the release or -1, bytes in
 *                  units, count
 *     stacks       cause: its number from 1 on, if any; verdictWord as the text report has it;
 *                  title: the place in the stack of the frame that stands for it, if not 0;
 *                  truncated: why callers are missing, as place in strings;
 *                  frames from the innermost to the outermost, as places in frames, each less the one before
 *     frames       three numbers each: name as place in strings, less the one before; place in origins; line
 *     origins      three numbers each: module and source as places in strings, flags
 *     strings      names, control characters as \xNN
 */
/* clang-format on */

#define NO_STACK UINT32_MAX
#define RECORDINGS_MAX 2

enum frame_flag { FRAME_INLINED = 1, FRAME_DOUBTFUL = 2, FRAME_RUNTIME = 4, FRAME_JIT = 8 };

struct frame_row {
	uint32_t name, line, origin; /* the latter in `origins` */
};

/* The properties that many frames share. */
struct frame_origin {
	uint32_t module, source, flags;
};

struct thread_row {
	int32_t pid, tid;
	uint32_t name;
};

/* A line of the table: a row of one or both reports. */
struct page_stack {
	const struct mmt_row *rows[RECORDINGS_MAX];
	const struct mmt_diff_entry *entry; /* NULL: no diff */
};

struct page {
	const struct mmt_report *reports[RECORDINGS_MAX]; /* one, or those before and after */
	unsigned report_count;
	const struct mmt_diff *diff;		/* NULL: a page of one report */
	const struct mmt_text_options *options; /* `limit` and `min_bytes` apply */
	struct document *document;
	VECTOR(struct page_stack) stacks;
	uint32_t *stack_of_row[RECORDINGS_MAX];
	uint64_t left_out; /* rows */
	struct intern strings, frames, origins;
	struct buffer escaped;
	struct page_lifetimes lifetimes[RECORDINGS_MAX];
	uint64_t unit; /* of the bytes of lifetimes: the largest power of two that divides all of them */
	bool out_of_memory;
};

/* The text with control characters and bidirectional control characters as \xNN. Valid until the next call. */
static const char *escape(struct page *page, const char *text)
{
	struct escape_piece piece;
	struct mmt_error *error;

	buffer_clear(&page->escaped);
	while (page->escaped.size < LIMIT_HTML_STRING_BYTES / 2 && escape_next(&text, ESCAPE_FOR_TERMINAL, &piece))
		buffer_put(&page->escaped, piece.text, piece.size);
	buffer_put_u8(&page->escaped, 0);
	error = buffer_finish(&page->escaped);
	page->out_of_memory |= error != NULL;
	mmt_error_destroy(error);
	return page->out_of_memory ? "" : (const char *)page->escaped.data;
}

static uint32_t string_number(struct page *page, const char *text)
{
	uint32_t number = intern_put_string(&page->strings, escape(page, text ? text : ""));

	page->out_of_memory |= number == INTERN_NONE;
	return number;
}

static uint32_t frame_number(struct page *page, const struct mmt_frame *frame)
{
	char room[TEXT_FRAME_NAME_BYTES];
	const struct frame_origin origin = {
	    .module = string_number(page, frame->module),
	    .source = string_number(page, frame->source_file),
	    .flags = (frame->inlined ? FRAME_INLINED : 0u) | (frame->doubtful ? FRAME_DOUBTFUL : 0u) |
		     (mmt_frame_is_runtime(frame) ? FRAME_RUNTIME : 0u) |
		     (frame->kind == MMT_FRAME_JIT ? FRAME_JIT : 0u),
	};
	const struct frame_row row = {
	    .name = string_number(page, text_frame_name(frame, room)),
	    .line = frame->source_line,
	    .origin = intern_put(&page->origins, &origin, sizeof(origin)),
	};
	uint32_t number = intern_put(&page->frames, &row, sizeof(row));

	page->out_of_memory |= number == INTERN_NONE || row.origin == INTERN_NONE;
	return number;
}

typedef void (*text_part_fn)(struct text *text, const struct mmt_report *report);

static void put_pair_of_words(struct page *page, const char *first, const char *second)
{
	document_open_array(page->document, NULL);
	document_string(page->document, NULL, first);
	document_string(page->document, NULL, second);
	document_close(page->document);
}

/* Put lines of the text report, or of the text diff about its relation (`report` NULL), as elements of the open array;
 * with a tone, as pairs. */
static void put_lines(struct page *page, const struct mmt_report *report, text_part_fn part, const char *tone)
{
	static const struct mmt_text_options plain = {0};
	CLEANUP(free) char *lines = NULL;
	size_t size = 0;
	struct text text;
	FILE *stream = open_memstream(&lines, &size);
	bool complete;

	if (!stream) {
		page->out_of_memory = true;
		return;
	}
	text_begin(&text, stream, &plain);
	if (report) {
		part(&text, report);
	} else {
		text_diff_verdict(&text, page->diff);
		text_diff_relation(&text, page->diff);
	}
	complete = text_end(&text);
	if (fclose(stream) != 0 || !complete) {
		page->out_of_memory = true;
		return;
	}
	for (char *rest = lines, *line; (line = strsep(&rest, "\n")) != NULL;) {
		if (*line && tone)
			put_pair_of_words(page, tone, line);
		else if (*line)
			document_string(page->document, NULL, line);
	}
}

static void put_heaps(struct text *text, const struct mmt_report *report)
{
	text_heaps(text, report, true);
	text_heaps(text, report, false);
}

static void put_words(struct page *page, const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;
	bool missed = completeness->lost_events || completeness->missed_threads || completeness->missed_cpus ||
		      completeness->left_processes || completeness->incomplete || completeness->damaged;
	bool whole =
	    !completeness->truncated_stacks && !completeness->doubtful_stacks && !completeness->lost_stack_dumps;
	struct checks checks = checks_sum(report);

	document_string(page->document, "input", escape(page, report->input));
	document_string(page->document, "verdict", mmt_verdict_name(report->growth.verdict));
	document_open_array(page->document, "source");
	put_lines(page, report, text_source, NULL);
	document_close(page->document);
	document_open_array(page->document, "growth");
	put_lines(page, report, text_verdict, NULL);
	put_lines(page, report, text_growth_above, NULL);
	put_lines(page, report, text_growth_below, NULL);
	document_close(page->document);
	document_open_array(page->document, "heaps");
	put_lines(page, report, put_heaps, NULL);
	document_close(page->document);
	document_open_array(page->document, "trust");
	put_lines(page, report, text_warnings, "bad");
	if (!missed)
		put_pair_of_words(page, "good", "no events lost");
	put_lines(page, report, text_stacks, whole ? "good" : "wait");
	put_lines(page, report, text_reconciled, "bad");
	put_lines(page, report, text_checks,
		  checks.wrong.processes     ? "bad"
		  : checks.checked.processes ? "good"
					     : "wait");
	document_close(page->document);
	document_open_array(page->document, "limits");
	put_lines(page, report, text_window, NULL);
	put_lines(page, report, text_choice, NULL);
	document_close(page->document);
	document_each(page->document, "notes", i, report->completeness.warning_count)
		document_string(page->document, NULL, escape(page, report->completeness.warnings[i]));
	document_open_array(page->document, "facts");
	put_lines(page, report, text_events, NULL);
	if (*report->command_line)
		document_string(page->document, NULL, escape(page, report->command_line));
	document_close(page->document);
}

static void put_pair(struct page *page, uint64_t first, uint64_t second)
{
	document_unsigned(page->document, NULL, first);
	document_unsigned(page->document, NULL, second);
}

/* If there are too many values, put the largest in each part of the time, so that the peak is visible. */
static void put_series(struct page *page, const struct mmt_report *report)
{
	size_t count = report->resident_reading_count, every = (count + LIMIT_HTML_READINGS - 1) / LIMIT_HTML_READINGS;
	char text[MMT_OOM_KILL_TEXT];

	document_open_array(page->document, "rss");
	for (size_t first = 0; first < count; first += every) {
		const struct mmt_resident_reading *largest = &report->resident_readings[first];

		for (size_t i = first; i < count && i < first + every && first; i++) {
			if (report->resident_readings[i].resident_bytes > largest->resident_bytes)
				largest = &report->resident_readings[i];
		}
		put_pair(page, subtract(largest->time_ns, report->from_ns), largest->resident_bytes);
	}
	if (every > 1)
		put_pair(page, subtract(report->resident_readings[count - 1].time_ns, report->from_ns),
			 report->resident_readings[count - 1].resident_bytes);
	document_close(page->document);
	document_open_array(page->document, "committed");
	if (report->step_count)
		put_pair(page, 0, 0);
	for (size_t i = 0; i < report->step_count; i++)
		put_pair(page, subtract(report->steps[i].to_ns, report->from_ns), report->steps[i].committed_bytes);
	document_close(page->document);
	document_each(page->document, "marks", i, report->oom_kill_count) {
		if (report->oom_kills[i].time_ns < report->from_ns)
			continue;
		document_open_array(page->document, NULL);
		document_string(page->document, NULL, escape(page, mmt_oom_kill_describe(&report->oom_kills[i], text)));
		document_unsigned(page->document, NULL, subtract(report->oom_kills[i].time_ns, report->from_ns));
		document_close(page->document);
	}
}

/* The stacks have the numbers of the causes. */
static void put_causes(struct page *page, const struct mmt_report *report)
{
	struct cause_selection selection = selection_of_causes(report, CAUSES_SHOWN);
	struct document *document = page->document;

	document_each_object(document, "causes", i, selection.shown) {
		struct mmt_cause cause = mmt_report_cause(report, i);
		const char *kind = cause.file ? path_file_name(cause.file) : mmt_class_name(cause.memory_class);
		struct cause_words words;
		const char *other = text_cause_other(&cause, &words);

		document_unsigned(document, "bytes", cause.memory_bytes);
		if (report->growth.verdict != MMT_VERDICT_TOO_SHORT && text_shows_rate(&report->growth, &cause))
			document_signed(document, "rate", cause.bytes_per_minute);
		else
			document_null(document, "rate");
		document_string(document, "verdict", mmt_row_verdict_name(cause.verdict));
		document_string(document, "verdictWord", text_verdict_word(report, cause.verdict).word);
		document_string(document, "kind", escape(page, kind));
		document_string(document, "name", escape(page, text_cause_name(&cause)));
		document_string(document, "beforeName", words.before_name);
		document_string(document, "beforeOther", words.before_other);
		document_string(document, "other", other ? escape(page, other) : NULL);
	}
	document_unsigned(document, "otherCauses", selection.count - selection.shown);
	document_unsigned(document, "otherBytes", selection.rest_bytes);
}

static void put_part(struct page *page, unsigned recording, const struct mmt_part *part, struct intern *threads)
{
	uint64_t before = part->resident_before_bytes == MMT_UNKNOWN ? 0 : part->resident_before_bytes;
	struct page_lifetimes *lifetimes = &page->lifetimes[recording];
	struct document *document = page->document;
	struct thread_row thread = {.pid = part->thread.pid, .tid = part->thread.tid};
	uint32_t stack = page->stack_of_row[recording][part->row], step = 0, number = 0;

	if (stack == NO_STACK)
		return;
	document_open_array(document, NULL);
	document_unsigned(document, NULL, stack);
	document_unsigned(document, NULL, part->process);
	if (thread.tid) {
		thread.name = string_number(page, part->thread.name);
		number = intern_put(threads, &thread, sizeof(thread));
		page->out_of_memory |= number == INTERN_NONE;
	}
	document_signed(document, NULL, thread.tid ? (int64_t)number : -1);
	document_unsigned(document, NULL, part->memory_class);
	document_signed(document, NULL, part->file ? (int64_t)string_number(page, part->file) : -1);
	/* Committed less unfreed bytes: mostly 0. */
	document_signed(document, NULL,
			(int64_t)(part->committed_bytes + part->committed_before_bytes - part->unfreed_bytes));
	document_signed(document, NULL,
			part->resident_bytes == MMT_UNKNOWN ? -1 : (int64_t)(part->resident_bytes + before));
	page->out_of_memory |= !merge(lifetimes, part);
	array_each(lifetime, lifetimes->current.items, lifetimes->current.count) {
		bool mapped = lifetime->released_step == MMT_STILL_MAPPED;

		document_unsigned(document, NULL, lifetime->allocated_step - step);
		step = lifetime->allocated_step;
		document_signed(document, NULL, mapped ? -1 : (int64_t)(lifetime->released_step - step));
		document_unsigned(document, NULL, lifetime->bytes / page->unit);
		document_unsigned(document, NULL, lifetime->count);
	}
	document_close(document);
}

static void put_recording(struct page *page, unsigned recording)
{
	const struct mmt_report *report = page->reports[recording];
	struct document *document = page->document;
	struct intern threads = {0};

	put_words(page, report);
	put_causes(page, report);
	document_unsigned(document, "duration", subtract(report->to_ns, report->from_ns));
	document_unsigned(document, "stepNs", page->lifetimes[recording].step_ns);
	document_unsigned(document, "stepCount", page->lifetimes[recording].step_count);
	put_series(page, report);
	document_each(document, "processes", i, report->process_count) {
		const struct mmt_process *process = &report->processes[i];

		document_open_array(document, NULL);
		document_signed(document, NULL, process->pid);
		document_string(document, NULL, escape(page, process->name ? process->name : ""));
		document_close(document);
	}
	document_open_array(document, "parts");
	for (size_t i = 0; i < report->part_count; i++)
		put_part(page, recording, &report->parts[i], &threads);
	document_close(document);
	document_each(document, "threads", i, threads.count) {
		const struct thread_row *row = intern_get(&threads, i, NULL);

		document_open_array(document, NULL);
		document_signed(document, NULL, row->pid);
		document_signed(document, NULL, row->tid);
		document_unsigned(document, NULL, row->name);
		document_close(document);
	}
	intern_deinit(&threads);
}

/* Put the times when the oldest and the newest unfreed mapping were mapped. */
static void put_times(struct page *page, const struct page_stack *stack)
{
	document_each(page->document, "times", i, page->report_count) {
		const struct mmt_row *row = stack->rows[i];
		uint64_t from_ns = page->reports[i]->from_ns;

		if (!row || !row->unfreed_count) {
			document_null(page->document, NULL);
			continue;
		}
		document_open_array(page->document, NULL);
		put_pair(page, subtract(row->first_ns, from_ns), subtract(row->last_ns, from_ns));
		document_close(page->document);
	}
}

static void put_stack(struct page *page, const struct page_stack *stack)
{
	const struct mmt_row *last = stack->rows[page->report_count - 1], *row = last ? last : stack->rows[0];
	struct document *document = page->document;
	char uncertain[TEXT_DIFF_UNCERTAIN_BYTES];
	uint32_t previous = 0;

	if (stack->entry && stack->entry->differing_frames)
		document_string(document, "uncertain", text_diff_uncertain(stack->entry, uncertain));
	if (row->lines_differ)
		document_bool(document, "linesDiffer", true);
	if (row->lost)
		document_string(document, "label", "(calls that were lost)");
	else if (!row->frame_count)
		document_string(document, "label", "(no stack recorded)");
	if (row->frame_count && !mmt_stack_end_is_complete(row->stack_end))
		document_unsigned(document, "truncated", string_number(page, mmt_stack_end_name(row->stack_end)));
	if (row->hint)
		document_string(document, "pattern", row->hint);
	if (page->diff && page->diff->relation == MMT_DIFF_SAME_PROCESS && stack->rows[0])
		document_bool(document, "inFirst", true);
	/* The verdict of the report, or of the later one. */
	if (last && last->verdict > MMT_ROW_UNDECIDED) {
		document_string(document, "verdict", mmt_row_verdict_name(last->verdict));
		document_string(document, "verdictWord",
				text_verdict_word(page->reports[page->report_count - 1], last->verdict).word);
	}
	put_times(page, stack);
	if (row->origin)
		document_unsigned(document, "title", row->origin);
	if (row->cause && !page->diff)
		document_unsigned(document, "cause", row->cause);
	document_each(document, "frames", i, row->frame_count) {
		uint32_t number = frame_number(page, row->frames[i]);

		document_signed(document, NULL, (int64_t)number - previous);
		previous = number;
	}
}

static void put_tables(struct page *page)
{
	struct document *document = page->document;
	uint32_t previous_name = 0;

	document_each_object(document, "stacks", i, page->stacks.count)
		put_stack(page, &page->stacks.items[i]);
	document_each(document, "frames", i, page->frames.count) {
		const struct frame_row *row = intern_get(&page->frames, i, NULL);

		document_signed(document, NULL, (int64_t)row->name - previous_name);
		document_unsigned(document, NULL, row->origin);
		document_unsigned(document, NULL, row->line);
		previous_name = row->name;
	}
	document_each(document, "origins", i, page->origins.count) {
		const struct frame_origin *origin = intern_get(&page->origins, i, NULL);

		document_unsigned(document, NULL, origin->module);
		document_unsigned(document, NULL, origin->source);
		document_unsigned(document, NULL, origin->flags);
	}
	document_each(document, "strings", i, page->strings.count)
		document_string(document, NULL, intern_get(&page->strings, i, NULL));
}

static void add_stack(struct page *page, const struct mmt_diff_entry *entry)
{
	struct page_stack stack = {.rows = {entry->before, entry->after}, .entry = page->diff ? entry : NULL};
	uint32_t number = (uint32_t)page->stacks.count;

	if (!page->diff)
		stack.rows[0] = entry->after;
	for (unsigned i = 0; i < page->report_count; i++) {
		if (stack.rows[i])
			page->stack_of_row[i][stack.rows[i] - page->reports[i]->rows] = number;
	}
	page->out_of_memory |= !vector_push(&page->stacks, stack);
}

/* Those that changed come first. */
static struct mmt_error *choose_stacks_of_diff(struct page *page)
{
	const struct mmt_diff *diff = page->diff;
	struct diff_selection selection = {0};
	struct mmt_error *error = selection_of_diff(diff, page->options, &selection);

	for (size_t i = 0; i < selection.count; i++)
		add_stack(page, selection.entries[i]);
	page->left_out = selection.hidden_count;
	free(selection.entries);
	for (size_t i = 0; !error && i < diff->unchanged_count; i++) {
		if (page->options->limit && page->stacks.count >= page->options->limit)
			page->left_out++;
		else
			add_stack(page, &diff->unchanged[i]);
	}
	return error;
}

/* Choose the stacks and the steps of the lifetimes. */
static struct mmt_error *prepare(struct page *page)
{
	struct selection selection = {0};
	uint64_t bits = UNIT_MAX;
	struct mmt_error *error;

	for (unsigned i = 0; i < page->report_count; i++) {
		const struct mmt_report *report = page->reports[i];
		uint32_t *stacks = malloc((report->row_count + 1) * sizeof(*stacks));

		page->stack_of_row[i] = stacks;
		if (!stacks || !page_lifetimes_init(&page->lifetimes[i], report))
			return &error_no_memory;
		for (size_t row = 0; row < report->row_count; row++)
			stacks[row] = NO_STACK;
		for (size_t part = 0; part < report->part_count; part++) {
			for (size_t j = 0; j < report->parts[part].lifetime_count; j++)
				bits |= report->parts[part].lifetimes[j].bytes;
		}
	}
	page->unit = bits & -bits;
	if (page->diff)
		return choose_stacks_of_diff(page);
	error = selection_create(page->reports[0], page->options, true, &selection);
	for (size_t i = 0; i < selection.count; i++)
		add_stack(page, &(struct mmt_diff_entry){.after = selection.rows[i]});
	page->left_out = page->reports[0]->row_count - selection.count;
	free(selection.rows);
	return error;
}

static struct mmt_error *write_page(struct page *page, FILE *stream)
{
	struct document document;
	struct mmt_error *error;

	for (unsigned i = 0; i < page->report_count; i++) {
		if (!page->reports[i]->lifetime_step_ns)
			return error_create(MMT_ERROR_INVALID, "%s: only a report with lifetimes can be a page",
					    page->reports[i]->input);
	}
	fwrite(page_head, 1, page_head_size, stream);
	buffer_init(&page->escaped, LIMIT_HTML_STRING_BYTES);
	error = prepare(page);
	if (!error) {
		page->document = &document;
		document_start(page->document, stream, DOCUMENT_FOR_HTML);
		document_string(page->document, "version", mmt_version());
		document_unsigned(page->document, "unit", page->unit);
		document_bool(page->document, "touched", page->reports[0]->by == MMT_BY_TOUCH);
		document_unsigned(page->document, "leftOut", page->left_out);
		if (page->diff) {
			document_string(page->document, "relation", mmt_diff_relation_name(page->diff->relation));
			document_open_array(page->document, "relationLines");
			put_lines(page, NULL, NULL, NULL);
			document_close(page->document);
		}
		document_each(page->document, "classes", kind, MMT_CLASS_KINDS)
			document_string(page->document, NULL, mmt_class_name((enum mmt_class)kind));
		document_each_object(page->document, "recordings", i, page->report_count)
			put_recording(page, i);
		put_tables(page);
		document_finish(page->document);
	}
	if (!error && page->out_of_memory)
		error = &error_no_memory;
	if (!error)
		fwrite(page_tail, 1, page_tail_size, stream);
	vector_deinit(&page->stacks);
	intern_deinit(&page->strings);
	intern_deinit(&page->frames);
	intern_deinit(&page->origins);
	buffer_deinit(&page->escaped);
	for (unsigned i = 0; i < RECORDINGS_MAX; i++) {
		free(page->stack_of_row[i]);
		vector_deinit(&page->lifetimes[i].current);
	}
	return error;
}

struct mmt_error *mmt_report_write_html(const struct mmt_report *report, const struct mmt_text_options *options,
					FILE *stream)
{
	struct page page = {.reports = {report}, .report_count = 1, .options = options};

	if (report->then_by != MMT_BY_STACK ||
	    (report->by != MMT_BY_STACK && report->by != MMT_BY_THREAD && report->by != MMT_BY_TOUCH))
		return error_create(MMT_ERROR_INVALID, "an HTML page shows stacks: the report must not be grouped");
	return write_page(&page, stream);
}

struct mmt_error *mmt_diff_write_html(const struct mmt_diff *diff, const struct mmt_text_options *options, FILE *stream)
{
	struct page page = {
	    .reports = {diff->before, diff->after}, .report_count = 2, .diff = diff, .options = options};

	return write_page(&page, stream);
}
