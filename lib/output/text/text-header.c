// SPDX-License-Identifier: LGPL-2.1-or-later
/* The first lines of a text report: what was recorded, how complete it is, and the check against the kernel's maps. */
#include "output/text/text-parts.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/strings.h"

#define NOTE_INDENT 8 /* below its first word */
#define NOTES_ABOVE 3

static void put_missed(struct text *text, uint64_t missed, const char *one, const char *several)
{
	if (!missed)
		return;
	text_put(text, TEXT_BAD, "MISSED");
	text_line(text, TEXT_PLAIN, ": %s %s: mappings may be missing, or shown although they were freed.",
		  text_count(text, missed), text_plural(missed, one, several));
}

/* The line before says why. */
static void put_unfinished(struct text *text, const struct mmt_completeness *completeness)
{
	if (!completeness->unfinished_records)
		return;
	text_line(text, TEXT_PLAIN, "The last %s (%s %s) were discarded because records of other CPUs are missing.",
		  text_duration(text, completeness->unfinished_ns), text_count(text, completeness->unfinished_records),
		  text_plural(completeness->unfinished_records, "record", "records"));
}

void text_warnings(struct text *text, const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;

	if (completeness->incomplete) {
		text_put(text, TEXT_BAD, "INCOMPLETE");
		text_put(text, TEXT_PLAIN,
			 ": the recorder did not finish. The report shows the state at its last write.");
		text_end_line(text);
	}
	if (completeness->damaged) {
		text_put(text, TEXT_BAD, "DAMAGED");
		text_put(text, TEXT_PLAIN, ": ");
		text_put_name(text, TEXT_PLAIN, completeness->damage ? completeness->damage : "bytes cannot be read",
			      0);
		text_line(text, TEXT_PLAIN, "; the report uses what could be read");
	}
	put_unfinished(text, completeness);
	if (completeness->lost_events) {
		text_put(text, TEXT_BAD, "LOST");
		text_format(text, TEXT_PLAIN, ": %s %s: mappings may be missing, or shown although they were freed.",
			    text_count(text, completeness->lost_events),
			    text_plural(completeness->lost_events, "event", "events"));
		text_line(text, TEXT_PLAIN, " Record with a larger --ring-size.");
	}
	put_missed(text, completeness->missed_threads, "thread was not recorded", "threads were not recorded");
	put_missed(text, completeness->missed_cpus,
		   "CPU came online during recording, and some or all of its events are missing",
		   "CPUs came online during recording, and some or all of their events are missing");
	put_missed(text, completeness->left_processes,
		   "process left the control group, and its later calls are not in the recording",
		   "processes left the control group, and their later calls are not in the recording");
}

/* Print the source of the figures: the file, and when it was recorded. */
void text_source(struct text *text, const struct mmt_report *report)
{
	time_t began = (time_t)(report->start_realtime_ns / 1000000000);
	struct tm local;
	char date[64];

	text_put(text, TEXT_PLAIN, "  ");
	text_put_name(text, TEXT_PLAIN, report->input, 0);
	if (report->start_realtime_ns && localtime_r(&began, &local) &&
	    strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &local))
		text_format(text, TEXT_PLAIN, ", from %s", date);
	if (*report->recorded_by && !starts_with(report->recorded_by, "mmtrace")) {
		text_put(text, TEXT_PLAIN, ", recorded by ");
		text_put_name(text, TEXT_PLAIN, report->recorded_by, 0);
	}
	text_end_line(text);
}

void text_events(struct text *text, const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;
	const char *separator = ": ";
	uint64_t sum = 0;

	for (unsigned kind = 0; kind < MMT_COUNT_KINDS; kind++)
		sum += report->events[kind];
	text_format(text, TEXT_PLAIN, "  %s %s", text_count(text, sum), text_plural(sum, "event", "events"));
	for (unsigned kind = 0; kind < MMT_COUNT_KINDS; kind++) {
		if (!report->events[kind])
			continue;
		text_format(text, TEXT_PLAIN, "%s%s %s", separator, text_count(text, report->events[kind]),
			    mmt_event_count_name(kind));
		separator = ", ";
	}
	if (report->failed_calls)
		text_format(text, TEXT_PLAIN, "; %s failed", text_count(text, report->failed_calls));
	text_put(text, TEXT_PLAIN, "; ");
	text_format(text, completeness->lost_events ? TEXT_BAD : TEXT_PLAIN, "%s lost",
		    text_count(text, completeness->lost_events));
	if (completeness->out_of_order_events)
		text_format(text, TEXT_BAD, "; %s out of order: the clock jumped, or records came late",
			    text_count(text, completeness->out_of_order_events));
	if (completeness->ambiguous_events)
		text_format(text, TEXT_PLAIN, "; order of %s unknown",
			    text_count(text, completeness->ambiguous_events));
	text_end_line(text);
}

/* "; 98 truncated (90: stack dump exhausted; 8: depth limit reached)" */
static void put_truncated(struct text *text, const struct mmt_completeness *completeness)
{
	const char *separator = " (";

	text_format(text, TEXT_PLAIN, "; %s truncated", text_count(text, completeness->truncated_stacks));
	for (unsigned end = 0; end < MMT_STACK_END_KINDS; end++) {
		if (!completeness->stacks_by_end[end] || mmt_stack_end_is_complete((enum mmt_stack_end)end))
			continue;
		text_put(text, TEXT_PLAIN, separator);
		if (completeness->stacks_by_end[end] != completeness->truncated_stacks)
			text_format(text, TEXT_PLAIN, "%s: ", text_count(text, completeness->stacks_by_end[end]));
		text_put(text, TEXT_PLAIN, mmt_stack_end_name((enum mmt_stack_end)end));
		separator = "; ";
	}
	text_put(text, TEXT_PLAIN, ")");
}

/* "; 36 of 408 frames without a name (20 in JIT code, 12 in runtime libraries)" */
static void put_unnamed(struct text *text, const struct mmt_completeness *completeness)
{
	uint64_t jit = completeness->jit_frames_without_name, runtime = completeness->runtime_frames_without_name;

	text_format(text, TEXT_PLAIN, "; %s of %s frames without a name",
		    text_count(text, completeness->frames_without_name), text_count(text, completeness->frames));
	if (jit)
		text_format(text, TEXT_PLAIN, " (%s in JIT code%s", text_count(text, jit), runtime ? "" : ")");
	if (runtime)
		text_format(text, TEXT_PLAIN, "%s%s in runtime libraries)", jit ? ", " : " (",
			    text_count(text, runtime));
}

void text_stacks(struct text *text, const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;
	uint64_t complete = completeness->complete_stacks, doubtful = completeness->doubtful_stacks;
	uint64_t sum = complete + doubtful + completeness->truncated_stacks;

	if (!sum)
		return;
	if (complete == sum)
		text_format(text, TEXT_PLAIN, sum == 1 ? "  %s call stack, complete" : "  all %s call stacks complete",
			    text_count(text, sum));
	else
		text_format(text, TEXT_PLAIN, "  %s of %s call %s complete", text_count(text, complete),
			    text_count(text, sum), text_plural(sum, "stack", "stacks"));
	if (doubtful)
		text_format(text, TEXT_PLAIN, "; %s complete with doubtful frames", text_count(text, doubtful));
	if (completeness->truncated_stacks)
		put_truncated(text, completeness);
	if (completeness->lost_stack_dumps)
		text_format(text, TEXT_PLAIN, "; %s stack %s lost", text_count(text, completeness->lost_stack_dumps),
			    text_plural(completeness->lost_stack_dumps, "dump", "dumps"));
	if (completeness->lost_large_stack_dumps)
		text_format(text, TEXT_PLAIN, "; %s large %s lost",
			    text_count(text, completeness->lost_large_stack_dumps),
			    text_plural(completeness->lost_large_stack_dumps, "dump", "dumps"));
	if (completeness->large_dumps_off_ns)
		text_format(text, TEXT_PLAIN, "; large dumps off for %s",
			    text_duration(text, completeness->large_dumps_off_ns));
	if (completeness->frames_without_name)
		put_unnamed(text, completeness);
	text_end_line(text);
}

void text_reconciled(struct text *text, const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;

	if (!completeness->reconciled_bytes)
		return;
	text_format(text, TEXT_BAD, "  reconciled with the kernel's maps: %s",
		    text_bytes(text, completeness->reconciled_bytes));
	text_put(text, TEXT_PLAIN,
		 completeness->reconciled_by_loss ? ", because events were lost" : ", although no event was lost");
	text_end_line(text);
}

/* Warnings without which a reader would trust wrong figures or look for missing functions. */
static bool belongs_above(enum mmt_warning code)
{
	return code == MMT_WARNING_JIT_CODE_UNNAMED || code == MMT_WARNING_INTERPRETED_CODE_UNNAMED ||
	       code == MMT_WARNING_PRECOMPILED_CODE_UNNAMED || code == MMT_WARNING_UNRECORDED_CHILDREN ||
	       code == MMT_WARNING_NAMES_UNREAD;
}

/* The first notes on missing names and processes stand above all figures, the others below the checks. */
static void put_notes(struct text *text, const struct mmt_completeness *completeness, bool above)
{
	size_t found = 0;

	for (size_t i = 0; i < completeness->warning_count; i++) {
		bool is_above = belongs_above(completeness->warning_codes[i]) && found++ < NOTES_ABOVE;

		if (is_above != above)
			continue;
		text_put(text, TEXT_STRONG, "  note: ");
		text_put_sentence(text, TEXT_PLAIN, completeness->warnings[i], NOTE_INDENT);
	}
}

void text_header(struct text *text, const struct mmt_report *report, bool one_line_of_checks)
{
	text_verdict(text, report);
	text_refused(text, report);
	put_notes(text, &report->completeness, true);
	text_growth(text, report);
	if (!one_line_of_checks)
		text_causes(text, report);
	text_source(text, report);
	text_events(text, report);
	text_stacks(text, report);
	text_marks(text, report);
	text_window(text, report);
	text_choice(text, report);
	text_reconciled(text, report);
	if (one_line_of_checks)
		text_checks_line(text, report);
	else
		text_checks(text, report);
	put_notes(text, &report->completeness, false);
}

#define WRONG_NAMED 3

static void add_process(struct check_sum *sum, const struct mmt_process *process)
{
	sum->processes++;
	sum->mappings += process->checked ? process->checked_mappings : 0;
	sum->mismatch_bytes += process->checked ? process->mismatch_bytes : 0;
	sum->unverifiable_bytes += process->unverifiable_bytes;
	sum->unread_bytes += process->unread_bytes;
	sum->unknown_bytes += process->unknown_bytes;
}

static bool is_wrong(const struct mmt_process *process)
{
	return process->checked && process->mismatch_bytes;
}

/* Otherwise, the latest reading counts. */
static bool is_final(const struct mmt_report *report, const struct mmt_process *process)
{
	return !process->ended && !process->checked_before_exec && !report->completeness.incomplete;
}

struct checks checks_sum(const struct mmt_report *report)
{
	struct checks checks = {0};

	for (size_t i = 0; i < report->process_count; i++) {
		const struct mmt_process *process = &report->processes[i];

		if (process->checked) {
			add_process(&checks.checked, process);
			if (process->mismatch_bytes)
				add_process(&checks.wrong, process);
			else
				add_process(is_final(report, process) ? &checks.equal : &checks.earlier, process);
		} else {
			add_process(process->ended ? &checks.ended : &checks.missing, process);
		}
	}
	return checks;
}

/* The process after `previous`, ordered by mismatching bytes, then by place; NULL: no more. */
static const struct mmt_process *find_next_wrong(const struct mmt_report *report, const struct mmt_process *previous)
{
	const struct mmt_process *next = NULL;

	for (size_t i = 0; i < report->process_count; i++) {
		const struct mmt_process *process = &report->processes[i];

		if (!is_wrong(process))
			continue;
		if (previous && (process->mismatch_bytes > previous->mismatch_bytes ||
				 (process->mismatch_bytes == previous->mismatch_bytes && process <= previous)))
			continue;
		if (!next || process->mismatch_bytes > next->mismatch_bytes)
			next = process;
	}
	return next;
}

static void put_label(struct text *text, const struct mmt_report *report)
{
	text_put(text, TEXT_PLAIN, "  checked against the kernel's final ");
	text_put(text, TEXT_PLAIN, text_plural(report->process_count, "map: ", "maps: "));
}

static void put_label_of(struct text *text, const struct mmt_report *report, const struct mmt_process *process)
{
	uint64_t since_ns = process->checked_ns > report->start_ns ? process->checked_ns - report->start_ns : 0;

	if (is_final(report, process)) {
		put_label(text, report);
		return;
	}
	text_format(text, TEXT_PLAIN, "  checked against the kernel's map %s after the start",
		    text_duration(text, since_ns));
	if (process->checked_before_exec || process->ended)
		text_format(text, TEXT_PLAIN, ", %s before it %s: ", text_duration(text, process->check_age_ns),
			    process->checked_before_exec ? "executed another program" : "ended");
	else
		text_put(text, TEXT_PLAIN, ", the last one: ");
}

static uint64_t find_oldest(const struct mmt_report *report)
{
	uint64_t oldest_ns = 0;

	for (size_t i = 0; i < report->process_count; i++) {
		const struct mmt_process *process = &report->processes[i];

		if (process->checked && !is_wrong(process) && !is_final(report, process) &&
		    process->check_age_ns > oldest_ns)
			oldest_ns = process->check_age_ns;
	}
	return oldest_ns;
}

static void put_label_of_earlier(struct text *text, const struct mmt_report *report)
{
	if (report->process_count == 1) {
		put_label_of(text, report, &report->processes[0]);
		return;
	}
	if (report->completeness.incomplete)
		text_put(text, TEXT_PLAIN, "  checked against the kernel's last maps: ");
	else
		text_format(text, TEXT_PLAIN, "  checked against the kernel's maps up to %s before they ended: ",
			    text_duration(text, find_oldest(report)));
}

static void put_process_count(struct text *text, uint64_t processes, const char *end)
{
	text_format(text, TEXT_PLAIN, "%s %s%s", text_count(text, processes),
		    text_plural(processes, "process", "processes"), end);
}

static void put_mappings(struct text *text, uint64_t mappings)
{
	text_format(text, TEXT_PLAIN, "%s %s, ", text_count(text, mappings),
		    text_plural(mappings, "mapping", "mappings"));
}

static void put_off(struct text *text, uint64_t mismatch_bytes)
{
	if (mismatch_bytes)
		text_format(text, TEXT_BAD, "%s differ", text_bytes(text, mismatch_bytes));
	else
		text_put(text, TEXT_GOOD, "all match");
}

/* The snapshot during which the unverifiable bytes changed: the last one, or the first. */
static void put_unsure(struct text *text, const struct check_sum *sum)
{
	uint64_t in_flight_bytes = sum->unverifiable_bytes - sum->unread_bytes, unknown_bytes = sum->unknown_bytes;

	if (in_flight_bytes)
		text_format(text, TEXT_PLAIN, "; %s could not be verified (changed while the maps were read)",
			    text_bytes(text, in_flight_bytes));
	if (sum->unread_bytes)
		text_format(text, TEXT_PLAIN, "; %s could not be verified (moved while the first maps were read)",
			    text_bytes(text, sum->unread_bytes));
	if (unknown_bytes)
		text_format(text, TEXT_PLAIN, "; %s are missing from all readings of the maps",
			    text_bytes(text, unknown_bytes));
}

static void put_wrong(struct text *text, const struct mmt_report *report, const struct check_sum *wrong)
{
	const struct mmt_process *process = NULL;
	uint64_t rest_bytes = wrong->mismatch_bytes;

	for (int i = 0; i < WRONG_NAMED && (process = find_next_wrong(report, process)) != NULL; i++) {
		struct check_sum sum = {0};

		add_process(&sum, process);
		put_label_of(text, report, process);
		put_mappings(text, process->checked_mappings);
		put_off(text, process->mismatch_bytes);
		put_unsure(text, &sum);
		if (report->process_count > 1) {
			text_put(text, TEXT_PLAIN, ": ");
			text_put_process(text, process);
		}
		text_end_line(text);
		rest_bytes -= process->mismatch_bytes;
	}
	if (wrong->processes <= WRONG_NAMED)
		return;
	put_label(text, report);
	text_format(text, TEXT_PLAIN, "%s more %s, ", text_count(text, wrong->processes - WRONG_NAMED),
		    text_plural(wrong->processes - WRONG_NAMED, "process", "processes"));
	put_off(text, rest_bytes);
	text_end_line(text);
}

static void put_sum(struct text *text, const struct mmt_report *report, const struct check_sum *sum)
{
	if (report->process_count > 1)
		put_process_count(text, sum->processes, ", ");
	put_mappings(text, sum->mappings);
	put_off(text, sum->mismatch_bytes);
	put_unsure(text, sum);
}

/* Print one line for all processes that were not checked, if any. */
static void put_unchecked(struct text *text, const struct mmt_report *report, const struct checks *checks)
{
	const char *why = report->completeness.incomplete
			      ? "the recorder did not finish"
			      : "the recording contains no maps of the kernel to compare with";
	const struct check_sum unknown = {.unknown_bytes = checks->ended.unknown_bytes + checks->missing.unknown_bytes};

	if (!checks->ended.processes && !checks->missing.processes)
		return;
	if (report->windowed && report->to_ns < report->end_ns) {
		text_put(text, TEXT_PLAIN,
			 "  not checked: the kernel's final map shows the end of the recording, not the time of --to");
		text_end_line(text);
		return;
	}
	if (report->process_count == 1) {
		text_put(text, TEXT_PLAIN, "  not checked against the kernel's final map: ");
		text_put(text, TEXT_PLAIN,
			 checks->ended.processes ? "it ended before its map could be read again" : why);
	} else {
		text_put(text, TEXT_PLAIN, "  not checked against the kernel's final maps: ");
		if (checks->ended.processes)
			put_process_count(
			    text, checks->ended.processes,
			    text_plural(checks->ended.processes, " that ended by itself", " that ended by themselves"));
		if (checks->ended.processes && checks->missing.processes)
			text_put(text, TEXT_PLAIN, "; ");
		if (checks->missing.processes) {
			put_process_count(text, checks->missing.processes, ", as ");
			text_put(text, TEXT_PLAIN, why);
		}
	}
	put_unsure(text, &unknown);
	text_end_line(text);
}

void text_checks(struct text *text, const struct mmt_report *report)
{
	struct checks checks = checks_sum(report);

	put_wrong(text, report, &checks.wrong);
	if (checks.equal.processes) {
		put_label(text, report);
		put_sum(text, report, &checks.equal);
		text_end_line(text);
	}
	if (checks.earlier.processes) {
		put_label_of_earlier(text, report);
		put_sum(text, report, &checks.earlier);
		text_end_line(text);
	}
	put_unchecked(text, report, &checks);
}

void text_checks_line(struct text *text, const struct mmt_report *report)
{
	struct checks checks = checks_sum(report);
	uint64_t unchecked = checks.ended.processes + checks.missing.processes;

	if (!checks.checked.processes) {
		put_unchecked(text, report, &checks);
		return;
	}
	if (checks.earlier.processes == checks.checked.processes)
		put_label_of_earlier(text, report);
	else
		put_label(text, report);
	put_sum(text, report, &checks.checked);
	if (unchecked) {
		text_put(text, TEXT_PLAIN, "; ");
		put_process_count(text, unchecked, " not checked");
	}
	text_end_line(text);
}
