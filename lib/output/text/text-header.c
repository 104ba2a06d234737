// SPDX-License-Identifier: LGPL-2.1-or-later
/* What was recorded, how complete it is, and the check against the kernel's maps: above the figures or below them. */
#include "output/text/text-parts.h"

#include <time.h>

#include "base/strings.h"

#define NOTE_INDENT 8 /* below its first word */

/* The sentence, behind a word that nobody overlooks. */
#define put_warning(text, word, ...)                                                                                   \
	(text_put(text, TEXT_BAD, word), text_sentence(text, TEXT_PLAIN, TEXT_INDENT, __VA_ARGS__))

static void put_missed(struct text *text, uint64_t missed, const char *one, const char *several)
{
	if (missed)
		put_warning(text, "MISSED", ": %s: mappings may be missing, or shown although they were freed.",
			    text_counted(text, missed, one, several));
}

void text_warnings(struct text *text, const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;

	if (completeness->incomplete && !completeness->truncated && !text->options->in_progress)
		put_warning(text, "INCOMPLETE",
			    ": the recorder did not finish. The report shows the state at its last write.");
	if (completeness->damaged)
		put_warning(text, "DAMAGED", ": %s; the report uses what could be read",
			    completeness->damage ? completeness->damage : "bytes cannot be read");
	/* The line before says why. */
	if (completeness->unfinished_records && !text->options->in_progress)
		text_add(text, "The last %s (%s) were discarded because records of other CPUs are missing.",
			 text_duration(text, completeness->unfinished_ns),
			 text_counted(text, completeness->unfinished_records, "record", "records"));
	text_end_sentence(text, TEXT_PLAIN, TEXT_INDENT);
	if (completeness->lost_events)
		put_warning(text, "LOST",
			    ": %s: mappings may be missing, or shown although they were freed. Record with a larger "
			    "--ring-size.",
			    text_counted(text, completeness->lost_events, "event", "events"));
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

	text_add(text, "  %s", report->input);
	if (report->start_realtime_ns && localtime_r(&began, &local) &&
	    strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &local))
		text_add(text, ", from %s", date);
	if (*report->recorded_by && !starts_with(report->recorded_by, "mmtrace"))
		text_add(text, ", recorded by %s", report->recorded_by);
	text_end_sentence(text, TEXT_PLAIN, 2 * TEXT_INDENT);
}

void text_events(struct text *text, const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;
	uint64_t sum = mmt_event_count_sum(report->events);
	const char *separator = ": ";

	text_add(text, "  %s", text_counted(text, sum, "event", "events"));
	for (unsigned kind = 0; kind < MMT_COUNT_KINDS; kind++) {
		if (!report->events[kind])
			continue;
		text_add(text, "%s%s %s", separator, text_count(text, report->events[kind]),
			 mmt_event_count_name(kind));
		separator = ", ";
	}
	if (report->failed_calls)
		text_add(text, "; %s failed", text_count(text, report->failed_calls));
	text_add(text, "; %s lost", text_count(text, completeness->lost_events));
	if (completeness->out_of_order_events)
		text_add(text, "; %s out of order: the clock jumped, or records came late",
			 text_count(text, completeness->out_of_order_events));
	if (completeness->ambiguous_events)
		text_add(text, "; %s may have happened in another order",
			 text_count(text, completeness->ambiguous_events));
	if (completeness->lost_faults)
		text_add(text, "; up to %s%s lost: who touched memory is less exact",
			 text_counted(text, completeness->lost_faults, "page fault", "page faults"),
			 report->stalls ? " of any process" : "");
	text_end_sentence(text, completeness->out_of_order_events ? TEXT_BAD : TEXT_PLAIN, 2 * TEXT_INDENT);
}

static uint64_t count_stacks(const struct mmt_completeness *completeness)
{
	return completeness->complete_stacks + completeness->doubtful_stacks + completeness->truncated_stacks;
}

/* Add nothing if there are none. */
static void add_stacks(struct text *text, const struct mmt_completeness *completeness, const char *before)
{
	uint64_t complete = completeness->complete_stacks, sum = count_stacks(completeness);

	if (!sum)
		return;
	if (complete == sum)
		text_add(text, sum == 1 ? "%s%s call stack, complete" : "%sall %s call stacks complete", before,
			 text_count(text, sum));
	else
		text_add(text, "%s%s of %s call %s complete", before, text_count(text, complete), text_count(text, sum),
			 text_plural(sum, "stack", "stacks"));
}

void text_stacks(struct text *text, const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;
	uint64_t jit = completeness->jit_frames_without_name, runtime = completeness->runtime_frames_without_name;
	const char *separator = " (";

	if (!count_stacks(completeness))
		return;
	add_stacks(text, completeness, "  ");
	if (completeness->doubtful_stacks)
		text_add(text, "; %s complete with doubtful frames", text_count(text, completeness->doubtful_stacks));
	/* "; 98 truncated (90: stack dump exhausted; 8: depth limit reached)" */
	if (completeness->truncated_stacks)
		text_add(text, "; %s truncated", text_count(text, completeness->truncated_stacks));
	for (enum mmt_stack_end end = 0; completeness->truncated_stacks && end < MMT_STACK_END_KINDS; end++) {
		if (!completeness->stacks_by_end[end] || mmt_stack_end_is_complete(end))
			continue;
		text_add(text, "%s", separator);
		if (completeness->stacks_by_end[end] != completeness->truncated_stacks)
			text_add(text, "%s: ", text_count(text, completeness->stacks_by_end[end]));
		text_add(text, "%s", mmt_stack_end_name(end));
		separator = "; ";
	}
	text_add(text, completeness->truncated_stacks ? ")" : "");
	if (completeness->lost_stack_dumps)
		text_add(text, "; %s lost",
			 text_counted(text, completeness->lost_stack_dumps, "stack dump", "stack dumps"));
	if (completeness->lost_large_stack_dumps)
		text_add(text, "; %s lost",
			 text_counted(text, completeness->lost_large_stack_dumps, "large dump", "large dumps"));
	if (completeness->large_dumps_off_ns)
		text_add(text, "; large dumps off for %s", text_duration(text, completeness->large_dumps_off_ns));
	/* "; 36 of 408 frames without a name (20 in JIT code, 12 in runtime libraries)" */
	if (completeness->frames_without_name)
		text_add(text, "; %s of %s frames without a name", text_count(text, completeness->frames_without_name),
			 text_count(text, completeness->frames));
	if (completeness->frames_without_name && jit)
		text_add(text, " (%s in JIT code%s", text_count(text, jit), runtime ? "" : ")");
	if (completeness->frames_without_name && runtime)
		text_add(text, "%s%s in runtime libraries)", jit ? ", " : " (", text_count(text, runtime));
	text_end_sentence(text, TEXT_PLAIN, 2 * TEXT_INDENT);
}

void text_reconciled(struct text *text, const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;

	if (!completeness->reconciled_bytes)
		return;
	text_line(text, TEXT_BAD, "  reconciled with the kernel's maps: %s%s",
		  text_bytes(text, completeness->reconciled_bytes),
		  completeness->reconciled_by_loss ? ", because events were lost" : ", although no event was lost");
}

/* The comparison with the kernel's maps, in a few lines for any number of processes. */

#define WRONG_NAMED 3

static void add_process(struct check_sum *sum, const struct mmt_process *process)
{
	sum->processes++;
	sum->mappings += process->checked ? process->checked_mappings : 0;
	sum->mismatch_bytes += process->checked ? process->mismatch_bytes : 0;
	sum->unverifiable_bytes += process->unverifiable_bytes;
	sum->unread_bytes += process->unread_bytes;
	sum->unknown_bytes += process->unknown_bytes;
	sum->oldest_ns = larger_of(process->check_age_ns, sum->oldest_ns);
}

/* Otherwise, the latest reading counts. */
static bool is_final(const struct mmt_report *report, const struct mmt_process *process)
{
	return !process->ended && !process->checked_before_exec && !report->completeness.incomplete;
}

struct checks checks_sum(const struct mmt_report *report)
{
	struct checks checks = {0};

	array_each(process, report->processes, report->process_count) {
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

static bool rank_wrong(const struct mmt_report *report, const struct mmt_process *process, int64_t *rank_ret)
{
	(void)report;
	*rank_ret = (int64_t)process->mismatch_bytes;
	return process->checked && process->mismatch_bytes;
}

static void add_label(struct text *text, const struct mmt_report *report)
{
	text_add(text, "  checked against the kernel's final %s",
		 text_plural(report->process_count, "map: ", "maps: "));
}

static void add_label_of(struct text *text, const struct mmt_report *report, const struct mmt_process *process)
{
	if (is_final(report, process)) {
		add_label(text, report);
		return;
	}
	text_add(text, "  checked against the kernel's map %s after the start",
		 text_since(text, report, process->checked_ns));
	if (process->checked_before_exec || process->ended)
		text_add(text, ", %s before it %s: ", text_duration(text, process->check_age_ns),
			 process->checked_before_exec ? "executed another program" : "ended");
	else
		text_add(text, ", the last one: ");
}

/* The snapshot during which the unverifiable bytes changed: the last one, or the first. */
static void add_unsure(struct text *text, const struct check_sum *sum)
{
	uint64_t in_flight_bytes = sum->unverifiable_bytes - sum->unread_bytes;

	if (in_flight_bytes)
		text_add(text, "; %s could not be verified (changed while the maps were read)",
			 text_bytes(text, in_flight_bytes));
	if (sum->unread_bytes)
		text_add(text, "; %s could not be verified (moved while the first maps were read)",
			 text_bytes(text, sum->unread_bytes));
	if (sum->unknown_bytes)
		text_add(text, "; %s are missing from all readings of the maps", text_bytes(text, sum->unknown_bytes));
}

static void add_sum(struct text *text, const struct check_sum *sum, bool several)
{
	if (several)
		text_add(text, "%s, ", text_counted(text, sum->processes, "process", "processes"));
	text_add(text, "%s, ", text_counted(text, sum->mappings, "mapping", "mappings"));
	if (sum->mismatch_bytes)
		text_add(text, "%s differ", text_bytes(text, sum->mismatch_bytes));
	else
		text_add(text, "all match");
	add_unsure(text, sum);
}

/* Print one line for all processes that were not checked, if any. */
static void put_unchecked(struct text *text, const struct mmt_report *report, const struct checks *checks)
{
	const char *why = text->options->in_progress	   ? "the recorder still runs"
			  : report->completeness.truncated ? "the file was truncated"
			  : report->completeness.incomplete
			      ? "the recorder did not finish"
			      : "the recording contains no maps of the kernel to compare with";
	const struct check_sum unknown = {.unknown_bytes = checks->ended.unknown_bytes + checks->missing.unknown_bytes};

	if (!checks->ended.processes && !checks->missing.processes)
		return;
	if (report->windowed && report->to_ns < report->end_ns) {
		text_add(text,
			 "  not checked: the kernel's final map shows the end of the recording, not the time of --to");
	} else if (report->process_count == 1) {
		text_add(text, "  not checked against the kernel's final map: %s",
			 checks->ended.processes ? "it ended before its map could be read again" : why);
		add_unsure(text, &unknown);
	} else {
		text_add(text, "  not checked against the kernel's final maps: ");
		if (checks->ended.processes)
			text_add(text, "%s",
				 text_counted(text, checks->ended.processes, "process that ended by itself",
					      "processes that ended by themselves"));
		if (checks->ended.processes && checks->missing.processes)
			text_add(text, "; ");
		if (checks->missing.processes)
			text_add(text, "%s, as %s",
				 text_counted(text, checks->missing.processes, "process", "processes"), why);
		add_unsure(text, &unknown);
	}
	text_end_sentence(text, TEXT_PLAIN, 2 * TEXT_INDENT);
}

void text_checks(struct text *text, const struct mmt_report *report)
{
	struct checks checks = checks_sum(report);
	uint64_t rest_bytes = checks.wrong.mismatch_bytes, rest;
	const struct mmt_process *process = NULL;

	for (int i = 0; i < WRONG_NAMED && (process = text_next_process(report, process, rank_wrong)) != NULL; i++) {
		struct check_sum sum = {0};

		add_process(&sum, process);
		add_label_of(text, report, process);
		add_sum(text, &sum, false);
		if (report->process_count > 1) {
			text_add(text, ": ");
			text_add_process(text, process);
		}
		text_end_sentence(text, TEXT_BAD, 2 * TEXT_INDENT);
		rest_bytes -= process->mismatch_bytes;
	}
	if (checks.wrong.processes > WRONG_NAMED) {
		rest = checks.wrong.processes - WRONG_NAMED;
		add_label(text, report);
		text_line(text, TEXT_BAD, "%s more %s, %s differ", text_count(text, rest),
			  text_plural(rest, "process", "processes"), text_bytes(text, rest_bytes));
	}
	if (checks.equal.processes) {
		add_label(text, report);
		add_sum(text, &checks.equal, report->process_count > 1);
		text_end_sentence(text, TEXT_PLAIN, 2 * TEXT_INDENT);
	}
	if (checks.earlier.processes) {
		if (report->process_count == 1)
			add_label_of(text, report, &report->processes[0]);
		else if (report->completeness.incomplete)
			text_add(text, "  checked against the kernel's last maps: ");
		else
			text_add(text, "  checked against the kernel's maps up to %s before they ended: ",
				 text_duration(text, checks.earlier.oldest_ns));
		add_sum(text, &checks.earlier, report->process_count > 1);
		text_end_sentence(text, TEXT_PLAIN, 2 * TEXT_INDENT);
	}
	put_unchecked(text, report, &checks);
}

/* Warnings without which a reader would trust wrong figures or look for missing functions. */
static bool belongs_above(enum mmt_warning code)
{
	return code == MMT_WARNING_JIT_CODE_UNNAMED || code == MMT_WARNING_INTERPRETED_CODE_UNNAMED ||
	       code == MMT_WARNING_PRECOMPILED_CODE_UNNAMED || code == MMT_WARNING_UNRECORDED_CHILDREN ||
	       code == MMT_WARNING_NAMES_UNREAD || code == MMT_WARNING_STACKS_END_IN_JIT_CODE;
}

/* Whether two notes differ only in what they are about, such as processes of one runtime: "what: why". */
static bool are_alike(const struct mmt_completeness *completeness, size_t left, size_t right)
{
	const char *a = strstr(completeness->warnings[left], ": "), *b = strstr(completeness->warnings[right], ": ");

	return belongs_above(completeness->warning_codes[left]) == belongs_above(completeness->warning_codes[right]) &&
	       a && b && !strcmp(a, b);
}

/* Notes that are alike are one: it names the first of each of two kinds, and counts the others. */
static void put_note(struct text *text, const struct mmt_completeness *completeness, size_t place)
{
	const char *note = completeness->warnings[place], *why = strstr(note, ": ");
	bool two_kinds = false;
	size_t more = 0;

	text_put(text, TEXT_STRONG, "  note: ");
	text_add(text, "%.*s", why ? (int)(why - note) : (int)strlen(note), note);
	for (size_t i = place + 1; i < completeness->warning_count; i++) {
		const char *other = completeness->warnings[i];

		if (!are_alike(completeness, place, i))
			continue;
		if (!two_kinds && completeness->warning_codes[i] != completeness->warning_codes[place]) {
			text_add(text, "; %.*s", (int)(strstr(other, ": ") - other), other);
			two_kinds = true;
		} else {
			more++;
		}
	}
	if (more)
		text_add(text, ", and %zu more", more);
	text_sentence(text, TEXT_PLAIN, NOTE_INDENT, "%s", why ? why : "");
}

/* Notes on missing names or processes stand above the figures, the others below the checks. */
static void put_notes(struct text *text, const struct mmt_completeness *completeness, bool above)
{
	size_t found = 0;

	for (size_t i = 0; i < completeness->warning_count; i++) {
		size_t alike = 0;

		while (alike < i && !are_alike(completeness, alike, i))
			alike++;
		/* The first of those that are alike stands for all. */
		if (alike < i)
			continue;
		if ((belongs_above(completeness->warning_codes[i]) && found++ < text->room->notes) == above)
			put_note(text, completeness, i);
	}
}

void text_summary(struct text *text, const struct mmt_report *report)
{
	text_warnings(text, report);
	text_verdict(text, report);
	text_window(text, report);
	text_choice(text, report);
	text_refused(text, report);
	put_notes(text, &report->completeness, true);
	text_growth_above(text, report);
}

void text_details(struct text *text, const struct mmt_report *report)
{
	text_growth_below(text, report);
	text_source(text, report);
	text_events(text, report);
	text_stacks(text, report);
	text_reconciled(text, report);
	text_checks(text, report);
	put_notes(text, &report->completeness, false);
}

bool text_figures_are_sound(const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;

	return !completeness->incomplete && !completeness->damaged && !completeness->lost_events &&
	       !completeness->missed_threads && !completeness->missed_cpus && !completeness->left_processes &&
	       !completeness->out_of_order_events && !completeness->reconciled_bytes &&
	       !checks_sum(report).wrong.processes;
}

bool text_is_sound(const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;

	return text_figures_are_sound(report) &&
	       completeness->truncated_stacks + completeness->doubtful_stacks <= count_stacks(completeness) / 2;
}

/* How reliable the report is, in one sentence. */
void text_trust(struct text *text, const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;
	struct checks checks = checks_sum(report);
	uint64_t unchecked = checks.ended.processes + checks.missing.processes;
	uint64_t event_count = mmt_event_count_sum(report->events);

	text_put(text, text_is_sound(report) ? TEXT_GOOD : TEXT_BAD, "trust:");
	text_add(text, " %s%s, %s lost", text_counted(text, event_count, "event", "events"),
		 event_count ? "" : " (touching memory needs no call)",
		 text_count(text, completeness->lost_events));
	add_stacks(text, completeness, "; ");
	if (completeness->doubtful_stacks)
		text_add(text, ", %s doubtful", text_count(text, completeness->doubtful_stacks));
	if (checks.wrong.processes)
		text_add(text, "; %s differ from the kernel's maps", text_bytes(text, checks.wrong.mismatch_bytes));
	else if (checks.equal.processes)
		text_add(text, "; %s",
			 report->process_count == 1
			     ? "final map matches"
			     : text_counted(text, checks.equal.processes, "final map matches", "final maps match"));
	else
		text_add(text, checks.earlier.processes ? "; last map matches" : "; not checked against a map");
	if (checks.checked.unverifiable_bytes)
		text_add(text, "; %s not verified", text_bytes(text, checks.checked.unverifiable_bytes));
	if (unchecked && checks.checked.processes)
		text_add(text, "; %s not checked", text_counted(text, unchecked, "process", "processes"));
	if (completeness->reconciled_bytes)
		text_add(text, "; %s reconciled", text_bytes(text, completeness->reconciled_bytes));
	if (completeness->out_of_order_events)
		text_add(text, "; %s out of order", text_count(text, completeness->out_of_order_events));
	text_end_sentence(text, TEXT_PLAIN, TEXT_INDENT);
}
