// SPDX-License-Identifier: LGPL-2.1-or-later
/* Several processes in the first lines of a report: their names, what they share, and which of them grow. */
#include "output/text/text-parts.h"

#include <inttypes.h>

#define PROCESSES_NAMED 4

const struct mmt_process *text_next_process(const struct mmt_report *report, const struct mmt_process *previous,
					    text_rank_fn rank_of)
{
	int64_t rank, next_rank = 0, previous_rank = 0;
	const struct mmt_process *next = NULL;

	if (previous)
		(void)rank_of(report, previous, &previous_rank);
	array_each(process, report->processes, report->process_count) {
		if (!rank_of(report, process, &rank) ||
		    (previous && (rank > previous_rank || (rank == previous_rank && process <= previous))) ||
		    (next && rank <= next_rank))
			continue;
		next = process;
		next_rank = rank;
	}
	return next;
}

/* "9 processes: nginx x 8, sh (pid 4711), ": the first `most` names, in the order of their first process. */
static void add_names(struct text *text, const struct mmt_report *report, size_t most)
{
	struct {
		const struct mmt_process *first;
		const char *name;
		size_t count;
	} names[PROCESSES_NAMED];
	size_t count = 0, left = report->process_count;

	for (size_t i = 0; i < report->process_count; i++) {
		const char *name = selection_process_name(&report->processes[i]);
		size_t at = 0;

		while (at < count && strcmp(names[at].name, name) != 0)
			at++;
		if (at == most)
			continue;
		if (at == count) {
			names[count].first = &report->processes[i];
			names[count].name = name;
			names[count++].count = 0;
		}
		names[at].count++;
	}
	if (report->process_count > 1)
		text_add(text, "%s processes: ", text_count(text, report->process_count));
	for (size_t i = 0; i < count; i++) {
		text_add(text, "%s", i ? ", " : "");
		if (names[i].count == 1)
			text_add_process(text, names[i].first);
		else
			text_add(text, "%s x %s", names[i].name, text_count(text, names[i].count));
		left -= names[i].count;
	}
	text_add(text, "%s%s", left ? " ..." : "", report->process_count ? ", " : "");
}

void text_add_headline(struct text *text, const struct mmt_report *report)
{
	uint64_t duration_ns = report->end_ns > report->start_ns ? report->end_ns - report->start_ns : 0;

	/* As many names as fit on the line. */
	for (size_t most = PROCESSES_NAMED; most; most--) {
		text->sentence.count = 0;
		add_names(text, report, most);
		text_add(text, "%s", text_duration(text, duration_ns));
		if (!text->options->width || !text_has_sentence(text) ||
		    text_name_columns(text, text->sentence.items) <= text->options->width)
			return;
	}
}

const char *text_measure(const struct mmt_growth *growth)
{
	return growth->by_pss ? "Pss" : growth->sharers > 1 ? "sum of RSS" : "RSS";
}

const char *text_measure_with_swap(const struct mmt_growth *growth)
{
	if (!growth->start_swap_bytes && !growth->end_swap_bytes)
		return text_measure(growth);
	return growth->by_pss ? "Pss and swap" : growth->sharers > 1 ? "sum of RSS and swap" : "RSS and swap";
}

/* Say what the figures of the first line count. */
void text_put_measure(struct text *text, const struct mmt_report *report)
{
	const struct mmt_growth *growth = &report->growth;

	if (growth->by_pss)
		text_add(text,
			 "  Pss counts memory that the processes share once. Their RSS, which counts it in each of "
			 "them, went from %s to %s.",
			 text_bytes(text, growth->start_bytes), text_bytes(text, growth->end_bytes));
	else if (growth->sharers > 1 && !growth->pss_missing)
		text_add(text, "  The sum of RSS counts memory that the processes share in each of them.");
	text_end_sentence(text, TEXT_PLAIN, TEXT_INDENT);
	if (growth->outside_bytes)
		text_add(text,
			 "  Processes outside of this recording %s memory with these: Pss changed by %s, which is not "
			 "counted as growth.",
			 growth->outside_bytes > 0 ? "stopped sharing" : "began sharing",
			 text_change(text, growth->outside_bytes));
	text_end_sentence(text, TEXT_PLAIN, TEXT_INDENT);
	if (array_find(process, report->processes, report->process_count,
		       process->readings && process->readings->brief))
		text_line(text, TEXT_PLAIN,
			  "  Processes that came and went, such as one for each request, do not count.");
	if (growth->pss_missing)
		text_put_sentence(
		    text, TEXT_PLAIN,
		    "  Memory that the processes share may count several times: a process is too large to "
		    "read its Pss, or its Pss could not be read.",
		    TEXT_INDENT);
}

#define SHARES_NAMED 3

static bool rank_grower(const struct mmt_report *report, const struct mmt_process *process, int64_t *rank_ret)
{
	(void)report;
	*rank_ret = mmt_process_growth(process);
	return process->readings && process->readings->grows;
}

void text_put_growers(struct text *text, const struct mmt_report *report)
{
	const struct mmt_process *process = NULL;
	size_t growers = 0, named = 0;

	for (size_t i = 0; i < report->process_count; i++)
		growers += report->processes[i].readings && report->processes[i].readings->grows;
	text_line(text, TEXT_STRONG, "%s%s", text_counted(text, growers, "process grows", "processes grow"),
		  growers > SHARES_NAMED ? ", most of all" : "");
	for (; named < SHARES_NAMED && (process = text_next_process(report, process, rank_grower)); named++) {
		text_format(text, TEXT_STRONG, "  %12s %12s per minute  ",
			    text_change(text, process->readings->growth_bytes),
			    text_change(text, process->readings->bytes_per_minute));
		text_add_process(text, process);
		text_line(text, TEXT_STRONG, ", %s at the end", process->readings->rising ? "still rising" : "level");
	}
	text_sentence(text, TEXT_PLAIN, TEXT_INDENT, "  All %s processes together: %s %s.",
		      text_count(text, report->process_count), text_measure_with_swap(&report->growth),
		      text_change(text, mmt_growth_change(&report->growth)));
}

/* What a process adds to the change of all: its growth, or all its memory if it started or ended in the window. */
static bool rank_share(const struct mmt_report *report, const struct mmt_process *process, int64_t *share_ret)
{
	const struct mmt_process_readings *readings = process->readings;
	bool started, ended;

	*share_ret = 0;
	if (!readings || readings->brief)
		return true;
	started = readings->start_ns > report->growth.start_ns;
	ended = readings->end_ns < report->growth.end_ns;
	if (!started && !ended)
		*share_ret = mmt_process_growth(process);
	else if (!ended)
		*share_ret =
		    (int64_t)(readings->end_swapped_bytes +
			      (readings->private_known ? readings->end_private_bytes : readings->end_resident_bytes));
	else if (!started)
		*share_ret = -(int64_t)(readings->start_swapped_bytes + (readings->private_known
									     ? readings->start_private_bytes
									     : readings->start_resident_bytes));
	return true;
}

#define ENDED_FLOOR_BYTES (1 << 20) /* a process that starts up grows by less */

/* "+85.20 MiB  postgres (pid 26649), +12.00 MiB per minute" */
void text_put_shares(struct text *text, const struct mmt_report *report)
{
	int64_t change = mmt_growth_change(&report->growth), rest = change;
	const struct mmt_process *process = NULL;
	size_t named = 0;

	/* The rows by process show it, too. */
	if (report->process_count < 2 || change <= (int64_t)report->growth.floor_bytes || report->by == MMT_BY_PROCESS)
		return;
	for (; named < SHARES_NAMED && (process = text_next_process(report, process, rank_share)); named++) {
		int64_t share;

		(void)rank_share(report, process, &share);
		if (share <= 0 || share < change / TEXT_NEGLIGIBLE)
			break;
		text_format(text, TEXT_STRONG, "  %12s  ", text_change(text, share));
		text_add_process(text, process);
		if (process->readings->start_ns > report->growth.start_ns)
			text_add(text, ", which started: all of it");
		if (process->readings->grows)
			text_add(text, ", %s per minute", text_change(text, process->readings->bytes_per_minute));
		text_end_sentence(text, TEXT_PLAIN, 2 * TEXT_INDENT);
		rest -= share;
	}
	if (named)
		text_put_rest(text, rest,
			      report->growth.by_pss ? "shared pages and other processes" : "other processes");
}

/* The memory of a worker that is replaced again and again goes with it: all of them together may be steady. */
void text_put_growth_of_ended(struct text *text, const struct mmt_report *report)
{
	const struct mmt_process *largest = NULL;
	uint64_t bytes = 0;
	size_t grown = 0;

	array_each(process, report->processes, report->process_count) {
		int64_t growth = mmt_process_growth(process);

		if (!process->ended || growth <= ENDED_FLOOR_BYTES)
			continue;
		bytes = saturating_add(bytes, (uint64_t)growth, MMT_BYTES_MAX);
		grown++;
		if (!largest || growth > mmt_process_growth(largest))
			largest = process;
	}
	if (grown < 2 || !report->growth.floor_bytes ||
	    (int64_t)bytes < mmt_growth_change(&report->growth) / TEXT_NEGLIGIBLE)
		return;
	text_sentence(
	    text, TEXT_PLAIN, TEXT_INDENT,
	    "  %s processes that ended had each grown by more than 1 MiB, by %s in total, since they were first "
	    "read, of these process %" PRId32 " most, by %s: `report --pid %" PRId32
	    "` shows what it held when it ended.",
	    text_count(text, grown), text_bytes(text, bytes), largest->pid,
	    text_bytes(text, (uint64_t)mmt_process_growth(largest)), largest->pid);
}
