// SPDX-License-Identifier: LGPL-2.1-or-later
/* How RSS grew, in words: the verdict, where the growth is, huge pages, and the table of causes. */
#include "output/text/text-parts.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/figures.h"

/* The readings as points of a trend: the largest in each part of the time, or the value before it. */
static void put_trend(struct text *text, const struct mmt_report *report)
{
	const struct mmt_resident_reading *readings = report->judged_readings;
	size_t count = report->judged_reading_count;
	uint64_t points[MMT_TREND_POINTS] = {0}, span_ns = readings[count - 1].time_ns - readings[0].time_ns;

	for (size_t i = 0; i < count; i++) {
		uint64_t since_ns = readings[i].time_ns - readings[0].time_ns;
		size_t point = span_ns ? (size_t)((double)since_ns / (double)span_ns * (MMT_TREND_POINTS - 1)) : 0;
		uint64_t bytes = saturating_add(readings[i].resident_bytes, readings[i].swapped_bytes, UINT64_MAX);

		points[point] = larger_of(points[point], bytes);
	}
	for (size_t i = 1; i < MMT_TREND_POINTS; i++)
		points[i] = points[i] ? points[i] : points[i - 1];
	text_trend(text, points, report->growth.floor_bytes);
}

#define SHORT_NS 1000000000

/* What the processes use, or what is known without readings; then the sizes. */
static void put_headline(struct text *text, const struct mmt_report *report)
{
	const struct mmt_growth *growth = &report->growth;
	bool late = growth->verdict != MMT_VERDICT_UNKNOWN &&
		    (growth->start_ns > report->from_ns + SHORT_NS ||
		     (report->resident_reading_count && growth->start_ns > report->resident_readings[0].time_ns));
	const char *when = late ? text_since(text, report, growth->start_ns) : "start";
	uint64_t resident_bytes = MMT_UNKNOWN;
	uint64_t peak_bytes = growth->by_pss ? growth->peak_pss_bytes : growth->peak_bytes;
	uint64_t brief_bytes = growth->peak_with_brief_bytes;

	text_add_headline(text, report);
	text->indent = 0;
	text_end_part(text, TEXT_STRONG);
	text->indent = TEXT_INDENT;
	if (!report->resident_reading_count) {
		for (size_t i = 0; i < report->process_count; i++)
			figure_add(&resident_bytes, report->processes[i].resident_bytes);
		if (resident_bytes == MMT_UNKNOWN)
			text_part(text, TEXT_PLAIN, "RSS not %s",
				  report->windowed ? "read in this window" : "recorded");
		else
			text_part(text, TEXT_PLAIN, "RSS %s at end, start not recorded",
				  text_bytes(text, resident_bytes));
		text_end_line(text);
		return;
	}
	text_part(text, TEXT_STRONG, "%s %s %s %s, %s at end", text_measure(growth),
		  text_bytes(text, growth->by_pss ? growth->start_pss_bytes : growth->start_bytes),
		  late ? "after" : "at", when,
		  text_bytes(text, growth->by_pss ? growth->end_pss_bytes : growth->end_bytes));
	if (growth->start_swap_bytes || growth->end_swap_bytes)
		text_part(text, TEXT_STRONG, "swap %s %s %s, %s at end", text_bytes(text, growth->start_swap_bytes),
			  late ? "after" : "at", when, text_bytes(text, growth->end_swap_bytes));
	if (growth->bytes_per_minute != MMT_RATE_UNKNOWN && growth->bytes_per_minute &&
	    growth->verdict != MMT_VERDICT_TOO_SHORT)
		text_part(text, TEXT_STRONG, "%s per minute", text_change(text, growth->bytes_per_minute));
	/* The RSS of several processes counts what they share several times. */
	if (!growth->pss_missing &&
	    larger_of(brief_bytes, peak_bytes) > (growth->by_pss ? growth->end_pss_bytes : growth->end_bytes))
		text_part(text, TEXT_PLAIN, "peak %s%s", text_bytes(text, larger_of(brief_bytes, peak_bytes)),
			  brief_bytes > peak_bytes ? " with short-lived processes" : "");
	put_trend(text, report);
	text_end_line(text);
}

static int64_t swap_change(const struct mmt_growth *growth)
{
	uint64_t change = growth->end_swap_bytes - growth->start_swap_bytes;

	return growth->verdict == MMT_VERDICT_UNKNOWN ? 0 : (int64_t)change;
}

/* The reason for the verdict. */
static void add_reason(struct text *text, const struct mmt_report *report)
{
	const struct mmt_growth *growth = &report->growth;
	bool swaps = growth->start_swap_bytes || growth->end_swap_bytes;
	uint64_t level_ns = growth->end_ns > growth->settled_ns ? growth->end_ns - growth->settled_ns : 0;

	if (growth->verdict == MMT_VERDICT_UNKNOWN) {
		if (report->end_ns - report->start_ns < SHORT_NS && !mmt_report_has_leak(report))
			text_add(text, "%s is too short to judge anything.",
				 text_duration(text, report->end_ns - report->start_ns));
		else
			text_add(text, "RSS %s: only mappings are judged.",
				 report->windowed ? "over time is not known for this window"
						  : "over time is not in the recording");
		return;
	}
	text_add(text, "%s ", text_measure_with_swap(growth));
	if (growth->verdict == MMT_VERDICT_STEADY)
		text_add(text, "%s no steady trend: ", swaps ? "have" : "has");
	text_add(text, "%s", text_change(text, mmt_growth_change(growth)));
	if (growth->outside_bytes)
		text_add(text, " (and %s by other processes)", text_change(text, growth->outside_bytes));
	switch (growth->verdict) {
	case MMT_VERDICT_GROWING:
	case MMT_VERDICT_SHRINKING:
		if (growth->verdict == MMT_VERDICT_GROWING && !growth->settled_ns)
			text_add(text, ", still rising at the end%s",
				 /* The blocks of a heap say more, below. */
				 !strcmp(mmt_report_headline(report), "LEAK") ||
					 (report->heap_count && report->heaps->verdict == MMT_HEAP_IN_USE_GROWS)
				     ? ""
				     : ": a leak, or still filling up");
		if (growth->settled_ns)
			text_add(text, ", but level for the last %s", text_duration(text, level_ns));
		text_add(text, ".");
		break;
	case MMT_VERDICT_PLATEAU:
		text_add(text, ", but level for the last %s, since %s after the start%s", text_duration(text, level_ns),
			 text_since(text, report, growth->settled_ns),
			 /* A leak may be level because it can get no further. */
			 mmt_report_was_refused_memory(report)
			     ? ": the kernel refused it more memory, so it may be a leak that can get no further."
			 : growth->unfreed_growth_bytes || mmt_report_has_leak(report)
			     ? "."
			 : report->stall_count
			     ? ": memory was short, and the kernel may have made room for what grows."
			     : ": a warm-up, a cache or a single allocation rather than a leak.");
		break;
	case MMT_VERDICT_STEADY:
		text_add(text, " from start to end.");
		break;
	case MMT_VERDICT_TOO_SHORT:
		/* No option records a program for longer than it lives. */
		if (mmt_report_goes_by_rows(report))
			text_add(text, " so far, judged by the mappings below.");
		else if (report->process_count == 1 && report->processes[0].ended && !report->windowed)
			text_add(text, " so far, without a clear trend: it ended after %s.",
				 text_duration(text, report->end_ns - report->start_ns));
		else if (growth->advised_ns)
			text_add(text, " so far, without a clear trend: record for at least %s.",
				 text_duration(text, growth->advised_ns));
		else
			text_add(text, " so far, but it was read too rarely to tell.");
		break;
	default:
		text_add(text, ".");
	}
}

static void put_verdict(struct text *text, const struct mmt_report *report)
{
	static const enum text_style styles[MMT_VERDICT_KINDS] = {
	    [MMT_VERDICT_UNKNOWN] = TEXT_STRONG, [MMT_VERDICT_TOO_SHORT] = TEXT_STRONG,
	    [MMT_VERDICT_GROWING] = TEXT_BAD,	 [MMT_VERDICT_PLATEAU] = TEXT_GOOD,
	    [MMT_VERDICT_STEADY] = TEXT_GOOD,	 [MMT_VERDICT_SHRINKING] = TEXT_GOOD,
	};
	enum mmt_verdict verdict = report->growth.verdict;
	struct mmt_cause leak = mmt_report_first_leak(report);
	bool leaks = verdict != MMT_VERDICT_UNKNOWN && (report->growth.unfreed_growth_bytes || leak.memory_bytes);

	if (mmt_report_has_nothing_to_see(report)) {
		text_line(text, TEXT_STRONG, "%s: in %s, only what every program loads was mapped.",
			  mmt_report_headline(report), text_duration(text, report->end_ns - report->start_ns));
		return;
	}
	text_put(text, leaks ? TEXT_BAD : styles[verdict], mmt_report_headline(report));
	text_put(text, TEXT_PLAIN, ": ");
	if (report->growth.by_process) {
		text_put_growers(text, report);
		return;
	}
	add_reason(text, report);
	/* What does not show in RSS. */
	if (report->growth.unfreed_growth_bytes)
		text_add(text, " But mappings that leak, most of them not resident, grew by %s %s.",
			 text_bytes(text, report->growth.unfreed_growth_bytes),
			 report->growth.settled_ns ? "since then" : "in this time");
	else if (leaks && verdict != MMT_VERDICT_GROWING && !mmt_report_goes_by_rows(report))
		text_add(
		    text, " But %s, %s, is %s.", report->cause_count || *leak.rows == 1 ? "the first row" : "a row",
		    text_bytes(text, leak.memory_bytes), leak.verdict == MMT_ROW_KEEPS_GROWING ? "GROWING" : "a LEAK");
	text_end_sentence(text, TEXT_PLAIN, TEXT_INDENT);
}

bool text_growth_is_of_all(const struct mmt_report *report)
{
	return !report->windowed && !report->options.classes && !selection_has_patterns(report) &&
	       !report->left_out_process_count && !report->ended_bytes && !report->too_recent_bytes;
}

/* Print how much of the growth of RSS rows show, and how much no mapping of this recording explains. */
static void put_place(struct text *text, const struct mmt_report *report)
{
	const struct mmt_growth *growth = &report->growth;
	int64_t change = (int64_t)(growth->end_bytes - growth->start_bytes);
	int64_t made = (int64_t)(report->resident_bytes - report->resident_hugetlb_bytes), rest = change - made;
	const char *it = growth->start_swap_bytes || growth->end_swap_bytes ? "the growth of RSS" : "it";

	/* While a recorder runs, RSS is read more often than the resident pages. */
	if (growth->verdict == MMT_VERDICT_UNKNOWN || report->resident_bytes == MMT_UNKNOWN ||
	    !text_growth_is_of_all(report) || report->completeness.incomplete || change <= (int64_t)growth->floor_bytes)
		return;
	text_add(text, "  Mappings made in this recording hold %s", text_bytes(text, report->resident_bytes));
	if (rest < -change / TEXT_NEGLIGIBLE)
		text_add(text,
			 report->before_bytes ? "; memory that was mapped before gave back %s."
					      : ", of which %s were there when RSS was first read.",
			 text_bytes(text, (uint64_t)-rest));
	else if (rest <= change / TEXT_NEGLIGIBLE)
		text_add(text, ", all of %s.", it);
	else
		text_add(text, " of %s; the rest was touched in memory mapped before, such as a heap or files.", it);
	text_end_sentence(text, TEXT_STRONG, TEXT_INDENT);
}

#define PARTS_SHOWN 5
#define PART_INDENT 16
#define PART_FLOOR_BYTES 65536 /* smaller parts are summed up in one line */

/* What stands before and behind "this recording" or "this window". */
static const struct {
	const char *before, *behind;
} places[MMT_GROWTH_PLACES] = {
    [MMT_GROWTH_MADE] = {"in mappings made in", ""},
    [MMT_GROWTH_COMMITTED] = {"in memory mapped before, made accessible in", ""},
    [MMT_GROWTH_KERNEL] = {"in programs and stacks, which the kernel mapped itself", NULL},
    [MMT_GROWTH_UNMAPPED] = {"by unmapping what was mapped before", " began"},
    [MMT_GROWTH_ENDED] = {"by processes that ended", NULL},
    [MMT_GROWTH_UNREAD] = {"in processes whose resident pages were not read", NULL},
};

void text_add_kind(struct text *text, const struct mmt_growth_part *part)
{
	static const char *const classes[MMT_CLASS_KINDS] = {
	    [MMT_CLASS_ANON] = "anonymous memory",
	    [MMT_CLASS_FILE] = "files",
	    [MMT_CLASS_HEAP] = "the heap (brk)",
	    [MMT_CLASS_SHM] = "shared memory",
	    [MMT_CLASS_THREAD_STACK] = "thread stacks",
	    [MMT_CLASS_HUGETLB] = "huge pages",
	    [MMT_CLASS_JIT] = "JIT code",
	    [MMT_CLASS_GC_RESERVE] = "the heap of a managed runtime",
	};
	const char *class = part->memory_class < MMT_CLASS_KINDS ? classes[part->memory_class] : "memory";

	if (part->runtime)
		text_add(text, "the heap of %s", part->runtime);
	else
		text_add(text, "%s", part->name ? part->name : part->arena ? "malloc arenas" : class);
}

void text_put_part_hint(struct text *text, const struct mmt_growth_part *part)
{
	size_t size;

	if (!part->hint || !(text->room->hints || text->below))
		return;
	/* The command is a line of its own on the first screen. */
	size = part->hint == text->next_hint && !text->below ? (size_t)(strstr(part->hint, TEXT_NEXT) - part->hint)
							     : strlen(part->hint);
	text_pad_to(text, PART_INDENT);
	text_sentence(text, TEXT_FAINT, PART_INDENT, "%.*s", (int)size, part->hint);
}

#define TOUCHERS_SHOWN 3

void text_add_touched(struct text *text, const struct mmt_toucher *toucher)
{
	double percent = toucher->bytes ? (double)toucher->error_bytes / (double)toucher->bytes * 100 : 0;

	text_add(text, "%s", text_bytes(text, toucher->bytes));
	if (toucher->error_bytes)
		text_add(text, " (+- %.0f %%)", percent < 1 ? 1.0 : percent);
}

/* "touched by fill_pool (server): 412.0 MiB (+- 6 %); ...", and how much is attributed to no function. */
static void put_touchers(struct text *text, const struct mmt_report *report, const struct mmt_growth_part *part)
{
	uint64_t named = 0, others, missing;

	for (size_t i = 0; i < part->toucher_count && i < TOUCHERS_SHOWN; i++) {
		const struct mmt_toucher *toucher = &part->touchers[i];

		if ((i && toucher->bytes < part->touched_bytes / TEXT_NEGLIGIBLE) || !text_knows_toucher(toucher))
			break;
		named += toucher->bytes;
		/* By touch, the rows show them. */
		if (report->by == MMT_BY_TOUCH)
			continue;
		text_add(text, "%s%s: ", i ? "; " : "touched by ", toucher->name);
		text_add_touched(text, toucher);
	}
	others = part->touched_bytes - smaller_of(named, part->touched_bytes);
	missing = part->unattributed_bytes + (named ? 0 : others);
	if (text_has_sentence(text) && others > part->touched_bytes / TEXT_NEGLIGIBLE)
		text_add(text, "; others: %s", text_bytes(text, others));
	if (!mmt_report_has_leak(report) && missing > (uint64_t)part->bytes / TEXT_NEGLIGIBLE &&
	    (!named || missing > part->touched_error_bytes) &&
	    missing > magnitude_of(mmt_growth_change(&report->growth)) / TEXT_NEGLIGIBLE)
		text_add(text, "%s%s not attributed: %s brought it in, as with fork(2), MAP_POPULATE or few huge pages",
			 text_has_sentence(text) ? "; " : "", text_bytes(text, missing),
			 report->growth.faults_sampled ? "few sampled page faults, or none,"
						       : "no recorded page fault");
	if (text_has_sentence(text))
		text_pad_to(text, PART_INDENT);
	text_end_sentence(text, TEXT_STRONG, PART_INDENT);
}

/* "+36.90 MiB  touched in malloc arenas ..." Private pages come and go by what other processes do, too. */
static void put_part(struct text *text, const struct mmt_report *report, const struct mmt_growth_part *part)
{
	const char *period = report->windowed ? "window" : "recording";
	bool private = report->growth.parts_private;
	/* They inherited memory, also of what was mapped in the recording. */
	bool has_children = array_find(process, report->processes, report->process_count, process->parent_pid);

	text_format(text, TEXT_STRONG, "  %12s  ", text_change(text, part->bytes));
	if (part->place != MMT_GROWTH_BEFORE) {
		text_add(text, "%s%s", private ? "private, " : "", places[part->place].before);
		if (places[part->place].behind)
			text_add(text, " this %s%s", period, places[part->place].behind);
	} else {
		text_add(text, "%s",
			 private			    ? "private, in "
			 : part->bytes > 0		    ? "touched in "
			 : swap_change(&report->growth) > 0 ? "given back or swapped out in "
							    : "given back in ");
		text_add_kind(text, part);
		text_add(text, ", mapped before this %s began%s", period, has_children ? ", or inherited" : "");
	}
	text_end_sentence(text, TEXT_PLAIN, PART_INDENT);
	if (part->bytes >= PART_FLOOR_BYTES)
		put_touchers(text, report, part);
	/* A pool, for instance; a heap grows by calls, and what is in it comes and goes. Others copy their pages. */
	if (report->process_count == 1 && part->bytes >= PART_FLOOR_BYTES && part->mapped_bytes > part->filled_bytes &&
	    (part->memory_class == MMT_CLASS_ANON || part->memory_class == MMT_CLASS_SHM) && !part->arena) {
		text_pad_to(text, PART_INDENT);
		text_sentence(text, TEXT_PLAIN, PART_INDENT, "%s of %s touched: it can grow by at most %s",
			      text_bytes(text, part->filled_bytes), text_bytes(text, part->mapped_bytes),
			      text_bytes(text, part->mapped_bytes - part->filled_bytes));
	}
	if (part->place == MMT_GROWTH_BEFORE && !mmt_report_has_leak(report))
		text_put_part_hint(text, part);
}

void text_put_rest(struct text *text, int64_t bytes, const char *what)
{
	if (!bytes)
		return;
	text_sentence(text, TEXT_PLAIN, PART_INDENT, "  %12s  %s", text_change(text, bytes), what);
}

void text_put_swap(struct text *text, int64_t bytes)
{
	text_put_rest(text, bytes,
		      bytes > 0 ? "in swap, not in RSS: the kernel swapped out pages of the process"
				: "in swap: the process used the pages again, or gave them back");
}

static bool is_large(int64_t bytes)
{
	return bytes >= PART_FLOOR_BYTES || bytes <= -PART_FLOOR_BYTES;
}

/* Divide the change of Pss: private pages, and those of several processes. */
static void put_shared(struct text *text, const struct mmt_growth *growth)
{
	uint64_t alone = growth->end_private_bytes - growth->start_private_bytes;
	uint64_t all = growth->end_pss_bytes - growth->start_pss_bytes;
	char what[64];

	if (!growth->by_pss)
		return;
	if (growth->sharers > 1)
		snprintf(what, sizeof(what), "shared by %" PRIu64 " processes", growth->sharers);
	else
		snprintf(what, sizeof(what), "shared with other processes");
	if (!growth->parts_private)
		text_put_rest(text, (int64_t)alone, "private");
	text_put_rest(text, (int64_t)(all - alone), what);
}

/* Print the parts of the growth, largest first; the last lines make the sum complete. */
static void put_parts(struct text *text, const struct mmt_report *report)
{
	const struct mmt_growth *growth = &report->growth;
	uint64_t rest = 0; /* int64_t as uint64_t */

	if (!growth->pages_at_ends && growth->pages_end_ns)
		/* The pages were not read at both ends of the window, but next to them. */
		text_line(
		    text, TEXT_PLAIN, "  Resident pages were read %s and %s after the start; between these, RSS %s:",
		    text_since(text, report, growth->pages_start_ns), text_since(text, report, growth->pages_end_ns),
		    text_change(text, (int64_t)(growth->pages_end_bytes - growth->pages_start_bytes)));
	else if (growth->by_pss && !growth->parts_private)
		text_line(text, TEXT_PLAIN, "  RSS of all processes %s, in which what they share counts several times:",
			  text_change(text, (int64_t)(growth->end_bytes - growth->start_bytes)));
	for (size_t i = 0; i < growth->part_count; i++) {
		if (i < (text->below ? PARTS_SHOWN : text->room->parts) && is_large(growth->parts[i].bytes))
			put_part(text, report, &growth->parts[i]);
		else
			rest += (uint64_t)growth->parts[i].bytes;
	}
	text_put_rest(text, (int64_t)rest, "in other memory (--json has all)");
	if (growth->parts_private)
		put_shared(text, growth);
	if (is_large(growth->changing_bytes))
		text_put_rest(text, growth->changing_bytes,
			      growth->parts_private ? "private, changed between the readings of Pss and of the pages"
			      : growth->pages_start_bytes || growth->changing_bytes > 0 ||
				      growth->start_bytes < (uint64_t)-growth->changing_bytes
				  ? "changed between the readings of RSS and of the resident pages"
				  : "of these, already in memory when RSS was first read");
	if (growth->pages_at_ends)
		text_put_swap(text, swap_change(growth));
	text_put_rest(text, growth->hugetlb_bytes, "in huge pages of hugetlbfs, which RSS does not include");
	text_put_rest(text, growth->unexplained_bytes,
		      "not explained: pages changed while they were read, or the kernel's own count differs");
}

/* Huge pages of which much was never written. */
static void put_huge_pages(struct text *text, const struct mmt_report *report)
{
	const struct mmt_huge_pages *pages = &report->huge_pages;

	if (!pages->hint)
		return;
	text_sentence(text, TEXT_STRONG, PART_INDENT,
		      "  %s in huge pages, about %s of it never written (all zero; sample: %s)",
		      text_bytes(text, pages->bytes), text_bytes(text, pages->zero_bytes),
		      text_bytes(text, pages->sampled_bytes));
	text_pad_to(text, PART_INDENT);
	text_put_sentence(text, TEXT_FAINT, pages->hint, PART_INDENT);
}

static int64_t group_change(const struct mmt_control_group *group, enum mmt_group_figure figure)
{
	uint64_t start = group->start[figure], end = group->end[figure];

	return start == MMT_UNKNOWN || end == MMT_UNKNOWN ? 0 : (int64_t)(end - start);
}

#define OOM_KILLS_SHOWN 3
#define STALLED_SHARE 100 /* of the time: a shorter wait for memory is no problem */

/* Begins a part of the line about the group. */
static void begin_part(struct text *text, const struct mmt_control_group *group)
{
	if (text_has_sentence(text))
		text_add(text, "; ");
	else
		text_add(text, "  control group%s%s: ", group->path && *group->path ? " " : "", group->path ?: "");
}

/* How near the limit of the group is, and what the kernel did about it, if that is a problem. */
static void put_pressure(struct text *text, const struct mmt_report *report)
{
	const struct mmt_control_group *group = report->limiting_group;
	uint64_t used = mmt_control_group_used(group), limit = mmt_control_group_limit(group);
	uint64_t full_ns = mmt_control_group_full_ns(report);
	uint64_t kills = mmt_control_group_oom_kills(group);
	int64_t stalled = group_change(group, MMT_GROUP_STALLED); /* microseconds */
	int64_t throttled = group_change(group, MMT_GROUP_THROTTLED);
	uint64_t stalled_ns = stalled > 0 && stalled < INT64_MAX / 1000 ? (uint64_t)stalled * 1000 : 0;

	if (kills) {
		begin_part(text, group);
		text_add(text, "the kernel's OOM killer ended %" PRIu64 " of its processes", kills);
	}
	if (mmt_control_group_is_near(report)) {
		begin_part(text, group);
		text_add(text, "%s of its %s of %s are in use besides page cache", text_bytes(text, used),
			 limit == group->end[MMT_GROUP_LIMIT] ? "limit" : "memory.high", text_bytes(text, limit));
		if (full_ns != MMT_UNKNOWN && !kills)
			text_add(text, ", and this growth fills it in %s", text_duration(text, full_ns));
	}
	if (throttled > 0) {
		begin_part(text, group);
		text_add(text, "the kernel slowed it down %s at its memory.high",
			 text_counted(text, (uint64_t)throttled, "time", "times"));
	}
	if (stalled_ns > (group->end_ns - group->start_ns) / STALLED_SHARE) {
		begin_part(text, group);
		text_add(text, "threads waited %s for memory", text_duration(text, stalled_ns));
	}
	text_end_sentence(text, TEXT_BAD, 2 * TEXT_INDENT);
}

static const char *function_of(const struct mmt_stall *stall)
{
	return stall->origin < stall->frame_count ? stall->frames[stall->origin]->function : NULL;
}

/* "threads had to free memory themselves 12 times, 340 ms in all, 52 ms at most; 80 % in calls from parse_request" */
static void put_stalls(struct text *text, const struct mmt_report *report)
{
	const char *most = report->stall_count ? function_of(report->stalls) : NULL;
	uint64_t count = 0, total_ns = 0, longest_ns = 0, most_ns = 0;

	array_each(stall, report->stalls, report->stall_count) {
		const char *function = function_of(stall);

		count += stall->count;
		total_ns = saturating_add(total_ns, stall->total_ns, INT64_MAX);
		longest_ns = larger_of(longest_ns, stall->longest_ns);
		if (most && function && !strcmp(most, function))
			most_ns = saturating_add(most_ns, stall->total_ns, INT64_MAX);
	}
	if (total_ns <= (report->to_ns - report->from_ns) / STALLED_SHARE)
		return;
	text_add(text, "  threads had to free memory themselves %s%s, %s in all, %s at most",
		 report->completeness.lost_reclaims ? "at least " : "", text_counted(text, count, "time", "times"),
		 text_duration(text, total_ns), text_duration(text, longest_ns));
	if (most)
		text_add(text, "; %.0f %% in calls from %s", 100.0 * (double)most_ns / (double)total_ns, most);
	text_end_sentence(text, TEXT_BAD, 2 * TEXT_INDENT);
}

#define OUTSIDE_FLOOR_BYTES (16 << 20) /* a group that was not asked for changes by less all the time */

/* "control group +84.00 MiB (now 120.00 MiB of 512.00 MiB): +80.00 MiB files on tmpfs ..., processes +0 B". If the
 * recording is of a process in it, only what grew most and is in no process. */
static void put_control_group(struct text *text, const struct mmt_report *report)
{
	const struct mmt_control_group *row = report->control_group;
	const struct mmt_growth *growth = &report->growth;
	int64_t shmem = row ? group_change(row, MMT_GROUP_SHMEM) : 0;
	int64_t kernel = row ? group_change(row, MMT_GROUP_KERNEL) : 0, outside = shmem + kernel;
	const struct {
		int64_t bytes;
		const char *what;
	} parts[] = {
	    {shmem, "files on tmpfs or shared memory"},
	    {row ? group_change(row, MMT_GROUP_FILE) - shmem : 0, "page cache of other files"},
	    {row ? group_change(row, MMT_GROUP_ANON) : 0, "anonymous memory"},
	    {kernel, "kernel memory"},
	};
	const char *before = ": ";
	int64_t change;

	if (row)
		put_pressure(text, report);
	/* What is mapped is in RSS, too; counters of a group that has much more memory change because of others. */
	if (!row || row->end[MMT_GROUP_CURRENT] == MMT_UNKNOWN ||
	    (!row->selected &&
	     (row->end[MMT_GROUP_ANON] / 2 > (growth->by_pss ? growth->end_pss_bytes : growth->end_bytes) ||
	      outside < OUTSIDE_FLOOR_BYTES || outside - mmt_growth_change(growth) < OUTSIDE_FLOOR_BYTES)))
		return;
	change = group_change(row, MMT_GROUP_CURRENT);
	text_add(text, "  %scontrol group %s (now %s", row->selected ? "" : "the whole ", text_change(text, change),
		 text_bytes(text, row->end[MMT_GROUP_CURRENT]));
	if (row->end[MMT_GROUP_LIMIT] != MMT_UNKNOWN)
		text_add(text, " of %s", text_bytes(text, row->end[MMT_GROUP_LIMIT]));
	text_add(text, ")");
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (!is_large(parts[i].bytes) || magnitude_of(parts[i].bytes) < magnitude_of(change) / TEXT_NEGLIGIBLE)
			continue;
		text_add(text, "%s%s %s", before, text_change(text, parts[i].bytes), parts[i].what);
		before = ", ";
	}
	if (report->growth.verdict != MMT_VERDICT_UNKNOWN)
		text_add(text, "%sprocesses %s", before, text_change(text, mmt_growth_change(&report->growth)));
	text_end_sentence(text, TEXT_PLAIN, 2 * TEXT_INDENT);
}

void text_command_end(struct text *text, const struct mmt_report *report, const char *before, bool oom_killed)
{
	const struct mmt_command_end *end = &report->command_end;
	int number = WIFSIGNALED(end->status) ? WTERMSIG(end->status) : 0;
	const struct mmt_process *command =
	    array_find(process, report->processes, report->process_count, process->pid == end->pid);
	char status[MMT_STATUS_TEXT];

	if (!end->time_ns || number == SIGINT || number == SIGTERM || (number == SIGKILL && oom_killed))
		return;
	text_add(text, "%s%s", before, number ? "KILLED: " : "");
	if (command)
		text_add_process(text, command);
	else
		text_add(text, "the command");
	text_line(text, TEXT_BAD, " %s %s after the start", mmt_format_status(end->status, status),
		  text_since(text, report, end->time_ns));
}

/* Before all else: the figures of a victim are older than its end, when the kernel has freed its memory already. */
static void put_oom_kills(struct text *text, const struct mmt_report *report)
{
	bool command_killed = false;
	unsigned shown = 0;

	array_each(oom_kill, report->oom_kills, report->oom_kill_count) {
		const struct mmt_process *victim = mmt_oom_kill_victim(report, oom_kill);
		uint64_t read_ns = victim && victim->readings ? victim->readings->end_ns : UINT64_MAX;

		if (oom_kill->time_ns < report->from_ns)
			continue;
		command_killed |= oom_kill->pid == report->command_end.pid;
		if (shown++ >= OOM_KILLS_SHOWN)
			continue;
		text_add(text, "OOM-KILLED: the kernel's OOM killer ended ");
		if (victim)
			text_add_process(text, victim);
		else
			text_add(text, "%s (pid %" PRId32 "), which is not in this report,",
				 *oom_kill->name ? oom_kill->name : "a process", oom_kill->pid);
		text_add(text, " %s after the start", text_since(text, report, oom_kill->time_ns));
		if (read_ns <= oom_kill->time_ns)
			text_add(text, "; its figures are those of its last reading, %s before",
				 text_duration(text, oom_kill->time_ns - read_ns));
		text_end_sentence(text, TEXT_BAD, TEXT_LINE_INDENT);
	}
	if (shown > OOM_KILLS_SHOWN)
		text_line(text, TEXT_BAD, "OOM-KILLED: %u more; --json has all", shown - OOM_KILLS_SHOWN);
	text_command_end(text, report, "", command_killed);
}

void text_verdict(struct text *text, const struct mmt_report *report)
{
	const struct mmt_growth *growth = &report->growth;
	uint64_t peak_ns = growth->peak_ns;
	uint64_t unmapped = mmt_report_freed_at_end(report, &peak_ns), peak_ms;
	bool fell = !unmapped && selection_fell(report) && !mmt_report_has_nothing_to_see(report);

	/* Not before that reading. */
	peak_ms = (subtract(peak_ns, report->start_ns) + (peak_ns == report->peak_ns ? 0 : 999999)) / 1000000;
	text->indent = TEXT_INDENT;
	put_oom_kills(text, report);
	put_headline(text, report);
	put_verdict(text, report);
	if (unmapped)
		text_add(text, "  %s were unmapped in the last %s", text_bytes(text, unmapped),
			 text_duration(text, report->to_ns - peak_ns));
	else if (fell)
		text_add(text, "  %s was %s before it fell", text_measure(growth),
			 text_bytes(text, growth->by_pss ? growth->peak_pss_bytes : growth->peak_bytes));
	if (unmapped || fell)
		text_add(text, ": --to %" PRIu64 ".%03" PRIu64 "s shows what held that.", peak_ms / 1000,
			 peak_ms % 1000);
	text_end_sentence(text, TEXT_STRONG, TEXT_INDENT);
	put_control_group(text, report);
	put_stalls(text, report);
	text_put_shares(text, report);
	if (text->room->extras)
		text_put_growth_of_ended(text, report);
}

#define ELSEWHERE_SHARE 4 /* of the change: the causes on the first screen are not the answer */
#define LAZY_FREE_BYTES_MIN (1u << 20)

static void put_lazy_free(struct text *text, const struct mmt_report *report)
{
	uint64_t bytes = 0, resident = 0;

	array_each(process, report->processes, report->process_count) {
		if (!process->readings || process->ended)
			continue;
		bytes = saturating_add(bytes, process->readings->lazy_free_bytes, MMT_BYTES_MAX);
		resident = saturating_add(resident, process->readings->end_resident_bytes, MMT_BYTES_MAX);
	}
	if (bytes >= LAZY_FREE_BYTES_MIN && bytes >= resident / TEXT_NEGLIGIBLE)
		text_line(text, TEXT_STRONG,
			  "  %s of RSS was freed with MADV_FREE already; the kernel reclaims it when memory is short",
			  text_bytes(text, bytes));
}

/* Whether a good part of the change is not in the causes below: other memory grew or shrank. */
static bool is_elsewhere(const struct mmt_growth *growth)
{
	uint64_t bytes = 0;

	array_each(part, growth->parts, growth->part_count) {
		if (part->place != MMT_GROWTH_MADE && part->place != MMT_GROWTH_COMMITTED)
			bytes = saturating_add(bytes, magnitude_of(part->bytes), MMT_BYTES_MAX);
	}
	return bytes > growth->floor_bytes && bytes > magnitude_of(mmt_growth_change(growth)) / ELSEWHERE_SHARE;
}

static void put_growth(struct text *text, const struct mmt_report *report)
{
	const struct mmt_growth *growth = &report->growth;

	if (!growth->parts_private)
		put_shared(text, growth);
	if (growth->parts_known) {
		put_parts(text, report);
		return;
	}
	put_place(text, report);
	if (growth->faults_recorded && report->resident_bytes == MMT_UNKNOWN && is_large(mmt_growth_change(growth)) &&
	    !mmt_report_has_nothing_to_see(report))
		text_line(text, TEXT_PLAIN,
			  "  Page faults were recorded, but not which of the pages stayed: of a process that ends by "
			  "itself, --snapshot-interval of record reads them before");
	if (text_growth_is_of_all(report))
		text_put_swap(text, swap_change(growth));
}

void text_growth_above(struct text *text, const struct mmt_report *report)
{
	text_heap_answer(text, report);
	if (text->room->parts && (!report->growth.parts_known || is_elsewhere(&report->growth)))
		put_growth(text, report);
	if (text->room->extras) {
		put_lazy_free(text, report);
		put_huge_pages(text, report);
	}
}

void text_growth_below(struct text *text, const struct mmt_report *report)
{
	text->below = true;
	/* The memory of a command that ended is only known by its calls. */
	if (report->growth.verdict != MMT_VERDICT_UNKNOWN && report->resident_bytes == MMT_UNKNOWN &&
	    text_growth_is_of_all(report))
		text_line(text, TEXT_PLAIN,
			  "  resident pages were not recorded: the figures of stacks are committed bytes");
	text_put_measure(text, report);
	if (!text->room->extras) {
		text_put_growth_of_ended(text, report);
		put_lazy_free(text, report);
		put_huge_pages(text, report);
	}
	if (!text->room->extras || (report->growth.parts_known && !is_elsewhere(&report->growth)))
		put_growth(text, report);
	if (report->growth.verdict > MMT_VERDICT_TOO_SHORT && report->growth.floor_bytes)
		text_line(text, TEXT_PLAIN, "  noise: %s varies by %s anyway, and its rate by %s per minute",
			  text_measure(&report->growth), text_bytes(text, report->growth.floor_bytes),
			  text_bytes(text, (uint64_t)mmt_growth_rate_noise(&report->growth)));
}
