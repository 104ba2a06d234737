// SPDX-License-Identifier: LGPL-2.1-or-later
/* mmt_record(): chooses the events, starts the recording, runs the loop, and completes the file. */

#include <sys/resource.h>
#include <sys/utsname.h>

#include "capture/heap/heap-readings.h"
#include "capture/runtimes/ask-runtime.h"
#include "capture/record-loop.h"
#include "capture/jit-code/jit-reader.h"

#define STACK_BYTES (128u << 10) /* of the recorder itself */

void mmt_record_options_init(struct mmt_record_options *options)
{
	*options = (struct mmt_record_options){.stop_fd = -1, .output = "mmtrace.data"};
}

static struct mmt_error *check_options(const struct mmt_record_options *options)
{
	const char *command = options->command ? options->command[0] : NULL;
	bool attached = options->pid_count, all = options->all_cpus || options->cgroup;
	unsigned kinds = attached + options->all_cpus + (options->cgroup != NULL) + (options->wait_name != NULL);
	uint32_t dump_bytes = options->call_graph == MMT_CALL_GRAPH_DWARF ? options->stack_dump_bytes : 8;
	struct rlimit stack = {.rlim_cur = RLIM_INFINITY};
	bool low_stack = getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < STACK_BYTES;
	const struct {
		bool wrong;
		const char *message;
	} rules[] = {
	    {!kinds && !command, "nothing to record: pass -p PID, --comm NAME, -a, --cgroup, or -- and a command"},
	    {kinds > 1, "-p (or --comm), -a and --cgroup cannot be combined"},
	    {options->wait_name && command, "--wait and a command cannot be combined"},
	    {options->tree && options->wait_name,
	     "--tree and --wait cannot be combined: a new process has no children"},
	    {options->tree && !options->pid_count, "--tree needs -p or --comm: the others always include children"},
	    {options->scope == MMT_SCOPE_CGROUP && (all || options->wait_name),
	     "--scope cgroup needs -p or a command: -a, --cgroup and --wait record on CPUs"},
	    {options->scope == MMT_SCOPE_THREADS && (all || options->wait_name),
	     "--scope threads needs -p or a command: -a, --cgroup and --wait record on CPUs"},
	    {options->lean && options->call_graph == MMT_CALL_GRAPH_FP,
	     "--lean and -g fp cannot be combined: --lean records no callchain, and -g fp only that"},
	    {options->cgroup && !*options->cgroup, "--cgroup: the group's path is empty"},
	    {!*options->output, "--output: the file's name is empty"},
	    {options->call_graph > MMT_CALL_GRAPH_NONE, "unknown kind of call graph"},
	    {dump_bytes % 8 || !dump_bytes || dump_bytes > MMT_STACK_DUMP_BYTES_MAX,
	     "the size of stack dumps must be a multiple of 8 up to 65280"},
	    {low_stack, "the limit of the stack is too low to record: raise it with `ulimit -s`"},
	};

	if (attached && command)
		return error_create(MMT_ERROR_INVALID, "-p (or --comm) and a command cannot be combined (at '%s')",
				    command);
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (rules[i].wrong)
			return error_create(MMT_ERROR_INVALID, "%s", rules[i].message);
	return NULL;
}

static void recorder_deinit(struct recorder *recorder)
{
	command_deinit(&recorder->command);
	writer_destroy(recorder->writer);
	attach_deinit(&recorder->reader.attachment);
	scope_deinit(&recorder->reader.scope);
	map_deinit(&recorder->reader.in_flight.threads);
	rings_deinit(&recorder->reader.rings);
	events_deinit(&recorder->reader.events);
	process_table_deinit(&recorder->processes);
	map_deinit(&recorder->left_out_children);
	process_events_deinit(&recorder->process_events);
	group_memories_deinit(&recorder->jobs.memory->groups);
	resident_series_deinit(&recorder->jobs.memory->resident_series);
	jitdumps_deinit(&recorder->jobs.runtimes->jitdumps);
	build_id_notes_deinit(&recorder->jobs.build_ids);
	kept_modules_deinit(&recorder->jobs.kept_modules);
	process_residencies_deinit(&recorder->jobs.memory->start_residency);
	process_residencies_deinit(&recorder->jobs.memory->start_shared);
	section_options.deinit(&recorder->jobs.runtimes->options);
	jit_reader_deinit(recorder->jobs.jit_reader);
	heap_jobs_deinit(recorder->jobs.heap);
	vector_deinit(&recorder->reader.lost_before);
	vector_deinit(&recorder->reader.lost);
	mmt_error_destroy(recorder->failure);
	mmt_error_destroy(recorder->write_error);
}

/* Prepares what needs no target yet: the events, the rings and the output file. */
static struct mmt_error *prepare(struct recorder *recorder)
{
	const struct mmt_record_options *options = recorder->options;
	struct ring_reader *reader = &recorder->reader;
	struct tracepoint_source source;
	struct utsname kernel = {0};
	struct mmt_error *error;
	struct rlimit limit;

	/* Raise the limit of open files of the recorder. The command keeps its own limit. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
		recorder->command.descriptor_limit = limit.rlim_cur;
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	uname(&kernel);
	recorder->architecture = architecture_find(kernel.machine);
	if (!recorder->architecture)
		return error_create(MMT_ERROR_UNSUPPORTED, "mmtrace cannot record on %s, only on x86_64 and aarch64",
				    kernel.machine);
	if (!kernel_is_supported(kernel.release))
		return error_create(MMT_ERROR_UNSUPPORTED, "mmtrace cannot record on Linux %s: use " KERNEL_SUPPORTED,
				    kernel.release);
	if (!clock_is_of_events())
		return error_create(MMT_ERROR_UNSUPPORTED, "the clock of this time namespace differs from that of the "
							   "kernel's events: run mmtrace outside of it");
	reader->callchain_limit =
	    (uint32_t)text_file_number(-1, "/proc/sys/kernel/perf_event_max_stack", CALLCHAIN_LIMIT_DEFAULT);
	error = tracefs_open(&source);
	if (error)
		return error;
	error = events_are_restricted(&source, &recorder->summary.restricted)
		    ?: events_create(options, &source, recorder->summary.restricted, recorder->architecture,
				     &reader->events)
		    ?: rings_create(options->ring_bytes, events_dump_bytes(options), events_large_dump_bytes(options),
				    &reader->rings);
	reader->attachment =
	    (struct attachment){.set = &reader->events, .rings = &reader->rings, .calls = &recorder->calls};
	error = error ?: attach_watch_oom(&reader->attachment, &source);
	tracefs_close(&source);
	if (!error && !reader->rings.has_large_dumps)
		events_leave_out_large_dumps(&reader->events);
	reader->faults_on_cpus = !error && options->faults != MMT_FAULTS_ALL &&
				 events_put_faults_on_cpus(&reader->events, reader->rings.cpus.items[0]);
	if (!error &&
	    (reader->faults_on_cpus ||
	     events_leave_out_faults(&reader->events, options->faults == MMT_FAULTS_AUTO)) &&
	    !rings_add_faults(&reader->rings, options->faults == MMT_FAULTS_ALL)) {
		reader->faults_on_cpus = events_leave_out_faults(&reader->events, true);
		recorder_message(
		    recorder, options->faults != MMT_FAULTS_AUTO,
		    "page faults are not recorded: the kernel grants no ring buffers for them, raise `ulimit "
		    "-l` and `ulimit -n`");
	}
	if (!reader->faults_on_cpus && options->faults == MMT_FAULTS_AUTO)
		recorder_message(recorder, false, "page faults are not sampled; --faults=sampled does, for each thread");
	error = error ?: writer_create(options->output, &recorder->writer);
	if (error)
		return error;
	if (options->no_compress)
		recorder->writer->plain = true;
	reader->large_dumps.on = true;
	reader->large_dumps.rule = reader->fault_dumps =
	    (struct large_dumps_rule){.time_ns = clock_now_ns(), .on = true};
	return array_find(events, reader->events.items.items, reader->events.items.count,
			  !vector_push(&reader->lost_before, 0) || !vector_push(&reader->lost, 0))
		   ? &error_no_memory
		   : NULL;
}

/* Starts the command, which waits before its exec. A command outside of the recorded control group is not recorded
 * unless it enters the group. */
static struct mmt_error *start_command(struct recorder *recorder)
{
	struct traced_process *process = NULL;
	struct mmt_error *error;
	bool recorded = true;

	recorder->command.output_to_stderr = strcmp(recorder->options->output, "-") == 0;
	recorder->command.ignores = recorder->options->command_ignores;
	recorder->command.blocks = recorder->options->command_blocks;
	error = command_start(&recorder->command, recorder->options->command);
	if (!error && recorder->cgroup >= 0)
		error = targets_find_in_group(recorder, recorder->command.pid, &recorded);
	if (error || !recorded)
		return error;
	process = process_table_add(&recorder->processes, recorder->command.pid, true);
	if (!process)
		return &error_no_memory;
	process->from_exec = true;
	return NULL;
}

/* Opens the events of the command, which waits before its exec. The exec enables them. */
static struct mmt_error *attach_to_command(struct recorder *recorder)
{
	struct mmt_error *error = attach_reserve(&recorder->reader.attachment, 1);
	bool gone = false;

	recorder->summary.threads = 1;
	error = error ?: attach_command(&recorder->reader.attachment, recorder->command.pid, &gone);
	if (!error && gone)
		error =
		    error_create(MMT_ERROR_NO_PROCESS, "%s was killed before it could start", recorder->command.name);
	return error;
}

/* Begins to write the file, which is completed from now on, whatever fails later. */
static struct mmt_error *start_writing(struct recorder *recorder)
{
	const struct rings *rings = &recorder->reader.rings;
	struct mmt_error *error = writer_start(recorder->writer);

	recorder->writing = !error;
	error = error ?: large_dumps_begin(recorder);
	if (!error && rings->shrunk)
		recorder_message(
		    recorder, true,
		    "the kernel grants ring buffers of %llu KiB per CPU only, so events may be lost under load; "
		    "raise kernel.perf_event_mlock_kb or `ulimit -l`",
		    (unsigned long long)rings->bytes_per_cpu >> 10);
	if (events_large_dump_bytes(recorder->options) && !events_count_large_dumps(&recorder->reader.events))
		recorder_message(recorder, true,
				 "no large stack dumps: %s; deep stacks of code without frame pointers are truncated",
				 rings->has_large_dumps
				     ? "too many files would be open for so many threads, raise `ulimit -n`"
				     : "the kernel grants no ring buffers for them, raise `ulimit -l` and `ulimit -n`");
	return error;
}

static struct mmt_error *take_first_snapshot(struct recorder *recorder, struct traced_process *process)
{
	enum snapshot_kind kind = process->from_exec ? SNAPSHOT_EXEC : SNAPSHOT_START;
	struct mmt_error *error;
	pid_t pid = process->pid;
	bool alive, moving = true;
	uint64_t end_ns;

	process->snapshot_wanted = false;
	/* The map of a command was watched before it ran: now it may have written one. */
	if (!recorder->options->command || !process->from_exec)
		perf_maps_watch(recorder, process, 0, recorder->start_ns);
	error = snapshot_name_threads(recorder, pid, &alive);
	/* No event shows the end of a process that ended before recording began: the report would show it alive. */
	if (!error && alive && process->break_before)
		error = recorder_note(recorder, NOTE_BREAK, pid, recorder->start_ns, process->break_before, 0, NULL);
	error = error ?: snapshot_take(recorder, process, kind, NULL);
	if (error || kind != SNAPSHOT_START)
		return error;
	error = read_options(recorder, process);
	/* Take the snapshot again if a mapping moved meanwhile. The first reading misses a mapping that moves from an
	 * address that has not been read yet to one that has. Each further reading misses fewer, until no mapping moves
	 * during a reading. */
	end_ns = clock_now_ns() + LIMIT_FIRST_READINGS_NS;
	for (int reading = 1; !error && moving && reading < LIMIT_FIRST_READINGS; reading++) {
		uint64_t before = recorder->summary.events[MMT_COUNT_MREMAP];

		error = snapshot_take(recorder, process, SNAPSHOT_START, NULL) ?: loop_drain(recorder);
		moving = recorder->summary.events[MMT_COUNT_MREMAP] != before && clock_now_ns() < end_ns &&
			 recorder->processes.items.count <= LIMIT_MOVING_PROCESSES;
	}
	return error;
}

/* Takes the first snapshots. Children that are added meanwhile wait for loop_run(), which has a time budget for them.
 * With all processes there may be too many mappings, so the snapshots of processes that are not targets are limited. */
static struct mmt_error *take_first_snapshots(struct recorder *recorder)
{
	struct mmt_error *error = NULL;
	size_t left_out = 0;

	process_table_each(process, &recorder->processes, !error) {
		if (process->ended)
			continue;
		if (recorder->jobs.memory->snapshot_lines < LIMIT_FIRST_LINES || process->target)
			error = take_first_snapshot(recorder, process);
		else
			left_out++;
	}
	if (left_out)
		recorder_message(recorder, true,
				 "older mappings of %zu processes are not recorded: initial snapshots stop at %d "
				 "mappings; record fewer processes",
				 left_out, LIMIT_FIRST_LINES);
	return error;
}

static struct mmt_error *start(struct recorder *recorder)
{
	bool command = recorder->options->command, waits = recorder->options->wait_name;
	struct mmt_error *error = command ? start_command(recorder) : NULL;
	uint64_t exec_ns = 0;

	if (error)
		return error;
	/* Raise the priority after starting the command, which would inherit it, but before opening events: with
	 * thousands of runnable threads, that would otherwise take a minute. */
	recorder->summary.priority = priority_raise(&recorder->priority);
	recorder_message(recorder, false, "the recorder runs with %s", recorder->summary.priority);
	error = ring_reader_start_helper(recorder);
	/* While a process is waited for, the thread would read its first records before they can be written. */
	if (!error && !waits)
		error = ring_reader_start(recorder);
	recorder->reader.faults_on_cpus &= recorder->reader.scope.kind == SCOPE_THREADS;
	if (!error && recorder->reader.faults_on_cpus)
		error = attach_faults(&recorder->reader.attachment);
	if (!error)
		error = command && recorder->reader.scope.kind == SCOPE_THREADS ? attach_to_command(recorder)
										: targets_attach(recorder);
	if (!error && recorder->reader.faults_on_cpus)
		error = targets_follow(recorder);
	error = error ?: loop_drain(recorder);
	if (!error && waits)
		error = targets_wait(recorder, &exec_ns);
	if (error)
		return error;
	/* Without the kernel's counts this is not known yet: losses while attaching count as losses of the recording.
	 */
	if (attach_counts_lost(&recorder->reader.attachment))
		attach_add_lost(&recorder->reader.attachment, recorder->reader.lost_before.items);
	/* Find where the heaps end. A break that grows before the first snapshot has read the heap does not show how
	 * much of it is older. */
	process_table_each(process, &recorder->processes, true) {
		if (!process->ended && !process->from_exec)
			process->break_before = mapping_find_break(&recorder->calls, process->pid);
	}
	recorder->start_ns = exec_ns ?: clock_now_ns();
	recorder->start_realtime_ns = clock_read_ns(CLOCK_REALTIME);
	recorder->start_realtime_ns -= clock_now_ns() - recorder->start_ns;
	recorder->writer->file.stop_fd = recorder->options->stop_fd;
	recorder->writer->file.until_ns = recorder_end_ns(recorder);
	error = file_metadata_add_head(recorder);
	/* Do this before the command runs, because it may end at once. */
	process_table_each(process, &recorder->processes, !error && command) {
		if (process->from_exec)
			perf_maps_watch(recorder, process, 0, recorder->start_ns);
	}
	/* Find write errors before the command runs: if its exec fails, a recording with the same file name is not
	 * replaced. */
	if (!error && command)
		error =
		    writer_write_head(recorder->writer)
			?: command_release(&recorder->command, recorder->options->stop_fd, recorder_end_ns(recorder));
	error = error ?: start_writing(recorder);
	if (!error && waits)
		error = ring_reader_start(recorder);
	return error ?: children_note_unrecorded(recorder)
		    ?: take_first_snapshots(recorder) ?: read_start_residency(recorder);
}

static void finish(struct recorder *recorder)
{
	const struct ring_reader *reader = &recorder->reader;
	const struct large_dumps *large = &reader->large_dumps;
	struct mmt_record_summary *summary = &recorder->summary;
	uint64_t *lost;
	struct mmt_error *error;

	loop_stop(recorder);
	attach_end_switch(&recorder->reader.attachment);
	summary->large_dump_switches = large->switches;
	summary->large_dumps_off_ns = large->off_total_ns;
	if (!large->on && recorder->stop_ns > large->off_ns)
		summary->large_dumps_off_ns += recorder->stop_ns - large->off_ns;
	/* Add up the records lost since the start, by event. Reports show these counts of PERF_FORMAT_LOST. LOST
	 * records are used only for the status line, for files without these counts, and for side-band records, the
	 * first event of the set, if the kernel has no such counts. */
	lost = reader->lost.items;
	attach_add_lost(&reader->attachment, lost);
	for (size_t i = 0; i < reader->events.items.count; i++) {
		lost[i] -= reader->lost_before.items[i] < lost[i] ? reader->lost_before.items[i] : lost[i];
		if (reader->events.items.items[i].role == ROLE_DUMP)
			summary->lost_stack_dumps += lost[i];
		else if (reader->events.items.items[i].role == ROLE_LARGE_DUMP)
			summary->lost_large_stack_dumps += lost[i];
		else if (reader->events.items.items[i].role == ROLE_FAULT)
			summary->lost_faults += lost[i] * reader->events.items.items[i].attribute.sample_period;
		else if (reader->events.items.items[i].role != ROLE_RECLAIM)
			summary->lost_events += lost[i];
	}
	if (!attach_counts_lost(&reader->attachment) && recorder->progress.lost_events > summary->lost_events) {
		lost[0] = recorder->progress.lost_events - summary->lost_events;
		summary->lost_events = recorder->progress.lost_events;
	}
	if (recorder->write_error || recorder->failure)
		summary->end = MMT_RECORD_END_WRITE_FAILED;
	file_metadata_add_sections(recorder, recorder->reader.lost.items);
	error = writer_finish(recorder->writer);
	if (recorder->write_error)
		mmt_error_destroy(error);
	else
		recorder->write_error = error ?: TAKE(recorder->failure);
	if (recorder->write_error)
		summary->end = MMT_RECORD_END_WRITE_FAILED;
	summary->duration_ns = recorder->stop_ns - recorder->start_ns;
	summary->passed_over_calls = recorder->reader.scope.passed_over;
	summary->file_bytes = writer_bytes(recorder->writer);
	summary->place = output_file_find(&recorder->writer->file);
	summary->earlier_kept = recorder->writer->file.kept;
	summary->older_replaced = recorder->writer->file.replaced;
	summary->processes = recorder->processes.items.count + recorder->processes.forgotten;
}

static struct mmt_error *run(struct recorder *recorder)
{
	const struct mmt_record_options *options = recorder->options;
	struct mmt_error *error = prepare(recorder) ?: targets_choose_scope(recorder) ?: start(recorder);

	if (!error) {
		if (options->started && !options->wait_name)
			options->started(options->context);
		error = loop_run(recorder);
	}
	if (recorder->writing) {
		recorder_keep_failure(recorder, error);
		error = NULL;
		finish(recorder);
	}
	if (!command_stop(&recorder->command))
		recorder_message(recorder, true, "%s (process %d) was sent SIGTERM but did not end in time",
				 recorder->command.name, (int)recorder->command.pid);
	recorder->summary.command_status = recorder->command.status;
	return error;
}

struct mmt_error *mmt_record(const struct mmt_record_options *options, struct mmt_record_summary *summary_ret,
			     struct mmt_error **write_error_ret)
{
	struct memory_jobs memory = {0};
	struct runtime_jobs runtimes = {0};
	struct jit_reader jit_reader = {0};
	struct heap_jobs heap = {0};
	struct recorder recorder = {
	    .options = options,
	    .cgroup = -1,
	    .command = {.pidfd = -1, .go_pipe = {-1, -1}, .error_pipe = -1, .status = -1},
	    .jobs = {.memory = &memory, .runtimes = &runtimes, .jit_reader = &jit_reader, .heap = &heap}};
	struct mmt_error *error = check_options(options);
	uint64_t cpu_before_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);

	if (error)
		return error;
	heap.helper = &recorder.jobs.heap_helper;
	error = run(&recorder);
	if (!error) {
		recorder.summary.recorder_cpu_ns =
		    clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_before_ns + recorder.calls.spent_ns + heap.spent_ns;
		recorder.summary.recorder_memory_bytes = proc_own_peak_bytes();
		/* Ring pages belong to the kernel and are not part of the recorder's RSS. */
		for (size_t i = 0; i < recorder.reader.rings.items.count; i++)
			recorder.summary.ring_bytes += recorder.reader.rings.items.items[i].data_bytes;
		*summary_ret = recorder.summary;
		*write_error_ret = TAKE(recorder.write_error);
	}
	ring_reader_end(&recorder);
	blocking_calls_end(&recorder.calls);
	priority_restore(&recorder.priority);
	recorder_deinit(&recorder);
	return error;
}
