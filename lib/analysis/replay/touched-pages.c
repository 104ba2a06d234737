// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/replay.h"

#include <errno.h>

#define HUGE_PAGE_BYTES_MAX (1ull << 30)
#define ADVICE_OF_RANGE 3 /* the argument of a call that names its range before */

void touched_pages_deinit(struct touched_pages *touched)
{
	map_each(space, &touched->spaces, true) {
		struct page_faults *faults = space->pointer;

		intervals_deinit(&faults->runs);
		free(faults);
	}
	map_deinit(&touched->spaces);
}

struct page_faults *touched_pages_of(const struct touched_pages *touched, const struct process *process)
{
	return touched->spaces.count ? map_get_pointer(&touched->spaces, (uintptr_t)process->space) : NULL;
}

/* A major fault in anonymous memory reads a page back from swap, so the page keeps the stack that it has. The size of a
 * page in the file is not trusted, and only a part of a huge page may be mapped. */
struct mmt_error *touched_pages_note(struct replay *replay, const struct process *process, const struct event *event,
				     uint32_t stack)
{
	struct touched_pages *touched = &replay->touched;
	uint64_t address = event->call.arguments[FAULT_ADDRESS], bytes = event->call.arguments[FAULT_PAGE_BYTES];
	const struct space_interval *interval = space_find(process->space, address);
	struct page_fault fault = {
	    .stack = stack, .weight = (uint32_t)event->call.arguments[FAULT_WEIGHT], .time_ns = event->time_ns};
	struct page_faults *faults = touched_pages_of(touched, process);

	if (!interval || (event->call.result && !interval->attributes.inode))
		return NULL;
	if (bytes < replay->notes.memory.page_bytes || bytes > HUGE_PAGE_BYTES_MAX || bytes & (bytes - 1))
		bytes = replay->notes.memory.page_bytes;
	fault.start = address & -bytes;
	fault.end = fault.start + bytes;
	fault.start = larger_of(fault.start, interval->start);
	fault.end = smaller_of(fault.end, interval->end);
	/* The zero page is not resident: a write replaces it, with another fault. */
	if (event->call.arguments[FAULT_ZERO_PAGE] && !interval->attributes.shared && !interval->attributes.inode)
		return touched_pages_forget(touched, process, fault.start, fault.end) ? NULL : &error_no_memory;
	if (touched->run_count >= LIMIT_TOUCHED_RUNS) {
		touched->left_out += fault.weight;
		return NULL;
	}
	if (!faults) {
		faults = calloc(1, sizeof(*faults));
		if (!faults || !map_put_pointer(&touched->spaces, (uintptr_t)process->space, faults)) {
			free(faults);
			return &error_no_memory;
		}
	}
	touched->run_count -= faults->runs.count;
	if (!page_faults_add(faults, &fault))
		return &error_no_memory;
	touched->run_count += faults->runs.count;
	return NULL;
}

bool touched_pages_forget(struct touched_pages *touched, const struct process *process, uint64_t start, uint64_t end)
{
	struct page_faults *faults = touched_pages_of(touched, process);
	uint64_t position = start;
	struct page_fault cut;
	bool ok;

	if (!faults)
		return true;
	/* Then no run is cut in two: who touched the upper part is no longer known. */
	if (touched->run_count >= LIMIT_TOUCHED_RUNS && page_faults_next(faults, &position, UINT64_MAX, &cut) &&
	    cut.start <= start && cut.end > end) {
		touched->left_out++;
		end = cut.end;
	}
	touched->run_count -= faults->runs.count;
	ok = page_faults_forget(faults, start, end);
	touched->run_count += faults->runs.count;
	return ok;
}

bool touched_pages_apply(struct replay *replay, const struct process *process, const struct event *event)
{
	const uint64_t *arguments = event->call.arguments;
	struct page_faults *faults = touched_pages_of(&replay->touched, process);
	uint64_t page_bytes = replay->notes.memory.page_bytes, length;
	bool ok;

	if (!faults)
		return true;
	/* With ENOMEM, madvise() has gone on behind a hole. */
	if (call_describe(event->call.call)->advice == ADVICE_OF_RANGE &&
	    (!event->call.result || event->call.result == -ENOMEM) && arguments[0] <= UINT64_MAX - arguments[1] &&
	    (arguments[2] == MADV_DONTNEED || arguments[2] == MADV_FREE || arguments[2] == MADV_REMOVE))
		return touched_pages_forget(&replay->touched, process, arguments[0],
					    (arguments[0] + arguments[1] + page_bytes - 1) & -page_bytes);
	if (event->call.call != CALL_MREMAP || event->call.result <= 0 || !arguments[1] ||
	    (uint64_t)event->call.result == arguments[0])
		return true;
	length = smaller_of(arguments[1], arguments[2]);
	/* Then a move costs too much: who touched these pages is no longer known. */
	replay->touched.move_steps += faults->runs.count;
	if (replay->touched.move_steps > LIMIT_MOVE_STEPS || replay->touched.run_count >= LIMIT_TOUCHED_RUNS) {
		replay->touched.left_out++;
		return touched_pages_forget(&replay->touched, process, arguments[0],
					    saturating_add(arguments[0], length, UINT64_MAX)) &&
		       touched_pages_forget(&replay->touched, process, (uint64_t)event->call.result,
					    saturating_add((uint64_t)event->call.result, length, UINT64_MAX));
	}
	replay->touched.run_count -= faults->runs.count;
	ok = page_faults_move(faults, arguments[0], (uint64_t)event->call.result,
			      (length + page_bytes - 1) & -page_bytes);
	replay->touched.run_count += faults->runs.count;
	return ok;
}
