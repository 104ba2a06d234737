/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints each page that the model of a recording has as touched when recording ends: "page PID ADDRESS". */
#include <inttypes.h>
#include <stdio.h>

#include "analysis/replay/replay.h"

static void print_pages(const struct replay *replay, const struct process *process)
{
	const struct page_faults *faults = touched_pages_of(&replay->touched, process);
	uint64_t position = 0;
	struct page_fault fault;

	while (faults && page_faults_next(faults, &position, UINT64_MAX, &fault)) {
		for (; fault.start < fault.end; fault.start += replay->notes.memory.page_bytes)
			printf("page %d %#" PRIx64 "\n", process->pid, fault.start);
	}
}

int main(int argc, char **argv)
{
	struct mmt_report_options report;
	struct replay_options options = {.report = &report};
	struct replay replay;
	struct mmt_error *error;

	mmt_report_options_init(&report);
	report.input = argc == 2 ? argv[1] : "";
	error = replay_init(&replay, &options);
	if (!error) {
		error = replay_run(&replay);
		for (const struct process *process = NULL;
		     !error && (process = processes_next(replay.processes, process));)
			print_pages(&replay, process);
		replay_deinit(&replay);
	}
	if (error)
		fprintf(stderr, "%s\n", error->message);
	mmt_error_destroy(error);
	return error ? 2 : 0;
}
