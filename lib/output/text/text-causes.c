// SPDX-License-Identifier: LGPL-2.1-or-later
/* The table of causes: for each its memory, its growth, the verdict and the function of the program. */
#include "output/text/text-parts.h"

#include <inttypes.h>

#include "base/strings.h"

struct verdict_word text_verdict_word(const struct mmt_report *report, enum mmt_row_verdict verdict)
{
	static const struct verdict_word words[] = {
	    [MMT_ROW_UNDECIDED] = {"undecided", TEXT_PLAIN}, [MMT_ROW_LEAK] = {"LEAK", TEXT_BAD},
	    [MMT_ROW_KEEPS_GROWING] = {"GROWING", TEXT_BAD}, [MMT_ROW_PART_OF_LEAK] = {"part of a LEAK", TEXT_BAD},
	    [MMT_ROW_CACHE] = {"cache", TEXT_GOOD},	     [MMT_ROW_MADE_EARLY] = {"allocated early", TEXT_GOOD},
	    [MMT_ROW_TRAFFIC] = {"short-lived", TEXT_GOOD},
	};
	struct verdict_word word = {NULL, TEXT_PLAIN};

	if (verdict < sizeof(words) / sizeof(*words))
		word = words[verdict];
	/* In a process that grows, or may grow, mappings that are kept may be the memory that grows. */
	if (word.style == TEXT_GOOD &&
	    (report->growth.verdict == MMT_VERDICT_GROWING || report->growth.verdict == MMT_VERDICT_TOO_SHORT))
		word.style = TEXT_PLAIN;
	return word;
}

const char *const text_verdict_meanings[MMT_ROW_VERDICTS] = {
    [MMT_ROW_LEAK] = "LEAK: mapped throughout the recording, and hardly any of it freed",
    [MMT_ROW_PART_OF_LEAK] = "part of a LEAK: it is one only together with other stacks of the same cause",
    [MMT_ROW_KEEPS_GROWING] = "GROWING: a leak or not; stacks show who mapped it, not who keeps or fills it",
    [MMT_ROW_CACHE] = "cache: mapped early in the recording, and kept",
    [MMT_ROW_TRAFFIC] = "short-lived: no older than what was freed; it will be freed, too",
};

#define CAUSE_LINES 2
#define NAME_COLUMNS_MIN 30
#define VERDICT_COLUMN 26
#define KIND_COLUMN 43
#define NAME_COLUMN 49

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

/* Small rates that are not a leak are noise; and a leak that falls is one of processes that end. What processes that
 * came and went had is not in the rate of RSS. */
bool text_shows_rate(const struct mmt_growth *growth, const struct mmt_cause *cause)
{
	int64_t rate = cause->bytes_per_minute;

	if (cause->verdict == MMT_ROW_TRAFFIC && growth->peak_with_brief_bytes)
		return false;
	return mmt_row_leaks(cause->verdict) ? rate != MMT_RATE_UNKNOWN && rate >= 0 : !is_noise(growth, rate);
}

/* What follows the name, on the same line or on one more; nothing where there is no room. */
static void put_piece(struct text *text, unsigned *lines, const char *before, const char *name)
{
	unsigned width = text->options->width, room, used = (unsigned)strlen(before) + 2;
	unsigned columns = used + (name ? text_name_columns(text, name) : 0);

	if (width && text->column + columns > width) {
		if (*lines == CAUSE_LINES || !(text->room->extras || (*before && name)))
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
		text_put_name(text, TEXT_STRONG, name, width ? room : 0);
}

const char *text_cause_name(const struct mmt_cause *cause)
{
	static const char *const words[MMT_PATTERN_KINDS] = {
	    [MMT_PATTERN_ARENA] = "malloc arenas",	[MMT_PATTERN_THREAD_STACK] = "thread stacks",
	    [MMT_PATTERN_HEAP] = "malloc heap",		[MMT_PATTERN_GC_HEAP] = "heap of a managed runtime",
	    [MMT_PATTERN_CODE] = "code of programs",	[MMT_PATTERN_JVM_NATIVE] = "memory of the JVM",
	    [MMT_PATTERN_PYTHON] = "objects of Python", [MMT_PATTERN_METASPACE] = "Metaspace of Java (classes)",
	};

	if (cause->name)
		return cause->caller ? cause->caller : cause->name;
	return cause->pattern < MMT_PATTERN_KINDS && words[cause->pattern] ? words[cause->pattern] : "memory";
}

const char *text_cause_other(const struct mmt_cause *cause, struct cause_words *words)
{
	bool is_heap = cause->pattern == MMT_PATTERN_HEAP || cause->pattern == MMT_PATTERN_ARENA ||
		       cause->pattern == MMT_PATTERN_PYTHON || cause->pattern == MMT_PATTERN_GC_HEAP;
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
		room = width > NAME_COLUMN + NAME_COLUMNS_MIN ? width - text->column : NAME_COLUMNS_MIN;
	text_put_name(text, TEXT_STRONG, text_cause_name(cause), room);
	if (other)
		put_piece(text, &lines, words.before_other, other);
	if (cause->reserved_bytes && cause->unfreed_bytes >= cause->memory_bytes) {
		snprintf(piece, sizeof(piece), "of %s mapped", text_bytes(text, cause->unfreed_bytes));
		put_piece(text, &lines, piece, NULL);
	}
	if (cause->file)
		put_piece(text, &lines, "", path_file_name(cause->file));
	if (cause->row_count > 1) {
		snprintf(piece, sizeof(piece), "%s stacks", text_count(text, cause->row_count));
		put_piece(text, &lines, piece, NULL);
	}
}

/* At most five columns. */
static const char *name_class(enum mmt_class memory_class)
{
	static const char *const names[] = {
	    [MMT_CLASS_THREAD_STACK] = "stack", [MMT_CLASS_HUGETLB] = "huge", [MMT_CLASS_GC_RESERVE] = "gc"};

	return memory_class < sizeof(names) / sizeof(*names) && names[memory_class] ? names[memory_class]
										    : mmt_class_name(memory_class);
}

static uint64_t largest_cause(const struct mmt_report *report, size_t count)
{
	uint64_t most = 0;

	for (size_t i = 0; i < count; i++) {
		struct mmt_cause cause = mmt_report_cause(report, i);

		most = larger_of(cause.memory_bytes, most);
	}
	return most;
}

const struct mmt_growth_part *text_first_touched(const struct text *text, const struct mmt_report *report)
{
	uint64_t most = largest_cause(report, selection_of_causes(report, SIZE_MAX).shown);
	bool of_rows = report->by == MMT_BY_TOUCH || text->options->sort != MMT_SORT_MEMORY ||
		       report->options.classes || selection_has_patterns(report);

	/* A leak is the answer, whatever else was touched. */
	return array_find(part, report->growth.parts, of_rows || mmt_report_has_leak(report) ? 0 : report->growth.part_count,
			  part->toucher_count && text_knows_toucher(&part->touchers[0]) &&
			      part->touchers[0].bytes > most && part->touchers[0].bytes >= TEXT_TOUCHER_BYTES_MIN);
}

const struct mmt_growth_part *text_first_older(const struct mmt_report *report)
{
	const struct mmt_growth *growth = &report->growth;
	uint64_t most = largest_cause(report, selection_of_causes(report, SIZE_MAX).shown);

	return array_find(part, growth->parts, growth->parts_known ? growth->part_count : 0,
			  part->place == MMT_GROWTH_BEFORE && part->bytes > 0 &&
			      (uint64_t)part->bytes > most + most / TEXT_NEGLIGIBLE);
}

void text_find_next(struct text *text, const struct mmt_report *report)
{
	enum mmt_verdict verdict = report->growth.verdict;
	bool of_rows = report->options.classes || selection_has_patterns(report);
	const struct mmt_growth_part *older = of_rows ? NULL : text_first_older(report);
	const struct mmt_growth_part *part = text_first_touched(text, report) ?: older;
	size_t first = report->cause_count ? *report->causes[0].rows - 1 : 0;
	const struct mmt_row *row = first < report->row_count ? &report->rows[first] : NULL;
	const char *hint = part ? part->hint : row ? row->hint : NULL;
	const struct mmt_process *most = NULL;
	size_t runtimes = 0;

	if (!hint || !strstr(hint, TEXT_NEXT) || (verdict != MMT_VERDICT_GROWING && verdict != MMT_VERDICT_TOO_SHORT))
		return;
	array_each(process, report->processes, report->process_count) {
		bool is_of_cause = part ? process->runtime || report->process_count == 1
					: row->pid_count && process->pid == *row->pids;

		runtimes += process->runtime != NULL;
		if (is_of_cause && (!most || mmt_process_growth(process) > mmt_process_growth(most)))
			most = process;
	}
	/* A part is that of one runtime, but of which process is not known. */
	if (!most || most->ended || (part && runtimes > 1))
		return;
	text->next_hint = hint;
	text->next_process = most;
}

void text_next(struct text *text)
{
	const struct mmt_process *process = text->next_process;
	const char *command, *pid;

	if (!text->next_hint)
		return;
	command = strstr(text->next_hint, TEXT_NEXT) + strlen(TEXT_NEXT);
	pid = strstr(command, "PID");
	text_put(text, TEXT_STRONG, "next");
	if (process->container_pid && process->container_pid != process->pid)
		text_add(text, ", in its container");
	text_add(text, ": %.*s", pid ? (int)(pid - command) : (int)strlen(command), command);
	if (pid)
		text_add(text, "%" PRId32 "%s", process->container_pid ?: process->pid, pid + strlen("PID"));
	text_end_sentence(text, TEXT_PLAIN, TEXT_INDENT);
}

static void put_older(struct text *text, const struct mmt_growth_part *part)
{
	text_format(text, TEXT_STRONG, "   %10s", text_bytes(text, (uint64_t)part->bytes));
	text_pad_to(text, VERDICT_COLUMN);
	text_put(text, TEXT_PLAIN, "-");
	text_pad_to(text, KIND_COLUMN);
	text_format(text, TEXT_PLAIN, "%.5s", name_class(part->memory_class));
	text_pad_to(text, NAME_COLUMN);
	text_add_kind(text, part);
	text_add(text, ", before");
	/* A guess from a few samples, or code without a name, is no answer. */
	if (part->toucher_count && part->touchers[0].bytes >= (uint64_t)part->bytes / 8 &&
	    part->touchers[0].error_bytes <= part->touchers[0].bytes / 2 &&
	    part->touchers[0].origin < part->touchers[0].frame_count) {
		text_add(text, ", touched by %s, ", part->touchers[0].name);
		text_add_touched(text, &part->touchers[0]);
		text_add(text, " of %s", text_bytes(text, (uint64_t)part->bytes));
	}
	text_end_sentence(text, TEXT_STRONG, NAME_COLUMN);
}

void text_causes(struct text *text, const struct mmt_report *report)
{
	struct cause_selection selection = selection_of_causes(report, text->room->causes);
	bool stacks = report->by == MMT_BY_STACK || (report->then_by == MMT_BY_STACK && report->by == MMT_BY_THREAD);
	int64_t rate = selection.rest_bytes_per_minute;
	const struct mmt_growth_part *older = text_first_older(report);
	const char *meaning = NULL;
	bool ordered = true;

	if (!selection.count || (selection.count == 1 && mmt_report_cause(report, 0).row_count == 1) ||
	    mmt_report_has_nothing_to_see(report))
		return;
	text->has_table = true;
	text_end_line(text);
	for (size_t i = 0; i + 1 < selection.shown; i++)
		ordered &= mmt_report_cause(report, i).memory_bytes >= mmt_report_cause(report, i + 1).memory_bytes;
	text_format(text, TEXT_FAINT, "   %10s%11s  %s", "memory", has_rates(report) ? "per minute" : "",
		    ordered ? "verdict" : "leaks first");
	text_pad_to(text, KIND_COLUMN);
	text_put(text, TEXT_FAINT, "what");
	text_pad_to(text, NAME_COLUMN);
	text_put(text, TEXT_FAINT, stacks ? "mapped by" : mmt_row_key_name(report->by));
	if (report->then_by != MMT_BY_STACK)
		text_format(text, TEXT_FAINT, " / %s", mmt_row_key_name(report->then_by));
	text_end_line(text);
	if (older)
		put_older(text, older);
	for (size_t i = 0; i < selection.shown; i++) {
		struct mmt_cause cause = mmt_report_cause(report, i);
		struct verdict_word verdict = text_verdict_word(report, cause.verdict);

		text_format(text, TEXT_PLAIN, "%3" PRIu32, cause.rows[0]);
		text_format(text, TEXT_STRONG, "%10s", text_bytes(text, cause.memory_bytes));
		if (has_rates(report))
			text_format(text, TEXT_PLAIN, "%11s",
				    text_shows_rate(&report->growth, &cause) ? text_change(text, cause.bytes_per_minute)
									     : "-");
		text_pad_to(text, VERDICT_COLUMN);
		text_put(text, verdict.style, verdict.word ? verdict.word : "-");
		text_pad_to(text, KIND_COLUMN);
		text_format(text, TEXT_PLAIN, "%.5s", name_class(cause.memory_class));
		put_name(text, &cause);
		text_end_line(text);
		meaning = meaning ?: text_verdict_meanings[cause.verdict];
	}
	/* The memory of the others, and its rate if that is more than noise. */
	if (selection.count > selection.shown)
		text_line(text, TEXT_PLAIN, "   %10s%11s  in %zu other %s", text_bytes(text, selection.rest_bytes),
			  has_rates(report) && !is_noise(&report->growth, rate) ? text_change(text, rate) : "",
			  selection.count - selection.shown,
			  text_plural(selection.count - selection.shown, "place", "places"));
	if (meaning && text->room->extras)
		text_line(text, TEXT_FAINT, "    %s", meaning);
}
