// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/text-checks.h"

#include <inttypes.h>

#define WRONG_NAMED 3

static void add_process(struct check_sum *sum, const struct mmt_process *process)
{
	sum->processes++;
	sum->mappings += process->checked ? process->checked_mappings : 0;
	sum->wrong_bytes += process->checked ? process->wrong_bytes : 0;
	sum->undecided_bytes += process->undecided_bytes;
	sum->unread_bytes += process->unread_bytes;
	sum->unknown_bytes += process->unknown_bytes;
}

static bool is_wrong(const struct mmt_process *process)
{
	return process->checked && process->wrong_bytes;
}

/* Or else what was read on the way is the last there is. */
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
			if (process->wrong_bytes)
				add_process(&checks.wrong, process);
			else
				add_process(is_final(report, process) ? &checks.equal : &checks.earlier, process);
		} else {
			add_process(process->ended ? &checks.ended : &checks.missing, process);
		}
	}
	return checks;
}

/* The one behind `previous` in the order of wrong bytes, then of place; NULL: no more. */
static const struct mmt_process *find_next_wrong(const struct mmt_report *report, const struct mmt_process *previous)
{
	const struct mmt_process *next = NULL;

	for (size_t i = 0; i < report->process_count; i++) {
		const struct mmt_process *process = &report->processes[i];

		if (!is_wrong(process))
			continue;
		if (previous && (process->wrong_bytes > previous->wrong_bytes ||
				 (process->wrong_bytes == previous->wrong_bytes && process <= previous)))
			continue;
		if (!next || process->wrong_bytes > next->wrong_bytes)
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
	char since[MMT_SIZE_TEXT], age[MMT_SIZE_TEXT];

	if (is_final(report, process)) {
		put_label(text, report);
		return;
	}
	text_format(text, TEXT_PLAIN, "  checked against the kernel's map %s after the start",
		    mmt_format_duration(since_ns, since));
	if (process->checked_before_exec || process->ended)
		text_format(text, TEXT_PLAIN, ", %s before it %s: ", mmt_format_duration(process->check_age_ns, age),
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
	char age[MMT_SIZE_TEXT];

	if (report->process_count == 1) {
		put_label_of(text, report, &report->processes[0]);
		return;
	}
	if (report->completeness.incomplete)
		text_put(text, TEXT_PLAIN, "  checked against the kernel's last maps: ");
	else
		text_format(text, TEXT_PLAIN, "  checked against the kernel's maps up to %s before they ended: ",
			    mmt_format_duration(find_oldest(report), age));
}

static void put_processes(struct text *text, uint64_t processes, const char *end)
{
	char count[MMT_SIZE_TEXT];

	text_format(text, TEXT_PLAIN, "%s %s%s", mmt_format_count(processes, count),
		    text_plural(processes, "process", "processes"), end);
}

static void put_mappings(struct text *text, uint64_t mappings)
{
	char count[MMT_SIZE_TEXT];

	text_format(text, TEXT_PLAIN, "%s %s, ", mmt_format_count(mappings, count),
		    text_plural(mappings, "mapping", "mappings"));
}

static void put_off(struct text *text, uint64_t wrong_bytes)
{
	char bytes[MMT_SIZE_TEXT];

	if (wrong_bytes)
		text_format(text, TEXT_BAD, "%s off", mmt_format_bytes(wrong_bytes, bytes));
	else
		text_put(text, TEXT_GOOD, "0 bytes off");
}

/* In which snapshot the undecided bytes changed: the last one, or the first. */
static void put_unsure(struct text *text, const struct check_sum *sum)
{
	uint64_t in_flight_bytes = sum->undecided_bytes - sum->unread_bytes, unknown_bytes = sum->unknown_bytes;
	char bytes[MMT_SIZE_TEXT];

	if (in_flight_bytes)
		text_format(text, TEXT_PLAIN, ", %s undecided (calls in flight)",
			    mmt_format_bytes(in_flight_bytes, bytes));
	if (sum->unread_bytes)
		text_format(text, TEXT_PLAIN, ", %s undecided (moved while the first maps were read)",
			    mmt_format_bytes(sum->unread_bytes, bytes));
	if (unknown_bytes)
		text_format(text, TEXT_PLAIN, ", %s never seen in a map", mmt_format_bytes(unknown_bytes, bytes));
}

static void put_wrong(struct text *text, const struct mmt_report *report, const struct check_sum *wrong)
{
	const struct mmt_process *process = NULL;
	uint64_t rest_bytes = wrong->wrong_bytes;

	for (int i = 0; i < WRONG_NAMED && (process = find_next_wrong(report, process)) != NULL; i++) {
		struct check_sum sum = {0};

		add_process(&sum, process);
		put_label_of(text, report, process);
		put_mappings(text, process->checked_mappings);
		put_off(text, process->wrong_bytes);
		put_unsure(text, &sum);
		if (report->process_count > 1) {
			text_put(text, TEXT_PLAIN, ": ");
			text_put_process(text, process);
		}
		text_end_line(text);
		rest_bytes -= process->wrong_bytes;
	}
	if (wrong->processes <= WRONG_NAMED)
		return;
	put_label(text, report);
	put_processes(text, wrong->processes - WRONG_NAMED, " more, ");
	put_off(text, rest_bytes);
	text_end_line(text);
}

static void put_sum(struct text *text, const struct mmt_report *report, const struct check_sum *sum)
{
	if (report->process_count > 1)
		put_processes(text, sum->processes, ", ");
	put_mappings(text, sum->mappings);
	put_off(text, sum->wrong_bytes);
	put_unsure(text, sum);
}

/* One line for all that were not checked, or none. */
static void put_unchecked(struct text *text, const struct mmt_report *report, const struct checks *checks)
{
	const char *why = report->completeness.incomplete ? "the recorder did not finish"
							  : "the recording holds no map of the kernel to compare with";
	const struct check_sum unknown = {.unknown_bytes = checks->ended.unknown_bytes + checks->missing.unknown_bytes};

	if (!checks->ended.processes && !checks->missing.processes)
		return;
	if (report->windowed && report->to_ns < report->end_ns) {
		text_put(text, TEXT_PLAIN,
			 "  not checked: the kernel's final map is of the recording's end, not of --to");
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
			put_processes(
			    text, checks->ended.processes,
			    text_plural(checks->ended.processes, " that ended by itself", " that ended by themselves"));
		if (checks->ended.processes && checks->missing.processes)
			text_put(text, TEXT_PLAIN, "; ");
		if (checks->missing.processes) {
			put_processes(text, checks->missing.processes, ", as ");
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
		put_processes(text, unchecked, " not checked");
	}
	text_end_line(text);
}
