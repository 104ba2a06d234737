// SPDX-License-Identifier: LGPL-2.1-or-later
/* Limits of memory: see residency.h. */

#include <sys/resource.h>

#include "capture/memory/residency.h"
#include "capture/recorder/recorder.h"

/* The soft limit in the line "NAME   SOFT   HARD   bytes". */
static uint64_t find_soft_limit(const char *limits, const char *name)
{
	const char *line = strstr(limits, name);
	unsigned long long bytes;

	/* The number may be "unlimited". */
	return line && sscanf(line + strlen(name), "%llu", &bytes) == 1 ? bytes : NO_LIMIT_BYTES;
}

/* Returns the number in a line without a unit; 0: there is no such line. */
static uint64_t find_number(const char *text, const char *name)
{
	return text_file_bytes(text, name) / 1024;
}

void limits_parse_process(const char *limits, const char *status, struct memory_limit parsed[NOTE_LIMITS])
{
	parsed[NOTE_LIMIT_ADDRESS_SPACE - NOTE_LIMIT_FIRST].bytes = find_soft_limit(limits, "Max address space");
	parsed[NOTE_LIMIT_DATA - NOTE_LIMIT_FIRST].bytes = find_soft_limit(limits, "Max data size");
	parsed[NOTE_LIMIT_LOCKED - NOTE_LIMIT_FIRST].bytes = find_soft_limit(limits, "Max locked memory");
	parsed[NOTE_LIMIT_LOCKED - NOTE_LIMIT_FIRST].used = text_file_bytes(status, "VmLck");
}

void limits_parse_machine(const char *meminfo, int64_t overcommit, struct memory_limit parsed[NOTE_LIMITS])
{
	uint64_t page = text_file_bytes(meminfo, "Hugepagesize"), total = find_number(meminfo, "HugePages_Total");
	uint64_t left = find_number(meminfo, "HugePages_Free") - find_number(meminfo, "HugePages_Rsvd");

	if (page)
		parsed[NOTE_LIMIT_HUGE_PAGES - NOTE_LIMIT_FIRST] =
		    (struct memory_limit){.bytes = total * page, .used = (total - left) * page};
	if (overcommit == 0)
		parsed[NOTE_LIMIT_MEMORY - NOTE_LIMIT_FIRST].bytes =
		    text_file_bytes(meminfo, "MemTotal") + text_file_bytes(meminfo, "SwapTotal");
	if (overcommit == 2)
		parsed[NOTE_LIMIT_COMMIT - NOTE_LIMIT_FIRST] = (struct memory_limit){
		    .bytes = text_file_bytes(meminfo, "CommitLimit"), .used = text_file_bytes(meminfo, "Committed_AS")};
}

static void clear(struct memory_limit limits[NOTE_LIMITS])
{
	for (unsigned i = 0; i < NOTE_LIMITS; i++)
		limits[i] = (struct memory_limit){.bytes = NO_LIMIT_BYTES};
}

/* Writes the limits that exist and differ from `noted`, which then are these. */
static struct mmt_error *note(struct recorder *recorder, pid_t pid, uint64_t now_ns,
			      const struct memory_limit limits[NOTE_LIMITS], struct memory_limit noted[NOTE_LIMITS])
{
	struct mmt_error *error = NULL;

	for (unsigned i = 0; !error && i < NOTE_LIMITS; i++) {
		if (limits[i].bytes != NO_LIMIT_BYTES &&
		    (limits[i].bytes != noted[i].bytes || limits[i].used != noted[i].used))
			error = recorder_note(recorder, NOTE_LIMIT_FIRST + i, pid, now_ns, limits[i].bytes,
					      limits[i].used, NULL);
	}
	memcpy(noted, limits, NOTE_LIMITS * sizeof(*noted));
	return error;
}

struct mmt_error *limits_note_process(struct recorder *recorder, struct traced_process *process)
{
	CLEANUP(free) char *text = proc_text(process->pid, "limits");
	CLEANUP(free) char *status = text ? proc_text(process->pid, "status") : NULL;
	struct memory_limit limits[NOTE_LIMITS], *noted = process->limits;

	if (!status)
		return NULL;
	clear(limits);
	limits_parse_process(text, status, limits);
	return note(recorder, process->pid, clock_now_ns(), limits, noted);
}

struct mmt_error *limits_note_change(struct recorder *recorder, struct traced_process *process)
{
	static const int resources[] = {[NOTE_LIMIT_ADDRESS_SPACE - NOTE_LIMIT_FIRST] = RLIMIT_AS,
					[NOTE_LIMIT_DATA - NOTE_LIMIT_FIRST] = RLIMIT_DATA,
					[NOTE_LIMIT_LOCKED - NOTE_LIMIT_FIRST] = RLIMIT_MEMLOCK};
	struct rlimit limit;

	for (size_t i = 0; i < sizeof(resources) / sizeof(*resources); i++) {
		if (!prlimit(process->pid, resources[i], NULL, &limit) && limit.rlim_cur != process->limits[i].bytes)
			return limits_note_process(recorder, process);
	}
	return NULL;
}

struct mmt_error *limits_note_machine(struct recorder *recorder, uint64_t now_ns)
{
	struct memory_limit limits[NOTE_LIMITS], *noted = recorder->jobs.memory->machine_limits;
	CLEANUP(free) char *text = NULL;

	if (text_file_read(-1, "/proc/meminfo", &text) < 0)
		return NULL;
	if (!recorder->jobs.memory->resident_series.begin_ns)
		clear(noted);
	clear(limits);
	limits_parse_machine(text, text_file_number(-1, "/proc/sys/vm/overcommit_memory", -1), limits);
	return note(recorder, 0, now_ns, limits, noted);
}
