// SPDX-License-Identifier: LGPL-2.1-or-later
/* When recording ends: what was read goes into the recording, and what is missing is told. */
#include <stdlib.h>

#include "capture/clock.h"
#include "capture/code-pass.h"
#include "capture/generated-code.h"
#include "capture/recorder.h"

#define END_NS_MAX 10000000000ULL /* of this thread's time */

static int compare_pages(const void *first, const void *second)
{
	uint64_t a = ((const struct code_page *)first)->address, b = ((const struct code_page *)second)->address;

	return a < b ? -1 : a > b;
}

static int compare_changes(const void *first, const void *second)
{
	uint64_t a = ((const struct code_change *)first)->until_ns, b = ((const struct code_change *)second)->until_ns;

	return a < b ? -1 : a > b;
}

/* The pages are not found by their addresses any more. */
static struct mmt_error *hand_over(struct generating_program *program, struct code_copies *copies)
{
	struct code_pages *pages = &program->pages;
	struct process_code *process;

	if (!pages->items.count)
		return NULL;
	process = vector_append(&copies->processes);
	if (!process)
		return &error_no_memory;
	process->pid = program->pid;
	process->until_ns = program->until_ns;
	qsort(pages->items.items, pages->items.count, sizeof(*pages->items.items), compare_pages);
	for (size_t i = 0; i < pages->items.count; i++) {
		const struct code_page *page = &pages->items.items[i];
		const struct code_run run = {page->address, pages->page_bytes, page->kept};

		if (page->kept != CODE_STORE_NONE && !vector_push(&process->runs, run))
			return &error_no_memory;
	}
	if (pages->changes.count)
		qsort(pages->changes.items, pages->changes.count, sizeof(*pages->changes.items), compare_changes);
	for (size_t i = 0; i < pages->changes.count; i++) {
		if (!vector_push(&process->changes, pages->changes.items[i]))
			return &error_no_memory;
	}
	return NULL;
}

static void tell_what_is_missing(struct recorder *recorder)
{
	static const char consequence[] = "callers of code without frame pointers may be missing";
	const struct generated_code *generated = &recorder->generated;
	bool full = generated->full || generated->store.full, cut = generated->cut;
	size_t unopened = generated->unopened;

	for (size_t i = 0; i < generated->programs.count; i++) {
		const struct generating_program *program = &generated->programs.items[i];

		full |= program->gave_way || program->pages.items.count >= CODE_PAGES_MAX;
		cut |= program->ranges.cut;
		unopened += program->descriptors_short;
	}
	if (full)
		recorder_message(
		    recorder, true,
		    "not all generated code is copied: a recording may have %u MiB of it, %u compressed; %s",
		    CODE_BYTES_MAX >> 20, CODE_KEPT_BYTES_MAX >> 20, consequence);
	if (cut)
		recorder_message(recorder, true,
				 "not all generated code is copied: it is watched in %d places of a process; %s",
				 CODE_RANGES_MAX, consequence);
	if (generated->out_of_time)
		recorder_message(recorder, true,
				 "not all generated code is copied: it took too long when recording ended; %s",
				 consequence);
	if (unopened)
		recorder_message(recorder, true,
				 "generated code of %zu %s is not copied, too many files were open: %s; raise the "
				 "limit with `ulimit -n`",
				 unopened, unopened == 1 ? "program" : "programs", consequence);
}

struct mmt_error *generated_code_finish(struct recorder *recorder)
{
	struct generated_code *generated = &recorder->generated;
	struct code_pass pass = {.recorder = recorder,
				 .now_ns = clock_now_ns(),
				 .due_ns = UINT64_MAX,
				 .spent_ns_max = END_NS_MAX,
				 .at_end = true,
				 .trust_ranges = true};
	struct mmt_error *error = NULL;

	if (!generated->programs.count)
		return NULL;
	error = code_pass_read(&pass);
	generated->out_of_time |= pass.spent_ns >= pass.spent_ns_max;
	for (size_t i = 0; !error && i < generated->programs.count; i++)
		error = hand_over(&generated->programs.items[i], &recorder->code);
	if (!error)
		tell_what_is_missing(recorder);
	return error;
}

static struct mmt_error *read_kept(void *store, size_t index, struct buffer *plain)
{
	return code_store_get(store, index, plain);
}

struct mmt_error *generated_code_encode(struct recorder *recorder, struct buffer *buffer)
{
	const struct code_source source = {&recorder->generated.store, read_kept};

	return code_copies_encode(&recorder->code, &source, buffer);
}
