// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/generating-program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "capture/clock.h"
#include "capture/known-processes.h"
#include "capture/mapping-query.h"
#include "capture/mapping-scan.h"
#include "capture/proc.h"

void generating_program_init(struct generating_program *program, pid_t pid)
{
	*program = (struct generating_program){.pid = pid,
					       .until_ns = UINT64_MAX,
					       .memory = -1,
					       .maps = -1,
					       .pagemap.fd = -1,
					       .pages.page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
}

void generating_program_deinit(struct generating_program *program)
{
	generating_program_close(program);
	code_ranges_deinit(&program->ranges);
	code_pages_deinit(&program->pages);
}

void generating_program_close(struct generating_program *program)
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

/* *short_ret: there are too few descriptors for it. */
static int spare(int fd, bool at_end, bool *short_ret)
{
	bool is_open = fd >= 0;

	if (!at_end)
		fd = known_processes_spare(fd);
	*short_ret |= fd < 0 && (is_open || errno == EMFILE || errno == ENFILE);
	return fd;
}

void generating_program_open(struct generating_program *program, bool at_end)
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
		generating_program_close(program);
}

/* What is mapped at `address`. Linux before 6.11 has no query for that, and its list of all mappings is read instead.
 * *time_ns: the answer applies to code noted before this time. False: out of memory. */
static bool ask(struct generating_program *program, uint64_t address, size_t *lines_left, enum mapped_kind *kind_ret,
		uint64_t *end_ret, uint64_t *time_ns)
{
	*kind_ret = mapping_query(program->maps, address, end_ret);
	if (*kind_ret != MAPPED_UNTOLD)
		return true;
	if (!program->scan.text && !mapping_scan_begin(&program->scan, program->maps))
		return false;
	*kind_ret = mapping_scan_query(&program->scan, program->maps, address, lines_left, end_ret);
	*time_ns = program->scan.begin_ns;
	return true;
}

/* False: out of memory. */
static bool tidy_step(struct generating_program *program, uint64_t now_ns)
{
	const struct code_range *range = NULL;
	size_t before = program->ranges.count, lines_left = TIDY_STEP_LINES;

	if (!program->tidy_position) {
		program->tidied = 0;
		program->tidied_in_vain = false;
	}
	for (size_t i = 0; program->maps >= 0 && i < TIDY_STEP_RANGES; i++) {
		uint64_t start = program->tidy_position, end, time_ns = now_ns;
		enum mapped_kind kind;

		range = code_ranges_from(&program->ranges, start);
		if (!range)
			break;
		start = range->start > start ? range->start : start;
		if (!ask(program, start, &lines_left, &kind, &end, &time_ns))
			return false;
		if (kind == MAPPED_UNTOLD)
			break; /* the next step goes on here */
		if (kind != MAPPED_CODE && !code_ranges_remove(&program->ranges, start, end, time_ns))
			return false;
		program->tidy_position = end;
	}
	program->tidied += before > program->ranges.count ? before - program->ranges.count : 0;
	program->tidy_ns = clock_now_ns() + TIDY_STEP_NS;
	if (range)
		return true;
	/* Where it was worth the time it is done again as soon as there is need. */
	mapping_scan_end(&program->scan);
	program->tidy_position = 0;
	program->tidied_in_vain = program->tidied < TIDY_WORTH_RANGES;
	if (program->ranges.count >= TIDY_FROM)
		program->tidy_ns += TIDY_INTERVAL_NS;
	return true;
}

bool generating_program_tidy(struct generating_program *program, int64_t *spent_ns)
{
	uint64_t now_ns, begin_ns;
	bool done;

	if (program->ended || program->ranges.count < TIDY_FROM)
		return true;
	now_ns = clock_now_ns();
	/* What a ring holds is told of at once: while that is more than there is room for, steps do not wait. */
	if (now_ns < program->tidy_ns && (program->ranges.count < CODE_RANGES_MAX || program->tidied_in_vain))
		return true;
	begin_ns = clock_thread_ns();
	if (!program->opened)
		generating_program_open(program, false);
	done = tidy_step(program, now_ns);
	*spent_ns += (int64_t)(clock_thread_ns() - begin_ns);
	return done;
}
