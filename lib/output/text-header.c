// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/text-header.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "output/text-checks.h"
#include "output/text-sections.h"

#define PROCESSES_NAMED 4
#define NOTE_INDENT 8 /* below its first word */

static void put_missed(struct text *text, uint64_t missed, const char *one, const char *several)
{
	char count[MMT_SIZE_TEXT];

	if (!missed)
		return;
	text_put(text, TEXT_BAD, "MISSED");
	text_format(text, TEXT_PLAIN, ": %s %s: mappings may be missing, or shown although they were freed.",
		    mmt_format_count(missed, count), text_plural(missed, one, several));
	text_end_line(text);
}

static void put_warning(struct text *text, const char *word, const char *rest)
{
	text_put(text, TEXT_BAD, word);
	text_put(text, TEXT_PLAIN, rest);
	text_end_line(text);
}

/* Why is in the line before. */
static void put_unfinished(struct text *text, const struct mmt_completeness *completeness)
{
	char count[MMT_SIZE_TEXT], duration[MMT_SIZE_TEXT];

	if (!completeness->unfinished_records)
		return;
	text_format(text, TEXT_PLAIN, "%s %s of the %s after that %s left out: others of that time are missing.",
		    mmt_format_count(completeness->unfinished_records, count),
		    text_plural(completeness->unfinished_records, "record", "records"),
		    mmt_format_duration(completeness->unfinished_ns, duration),
		    text_plural(completeness->unfinished_records, "is", "are"));
	text_end_line(text);
}

void text_warnings(struct text *text, const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;
	char count[MMT_SIZE_TEXT];

	if (completeness->incomplete)
		put_warning(text, "INCOMPLETE",
			    ": the recorder did not finish. This is the state when its last data was written.");
	if (completeness->damaged) {
		text_put(text, TEXT_BAD, "DAMAGED");
		text_put(text, TEXT_PLAIN, ": ");
		text_put_name(text, TEXT_PLAIN, completeness->damage ? completeness->damage : "bytes cannot be read",
			      0);
		text_put(text, TEXT_PLAIN, "; what follows uses what could be read");
		text_end_line(text);
	}
	put_unfinished(text, completeness);
	if (completeness->lost_events) {
		text_put(text, TEXT_BAD, "LOST");
		text_format(text, TEXT_PLAIN, ": %s %s: mappings may be missing, or shown although they were freed.",
			    mmt_format_count(completeness->lost_events, count),
			    text_plural(completeness->lost_events, "event", "events"));
		text_put(text, TEXT_PLAIN, " Record with a larger --ring-size.");
		text_end_line(text);
	}
	put_missed(text, completeness->missed_threads, "thread is not in the recording",
		   "threads are not in the recording");
	put_missed(
	    text, completeness->missed_cpus,
	    "CPU came online while recording, and what was done there at first, or all of it, is not in the recording",
	    "CPUs came online while recording, and what was done there at first, or all of it, is not in the "
	    "recording");
	put_missed(text, completeness->left_processes,
		   "process left the control group, and what it did then is not in the recording",
		   "processes left the control group, and what they did then is not in the recording");
}

static void put_processes(struct text *text, const struct mmt_report *report)
{
	char count[MMT_SIZE_TEXT];
	size_t named = report->process_count < PROCESSES_NAMED ? report->process_count : PROCESSES_NAMED;

	if (report->process_count > 1)
		text_format(text, TEXT_PLAIN, "%s processes: ", mmt_format_count(report->process_count, count));
	for (size_t i = 0; i < named; i++) {
		if (i)
			text_put(text, TEXT_PLAIN, ", ");
		text_put_process(text, &report->processes[i]);
	}
	if (named < report->process_count)
		text_put(text, TEXT_PLAIN, " ...");
	if (report->process_count)
		text_put(text, TEXT_PLAIN, ", ");
}

static void put_target(struct text *text, const struct mmt_report *report)
{
	time_t began = (time_t)(report->start_realtime_ns / 1000000000);
	uint64_t duration_ns = report->end_ns > report->start_ns ? report->end_ns - report->start_ns : 0;
	char duration[MMT_SIZE_TEXT], date[64];
	struct tm local;

	text_put_name(text, TEXT_STRONG, report->input, 0);
	text_put(text, TEXT_PLAIN, ": ");
	put_processes(text, report);
	text_put(text, TEXT_PLAIN, mmt_format_duration(duration_ns, duration));
	if (report->start_realtime_ns && localtime_r(&began, &local) &&
	    strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &local))
		text_format(text, TEXT_PLAIN, " from %s", date);
	if (*report->recorded_by && strncmp(report->recorded_by, "mmtrace", strlen("mmtrace")) != 0) {
		text_put(text, TEXT_PLAIN, ", recorded by ");
		text_put_name(text, TEXT_PLAIN, report->recorded_by, 0);
	}
	text_end_line(text);
}

static void put_events(struct text *text, const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;
	const char *separator = ": ";
	char count[MMT_SIZE_TEXT];
	uint64_t sum = 0;

	for (unsigned kind = 0; kind < MMT_COUNT_KINDS; kind++)
		sum += report->events[kind];
	text_format(text, TEXT_PLAIN, "  %s %s", mmt_format_count(sum, count), text_plural(sum, "event", "events"));
	for (unsigned kind = 0; kind < MMT_COUNT_KINDS; kind++) {
		if (!report->events[kind])
			continue;
		text_format(text, TEXT_PLAIN, "%s%s %s", separator, mmt_format_count(report->events[kind], count),
			    mmt_event_count_name(kind));
		separator = ", ";
	}
	if (report->failed_calls)
		text_format(text, TEXT_PLAIN, "; %s failed", mmt_format_count(report->failed_calls, count));
	text_put(text, TEXT_PLAIN, "; ");
	text_format(text, completeness->lost_events ? TEXT_BAD : TEXT_PLAIN, "%s lost",
		    mmt_format_count(completeness->lost_events, count));
	if (completeness->out_of_order_events)
		text_format(text, TEXT_BAD, "; %s behind younger ones: the clock jumped, or records came late",
			    mmt_format_count(completeness->out_of_order_events, count));
	if (completeness->ambiguous_events)
		text_format(text, TEXT_PLAIN, "; order of %s unsure",
			    mmt_format_count(completeness->ambiguous_events, count));
	text_end_line(text);
}

/* "; 98 truncated (90: stack dump exhausted; 8: depth limit reached)" */
static void put_truncated(struct text *text, const struct mmt_completeness *completeness)
{
	const char *separator = " (";
	char count[MMT_SIZE_TEXT];

	text_format(text, TEXT_PLAIN, "; %s truncated", mmt_format_count(completeness->truncated_stacks, count));
	for (unsigned end = 0; end < MMT_STACK_END_KINDS; end++) {
		if (!completeness->stacks_by_end[end] || mmt_stack_end_is_complete((enum mmt_stack_end)end))
			continue;
		text_put(text, TEXT_PLAIN, separator);
		if (completeness->stacks_by_end[end] != completeness->truncated_stacks)
			text_format(text, TEXT_PLAIN,
				    "%s: ", mmt_format_count(completeness->stacks_by_end[end], count));
		text_put(text, TEXT_PLAIN, mmt_stack_end_name((enum mmt_stack_end)end));
		separator = "; ";
	}
	text_put(text, TEXT_PLAIN, ")");
}

/* "; 36 of 408 frames without a name (20 in JIT code, 12 in runtime libraries)" */
static void put_unnamed(struct text *text, const struct mmt_completeness *completeness)
{
	uint64_t jit = completeness->jit_frames_without_name, runtime = completeness->runtime_frames_without_name;
	char count[MMT_SIZE_TEXT], of[MMT_SIZE_TEXT];

	text_format(text, TEXT_PLAIN, "; %s of %s frames without a name",
		    mmt_format_count(completeness->frames_without_name, count),
		    mmt_format_count(completeness->frames, of));
	if (jit)
		text_format(text, TEXT_PLAIN, " (%s in JIT code%s", mmt_format_count(jit, count), runtime ? "" : ")");
	if (runtime)
		text_format(text, TEXT_PLAIN, "%s%s in runtime libraries)", jit ? ", " : " (",
			    mmt_format_count(runtime, count));
}

static void put_stacks(struct text *text, const struct mmt_completeness *completeness)
{
	uint64_t complete = completeness->complete_stacks, doubtful = completeness->doubtful_stacks;
	uint64_t sum = complete + doubtful + completeness->truncated_stacks;
	char count[MMT_SIZE_TEXT], of[MMT_SIZE_TEXT];

	if (!sum)
		return;
	if (complete == sum)
		text_format(text, TEXT_PLAIN, sum == 1 ? "  %s call stack, complete" : "  all %s call stacks complete",
			    mmt_format_count(sum, count));
	else
		text_format(text, TEXT_PLAIN, "  %s of %s call %s complete", mmt_format_count(complete, count),
			    mmt_format_count(sum, of), text_plural(sum, "stack", "stacks"));
	if (doubtful)
		text_format(text, TEXT_PLAIN, "; %s complete with doubtful frames", mmt_format_count(doubtful, count));
	if (completeness->truncated_stacks)
		put_truncated(text, completeness);
	if (completeness->lost_stack_dumps)
		text_format(text, TEXT_PLAIN, "; %s stack %s lost",
			    mmt_format_count(completeness->lost_stack_dumps, count),
			    text_plural(completeness->lost_stack_dumps, "dump", "dumps"));
	if (completeness->lost_large_stack_dumps)
		text_format(text, TEXT_PLAIN, "; %s large %s lost",
			    mmt_format_count(completeness->lost_large_stack_dumps, count),
			    text_plural(completeness->lost_large_stack_dumps, "dump", "dumps"));
	if (completeness->large_dumps_off_ns)
		text_format(text, TEXT_PLAIN, "; large dumps off for %s",
			    mmt_format_duration(completeness->large_dumps_off_ns, count));
	if (completeness->frames_without_name)
		put_unnamed(text, completeness);
	text_end_line(text);
}

static void put_repair(struct text *text, const struct mmt_completeness *completeness)
{
	char bytes[MMT_SIZE_TEXT];

	if (!completeness->repaired_bytes)
		return;
	text_format(text, TEXT_BAD, "  repaired from the kernel's maps: %s",
		    mmt_format_bytes(completeness->repaired_bytes, bytes));
	text_put(text, TEXT_PLAIN,
		 completeness->repaired_by_loss ? ", because events were lost" : ", although no event was lost");
	text_end_line(text);
}

void text_header(struct text *text, const struct mmt_report *report, bool one_line_of_checks)
{
	put_target(text, report);
	put_events(text, report);
	put_stacks(text, &report->completeness);
	text_marks(text, report);
	text_window(text, report);
	text_choice(text, report);
	put_repair(text, &report->completeness);
	if (one_line_of_checks)
		text_checks_line(text, report);
	else
		text_checks(text, report);
	for (size_t i = 0; i < report->completeness.lack_count; i++) {
		text_put(text, TEXT_STRONG, "  note: ");
		text_put_sentence(text, TEXT_PLAIN, report->completeness.lacks[i], NOTE_INDENT);
		text_end_line(text);
	}
}
