// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/record-loop.h"

#include <errno.h>
#include <sys/epoll.h>

#include "capture/runtimes/ask-runtime.h"
#include "capture/heap/heap-readings.h"
#include "capture/jit-code/jit-reader.h"

#define READY_MAX 512	    /* rings and processes that are noted as ready at once */
#define TICK_NS 50000000ULL /* longest delay until the recorder notices a new process or exec */
#define SECOND_NS 1000000000ULL
#define MILLISECOND_NS 1000000ULL
#define RETURN_NS 30000000ULL	/* a munmap() whose effect is in the last snapshot returns within this time */
#define IN_FLIGHT_NS 1000000ULL /* longest time from a record's timestamp until the record is in the ring */
#define MILLISECOND_MICROSECONDS 1000
#define FEW_PROCESSES 16
#define CHILDREN_SHARE 4	      /* first snapshots of children may take 1/CHILDREN_SHARE of the time */
#define LAST_ATTEMPTS 5		      /* to read the final maps of a process that calls exec again and again */
#define CHECK_INTERVAL_NS 20000000ULL /* shortest interval between two checks of the command's maps ... */
#define CHECK_AGE_SHARE 10	      /* ... which is at least the elapsed time divided by this ... */
#define CHECK_COST_SHARE 50	      /* ... and at least the processor time of the last check times this */
#define PAGES_AGE_SHARE 5	      /* likewise, for the resident pages of attached processes that grew ... */
#define PAGES_GROWN_BYTES 1048576     /* ... by this much ... */
#define PAGES_GROWN_SHARE 64	      /* ... and this share of their size since the last reading */
#define PAGES_COST_SHARE 200
#define ROUND_BYTES (6u << 20) /* a round ends after this many bytes (usually one 8 MiB frame) or after a second */

static void want_snapshot(struct traced_process *process, enum snapshot_kind kind, uint64_t time_ns)
{
	if (process->snapshot_ns > time_ns)
		return;
	process->snapshot_wanted = true;
	process->snapshot_kind = kind;
	process->snapshot_wanted_ns = time_ns;
}

/* Notes that a new program began in the process with this PID, by fork or exec. */
static struct mmt_error *begin_program(struct recorder *recorder, pid_t pid, uint64_t time_ns)
{
	struct traced_process *process = process_table_find(&recorder->processes, pid);

	if (process && process->program_ns < time_ns)
		process->program_ns = time_ns;
	jitdumps_note_begin(recorder, pid, time_ns);
	return jit_reader_end_program(recorder, pid, time_ns);
}

/* Adds the process of a FORK record or of a first call. A child with the PID of an ended process is a new process. */
static struct mmt_error *apply_new(struct recorder *recorder, const struct process_event *event)
{
	struct traced_process *process = process_table_find(&recorder->processes, event->pid);
	struct traced_process *parent = process_table_find(&recorder->processes, event->parent);
	bool forked = event->kind == PROCESS_FORK;
	struct mmt_error *error = NULL;

	if (!process || process->ended)
		process = process_table_add(&recorder->processes, event->pid, false);
	if (!process)
		return &error_no_memory;
	if (forked) {
		/* Its parent may be forgotten before it ends. */
		process->parent = parent && parent->parent == recorder->command.pid ? parent->parent : event->parent;
		error = begin_program(recorder, event->pid, event->time_ns);
	}
	if (!error)
		want_snapshot(process, forked && event->recorded ? SNAPSHOT_FIRST : SNAPSHOT_START, event->time_ns);
	return error;
}

static struct mmt_error *apply_exec(struct recorder *recorder, const struct process_event *event)
{
	struct traced_process *process = process_table_find(&recorder->processes, event->pid);
	struct mmt_error *error = begin_program(recorder, event->pid, event->time_ns);

	if (error || !process)
		return error;
	ask_runtime_forget(recorder, process);
	ask_runtime_clean_up(recorder, process, true);
	if (event->pid == recorder->command.pid && process->from_exec && !recorder->command.exec_ns)
		recorder->command.exec_ns = event->time_ns;
	want_snapshot(process, SNAPSHOT_EXEC, event->time_ns);
	return NULL;
}

/* Opens the mapped file now if it may be gone when the report is made. */
static struct mmt_error *apply_mapping(struct recorder *recorder, const struct process_event *event)
{
	const char *path = recorder->process_events.paths.items + event->path;
	struct traced_process *process = process_table_find(&recorder->processes, event->pid);
	const struct build_id_mapping mapping = {event->pid,	      event->start, event->end, event->device_major,
						 event->device_minor, event->inode, path};
	struct mmt_error *error = jit_reader_note(recorder, event->pid, path, event->time_ns, false);

	if (error)
		return error;
	if (process)
		ask_runtime_note_module(process, path);
	return jitdumps_note(recorder, &mapping, event->time_ns)
		   ?: build_id_notes_want(&recorder->jobs.build_ids, &mapping);
}

static struct mmt_error *apply_event(struct recorder *recorder, const struct process_event *event)
{
	struct traced_process *process;

	switch (event->kind) {
	case PROCESS_SEEN:
	case PROCESS_FORK:
		return apply_new(recorder, event);
	case PROCESS_EXEC:
		return apply_exec(recorder, event);
	case PROCESS_FIRST_CALL:
		/* Calls from now on are of the new program. A snapshot taken before may contain only a part of it. */
		process = process_table_find(&recorder->processes, event->pid);
		if (process) {
			want_snapshot(process, SNAPSHOT_EXEC, event->time_ns);
			/* Its exec has set its arguments. If it has had its snapshot, only its options are read. */
			process->snapshot_wanted = true;
		}
		return NULL;
	case PROCESS_MAPPING:
		return apply_mapping(recorder, event);
	}
	return NULL;
}

COMPARISON(compare_events, struct process_event, order_of(a->time_ns, b->time_ns) ?: order_of(a->kind, b->kind))

struct mmt_error *loop_apply_events(struct recorder *recorder)
{
	struct process_events *events = &recorder->process_events;
	struct mmt_error *error = NULL;
	size_t waiting = 0;

	/* The rings are read one CPU after the other. */
	vector_sort(&events->items, compare_events);
	for (size_t i = 0; !error && i < events->items.count; i++) {
		struct process_event event = events->items.items[i];

		if (event.kind != PROCESS_EXEC || event.waited || process_table_find(&recorder->processes, event.pid)) {
			error = apply_event(recorder, &event);
			continue;
		}
		/* Its FORK may be in a ring that is read in the next round. */
		event.waited = true;
		events->items.items[waiting++] = event;
	}
	events->items.count = waiting;
	events->paths.count = 0;
	return error;
}

struct mmt_error *loop_drain(struct recorder *recorder)
{
	return ring_reader_read(recorder) ?: loop_apply_events(recorder);
}

static struct mmt_error *serve_process(struct recorder *recorder, struct traced_process *process)
{
	enum snapshot_kind kind = process->snapshot_kind;
	uint64_t begin_ns = clock_now_ns(), program_ns = process->program_ns ?: process->snapshot_wanted_ns;
	struct mmt_error *error;

	if (!process->ended && blocking_calls_would_fail(&recorder->calls, place_of_process(process->pid)))
		return NULL;
	/* A process that forks all the time and has many mappings would keep the recorder busy with reading the maps of
	 * its children. So first snapshots of children have a time budget, and many children exit before they get one.
	 */
	if (!process->ended && kind == SNAPSHOT_FIRST &&
	    !time_budget_allows(&recorder->jobs.children_budget, begin_ns, CHILDREN_SHARE, LIMIT_BUDGET_SAVED_NS))
		return NULL;
	process->snapshot_wanted = false;
	if (process->ended)
		return NULL;
	error = read_options(recorder, process);
	if (error || process->snapshot_ns > process->snapshot_wanted_ns)
		return error;
	perf_maps_watch(recorder, process, kind == SNAPSHOT_START ? 0 : program_ns, begin_ns);
	error = snapshot_take(recorder, process, kind, NULL);
	if (kind == SNAPSHOT_FIRST)
		recorder->jobs.children_budget.left_ns -= (int64_t)(clock_now_ns() - begin_ns);
	return error;
}

/* Warns of what is missing, once. Call this when the first snapshots of all processes known at the start, or of the
 * first one that started later, have been tried. */
static void warn_of_access(struct recorder *recorder)
{
	uint64_t count = recorder->summary.guarded_processes;

	if (recorder->processes.descriptors_short && !recorder->descriptors_reported)
		recorder_message(
		    recorder, true,
		    "too many files are open: perf maps and exits of some processes may be missed; raise the "
		    "limit with `ulimit -n`");
	recorder->descriptors_reported |= recorder->processes.descriptors_short;
	if (count && !recorder->denied_maps_reported)
		recorder_message(
		    recorder, true,
		    "cannot read the mappings of %llu %s: permission denied; older mappings are not known, "
		    "and the recording is not checked against the maps; %s",
		    (unsigned long long)count, count == 1 ? "process" : "processes",
		    geteuid()
			? "run as root or with CAP_SYS_PTRACE"
			: "run outside of the container or user namespace, or allow ptrace in the security module");
	recorder->denied_maps_reported |= count > 0;
}

/* Snapshots of many processes, and waits, may take long. Flushes once a second in between, so that a killed recorder
 * loses little. */
static struct mmt_error *flush_if_due(struct recorder *recorder)
{
	struct mmt_error *error;

	if (clock_now_ns() - recorder->flushed_ns < SECOND_NS)
		return NULL;
	error = loop_drain(recorder);
	recorder_end_round(recorder);
	recorder_flush(recorder);
	return error;
}

/* Takes the snapshots and reads the build-ids that records have required, and copies the perf maps of ended
 * processes. */
static struct mmt_error *serve(struct recorder *recorder)
{
	struct mmt_error *error = NULL;

	warn_of_access(recorder);
	if (clock_now_ns() - recorder->reader.attachment.cpus.checked_ns >= TICK_NS)
		error = ring_reader_check_cpus(recorder);
	process_table_each(process, &recorder->processes, !error) {
		if (process->snapshot_wanted)
			error = serve_process(recorder, process);
		error = error ?: loop_apply_events(recorder) ?: flush_if_due(recorder);
	}
	error = error ?: build_id_notes_read(recorder);
	/* Copy the JIT files of ended processes, which may soon be deleted. */
	process_table_each(process, &recorder->processes, !error) {
		int status = 0;

		if (!process->ended || (process->pidfd < 0 && process->tmp_directory < 0))
			continue;
		/* Do not treat an earlier process with the same PID. */
		if (process_table_find(&recorder->processes, process->pid) == process)
			jit_reader_end_process(recorder, process->pid);
		/* How a target ended, unless with status 0. A command: see note_command_end(). Supervisors kill what
		 * --tree found. */
		if (process->target && !process->found && process->pid != recorder->command.pid)
			status = proc_end_status(process->pid, process->pidfd);
		if (status > 0) {
			recorder->summary.target_status = status;
			error = recorder_note(recorder, NOTE_COMMAND_ENDED, process->pid, clock_now_ns(),
					      (uint64_t)status, 0, NULL);
		}
		error = error ?: perf_maps_copy(recorder, process);
		ask_runtime_ended(recorder, process);
		process_table_release(process);
	}
	return error;
}

/* `epoll_ret`: ready when a ring fills, a command or target ends, or the user stops. poll() would visit each of
 * hundreds of rings each time. */
static struct mmt_error *prepare_waiting(const struct recorder *recorder, int *epoll_ret)
{
	struct epoll_event ring_event = {.events = EPOLLIN};
	/* The pidfd of an ended process stays readable. */
	struct epoll_event end_event = {.events = EPOLLIN | EPOLLONESHOT};
	int command = recorder->command.pidfd, stop = recorder->options->stop_fd;
	int epoll = *epoll_ret = epoll_create1(EPOLL_CLOEXEC);
	bool ok = epoll >= 0 &&
		  (stop < 0 || !epoll_ctl(epoll, EPOLL_CTL_ADD, stop, &ring_event) || errno == EPERM /* a file */);

	array_each(ring, recorder->reader.rings.items.items, recorder->reader.rings.items.count)
		ok = ok && !epoll_ctl(epoll, EPOLL_CTL_ADD, ring->fd, &ring_event);
	ok = ok && (command < 0 || !epoll_ctl(epoll, EPOLL_CTL_ADD, command, &end_event));
	process_table_each(process, &recorder->processes, ok) {
		if (process->target && !process->ended && process->pidfd >= 0)
			ok = !epoll_ctl(epoll, EPOLL_CTL_ADD, process->pidfd, &end_event);
	}
	return ok ? NULL : error_system(errno, "cannot wait for the ring buffers to fill");
}

/* The maps are only read together with the resident pages, and these for the rates of what grew. */
static bool is_read_if_grown(const struct recorder *recorder)
{
	return !recorder->options->snapshot_interval_ns && !recorder->options->command && !recorder->options->wait_name;
}

/* Takes the snapshots that check the maps during the recording and, if requested, reads the resident pages. The rings
 * are read between two snapshots, and also within a snapshot when they fill, so no process delays the others for longer
 * than its own snapshot and page reading take. */
static struct mmt_error *take_interval_snapshots(struct recorder *recorder)
{
	struct mmt_error *error = NULL;

	recorder->jobs.memory->page_readings++;
	process_table_each(process, &recorder->processes, !error && !recorder->write_error) {
		bool complete = false;
		uint64_t grown_bytes;

		if (recorder_is_stopped(recorder) || clock_now_ns() >= recorder_end_ns(recorder))
			break;
		/* The first snapshot of a process must come first: later ones are checked against it. */
		if (process->ended || process->snapshot_wanted)
			continue;
		/* What a process has given back, or had before its exec, it can have again. */
		process->paged_bytes = smaller_of(process->paged_bytes, process->resident_bytes);
		grown_bytes = process->paged_bytes + process->paged_bytes / PAGES_GROWN_SHARE + PAGES_GROWN_BYTES;
		if (is_read_if_grown(recorder) && process->resident_bytes < grown_bytes)
			continue;
		error = snapshot_take(recorder, process, SNAPSHOT_INTERVAL, &complete);
		if (!error && complete)
			error = record_residency(recorder, process);
		process->paged_bytes = complete ? process->resident_bytes : process->paged_bytes;
		error = error ?: loop_drain(recorder) ?: flush_if_due(recorder);
	}
	return error;
}

/* Sleeps until a ring fills, a process ends, or a tick has passed. Returns true if the stop descriptor is readable. */
static bool wait_for_work(const struct recorder *recorder, int epoll, uint64_t until_ns)
{
	struct epoll_event ready[READY_MAX];
	uint64_t now_ns = clock_now_ns();
	uint64_t sleep_ns = until_ns > now_ns ? until_ns - now_ns : 0;

	sleep_ns = smaller_of(sleep_ns, TICK_NS);
	(void)epoll_wait(epoll, ready, READY_MAX, (int)((sleep_ns + 999999) / 1000000)); /* all rings will be read */
	return recorder_is_stopped(recorder);
}

/* Once a second: writes what has been read so far to the file, and forgets ended processes. */
static struct mmt_error *keep_safe(struct recorder *recorder)
{
	struct mmt_error *error = loop_apply_events(recorder);

	/* A process whose event is still in the queue is not in the table yet, and would be forgotten as unknown. */
	if (error)
		return error;
	recorder_flush(recorder);
	process_table_forget_ended(&recorder->processes);
	scope_forget(&recorder->reader.scope, &recorder->processes, clock_now_ns() - SECOND_NS);
	return targets_check_unrecorded(recorder);
}

static void report_progress(struct recorder *recorder)
{
	const struct resident_series *series = &recorder->jobs.memory->resident_series;
	struct mmt_record_progress *progress = &recorder->progress;

	progress->events = mmt_event_count_sum(recorder->summary.events);
	progress->elapsed_ns = clock_now_ns() - recorder->start_ns;
	progress->file_bytes = writer_bytes(recorder->writer);
	progress->resident_readings = series->sums.items;
	progress->resident_reading_count = series->sums.count;
	progress->pss_readings = series->pss_sums.items;
	progress->pss_reading_count = recorder->jobs.memory->pss_processes > 1 ? series->pss_sums.count : 0;
	progress->resident_processes = series->processes;
	progress->oom_killed |= recorder->summary.oom_kills > 0;
	if (recorder->options->progress)
		recorder->options->progress(recorder->options->context, progress);
}

/*
 * Returns when the next snapshots are due. The interval begins at the end of the last snapshots, so that snapshots that
 * take longer than the interval leave time for other work. Their cost is processor time: one snapshot that waited for
 * the kernel must not postpone the next one by minutes.
 *
 * A command that ends by itself can only be checked against maps that were read before its end. That end cannot be
 * predicted, so the interval grows with the elapsed time: the last maps are at most a tenth of the elapsed time old,
 * and a command that runs for days needs few checks. Other targets have a last check, and need pages for rates only.
 */
static uint64_t next_snapshot_ns(const struct recorder *recorder, uint64_t cost_ns)
{
	uint64_t interval_ns = recorder->options->snapshot_interval_ns, now_ns = clock_now_ns();

	if (is_read_if_grown(recorder))
		interval_ns =
		    longest_ns(SECOND_NS, (now_ns - recorder->start_ns) / PAGES_AGE_SHARE, cost_ns * PAGES_COST_SHARE);
	else if (!interval_ns)
		interval_ns = longest_ns(CHECK_INTERVAL_NS, (now_ns - recorder->start_ns) / CHECK_AGE_SHARE,
					 cost_ns * CHECK_COST_SHARE);
	return interval_ns && interval_ns < UINT64_MAX - now_ns ? now_ns + interval_ns : UINT64_MAX;
}

struct mmt_error *loop_run(struct recorder *recorder)
{
	CLEANUP(close) int epoll = -1;
	uint64_t end_ns = recorder_end_ns(recorder);
	uint64_t safe_ns = clock_now_ns(), noted_ns = safe_ns;
	uint64_t snapshot_ns = next_snapshot_ns(recorder, 0);
	const struct process_table *processes = &recorder->processes;
	struct mmt_error *error = prepare_waiting(recorder, &epoll);

	priority_leave_realtime(&recorder->priority);
	/* A command may not have called exec yet, so it has no runtime or build-ids to read. */
	if (!error && !recorder->options->command)
		error = resident_series_read(recorder, false);
	/* The pages of the start have just been read. */
	process_table_each(process, &recorder->processes, true) {
		process->paged_bytes = process->resident_bytes;
	}
	while (!error) {
		bool stopped = wait_for_work(recorder, epoll, end_ns < snapshot_ns ? end_ns : snapshot_ns);
		uint64_t now_ns = clock_now_ns();
		bool ended, safe_is_due;

		recorder->priority.work_began_ns = now_ns;
		priority_follow_rings(&recorder->priority, rings_are_half_full(&recorder->reader.rings, false), now_ns);
		ended = process_table_update(&recorder->processes) || command_has_ended(&recorder->command) ||
			(!recorder->options->command && cgroup_is_removed(recorder->cgroup));
		safe_is_due = clock_now_ns() - safe_ns >= SECOND_NS;
		if (safe_is_due)
			error = incremental_metadata_write(recorder);
		error = error ?: loop_drain(recorder);
		/* End the round right after a drain and before the recorder appends records of its own. Only then are
		 * all older records in the file. */
		if (!error && (safe_is_due || recorder->round_bytes >= ROUND_BYTES))
			recorder_end_round(recorder);
		error = error ?: serve(recorder);
		if (!error && !ended)
			error = resident_series_read(recorder, false);
		if (!error && !stopped && !ended && clock_now_ns() >= snapshot_ns) {
			uint64_t began_ns = blocking_calls_clock_ns(&recorder->calls);

			error = take_interval_snapshots(recorder);
			snapshot_ns = next_snapshot_ns(recorder, blocking_calls_clock_ns(&recorder->calls) - began_ns);
		}
		/* Note the sizes of perf maps over time, which date the names of JIT code: often if there are few. */
		if (clock_now_ns() - noted_ns >= (processes->items.count <= FEW_PROCESSES ? TICK_NS : SECOND_NS)) {
			noted_ns = clock_now_ns();
			for (size_t i = 0; i < processes->items.count; i++)
				perf_maps_note_growth(recorder, processes->items.items[i], clock_now_ns());
		}
		error = error ?: jit_reader_read(recorder) ?: heap_census_continue(recorder);
		ask_runtimes(recorder);
		if (safe_is_due) {
			error = error ?: keep_safe(recorder);
			report_progress(recorder);
			safe_ns = clock_now_ns();
		}
		if (recorder->write_error)
			recorder->summary.end = MMT_RECORD_END_WRITE_FAILED;
		else if (stopped)
			recorder->summary.end = MMT_RECORD_END_STOPPED;
		else if (ended)
			recorder->summary.end = MMT_RECORD_END_TARGET_ENDED;
		else if (clock_now_ns() >= end_ns)
			recorder->summary.end = MMT_RECORD_END_DURATION;
		else if (recorder->options->max_bytes && writer_bytes(recorder->writer) >= recorder->options->max_bytes)
			recorder->summary.end = MMT_RECORD_END_SIZE;
		else
			continue;
		break;
	}
	return error;
}

/* Reads the final maps of every living process, including children; again if it called exec meanwhile. */
static void take_last_snapshots(struct recorder *recorder)
{
	process_table_each(process, &recorder->processes, !recorder->write_error) {
		bool complete = false;

		for (int attempt = 0; !complete && attempt < LAST_ATTEMPTS && !recorder->write_error; attempt++) {
			if (process->snapshot_wanted)
				recorder_keep_failure(recorder, serve_process(recorder, process));
			if (process->ended || proc_is_ending(process->pid))
				break;
			recorder_keep_failure(recorder, snapshot_take(recorder, process, SNAPSHOT_STOP, &complete));
			recorder_keep_failure(recorder, loop_apply_events(recorder));
		}
		recorder_keep_failure(recorder, flush_if_due(recorder));
	}
}

/* Waits for `duration_ns` and reads the rings meanwhile. */
static struct mmt_error *drain_for(struct recorder *recorder, uint64_t duration_ns)
{
	uint64_t end_ns = clock_now_ns() + duration_ns;
	struct mmt_error *error = NULL;

	while (!error && !recorder->write_error && clock_now_ns() < end_ns) {
		usleep(MILLISECOND_MICROSECONDS);
		error = ring_reader_give_way(recorder) ?: flush_if_due(recorder);
	}
	return error;
}

/* Returns the end of a wait for processes. If they all sleep, they may wait for a file system that does not answer, and
 * the user who stops the recording should not wait with them. */
static uint64_t end_of_wait_ns(const struct recorder *recorder, uint64_t end_ns, uint64_t sleep_end_ns, bool sleeping)
{
	bool sooner = sleeping && recorder->summary.end == MMT_RECORD_END_STOPPED && sleep_end_ns < end_ns;

	return sooner ? sleep_end_ns : end_ns;
}

static bool all_sleep(const struct in_flight *in_flight)
{
	struct proc_thread state;

	map_each(thread, &in_flight->threads, true) {
		if (!proc_read_thread(THREAD_PID(thread->key), THREAD_TID(thread->key), &state) || state.state == 'R')
			return false;
	}
	return true;
}

/* A call is recorded when it returns. A final snapshot may show the effect of calls that have not returned yet, so wait
 * for them. */
static struct mmt_error *wait_for_returns(struct recorder *recorder, uint64_t sleep_end_ns)
{
	struct in_flight *in_flight = &recorder->reader.in_flight;
	uint64_t end_ns = clock_now_ns() + LIMIT_RETURN_NS;
	struct mmt_error *error = NULL, *ignored = NULL;
	bool any = false, gone;

	process_table_each(process, &recorder->processes, !error) {
		if (!process->ranges.count)
			continue;
		any = true;
		(void)in_flight_add(in_flight, &recorder->calls, process->pid, clock_now_ns());
		error = ring_reader_give_way(recorder);
	}
	if (!error && any)
		error = drain_for(recorder, RETURN_NS);
	error = error ?: loop_drain(recorder);
	in_flight_remove_returned(in_flight, &recorder->calls);
	/* Sample threads that were in a call in user space. If the event cannot be opened, the thread's next record
	 * also shows that it has left the call. */
	map_each(thread, &in_flight->threads, !error && !ignored)
		ignored = attach_sample_user_space(&recorder->reader.attachment, THREAD_PID(thread->key),
						   THREAD_TID(thread->key), &gone);
	mmt_error_destroy(ignored);
	while (!error && in_flight->threads.count && !recorder->write_error &&
	       clock_now_ns() < end_of_wait_ns(recorder, end_ns, sleep_end_ns, all_sleep(in_flight))) {
		usleep(MILLISECOND_MICROSECONDS);
		error = loop_drain(recorder) ?: flush_if_due(recorder);
		in_flight_remove_returned(in_flight, &recorder->calls);
	}
	attach_close_coverage_events(&recorder->reader.attachment);
	if (in_flight->threads.count)
		recorder_message(
		    recorder, true,
		    "%zu %s still inside a system call when recording stopped: that call may be missing, and the final "
		    "check may then report a mismatch",
		    in_flight->threads.count, in_flight->threads.count == 1 ? "thread was" : "threads were");
	map_deinit(&in_flight->threads);
	return error;
}

/* Waits for processes that were exiting during the final snapshots: they have no snapshot, or a partial one, so their
 * exit must be recorded. */
static struct mmt_error *wait_for_ends(struct recorder *recorder, uint64_t sleep_end_ns)
{
	uint64_t end_ns = clock_now_ns() + LIMIT_EXIT_NS;
	struct mmt_error *error = NULL;
	size_t late = 0;

	process_table_each(process, &recorder->processes, !error) {
		pid_t pid = process->pid;

		if (process->ended)
			continue;
		while (!error && !recorder->write_error && proc_is_ending(pid) && !proc_has_ended(pid) &&
		       clock_now_ns() < end_of_wait_ns(recorder, end_ns, sleep_end_ns, proc_sleeps(pid)))
			error = drain_for(recorder, MILLISECOND_NS);
		late += !proc_has_ended(pid) && proc_is_ending(pid);
	}
	if (late)
		recorder_message(
		    recorder, true,
		    "%zu %s still exiting when recording stopped: the report counts %s as alive, without a final check",
		    late, late == 1 ? "process was" : "processes were", late == 1 ? "it" : "them");
	return error;
}

/* Disables the events and discards what was recorded later than stop_ns. Events can only be disabled one by one, so
 * meanwhile calls of some threads are still recorded while those of others are not. A record gets its timestamp before
 * it is in the ring, so wait until those with a timestamp before stop_ns have arrived. */
static void cut_off(struct recorder *recorder)
{
	size_t next = 0;

	recorder->stop_ns = clock_now_ns();
	/* The thread that switches large dumps would enable events again that are disabled here. */
	attach_end_switch(&recorder->reader.attachment);
	recorder_keep_failure(recorder, drain_for(recorder, IN_FLIGHT_NS));
	recorder_keep_failure(recorder, loop_drain(recorder));
	while (attach_disable_some(&recorder->reader.attachment, &next))
		recorder_keep_failure(recorder, ring_reader_give_way(recorder));
	recorder_keep_failure(recorder, loop_drain(recorder));
}

/* A status of 0 needs no words. False: the command has not ended. */
static bool note_command_end(struct recorder *recorder, uint64_t time_ns)
{
	int status = command_status(&recorder->command);

	if (status > 0)
		recorder_keep_failure(recorder, recorder_note(recorder, NOTE_COMMAND_ENDED, recorder->command.pid,
							      time_ns, (uint64_t)status, 0, NULL));
	return status >= 0;
}

static void count_left_running(struct recorder *recorder)
{
	pid_t command = recorder->command.pid;
	uint64_t most = 0;

	process_table_each(process, &recorder->processes, true) {
		const struct traced_process *child = process;

		if (process->ended || process->target || proc_has_ended(process->pid))
			continue;
		/* The FORK record of a process can be read after that of its child. */
		for (size_t i = 0; child && child->parent != command && i < recorder->processes.items.count; i++)
			child = process_table_find(&recorder->processes, child->parent);
		if (recorder->options->command && (!child || child->parent != command))
			continue;
		recorder->summary.left_running++;
		if (process->resident_bytes < most)
			continue;
		most = process->resident_bytes;
		recorder->summary.left_running_pid = process->pid;
	}
}

void loop_stop(struct recorder *recorder)
{
	uint64_t sleep_end_ns;
	bool command_ended;

	priority_enter_realtime(&recorder->priority, UINT64_MAX);
	/* A second stop request cuts slow work short. Ctrl-C also reaches the command, which may end before the
	 * recorder sees the stop request; that request still counts as the first one. */
	recorder->stop_requests = recorder_stop_requests(recorder);
	if (recorder->options->command && !recorder->stop_requests)
		recorder->stop_requests = 1;
	process_table_update(&recorder->processes);
	command_ended = note_command_end(recorder, clock_now_ns());
	if ((recorder->options->command ? command_ended : !recorder->options->cgroup) &&
	    recorder->summary.end == MMT_RECORD_END_TARGET_ENDED)
		count_left_running(recorder);
	recorder_keep_failure(recorder, targets_count_missed(recorder));
	recorder_keep_failure(recorder, resident_series_read(recorder, true));
	report_progress(recorder);
	recorder_keep_failure(recorder, loop_apply_events(recorder));
	recorder->closed = true;
	take_last_snapshots(recorder);
	recorder_keep_failure(recorder, heap_census_stop(recorder));
	sleep_end_ns = clock_now_ns() + LIMIT_SLEEP_NS;
	recorder_keep_failure(recorder, wait_for_returns(recorder, sleep_end_ns));
	recorder_keep_failure(recorder, wait_for_ends(recorder, sleep_end_ns));
	cut_off(recorder);
	if (!command_ended)
		(void)note_command_end(recorder, recorder->stop_ns);
	recorder_keep_failure(recorder, targets_check_unrecorded(recorder));
	/* The events are disabled: no record can be lost any more. */
	ring_reader_end(recorder);
	priority_leave_realtime(&recorder->priority);
	recorder_end_round(recorder);
	recorder_flush(recorder);
	ask_runtimes_at_end(recorder);
	process_table_each(process, &recorder->processes, true) {
		recorder_keep_failure(recorder, perf_maps_copy(recorder, process));
		ask_runtime_clean_up(recorder, process, false);
	}
	recorder_keep_failure(recorder, jit_reader_finish(recorder));
	recorder_keep_failure(recorder, build_id_notes_read(recorder));
}
