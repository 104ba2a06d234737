// SPDX-License-Identifier: LGPL-2.1-or-later
/* Samples of huge pages: see residency.h. */

#include "capture/procfs/clock.h"
#include "capture/procfs/blocking-calls.h"
#include "capture/procfs/proc.h"
#include "capture/memory/residency.h"

#define SETTINGS "/sys/kernel/mm/transparent_hugepage/"

enum huge_setting huge_pages_setting(void)
{
	CLEANUP(free) char *text = NULL;

	if (text_file_read(-1, SETTINGS "enabled", &text) < 0)
		return HUGE_SETTING_UNKNOWN;
	return strstr(text, "[always]")	   ? HUGE_ALWAYS
	       : strstr(text, "[madvise]") ? HUGE_MADVISE
	       : strstr(text, "[never]")   ? HUGE_NEVER
					   : HUGE_SETTING_UNKNOWN;
}

static uint64_t align_up(uint64_t address, uint64_t alignment)
{
	return (address + alignment - 1) & ~(alignment - 1);
}

static uint64_t count_huge_pages(const struct resident_run *run, uint64_t huge_bytes)
{
	uint64_t start = align_up(run->start, huge_bytes);

	return start < run->end ? (run->end - start) / huge_bytes : 0;
}

/* Mix the bits of a number as splitmix64 does. */
static uint64_t scatter(uint64_t number)
{
	number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
	number = (number ^ number >> 27) * 0x94d049bb133111eb;
	return number ^ number >> 31;
}

struct sample_argument {
	uint64_t address;
	uint64_t part_pages; /* the huge page has HUGE_PAGES_PER_SAMPLE parts */
	uint64_t page_bytes;
};

struct sample_result {
	uint64_t read_bytes, zero_bytes;
};

/* Runs in the helper. Read a random page of each part, compare it with zero, and overwrite the copy. */
static void sample_huge_page(struct blocking_call *call)
{
	const struct sample_argument *wanted = call->argument;
	CLEANUP(free) uint8_t *page = malloc(wanted->page_bytes);
	size_t size = page ? wanted->page_bytes : 0;
	struct sample_result *sample = call->result;

	*sample = (struct sample_result){0};
	for (uint64_t i = 0; size && i < HUGE_PAGES_PER_SAMPLE; i++) {
		uint64_t number = i * wanted->part_pages + scatter(wanted->address + i) % wanted->part_pages;

		if (pread(call->given, page, size, (off_t)(wanted->address + number * size)) != (ssize_t)size)
			break;
		sample->read_bytes += size;
		sample->zero_bytes += !page[0] && !memcmp(page, page + 1, size - 1) ? size : 0;
	}
	if (page)
		explicit_bzero(page, size);
}

void huge_pages_sample(struct residency_reader *reader, uint64_t end_ns, struct process_huge_pages *huge)
{
	const resident_runs *runs = &reader->found[PAGES_HUGE].runs;
	struct sample_argument argument = {.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	uint64_t huge_bytes = (uint64_t)text_file_number(-1, SETTINGS "hpage_pmd_size", 0), total = 0;
	CLEANUP(close) int memory = -1;

	argument.part_pages = huge_bytes / argument.page_bytes / HUGE_PAGES_PER_SAMPLE;
	if (!argument.part_pages || huge_bytes & (huge_bytes - 1))
		return;
	for (size_t i = 0; i < runs->count; i++)
		total += count_huge_pages(&runs->items[i], huge_bytes);
	if (total * huge_bytes < HUGE_SAMPLED_BYTES_MIN)
		return;
	memory = process_file_open(reader->calls, reader->pid, "mem");
	if (memory < 0)
		return;
	for (uint64_t i = 0; i < total && i < LIMIT_HUGE_SAMPLES_READ && clock_now_ns() < end_ns; i++) {
		/* Multiples of the golden ratio spread the samples evenly over all huge pages, however many samples
		 * there is time for, and whatever pattern the program's memory has. */
		uint64_t number = (uint64_t)((unsigned __int128)((i + 1) * 0x9e3779b97f4a7c15) * total >> 64);
		uint64_t began_ns = blocking_calls_clock_ns(reader->calls);
		struct sample_result sample = {0};
		struct blocking_call call =
		    BLOCKING_CALL(place_of_process(reader->pid), sample_huge_page, &argument, memory, &sample);
		const struct resident_run *run = runs->items;

		for (uint64_t count; number >= (count = count_huge_pages(run, huge_bytes)); run++)
			number -= count;
		argument.address = align_up(run->start, huge_bytes) + number * huge_bytes;
		if (residency_has_page(reader, argument.address) && blocking_call(reader->calls, &call)) {
			huge->sampled_bytes += sample.read_bytes;
			huge->zero_bytes += sample.zero_bytes;
		}
		residency_pause(reader, blocking_calls_clock_ns(reader->calls) - began_ns);
	}
}
