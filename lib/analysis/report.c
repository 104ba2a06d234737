// SPDX-License-Identifier: LGPL-2.1-or-later
#include <mmtrace/record.h>
#include <mmtrace/report.h>

#include <stdlib.h>
#include <string.h>

#include "analysis/annotate.h"
#include "analysis/groups.h"
#include "analysis/lacks.h"
#include "analysis/replay.h"
#include "analysis/rows.h"
#include "analysis/steps.h"
#include "analysis/totals.h"
#include "base/arena.h"
#include "base/cleanup.h"

#define EXEC_NS 100000000ULL /* the old memory may be unmapped up to this long before the exec record */

/* The public value and what it borrows from. */
struct report {
	struct mmt_report result;
	struct replay replay;
	struct rows rows;
	struct steps steps;
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
	    [MMT_STACK_END_OTHER_STACK] = "continues on another stack",
	    [MMT_STACK_END_COROUTINE] = "start of a coroutine",
	};

	return end < MMT_STACK_END_KINDS ? names[end] : "unknown";
}

bool mmt_stack_end_is_complete(enum mmt_stack_end end)
{
	return end == MMT_STACK_END_ENTRY || end == MMT_STACK_END_COROUTINE;
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
static struct mmt_error *release_ended(struct report *report, const struct mmt_report_options *options)
{
	struct replay *replay = &report->replay;
	struct mmt_error *error = NULL;

	if (options->pids || !replay->has_survivors)
		return NULL;
	for (size_t i = 0; !error && i < processes_count(replay->processes); i++) {
		const struct process *process = processes_at(replay->processes, (uint32_t)i);

		/* Those released when they ended are empty. */
		if (process->ended)
			error = holdings_release(replay, process);
	}
	return error ? error : replay_take_error(replay);
}

static uint64_t sum_residency(const struct replay *replay, const struct process *process)
{
	const struct recording_residency *residency = &replay->metadata->residency;
	uint64_t bytes = 0;

	for (size_t i = 0; i < residency->processes.count; i++) {
		const struct process_residency *resident = &residency->processes.items[i];

		if (resident->pid != process->pid || process->ended || replay->window.ends_early)
			continue;
		for (size_t j = 0; j < resident->runs.count; j++)
			bytes += resident->runs.items[j].end - resident->runs.items[j].start;
		return bytes;
	}
	return MMT_UNKNOWN;
}

/* When the checked program ended. */
static uint64_t end_of_checked(const struct report *report, const struct process *process,
			       const struct space_check *check)
{
	if (check->earlier_program)
		return process->program_ns;
	return process->ended ? process->ended_ns : report->replay.last_ns;
}

static void describe_check(const struct report *report, const struct process *process, struct space_check check,
			   struct mmt_process *described)
{
	uint64_t end_ns = end_of_checked(report, process, &check);
	uint64_t age_ns = end_ns > check.time_ns ? end_ns - check.time_ns : 0;

	if (!check.done || report->replay.window.ends_early)
		return;
	/* The process may have been exiting then, or the maps may be those of the new program. */
	if (check.earlier_program && check.wrong_bytes && age_ns < EXEC_NS)
		return;
	described->checked = true;
	described->checked_before_exec = check.earlier_program;
	described->check_age_ns = age_ns;
	described->checked_ns = check.time_ns;
	described->checked_mappings = check.mappings;
	described->wrong_bytes = check.wrong_bytes;
	described->undecided_bytes = check.undecided_bytes;
	described->unread_bytes = check.unread_bytes;
	described->compared_bytes = check.compared_bytes;
}

static struct mmt_error *describe_process(struct report *report, const struct process *process,
					  struct mmt_process *described)
{
	const struct holdings holdings = holdings_of(&report->replay, process);
	const struct held_bytes *now = &holdings.now, *ended = &holdings.ended;

	*described = (struct mmt_process){
	    .pid = process->pid,
	    .parent_pid = process->parent_pid,
	    .name = arena_string(&report->arena, process_name(report->replay.processes, process)),
	    .ended = process->ended,
	    .threads = process->thread_count,
	    .resident_bytes = sum_residency(&report->replay, process),
	    .unfreed_bytes = now->unfreed + ended->unfreed,
	    .committed_bytes = now->committed + ended->committed,
	    .reserved_bytes = now->reserved + ended->reserved,
	    .before_bytes = now->inherited + now->older + ended->inherited + ended->older,
	    .kernel_bytes = now->kernel + ended->kernel,
	};
	if (!described->name)
		return &error_no_memory;
	report->result.ended_bytes += ended->unfreed;
	report->result.before_bytes += now->older;
	report->result.kernel_bytes += now->kernel;
	/* What a child inherited is its parent's, where the report is about that one too. */
	if (!process->parent_pid || !rows_selects_pid(&report->rows, process->parent_pid))
		report->result.before_bytes += now->inherited;
	report->result.younger_bytes += now->younger;
	if (process->borrows_space)
		return NULL;
	described->unknown_bytes = holdings.facts.unknown_bytes;
	described->repaired_bytes = holdings.facts.repaired_bytes;
	describe_check(report, process, holdings.facts.check, described);
	report->result.completeness.ambiguous_events += holdings.facts.ambiguous;
	report->result.completeness.repaired_bytes += holdings.facts.repaired_bytes;
	return NULL;
}

/* A child of vfork or clone(CLONE_VM) is as right as the space it shares, while it does. */
static void share_check(const struct report *report, const struct process *process, struct mmt_process *described)
{
	struct space_check check = space_check_result(process->space);

	if (process->borrows_space && check.time_ns < process->ended_ns)
		describe_check(report, process, check, described);
}

static struct mmt_error *describe_processes(struct report *report, struct mmt_process **processes_ret)
{
	size_t count = processes_count(report->replay.processes);
	struct mmt_process *described = arena_alloc(&report->arena, count, sizeof(*described));

	if (!described)
		return &error_no_memory;
	for (size_t i = 0; i < count; i++) {
		const struct process *process = processes_at(report->replay.processes, (uint32_t)i);
		struct mmt_process *next = &described[report->result.process_count];
		struct mmt_error *error;

		if (!rows_selects(&report->rows, process)) {
			report->result.left_out_process_count++;
			continue;
		}
		error = describe_process(report, process, next);
		if (error)
			return error;
		share_check(report, process, next);
		report->result.process_count++;
	}
	report->result.processes = *processes_ret = described;
	return NULL;
}

/* A window that ends early leaves the rest unread. */
static uint64_t end_of_recording(const struct reader_metadata *metadata, uint64_t to_ns)
{
	uint64_t end_ns = metadata->has_loss ? metadata->loss.stop_ns : metadata->last_ns;

	return end_ns > to_ns ? end_ns : to_ns + 1;
}

static const char *const *copy_texts(struct arena *arena, const char *const *texts, size_t count)
{
	const char **copies = arena_alloc(arena, count, sizeof(*copies));

	for (size_t i = 0; copies && i < count; i++) {
		copies[i] = arena_string(arena, texts[i]);
		if (!copies[i])
			return NULL;
	}
	return copies;
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
	result->from_ns = report->replay.window.from_ns ? report->replay.window.from_ns : result->start_ns;
	result->to_ns = report->replay.window.to_ns < result->end_ns ? report->replay.window.to_ns : result->end_ns;
	result->births_to_ns =
	    report->replay.window.births_to_ns < result->to_ns ? report->replay.window.births_to_ns : result->to_ns;
	result->windowed = report->replay.window.windowed;
	if (report->replay.window.ends_early)
		result->end_ns = end_of_recording(metadata, result->to_ns);
	result->by = options->by;
	result->classes = options->classes;
	result->hide_count = options->hide_count;
	result->hide = copy_texts(&report->arena, options->hide, options->hide_count);
	if (!result->hide)
		return &error_no_memory;
	result->exact_order = report->replay.order != NULL;
	result->stacks_recorded = metadata->ours && metadata->info.call_graph != MMT_CALL_GRAPH_NONE;
	result->stack_dump_bytes = metadata->ours ? metadata->info.stack_dump_bytes : 0;
	result->start_realtime_ns = metadata->ours ? metadata->info.start_realtime_ns : 0;
	memcpy(result->events, report->replay.call_counts, sizeof(result->events));
	return notes_describe(&report->replay.notes, result->from_ns, &report->arena, result);
}

static void describe_loss(struct report *report)
{
	const struct reader_metadata *metadata = report->replay.metadata;
	struct mmt_completeness *completeness = &report->result.completeness;

	completeness->incomplete = metadata->incomplete;
	completeness->large_dumps_off_ns = notes_large_dumps_off_ns(&report->replay.notes, report->replay.last_ns);
	completeness->unfinished_records = reader_unfinished(report->replay.reader).records;
	completeness->unfinished_ns = reader_unfinished(report->replay.reader).span_ns;
	completeness->missed_threads = metadata->loss.missed_threads;
	completeness->missed_cpus = metadata->loss.missed_cpus;
	completeness->left_processes = metadata->loss.left_processes;
	completeness->damage = reader_damage(report->replay.reader);
	completeness->damaged = completeness->damage != NULL;
	completeness->out_of_order_events = reader_out_of_order(report->replay.reader);
	for (size_t i = 0; i < metadata->loss.lost.count && i < metadata->attribute_count; i++) {
		if (metadata->attributes[i].role == ROLE_DUMP)
			completeness->lost_stack_dumps += metadata->loss.lost.items[i];
		else if (metadata->attributes[i].role == ROLE_LARGE_DUMP)
			completeness->lost_large_stack_dumps += metadata->loss.lost.items[i];
		else
			completeness->lost_events += metadata->loss.lost.items[i];
	}
	/* A file without the recorder's own count has only what the rings wrote down. */
	if (!metadata->has_loss)
		completeness->lost_events = report->replay.lost_events;
	completeness->repaired_by_loss = completeness->repaired_bytes && completeness->lost_events;
}

static struct mmt_error *add_figures(struct report *report)
{
	struct replay *replay = &report->replay;
	struct mmt_report *result = &report->result;
	struct mmt_error *error = steps_end(&report->steps, replay, result);

	if (!error)
		error = groups_build(replay, &report->rows, &report->arena, result);
	if (!error)
		error = steps_publish(&report->steps, replay, &report->arena, result);
	if (!error)
		error = totals_of_threads(replay, &report->rows, &report->arena, result);
	if (!error)
		error = totals_of_failures(replay, &report->rows, &report->arena, result);
	return error ? error : lacks_describe(replay, &report->arena, result);
}

/* Where all large dumps are there nothing larger can be recommended. */
static void describe_large_dumps(struct report *report)
{
	const struct reader_metadata *metadata = report->replay.metadata;
	const struct mmt_completeness *completeness = &report->result.completeness;

	if (completeness->large_dumps_off_ns || completeness->lost_large_stack_dumps)
		return;
	for (size_t i = 0; i < metadata->attribute_count; i++) {
		if (metadata->attributes[i].role == ROLE_LARGE_DUMP)
			report->result.stack_dump_bytes = MMT_STACK_DUMP_BYTES_MAX;
	}
}

/* When the frames have been named. */
static void describe_generated_code(struct report *report, struct mmt_process *described)
{
	for (size_t i = 0; i < processes_count(report->replay.processes); i++) {
		struct generated_code code = code_view_generated(report->replay.code, (uint32_t)i);

		if (!rows_selects(&report->rows, processes_at(report->replay.processes, (uint32_t)i)))
			continue;
		described->runtime = code.runtime ? code.runtime->name : NULL;
		described->unnamed_code = code.unnamed;
		described++;
	}
}

static struct mmt_error *build(struct report *report, const struct mmt_report_options *options)
{
	struct mmt_process *processes = NULL;
	struct mmt_error *error;

	report->rows.code = report->replay.code;
	report->rows.processes = report->replay.processes;
	report->rows.lost_stack = report->replay.lost_stack;
	steps_watch(&report->steps, &report->replay);
	error = replay_run(&report->replay);
	if (!error)
		error = describe_recording(report, options);
	if (!error)
		error = release_ended(report, options);
	if (!error)
		error = holdings_sum(&report->replay);
	if (!error)
		error = describe_processes(report, &processes);
	if (error)
		return error;
	if (options->pids && !report->result.process_count)
		return error_create(MMT_ERROR_INVALID, "%s: holds none of these processes", options->input);
	describe_loss(report);
	describe_large_dumps(report);
	error = add_figures(report);
	describe_generated_code(report, processes);
	return error;
}

struct mmt_error *mmt_report_create(const struct mmt_report_options *options, struct mmt_report **report_ret)
{
	struct report *report = calloc(1, sizeof(*report));
	struct replay_options replay = {.report = options, .find_row = rows_find};
	struct mmt_error *error;

	if (!report)
		return &error_no_memory;
	rows_init(&report->rows, options, &report->arena);
	steps_init(&report->steps, options, &report->rows);
	replay.context = &report->rows;
	error = replay_init(&report->replay, &replay);
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

struct mmt_error *mmt_report_annotate(struct mmt_report *result, const struct mmt_frame *frame, size_t around,
				      struct mmt_annotation *annotation_ret)
{
	struct report *report = (struct report *)result; /* its first member */

	return annotate_frame(report->replay.code, &report->arena, frame, around, report->replay.window.ends_early,
			      annotation_ret);
}

void mmt_report_destroy(struct mmt_report *result)
{
	struct report *report = (struct report *)result; /* its first member */

	if (!report)
		return;
	rows_deinit(&report->rows);
	steps_deinit(&report->steps);
	arena_deinit(&report->arena);
	replay_deinit(&report->replay);
	free(report);
}
