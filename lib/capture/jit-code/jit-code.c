// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/jit-code/jit-code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "capture/perf/clock.h"
#include "capture/procfs/proc.h"
#include "capture/process/process-table.h"
#include "capture/recorder.h"
#include "capture/ring-reader.h"

/* One pass: reads new JIT code of all programs within a time limit. */
struct code_pass {
	struct recorder *recorder;
	uint64_t now_ns;
	uint64_t due_ns;   /* the pass reads pages that are due at this time */
	uint64_t spent_ns; /* CPU time of this thread, without the time spent on reading rings */
	uint64_t spent_ns_max;
	bool at_end;
	bool trust_ranges; /* if the kernel cannot query single mappings, assume that ranges are still executable */
	/* Progress of the pass. */
	uint64_t work_ns; /* when the work began that `spent_ns` does not include yet */
	uint8_t *piece;
};

/* The bytes of one read. The process cannot map memory during a read, so between two reads the targets and the ring
 * reader get their turn. */
#define PIECE_BYTES (64u << 10)

static void begin_work(struct code_pass *pass)
{
	pass->work_ns = blocking_calls_clock_ns(&pass->recorder->calls);
}

static void end_work(struct code_pass *pass)
{
	pass->spent_ns += blocking_calls_clock_ns(&pass->recorder->calls) - pass->work_ns;
}

static bool is_over(const struct code_pass *pass)
{
	return pass->spent_ns + (blocking_calls_clock_ns(&pass->recorder->calls) - pass->work_ns) >= pass->spent_ns_max;
}

static struct mmt_error *give_way(struct code_pass *pass)
{
	struct mmt_error *error;

	end_work(pass);
	error = ring_reader_give_way(pass->recorder);
	begin_work(pass);
	return error;
}

/*
 * Finds the program whose code is evicted in favour of `program`, which is alive. Ended programs are evicted before
 * living ones, then programs that the user did not request before requested ones, then the oldest of the ended ones. A
 * program that the user did not request evicts neither a requested program nor a living one.
 */
static struct jit_program *find_victim(const struct jit_code *jit_code, const struct jit_program *program)
{
	struct jit_program *ended = NULL, *living = NULL;

	for (size_t i = 0; i < jit_code->programs.count; i++) {
		struct jit_program *other = &jit_code->programs.items[i];

		if (other == program || !other->pages.items.count)
			continue;
		if (other->ended && !other->requested)
			return other;
		if (other->ended)
			ended = ended ? ended : other;
		else if (!other->requested)
			living = other;
	}
	if (!program->requested)
		return NULL;
	return ended ? ended : living;
}

static bool make_room(void *context)
{
	struct jit_code *jit_code = context;
	const struct jit_program *program = jit_code->reading;
	struct jit_program *victim = jit_code->nothing_to_evict ? NULL : find_victim(jit_code, program);

	jit_code->nothing_to_evict |= !victim && program->requested;
	if (!victim)
		return false;
	code_pages_discard(&victim->pages, &jit_code->store);
	victim->evicted = true;
	return true;
}

static struct mmt_error *keep_pages(struct code_pass *pass, struct jit_program *program, uint64_t start, uint64_t end,
				    const uint8_t *code)
{
	size_t page_bytes = program->pages.page_bytes;
	struct mmt_error *error = NULL;

	for (; !error && start + page_bytes <= end; start += page_bytes, code += page_bytes)
		error =
		    code_pages_put(&program->pages, &pass->recorder->jobs.jit_code.store, start, code, pass->now_ns);
	return error;
}

struct mapping_answer {
	enum mapped_kind kind;
	uint64_t end;
};

static size_t query(const void *argument, int given, void *result, int *opened_ret)
{
	struct mapping_answer answer;
	uint64_t address;

	(void)opened_ret;
	memcpy(&address, argument, sizeof(address));
	answer.kind = mapping_query(given, address, &answer.end);
	memcpy(result, &answer, sizeof(answer));
	return sizeof(answer);
}

/* As mapping_query(). False: the kernel does not answer. */
static bool query_mapping(const struct jit_program *program, uint64_t address, enum mapped_kind *kind_ret,
			  uint64_t *end_ret)
{
	struct mapping_answer answer = {MAPPED_DATA, UINT64_MAX};
	struct blocking_call call = {.place = place_of_process(program->pid),
				     .run = query,
				     .argument = &address,
				     .argument_bytes = sizeof(address),
				     .given = program->maps,
				     .result = &answer,
				     .result_bytes = sizeof(answer)};
	bool answered = blocking_call(program->calls, &call);

	*kind_ret = answer.kind;
	*end_ret = answer.end;
	return answered;
}

/*
 * Keeps only those parts of the bytes read that are still executable. The recorder learns late or never that code was
 * unmapped, so data may have been mapped there since, and data must not get into the recording.
 */
static struct mmt_error *keep_code(struct code_pass *pass, struct jit_program *program, uint64_t start, uint64_t end)
{
	struct mmt_error *error = NULL;
	uint64_t position = start, part_end;

	for (; !error && position < end; position = part_end) {
		enum mapped_kind kind;

		(void)query_mapping(program, position, &kind, &part_end);
		if (part_end > end)
			part_end = end;
		if (kind == MAPPED_CODE || (kind == MAPPED_UNKNOWN && pass->trust_ranges))
			error = keep_pages(pass, program, position, part_end, pass->piece + (position - start));
	}
	return error;
}

/* *position: the address reached; the end of the run if nothing more can be read there. */
static struct mmt_error *read_piece(struct code_pass *pass, struct jit_program *program, const struct resident_run *run,
				    uint64_t *position)
{
	uint64_t start, size = code_pages_due(&program->pages, *position, run->end, PIECE_BYTES, pass->due_ns, &start);
	ssize_t count = 0;

	*position = size ? start + size : run->end;
	if (size)
		count = process_file_read(program->calls, program->pid, program->memory, pass->piece, (size_t)size,
					  (int64_t)start);
	return count > 0 ? keep_code(pass, program, start, start + (uint64_t)count) : NULL;
}

/* Reads resident pages from START to END until the pass is over. *position_ret: the address reached. */
static struct mmt_error *read_range(struct code_pass *pass, struct jit_program *program, uint64_t start, uint64_t end,
				    uint64_t *position_ret)
{
	struct process_residency pages = {0};
	struct mmt_error *error;

	error = residency_step(&program->pagemap, start, end, &pages, &end);
	*position_ret = end;
	if (!error)
		error = give_way(pass);
	for (size_t i = 0; !error && *position_ret == end && i < pages.runs.count; i++) {
		uint64_t position = pages.runs.items[i].start;

		while (!error && position < pages.runs.items[i].end) {
			if (is_over(pass)) {
				*position_ret = position;
				break;
			}
			error = read_piece(pass, program, &pages.runs.items[i], &position);
			if (!error)
				error = give_way(pass);
		}
	}
	vector_deinit(&pages.runs);
	return error;
}

/* Finds the next executable mapping, or a part of it, at or above `start`. If there is none, *end is the address to
 * continue at. */
static bool find_code(const struct code_pass *pass, struct jit_program *program, uint64_t start, uint64_t *end)
{
	uint64_t now_ns = clock_now_ns(), mapped_end;
	enum mapped_kind kind;

	(void)query_mapping(program, start, &kind, &mapped_end);
	if (mapped_end < *end || kind == MAPPED_NOTHING)
		*end = mapped_end;
	if (kind == MAPPED_NOTHING)
		(void)code_ranges_remove(&program->ranges, start, mapped_end, now_ns);
	return kind == MAPPED_CODE || (kind == MAPPED_UNKNOWN && pass->trust_ranges);
}

/*
 * Reads all ranges of the program once, starting where the last pass ended. Each mapping is checked separately: the
 * next one may be writable data for a while and become executable again without an event.
 */
static struct mmt_error *read_ranges(struct code_pass *pass, struct jit_program *program)
{
	uint64_t begin = program->position, position = begin;
	struct mmt_error *error = NULL;
	bool again = false; /* continue at the lowest address */

	while (!error && !is_over(pass)) {
		const struct code_range *range = code_ranges_from(&program->ranges, position);
		uint64_t start, end;

		if (!range && again)
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
			error = read_range(pass, program, start, end, &position);
		else
			position = end;
	}
	program->position = position;
	return error;
}

static bool is_due_for_reading(const struct code_pass *pass, const struct jit_program *program, bool requested)
{
	return !program->ended && !program->evicted && program->requested == requested &&
	       (pass->at_end || program->from_ns <= pass->now_ns);
}

static void jit_program_close(struct jit_program *program)
{
	if (program->memory >= 0)
		close(program->memory);
	if (program->maps >= 0)
		close(program->maps);
	if (program->pagemap.fd >= 0)
		residency_close(&program->pagemap);
	program->memory = program->maps = -1;
	mapping_scan_end(&program->scan);
}

/* Returns `fd` if it can stay open, or -1. *short_ret is set if too many files are open. */
static int spare(int fd, bool at_end, bool *short_ret)
{
	bool is_open = fd >= 0;

	if (!at_end)
		fd = process_table_spare(fd);
	*short_ret |= fd < 0 && (is_open || errno == EMFILE || errno == ENFILE);
	return fd;
}

/* Opens the memory of the process. While recording, some file descriptors are reserved for other uses; at the end, none
 * are. */
static void jit_program_open(struct jit_program *program, bool at_end)
{
	bool denied;

	program->opened = true;
	program->opened_ns = clock_now_ns();
	program->descriptors_short = false;
	program->memory = process_file_open(program->calls, program->pid, "mem");
	denied = program->memory < 0 && (errno == EACCES || errno == EPERM);
	program->memory = spare(program->memory, at_end, &program->descriptors_short);
	program->maps =
	    spare(process_file_open(program->calls, program->pid, "maps"), at_end, &program->descriptors_short);
	/* If not even the mappings can be read, the recorder warns of those. */
	program->denied = denied && program->maps >= 0;
	if (!residency_open(&program->pagemap, program->calls, program->pid))
		program->pagemap.fd = -1;
	program->pagemap.fd = spare(program->pagemap.fd, at_end, &program->descriptors_short);
	if (program->memory < 0 || program->maps < 0 || program->pagemap.fd < 0)
		jit_program_close(program);
}

static struct mmt_error *read_program(struct code_pass *pass, struct jit_program *program)
{
	struct jit_code *jit_code = &pass->recorder->jobs.jit_code;
	struct mmt_error *error;

	if (!program->opened || (pass->at_end && program->memory < 0))
		jit_program_open(program, pass->at_end);
	jit_code->reading = program;
	program->pagemap.gave_up = false;
	program->pagemap.bytes = program->pagemap.begin_ns = program->pagemap.waited_ns = 0;
	if (program->memory < 0)
		return NULL;
	error = read_ranges(pass, program);
	jit_code->out_of_time |= pass->at_end && program->pagemap.gave_up;
	return error;
}

/* Reads the programs that the user requested, or the others, starting with the first that got no time in the last
 * pass. */
static struct mmt_error *read_kind(struct code_pass *pass, bool requested)
{
	struct jit_code *jit_code = &pass->recorder->jobs.jit_code;
	size_t count = jit_code->programs.count, first = jit_code->turns[requested];
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < count; i++) {
		size_t index = (first + i) % count;

		struct jit_program *program = &jit_code->programs.items[index];

		if (!is_due_for_reading(pass, program, requested))
			continue;
		if (is_over(pass)) {
			jit_code->turns[requested] = index;
			return NULL;
		}
		error = read_program(pass, program);
	}
	return error;
}

/* Reads one program after the other until `spent_ns_max` of CPU time is used up; the next pass continues there. Errors:
 * reading the rings failed, or out of memory. */
static struct mmt_error *code_pass_read(struct code_pass *pass)
{
	struct jit_code *jit_code = &pass->recorder->jobs.jit_code;
	CLEANUP(free) uint8_t *piece = malloc(PIECE_BYTES);
	bool requested = pass->at_end || !jit_code->others_first;
	struct mmt_error *error = piece ? NULL : &error_no_memory;

	if (!error && !jit_code->store.compressor)
		error = code_store_init(&jit_code->store, LIMIT_RECORDED_CODE_BYTES, LIMIT_CODE_KEPT_BYTES);
	jit_code->store.make_room = make_room;
	jit_code->store.context = jit_code;
	pass->piece = piece;
	begin_work(pass);
	if (!error)
		error = read_kind(pass, requested);
	if (!error)
		error = read_kind(pass, !requested);
	end_work(pass);
	jit_code->others_first = requested;
	return error;
}

static void jit_program_init(struct jit_program *program, struct blocking_calls *calls, pid_t pid)
{
	*program = (struct jit_program){.calls = calls,
					.pid = pid,
					.until_ns = UINT64_MAX,
					.memory = -1,
					.maps = -1,
					.pagemap.fd = -1,
					.pages.page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
}

static void jit_program_deinit(struct jit_program *program)
{
	jit_program_close(program);
	code_ranges_deinit(&program->ranges);
	code_pages_deinit(&program->pages);
}

/* Queries the mapping at `address`. Linux before 6.11 has no such query, so /proc/PID/maps is scanned instead.
 * *time_ns: the answer applies to code noted before this time. False: out of memory. */
static bool ask(struct jit_program *program, uint64_t address, size_t *lines_left, enum mapped_kind *kind_ret,
		uint64_t *end_ret, uint64_t *time_ns)
{
	if (!query_mapping(program, address, kind_ret, end_ret)) {
		*kind_ret = MAPPED_CODE; /* nothing is known, so keep the range */
		*end_ret = address + program->pages.page_bytes;
	}
	if (*kind_ret != MAPPED_UNKNOWN)
		return true;
	if (!program->scan.text && !mapping_scan_begin(&program->scan, program->calls, program->pid, program->maps))
		return false;
	*kind_ret = mapping_scan_query(&program->scan, program->maps, address, lines_left, end_ret);
	*time_ns = program->scan.begin_ns;
	return true;
}

/* Checks the next PRUNE_STEP_RANGES ranges and drops the unmapped ones. False: out of memory. */
static bool prune_step(struct jit_program *program, uint64_t now_ns)
{
	const struct code_range *range = NULL;
	size_t before = program->ranges.count, lines_left = PRUNE_STEP_LINES;

	if (!program->prune_position) {
		program->pruned = 0;
		program->prune_was_futile = false;
	}
	for (size_t i = 0; program->maps >= 0 && i < PRUNE_STEP_RANGES; i++) {
		uint64_t start = program->prune_position, end, time_ns = now_ns;
		enum mapped_kind kind;

		range = code_ranges_from(&program->ranges, start);
		if (!range)
			break;
		start = range->start > start ? range->start : start;
		if (!ask(program, start, &lines_left, &kind, &end, &time_ns))
			return false;
		if (kind == MAPPED_UNKNOWN)
			break; /* the next step continues at this range */
		if (kind != MAPPED_CODE && !code_ranges_remove(&program->ranges, start, end, time_ns))
			return false;
		program->prune_position = end;
	}
	program->pruned += before > program->ranges.count ? before - program->ranges.count : 0;
	program->prune_ns = clock_now_ns() + PRUNE_STEP_NS;
	if (range)
		return true;
	/* The search is complete. If it freed many ranges, search again as soon as room is needed; otherwise pause. */
	mapping_scan_end(&program->scan);
	program->prune_position = 0;
	program->prune_was_futile = program->pruned < PRUNE_WORTH_RANGES;
	if (program->ranges.count >= PRUNE_FROM)
		program->prune_ns += PRUNE_INTERVAL_NS;
	return true;
}

/*
 * Drops ranges that are unmapped or no longer executable. The kernel does not report the unmapping of JIT code, so
 * while there are many ranges, each call checks some of them; an event reports memory that becomes executable again.
 * Call this before adding a range. Adds the CPU time used to *spent_ns. False: out of memory.
 */
static bool jit_program_prune(struct jit_program *program, int64_t *spent_ns)
{
	uint64_t now_ns, begin_ns;
	bool done;

	if (program->ended || program->ranges.count < PRUNE_FROM)
		return true;
	now_ns = clock_now_ns();
	/* Records arrive in bursts. If a burst fills all places, do not wait between two steps. */
	if (now_ns < program->prune_ns && (program->ranges.count < LIMIT_CODE_RANGES || program->prune_was_futile))
		return true;
	begin_ns = blocking_calls_clock_ns(program->calls);
	if (!program->opened)
		jit_program_open(program, false);
	done = prune_step(program, now_ns);
	*spent_ns += (int64_t)(blocking_calls_clock_ns(program->calls) - begin_ns);
	return done;
}

#define INTERVAL_NS 50000000ULL	     /* shortest time between two passes */
#define TIME_SHARE 50		     /* JIT code may take 1/TIME_SHARE of the elapsed time */
#define EXIT_INTERVAL_NS 10000000ULL /* shortest time between two passes after a thread has exited */
/* A forked child inherits its parent's code and may discard it soon: read it after this time. */
#define FORKED_NS 500000000ULL

void jit_code_deinit(struct jit_code *jit_code)
{
	for (size_t i = 0; i < jit_code->programs.count; i++)
		jit_program_deinit(&jit_code->programs.items[i]);
	vector_deinit(&jit_code->programs);
	map_deinit(&jit_code->program_of_pid);
	code_store_deinit(&jit_code->store);
}

static struct jit_program *find_program(const struct jit_code *jit_code, pid_t pid)
{
	const uint64_t *index = jit_code->programs.count ? map_get(&jit_code->program_of_pid, (uint64_t)pid) : NULL;

	return index ? &jit_code->programs.items[*index] : NULL;
}

static struct jit_program *add_program(struct recorder *recorder, pid_t pid, uint64_t from_ns)
{
	struct jit_code *jit_code = &recorder->jobs.jit_code;
	const struct traced_process *process = process_table_find(&recorder->processes, pid);
	struct jit_program *program = vector_append(&jit_code->programs);

	if (!program)
		return NULL;
	jit_program_init(program, &recorder->calls, pid);
	program->requested = process && process->target;
	program->from_ns = from_ns;
	if (map_put(&jit_code->program_of_pid, (uint64_t)pid, jit_code->programs.count - 1))
		return program;
	jit_code->programs.count--;
	return NULL;
}

struct mmt_error *jit_code_note(struct recorder *recorder, const struct jit_mapping *mapping)
{
	struct jit_code *jit_code = &recorder->jobs.jit_code;
	struct jit_program *program = find_program(jit_code, mapping->pid);
	bool wanted = mapping->protection & PROT_EXEC && recorder->options->code == MMT_CODE_ALL &&
		      code_copies_is_wanted(mapping->path);
	bool noted;

	if (!program && !wanted)
		return NULL;
	if (!program)
		program = add_program(recorder, mapping->pid, mapping->forked ? clock_now_ns() + FORKED_NS : 0);
	if (!program)
		return &error_no_memory;
	if (wanted && jit_code->spent_ns <= LIMIT_CODE_SPENT_NS && !jit_program_prune(program, &jit_code->spent_ns))
		return &error_no_memory;
	noted = wanted ? code_ranges_add(&program->ranges, mapping->start, mapping->end, mapping->time_ns)
		       : code_ranges_remove(&program->ranges, mapping->start, mapping->end, mapping->time_ns);
	return noted ? NULL : &error_no_memory;
}

bool jit_code_overlaps(const struct recorder *recorder, pid_t pid, uint64_t start, uint64_t end)
{
	const struct jit_program *program = find_program(&recorder->jobs.jit_code, pid);
	const struct code_range *range = program ? code_ranges_from(&program->ranges, start) : NULL;

	return range && range->start < end;
}

/* Stops looking for JIT code of this program. */
static void end_program(struct jit_code *jit_code, struct jit_program *program)
{
	program->ended = true;
	jit_code->nothing_to_evict = false;
	jit_code->full |= program->pages.items.count >= LIMIT_CODE_PAGES;
	jit_code->cut |= program->ranges.cut;
	jit_program_close(program);
	code_pages_end(&program->pages);
}

struct mmt_error *jit_code_end_program(struct recorder *recorder, pid_t pid, uint64_t time_ns)
{
	struct jit_code *jit_code = &recorder->jobs.jit_code;
	struct jit_program *program = find_program(jit_code, pid), *next;
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
	end_program(jit_code, program);
	map_remove(&jit_code->program_of_pid, (uint64_t)pid);
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
	struct jit_program *program = find_program(&recorder->jobs.jit_code, pid);

	if (!program)
		return;
	end_program(&recorder->jobs.jit_code, program);
	code_ranges_deinit(&program->ranges);
}

void jit_code_note_exit(struct recorder *recorder, pid_t pid)
{
	struct jit_code *jit_code = &recorder->jobs.jit_code;
	const struct jit_program *program = find_program(jit_code, pid);

	if (program && !program->ended && jit_code->next_ns > jit_code->read_ns + EXIT_INTERVAL_NS)
		jit_code->next_ns = jit_code->read_ns + EXIT_INTERVAL_NS;
}

void jit_code_begin_snapshot(struct recorder *recorder, pid_t pid)
{
	struct jit_program *program = find_program(&recorder->jobs.jit_code, pid);

	if (program)
		code_ranges_clear(&program->ranges);
}

/* Nothing of the program was kept, and no more records of it can arrive, because its process is not in the process
 * table. */
static bool can_be_dropped(const struct recorder *recorder, const struct jit_program *program, bool youngest)
{
	return program->ended && !program->pages.items.count &&
	       !(youngest && process_table_find(&recorder->processes, program->pid));
}

/* Moves the remaining elements: pointers to programs become invalid. */
static void drop_programs(struct recorder *recorder)
{
	struct jit_code *jit_code = &recorder->jobs.jit_code;
	size_t kept = 0;

	for (size_t i = 0; i < jit_code->programs.count; i++) {
		struct jit_program *program = &jit_code->programs.items[i];
		uint64_t *index = map_get(&jit_code->program_of_pid, (uint64_t)program->pid);
		bool youngest = index && *index == i;

		for (size_t j = 0; j < 2; j++)
			jit_code->turns[j] = jit_code->turns[j] == i ? kept : jit_code->turns[j];
		if (can_be_dropped(recorder, program, youngest)) {
			if (youngest)
				map_remove(&jit_code->program_of_pid, (uint64_t)program->pid);
			jit_code->full |= program->evicted;
			jit_code->unopened += program->descriptors_short;
			jit_code->denied += program->denied;
			jit_program_deinit(program);
			continue;
		}
		if (youngest)
			*index = kept;
		jit_code->programs.items[kept++] = *program;
	}
	jit_code->programs.count = kept;
}

struct mmt_error *jit_code_read(struct recorder *recorder)
{
	struct jit_code *jit_code = &recorder->jobs.jit_code;
	struct code_pass pass = {.recorder = recorder,
				 .now_ns = jit_code->programs.count ? clock_now_ns() : 0,
				 .spent_ns_max = LIMIT_CODE_PASS_NS,
				 .trust_ranges = !recorder->options->lean};
	struct mmt_error *error;

	if (!jit_code->programs.count || pass.now_ns < jit_code->next_ns)
		return NULL;
	drop_programs(recorder);
	jit_code->spent_ns -= (int64_t)((pass.now_ns - jit_code->reckoned_ns) / TIME_SHARE);
	if (jit_code->spent_ns < 0)
		jit_code->spent_ns = 0;
	jit_code->reckoned_ns = pass.now_ns;
	if (jit_code->spent_ns > LIMIT_CODE_SPENT_NS)
		return NULL;
	jit_code->read_ns = pass.now_ns;
	pass.due_ns = pass.now_ns;
	error = code_pass_read(&pass);
	jit_code->next_ns = pass.now_ns + INTERVAL_NS;
	jit_code->spent_ns += (int64_t)pass.spent_ns;
	return error;
}

/* The end of the recording: write the stored code into the recording, and warn about code that is missing. */

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

/* Moves the stored pages of a program into `copies`. Sorts the pages, so lookups by address fail from now on. */
static struct mmt_error *move_pages(struct jit_program *program, struct code_copies *copies)
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
	const struct jit_code *jit_code = &recorder->jobs.jit_code;
	bool full = jit_code->full || jit_code->store.full, cut = jit_code->cut;
	size_t unopened = jit_code->unopened, denied = jit_code->denied;

	for (size_t i = 0; i < jit_code->programs.count; i++) {
		const struct jit_program *program = &jit_code->programs.items[i];

		full |= program->evicted || program->pages.items.count >= LIMIT_CODE_PAGES;
		cut |= program->ranges.cut;
		unopened += program->descriptors_short;
		denied += program->denied;
	}
	if (full)
		recorder_message(
		    recorder, true,
		    "not all JIT code is copied: the limit of a recording is %u MiB, or %u MiB compressed; %s",
		    LIMIT_RECORDED_CODE_BYTES >> 20, LIMIT_CODE_KEPT_BYTES >> 20, consequence);
	if (cut)
		recorder_message(recorder, true,
				 "not all JIT code is copied: a process has it in more than %d address ranges; %s",
				 LIMIT_CODE_RANGES, consequence);
	if (jit_code->out_of_time)
		recorder_message(recorder, true,
				 "not all JIT code is copied: reading it at the end of the recording took too long; %s",
				 consequence);
	if (unopened)
		recorder_message(
		    recorder, true,
		    "JIT code of %zu %s is not copied: too many files were open; %s; raise the limit with `ulimit -n`",
		    unopened, unopened == 1 ? "program" : "programs", consequence);
	if (denied)
		recorder_message(recorder, true,
				 "JIT code of %zu %s is not copied: permission denied to read memory; %s; run as root "
				 "or with CAP_SYS_PTRACE (/proc/sys/kernel/yama/ptrace_scope)",
				 denied, denied == 1 ? "program" : "programs", consequence);
}

struct mmt_error *jit_code_finish(struct recorder *recorder)
{
	struct jit_code *jit_code = &recorder->jobs.jit_code;
	struct code_pass pass = {.recorder = recorder,
				 .now_ns = clock_now_ns(),
				 .due_ns = UINT64_MAX,
				 .spent_ns_max = LIMIT_CODE_END_NS,
				 .at_end = true,
				 .trust_ranges = true};
	struct mmt_error *error = NULL;

	if (!jit_code->programs.count)
		return NULL;
	error = code_pass_read(&pass);
	jit_code->out_of_time |= pass.spent_ns >= pass.spent_ns_max;
	for (size_t i = 0; !error && i < jit_code->programs.count; i++)
		error = move_pages(&jit_code->programs.items[i], &recorder->jobs.code);
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
	const struct code_source source = {&recorder->jobs.jit_code.store, read_kept};

	return code_copies_encode(&recorder->jobs.code, &source, buffer);
}
