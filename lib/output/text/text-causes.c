// SPDX-License-Identifier: LGPL-2.1-or-later
/* The table of causes: for each its memory, its growth, the verdict and the function of the program. */
#include "output/text/text-parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturating-sum.h"
#include "base/strings.h"

struct verdict_word text_verdict_word(const struct mmt_report *report, enum mmt_row_verdict verdict)
{
	/* In a growing process, mappings that are kept may be the memory that grows. */
	enum text_style good = report->growth.verdict == MMT_VERDICT_GROWING ? TEXT_PLAIN : TEXT_GOOD;

	switch (verdict) {
	case MMT_ROW_UNDECIDED:
		return (struct verdict_word){"undecided", TEXT_PLAIN};
	case MMT_ROW_LEAK:
		return (struct verdict_word){"LEAK", TEXT_BAD};
	case MMT_ROW_KEEPS_GROWING:
		return (struct verdict_word){"keeps growing", TEXT_BAD};
	case MMT_ROW_PART_OF_LEAK:
		return (struct verdict_word){"part of a LEAK", TEXT_BAD};
	case MMT_ROW_CACHE:
		return (struct verdict_word){"cache", good};
	case MMT_ROW_MADE_EARLY:
		return (struct verdict_word){"allocated early", good};
	case MMT_ROW_TRAFFIC:
		return (struct verdict_word){"short-lived", good};
	default:
		return (struct verdict_word){NULL, TEXT_PLAIN};
	}
}

/* Of the table of causes: rates that are not beside a cause, and what its rows hold that is older than these. */
struct table_rates {
	int64_t small, hidden, gone;
	double older_row_bytes;
};

#define CAUSES_SHOWN 6
#define CAUSES_SHOWN_MIN 3
#define CAUSE_LINES 2
#define STACK_LINES 11 /* of the first screen, for the first stack and the line on trust */
#define NAME_COLUMNS_MIN 30
#define VERDICT_COLUMN 26
#define KIND_COLUMN 43
#define NAME_COLUMN 49

static const char *describe_pattern(enum mmt_pattern pattern)
{
	static const char *const words[MMT_PATTERN_KINDS] = {
	    [MMT_PATTERN_ARENA] = "malloc arenas",	[MMT_PATTERN_THREAD_STACK] = "thread stacks",
	    [MMT_PATTERN_HEAP] = "malloc heap",		[MMT_PATTERN_GC_HEAP] = "heap of a managed runtime",
	    [MMT_PATTERN_CODE] = "code of programs",	[MMT_PATTERN_JVM_NATIVE] = "memory of the JVM",
	    [MMT_PATTERN_PYTHON] = "objects of Python", [MMT_PATTERN_METASPACE] = "Metaspace of Java (classes)",
	};

	return pattern < MMT_PATTERN_KINDS && words[pattern] ? words[pattern] : "memory";
}

static uint64_t magnitude(int64_t bytes)
{
	return bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes;
}

static bool is_noise(const struct mmt_growth *growth, int64_t bytes_per_minute)
{
	int64_t noise = mmt_growth_rate_noise(growth);

	return bytes_per_minute == MMT_RATE_UNKNOWN || (bytes_per_minute <= noise && bytes_per_minute >= -noise);
}

/* A recording too short for a verdict has no rates per minute. */
static bool has_rates(const struct mmt_report *report)
{
	return report->growth.verdict != MMT_VERDICT_TOO_SHORT;
}

/* Small rates that are not a leak are noise. */
bool text_shows_rate(const struct mmt_growth *growth, const struct mmt_cause *cause)
{
	bool grows = mmt_row_leaks(cause->verdict) && cause->bytes_per_minute != MMT_RATE_UNKNOWN;

	return grows || !is_noise(growth, cause->bytes_per_minute);
}

/* A line of the table that is no cause. */
static void put_rest_of_rates(struct text *text, const char *size, int64_t rate, const char *what)
{
	text_add(text, "   %10s%11s  %s", size, rate ? text_change(text, rate) : "", what);
	text_end_sentence(text, TEXT_PLAIN, VERDICT_COLUMN);
}

/* Whether memory that no row of the recording mapped can explain that the size changes: it changed in that direction,
 * or that is not known. */
static bool is_in_older(const struct mmt_growth *growth, bool grows)
{
	for (size_t i = 0; growth->parts_known && i < growth->part_count; i++) {
		const struct mmt_growth_part *part = &growth->parts[i];
		bool in_row = part->place == MMT_GROWTH_MADE || part->place == MMT_GROWTH_COMMITTED;

		if (!in_row && grows == (part->bytes > 0) && magnitude(part->bytes) > growth->floor_bytes)
			return true;
	}
	return !growth->parts_known;
}

/* The rate that no row has. Rows have the rates at which memory is mapped and made accessible, so what is touched later
 * can be theirs. */
static const char *describe_older(const struct mmt_report *report, const struct table_rates *rates)
{
	const struct mmt_growth *growth = &report->growth;
	bool grows = growth->older_bytes_per_minute > 0, in_older = is_in_older(growth, grows);
	bool in_rows = rates->older_row_bytes > (double)growth->floor_bytes;

	if (in_older && in_rows)
		return grows ? "touched in rows above, or in memory that was mapped before"
			     : "given back in rows above, or of memory that was mapped before";
	if (in_rows)
		return grows ? "touched in rows above, after they were mapped" : "given back in rows above";
	return grows ? "touched in memory that was mapped before" : "given back or unmapped, of memory mapped before";
}

/* With these lines, the rates add up to that of RSS. */
static void put_other_rates(struct text *text, const struct mmt_report *report, const struct table_rates *rates)
{
	const struct mmt_growth *growth = &report->growth;

	if (!is_noise(growth, rates->small))
		put_rest_of_rates(text, "", rates->small, "in rows above whose own rate is noise (-)");
	if (!is_noise(growth, rates->gone))
		put_rest_of_rates(text, "", rates->gone, "in mappings of this recording that are unmapped again");
	if (!is_noise(growth, growth->older_bytes_per_minute))
		put_rest_of_rates(text, "", growth->older_bytes_per_minute, describe_older(report, rates));
}

#define PIECE_BYTES 1024

/* A name without its module where that does not fit. */
static void put_short_name(struct text *text, enum text_style style, const char *name, unsigned room)
{
	const char *module = strstr(name, " (");
	char function[PIECE_BYTES];

	while (module && strstr(module + 1, " ("))
		module = strstr(module + 1, " (");
	if (room && module && text_name_columns(text, name) > room && module - name < PIECE_BYTES) {
		snprintf(function, sizeof(function), "%.*s", (int)(module - name), name);
		name = function;
	}
	text_put_name(text, style, name, room);
}

/* What follows the name, on the same line or on one more; nothing where there is no room. */
static void put_piece(struct text *text, unsigned *lines, const char *before, const char *name, const char *after)
{
	unsigned width = text->options->width, room, used = (unsigned)(strlen(before) + strlen(after)) + 2;
	unsigned columns = used + (name ? text_name_columns(text, name) : 0);

	if (width && text->column + columns > width) {
		if (*lines == CAUSE_LINES)
			return;
		++*lines;
		text_end_line(text);
		text_pad_to(text, VERDICT_COLUMN);
	} else {
		text_put(text, TEXT_PLAIN, ", ");
	}
	room = width > text->column + used + NAME_COLUMNS_MIN ? width - text->column - used : NAME_COLUMNS_MIN;
	text_put(text, TEXT_PLAIN, before);
	if (name)
		put_short_name(text, TEXT_STRONG, name, width ? room : 0);
	text_put(text, TEXT_PLAIN, after);
}

const char *text_cause_name(const struct mmt_cause *cause)
{
	if (cause->name)
		return cause->caller ? cause->caller : cause->name;
	return describe_pattern(cause->pattern);
}

const char *text_cause_other(const struct mmt_cause *cause, struct cause_words *words)
{
	bool is_heap = cause->pattern == MMT_PATTERN_HEAP || cause->pattern == MMT_PATTERN_ARENA ||
		       cause->pattern == MMT_PATTERN_PYTHON;
	double percent = cause->memory_bytes ? (double)cause->caller_bytes / (double)cause->memory_bytes * 100 : 0;
	char share[16] = "";

	*words = (struct cause_words){0};
	if (!cause->caller)
		return NULL;
	if (cause->caller_bytes < cause->memory_bytes)
		snprintf(share, sizeof(share), "%u %% ", (unsigned)percent);
	if (cause->name) {
		snprintf(words->before_name, sizeof(words->before_name), "%s", share);
		snprintf(words->before_other, sizeof(words->before_other), "through ");
	} else {
		snprintf(words->before_other, sizeof(words->before_other), "%s%sin calls from ", share,
			 is_heap ? "grew " : "");
	}
	return cause->name ? cause->name : cause->caller;
}

static void put_name(struct text *text, const struct mmt_cause *cause)
{
	unsigned width = text->options->width, lines = 1, room = 0;
	char piece[2 * MMT_SIZE_TEXT];
	struct cause_words words;
	const char *other = text_cause_other(cause, &words);

	text_pad_to(text, NAME_COLUMN);
	text_put(text, TEXT_PLAIN, words.before_name);
	if (width)
		room = width > text->column + NAME_COLUMNS_MIN ? width - text->column : NAME_COLUMNS_MIN;
	put_short_name(text, TEXT_STRONG, text_cause_name(cause), room);
	if (other)
		put_piece(text, &lines, words.before_other, other, "");
	if (cause->reserved_bytes && cause->unfreed_bytes >= cause->memory_bytes) {
		snprintf(piece, sizeof(piece), "of %s mapped", text_bytes(text, cause->unfreed_bytes));
		put_piece(text, &lines, piece, NULL, "");
	}
	if (cause->file)
		put_piece(text, &lines, "", path_file_name(cause->file), "");
	if (cause->row_count > 1) {
		snprintf(piece, sizeof(piece), "%s stacks", text_count(text, cause->row_count));
		put_piece(text, &lines, piece, NULL, "");
	}
}

/* At most five columns. */
static const char *name_class(enum mmt_class memory_class)
{
	switch (memory_class) {
	case MMT_CLASS_THREAD_STACK:
		return "stack";
	case MMT_CLASS_HUGETLB:
		return "huge";
	case MMT_CLASS_GC_RESERVE:
		return "gc";
	default:
		return mmt_class_name(memory_class);
	}
}

static void put_cause(struct text *text, const struct mmt_report *report, const struct mmt_cause *cause)
{
	struct verdict_word verdict = text_verdict_word(report, cause->verdict);

	text_format(text, TEXT_PLAIN, "%3" PRIu32, cause->rows[0]);
	text_format(text, TEXT_STRONG, "%10s", text_bytes(text, cause->memory_bytes));
	if (has_rates(report))
		text_format(text, TEXT_PLAIN, "%11s",
			    text_shows_rate(&report->growth, cause) ? text_change(text, cause->bytes_per_minute) : "-");
	text_pad_to(text, VERDICT_COLUMN);
	text_put(text, verdict.style, verdict.word ? verdict.word : "-");
	text_pad_to(text, KIND_COLUMN);
	text_format(text, TEXT_PLAIN, "%.5s", name_class(cause->memory_class));
	put_name(text, cause);
	text_end_line(text);
}

static void put_heads(struct text *text, bool rates)
{
	text_format(text, TEXT_FAINT, "   %10s%11s  verdict", "memory", rates ? "per minute" : "");
	text_pad_to(text, KIND_COLUMN);
	text_put(text, TEXT_FAINT, "what");
	text_pad_to(text, NAME_COLUMN);
	text_line(text, TEXT_FAINT, "mapped by");
}

static void add_rate(int64_t *sum, int64_t rate)
{
	if (rate != MMT_RATE_UNKNOWN)
		*sum = (int64_t)((uint64_t)*sum + (uint64_t)rate);
}

/* `shown` of `count` causes have a line each. */
static struct table_rates sum_rates(const struct mmt_report *report, size_t shown, size_t count)
{
	const struct mmt_growth *growth = &report->growth;
	double minutes =
	    growth->end_ns > growth->rate_from_ns ? (double)(growth->end_ns - growth->rate_from_ns) / 60e9 : 0;
	struct table_rates rates = {0};

	for (size_t i = 0; i < report->row_count; i++) {
		const struct mmt_row *row = &report->rows[i];

		if (!row->cause || row->cause > count)
			add_rate(&rates.gone, row->bytes_per_minute);
	}
	for (size_t i = 0; i < count; i++) {
		const struct mmt_cause *cause = &report->causes[i];
		double older = (double)cause->memory_bytes - (double)cause->bytes_per_minute * minutes;

		if (i >= shown)
			add_rate(&rates.hidden, cause->bytes_per_minute);
		else if (!text_shows_rate(growth, cause))
			add_rate(&rates.small, cause->bytes_per_minute);
		if (cause->bytes_per_minute != MMT_RATE_UNKNOWN && older > 0)
			rates.older_row_bytes += older;
	}
	return rates;
}

/* How many causes the table shows, of `count`. */
static size_t choose_shown(const struct text *text, const struct mmt_report *report, size_t count)
{
	unsigned used = text->lines + STACK_LINES + 3;
	size_t most = CAUSES_SHOWN, shown = 0;
	uint64_t memory_bytes = 0;

	for (size_t i = 0; i < count; i++)
		memory_bytes = saturating_add(memory_bytes, report->causes[i].memory_bytes, MMT_BYTES_MAX);
	if (text->options->width)
		most = used < SCREEN_LINES ? (SCREEN_LINES - used) / CAUSE_LINES : 0;
	most = most < CAUSES_SHOWN_MIN ? CAUSES_SHOWN_MIN : most > CAUSES_SHOWN ? CAUSES_SHOWN : most;
	while (shown < count && shown < most &&
	       (!shown || !selection_is_minor(report->causes[shown].verdict, report->causes[shown].pattern,
					      report->causes[shown].memory_bytes, memory_bytes)))
		shown++;
	return shown;
}

void text_causes(struct text *text, const struct mmt_report *report)
{
	struct table_rates rates;
	uint64_t rest_bytes = 0;
	size_t count = 0, shown;
	char what[64];

	while (count < report->cause_count && report->causes[count].memory_bytes)
		count++;
	if (!count || (count == 1 && report->causes[0].row_count == 1 &&
		       is_noise(&report->growth, report->growth.older_bytes_per_minute)))
		return;
	shown = choose_shown(text, report, count);
	text_end_line(text);
	put_heads(text, has_rates(report));
	rates = sum_rates(report, shown, count);
	for (size_t i = 0; i < shown; i++)
		put_cause(text, report, &report->causes[i]);
	for (size_t i = shown; i < count; i++)
		rest_bytes = saturating_add(rest_bytes, report->causes[i].memory_bytes, MMT_BYTES_MAX);
	if (count > shown) {
		snprintf(what, sizeof(what), "in %zu other %s", count - shown,
			 text_plural(count - shown, "place", "places"));
		put_rest_of_rates(text, text_bytes(text, rest_bytes),
				  !has_rates(report) || is_noise(&report->growth, rates.hidden) ? 0 : rates.hidden,
				  what);
	}
	if (has_rates(report))
		put_other_rates(text, report, &rates);
}
