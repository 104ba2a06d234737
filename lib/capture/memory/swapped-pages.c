// SPDX-License-Identifier: LGPL-2.1-or-later
/* How much of each mapping is swapped out, from /proc/PID/smaps. residency.c finds the pages in the pagemap, which
 * shows no swapped shared memory, and before Linux 6.15 takes guard pages for swapped ones. */
#include "capture/memory/residency.h"

#include <inttypes.h>

#include "base/strings.h"
#include "capture/procfs/blocking-calls.h"
#include "capture/procfs/proc.h"

/* Advance to the run that ends above `address`. */
static const struct resident_run *find_run(const resident_runs *runs, size_t *position, uint64_t address)
{
	while (*position < runs->count && runs->items[*position].end <= address)
		++*position;
	return *position < runs->count ? &runs->items[*position] : NULL;
}

static bool append(resident_runs *runs, uint64_t start, uint64_t end)
{
	if (runs->count && runs->items[runs->count - 1].end == start) {
		runs->items[runs->count - 1].end = end;
		return true;
	}
	return start >= end || vector_push(runs, ((struct resident_run){start, end}));
}

/* The mapping from `start` to `end` has this much in swap. Which pages is only known if the pagemap shows as many:
 * otherwise the first that are not resident count, or the first of those that it shows. */
static bool take_mapping(struct swapped_pages *pages, uint64_t swapped_bytes)
{
	uint64_t position = pages->start;
	struct page_cursor found_pages = {.runs = pages->found, .next = pages->at_found};
	uint64_t found_bytes = page_cursor_count(&found_pages, pages->start, pages->end);
	uint64_t others = swapped_bytes > found_bytes ? swapped_bytes - found_bytes : 0, left = swapped_bytes;

	while (position < pages->end && left) {
		const struct resident_run *found = find_run(pages->found, &pages->at_found, position);
		const struct resident_run *resident = find_run(pages->resident, &pages->at_resident, position);
		bool is_found = found && found->start <= position;
		uint64_t end = pages->end, taken;

		if (found)
			end = smaller_of(is_found ? found->end : found->start, end);
		if (!is_found && resident && resident->start <= position) {
			position = resident->end < end ? resident->end : end;
			continue;
		}
		if (!is_found && resident && resident->start < end)
			end = resident->start;
		taken = is_found ? left : others;
		taken = taken < end - position ? taken : end - position;
		if (taken && !append(&pages->corrected, position, position + taken))
			return false;
		left -= taken;
		others -= is_found ? 0 : taken;
		position = end;
	}
	return true;
}

bool swapped_pages_line(struct swapped_pages *pages, const char *line)
{
	uint64_t start, end;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2) {
		pages->start = start;
		pages->end = end;
	} else if (starts_with(line, "Swap:")) {
		return take_mapping(pages, text_file_bytes(line, "Swap"));
	}
	return true;
}

struct mmt_error *swapped_pages_correct(struct blocking_calls *calls, pid_t pid, const resident_runs *resident,
					resident_runs *swapped)
{
	CLEANUP(close) int fd = process_file_open(calls, pid, "smaps");
	struct swapped_pages pages = {.resident = resident, .found = swapped};
	struct mapping_scan scan = {0};
	const char *line;
	bool ok = true, complete;
	size_t length;

	if (fd >= 0 && !mapping_scan_begin(&scan, calls, pid, fd))
		return &error_no_memory;
	while (fd >= 0 && ok && mapping_scan_line(&scan, fd, &line, &length))
		ok = swapped_pages_line(&pages, line);
	complete = scan.complete;
	mapping_scan_end(&scan);
	if (ok && !complete) { /* what the pagemap shows is the best there is */
		vector_deinit(&pages.corrected);
		return NULL;
	}
	vector_deinit(swapped);
	*swapped = pages.corrected;
	return ok ? NULL : &error_no_memory;
}
