// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/memory/residency.h"

#include <errno.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "capture/recorder/recorder.h"

#define PIECE_BYTES (64ull << 20)
#define STEP_BYTES (4ull << 30) /* of one read; the kernel skips sparse ranges quickly */
#define STEP_PAGES 1024
#define GROUP_GAP_BYTES (64ull << 20) /* largest gap between ranges that are read together */
#define GROUP_RANGES 1024	      /* most ranges read together; the kernel looks up the mapping of each */
#define SHARED_GAP_BYTES (256u << 10) /* reading the entries of a gap is cheaper than another call */
#define REGIONS_PER_CALL 512
#define ENTRIES_PER_READ 2048
#define ENTRY_PRESENT (1ull << 63)
#define ENTRY_SWAPPED (1ull << 62)
#define ENTRY_EXCLUSIVE (1ull << 56) /* no other process maps the page */
#define ENTRY_GUARD (1ull << 58)     /* a guard page, for which ENTRY_SWAPPED is set, too */
#define ENTRY_FILE (1ull << 61)	     /* a page of a file or, in anonymous memory, the zero page */
#define SLICE_NS 100000		     /* after this much work the target gets a pause */
#define PAUSE_NS 300000

/* From linux/fs.h of Linux 6.7, for older headers. */
#define SCAN_PRESENT (1ull << 3)
#define SCAN_SWAPPED (1ull << 4)
#define SCAN_ZERO_PAGE (1ull << 5)
#define SCAN_HUGE (1ull << 6)
#define SCAN_GUARD (1ull << 8) /* Linux 6.15; guard pages are also SCAN_SWAPPED */

struct scan_region {
	uint64_t start, end;
	uint64_t categories;
};

struct scan_argument {
	uint64_t size;
	uint64_t flags;
	uint64_t start, end;
	uint64_t walk_end;
	uint64_t regions;
	uint64_t region_count;
	uint64_t page_count_max;
	uint64_t category_inverted;
	uint64_t category_mask;
	uint64_t category_anyof_mask;
	uint64_t return_mask;
};

#define SCAN_IOCTL _IOWR('f', 16, struct scan_argument)

struct scan_result {
	struct scan_argument argument;
	int64_t count;
	struct scan_region regions[REGIONS_PER_CALL];
};

void residency_take(struct residency_reader *reader, struct blocking_calls *calls, pid_t pid, int pagemap)
{
	*reader = (struct residency_reader){.calls = calls, .pid = pid, .fd = pagemap, .scan = true};
}

/* Read the entry of the page at this address. False: the address space does not exist any more. */
static bool read_entry(const struct residency_reader *reader, uint64_t address, uint64_t *entry_ret)
{
	int64_t offset = (int64_t)(address / (uint64_t)sysconf(_SC_PAGESIZE) * sizeof(*entry_ret));

	return process_file_read(reader->calls, reader->pid, reader->fd, entry_ret, sizeof(*entry_ret), offset) ==
	       sizeof(*entry_ret);
}

bool residency_is_valid(const struct residency_reader *reader)
{
	uint64_t entry;

	return read_entry(reader, 0, &entry);
}

bool residency_has_page(const struct residency_reader *reader, uint64_t address)
{
	uint64_t entry;

	return read_entry(reader, address, &entry) && entry & ENTRY_PRESENT && !(entry & ENTRY_FILE);
}

void residency_close(struct residency_reader *reader)
{
	close(reader->fd);
	reader->fd = -1;
	for (unsigned kind = 0; kind < PAGE_KINDS; kind++) {
		vector_deinit(&reader->scanned[kind].runs);
		vector_deinit(&reader->found[kind].runs);
	}
}

static void scan_pages(struct blocking_call *call)
{
	struct scan_result *found = call->result;

	memcpy(&found->argument, call->argument, sizeof(found->argument));
	found->argument.regions = (uint64_t)(uintptr_t)found->regions;
	found->count = TEMP_FAILURE_RETRY(ioctl(call->given, SCAN_IOCTL, &found->argument));
	call->result_bytes = offsetof(struct scan_result, regions) +
			     (found->count > 0 ? (size_t)found->count : 0) * sizeof(*found->regions);
}

void residency_pause(struct residency_reader *reader, uint64_t worked_ns)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	reader->slice_ns += worked_ns;
	if (reader->slice_ns < SLICE_NS)
		return;
	nanosleep(&pause, NULL);
	reader->slice_ns = 0;
	reader->paused_ns += PAUSE_NS;
}

/* Append a run of pages. Two reads of the maps overlap if mappings were merged in between: the same pages are not
 * counted twice. */
static struct mmt_error *append_run(struct residency_reader *reader, struct process_residency *residency,
				    uint64_t start, uint64_t end)
{
	size_t count = residency->runs.count;
	struct resident_run *last = count ? &residency->runs.items[count - 1] : NULL;

	if (last && start < last->end)
		start = last->end;
	if (start >= end)
		return NULL;
	if (last && last->end == start)
		last->end = end;
	else if (count >= LIMIT_RESIDENCY_RUNS)
		reader->gave_up = true;
	else if (!vector_push(&residency->runs, ((struct resident_run){start, end})))
		return &error_no_memory;
	return NULL;
}

/* Read resident pages of at most STEP_BYTES with one PAGEMAP_SCAN. *end_ret: the address reached when `page_max` pages
 * were found or the limit of runs per call was hit. The shared zero page, which backs memory that was only read, is not
 * counted. */
static struct mmt_error *scan_once(struct residency_reader *reader, uint64_t start, uint64_t end, uint64_t page_max,
				   struct process_residency *residency, uint64_t *end_ret)
{
	const uint64_t excluded =
	    SCAN_ZERO_PAGE | (reader->wants[PAGES_SWAPPED] && !reader->no_guards ? SCAN_GUARD : 0);
	const uint64_t wanted = SCAN_PRESENT | (reader->wants[PAGES_SWAPPED] ? SCAN_SWAPPED : 0);
	struct scan_argument argument = {
	    .size = sizeof(argument),
	    .start = start,
	    .end = start + smaller_of(end - start, STEP_BYTES),
	    .region_count = REGIONS_PER_CALL,
	    .page_count_max = page_max,
	    .category_inverted = excluded,
	    .category_mask = excluded,
	    .category_anyof_mask = wanted,
	    .return_mask = wanted | (reader->wants[PAGES_HUGE] ? SCAN_HUGE : 0),
	};
	struct scan_result result = {.argument = argument, .count = -1};
	struct blocking_call call =
	    BLOCKING_CALL(place_of_process(reader->pid), scan_pages, &argument, reader->fd, &result);
	const struct scan_region *regions = result.regions;
	struct mmt_error *error = NULL;
	uint64_t work_began_ns = blocking_calls_clock_ns(reader->calls);
	bool answered = blocking_call(reader->calls, &call);
	uint64_t worked_ns = blocking_calls_clock_ns(reader->calls) - work_began_ns;
	int64_t count = result.count;

	reader->waited_ns += call.waited_ns;
	reader->gave_up |= reader->waited_ns > LIMIT_RESIDENCY_WAIT_NS || !answered;
	*end_ret = argument.end;
	if (!answered)
		return NULL;
	if (count < 0 && errno == EINVAL && excluded & SCAN_GUARD) {
		reader->no_guards = true;
		*end_ret = start;
		return NULL;
	}
	if (count < 0) {
		reader->scan = errno != ENOTTY && errno != EINVAL &&
			       errno != ENOSYS; /* emulators of the kernel fail with ENOSYS */
		return NULL;
	}
	for (int64_t i = 0; !error && i < count; i++) {
		error = append_run(reader,
				   regions[i].categories & SCAN_PRESENT ? residency : &reader->scanned[PAGES_SWAPPED],
				   regions[i].start, regions[i].end);
		if (!error && regions[i].categories & SCAN_HUGE && regions[i].categories & SCAN_PRESENT)
			error = append_run(reader, &reader->scanned[PAGES_HUGE], regions[i].start, regions[i].end);
	}
	if (result.argument.walk_end > start)
		*end_ret = result.argument.walk_end;
	residency_pause(reader, worked_ns);
	return error;
}

static struct mmt_error *scan_range(struct residency_reader *reader, uint64_t start, uint64_t end,
				    struct process_residency *residency)
{
	uint64_t page_max = PIECE_BYTES / (uint64_t)sysconf(_SC_PAGESIZE);
	struct mmt_error *error = NULL;

	while (!error && start < end && reader->scan && !reader->gave_up)
		error = scan_once(reader, start, end, page_max, residency, &start);
	return error;
}

static struct mmt_error *read_piece(struct residency_reader *reader, uint64_t start, uint64_t end,
				    struct process_residency *residency)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t entries[ENTRIES_PER_READ];

	while (start < end) {
		uint64_t wanted = smaller_of((end - start) / page_bytes * sizeof(uint64_t), sizeof(entries));
		uint64_t began_ns = blocking_calls_clock_ns(reader->calls);
		ssize_t count;

		count = process_file_read(reader->calls, reader->pid, reader->fd, entries, wanted,
					  (int64_t)(start / page_bytes * sizeof(uint64_t)));
		reader->gave_up |= count < 0 && errno == ETIMEDOUT;
		if (count < (ssize_t)sizeof(uint64_t))
			return NULL;
		for (size_t i = 0; i < (size_t)count / sizeof(uint64_t); i++, start += page_bytes) {
			struct mmt_error *error = NULL;

			if (entries[i] & ENTRY_PRESENT)
				error = append_run(reader, residency, start, start + page_bytes);
			else if (reader->wants[PAGES_SWAPPED] && entries[i] & ENTRY_SWAPPED &&
				 !(entries[i] & ENTRY_GUARD))
				error = append_run(reader, &reader->scanned[PAGES_SWAPPED], start, start + page_bytes);
			if (!error && reader->wants[PAGES_SHARED] &&
			    (entries[i] & (ENTRY_PRESENT | ENTRY_EXCLUSIVE)) == ENTRY_PRESENT)
				error = append_run(reader, &reader->scanned[PAGES_SHARED], start, start + page_bytes);
			if (error)
				return error;
		}
		residency_pause(reader, blocking_calls_clock_ns(reader->calls) - began_ns);
	}
	return NULL;
}

struct mmt_error *residency_read(struct residency_reader *reader, uint64_t start, uint64_t end,
				 struct process_residency *residency)
{
	if (reader->scan && !reader->gave_up) {
		struct mmt_error *error = scan_range(reader, start, end, residency);

		if (error || reader->scan)
			return error;
	}
	/* Check every page, within a budget: terabytes may be mapped of which only a few pages are resident. */
	while (start < end && !reader->gave_up) {
		uint64_t piece_end = end - start > PIECE_BYTES ? start + PIECE_BYTES : end, now_ns = clock_now_ns();
		struct mmt_error *error = NULL;

		if (!reader->begin_ns)
			reader->begin_ns = now_ns;
		reader->bytes += piece_end - start;
		reader->gave_up = reader->bytes > LIMIT_RESIDENCY_BYTES ||
				  now_ns - reader->begin_ns > LIMIT_RESIDENCY_NS + reader->paused_ns;
		if (!reader->gave_up)
			error = read_piece(reader, start, piece_end, residency);
		if (error)
			return error;
		start = piece_end;
	}
	return NULL;
}

/* Append the intersection of the runs and the ranges, or of the runs and the anonymous ranges. Both lists are
 * ascending. */
static struct mmt_error *append_runs_within(struct residency_reader *reader, const struct process_residency *pages,
					    const struct mapped_range *ranges, size_t count, bool anonymous,
					    struct process_residency *residency)
{
	struct mmt_error *error = NULL;
	size_t first = 0;

	for (size_t i = 0; !error && i < count; i++) {
		if (anonymous && !ranges[i].anonymous)
			continue;
		while (first < pages->runs.count && pages->runs.items[first].end <= ranges[i].start)
			first++;
		for (size_t j = first; !error && j < pages->runs.count; j++) {
			const struct resident_run *run = &pages->runs.items[j];

			if (run->start >= ranges[i].end)
				break;
			error = append_run(reader, residency, larger_of(run->start, ranges[i].start),
					   smaller_of(run->end, ranges[i].end));
		}
	}
	return error;
}

static struct mmt_error *read_group(struct residency_reader *reader, const struct mapped_range *ranges, size_t count,
				    struct process_residency *residency)
{
	struct process_residency pages = {0}, present = {0};
	const struct resident_run *runs;
	struct mmt_error *error = NULL;
	bool reads_shared;
	uint64_t end = 0;

	for (size_t i = 0; i < count; i++)
		end = ranges[i].end > end ? ranges[i].end : end;
	for (unsigned kind = 0; kind < PAGE_KINDS; kind++)
		reader->scanned[kind].runs.count = 0;
	error = reader->scan ? scan_range(reader, ranges[0].start, end, &pages)
			     : residency_read(reader, ranges[0].start, end, &pages);
	/* PAGEMAP_SCAN does not say which pages are shared: read the entries of those that it found. */
	reads_shared = reader->scan && reader->wants[PAGES_SHARED];
	runs = pages.runs.items;
	for (size_t i = 0; reads_shared && !error && !reader->gave_up && i < pages.runs.count; i++) {
		uint64_t start = runs[i].start;

		while (i + 1 < pages.runs.count && runs[i + 1].start - runs[i].end <= SHARED_GAP_BYTES)
			i++;
		present.runs.count = 0;
		error = read_piece(reader, start, runs[i].end, &present);
	}
	vector_deinit(&present.runs);
	error = error ?: append_runs_within(reader, &pages, ranges, count, false, residency);
	for (unsigned kind = 0; !error && kind < PAGE_KINDS; kind++)
		error = append_runs_within(reader, &reader->scanned[kind], ranges, count, kind == PAGES_HUGE,
					   &reader->found[kind]);
	vector_deinit(&pages.runs);
	return error;
}

struct mmt_error *residency_read_ranges(struct residency_reader *reader, const struct mapped_range *ranges,
					size_t count, struct process_residency *residency)
{
	struct mmt_error *error = NULL;
	size_t group;

	for (size_t i = 0; !error && !reader->gave_up && i < count; i += group) {
		bool scan = reader->scan;

		if (scan) {
			uint64_t end = ranges[i].end;

			/* The ranges that are close enough to be read together. */
			for (group = 1; group < GROUP_RANGES && i + group < count; group++) {
				const struct mapped_range *next = &ranges[i + group];

				if (next->start > end && next->start - end > GROUP_GAP_BYTES)
					break;
				end = next->end > end ? next->end : end;
			}
		} else {
			uint64_t bytes = ranges[i].reserved ? ranges[i].end - ranges[i].start : 0;

			group = 1;
			/* Without PAGEMAP_SCAN every page of a reservation would be checked: this one is too large. */
			if (bytes > LIMIT_RESIDENCY_RESERVED_BYTES - reader->reserved_bytes)
				continue;
			reader->reserved_bytes += bytes;
		}
		error = read_group(reader, ranges + i, group, residency);
		/* The kernel has no PAGEMAP_SCAN: read the ranges of this group one by one. */
		if (scan && !reader->scan)
			group = 0;
	}
	return error;
}

struct mmt_error *residency_step(struct residency_reader *reader, uint64_t start, uint64_t end,
				 struct process_residency *residency, uint64_t *end_ret)
{
	uint64_t small_bytes = STEP_PAGES * (uint64_t)sysconf(_SC_PAGESIZE);
	struct mmt_error *error = NULL;

	*end_ret = end;
	if (reader->gave_up)
		return NULL;
	if (reader->scan) {
		error = scan_once(reader, start, end, STEP_PAGES, residency, end_ret);
		if (error || reader->scan)
			return error;
	}
	*end_ret = start + smaller_of(end - start, small_bytes);
	return residency_read(reader, start, *end_ret, residency);
}

#define GROUP_INTERVAL_NS 500000000ULL /* shortest between two readings of the groups of targets */
#define GROUP_PROCESSES 64	       /* most processes whose groups are looked up in a reading */
#define INTERVAL_NS 50000000ULL
#define ELAPSED_SHARE 256     /* shortest interval between two readings: the elapsed time divided by this */
#define MAPPINGS_INTERVAL_NS 10000000000ULL /* between two counts of the mappings */
#define PROCESS_NS 5000000ULL /* shortest interval for each process: at most 200 notes a second */
#define COST_SHARE 200	      /* readings may take 1/COST_SHARE of the recorder's time; waiting does not count */

bool resident_series_size(pid_t pid, uint64_t *bytes_ret)
{
	CLEANUP(free) char *text = proc_text(pid, "statm");
	char *position;

	if (!text)
		return false;
	(void)strtoull(text, &position, 10);
	*bytes_ret = strtoull(position, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

static bool is_swap_used(void)
{
	struct sysinfo system;

	return sysinfo(&system) == 0 && system.totalswap != system.freeswap;
}

/* Return 0 if no memory of the process is swapped, but for shared memory, or the system has no swap. */
static uint64_t read_swapped(pid_t pid)
{
	CLEANUP(free) char *text = is_swap_used() ? proc_text(pid, "status") : NULL;

	return text ? text_file_bytes(text, "VmSwap") : 0;
}

void resident_series_deinit(struct resident_series *series)
{
	vector_deinit(&series->sums);
	vector_deinit(&series->pss_sums);
}

/* Note the start time of a process and its control group once. PID and start time identify a process. */
static struct mmt_error *note_start(struct recorder *recorder, struct traced_process *process, uint64_t now_ns)
{
	uint64_t boot_ns = proc_start_boot_ns(&recorder->calls, process->pid);
	const struct traced_process *parent = process_table_find(&recorder->processes, proc_parent_of(process->pid));
	CLEANUP(free) char *control_group = group_memory_path(process->pid);

	process->start_noted = true;
	process->lender = parent && !parent->ended ? parent->pid : 0;
	return boot_ns ? recorder_note(recorder, NOTE_STARTED, process->pid, now_ns, boot_ns,
				       (uint64_t)proc_namespace_pid(process->pid) | (uint64_t)(parent ? parent->pid : 0)
											<< NOTE_PARENT_SHIFT,
				       control_group)
		       : NULL;
}

/* Microseconds of waiting since the last reading, which it replaces. */
static uint64_t stalled_since(uint64_t *last_us, uint64_t stalled_us)
{
	uint64_t before_us = *last_us;

	*last_us = stalled_us == GROUP_MEMORY_NONE ? 0 : stalled_us + 1;
	return before_us ? subtract(*last_us, before_us) : 0;
}

/* Keep the group that is nearest to its limit for the callback of the caller. Its use is that of the report. */
static void keep_fullest(struct mmt_record_progress *progress, const uint64_t figures[NOTE_GROUP_FIGURES])
{
	static const unsigned parts[] = {NOTE_GROUP_ANON, NOTE_GROUP_SHMEM, NOTE_GROUP_KERNEL};
	uint64_t limit = figures[NOTE_GROUP_LIMIT - NOTE_GROUP_FIRST], used = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		uint64_t figure = figures[parts[i] - NOTE_GROUP_FIRST];

		used += figure == GROUP_MEMORY_NONE ? 0 : figure;
	}
	if (limit == GROUP_MEMORY_NONE || !limit ||
	    (double)used * (double)progress->group_limit_bytes < (double)progress->group_bytes * (double)limit)
		return;
	progress->group_bytes = used;
	progress->group_limit_bytes = limit;
}

/* Note the counters of a control group. False: it is gone. */
static bool note_group(struct recorder *recorder, uint64_t index, uint64_t now_ns, uint64_t reading,
		       uint64_t *stalled_us_ret, struct mmt_error **error_ret)
{
	struct group_memory *memory = &recorder->jobs.memory->groups.items.items[index];
	uint64_t figures[NOTE_GROUP_FIGURES], *kills = &figures[NOTE_GROUP_OOM_KILLS - NOTE_GROUP_FIRST];
	char path[PATH_MAX];
	unsigned first = 0;

	if (!group_memory_read(memory, figures))
		return false;
	keep_fullest(&recorder->progress, figures);
	*stalled_us_ret = larger_of(*stalled_us_ret,
				    stalled_since(&memory->stalled_us, figures[NOTE_GROUP_STALLED - NOTE_GROUP_FIRST]));
	memory->first_kills = memory->first_kills ?: *kills + 1;
	if (*kills != GROUP_MEMORY_NONE && *kills >= memory->first_kills)
		recorder->progress.oom_killed = true;
	(void)cgroup_path(memory->directory, path, sizeof(path));
	/* When the targets have ended, only the counters still tell about them. */
	if (recorder->cgroup < 0 && !recorder->jobs.memory->resident_series.processes)
		first = NOTE_GROUP_OOM_KILLS - NOTE_GROUP_FIRST;
	for (unsigned i = first; !*error_ret && i < NOTE_GROUP_FIGURES; i++)
		*error_ret = recorder_note(recorder, NOTE_GROUP_KIND(i), (pid_t)index, now_ns, figures[i], reading,
					   i ? NULL : path);
	return true;
}

/* Note the counters of the recorded control group or of the groups that the targets are in at present, and those of
 * the groups that limit them. A group may get its first process later. */
static struct mmt_error *note_groups(struct recorder *recorder, uint64_t now_ns, uint64_t reading, bool last)
{
	struct group_memories *groups = &recorder->jobs.memory->groups;
	struct mmt_error *error = NULL;
	size_t searched = 0, count = recorder->processes.items.count;
	uint64_t stalled_us = 0;

	/* The kernel adds up the counters of all CPUs for this. */
	if (recorder->cgroup < 0 && now_ns < groups->next_ns && !last)
		return NULL;
	groups->next_ns = now_ns + GROUP_INTERVAL_NS;
	for (size_t i = 0; i < count && (searched < GROUP_PROCESSES || last); i++, groups->next_process++) {
		const struct traced_process *process = recorder->processes.items.items[groups->next_process % count];
		uint64_t own =
		    process->ended ? GROUP_MEMORY_NONE : group_memories_find(groups, recorder->cgroup, process->pid);

		searched += !process->ended;
		if (own == GROUP_MEMORY_NONE)
			continue;
		groups->items.items[own].noted = true;
		own = group_memories_find_limit(groups, own); /* may add groups */
		groups->items.items[own].noted = true;
		if (recorder->cgroup >= 0)
			break;
	}
	if (groups->left_out && !groups->reported)
		recorder_message(recorder, true,
				 "the processes were in too many control groups: the counters of %zu are recorded",
				 groups->items.count);
	groups->reported = groups->left_out;
	recorder->progress.group_bytes = recorder->progress.group_limit_bytes = 0;
	for (size_t i = 0; !error && i < groups->items.count; i++) {
		if (groups->items.items[i].noted && groups->items.items[i].directory >= 0 &&
		    !note_group(recorder, i, now_ns, reading, &stalled_us, &error))
			group_memories_close(groups, i);
	}
	recorder->progress.stalled_ns += stalled_us * 1000;
	return error;
}

/* Of the machine, if no group has it. */
static void read_pressure(struct mmt_record_progress *progress, struct group_memories *groups)
{
	if (!array_find(group, groups->items.items, groups->items.count, group->stalled_us)) {
		uint64_t stalled_us = group_memory_stalled(-1, "/proc/pressure/memory");

		progress->stalled_ns += stalled_since(&groups->stalled_us, stalled_us) * 1000;
		if (!groups->stalled_us)
			return;
	}
	progress->stalled_known = true;
}

/* Runs in the helper: the kernel lets it wait while one of the two is in an exec. */
static void compare_memory(struct blocking_call *call)
{
	const pid_t *pids = call->argument;

	*(bool *)call->result = syscall(SYS_kcmp, pids[0], pids[1], KCMP_VM, 0, 0) == 0;
}

/* Is the memory of the process still that of its parent? */
static bool is_lent(struct recorder *recorder, const struct traced_process *process)
{
	const pid_t pids[] = {process->pid, process->lender};
	bool same = false;
	struct blocking_call call = BLOCKING_CALL(place_of_process(process->pid), compare_memory, &pids, -1, &same);

	return !blocking_calls_are_stuck(&recorder->calls, place_of_process(process->lender)) &&
	       blocking_call(&recorder->calls, &call) && same;
}

/* Count the mappings of a process, and let the ring reader work in between. */
static struct mmt_error *count_mappings(struct recorder *recorder, pid_t pid)
{
	struct mmt_record_progress *progress = &recorder->progress;
	CLEANUP(close) int maps = process_file_open(&recorder->calls, pid, "maps");
	struct mapping_scan scan = {0};
	struct mmt_error *error = NULL;
	uint64_t count = 0, read_ns = 0;
	const char *line;
	size_t length;

	if (maps < 0)
		return NULL;
	if (!mapping_scan_begin(&scan, &recorder->calls, pid, maps))
		return &error_no_memory;
	for (; !error && mapping_scan_line(&scan, maps, &line, &length); count++) {
		if (scan.read_ns != read_ns)
			error = ring_reader_give_way(recorder);
		read_ns = scan.read_ns;
	}
	mapping_scan_end(&scan);
	if (count > progress->mappings)
		progress->mappings = count;
	return error;
}

struct mmt_error *resident_series_read(struct recorder *recorder, bool last)
{
	struct resident_series *series = &recorder->jobs.memory->resident_series;
	uint64_t now_ns = clock_now_ns(), began_ns, reading, interval_ns;
	struct mmt_resident_reading sum = {.time_ns = now_ns};
	struct mmt_error *error = NULL;
	bool counts;

	if (!last && now_ns < series->next_ns)
		return NULL;
	began_ns = clock_thread_ns();
	reading = ++series->readings;
	series->processes = 0;
	counts = recorder->options->counts_mappings && now_ns >= series->mappings_next_ns;
	if (counts) {
		recorder->progress.mappings = 0;
		recorder->progress.mapping_limit = (uint64_t)text_file_number(-1, "/proc/sys/vm/max_map_count", 0);
		series->mappings_next_ns = now_ns + MAPPINGS_INTERVAL_NS;
	}
	process_table_each(process, &recorder->processes, !error) {
		uint64_t bytes, swapped;

		if (process->ended)
			continue;
		if (!process->start_noted)
			error = note_start(recorder, process, now_ns);
		error = error ?: limits_note_change(recorder, process);
		error = error || !counts ? error : count_mappings(recorder, process->pid);
		if (error || !resident_series_size(process->pid, &bytes))
			continue;
		/* Even a process without RSS has memory: all of it may be swapped out. */
		swapped = read_swapped(process->pid);
		if (!bytes && !swapped)
			continue;
		error = recorder_note(recorder, NOTE_RESIDENT, process->pid, now_ns, bytes, reading, NULL);
		if (!error && swapped)
			error = recorder_note(recorder, NOTE_SWAPPED, process->pid, now_ns, swapped, reading, NULL);
		/* A child of clone(CLONE_VM) or vfork has the memory of its parent, until it executes a program or the
		 * parent ends. */
		if (process->lender && !is_lent(recorder, process))
			process->lender = 0;
		process->resident_bytes = process->lender ? 0 : bytes;
		if (process->lender)
			continue;
		sum.resident_bytes += bytes;
		sum.swapped_bytes += swapped;
		series->processes++;
	}
	if (!error && !recorder->options->all_cpus)
		error = note_groups(recorder, now_ns, reading, last);
	if (recorder->options->reading_interval_ns)
		read_pressure(&recorder->progress, &recorder->jobs.memory->groups);
	error = error ?: limits_note_machine(recorder, now_ns);
	if (!error && (sum.resident_bytes || sum.swapped_bytes) && !vector_push(&series->sums, sum))
		error = &error_no_memory;
	if (!series->begin_ns)
		series->begin_ns = now_ns;
	interval_ns = (now_ns - series->begin_ns) / ELAPSED_SHARE;
	if (recorder->options->reading_interval_ns)
		interval_ns = smaller_of(interval_ns, recorder->options->reading_interval_ns);
	interval_ns = longest_ns(INTERVAL_NS, interval_ns, (clock_thread_ns() - began_ns) * COST_SHARE);
	series->next_ns = now_ns + longest_ns(interval_ns, recorder->processes.items.count * PROCESS_NS, 0);
	return error ? error : pss_series_read(recorder, now_ns, reading, last);
}

#define RANGES_AT_ONCE 4096

/* Read ranges while events are enabled, and let the ring reader work in between. */
static struct mmt_error *read_live_ranges(struct recorder *recorder, struct residency_reader *reader,
					  const struct traced_process *process, struct process_residency *pages)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < process->ranges.count && !reader->gave_up; i += RANGES_AT_ONCE) {
		size_t count = smaller_of(process->ranges.count - i, RANGES_AT_ONCE);

		error = residency_read_ranges(reader, &process->ranges.items[i], count, pages);
		error = error ?: ring_reader_give_way(recorder);
		reader->gave_up |= pages->runs.count > LIMIT_LIVE_RUNS;
	}
	return error;
}

/* Take pages that the reader has found beside the resident ones. */
static struct mmt_error *take_pages(struct process_residency *found, pid_t pid, uint64_t bytes,
				    process_residencies *processes)
{
	struct process_residency *taken = vector_append(processes);

	if (!taken)
		return &error_no_memory;
	*taken = *found;
	taken->pid = pid;
	taken->time_ns = clock_now_ns();
	taken->resident_bytes = bytes;
	*found = (struct process_residency){0};
	return NULL;
}

/* `resident`: NULL if smaps is not read. */
static struct mmt_error *take_swapped(struct recorder *recorder, struct residency_reader *reader, pid_t pid,
				      uint64_t swapped_bytes, const resident_runs *resident,
				      process_residencies *processes)
{
	uint64_t began_ns = clock_now_ns();
	struct mmt_error *error =
	    resident ? swapped_pages_correct(&recorder->calls, pid, resident, &reader->found[PAGES_SWAPPED].runs)
		     : NULL;

	recorder->jobs.memory->smaps_spent_ns += clock_now_ns() - began_ns;
	if (error || (!swapped_bytes && !reader->found[PAGES_SWAPPED].runs.count))
		return error;
	return take_pages(&reader->found[PAGES_SWAPPED], pid, swapped_bytes, processes);
}

static struct mmt_error *take_huge_pages(struct recorder *recorder, struct residency_reader *reader,
					 struct recording_huge_pages *huge)
{
	const resident_runs *runs = &reader->found[PAGES_HUGE].runs;
	struct process_huge_pages process = {.pid = reader->pid, .bytes = page_runs_bytes(runs)};
	uint64_t began_ns = clock_now_ns(), *spent_ns = &recorder->jobs.memory->huge_spent_ns;

	/* Samples give details that the user does not want without stacks, or with --lean. Their limit is one of all
	 * processes, without other reading between two of them. */
	if (recorder->options->call_graph != MMT_CALL_GRAPH_NONE && !recorder->options->lean &&
	    recorder_stop_requests(recorder) <= recorder->stop_requests && *spent_ns < LIMIT_HUGE_SAMPLES_NS)
		huge_pages_sample(reader, began_ns + LIMIT_HUGE_SAMPLES_NS - *spent_ns, &process);
	*spent_ns += clock_now_ns() - began_ns;
	return vector_push(&huge->processes, process) ? NULL : &error_no_memory;
}

/* Warn once what is missing and what the report shows instead. */
static void warn_of_unread(struct recorder *recorder, pid_t pid, const char *reason)
{
	if (!recorder->jobs.memory->residency_reported)
		recorder_message(recorder, true,
				 "cannot read which pages of process %d are resident (/proc/%d/pagemap: %s): the "
				 "report uses RSS and committed bytes instead",
				 pid, pid, reason);
	recorder->jobs.memory->residency_reported = true;
}

/* A reading that only serves if the command ends by itself: nobody misses it otherwise. */
static bool is_spare(const struct recorder *recorder, bool live)
{
	return live && recorder->jobs.memory->start_pages_read && !recorder->options->snapshot_interval_ns;
}

/* `final`: NULL during the recording, when huge and swapped pages are not read. `shared`: NULL if shared pages are not
 * wanted; those of a process of which Pss is not read are left out, because they take as long. */
static struct mmt_error *read_process(struct recorder *recorder, struct traced_process *process,
				      struct final_residency *final, process_residencies *processes,
				      process_residencies *shared)
{
	bool live = !final;
	struct process_residency *pages;
	struct residency_reader reader;
	struct mmt_error *error = NULL;
	size_t huge_count = final ? final->huge.processes.count : 0;
	uint64_t before = 0, after = 0, swapped;
	bool gone, ended, small, reads_smaps;

	if (process->pagemap < 0) {
		int failure = is_spare(recorder, live) ? 0 : -process->pagemap;

		if (failure == EACCES || failure == EPERM)
			warn_of_unread(recorder, process->pid, "permission denied");
		else if (failure == EMFILE || failure == ENFILE)
			warn_of_unread(recorder, process->pid, "too many files are open");
		else if (failure == ENOENT && !proc_has_ended(process->pid))
			warn_of_unread(recorder, process->pid, "not in this kernel");
		return NULL;
	}
	residency_take(&reader, &recorder->calls, process->pid, process->pagemap);
	process->pagemap = -EBADF;
	pages = vector_append(processes);
	if (!pages) {
		residency_close(&reader);
		return &error_no_memory;
	}
	pages->pid = process->pid;
	pages->time_ns = clock_now_ns();
	reader.gave_up |= !resident_series_size(process->pid, &before) && live;
	reader.wants[PAGES_HUGE] = !live;
	swapped = live ? 0 : read_swapped(process->pid);
	small = pss_expected_ns(before, 0, 0) <= LIMIT_PSS_WALK_NS;
	reads_smaps = !live && small && recorder->jobs.memory->smaps_spent_ns < LIMIT_SMAPS_NS && is_swap_used();
	reader.wants[PAGES_SWAPPED] = swapped || reads_smaps;
	reader.wants[PAGES_SHARED] = shared && small;
	error = live ? read_live_ranges(recorder, &reader, process, pages)
		     : residency_read_ranges(&reader, process->ranges.items, process->ranges.count, pages);
	if (!error && !live && !reader.gave_up && reader.scan)
		error = take_huge_pages(recorder, &reader, &final->huge);
	gone = !residency_is_valid(&reader);
	if (!error && reader.wants[PAGES_SWAPPED] && !reader.gave_up && !gone)
		error = take_swapped(recorder, &reader, process->pid, swapped, reads_smaps ? &pages->runs : NULL,
				     &final->swapped);
	if (!error && reader.wants[PAGES_SHARED] && !reader.gave_up && !gone)
		error = take_pages(&reader.found[PAGES_SHARED], process->pid, 0, shared);
	residency_close(&reader);
	/* The process may grow during the reading, so the sum of its pages lies between the RSS before and after. */
	ended = !resident_series_size(process->pid, &after) || !after;
	if (before && !ended)
		pages->resident_bytes = before / 2 + after / 2;
	/* A partial sum would be a wrong number. Leave the process out: its residency is unknown. */
	if (!error && (reader.gave_up || gone)) {
		if (!is_spare(recorder, live) && !ended && !proc_has_ended(process->pid))
			warn_of_unread(recorder, process->pid,
				       gone ? "it has executed another program"
					    : "there are too many, or it takes too long");
		vector_deinit(&pages->runs);
		processes->count--;
		if (final)
			final->huge.processes.count = huge_count;
	}
	return error;
}

static size_t count_with_ranges(const struct recorder *recorder)
{
	size_t count = 0;

	process_table_each(process, &recorder->processes, true)
		count += process->ranges.count > 0;
	return count;
}

struct mmt_error *read_start_residency(struct recorder *recorder)
{
	struct mmt_error *error = NULL;
	const uint64_t end_ns = clock_now_ns() + LIMIT_START_NS;
	const size_t process_count = count_with_ranges(recorder);
	process_residencies *processes = &recorder->jobs.memory->start_residency;
	process_residencies *shared = process_count > 1 ? &recorder->jobs.memory->start_shared : NULL;
	size_t runs = 0, left_out = 0;

	process_table_each(process, &recorder->processes, !error) {
		size_t count = processes->count;

		left_out += process->ranges.count && count && (runs > LIMIT_START_RUNS || clock_now_ns() > end_ns);
		if (process->ranges.count && !left_out)
			error = read_process(recorder, process, NULL, processes, shared);
		traced_process_drop_ranges(process);
		runs += processes->count > count ? processes->items[count].runs.count : 0;
		runs += shared && shared->count ? shared->items[shared->count - 1].runs.count : 0;
	}
	if (left_out)
		recorder_message(recorder, true,
				 "the resident pages of %zu of %zu processes were not read at the start: there are too "
				 "many, or it takes too long; the report does not say in which memory they grew",
				 left_out, process_count);
	recorder->jobs.memory->start_pages_read = true;
	return error;
}

struct mmt_error *read_final_residency(struct recorder *recorder, struct final_residency *pages)
{
	process_residencies *shared = count_with_ranges(recorder) > 1 ? &pages->shared : NULL;
	struct mmt_error *error = NULL;

	process_table_each(process, &recorder->processes, !error) {
		if (process->ranges.count)
			error = read_process(recorder, process, pages, &pages->resident, shared);
	}
	return error;
}

struct mmt_error *record_residency(struct recorder *recorder, struct traced_process *process)
{
	process_residencies processes = {0};
	struct mmt_error *error =
	    process->ranges.count ? read_process(recorder, process, NULL, &processes, NULL) : NULL;
	const struct process_residency *pages = processes.items;
	size_t count = !error && processes.count ? pages->runs.count : 0, first = 0;
	bool more = !error && processes.count;

	/* A record for each part of the runs, and one if there are none. */
	while (more) {
		size_t end = count - first > RESIDENT_RUNS_PER_RECORD ? first + RESIDENT_RUNS_PER_RECORD : count;
		struct buffer record;

		more = end < count;
		own_record_begin_bytes(&record);
		buffer_put_u32(&record, recorder->jobs.memory->page_readings);
		buffer_put_u32(&record, more ? 0 : RESIDENT_PAGES_LAST);
		buffer_put_u64(&record, pages->resident_bytes);
		for (; first < end; first++) {
			buffer_put_u64(&record, pages->runs.items[first].start);
			buffer_put_u64(&record, pages->runs.items[first].end);
		}
		error = own_record_append_bytes(recorder, &record, pages->pid, pages->time_ns, RESIDENT_PAGES_ID)
			    ?: ring_reader_give_way(recorder);
		more &= !error;
	}
	process_residencies_deinit(&processes);
	traced_process_drop_ranges(process);
	return error;
}
