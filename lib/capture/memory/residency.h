/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads which pages of a process are resident (PAGEMAP_SCAN, or pagemap), RSS over time, and samples of huge pages. */
#pragma once

#include "capture/memory/group-memory.h"
#include "capture/process/process-table.h"

/* Pages that are found beside the resident ones, if they are wanted. */
enum page_kind {
	PAGES_HUGE, /* of anonymous ranges */
	PAGES_SWAPPED,
	PAGES_SHARED, /* that other processes map, too */
	PAGE_KINDS
};

/* An open /proc/PID/pagemap. */
struct residency_reader {
	struct blocking_calls *calls;
	pid_t pid;
	int fd;
	bool scan;		 /* the kernel supports PAGEMAP_SCAN, so that not every page must be checked */
	bool gave_up;		 /* a limit of time or size was reached: the result is incomplete */
	uint64_t bytes;		 /* bytes of address space checked page by page */
	uint64_t reserved_bytes; /* those of reserved memory, which `bytes` does not include */
	uint64_t begin_ns;	 /* when checking page by page began; 0: not yet */
	uint64_t waited_ns;
	uint64_t slice_ns, paused_ns; /* time worked since the last pause; sum of all pauses */
	bool wants[PAGE_KINDS];	      /* set by the caller; huge pages need `scan` */
	bool no_guards; /* the kernel's PAGEMAP_SCAN does not know guard pages: the other kernels have none */
	struct process_residency scanned[PAGE_KINDS]; /* by the last reading, in any mapping */
	struct process_residency found[PAGE_KINDS];   /* in the ranges of residency_read_ranges() */
};

/* Takes an open /proc/PID/pagemap, which residency_close() closes. `calls`: how it is read; NULL: directly. */
void residency_take(struct residency_reader *reader, struct blocking_calls *calls, pid_t pid, int pagemap);
void residency_close(struct residency_reader *reader);

/* Does the address space for which the pagemap was opened still exist? Exec and exit free it; all of its pages are then
 * missing. */
bool residency_is_valid(const struct residency_reader *reader);

/* Is the page at this address resident now, in anonymous memory? */
bool residency_has_page(const struct residency_reader *reader, uint64_t address);

/* Pauses if the reader has worked for some time, now for `worked_ns` more. Each read holds the target's mmap_lock.
 * Without a pause, the next read would take the lock again before a call of the target that waits for it gets a CPU. */
void residency_pause(struct residency_reader *reader, uint64_t worked_ns);

/* Appends the runs of resident pages from START to END. The range may overlap ranges read before but must end above
 * them. Reads in bounded steps, so that the process is not blocked for long. Does nothing if the reader has given up.
 */
struct mmt_error *residency_read(struct residency_reader *reader, uint64_t start, uint64_t end,
				 struct process_residency *residency) MMT_MUST_CHECK;

/* Does the same for several ranges in ascending order, which may overlap. Ranges close to each other are read together,
 * because each call may wait for the target's mmap_lock. */
struct mmt_error *residency_read_ranges(struct residency_reader *reader, const struct mapped_range *ranges,
					size_t count, struct process_residency *residency) MMT_MUST_CHECK;

/* Reads one step of START to END, beginning at START; for callers that do other work between two steps. A step may
 * cover nearly all of a sparse range. *end_ret: where the step ended, above START. A reader that has given up skips the
 * complete range and appends nothing. */
struct mmt_error *residency_step(struct residency_reader *reader, uint64_t start, uint64_t end,
				 struct process_residency *residency, uint64_t *end_ret) MMT_MUST_CHECK;

/* swapped-pages.c: goes through the lines of /proc/PID/smaps, which ascend. */
struct swapped_pages {
	const resident_runs *resident, *found; /* found: in the pagemap */
	size_t at_resident, at_found;
	uint64_t start, end; /* of the current mapping */
	resident_runs corrected;
};

/* False: out of memory. */
bool swapped_pages_line(struct swapped_pages *pages, const char *line) MMT_MUST_CHECK;

/* Corrects the pages that the pagemap shows as swapped out. The kernel visits every page for smaps. */
struct mmt_error *swapped_pages_correct(struct blocking_calls *calls, pid_t pid, const resident_runs *resident,
					resident_runs *swapped) MMT_MUST_CHECK;

struct recorder;

/* The RSS of all recorded processes over time, read from /proc/PID/statm. Zero-initialise a series. */
struct resident_series {
	uint64_t readings; /* readings so far; each writes a note for every process */
	uint64_t begin_ns; /* time of the first reading */
	uint64_t next_ns;  /* when the next is due */
	uint64_t mappings_next_ns; /* when mappings are counted again */
	size_t processes;	   /* that have memory of their own, in the latest one */
	VECTOR(struct mmt_resident_reading)
	sums; /* RSS of all processes together; a recording of a year has some thousand readings */
	VECTOR(struct mmt_resident_reading) pss_sums; /* those in which the Pss of all processes was read */
};

void resident_series_deinit(struct resident_series *series);

/* Takes a reading if one is due, or the `last` one: every 50 ms at first, later each time that 1/256 of the elapsed
 * time has passed. The number of readings therefore grows with the logarithm of the time. The interval is longer if
 * there are many processes or reading them is slow. The kernel answers from counters, so the processes are not
 * disturbed. */
struct mmt_error *resident_series_read(struct recorder *recorder, bool last) MMT_MUST_CHECK;

/* What is read when recording has stopped. */
struct final_residency {
	process_residencies resident, swapped, shared;
	struct recording_huge_pages huge;
};

/* Reads which pages of the START snapshots are resident into start_residency, and discards the ranges of these
 * snapshots. Lets the ring reader work in between. A process whose pages cannot be read, or are too many, is left out.
 */
struct mmt_error *read_start_residency(struct recorder *recorder) MMT_MUST_CHECK;

/* Reads which pages of the process's INTERVAL snapshot are resident, writes them into the recording, and discards the
 * ranges. Lets the ring reader work in between. */
struct mmt_error *record_residency(struct recorder *recorder, struct traced_process *process) MMT_MUST_CHECK;

/* Reads which pages of the STOP snapshots are resident, or swapped out, their huge pages, and a sample of these. Call
 * this when all events are disabled. */
struct mmt_error *read_final_residency(struct recorder *recorder, struct final_residency *pages) MMT_MUST_CHECK;

/*
 * Samples of huge pages: how much of them contains only zeros. The kernel counts each huge page as 2 MiB of RSS,
 * although the program may have written only a few bytes of it.
 *
 * Some pages of some huge pages are read from /proc/PID/mem, evenly spread. The target is not stopped: the kernel holds
 * its mmap_lock for reading, for one page at a time. Reading must not cause page faults: they would swap pages in, and
 * map the zero page where no page was. So a huge page is read only if it is resident at that moment. A race remains
 * with calls that discard the page. In the range of a userfaultfd(2), reading it then fails with EIO, and never waits
 * for a handler. The contents are only compared with zero, and then overwritten.
 */

#define HUGE_SAMPLED_BYTES_MIN (8ull << 20) /* with less memory in huge pages than this, take no samples */
#define HUGE_PAGES_PER_SAMPLE 32

/* Reads the setting of transparent huge pages of this system. */
enum huge_setting huge_pages_setting(void);

/* Samples the huge pages that the reader has found, and adds the sizes to those of `huge`. `end_ns`: when to stop. */
void huge_pages_sample(struct residency_reader *reader, uint64_t end_ns, struct process_huge_pages *huge);

/* pss.c: reads what a process shares with others, from /proc/PID/smaps_rollup, and decides when that is worth its
 * price. */

/* Fills in what the text of smaps_rollup has. False: the kernel gave no Pss. */
bool pss_parse_rollup(const char *text, union pss_counts *counts_ret);

/* Read the RSS of a process, the second number of statm, in bytes: 0 for one that is ending, which has given up its
 * memory, and for kernel threads. False: the process is gone. */
bool resident_series_size(pid_t pid, uint64_t *bytes_ret);

/* Returns minor and major page faults from the text of /proc/PID/stat. */
uint64_t pss_parse_faults(const char *text);

/* The kernel visits every page of the process for smaps_rollup, and holds its mmap_lock for reading while it is in one
 * mapping: calls that change mappings wait. So a process is not read if that would take longer than LIMIT_PSS_WALK_NS,
 * and all processes together take at most 1/PSS_COST_SHARE of one CPU. */
#define PSS_COST_SHARE 50

/* An estimate for a process of this size: from the last reading of it, or from what a page costs as a rule. */
uint64_t pss_expected_ns(uint64_t resident_bytes, uint64_t last_resident_bytes, uint64_t last_took_ns);

/* Follows a reading of RSS, whose time and number it takes. Reads nothing if another reading would be too expensive
 * now, or only one process is recorded, unless it was one of several in the reading before. `last`: recording ends, so
 * that only the limit for each process applies, and all processes are read, for LazyFree, even if there is one. Lets
 * the ring reader work in between. */
struct mmt_error *pss_series_read(struct recorder *recorder, uint64_t time_ns, uint64_t number,
				  bool last) MMT_MUST_CHECK;

/* memory-limits.c: the limits that make memory calls fail, and how much of them is used. */

#define NO_LIMIT_BYTES UINT64_MAX

/* Parse /proc/PID/limits and /proc/PID/status, and /proc/meminfo. `overcommit` is vm.overcommit_memory. The result is
 * by NOTE_LIMIT_* - NOTE_LIMIT_FIRST; limits that the texts do not describe are not changed. */
void limits_parse_process(const char *limits, const char *status, struct memory_limit parsed[NOTE_LIMITS]);
void limits_parse_machine(const char *meminfo, int64_t overcommit, struct memory_limit parsed[NOTE_LIMITS]);

/* Write the limits of a process or the machine that have changed since the last call. */
struct mmt_error *limits_note_process(struct recorder *recorder, struct traced_process *process) MMT_MUST_CHECK;
/* The same, but cheaper: reads no more than whether a limit of the process changed. */
struct mmt_error *limits_note_change(struct recorder *recorder, struct traced_process *process) MMT_MUST_CHECK;
struct mmt_error *limits_note_machine(struct recorder *recorder, uint64_t now_ns) MMT_MUST_CHECK;

/* The state of the jobs of this folder. */
struct memory_jobs {
	uint64_t snapshot_lines; /* lines of all snapshots so far */

	struct group_memories groups;
	struct resident_series resident_series;
	struct memory_limit machine_limits[NOTE_LIMITS]; /* as noted last */
	uint64_t pss_next_ns;				 /* when Pss is read again */
	size_t pss_processes;				 /* in the latest reading of Pss; 0: there was none */
	process_residencies start_residency, start_shared;
	bool start_pages_read;	 /* or left out: processes that are found later do not get there */
	uint64_t huge_spent_ns;	 /* time spent on samples of huge pages; at most LIMIT_HUGE_SAMPLES_NS */
	uint64_t smaps_spent_ns; /* time spent on smaps; at most about SMAPS_NS_MAX */
	uint32_t page_readings;	 /* how often resident pages were read since the start */
	bool residency_reported;
};
