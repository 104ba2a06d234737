// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/runtimes/ask-runtime.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/perf/clock.h"
#include "capture/runtimes/perf-map-files.h"
#include "capture/proc/proc.h"
#include "capture/recorder.h"
#include "trace/sections/code-copies.h"

#define ATTEMPTS 10
#define BETWEEN_NS                                                                                                     \
	1000000000ULL		 /* a runtime that starts is not ready at once, and may be about to make a map itself  \
				  */
#define APPEAR_NS 5000000000ULL	 /* from the answer until the map appears */
#define AT_END_NS 20000000000ULL /* for all processes together */
#define AT_ONCE 16		 /* most helpers at the same time */
#define STEP_MICROSECONDS 5000

static const struct askable_runtime *const runtimes[] = {&runtime_dotnet, &runtime_java};

#define RUNTIMES (sizeof(runtimes) / sizeof(*runtimes))

void ask_runtime_note_image(struct traced_process *process, const char *path)
{
	const char *slash = strrchr(path, '/');

	process->generates_code |= code_copies_is_jit(path);
	for (size_t i = 0; slash && i < RUNTIMES; i++) {
		if (strcmp(slash + 1, runtimes[i]->module))
			continue;
		process->runtime = runtimes[i];
		if (!process->ask_at_ns)
			process->ask_at_ns = clock_now_ns() + BETWEEN_NS;
	}
}

static void drop_helper(struct traced_process *process)
{
	bool asking = process->helper.child;

	helper_drop(&process->helper);
	if (asking && process->runtime->give_up)
		process->runtime->give_up(process);
}

void ask_runtime_forget(struct traced_process *process)
{
	drop_helper(process);
	process->runtime = NULL;
	process->asked = ASKED_NOT;
	process->ask_attempts = 0;
	process->ask_at_ns = 0;
	process->generates_code = false;
}

static void report_refusal(const struct recorder *recorder, const struct traced_process *process, const char *refusal)
{
	recorder_message(recorder, true, "process %d (%s) gives no names for its generated code: %s", (int)process->pid,
			 process->runtime->name, refusal);
}

static void report_success(const struct recorder *recorder, const struct traced_process *process)
{
	recorder_message(recorder, false, "process %d (%s) was asked for a perf map and writes one", (int)process->pid,
			 process->runtime->name);
}

static void report_missing_map(const struct recorder *recorder, const struct traced_process *process)
{
	char refusal[HELPER_REFUSAL_BYTES];

	snprintf(refusal, sizeof(refusal), "it was asked and agreed, but there is no /tmp/perf-%d.map",
		 (int)process->namespace_pid);
	report_refusal(recorder, process, refusal);
}

static void report_still_writing(const struct recorder *recorder, const struct traced_process *process,
				 const char *reason)
{
	recorder_message(recorder, true, "process %d (%s) may go on writing its perf map: %s", (int)process->pid,
			 process->runtime->name, reason);
}

static void put(struct traced_process *process, helper_ask *ask)
{
	const struct helper_target target = {process->pid, proc_namespace_pid(process->pid), process->pidfd};

	/* No helper process could be started: treated like a refusal below. */
	(void)helper_put(&process->helper, &target, ask);
}

/* From now on it may write a map, unless it refuses. */
static void put_first(struct traced_process *process)
{
	if (process->runtime->prepare)
		process->runtime->prepare(process);
	put(process, process->runtime->begin);
	process->asked = ASKED_NOW;
	process->map_is_ours = true;
}

static enum helper_answer take_answer(struct traced_process *process, char refusal[HELPER_REFUSAL_BYTES])
{
	if (process->helper.child)
		return helper_take_answer(&process->helper, refusal);
	snprintf(refusal, HELPER_REFUSAL_BYTES, "no process can be made to ask it");
	return HELPER_REFUSED;
}

/* A runtime that keeps writing is asked to stop when recording ends. */
static enum ask_state after_answer(const struct traced_process *process)
{
	return process->runtime->end ? ASKED_WRITES : ASKED_DONE;
}

static void take_first_answer(const struct recorder *recorder, struct traced_process *process)
{
	char refusal[HELPER_REFUSAL_BYTES] = "";
	enum helper_answer answer = take_answer(process, refusal);

	process->map_is_ours &= answer != HELPER_REFUSED;
	switch (answer) {
	case HELPER_WAITS:
		break;
	case HELPER_AGREED:
		process->asked = ASKED_AGREED;
		/* A runtime that writes the map once answers when the map is written. */
		process->ask_at_ns = clock_now_ns() + (process->runtime->end ? APPEAR_NS : 0);
		break;
	case HELPER_UNANSWERED:
		report_refusal(recorder, process, refusal);
		process->asked = after_answer(process); /* it may still write one */
		break;
	case HELPER_REFUSED:
		process->asked = ++process->ask_attempts < ATTEMPTS ? ASKED_NOT : ASKED_DONE;
		process->ask_at_ns = clock_now_ns() + BETWEEN_NS;
		if (process->asked == ASKED_DONE)
			report_refusal(recorder, process, refusal);
		break;
	}
}

/* An answer is not enough: verify that the map file was created. */
static void look_for_map(const struct recorder *recorder, struct traced_process *process)
{
	if (perf_maps_exists(process))
		report_success(recorder, process);
	else if (clock_now_ns() > process->ask_at_ns)
		report_missing_map(recorder, process);
	else
		return;
	process->asked = after_answer(process);
}

static void take_last_answer(const struct recorder *recorder, struct traced_process *process)
{
	char refusal[HELPER_REFUSAL_BYTES] = "";
	enum helper_answer answer = take_answer(process, refusal);

	if (answer == HELPER_WAITS)
		return;
	process->asked = ASKED_DONE;
	if (answer != HELPER_AGREED)
		report_still_writing(recorder, process, refusal);
}

/* One step for one process. `at_end`: a process that was found too late to be asked before is asked now, once. */
static void step(const struct recorder *recorder, struct traced_process *process, bool at_end)
{
	switch (process->asked) {
	case ASKED_NOT:
		if (!at_end && (process->runtime->at_end || clock_now_ns() < process->ask_at_ns))
			break;
		process->ask_attempts = at_end ? ATTEMPTS : process->ask_attempts;
		/* A process that has a map is not asked, because the map would be overwritten. */
		if (perf_maps_exists(process))
			process->asked = ASKED_DONE;
		else
			put_first(process);
		break;
	case ASKED_NOW:
		take_first_answer(recorder, process);
		break;
	case ASKED_AGREED:
		look_for_map(recorder, process);
		break;
	case ASKED_WRITES:
		if (!at_end)
			break;
		put(process, process->runtime->end);
		process->asked = ASKED_TO_END;
		break;
	case ASKED_TO_END:
		take_last_answer(recorder, process);
		break;
	case ASKED_DONE:
		break;
	}
}

static bool is_asking(const struct traced_process *process)
{
	return process->helper.child;
}

/* One step for every process; returns how many are not done. */
static size_t step_all(struct recorder *recorder, bool at_end)
{
	size_t asking = 0, busy = 0;

	for (size_t i = 0; i < recorder->processes.items.count; i++)
		asking += is_asking(&recorder->processes.items.items[i]);
	for (size_t i = 0; i < recorder->processes.items.count; i++) {
		struct traced_process *process = &recorder->processes.items.items[i];
		bool was_asking = is_asking(process);

		if (process->ended || !process->runtime || (asking >= AT_ONCE && !was_asking)) {
			busy += !process->ended && process->runtime && process->asked != ASKED_DONE;
			continue;
		}
		step(recorder, process, at_end);
		asking = asking + is_asking(process) - was_asking;
		busy += process->asked != ASKED_DONE;
	}
	return busy;
}

void ask_runtimes(struct recorder *recorder)
{
	if (recorder->options->ask_runtime)
		(void)step_all(recorder, false);
}

static void give_up(const struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->processes.items.count; i++) {
		struct traced_process *process = &recorder->processes.items.items[i];

		if (process->ended || !process->runtime || process->asked == ASKED_DONE)
			continue;
		drop_helper(process);
		if (process->asked == ASKED_NOT || process->asked == ASKED_NOW)
			report_refusal(recorder, process, "no answer before the recorder had to end");
		if (process->map_is_ours && process->runtime->end)
			report_still_writing(recorder, process, "it has not said that it stops");
	}
}

void unasked_count(struct unasked *unasked, pid_t pid)
{
	if (!unasked->count++)
		unasked->first = pid;
}

static bool has_names(const struct recorder *recorder, const struct traced_process *process)
{
	for (size_t i = 0; i < recorder->jitdumps.items.count; i++) {
		if (recorder->jitdumps.items.items[i].pid == process->pid)
			return true;
	}
	return process->perf_map.text || perf_maps_exists(process);
}

static void count_unasked(struct recorder *recorder, const struct traced_process *process)
{
	if (!recorder->options->ask_runtime || has_names(recorder, process))
		return;
	if (!process->runtime && process->generates_code)
		unasked_count(&recorder->unknown_runtimes, process->pid);
	else if (process->runtime && process->runtime->at_end && process->asked == ASKED_NOT)
		unasked_count(&recorder->ended_runtimes, process->pid);
}

static void report_unasked(const struct recorder *recorder)
{
	const struct unasked *unknown = &recorder->unknown_runtimes, *ended = &recorder->ended_runtimes;

	if (unknown->count)
		recorder_message(
		    recorder, true,
		    "%llu %s code that will have no names and no runtime that can be asked for them, which "
		    ".NET and Java can (pid %d%s)",
		    (unsigned long long)unknown->count,
		    unknown->count == 1 ? "process generates" : "processes generate", (int)unknown->first,
		    unknown->count == 1 ? "" : " and others");
	if (ended->count)
		recorder_message(recorder, true,
				 "%llu %s ended before the recording did and could not be asked for a perf map, which "
				 "its runtime only writes at the end (pid %d%s)",
				 (unsigned long long)ended->count, ended->count == 1 ? "process" : "processes",
				 (int)ended->first, ended->count == 1 ? "" : " and others");
}

void ask_runtimes_at_end(struct recorder *recorder)
{
	uint64_t end_ns = clock_now_ns() + AT_END_NS;

	if (!recorder->options->ask_runtime)
		return;
	while (step_all(recorder, true)) {
		if (clock_now_ns() >= end_ns || recorder_stop_requests(recorder) > recorder->stop_requests) {
			give_up(recorder);
			break;
		}
		usleep(STEP_MICROSECONDS);
		process_table_update(&recorder->processes);
	}
	for (size_t i = 0; i < recorder->processes.items.count; i++) {
		const struct traced_process *process = &recorder->processes.items.items[i];

		/* Processes that ended were reported before. */
		if (process->pidfd >= 0 || process->tmp_directory >= 0)
			count_unasked(recorder, process);
	}
	report_unasked(recorder);
}

static void report_leftover_map(const struct recorder *recorder, const struct traced_process *process)
{
	recorder_message(recorder, true, "/tmp/perf-%d.map of process %d, made for this recording, stays there",
			 (int)process->namespace_pid, (int)process->pid);
}

void ask_runtime_clean_up(struct recorder *recorder, struct traced_process *process)
{
	if (process->map_is_ours && !perf_maps_remove(process))
		report_leftover_map(recorder, process);
	process->map_is_ours = false;
}

void ask_runtime_end_program(struct recorder *recorder, struct traced_process *process)
{
	if (process->map_is_ours && !perf_maps_remove_earlier(process))
		report_leftover_map(recorder, process);
	process->map_is_ours = false;
}

void ask_runtime_ended(struct recorder *recorder, struct traced_process *process)
{
	drop_helper(process);
	ask_runtime_clean_up(recorder, process);
	count_unasked(recorder, process);
}
