// SPDX-License-Identifier: LGPL-2.1-or-later
/* The sections of a text report that are printed only when they have content, such as processes, threads and steps. */
#include "output/text/text-parts.h"

#include <inttypes.h>
#include <time.h>

#include "base/figures.h"

#define FAILURES_SHOWN 3
#define PROCESSES_SHOWN 8
#define THREADS_SHOWN 20
#define RELEASES_SHOWN 10
#define THREAD_COLUMNS 24
#define THREAD_TABLE_COLUMNS 22
#define STACK_INDENT 6

static void put_patterns(struct text *text, const char *option, const char *const *patterns, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		text_put(text, TEXT_STRONG, i ? ", " : option);
		text_put_name(text, TEXT_STRONG, patterns[i], 0);
	}
	if (count)
		text_end_line(text);
}

void text_choice(struct text *text, const struct mmt_report *report)
{
	uint64_t committed = saturating_add(report->committed_bytes, report->committed_before_bytes, MMT_BYTES_MAX);
	const char *separator = "  only memory of class ";

	for (unsigned kind = 0; kind < MMT_CLASS_KINDS; kind++) {
		if (!(report->options.classes >> kind & 1))
			continue;
		text_put(text, TEXT_STRONG, separator);
		text_put(text, TEXT_STRONG, mmt_class_name((enum mmt_class)kind));
		separator = ", ";
	}
	if (report->options.classes)
		text_end_line(text);
	put_patterns(text, "  only --focus ", report->options.focus, report->options.focus_count);
	put_patterns(text, "  without --ignore ", report->options.ignore, report->options.ignore_count);
	if (report->left_out_process_count)
		text_line(text, TEXT_STRONG, "  only the %s asked for; %s left out",
			  text_plural(report->process_count, "process", "processes"),
			  text_count(text, report->left_out_process_count));
	if (report->options.classes || selection_has_patterns(report))
		text_add(text, "  selected %s of %s unfreed, %s of %s committed",
			 text_bytes(text, report->unfreed_bytes), text_bytes(text, report->unfiltered_unfreed_bytes),
			 text_bytes(text, committed), text_bytes(text, report->unfiltered_committed_bytes));
	text_end_sentence(text, TEXT_STRONG, 2);
	if (!report->options.focus_count || report->row_count ||
	    !(report->unfiltered_unfreed_bytes || report->unfiltered_committed_bytes))
		return;
	text_put(text, TEXT_BAD, "  nothing matches: ");
	text_put_sentence(text, TEXT_PLAIN,
			  "a pattern is compared with the complete name; write '*name*' to find a part of it", 2);
}

void text_window(struct text *text, const struct mmt_report *report)
{
	/* The start to another time needs no explanation. */
	if (report->windowed && report->from_ns <= report->start_ns && report->allocations_to_ns == report->to_ns)
		text_add(text, "  up to %s after the start", text_since(text, report, report->to_ns));
	else if (report->windowed)
		text_add(text, "  window: mapped from %s to %s, and still there at %s after the start",
			 text_since(text, report, report->from_ns), text_since(text, report, report->allocations_to_ns),
			 text_since(text, report, report->to_ns));
	text_end_sentence(text, TEXT_STRONG, 2);
}

void text_classes(struct text *text, const struct mmt_report *report)
{
	uint64_t sums[MMT_CLASS_KINDS] = {0};
	unsigned kinds = 0;

	for (size_t i = 0; i < report->row_count; i++)
		for (unsigned kind = 0; kind < MMT_CLASS_KINDS; kind++)
			sums[kind] += report->rows[i].class_bytes[kind];
	for (unsigned kind = 0; kind < MMT_CLASS_KINDS; kind++)
		kinds += sums[kind] > 0;
	if (kinds < 2)
		return;
	text_put(text, TEXT_PLAIN, "by class:");
	for (unsigned kind = 0; kind < MMT_CLASS_KINDS; kind++)
		if (sums[kind])
			text_part(text, TEXT_PLAIN, "%s %s", mmt_class_name((enum mmt_class)kind),
				  text_bytes(text, sums[kind]));
	text_end_line(text);
}

static bool rank_process(const struct mmt_report *report, const struct mmt_process *process, int64_t *rank_ret)
{
	*rank_ret = report->resident_reading_count ? mmt_process_growth(process) : (int64_t)process->unfreed_bytes;
	return true;
}

void text_processes(struct text *text, const struct mmt_report *report)
{
	const struct mmt_process *process = NULL;
	uint64_t rest_bytes = 0;

	if (report->process_count < 2)
		return;
	text_end_line(text);
	text_put(text, TEXT_STRONG, "  process");
	text_pad_to(text, THREAD_COLUMNS);
	if (report->resident_reading_count)
		text_format(text, TEXT_STRONG, "%13s%12s", report->growth.by_pss ? "own growth" : "growth",
			    "RSS at end");
	text_line(text, TEXT_STRONG, "%12s%12s", "unfreed", "before");
	for (size_t i = 0; i < report->process_count; i++)
		rest_bytes += report->processes[i].unfreed_bytes;
	/* A child has inherited what it did not map itself. */
	for (int i = 0; i < PROCESSES_SHOWN && (process = text_next_process(report, process, rank_process)); i++) {
		const struct mmt_process_readings *readings = process->readings;

		text_put(text, TEXT_PLAIN, "  ");
		text_put_name(text, TEXT_PLAIN, process->name ? process->name : "", 0);
		text_format(text, TEXT_PLAIN, " (%" PRId32 ")", process->pid);
		text_pad_to(text, THREAD_COLUMNS);
		if (report->resident_reading_count)
			text_format(text, TEXT_PLAIN, "%13s%12s",
				    readings ? text_change(text, mmt_process_growth(process)) : "-",
				    readings ? text_bytes(text, readings->end_resident_bytes) : "-");
		text_format(text, TEXT_PLAIN, "%12s%12s", text_bytes(text, process->unfreed_bytes),
			    text_bytes(text, process->before_bytes));
		if (process->parent_pid)
			text_add(text, "  child of %" PRId32, process->parent_pid);
		if (process->container_pid && process->container_pid != process->pid)
			text_add(text, "%s%" PRId32 " in its container", text_has_sentence(text) ? ", " : "  ",
				 process->container_pid);
		if (process->ended)
			text_add(text, text_has_sentence(text) ? ", ended" : "  ended");
		if (process->ended && readings)
			text_add(text, ", last read at %s", text_since(text, report, readings->end_ns));
		if (text_has_sentence(text))
			text_end_sentence(text, TEXT_PLAIN, THREAD_COLUMNS);
		else
			text_end_line(text);
		rest_bytes -= process->unfreed_bytes;
	}
	if (report->process_count <= PROCESSES_SHOWN)
		return;
	text_line(text, TEXT_PLAIN, "  and %s more with %s (--json has all)",
		  text_count(text, report->process_count - PROCESSES_SHOWN), text_bytes(text, rest_bytes));
}

static void put_thread(struct text *text, const struct mmt_thread *thread)
{
	text_put_name(text, TEXT_PLAIN, thread->name ? thread->name : "", 0);
	text_format(text, TEXT_PLAIN, " (%" PRId32 ")", thread->tid);
}

void text_threads(struct text *text, const struct mmt_report *report)
{
	size_t shown = smaller_of(report->thread_total_count, THREADS_SHOWN);
	size_t releases = smaller_of(report->release_count, RELEASES_SHOWN);

	text_end_line(text);
	text_put(text, TEXT_STRONG, "  thread");
	text_pad_to(text, THREAD_TABLE_COLUMNS);
	text_line(text, TEXT_STRONG, "  %9s  %9s  %9s  %9s  %9s", "unfreed", "mapped", "freed own", "by others",
		  "released");
	array_each(total, report->thread_totals, shown) {
		text_put(text, TEXT_PLAIN, "  ");
		put_thread(text, &total->thread);
		text_pad_to(text, THREAD_TABLE_COLUMNS);
		text_line(text, TEXT_PLAIN, "  %9s  %9s  %9s  %9s  %9s", text_bytes(text, total->unfreed_bytes),
			  text_bytes(text, total->allocated_bytes), text_bytes(text, total->freed_by_itself_bytes),
			  text_bytes(text, total->freed_by_others_bytes), text_bytes(text, total->released_bytes));
	}
	if (shown < report->thread_total_count)
		text_line(text, TEXT_PLAIN, "  and %zu more threads", report->thread_total_count - shown);
	if (releases)
		text_end_line(text);
	array_each(release, report->releases, releases) {
		text_format(text, TEXT_PLAIN, "  %10s  mapped by ", text_bytes(text, release->bytes));
		put_thread(text, &report->thread_totals[release->owner].thread);
		text_put(text, TEXT_PLAIN, ", released by ");
		if (release->owner == release->releaser)
			text_put(text, TEXT_PLAIN, "itself");
		else
			put_thread(text, &report->thread_totals[release->releaser].thread);
		text_end_line(text);
	}
	if (releases < report->release_count)
		text_line(text, TEXT_PLAIN, "  and %zu more pairs of threads", report->release_count - releases);
}

/* "ENOMEM", or the number of an error without a name. */
static void add_error(struct text *text, int error)
{
	const char *name = strerrorname_np(error);

	if (name)
		text_add(text, "%s", name);
	else
		text_add(text, "error %d", error);
}

/* How the sentence about a limit begins, and how it goes on behind "USED of LIMIT". */
static const struct {
	const char *begin, *end;
} limit_words[MMT_LIMIT_KINDS] = {
    [MMT_LIMIT_MAPPINGS] = {"The limit of mappings is met: ",
			    " (vm.max_map_count). Look for mappings that are not unmapped, or that mprotect or madvise "
			    "split; `sysctl vm.max_map_count=N` raises the limit."},
    [MMT_LIMIT_ADDRESS_SPACE] = {"The limit of address space is met: ", " mapped (RLIMIT_AS, `ulimit -v`)."},
    [MMT_LIMIT_DATA] = {"The limit of data is met: ", " of private writable memory (RLIMIT_DATA, `ulimit -d`)."},
    [MMT_LIMIT_LOCKED] = {"The limit of locked memory is met: ", " locked (RLIMIT_MEMLOCK, `ulimit -l`)."},
    [MMT_LIMIT_COMMIT] = {"This system commits no more memory: ",
			  " committed at most (Committed_AS of CommitLimit; vm.overcommit_memory is 2)."},
    [MMT_LIMIT_MEMORY] = {"The call asked for more than RAM and swap together: ",
			  ", which vm.overcommit_memory 0 does not allow."},
    [MMT_LIMIT_HUGE_PAGES] = {"The pool of huge pages is too small: ",
			      " in use (HugePages_Total); `sysctl vm.nr_hugepages=N` enlarges it. A control group may "
			      "limit it further (hugetlb.*.max)."},
};

void text_refused(struct text *text, const struct mmt_report *report)
{
	const struct mmt_failure *failure =
	    array_find(failed, report->failures, report->failure_count, failed->refused);
	const struct mmt_limit *limit;
	bool counts;

	if (!failure)
		return;
	text->indent = 0;
	text_put(text, TEXT_BAD, "FAILED:");
	text_add(text, " %s x %s ", text_count(text, failure->count), mmt_event_count_name(failure->call));
	add_error(text, failure->error);
	if (failure->asked_bytes)
		text_add(text, " for %s%s", text_bytes(text, failure->asked_bytes / failure->count),
			 failure->count > 1 ? " on average" : "");
	text_add(text, ", first %s after the start", text_since(text, report, failure->first_ns));
	if (failure->origin < failure->frame_count && failure->frames[failure->origin]->function)
		text_add(text, ", in %s", failure->frames[failure->origin]->function);
	text_end_sentence(text, TEXT_PLAIN, 2);
	limit = &failure->limit;
	counts = limit->kind == MMT_LIMIT_MAPPINGS;
	if (!limit->kind)
		text_add(text, "  Compare the limits in /proc/PID/limits, and CommitLimit and HugePages_Free in "
			       "/proc/meminfo; that of a control group makes no call fail.");
	else if (limit->kind == MMT_LIMIT_MEMORY)
		text_add(text, "  %s%s%s", limit_words[limit->kind].begin, text_bytes(text, limit->value),
			 limit_words[limit->kind].end);
	else
		text_add(text, "  %s%s of %s%s", limit_words[limit->kind].begin,
			 counts ? text_count(text, limit->used) : text_bytes(text, limit->used),
			 counts ? text_count(text, limit->value) : text_bytes(text, limit->value),
			 limit_words[limit->kind].end);
	text_end_sentence(text, TEXT_PLAIN, 2);
}

#define TOUCHERS_SHOWN 3 /* of each part */

void text_touchers(struct text *text, const struct mmt_report *report, struct text_stack_marks *marks)
{
	const struct mmt_growth_part *first = text_first_touched(text, report);
	size_t count = report->by == MMT_BY_TOUCH ? 0 : report->growth.part_count;

	array_each(part, report->growth.parts, count) {
		for (size_t k = 0; k < part->toucher_count && k < TOUCHERS_SHOWN; k++) {
			const struct mmt_toucher *toucher = &part->touchers[k];
			struct mmt_row stack = {FIGURES_STACK(toucher)};
			bool is_first = part == first && !k, complete = text_stack_is_complete(text, &stack);

			if (toucher->bytes < TEXT_TOUCHER_BYTES_MIN || !text_knows_toucher(toucher))
				break;
			/* The first one stands below, too, if something of it was left out. */
			if (text->below ? is_first && complete : !is_first)
				continue;
			text_end_line(text);
			text_add(text, "touched: ");
			text_add_touched(text, toucher);
			text_add(text, " of %s%s", text_bytes(text, magnitude_of(part->bytes)),
				 part->place == MMT_GROWTH_BEFORE
				     ? " in "
				     : " in programs and stacks, which the kernel mapped itself");
			if (part->place == MMT_GROWTH_BEFORE) {
				text_add_kind(text, part);
				text_add(text, ", mapped before");
			}
			text_end_sentence(text, TEXT_STRONG, STACK_INDENT);
			text_stack(text, &stack, NULL, STACK_INDENT, marks);
		}
	}
}

void text_failures(struct text *text, const struct mmt_report *report, struct text_stack_marks *marks)
{
	size_t shown = smaller_of(report->failure_count, FAILURES_SHOWN);

	array_each(failure, report->failures, shown) {
		struct mmt_row stack = {FIGURES_STACK(failure)};

		text_end_line(text);
		text_format(text, TEXT_STRONG, "failed calls: %s x %s ", text_count(text, failure->count),
			    mmt_event_count_name(failure->call));
		add_error(text, failure->error);
		if (failure->asked_bytes)
			text_add(text, ", asked for %s", text_bytes(text, failure->asked_bytes));
		text_end_sentence(text, TEXT_PLAIN, STACK_INDENT);
		text_stack(text, &stack, NULL, STACK_INDENT, marks);
	}
	if (shown < report->failure_count) {
		text_end_line(text);
		text_line(text, TEXT_PLAIN, "and %zu more %s of failed calls (--json has all)",
			  report->failure_count - shown, text_plural(report->failure_count - shown, "kind", "kinds"));
	}
}

#define COLUMN 12
#define ROWS_MAX 5 /* in separate columns */
#define NS_PER_SECOND UINT64_C(1000000000)
#define DIGITS_MAX 9

/* The start of a line of the table. */
struct step_time {
	char elapsed[32]; /* since the start of the recording */
	char clock[16];	  /* local time of day; "": not known */
};

struct table {
	const struct mmt_report *report;
	unsigned digits; /* of a second, enough to distinguish the steps */
	bool clock, rss, heap;
};

static void format_fraction(char *text, size_t size, uint64_t ns, unsigned digits)
{
	uint64_t fraction = ns % NS_PER_SECOND;

	for (unsigned i = digits; i < DIGITS_MAX; i++)
		fraction /= 10;
	if (digits)
		snprintf(text, size, ".%0*" PRIu64, (int)digits, fraction);
	else
		*text = '\0';
}

/* Times of the day have at most milliseconds. */
static struct step_time find_step_time(const struct table *table, uint64_t ns)
{
	const struct mmt_report *report = table->report;
	uint64_t since_ns = ns > report->start_ns ? ns - report->start_ns : 0;
	uint64_t realtime_ns = report->start_realtime_ns + since_ns;
	time_t seconds = (time_t)(realtime_ns / NS_PER_SECOND);
	struct step_time time = {0};
	char fraction[DIGITS_MAX + 2];
	struct tm local;
	size_t length;

	format_fraction(fraction, sizeof(fraction), since_ns, table->digits);
	snprintf(time.elapsed, sizeof(time.elapsed), "%" PRIu64 "%s s", since_ns / NS_PER_SECOND, fraction);
	if (!report->start_realtime_ns || !localtime_r(&seconds, &local))
		return time;
	length = strftime(time.clock, sizeof(time.clock), "%H:%M:%S", &local);
	format_fraction(fraction, sizeof(fraction), realtime_ns, table->digits < 3 ? table->digits : 3);
	snprintf(time.clock + length, sizeof(time.clock) - length, "%s", fraction);
	return time;
}

static void put_cell(struct text *text, uint64_t bytes)
{
	text_format(text, TEXT_PLAIN, "%*s", COLUMN, bytes == MMT_UNKNOWN ? "-" : text_bytes(text, bytes));
}

static void put_heads(struct text *text, const struct table *table, const struct selection *selection, size_t row_count)
{
	text_format(text, TEXT_FAINT, "%*s", COLUMN, "after");
	if (table->clock)
		text_format(text, TEXT_FAINT, "%*s", COLUMN + 2, "time");
	if (table->rss)
		text_format(text, TEXT_FAINT, "%*s", COLUMN, "RSS");
	if (table->heap)
		text_format(text, TEXT_FAINT, "%*s", COLUMN, "heap in use");
	text_format(text, TEXT_FAINT, "%*s%*s", COLUMN, "committed", COLUMN, "unfreed");
	for (size_t i = 0; i < row_count; i++) {
		char head[16];

		snprintf(head, sizeof(head), "#%" PRIu32, selection->rows[i]->id);
		text_format(text, TEXT_FAINT, "%*s", COLUMN, head);
	}
	text_end_line(text);
}

void text_steps(struct text *text, const struct mmt_report *report, const struct selection *selection)
{
	struct table table = {.report = report, .clock = report->start_realtime_ns != 0};
	size_t row_count = 0, columns, width = text->options->width;
	struct step_time time, next;

	if (!report->step_count || !report->every_ns)
		return;
	for (uint64_t unit_ns = NS_PER_SECOND; table.digits < DIGITS_MAX && report->every_ns % unit_ns; unit_ns /= 10)
		table.digits++;
	table.rss = array_find(step, report->steps, report->step_count, step->process_resident_bytes != MMT_UNKNOWN);
	table.heap = array_find(step, report->steps, report->step_count, step->heap_in_use_bytes != MMT_UNKNOWN);
	/* The rows that fit on the terminal. */
	columns = 3 + (table.clock ? 2 : 0) + table.rss + table.heap;
	while (row_count < selection->count && row_count < ROWS_MAX && selection->rows[row_count]->step_count &&
	       (!width || (columns + row_count + 1) * COLUMN <= width))
		row_count++;
	text->indent = 0;
	text_end_line(text);
	put_heads(text, &table, selection, row_count);
	for (size_t i = 0; i < report->step_count; i++) {
		const struct mmt_step *step = &report->steps[i];

		time = find_step_time(&table, step->to_ns);
		/* The end follows a full step so closely that both show the same time: its line stands for both. */
		if (i + 2 == report->step_count) {
			next = find_step_time(&table, step[1].to_ns);
			if (!strcmp(time.elapsed, next.elapsed))
				continue;
		}
		text_format(text, TEXT_PLAIN, "%*s", COLUMN, time.elapsed);
		if (table.clock)
			text_format(text, TEXT_PLAIN, "%*s", COLUMN + 2, time.clock);
		if (table.rss)
			put_cell(text, step->process_resident_bytes);
		if (table.heap)
			put_cell(text, step->heap_in_use_bytes);
		put_cell(text, step->committed_bytes);
		put_cell(text, step->unfreed_bytes);
		for (size_t j = 0; j < row_count; j++)
			put_cell(text, selection->rows[j]->step_bytes[i]);
		text_end_line(text);
	}
	if (!report->completeness.lost_events)
		return;
	text_put(text, TEXT_FAINT,
		 "events were lost: steps lack corrections from the end of the recording, so --to may differ");
	text_end_line(text);
}
