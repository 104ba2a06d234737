// SPDX-License-Identifier: LGPL-2.1-or-later
#include <mmtrace/report.h>

#include <stdlib.h>
#include <string.h>

#include "analysis/groups.h"
#include "analysis/lacks.h"
#include "analysis/replay.h"
#include "base/arena.h"
#include "base/cleanup.h"

/* The public value and what it borrows from. */
struct report {
	struct mmt_report result;
	struct replay replay;
	struct arena arena;
};

const char *mmt_stack_end_name(enum mmt_stack_end end)
{
	static const char *const names[MMT_STACK_END_KINDS] = {
	    [MMT_STACK_END_ENTRY] = "complete",
	    [MMT_STACK_END_DUMP_EXHAUSTED] = "stack dump exhausted",
	    [MMT_STACK_END_DEPTH_LIMIT] = "depth limit reached",
	    [MMT_STACK_END_NO_UNWIND_DATA] = "no unwind data",
	    [MMT_STACK_END_CALLCHAIN] = "end of the frame-pointer chain",
	    [MMT_STACK_END_INVALID] = "stack does not advance",
	    [MMT_STACK_END_NOT_RECORDED] = "no stack recorded",
	};

	return end < MMT_STACK_END_KINDS ? names[end] : "unknown";
}

void mmt_report_options_init(struct mmt_report_options *options)
{
	*options = (struct mmt_report_options){.input = "mmtrace.data"};
}

static bool has_memory_events(const struct reader_metadata *metadata)
{
	for (size_t i = 0; i < metadata->attribute_count; i++) {
		if (metadata->attributes[i].is_call && !metadata->attributes[i].is_enter)
			return true;
	}
	return false;
}

/*
 * Processes that ended before the recording did gave everything back. When all have ended, each counts as it was just
 * before its end, and so does one that was asked for by number.
 */
static bool counts_to_the_end(const struct replay *replay, const struct mmt_report_options *options,
			      const struct process *process)
{
	return !process->ended || options->pids || !replay->has_survivors;
}

static bool is_selected(const struct mmt_report_options *options, const struct process *process)
{
	for (size_t i = 0; i < options->pid_count; i++) {
		if (options->pids[i] == process->pid)
			return true;
	}
	return !options->pids;
}

static uint64_t sum_residency(const struct replay *replay, const struct process *process)
{
	const struct recording_residency *residency = &replay->metadata->residency;
	uint64_t bytes = 0;

	for (size_t i = 0; i < residency->processes.count; i++) {
		const struct process_residency *resident = &residency->processes.items[i];

		if (resident->pid != process->pid || process->ended)
			continue;
		for (size_t j = 0; j < resident->runs.count; j++)
			bytes += resident->runs.items[j].end - resident->runs.items[j].start;
		return bytes;
	}
	return MMT_UNKNOWN;
}

static struct mmt_error *describe_process(struct report *report, const struct mmt_report_options *options,
					  const struct process *process, struct mmt_process *described)
{
	struct space_counts counts = space_counts(process->space);
	struct space_check check = space_check_result(process->space);

	*described = (struct mmt_process){
	    .pid = process->pid,
	    .parent_pid = process->parent_pid,
	    .name = arena_string(&report->arena, process_name(report->replay.processes, process)),
	    .ended = process->ended,
	    .threads = process->thread_count,
	    .resident_bytes = sum_residency(&report->replay, process),
	};
	if (!described->name)
		return &error_no_memory;
	if (process->borrows_space)
		return NULL;
	described->unfreed_bytes = counts.mapped_bytes;
	described->committed_bytes = counts.committed_bytes;
	described->reserved_bytes = counts.reserved_bytes;
	described->before_bytes = counts.before_bytes;
	if (counts_to_the_end(&report->replay, options, process) && !process->parent_pid)
		report->result.before_bytes += counts.before_bytes;
	described->unknown_bytes = counts.unknown_bytes;
	described->checked = check.done;
	described->checked_mappings = check.mappings;
	described->wrong_bytes = check.wrong_bytes;
	described->undecided_bytes = check.undecided_bytes;
	report->result.completeness.ambiguous_events += counts.ambiguous;
	return NULL;
}

static struct mmt_error *describe_processes(struct report *report, const struct mmt_report_options *options,
					    bool *selected)
{
	size_t count = processes_count(report->replay.processes);
	struct mmt_process *described = arena_alloc(&report->arena, count, sizeof(*described));

	if (!described)
		return &error_no_memory;
	for (size_t i = 0; i < count; i++) {
		const struct process *process = processes_at(report->replay.processes, (uint32_t)i);
		struct mmt_error *error;

		selected[i] = is_selected(options, process);
		if (!selected[i]) {
			report->result.left_out_process_count++;
			continue;
		}
		error = describe_process(report, options, process, &described[report->result.process_count++]);
		if (error)
			return error;
	}
	report->result.processes = described;
	return NULL;
}

static struct mmt_error *describe_recording(struct report *report, const struct mmt_report_options *options)
{
	const struct reader_metadata *metadata = report->replay.metadata;
	struct mmt_report *result = &report->result;
	CLEANUP(free) char *recorded_by = NULL;

	if (asprintf(&recorded_by, "%s %s", metadata->ours ? "mmtrace" : "perf",
		     metadata->ours ? metadata->info.recorder_version : metadata->version) < 0) {
		recorded_by = NULL;
		return &error_no_memory;
	}
	result->input = arena_string(&report->arena, options->input);
	result->recorded_by = arena_string(&report->arena, recorded_by);
	if (!result->input || !result->recorded_by)
		return &error_no_memory;
	result->command_line = metadata->command_line;
	result->host = metadata->host;
	result->kernel = metadata->kernel;
	result->start_ns = report->replay.first_ns;
	result->end_ns = report->replay.last_ns > result->start_ns ? report->replay.last_ns : result->start_ns;
	result->start_realtime_ns = metadata->ours ? metadata->info.start_realtime_ns : 0;
	memcpy(result->events, report->replay.events, sizeof(result->events));
	result->failed_calls = report->replay.failed_calls;
	return NULL;
}

static void describe_loss(struct report *report)
{
	const struct reader_metadata *metadata = report->replay.metadata;
	struct mmt_completeness *completeness = &report->result.completeness;

	completeness->incomplete = metadata->incomplete;
	completeness->damage = reader_damage(report->replay.reader);
	completeness->damaged = completeness->damage != NULL;
	for (size_t i = 0; i < metadata->loss.lost.count && i < metadata->attribute_count; i++) {
		if (metadata->attributes[i].role == ROLE_DUMP)
			completeness->lost_stack_dumps += metadata->loss.lost.items[i];
		else
			completeness->lost_events += metadata->loss.lost.items[i];
	}
	/* A file without the recorder's own count has only what the rings wrote down. */
	if (!metadata->has_loss)
		completeness->lost_events = report->replay.lost_events;
}

static struct mmt_error *build(struct report *report, const struct mmt_report_options *options)
{
	CLEANUP(free) bool *selected = NULL;
	struct mmt_error *error = replay_run(&report->replay);

	if (error)
		return error;
	selected = calloc(processes_count(report->replay.processes) + 1, sizeof(*selected));
	if (!selected)
		return &error_no_memory;
	error = describe_recording(report, options);
	if (!error)
		error = describe_processes(report, options, selected);
	if (error)
		return error;
	if (options->pids && !report->result.process_count)
		return error_create(MMT_ERROR_INVALID, "%s: holds none of these processes", options->input);
	describe_loss(report);
	for (size_t i = 0; i < processes_count(report->replay.processes); i++) {
		const struct process *process = processes_at(report->replay.processes, (uint32_t)i);

		if (selected[i] && !counts_to_the_end(&report->replay, options, process))
			report->result.ended_bytes += replay_end_process(&report->replay, process);
	}
	error = groups_build(&report->replay, selected, &report->arena, &report->result);
	return error ? error : lacks_describe(&report->replay, &report->arena, &report->result.completeness);
}

struct mmt_error *mmt_report_create(const struct mmt_report_options *options, struct mmt_report **report_ret)
{
	struct report *report = calloc(1, sizeof(*report));
	struct mmt_error *error;

	if (!report)
		return &error_no_memory;
	error = replay_init(&report->replay, options->input, !options->no_demangle);
	if (!error && !has_memory_events(report->replay.metadata))
		error = error_create(MMT_ERROR_FORMAT,
				     "%s: holds no memory events; record with `mmtrace record`, or with perf and "
				     "syscalls:sys_{enter,exit}_{mmap,munmap}",
				     options->input);
	if (!error)
		error = build(report, options);
	if (error) {
		mmt_report_destroy(&report->result);
		return error;
	}
	*report_ret = &report->result;
	return NULL;
}

void mmt_report_destroy(struct mmt_report *result)
{
	struct report *report = (struct report *)result; /* its first member */

	if (!report)
		return;
	replay_deinit(&report->replay);
	arena_deinit(&report->arena);
	free(report);
}
