// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/text-nothing.h"

#include "output/text-checks.h"

/* Nothing stands against it, or what does, a line each below a first one. */
struct doubts {
	struct text *text;
	bool any;
};

static void put_doubt(struct doubts *doubts, const char *before, const char *figure, const char *after)
{
	if (!doubts->any) {
		text_put(doubts->text, TEXT_STRONG,
			 "Nothing mapped in this recording is known to be still mapped. That is not certain:");
		text_end_line(doubts->text);
	}
	doubts->any = true;
	text_put(doubts->text, TEXT_PLAIN, "  ");
	text_put(doubts->text, TEXT_PLAIN, before);
	text_put(doubts->text, TEXT_PLAIN, figure);
	text_put(doubts->text, TEXT_PLAIN, after);
	text_end_line(doubts->text);
}

static void put_doubts_of_recording(struct doubts *doubts, const struct mmt_report *report)
{
	const struct mmt_completeness *completeness = &report->completeness;
	char figure[MMT_SIZE_TEXT];

	if (completeness->incomplete || completeness->damaged)
		put_doubt(doubts, "the recording is not whole, see the lines in capitals", "", "");
	if (completeness->lost_events)
		put_doubt(doubts, "", mmt_format_count(completeness->lost_events, figure),
			  text_plural(completeness->lost_events, " event was lost", " events were lost"));
	if (completeness->missed_threads)
		put_doubt(doubts, "", mmt_format_count(completeness->missed_threads, figure),
			  text_plural(completeness->missed_threads, " thread was missed", " threads were missed"));
	if (completeness->missed_cpus)
		put_doubt(
		    doubts, "", mmt_format_count(completeness->missed_cpus, figure),
		    text_plural(completeness->missed_cpus, " CPU came online unseen", " CPUs came online unseen"));
	if (completeness->left_processes)
		put_doubt(doubts, "", mmt_format_count(completeness->left_processes, figure),
			  text_plural(completeness->left_processes, " process left the control group",
				      " processes left the control group"));
	if (completeness->out_of_order_events)
		put_doubt(doubts, "", mmt_format_count(completeness->out_of_order_events, figure),
			  text_plural(completeness->out_of_order_events, " event stands behind younger ones",
				      " events stand behind younger ones"));
	if (completeness->ambiguous_events)
		put_doubt(doubts, "the order of ", mmt_format_count(completeness->ambiguous_events, figure),
			  text_plural(completeness->ambiguous_events, " event is unsure", " events is unsure"));
	if (report->windowed)
		put_doubt(doubts, "this is about the window asked for, not the whole recording", "", "");
	if (report->classes)
		put_doubt(doubts, "this is about the classes asked for, not all memory", "", "");
	if (completeness->lack_count)
		put_doubt(doubts, "the recording lacks what the notes above say", "", "");
}

static void put_doubts_of_processes(struct doubts *doubts, const struct mmt_report *report)
{
	struct checks checks = checks_sum(report);
	char figure[MMT_SIZE_TEXT];

	if (checks.checked.wrong_bytes)
		put_doubt(doubts, "the result differs from the kernel's final maps by ",
			  mmt_format_bytes(checks.checked.wrong_bytes, figure), "");
	if (checks.checked.undecided_bytes)
		put_doubt(doubts, "", mmt_format_bytes(checks.checked.undecided_bytes, figure),
			  " are undecided: calls were in flight when the kernel's maps were read");
	if (!checks.checked.processes)
		put_doubt(doubts, "nothing was checked against the kernel's final maps", "", "");
	if (report->left_out_process_count)
		put_doubt(doubts, "this is about the processes asked for: ",
			  mmt_format_count(report->left_out_process_count, figure),
			  text_plural(report->left_out_process_count, " other is left out", " others are left out"));
	if (report->ended_bytes)
		put_doubt(doubts, "processes that ended by themselves held ",
			  mmt_format_bytes(report->ended_bytes, figure), " until then");
}

void text_nothing_unfreed(struct text *text, const struct mmt_report *report)
{
	struct doubts doubts = {.text = text};

	text_end_line(text);
	put_doubts_of_recording(&doubts, report);
	put_doubts_of_processes(&doubts, report);
	if (doubts.any)
		return;
	text_put(text, TEXT_GOOD, "Nothing that was mapped in this recording is still mapped: no leak of mappings.");
	text_end_line(text);
}
