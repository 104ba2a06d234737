// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/generated-code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/clock.h"
#include "capture/drain.h"
#include "capture/known-processes.h"
#include "capture/mapping-query.h"
#include "capture/proc.h"
#include "capture/recorder.h"

/* The process cannot map while these are read; the rings, and others' turn, are looked after between two of them. */
#define PIECE_BYTES (64u << 10)
#define INTERVAL_NS 50000000ULL	  /* from one time to the next, at least */
#define PASS_NS_MAX 5000000ULL	  /* of this thread's time, each time; the next goes on there */
#define END_NS_MAX 10000000000ULL /* the same, of the only one when recording ends */
#define SPENT_NS_MAX 400000000LL  /* a program that begins generates much at once */
#define TIME_SHARE 50		  /* one part of so many of the time may be spent */
#define TIDY_INTERVAL_NS 1000000000ULL
#define EXIT_INTERVAL_NS 10000000ULL /* the same when a thread has ended */
#define FORKED_NS 500000000ULL	     /* a child that lives so long keeps what its parent generated */

static void close_program(struct generating_program *program)
{
	if (program->memory >= 0)
		close(program->memory);
	if (program->maps >= 0)
		close(program->maps);
	if (program->pagemap.fd >= 0)
		residency_close(&program->pagemap);
	program->memory = program->maps = -1;
}

void generated_code_deinit(struct generated_code *generated)
{
	for (size_t i = 0; i < generated->programs.count; i++) {
		struct generating_program *program = &generated->programs.items[i];

		close_program(program);
		code_ranges_deinit(&program->ranges);
		code_pages_deinit(&program->pages);
	}
	vector_deinit(&generated->programs);
	map_deinit(&generated->program_of_pid);
	code_store_deinit(&generated->store);
}

static struct generating_program *find_program(const struct generated_code *generated, pid_t pid)
{
	const uint64_t *index = generated->programs.count ? map_get(&generated->program_of_pid, (uint64_t)pid) : NULL;

	return index ? &generated->programs.items[*index] : NULL;
}

static struct generating_program *add_program(struct recorder *recorder, pid_t pid, uint64_t from_ns)
{
	struct generated_code *generated = &recorder->generated;
	const struct known_process *process = known_processes_find(&recorder->processes, pid);
	struct generating_program *program = vector_append(&generated->programs);

	if (!program)
		return NULL;
	program->pid = pid;
	program->asked_for = process && process->target;
	program->until_ns = UINT64_MAX;
	program->from_ns = from_ns;
	program->memory = program->maps = program->pagemap.fd = -1;
	program->pages.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	if (map_put(&generated->program_of_pid, (uint64_t)pid, generated->programs.count - 1))
		return program;
	generated->programs.count--;
	return NULL;
}

/* *short_ret: there are too few descriptors for it. */
static int spare(int fd, bool at_end, bool *short_ret)
{
	bool is_open = fd >= 0;

	if (!at_end)
		fd = known_processes_spare(fd);
	*short_ret |= fd < 0 && (is_open || errno == EMFILE || errno == ENFILE);
	return fd;
}

static void open_program(struct generating_program *program, bool at_end)
{
	pid_t tid = proc_living_thread(program->pid);
	char path[64];

	program->opened = true;
	program->opened_ns = clock_now_ns();
	program->descriptors_short = false;
	snprintf(path, sizeof(path), "/proc/%d/mem", tid);
	program->memory = spare(open(path, O_RDONLY | O_CLOEXEC), at_end, &program->descriptors_short);
	snprintf(path, sizeof(path), "/proc/%d/maps", tid);
	program->maps = spare(open(path, O_RDONLY | O_CLOEXEC), at_end, &program->descriptors_short);
	if (!residency_open(&program->pagemap, tid))
		program->pagemap.fd = -1;
	program->pagemap.fd = spare(program->pagemap.fd, at_end, &program->descriptors_short);
	if (program->memory < 0 || program->maps < 0 || program->pagemap.fd < 0)
		close_program(program);
}

/*
 * Nobody tells what is unmapped: so what is not there, or not executable, any more is forgotten where others need the
 * room. What becomes executable again is told of.
 */
static bool tidy_ranges(struct generated_code *generated, struct generating_program *program)
{
	uint64_t now_ns = clock_now_ns(), begin_ns = clock_thread_ns(), position = 0;
	const struct code_range *range;

	if (program->ended || now_ns < program->tidy_ns || generated->spent_ns > SPENT_NS_MAX)
		return true;
	if (!program->opened)
		open_program(program, false);
	while (program->maps >= 0 && (range = code_ranges_from(&program->ranges, position))) {
		uint64_t start = range->start > position ? range->start : position, end;
		enum mapped_kind kind = mapping_query(program->maps, start, &end);

		if (kind != MAPPED_CODE && kind != MAPPED_UNTOLD &&
		    !code_ranges_remove(&program->ranges, start, end, now_ns))
			return false;
		position = end;
	}
	/* Where it was worth the time it is done again as soon as there is need. */
	if (program->ranges.items.count > CODE_RANGES_MAX / 2)
		program->tidy_ns = clock_now_ns() + TIDY_INTERVAL_NS;
	generated->spent_ns += (int64_t)(clock_thread_ns() - begin_ns);
	return true;
}

struct mmt_error *generated_code_note(struct recorder *recorder, const struct generated_mapping *mapping)
{
	struct generated_code *generated = &recorder->generated;
	struct generating_program *program = find_program(generated, mapping->pid);
	bool wanted = mapping->protection & PROT_EXEC && recorder->options->code == MMT_CODE_ALL &&
		      code_copies_is_wanted(mapping->path);
	bool noted;

	if (!program && !wanted)
		return NULL;
	if (!program)
		program = add_program(recorder, mapping->pid, mapping->forked ? clock_now_ns() + FORKED_NS : 0);
	if (!program || (wanted && program->ranges.items.count >= CODE_RANGES_MAX && !tidy_ranges(generated, program)))
		return &error_no_memory;
	noted = wanted ? code_ranges_add(&program->ranges, mapping->start, mapping->end, mapping->time_ns)
		       : code_ranges_remove(&program->ranges, mapping->start, mapping->end, mapping->time_ns);
	return noted ? NULL : &error_no_memory;
}

/* What it has is not looked for any more. */
static void end_program(struct generated_code *generated, struct generating_program *program)
{
	program->ended = true;
	generated->nothing_gives_way = false;
	generated->full |= program->pages.items.count >= CODE_PAGES_MAX;
	generated->cut |= program->ranges.cut;
	close_program(program);
	code_pages_end(&program->pages);
}

struct mmt_error *generated_code_end_program(struct recorder *recorder, pid_t pid, uint64_t time_ns)
{
	struct generated_code *generated = &recorder->generated;
	struct generating_program *program = find_program(generated, pid), *next;
	struct code_ranges ranges;

	if (!program)
		return NULL;
	code_ranges_forget(&program->ranges, time_ns);
	if (!program->ranges.items.count)
		code_ranges_deinit(&program->ranges);
	program->from_ns = 0;
	if (!program->ended && (!program->opened || program->opened_ns > time_ns))
		return NULL;
	program->until_ns = time_ns;
	end_program(generated, program);
	map_remove(&generated->program_of_pid, (uint64_t)pid);
	ranges = program->ranges;
	if (!ranges.items.count)
		return NULL;
	program->ranges = (struct code_ranges){0};
	next = add_program(recorder, pid, 0);
	if (next)
		next->ranges = ranges;
	else
		code_ranges_deinit(&ranges);
	return next ? NULL : &error_no_memory;
}

void generated_code_end_process(struct recorder *recorder, pid_t pid)
{
	struct generating_program *program = find_program(&recorder->generated, pid);

	if (!program)
		return;
	end_program(&recorder->generated, program);
	code_ranges_deinit(&program->ranges);
}

void generated_code_note_exit(struct recorder *recorder, pid_t pid)
{
	struct generated_code *generated = &recorder->generated;
	const struct generating_program *program = find_program(generated, pid);

	if (program && !program->ended && generated->next_ns > generated->read_ns + EXIT_INTERVAL_NS)
		generated->next_ns = generated->read_ns + EXIT_INTERVAL_NS;
}

void generated_code_begin_snapshot(struct recorder *recorder, pid_t pid)
{
	struct generating_program *program = find_program(&recorder->generated, pid);

	if (program)
		code_ranges_clear(&program->ranges);
}

/* One pass over the programs. */
struct pass {
	struct recorder *recorder;
	uint64_t now_ns;
	uint64_t due_ns;   /* pages that are to be read by then are */
	uint64_t work_ns;  /* when the work began that is not in `spent_ns` yet */
	uint64_t spent_ns; /* this thread's time, without that of draining */
	uint64_t spent_ns_max;
	bool at_end, trust_ranges;
	uint8_t *piece;
};

static void begin_work(struct pass *pass)
{
	pass->work_ns = clock_thread_ns();
}

static void end_work(struct pass *pass)
{
	pass->spent_ns += clock_thread_ns() - pass->work_ns;
}

static bool is_over(const struct pass *pass)
{
	return pass->spent_ns + (clock_thread_ns() - pass->work_ns) >= pass->spent_ns_max;
}

/* Afterwards the programs may be elsewhere in memory, or ended. */
static struct mmt_error *let_drain(struct pass *pass)
{
	struct mmt_error *error;

	end_work(pass);
	error = drain_filling_rings(pass->recorder);
	begin_work(pass);
	return error;
}

/*
 * Whose code gives way to that of `program`, which lives: what has ended comes before what lives, then what was not
 * asked for, then the oldest.
 * To what was not asked for nothing gives way that was, and nothing that lives.
 */
static struct generating_program *find_victim(const struct generated_code *generated,
					      const struct generating_program *program)
{
	struct generating_program *ended = NULL, *living = NULL;

	for (size_t i = 0; i < generated->programs.count; i++) {
		struct generating_program *other = &generated->programs.items[i];

		if (other == program || !other->pages.items.count)
			continue;
		if (other->ended && !other->asked_for)
			return other;
		if (other->ended)
			ended = ended ? ended : other;
		else if (!other->asked_for)
			living = other;
	}
	if (!program->asked_for)
		return NULL;
	return ended ? ended : living;
}

static bool make_room(void *context)
{
	struct generated_code *generated = context;
	const struct generating_program *program = &generated->programs.items[generated->reading];
	struct generating_program *victim = generated->nothing_gives_way ? NULL : find_victim(generated, program);

	generated->nothing_gives_way |= !victim && program->asked_for;
	if (!victim)
		return false;
	code_pages_give_up(&victim->pages, &generated->store);
	victim->gave_way = true;
	return true;
}

static struct mmt_error *keep_pages(struct pass *pass, struct generating_program *program, uint64_t start, uint64_t end,
				    const uint8_t *code)
{
	size_t page_bytes = program->pages.page_bytes;
	struct mmt_error *error = NULL;

	for (; !error && start + page_bytes <= end; start += page_bytes, code += page_bytes)
		error = code_pages_put(&program->pages, &pass->recorder->generated.store, start, code, pass->now_ns);
	return error;
}

/*
 * Of what has been read that which is executable still. Where what is unmapped is told of late, or not at all, data may
 * be mapped meanwhile: that must not get into the recording.
 */
static struct mmt_error *keep_code(struct pass *pass, struct generating_program *program, uint64_t start, uint64_t end)
{
	struct mmt_error *error = NULL;
	uint64_t position = start, part_end;

	for (; !error && position < end; position = part_end) {
		enum mapped_kind kind = mapping_query(program->maps, position, &part_end);

		if (part_end > end)
			part_end = end;
		if (kind == MAPPED_CODE || (kind == MAPPED_UNTOLD && pass->trust_ranges))
			error = keep_pages(pass, program, position, part_end, pass->piece + (position - start));
	}
	return error;
}

/* *position: how far it came; the run's end when nothing more is to be had. */
static struct mmt_error *read_piece(struct pass *pass, struct generating_program *program,
				    const struct resident_run *run, uint64_t *position)
{
	uint64_t start, size = code_pages_due(&program->pages, *position, run->end, PIECE_BYTES, pass->due_ns, &start);
	ssize_t count = 0;

	*position = size ? start + size : run->end;
	if (size)
		count = pread(program->memory, pass->piece, (size_t)size, (off_t)start);
	return count > 0 ? keep_code(pass, program, start, start + (uint64_t)count) : NULL;
}

/* Of START to END, or a part, what is in memory; *position_ret: how far it came. */
static struct mmt_error *read_range(struct pass *pass, size_t index, uint64_t start, uint64_t end,
				    uint64_t *position_ret)
{
	const struct generated_code *generated = &pass->recorder->generated;
	struct process_residency pages = {0};
	struct mmt_error *error = residency_step(&generated->programs.items[index].pagemap, start, end, &pages, &end);

	*position_ret = end;
	if (!error)
		error = let_drain(pass);
	for (size_t i = 0; !error && *position_ret == end && i < pages.runs.count; i++) {
		uint64_t position = pages.runs.items[i].start;

		while (!error && position < pages.runs.items[i].end) {
			struct generating_program *program = &generated->programs.items[index];

			if (program->memory < 0)
				break;
			if (is_over(pass)) {
				*position_ret = position;
				break;
			}
			error = read_piece(pass, program, &pages.runs.items[i], &position);
			if (!error)
				error = let_drain(pass);
		}
	}
	vector_deinit(&pages.runs);
	return error;
}

/* The next mapping that is executable, or a part of it, from `start` on; nothing: *end is where to look next. */
static bool find_code(const struct pass *pass, struct generating_program *program, uint64_t start, uint64_t *end)
{
	uint64_t now_ns = clock_now_ns(), mapped_end;
	enum mapped_kind kind = mapping_query(program->maps, start, &mapped_end);

	if (mapped_end < *end || kind == MAPPED_NOTHING)
		*end = mapped_end;
	/* Out of memory: it is looked for again. */
	if (kind == MAPPED_NOTHING)
		(void)code_ranges_remove(&program->ranges, start, mapped_end, now_ns);
	return kind == MAPPED_CODE || (kind == MAPPED_UNTOLD && pass->trust_ranges);
}

/*
 * All its ranges once, beginning where the last pass ended. Mapping by mapping: its neighbour may be data for a while,
 * written to and then executable again, which nobody may tell.
 */
static struct mmt_error *read_ranges(struct pass *pass, size_t index)
{
	const struct generated_code *generated = &pass->recorder->generated;
	uint64_t begin = generated->programs.items[index].position, position = begin;
	struct mmt_error *error = NULL;
	bool again = false; /* from the lowest on */

	while (!error && !is_over(pass)) {
		struct generating_program *program = &generated->programs.items[index];
		const struct code_range *range = code_ranges_from(&program->ranges, position);
		uint64_t start, end;

		if (program->memory < 0 || (!range && again))
			break;
		if (!range) {
			again = true;
			position = 0;
			continue;
		}
		start = range->start > position ? range->start : position;
		end = range->end;
		if (again && end > begin)
			end = begin;
		if (start >= end)
			break;
		if (find_code(pass, program, start, &end))
			error = read_range(pass, index, start, end, &position);
		else
			position = end;
	}
	generated->programs.items[index].position = position;
	return error;
}

static bool has_turn(const struct pass *pass, const struct generating_program *program, bool asked_for)
{
	return !program->ended && !program->gave_way && program->asked_for == asked_for &&
	       (pass->at_end || program->from_ns <= pass->now_ns);
}

static struct mmt_error *read_program(struct pass *pass, size_t index)
{
	struct generated_code *generated = &pass->recorder->generated;
	struct generating_program *program = &generated->programs.items[index];
	struct mmt_error *error;

	if (!program->opened || (pass->at_end && program->memory < 0))
		open_program(program, pass->at_end);
	generated->reading = index;
	program->pagemap.gave_up = false;
	program->pagemap.bytes = program->pagemap.begin_ns = 0;
	if (program->memory < 0)
		return NULL;
	error = read_ranges(pass, index);
	generated->out_of_time |= pass->at_end && generated->programs.items[index].pagemap.gave_up;
	return error;
}

/* Of the two kinds of programs one: from that on which had no time left in the last pass. */
static struct mmt_error *read_kind(struct pass *pass, bool asked_for)
{
	struct generated_code *generated = &pass->recorder->generated;
	size_t count = generated->programs.count, first = generated->turns[asked_for];
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < count; i++) {
		size_t index = (first + i) % count;

		if (!has_turn(pass, &generated->programs.items[index], asked_for))
			continue;
		if (is_over(pass)) {
			generated->turns[asked_for] = index;
			return NULL;
		}
		error = read_program(pass, index);
	}
	return error;
}

static struct mmt_error *read_programs(struct pass *pass)
{
	struct generated_code *generated = &pass->recorder->generated;
	CLEANUP(free) uint8_t *piece = malloc(PIECE_BYTES);
	bool asked_for = pass->at_end || !generated->others_first;
	struct mmt_error *error = piece ? NULL : &error_no_memory;

	if (!error && !generated->store.compressor)
		error = code_store_init(&generated->store, CODE_BYTES_MAX, CODE_KEPT_BYTES_MAX);
	generated->store.make_room = make_room;
	generated->store.context = generated;
	pass->piece = piece;
	begin_work(pass);
	if (!error)
		error = read_kind(pass, asked_for);
	if (!error)
		error = read_kind(pass, !asked_for);
	end_work(pass);
	generated->others_first = asked_for;
	return error;
}

/* Nothing of it was kept, and nothing of it is told any more: its process is not known either. */
static bool can_be_dropped(const struct recorder *recorder, const struct generating_program *program, bool youngest)
{
	return program->ended && !program->pages.items.count &&
	       !(youngest && known_processes_find(&recorder->processes, program->pid));
}

/* Others move. */
static void drop_programs(struct recorder *recorder)
{
	struct generated_code *generated = &recorder->generated;
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
			code_ranges_deinit(&program->ranges);
			code_pages_deinit(&program->pages);
			continue;
		}
		if (youngest)
			*index = kept;
		generated->programs.items[kept++] = *program;
	}
	generated->programs.count = kept;
}

struct mmt_error *generated_code_read(struct recorder *recorder)
{
	struct generated_code *generated = &recorder->generated;
	struct pass pass = {.recorder = recorder,
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
	error = read_programs(&pass);
	generated->next_ns = pass.now_ns + INTERVAL_NS;
	generated->spent_ns += (int64_t)pass.spent_ns;
	return error;
}

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
	struct pass pass = {.recorder = recorder,
			    .now_ns = clock_now_ns(),
			    .due_ns = UINT64_MAX,
			    .spent_ns_max = END_NS_MAX,
			    .at_end = true,
			    .trust_ranges = true};
	struct mmt_error *error = NULL;

	if (!generated->programs.count)
		return NULL;
	error = read_programs(&pass);
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
