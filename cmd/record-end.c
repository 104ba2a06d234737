// SPDX-License-Identifier: LGPL-2.1-or-later
/* What `record` prints when recording has ended: the answer first, diagnostics only if asked or if something is wrong.
 */
#include "record-end.h"

#include <signal.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/report-command.h"

#define SHARE_NS_MIN 100000000
#define JUDGED_EVENTS_MAX 1000000 /* a second or less */

static void put_counted(const char *before, uint64_t count, const char *singular, const char *plural, const char *after)
{
	char text[MMT_SIZE_TEXT];

	fprintf(stderr, "%s%s %s%s", before, mmt_format_count(count, text), count == 1 ? singular : plural, after);
}

/* Takes the figures of the report, which judges each process. A recording of many events keeps those of the readings.
 */
static void judge_report(struct record_end *end, const char *file)
{
	struct mmt_report_options options;
	struct mmt_report *report;
	struct mmt_error *error;
	uint64_t last_ns;

	if (mmt_event_count_sum(end->summary->events) > JUDGED_EVENTS_MAX)
		return;
	mmt_report_options_init(&options);
	options.input = file;
	error = report_create_before_end(&options, &report, &last_ns);
	if (error)
		return mmt_error_destroy(error);
	if (report->resident_reading_count) {
		end->growth = report->growth;
		end->growth_of = report->growth.by_pss ? "Pss" : report->growth.sharers > 1 ? "sum of RSS" : "RSS";
		end->growth_known = true;
		end->headline = mmt_report_headline(report);
	}
	end->oom_kills = mmt_control_group_oom_kills(report->limiting_group);
	if (mmt_control_group_is_near(report)) {
		end->group_limit = mmt_control_group_limit(report->limiting_group);
		end->group_used = mmt_control_group_used(report->limiting_group);
		end->group_full_ns = mmt_control_group_full_ns(report);
	}
	mmt_report_destroy(report);
}

static void put_memory(const struct record_end *end)
{
	const struct mmt_growth *growth = &end->growth;
	bool by_pss = end->headline && growth->by_pss, clear = end->headline || end->summary->processes == 1;
	uint64_t start_bytes = by_pss ? growth->start_pss_bytes : growth->start_bytes;
	uint64_t end_bytes = by_pss ? growth->end_pss_bytes : growth->end_bytes;
	uint64_t known_bytes = by_pss ? growth->peak_pss_bytes : growth->peak_bytes;
	bool with_brief = known_bytes < growth->peak_with_brief_bytes;
	uint64_t peak_bytes = with_brief ? growth->peak_with_brief_bytes : known_bytes;
	char first[MMT_SIZE_TEXT], last[MMT_SIZE_TEXT], peak[MMT_SIZE_TEXT], change[MMT_SIZE_TEXT], rate[MMT_SIZE_TEXT];

	if (end->summary->oom_kills) {
		fputs("  the kernel's OOM killer ended ", stderr);
		mmt_write_escaped(end->summary->oom_name, stderr);
		fprintf(stderr, " (pid %d)", (int)end->summary->oom_pid);
		if (end->summary->oom_kills > 1)
			put_counted(" and ", end->summary->oom_kills - 1, "more process", "more processes", "");
		putc('\n', stderr);
	} else if (end->oom_kills)
		fprintf(stderr, "  the kernel's OOM killer ended %" PRIu64 " process%s of the control group\n",
			end->oom_kills, end->oom_kills == 1 ? "" : "es");
	if (end->group_limit) {
		fprintf(stderr, "  %s of %s of the control group's limit in use",
			mmt_format_bytes(end->group_used, first), mmt_format_bytes(end->group_limit, last));
		if (end->group_full_ns != MMT_UNKNOWN && !end->oom_kills)
			fprintf(stderr, ", full in %s at this rate", mmt_format_duration(end->group_full_ns, rate));
		putc('\n', stderr);
	}
	if (!end->growth_known && end->summary->end == MMT_RECORD_END_TARGET_ENDED)
		fputs("  nothing to see: it ended before its memory could be read\n", stderr);
	if (!end->growth_known)
		return;
	fprintf(stderr, "  %s %s", end->growth_of, mmt_format_bytes(start_bytes, first));
	/* The first reading may be late. */
	if (peak_bytes == start_bytes && end_bytes == start_bytes && growth->end_ns <= growth->start_ns)
		fputs(", read once", stderr);
	else if (peak_bytes == start_bytes && end_bytes == start_bytes)
		fprintf(stderr, ", unchanged for %s", mmt_format_duration(growth->end_ns - growth->start_ns, last));
	else
		fprintf(stderr, " to %s, peak %s%s; %s", mmt_format_bytes(end_bytes, last),
			mmt_format_bytes(peak_bytes, peak), with_brief ? " with short-lived processes" : "",
			mmt_format_change(mmt_growth_change(growth), change));
	if (growth->bytes_per_minute && growth->bytes_per_minute != MMT_RATE_UNKNOWN && clear &&
	    growth->verdict != MMT_VERDICT_TOO_SHORT)
		fprintf(stderr, ", %s/min", mmt_format_change(growth->bytes_per_minute, rate));
	if (growth->end_swap_bytes)
		fprintf(stderr, ", %s of it swapped", mmt_format_bytes(growth->end_swap_bytes, rate));
	/* The readings of RSS alone do not show what the report may find. */
	if (end->headline || (clear && growth->verdict == MMT_VERDICT_GROWING)) {
		fprintf(stderr, ": %s", end->headline ?: "GROWING");
		if (growth->verdict != MMT_VERDICT_PLATEAU && growth->settled_ns && growth->end_ns > growth->settled_ns)
			fprintf(stderr, ", but level for the last %s",
				mmt_format_duration(growth->end_ns - growth->settled_ns, last));
	}
	putc('\n', stderr);
}

void record_end_put_reason(const struct record_end *end)
{
	/* In the order of enum mmt_record_end. */
	static const char *const reasons[] = {"stopped", "duration over", "target ended",
					      "could not be written completely", "maximum size reached"};
	const struct mmt_record_summary *summary = end->summary;
	char text[MMT_SIZE_TEXT], status_text[MMT_STATUS_TEXT];
	int status = summary->command_status;

	fprintf(stderr, "recorded %s, ", mmt_format_duration(summary->duration_ns, text));
	put_counted("", summary->processes, "process", "processes", "; ");
	if (end->options->command && summary->command_status != -1) {
		mmt_write_escaped(end->options->command[0], stderr);
		putc(' ', stderr);
		/* Ctrl-C reaches the command, too. */
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT && end->stop_signal == SIGINT)
			fputs("was ended by Ctrl-C", stderr);
		else
			fputs(mmt_format_status(status, status_text), stderr);
		fputs(summary->end == MMT_RECORD_END_TARGET_ENDED ? "" : "; ", stderr);
	}
	if (summary->end == MMT_RECORD_END_TARGET_ENDED && summary->target_status)
		fprintf(stderr, "target %s", mmt_format_status(summary->target_status, status_text));
	else if (!end->options->command || summary->command_status == -1 || summary->end != MMT_RECORD_END_TARGET_ENDED)
		fputs(reasons[summary->end], stderr);
	putc('\n', stderr);
}

/* Prints each kind of event, how many calls of other processes were skipped, which slows these processes down, and how
 * complete stacks are. */
static void put_events(const struct mmt_record_summary *summary)
{
	const char *separator = "  ";
	char text[MMT_SIZE_TEXT];

	for (unsigned kind = 0; kind < MMT_COUNT_KINDS; kind++) {
		if (!summary->events[kind])
			continue;
		fprintf(stderr, "%s%s %s", separator, mmt_format_count(summary->events[kind], text),
			mmt_event_count_name(kind));
		separator = ", ";
	}
	fputs(*separator == ',' ? "\n" : "", stderr);
	fputs("  recorded ", stderr);
	mmt_write_escaped(summary->scope, stderr);
	if (summary->on_cpus)
		put_counted("; ", summary->passed_over_calls, "event", "events", " of other processes ignored");
	fputc('\n', stderr);
}

static void put_stacks(const struct mmt_record_summary *summary)
{
	char lost[MMT_SIZE_TEXT], deep[MMT_SIZE_TEXT];

	put_counted("  ", summary->stack_dumps, "stack dump", "stack dumps", "");
	fprintf(stderr, "; %s lost", mmt_format_count(summary->lost_stack_dumps, lost));
	if (summary->deep_stacks)
		fprintf(stderr, "; %s of stacks larger than a dump (the report shows which are truncated)",
			mmt_format_count(summary->deep_stacks, deep));
	if (summary->cut_callchains)
		put_counted("; ", summary->cut_callchains, "callchain", "callchains",
			    " truncated at kernel.perf_event_max_stack");
	fputc('\n', stderr);
	if (!summary->large_stack_dumps && !summary->large_dump_switches)
		return;
	put_counted("  ", summary->large_stack_dumps, "large stack dump", "large stack dumps", "");
	if (summary->lost_large_stack_dumps)
		fprintf(stderr, "; %s lost", mmt_format_count(summary->lost_large_stack_dumps, lost));
	if (summary->large_dump_switches)
		fprintf(stderr, "; off for %s because of high call rates, switched %s %s",
			mmt_format_duration(summary->large_dumps_off_ns, deep),
			mmt_format_count(summary->large_dump_switches, lost),
			summary->large_dump_switches == 1 ? "time" : "times");
	fputc('\n', stderr);
}

static void put_own_cost(const struct mmt_record_summary *summary)
{
	char memory[MMT_SIZE_TEXT], rings[MMT_SIZE_TEXT], cpu[MMT_SIZE_TEXT];

	fprintf(stderr, "  recorder: %s of processor time", mmt_format_duration(summary->recorder_cpu_ns, cpu));
	/* The CPU time includes starting and finishing, so the share means nothing for a short recording. */
	if (summary->duration_ns >= SHARE_NS_MIN)
		fprintf(stderr, ", %.1f %% of one",
			100.0 * (double)summary->recorder_cpu_ns / (double)summary->duration_ns);
	fprintf(stderr, "; %s of memory and %s of rings; %s\n",
		mmt_format_bytes(summary->recorder_memory_bytes, memory), mmt_format_bytes(summary->ring_bytes, rings),
		summary->priority);
}

static void put_advice(const struct record_end *end)
{
	const struct mmt_record_summary *summary = end->summary;
	const struct {
		uint64_t count;
		const char *before, *singular, *plural, *after;
	} lines[] = {
	    {summary->missed_threads, "  ", "thread was", "threads were",
	     " missed: their calls are not in the recording, figures may be wrong\n"},
	    {summary->missed_cpus, "  ", "CPU", "CPUs",
	     " came online during recording: some or all of their events are missing, figures may be wrong\n"},
	    {summary->left_processes, "  ", "process", "processes",
	     end->options->cgroup
		 ? " left the control group: their calls after that are not in the recording, figures may be wrong\n"
		 : " left the control group: calls of up to a second are missing, figures may be wrong\n"},
	    {summary->guarded_processes, "  the mappings of ", "process", "processes",
	     " could not be read: what they had mapped before is not in the recording, and they are not checked\n"},
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		if (lines[i].count)
			put_counted(lines[i].before, lines[i].count, lines[i].singular, lines[i].plural,
				    lines[i].after);
	}
	if (summary->left_running) {
		put_counted("  ", summary->left_running, "child process", "child processes",
			    " still running, but not recorded any more");
		fprintf(stderr, ": record -p %d%s, or -G for a service\n", (int)summary->left_running_pid,
			summary->left_running > 1 ? " and others" : "");
	}
	if (summary->restricted)
		fputs("  recorded without CAP_PERFMON: vfork children, which share their parent's memory, are treated "
		      "as copies of it\n",
		      stderr);
	if (summary->lost_events)
		fputs("  events were lost, figures may be wrong: record again with a larger --ring-size\n", stderr);
	else if (summary->lost_stack_dumps)
		fputs("  only stack dumps were lost: all figures are correct, but some stacks are truncated\n", stderr);
}

/* Has the word bytes that must not be written to a terminal? Also true if out of memory. */
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

void put_shell_word(const char *word, FILE *stream)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
	bool escape = needs_escapes(word);

	if (*word && !word[strspn(word, plain)]) {
		fputs(word, stream);
		return;
	}
	fputs(escape ? "$'" : "'", stream);
	for (; *word; word++) {
		if (escape && (*word < ' ' || *word > '~'))
			fprintf(stream, "\\%03o", (unsigned)(unsigned char)*word);
		else if (escape && (*word == '\'' || *word == '\\'))
			fprintf(stream, "\\%c", *word);
		else if (*word == '\'')
			fputs("'\\''", stream);
		else
			putc(*word, stream);
	}
	putc('\'', stream);
}

void record_end_put_answer(struct record_end *end, const char *file, bool packed)
{
	const struct mmt_record_summary *summary = end->summary;
	bool stream = strcmp(end->options->output, "-") == 0, failed = summary->end == MMT_RECORD_END_WRITE_FAILED;
	struct stat status;
	char text[MMT_SIZE_TEXT];

	/* A file that could not be written has less than was read. */
	end->growth_known &= !failed;
	if (packed || (failed && file))
		judge_report(end, file);
	put_memory(end);
	mmt_write_escaped(stream ? "standard output" : file ? file : end->options->output, stderr);
	/* Packing has made the file smaller. */
	fprintf(stderr, ": %s",
		mmt_format_bytes(
		    stream || !file || stat(file, &status) ? summary->file_bytes : (uint64_t)status.st_size, text));
	if (!failed)
		put_counted(", ", mmt_event_count_sum(summary->events), "event", "events", "");
	fprintf(stderr, ", %s lost\n", mmt_format_count(summary->lost_events, text));
	if (summary->lost_faults || (end->options->verbose && summary->fault_samples)) {
		put_counted("  ", summary->fault_samples, "page fault sample", "page fault samples", "");
		fprintf(stderr, "; %s%s page faults lost\n", summary->lost_faults ? "up to " : "",
			mmt_format_count(summary->lost_faults, text));
	}
	if (end->options->verbose)
		put_events(summary);
	if (end->options->call_graph != MMT_CALL_GRAPH_NONE && (end->options->verbose || summary->lost_stack_dumps))
		put_stacks(summary);
	if (end->options->verbose)
		put_own_cost(summary);
	if (summary->earlier_kept) {
		fputs("  the previous ", stderr);
		mmt_write_escaped(end->options->output, stderr);
		fputs(" was kept as ", stderr);
		mmt_write_escaped(end->options->output, stderr);
		fputs(summary->older_replaced ? ".old, replacing an earlier file of that name\n" : ".old\n", stderr);
	}
	put_advice(end);
	if (stream || !file)
		return;
	/* Only its owner may read the file. */
	fputs(geteuid() == 0 && getenv("SUDO_USER") ? "next: sudo mmtrace report" : "next: mmtrace report", stderr);
	if (strcmp(file, DEFAULT_FILE) != 0) {
		fputs(" -i ", stderr);
		put_shell_word(file, stderr);
	}
	putc('\n', stderr);
}
