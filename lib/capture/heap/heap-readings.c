// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/heap/heap-readings.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/strings.h"
#include "capture/memory/residency.h"
#include "capture/recorder/recorder.h"

#define INTERVAL_NS 500000000ULL /* shortest interval between two rounds ... */
#define AGE_SHARE 4		 /* ... which is at least the elapsed time divided by this ... */
#define COST_SHARE 100		 /* ... and at least the processor time of the last round times this */
#define ANSWER_BYTES (2u << 20)	 /* a census with the longest names */
#define PLAIN_BYTES (8u << 20)
#define STEP_BYTES (1u << 20)	   /* first range in which a page is looked for */
#define VERSION_BYTES (512u << 10) /* of libc.so, where its dynamic strings are */
#define VERSION_MIN 31		   /* of glibc 2: earlier ones have other tcaches */
#define MODULE_HEADER_BYTES 4096u
#define END_MILLISECONDS 1000 /* for a helper that has sent its census to exit */
#define POLL_MILLISECONDS 100
#define SILENT_NS 1000000000ULL /* a user waits for the end of the recording that long without a reason */
#define PAUSE_BYTES (8u << 20)	/* the target waits for at most one read, but not for the next ones */
#define PAUSE_MICROSECONDS 500
#define THREADS_RUN_MICROSECONDS 100000 /* any thread has had its turn, but on machines with many for each CPU */

/* ---- in the helper ---- */

struct live {
	struct heap_source source;
	int mem;
	struct residency_reader pages;
	struct process_residency resident; /* of the range asked last */
	uint64_t page_bytes;
	bool gave_up;		       /* pages of a range could not be found */
	uint64_t began_ns, work_bytes; /* work_bytes: since the last pause */
	VECTOR(struct heap_mapping) mappings;
};

/* Each question has all the time of a reader: the walk has its own. */
static const resident_runs *find_runs(struct live *live, uint64_t start, uint64_t end)
{
	struct residency_reader *pages = &live->pages;

	live->resident.runs.count = 0;
	pages->gave_up = false;
	pages->bytes = pages->begin_ns = pages->waited_ns = pages->paused_ns = 0;
	mmt_error_destroy(residency_read(pages, start & ~(live->page_bytes - 1),
					 (end + live->page_bytes - 1) & ~(live->page_bytes - 1), &live->resident));
	live->gave_up |= pages->gave_up;
	return &live->resident.runs;
}

static uint64_t resident_bytes(void *context, uint64_t start, uint64_t end)
{
	uint64_t total = page_runs_bytes(find_runs(context, start, end));

	return smaller_of(total, end - start);
}

static uint64_t find_resident(void *context, uint64_t start, uint64_t end)
{
	const resident_runs *runs;

	for (uint64_t bytes = STEP_BYTES; start < end; start += bytes, bytes *= 2) {
		bytes = smaller_of(bytes, end - start);
		runs = find_runs(context, start, start + bytes);
		if (runs->count)
			return runs->items[0].start > start ? runs->items[0].start : start;
	}
	return end;
}

static void note_work(struct live *live, size_t bytes)
{
	live->work_bytes += bytes + live->page_bytes;
	if (live->work_bytes < PAUSE_BYTES)
		return;
	usleep(PAUSE_MICROSECONDS);
	live->work_bytes = 0;
}

static size_t read_live(void *context, uint64_t address, void *data, size_t size)
{
	struct live *live = context;
	const struct heap_mapping *mapping = heap_mapping_find(&live->source, address);
	const resident_runs *runs;
	ssize_t count;

	if (!mapping)
		return 0;
	runs = find_runs(live, address, address + size);
	if (!runs->count || runs->items[0].start > address) {
		note_work(live, 0);
		return 0;
	}
	size = runs->items[0].end - address < size ? runs->items[0].end - address : size;
	count = pread(live->mem, data, size, (off_t)address);
	note_work(live, size);
	return count > 0 ? (size_t)count : 0;
}

static void wait_for_threads(void *context)
{
	(void)context;
	usleep(THREADS_RUN_MICROSECONDS);
}

static bool is_over(void *context)
{
	const struct live *live = context;

	return live->gave_up || clock_thread_ns() - live->began_ns > LIMIT_HEAP_NS;
}

/* Where the .bss of a module ends, by its program headers. UINT64_MAX: they are not in memory. */
static uint64_t find_module_end(struct live *live, uint64_t start)
{
	uint8_t data[MODULE_HEADER_BYTES];
	const resident_runs *runs = find_runs(live, start, start + sizeof(data));
	uint64_t lowest = UINT64_MAX, highest = 0, end;
	Elf64_Phdr program;

	if (!runs->count || pread(live->mem, data, sizeof(data), (off_t)start) != sizeof(data))
		return UINT64_MAX;
	for (size_t i = 0; elf_program_header(data, sizeof(data), i, &program); i++) {
		if (program.p_type != PT_LOAD)
			continue;
		lowest = program.p_vaddr < lowest ? program.p_vaddr : lowest;
		end = program.p_vaddr + program.p_memsz;
		highest = end > highest ? end : highest;
	}
	if (lowest >= highest)
		return UINT64_MAX;
	highest += start - (lowest & ~(live->page_bytes - 1));
	return (highest + live->page_bytes - 1) & ~(live->page_bytes - 1);
}

/* The path is kept for files that may be modules, and the break. `module`: a place in the list; SIZE_MAX: none. */
static bool push_mapping(struct live *live, const struct procmaps_line *line, uint64_t start, uint64_t end,
			 size_t module)
{
	struct heap_mapping mapping = {.start = start,
				       .end = end,
				       .writable = line->protection & PROT_WRITE && !line->shared,
				       .executable = line->protection & PROT_EXEC,
				       .path = strdup(!strcmp(line->path, "//anon") ? "" : line->path)};

	/* Until the list is complete, a place instead of a pointer. */
	mapping.module = module == SIZE_MAX ? NULL : (const struct heap_mapping *)(uintptr_t)(module + 1);
	return mapping.path && vector_push(&live->mappings, mapping);
}

static struct mmt_error *read_mappings(struct live *live, pid_t pid)
{
	CLEANUP(close) int maps = process_file_open(NULL, pid, "maps");
	CLEANUP(free) struct procmaps_line *line = malloc(sizeof(*line));
	struct mapping_scan scan = {0};
	size_t module = SIZE_MAX;
	bool good = line && mapping_scan_begin(&scan, NULL, pid, maps);

	while (good && live->mappings.count < LIMIT_HEAP_MAPPINGS && mapping_scan_next(&scan, maps, line)) {
		const bool file = !line->shared && line->path[0] == '/' && line->path[1] != '/' &&
				  !starts_with(line->path, "/dev/") && !starts_with(line->path, "/memfd:") &&
				  !starts_with(line->path, "/SYSV");
		const size_t count = live->mappings.count;
		uint64_t bss_end = line->start;

		/* The .bss is anonymous memory behind a module. A block of malloc may be behind that, in one mapping
		 * with it. */
		if (count && module != SIZE_MAX && live->mappings.items[count - 1].end == line->start &&
		    !strcmp(line->path, "//anon")) {
			bss_end = find_module_end(live, live->mappings.items[module].start);
			bss_end = smaller_of(bss_end, line->end);
		}
		if (bss_end > line->start)
			good = push_mapping(live, line, line->start, bss_end, module);
		if (!good || bss_end == line->end)
			continue;
		if (!file)
			module = SIZE_MAX;
		else if (module == SIZE_MAX || strcmp(live->mappings.items[module].path, line->path))
			module = count;
		good = push_mapping(live, line, larger_of(bss_end, line->start), line->end, module);
	}
	array_each(mapping, live->mappings.items, live->mappings.count) {
		if (mapping->module)
			mapping->module = &live->mappings.items[(uintptr_t)mapping->module - 1];
	}
	live->source.mappings = live->mappings.items;
	live->source.mapping_count = live->mappings.count;
	mapping_scan_end(&scan);
	return good ? NULL : &error_no_memory;
}

/* libc.so has its newest version among its dynamic strings, which are read even if they are not in memory: a part of
 * them would be another version. 0: unknown. */
static unsigned find_glibc_version(struct live *live, const struct heap_mapping *libc)
{
	static const char word[] = "GLIBC_2.";
	CLEANUP(free) uint8_t *data = malloc(VERSION_BYTES + 1);
	size_t wanted = libc->end - libc->start < VERSION_BYTES ? libc->end - libc->start : VERSION_BYTES;
	ssize_t count = data ? pread(live->mem, data, wanted, (off_t)libc->start) : 0;
	size_t size = count > 0 ? (size_t)count : 0;
	unsigned version = 0;

	if (data)
		data[size] = '\0';
	for (uint8_t *at = data; at && (at = memmem(at, size - (size_t)(at - data), word, sizeof(word) - 1));) {
		unsigned long found;

		at += sizeof(word) - 1;
		found = strtoul((const char *)at, NULL, 10);
		version = found > version && found < 1000 ? (unsigned)found : version;
	}
	return version;
}

/* Which allocator has the heap, judged by the modules. False: it cannot be walked. */
static bool find_allocator(struct live *live, struct mmt_heap_census *census)
{
	static const char *const others[][2] = {
	    {"libjemalloc", "jemalloc"},     {"libtcmalloc", "tcmalloc"},
	    {"libmimalloc", "mimalloc"},     {"ld-musl-", "musl"},
	    {"libc.musl-", "musl"},	     {"libscudo", "scudo"},
	    {"libasan", "AddressSanitizer"}, {"libclang_rt.asan", "AddressSanitizer"}};
	const struct heap_mapping *libc = NULL;
	const char *other = NULL;
	char name[32] = "glibc";
	unsigned version;

	array_each(mapping, live->mappings.items, live->mappings.count) {
		const char *base = path_file_name(mapping->path);

		for (size_t j = 0; j < sizeof(others) / sizeof(*others); j++)
			other = starts_with(base, others[j][0]) ? others[j][1] : other;
		if (!libc && heap_is_glibc(mapping->path))
			libc = mapping;
	}
	version = libc && !other ? find_glibc_version(live, libc) : 0;
	if (version)
		snprintf(name, sizeof(name), "glibc 2.%u", version);
	census->allocator = other ? MMT_ALLOCATOR_OTHER : MMT_ALLOCATOR_GLIBC;
	census->allocator_name = strdup(other ? other : name);
	return !other && (!version || version >= VERSION_MIN);
}

struct mmt_error *heap_census_take(pid_t pid, int mem, struct mmt_heap_census *census)
{
	struct live live = {.mem = mem, .began_ns = clock_thread_ns(), .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	struct mmt_error *error;
	bool walkable, readable, alive;
	uint64_t resident = 0;

	live.source = (struct heap_source){.context = &live,
					   .read = read_live,
					   .resident_bytes = resident_bytes,
					   .find_resident = find_resident,
					   .is_over = is_over,
					   .wait = wait_for_threads};
	census->pid = pid;
	census->time_ns = clock_now_ns();
	residency_take(&live.pages, NULL, pid, process_file_open(NULL, pid, "pagemap"));
	readable = mem >= 0 && live.pages.fd >= 0;
	alive = resident_series_size(pid, &resident) && resident;
	error = read_mappings(&live, pid);
	confine_thread(NULL, 0);
	walkable = !error && find_allocator(&live, census);
	if (!error && !census->allocator_name)
		error = &error_no_memory;
	if (!error && !readable)
		census->result = alive ? MMT_HEAP_UNREADABLE : MMT_HEAP_ENDED;
	else if (!error && walkable)
		error = heap_walk(&live.source, census);
	if (!error && readable) {
		bool has_heap =
		    array_find(mapping, live.mappings.items, live.mappings.count, !strcmp(mapping->path, "[heap]"));

		/* A program that has never called malloc has no arena, either: glibc begins it at the first call. */
		if (!residency_is_valid(&live.pages))
			census->result = MMT_HEAP_ENDED;
		else if (census->allocator == MMT_ALLOCATOR_GLIBC && !census->arenas && !has_heap)
			census->allocator = MMT_ALLOCATOR_NONE;
		if (census->allocator == MMT_ALLOCATOR_NONE)
			*census->allocator_name = '\0';
	}
	census->elapsed_ns = clock_now_ns() - census->time_ns;
	census->processor_ns = clock_thread_ns() - live.began_ns;
	vector_deinit_each(&live.mappings, item, free(item->path));
	vector_deinit(&live.resident.runs);
	residency_close(&live.pages);
	return error;
}

struct census_request {
	pid_t pid;
	int mem;
	enum mmt_heap_time when;
};

/* Send a section with one census. */
static void run_helper(void *context, int end, pid_t parent)
{
	struct census_request request = *(struct census_request *)context;
	const struct rlimit limit = {LIMIT_HEAP_NS / 1000000000 * 2, LIMIT_HEAP_NS / 1000000000 * 2};
	struct mmt_heap_census census = {.when = request.when};
	struct heap_censuses one = {.items = {.items = &census, .count = 1}};
	struct buffer buffer;

	if (!helper_process_begin(&end, &request.mem, parent) || setrlimit(RLIMIT_CPU, &limit) < 0)
		return;
	buffer_init(&buffer, ANSWER_BYTES);
	if (heap_census_take(request.pid, request.mem, &census) || section_write(&section_heap, &one, &buffer))
		return;
	for (size_t sent = 0; sent < buffer.size;) {
		ssize_t count = write(end, buffer.data + sent, buffer.size - sent);

		if (count <= 0)
			return;
		sent += (size_t)count;
	}
}

/* ---- in the recorder ---- */

void heap_jobs_deinit(struct heap_jobs *jobs)
{
	(void)helper_end(jobs->helper, 0);
	section_heap.deinit(&jobs->done);
	vector_deinit(&jobs->waiting);
	buffer_deinit(&jobs->answer);
}

COMPARISON(compare_size, struct traced_process *, order_of((*b)->resident_bytes, (*a)->resident_bytes))

/* The largest processes have their turn. */
static struct mmt_error *begin_round(struct recorder *recorder, enum mmt_heap_time when)
{
	struct heap_jobs *jobs = recorder->jobs.heap;
	CLEANUP(vector) VECTOR(struct traced_process *) largest = {0};

	jobs->when = when;
	jobs->round_spent_ns = 0;
	jobs->waiting.count = 0;
	process_table_each(process, &recorder->processes, true) {
		if (!process->ended && !process->lender && !process->left &&
		    !(when == MMT_HEAP_AT_START && process->from_exec) &&
		    !process_events_want_snapshot(recorder, process->pid) && !vector_push(&largest, process))
			return &error_no_memory;
	}
	vector_sort(&largest, compare_size);
	return array_find(process, largest.items, smaller_of(largest.count, LIMIT_HEAP_PROCESSES),
			  !vector_push(&jobs->waiting, (*process)->pid))
		   ? &error_no_memory
		   : NULL;
}

/* There is no census of this process: say so. */
static struct mmt_error *keep_none(struct heap_jobs *jobs, pid_t pid, enum mmt_heap_time when)
{
	const struct mmt_heap_census none = {.pid = pid,
					     .time_ns = clock_now_ns(),
					     .when = when,
					     .result = MMT_HEAP_ENDED,
					     .allocator_name = strdup("")};

	jobs->done_bytes += sizeof(none);
	if (none.allocator_name && vector_push(&jobs->done.items, none))
		return NULL;
	free(none.allocator_name);
	return &error_no_memory;
}

/* Errors are no reason to end the recording: there is no census then. */
static struct mmt_error *start_next(struct recorder *recorder)
{
	struct heap_jobs *jobs = recorder->jobs.heap;
	struct census_request request = {.when = jobs->when};
	struct mmt_error *error = NULL;

	helper_reap(jobs->helper);
	while (!error && jobs->waiting.count && !jobs->helper->child && !jobs->helper->dying) {
		bool stuck;

		request.pid = jobs->waiting.items[0];
		memmove(jobs->waiting.items, jobs->waiting.items + 1, --jobs->waiting.count * sizeof(pid_t));
		stuck = blocking_calls_are_stuck(&recorder->calls, place_of_process(request.pid));
		request.mem = stuck ? -1 : process_file_open(&recorder->calls, request.pid, "mem");
		jobs->pid = request.pid;
		jobs->helper_when = request.when;
		jobs->since_ns = clock_now_ns();
		buffer_deinit(&jobs->answer);
		buffer_init(&jobs->answer, ANSWER_BYTES);
		if (stuck || !helper_process_start(jobs->helper, SOCK_STREAM, run_helper, &request))
			error = keep_none(jobs, request.pid, request.when);
		close_descriptor(&request.mem);
	}
	return error;
}

/* Receives without waiting. The helper itself opens the maps of the process, which never returns if the process is
 * stuck in the kernel. */
static struct mmt_error *receive(struct recorder *recorder)
{
	struct heap_jobs *jobs = recorder->jobs.heap;
	struct heap_censuses read = {0};
	size_t room = PLAIN_BYTES;
	struct mmt_error *error;
	uint64_t elapsed_ns;
	struct bytes bytes;
	ssize_t count = 1;

	while (count > 0 && !jobs->answer.error) {
		uint8_t block[16384];

		count = recv(jobs->helper->answer, block, sizeof(block), MSG_DONTWAIT);
		if (count > 0)
			buffer_put(&jobs->answer, block, (size_t)count);
	}
	if (count < 0 && (errno == EAGAIN || errno == EINTR) && clock_now_ns() - jobs->since_ns < LIMIT_HEAP_WAIT_NS &&
	    !blocking_calls_are_stuck(&recorder->calls, place_of_process(jobs->pid)))
		return NULL;
	(void)helper_end(jobs->helper, count ? 0 : END_MILLISECONDS);
	if (jobs->answer.error)
		buffer_clear(&jobs->answer);
	mmt_error_destroy(buffer_finish(&jobs->answer));
	bytes = bytes_over(jobs->answer.data, jobs->answer.size);
	elapsed_ns = clock_now_ns() - jobs->since_ns;
	error = section_read(&section_heap, &bytes, &room, &read);
	/* Without a census, nobody knows what it has cost. */
	if (error || read.items.count != 1 || read.items.items[0].pid != jobs->pid) {
		mmt_error_destroy(error);
		section_heap.deinit(&read);
		jobs->round_spent_ns += smaller_of(elapsed_ns, LIMIT_HEAP_NS);
		return keep_none(jobs, jobs->pid, jobs->helper_when);
	}
	jobs->round_spent_ns += read.items.items[0].processor_ns;
	jobs->spent_ns += read.items.items[0].processor_ns;
	jobs->done_bytes += PLAIN_BYTES - room + sizeof(struct mmt_heap_census);
	if (!vector_push(&jobs->done.items, read.items.items[0])) {
		section_heap.deinit(&read);
		return &error_no_memory;
	}
	vector_deinit(&read.items);
	return NULL;
}

static uint64_t next_round_ns(const struct recorder *recorder)
{
	uint64_t now_ns = clock_now_ns(), age_ns = now_ns - recorder->start_ns;

	return now_ns + longest_ns(INTERVAL_NS, age_ns / AGE_SHARE, recorder->jobs.heap->round_spent_ns * COST_SHARE);
}

struct mmt_error *heap_census_continue(struct recorder *recorder)
{
	struct heap_jobs *jobs = recorder->jobs.heap;
	bool busy = jobs->helper->child || jobs->waiting.count;
	struct mmt_error *error = NULL;

	if (recorder->options->no_census)
		return NULL;
	if (!busy && jobs->done_bytes < LIMIT_RECORDED_HEAPS_BYTES && clock_now_ns() >= jobs->next_ns) {
		error = begin_round(recorder, jobs->began ? MMT_HEAP_AT_SNAPSHOT : MMT_HEAP_AT_START);
		jobs->began = true;
		jobs->next_ns = next_round_ns(recorder);
	} else if (jobs->helper->child) {
		error = receive(recorder);
		if (!jobs->helper->child && !jobs->waiting.count)
			jobs->next_ns = next_round_ns(recorder);
	}
	if (!error && !jobs->helper->child)
		error = start_next(recorder);
	return error;
}

struct mmt_error *heap_census_stop(struct recorder *recorder)
{
	struct mmt_error *error;

	if (recorder->options->no_census)
		return NULL;
	error = begin_round(recorder, MMT_HEAP_AT_STOP);
	if (!error && !recorder->jobs.heap->helper->child)
		error = start_next(recorder);
	return error;
}

struct mmt_error *heap_census_encode(struct recorder *recorder, struct buffer *buffer)
{
	struct heap_jobs *jobs = recorder->jobs.heap;
	uint64_t begin_ns = clock_now_ns();
	struct mmt_error *error = NULL;
	bool said = false;

	while (!error && (jobs->helper->child || jobs->waiting.count)) {
		struct pollfd answer = {.fd = jobs->helper->child ? jobs->helper->answer : -1, .events = POLLIN};

		if (!said && clock_now_ns() > begin_ns + SILENT_NS) {
			recorder_inform(recorder,
					"counting what is in the malloc heap, for a few seconds at most; Ctrl-C "
					"skips that");
			said = true;
		}
		if (clock_now_ns() >= begin_ns + LIMIT_HEAP_END_NS ||
		    recorder_stop_requests(recorder) > recorder->stop_requests) {
			if (jobs->helper->child)
				error = keep_none(jobs, jobs->pid, jobs->helper_when);
			(void)helper_end(jobs->helper, 0);
			for (size_t i = 0; !error && i < jobs->waiting.count; i++)
				error = keep_none(jobs, jobs->waiting.items[i], jobs->when);
			jobs->waiting.count = 0;
			break;
		}
		(void)poll(&answer, 1, jobs->helper->child ? POLL_MILLISECONDS : 1);
		if (jobs->helper->child)
			error = receive(recorder);
		if (!error && !jobs->helper->child)
			error = start_next(recorder);
	}
	return error || !jobs->done.items.count ? error : section_write(&section_heap, &jobs->done, buffer);
}
