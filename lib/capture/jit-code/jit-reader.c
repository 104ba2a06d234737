// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/jit-code/jit-reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "capture/procfs/clock.h"
#include "capture/procfs/proc.h"
#include "capture/process/process-table.h"
#include "capture/recorder/recorder.h"
#include "capture/recorder/ring-reader.h"

/* One pass: reads new JIT code of all programs within a time limit. Times are CPU times of this thread and its helper.
 */
struct code_pass {
	struct recorder *recorder;
	uint64_t now_ns;
	uint64_t due_ns; /* the pass reads pages that are due at this time */
	uint64_t time_ns_max;
	uint64_t began_ns, rings_ns; /* when it began; time spent on reading rings since, which does not count */
	bool at_end;
	uint8_t *piece;
};

/* The bytes of one read. The process cannot map memory during a read, so between two reads the targets and the ring
 * reader get their turn. */
#define PIECE_BYTES (64u << 10)

static uint64_t spent_ns(const struct code_pass *pass)
{
	return blocking_calls_clock_ns(&pass->recorder->calls) - pass->began_ns - pass->rings_ns;
}

static bool is_over(const struct code_pass *pass)
{
	return spent_ns(pass) >= pass->time_ns_max;
}

static struct mmt_error *give_way(struct code_pass *pass)
{
	uint64_t begin_ns = blocking_calls_clock_ns(&pass->recorder->calls);
	struct mmt_error *error = ring_reader_give_way(pass->recorder);

	pass->rings_ns += blocking_calls_clock_ns(&pass->recorder->calls) - begin_ns;
	return error;
}

/*
 * Finds the program whose code is evicted in favour of `program`, which is alive. Ended programs are evicted before
 * living ones, then programs that the user did not request before requested ones, then the oldest of the ended ones. A
 * program that the user did not request evicts neither a requested program nor a living one.
 */
static struct jit_program *find_victim(const struct jit_reader *reader, const struct jit_program *program)
{
	struct jit_program *ended = NULL, *living = NULL;

	for (size_t i = 0; i < reader->programs.count; i++) {
		struct jit_program *other = &reader->programs.items[i];

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
	struct jit_reader *reader = context;
	const struct jit_program *program = reader->reading;
	struct jit_program *victim = reader->nothing_to_evict ? NULL : find_victim(reader, program);

	reader->nothing_to_evict |= !victim && program->requested;
	if (!victim)
		return false;
	jit_pages_discard(&victim->pages, &reader->store);
	victim->evicted = true;
	return true;
}

/* The mappings of a program that may hold JIT code, in ascending order. */
struct code_search {
	const struct jit_program *program;
	struct mapping_scan scan;  /* on kernels without PROCMAP_QUERY */
	struct procmaps_line line; /* the latest of the scan */
};

struct code_answer {
	enum mapped_kind kind;
	uint64_t start, end;
};

/* Runs in the helper, with an address. */
static size_t query(const void *argument, int given, void *result, int *opened_ret)
{
	struct code_answer answer;
	struct procmaps_line line;
	uint64_t address;

	(void)opened_ret;
	memcpy(&address, argument, sizeof(address));
	while ((answer.kind = mapping_query(given, address, &line)) == MAPPED_CODE && !jit_code_is_wanted(line.path))
		address = line.end;
	answer.start = line.start;
	answer.end = line.end;
	memcpy(result, &answer, sizeof(answer));
	return sizeof(answer);
}

/* Finds the first code at or above `address`. Addresses must ascend from one call to the next. */
static bool find_code(struct code_search *search, uint64_t address, uint64_t *start_ret, uint64_t *end_ret)
{
	const struct jit_program *program = search->program;
	const struct procmaps_line *line = &search->line;
	struct code_answer answer = {.kind = MAPPED_NOTHING};
	struct blocking_call call = {.place = place_of_process(program->pid),
				     .run = query,
				     .argument = &address,
				     .argument_bytes = sizeof(address),
				     .given = program->maps,
				     .result = &answer,
				     .result_bytes = sizeof(answer)};

	if (!search->scan.text)
		(void)blocking_call(program->calls, &call);
	if (answer.kind == MAPPED_UNKNOWN &&
	    !mapping_scan_begin(&search->scan, program->calls, program->pid, program->maps))
		return false;
	while (search->scan.text && answer.kind != MAPPED_CODE) {
		if (line->end > address && line->protection & PROT_EXEC && jit_code_is_wanted(line->path))
			answer = (struct code_answer){MAPPED_CODE, line->start, line->end};
		else if (!mapping_scan_next(&search->scan, program->maps, &search->line))
			return false;
	}
	*start_ret = answer.start > address ? answer.start : address;
	*end_ret = answer.end;
	return answer.kind == MAPPED_CODE;
}

static void end_search(struct code_search *search)
{
	mapping_scan_end(&search->scan);
	search->line.end = 0;
}

/*
 * Keeps only those parts of the bytes read that are still executable: data may have been mapped there since, and data
 * must not get into the recording. A kernel that cannot be queried has just shown them as code.
 */
static struct mmt_error *keep_code(struct code_pass *pass, struct code_search *search, struct jit_program *program,
				   uint64_t start, uint64_t end)
{
	uint64_t position = start, code_start = start, code_end = end;
	size_t page_bytes = program->pages.page_bytes;
	struct mmt_error *error = NULL;

	while (!error && position < end) {
		if (!search->scan.text && !find_code(search, position, &code_start, &code_end))
			return NULL;
		for (position = code_start; !error && position < code_end && position + page_bytes <= end;
		     position += page_bytes)
			error = jit_pages_put(&program->pages, &pass->recorder->jobs.jit_reader->store, position,
					      pass->piece + (position - start), pass->now_ns);
		position = code_end;
	}
	return error;
}

/* Reads pages of the run that are due. *position: the address reached; the end of the run if nothing more can be read
 * there. */
static struct mmt_error *read_piece(struct code_pass *pass, struct code_search *search, struct jit_program *program,
				    const struct resident_run *run, uint64_t *position)
{
	uint64_t start, size = jit_pages_due(&program->pages, *position, run->end, PIECE_BYTES, pass->due_ns, &start);
	ssize_t count = 0;

	*position = size ? start + size : run->end;
	if (size)
		count = process_file_read(program->calls, program->pid, program->memory, pass->piece, (size_t)size,
					  (int64_t)start);
	return count > 0 ? keep_code(pass, search, program, start, start + (uint64_t)count) : NULL;
}

/* Reads resident pages from START to END until the pass is over, but at least one piece. *position_ret: the address
 * reached. */
static struct mmt_error *read_range(struct code_pass *pass, struct code_search *search, struct jit_program *program,
				    uint64_t start, uint64_t end, uint64_t *position_ret)
{
	struct process_residency pages = {0};
	struct mmt_error *error;

	error = residency_step(&program->pagemap, start, end, &pages, position_ret);
	if (!error)
		error = give_way(pass);
	for (size_t i = 0; !error && i < pages.runs.count; i++) {
		uint64_t position = pages.runs.items[i].start;

		while (!error && position < pages.runs.items[i].end) {
			error = read_piece(pass, search, program, &pages.runs.items[i], &position);
			if (!error)
				error = give_way(pass);
			if (!error && is_over(pass)) {
				*position_ret = position;
				vector_deinit(&pages.runs);
				return NULL;
			}
		}
	}
	vector_deinit(&pages.runs);
	return error;
}

/* Reads all code of the program once, starting where the last pass ended. Each mapping is searched for separately: the
 * next one may be writable data for a while and become executable again without an event. */
static struct mmt_error *read_code(struct code_pass *pass, struct jit_program *program)
{
	struct code_search search = {.program = program};
	uint64_t begin = program->position, position = begin, start, end;
	struct mmt_error *error = NULL;
	bool again = false; /* continue at the lowest address */

	do {
		bool found = find_code(&search, position, &start, &end);

		if (!found && !again && begin) {
			again = true;
			position = 0;
			end_search(&search);
			continue;
		}
		if (!found || (again && start >= begin))
			break;
		if (again && end > begin)
			end = begin;
		error = read_range(pass, &search, program, start, end, &position);
	} while (!error && !is_over(pass));
	program->position = position;
	end_search(&search);
	return error;
}

static bool is_due_for_reading(const struct code_pass *pass, const struct jit_program *program, bool requested)
{
	return program->noted_ns && !program->ended && !program->evicted && program->requested == requested &&
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
	struct jit_reader *reader = pass->recorder->jobs.jit_reader;
	struct mmt_error *error;

	if (!program->opened || (pass->at_end && program->memory < 0))
		jit_program_open(program, pass->at_end);
	reader->reading = program;
	program->pagemap.gave_up = false;
	program->pagemap.bytes = program->pagemap.begin_ns = program->pagemap.waited_ns = 0;
	if (program->memory < 0)
		return NULL;
	error = read_code(pass, program);
	reader->out_of_time |= pass->at_end && program->pagemap.gave_up;
	return error;
}

/* Reads the programs that the user requested, or the others, starting with the first that got no time in the last
 * pass. */
static struct mmt_error *read_kind(struct code_pass *pass, bool requested)
{
	struct jit_reader *reader = pass->recorder->jobs.jit_reader;
	size_t count = reader->programs.count, first = reader->turns[requested];
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < count; i++) {
		size_t index = (first + i) % count;

		struct jit_program *program = &reader->programs.items[index];

		if (!is_due_for_reading(pass, program, requested))
			continue;
		if (is_over(pass)) {
			reader->turns[requested] = index;
			return NULL;
		}
		error = read_program(pass, program);
	}
	return error;
}

/* Reads one program after the other until `time_ns_max` of CPU time is used up; the next pass continues there. Errors:
 * reading the rings failed, or out of memory. */
static struct mmt_error *code_pass_read(struct code_pass *pass)
{
	struct jit_reader *reader = pass->recorder->jobs.jit_reader;
	CLEANUP(free) uint8_t *piece = malloc(PIECE_BYTES);
	bool requested = pass->at_end || !reader->others_first;
	struct mmt_error *error = piece ? NULL : &error_no_memory;

	if (!error && !reader->store.compressor)
		error = jit_store_init(&reader->store, LIMIT_RECORDED_CODE_BYTES, LIMIT_CODE_KEPT_BYTES);
	reader->store.make_room = make_room;
	reader->store.context = reader;
	pass->piece = piece;
	pass->began_ns = blocking_calls_clock_ns(&pass->recorder->calls);
	if (!error)
		error = read_kind(pass, requested);
	if (!error)
		error = read_kind(pass, !requested);
	reader->others_first = requested;
	return error;
}

#define INTERVAL_NS 50000000ULL	     /* shortest time between two passes */
#define TIME_SHARE 50		     /* JIT code may take 1/TIME_SHARE of the elapsed time */
#define EXIT_INTERVAL_NS 10000000ULL /* shortest time between two passes after a thread has exited */
/* A forked child inherits its parent's code and may discard it soon: read it after this time. */
#define FORKED_NS 500000000ULL

void jit_reader_deinit(struct jit_reader *reader)
{
	for (size_t i = 0; i < reader->programs.count; i++) {
		jit_program_close(&reader->programs.items[i]);
		jit_pages_discard(&reader->programs.items[i].pages, &reader->store);
	}
	vector_deinit(&reader->programs);
	map_deinit(&reader->program_of_pid);
	jit_store_deinit(&reader->store);
	jit_code_deinit(&reader->code);
	vector_deinit(&reader->stored);
}

static struct jit_program *find_program(const struct jit_reader *reader, pid_t pid)
{
	const uint64_t *index = reader->programs.count ? map_get(&reader->program_of_pid, (uint64_t)pid) : NULL;

	return index ? &reader->programs.items[*index] : NULL;
}

static struct jit_program *add_program(struct recorder *recorder, pid_t pid, uint64_t from_ns)
{
	struct jit_reader *reader = recorder->jobs.jit_reader;
	const struct traced_process *process = process_table_find(&recorder->processes, pid);
	struct jit_program *program = vector_append(&reader->programs);

	if (!program)
		return NULL;
	*program = (struct jit_program){.calls = &recorder->calls,
					.pid = pid,
					.until_ns = UINT64_MAX,
					.from_ns = from_ns,
					.requested = process && process->target,
					.memory = -1,
					.maps = -1,
					.pagemap.fd = -1,
					.pages.page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
	if (map_put(&reader->program_of_pid, (uint64_t)pid, reader->programs.count - 1))
		return program;
	reader->programs.count--;
	return NULL;
}

struct mmt_error *jit_reader_note(struct recorder *recorder, pid_t pid, const char *path, uint64_t time_ns, bool forked)
{
	struct jit_program *program = find_program(recorder->jobs.jit_reader, pid);

	if (recorder->options->code != MMT_CODE_ALL || !jit_code_is_wanted(path))
		return NULL;
	if (!program)
		program = add_program(recorder, pid, forked ? clock_now_ns() + FORKED_NS : 0);
	if (!program)
		return &error_no_memory;
	if (program->noted_ns < time_ns)
		program->noted_ns = time_ns;
	return NULL;
}

bool jit_reader_knows(const struct recorder *recorder, pid_t pid)
{
	const struct jit_program *program = find_program(recorder->jobs.jit_reader, pid);

	return program && program->noted_ns;
}

/* Stops looking for JIT code of this program. */
static void end_program(struct jit_reader *reader, struct jit_program *program)
{
	program->ended = true;
	reader->nothing_to_evict = false;
	reader->full |= program->pages.items.count >= LIMIT_CODE_PAGES;
	jit_program_close(program);
	jit_pages_end(&program->pages);
}

struct mmt_error *jit_reader_end_program(struct recorder *recorder, pid_t pid, uint64_t time_ns)
{
	struct jit_reader *reader = recorder->jobs.jit_reader;
	struct jit_program *program = find_program(reader, pid);
	uint64_t noted_ns;

	if (!program)
		return NULL;
	noted_ns = program->noted_ns > time_ns ? program->noted_ns : 0;
	if (!program->ended && (!program->opened || program->opened_ns > time_ns)) {
		program->from_ns = 0;
		program->noted_ns = noted_ns;
		return NULL;
	}
	program->until_ns = time_ns;
	end_program(reader, program);
	map_remove(&reader->program_of_pid, (uint64_t)pid);
	if (!noted_ns)
		return NULL;
	program = add_program(recorder, pid, 0);
	if (!program)
		return &error_no_memory;
	program->noted_ns = noted_ns;
	return NULL;
}

void jit_reader_end_process(struct recorder *recorder, pid_t pid)
{
	struct jit_program *program = find_program(recorder->jobs.jit_reader, pid);

	if (!program)
		return;
	end_program(recorder->jobs.jit_reader, program);
	program->noted_ns = 0;
}

void jit_reader_note_exit(struct recorder *recorder, pid_t pid)
{
	struct jit_reader *reader = recorder->jobs.jit_reader;
	const struct jit_program *program = find_program(reader, pid);

	if (program && !program->ended && reader->next_ns > reader->read_ns + EXIT_INTERVAL_NS)
		reader->next_ns = reader->read_ns + EXIT_INTERVAL_NS;
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
	struct jit_reader *reader = recorder->jobs.jit_reader;
	size_t kept = 0;

	for (size_t i = 0; i < reader->programs.count; i++) {
		struct jit_program *program = &reader->programs.items[i];
		uint64_t *index = map_get(&reader->program_of_pid, (uint64_t)program->pid);
		bool youngest = index && *index == i;

		for (size_t j = 0; j < 2; j++)
			reader->turns[j] = reader->turns[j] == i ? kept : reader->turns[j];
		if (can_be_dropped(recorder, program, youngest)) {
			if (youngest)
				map_remove(&reader->program_of_pid, (uint64_t)program->pid);
			reader->full |= program->evicted;
			reader->unopened += program->descriptors_short;
			reader->denied += program->denied;
			jit_program_close(program);
			jit_pages_discard(&program->pages, &reader->store);
			continue;
		}
		if (youngest)
			*index = kept;
		reader->programs.items[kept++] = *program;
	}
	reader->programs.count = kept;
}

struct mmt_error *jit_reader_read(struct recorder *recorder)
{
	struct jit_reader *reader = recorder->jobs.jit_reader;
	struct code_pass pass = {.recorder = recorder,
				 .now_ns = reader->programs.count ? clock_now_ns() : 0,
				 .time_ns_max = LIMIT_CODE_PASS_NS};
	struct mmt_error *error;

	if (!reader->programs.count || pass.now_ns < reader->next_ns)
		return NULL;
	drop_programs(recorder);
	reader->spent_ns -= (int64_t)((pass.now_ns - reader->reckoned_ns) / TIME_SHARE);
	if (reader->spent_ns < 0)
		reader->spent_ns = 0;
	reader->reckoned_ns = pass.now_ns;
	if (reader->spent_ns > LIMIT_CODE_SPENT_NS)
		return NULL;
	reader->read_ns = pass.now_ns;
	pass.due_ns = pass.now_ns;
	error = code_pass_read(&pass);
	reader->next_ns = pass.now_ns + INTERVAL_NS;
	reader->spent_ns += (int64_t)spent_ns(&pass);
	return error;
}

/* The end of the recording: write the stored code into the recording, and warn about code that is missing. */

static int compare_pages(const void *first, const void *second)
{
	uint64_t a = ((const struct jit_page *)first)->address, b = ((const struct jit_page *)second)->address;

	return a < b ? -1 : a > b;
}

/* Describes the stored pages of a program. Sorts the pages, so lookups by address fail from now on. */
static struct mmt_error *describe_program(struct jit_reader *reader, struct jit_program *program)
{
	struct jit_pages *pages = &program->pages;
	struct jit_code_program *described;

	if (!pages->items.count)
		return NULL;
	described = vector_append(&reader->code.programs);
	if (!described)
		return &error_no_memory;
	described->pid = program->pid;
	described->until_ns = program->until_ns;
	qsort(pages->items.items, pages->items.count, sizeof(*pages->items.items), compare_pages);
	for (size_t i = 0; i < pages->items.count; i++) {
		const struct jit_page *page = &pages->items.items[i];

		if (!page->bytes)
			continue;
		if (!jit_code_add(described, page->address, pages->page_bytes,
				  reader->stored.count * pages->page_bytes) ||
		    !vector_push(&reader->stored, page) ||
		    (page->replaced.size && !vector_push(&described->changes, page->replaced)))
			return &error_no_memory;
	}
	return NULL;
}

static void report_missing_code(struct recorder *recorder)
{
	static const char consequence[] = "callers of code without frame pointers may be missing";
	const struct jit_reader *reader = recorder->jobs.jit_reader;
	bool full = reader->full || reader->store.full;
	size_t unopened = reader->unopened, denied = reader->denied;

	for (size_t i = 0; i < reader->programs.count; i++) {
		const struct jit_program *program = &reader->programs.items[i];

		full |= program->evicted || program->pages.items.count >= LIMIT_CODE_PAGES;
		unopened += program->descriptors_short;
		denied += program->denied;
	}
	if (full)
		recorder_message(
		    recorder, true,
		    "not all JIT code is copied: the limit of a recording is %u MiB, or %u MiB compressed; %s",
		    LIMIT_RECORDED_CODE_BYTES >> 20, LIMIT_CODE_KEPT_BYTES >> 20, consequence);
	if (reader->out_of_time)
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

struct mmt_error *jit_reader_finish(struct recorder *recorder)
{
	struct jit_reader *reader = recorder->jobs.jit_reader;
	struct code_pass pass = {.recorder = recorder,
				 .now_ns = clock_now_ns(),
				 .due_ns = UINT64_MAX,
				 .time_ns_max = LIMIT_CODE_END_NS,
				 .at_end = true};
	struct mmt_error *error = NULL;

	if (!reader->programs.count)
		return NULL;
	error = code_pass_read(&pass);
	reader->out_of_time |= is_over(&pass);
	for (size_t i = 0; !error && i < reader->programs.count; i++)
		error = describe_program(reader, &reader->programs.items[i]);
	if (!error)
		report_missing_code(recorder);
	return error;
}

static struct mmt_error *read_stored(void *context, size_t offset, size_t size, struct buffer *plain)
{
	const struct jit_reader *reader = context;
	size_t page_bytes = reader->programs.items[0].pages.page_bytes;

	(void)size;
	return jit_page_get(reader->stored.items[offset / page_bytes], &reader->store, plain);
}

struct mmt_error *jit_reader_encode(struct recorder *recorder, struct buffer *buffer)
{
	const struct jit_code_source source = {recorder->jobs.jit_reader, read_stored};

	return jit_code_encode(&recorder->jobs.jit_reader->code, &source, buffer);
}
