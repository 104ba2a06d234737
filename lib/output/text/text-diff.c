// SPDX-License-Identifier: LGPL-2.1-or-later
/* The text of a diff. The rows use the functions of the text report. */
#include "output/text/text-parts.h"

#include "base/vector.h"

#define ROW_INDENT 4
#define STACK_INDENT 6
#define PARTS_SHOWN 6
#define RATE_NOISE 10	       /* one part in so many of a rate is no difference */
#define PART_FLOOR_BYTES 65536 /* smaller parts are one line together */

static const char *format_rate(double bytes_per_second, char text[MMT_SIZE_TEXT])
{
	bool usable = bytes_per_second >= 0 && bytes_per_second < 0x1p63;

	return mmt_format_bytes(usable ? (uint64_t)(bytes_per_second + 0.5) : 0, text);
}

static const char *row_word(const struct mmt_report *report, size_t count)
{
	return report->by == MMT_BY_STACK ? text_plural(count, "stack", "stacks") : text_plural(count, "row", "rows");
}

static void put_side(struct text *text, const char *label, const struct mmt_report *report, bool rated)
{
	uint64_t duration_ns = report->end_ns > report->start_ns ? report->end_ns - report->start_ns : 0;
	double per_second = duration_ns ? (double)report->unfreed_bytes * 1e9 / (double)duration_ns : 0;
	char rate[MMT_SIZE_TEXT];
	size_t rows = 0;

	for (size_t i = 0; i < report->row_count; i++)
		rows += report->rows[i].unfreed_bytes > 0;
	text_put(text, TEXT_PLAIN, label);
	text_format(text, TEXT_STRONG, "%11s", text_bytes(text, report->unfreed_bytes));
	if (rated)
		text_part(text, TEXT_PLAIN, "%s/s", format_rate(per_second, rate));
	text_part(text, TEXT_PLAIN, "%s %s", text_count(text, rows), row_word(report, rows));
	text_end_line(text);
}

static bool is_too_short(const struct mmt_diff *diff)
{
	return diff->longer_ns && !diff->rated;
}

/* Rates, not sizes, are compared if the durations differ. */
static void put_durations(struct text *text, const struct mmt_diff *diff)
{
	const struct mmt_report *shorter = diff->longer_ns > 0 ? diff->before : diff->after;

	if (diff->counted_unlike)
		text_line(
		    text, TEXT_BAD,
		    "Processes that ended count in the %s recording only: in the other, some ran on. Record both to "
		    "the end of the command, or neither.",
		    diff->before->options.keep_ended ? "first" : "second");
	if (is_too_short(diff))
		text_line(text, TEXT_BAD,
			  "The %s recording is too short to compare (%s): sizes grow with time; record both for 10 s "
			  "or more.",
			  shorter == diff->before ? "first" : "second",
			  text_duration(text, shorter->end_ns - shorter->start_ns));
	if (!diff->longer_ns || !diff->rated)
		return;
	text_add(text, "The %s recording is %s longer%s", shorter == diff->before ? "second" : "first",
		 text_duration(text, magnitude_of(diff->longer_ns)),
		 diff->incomparable ? ", too much to compare" : ": a leak that grows as fast in both is no change");
	if (diff->left_out_bytes || diff->left_out_resident_bytes)
		text_add(text, " (left out: %s unfreed, %s %s)", text_change(text, diff->left_out_bytes),
			 text_measure(&diff->before->growth), text_change(text, diff->left_out_resident_bytes));
	text_add(text, ".");
	text_end_sentence(text, diff->incomparable ? TEXT_BAD : TEXT_PLAIN, 2);
}

static void put_sums(struct text *text, const struct mmt_diff *diff)
{
	size_t counts[MMT_CHANGE_SAME + 1] = {0};
	bool same = diff->relation == MMT_DIFF_SAME_PROCESS;

	for (size_t i = 0; i < diff->entry_count; i++)
		counts[diff->entries[i].change]++;
	counts[MMT_CHANGE_SAME] += diff->same_count;
	text->indent = 0;
	put_durations(text, diff);
	/* It is unknown what one process still holds of the first recording, so there is no difference to show. */
	if (!same)
		put_side(text, "unfreed before  ", diff->before, diff->rated);
	put_side(text, "unfreed after   ", diff->after, diff->rated);
	text_put(text, TEXT_PLAIN, same ? "new since       " : "change          ");
	text_format(text, diff->bytes > 0 ? TEXT_BAD : TEXT_GOOD, "%11s", text_change(text, diff->bytes));
	if (diff->committed_bytes != diff->bytes)
		text_part(text, TEXT_PLAIN, "committed %s", text_change(text, diff->committed_bytes));
	if (diff->growth_bytes && (int64_t)diff->growth_bytes != diff->bytes)
		text_part(text, TEXT_PLAIN, "%s that grew %s", diff->after->by == MMT_BY_STACK ? "functions" : "rows",
			  text_change(text, (int64_t)diff->growth_bytes));
	text_part(text, TEXT_PLAIN, "%s:", row_word(diff->after, 0));
	for (int kind = MMT_CHANGE_NEW; kind <= MMT_CHANGE_SAME; kind++)
		text_format(text, TEXT_PLAIN, "%s %zu %s", kind ? "," : "", counts[kind], mmt_change_name(kind));
	text_end_line(text);
}

/* Sizes at the end of the first recording, and at the start and the end of the second. */
static void put_sizes(struct text *text, const char *what, uint64_t first_bytes, uint64_t start_bytes,
		      uint64_t end_bytes)
{
	text_add(text, "  %s: %s when the first ended, %s when the second began, %s at its end", what,
		 text_bytes(text, first_bytes), text_bytes(text, start_bytes), text_bytes(text, end_bytes));
	text_line(text, TEXT_STRONG, ": %s between the recordings, %s in the second",
		  text_change(text, (int64_t)(start_bytes - first_bytes)),
		  text_change(text, (int64_t)(end_bytes - start_bytes)));
}

/* In which kinds of memory the process grew while nothing was recorded. */
static void put_between(struct text *text, const struct mmt_diff *diff)
{
	int64_t rest = 0;

	if (!diff->between_parts_known || !diff->between_part_count)
		return;
	text_line(text, TEXT_PLAIN, "  between the recordings, in:");
	for (size_t i = 0; i < diff->between_part_count; i++) {
		const struct mmt_growth_part *part = &diff->between_parts[i];

		if (i >= PARTS_SHOWN || (part->bytes < PART_FLOOR_BYTES && part->bytes > -PART_FLOOR_BYTES)) {
			rest += part->bytes;
			continue;
		}
		text_format(text, TEXT_STRONG, "  %12s  ", text_change(text, part->bytes));
		text_add_kind(text, part);
		text_end_sentence(text, TEXT_PLAIN, STACK_INDENT);
		text_put_part_hint(text, part);
	}
	text_put_rest(text, rest, "other memory (--json has all)");
	if (diff->before->growth.verdict != MMT_VERDICT_UNKNOWN && diff->after->growth.verdict != MMT_VERDICT_UNKNOWN)
		text_put_swap(text,
			      (int64_t)(diff->after->growth.start_swap_bytes - diff->before->growth.end_swap_bytes));
	text_put_rest(text, diff->between_unexplained_bytes,
		      "not explained: pages changed while they were read, or the kernel's own count differs");
}

static void put_same_process(struct text *text, const struct mmt_diff *diff)
{
	int64_t change = (int64_t)(diff->mapped_after_bytes - diff->mapped_before_bytes);
	const struct mmt_growth *before = &diff->before->growth, *after = &diff->after->growth;
	size_t same = diff->same_process_count, first = diff->before->process_count,
	       second = diff->after->process_count;
	bool others = first > same || second > same;

	text_line(text, TEXT_STRONG, "%s in both recordings: the second began %s after the end of the first.",
		  same > 1 ? text_counted(text, same, "process", "processes") : "One process",
		  text_duration(text, diff->between_ns));
	if (others) {
		text_add(text, "  %s only in the first, %s only in the second",
			 text_counted(text, first > same ? first - same : 0, "process", "processes"),
			 text_count(text, second > same ? second - same : 0));
		text_add(text, ": figures of RSS are of all");
		if (diff->replaced_bytes)
			text_add(text, "; %s in new ones replace as much in others that ended",
				 text_bytes(text, diff->replaced_bytes));
		text_add(text, ".");
		text_end_sentence(text, TEXT_BAD, 2);
	}
	if (diff->executed_after) {
		text_add(text, "  ");
		text_add_process(text, diff->executed_before);
		text_add(text, " is another program in the second, ");
		text_add_process(text, diff->executed_after);
		text_add(text, ": the change between the recordings is not that of one program.");
	}
	text_end_sentence(text, TEXT_BAD, 2);
	if (before->verdict != MMT_VERDICT_UNKNOWN && after->verdict != MMT_VERDICT_UNKNOWN) {
		put_sizes(text, "RSS", before->end_bytes, after->start_bytes, after->end_bytes);
		if (before->end_swap_bytes || after->start_swap_bytes || after->end_swap_bytes)
			put_sizes(text, "swap", before->end_swap_bytes, after->start_swap_bytes, after->end_swap_bytes);
	}
	put_between(text, diff);
	/* The selected part of memory that was mapped before is unknown. */
	if (selection_has_patterns(diff->before) || selection_has_patterns(diff->after))
		return;
	text_line(text, TEXT_PLAIN, "  mapped%s: %s at the end of the first, %s at the end of the second: %s",
		  others ? " by processes in both" : "", text_bytes(text, diff->mapped_before_bytes),
		  text_bytes(text, diff->mapped_after_bytes), text_change(text, change));
	/* Mapped bytes include only processes that are in both recordings. */
	if (diff->before->process_count > 1 || diff->after->process_count > 1)
		return;
	text_line(text, TEXT_PLAIN,
		  "  of this, calls in the second recording mapped %s; %s by calls between the recordings, and by "
		  "unmapping",
		  text_bytes(text, diff->after->unfreed_bytes),
		  text_change(text, change - (int64_t)diff->after->unfreed_bytes));
}

static bool is_reversed(const struct mmt_diff *diff)
{
	return diff->after->start_realtime_ns && diff->before->start_realtime_ns > diff->after->start_realtime_ns;
}

/* What the process would show in an incident: which recording grew faster, and in what. Nothing without rates. */
void text_diff_verdict(struct text *text, const struct mmt_diff *diff)
{
	const struct mmt_growth *before = &diff->before->growth, *after = &diff->after->growth;
	int64_t first = before->bytes_per_minute, second = after->bytes_per_minute;
	int64_t noise = mmt_growth_rate_noise(before) + mmt_growth_rate_noise(after);
	const struct mmt_cause *cause = NULL;
	/* What shrinks does not grow, however slowly. */
	bool worse = second > 0 && second - noise > first, better = first > 0 && first - noise > second;
	bool perhaps = !worse && second > 0 && second - second / RATE_NOISE > first;
	struct cause_words words;

	if (before->verdict <= MMT_VERDICT_TOO_SHORT || after->verdict <= MMT_VERDICT_TOO_SHORT ||
	    first == MMT_RATE_UNKNOWN || second == MMT_RATE_UNKNOWN || before->by_pss != after->by_pss ||
	    diff->relation == MMT_DIFF_OTHER_PROGRAM || is_reversed(diff) || is_too_short(diff))
		return;
	text_put(text,
		 worse						   ? TEXT_BAD
		 : better || after->verdict != MMT_VERDICT_GROWING ? TEXT_GOOD
								   : TEXT_STRONG,
		 worse	   ? "WORSE"
		 : better  ? "BETTER"
		 : perhaps ? "PERHAPS WORSE"
			   : "NO FASTER");
	text_add(text, ": %s %s%s in the second recording, %s in the first", text_measure(after),
		 second ? text_change(text, second) : "level", second ? " per minute" : "",
		 first ? text_change(text, first) : "level");
	if (perhaps)
		text_add(text, ", but rates vary by %s per minute anyway", text_bytes(text, (uint64_t)noise));
	if (worse && first > noise)
		text_add(text, " (%.1f times)", (double)second / (double)first);
	if (diff->relation == MMT_DIFF_SAME_PROCESS && after->start_bytes != before->end_bytes)
		text_add(text, "; RSS %s between them",
			 text_change(text, (int64_t)(after->start_bytes - before->end_bytes)));
	array_each(candidate, diff->after->causes, worse ? diff->after->cause_count : 0) {
		if (candidate->bytes_per_minute != MMT_RATE_UNKNOWN && candidate->bytes_per_minute >= second / 2 &&
		    (!cause || candidate->bytes_per_minute > cause->bytes_per_minute))
			cause = candidate;
	}
	if (cause) {
		const char *other = text_cause_other(cause, &words);

		text_add(text, "; most in %s%s", mmt_row_leaks(cause->verdict) && cause->name ? "a LEAK by " : "",
			 text_cause_name(cause));
		if (other && !cause->name)
			text_add(text, ", %s%s; others may keep it", words.before_other, other);
	}
	text_add(text, ".");
	text_end_sentence(text, TEXT_STRONG, 2);
}

void text_diff_relation(struct text *text, const struct mmt_diff *diff)
{
	if (is_reversed(diff))
		text_line(text, TEXT_BAD, "The first recording is the later one: pass the earlier one first.");
	if (diff->uncertain_count)
		text_line(text, TEXT_PLAIN, "%s uncertain, because the code differs between the recordings.",
			  text_counted(text, diff->uncertain_count, "match is", "matches are"));
	if (diff->search_limited)
		text_line(text, TEXT_BAD, "Too many stacks differ: only the largest were matched to similar ones.");
	if (diff->relation == MMT_DIFF_SAME_PROCESS)
		put_same_process(text, diff);
	else if (diff->replaced_bytes)
		text_line(text, TEXT_PLAIN,
			  "%s are in additional processes that ran one after another, and do not count as growth.",
			  text_bytes(text, diff->replaced_bytes));
	if (diff->larger_bytes) {
		text_add_process(text, diff->larger);
		text_line(text, TEXT_BAD, " had %s, most of %s commands of its name, %s in the first; in sum, %s more.",
			  text_bytes(text, 1024ULL * diff->larger->peak_kib), text_count(text, diff->larger_counts[1]),
			  text_count(text, diff->larger_counts[0]), text_bytes(text, diff->larger_bytes));
	}
	if (diff->relation != MMT_DIFF_OTHER_PROGRAM)
		return;
	text_put(text, TEXT_BAD, "warning: ");
	text_put(text, TEXT_PLAIN, "the recordings are of different programs (");
	text_put_name(text, TEXT_PLAIN, diff->before->processes[0].name, 0);
	text_put(text, TEXT_PLAIN, " and ");
	text_put_name(text, TEXT_PLAIN, diff->after->processes[0].name, 0);
	text_line(text, TEXT_PLAIN, "): few of their stacks will match");
}

static uint64_t left_out_ns(const struct mmt_report *report)
{
	return report->end_ns > report->to_ns ? report->end_ns - report->to_ns : 0;
}

/* Which states are compared, if not those at the ends. */
static void put_moments(struct text *text, const struct mmt_diff *diff)
{
	const struct mmt_report *const recordings[] = {diff->before, diff->after};

	for (size_t i = 0; i < 2; i++) {
		if (left_out_ns(recordings[i]))
			text_add(text, "%s %s before the end of the %s recording",
				 text_has_sentence(text) ? " and" : "As of",
				 text_duration(text, left_out_ns(recordings[i])), i ? "second" : "first");
	}
	if (text_has_sentence(text))
		text_line(text, TEXT_PLAIN, ": what was freed after that counts.");
}

static void put_figures(struct text *text, const struct mmt_diff *diff, const struct mmt_diff_entry *entry,
			struct text_explanations *explanations)
{
	static const struct mmt_row none = {0};
	const struct mmt_row *from = entry->before ? entry->before : &none, *to = entry->after ? entry->after : &none;
	enum mmt_pattern pattern = (entry->after ?: entry->before)->pattern;
	char before[MMT_SIZE_TEXT], after[MMT_SIZE_TEXT];
	struct verdict_word verdict = {0};

	if (entry->after) {
		verdict = text_verdict_word(diff->after, entry->after->verdict);
		explanations->verdicts[entry->after->verdict] = true;
	}
	text->indent = ROW_INDENT;
	text_format(text, entry->bytes > 0 || (!entry->bytes && entry->committed_bytes > 0) ? TEXT_BAD : TEXT_GOOD,
		    "%11s", text_change(text, entry->bytes));
	text_part(text, TEXT_STRONG, "%-6s", mmt_change_name(entry->change));
	if (verdict.word)
		text_part(text, verdict.style, "%s", verdict.word);
	/* Its stack need not be to blame. */
	if (mmt_pattern_is_by_design(pattern))
		text_part(text, TEXT_PLAIN, "%s", text_cause_name(&(struct mmt_cause){.pattern = pattern}));
	if (diff->relation == MMT_DIFF_SAME_PROCESS) {
		text_part(text, TEXT_PLAIN, "%s mappings", text_count(text, to->unfreed_count));
		if (from->unfreed_bytes)
			text_part(text, TEXT_PLAIN, "after %s by it in the first recording",
				  text_bytes(text, from->unfreed_bytes));
	} else {
		text_part(text, TEXT_PLAIN, "%s to %s", text_bytes(text, from->unfreed_bytes),
			  text_bytes(text, to->unfreed_bytes));
		text_part(text, TEXT_PLAIN, "%s to %s mappings", text_count(text, from->unfreed_count),
			  text_count(text, to->unfreed_count));
	}
	if (entry->committed_bytes != entry->bytes)
		text_part(text, TEXT_PLAIN, "committed %s", text_change(text, entry->committed_bytes));
	if (diff->rated)
		text_part(text, TEXT_PLAIN, "%s to %s per second", format_rate(entry->before_bytes_per_second, before),
			  format_rate(entry->after_bytes_per_second, after));
	text_end_line(text);
}

const char *text_diff_uncertain(const struct mmt_diff_entry *entry, char room[TEXT_DIFF_UNCERTAIN_BYTES])
{
	size_t count = entry->differing_frames;
	const char *differ = text_plural(count, "frame differs", "frames differ");

	if (entry->part_of)
		snprintf(room, TEXT_DIFF_UNCERTAIN_BYTES,
			 "uncertain: %zu %s from a stack of the %s recording that may include this one", count, differ,
			 entry->after ? "first" : "second");
	else
		snprintf(room, TEXT_DIFF_UNCERTAIN_BYTES, "uncertain: %zu %s from the first recording", count, differ);
	return room;
}

static void put_entry(struct text *text, const struct mmt_diff *diff, const struct mmt_diff_entry *entry,
		      struct text_explanations *explanations)
{
	const struct mmt_row *row = entry->after ? entry->after : entry->before;
	char room[TEXT_DIFF_UNCERTAIN_BYTES];

	text_end_line(text);
	put_figures(text, diff, entry, explanations);
	if (entry->differing_frames) {
		text_pad_to(text, STACK_INDENT);
		text_put_sentence(text, TEXT_BAD, text_diff_uncertain(entry, room), STACK_INDENT);
	}
	if (!row->name) {
		text_stack(text, row, NULL, STACK_INDENT, &explanations->marks);
	} else {
		text_pad_to(text, STACK_INDENT);
		text_put_name(text, TEXT_PLAIN, row->name, 0);
		text_end_line(text);
	}
	if (row->lines_differ) {
		text_pad_to(text, STACK_INDENT);
		text_line(text, TEXT_FAINT, "(and calls at other lines of these functions)");
	}
}

struct mmt_error *mmt_diff_write_text(const struct mmt_diff *diff, const struct mmt_text_options *options, FILE *stream)
{
	const struct mmt_report *const recordings[] = {diff->before, diff->after};
	struct text_explanations explanations = {0};
	struct diff_selection selection;
	struct mmt_error *error = selection_of_diff(diff, options, &selection);
	struct text text;

	if (error)
		return error;
	text_begin(&text, stream, options);
	/* Why the figures may be wrong. */
	for (size_t i = 0; i < 2; i++) {
		if (text_is_sound(recordings[i]))
			continue;
		text_source(&text, recordings[i]);
		text_warnings(&text, recordings[i]);
		text_trust(&text, recordings[i]);
	}
	if (text.lines)
		text_end_line(&text);
	/* What a program does not reach when it crashes is no improvement. */
	text_command_end(&text, diff->before, "first recording: ", false);
	text_command_end(&text, diff->after, "second recording: ", false);
	text_diff_verdict(&text, diff);
	put_moments(&text, diff);
	put_sums(&text, diff);
	text_diff_relation(&text, diff);
	text_diff_heaps(&text, diff, false);
	for (size_t i = 0; i < selection.count; i++)
		put_entry(&text, diff, selection.entries[i], &explanations);
	if (selection.hidden_count) {
		text_end_line(&text);
		text_format(&text, TEXT_PLAIN, "%s more changed %s", text_count(&text, selection.hidden_count),
			    row_word(diff->after, selection.hidden_count));
		text_line(&text, TEXT_FAINT, " (--limit 0 --min-bytes 0 shows all)");
	}
	if (!diff->entry_count) {
		text_end_line(&text);
		text_line(&text, TEXT_PLAIN, "No %s changed.", row_word(diff->after, 1));
	}
	text_diff_heaps(&text, diff, true);
	for (size_t i = 0; i < 2; i++) {
		text_end_line(&text);
		text_summary(&text, recordings[i]);
		text_details(&text, recordings[i]);
		text_explanations_add(&explanations, recordings[i]);
	}
	text_explanations(&text, &explanations);
	free(selection.entries);
	return text_end(&text) ? NULL : &error_no_memory;
}
