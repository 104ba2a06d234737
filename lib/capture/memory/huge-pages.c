// SPDX-License-Identifier: LGPL-2.1-or-later
/* Samples of huge pages: see residency.h. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "capture/procfs/clock.h"
#include "capture/procfs/blocking-calls.h"
#include "capture/procfs/proc.h"
#include "capture/memory/residency.h"

/* Has the process a userfaultfd? Then reading memory that it discards at the same time could wait for its fault
 * handler. */
static enum huge_sampling check_userfaultfd(pid_t pid)
{
	char path[64], target[64];
	const struct dirent *entry;
	size_t count = 0;
	bool found = false;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	directory = opendir(path);
	if (!directory)
		return errno == EACCES || errno == EPERM ? HUGE_NOT_PERMITTED : HUGE_NOT_SAMPLED;
	while (!found && (entry = readdir(directory))) {
		ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);

		target[length > 0 ? length : 0] = '\0';
		found = ++count > LIMIT_DESCRIPTORS || strstr(target, "[userfaultfd]");
	}
	closedir(directory);
	return found ? HUGE_NOT_SAFE : HUGE_SAMPLED;
}

static uint64_t huge_page_bytes(void)
{
	CLEANUP(free) char *text = NULL;
	uint64_t bytes;

	if (text_file_read(-1, "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", &text) < 0)
		return 0;
	bytes = strtoull(text, NULL, 10);
	return bytes & (bytes - 1) ? 0 : bytes;
}

enum huge_setting huge_pages_setting(void)
{
	CLEANUP(free) char *text = NULL;

	if (text_file_read(-1, "/sys/kernel/mm/transparent_hugepage/enabled", &text) < 0)
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

/* Mixes the bits of a number as splitmix64 does. Programs use memory in regular patterns, so positions at equal
 * distances could all fall on the same part of a pattern. */
static uint64_t scatter(uint64_t number)
{
	number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
	number = (number ^ number >> 27) * 0x94d049bb133111eb;
	return number ^ number >> 31;
}

/* Returns a random position in part `i` of `parts` equal parts of `count`. */
static uint64_t place_in_part(uint64_t count, uint64_t parts, uint64_t i, uint64_t seed)
{
	uint64_t first = count * i / parts, end = count * (i + 1) / parts;

	return first + scatter(seed + i) % (end > first ? end - first : 1);
}

struct huge_reading {
	struct residency_reader *reader;
	pid_t tid;
	int memory; /* -1: not needed */
	uint64_t huge_bytes, page_bytes;
	struct process_huge_pages *huge;
};

static bool is_zero(const uint8_t *page, uint64_t bytes)
{
	return !page[0] && !memcmp(page, page + 1, bytes - 1);
}

struct sample_argument {
	pid_t tid;
	uint64_t page_bytes;
	struct iovec pages[HUGE_PAGES_PER_SAMPLE];
};

static ssize_t read_pages(const struct sample_argument *wanted, int memory, uint8_t *contents)
{
	const struct iovec local = {contents, HUGE_PAGES_PER_SAMPLE * wanted->page_bytes};
	size_t size = 0;

	if (memory < 0)
		return process_vm_readv(wanted->tid, &local, 1, wanted->pages, HUGE_PAGES_PER_SAMPLE, 0);
	for (size_t i = 0; i < HUGE_PAGES_PER_SAMPLE; i++, size += wanted->page_bytes) {
		if (pread(memory, contents + size, wanted->page_bytes, (off_t)(uintptr_t)wanted->pages[i].iov_base) !=
		    (ssize_t)wanted->page_bytes)
			break;
	}
	return (ssize_t)size;
}

/* Reads the pages one by one, compares them with zero, and overwrites the copies. */
static size_t sample_pages(const void *argument, int given, void *result, int *opened_ret)
{
	const struct sample_argument *wanted = argument;
	CLEANUP(free) uint8_t *contents = malloc(HUGE_PAGES_PER_SAMPLE * wanted->page_bytes);
	struct huge_sample sample = {0};
	ssize_t count = 0;
	int failure;

	(void)opened_ret;
	if (contents)
		count = read_pages(wanted, given, contents);
	failure = errno;
	for (ssize_t i = 0; i < count / (ssize_t)wanted->page_bytes; i++) {
		sample.read_bytes += (uint32_t)wanted->page_bytes;
		if (is_zero(contents + (size_t)i * wanted->page_bytes, wanted->page_bytes))
			sample.zero_bytes += (uint32_t)wanted->page_bytes;
	}
	if (contents)
		explicit_bzero(contents, HUGE_PAGES_PER_SAMPLE * wanted->page_bytes);
	memcpy(result, &sample, sizeof(sample));
	errno = count < 0 ? failure : 0;
	return sizeof(sample);
}

static struct mmt_error *sample_huge_page(struct huge_reading *reading, uint64_t address)
{
	struct residency_reader *reader = reading->reader;
	uint64_t pages = reading->huge_bytes / reading->page_bytes, began_ns = blocking_calls_clock_ns(reader->calls);
	struct sample_argument argument = {.tid = reading->tid, .page_bytes = reading->page_bytes};
	struct huge_sample sample = {0};
	struct blocking_call call = {.place = place_of_process(reader->pid),
				     .run = sample_pages,
				     .argument = &argument,
				     .argument_bytes = sizeof(argument),
				     .given = reading->memory,
				     .result = &sample,
				     .result_bytes = sizeof(sample)};
	bool answered;

	for (uint64_t i = 0; i < HUGE_PAGES_PER_SAMPLE; i++) {
		uint64_t page = address + place_in_part(pages, HUGE_PAGES_PER_SAMPLE, i, address) * reading->page_bytes;

		argument.pages[i] = (struct iovec){(void *)(uintptr_t)page, reading->page_bytes};
	}
	answered = residency_has_page(reader, address) && blocking_call(reader->calls, &call);
	if (answered && errno == EPERM && call.given < 0) {
		/* The helper may not read this memory, but perhaps the recorder may open it. */
		call.given = reading->memory = process_file_open(reader->calls, reader->pid, "mem");
		errno = EPERM;
		answered =
		    call.given < 0 || (residency_has_page(reader, address) && blocking_call(reader->calls, &call));
	}
	if (answered && (errno == EPERM || errno == ENOSYS))
		reading->huge->sampling = HUGE_NOT_PERMITTED;
	sample.address = address;
	residency_pause(reader, blocking_calls_clock_ns(reader->calls) - began_ns);
	return !sample.read_bytes || vector_push(&reading->huge->samples, sample) ? NULL : &error_no_memory;
}

/* Chooses huge pages, evenly spread over all of them. Returns their number. */
static size_t choose_huge_pages(const struct huge_reading *reading, uint64_t total,
				uint64_t addresses[LIMIT_HUGE_SAMPLES_READ])
{
	size_t count = total < LIMIT_HUGE_SAMPLES_READ ? (size_t)total : LIMIT_HUGE_SAMPLES_READ;
	const struct resident_run *run = reading->huge->runs.items;
	uint64_t before = 0; /* number of huge pages in earlier runs */

	for (size_t i = 0; i < count; i++) {
		uint64_t number = place_in_part(total, count, i, total), pages;

		for (; number - before >= (pages = count_huge_pages(run, reading->huge_bytes)); run++)
			before += pages;
		addresses[i] = align_up(run->start, reading->huge_bytes) + (number - before) * reading->huge_bytes;
	}
	return count;
}

static int compare_samples(const void *left, const void *right)
{
	const struct huge_sample *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

#define PASSES 16 /* number of passes, so that the pages read until the time is over are evenly spread, too */

static struct mmt_error *sample_all(struct huge_reading *reading, uint64_t total, uint64_t end_ns)
{
	struct process_huge_pages *huge = reading->huge;
	uint64_t addresses[LIMIT_HUGE_SAMPLES_READ];
	size_t count = choose_huge_pages(reading, total, addresses);
	struct mmt_error *error = NULL;

	for (size_t pass = 0; pass < PASSES; pass++) {
		for (size_t i = pass; !error && i < count && huge->sampling == HUGE_SAMPLED; i += PASSES) {
			if (clock_now_ns() < end_ns)
				error = sample_huge_page(reading, addresses[i]);
			else if (!pass)
				huge->sampling = HUGE_NOT_SAMPLED;
		}
	}
	if (huge->sampling != HUGE_SAMPLED)
		vector_deinit(&huge->samples);
	else if (huge->samples.count)
		qsort(huge->samples.items, huge->samples.count, sizeof(*huge->samples.items), compare_samples);
	return error;
}

struct mmt_error *huge_pages_sample(struct residency_reader *reader, pid_t pid, uint64_t end_ns,
				    struct process_huge_pages *huge)
{
	struct huge_reading reading = {.reader = reader,
				       .tid = proc_living_thread(pid),
				       .memory = -1,
				       .huge_bytes = huge_page_bytes(),
				       .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
				       .huge = huge};
	struct mmt_error *error;
	uint64_t total = 0;

	huge->sampling = HUGE_NOT_SAMPLED;
	if (reading.huge_bytes < HUGE_PAGES_PER_SAMPLE * reading.page_bytes)
		return NULL;
	for (size_t i = 0; i < huge->runs.count; i++)
		total += count_huge_pages(&huge->runs.items[i], reading.huge_bytes);
	huge->sampling =
	    total * reading.huge_bytes < HUGE_SAMPLED_BYTES_MIN ? HUGE_TOO_LITTLE : check_userfaultfd(reading.tid);
	if (huge->sampling != HUGE_SAMPLED)
		return NULL;
	error = sample_all(&reading, total, end_ns);
	if (reading.memory >= 0)
		close(reading.memory);
	return error;
}
