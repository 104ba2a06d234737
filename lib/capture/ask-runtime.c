// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/ask-runtime.h"

#include <string.h>

#include "capture/perf-maps.h"

#define ATTEMPTS 10 /* a second apart: a runtime that starts is not ready at once */

void ask_runtime_note_image(struct known_process *process, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash && !strcmp(slash, "/libcoreclr.so"))
		process->runtime = RUNTIME_DOTNET;
	else if (slash && !strcmp(slash, "/libjvm.so"))
		process->runtime = RUNTIME_JAVA;
}

void ask_runtime_forget(struct known_process *process)
{
	process->runtime = RUNTIME_UNKNOWN;
	process->asked = ASKED_NOT;
	process->ask_attempts = 0;
}

static const char *label(enum known_runtime runtime)
{
	return runtime == RUNTIME_DOTNET ? ".NET" : "Java";
}

static void tell_refusal(struct recorder *recorder, const struct known_process *process, const char *refusal)
{
	recorder_message(recorder, true, "process %d (%s) gives no names for its generated code: %s", (int)process->pid,
			 label(process->runtime), refusal);
}

static void tell_success(struct recorder *recorder, const struct known_process *process)
{
	recorder_message(recorder, false, "process %d (%s) was asked for a perf map and writes one", (int)process->pid,
			 label(process->runtime));
}

/* It is asked when it has no map of its own. */
static struct mmt_error *ask_dotnet_once(struct recorder *recorder, size_t index)
{
	struct known_process *process = &recorder->processes.items.items[index];
	char refusal[ASK_REFUSAL_BYTES] = "";
	struct mmt_error *error;

	if (perf_maps_exists(process)) {
		process->asked = ASKED_DONE;
		return NULL;
	}
	error = ask_dotnet(recorder, index, true, refusal);
	if (error)
		return error;
	process = &recorder->processes.items.items[index];
	process->ask_attempts++;
	if (!*refusal) {
		process->asked = ASKED_RUNNING;
		process->map_is_ours = true;
		tell_success(recorder, process);
	} else if (process->ask_attempts == ATTEMPTS) {
		process->asked = ASKED_DONE;
		tell_refusal(recorder, process, refusal);
	}
	return NULL;
}

struct mmt_error *ask_runtimes(struct recorder *recorder)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; recorder->options->ask_runtime && !error && i < recorder->processes.items.count; i++) {
		const struct known_process *process = &recorder->processes.items.items[i];

		if (process->runtime == RUNTIME_DOTNET && process->asked == ASKED_NOT && !process->ended)
			error = ask_dotnet_once(recorder, i);
	}
	return error;
}

static struct mmt_error *ask_java_once(struct recorder *recorder, size_t index)
{
	struct known_process *process = &recorder->processes.items.items[index];
	char refusal[ASK_REFUSAL_BYTES] = "";
	struct mmt_error *error;

	process->asked = ASKED_DONE;
	/* It would be overwritten. */
	if (perf_maps_exists(process))
		return NULL;
	error = ask_java(recorder, index, refusal);
	if (error)
		return error;
	process = &recorder->processes.items.items[index];
	if (*refusal) {
		tell_refusal(recorder, process, refusal);
	} else {
		process->map_is_ours = true;
		tell_success(recorder, process);
	}
	return NULL;
}

/* One that was seen too late to be asked before is asked now. */
static struct mmt_error *end_dotnet(struct recorder *recorder, size_t index)
{
	struct known_process *process = &recorder->processes.items.items[index];
	char refusal[ASK_REFUSAL_BYTES] = "";
	struct mmt_error *error = NULL;

	if (process->asked == ASKED_NOT) {
		process->ask_attempts = ATTEMPTS - 1;
		error = ask_dotnet_once(recorder, index);
	}
	process = &recorder->processes.items.items[index];
	if (error || process->asked != ASKED_RUNNING)
		return error;
	process->asked = ASKED_DONE;
	error = ask_dotnet(recorder, index, false, refusal);
	if (*refusal)
		recorder_message(recorder, true, "process %d (.NET) may go on writing its perf map: %s",
				 (int)recorder->processes.items.items[index].pid, refusal);
	return error;
}

struct mmt_error *ask_runtimes_at_end(struct recorder *recorder)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; recorder->options->ask_runtime && !error && i < recorder->processes.items.count; i++) {
		const struct known_process *process = &recorder->processes.items.items[i];

		if (process->ended)
			continue;
		if (process->runtime == RUNTIME_DOTNET)
			error = end_dotnet(recorder, i);
		else if (process->runtime == RUNTIME_JAVA)
			error = ask_java_once(recorder, i);
	}
	return error;
}

void ask_runtime_clean_up(struct known_process *process)
{
	if (process->map_is_ours)
		perf_maps_remove(process);
	process->map_is_ours = false;
}
