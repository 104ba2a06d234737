// SPDX-License-Identifier: LGPL-2.1-or-later
/* The JSON documents of report and diff; json-document.c writes their syntax. */
#include <inttypes.h>
#include <mmtrace/trace.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "output/json/json-document.h"
#include "output/selection.h"

/* mmt_stack_end_name() is for people. */
#define STACK_END_WORD(end, name, word) word,
static const char *const stack_end_words[] = {MMT_STACK_END_WORDS(STACK_END_WORD)};

/* A member of `it`, with its name as the key. */
#define PUT_MEMBER(name)                                                                                               \
	_Generic(it->name, bool : document_bool, const char * : document_string, int64_t : document_signed,            \
		 default : document_unsigned)(document, #name, it->name);

/* clang-format off */
#define RECORDING_MEMBERS(DO) \
	DO(input) DO(command_line) DO(host) DO(kernel) DO(recorded_by) DO(start_ns) DO(end_ns) DO(from_ns) \
	DO(to_ns) DO(allocations_to_ns) DO(windowed) DO(stacks_recorded) DO(stack_dump_bytes)

#define LOSS_MEMBERS(DO) \
	DO(incomplete) DO(unfinished_records) DO(unfinished_ns) DO(damaged) DO(damage) DO(lost_events) \
	DO(lost_stack_dumps) DO(lost_large_stack_dumps) DO(large_dumps_off_ns) DO(lost_faults) DO(lost_reclaims) \
	DO(missed_threads) DO(missed_cpus) DO(left_processes) DO(ambiguous_events) DO(out_of_order_events) \
	DO(reconciled_bytes) DO(reconciled_by_loss)

#define STACK_MEMBERS(DO) \
	DO(complete_stacks) DO(doubtful_stacks) DO(truncated_stacks) DO(frames) DO(frames_without_name) \
	DO(jit_frames_without_name) DO(runtime_frames_without_name)

#define FRAME_MEMBERS(DO) DO(function) DO(raw_function) DO(module) DO(module_path) DO(source_file)

#define FAILURE_MEMBERS(DO) DO(error) DO(count) DO(asked_bytes) DO(first_ns) DO(last_ns)

#define PART_MEMBERS(DO) DO(runtime) DO(hint) DO(bytes) DO(mapped_bytes) DO(filled_bytes) \
	DO(touched_bytes) DO(touched_error_bytes) DO(unattributed_bytes)

#define STEP_MEMBERS(DO) \
	DO(to_ns) DO(unfreed_bytes) DO(committed_bytes) DO(reserved_bytes) DO(resident_bytes) \
	DO(process_resident_bytes) DO(heap_in_use_bytes) DO(heap_free_bytes)

#define THREAD_MEMBERS(DO) \
	DO(allocated_bytes) DO(allocated_count) DO(freed_by_itself_bytes) DO(freed_by_others_bytes) \
	DO(unfreed_bytes) DO(unfreed_count) DO(released_bytes)

#define DIFF_MEMBERS(DO) \
	DO(bytes) DO(committed_bytes) DO(growth_bytes) DO(committed_growth_bytes) DO(entry_count) \
	DO(uncertain_count) DO(search_limited) DO(same_count) \
	DO(incomparable) DO(left_out_bytes) DO(left_out_resident_bytes)
/* clang-format on */

static void put_words(struct document *document, const char *key, const char *const *words, size_t count)
{
	document_each(document, key, i, count)
		document_string(document, NULL, words[i]);
}

static void put_completeness(struct document *document, const struct mmt_completeness *it)
{
	document_open_object(document, "completeness");
	LOSS_MEMBERS(PUT_MEMBER)
	document_open_object(document, "stacks_by_end");
	for (unsigned end = 0; end < MMT_STACK_END_KINDS; end++)
		document_unsigned(document, stack_end_words[end], it->stacks_by_end[end]);
	document_close(document);
	STACK_MEMBERS(PUT_MEMBER)
	put_words(document, "warnings", it->warnings, it->warning_count);
	document_each(document, "warning_codes", i, it->warning_count)
		document_string(document, NULL, mmt_warning_name(it->warning_codes[i]));
	document_close(document);
}

static void put_signed(struct document *document, const char *key, int64_t value, bool known)
{
	if (known)
		document_signed(document, key, value);
	else
		document_null(document, key);
}

static void put_unsigned(struct document *document, const char *key, uint64_t value, bool known)
{
	document_unsigned(document, key, known ? value : MMT_UNKNOWN);
}

/* One figure of `it`. */
#define PUT(name, unit, known, ...)                                                                                    \
	_Generic(it->name, uint64_t : put_unsigned, int64_t : put_signed)(document, #name, it->name, known);

#define UNKNOWN(name, ...) .name = MMT_UNKNOWN,

static void put_process_readings(struct document *document, const struct mmt_process_readings *readings)
{
	const struct mmt_process_readings none = {MMT_READINGS_FIGURES(UNKNOWN).start_ns = MMT_UNKNOWN,
						  .end_ns = MMT_UNKNOWN};
	const struct mmt_process_readings *it = readings ? readings : &none;

	MMT_READINGS_FIGURES(PUT)
	document_unsigned(document, "start_reading_ns", it->start_ns);
	document_unsigned(document, "end_reading_ns", it->end_ns);
	document_string(document, "verdict", it->growth_known ? mmt_verdict_name(it->verdict) : NULL);
	put_signed(document, "growth_bytes", it->growth_bytes, it->growth_known);
	put_signed(document, "bytes_per_minute", it->bytes_per_minute,
		   it->growth_known && it->verdict > MMT_VERDICT_TOO_SHORT);
	document_bool(document, "grows", it->grows);
	document_bool(document, "brief", it->brief);
}

/* Put it into the open object. */
static void put_process(struct document *document, const struct mmt_process *it)
{
	document_signed(document, "pid", it->pid);
	put_signed(document, "parent_pid", it->parent_pid, it->parent_pid);
	put_signed(document, "container_pid", it->container_pid, it->container_pid);
	document_string(document, "name", it->name);
	document_unsigned(document, "start_boot_ns", it->start_boot_ns ? it->start_boot_ns : MMT_UNKNOWN);
	document_bool(document, "ended", it->ended);
	document_bool(document, "released", it->released);
	document_string(document, "runtime", it->runtime);
	document_bool(document, "unnamed_code", it->unnamed_code);
	document_unsigned(document, "threads", it->threads);
	MMT_PROCESS_FIGURES(PUT)
	put_process_readings(document, it->readings);
	document_bool(document, "checked", it->checked);
	document_bool(document, "checked_before_exec", it->checked_before_exec);
}

/* Open the object, or put null in its place. */
static bool open_known(struct document *document, const char *key, bool known)
{
	if (known)
		document_open_object(document, key);
	else
		document_null(document, key);
	return known;
}

static void put_pids(struct document *document, const int32_t *pids, size_t count)
{
	document_each(document, "pids", i, count)
		document_signed(document, NULL, pids[i]);
}

static void put_stack(struct document *document, enum mmt_stack_end end, const struct mmt_frame *const *frames,
		      size_t count)
{
	document_string(document, "stack_end", stack_end_words[end]);
	document_each_object(document, "frames", i, count) {
		const struct mmt_frame *it = frames[i];
		static const char *const kinds[] = {
		    [MMT_FRAME_NATIVE] = "native",
		    [MMT_FRAME_JIT] = "jit",
		    [MMT_FRAME_UNKNOWN] = "unknown",
		};

		document_string(document, "kind", kinds[it->kind]);
		FRAME_MEMBERS(PUT_MEMBER)
		document_unsigned(document, "source_line", it->source_line ? it->source_line : MMT_UNKNOWN);
		document_bool(document, "inlined", it->inlined);
		document_bool(document, "doubtful", it->doubtful);
		document_address(document, "address", it->address);
		if (it->kind == MMT_FRAME_NATIVE)
			document_address(document, "module_offset", it->module_offset);
		else
			document_null(document, "module_offset");
	}
}

static void put_thread(struct document *document, const char *key, const struct mmt_thread *thread)
{
	document_open_object(document, key);
	document_signed(document, "pid", thread->pid);
	document_signed(document, "tid", thread->tid);
	document_string(document, "name", thread->name);
	document_close(document);
}

static void put_row(struct document *document, const char *key, const struct mmt_row *it)
{
	char room[EXPORT_NAME_BYTES], identity[17];

	if (!open_known(document, key, it))
		return;
	snprintf(identity, sizeof(identity), "%016" PRIx64, it->identity);
	document_unsigned(document, "id", it->id);
	document_string(document, "name", selection_row_name(it, room));
	document_string(document, "identity", it->identity ? identity : NULL);
	document_bool(document, "lines_differ", it->lines_differ);
	document_string(document, "pattern", mmt_pattern_name(it->pattern));
	document_string(document, "hint", it->hint);
	document_bool(document, "lost", it->lost);
	document_open_object(document, "class_bytes");
	for (unsigned kind = 0; kind < MMT_CLASS_KINDS; kind++)
		document_unsigned(document, mmt_class_name((enum mmt_class)kind), it->class_bytes[kind]);
	document_close(document);
	document_string(document, "memory_class", mmt_class_name(it->memory_class));
	document_string(document, "file", it->file);
	document_unsigned(document, "file_count", it->file_count);
	document_string(document, "verdict", mmt_row_verdict_name(it->verdict));
	MMT_ROW_FIGURES(PUT)
	document_unsigned(document, "reserved_by", it->reserved_by ? it->reserved_by : MMT_UNKNOWN);
	document_unsigned(document, "joined_to", it->joined_to ? it->joined_to : MMT_UNKNOWN);
	document_numbers(document, "trend", it->trend, MMT_TREND_POINTS);
	document_numbers(document, "survivor_trend", it->survivor_trend, MMT_TREND_POINTS);
	document_numbers(document, "committed_trend", it->committed_trend, it->committed_trend ? MMT_TREND_POINTS : 0);
	if (it->step_count)
		document_numbers(document, "step_bytes", it->step_bytes, it->step_count);
	document_each(document, "threads", i, it->thread_count)
		put_thread(document, NULL, &it->threads[i]);
	put_pids(document, it->pids, it->pid_count);
	put_stack(document, it->stack_end, it->frames, it->frame_count);
	document_close(document);
}

/* The figures that are not of rows. */
static void put_side_figures(struct document *document, const struct mmt_report *report)
{
	document_each_object(document, "failures", i, report->failure_count) {
		const struct mmt_failure *it = &report->failures[i];

		document_string(document, "call", mmt_event_count_name(it->call));
		FAILURE_MEMBERS(PUT_MEMBER)
		put_pids(document, it->pids, it->pid_count);
		put_stack(document, it->stack_end, it->frames, it->frame_count);
		document_bool(document, "refused", it->refused);
		document_string(document, "limit", mmt_limit_name(it->limit.kind));
		document_unsigned(document, "limit_value", it->limit.kind ? it->limit.value : MMT_UNKNOWN);
		document_unsigned(document, "limit_used", it->limit.kind ? it->limit.used : MMT_UNKNOWN);
	}
	if (!report->stalls)
		document_null(document, "stalls");
	else
		document_each_object(document, "stalls", i, report->stall_count) {
			const struct mmt_stall *it = &report->stalls[i];

			document_unsigned(document, "count", it->count);
			document_unsigned(document, "total_ns", it->total_ns);
			document_unsigned(document, "longest_ns", it->longest_ns);
			put_pids(document, &it->pid, 1);
			put_stack(document, it->stack_end, it->frames, it->frame_count);
		}
	document_each_object(document, "thread_totals", i, report->thread_total_count) {
		const struct mmt_thread_total *it = &report->thread_totals[i];

		put_thread(document, "thread", &it->thread);
		THREAD_MEMBERS(PUT_MEMBER)
	}
	document_each_object(document, "releases", i, report->release_count) {
		document_unsigned(document, "owner", report->releases[i].owner);
		document_unsigned(document, "releaser", report->releases[i].releaser);
		document_unsigned(document, "bytes", report->releases[i].bytes);
	}
}

static void put_parts(struct document *document, const char *key, const struct mmt_growth_part *parts, size_t count)
{
	document_each_object(document, key, i, count) {
		const struct mmt_growth_part *it = &parts[i];
		bool has_class = it->memory_class < MMT_CLASS_KINDS;

		document_string(document, "place", mmt_growth_place_name(it->place));
		document_string(document, "class", has_class ? mmt_class_name(it->memory_class) : NULL);
		document_bool(document, "arena", it->arena);
		document_string(document, "name", it->name);
		document_string(document, "pattern", mmt_pattern_name(it->pattern));
		PART_MEMBERS(PUT_MEMBER)
		document_each_object(document, "touchers", k, it->toucher_count) {
			const struct mmt_toucher *toucher = &it->touchers[k];

			document_string(document, "function", toucher->name);
			document_unsigned(document, "bytes", toucher->bytes);
			document_unsigned(document, "error_bytes", toucher->error_bytes);
			put_stack(document, toucher->stack_end, toucher->frames, toucher->frame_count);
		}
	}
}

static void put_growth(struct document *document, const struct mmt_report *report)
{
	const struct mmt_growth *it = &report->growth;

	document_string(document, "headline", mmt_report_headline(report));
	document_open_object(document, "growth");
	document_string(document, "verdict", mmt_verdict_name(it->verdict));
	document_string(document, "measure", !it->verdict ? NULL : it->by_pss ? "pss" : "rss");
	document_string(document, "sum_verdict", mmt_verdict_name(it->by_process ? it->sum_verdict : it->verdict));
	document_bool(document, "faults_recorded", it->faults_recorded);
	document_bool(document, "faults_sampled", it->faults_sampled);
	document_string(document, "parts_measure", !it->parts_known ? NULL : it->parts_private ? "private" : "rss");
	MMT_GROWTH_FIGURES(PUT)
	put_parts(document, "parts", it->parts, it->part_count);
	document_close(document);
}

static void put_counters(struct document *document, const char *name, uint64_t time_ns,
			 const uint64_t figures[MMT_GROUP_FIGURES])
{
	static const char *const keys[MMT_GROUP_FIGURES] = {"current_bytes", "anon_bytes",  "file_bytes", "shmem_bytes",
							    "kernel_bytes",  "limit_bytes", "oom_kills",  "stalled_us",
							    "high_bytes",    "throttled"};

	document_open_object(document, name);
	document_unsigned(document, "time_ns", time_ns);
	for (unsigned figure = 0; figure < MMT_GROUP_FIGURES; figure++)
		document_unsigned(document, keys[figure], figures[figure]);
	document_close(document);
}

static void put_oom_kills(struct document *document, const struct mmt_report *report)
{
	document_each_object(document, "oom_kills", i, report->oom_kill_count) {
		const struct mmt_oom_kill *oom_kill = &report->oom_kills[i];

		document_unsigned(document, "time_ns", oom_kill->time_ns);
		document_signed(document, "pid", oom_kill->pid);
		document_string(document, "name", *oom_kill->name ? oom_kill->name : NULL);
		document_bool(document, "in_report", mmt_oom_kill_victim(report, oom_kill));
	}
}

static void put_control_group(struct document *document, const struct mmt_report *report, const char *key,
			      const struct mmt_control_group *row)
{
	if (!open_known(document, key, row))
		return;
	document_string(document, "path", row->path);
	document_bool(document, "selected", row->selected);
	put_counters(document, "start", row->start_ns, row->start);
	put_counters(document, "end", row->end_ns, row->end);
	document_unsigned(document, "peak_bytes", row->peak_bytes);
	document_unsigned(document, "full_in_ns",
			  row == report->limiting_group ? mmt_control_group_full_ns(report) : MMT_UNKNOWN);
	document_close(document);
}

static void put_census(struct document *document, const char *key, const struct mmt_heap_census *it)
{
	if (!open_known(document, key, it))
		return;
	put_unsigned(document, "time_ns", it->time_ns, it->time_ns);
	document_string(document, "result", selection_heap_results[it->result]);
	MMT_CENSUS_FIGURES(PUT)
	document_close(document);
}

/* Put it into the open object. */
static void put_heap(struct document *document, const struct mmt_heap *heap)
{
	const char *allocator = heap->end->allocator_name;

	document_signed(document, "pid", heap->process->pid);
	document_string(document, "allocator", allocator && *allocator ? allocator : NULL);
	document_string(document, "verdict", mmt_heap_verdict_name(heap->verdict));
	document_unsigned(document, "census_count", heap->census_count);
	put_census(document, "start", heap->start);
	put_census(document, "end", heap->end);
	document_each_object(document, "kinds", i, heap->kind_count) {
		const struct mmt_heap_kind *it = &heap->kinds[i];

		document_string(document, "content", selection_heap_contents[it->content]);
		document_string(document, "name", it->name);
		document_unsigned(document, "offset", it->content == MMT_HEAP_POINTER ? it->offset : MMT_UNKNOWN);
		document_bool(document, "is_one_block", it->is_one_block);
		MMT_HEAP_KIND_FIGURES(PUT)
	}
}

/* Put everything except the rows into the open object. */
static void put_recording(struct document *document, const struct mmt_report *it)
{
	const struct mmt_command_end *end = &it->command_end;

	RECORDING_MEMBERS(PUT_MEMBER)
	put_unsigned(document, "mapping_limit", it->mapping_limit, it->mapping_limit);
	document_string(document, "by", mmt_row_key_name(it->by));
	document_string(document, "then_by", it->then_by == MMT_BY_STACK ? NULL : mmt_row_key_name(it->then_by));
	put_words(document, "focus", it->options.focus, it->options.focus_count);
	put_words(document, "ignore", it->options.ignore, it->options.ignore_count);
	document_each(document, "classes", kind, MMT_CLASS_KINDS) {
		if (it->options.classes >> kind & 1)
			document_string(document, NULL, mmt_class_name((enum mmt_class)kind));
	}
	put_unsigned(document, "start_realtime_ns", it->start_realtime_ns, it->start_realtime_ns);
	document_open_object(document, "events");
	for (unsigned kind = 0; kind < MMT_COUNT_KINDS; kind++)
		document_unsigned(document, mmt_event_count_name(kind), it->events[kind]);
	document_close(document);
	document_unsigned(document, "failed_calls", it->failed_calls);
	put_completeness(document, &it->completeness);
	put_growth(document, it);
	put_control_group(document, it, "control_group", it->control_group);
	put_control_group(document, it, "limiting_group",
			  it->limiting_group == it->control_group ? NULL : it->limiting_group);
	if (open_known(document, "huge_pages", it->huge_pages_known)) {
		document_unsigned(document, "bytes", it->huge_pages.bytes);
		document_unsigned(document, "zero_bytes", it->huge_pages.zero_bytes);
		document_string(document, "hint", it->huge_pages.hint);
		document_close(document);
	}
	document_each_object(document, "heaps", i, it->heap_count)
		put_heap(document, &it->heaps[i]);
	put_oom_kills(document, it);
	if (open_known(document, "command_end", end->time_ns)) {
		document_unsigned(document, "time_ns", end->time_ns);
		document_signed(document, "pid", end->pid);
		document_unsigned(document, "exit_status",
				  WIFEXITED(end->status) ? (uint64_t)WEXITSTATUS(end->status) : MMT_UNKNOWN);
		document_unsigned(document, "signal",
				  WIFSIGNALED(end->status) ? (uint64_t)WTERMSIG(end->status) : MMT_UNKNOWN);
		document_close(document);
	}
	document_each_object(document, "resident_readings", i, it->resident_reading_count) {
		document_unsigned(document, "time_ns", it->resident_readings[i].time_ns);
		document_unsigned(document, "resident_bytes", it->resident_readings[i].resident_bytes);
		document_unsigned(document, "swapped_bytes", it->resident_readings[i].swapped_bytes);
	}
	document_each_object(document, "processes", i, it->process_count)
		put_process(document, &it->processes[i]);
	document_unsigned(document, "left_out_process_count", it->left_out_process_count);
	MMT_REPORT_FIGURES(PUT)
	document_unsigned(document, "group_count", it->row_count);
}

static void put_causes(struct document *document, const struct mmt_report *report)
{
	document_each_object(document, "causes", i, report->cause_count) {
		const struct mmt_cause *it = &report->causes[i];

		document_string(document, "name", it->name);
		document_string(document, "pattern", mmt_pattern_name(it->pattern));
		document_string(document, "memory_class", mmt_class_name(it->memory_class));
		document_string(document, "file", it->file);
		document_string(document, "caller", it->caller);
		document_unsigned(document, "caller_bytes", it->caller ? it->caller_bytes : MMT_UNKNOWN);
		document_string(document, "verdict", mmt_row_verdict_name(it->verdict));
		document_bool(document, "leaks_together", it->leaks_together);
		MMT_CAUSE_FIGURES(PUT)
		document_each(document, "groups", j, it->row_count)
			document_unsigned(document, NULL, it->rows[j]);
	}
}

struct mmt_error *mmt_report_write_json(const struct mmt_report *report, const struct mmt_text_options *options,
					FILE *stream)
{
	struct selection selection = {0};
	struct mmt_error *error = selection_create(report, options, true, &selection);
	struct document memory, *document = &memory;

	if (error)
		return error;
	document_start(document, stream, options->one_line ? DOCUMENT_COMPACT : DOCUMENT_SPACED);
	document_string(document, "mmtrace", "report");
	document_unsigned(document, "version", MMT_JSON_VERSION);
	put_recording(document, report);
	if (report->step_count) {
		document_unsigned(document, "every_ns", report->every_ns);
		document_each_object(document, "steps", i, report->step_count) {
			const struct mmt_step *it = &report->steps[i];

			STEP_MEMBERS(PUT_MEMBER)
		}
	}
	put_causes(document, report);
	if (open_known(document, "before_end", report->before_end)) {
		document_unsigned(document, "to_ns", report->before_end->to_ns);
		put_growth(document, report->before_end);
		put_causes(document, report->before_end);
		document_close(document);
	}
	document_unsigned(document, "hidden_count", selection.hidden.count);
	document_unsigned(document, "hidden_bytes", selection.hidden.bytes);
	document_each(document, "groups", i, selection.count)
		put_row(document, NULL, selection.rows[i]);
	put_side_figures(document, report);
	document_finish(document);
	free(selection.rows);
	return NULL;
}

/* Whole bytes; null if there is no rate. */
static void put_rate(struct document *document, const char *key, double bytes_per_second)
{
	bool usable = bytes_per_second >= 0 && bytes_per_second < 0x1p63;

	document_unsigned(document, key, usable ? (uint64_t)(bytes_per_second + 0.5) : MMT_UNKNOWN);
}

struct mmt_error *mmt_diff_write_json(const struct mmt_diff *it, const struct mmt_text_options *options, FILE *stream)
{
	bool same = it->relation == MMT_DIFF_SAME_PROCESS;
	/* Of memory that was mapped before, the part that --focus and --ignore select is not known. */
	bool unfiltered = !selection_has_patterns(it->before) && !selection_has_patterns(it->after);
	struct diff_selection selection = {0};
	struct mmt_error *error = selection_of_diff(it, options, &selection);
	struct document memory, *document = &memory;

	if (error)
		return error;
	document_start(document, stream, DOCUMENT_SPACED);
	document_string(document, "mmtrace", "diff");
	document_unsigned(document, "version", MMT_JSON_VERSION);
	document_open_object(document, "before");
	put_recording(document, it->before);
	document_close(document);
	document_open_object(document, "after");
	put_recording(document, it->after);
	document_close(document);
	document_string(document, "relation", mmt_diff_relation_name(it->relation));
	put_signed(document, "longer_ns", it->longer_ns, it->rated);
	put_unsigned(document, "between_ns", it->between_ns, same);
	put_unsigned(document, "mapped_before_bytes", it->mapped_before_bytes, same && unfiltered);
	put_unsigned(document, "mapped_after_bytes", it->mapped_after_bytes, same && unfiltered);
	put_unsigned(document, "replaced_bytes", it->replaced_bytes, unfiltered);
	put_unsigned(document, "larger_bytes", it->larger_bytes, unfiltered);
	put_signed(document, "between_bytes", it->between_bytes, it->between_parts_known);
	put_signed(document, "between_unexplained_bytes", it->between_unexplained_bytes, it->between_parts_known);
	put_parts(document, "between_parts", it->between_parts, it->between_part_count);
	document_each_object(document, "heaps", i, it->heap_count)
		put_heap(document, &it->heaps[i]);
	DIFF_MEMBERS(PUT_MEMBER)
	document_unsigned(document, "hidden_count", selection.hidden_count);
	document_each_object(document, "entries", i, selection.count) {
		const struct mmt_diff_entry *entry = selection.entries[i];

		document_string(document, "change", mmt_change_name(entry->change));
		document_signed(document, "bytes", entry->bytes);
		document_signed(document, "committed_bytes", entry->committed_bytes);
		document_signed(document, "count", entry->count);
		document_unsigned(document, "differing_frames", entry->differing_frames);
		document_unsigned(document, "part_of", entry->part_of ? entry->part_of->id : MMT_UNKNOWN);
		put_rate(document, "before_bytes_per_second", it->rated ? entry->before_bytes_per_second : -1);
		put_rate(document, "after_bytes_per_second", it->rated ? entry->after_bytes_per_second : -1);
		put_row(document, "before", entry->before);
		put_row(document, "after", entry->after);
	}
	document_finish(document);
	free(selection.entries);
	return NULL;
}

static void put_call_stack(struct document *document, const struct mmt_row *it, bool stacks)
{
	bool whole = stacks || it->origin >= it->frame_count;

	document_string(document, "class", mmt_class_name(it->memory_class));
	document_string(document, "pattern", mmt_pattern_name(it->pattern));
	PUT_MEMBER(file)
	put_stack(document, it->stack_end, it->frames + (whole ? 0 : it->origin), whole ? it->frame_count : 1);
}

static void put_memory(struct document *document, const char *name, const struct mmt_traced_memory *memory, bool stacks)
{
	document_open_object(document, name);
	document_unsigned(document, "bytes", memory->row.unfreed_bytes);
	document_bool(document, "known", memory->known);
	document_bool(document, "inherited", memory->inherited);
	document_unsigned(document, "age_ns", memory->age_ns);
	put_call_stack(document, &memory->row, stacks);
	document_close(document);
}

void mmt_traced_call_write_json(const struct mmt_traced_call *it, bool stacks, FILE *stream)
{
	struct document memory, *document = &memory;
	char number[32]; /* of an error without a name */

	document_start(document, stream, DOCUMENT_COMPACT);
	snprintf(number, sizeof(number), "error %d", it->error);
	PUT_MEMBER(time_ns)
	put_unsigned(document, "realtime_ns", it->realtime_ns, it->realtime_ns);
	document_signed(document, "pid", it->thread.pid);
	document_signed(document, "tid", it->thread.tid);
	document_string(document, "thread", it->thread.name);
	document_string(document, "call", it->name);
	document_each(document, "arguments", i, it->argument_count)
		document_address(document, NULL, it->arguments[i]);
	document_address(document, "result", (uint64_t)it->result);
	document_string(document, "error", it->error ? strerrorname_np(it->error) ?: number : NULL);
	document_string(document, "limit", mmt_limit_name(it->limit.kind));
#define PUT_EFFECT(kind, name, verb) document_unsigned(document, #name, it->bytes[MMT_EFFECT_##kind]);
	MMT_EFFECTS(PUT_EFFECT)
	put_call_stack(document, &it->stack, stacks);
	put_memory(document, "owner", &it->owner, stacks);
	if (it->freed.row.unfreed_bytes)
		put_memory(document, "freed", &it->freed, stacks);
	document_finish(document);
}
