// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/jit-code/jit-reader.h"

#include <errno.h>

#include "capture/recorder/recorder.h"

/* What is stored of each page */

#define OVERHEAD_BYTES 16 /* of an allocation */
#define SCRATCH_BYTES_MAX (1u << 20)

static void drop_page(struct jit_reader *reader, struct jit_page *page)
{
	if (!page->frame)
		return;
	reader->stored_bytes -= page->frame_bytes + OVERHEAD_BYTES;
	reader->stored_pages--;
	free(page->frame);
	page->frame = NULL;
}

static void drop_pages(struct jit_reader *reader, struct jit_program *program)
{
	vector_deinit_each(&program->pages, item, drop_page(reader, item));
	map_deinit(&program->page_of_address);
}

static bool is_due(const struct jit_program *program, uint64_t address, uint64_t now_ns)
{
	const uint64_t *index = map_get(&program->page_of_address, address);

	return index ? program->pages.items[*index].due_ns <= now_ns : program->pages.count < LIMIT_CODE_PAGES;
}

/* Replace the stored bytes of the page. *stored_ret: there was room. */
static struct mmt_error *store_page(struct jit_reader *reader, struct jit_page *page, const uint8_t *seen,
				    bool *stored_ret)
{
	struct mmt_error *error;
	uint8_t *frame;
	size_t size;

	*stored_ret = false;
	buffer_clear(&reader->scratch);
	error = compressor_frame(&reader->compressor, seen, reader->page_bytes, &reader->scratch);
	if (error)
		return error;
	size = reader->scratch.size;
	drop_page(reader, page);
	while (reader->stored_pages >= reader->stored_pages_max ||
	       reader->stored_bytes + size + OVERHEAD_BYTES > reader->stored_bytes_max) {
		size_t i = 0;

		/* Make room by dropping the code of the first program that has ended. */
		reader->full = true;
		while (i < reader->programs.count &&
		       (!reader->programs.items[i].ended || !reader->programs.items[i].pages.count))
			i++;
		if (i == reader->programs.count)
			return NULL;
		drop_pages(reader, &reader->programs.items[i]);
	}
	frame = malloc(size);
	if (!frame)
		return &error_no_memory;
	memcpy(frame, reader->scratch.data, size);
	page->frame = frame;
	page->frame_bytes = size;
	reader->stored_pages++;
	reader->stored_bytes += size + OVERHEAD_BYTES;
	*stored_ret = true;
	return NULL;
}

static struct jit_page *add_page(struct jit_reader *reader, struct jit_program *program, uint64_t address)
{
	struct jit_page *page = vector_append(&program->pages);

	if (!page)
		return NULL;
	*page = (struct jit_page){.address = address, .again_ns = JIT_PAGE_AGAIN_NS / 2};
	if (!map_put(&program->page_of_address, address, program->pages.count - 1)) {
		program->pages.count--;
		return NULL;
	}
	reader->full |= program->pages.count == LIMIT_CODE_PAGES;
	return page;
}

/* Store the content of a page read at `now_ns`. A blank page does not replace stored content. If there is no room, the
 * content is dropped, and the page is not read again. */
static struct mmt_error *put_page(struct jit_reader *reader, struct jit_program *program, uint64_t address,
				  const uint8_t *seen, uint64_t now_ns)
{
	const uint64_t *index = map_get(&program->page_of_address, address);
	struct jit_page *page = index ? &program->pages.items[*index] : add_page(reader, program, address);
	bool blank = !seen[0] && !memcmp(seen, seen + 1, reader->page_bytes - 1), stored = false;
	uint64_t checksum = blank ? 0 : map_checksum(seen, reader->page_bytes);
	struct mmt_error *error = NULL;

	if (!page)
		return &error_no_memory;
	if (!blank && (!page->frame || checksum != page->checksum))
		error = store_page(reader, page, seen, &stored);
	if (stored) {
		page->checksum = checksum;
		page->again_ns = JIT_PAGE_AGAIN_NS;
	} else if (page->again_ns < JIT_PAGE_AGAIN_NS_MAX) {
		page->again_ns *= 2;
	}
	page->due_ns = page->frame || blank ? now_ns + page->again_ns : UINT64_MAX;
	return error;
}

/* Reading the processes */

/* One pass: reads new JIT code of all programs within a time limit. Times are CPU times of this thread and its helper.
 */
struct code_pass {
	struct recorder *recorder;
	struct jit_reader *reader;
	uint64_t now_ns;
	uint64_t due_ns; /* the pass reads pages that are due at this time */
	uint64_t time_ns_max;
	uint64_t began_ns, rings_ns; /* when it began; time spent on reading rings since, which does not count */
	bool at_end;
	struct code_buffers *buffers;
};

/* The bytes of one read. The process cannot map memory during a read, so between two reads the targets and the ring
 * reader get their turn. */
#define PIECE_BYTES (64u << 10)

#define RANGES_MAX 4000

/* Mappings of a program that may hold JIT code, in ascending order. */
struct code_list {
	uint64_t count;
	struct resident_run ranges[RANGES_MAX];
};

struct code_buffers {
	struct code_list list;
	uint8_t piece[PIECE_BYTES];
};

_Static_assert(sizeof(struct code_list) <= BLOCKING_RESULT_BYTES, "a list is the result of one call");

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

/* Runs in the helper: lists the first mappings that end above an address. */
static void list_mappings(struct blocking_call *call)
{
	const uint64_t *start = call->argument;
	struct code_list *list = call->result;
	struct procmaps_line line;
	struct mapping_scan scan;

	list->count = 0;
	if (mapping_scan_begin(&scan, NULL, 0, call->given)) {
		while (list->count < RANGES_MAX && mapping_scan_next(&scan, call->given, &line)) {
			if (line.end > *start && line.protection & PROT_EXEC && jit_code_is_wanted(line.path))
				list->ranges[list->count++] = (struct resident_run){line.start, line.end};
		}
		mapping_scan_end(&scan);
	}
	call->result_bytes = offsetof(struct code_list, ranges) + list->count * sizeof(*list->ranges);
}

/* Read the first adjacent pages of the run that are due. *position: the address reached; the end of the run if nothing
 * more can be read there. If data was mapped there since the list of code, it gets into the stored code. */
static struct mmt_error *read_piece(const struct code_pass *pass, struct jit_program *program,
				    const struct resident_run *run, uint64_t *position)
{
	size_t page_bytes = pass->reader->page_bytes;
	uint64_t start = *position, end;
	struct mmt_error *error = NULL;
	ssize_t count = 0;

	while (start < run->end && !is_due(program, start, pass->due_ns))
		start += page_bytes;
	for (end = start; end < run->end && end - start + page_bytes <= PIECE_BYTES;) {
		if (!is_due(program, end, pass->due_ns))
			break;
		end += page_bytes;
	}
	*position = end > start ? end : run->end;
	if (end > start)
		count = process_file_read(&pass->recorder->calls, program->pid, program->memory, pass->buffers->piece,
					  (size_t)(end - start), (int64_t)start);
	for (ssize_t i = 0; !error && i + (ssize_t)page_bytes <= count; i += (ssize_t)page_bytes)
		error = put_page(pass->reader, program, start + (uint64_t)i, pass->buffers->piece + i, pass->now_ns);
	return error;
}

/* Read resident pages from START to END until the pass is over, but at least one piece. *position_ret: the address
 * reached. */
static struct mmt_error *read_range(struct code_pass *pass, struct jit_program *program, uint64_t start, uint64_t end,
				    uint64_t *position_ret)
{
	struct process_residency pages = {0};
	struct mmt_error *error = residency_step(&program->pagemap, start, end, &pages, position_ret);
	bool over = false;

	error = error ?: give_way(pass);
	for (size_t i = 0; !error && !over && i < pages.runs.count; i++) {
		uint64_t position = pages.runs.items[i].start;

		while (!error && !over && position < pages.runs.items[i].end) {
			error = read_piece(pass, program, &pages.runs.items[i], &position) ?: give_way(pass);
			over = is_over(pass);
		}
		if (over)
			*position_ret = position;
	}
	vector_deinit(&pages.runs);
	return error;
}

/* Read the code of the program, starting where the last pass ended. Each mapping is searched for separately: the next
 * one may be writable data for a while and become executable again without an event. */
static struct mmt_error *read_code(struct code_pass *pass, struct jit_program *program)
{
	struct code_list *list = &pass->buffers->list;
	uint64_t position = pass->at_end ? 0 : program->position;
	struct mmt_error *error = NULL;
	bool over = false;

	do {
		struct blocking_call call =
		    BLOCKING_CALL(place_of_process(program->pid), list_mappings, &position, program->maps, list);

		if (!blocking_call(&pass->recorder->calls, &call))
			list->count = 0;
		array_while(range, list->ranges, list->count, !error && !over) {
			position = range->start > position ? range->start : position;
			while (!error && !over && position < range->end) {
				error = read_range(pass, program, position, range->end, &position);
				over = is_over(pass);
			}
		}
	} while (!error && !over && list->count == RANGES_MAX);
	program->position = over ? position : 0;
	return error;
}

static void jit_program_close(struct jit_program *program)
{
	close_descriptor(&program->memory);
	close_descriptor(&program->maps);
	if (program->pagemap.fd >= 0)
		residency_close(&program->pagemap);
}

/* Stop looking for JIT code of this program. Only what is stored of it stays. */
static void end_program(struct jit_reader *reader, struct jit_program *program)
{
	struct jit_page *kept;
	size_t count = 0;

	reader->missing[program->missing] += !program->ended;
	program->ended = true;
	jit_program_close(program);
	for (size_t i = 0; i < program->pages.count; i++) {
		if (program->pages.items[i].frame)
			program->pages.items[count++] = program->pages.items[i];
	}
	program->pages.count = count;
	kept = count ? realloc(program->pages.items, count * sizeof(*kept)) : NULL;
	if (kept) {
		program->pages.items = kept;
		program->pages.capacity = count;
	}
	map_deinit(&program->page_of_address);
}

/* Open a file of the process. While recording, some file descriptors are reserved for other uses; at the end, none
 * are. */
static int open_file(const struct code_pass *pass, struct jit_program *program, const char *name)
{
	int fd = process_file_open(&pass->recorder->calls, program->pid, name);
	bool is_open = fd >= 0;

	if (!pass->at_end)
		fd = process_table_spare(fd);
	if (fd < 0 && (is_open || errno == EMFILE || errno == ENFILE))
		program->missing = CODE_WITHOUT_DESCRIPTORS;
	return fd;
}

static struct mmt_error *read_program(struct code_pass *pass, struct jit_program *program)
{
	struct mmt_error *error;

	/* Of a process that has ended, nothing can be read. */
	if (!program->opened_ns || (pass->at_end && program->memory < 0)) {
		bool denied, gone;

		program->opened_ns = clock_now_ns();
		program->missing = CODE_COMPLETE;
		program->memory = open_file(pass, program, "mem");
		denied = program->memory < 0 && (errno == EACCES || errno == EPERM);
		gone = program->memory < 0 && (errno == ENOENT || errno == ESRCH);
		program->maps = open_file(pass, program, "maps");
		/* If not even the mappings can be read, the recorder warns of those. */
		if (denied && program->maps >= 0)
			program->missing = CODE_DENIED;
		residency_take(&program->pagemap, &pass->recorder->calls, program->pid,
			       open_file(pass, program, "pagemap"));
		if (program->memory < 0 || program->maps < 0 || program->pagemap.fd < 0)
			jit_program_close(program);
		if (gone)
			end_program(pass->reader, program);
	}
	program->pagemap.gave_up = false;
	program->pagemap.bytes = program->pagemap.begin_ns = program->pagemap.waited_ns = 0;
	if (program->memory < 0)
		return NULL;
	error = read_code(pass, program);
	pass->reader->out_of_time |= pass->at_end && program->pagemap.gave_up;
	return error;
}

/* Read one program after the other until `time_ns_max` of CPU time is used up; the next pass continues with the first
 * that got no time. Errors: reading the rings failed, or out of memory. */
static struct mmt_error *code_pass_read(struct code_pass *pass)
{
	struct jit_reader *reader = pass->reader;
	size_t count = reader->programs.count, first = reader->turn;
	CLEANUP(free) struct code_buffers *buffers = malloc(sizeof(*buffers));
	struct mmt_error *error = buffers ? NULL : &error_no_memory;
	bool over = false;

	if (!error && !reader->compressor.context) {
		reader->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
		reader->stored_pages_max = LIMIT_RECORDED_CODE_BYTES / reader->page_bytes;
		reader->stored_bytes_max = LIMIT_CODE_KEPT_BYTES;
		buffer_init(&reader->scratch, SCRATCH_BYTES_MAX);
		error = compressor_init(&reader->compressor);
	}
	pass->buffers = buffers;
	pass->began_ns = blocking_calls_clock_ns(&pass->recorder->calls);
	for (size_t i = 0; !error && i < count; i++) {
		struct jit_program *program = &reader->programs.items[(first + i) % count];

		if (!program->noted_ns || program->ended || (!pass->at_end && program->from_ns > pass->now_ns))
			continue;
		if (over) {
			reader->turn = (first + i) % count;
			break;
		}
		error = read_program(pass, program);
		over = is_over(pass);
	}
	return error;
}

#define INTERVAL_NS 50000000ULL /* shortest time between two passes */
#define TIME_SHARE 50		/* JIT code may take 1/TIME_SHARE of the elapsed time */
/* A forked child inherits its parent's code and may discard it soon: read it after this time. */
#define FORKED_NS 500000000ULL

static void destroy_program(struct jit_reader *reader, struct jit_program *program)
{
	jit_program_close(program);
	drop_pages(reader, program);
}

void jit_reader_deinit(struct jit_reader *reader)
{
	vector_deinit_each(&reader->programs, item, destroy_program(reader, item));
	map_deinit(&reader->program_of_pid);
	compressor_deinit(&reader->compressor);
	buffer_deinit(&reader->scratch);
}

static struct jit_program *find_program(const struct jit_reader *reader, pid_t pid)
{
	const uint64_t *index = reader->programs.count ? map_get(&reader->program_of_pid, (uint64_t)pid) : NULL;

	return index ? &reader->programs.items[*index] : NULL;
}

static struct jit_program *add_program(struct jit_reader *reader, pid_t pid, uint64_t from_ns)
{
	struct jit_program *program = vector_append(&reader->programs);

	if (!program)
		return NULL;
	*program = (struct jit_program){
	    .pid = pid, .until_ns = UINT64_MAX, .from_ns = from_ns, .memory = -1, .maps = -1, .pagemap.fd = -1};
	if (map_put(&reader->program_of_pid, (uint64_t)pid, reader->programs.count - 1))
		return program;
	reader->programs.count--;
	return NULL;
}

struct mmt_error *jit_reader_note(struct recorder *recorder, pid_t pid, const char *path, uint64_t time_ns, bool forked)
{
	struct jit_reader *reader = recorder->jobs.jit_reader;
	struct jit_program *program = find_program(reader, pid);

	if (recorder->options->code != MMT_CODE_ALL || !jit_code_is_wanted(path))
		return NULL;
	if (!program)
		program = add_program(reader, pid, forked ? clock_now_ns() + FORKED_NS : 0);
	if (!program)
		return &error_no_memory;
	program->noted_ns = larger_of(program->noted_ns, time_ns);
	return NULL;
}

struct mmt_error *jit_reader_end_program(struct recorder *recorder, pid_t pid, uint64_t time_ns)
{
	struct jit_reader *reader = recorder->jobs.jit_reader;
	struct jit_program *program = find_program(reader, pid);
	uint64_t noted_ns;

	if (!program)
		return NULL;
	noted_ns = program->noted_ns > time_ns ? program->noted_ns : 0;
	if (!program->ended && (!program->opened_ns || program->opened_ns > time_ns)) {
		program->from_ns = 0;
		program->noted_ns = noted_ns;
		return NULL;
	}
	program->until_ns = time_ns;
	end_program(reader, program);
	map_remove(&reader->program_of_pid, (uint64_t)pid);
	if (!noted_ns)
		return NULL;
	program = add_program(reader, pid, 0);
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

/* Forget the ended programs of which nothing is stored. Pointers to programs become invalid. */
static void drop_programs(struct jit_reader *reader)
{
	size_t kept = 0;

	for (size_t i = 0; i < reader->programs.count; i++) {
		struct jit_program *program = &reader->programs.items[i];
		uint64_t *index = map_get(&reader->program_of_pid, (uint64_t)program->pid);
		bool youngest = index && *index == i, dropped = program->ended && !program->pages.count;

		if (reader->turn == i)
			reader->turn = kept;
		if (youngest && dropped)
			map_remove(&reader->program_of_pid, (uint64_t)program->pid);
		else if (youngest)
			*index = kept;
		if (dropped)
			destroy_program(reader, program);
		else
			reader->programs.items[kept++] = *program;
	}
	reader->programs.count = kept;
}

struct mmt_error *jit_reader_read(struct recorder *recorder)
{
	struct jit_reader *reader = recorder->jobs.jit_reader;
	struct code_pass pass = {.recorder = recorder,
				 .reader = reader,
				 .now_ns = reader->programs.count ? clock_now_ns() : 0,
				 .time_ns_max = LIMIT_CODE_PASS_NS};
	struct mmt_error *error;

	if (!reader->programs.count || pass.now_ns < reader->next_ns)
		return NULL;
	drop_programs(reader);
	if (!time_budget_allows(&reader->budget, pass.now_ns, TIME_SHARE, LIMIT_CODE_SPENT_NS))
		return NULL;
	pass.due_ns = pass.now_ns;
	error = code_pass_read(&pass);
	reader->next_ns = pass.now_ns + INTERVAL_NS;
	reader->budget.left_ns -= (int64_t)spent_ns(&pass);
	return error;
}

/* The end of the recording: write the stored code into the recording, and warn about code that is missing. */

struct mmt_error *jit_reader_finish(struct recorder *recorder)
{
	static const char consequence[] = "callers of code without frame pointers may be missing";
	static const struct {
		enum code_missing kind;
		const char *why, *advice;
	} reasons[] = {{CODE_WITHOUT_DESCRIPTORS, "too many files were open", "raise the limit with `ulimit -n`"},
		       {CODE_DENIED, "permission denied to read memory",
			"run as root or with CAP_SYS_PTRACE (/proc/sys/kernel/yama/ptrace_scope)"}};
	struct jit_reader *reader = recorder->jobs.jit_reader;
	struct code_pass pass = {.recorder = recorder,
				 .reader = reader,
				 .now_ns = clock_now_ns(),
				 .due_ns = UINT64_MAX,
				 .time_ns_max = LIMIT_CODE_END_NS,
				 .at_end = true};
	struct mmt_error *error;

	if (!reader->programs.count)
		return NULL;
	error = code_pass_read(&pass);
	reader->out_of_time |= is_over(&pass);
	for (size_t i = 0; i < reader->programs.count; i++)
		end_program(reader, &reader->programs.items[i]);
	drop_programs(reader);
	if (error)
		return error;
	if (reader->full)
		recorder_message(
		    recorder, true,
		    "not all JIT code is copied: the limit of a recording is %u MiB, or %u MiB compressed; %s",
		    LIMIT_RECORDED_CODE_BYTES >> 20, LIMIT_CODE_KEPT_BYTES >> 20, consequence);
	if (reader->out_of_time)
		recorder_message(recorder, true,
				 "not all JIT code is copied: reading it at the end of the recording took too long; %s",
				 consequence);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
		size_t count = reader->missing[reasons[i].kind];

		if (count)
			recorder_message(recorder, true, "JIT code of %zu %s is not copied: %s; %s; %s", count,
					 count == 1 ? "program" : "programs", reasons[i].why, consequence,
					 reasons[i].advice);
	}
	return NULL;
}

COMPARISON(compare_pages, struct jit_code_page, order_of(a->address, b->address))

struct mmt_error *jit_reader_encode(struct recorder *recorder, struct buffer *buffer)
{
	struct jit_reader *reader = recorder->jobs.jit_reader;
	struct section_packing packing;
	struct mmt_error *error;

	if (!reader->programs.count)
		return NULL;
	error = jit_code_encode(&packing, reader->programs.count, buffer);
	array_while(program, reader->programs.items, reader->programs.count, !error) {
		CLEANUP(free) struct jit_code_page *pages = malloc(program->pages.count * sizeof(*pages));

		if (!pages) {
			error = &error_no_memory;
			break;
		}
		for (size_t k = 0; k < program->pages.count; k++) {
			const struct jit_page *page = &program->pages.items[k];

			pages[k] = (struct jit_code_page){page->address, page->frame, page->frame_bytes};
		}
		qsort(pages, program->pages.count, sizeof(*pages), compare_pages);
		error = jit_code_encode_program(&packing, program->pid, program->until_ns, pages, program->pages.count,
						reader->page_bytes);
	}
	return packing_end(&packing, error);
}
