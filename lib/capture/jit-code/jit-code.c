// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/jit-code/jit-code.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "capture/jit-code/code-reader.h"
#include "capture/perf/clock.h"
#include "capture/process/process-table.h"
#include "capture/recorder.h"

#define INTERVAL_NS 50000000ULL	     /* shortest time between two passes */
#define PASS_NS_MAX 5000000ULL	     /* CPU time of this thread per pass; the next pass continues there */
#define SPENT_NS_MAX 400000000LL     /* reserve: a starting program generates much code at once */
#define TIME_SHARE 50		     /* the reader may use 1/this of the time */
#define EXIT_INTERVAL_NS 10000000ULL /* shortest time between two passes after a thread has exited */
#define FORKED_NS 500000000ULL	     /* after this time a forked child keeps the code inherited from its parent */

void jit_code_deinit(struct jit_code *generated)
{
	for (size_t i = 0; i < generated->programs.count; i++)
		generating_program_deinit(&generated->programs.items[i]);
	vector_deinit(&generated->programs);
	map_deinit(&generated->program_of_pid);
	code_store_deinit(&generated->store);
}

static struct generating_program *find_program(const struct jit_code *generated, pid_t pid)
{
	const uint64_t *index = generated->programs.count ? map_get(&generated->program_of_pid, (uint64_t)pid) : NULL;

	return index ? &generated->programs.items[*index] : NULL;
}

static struct generating_program *add_program(struct recorder *recorder, pid_t pid, uint64_t from_ns)
{
	struct jit_code *generated = &recorder->generated;
	const struct traced_process *process = process_table_find(&recorder->processes, pid);
	struct generating_program *program = vector_append(&generated->programs);

	if (!program)
		return NULL;
	generating_program_init(program, pid);
	program->asked_for = process && process->target;
	program->from_ns = from_ns;
	if (map_put(&generated->program_of_pid, (uint64_t)pid, generated->programs.count - 1))
		return program;
	generated->programs.count--;
	return NULL;
}

struct mmt_error *jit_code_note(struct recorder *recorder, const struct generated_mapping *mapping)
{
	struct jit_code *generated = &recorder->generated;
	struct generating_program *program = find_program(generated, mapping->pid);
	bool wanted = mapping->protection & PROT_EXEC && recorder->options->code == MMT_CODE_ALL &&
		      code_copies_is_wanted(mapping->path);
	bool noted;

	if (!program && !wanted)
		return NULL;
	if (!program)
		program = add_program(recorder, mapping->pid, mapping->forked ? clock_now_ns() + FORKED_NS : 0);
	if (!program)
		return &error_no_memory;
	if (wanted && generated->spent_ns <= SPENT_NS_MAX && !generating_program_tidy(program, &generated->spent_ns))
		return &error_no_memory;
	noted = wanted ? code_ranges_add(&program->ranges, mapping->start, mapping->end, mapping->time_ns)
		       : code_ranges_remove(&program->ranges, mapping->start, mapping->end, mapping->time_ns);
	return noted ? NULL : &error_no_memory;
}

bool jit_code_overlaps(const struct recorder *recorder, pid_t pid, uint64_t start, uint64_t end)
{
	const struct generating_program *program = find_program(&recorder->generated, pid);
	const struct code_range *range = program ? code_ranges_from(&program->ranges, start) : NULL;

	return range && range->start < end;
}

/* Stop looking for its code. */
static void end_program(struct jit_code *generated, struct generating_program *program)
{
	program->ended = true;
	generated->nothing_gives_way = false;
	generated->full |= program->pages.items.count >= CODE_PAGES_MAX;
	generated->cut |= program->ranges.cut;
	generating_program_close(program);
	code_pages_end(&program->pages);
}

struct mmt_error *jit_code_end_program(struct recorder *recorder, pid_t pid, uint64_t time_ns)
{
	struct jit_code *generated = &recorder->generated;
	struct generating_program *program = find_program(generated, pid), *next;
	struct code_ranges ranges;

	if (!program)
		return NULL;
	code_ranges_forget(&program->ranges, time_ns);
	if (!program->ranges.count)
		code_ranges_deinit(&program->ranges);
	program->from_ns = 0;
	if (!program->ended && (!program->opened || program->opened_ns > time_ns))
		return NULL;
	program->until_ns = time_ns;
	end_program(generated, program);
	map_remove(&generated->program_of_pid, (uint64_t)pid);
	ranges = program->ranges;
	if (!ranges.count)
		return NULL;
	program->ranges = (struct code_ranges){0};
	next = add_program(recorder, pid, 0);
	if (next)
		next->ranges = ranges;
	else
		code_ranges_deinit(&ranges);
	return next ? NULL : &error_no_memory;
}

void jit_code_end_process(struct recorder *recorder, pid_t pid)
{
	struct generating_program *program = find_program(&recorder->generated, pid);

	if (!program)
		return;
	end_program(&recorder->generated, program);
	code_ranges_deinit(&program->ranges);
}

void jit_code_note_exit(struct recorder *recorder, pid_t pid)
{
	struct jit_code *generated = &recorder->generated;
	const struct generating_program *program = find_program(generated, pid);

	if (program && !program->ended && generated->next_ns > generated->read_ns + EXIT_INTERVAL_NS)
		generated->next_ns = generated->read_ns + EXIT_INTERVAL_NS;
}

void jit_code_begin_snapshot(struct recorder *recorder, pid_t pid)
{
	struct generating_program *program = find_program(&recorder->generated, pid);

	if (program)
		code_ranges_clear(&program->ranges);
}

/* Nothing of it was kept, and no more records about it will come: its process is not known either. */
static bool can_be_dropped(const struct recorder *recorder, const struct generating_program *program, bool youngest)
{
	return program->ended && !program->pages.items.count &&
	       !(youngest && process_table_find(&recorder->processes, program->pid));
}

/* Moves other elements. */
static void drop_programs(struct recorder *recorder)
{
	struct jit_code *generated = &recorder->generated;
	size_t kept = 0;

	for (size_t i = 0; i < generated->programs.count; i++) {
		struct generating_program *program = &generated->programs.items[i];
		uint64_t *index = map_get(&generated->program_of_pid, (uint64_t)program->pid);
		bool youngest = index && *index == i;

		for (size_t j = 0; j < 2; j++)
			generated->turns[j] = generated->turns[j] == i ? kept : generated->turns[j];
		if (can_be_dropped(recorder, program, youngest)) {
			if (youngest)
				map_remove(&generated->program_of_pid, (uint64_t)program->pid);
			generated->full |= program->gave_way;
			generated->unopened += program->descriptors_short;
			generating_program_deinit(program);
			continue;
		}
		if (youngest)
			*index = kept;
		generated->programs.items[kept++] = *program;
	}
	generated->programs.count = kept;
}

struct mmt_error *jit_code_read(struct recorder *recorder)
{
	struct jit_code *generated = &recorder->generated;
	struct code_pass pass = {.recorder = recorder,
				 .now_ns = generated->programs.count ? clock_now_ns() : 0,
				 .spent_ns_max = PASS_NS_MAX,
				 .trust_ranges = !recorder->options->lean};
	struct mmt_error *error;

	if (!generated->programs.count || pass.now_ns < generated->next_ns)
		return NULL;
	drop_programs(recorder);
	generated->spent_ns -= (int64_t)((pass.now_ns - generated->reckoned_ns) / TIME_SHARE);
	if (generated->spent_ns < 0)
		generated->spent_ns = 0;
	generated->reckoned_ns = pass.now_ns;
	if (generated->spent_ns > SPENT_NS_MAX)
		return NULL;
	generated->read_ns = pass.now_ns;
	pass.due_ns = pass.now_ns;
	error = code_pass_read(&pass);
	generated->next_ns = pass.now_ns + INTERVAL_NS;
	generated->spent_ns += (int64_t)pass.spent_ns;
	return error;
}

/* When recording ends: write what was read into the recording, and warn about what is missing. */

#define END_NS_MAX 10000000000ULL /* CPU time of this thread */

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

/* The pages are no longer found by their addresses. */
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

static void report_missing_code(struct recorder *recorder)
{
	static const char consequence[] = "callers of code without frame pointers may be missing";
	const struct jit_code *generated = &recorder->generated;
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

struct mmt_error *jit_code_finish(struct recorder *recorder)
{
	struct jit_code *generated = &recorder->generated;
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
		report_missing_code(recorder);
	return error;
}

static struct mmt_error *read_kept(void *store, size_t index, struct buffer *plain)
{
	return code_store_get(store, index, plain);
}

struct mmt_error *jit_code_encode(struct recorder *recorder, struct buffer *buffer)
{
	const struct code_source source = {&recorder->generated.store, read_kept};

	return code_copies_encode(&recorder->code, &source, buffer);
}
