// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/text-explanations.h"

#include <mmtrace/record.h>

#define INDENT 2 /* of their further lines */

static void put_line(struct text *text, const char *line)
{
	text_put_sentence(text, TEXT_FAINT, line, INDENT);
	text_end_line(text);
}

void text_explanations_add(struct text_explanations *explanations, const struct mmt_report *report)
{
	explanations->lost_stack_dumps += report->completeness.lost_stack_dumps;
	explanations->exhausted_stacks += report->completeness.stacks_by_end[MMT_STACK_END_DUMP_EXHAUSTED];
	explanations->notes |= report->completeness.lack_count > 0;
	explanations->stacks_not_asked_for |= !report->stacks_recorded;
	explanations->no_dumps |= !report->stack_dump_bytes;
	explanations->small_dumps |= report->stack_dump_bytes && report->stack_dump_bytes < MMT_STACK_DUMP_BYTES_MAX;
	explanations->largest_dumps |= report->stack_dump_bytes >= MMT_STACK_DUMP_BYTES_MAX;
}

static bool any_truncated(const struct text_stack_marks *marks)
{
	for (unsigned end = 0; end < MMT_STACK_END_KINDS; end++)
		if (marks->ends[end] && !mmt_stack_end_is_complete((enum mmt_stack_end)end))
			return true;
	return false;
}

/* Where a dump was lost, few bytes, the kernel's own walk or nothing is left: it need not have been deeper. */
static void put_lost_dumps(struct text *text, const struct text_stack_marks *marks)
{
	if (marks->ends[MMT_STACK_END_NOT_RECORDED] || marks->ends[MMT_STACK_END_CALLCHAIN] ||
	    marks->ends[MMT_STACK_END_DUMP_EXHAUSTED])
		put_line(text, "callers missing, stack dumps lost: record with a larger --ring-size (-m).");
}

static void put_not_recorded(struct text *text, const struct text_explanations *explanations)
{
	const struct text_stack_marks *marks = &explanations->marks;

	if (marks->ends[MMT_STACK_END_NOT_RECORDED] && explanations->stacks_not_asked_for)
		put_line(text, "no stack: record with a call graph (--call-graph auto).");
	if (!marks->ends[MMT_STACK_END_CALLCHAIN])
		return;
	if (explanations->no_dumps)
		put_line(text, "callers missing, frame-pointer chain: code without frame pointers; record with "
			       "--call-graph dwarf.");
	else if (explanations->small_dumps)
		put_line(text,
			 "callers missing, frame-pointer chain: code without frame pointers, farther out than the "
			 "stack dump reaches; record with --call-graph dwarf,65280.");
	else
		put_line(text,
			 "callers missing, frame-pointer chain: code without frame pointers, farther out than the "
			 "largest stack dump reaches; build it with -fno-omit-frame-pointer.");
}

/* With frame pointers, the kernel's callchain continues where the dump ends. */
static void put_exhausted(struct text *text, const struct text_explanations *explanations)
{
	if (explanations->largest_dumps && !explanations->small_dumps && !explanations->no_dumps)
		put_line(text, "callers missing, dump exhausted: the stack is larger than the largest dump; build the "
			       "outer functions with -fno-omit-frame-pointer.");
	else
		put_line(text,
			 "callers missing, dump exhausted: record with --call-graph dwarf,65280 for deeper stacks.");
}

static void put_ends(struct text *text, const struct text_explanations *explanations)
{
	const struct text_stack_marks *marks = &explanations->marks;

	if (marks->ends[MMT_STACK_END_DUMP_EXHAUSTED] &&
	    explanations->exhausted_stacks > explanations->lost_stack_dumps)
		put_exhausted(text, explanations);
	if (marks->ends[MMT_STACK_END_DEPTH_LIMIT])
		put_line(text, "callers missing, depth limit: raise kernel.perf_event_max_stack (sysctl) before "
			       "recording.");
	if (explanations->lost_stack_dumps)
		put_lost_dumps(text, marks);
	else
		put_not_recorded(text, explanations);
	if (marks->ends[MMT_STACK_END_OTHER_STACK])
		put_line(text,
			 "callers missing, another stack: a signal handler on an alternate stack, or a runtime that "
			 "changed stacks; the other one is not recorded.");
	if (marks->ends[MMT_STACK_END_NO_UNWIND_DATA] || marks->ends[MMT_STACK_END_INVALID])
		put_line(text,
			 explanations->notes
			     ? "callers missing, no unwind data: code without unwind tables, or a program file that "
			       "is missing or of another build; see the notes above."
			     : "callers missing, no unwind data: code without unwind tables, or a program file that "
			       "is missing or of another build.");
}

void text_explanations(struct text *text, const struct text_explanations *explanations)
{
	const struct text_stack_marks *marks = &explanations->marks;

	if (!explanations->reserved && !marks->doubtful && !marks->unnamed && !marks->folded && !marks->cut &&
	    !marks->hidden && !any_truncated(marks))
		return;
	text_end_line(text);
	if (explanations->reserved)
		put_line(text, "reserved: mapped without access rights; it uses addresses, not memory.");
	if (marks->doubtful)
		put_line(text,
			 "?: a guess: no call precedes this return address, or callers before it may be missing.");
	if (marks->unnamed)
		put_line(text, "file+0x... or 0x...: no symbol; debug information, or a perf map for generated code, "
			       "gives names.");
	if (marks->folded || marks->cut)
		put_line(text, "...: frames left out; --stacks all shows every frame.");
	if (marks->hidden)
		put_line(text, "frames that --hide names are left out.");
	put_ends(text, explanations);
}
