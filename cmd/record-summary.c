// SPDX-License-Identifier: LGPL-2.1-or-later
#include "record-summary.h"

#include <inttypes.h>
#include <mmtrace/output.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

#define SHARE_NS_MIN 100000000

static const char *count_text(uint64_t count, char text[MMT_SIZE_TEXT])
{
	return mmt_format_count(count, text);
}

static void put_counted(uint64_t count, const char *singular, const char *plural)
{
	char text[MMT_SIZE_TEXT];

	fprintf(stderr, "%s %s", count_text(count, text), count == 1 ? singular : plural);
}

static void put_events(const struct mmt_record_summary *summary)
{
	const char *separator = ": ";
	char text[MMT_SIZE_TEXT];
	uint64_t sum = 0;

	for (unsigned kind = 0; kind < MMT_COUNT_KINDS; kind++)
		sum += summary->events[kind];
	fputs("  ", stderr);
	put_counted(sum, "event", "events");
	for (unsigned kind = 0; kind < MMT_COUNT_KINDS; kind++) {
		if (!summary->events[kind])
			continue;
		fprintf(stderr, "%s%s %s", separator, count_text(summary->events[kind], text),
			mmt_event_count_name(kind));
		separator = ", ";
	}
	fprintf(stderr, "; %s lost\n", count_text(summary->lost_events, text));
}

/* Not written, but they cost those processes something. */
static void put_scope(const struct mmt_record_summary *summary)
{
	if (!summary->on_cpus)
		return;
	fputs("  recorded on every CPU; ", stderr);
	put_counted(summary->passed_over_calls, "event", "events");
	fputs(" of other processes passed over\n", stderr);
}

/* They exist beside the small dumps while the call rate is low. */
static void put_large_dumps(const struct mmt_record_summary *summary)
{
	char lost[MMT_SIZE_TEXT], off[MMT_SIZE_TEXT];

	if (!summary->large_stack_dumps && !summary->large_dump_switches)
		return;
	fputs("  ", stderr);
	put_counted(summary->large_stack_dumps, "large stack dump", "large stack dumps");
	if (summary->lost_large_stack_dumps)
		fprintf(stderr, "; %s lost", count_text(summary->lost_large_stack_dumps, lost));
	if (summary->large_dump_switches)
		fprintf(stderr, "; off for %s because of high call rates, switched %s %s",
			mmt_format_duration(summary->large_dumps_off_ns, off),
			count_text(summary->large_dump_switches, lost),
			summary->large_dump_switches == 1 ? "time" : "times");
	fputc('\n', stderr);
}

static void put_stacks(const struct mmt_record_options *options, const struct mmt_record_summary *summary)
{
	char lost[MMT_SIZE_TEXT], deep[MMT_SIZE_TEXT];

	if (options->call_graph == MMT_CALL_GRAPH_NONE)
		return;
	fputs("  ", stderr);
	put_counted(summary->stack_dumps, "stack dump", "stack dumps");
	fprintf(stderr, "; %s lost", count_text(summary->lost_stack_dumps, lost));
	if (summary->deep_stacks)
		fprintf(stderr, "; %s of stacks larger than a dump (the report shows which are truncated)",
			count_text(summary->deep_stacks, deep));
	if (summary->cut_callchains) {
		fputs("; ", stderr);
		put_counted(summary->cut_callchains, "callchain", "callchains");
		fputs(" cut at kernel.perf_event_max_stack", stderr);
	}
	fputc('\n', stderr);
	put_large_dumps(summary);
}

bool record_summary_is_stream(const struct mmt_record_options *options)
{
	return strcmp(options->output, "-") == 0;
}

static void put_own_cost(const struct mmt_record_summary *summary)
{
	char memory[MMT_SIZE_TEXT], rings[MMT_SIZE_TEXT], cpu[MMT_SIZE_TEXT];

	fprintf(stderr, "  recorder: %s of processor time", mmt_format_duration(summary->recorder_cpu_ns, cpu));
	/* What it takes to begin and to end is in it too: of a short recording the share says nothing. */
	if (summary->duration_ns >= SHARE_NS_MIN)
		fprintf(stderr, ", %.1f %% of one",
			100.0 * (double)summary->recorder_cpu_ns / (double)summary->duration_ns);
	fprintf(stderr, "; %s of memory and %s of rings\n", mmt_format_bytes(summary->recorder_memory_bytes, memory),
		mmt_format_bytes(summary->ring_bytes, rings));
}

static void put_advice(const struct mmt_record_summary *summary)
{
	if (summary->missed_threads) {
		fputs("  ", stderr);
		put_counted(summary->missed_threads, "thread was", "threads were");
		fputs(" missed: what they mapped and released is not in the recording, figures may be wrong\n", stderr);
	}
	if (summary->missed_cpus) {
		fputs("  ", stderr);
		put_counted(summary->missed_cpus, "CPU", "CPUs");
		fputs(" came online while recording: what was done there at first, or all of it, is not in it, figures "
		      "may be wrong\n",
		      stderr);
	}
	if (summary->left_processes) {
		fputs("  ", stderr);
		put_counted(summary->left_processes, "process", "processes");
		fputs(" left the control group: what was done then is not in the recording, figures may be wrong\n",
		      stderr);
	}
	if (summary->guarded_processes) {
		fputs("  the mappings of ", stderr);
		put_counted(summary->guarded_processes, "process", "processes");
		fputs(" could not be read: what was mapped before is not in the recording, and nothing is checked "
		      "there\n",
		      stderr);
	}
	if (summary->marks) {
		fputs("  ", stderr);
		put_counted(summary->marks, "mark", "marks");
		fputs(": `mmtrace report --from mark:1` tells what came after the first\n", stderr);
	}
	if (summary->restricted)
		fputs("  recorded without CAP_PERFMON: children that share their parent's memory (vfork) are taken for "
		      "copies of it\n",
		      stderr);
	if (summary->lost_events)
		fputs("  events were lost, figures may be wrong: record again with a larger --ring-size\n", stderr);
	else if (summary->lost_stack_dumps)
		fputs("  only stack dumps were lost: all figures hold, some stacks are less deep\n", stderr);
}

static bool is_plain(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";

	return *word && word[strspn(word, plain)] == '\0';
}

/* Does it have bytes that a terminal is not given? True as well when out of memory. */
static bool needs_escapes(const char *word)
{
	char *shown = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&shown, &size);
	bool differs;

	if (!stream)
		return true;
	mmt_write_escaped(word, stream);
	differs = fclose(stream) != 0 || strcmp(shown, word) != 0;
	free(shown);
	return differs;
}

/* One word for a shell; $'...' where it has control characters and the like. */
static void put_shell_word(const char *word)
{
	bool escape = needs_escapes(word);

	if (is_plain(word)) {
		fputs(word, stderr);
		return;
	}
	fputs(escape ? "$'" : "'", stderr);
	for (; *word; word++) {
		if (escape && (*word < ' ' || *word > '~'))
			fprintf(stderr, "\\%03o", (unsigned)(unsigned char)*word);
		else if (escape && (*word == '\'' || *word == '\\'))
			fprintf(stderr, "\\%c", *word);
		else if (*word == '\'')
			fputs("'\\''", stderr);
		else
			putc(*word, stderr);
	}
	putc('\'', stderr);
}

static void put_earlier(const struct mmt_record_options *options, const struct mmt_record_summary *summary)
{
	if (!summary->earlier_kept)
		return;
	fputs("  the previous ", stderr);
	mmt_write_escaped(options->output, stderr);
	fputs(" was kept as ", stderr);
	mmt_write_escaped(options->output, stderr);
	fputs(summary->older_replaced ? ".old; the one before, which had that name, was replaced\n" : ".old\n", stderr);
}

static void put_next(const struct mmt_record_options *options, const struct mmt_record_summary *summary,
		     const char *file)
{
	if (record_summary_is_stream(options) || summary->place == MMT_RECORD_ELSEWHERE)
		return;
	fputs("next: mmtrace report", stderr);
	if (strcmp(file, DEFAULT_FILE) != 0) {
		fputs(" -i ", stderr);
		put_shell_word(file);
	}
	putc('\n', stderr);
}

void record_summary_print(const struct mmt_record_options *options, const struct mmt_record_summary *summary,
			  const char *file)
{
	static const char *const ends[] = {
	    [MMT_RECORD_END_STOPPED] = "stopped",
	    [MMT_RECORD_END_DURATION] = "duration over",
	    [MMT_RECORD_END_TARGET_ENDED] = "target ended",
	    [MMT_RECORD_END_WRITE_FAILED] = "could not be written to the end",
	    [MMT_RECORD_END_SIZE] = "maximum size reached",
	};
	char duration[MMT_SIZE_TEXT], size[MMT_SIZE_TEXT];

	mmt_write_escaped(record_summary_is_stream(options) ? "standard output" : file, stderr);
	fprintf(stderr, ": %s, ", mmt_format_duration(summary->duration_ns, duration));
	put_counted(summary->processes, "process", "processes");
	fputs(", ", stderr);
	put_counted(summary->threads, "thread", "threads");
	fprintf(stderr, ", %s written; %s\n", mmt_format_bytes(summary->file_bytes, size), ends[summary->end]);
	put_events(summary);
	put_scope(summary);
	put_stacks(options, summary);
	put_own_cost(summary);
	put_earlier(options, summary);
	put_advice(summary);
	put_next(options, summary, file);
}
