// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes a report: replays the recording and has each part of the report built, in order. */
#include <errno.h>
#include <inttypes.h>

#include "analysis/report/report-build.h"
#include "base/figures.h"

#define EXEC_NS 100000000ULL /* the old memory may be unmapped up to this long before the exec record */

#define NO_PLACE SIZE_MAX

static uint64_t unfreed_bytes(const struct thread_account *account)
{
	uint64_t freed_bytes =
	    saturating_add(account->freed_by_itself_bytes, account->freed_by_others_bytes, MMT_BYTES_MAX);

	return account->allocated_bytes > freed_bytes ? account->allocated_bytes - freed_bytes : 0;
}

/* Thread numbers, by the accounts. */
COMPARISON_WITH(compare_totals, uint32_t, struct thread_account,
		order_of(unfreed_bytes(&with[*b]), unfreed_bytes(&with[*a]))
		?: order_of(with[*b].allocated_bytes, with[*a].allocated_bytes) ?: order_of(*a, *b))

COMPARISON(compare_releases, struct mmt_release,
	   order_of(b->bytes, a->bytes) ?: order_of(a->owner, b->owner) ?: order_of(a->releaser, b->releaser))

/* `places`: by thread number, its index in the totals. */
static struct mmt_error *list_releases(const struct rows *rows, const size_t *places, struct mmt_report *report)
{
	const struct map *map = &rows->replay->ledger.releases;
	struct mmt_release *releases = arena_alloc(rows->arena, map->count, sizeof(*releases));

	if (!releases)
		return &error_no_memory;
	map_each(release, map, true) {
		size_t owner = (size_t)(release->key >> 32), releaser = (uint32_t)release->key;

		if (places[owner] != NO_PLACE && places[releaser] != NO_PLACE)
			releases[report->release_count++] = (struct mmt_release){
			    .owner = places[owner], .releaser = places[releaser], .bytes = release->value};
	}
	qsort(releases, report->release_count, sizeof(*releases), compare_releases);
	report->releases = releases;
	return NULL;
}

static struct mmt_error *totals_of_threads(const struct rows *rows, struct mmt_report *report)
{
	const struct replay *replay = rows->replay;
	struct thread_account *accounts = replay->ledger.threads.items;
	size_t count = replay->ledger.threads.count;
	CLEANUP(free) uint32_t *numbers = calloc(count + 1, sizeof(*numbers));
	CLEANUP(free) size_t *places = calloc(count + 1, sizeof(*places));
	struct mmt_thread_total *sorted;

	if (!numbers || !places)
		return &error_no_memory;
	for (size_t i = 0; i < count; i++) {
		places[i] = NO_PLACE;
		if ((accounts[i].allocated_bytes || accounts[i].released_bytes) &&
		    rows_selects_pid(rows, rows->replay->processes->all.items[replay->threads.items[i]->process]->pid))
			numbers[report->thread_total_count++] = (uint32_t)i;
	}
	if (report->thread_total_count)
		qsort_r(numbers, report->thread_total_count, sizeof(*numbers), compare_totals, accounts);
	sorted = arena_alloc(rows->arena, report->thread_total_count, sizeof(*sorted));
	if (!sorted)
		return &error_no_memory;
	for (size_t i = 0; i < report->thread_total_count; i++) {
		const struct thread *thread = replay->threads.items[numbers[i]];
		const struct thread_account *account = &accounts[numbers[i]];

		sorted[i] = (struct mmt_thread_total){
		    .thread = {.pid = rows->replay->processes->all.items[thread->process]->pid,
			       .tid = thread->tid,
			       .name = arena_string(rows->arena,
						    intern_get(&rows->replay->processes->names, thread->name, NULL))},
		    .allocated_bytes = account->allocated_bytes,
		    .allocated_count = account->allocated_count,
		    .freed_by_itself_bytes = account->freed_by_itself_bytes,
		    .freed_by_others_bytes = account->freed_by_others_bytes,
		    .unfreed_bytes = unfreed_bytes(account),
		    .unfreed_count = account->allocated_count - account->freed_count,
		    .released_bytes = account->released_bytes,
		};
		if (!sorted[i].thread.name)
			return &error_no_memory;
		places[numbers[i]] = i;
	}
	report->thread_totals = sorted;
	return list_releases(rows, places, report);
}

COMPARISON(compare_failures, struct mmt_failure,
	   order_of(b->count, a->count) ?: order_of(b->asked_bytes, a->asked_bytes)
	   ?: order_of(a->first_ns, b->first_ns))

static struct mmt_error *describe_failure(struct rows *rows, const struct failure *failure,
					  struct mmt_failure *described)
{
	int32_t *pid = arena_alloc(rows->arena, 1, sizeof(*pid));
	struct mmt_row stack = {0};
	struct mmt_error *error = rows_name_stack(rows, failure->stack, &stack);

	if (error || !pid)
		return error ? error : &error_no_memory;
	stack.origin = origin_find(stack.frames, stack.frame_count);
	*pid = rows->replay->processes->all.items[failure->process]->pid;
	*described = (struct mmt_failure){
	    .call = (enum mmt_event_count)failure->call,
	    .error = failure->error,
	    .count = failure->count,
	    .asked_bytes = failure->asked_bytes,
	    .first_ns = failure->first_ns,
	    .last_ns = failure->last_ns,
	    .pids = pid,
	    .pid_count = 1,
	    FIGURES_STACK(&stack),
	};
	return NULL;
}

static struct mmt_error *selects_call(struct rows *rows, uint32_t process, uint32_t stack, bool *selects_ret)
{
	unsigned matches = 0;
	struct mmt_error *error = NULL;

	*selects_ret = rows_selects_pid(rows, rows->replay->processes->all.items[process]->pid);
	if (*selects_ret)
		error = rows_match_stack(rows, stack, &matches);
	*selects_ret = *selects_ret && matches == (rows->filters.focus_keys & FILTER_FRAME_KEYS);
	return error;
}

static struct mmt_error *totals_of_failures(struct rows *rows, struct mmt_report *report)
{
	const struct replay *replay = rows->replay;
	const struct mmt_process *most = report->most_mappings;
	size_t count = replay->ledger.failures.count;
	struct mmt_failure *failures = arena_alloc(rows->arena, count, sizeof(*failures));

	if (!failures)
		return &error_no_memory;
	array_each(failure, replay->ledger.failures.items, count) {
		const struct call_description *call;
		struct mmt_failure *described;
		bool selected;
		struct mmt_error *error = selects_call(rows, failure->process, failure->stack, &selected);

		if (error)
			return error;
		if (!selected)
			continue;
		report->failed_calls += failure->count;
		described = &failures[report->failure_count++];
		error = describe_failure(rows, failure, described);
		if (error)
			return error;
		described->limit = refused_calls_limit(replay, failure,
						       most && most->pid == *described->pids ? most->mapping_count : 0);
		/* malloc maps memory when brk fails, and a range with a hole gives the error of a limit: these failures
		 * are refusals if the limit is known. */
		call = call_of_counter(described->call);
		described->refused =
		    (failure->error == ENOMEM || failure->error == EAGAIN) && call && call->effect != CALL_MARKS &&
		    (described->limit.kind || (call->effect == CALL_MAPS && call->place != CALL_BELOW_RESULT));
	}
	qsort(failures, report->failure_count, sizeof(*failures), compare_failures);
	report->failures = failures;
	return NULL;
}

COMPARISON(compare_stalls, struct mmt_stall, order_of(b->total_ns, a->total_ns) ?: order_of(b->count, a->count) ?: order_of(b->longest_ns, a->longest_ns)
	   ?: order_of(a->pid, b->pid))

static struct mmt_error *totals_of_stalls(struct rows *rows, struct mmt_report *report)
{
	const struct replay *replay = rows->replay;
	size_t count = replay->ledger.stalls.count;
	struct mmt_stall *stalls = arena_alloc(rows->arena, count, sizeof(*stalls));
	struct mmt_error *error = stalls ? NULL : &error_no_memory;

	if (!replay->reclaim_recorded)
		return NULL;
	array_while(stall, replay->ledger.stalls.items, count, !error) {
		struct mmt_row stack = {0};
		bool selected;

		error = selects_call(rows, stall->process, stall->stack, &selected);
		if (error || !selected)
			continue;
		error = rows_name_stack(rows, stall->stack, &stack);
		stack.origin = origin_find(stack.frames, stack.frame_count);
		stalls[report->stall_count++] =
		    (struct mmt_stall){.pid = replay->processes->all.items[stall->process]->pid,
				       .count = stall->count,
				       .total_ns = stall->total_ns,
				       .longest_ns = stall->longest_ns,
				       FIGURES_STACK(&stack)};
	}
	qsort(stalls, report->stall_count, sizeof(*stalls), compare_stalls);
	report->stalls = stalls;
	return error;
}

/* The public report and the memory that it borrows. */
struct report {
	struct mmt_report result;
	struct replay replay;
	struct rows rows;
	struct steps steps;
	struct page_readings readings;
	struct arena arena;
	struct map programs; /* of shared spaces */
};

struct resolver *report_code(const struct mmt_report *result)
{
	return ((const struct report *)result)->replay.code;
}

void mmt_report_options_init(struct mmt_report_options *options)
{
	*options = (struct mmt_report_options){.input = "mmtrace.data"};
}

static void describe_check(const struct report *report, const struct process *process, struct space_check check,
			   struct mmt_process *described)
{
	uint64_t end_ns = check.earlier_program ? process->program_ns /* when the checked program ended */
			  : process->ended	? process->ended_ns
						: report->replay.last_ns;
	uint64_t age_ns = end_ns > check.time_ns ? end_ns - check.time_ns : 0;

	if (!check.done || report->replay.window.ends_early)
		return;
	/* The process may have been exiting then, or the maps may be those of the new program. */
	if (check.earlier_program && check.mismatch_bytes && age_ns < EXEC_NS)
		return;
	described->checked = true;
	described->checked_before_exec = check.earlier_program;
	described->check_age_ns = age_ns;
	described->checked_ns = check.time_ns;
	described->checked_mappings = check.mappings;
	described->mismatch_bytes = check.mismatch_bytes;
	described->unverifiable_bytes = check.unverifiable_bytes;
	described->unread_bytes = check.unread_bytes;
	described->compared_bytes = check.compared_bytes;
}

/* The lowest executable mapping of a file: the kernel maps programs below their libraries. */
static const char *find_program(const struct report *report, const struct space *space)
{
	space_each(interval, space, true) {
		const struct space_attributes *attributes = &interval->attributes;
		const char *path = attributes->path ? resolver_path_name(report->replay.code, attributes->path) : "";

		if ((attributes->protection & PROT_EXEC) && attributes->inode && *path == '/' &&
		    !jit_code_is_path(path))
			return path;
	}
	return NULL;
}

static struct mmt_error *describe_process(struct report *report, const struct process *process,
					  struct mmt_process *described)
{
	const struct process_totals process_totals = process_totals_of(&report->replay, process);
	const struct held_bytes *now = &process_totals.now, *ended = &process_totals.ended;
	const struct process_readings *readings = memory_readings_of(&report->replay.notes.memory, process);
	const struct resident_sums *sums = page_readings_of_process(&report->readings, process);
	const struct notes *notes = &report->replay.notes;
	const struct process_start *start = notes_start(notes, process->pid);
	const uint64_t *program = map_get(&report->programs, (uintptr_t)process->space);
	const uint64_t peak_kib = smaller_of(space_counts(process->space).peak_bytes / 1024, UINT32_MAX);

	*described = (struct mmt_process){
	    .pid = process->pid,
	    .parent_pid = process->parent_pid,
	    .container_pid = start ? start->inside : 0,
	    .name = arena_string(&report->arena, intern_get(&report->replay.processes->names, process->name, NULL)),
	    .ended = process->ended,
	    .released = process_totals_are_released(&report->replay, process),
	    .started_ns = process->started_ns ?: report->replay.metadata->info.command ? process->program_ns : 0,
	    .ended_ns = process->ended_ns,
	    .threads = process->thread_count,
	    .start_boot_ns = start ? start->boot_ns : 0,
	    .control_group = start ? intern_get(&notes->control_groups, start->control_group, NULL) : "",
	    .resident_bytes = sums ? sums->rss_bytes : MMT_UNKNOWN,
	    .readings = readings ? &readings->of : NULL,
	    .unfreed_bytes = now->unfreed + ended->unfreed,
	    .committed_bytes = now->committed + ended->committed,
	    .peak_kib = process->program_ns > process->started_ns ? (uint32_t)peak_kib : 0,
	    .reserved_bytes = now->reserved + ended->reserved,
	    .before_bytes = now->inherited + now->older + ended->inherited + ended->older,
	    .kernel_bytes = now->kernel + ended->kernel,
	};
	if (!described->name)
		return &error_no_memory;
	/* Many processes may share a space with many mappings. */
	described->program = program ? (const char *)(uintptr_t)*program : find_program(report, process->space);
	if (!program && (process->borrows_space || process->next_sharer != process) &&
	    !map_put_pointer(&report->programs, (uintptr_t)process->space, described->program))
		return &error_no_memory;
	report->result.ended_bytes += ended->unfreed;
	report->result.before_bytes += now->older;
	report->result.kernel_bytes += now->kernel;
	/* Memory that a child inherited counts for its parent, if the report includes the parent. */
	if (!process->parent_pid || !rows_selects_pid(&report->rows, process->parent_pid))
		report->result.before_bytes += now->inherited;
	report->result.too_recent_bytes += now->younger;
	if (process->borrows_space)
		return NULL;
	described->unknown_bytes = process_totals.facts.unknown_bytes;
	described->given_back_bytes = process_totals.facts.given_back_bytes;
	described->reconciled_bytes = process_totals.facts.reconciled_bytes;
	describe_check(report, process, process_totals.facts.check, described);
	/* The count of the model, if the kernel's list is of another time. */
	described->mapping_count = described->checked && !described->checked_before_exec
				       ? described->checked_mappings
				       : space_measure(process->space).mappings;
	report->result.completeness.ambiguous_events += process_totals.facts.ambiguous;
	report->result.completeness.reconciled_bytes += process_totals.facts.reconciled_bytes;
	return NULL;
}

static struct mmt_error *describe_processes(struct report *report, struct mmt_process **processes_ret)
{
	size_t count = report->replay.processes->all.count;
	struct mmt_process *described = arena_alloc(&report->arena, count, sizeof(*described));
	const struct mmt_process *most = NULL;

	if (!described)
		return &error_no_memory;
	for (const struct process *process = NULL; (process = rows_next(&report->rows, process));) {
		struct mmt_process *next = &described[report->result.process_count];
		struct space_check check = space_check_result(process->space);
		struct mmt_error *error = describe_process(report, process, next);

		if (error)
			return error;
		/* A child of vfork or clone(CLONE_VM) has the check of the space that it shares, as long as it does. */
		if (process->borrows_space && check.time_ns < process->ended_ns)
			describe_check(report, process, check, next);
		if (!most || next->mapping_count > most->mapping_count)
			most = next;
		report->result.process_count++;
	}
	report->result.left_out_process_count = count - report->result.process_count;
	report->result.processes = *processes_ret = described;
	report->result.most_mappings = most;
	return NULL;
}

static struct mmt_error *describe_modules(struct report *report)
{
	const struct build_ids *ids = &report->replay.metadata->build_ids;
	struct mmt_module *modules = arena_alloc(&report->arena, ids->entries.count, sizeof(*modules));

	if (!modules)
		return &error_no_memory;
	for (size_t i = 0; i < ids->entries.count; i++) {
		const struct build_id_entry *entry = &ids->entries.items[i];
		char build_id[2 * sizeof(entry->bytes) + 1] = "";

		for (size_t j = 0; j < entry->size; j++)
			snprintf(build_id + 2 * j, 3, "%02x", entry->bytes[j]);
		modules[i].path = entry->path;
		modules[i].build_id = arena_string(&report->arena, build_id);
		if (!modules[i].build_id)
			return &error_no_memory;
	}
	report->result.modules = modules;
	report->result.module_count = ids->entries.count;
	return NULL;
}

static struct mmt_error *describe_recording(struct report *report, const struct mmt_report_options *options)
{
	const struct replay *replay = &report->replay;
	const struct reader_metadata *metadata = replay->metadata;
	struct mmt_report *result = &report->result;
	CLEANUP(free) char *recorded_by = NULL;
	struct mmt_error *error;

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
	result->start_ns = replay->first_ns;
	result->end_ns = larger_of(replay->last_ns, result->start_ns);
	result->from_ns = replay->window.from_ns ? replay->window.from_ns : result->start_ns;
	result->to_ns = smaller_of(replay->window.to_ns, result->end_ns);
	result->allocations_to_ns = smaller_of(replay->window.allocations_to_ns, result->to_ns);
	result->windowed = replay->window.windowed;
	/* If the window ends early, the rest of the recording is not read. */
	if (replay->window.ends_early) {
		result->end_ns = metadata->has_loss ? metadata->loss.stop_ns : metadata->last_ns;
		result->end_ns = result->end_ns > result->to_ns ? result->end_ns : result->to_ns + 1;
	}
	result->by = options->by;
	result->then_by = options->then_by;
	result->stacks_recorded = metadata->ours && metadata->info.call_graph != MMT_CALL_GRAPH_NONE;
	result->mapping_limit = metadata->info.mapping_limit;
	result->stack_dump_bytes = metadata->ours ? metadata->info.stack_dump_bytes : 0;
	result->start_realtime_ns = metadata->ours ? metadata->info.start_realtime_ns : 0;
	memcpy(result->events, replay->call_counts, sizeof(result->events));
	notes_describe(&replay->notes, result->from_ns, result);
	error = growth_judge(&report->rows, result);
	/* The recording is long enough, but RSS was read in a small part of it only. */
	if (result->to_ns > result->from_ns && result->growth.advised_ns <= result->to_ns - result->from_ns)
		result->growth.advised_ns = 0;
	return error;
}

static void describe_loss(struct report *report)
{
	const struct replay *replay = &report->replay;
	const struct reader_metadata *metadata = replay->metadata;
	struct mmt_completeness *completeness = &report->result.completeness;
	bool has_large_dumps = false;

	completeness->incomplete = metadata->incomplete;
	completeness->truncated = metadata->cut;
	completeness->large_dumps_off_ns = notes_large_dumps_off_ns(&replay->notes, replay->last_ns);
	completeness->unfinished_records = reader_unfinished(replay->reader).records;
	completeness->unfinished_ns = reader_unfinished(replay->reader).span_ns;
	completeness->missed_threads = metadata->loss.missed_threads;
	completeness->missed_cpus = metadata->loss.missed_cpus;
	completeness->left_processes = metadata->loss.left_processes;
	completeness->damage = reader_damage(replay->reader);
	completeness->damaged = completeness->damage != NULL;
	completeness->out_of_order_events = replay->reader->out_of_order;
	for (size_t i = 0; i < metadata->attribute_count; i++) {
		enum attribute_role role = metadata->attributes[i].role;
		uint64_t lost = i < metadata->loss.lost.count ? metadata->loss.lost.items[i] : 0;

		has_large_dumps |= role == ROLE_LARGE_DUMP;
		if (role == ROLE_DUMP)
			completeness->lost_stack_dumps += lost;
		else if (role == ROLE_LARGE_DUMP)
			completeness->lost_large_stack_dumps += lost;
		else if (role == ROLE_RECLAIM)
			completeness->lost_reclaims += lost;
		else if (role == ROLE_FAULT)
			completeness->lost_faults +=
			    (lost < UINT32_MAX ? lost : UINT32_MAX) *
			    (metadata->attributes[i].period < LIMIT_FAULT_PERIOD ? metadata->attributes[i].period
										 : LIMIT_FAULT_PERIOD);
		else
			completeness->lost_events += lost;
	}
	completeness->lost_faults += replay->touched.left_out;
	if (!metadata->has_loss)
		completeness->lost_events = replay->lost_events;
	completeness->reconciled_by_loss = completeness->reconciled_bytes && completeness->lost_events;
	/* If all large dumps are present, no larger size can be recommended. */
	if (has_large_dumps && !completeness->large_dumps_off_ns && !completeness->lost_large_stack_dumps)
		report->result.stack_dump_bytes = MMT_STACK_DUMP_BYTES_MAX;
}

static struct mmt_error *add_figures(struct report *report)
{
	const struct resident_sums *resident = report->readings.known ? &report->readings.resident : NULL;
	struct mmt_report *result = &report->result;

	huge_pages_build(&report->rows, result);
	return steps_end(&report->steps, result)
		   ?: heap_growth_build(&report->rows, result)
		   ?: touchers_build_rows(&report->readings, &report->rows)
		   ?: row_figures_build(&report->rows, resident, result)
		   ?: parts_build(&report->rows, result)
		   ?: growth_parts_build(&report->readings, &report->rows, result)
		   ?: resident_kinds_build(&report->readings, result)
		   ?: steps_publish(&report->steps, result)
		   ?: totals_of_threads(&report->rows, result)
		   ?: totals_of_failures(&report->rows, result)
		   ?: totals_of_stalls(&report->rows, result)
		   ?: warnings_describe(&report->replay, &report->arena, result);
}

/* *missing_ret: whether the recording lacks a selected process. */
static struct mmt_error *build(struct report *report, const struct mmt_report_options *options, bool *missing_ret)
{
	struct replay *replay = &report->replay;
	struct mmt_process *processes = NULL;
	struct mmt_error *error;

	report->rows.replay = replay;
	page_readings_watch(&report->readings, &report->rows);
	steps_watch(&report->steps, &report->readings);
	error = (options->follow ? replay_follow(replay, options->follow, options->follow_context) : replay_run(replay))
		    ?: memory_readings_sort(&replay->notes.memory)
		    ?: page_readings_end(&report->readings)
		    ?: describe_recording(report, options)
		    ?: describe_modules(report);
	/* Processes that ended before the recording hold nothing; spaces released at the end of their process are
	 * empty. */
	for (const struct process *process = NULL; !error && replay->has_survivors && !replay_keeps_ended(replay) &&
						   (process = processes_next(replay->processes, process));) {
		if (process->ended && !process_totals_have_heir(replay, process))
			error = process_totals_release(replay, process);
	}
	report->result.options.keep_ended &= replay_keeps_ended(replay);
	error = error ?: replay_take_error(replay) ?: process_totals_sum(replay) ?: describe_processes(report, &processes);
	if (error)
		return error;
	for (size_t i = 0; options->pids && i < options->pid_count; i++)
		*missing_ret |=
		    !array_find(process, processes, report->result.process_count, process->pid == options->pids[i]);
	if (options->pids && !report->result.process_count)
		return error_create(MMT_ERROR_INVALID, "%s: contains none of these processes", options->input);
	describe_loss(report);
	error = add_figures(report);
	/* The frames have been symbolized. */
	for (const struct process *process = NULL; !error && (process = rows_next(&report->rows, process));
	     processes++) {
		struct jit_code_state code = resolver_jit(report->replay.code, process->index);

		processes->runtime = code.has_code && code.runtime ? code.runtime->name : NULL;
		processes->unnamed_code = code.unnamed;
	}
	return error;
}

/* Replace PIDs that no process has by those of the only processes with them in containers. *found_ret: is there one? */
static struct mmt_error *find_in_containers(const struct mmt_report_options *options, int32_t *pids, bool *found_ret)
{
	struct mmt_report_options of_all = {.input = options->input};
	struct mmt_report *all;
	struct mmt_error *error = mmt_report_create(&of_all, &all);

	if (error)
		return error;
	for (size_t i = 0; !error && i < options->pid_count; i++) {
		size_t count = 0;

		pids[i] = options->pids[i];
		if (array_find(process, all->processes, all->process_count, process->pid == pids[i]))
			continue;
		array_each(process, all->processes, all->process_count) {
			/* A PID that was reused is one PID. */
			if (process->container_pid != options->pids[i] || (count && process->pid == pids[i]))
				continue;
			pids[i] = process->pid;
			count++;
		}
		*found_ret |= count > 0;
		if (count > 1)
			error = error_create(MMT_ERROR_INVALID,
					     "%s: %zu processes have the PID %" PRId32
					     " in their containers: pass the PID outside, such as %" PRId32,
					     options->input, count, options->pids[i], pids[i]);
	}
	mmt_report_destroy(all);
	return error;
}

static struct mmt_error *create(const struct mmt_report_options *options, struct mmt_report **report_ret,
				bool *missing_ret)
{
	struct report *report = calloc(1, sizeof(*report));
	struct replay_options replay = {.find_row = rows_find};
	uint32_t steps = options->lifetime_steps;
	struct mmt_error *error = NULL;

	if (!report)
		return &error_no_memory;
	report->result.options = *options;
	replay.report = options = &report->result.options;
	if (steps && (steps < LIFETIME_STEPS_MIN || steps > LIFETIME_STEPS_MAX))
		error = error_create(MMT_ERROR_INVALID, "lifetime_steps: %" PRIu32 " is neither 0 nor from %d to %d",
				     steps, LIFETIME_STEPS_MIN, LIFETIME_STEPS_MAX);
	if (!error && (options->then_by == MMT_BY_TOUCH ||
		       (options->by == MMT_BY_TOUCH &&
			(options->every_ns || options->min_age_ns || options->then_by != MMT_BY_STACK))))
		error = error_create(MMT_ERROR_INVALID, "by: rows by touch allow no then_by, --every or --min-age");
	if (!error && options->then_by != MMT_BY_STACK &&
	    (options->by == MMT_BY_STACK || options->by == options->then_by || steps))
		error = error_create(MMT_ERROR_INVALID,
				     "then_by: needs a different key in `by`, not stacks, and no lifetime_steps");
	if (error) {
		free(report);
		return error;
	}
	error = rows_init(&report->rows, options, &report->arena);
	if (!error && options->by == MMT_BY_TOUCH && report->rows.filters.by_threads)
		error = error_create(MMT_ERROR_INVALID, "--focus, --ignore: rows by touch have no threads");
	replay.context = &report->rows;
	replay.by_thread = rows_need_threads(&report->rows);
	error = error ?: replay_init(&report->replay, &replay);
	if (!error && !array_find(attribute, report->replay.metadata->attributes,
				  report->replay.metadata->attribute_count, attribute->is_call && !attribute->is_enter))
		error = error_create(MMT_ERROR_FORMAT,
				     "%s: contains no memory events; record with `mmtrace record`, or with perf and "
				     "syscalls:sys_{enter,exit}_{mmap,munmap}",
				     options->input);
	if (!error && options->by == MMT_BY_TOUCH && !report->replay.touched.recorded)
		error = error_create(MMT_ERROR_INVALID,
				     "%s: contains no page faults, which rows by touch need: record with "
				     "--faults=sampled",
				     options->input);
	error = error ?: build(report, options, missing_ret);
	/* The caller's may be temporary. */
	if (!error && options->pids) {
		int32_t *pids = arena_alloc(&report->arena, options->pid_count, sizeof(*pids));

		if (pids)
			memcpy(pids, options->pids, options->pid_count * sizeof(*pids));
		report->result.options.pids = pids;
		error = pids ? NULL : &error_no_memory;
	}
	if (error) {
		*missing_ret &= report->replay.notes.starts.count > 0;
		mmt_report_destroy(&report->result);
		return error;
	}
	/* Free most of what the figures were made of: diff has two reports. */
	ledger_deinit(&report->replay.ledger);
	for (struct process *process = NULL; (process = processes_next(report->replay.processes, process));)
		space_exec(process->space);
	*report_ret = &report->result;
	return NULL;
}

struct mmt_error *mmt_report_create(const struct mmt_report_options *options, struct mmt_report **report_ret)
{
	bool missing = false, found = false;
	struct mmt_error *error = create(options, report_ret, &missing);
	struct mmt_report_options outside = *options;
	CLEANUP(free) int32_t *pids = NULL;
	struct mmt_error *other;

	if (!missing)
		return error;
	outside.pids = pids = calloc(options->pid_count, sizeof(*pids));
	other = pids ? find_in_containers(options, pids, &found) : &error_no_memory;
	/* Standard input can be read only once. */
	if (!found && (!other || !error)) {
		mmt_error_destroy(other);
		return error;
	}
	if (error)
		mmt_error_destroy(error);
	else
		mmt_report_destroy(*report_ret);
	return other ?: create(&outside, report_ret, &missing);
}

void mmt_report_destroy(struct mmt_report *result)
{
	struct report *report = (struct report *)result; /* its first member */

	if (!report)
		return;
	rows_deinit(&report->rows);
	vector_deinit(&report->steps.items);
	page_readings_deinit(&report->readings);
	map_deinit(&report->programs);
	arena_deinit(&report->arena);
	replay_deinit(&report->replay);
	free(report);
}
