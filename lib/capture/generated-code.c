// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/generated-code.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/drain.h"
#include "capture/proc.h"
#include "capture/residency.h"

#define PIECE_BYTES (256u << 10) /* the rings are looked after between two of these */

/* Which of the process's generated code is in memory. */
static struct mmt_error *find_pages(const struct process_ranges *ranges, struct process_residency *pages)
{
	struct residency_reader reader;
	struct mmt_error *error = NULL;

	if (!residency_open(&reader, ranges->pid))
		return NULL;
	for (size_t i = 0; !error && i < ranges->ranges.count; i++) {
		const struct mapped_range *range = &ranges->ranges.items[i];

		if (range->generated)
			error = residency_read(&reader, range->start, range->end, pages);
	}
	residency_close(&reader);
	return error;
}

static bool is_blank(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

/* Page by page: what has not been written yet holds no code. */
static struct mmt_error *keep_pages(struct recorder *recorder, size_t process, uint64_t start, const uint8_t *bytes,
				    size_t size)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct mmt_error *error = NULL;

	for (size_t offset = 0; !error && offset < size; offset += page_bytes) {
		size_t count = size - offset < page_bytes ? size - offset : page_bytes;

		if (is_blank(bytes + offset, count))
			continue;
		recorder->code_bytes += count;
		error = code_copies_add(&recorder->code, &recorder->code.processes.items[process], start + offset,
					bytes + offset, count);
	}
	return error;
}

static struct mmt_error *copy_run(struct recorder *recorder, size_t process, int memory, const struct resident_run *run)
{
	CLEANUP(free) uint8_t *piece = malloc(PIECE_BYTES);
	struct mmt_error *error = piece ? NULL : &error_no_memory;
	uint64_t position = run->start;

	while (!error && position < run->end && recorder->code_bytes < CODE_BYTES_MAX) {
		uint64_t wanted = run->end - position;
		ssize_t count;

		if (wanted > PIECE_BYTES)
			wanted = PIECE_BYTES;
		if (wanted > CODE_BYTES_MAX - recorder->code_bytes)
			wanted = CODE_BYTES_MAX - recorder->code_bytes;
		count = pread(memory, piece, (size_t)wanted, (off_t)position);
		if (count <= 0) /* unmapped meanwhile, or the process has gone */
			return NULL;
		error = keep_pages(recorder, process, position, piece, (size_t)count);
		position += (uint64_t)count;
		if (!error)
			error = drain_filling_rings(recorder);
	}
	return error;
}

static struct mmt_error *copy_process(struct recorder *recorder, const struct process_ranges *ranges)
{
	struct process_residency pages = {0};
	struct mmt_error *error = find_pages(ranges, &pages);
	CLEANUP(close) int memory = -1;
	struct process_code *code;
	char path[64];

	if (!error && pages.runs.count) {
		snprintf(path, sizeof(path), "/proc/%d/mem", proc_living_thread(ranges->pid));
		memory = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (memory >= 0) {
		code = vector_append(&recorder->code.processes);
		if (code)
			code->pid = ranges->pid;
		else
			error = &error_no_memory;
	}
	for (size_t i = 0; !error && memory >= 0 && i < pages.runs.count; i++)
		error = copy_run(recorder, recorder->code.processes.count - 1, memory, &pages.runs.items[i]);
	vector_deinit(&pages.runs);
	return error;
}

struct mmt_error *generated_code_copy(struct recorder *recorder)
{
	struct mmt_error *error = NULL;

	buffer_init(&recorder->code.bytes, CODE_BYTES_MAX);
	for (size_t i = 0; !error && i < recorder->final_ranges.count; i++)
		error = copy_process(recorder, &recorder->final_ranges.items[i]);
	if (!error && recorder->code_bytes >= CODE_BYTES_MAX)
		recorder_message(recorder, true,
				 "not all generated code is copied: a recording may have %u MiB of it; callers of code "
				 "without frame pointers may be missing",
				 CODE_BYTES_MAX >> 20);
	return error;
}
