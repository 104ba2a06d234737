/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The steps of building a report, which report-build.c takes in order. */
#pragma once

#include <mmtrace/diff.h>

#include "analysis/replay/replay.h"
#include "analysis/report/rows.h"

/*
 * resident-pages.c: which pages were resident when, per row and per kind of memory, from the readings that the recorder
 * made at its start, at each interval snapshot and at its end. A report shows what its rows have of the last reading in
 * its window, and where RSS grew: the pages of that reading that are not resident in the reading nearest to the start
 * of the window, by what they belong to.
 */

/* Whether the pages of the interval are huge pages of hugetlbfs, which RSS does not include. */
bool pages_are_hugetlb(const struct replay *replay, const struct space_interval *interval);

#define ROW_USES_MAX 256

/* What the rows have in use of all processes over time. Of readings that follow each other closely, some are left
 * out. */
struct row_uses {
	uint64_t times_ns[ROW_USES_MAX]; /* the first is the start of the window, when no row has anything */
	size_t count;
	struct steps_of_rows steps; /* a step for each of the times */
	uint64_t changes;	    /* LIMIT_USE_CHANGES: more are missing */
};

/* The resident bytes of the rows of a report. */
struct resident_sums {
	/* account << 32 | thread, or LEDGER_NO_THREAD, -> bytes. `before`: of no row. Swapped: only at the end. */
	struct map held[HELD_PAGES];
	uint64_t owned_bytes;	      /* of a process: sum of held[HELD_RESIDENT] */
	uint64_t rss_bytes;	      /* in any memory of a process, without huge pages of hugetlbfs */
	uint64_t time_ns;	      /* when the pages were read, of any process at the earliest; 0: not known */
	struct map read_ns;	      /* the same by process */
	struct map late;	      /* by row: what is in mappings made in the last half of the time until then */
	const struct row_uses *uses;  /* of all processes; NULL in the sums of one */
	bool at_end;		      /* they were read when recording ended: no event is later */
	uint64_t owned_hugetlb_bytes; /* of held[HELD_RESIDENT]: what RSS does not include */
};

/* Limit resident bytes to the complete mapped bytes: pages read before the end may have been unmapped since. */
void resident_sums_limit(const struct resident_sums *sums, uint64_t *resident_bytes, uint64_t mapped_bytes);

/* touchers.c: the page faults of parts whose pages are still resident, by stack. */
#define TOUCHED_BY_ANY UINT32_MAX /* in place of a stack: all new pages of the part */

struct touch_sums {
	struct intern keys; /* part and stack; its ids are places in `items` */
	VECTOR(struct touch_sum) items;
	size_t named; /* stacks of all parts */
};

void touch_sums_deinit(struct touch_sums *sums);

/* Count those in the piece, which belongs to the part: in pages that are resident at the end, but not at the start.
 * `sampled`: not every fault was recorded. `copied` is NULL, or only those in these pages count. */
struct mmt_error *touchers_count(struct touch_sums *sums, const struct page_faults *faults,
				 const struct space_interval *piece, uint64_t part, bool sampled,
				 const resident_runs *copied, const resident_runs *start,
				 const resident_runs *end) MMT_MUST_CHECK;

struct mmt_error *touchers_add(struct touch_sums *sums, const struct touch_sum *sum) MMT_MUST_CHECK;

/* Nothing can be added then. */
void touchers_sort(struct touch_sums *sums);

/* Into the part, whose `order` is its number; the sums are sorted. Stacks beyond LIMIT_TOUCHERS have no name. */
struct mmt_error *touchers_publish(struct touch_sums *sums, struct rows *rows,
				   struct mmt_growth_part *part) MMT_MUST_CHECK;

/* Rows by touch, if the options ask for them: before row_figures_build(), which has their figures filled in. Each stack
 * has a row for each pattern, a heap, in which the toucher is not the owner; without pattern, it is. */
struct page_readings;
struct mmt_error *touchers_build_rows(const struct page_readings *readings, struct rows *rows) MMT_MUST_CHECK;
struct mmt_error *touchers_fill_row(const struct rows *rows, const struct touch_sum *touched,
				    struct mmt_row *row) MMT_MUST_CHECK;

/* The pages of a process in the reading nearest to the start of the window (empty for a process that began later), and
 * where they changed until the latest reading. */
struct page_changes {
	bool start_known;
	const resident_runs *start; /* in the metadata, or own_start */
	resident_runs own_start;
	uint64_t start_bytes;	  /* of all pages: RSS in statm */
	uint64_t displaced_bytes; /* of the start: replaced by memory that was moved there */

	bool parts_known;
	uint64_t end_bytes;
	struct touch_sums touched;
	struct map parts; /* since the start: place and what is mapped there -> int64_t as uint64_t */
};

/* The readings of one process that the report needs. */
struct process_pages {
	const struct process *process;

	/* A reading whose records follow each other, until its last one. */
	uint32_t reading;
	bool invalid;
	uint64_t time_ns;
	resident_runs incoming;
	uint64_t snapshot_ns; /* of the snapshot that the last one followed */

	uint64_t start_ns;	      /* time of the reading nearest to the start of the window */
	uint64_t start_hugetlb_bytes; /* not in the start, because RSS does not include them */
	uint64_t move_steps;	      /* runs that were looked at for moved memory */
	bool moves_unknown;	      /* too many moves: the pages of the start are no longer at their addresses */

	bool end_known; /* the latest reading */
	struct resident_sums resident;
	struct map use;		      /* what the rows (number) had of the process at the last reading, in bytes */
	int64_t hugetlb_change_bytes; /* since the start, not in the parts */

	struct touch_sums touched; /* by touch, in all memory: `part` is a pattern << 32 | kind */
	struct page_changes all;
	struct page_changes alone; /* only pages that no other process maps, without huge pages of hugetlbfs */
};

/* What was resident by kind when recording began and when it ended. */
struct resident_kinds {
	struct intern keys; /* class, heap of a runtime and name of the file; its ids are places in `items` */
	VECTOR(struct mmt_resident_kind) items;
	struct map started; /* PIDs: the recorder may read the maps of the start twice */
};

struct page_readings {
	const struct rows *rows;
	struct map processes; /* by index: struct process_pages */
	size_t run_count;     /* in all `incoming` and `own_start` */
	uint64_t latest_ns;   /* time of the latest reading during the recording; 0: none */

	/* Set by page_readings_end(). */
	bool ended;
	uint64_t latest_bytes; /* result of page_readings_latest() from then on */
	bool known;
	bool keeps_ended;	       /* the last readings of processes that ended count */
	struct resident_sums resident; /* of all processes */

	struct resident_kinds kinds;
	struct row_uses uses;
};

/* Have the replay report readings. The rows must be initialised before the pass. */
void page_readings_watch(struct page_readings *readings, const struct rows *rows);

void page_readings_deinit(struct page_readings *readings);

/* What the rows have of the latest readings during the recording, of the processes that are alive, as far as their
 * stacks are known. Takes time for each process. */
uint64_t page_readings_latest(const struct page_readings *readings);

/* After the pass: takes the reading of the recording's end if the window includes it. */
struct mmt_error *page_readings_end(struct page_readings *readings) MMT_MUST_CHECK;

/* Whether the latest reading of the process counts for the end of the recording. */
bool page_readings_count(const struct page_readings *readings, const struct process *process);

/* After the end: NULL if not known. */
const struct resident_sums *page_readings_of_process(const struct page_readings *readings,
						     const struct process *process);

/* What was resident by kind when recording began and when it ended: into report->growth, which borrows it. */
struct mmt_error *resident_kinds_build(struct page_readings *readings, struct mmt_report *report) MMT_MUST_CHECK;

/* Into the report: what is in huge pages, and about how much of that is zero. */
void huge_pages_build(const struct rows *rows, struct mmt_report *report);

/* Equal for what is one kind in two recordings. NULL: out of memory; the caller frees it. */
char *resident_kind_key(const struct mmt_resident_kind *kind);

/* growth-processes.c: whether the processes grow. Fills in report->growth, but its parts, and their own verdicts. */
struct mmt_error *growth_judge(const struct rows *rows, struct mmt_report *report) MMT_MUST_CHECK;

/* growth-parts.c: where RSS grew. */

/* mremap(2) moved `length` bytes, with their pages of the start. False: out of memory. */
bool growth_parts_move(struct process_pages *pages, uint64_t from, uint64_t to, uint64_t length);

/* Where the process has heaps of a runtime and arenas, from what it has mapped. */
struct heap_finder growth_parts_find_heaps(const struct replay *replay, const struct process *process);

/* How much of the pages is in huge pages of hugetlbfs. */
uint64_t growth_parts_hugetlb_bytes(const struct replay *replay, const struct process *process,
				    const resident_runs *runs);

/* Take huge pages of hugetlbfs, which RSS does not count, out of those of the start, by the present mappings. */
struct mmt_error *growth_parts_leave_out_hugetlb(struct page_readings *readings,
						 struct process_pages *pages) MMT_MUST_CHECK;

/* Fill in the start of pages->alone, after the huge pages of hugetlbfs were taken out. `shared`: those of the start. */
struct mmt_error *growth_parts_leave_out_shared(struct process_pages *pages,
						const resident_runs *shared) MMT_MUST_CHECK;

/* Fill in the changes from the pages of the start to those of the end, by what they belong to in the model as it is
 * now: of all pages and, unless `shared` is NULL, of those that are not among these. */
struct mmt_error *growth_parts_count(struct process_pages *pages, const struct rows *rows,
				     const resident_runs *end_pages, const resident_runs *shared) MMT_MUST_CHECK;

/*
 * Into report->growth. No parts where one of the two readings is missing, or equal to the other; where a target has
 * ended; or where the options leave recent mappings out.
 */
struct mmt_error *growth_parts_build(const struct page_readings *readings, struct rows *rows,
				     struct mmt_report *report) MMT_MUST_CHECK;

/* Of a part of MMT_GROWTH_BEFORE, from its class, file and runtime. */
enum mmt_pattern growth_pattern(const struct mmt_growth_part *part);

/* For names that a report does not have yet; as long as the report lives. */
struct resolver *report_code(const struct mmt_report *report);

/* heap-growth.c: what the censuses of malloc heaps show. */

/* Fill in report->heaps. The report must have its processes. */
struct mmt_error *heap_growth_build(const struct rows *rows, struct mmt_report *report) MMT_MUST_CHECK;

/* Fill in what the heaps had at the steps of the report. */
struct mmt_error *heap_growth_at_steps(const struct rows *rows, const struct mmt_report *report,
				       struct mmt_step *steps) MMT_MUST_CHECK;

/* Fill in diff->heaps, for which the relation must be known. */
struct mmt_error *heap_growth_compare(struct arena *arena, struct mmt_diff *diff) MMT_MUST_CHECK;

/* Whether the growth of the heap of each of these processes is known; `pids` NULL: of any. */
bool heap_growth_known(const struct mmt_report *report, const int32_t *pids, size_t count);

/* row-figures.c: the figures of the rows, from the ledger and the mappings that exist at the end; their sums in the
 * report; and the counts of stacks and frames in its completeness. Fails if allocated, freed and unfreed bytes do not
 * agree. `resident`: NULL if unknown. */
struct mmt_error *row_figures_build(struct rows *rows, const struct resident_sums *resident,
				    struct mmt_report *report) MMT_MUST_CHECK;

/* Whether the process was started with a limit of malloc arenas as low as the one that hints advise. */
bool row_limits_arenas(const struct replay *replay, const struct process *process);

/* All accessible bytes. */
uint64_t account_committed(const struct held_memory *memory);

/* hints.c: for memory with a known cause, a sentence that says what it is, whether it is likely a leak, and what helps.
 * A wrong hint is worse than none, so small amounts and single mappings have none. Pure; all texts are static. */

/* Whether a limit of malloc arenas can help. */
enum arena_use {
	ARENAS_OF_SEVERAL_THREADS,
	ARENAS_OF_ONE_THREAD, /* it has most of the arenas of each process */
	ARENAS_LIMITED	      /* the processes have such a limit */
};

/* The hint of a row with all figures; NULL: none. `live_threads`: number of threads of its processes at the end. */
const char *hints_of_row(const struct mmt_row *row, uint64_t live_threads, enum arena_use arenas);

/* The hint for memory that was mapped before the recording; NULL: none. `made_writable_bytes`: of readable memory, by
 * mprotect(2), or HINTS_CALLS_UNKNOWN if the calls of a part of the time are not in the report. */
#define HINTS_CALLS_UNKNOWN UINT64_MAX
#define HINTS_BETWEEN (UINT64_MAX - 1) /* the growth is between two recordings */
const char *hints_of_growth(const struct mmt_growth_part *part, uint64_t made_writable_bytes, enum arena_use arenas);

/* The same in a recording with page faults, none of which is in the part. `unattributed`: they could have been. */
const char *hints_with_faults(const char *hint, bool unattributed);

/* The hint instead of this one, which may be NULL, if the censuses of the heap show what grows. */
const char *hints_with_census(const char *hint);

/* The hint for memory in huge pages; NULL: a large part of it was written, or that is not known. `memory_bytes`: all
 * resident memory that it is a part of. `always`: the system gives huge pages to every program. */
const char *hints_of_huge_pages(const struct mmt_huge_pages *huge, uint64_t memory_bytes, bool always);

/* row-rates.c */

/* A process was read at this time. Return whether it is not the time of the last readings. `from_ns`: start of the
 * window; `before_ns`: time of the reading of the process before this one, or 0. */
bool row_uses_begin(struct row_uses *uses, uint64_t from_ns, uint64_t time_ns, uint64_t before_ns);

/* Since then a process has `now`, no longer `*use`, which takes it over. */
struct mmt_error *row_uses_change(struct row_uses *uses, struct map *use, struct map *now) MMT_MUST_CHECK;

/* How much of a row is in use at `count` equal steps in the time of the report, which is known well from *first_ret, at
 * least what that was, to before *end_ret; false: not known at any two times. */
bool row_uses_find(const struct resident_sums *resident, const struct mmt_report *report, const struct mmt_row *row,
		   uint32_t number, uint64_t *bytes_ret, unsigned count, unsigned *first_ret,
		   unsigned *end_ret) MMT_MUST_CHECK;

/* Set the rates of rows with all other figures. `memory`: by account, at the end; `figures`: by row number - 1. */
struct mmt_error *row_rates_add(const struct rows *rows, const struct mmt_report *report,
				const struct resident_sums *resident, const struct held_memory *memory,
				struct mmt_row *figures) MMT_MUST_CHECK;

/* Fails unless allocated - freed = unfreed in this row. */
struct mmt_error *row_figures_verify(const struct mmt_row *row) MMT_MUST_CHECK;

/* report --every: totals at equal time steps, taken during the one replay. */

struct steps {
	uint64_t every_ns; /* 0: no steps */
	const struct page_readings *readings;
	VECTOR(struct mmt_step) items;
};

/* Make the replay of the readings call at the end of each step. */
void steps_watch(struct steps *steps, const struct page_readings *readings);

/* After the pass: adds the steps after the last event, and sets their number in the report. */
struct mmt_error *steps_end(struct steps *steps, struct mmt_report *report) MMT_MUST_CHECK;

/* The report must have its sums, which are those of the last step. */
struct mmt_error *steps_publish(const struct steps *steps, struct mmt_report *report) MMT_MUST_CHECK;

/* The parts of rows (process, thread, class, file) and their lifetimes, if kept, for complete rows and processes. */
struct mmt_error *parts_build(const struct rows *rows, struct mmt_report *report) MMT_MUST_CHECK;

/* Warnings: what the recording does not contain, and why. The rest of the report must be complete. */
struct mmt_error *warnings_describe(const struct replay *replay, struct arena *arena,
				    struct mmt_report *report) MMT_MUST_CHECK;
